"""What the nodes of a graph mean to control flow: a class for each kind, with its own fields."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What a node means to control flow."""


# As they are in a graph


@dataclass(frozen=True)
class Operator(Kind):
    """An ordinary node."""


@dataclass(frozen=True)
class Argument(Kind):
    """A Placeholder."""


@dataclass(frozen=True)
class Switch(Kind):
    """Gives its first input to output 1 where the second is true, else to output 0."""


@dataclass(frozen=True)
class SwitchN(Kind):
    """Gives its first input to the output that the second numbers, or else to the last."""

    outputs: int


@dataclass(frozen=True)
class Merge(Kind):
    """The input that is alive, and its number."""

    joined: int = 0
    """How many inputs a loop variable had before they became two, if they did."""


@dataclass(frozen=True)
class Enter(Kind):
    """Brings a value into a frame."""

    key: Hashable
    """Frames with equal keys in one frame are the same."""
    name: str


@dataclass(frozen=True)
class Exit(Kind):
    """Takes a value out of a frame."""


@dataclass(frozen=True)
class NextIteration(Kind):
    """Hands a value on to the next iteration."""


@dataclass(frozen=True)
class LoopCond(Kind):
    """Tells whether another iteration follows."""


# As functions and raising make them


@dataclass(frozen=True)
class Forward(Kind):
    """Gives its input: a PlaceholderWithDefault, and Exits of raised loops."""


@dataclass(frozen=True)
class RaisedLoop(Kind):
    """A frame as one node: initial values and captured ones in, what its Exits give out."""


@dataclass(frozen=True)
class Phi(Kind):
    """One of two values: inputs are the condition, the value if true, and the one if false."""

    output: int
    """Which output of the Merge it stands for."""


@dataclass(frozen=True)
class Number(Kind):
    """An i32 constant, for the index of a Merge."""

    value: int


@dataclass(frozen=True)
class Truth(Kind):
    """A Boolean constant, for the condition of a loop that has no LoopCond."""

    holds: bool


@dataclass(frozen=True)
class Anything(Kind):
    """A value that is never used, where there has to be one."""

    output: int
    """The output of the op whose type it has."""


@dataclass(frozen=True)
class Test(Kind):
    """Whether an integer is a number, for _SwitchN."""

    number: int


@dataclass(frozen=True)
class Bool(Kind):
    """Whether a value counts as true, for operators that run functions."""


@dataclass(frozen=True)
class Gate(Kind):
    """Alive where a function runs; it gives nothing."""


FORWARDING = (Switch, SwitchN, NextIteration, LoopCond, Forward)
"""The kinds of nodes all outputs of which are their first input."""
