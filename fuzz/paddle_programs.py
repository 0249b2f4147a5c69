"""
Random programs of PaddlePaddle, with the answers that it gave, as a corpus.

    python -m fuzz.paddle_programs FOLDER [--count N] [--seed S]
    python -m models.corpus paddle --corpus FOLDER

The first runs in a Python that has PaddlePaddle (2.6 writes ProgramDesc, 3 writes PIR) and needs
nothing of this project. Each program has one to four inputs, some of open size, and a few random
operators; what an operator refuses is tried with another one.
"""

# PaddlePaddle is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from models.paddle_exports import write_case

FLOATS = ("float32",)
WHOLE = ("int64", "int32")

_SECONDS = 60
"""Until a program that is not written is given up."""

Recipe = Callable[["Draw"], Any]
RECIPES: dict[str, Recipe] = {}


class NothingFitsError(Exception):
    """No value of the program can be what a recipe asks for."""


class Draw:
    """The program that grows, and what recipes draw from it."""

    def __init__(self, paddle: Any, rng: random.Random) -> None:
        self.paddle, self.f, self.rng = paddle, paddle.nn.functional, rng
        self.values: list[Any] = []
        self.weights = np.random.default_rng(rng.randrange(1 << 30))

    # Values

    def tensor(self, dtypes: tuple[str, ...] = FLOATS, ranks: Any = range(6)) -> Any:
        """A value of certain types and ranks; later ones are likelier."""
        found = [v for v in self.values if dtype_of(v) in dtypes and len(v.shape) in ranks]
        if not found:
            raise NothingFitsError
        return found[-1] if self.flag() else self.rng.choice(found)

    def like(self, x: Any) -> Any:
        """A value that is broadcast with another one: of the same program, or constant."""
        found = [v for v in self.values if dtype_of(v) == dtype_of(x) and are_broadcast(v, x)]
        if found and self.flag():
            return self.rng.choice(found)
        kept = [s if s > 0 and self.rng.random() < 0.7 else 1 for s in x.shape]
        return self.constant(kept[self.rng.randrange(len(kept) + 1) :], dtype_of(x))

    def constant(self, shape: list[int], dtype: str = "float32") -> Any:
        """A constant with random elements."""
        if dtype == "bool":
            array = self.weights.random(shape) < 0.5
        elif dtype.startswith("int"):
            array = self.weights.integers(-5, 6, shape)
        else:
            array = self.weights.standard_normal(shape)
        return self.paddle.assign(np.asarray(array, dtype))

    def whole(self, shape: list[int], limit: int, dtype: str = "int64") -> Any:
        """Constant indices below a limit."""
        return self.paddle.assign(np.asarray(self.weights.integers(0, limit, shape), dtype))

    def positive(self, shape: list[int]) -> Any:
        """A constant with elements from 0.1 to 1.1."""
        return self.paddle.assign((self.weights.random(shape) + 0.1).astype(np.float32))

    # Plain values

    def flag(self) -> bool:
        """A truth value."""
        return self.rng.random() < 0.5

    def one(self, *values: Any) -> Any:
        """One of several."""
        return self.rng.choice(values)

    def number(self, low: float = -2.0, high: float = 2.0) -> float:
        """A number with few digits."""
        return round(self.rng.uniform(low, high), 2)

    def axis(self, x: Any, extra: int = 0) -> int:
        """An axis, from the front or from the back."""
        rank = len(x.shape) + extra
        if not rank:
            raise NothingFitsError
        return self.rng.randrange(-rank, rank)

    def axes(self, x: Any) -> list[int]:
        """Some axes."""
        rank = len(x.shape)
        if not rank:
            raise NothingFitsError
        found = self.rng.sample(range(rank), self.rng.randint(1, rank))
        return [a - rank if self.flag() else a for a in found]

    def fixed(self, x: Any, axis: int) -> int:
        """The size of an axis, which must not be open."""
        if x.shape[axis] <= 0:
            raise NothingFitsError
        return x.shape[axis]

    def image(self) -> Any:
        """A value of rank 4 whose channels are known."""
        x = self.tensor(ranks=[4])
        self.fixed(x, 1)
        return x


