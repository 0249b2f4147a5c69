"""
Random programs of PyTorch, with the answers that it gave, as a corpus.

    python -m fuzz.torch_programs FOLDER [--count N] [--join N] [--seed S] [--form FORM]
    python -m models.corpus pt2 --corpus FOLDER --interpret

The first runs in a Python that has PyTorch and needs nothing of this project. A program has inputs
and buffers of several types, some empty, with NaN, infinities and zeros of either sign; it takes
views of views, writes into them in place, and computes by what its types are promoted to. Several
programs are joined to one case, which is called twice. `--form` is `training` for what export
gives, `core` for `run_decompositions()`, and `trace` for TorchScript.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import copy
import logging
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models.torch_exports import Case, tensors_of

Step = Callable[..., Any]
REAL = torch.float32, torch.float64
WHOLE = torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8
CALLS = 2
TYPES = (*REAL, *WHOLE, torch.bool)


class NothingFitsError(Exception):
    """No value of the program can be what a recipe asks for."""


@dataclass(frozen=True)
class Ref:
    """A value of the program, by its number."""

    number: int


@dataclass(frozen=True)
class Statement:
    """A function of values and plain arguments; what it gives is a value more."""

    run: Step
    arguments: tuple[Any, ...]

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.run(*(values[a.number] if isinstance(a, Ref) else a for a in self.arguments))


class Program(nn.Module):
    """Statements over inputs and buffers."""

    def __init__(
        self, statements: Sequence[Statement], buffers: Sequence[Any], shown: Sequence[int]
    ) -> None:
        super().__init__()
        self.statements, self.shown = statements, shown
        for number, buffer in enumerate(buffers):
            self.register_buffer(f"b{number}", buffer)

    def forward(self, *inputs: Any) -> Any:
        values = [*inputs, *self.buffers()]
        for statement in self.statements:
            values.append(statement(values))
        return [values[number] for number in self.shown]


class Programs(nn.Module):
    """Several programs, each with inputs of its own."""

    def __init__(self, programs: Sequence[Program], counts: Sequence[int]) -> None:
        super().__init__()
        self.programs, self.counts = nn.ModuleList(programs), counts

    def forward(self, *inputs: Any) -> Any:
        results: list[Any] = []
        for program, count in zip(self.programs, self.counts, strict=True):
            results += program(*inputs[:count])
            inputs = inputs[count:]
        return results


class Draw:
    """The program that grows, and what recipes draw from it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: list[Any] = []
        self.statements: list[Statement] = []
        self.given = 0
        """How many of the values are inputs and buffers, which keep their shapes."""
        self.written: int | None = None
        """The storage that is written, of which no operand may show other elements."""
        self.rounded: set[int] = set()
        """Storages whose elements another order of sums may round otherwise."""

    # Tensors

    def fresh(self, shape: Sequence[int], dtype: torch.dtype) -> Any:
        """A tensor of few digits, so that sums and products are exact, and of special numbers."""
        count = int(torch.tensor(shape).prod()) if shape else 1
        if dtype == torch.bool:
            numbers: list[Any] = [self.flag() for _ in range(count)]
        elif dtype in REAL:
            special = [float("nan"), float("inf"), -float("inf"), -0.0, 0.0]
            numbers = [
                self.rng.choice(special) if self.rng.random() < 0.12 else self.whole(-12, 12) / 4
                for _ in range(count)
            ]
        else:
            low = 0 if dtype == torch.uint8 else -9
            edge = [torch.iinfo(dtype).max, torch.iinfo(dtype).min]
            numbers = [
                self.rng.choice(edge) if self.rng.random() < 0.04 else self.whole(low, 9)
                for _ in range(count)
            ]
        return torch.tensor(numbers, dtype=dtype).reshape(list(shape))

    def find(self, fits: Callable[[Any], bool] = lambda x: True) -> Ref:
        """A value that fits; later ones are likelier."""
        found = [
            n
            for n, v in enumerate(self.values)
            if isinstance(v, torch.Tensor) and place(v) != self.written and fits(v)
        ]
        if not found:
            raise NothingFitsError
        return Ref(
            self.rng.choice(found[-4:]) if self.rng.random() < 0.6 else self.rng.choice(found)
        )

    def exact(self, *types: torch.dtype) -> Ref:
        """A value of certain types whose elements are the same however sums are ordered."""
        return self.find(lambda x: x.dtype in (types or TYPES) and place(x) not in self.rounded)

    def of(self, ref: Ref) -> Any:
        """A value."""
        return self.values[ref.number]

    def partner(self, x: Any, types: Sequence[torch.dtype] = TYPES) -> Any:
        """What is broadcast with a value: another one, a number, or a tensor without dimensions."""
        match self.whole(0, 3):
            case 0:
                return self.number()
            case 1:
                return self.find(lambda y: not y.dim() and y.dtype in types)
            case _:
                return self.find(lambda y: are_broadcast(x.shape, y.shape) and y.dtype in types)

    # Plain values

    def flag(self) -> bool:
        """A truth value."""
        return self.rng.random() < 0.5

    def whole(self, low: int, high: int) -> int:
        """A whole number."""
        return self.rng.randint(low, high)

    def one(self, *values: Any) -> Any:
        """One of several."""
        return self.rng.choice(values)

    def number(self) -> Any:
        """A number of one of Python's types."""
        return self.one(self.whole(-5, 5), self.whole(-12, 12) / 4, 2, -1, True, 0.5, -0.0)

    def axis(self, x: Any, extra: int = 0) -> int:
        """An axis, from the front or from the back."""
        rank = x.dim() + extra
        if not rank:
            raise NothingFitsError
        return self.whole(-rank, rank - 1)

    def places(self, count: int, below: int, at_least: int = 0) -> Any:
        """Indices."""
        if not below and count:
            raise NothingFitsError
        return torch.tensor([self.whole(at_least, below - 1) for _ in range(count)]).long()

    # Statements

    def do(self, run: Step, *arguments: Any, rounds: bool = False) -> Any:
        """Run a statement and keep it; what PyTorch refuses is raised."""
        statement = Statement(run, arguments)
        value = statement(self.values)
        self.values.append(value)
        self.statements.append(statement)
        refs = [self.values[a.number] for a in arguments if isinstance(a, Ref)]
        if rounds or any(place(r) in self.rounded for r in refs if isinstance(r, torch.Tensor)):
            if isinstance(value, torch.Tensor) and value.dtype in REAL:
                self.rounded.add(place(value))
        return value


