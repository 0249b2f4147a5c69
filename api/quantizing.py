"""How a model is quantized, found from samples: `quantize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lowerdeck.binding import RunError
from lowerdeck.calibration import CalibrationError, Data, Sample, samples_of
from lowerdeck.compiler import (
    Array,
    CompileOptions,
    Model,
    Source,
    compile_with,
    import_and_lower,
    known_options,
    model_file,
)
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.observing import METHODS, Histogram, range_of
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BudgetError", "quantize"]

Outputs: TypeAlias = "Mapping[str, Array]"
Metric: TypeAlias = "Callable[[Sequence[Outputs], Sequence[Outputs]], float]"
"""What is lost, of outputs that are expected and those that are found, sample by sample."""

_SEARCHED = 32
"""Samples by which single layers are compared."""

_HELD_BACK = 4
"""One sample in so many is not calibrated with, if there is a budget that it verifies."""


class BudgetError(LowerdeckError, ValueError):
    """A budget that no choice of layers meets."""


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
    One sample in four is held back, and verifies the whole. The other arguments are those of
    `compile`.

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
        ranges, shared = _without_ranges(path, options)
        if calibration is None:
            if budget is not None or shared:
                raise CalibrationError("calibration: this model needs samples")
            return ranges
        observer = compile_with(path, replace(options, probe="observe"), cache=False)
        options.progress("calibrate")
        ranges, kept = _calibrated(ranges, shared, observer, calibration, method, budget)
        return ranges if budget is None else Search(path, options, ranges, budget, kept).run()


@dataclass(frozen=True)
class Budget:
    """What a quantized model may lose."""

    metric: Metric
    name: str
    most: float

    @staticmethod
    def of(metric: str | Metric, most: float) -> Budget:
        """OptionError for a metric that is not known, or no number that can be lost."""
        if isinstance(metric, str) and metric not in METRICS:
            known = ", ".join(METRICS)
            raise OptionError([("max_drop", f"'{metric}' is not one of {known}")])
        if not (np.isfinite(most) and most >= 0):
            raise OptionError([("max_drop", f"{most} is no number that can be lost")])
        if isinstance(metric, str):
            return Budget(METRICS[metric], metric, most)
        return Budget(metric, getattr(metric, "__name__", "drop"), most)


def _top1(expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
    name = next(iter(expected[0]))
    pairs = [
        (np.argmax(e[name], -1) != np.argmax(f[name], -1)).reshape(-1)
        for e, f in zip(expected, found, strict=True)
    ]
    return float(np.concatenate(pairs).mean())


def _error(expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
    return max(
        (
            _distance([each[name] for each in expected], [each[name] for each in found])
            for name in expected[0]
            if expected[0][name].dtype.kind == "f"
        ),
        default=0.0,
    )


def _distance(expected: Sequence[Array], found: Sequence[Array]) -> float:
    """The difference by norm, in proportion to what is expected."""
    whole = np.concatenate([each.reshape(-1) for each in expected]).astype(np.float64)
    other = np.concatenate([each.reshape(-1) for each in found]).astype(np.float64)
    if not np.isfinite(other).all():
        return np.inf
    size = float(np.linalg.norm(whole))
    return float(np.linalg.norm(other - whole)) / size if size else float(np.any(other))


METRICS: Mapping[str, Metric] = {"top1": _top1, "error": _error}
"""What can be lost, by name."""


def _without_ranges(path: str, options: CompileOptions) -> tuple[Ranges, dict[int, int]]:
    """The layers of a model, and which are observed: for each the first that reads the same."""
    from lowerdeck.passes.fuse.layers import fingerprint, layers_of, observed
    from lowerdeck.passes.machinery.provenance import source_names

    module, _ = import_and_lower(path, "optimized", options)
    layers = layers_of(module)
    if not layers:
        raise CalibrationError(f"{path}: there is no product with constant weights to quantize")
    total = sum(layer.products for layer in layers) or 1
    entries = tuple(
        LayerRange(", ".join(source_names(layer.op)) or layer.op.name, share=layer.products / total)
        for layer in layers
    )
    return Ranges(fingerprint(layers), entries), observed(layers)


@dataclass(frozen=True)
class Kept:
    """Samples with the outputs of the model in f32."""

    inputs: list[Sample]
    outputs: list[Outputs]


def _calibrated(
    ranges: Ranges,
    shared: Mapping[int, int],
    observer: Model,
    data: Data,
    method: str,
    budget: Budget | None,
) -> tuple[Ranges, tuple[Kept, Kept]]:
    """Ranges for all layers; with a budget, samples to search with and to verify with."""
    from lowerdeck.passes.fuse.observe_layers import OBSERVED

    histograms: dict[int, Histogram] = {}
    used, held = Kept([], []), Kept([], [])
    samples = 0
    own_outputs = [info for info in observer.outputs if not info.name.startswith(OBSERVED)]
    for number, sample in enumerate(samples_of(data, observer.inputs, own_outputs)):
        try:
            found = observer(sample)
        except (RunError, ValueError) as error:
            raise CalibrationError(f"calibration: sample {number}: {error}") from error
        own = {name: array for name, array in found.items() if not name.startswith(OBSERVED)}
        if budget is not None and number % _HELD_BACK == _HELD_BACK - 1:
            _keep(held, sample, own)
            continue
        samples += 1
        if budget is not None:
            _keep(used, sample, own)
        for name in found.keys() - own.keys():
            layer = int(name.removeprefix(OBSERVED))
            if not np.isfinite(found[name]).all():
                node = ranges.layers[layer].node
                raise CalibrationError(
                    f"calibration: sample {number}: what layer {layer} ({node}) reads has NaN or "
                    "infinities; exclude it by skip_nodes, or leave the sample out"
                )
            histograms.setdefault(layer, Histogram()).add(found[name])
    if budget is not None and not held.inputs:
        raise CalibrationError(
            f"calibration: {samples} samples, of which none can be held back; a budget needs at "
            f"least {_HELD_BACK}"
        )
    limits = {number: range_of(each, method) for number, each in histograms.items()}
    layers = list(ranges.layers)
    for number, first in shared.items():
        low, high = limits[first]
        clipped = histograms[first].clipped(low, high)
        layers[number] = replace(layers[number], low=low, high=high, clipped=clipped)
    return replace(ranges, layers=tuple(layers), method=method, samples=samples), (used, held)


def _keep(kept: Kept, sample: Sample, outputs: Outputs) -> None:
    kept.inputs.append(dict(sample))
    kept.outputs.append({name: array.copy() for name, array in outputs.items()})


class Search:
    """
    Which layers are quantized: as many as the budget allows, those first that lose least for what
    they save. One model, with an input that says which layers are quantized, measures all choices.
    """

    def __init__(
        self,
        path: str,
        options: CompileOptions,
        ranges: Ranges,
        budget: Budget,
        kept: tuple[Kept, Kept],
    ) -> None:
        own = replace(options, probe="switch", precision="int8", ranges=ranges)
        self._options = options
        self._ranges = ranges
        self._budget = budget
        self._used, self._held = kept
        self._model = compile_with(path, own, cache=False)

    def run(self) -> Ranges:
        """The ranges with what `auto` computes each layer in; BudgetError."""
        count = len(self._ranges.layers)
        self._options.progress("search")
        few = Kept(self._used.inputs[:_SEARCHED], self._used.outputs[:_SEARCHED])
        errors = [self._loss(_error, few, {number}) for number in range(count)]
        order = sorted(
            range(count), key=lambda k: errors[k] / max(self._ranges.layers[k].share, 1e-9)
        )
        chosen = self._with_others(self._longest(order), order)
        if not chosen:
            best = min(range(count), key=lambda k: errors[k])
            lost = self._loss(self._budget.metric, self._held, {best})
            raise BudgetError(
                f"no layer can be quantized within {self._budget.name} {self._budget.most:g}: "
                f"layer {best} ({self._ranges.layers[best].node}), which loses least, alone loses "
                f"{lost:g}"
            )
        layers = tuple(
            replace(
                layer,
                error=errors[number],
                precision="int8" if number in chosen else "f32",
            )
            for number, layer in enumerate(self._ranges.layers)
        )
        lost = self._loss(self._budget.metric, self._held, chosen)
        return replace(self._ranges, layers=layers, metric=self._budget.name, drop=lost)

    def _longest(self, order: Sequence[int]) -> set[int]:
        """As many layers of an order, from the first one on, as the budget allows; by bisection."""
        good, bad = 0, len(order) + 1
        middle = len(order)
        while bad - good > 1:
            good, bad = (middle, bad) if self._is_met(set(order[:middle])) else (good, middle)
            middle = (good + bad) // 2
        return set(order[:good])

    def _with_others(self, chosen: set[int], order: Sequence[int]) -> set[int]:
        """Each of the layers that were left out is tried again."""
        for number in order:
            if number not in chosen and self._is_met({*chosen, number}):
                chosen = {*chosen, number}
        return chosen

    def _is_met(self, chosen: set[int]) -> bool:
        return all(
            self._loss(self._budget.metric, kept, chosen) <= self._budget.most
            for kept in (self._held, self._used)
        )

    def _loss(self, metric: Metric, kept: Kept, chosen: set[int]) -> float:
        """What the model loses on samples with these layers quantized."""
        from lowerdeck.passes.fuse.quantize_layers import SWITCHES

        switches = np.array([k in chosen for k in range(len(self._ranges.layers))])
        found = [
            {
                name: array.copy()
                for name, array in self._model({**sample, SWITCHES: switches}).items()
            }
            for sample in kept.inputs
        ]
        lost = float(metric(kept.outputs, found))
        return lost if np.isfinite(lost) else float("inf")
