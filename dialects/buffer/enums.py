"""The enumerations of `buffer`."""

from __future__ import annotations

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class LoopMode(StrEnum):
    """What a loop is to become: lanes of vectors, or copies of its body side by side."""

    LANES = "lanes"
    UNROLL = "unroll"


@irdl_attr_definition
class LoopModeAttr(EnumAttribute[LoopMode], SpacedOpaqueSyntaxAttribute):
    """`#buffer<loop_mode lanes>`."""

    name = "buffer.loop_mode"


class LaneReduction(StrEnum):
    """
    How the lanes of a vector are combined: max and min of floats as maxf and minf do, of integers
    as signed ones; umax and umin are those of unsigned ones.
    """

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"


@irdl_attr_definition
class LaneReductionAttr(EnumAttribute[LaneReduction], SpacedOpaqueSyntaxAttribute):
    """`#buffer<lane_reduction add>`."""

    name = "buffer.lane_reduction"


class Requirement(StrEnum):
    """
    How two numbers have to meet in a run: equal; at most the other; equal to it or 1; or at most
    the other, for elements that are taken by index.
    """

    EQ = "eq"
    LE = "le"
    BROADCAST = "broadcast"
    INDEX = "index"


@irdl_attr_definition
class RequirementAttr(EnumAttribute[Requirement], SpacedOpaqueSyntaxAttribute):
    """`#buffer<requirement broadcast>`."""

    name = "buffer.requirement"


ENUMERATIONS = [LoopModeAttr, LaneReductionAttr, RequirementAttr]