def place(x: Any) -> int:
    """Where the elements of a tensor are."""
    return x.untyped_storage()._cdata


def is_repeated(x: Any) -> bool:
    """True if a tensor shows an element several times, so that what writes give is left open."""
    end = 1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
    places = torch.arange(max(end, 0)).as_strided(x.shape, x.stride())
    return bool(x.numel()) and len(places.unique()) < x.numel()


def are_broadcast(x: Sequence[int], y: Sequence[int]) -> bool:
    """True if two shapes are broadcast to the first one."""
    return len(y) <= len(x) and all(
        b in (a, 1) for a, b in zip(reversed(x), reversed(y), strict=False)
    )


# What programs consist of

Recipe = Callable[[Draw], Any]
VIEWS: list[Recipe] = []
WRITES: list[Recipe] = []
OTHERS: list[Recipe] = []


def method(name: str) -> Step:
    """A method of tensors."""
    return lambda x, *args: getattr(x, name)(*args)


def item(x: Any, key: Any) -> Any:
    """x[key]"""
    return x[key]


def set_item(x: Any, key: Any, value: Any) -> Any:
    """x[key] = value"""
    x[key] = value
    return x


def factors(d: Draw, count: int) -> list[int]:
    """Sizes whose product is a number."""
    if not count:
        return [d.one(0, 2), 0][: d.whole(1, 2)] if d.flag() else [d.one(1, 3), 0]
    sizes: list[int] = []
    while count > 1 and len(sizes) < 3:
        size = d.one(*(k for k in range(1, count + 1) if count % k == 0))
        sizes.append(size)
        count //= size
    return [*sizes, count] if count > 1 or d.flag() or not sizes else sizes


