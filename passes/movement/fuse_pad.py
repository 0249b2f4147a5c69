"""`fuse-pad`: what is added around an image becomes padding of the windows that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.core.enums import PadMode, PoolKind
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import PadOp, TransposeOp, ints
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    producer,
)
from lowerdeck.passes.machinery.values import is_finite, uniform_value

Windows: TypeAlias = ConvOp | PoolOp


@record
class Padding:
    """What an op reads: all of a value, with something around it."""

    pad: PadOp
    transpose: TransposeOp | None
    """What is between the pad and the op."""
    begin: list[Any]
    end: list[Any]


def _padding(value: SSAValue) -> Padding | None:
    """How a value is padded along its spatial dimensions, if along these only."""
    transpose = producer(value, TransposeOp)
    pad = producer(value if transpose is None else transpose.input, PadOp)
    if pad is None or pad.mode.data is not PadMode.CONSTANT:
        return None
    order = range(len(pad.begin.data)) if transpose is None else ints(transpose.permutation)
    begin, end = ([pads.data[axis] for axis in order] for pads in (pad.begin, pad.end))
    if any(amount != 0 for amount in (*begin[:2], *end[:2])):
        return None
    return Padding(pad, transpose, begin[2:], end[2:])


def _takes(op: Operation, value: SSAValue, pad: PadOp) -> bool:
    """True if padding of `op` means the same as that of `value`, its input."""
    if not is_ranked(op) or value in op.operands[1:]:
        return False
    added = 0.0 if pad.value is None else uniform_value(pad.value)
    match op:
        case ConvOp():
            return not op.zero_points and added == 0 and _is_finite_constant(op.weight)
        case PoolOp() if op.kind.data is PoolKind.MAX:
            return added == -np.inf and not op.keeps_first.value.data
        case PoolOp() if op.kind.data is PoolKind.SUM:
            return added == 0
        case PoolOp():
            is_open = any(amount != 0 for amount in (*op.pads_begin.data, *op.pads_end.data))
            return added == 0 and (not is_open or bool(op.count_pads.value.data))
        case _:
            return False


def _is_finite_constant(value: SSAValue) -> bool:
    try:
        array = constant_array(value)
    except ElidedBlobError:
        return False
    return array is not None and is_finite(array)


class FusePad(Pattern[Padding]):
    """conv(pad(x), w) -> conv(x, w) {pads + those of the pad}"""

    name = "fuse-pad"
    roots = (ConvOp, PoolOp)
    ranked = True

    def match(self, op: Windows) -> Match[Padding] | None:
        if (found := _padding(op.input)) is None:
            return None
        users = {use.operation for use in found.pad.result.uses}
        if found.transpose is not None:
            if users != {found.transpose}:
                return None
            users = {use.operation for use in op.input.uses}
        if not all(_takes(user, op.input, found.pad) for user in users):
            return None
        consumed = (op, found.pad) if found.transpose is None else (op, found.transpose, found.pad)
        return Match(consumed, "windows skip padding", found)

    def rewrite(self, match: Match[Padding], rewriter: Rewriter) -> None:
        op, found = match.root, match.data
        assert isinstance(op, Windows)
        value = found.pad.input
        if found.transpose is not None:
            value = rewriter.add(TransposeOp(value, ints(found.transpose.permutation))).result
        begin, end = (
            DimsAttr.of(own + more for own, more in zip(pads.data, added, strict=True))
            for pads, added in ((op.pads_begin, found.begin), (op.pads_end, found.end))
        )
        properties: dict[str, Attribute] = {"pads_begin": begin, "pads_end": end}
        if isinstance(op, PoolOp) and op.kind.data is PoolKind.AVERAGE:
            properties["count_pads"] = BoolAttr.from_bool(True)
        rewriter.replace(op, op.with_operands([value, *op.operands[1:]], properties))


class FusePadPass(PatternPass):
    """
    Pads around images as padding of the windows that read them.

    - conv(pad(x, 0), w) -> conv(x, w), with the pads added to its own [w constant and finite; no
      zero points]
    - pool(pad(x, v)) -> pool(x), likewise [maximum: v = -infinity; sum: v = 0; average: v = 0, and
      it counts its own padding, if any: it then counts all]

    [the pad is along spatial dimensions only, and all that read it are such ops]; likewise with a
    transpose between the two. What is padded is not copied.

    Runs after `fuse-linear`, which moves constants past a pad.
    """

    name = "fuse-pad"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FusePad()]
