"""The enumerations of `core`: how elements are compared, combined and added around a tensor."""

from __future__ import annotations

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class Predicate(StrEnum):
    """How two elements are compared; every comparison with NaN but `ne` is false."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


@irdl_attr_definition
class PredicateAttr(EnumAttribute[Predicate], SpacedOpaqueSyntaxAttribute):
    """`#core<predicate lt>`."""

    name = "core.predicate"


class ReduceKind(StrEnum):
    """How the elements along dimensions are combined."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    """`#core<reduce_kind sum>`."""

    name = "core.reduce_kind"


class ExtremumKind(StrEnum):
    """Which element along a dimension is looked for."""

    MAX = "max"
    MIN = "min"


@irdl_attr_definition
class ExtremumKindAttr(EnumAttribute[ExtremumKind], SpacedOpaqueSyntaxAttribute):
    """`#core<extremum_kind max>`."""

    name = "core.extremum_kind"


class CumulativeKind(StrEnum):
    """What runs along a dimension."""

    SUM = "sum"
    PROD = "prod"


@irdl_attr_definition
class CumulativeKindAttr(EnumAttribute[CumulativeKind], SpacedOpaqueSyntaxAttribute):
    """`#core<cumulative_kind sum>`."""

    name = "core.cumulative_kind"


class PoolKind(StrEnum):
    """How the elements of a window are combined."""

    MAX = "max"
    SUM = "sum"
    AVERAGE = "average"


@irdl_attr_definition
class PoolKindAttr(EnumAttribute[PoolKind], SpacedOpaqueSyntaxAttribute):
    """`#core<pool_kind average>`."""

    name = "core.pool_kind"


class PadMode(StrEnum):
    """What is added around a tensor."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    WRAP = "wrap"


@irdl_attr_definition
class PadModeAttr(EnumAttribute[PadMode], SpacedOpaqueSyntaxAttribute):
    """`#core<pad_mode edge>`."""

    name = "core.pad_mode"


class Packing(StrEnum):
    """
    The terms of sums that an element of i32 holds, the lowest bits first: two of 16 bits with
    signs, or four bytes, which have signs in the right factor only or in the left one only; or two
    of bf16, which are added up in f32. Of four bytes in a left factor that is split, neighbors are
    small, and what they lack stands behind the rows.
    """

    PAIRS = "pairs"
    UNSIGNED_LEFT = "unsigned_left"
    UNSIGNED_RIGHT = "unsigned_right"
    SPLIT_LEFT = "split_left"
    HALVES = "halves"

    @property
    def terms(self) -> int:
        """How many an element holds."""
        return 2 if self in (Packing.PAIRS, Packing.HALVES) else 4


@irdl_attr_definition
class PackingAttr(EnumAttribute[Packing], SpacedOpaqueSyntaxAttribute):
    """`#core<packing pairs>`."""

    name = "core.packing"


class ScatterReduction(StrEnum):
    """How a scattered element meets what is there; with NONE it takes its place."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


@irdl_attr_definition
class ScatterReductionAttr(EnumAttribute[ScatterReduction], SpacedOpaqueSyntaxAttribute):
    """`#core<scatter_reduction add>`."""

    name = "core.scatter_reduction"


class Rounding(StrEnum):
    """How an integer in another scale is rounded: `core.requantize` says what each one is."""

    DOUBLE = "double"
    SINGLE = "single"
    REAL = "real"
    EVEN = "even"


@irdl_attr_definition
class RoundingAttr(EnumAttribute[Rounding], SpacedOpaqueSyntaxAttribute):
    """`#core<rounding double>`."""

    name = "core.rounding"


ENUMERATIONS = [
    PredicateAttr,
    ReduceKindAttr,
    ExtremumKindAttr,
    CumulativeKindAttr,
    PoolKindAttr,
    PadModeAttr,
    PackingAttr,
    ScatterReductionAttr,
    RoundingAttr,
]
