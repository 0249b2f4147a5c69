"""What the nodes of a graph mean to control flow: a class for each kind, with its own fields."""

from __future__ import annotations

from collections.abc import Hashable

from lowerdeck.dialects.records import record


@record
class Kind:
    """What a node means to control flow."""


# As they are in a graph


@record
class Operator(Kind):
    """An ordinary node."""


@record
class Argument(Kind):
    """A Placeholder."""


@record
class Switch(Kind):
    """Gives its first input to output 1 where the second is true, else to output 0."""


@record
class SwitchN(Kind):
    """Gives its first input to the output that the second numbers, or else to the last."""

    outputs: int


@record
class Merge(Kind):
    """The input that is alive, and its number."""

    joined: int = 0
    """How many inputs a loop variable had before they became two, if they did."""


@record
class Enter(Kind):
    """Brings a value into a frame."""

    key: Hashable
    """Frames with equal keys in one frame are the same."""
    name: str


@record
class Exit(Kind):
    """Takes a value out of a frame."""


@record
class NextIteration(Kind):
    """Hands a value on to the next iteration."""


@record
class LoopCond(Kind):
    """Tells whether another iteration follows."""


# As functions and raising make them


@record
class Forward(Kind):
    """Gives its input: a PlaceholderWithDefault, and Exits of raised loops."""


@record
class RaisedLoop(Kind):
    """A frame as one node: initial values and captured ones in, what its Exits give out."""


@record
class Phi(Kind):
    """One of two values: inputs are the condition, the value if true, and the one if false."""

    output: int
    """Which output of the Merge it stands for."""


@record
class Number(Kind):
    """An i32 constant, for the index of a Merge."""

    value: int


@record
class Truth(Kind):
    """A Boolean constant, for the condition of a loop that has no LoopCond."""

    holds: bool


@record
class Anything(Kind):
    """A value that is never used, where there has to be one."""

    output: int
    """The output of the op whose type it has."""


@record
class Test(Kind):
    """Whether an integer is a number, for _SwitchN."""

    number: int


@record
class Bool(Kind):
    """Whether a value counts as true, for operators that run functions."""


@record
class Gate(Kind):
    """Alive where a function runs; it gives nothing."""


FORWARDING = (Switch, SwitchN, NextIteration, LoopCond, Forward)
"""The kinds of nodes all outputs of which are their first input."""
