"""How a model is quantized, found from samples: `quantize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lowerdeck.binding import RunError
from lowerdeck.budgets import (
    Budget,
    Kept,
    Metric,
    Search,
    own_outputs,
    switched,
)
from lowerdeck.calibration import CalibrationError, Data, Sample
from lowerdeck.compiler import CompileOptions, Model, compile_with
from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.dialects.records import record
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.model import Array
from lowerdeck.observing import METHODS, Histogram, range_of
from lowerdeck.passes.fuse.observe_layers import OBSERVED
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from lowerdeck.reading import Source, known_options, model_file, read_model
from lowerdeck.samples import samples_of
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lowerdeck.passes.fuse.layers import Layer

__all__ = ["quantize"]

_HELD_BACK = 4
"""One sample in so many is not calibrated with, if there is a budget that it verifies."""


_LOUD = 0.02
"""What rounding to one byte adds to what a layer reads, by norm, from which on it becomes two."""

_LOUD_AT_LAST = 0.01
"""The same for what a last layer reads: nothing after it evens out what is lost."""

_CHEAP = 1 / 256
"""The share of multiplications that a last layer may have for it: two bytes take twice as many."""

_ROOM = 2
"""How much larger than all that was seen the range of two bytes is."""


def quantize(
    model: Source,
    calibration: Data | None = None,
    *,
    method: str = "mse",
    max_drop: tuple[str | Metric, float] | None = None,
    smooth: float | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    target: str = "native",
    skip_nodes: str | Sequence[str] | None = None,
    fast_math: bool = False,
    **import_options: OptionValue,
) -> Ranges:
    """
    How the layers of a model are quantized: what `compile` takes as `ranges`.

    `calibration` holds samples of the inputs: an .npz file with an array for each input, an .npy
    file, a .parquet, .arrow or .feather file, a folder of such files, arrays, or an iterable of
    samples, each an array, a sequence of arrays or a mapping by name. Arrays may hold many samples.
    None will do for a model whose products take the range of each row, as those of transformers do.

    `method` is how ranges are found: "mse" (least square error), "min-max", "percentile" (99.99 of
    100 elements) or "entropy". `max_drop` is a budget: what the quantized model may lose, by
    "top1" (the share of rows of the first output whose largest element is another), "error" (the
    largest difference of an output by norm) or a function of expected and found outputs, a mapping
    for each sample. Layers that would exceed it stay in f32: `compile(precision="auto")` does so.
    One sample in four is held back, and verifies the whole, with a margin for samples that are not
    there. `smooth`, from 0 to 1, divides the channels of what layers read by factors, by which it
    multiplies weights, so that channels differ less: with 1 all have the same largest magnitude,
    with 0 those of all weights do (SmoothQuant). It is not for a budget. Layers of nodes that
    `skip_nodes` names stay in f32, too. The other arguments are those of `compile`.

    CalibrationError for samples that do not fit, BudgetError if no layer can be quantized within
    the budget.
    """
    options = CompileOptions(
        outputs=outputs,
        input_shapes=input_shapes,
        dims=dims,
        fixed=fixed,
        target=target,
        skip_nodes=skip_nodes,
        fast_math=fast_math,
        import_options=known_options(import_options),
    )
    return quantize_with(
        model, calibration, options, method=method, max_drop=max_drop, smooth=smooth
    )


def quantize_with(
    model: Source,
    calibration: Data | None,
    options: CompileOptions,
    *,
    method: str = "mse",
    max_drop: tuple[str | Metric, float] | None = None,
    smooth: float | None = None,
) -> Ranges:
    """`quantize` with the options as one value."""
    if method not in METHODS:
        raise OptionError([("method", f"'{method}' is not one of {', '.join(METHODS)}")])
    budget = None if max_drop is None else Budget.of(*max_drop)
    if smooth is not None:
        if not 0 <= smooth <= 1:
            raise OptionError([("smooth", f"{smooth} is not from 0 to 1")])
        if budget is not None:
            raise OptionError([("smooth", "it is not for a budget: leave max_drop out")])
    with model_file(model) as path:
        options.progress("layers")
        ranges, own = _without_ranges(path, options)
        if calibration is None:
            if budget is not None or own.observed or smooth is not None:
                raise CalibrationError("calibration: this model needs samples")
            return ranges
        probe = "observe" if smooth is None else "inputs"
        probe = probe if budget is None else "switch"
        observer = compile_with(path, replace(options, probe=probe), cache=False)
        options.progress("calibrate")
        if smooth is not None:
            own = replace(own, observed={number: own.inputs[number] for number in own.observed})
            calibration = _kept(observer, calibration)
            ranges = _smoothed(ranges, own, observer, calibration, smooth)
        return _calibrated(ranges, own, observer, calibration, method, budget)


@record
class _Own:
    """What is known of the layers of a model without samples."""

    observed: Mapping[int, int]
    """For each that has one range, the first that reads the same."""
    inputs: Mapping[int, int]
    """The same for each that every run computes once."""
    last: set[int]
    channels: Mapping[int, Array]
    """The largest magnitude of the weights of each input channel, in the form that divides the
    input; of groups of channels none."""


def _without_ranges(path: str, options: CompileOptions) -> tuple[Ranges, _Own]:
    """The layers of a model, and what is known of them."""
    from lowerdeck.lowering.pipeline import run_to_phase
    from lowerdeck.passes.fuse.layers import (
        fingerprint,
        inputs,
        last_layers,
        layers_of,
        observed,
    )
    from lowerdeck.passes.machinery.provenance import check_names, source_names

    with working_on_modules():
        module, context = read_model(path, options)
        # What is to be left out is there, or the ranges are not those that were asked for.
        check_names(module, options, must_match=True)
        run_to_phase(context, module, "optimized", telling(context))
    layers = layers_of(module)
    if not layers:
        raise CalibrationError(f"{path}: there is no product with constant weights to quantize")
    total = sum(layer.products for layer in layers) or 1
    entries = tuple(
        LayerRange(
            ", ".join(source_names(layer.op)) or layer.op.name,
            share=layer.products / total,
            precision="f32" if context.recorder.skips(layer.op) else "int8",
        )
        for layer in layers
    )
    channels = {
        number: found
        for number, layer in enumerate(layers)
        if (found := _largest_of_channels(layer)) is not None
    }
    own = _Own(observed(layers), inputs(layers), last_layers(layers), channels)
    return Ranges(fingerprint(layers), entries), own


def _largest_of_channels(layer: Layer) -> Array | None:
    if (axis := layer.input_axis) is None:
        return None
    array = layer.weight.array
    largest = np.abs(array).max(tuple(k for k in range(array.ndim) if k != axis))
    is_matrix = array.ndim == 2
    return largest if is_matrix else largest.reshape(-1, *[1] * (array.ndim - 2))


def _kept(observer: Model, data: Data) -> list[Sample]:
    """All samples, which are looked at twice."""
    own = [info for info in observer.outputs if not info.name.startswith(OBSERVED)]
    return [
        {name: np.array(array) for name, array in sample.items()}
        for sample in samples_of(data, observer.inputs, own)
    ]


_FACTORS = 2.0**-16, 2.0**16
"""Of channels: the least and the largest."""


def _smoothed(
    ranges: Ranges, own: _Own, observer: Model, samples: Sequence[Sample], strength: float
) -> Ranges:
    """
    The layers with factors of channels, by what channels hold at most and by their weights
    (SmoothQuant, https://arxiv.org/abs/2211.10438, section 4). Layers that read the same have the
    same factors.
    """
    readers: dict[int, list[int]] = {}
    for number, first in own.inputs.items():
        readers.setdefault(first, []).append(number)
    readers = {k: each for k, each in readers.items() if all(n in own.channels for n in each)}
    held = {first: np.zeros_like(own.channels[first], np.float64) for first in readers}
    for number, sample in enumerate(samples):
        found = _run(observer, sample, number)
        for first, most in held.items():
            array = np.abs(found[f"{OBSERVED}{first}"])
            _require_finite(array, number, first, ranges)
            # Channels are the last axis of rows, the second one of images.
            channel = 1 if most.ndim > 1 else array.ndim - 1
            axes = tuple(k for k in range(array.ndim) if k != channel)
            np.maximum(most, array.max(axes, initial=0).reshape(most.shape), out=most)
    layers = list(ranges.layers)
    for first, each in readers.items():
        weights = np.maximum.reduce([own.channels[k] for k in each]).astype(np.float64)
        factors = _factors(held[first].reshape(-1), weights.reshape(-1), strength)
        for number in each:
            layers[number] = replace(layers[number], factors=factors)
    return replace(ranges, layers=tuple(layers))


def _factors(held: Array, weights: Array, strength: float) -> tuple[float, ...]:
    """Those of channels; 1 for channels that are zero, or have no weights."""
    is_used = (held > 0) & (weights > 0)
    if not is_used.any():
        return (1.0,) * len(held)
    logarithms = np.zeros(len(held))
    logarithms[is_used] = strength * np.log(held[is_used]) - (1 - strength) * np.log(
        weights[is_used]
    )
    logarithms[is_used] -= logarithms[is_used].mean()
    found = np.clip(np.exp(logarithms), *_FACTORS).astype(np.float32)
    return tuple(map(float, found))


def _run(observer: Model, sample: Sample, number: int) -> Mapping[str, Array]:
    try:
        return observer(sample)
    except (RunError, ValueError) as error:
        raise CalibrationError(f"calibration: sample {number}: {error}") from error


def _calibrated(
    ranges: Ranges,
    own: _Own,
    observer: Model,
    data: Data,
    method: str,
    budget: Budget | None,
) -> Ranges:
    """Ranges for all layers, and with a budget what each is computed in."""
    histograms: dict[int, Histogram] = {}
    used, held = Kept(), Kept()
    samples, count = 0, len(ranges.layers)
    off = {} if budget is None else switched(count, {})
    inputs = [info for info in observer.inputs if info.name not in off]
    own_infos = [info for info in observer.outputs if not info.name.startswith(OBSERVED)]
    for number, sample in enumerate(samples_of(data, inputs, own_infos)):
        found = _run(observer, {**sample, **off}, number)
        is_held = budget is not None and number % _HELD_BACK == _HELD_BACK - 1
        if budget is not None:
            (held if is_held else used).add(sample, own_outputs(found))
        if is_held:
            continue
        samples += 1
        for name, array in found.items():
            if name.startswith(OBSERVED):
                layer = int(name.removeprefix(OBSERVED))
                _require_finite(array, number, layer, ranges)
                if (factors := ranges.layers[layer].factors) is not None:
                    array = array / np.array(factors, np.float32).reshape(own.channels[layer].shape)
                histograms.setdefault(layer, Histogram()).add(array)
    if budget is not None and not held.inputs:
        raise CalibrationError(
            f"calibration: {samples} samples, of which none can be held back; a budget needs at "
            f"least {_HELD_BACK}"
        )
    layers, one, wide = list(ranges.layers), dict[int, LayerRange](), dict[int, LayerRange]()
    for number, first in own.observed.items():
        histogram = histograms[first]
        one[number], wide[number] = _with_range(layers[number], histogram, method)
        low, high = one[number].low or 0, one[number].high or 0
        is_cheap = number in own.last and layers[number].share <= _CHEAP
        is_loud = histogram.noise(low, high) > (_LOUD_AT_LAST if is_cheap else _LOUD)
        layers[number] = (wide if is_loud else one)[number]
    ranges = replace(ranges, layers=tuple(layers), method=method, samples=samples)
    if budget is None:
        return ranges
    return Search(observer, ranges, (one, wide), budget, (used, held)).run()


def _require_finite(array: Array, sample: int, layer: int, ranges: Ranges) -> None:
    if not np.isfinite(array).all():
        raise CalibrationError(
            f"calibration: sample {sample}: what layer {layer} ({ranges.layers[layer].node}) reads "
            "has NaN or infinities; exclude it by skip_nodes, or leave the sample out"
        )


def _with_range(
    layer: LayerRange, histogram: Histogram, method: str
) -> tuple[LayerRange, LayerRange]:
    """A layer with the range of what it reads in one byte, and with two bytes for all of it."""
    low, high = range_of(histogram, method)
    one = replace(layer, low=low, high=high, clipped=histogram.clipped(low, high))
    low, high = range_of(histogram, "min-max")
    # Two bytes have room for what other samples may hold.
    return one, replace(layer, low=_ROOM * low, high=_ROOM * high, bytes=2)
