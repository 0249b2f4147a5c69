"""
Random programs of the `core` dialect, with inputs on which they run.

A program grows step by step, in blocks within blocks; `core_recipes`, `core_layers` and
`core_regions` say what a step can add. What an op refuses is dropped. Everything comes from one
`Random`; that of hypothesis is one whose draws it shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
    static_shape,
    tensor,
    ui8,
)
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.interpret import find_function

Array = NDArray[Any]
Op = TypeVar("Op", bound=Operation)

ELEMENTS: Mapping[Attribute, int] = {
    f32: 16, f64: 2, f16: 1, bf16: 1, i64: 4, i32: 2, i8: 1, ui8: 1, i1: 2
}  # fmt: skip
"""Element types, and how often each is drawn."""

_MOST_ELEMENTS = 2000
"""Of a value whose size is known; an op that makes more is not kept."""

_MOST_RANK = 5
_PLAIN = (0.0, 1.0, 2.0, -1.0, 0.5)
_SPECIAL = (-0.0, float("inf"), float("-inf"), float("nan"))


class Unfit(Exception):
    """An op cannot be made here."""


@dataclass(frozen=True)
class Program:
    """A module with the function `main`, and inputs of one or more sizes."""

    module: ModuleOp
    feeds: Sequence[dict[str, Array]]


Recipe = Callable[["Builder"], object]
Key = type[Operation] | str
"""An op, or what several ops are together."""


@dataclass(frozen=True)
class Making:
    """How something is made."""

    make: Recipe
    weight: int
    """How often, beside others."""
    nests: bool
    """True if it has regions."""


RECIPES: dict[Key, Making] = {}


def recipe(key: Key, *, weight: int = 4, nests: bool = False) -> Callable[[Recipe], Recipe]:
    """Register what makes an op, or several that belong together."""

    def register(function: Recipe) -> Recipe:
        RECIPES[key] = Making(function, weight, nests)
        return function

    return register


def random_program(random: Random, steps: int = 24, first: int = 0) -> Program:
    """
    A program of up to about so many ops, constants apart.

    `first` is above 0 if symbols are not to have the names of those in programs before.
    """
    builder = Builder(random)
    builder.shared.names = first
    return builder.program(random.randint(1, steps))


def sizes_of(value: SSAValue) -> list[int]:
    """The shape of a value; Unfit if it is not known."""
    if (shape := static_shape(value)) is None:
        raise Unfit
    return list(shape)


@dataclass
class Style:
    """What the values of a program are like."""

    open: int
    """Of ten dimensions of inputs, those that are symbols."""
    empty: int
    """Of ten dimensions, those that are 0."""
    special: int
    """Of ten arrays, those with infinities, NaN or negative zeros."""
    elements: Sequence[Attribute]
    """Element types of inputs and constants."""
    sizes: Sequence[int]
    """The sizes of dimensions, few of them, so that shapes fit together."""


@dataclass
class _Shared:
    """What the blocks of a program have in common."""

    style: Style
    names: int = 0
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The sizes that the symbols of inputs have in two runs."""