def key_of(d: Draw, x: Any) -> Any:
    """A slice, a place, or several of both."""
    found: list[Any] = []
    for size in x.shape[: d.whole(1, max(x.dim(), 1))]:
        start, end = d.one(None, d.whole(-5, 5)), d.one(None, d.whole(-5, 5))
        part: Any = slice(start, end, d.one(None, 1, 2))
        if size and d.rng.random() < 0.3:
            part = d.whole(-size, size - 1)
        found.append(part)
    if d.rng.random() < 0.2:
        found.insert(d.whole(0, len(found)), None)
    if d.rng.random() < 0.2:
        found.insert(0, ...)
        found = found[: x.dim() + 1]
    return tuple(found)


_NAMED = (
    "mT T mH real detach view_as reshape_as expand_as ravel t positive conj resolve_conj hsplit "
    "vsplit diagonal broadcast_tensors atleast_2d atleast_1d adjoint"
).split()


def views(d: Draw) -> Any:
    """A view of a value."""
    ref = d.find()
    x = d.of(ref)
    rank = x.dim()
    match d.whole(0, 22):
        case 0 | 1 | 2 | 3:
            return d.do(item, ref, key_of(d, x))
        case 4:
            return d.do(method(d.one("view", "reshape")), ref, factors(d, x.numel()))
        case 5:
            return d.do(method(d.one("transpose", "swapaxes")), ref, d.axis(x), d.axis(x))
        case 6:
            return d.do(method("permute"), ref, d.rng.sample(range(rank), rank))
        case 7:
            return d.do(method("select"), ref, a := d.axis(x), d.whole(-x.shape[a], x.shape[a] - 1))
        case 8:
            start = d.whole(0, x.shape[a := d.axis(x)])
            return d.do(method("narrow"), ref, a, start, d.whole(0, x.shape[a] - start))
        case 9:
            return d.do(method("diagonal"), ref, d.whole(-2, 2), d.axis(x), d.axis(x))
        case 10:
            return d.do(method("unsqueeze"), ref, d.axis(x, 1))
        case 11:
            return d.do(method("squeeze"), ref, *([d.axis(x)] if d.flag() else []))
        case 12:
            sizes = [size if size != 1 else d.one(1, 3) for size in x.shape]
            return d.do(method("expand"), ref, [*d.one([], [2]), *sizes])
        case 13 | 14:
            name, axis = d.one("chunk", "split", "tensor_split"), d.axis(x)
            part, count = d.whole(1, 3), d.whole(0, 2)
            return d.do(lambda x: getattr(x, name)(part, axis)[count], ref)
        case 15:
            axis = d.axis(x)
            which = d.whole(-x.shape[axis], x.shape[axis] - 1)
            return d.do(lambda x: x.unbind(axis)[which], ref)
        case 16:
            return d.do(method(d.one("movedim", "moveaxis")), ref, d.axis(x), d.axis(x))
        case 17:
            size = x.shape[a := d.axis(x)]
            return d.do(method("unfold"), ref, a, d.whole(1, max(size, 1)), d.whole(1, 2))
        case 18:
            start, end = sorted((d.axis(x) % rank, d.axis(x) % rank))
            return d.do(method("flatten"), ref, start, end)
        case _:
            name = d.one(*_NAMED)
            if name in ("mT", "T", "mH", "real"):
                return d.do(lambda x: getattr(x, name), ref)
            if name in ("hsplit", "vsplit"):
                return d.do(lambda x: getattr(torch, name)(x, 1)[0], ref)
            if name == "broadcast_tensors":
                return d.do(lambda x, y: torch.broadcast_tensors(x, y)[0], ref, d.find())
            if name in ("view_as", "reshape_as", "expand_as"):
                like = d.find(lambda y: y.numel() == x.numel())
                return d.do(method(name), ref, like)
            function = getattr(torch.linalg if name == "diagonal" else torch, name)
            return d.do(function, ref)