def dtype_of(value: Any) -> str:
    """The name of an element type."""
    return str(value.dtype).rpartition(".")[2].lower()


def are_broadcast(x: Any, y: Any) -> bool:
    """True if the static shapes are broadcast for certain."""
    return all(
        a == b or 1 in (a, b) for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False)
    )


def recipe(name: str) -> Callable[[Recipe], Recipe]:
    """Register a recipe."""

    def register(function: Recipe) -> Recipe:
        RECIPES[name] = function
        return function

    return register


def plain(name: str, where: str = "", dtypes: tuple[str, ...] = FLOATS, **given: Any) -> None:
    """A function of one value; what of its arguments is callable is drawn."""

    def run(d: Draw) -> Any:
        arguments = {k: v(d) if callable(v) else v for k, v in given.items()}
        return found(d, where, name)(d.tensor(dtypes), **arguments)

    RECIPES[name] = run


def found(d: Draw, where: str, name: str) -> Any:
    """A function of PaddlePaddle."""
    return getattr(d.f if where == "f" else d.paddle, name)


for _name in (
    "abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf exp expm1 floor frac isfinite "
    "isinf isnan lgamma log log10 log1p log2 neg reciprocal round rsqrt sign sin sinh sqrt square "
    "tan tanh trunc deg2rad rad2deg erfinv i0"
).split():
    plain(_name)
for _name in "relu relu6 selu silu mish softsign tanhshrink log_sigmoid sigmoid hardswish".split():
    plain(_name, "f")
plain("elu", "f", alpha=lambda d: d.number(0.1, 2))
plain("celu", "f", alpha=lambda d: d.number(0.1, 2))
plain("gelu", "f", approximate=Draw.flag)
plain("hardshrink", "f", threshold=lambda d: d.number(0, 1))
plain("softshrink", "f", threshold=lambda d: d.number(0, 1))
plain("hardtanh", "f", min=lambda d: d.number(-2, 0), max=lambda d: d.number(0, 2))
plain("hardsigmoid", "f", slope=lambda d: d.number(0.1, 0.3), offset=lambda d: d.number(0, 1))
plain("leaky_relu", "f", negative_slope=lambda d: d.number(0, 1))
plain("softplus", "f", beta=lambda d: d.number(0.5, 2), threshold=lambda d: d.number(1, 20))
plain("swish", "f")
plain("thresholded_relu", "f", threshold=lambda d: d.number(0, 1))
plain("stanh", "", scale_a=lambda d: d.number(0.2, 1), scale_b=lambda d: d.number(0.5, 2))
plain("logit", "", eps=lambda d: d.one(1e-3, 1e-6))
plain(
    "scale",
    "",
    scale=Draw.number,
    bias=Draw.number,
    bias_after_scale=Draw.flag,
)
plain("nan_to_num", "")
plain("clip", "", FLOATS + WHOLE, min=lambda d: d.one(-1, -2), max=lambda d: d.one(1, 2, None))
plain("cast", "", FLOATS + WHOLE + ("bool",), dtype=lambda d: d.one("float32", "int64", "bool"))
plain("numel", "", FLOATS + WHOLE)
plain("shape", "", FLOATS + WHOLE)
plain("ones_like", "", FLOATS + WHOLE)
plain("zeros_like", "", FLOATS + WHOLE)
plain("full_like", "", FLOATS + WHOLE, fill_value=lambda d: d.one(2, -1.5))
plain("bitwise_not", "", (*WHOLE, "bool"))
plain("logical_not", "", FLOATS + WHOLE + ("bool",))


@recipe("binary")
def _binary(d: Draw) -> Any:
    name = d.one(
        *"add subtract multiply divide maximum minimum pow fmax fmin mod floor_divide".split(),
        *"equal not_equal less_than less_equal greater_than greater_equal atan2 heaviside".split(),
        *"logical_and logical_or logical_xor copysign hypot logaddexp nextafter ldexp".split(),
    )
    x = d.tensor(FLOATS + (WHOLE if d.flag() else ()))
    y = d.like(x)
    pair = (x, y) if d.flag() else (y, x)
    if name == "pow" and dtype_of(x) != "float32":
        raise NothingFitsError
    if name in ("mod", "floor_divide") and dtype_of(x) != "float32":
        pair = x, d.paddle.assign(np.array([d.one(-3, 2, 5)], dtype_of(x)))
    return getattr(d.paddle, name)(*pair)


