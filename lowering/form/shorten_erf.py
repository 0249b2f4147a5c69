"""`shorten-erf`: an error function of which only bytes are made is a short polynomial."""

from __future__ import annotations

from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    CastOp,
    ErfOp,
    MaxOp,
    MinOp,
    MulOp,
    RoundOp,
    ShortErfOp,
    SubOp,
)
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.types import bit_width, element_type, f32, is_integer
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, apply_patterns, rounds

_BYTE: Exact[int] = 8
"""Bits of one."""

_SUMS = (AddOp, SubOp, MulOp)


class ShortenErf(Pattern[None]):
    """erf(x) -> short_erf(x)"""

    name = "shorten-erf"
    roots = (ErfOp,)

    def match(self, op: Operation) -> Match[None] | None:
        (value,) = op.results
        return Match((op,)) if element_type(value) == f32 and _becomes_bytes(value) else None

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, ShortErfOp(match.root.operands[0]))


def _becomes_bytes(value: SSAValue) -> bool:
    """True if sums and products of a value, if any, are but rounded to bytes and their range."""
    uses = list(value.uses)
    return bool(uses) and all(_makes_bytes(use.operation) for use in uses)


def _makes_bytes(op: Operation) -> bool:
    match op:
        case AbsOp():
            return all(isinstance(use.operation, ReduceOp) for use in op.result.uses)
        case RoundOp():
            return _is_byte(op.results[0])
        case _:
            return isinstance(op, _SUMS) and _becomes_bytes(op.results[0])


def _is_byte(value: SSAValue) -> bool:
    """True if whole numbers are limited, and become a byte."""
    while (op := value.get_user_of_unique_use()) is not None:
        if isinstance(op, CastOp):
            to = element_type(op.result)
            return is_integer(to) and bit_width(to) == _BYTE
        if not isinstance(op, AddOp | MinOp | MaxOp):
            return False
        value = op.result
    return False


class ShortenErfPass(ModulePass):
    """
    erf(x) -> short_erf(x)
        [of sums and products of it, as those of GELU, only bytes and their range are made]

    In f32, with `--precision int8`, or `auto`: less than a hundredth of a step of bytes from -1 to
    1 is lost.
    """

    name = "shorten-erf"
    optional = True
    rounds_numbers = True
    precisions = ("int8", "auto")
    """With which it does something."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not rounds(self, options_of(ctx)):
            return
        patterns: list[Pattern[Any]] = [ShortenErf()]
        apply_patterns(op, patterns, recorder_of(ctx), pass_name=self.name, recursive=False)