_UNARY = (
    "abs neg floor ceil round trunc sign relu square isnan isinf isfinite signbit logical_not "
    "bitwise_not clone frac positive isneginf nan_to_num reciprocal sgn contiguous bool"
).split()
_ROUNDED = "exp sqrt rsqrt sigmoid tanh sin log log1p expm1 atan erf softplus".split()
_BINARY = (
    "add sub mul maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor remainder "
    "fmod floor_divide div true_divide copysign fmax fmin bitwise_and bitwise_or bitwise_xor pow "
    "atan2 heaviside xlogy hypot"
).split()
_RISKY = frozenset(
    "div true_divide pow atan2 xlogy hypot reciprocal mean maximum minimum fmax fmin relu relu_ "
    "amax amin max min clamp clip clamp_min clamp_max clamp_ clamp_min_ clamp_max_ div_".split()
)
"""Functions whose last digit is not certain, or which zero they give."""


def calls(d: Draw) -> Any:
    """A function of one or two values, of its own type."""
    match d.whole(0, 9):
        case 0 | 1 | 2:
            ref, name = d.exact(), d.one(*_UNARY)
            if name == "signbit":
                return d.do(lambda x: without_nan(x).signbit(), ref)
            return d.do(method(name), ref, rounds=name in _RISKY)
        case 3:
            ref = d.find(lambda x: x.dtype != torch.bool)
            name = d.one(*_ROUNDED)
            module = torch.nn.functional if name == "softplus" else torch
            return d.do(lambda x: getattr(module, name)(x), ref, rounds=True)
        case 4:
            ref = d.exact()
            other = d.partner(d.of(ref))
            return (
                d.do(torch.rsub, ref, other)
                if d.flag()
                else d.do(lambda x, y, a: torch.add(x, y, alpha=a), ref, other, d.one(2, -1, 0.5))
            )
        case 5:
            ref = d.exact()
            mode = d.one("floor", "trunc")
            return d.do(lambda x, y: torch.div(x, y, rounding_mode=mode), ref, divisor(d, ref))
        case _:
            name, ref = d.one(*_BINARY), d.exact()
            other = divisor(d, ref) if name in ("remainder", "fmod") else d.partner(d.of(ref))
            if isinstance(other, Ref) and place(d.of(other)) in d.rounded:
                raise NothingFitsError
            if name == "copysign" and isinstance(other, Ref):
                return d.do(lambda x, y: torch.copysign(x, without_nan(y)), ref, other)
            return d.do(lambda x, y: getattr(torch, name)(x, y), ref, other, rounds=name in _RISKY)


def without_nan(x: Any) -> Any:
    """The value with 1 for NaN, of which functions leave the sign open."""
    return torch.nan_to_num(x, 1, torch.inf, -torch.inf) if x.dtype in REAL else x


def divisor(d: Draw, ref: Ref) -> Any:
    """Whole numbers are not divided by zero."""
    if d.flag():
        return d.one(-3, 2, 5, -1, -0.5, 1.25)
    other = d.partner(d.of(ref))
    if isinstance(other, Ref):
        y = d.of(other)
        if place(y) in d.rounded or (y.dtype not in REAL and bool((y == 0).any())):
            raise NothingFitsError
    return other if isinstance(other, Ref) else -3