@recipe("bits")
def _bits(d: Draw) -> Any:
    x = d.tensor((*WHOLE, "bool"))
    return getattr(d.paddle, d.one("bitwise_and", "bitwise_or", "bitwise_xor"))(x, d.like(x))


@recipe("where")
def _where(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    zero = d.paddle.zeros_like(x)
    return d.paddle.where(d.paddle.greater_than(x, zero), x, d.paddle.full_like(x, 3))


@recipe("lerp")
def _lerp(d: Draw) -> Any:
    x = d.tensor()
    return d.paddle.lerp(x, d.paddle.sin(x), d.number(0, 1))


@recipe("reduce")
def _reduce(d: Draw) -> Any:
    x = d.tensor()
    name = d.one(*"sum mean max min prod logsumexp amax amin nansum nanmean std var".split())
    axis = d.one(None, d.axes(x), d.axis(x))
    given = {"unbiased": d.flag()} if name in ("std", "var") else {}
    return getattr(d.paddle, name)(x, axis=axis, keepdim=d.flag(), **given)


@recipe("reduce_whole")
def _reduce_whole(d: Draw) -> Any:
    x = d.tensor(WHOLE)
    name = d.one("sum", "max", "min", "prod")
    return getattr(d.paddle, name)(x, axis=d.one(None, d.axis(x)), keepdim=d.flag())


@recipe("reduce_bool")
def _reduce_bool(d: Draw) -> Any:
    x = d.tensor(("bool",))
    return getattr(d.paddle, d.one("all", "any"))(x, axis=d.one(None, d.axis(x)), keepdim=d.flag())


@recipe("norm")
def _norm(d: Draw) -> Any:
    x = d.tensor()
    p = d.one(1, 2, 3, float("inf"), -float("inf"), 0)
    return d.paddle.norm(x, p=p, axis=d.axis(x), keepdim=d.flag())


@recipe("arg")
def _arg(d: Draw) -> Any:
    x = d.tensor()
    name = d.one("argmax", "argmin")
    return getattr(d.paddle, name)(x, axis=d.one(None, d.axis(x)), keepdim=d.flag())


@recipe("cumulative")
def _cumulative(d: Draw) -> Any:
    x = d.tensor()
    name = d.one("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
    axis = d.axis(x)
    found = getattr(d.paddle, name)(x, **{"dim" if name == "cumprod" else "axis": axis})
    return found


@recipe("sort")
def _sort(d: Draw) -> Any:
    x = d.tensor()
    kind = d.one("sort", "topk", "kthvalue", "argsort", "mode", "median")
    axis = d.axis(x)
    if kind in ("sort", "argsort"):
        return getattr(d.paddle, kind)(x, axis=axis, descending=d.flag())
    if kind == "topk":
        return d.paddle.topk(x, d.rng.randint(1, d.fixed(x, axis)), axis, largest=d.flag())
    if kind == "kthvalue":
        return d.paddle.kthvalue(x, d.rng.randint(1, d.fixed(x, axis)), axis, keepdim=d.flag())
    return getattr(d.paddle, kind)(x, axis=axis, keepdim=d.flag())


@recipe("softmax")
def _softmax(d: Draw) -> Any:
    x = d.tensor()
    return getattr(d.f, d.one("softmax", "log_softmax"))(x, axis=d.axis(x))


@recipe("glu")
def _glu(d: Draw) -> Any:
    x = d.tensor()
    return d.f.glu(x, axis=d.axis(x))


@recipe("normalize")
def _normalize(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 5))
    return d.f.normalize(x, p=d.one(1, 2, 3), axis=d.axis(x))


@recipe("matmul")
def _matmul(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 5))
    turned = len(x.shape) > 1 and d.flag()
    depth = d.fixed(x, -2 if turned else -1)
    if d.flag():
        return d.paddle.matmul(x, d.constant([depth, d.one(1, 3, 5)]), transpose_x=turned)
    y = d.constant([d.one(1, 4), depth])
    return d.paddle.matmul(x, y, transpose_x=turned, transpose_y=True)


