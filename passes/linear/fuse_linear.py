"""`fuse-linear`: linear ops by constants become part of convolutions and matrix products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.linear import ContractionOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp
from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.records import record
from lowerdeck.passes.linear.affine import (
    LINEAR_OPS,
    Affine,
    Chain,
    chain_of,
    is_moderate,
    is_representable,
    is_shift_harmless,
    linear_of,
    total,
)
from lowerdeck.passes.linear.factors import MOVERS, Move, after, before
from lowerdeck.passes.linear.weights import Edit, absorbed_after, absorbed_before
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.machinery.values import Array, broadcast_constant, number

_MOST_OPS = 64
"""The most ops that a search visits."""


_CONSUMERS = (ContractionOp, *MOVERS)
"""Ops that linear ops are moved into, or past."""

Task: TypeAlias = Callable[[], "Edit | None"]
Padding: TypeAlias = Callable[[float, float, float], "float | None"]
"""The value of padding on the other side of a scale and a shift."""


@dataclass
class _Search:
    """Looks for ops that can give, or expect, a linear function of what they do now."""

    tasks: list[Task] = field(default_factory=list[Task])
    """What makes their edits: it reads weights, which is left until all ops are known."""
    seen: set[Operation] = field(default_factory=set[Operation])

    def _enters(self, op: Operation) -> bool:
        """False if `op` was visited, or enough were."""
        if op in self.seen or len(self.seen) == _MOST_OPS:
            return False
        self.seen.add(op)
        return is_ranked(op)

    def edits(self) -> list[Edit] | None:
        """The edits of all ops that were found; None if one is not possible."""
        found: list[Edit] = []
        for task in self.tasks:
            if (edit := task()) is None:
                return None
            found.append(edit)
        return found

    def _notes(self, task: Task) -> bool:
        self.tasks.append(task)
        return True

    # Backward

    def gives(self, value: SSAValue, affine: Affine) -> bool:
        """True if what makes `value`, for a single user, can make value * scale + shift."""
        if affine.is_identity:
            return True
        op = value.owner
        if not isinstance(value, OpResult) or not isinstance(op, Operation):
            return False
        if not value.has_one_use() or not self._enters(op):
            return False
        if isinstance(op, ContractionOp):
            return self._notes(partial(absorbed_after, op, affine))
        if isinstance(op, AddOp):
            return self._sum_gives(op, affine)
        if not isinstance(op, MOVERS):
            return False
        if isinstance(op, PadOp) and not self._pads(op, affine, _padding_after):
            return False
        moved = _moved(partial(before, op, value.index), affine)
        operands = op.operands if isinstance(op, ConcatOp) else op.operands[:1]
        return moved is not None and all(map(self.gives, operands, moved))

    def _sum_gives(self, op: AddOp, affine: Affine) -> bool:
        """A sum with a constant, such as the bias of a matrix product, scales and shifts that."""
        own = linear_of(op)
        if own is None or (shift := own.affine.shift) is None:
            return False
        if affine.scale is not None:
            if np.broadcast(shift, affine.scale).size > shift.size:
                return False
            shift = shift * affine.scale
        element = element_type(op.result)
        if affine.shift is not None:
            shift = total(shift, affine.shift, element)
        if shift is None or not is_representable(shift, element):
            return False
        # What a product or convolution gives is rounded anyway; other values may be exact.
        if affine.scale is None and not is_shift_harmless(Affine(None, shift), element):
            return False
        self._notes(partial(_with_constant, op, own.input, shift))
        return self.gives(own.input, Affine(affine.scale))

    # Forward

    def takes(self, value: SSAValue, affine: Affine) -> bool:
        """True if all users of `value` can expect (value - shift) / scale instead."""
        if affine.is_identity:
            return True
        users: dict[Operation, list[int]] = {}
        for use in value.uses:
            users.setdefault(use.operation, []).append(use.index)
        return bool(users) and all(self._user_takes(op, at, affine) for op, at in users.items())

    def _user_takes(self, op: Operation, operands: Sequence[int], affine: Affine) -> bool:
        if not self._enters(op):
            return False
        if isinstance(op, ContractionOp):
            task = partial(absorbed_before, op, operands[0], affine)
            return len(operands) == 1 and self._notes(task)
        if not isinstance(op, MOVERS) or not (isinstance(op, ConcatOp) or operands == [0]):
            return False
        if isinstance(op, PadOp) and not self._pads(op, affine, _padding_before):
            return False
        moved = _moved(partial(after, op, operands), affine)
        return moved is not None and all(map(self.takes, op.results, moved))

    # Both

    def _pads(self, op: PadOp, affine: Affine, padding: Padding) -> bool:
        """True if padding can have another value, or the value need not change."""
        if op.mode.data is not PadMode.CONSTANT:
            return True
        value = 0.0 if op.value is None else number(op.value)
        if value is None:
            return False
        if value == 0 and affine.shift is None:
            return True
        scale, shift = (
            _single(part, fill) for part, fill in zip(affine.parts, (1.0, 0.0), strict=True)
        )
        if scale is None or shift is None or (new := padding(value, scale, shift)) is None:
            return False
        array = np.array(new)
        if not is_representable(array, element_type(op.result)):
            return False
        return self._notes(partial(_with_constant, op, op.input, array))


def _with_constant(op: AddOp | PadOp, value: SSAValue, constant: Array) -> Edit:
    """The op with another constant."""
    return Edit(op, (value, broadcast_constant(constant, op.result)))


def _padding_after(value: float, scale: float, shift: float) -> float | None:
    return value * scale + shift


def _padding_before(value: float, scale: float, shift: float) -> float | None:
    return (value - shift) / scale if scale else None


def _single(factor: Array | None, fill: float) -> float | None:
    """The number that a factor is everywhere."""
    if factor is None:
        return fill
    return float(factor.reshape(-1)[0]) if factor.size == 1 else None


def _moved(move: Move, affine: Affine) -> list[Affine] | None:
    """The functions on the other side of an op that moves elements."""
    lists: list[Sequence[Array | None]] = []
    for part, neutral in zip(affine.parts, (1.0, 0.0), strict=True):
        moved = None if part is None else move(part, neutral)
        if part is not None and moved is None:
            return None
        lists.append([_unless(factor, neutral) for factor in moved or []])
    count = max(map(len, lists))
    scales, shifts = (found or [None] * count for found in lists)
    return [Affine(*parts) for parts in zip(scales, shifts, strict=True)]


def _unless(factor: Array, neutral: float) -> Array | None:
    """The factor, if it changes anything."""
    return None if (factor == neutral).all() else factor


@record
class Plan:
    """The edits, and what is left of the linear ops."""

    edits: tuple[Edit, ...]
    input: SSAValue
    shift: Array | None


class _Fusion(Pattern[Plan]):
    """A pattern that begins at the last op of a chain of linear ops."""

    roots = LINEAR_OPS
    ranked = True

    def match(self, op: Operation) -> Match[Plan] | None:
        if (chain := chain_of(op)) is None:
            return None
        for affine, rest in self.choices(chain.affine, element_type(chain.input)):
            if rest is not None and not is_representable(rest, element_type(chain.input)):
                continue
            search = _Search()
            if not self.search(search, chain, affine) or (edits := search.edits()) is None:
                continue
            sums = [edit.op for edit in edits if edit.shift is not None]
            if any(summed.parent is not op.parent for summed in sums):
                continue  # A loop would repeat it.
            if not self.pays(chain, len(sums) + (rest is not None)):
                continue
            edited = [edit.op for edit in edits]
            names = ", ".join(dict.fromkeys(op.name for op in edited))
            plan = Plan(tuple(edits), chain.input, rest)
            return Match((*chain.ops, *edited), f"constants of {names} take it over", plan)
        return None

    @abstractmethod
    def choices(self, affine: Affine, element: Attribute) -> Iterator[tuple[Affine, Array | None]]:
        """What may be fused, and the shift that is then left, in order of preference."""

    @abstractmethod
    def search(self, search: _Search, chain: Chain, affine: Affine) -> bool:
        """Look for edits that replace `affine`."""

    @abstractmethod
    def pays(self, chain: Chain, sums: int) -> bool:
        """True if that many sums are better than the chain."""

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        plan = match.data
        for edit in plan.edits:
            _perform(edit, rewriter)
        value = plan.input
        if plan.shift is not None:
            shift = rewriter.add(broadcast_constant(plan.shift, value)).result
            value = rewriter.add(AddOp(value, shift)).result
        rewriter.replace(match.root, value)


def _perform(edit: Edit, rewriter: Rewriter) -> None:
    op = edit.op
    operands = [
        rewriter.insert_before(op, value).result if isinstance(value, ConstantOp) else value
        for value in edit.operands
    ]
    if edit.shift is None:
        rewriter.set_operands(op, operands)
        return
    assert isinstance(op, CoreOp)
    new = rewriter.insert_before(op, op.with_operands(operands)).results[0]
    shift = rewriter.insert_before(op, broadcast_constant(edit.shift, new)).result
    rewriter.replace(op, AddOp(new, shift))


class FuseIntoProducer(_Fusion):
    """conv(x, w, b) * s + t -> conv(x, w * s, b * s + t)"""

    name = "fuse-into-producer"

    def choices(self, affine: Affine, element: Attribute) -> Iterator[tuple[Affine, Array | None]]:
        yield affine, None
        if affine.scale is not None and affine.shift is not None:
            yield Affine(affine.scale), affine.shift

    def search(self, search: _Search, chain: Chain, affine: Affine) -> bool:
        return search.gives(chain.input, affine)

    def pays(self, chain: Chain, sums: int) -> bool:
        return sums < chain.size

    def rewrite(self, match: Match[Plan], rewriter: Rewriter) -> None:
        for edit in match.data.edits:
            for result in edit.op.results:
                result.name_hint = None  # It is another tensor of the model now.
        super().rewrite(match, rewriter)


class FuseIntoConsumer(_Fusion):
    """conv(x * s + t, w, b) -> conv(x, w * s, b + sum(w * t))"""

    name = "fuse-into-consumer"

    def match(self, op: Operation) -> Match[Plan] | None:
        if not all(isinstance(use.operation, _CONSUMERS) for use in op.results[0].uses):
            return None
        return super().match(op)

    def choices(self, affine: Affine, element: Attribute) -> Iterator[tuple[Affine, Array | None]]:
        yield affine, None
        scale, shift = affine.parts
        if scale is None or shift is None or not scale.all():
            return
        if not is_moderate(scale, element):
            return
        if np.broadcast(scale, shift).size <= max(scale.size, shift.size):
            yield Affine(scale), shift / scale

    def search(self, search: _Search, chain: Chain, affine: Affine) -> bool:
        return search.takes(chain.ops[0].results[0], affine)

    def pays(self, chain: Chain, sums: int) -> bool:
        """As many sums are better after a product, where they are part of its kernel."""
        return sums <= len(chain.ops)


class FuseLinearPass(PatternPass):
    """
    Linear ops by constants as part of the weights before or after them.

    A linear op is x * c, x / c, x + c, x - c, c - x, -x, or a batch normalization, with constant,
    finite parameters; several, each the only user of the one before, are one function x * s + t
    (see `merge-linear`). s and t vary along channels alone: dimension 1 of a convolution, columns
    (or rows) of a product with a constant on its right (or left).

    Into what is before them, if nothing else uses it:

    - conv(x, w, b) * s + t -> conv(x, w * s, b * s + t), likewise for conv_transpose, and groups
    - (x @ w) * s + t -> x @ (w * s) + t; (x @ w + b) * s + t -> x @ (w * s) + (b * s + t)
    - (x + c) * s + t -> x * s + (c * s + t) [if s becomes part of what is before]

    Into what is after them, if all that use it can take it:

    - conv(x * s + t, w, b) -> conv(x, w * s, b + sum(w * t)) [t = 0, or no padding], likewise for
      groups; conv_transpose(x * s, w, b) -> conv_transpose(x, w * s, b)
    - conv(x * s + t, w, b) -> conv(x + t / s, w * s, b) [padding; t is not 0; s is nowhere 0,
      and not so small that t / s hides x]
    - (x * s + t) @ w -> x @ (w * s) + t @ w [s and t along what is summed up]

    In both directions past transposes, reshapes, channel shuffles, broadcasts, splits, slices,
    concatenations and pads: s and t are moved like the elements that they meet, and are 1 and 0 for
    other elements. The value of a pad becomes v * s + t before, (v - t) / s after them [v = 0 = t,
    or s and t are single numbers].

    Weights are computed in float64 and rounded once; they are constants and finite, of the type of
    the result, and keep their digits. Nothing is fused where constants cancel: t and b to their
    last digits, or a t that what follows can no longer subtract exactly. A weight of more than 1 MB
    that others read stays as it is, unless what follows each reader scales it: two readers, or any
    number if all scales are equal.
    """

    name = "fuse-linear"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseIntoProducer(), FuseIntoConsumer()]