def others(d: Draw) -> Any:
    """Other functions."""
    ref = d.exact()
    x = d.of(ref)
    match d.whole(0, 21):
        case 0:
            name = d.one("sum", "amax", "amin", "any", "all", "count_nonzero", "prod", "mean")
            axis, rounds = d.axis(x), name in _RISKY
            return d.do(method(name), ref, *([axis] if d.flag() else []), rounds=rounds)
        case 1:
            name, keep = d.one("argmax", "argmin", "max", "min"), d.flag()
            axis = d.axis(x)
            if name.startswith("arg"):
                return d.do(method(name), ref, axis, keep)
            which = d.whole(0, 1)
            return d.do(lambda x: getattr(x, name)(axis, keep)[which], ref, rounds=True)
        case 2:
            return d.do(method(d.one("cumsum", "cumprod")), ref, d.axis(x))
        case 3:
            axis, down, which = d.axis(x), d.flag(), d.whole(0, 1)
            return d.do(lambda x: x.sort(stable=True, dim=axis, descending=down)[which], ref)
        case 4 | 5:
            condition = d.find(lambda y: y.dtype == torch.bool)
            return d.do(torch.where, condition, ref, d.partner(x))
        case 6:
            axis = d.axis(x)
            like = d.find(lambda y: y.dim() == x.dim() and same_but(x.shape, y.shape, axis))
            return d.do(lambda x, y: torch.cat([x, y, x], axis), ref, like)
        case 7:
            like = d.find(lambda y: y.shape == x.shape)
            axis = d.axis(x, 1)
            return d.do(lambda x, y: torch.stack([x, y], axis), ref, like)
        case 8 | 9:
            dtype = d.one(*TYPES)
            if x.dtype in REAL and dtype in WHOLE:  # whatever infinities would be
                return d.do(lambda x: x.nan_to_num(1, 2, -3).to(dtype), ref)
            return d.do(method("to"), ref, dtype)
        case 10:
            return d.do(method("flip"), ref, d.rng.sample(range(x.dim()), d.whole(0, x.dim())))
        case 11:
            return d.do(method("roll"), ref, d.whole(-3, 3), d.axis(x))
        case 12:
            return d.do(method(d.one("repeat", "tile")), ref, [d.one(1, 2) for _ in x.shape])
        case 13:
            index = d.places(d.whole(0, 3), x.shape[a := d.axis(x)])
            return d.do(method("index_select"), ref, a, index)
        case 14:
            index = d.places(d.whole(0, 4), x.numel(), -x.numel())
            return d.do(torch.take, ref, index)
        case 15:
            size = x.shape[a := d.axis(x)]
            return d.do(item, ref, (*[slice(None)] * (a % x.dim()), d.places(3, size, -size)))
        case 16:
            return d.do(method(d.one("tril", "triu")), ref, d.whole(-2, 2))
        case 17:
            low, high = d.number(), d.number()
            name = d.one("clamp", "clamp_min", "clamp_max", "clip")
            given = [low, high] if name in ("clamp", "clip") else [low]
            return d.do(method(name), ref, *given, rounds=True)
        case 18:
            name, number = d.one("full_like", "new_full"), d.number()
            if name == "full_like":
                return d.do(lambda x: torch.full_like(x, number), ref)
            return d.do(lambda x: x.new_full([2, x.dim()], number), ref)
        case 19:
            pads = [d.whole(-1, 2) for _ in range(2 * min(x.dim(), 2))]
            number = d.number()
            return d.do(lambda x: torch.nn.functional.pad(x, pads, value=float(number)), ref)
        case 20:
            other = d.partner(x)
            return d.do(lambda x, y: torch.addcmul(x, x, y, value=2), ref, other)
        case _:
            kind = d.one("gather", "take_along_dim")
            axis = d.axis(x)
            sizes = list(x.shape)
            sizes[axis] = d.whole(0, 3)
            count = int(torch.tensor(sizes).prod())
            index = d.places(count, x.shape[axis]).reshape(sizes)
            if kind == "gather":
                return d.do(method(kind), ref, axis, index)
            return d.do(method(kind), ref, index, axis)


def same_but(x: Sequence[int], y: Sequence[int], axis: int) -> bool:
    """True if two shapes differ in one dimension at most."""
    return all(a == b or k == axis % len(x) for k, (a, b) in enumerate(zip(x, y, strict=True)))


_INTO = "add_ sub_ mul_ copy_ div_ floor_divide_ remainder_ fmod_ bitwise_xor_ logical_and_".split()
_ALONE = (
    "zero_ neg_ abs_ relu_ floor_ ceil_ round_ sign_ logical_not_ square_ trunc_ bitwise_not_ "
    "nan_to_num_"
).split()


def storable(x: Any) -> Sequence[torch.dtype]:
    """Types that are converted to that of a tensor: whole numbers would be anything for NaN."""
    return (*WHOLE, torch.bool) if x.dtype in WHOLE else TYPES