@recipe("linear")
def _linear(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 5))
    wide = d.one(2, 4, 7)
    bias = d.constant([wide]) if d.flag() else None
    return d.f.linear(x, d.constant([d.fixed(x, -1), wide]), bias)


@recipe("einsum")
def _einsum(d: Draw) -> Any:
    x = d.tensor(ranks=[2, 3])
    depth = d.fixed(x, -1)
    if len(x.shape) == 2:
        form = d.one("ij,jk->ik", "ij,jk->ki", "ij,jk->k", "ij,jj->ij")
        return d.paddle.einsum(form, x, d.constant([depth, depth if "jj" in form else 3]))
    form = d.one("bij,jk->bik", "bij,kj->bki", "...j,jk->...k", "bij,jk->ik")
    return d.paddle.einsum(form, x, d.constant([depth, depth]))


@recipe("reshape")
def _reshape(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    rank = len(x.shape)
    kind = d.rng.randrange(4)
    if kind == 0:
        return d.paddle.flatten(x, start_axis=0, stop_axis=d.axis(x))
    if kind == 1 and rank > 1:
        return d.paddle.reshape(x, [0, -1])
    if kind == 2:
        return d.paddle.unsqueeze(x, axis=d.axis(x, 1))
    ones = [a for a in range(rank) if x.shape[a] == 1]
    if kind == 3 and ones:
        return d.paddle.squeeze(x, axis=d.one(None, ones[:1]) if -1 not in x.shape else ones[:1])
    return d.paddle.reshape(x, [-1])


@recipe("transpose")
def _transpose(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE + ("bool",), ranks=range(1, 6))
    return d.paddle.transpose(x, d.rng.sample(range(len(x.shape)), len(x.shape)))


@recipe("move")
def _move(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    kind = d.one("flip", "roll", "tile", "rot90", "moveaxis", "repeat_interleave", "tril", "triu")
    if kind == "flip":
        return d.paddle.flip(x, d.axes(x))
    if kind == "roll":
        axes = d.one(None, d.axes(x))
        return d.paddle.roll(x, [d.rng.randint(-3, 3)] * len(axes or [0]), axes)
    if kind == "tile":
        return d.paddle.tile(x, [d.rng.randint(1, 3) for _ in range(d.rng.randint(1, 4))])
    if kind == "rot90":
        return d.paddle.rot90(x, d.rng.randint(-3, 3), [0, 1])
    if kind == "moveaxis":
        return d.paddle.moveaxis(x, d.axis(x), d.axis(x))
    if kind == "repeat_interleave":
        return d.paddle.repeat_interleave(x, d.rng.randint(1, 3), d.axis(x))
    return getattr(d.paddle, kind)(x, d.rng.randint(-2, 2))


@recipe("expand")
def _expand(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    sizes = [d.one(2, 3) if s == 1 else -1 for s in x.shape]
    return d.paddle.expand(x, [d.one(2, 3), *sizes] if d.flag() else sizes)


@recipe("slice")
def _slice(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    axes = sorted(a % len(x.shape) for a in d.axes(x))
    starts = [d.rng.randint(-3, 2) for _ in axes]
    ends = [s + d.rng.randint(1, 3) if s < -3 else d.one(2, 3, 1 << 30) for s in starts]
    if d.flag():
        return d.paddle.slice(x, axes, starts, ends)
    steps = [d.one(1, 2, 3) for _ in axes]
    return d.paddle.strided_slice(x, axes, starts, ends, steps)


@recipe("getitem")
def _getitem(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    rank = len(x.shape)
    kind = d.rng.randrange(6)
    if kind == 0:
        return x[d.one(0, -1)]
    if kind == 1:
        return x[..., d.one(0, -1)]
    if kind == 2:
        return x[:: d.one(1, 2, -1)]
    if kind == 3:
        return x[None, ..., d.rng.randint(0, 1) :]
    if kind == 4 and rank > 1:
        return x[:, d.whole([d.one(1, 4)], d.fixed(x, 1))]
    return x[d.rng.randint(-3, 0) :]


@recipe("setitem")
def _setitem(d: Draw) -> Any:
    x = d.tensor()
    kind = d.rng.randrange(3)
    at = [0, (slice(None, None, 2)), (Ellipsis, slice(0, 1))][kind]
    # Of a copy: when others read what is written in place is left to PaddlePaddle's executor, whose
    # threads take operators in any order that results do not forbid.
    return d.paddle.static.setitem(d.paddle.assign(x), at, d.number())


@recipe("pieces")
def _pieces(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    axis = d.axis(x)
    kind = d.one("split", "chunk", "unbind", "unstack")
    if kind == "split":
        size = d.fixed(x, axis)
        first = d.rng.randint(1, max(1, size - 1))
        return d.paddle.split(x, [first, d.one(-1, size - first)], axis)
    if kind == "chunk":
        return d.paddle.chunk(x, d.one(1, 2, 3), axis)
    d.fixed(x, axis)
    return getattr(d.paddle, kind)(x, axis)


@recipe("join")
def _join(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    others = [v for v in d.values if v.shape == x.shape and dtype_of(v) == dtype_of(x)]
    pair = [x, d.rng.choice(others)]
    if d.flag():
        return d.paddle.stack(pair, d.axis(x, 1))
    return d.paddle.concat(pair, d.axis(x))


@recipe("add_n")
def _add_n(d: Draw) -> Any:
    x = d.tensor()
    return d.paddle.add_n([x, d.paddle.sin(x), x])


@recipe("pad")
def _pad(d: Draw) -> Any:
    x = d.tensor(ranks=[3, 4, 5])
    count = 2 * (len(x.shape) - 2)
    mode = d.one("constant", "reflect", "replicate", "circular")
    last = d.flag()
    form = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}[len(x.shape)][last]
    pads = [d.rng.randint(0, 1) for _ in range(count)]
    return d.f.pad(x, pads, mode=mode, value=d.number(), data_format=form)


@recipe("pad_all")
def _pad_all(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 5))
    return d.f.pad(x, [d.rng.randint(0, 2) for _ in range(2 * len(x.shape))], value=d.number())


@recipe("gather")
def _gather(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE)
    axis = d.axis(x)
    index = d.whole([d.one(1, 2, 5)], d.fixed(x, axis), d.one(*WHOLE))
    if d.flag():
        return d.paddle.gather(x, index, axis % len(x.shape))
    return d.paddle.index_select(x, index, axis)


@recipe("gather_nd")
def _gather_nd(d: Draw) -> Any:
    x = d.tensor(FLOATS + WHOLE, ranks=range(1, 5))
    depth = d.rng.randint(1, len(x.shape))
    limit = min(d.fixed(x, a) for a in range(depth))
    return d.paddle.gather_nd(x, d.whole([d.one(1, 3), depth], limit))


@recipe("along")
def _along(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 4))
    axis = d.axis(x)
    sizes = [d.fixed(x, a) for a in range(len(x.shape))]
    if d.flag():
        sizes[axis] = d.one(1, 3)
        return d.paddle.take_along_axis(x, d.whole(sizes, x.shape[axis]), axis)
    sizes[axis] = 1
    index = d.whole(sizes, x.shape[axis])
    how = d.one("assign", "add", "multiply")
    return d.paddle.put_along_axis(x, index, d.constant(sizes), axis, reduce=how)


@recipe("scatter")
def _scatter(d: Draw) -> Any:
    x = d.tensor(ranks=range(1, 4))
    rows = d.fixed(x, 0)
    rest = [d.fixed(x, a) for a in range(1, len(x.shape))]
    count = d.rng.randint(1, rows)
    index = d.paddle.assign(d.weights.permutation(rows)[:count].astype(np.int64))
    updates = d.constant([count, *rest])
    kind = d.rng.randrange(3)
    if kind == 0:
        return d.paddle.scatter(x, index, updates, overwrite=d.flag())
    if kind == 1:
        return d.paddle.index_add(x, index, 0, updates)
    return d.paddle.scatter_nd_add(x, d.whole([4, 1], rows), d.constant([4, *rest]))


@recipe("select")
def _select(d: Draw) -> Any:
    x = d.tensor()
    mask = d.paddle.greater_than(x, d.paddle.zeros_like(x))
    return d.one(d.paddle.masked_select, lambda a, m: d.paddle.nonzero(m))(x, mask)


@recipe("embedding")
def _embedding(d: Draw) -> Any:
    ids = d.whole(d.one([3], [2, 4]), 9)
    return d.f.embedding(ids, d.constant([9, d.one(3, 8)]), padding_idx=d.one(None, 2, -1))


@recipe("one_hot")
def _one_hot(d: Draw) -> Any:
    return d.f.one_hot(d.whole(d.one([3], [2, 4]), 5), 5)


@recipe("conv")
def _conv(d: Draw) -> Any:
    x = d.tensor(ranks=[3, 4, 5])
    rank = len(x.shape) - 2
    last = rank == 2 and d.one(False, False, True)
    channels = d.fixed(x, -1 if last else 1)
    groups = d.one(*(g for g in range(1, channels + 1) if channels % g == 0))
    wide = groups * d.one(1, 2)
    kernel = [d.one(1, 2, 3) for _ in range(rank)]
    padding = d.one(0, 1, "SAME", "VALID", [d.one(0, 1, 2) for _ in range(2 * rank)])
    if isinstance(padding, list) and rank == 1:
        padding = 1
    name = f"conv{rank}d"
    given = {"data_format": "NHWC"} if last else {}
    return getattr(d.f, name)(
        x,
        d.constant([wide, channels // groups, *kernel]),
        d.constant([wide]) if d.flag() else None,
        stride=d.one(1, 2, [d.one(1, 2) for _ in range(rank)]),
        padding=padding,
        dilation=d.one(1, 1, 2),
        groups=groups,
        **given,
    )


@recipe("conv_transpose")
def _conv_transpose(d: Draw) -> Any:
    x = d.tensor(ranks=[3, 4, 5])
    rank = len(x.shape) - 2
    channels = d.fixed(x, 1)
    groups = d.one(*(g for g in range(1, channels + 1) if channels % g == 0))
    stride = d.one(1, 2, 3)
    extra = {"output_padding": d.rng.randrange(stride)} if d.flag() else {}
    return getattr(d.f, f"conv{rank}d_transpose")(
        x,
        d.constant([channels, d.one(1, 2), *(d.one(1, 2, 3) for _ in range(rank))]),
        stride=stride,
        padding=d.one(0, 1, "SAME", "VALID") if not extra else d.one(0, 1),
        dilation=d.one(1, 1, 2),
        groups=groups,
        **extra,
    )


@recipe("pool")
def _pool(d: Draw) -> Any:
    x = d.tensor(ranks=[3, 4, 5])
    rank = len(x.shape) - 2
    kind = d.one("max", "avg", "adaptive_max", "adaptive_avg")
    if kind.startswith("adaptive"):
        return getattr(d.f, f"{kind}_pool{rank}d")(x, d.one(1, 2, 3))
    kernel, stride = d.one(2, 3), d.one(None, 1, 2)
    given: dict[str, Any] = {"exclusive": d.flag()} if kind == "avg" else {}
    if rank == 2 and d.one(False, False, True):
        given["data_format"] = "NHWC"
    padding = d.one(0, 1, 1, "SAME", "VALID")
    if not isinstance(padding, str):
        given["ceil_mode"] = d.flag()
    return getattr(d.f, f"{kind}_pool{rank}d")(x, kernel, stride, padding, **given)


@recipe("max_pool_mask")
def _max_pool_mask(d: Draw) -> Any:
    x = d.image()
    return d.f.max_pool2d(x, 2, 2, 0, return_mask=True)


@recipe("norms")
def _norms(d: Draw) -> Any:
    x = d.tensor(ranks=[2, 3, 4, 5])
    channels = d.fixed(x, 1)
    kind = d.one("batch", "layer", "group", "instance", "local")
    if kind == "batch":
        mean, variance = d.constant([channels]), d.positive([channels])
        scale, bias = d.constant([channels]), d.constant([channels])
        return d.f.batch_norm(x, mean, variance, scale, bias, training=False)
    if kind == "layer":
        sizes = [d.fixed(x, a) for a in range(len(x.shape))][-d.one(1, 1, 2) :]
        return d.f.layer_norm(x, sizes, d.constant(sizes), d.constant(sizes))
    if kind == "group":
        groups = d.one(*(g for g in range(1, channels + 1) if channels % g == 0))
        given = {"weight": d.constant([channels]), "bias": d.constant([channels])}
        return d.f.group_norm(x, groups, **(given if d.flag() else {}))
    if kind == "instance":
        return d.f.instance_norm(x)
    return d.f.local_response_norm(x, d.one(3, 5))


@recipe("resize")
def _resize(d: Draw) -> Any:
    x = d.tensor(ranks=[3, 4, 5])
    rank = len(x.shape) - 2
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic", "area"], 3: ["trilinear"]}[rank]
    mode = d.one(*smooth, *(["nearest"] if rank > 1 else []))
    given: dict[str, Any] = {}
    if d.flag():
        given["size"] = [d.one(1, 2, 5, 7) for _ in range(rank)]
    else:
        given["scale_factor"] = [d.one(0.5, 2.0, 1.5) for _ in range(rank)]
    if mode in ("linear", "bilinear", "bicubic", "trilinear"):
        given["align_corners"] = d.flag()
        if not given["align_corners"]:
            given["align_mode"] = d.one(0, 1)
    return d.f.interpolate(x, mode=mode, **given)


@recipe("pixels")
def _pixels(d: Draw) -> Any:
    x = d.image()
    kind = d.one("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "temporal")
    if kind == "unfold":
        return d.f.unfold(x, d.one(1, 2, [2, 3]), d.one(1, 2), d.one(0, 1), d.one(1, 2))
    if kind == "temporal":
        return d.f.temporal_shift(x, 1, d.one(0.25, 0.5))
    return getattr(d.f, kind)(x, 2)


@recipe("grid_sample")
def _grid_sample(d: Draw) -> Any:
    x = d.image()
    grid = d.constant([d.fixed(x, 0), d.one(2, 3), 4, 2])
    return d.f.grid_sample(
        x,
        grid,
        mode=d.one("bilinear", "nearest"),
        padding_mode=d.one("zeros", "border", "reflection"),
        align_corners=d.flag(),
    )


@recipe("prelu")
def _prelu(d: Draw) -> Any:
    x = d.tensor(ranks=[2, 3, 4])
    return d.f.prelu(x, d.constant([d.one(1, d.fixed(x, 1))]))


@recipe("diagonal")
def _diagonal(d: Draw) -> Any:
    x = d.tensor(ranks=[2, 3, 4])
    kind = d.one("diagonal", "trace", "diag_embed")
    if kind == "diag_embed":
        return d.f.diag_embed(x, d.rng.randint(-1, 1))
    return getattr(d.paddle, kind)(x, d.rng.randint(-1, 1), axis1=d.one(0, -2), axis2=-1)


@recipe("search")
def _search(d: Draw) -> Any:
    edges = d.paddle.assign(np.array([-1.0, 0.0, 0.5, 2.0], np.float32))
    x = d.tensor()
    return d.paddle.searchsorted(edges, x, right=d.flag(), out_int32=d.flag())


@recipe("unique")
def _unique(d: Draw) -> Any:
    x = d.tensor(WHOLE, ranks=[1])
    return d.paddle.unique(x, return_inverse=d.flag(), return_counts=d.flag())


@recipe("rnn")
def _rnn(d: Draw) -> Any:
    x = d.tensor(ranks=[3])
    d.fixed(x, 0)
    kind = d.one("LSTM", "GRU", "SimpleRNN")
    direction = d.one("forward", "bidirect")
    wide = d.one(3, 4)
    cell = getattr(d.paddle.nn, kind)(d.fixed(x, -1), wide, d.one(1, 2), direction)
    cell.eval()
    return cell(x)[0]


@recipe("attention")
def _attention(d: Draw) -> Any:
    x = d.tensor(ranks=[4])
    return d.f.scaled_dot_product_attention(x, x, x, is_causal=d.flag())


@recipe("cond")
def _cond(d: Draw) -> Any:
    x = d.tensor()
    is_large = d.paddle.sum(x) > d.number()
    return d.paddle.static.nn.cond(is_large, lambda: x * 2, lambda: d.paddle.sin(x))


@recipe("while")
def _while(d: Draw) -> Any:
    x = d.tensor()
    index = d.paddle.full([1], 0, "int64")
    limit = d.paddle.full([1], d.rng.randint(0, 4), "int64")
    return d.paddle.static.nn.while_loop(
        lambda i, v: d.paddle.less_than(i, limit), lambda i, v: [i + 1, v * 0.5 + 1], [index, x]
    )[1]


@recipe("array")
def _array(d: Draw) -> Any:
    x = d.tensor()
    index = d.paddle.full([1], 0, "int64")
    limit = d.paddle.full([1], d.rng.randint(1, 4), "int64")
    array = d.paddle.tensor.array_write(x, index)

    def body(i: Any, array: Any) -> list[Any]:
        last = d.paddle.tensor.array_read(array, i)
        i = i + 1
        return [i, d.paddle.tensor.array_write(last * 0.5, i, array)]

    index, array = d.paddle.static.nn.while_loop(
        lambda i, a: d.paddle.less_than(i, limit), body, [index, array]
    )
    return d.paddle.tensor.array_read(array, index)


# Programs


def make(paddle: Any, folder: Path, name: str, rng: random.Random) -> bool:
    """Write one case; False if PaddlePaddle cannot run what was drawn."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        draw = Draw(paddle, rng)
        inputs, samples = [], [{}, {}]
        for index in range(rng.randint(1, 3)):
            shape = [rng.choice((1, 2, 3, 4, 5, 6)) for _ in range(rng.choice((1, 2, 3, 4, 4, 5)))]
            is_open = [rng.random() < 0.15 for _ in shape]
            dtype = rng.choice(("float32", "float32", "float32", "int64"))
            stated = [-1 if o else s for o, s in zip(is_open, shape, strict=True)]
            inputs.append(paddle.static.data(f"x{index}", stated, dtype))
            for number, sample in enumerate(samples):
                sizes = [s + number * o for o, s in zip(is_open, shape, strict=True)]
                sample[f"x{index}"] = numbers(draw.weights, sizes, dtype)
        draw.values += inputs
        wanted, used = rng.randint(1, 4), []
        for _ in range(40):
            kind = rng.choice(list(RECIPES))
            try:
                given = RECIPES[kind](draw)
            except Exception:  # whatever an operator of PaddlePaddle refuses
                continue
            draw.values += list(given) if isinstance(given, list | tuple) else [given]
            used.append(kind)
            if len(used) == wanted:
                break
        results = [v for v in draw.values if all(v is not x for x in inputs)]
        results = [v for v in results if not v.persistable][-6:]
        if not results:
            return False
        # An input that nothing reads is refused.
        results += [paddle.scale(x, 2) for x in inputs]
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        try:
            expected = [executor.run(main, feed=sample, fetch_list=results) for sample in samples]
            folder.mkdir(parents=True)
            paddle.static.save_inference_model(
                str(folder / "model"), inputs, results, executor, program=main
            )
        except Exception as error:  # whatever PaddlePaddle refuses, the next ones are written
            print(f"{name}: {used}: {str(error)[-200:]!r}", file=sys.stderr)
            return False
    write_case(paddle, executor, folder, used, samples, expected)
    return True


def numbers(rng: np.random.Generator, shape: list[int], dtype: str) -> Any:
    """Elements of an input."""
    if dtype == "int64":
        return rng.integers(-4, 9, shape)
    return rng.standard_normal(shape).astype(np.float32)


def main(arguments: list[str] | None = None) -> int:
    """Write the programs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    os.environ.setdefault("GLOG_minloglevel", "3")
    import paddle

    paddle.enable_static()
    made = 0
    for number in range(options.count):
        seed = options.seed * 1_000_000 + number
        # Some programs end PaddlePaddle, or stop it for good.
        child = os.fork()
        if not child:
            signal.alarm(_SECONDS)
            name = f"random_{seed}"
            folder = options.folder / "paddle" / name
            os._exit(not make(paddle, folder, name, random.Random(seed)))
        made += os.waitpid(child, 0)[1] == 0
    print(f"{made} of {options.count} programs written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
