"""What a quantized model may lose, and which layers are quantized by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lowerdeck.calibration import Sample
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.passes.fuse.observe_layers import OBSERVED
from lowerdeck.passes.fuse.switch_layers import STEPS, SWITCHES
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges

if TYPE_CHECKING:
    from lowerdeck.compiler import Model
    from lowerdeck.model import Array

Outputs: TypeAlias = "Mapping[str, Array]"
Metric: TypeAlias = "Callable[[Sequence[Outputs], Sequence[Outputs]], float]"
"""What is lost, of outputs that are expected and those that are found, sample by sample."""

_SEARCHED = 32
"""Samples by which single layers are compared."""

_FOLDS = 8
"""Parts of the samples, each of which is left out once to know how much a loss varies."""


_TIMES = 8
"""By how much differences are enlarged, to see decisions that change too rarely to be counted."""


class BudgetError(LowerdeckError, ValueError):
    """A budget that no choice of layers meets."""


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

    def lost(self, expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
        """What these samples lose; infinite if that is no number."""
        lost = float(self.metric(expected, found))
        return lost if np.isfinite(lost) else float("inf")

    def bound(self, expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
        """
        What other samples should not exceed either: the loss of all samples and twice its standard
        error, by the jackknife (Quenouille 1949, Tukey 1958): each part of the samples is left out
        once. Of decisions, which rarely change, at least the share that is likely to change.
        """
        whole = self.lost(expected, found)
        count = len(expected)
        folds = min(_FOLDS, count)
        if folds < 2 or not np.isfinite(whole):
            return whole
        rest = [[k for k in range(count) if k % folds != fold] for fold in range(folds)]
        parts = [self.lost([expected[k] for k in each], [found[k] for k in each]) for each in rest]
        spread = np.sqrt((folds - 1) / folds * np.square(np.subtract(parts, np.mean(parts))).sum())
        bound = float(whole + 2 * spread)
        if self.metric is _top1:
            return max(bound, _likely(expected, found))
        own = [[k for k in range(count) if k % folds == fold] for fold in range(folds)]
        alone = [self.lost([expected[k] for k in each], [found[k] for k in each]) for each in own]
        # What most samples do not lose at all is a matter of decisions that rarely change.
        is_rare = np.count_nonzero(alone) <= folds // 2
        return max(bound, self._with_more(expected, found)) if is_rare else bound

    def _with_more(self, expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
        """
        What is lost if outputs differ by several times as much, as a part of it: near a threshold
        are about as many numbers at any distance, so decisions change in proportion to it.
        """
        more = [
            {
                name: one[name] + _TIMES * (array - one[name]) if array.dtype.kind == "f" else array
                for name, array in other.items()
            }
            for one, other in zip(expected, found, strict=True)
        ]
        return self.lost(expected, more) / _TIMES


def _top1(expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
    whole, other = _rows(expected), _rows(found)
    return float((whole.argmax(-1) != other.argmax(-1)).mean())


def _rows(outputs: Sequence[Outputs]) -> Array:
    """The rows of the first output of all samples."""
    name = next(iter(outputs[0]))
    return np.concatenate([each[name].reshape(-1, each[name].shape[-1]) for each in outputs])


def _likely(expected: Sequence[Outputs], found: Sequence[Outputs]) -> float:
    """
    The share of rows whose largest element becomes another one, if any row may lose as much of its
    lead as any other does: so a few samples tell of decisions that none of them has changed.
    """
    whole, other = _rows(expected).astype(np.float64), _rows(found).astype(np.float64)
    if whole.shape[-1] < 2:
        return 0.0
    if _are_shares(whole):
        whole, other = (np.log(np.maximum(each, 1e-30)) for each in (whole, other))
    first = whole.argmax(-1)[:, None]
    lead = np.sort(_lead(whole, first))
    lost = (
        np.sort(lead) if not np.isfinite(other).all() else _lead(whole, first) - _lead(other, first)
    )
    return float(np.searchsorted(lead, lost, side="left").mean() / len(lead))


def _are_shares(rows: Array) -> bool:
    """True for rows of probabilities: their logarithms tell a close decision from a clear one."""
    return bool((rows >= 0).all() and np.allclose(rows.sum(-1), 1, 0, 1e-3))


def _lead(rows: Array, first: Array) -> Array:
    """How far one element of each row is above all others."""
    others = rows.copy()
    np.put_along_axis(others, first, -np.inf, -1)
    return np.take_along_axis(rows, first, -1)[:, 0] - others.max(-1)


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


class Kept:
    """Samples with the outputs of the model in f32."""

    def __init__(self) -> None:
        self.inputs: list[Sample] = []
        self.outputs: list[Outputs] = []

    def add(self, sample: Sample, outputs: Outputs) -> None:
        """Keep one more."""
        self.inputs.append(dict(sample))
        self.outputs.append({name: array.copy() for name, array in outputs.items()})


Choice: TypeAlias = "Mapping[int, LayerRange]"
"""The layers that are quantized, and how."""


class Search:
    """
    Which layers are quantized: as many as the budget allows, those first that lose least for what
    they save. One model, in which inputs say which layers are quantized, measures all choices.
    """

    def __init__(
        self,
        model: Model,
        ranges: Ranges,
        forms: tuple[Choice, Choice],
        budget: Budget,
        kept: tuple[Kept, Kept],
    ) -> None:
        """`forms` are layers with inputs of one byte, and with inputs of two."""
        self._model = model
        self._ranges = ranges
        self._one, self._wide = forms
        self._budget = budget
        self._used, self._held = kept

    def run(self) -> Ranges:
        """The ranges with what `auto` computes each layer in; BudgetError."""
        layers = dict(enumerate(self._ranges.layers))
        # Others are to stay as they are.
        layers = {number: each for number, each in layers.items() if each.precision != "f32"}
        if not layers:
            raise BudgetError("no layer is left to be quantized: skip_nodes names all of them")
        errors = {number: self._alone(number, layer) for number, layer in layers.items()}
        order = sorted(layers, key=lambda k: errors[k] / max(layers[k].share, 1e-9))
        chosen = self._with_others(self._longest([(k, layers[k]) for k in order]), order)
        if not chosen:
            raise self._no_layer(min(layers, key=lambda k: errors[k]))
        lost, bound = self._measured(chosen)
        for number, layer in layers.items():
            # So the layers that need two bytes are seen among the others.
            one = self._one.get(number, layer)
            in_byte = errors[number] if one == layer else self._alone(number, one)
            if (found := chosen.get(number)) is None:
                layers[number] = replace(
                    layer, precision="f32", error=errors[number], error_of_byte=in_byte
                )
            else:
                is_known = found == layer
                error = errors[number] if is_known else self._alone(number, found)
                layers[number] = replace(
                    found, precision="int8", error=error, error_of_byte=in_byte
                )
        own = tuple(layers.get(k, each) for k, each in enumerate(self._ranges.layers))
        return replace(self._ranges, layers=own, metric=self._budget.name, drop=lost, bound=bound)

    def _alone(self, number: int, layer: LayerRange) -> float:
        """What the outputs differ by if only this layer is quantized."""
        few = self._used.outputs[:_SEARCHED]
        return _error(few, self._found(self._used, {number: layer}, len(few)))

    def _no_layer(self, best: int) -> BudgetError:
        layer = self._ranges.layers[best]
        _, bound = self._measured({best: layer})
        return BudgetError(
            f"no layer can be quantized within {self._budget.name} {self._budget.most:g}: layer "
            f"{best} ({layer.node}), which loses least, alone may lose {bound:g}"
        )

    def _longest(self, order: Sequence[tuple[int, LayerRange]]) -> Choice:
        """As many layers of an order, from the first one on, as the budget allows; by bisection."""
        good, bad = 0, len(order) + 1
        middle = len(order)
        while bad - good > 1:
            is_met = self._is_met(dict(order[:middle]))
            good, bad = (middle, bad) if is_met else (good, middle)
            middle = (good + bad) // 2
        return dict(order[:good])

    def _with_others(self, chosen: Choice, order: Sequence[int]) -> Choice:
        """Each of the layers that were left out is tried again, at last with wide inputs."""
        for forms in (dict(enumerate(self._ranges.layers)), self._wide):
            for number in order:
                if number in chosen or number not in forms:
                    continue
                if self._is_met(more := {**chosen, number: forms[number]}):
                    chosen = more
        return chosen

    def _is_met(self, chosen: Choice) -> bool:
        return not chosen or max(self._measured(chosen)) <= self._budget.most

    def _measured(self, chosen: Choice) -> tuple[float, float]:
        """What samples that were held back lose, and what others should not exceed."""
        budget = self._budget
        held = self._found(self._held, chosen)
        lost = budget.lost(self._held.outputs, held)
        if lost > budget.most:
            return lost, lost
        used = self._found(self._used, chosen)
        bound = budget.bound([*self._held.outputs, *self._used.outputs], [*held, *used])
        return lost, max(bound, budget.lost(self._used.outputs, used))

    def _found(self, kept: Kept, chosen: Choice, count: int | None = None) -> list[Outputs]:
        """What the model gives for the first samples with these layers quantized."""
        inputs = switched(len(self._ranges.layers), chosen)
        return [
            own_outputs(self._model({**sample, **inputs}), copy=True)
            for sample in kept.inputs[:count]
        ]


def switched(count: int, chosen: Choice) -> Sample:
    """The inputs that quantize these of so many layers."""
    steps = np.ones((count, 3), np.float32)
    for number, layer in chosen.items():
        if (step := layer.step) is not None:
            steps[number] = step.scale, step.zero, step.largest
    return {SWITCHES: np.array([k in chosen for k in range(count)]), STEPS: steps}


def own_outputs(found: Outputs, *, copy: bool = False) -> Outputs:
    """The outputs that the model itself has."""
    return {
        name: array.copy() if copy else array
        for name, array in found.items()
        if not name.startswith(OBSERVED)
    }