def writes(d: Draw) -> Any:
    """A write into a value."""
    ref = d.exact()
    if is_repeated(d.of(ref)):
        raise NothingFitsError
    d.written = place(d.of(ref))
    try:
        return write_into(d, ref)
    finally:
        d.written = None


def write_into(d: Draw, ref: Ref) -> Any:
    """A write of what other storages hold."""
    x = d.of(ref)
    match d.whole(0, 19):
        case 0 | 1 | 2 | 3:
            name = d.one(*_INTO)
            other = d.partner(x, storable(x)) if name in _INTO[:4] else divisor(d, ref)
            if name == "copy_" and not isinstance(other, Ref):
                name = "fill_"
            return d.do(method(name), ref, other, rounds=name in _RISKY)
        case 4 | 5:
            name = d.one(*_ALONE)
            return d.do(method(name), ref, rounds=name in _RISKY)
        case 6 | 7 | 8:
            key = key_of(d, x)
            into = x[key]
            return d.do(set_item, ref, key, d.partner(into, storable(x)))
        case 9:  # of itself, where both overlap
            axis = d.axis(x) % x.dim()
            lead = [slice(None)] * axis
            a, b = (*lead, slice(1, None)), (*lead, slice(None, -1))
            a, b = (a, b) if d.flag() else (b, a)
            return d.do(lambda x: set_item(x, a, x[b].clone() if x.dim() > 1 else x[b] * 2), ref)
        case 10:
            mask = d.find(lambda y: y.dtype == torch.bool and are_broadcast(x.shape, y.shape))
            return d.do(method("masked_fill_"), ref, mask, d.number())
        case 11:
            mask = d.find(lambda y: y.dtype == torch.bool and y.dim() > 0 and y.shape == x.shape)
            return d.do(set_item, ref, mask, d.number())
        case 12:
            size = x.shape[a := d.axis(x)]
            index = torch.tensor(d.rng.sample(range(size), d.whole(0, size))).long()
            name = d.one("index_fill_", "index_copy_", "index_add_")
            if name == "index_fill_":
                return d.do(method(name), ref, a, index, d.number())
            like = list(x.shape)
            like[a] = len(index)
            return d.do(method(name), ref, a, index, d.fresh(like, x.dtype))
        case 13:
            size = x.shape[a := d.axis(x)]
            index = d.places(d.whole(1, 3), size, -size).unique()
            key = (*[slice(None)] * (a % x.dim()), index)
            return d.do(set_item, ref, key, d.number())
        case 14:
            index = (d.places(3, x.shape[0], -x.shape[0]),)
            value = d.fresh([3, *x.shape[1:]], x.dtype)
            return d.do(lambda x, v: x.index_put_(index, v, accumulate=True), ref, value)
        case 15:
            axis = d.axis(x)
            sizes = [d.whole(0, size) for size in x.shape]
            count = int(torch.tensor(sizes).prod())
            index = d.places(count, x.shape[axis]).reshape(sizes)
            source = d.fresh(sizes, x.dtype)
            return d.do(method("scatter_add_"), ref, axis, index, source)
        case 16:
            name = d.one("clamp_", "clamp_min_", "clamp_max_")
            high = [d.number()] if name == "clamp_" else []
            return d.do(method(name), ref, d.number(), *high, rounds=True)
        case 17:
            name = d.one("tril_", "triu_", "fill_diagonal_", "cumsum_")
            return d.do(method(name), ref, d.axis(x) if name == "cumsum_" else d.whole(-1, 2))
        case 18:
            name = d.one("unsqueeze_", "transpose_", "swapdims_")
            if any(x is value for value in d.values[: d.given]):
                raise NothingFitsError
            return d.do(method(name), ref, *(d.axis(x) for _ in range(1 + (name[0] != "u"))))
        case _:
            other = d.partner(x)
            return d.do(lambda x, y: x.addcmul_(y, y, value=-1), ref, other)


# Programs and cases


REFUSED = RuntimeError, ValueError, IndexError, TypeError, NothingFitsError
"""What PyTorch raises for a call that it does not take; another one is drawn then."""


