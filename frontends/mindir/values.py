"""
What names of a MindIR graph stand for while it is imported.

Beside tensors these are plain numbers and texts, tuples, closures, parameters, and the state of
memory that orders effects. `leaves` takes a value apart into tensors for the border of a region,
`rebuilt` puts it together on the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.records import record
from lowerdeck.frontends.mindir.model import MindirError, Node

Plain: TypeAlias = "int | float | str | None"
"""Numbers, truth values among them, and texts."""

Value: TypeAlias = (
    "SSAValue | Plain | tuple[Value, ...] | Closure | Choice | Parameter | Memory | Pending"
)


@record
class Closure:
    """A graph, and what its first parameters are."""

    graph: str
    bound: tuple[Value, ...] = ()


@record
class Choice:
    """One of several values: the first where the number is 0, the second where it is 1, ..."""

    number: SSAValue
    """An i1 for two values, where 1 is the second one; else an index."""
    values: tuple[Value, ...]


@record
class Parameter:
    """A parameter of the model itself, not what it holds."""

    name: str


@record
class Memory:
    """What the parameters hold that the model changes, at one place of the chain of effects."""

    held: Mapping[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def after(self, name: str, value: SSAValue) -> Memory:
        """The memory in which a parameter holds another value."""
        return Memory({**self.held, name: value})


@dataclass(eq=False)
class Pending:
    """
    A node that reads a parameter by itself, and not by a `Load`: it means the value at the place of
    the chain of effects where it is used. `inputs` are those of the node, in the block of its
    graph.
    """

    node: Node
    inputs: tuple[Value, ...]
    block: Block
    known: list[tuple[Memory, Value]] = field(default_factory=list["tuple[Memory, Value]"])


def leaves(value: Value, number: Callable[[float | bool], SSAValue]) -> list[SSAValue]:
    """The tensors of a value, in order; `number` makes one of a plain number."""
    match value:
        case SSAValue():
            return [value]
        case bool() | int() | float():
            return [number(value)]
        case tuple():
            return [leaf for item in value for leaf in leaves(item, number)]
        case Closure():
            return leaves(value.bound, number)
        case Memory():
            return [value.held[name] for name in sorted(value.held)]
        case None | str() | Parameter():
            return []
        case _:
            raise MindirError("a closure that is chosen outside of the region that calls it")


def rebuilt(like: Value, tensors: Iterator[SSAValue]) -> Value:
    """A value as `like` with other tensors."""
    match like:
        case SSAValue() | bool() | int() | float():
            return next(tensors)
        case tuple():
            return tuple(rebuilt(item, tensors) for item in like)
        case Closure():
            return Closure(like.graph, tuple(rebuilt(item, tensors) for item in like.bound))
        case Memory():
            return Memory({name: next(tensors) for name in sorted(like.held)})
        case _:
            return like


def is_alike(one: Value, other: Value) -> bool:
    """True if two values can come out of two regions at the same place."""
    plain = SSAValue | int | float
    if isinstance(one, plain) and isinstance(other, plain):
        return True
    match one, other:
        case tuple(), tuple():
            return _all_alike(one, other)
        case Closure(), Closure():
            return one.graph == other.graph and _all_alike(one.bound, other.bound)
        case Memory(), Memory():
            return one.held.keys() == other.held.keys()
        case _:
            return one == other


def _all_alike(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return len(one) == len(other) and all(map(is_alike, one, other))
