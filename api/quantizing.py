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
from lowerdeck.calibration import CalibrationError, Data, samples_of
from lowerdeck.compiler import CompileOptions, Model, compile_with
from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.model import Array
from lowerdeck.observing import METHODS, Histogram, range_of
from lowerdeck.passes.fuse.observe_layers import OBSERVED
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from lowerdeck.reading import Source, known_options, model_file, read_model
from lowerdeck.telling import telling

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
    file, a folder of such files, arrays, or an iterable of samples, each an array, a sequence of
    arrays or a mapping by name. Arrays may hold many samples. None will do for a model whose
    products take the range of each row, as those of transformers do.

    `method` is how ranges are found: "mse" (least square error), "min-max", "percentile" (99.99 of
    100 elements) or "entropy". `max_drop` is a budget: what the quantized model may lose, by
    "top1" (the share of rows of the first output whose largest element is another), "error" (the
    largest difference of an output by norm) or a function of expected and found outputs, a mapping
    for each sample. Layers that would exceed it stay in f32: `compile(precision="auto")` does so.
    One sample in four is held back, and verifies the whole, with a margin for samples that are not
    there. Layers of nodes that `skip_nodes` names stay in f32, too. The other arguments are those
    of `compile`.

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
    return quantize_with(model, calibration, options, method=method, max_drop=max_drop)


def quantize_with(
    model: Source,
    calibration: Data | None,
    options: CompileOptions,
    *,
    method: str = "mse",
    max_drop: tuple[str | Metric, float] | None = None,
) -> Ranges:
    """`quantize` with the options as one value."""
    if method not in METHODS:
        raise OptionError([("method", f"'{method}' is not one of {', '.join(METHODS)}")])
    budget = None if max_drop is None else Budget.of(*max_drop)
    with model_file(model) as path:
        options.progress("layers")
        ranges, shared, last = _without_ranges(path, options)
        if calibration is None:
            if budget is not None or shared:
                raise CalibrationError("calibration: this model needs samples")
            return ranges
        probe = "observe" if budget is None else "switch"
        observer = compile_with(path, replace(options, probe=probe), cache=False)
        options.progress("calibrate")
        return _calibrated(ranges, shared, last, observer, calibration, method, budget)


def _without_ranges(path: str, options: CompileOptions) -> tuple[Ranges, dict[int, int], set[int]]:
    """
    The layers of a model, which are observed, for each the first that reads the same, and which are
    the last ones.
    """
    from lowerdeck.lowering.pipeline import run_to_phase
    from lowerdeck.passes.fuse.layers import fingerprint, last_layers, layers_of, observed
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
    return Ranges(fingerprint(layers), entries), observed(layers), last_layers(layers)


def _calibrated(
    ranges: Ranges,
    shared: Mapping[int, int],
    last: set[int],
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
        try:
            found = observer({**sample, **off})
        except (RunError, ValueError) as error:
            raise CalibrationError(f"calibration: sample {number}: {error}") from error
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
                histograms.setdefault(layer, Histogram()).add(array)
    if budget is not None and not held.inputs:
        raise CalibrationError(
            f"calibration: {samples} samples, of which none can be held back; a budget needs at "
            f"least {_HELD_BACK}"
        )
    layers, one, wide = list(ranges.layers), dict[int, LayerRange](), dict[int, LayerRange]()
    for number, first in shared.items():
        histogram = histograms[first]
        one[number], wide[number] = _with_range(layers[number], histogram, method)
        low, high = one[number].low or 0, one[number].high or 0
        is_cheap = number in last and layers[number].share <= _CHEAP
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