def make(seed: int) -> tuple[Program, list[list[Any]]]:
    """A program and the inputs of two calls."""
    d = Draw(random.Random(seed))
    shapes = [[d.one(0, 1, 2, 3, 4, 3, 2) for _ in range(d.whole(0, 3))] for _ in range(2)]
    shapes += [shapes[0], d.one([], [1], shapes[1][-1:])]
    types = [d.one(torch.float32, *TYPES) for _ in shapes]
    drawn = [[d.fresh(s, t) for s, t in zip(shapes, types, strict=True)] for _ in range(CALLS)]
    buffers = [d.fresh(shapes[0], d.one(*TYPES)), d.fresh([], torch.int64)][: d.whole(0, 2)]
    d.values = [*(one.clone() for one in drawn[0]), *(one.clone() for one in buffers)]
    d.given = len(d.values)
    for _ in range(d.whole(4, 14)):
        for _ in range(20):
            try:
                d.one(views, views, writes, writes, calls, others)(d)
                break
            except REFUSED:
                continue
    shown = sorted(
        n
        for n, value in enumerate(d.values)
        if isinstance(value, torch.Tensor) and (n >= len(d.values) - 3 or d.rng.random() < 0.5)
    )
    return Program(d.statements, buffers, shown), drawn


def same(x: Any, y: Any) -> bool:
    """True if two lists of tensors are equal, NaN being equal to itself."""
    return len(x) == len(y) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, 1e-5, 1e-6, True)
        if a.dtype in REAL
        else torch.equal(a, b)
        for a, b in zip(x, y, strict=True)
    )


def answers(module: Any, calls: Sequence[Sequence[Any]]) -> list[Any]:
    """Results of calls, and what the inputs are after them."""
    found: list[Any] = []
    for inputs in calls:
        given = [one.clone() for one in inputs]
        results = [one.clone() for one in module(*given)]
        found += [results, given]
    return found


@dataclass(frozen=True)
class Drawn:
    """A program, the inputs of its calls, and what it answers by itself."""

    seed: int
    program: Program
    calls: list[list[Any]]
    expected: list[Any]


def draw(seed: int) -> Drawn | None:
    """A program that PyTorch runs for the inputs of all calls."""
    program, calls = make(seed)
    try:
        return Drawn(seed, program, calls, answers(copy.deepcopy(program), calls))
    except Exception as error:  # numbers that one of the calls cannot have
        print(f"{seed}: {error}".splitlines()[0][:200], file=sys.stderr)
        return None


def write(drawn: Sequence[Drawn], form: str, folder: Path) -> int:
    """
    One case of several programs, or of half of them each, if together they are refused; how many
    are compared.
    """
    path = folder / "pt2" / f"{form}_{drawn[0].seed:06}"
    module = Programs([one.program for one in drawn], [len(one.calls[0]) for one in drawn])
    try:
        return (write_trace if form == "trace" else write_export)(module, drawn, form, path)
    except Exception as error:  # whatever it is, the other programs are written
        shutil.rmtree(path, ignore_errors=True)
        if len(drawn) == 1:
            text = str(error).strip() or type(error).__name__
            print(f"{drawn[0].seed}: {text.splitlines()[0][:200]}", file=sys.stderr)
            return 0
        half = len(drawn) // 2
        return write(drawn[:half], form, folder) + write(drawn[half:], form, folder)


def agreeing(drawn: Sequence[Drawn], runner: Any) -> list[bool]:
    """Which programs answer as they do by themselves: export may define what was not."""
    found = [True] * len(drawn)
    for call, (results, given) in enumerate(answers_of_all(drawn, runner)):
        for k, one in enumerate(drawn):
            count, width = len(one.program.shown), len(one.calls[0])
            after = one.expected[2 * call + 1]
            found[k] &= same(results[:count], one.expected[2 * call]) and same(given[:width], after)
            results, given = results[count:], given[width:]
    return found