class Builder:
    """A block while it is built; operands are visible values."""

    def __init__(self, random: Random, outer: Builder | None = None, args: Any = ()) -> None:
        self.random = random
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.block = Block(arg_types=list(args))
        if outer is None:
            self.shared = _Shared(self._style())
            for _ in range(random.randint(1, 3)):
                self.block.insert_arg(self._input_type(), len(self.block.args))
        else:
            self.shared = outer.shared
        self.values: list[SSAValue] = [*([] if outer is None else outer.values), *self.block.args]

    @property
    def style(self) -> Style:
        """What the values of this program are like."""
        return self.shared.style

    def _style(self) -> Style:
        random = self.random
        weighted = [element for element, weight in ELEMENTS.items() for _ in range(weight)]
        return Style(
            open=random.choice((0, 0, 3)),
            empty=random.choice((0, 0, 0, 1)),
            special=random.choice((0, 0, 1)),
            elements=[f32, *(random.choice(weighted) for _ in range(random.randint(0, 2)))],
            sizes=[random.randint(1, 4) for _ in range(random.randint(1, 3))],
        )

    # Draws

    def chance(self, tenths: int) -> bool:
        """True so many times of ten; it shrinks to False."""
        return self.random.randint(0, 9) >= 10 - tenths

    def fresh(self, prefix: str = "s") -> str:
        """A new name of a symbol."""
        self.shared.names += 1
        return f"{prefix}{self.shared.names}"

    def dim(self) -> int:
        """A size."""
        return 0 if self.chance(self.style.empty) else self.random.choice((*self.style.sizes, 1))

    def shape(self) -> list[int]:
        """The shape of a small tensor."""
        return [self.dim() for _ in range(self.random.choice((0, 1, 2, 2, 3, 3, 4)))]

    def _input_type(self) -> Attribute:
        dims: list[ExprLike] = []
        for size in self.shape():
            if self.chance(self.style.open):
                name = self.random.choice(("n", "m"))
                self.shared.symbols[name] = self.random.randint(1, 3), self.random.randint(0, 5)
                dims.append(Expr.symbol(name))
            else:
                dims.append(size)
        return tensor(self.random.choice(self.style.elements), dims)

    def numbers(self, element: Attribute, shape: Sequence[int]) -> Array:
        """Mild numbers of a type, sometimes all equal, rarely with special ones."""
        count, dtype = int(np.prod(shape)), numpy_dtype(element)
        if self.chance(4):
            return np.full(
                shape, self.random.choice(_PLAIN if is_float(element) else (0, 1, 2, 3))
            ).astype(dtype)
        rng = np.random.default_rng(self.random.getrandbits(16))
        if is_float(element):
            array = rng.standard_normal(count) * 2
            if self.chance(self.style.special):
                at = rng.random(count) < 0.3
                array = np.where(at, rng.choice(_SPECIAL, count), array)
        elif element == i1:
            array = rng.integers(0, 2, count)
        else:
            array = rng.integers(0 if dtype.kind == "u" else -4, 6, count)
        return array.astype(dtype).reshape(shape)

    def constant(self, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """A new constant."""
        return self.add(ConstantOp.of(self.numbers(element, shape))).results[0]

    def of(self, array: Any, element: Attribute = i64) -> SSAValue:
        """A new constant of known numbers."""
        return self.add(ConstantOp.of(np.array(array, numpy_dtype(element)))).results[0]

    def pick(self, *elements: Attribute, rank: Sequence[int] = ()) -> SSAValue:
        """A visible value of one of the types and ranks, recent ones more often; or a constant."""
        is_constant = self.chance(1)
        fits = [
            value
            for value in self.values
            if isinstance(value.owner, ConstantOp) == is_constant
            and (not elements or element_type(value) in elements)
            and (not rank or rank_of(value) in rank)
        ]
        if fits:
            return fits[-1 - min(self.random.choice((0, 0, 0, 1, 2, 5, 9)), len(fits) - 1)]
        shape = [self.dim() for _ in range(self.random.choice(rank))] if rank else self.shape()
        return self.constant(self.random.choice(elements or self.style.elements), shape)

    def floats(self, rank: Sequence[int] = (), least: int = 0) -> SSAValue:
        """A visible value of floats."""
        wide = range(least, _MOST_RANK + 1) if least else rank
        return self.pick(f32, f64, f16, bf16, rank=wide)

    def partner(self, value: SSAValue, element: Attribute | None = None) -> SSAValue:
        """A value that may be an operand beside another one: of its type, and often its shape."""
        element = element or element_type(value)
        if self.chance(4):
            return self.pick(element)
        dims = dims_of(value)
        fits = [v for v in self.values if element_type(v) == element and dims_of(v) == dims]
        if fits and self.chance(4):
            return self.random.choice(fits)
        sizes = [1 if d.value is None or self.chance(4) else d.value for d in dims]
        return self.constant(element, sizes[self.random.randint(0, len(sizes)) :])

    def like(self, value: SSAValue, is_open: bool = False) -> SSAValue:
        """One of the last values of a type, `is_open` of its element type and rank; or itself."""
        fits = [
            other
            for other in self.values[-6:]
            if other.type == value.type
            or (
                is_open
                and element_type(other) == element_type(value)
                and rank_of(other) == rank_of(value)
            )
        ]
        return self.random.choice(fits) if fits else value

    def axis(self, value: SSAValue) -> int:
        """A dimension of a value; Unfit if it has none."""
        return self.below(rank_of(value))

    def below(self, count: int) -> int:
        """A number below another one; Unfit if there is none."""
        if count < 1:
            raise Unfit
        return self.random.randint(0, count - 1)

    def divisor(self, number: int | None) -> int:
        """A number that divides another one; Unfit if that is not known, or 0."""
        if not number:
            raise Unfit
        return self.random.choice([k for k in range(1, number + 1) if number % k == 0])

    # Ops

    def add(self, op: Op) -> Op:
        """Append an op; Unfit if a result is too large."""
        for result in op.results:
            shape = static_shape(result)
            too_long = shape is not None and int(np.prod(shape)) > _MOST_ELEMENTS
            if too_long or rank_of(result) > _MOST_RANK:
                raise Unfit
        self.block.add_op(op)
        self.values.extend(op.results)
        return op

    def step(self) -> bool:
        """One more op, or several that belong together."""
        fits = {
            key: making for key, making in RECIPES.items() if self.depth < 2 or not making.nests
        }
        weights = [making.weight for making in fits.values()]
        return self.attempt(self.random.choices(list(fits), weights)[0])

    def attempt(self, key: Key) -> bool:
        """Add what a recipe makes; False, and nothing, if it does not fit here."""
        count, values = len(self.block.ops), len(self.values)
        try:
            RECIPES[key].make(self)
        except (VerifyException, Unfit):
            for op in list(self.block.ops)[count:]:
                op.detach()
            del self.values[values:]
            return False
        return True

    def grow(self, count: int) -> None:
        """About so many ops, constants apart."""
        for _ in range(4 * count):
            if sum(not isinstance(op, ConstantOp) for op in self.block.ops) >= count:
                return
            self.step()

    def inner(self, args: Sequence[Attribute] = ()) -> Builder:
        """A block of a region, with a few ops."""
        inner = Builder(self.random, self, args)
        inner.grow(self.random.randint(0, 5))
        return inner

    def program(self, count: int) -> Program:
        """A function that returns what nobody uses, and some of what is used."""
        self.grow(count)
        kind = FunctionType.from_lists(list(self.block.arg_types), [])
        self.block.add_op(ReturnOp())
        # The copy has no uses by what was dropped.
        module = ModuleOp([FuncOp("main", kind, Region(self.block))]).clone()
        function = find_function(module, "main")
        block = function.body.block
        made = [result for op in block.ops for result in op.results]
        results = [value for value in made if value.first_use is None]
        results += [value for value in made if value.first_use is not None and self.chance(1)]
        results = results[-10:] or list(block.args)
        last = block.last_op
        assert last is not None
        last.operands = results
        function.update_function_type()
        # Names stay where others leave inputs out.
        function.arg_attrs = named(f"in{k}" for k in range(len(block.args)))
        runs = range(2 if self.shared.symbols else 1)
        return Program(module, [self._feed(run) for run in runs])

    def _feed(self, run: int) -> dict[str, Array]:
        sizes = {name: pair[run] for name, pair in self.shared.symbols.items()}
        return {
            f"in{k}": self.numbers(element_type(arg), [d.evaluate(sizes) for d in dims_of(arg)])
            for k, arg in enumerate(self.block.args)
        }


for _name in ("core_recipes", "core_layers", "core_regions"):
    import_module(f"fuzz.{_name}")  # they register their recipes
