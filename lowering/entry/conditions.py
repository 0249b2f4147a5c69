"""What every run requires of the dimensions of inputs: it is checked before anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from xdsl.ir import Block

from lowerdeck.dialects.buffer.entry import EntryOp
from lowerdeck.dialects.buffer.entry_ops import RequireOp, SectionOp
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.dialects.sizes import is_never_negative

_MOST = 1 << 10
"""The largest number that is looked for as the least size."""

_LONG = 120
"""Characters of a text about a condition."""


@record
class Ask:
    """What a dimension must be."""

    kind: str
    """One of is, not, multiple, least and most."""
    symbol: str
    numbers: tuple[int, ...] = ()
    other: str = ""
    """The dimension that it must be equal to."""

    def text(self, places: Mapping[str, str]) -> str:
        """For people."""
        numbers = " or ".join(map(str, self.numbers)) or places[self.other]
        if self.kind == "not":
            return f"{places[self.symbol]} must not be {numbers}"
        before = {"is": "", "multiple": "a multiple of ", "least": "at least ", "most": "at most "}
        return f"{places[self.symbol]} must be {before[self.kind]}{numbers}"

    def c_failure(self, sizes: Mapping[str, str]) -> str:
        """The C condition under which it is not."""
        size = sizes[self.symbol]
        if self.other:
            return f"{size} != {sizes[self.other]}"
        if self.kind == "multiple":
            return f"{size} % {self.numbers[0]} != 0"
        sign = {"is": "!=", "not": "==", "least": "<", "most": ">"}[self.kind]
        return " && ".join(f"{size} {sign} {number}" for number in self.numbers)


@record
class Condition:
    """`left predicate right`, of dimensions of inputs only."""

    left: Expr
    predicate: Requirement
    right: Expr

    @property
    def is_certain(self) -> bool:
        """True if no sizes at all fail it."""
        is_order = self.predicate is Requirement.LE
        return is_order and is_never_negative(self.right - self.left)

    def holds(self, sizes: dict[str, int]) -> bool:
        """True if these sizes meet it."""
        left, right = self.left.evaluate(sizes), self.right.evaluate(sizes)
        if self.predicate is Requirement.LE:
            return left <= right
        return left == right or (self.predicate is Requirement.BROADCAST and left == 1)

    @cached_property
    def ask(self) -> Ask | None:
        """What it says of one dimension, in a form that people know; None if there is no such."""
        names = sorted(self.left.symbols | self.right.symbols)
        if len(names) == 2 and self.predicate is Requirement.EQ:
            sides = str(self.left), str(self.right)
            return Ask("is", sides[0], other=sides[1]) if set(sides) == set(names) else None
        if len(names) != 1:
            return None
        symbol = Expr.symbol(names[0])
        for number in _divisors(self.left, self.right):
            if {self.left, self.right} == {symbol, symbol // number * number}:
                return Ask("multiple", names[0], (number,))
        fitting = [size for size in range(_MOST) if self.holds({names[0]: size})]
        if 0 < len(fitting) <= 2:
            return Ask("is", names[0], tuple(fitting))
        if fitting and fitting == list(range(fitting[0], _MOST)):
            return Ask("least", names[0], (fitting[0],))
        if fitting and fitting == list(range(fitting[-1] + 1)):
            return Ask("most", names[0], (fitting[-1],))
        unfit = set(range(_MOST)) - set(fitting)
        return Ask("not", names[0], tuple(unfit)) if len(unfit) == 1 else None

    @property
    def _other_side(self) -> str:
        """What the left side must be equal to."""
        for number in _divisors(self.right):
            if self.right == self.left // number * number:
                return f"a multiple of {number}"
        return str(self.right)

    def text(self, places: Mapping[str, str]) -> str:
        """What is asked of which dimension; `places` says what people call each symbol."""
        if self.ask is not None:
            return self.ask.text(places)
        names = sorted(self.left.symbols | self.right.symbols)
        asked = {
            Requirement.LE: f"{self.left} must be at most {self.right}",
            Requirement.BROADCAST: f"{self.left} must be 1 or {self.right}",
        }.get(self.predicate, f"{self.left} must be {self._other_side}")
        text = f"{asked}, where {', '.join(f'{name} is {places[name]}' for name in names)}"
        return text if len(text) <= _LONG else f"sizes do not fit together: {', '.join(names)}"


def _divisors(*exprs: Expr) -> Iterator[int]:
    for expr in exprs:
        for monomial, _ in expr.terms:
            for atom in monomial:
                if atom.kind == "floordiv" and (number := atom.args[1].value) is not None:
                    yield number


def conditions_of(entry: EntryOp) -> dict[RequireOp, Condition]:
    """
    The requirements that each run meets and that only depend on dimensions of inputs. Those of
    branches and loops are no part of it, nor are indices, which may not be used.
    """
    known = places_of(entry).keys()
    found: dict[RequireOp, Condition] = {}
    for op in requirements(entry.body.block):
        left, right = op.left.data[0], op.right.data[0]
        if op.predicate.data is not Requirement.INDEX and left.symbols | right.symbols <= known:
            found[op] = Condition(left, op.predicate.data, right)
    return found


def requirements(block: Block) -> Iterator[RequireOp]:
    """Those that every run meets: not in branches and loops."""
    for op in block.ops:
        if isinstance(op, RequireOp):
            yield op
        elif isinstance(op, SectionOp):
            yield from requirements(op.body.block)


def distinct(conditions: Iterable[Condition]) -> list[Condition]:
    """Each once, without those that are certain; first what people understand best."""
    found = [each for each in dict.fromkeys(conditions) if not each.is_certain]
    return sorted(found, key=lambda each: each.ask is None)


def places_of(entry: EntryOp) -> dict[str, tuple[str, int]]:
    """The first dimension of an input that a symbol is: the name of the input, and the axis."""
    found: dict[str, tuple[str, int]] = {}
    for name, argument in zip(names_in(entry.inputs), entry.input_args, strict=True):
        for axis, dim in enumerate(ref_type(argument).dims.data):
            if dim.symbols == frozenset((str(dim),)):
                found.setdefault(str(dim), (name, axis))
    return found