def answers_of_all(drawn: Sequence[Drawn], runner: Any) -> list[tuple[Any, Any]]:
    """The results of each call, and what its inputs are after it."""
    calls = [[value for one in drawn for value in one.calls[k]] for k in range(CALLS)]
    found = answers(runner, calls)
    return list(zip(found[::2], found[1::2], strict=True))


def kept(
    drawn: Sequence[Drawn], agrees: Sequence[bool], size: Callable[[Drawn], int]
) -> list[bool]:
    """For each of what programs have several of, whether it is of one that agrees."""
    return [good for one, good in zip(drawn, agrees, strict=True) for _ in range(size(one))]


def write_export(module: Any, drawn: Sequence[Drawn], form: str, path: Path) -> int:
    """A program of torch.export."""
    case = Case(path, "model.pt2")
    first = tuple(value.clone() for one in drawn for value in one.calls[0])
    program = torch.export.export(copy.deepcopy(module), first, strict=False)
    functional = program.run_decompositions()
    agrees = agreeing(drawn, program.module())
    agrees = [a and b for a, b in zip(agrees, agreeing(drawn, functional.module()), strict=True)]
    if form == "core":
        program = functional
    torch.export.save(program, case.model)
    runner, signature = program.module(), program.graph_signature
    changed = functional.graph_signature
    mutated = set(changed.user_inputs_to_mutate.values())
    good = [f"programs.{k}." for k, is_good in enumerate(agrees) if is_good]
    buffers = sorted(
        name for name in changed.buffers_to_mutate.values() if name.startswith(tuple(good))
    )
    of_inputs = kept(drawn, agrees, lambda one: len(one.calls[0]))
    of_outputs = kept(drawn, agrees, lambda one: len(one.program.shown))
    for call in range(CALLS):
        inputs = [value for one in drawn for value in one.calls[call]]
        given = [value.clone() for value in inputs]
        results = [value.clone() for value in runner(*given)]
        outputs = tensors_of("USER_OUTPUT", signature.output_specs, results)
        after = tensors_of("USER_INPUT", signature.input_specs, given)
        case.sample(
            tensors_of("USER_INPUT", signature.input_specs, inputs),
            [pair for pair, is_kept in zip(outputs, of_outputs, strict=True) if is_kept],
            [(name, runner.get_buffer(name).clone()) for name in buffers],
            [
                pair
                for pair, is_kept in zip(after, of_inputs, strict=True)
                if is_kept and pair[0] in mutated
            ],
        )
    case.finish()
    return sum(agrees)


def write_trace(module: Any, drawn: Sequence[Drawn], form: str, path: Path) -> int:
    """A trace of TorchScript."""
    del form
    case = Case(path, "model.pt")
    first = tuple(value.clone() for one in drawn for value in one.calls[0])
    made = torch.jit.trace(copy.deepcopy(module), first, check_trace=False)
    torch.jit.save(made, str(case.model))
    agrees = agreeing(drawn, torch.jit.load(str(case.model)))
    of_outputs = kept(drawn, agrees, lambda one: len(one.program.shown))
    runner = torch.jit.load(str(case.model))
    names = [value.debugName().partition(".")[0] for value in runner.graph.inputs()][1:]
    for call, (results, _) in enumerate(answers_of_all(drawn, runner)):
        inputs = [value for one in drawn for value in one.calls[call]]
        outputs = [
            (f"output_{k}", value)
            for k, (value, is_kept) in enumerate(zip(results, of_outputs, strict=True))
            if is_kept
        ]
        case.sample(list(zip(names, inputs, strict=True)), outputs, [])
    case.finish()
    return sum(agrees)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100, help="programs")
    parser.add_argument("--join", type=int, default=10, help="programs in a case")
    parser.add_argument("--seed", type=int, default=0, help="of the first one")
    parser.add_argument("--form", choices=("training", "core", "trace"), default="training")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    total = 0
    with torch.no_grad():
        for first in range(options.seed, options.seed + options.count, options.join):
            last = min(first + options.join, options.seed + options.count)
            drawn = [one for one in map(draw, range(first, last)) if one is not None]
            total += write(drawn, options.form, options.folder) if drawn else 0
    print(f"{total} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
