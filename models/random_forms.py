"""
Single operators in forms that nobody has listed: drawn at random, the same for a seed.

Sizes are mostly round or mostly odd, ranks, axes, types, groups, strides, padding and open
dimensions are free; work and memory of a form are bounded, so that a form takes a few milliseconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from models.operator_forms import ELEMENT_TYPES, Dims, Draw, Form, Value, indices, text

_MOST_PRODUCTS = 6e7
_MOST_ELEMENTS = 2e6

Family = Callable[[random.Random], Form | None]
_FAMILIES: list[tuple[int, Family]] = []


def random_forms(count: int, seed: int) -> dict[str, Form]:
    """So many forms by name, which begins with the family."""
    rng = random.Random(seed)
    families = [family for weight, family in _FAMILIES for _ in range(weight)]
    found: dict[str, Form] = {}
    while len(found) < count:
        form = rng.choice(families)(rng)
        if form is not None and _elements(form) <= _MOST_ELEMENTS:
            found.setdefault(form.name, form)
    return found


def _elements(form: Form) -> int:
    values = [value for value in (*form.inputs, *form.weights) if value is not None]
    return sum(math.prod(v.dims) if isinstance(v, Draw) else v.size for v in values)


def _family(weight: int) -> Callable[[Family], Family]:
    def register(family: Family) -> Family:
        _FAMILIES.append((weight, family))
        return family

    return register


# What forms are made of


def _size(rng: random.Random, most: int = 256) -> int:
    """A dimension: small, round or odd."""
    kind = rng.random()
    if kind < 0.25:
        return rng.randint(1, min(12, most))
    if kind < 0.65:
        return min(most, rng.choice((8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)))
    return rng.randint(1, most)


def _dims(rng: random.Random, ranks: Sequence[int] = (2, 3, 4), most: int = 400_000) -> list[int]:
    """A shape with enough elements to be worth a loop, and not too many."""
    while True:
        dims = [_size(rng) for _ in range(rng.choice(ranks))]
        if 2000 <= math.prod(dims) <= most:
            return dims


def _open(rng: random.Random, dims: Dims) -> list[int | str] | None:
    """Some dimensions open, in one form of four."""
    if rng.random() > 0.25:
        return None
    return [f"d{k}" if rng.random() < 0.5 else dim for k, dim in enumerate(dims)]


def _name(
    family: str, *parts: Sequence[float] | str | int, open_: Sequence[int | str] | None = None
) -> str:
    texts = [text(p) if not isinstance(p, str | int) else str(p) for p in parts if p != ""]
    opened = (
        [] if open_ is None else ["open" + "".join(str(x) for x in open_ if isinstance(x, str))]
    )
    return "_".join([family, *texts, *opened]).replace("-", "m").replace(".", "p")


def _float(rng: random.Random) -> str:
    return rng.choice(("f32",) * 8 + ("f16", "f64"))


def _any(rng: random.Random) -> str:
    return rng.choice(("f32",) * 5 + ("f16", "f64", "u8", "i8", "i32", "i64", "bool"))


# Families


@_family(14)
def _conv(rng: random.Random) -> Form | None:
    spatial = rng.choice((1, 2, 2, 2, 2, 3))
    groups = rng.choice((1, 1, 1, 2, 3, 4, 8, 0))
    taps = [rng.choice((1, 2, 3, 3, 5, 7)) for _ in range(spatial)]
    if rng.random() < 0.6:
        taps = [taps[0]] * spatial
    if groups:
        channels, filters = (groups * _size(rng, 128) for _ in range(2))
    else:
        channels = groups = _size(rng, 200)
        filters = channels * rng.choice((1, 1, 1, 2))
    limit = {1: 2000, 2: 80, 3: 20}[spatial]
    space = [rng.randint(4, limit) for _ in taps]
    if rng.random() < 0.6:
        space = [space[0]] * spatial
    strides, dilations = ([rng.choice(of)] * spatial for of in ((1, 1, 1, 2, 3), (1, 1, 1, 1, 2)))
    pads = [rng.choice((0, (k - 1) * d // 2)) for k, d in zip(taps, dilations, strict=True)] * 2
    results = [
        (n + p + q - (k - 1) * d - 1) // s + 1
        for n, p, q, k, d, s in zip(
            space, pads[:spatial], pads[spatial:], taps, dilations, strides, strict=True
        )
    ]
    transposed = rng.random() < 0.15 and max(dilations) == 1
    if min(results) < 1:
        return None
    batch = rng.choice((1, 1, 1, 2, 5))
    work = batch * filters * channels // groups * math.prod(taps) * math.prod(space)
    if work > _MOST_PRODUCTS:
        return None
    type_, is_computed = _float(rng), rng.random() < 0.1
    dims = [batch, channels, *space]
    open_ = _open(rng, dims)
    if open_ is not None:
        open_[1] = channels
    shape = [channels, filters // groups] if transposed else [filters, channels // groups]
    parameters = [Draw([*shape, *taps], type_, 0.1), Draw([filters], type_)]
    attributes = {"strides": strides, "group": groups, "pads": pads, "kernel_shape": taps}
    if not transposed:
        attributes["dilations"] = dilations
    name = _name(
        "convtranspose" if transposed else "conv",
        dims,
        filters,
        f"k{text(taps)}",
        f"s{strides[0]}",
        f"d{dilations[0]}",
        f"g{groups}",
        f"p{text(pads)}",
        type_,
        "computed" if is_computed else "",
        open_=open_,
    )
    inputs: list[Value] = [Draw(dims, type_), *(parameters if is_computed else [])]
    op = "ConvTranspose" if transposed else "Conv"
    return Form(name, op, inputs, [] if is_computed else parameters, attributes, open_)


@_family(6)
def _pool(rng: random.Random) -> Form | None:
    spatial = rng.choice((1, 2, 2, 2, 3))
    taps = [rng.choice((2, 3, 3, 5, 7, 8))] * spatial
    strides = [rng.choice((1, 2, 2, 3, 4))] * spatial
    pads = [rng.randint(0, taps[0] // 2)] * (2 * spatial)
    limit = {1: 4000, 2: 100, 3: 24}[spatial]
    dims = [rng.choice((1, 1, 4)), _size(rng, 128), *(rng.randint(8, limit) for _ in taps)]
    op, type_, open_ = rng.choice(("MaxPool", "AveragePool")), _float(rng), _open(rng, dims)
    attributes: dict[str, Any] = {"kernel_shape": taps, "strides": strides, "pads": pads}
    attributes["ceil_mode"] = rng.randint(0, 1)
    if op == "AveragePool":
        attributes["count_include_pad"] = rng.randint(0, 1)
    if open_ is not None:
        open_[1] = dims[1]
    parts = (op.lower(), dims, f"k{taps[0]}", f"s{strides[0]}", f"p{pads[0]}")
    ceil = "ceil" if attributes["ceil_mode"] else ""
    return Form(
        _name("pool", *parts, ceil, type_, open_=open_),
        op,
        [Draw(dims, type_)],
        [],
        attributes,
        open_,
    )


@_family(10)
def _product(rng: random.Random) -> Form | None:
    rows, depth, columns = (_size(rng, 1024) for _ in range(3))
    batch = [_size(rng, 16) for _ in range(rng.choice((0, 0, 1, 2)))]
    if math.prod(batch) * rows * depth * columns > _MOST_PRODUCTS:
        return None
    type_, is_computed = _float(rng), rng.random() < 0.4
    dims, open_ = [*batch, rows, depth], None
    right = Draw([*(batch if is_computed else []), depth, columns], type_, 0.05)
    if not is_computed:
        open_ = _open(rng, dims)
        if open_ is not None:
            open_[-1] = depth
    inputs: list[Value] = [Draw(dims, type_), *([right] if is_computed else [])]
    name = _name("matmul", dims, columns, type_, "computed" if is_computed else "", open_=open_)
    return Form(name, "MatMul", inputs, [] if is_computed else [right], {}, open_)


@_family(3)
def _gemm(rng: random.Random) -> Form | None:
    rows, depth, columns = (_size(rng, 512) for _ in range(3))
    a, b = rng.randint(0, 1), rng.randint(0, 1)
    if rows * depth * columns > _MOST_PRODUCTS:
        return None
    first, second = [rows, depth], [depth, columns]
    weights = [Draw(second[::-1] if b else second, scale=0.1), Draw([columns])]
    name = _name("gemm", rows, depth, columns, f"{a}{b}")
    attributes = {"transA": a, "transB": b}
    return Form(name, "Gemm", [Draw(first[::-1] if a else first)], weights, attributes)


@_family(7)
def _reduce(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (1, 2, 3, 4, 5)), _float(rng)
    axes = sorted(rng.sample(range(len(dims)), rng.randint(1, len(dims))))
    op = rng.choice(("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"))
    keep, open_ = rng.randint(0, 1), _open(rng, dims)
    data = Draw(dims, type_, 0.1, positive=op == "Prod")
    name = _name("reduce", op.lower(), dims, axes, f"keep{keep}", type_, open_=open_)
    return Form(name, f"Reduce{op}", [data], [indices(*axes)], {"keepdims": keep}, open_)


@_family(4)
def _row(rng: random.Random) -> Form:
    dims, type_ = _dims(rng), _float(rng)
    op, axis = rng.choice(("Softmax", "LogSoftmax", "ArgMax", "ArgMin")), rng.randrange(len(dims))
    axis, open_ = rng.choice((axis, len(dims) - 1)), _open(rng, dims)
    name = _name("row", op.lower(), dims, axis, type_, open_=open_)
    return Form(name, op, [Draw(dims, type_)], [], {"axis": axis}, open_)


@_family(4)
def _norm(rng: random.Random) -> Form:
    op = rng.choice(("LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN"))
    attributes: dict[str, Any] = {}
    if op == "LayerNormalization":
        dims = _dims(rng)
        weights = [Draw(dims[-1:]), Draw(dims[-1:])]
    else:
        dims = [rng.choice((1, 2, 4)), 4 * _size(rng, 32), *(_size(rng, 64) for _ in range(2))]
        weights = [] if op == "LRN" else [Draw(dims[1:2]), Draw(dims[1:2])]
        attributes = {"LRN": {"size": 5}, "GroupNormalization": {"num_groups": 4}}.get(op, {})
    open_ = _open(rng, dims)
    if open_ is not None:
        at = -1 if op == "LayerNormalization" else 1
        open_[at] = dims[at]
    return Form(
        _name("norm", op[:5].lower(), dims, open_=open_),
        op,
        [Draw(dims)],
        weights,
        attributes,
        open_,
    )


@_family(6)
def _binary(rng: random.Random) -> Form:
    dims = _dims(rng, (1, 2, 3, 4, 5), 1_000_000)
    op = rng.choice(
        ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Less", "Equal", "Where", "PRelu")
    )
    type_ = (
        rng.choice(("f32", "f32", "f64", "f16", "i32", "i64")) if op in ("Add", "Mul") else "f32"
    )
    other = [dim if rng.random() < 0.6 else 1 for dim in dims][rng.randrange(len(dims)) :]
    open_ = _open(rng, dims)
    inputs: list[Value] = [
        Draw(dims, type_, positive=op == "Pow"),
        Draw(other, type_, positive=True),
    ]
    if op == "Where":
        inputs.insert(0, Draw(other, "bool"))
        open_ = None
    return Form(
        _name("binary", op.lower(), dims, other, type_, open_=open_), op, inputs, open=open_
    )


@_family(4)
def _unary(rng: random.Random) -> Form:
    dims = _dims(rng, (1, 2, 3, 4), 1_000_000)
    op = rng.choice(
        "Relu Sigmoid Tanh Exp Erf Gelu Sin Cos Tan Atan Asinh Softplus Elu Mish HardSwish "
        "Sqrt Log Floor Round Sign Abs Neg Not Reciprocal".split()
    )
    type_ = "bool" if op == "Not" else rng.choice(("f32", "f32", "f32", "f16", "f64"))
    open_, data = _open(rng, dims), Draw(dims, type_, positive=op in ("Sqrt", "Log"))
    return Form(_name("unary", op.lower(), dims, type_, open_=open_), op, [data], open=open_)


@_family(3)
def _cast(rng: random.Random) -> Form | None:
    dims = _dims(rng, (1, 2, 3), 1_000_000)
    source, target = rng.sample(sorted(ELEMENT_TYPES), 2)
    if "f16" in (source, target) and "f32" not in (source, target):
        return None
    data = Draw(dims, source, 20.0, positive=target == "u8")
    to = helper.np_dtype_to_tensor_dtype(ELEMENT_TYPES[target])
    return Form(_name("cast", source, target, dims), "Cast", [data], [], {"to": to})


@_family(7)
def _transpose(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (2, 3, 4, 5)), _any(rng)
    perm = rng.sample(range(len(dims)), len(dims))
    open_ = _open(rng, dims)
    name = _name("transpose", dims, "".join(map(str, perm)), type_, open_=open_)
    return Form(name, "Transpose", [Draw(dims, type_)], [], {"perm": perm}, open_)


@_family(5)
def _concat(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (1, 2, 3, 4), 100_000), _any(rng)
    axis, shapes = rng.randrange(len(dims)), list[list[int]]()
    for _ in range(rng.randint(2, 5)):
        shape = list(dims)
        shape[axis] = rng.choice(
            (shape[axis], _size(rng, max(1, 100_000 * shape[axis] // math.prod(dims))))
        )
        shapes.append(shape)
    sizes = "p".join(str(shape[axis]) for shape in shapes)
    name = _name("concat", dims, axis, sizes, type_)
    return Form(name, "Concat", [Draw(shape, type_) for shape in shapes], [], {"axis": axis})


@_family(3)
def _stack(rng: random.Random) -> Form:
    dims, type_, count = _dims(rng, (1, 2, 3), 100_000), _any(rng), rng.randint(2, 4)
    axis = rng.randint(0, len(dims))

    def nodes(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
        *values, axes = operands
        return [
            *(helper.make_node("Unsqueeze", [x, axes], [f"u{x}"]) for x in values),
            helper.make_node("Concat", [f"u{x}" for x in values], results, axis=axis),
        ]

    name = _name("stack", dims, axis, count, type_)
    return Form(name, nodes, [Draw(dims, type_)] * count, [indices(axis)])


@_family(3)
def _split(rng: random.Random) -> Form | None:
    dims, type_ = _dims(rng), _any(rng)
    axis = rng.randrange(len(dims))
    count = rng.randint(2, 5)
    if dims[axis] < 2 * count:
        return None
    cuts = [0, *sorted(rng.sample(range(1, dims[axis]), count - 1)), dims[axis]]
    sizes = [after - before for before, after in pairwise(cuts)]
    name = _name("split", dims, axis, sizes, type_)
    return Form(
        name, "Split", [Draw(dims, type_)], [indices(*sizes)], {"axis": axis}, outputs=count
    )


@_family(5)
def _slice(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (1, 2, 3, 4), 1_000_000), _any(rng)
    axes = sorted(rng.sample(range(len(dims)), rng.randint(1, len(dims))))
    starts = [rng.randint(0, dims[axis] // 2) for axis in axes]
    ends = [rng.randint(start + 1, dims[axis]) for start, axis in zip(starts, axes, strict=True)]
    steps = [rng.choice((1, 1, 1, 2, 3)) for _ in axes]
    if rng.random() < 0.15:
        starts, ends, steps = [-1] * len(axes), [-9999] * len(axes), [-1] * len(axes)
    operands: list[Value | None] = [indices(*of) for of in (starts, ends, axes, steps)]
    name = _name("slice", dims, starts, ends, axes, steps, type_)
    return Form(name, "Slice", [Draw(dims, type_)], operands)


@_family(3)
def _pad(rng: random.Random) -> Form:
    dims, type_ = _dims(rng), rng.choice(("f32", "f32", "f16", "u8", "i64"))
    mode = rng.choice(("constant", "reflect", "edge", "wrap"))
    pads = [rng.randint(0, min(4, dim - 1)) if dim > 1 else 0 for dim in dims * 2]
    name = _name("pad", mode, dims, pads, type_)
    return Form(name, "Pad", [Draw(dims, type_)], [indices(*pads)], {"mode": mode})


@_family(3)
def _repeat(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (1, 2, 3), 20_000), _any(rng)
    repeats = [rng.choice((1, 1, 2, 3, 10)) for _ in dims]
    return Form(
        _name("tile", dims, repeats, type_), "Tile", [Draw(dims, type_)], [indices(*repeats)]
    )


@_family(5)
def _gather(rng: random.Random) -> Form:
    dims, type_ = _dims(rng, (1, 2, 3, 4)), _any(rng)
    axis = rng.randrange(len(dims))
    kind = rng.choice(("Gather", "Gather", "GatherElements", "ScatterElements"))
    if kind == "Gather":
        where: Dims = [_size(rng, 100)] if rng.random() < 0.7 else [_size(rng, 16), _size(rng, 8)]
        if math.prod(dims) // dims[axis] * math.prod(where) > _MOST_ELEMENTS:
            where = [1]
    else:
        where = [
            dim if k == axis else max(1, dim - rng.randint(0, 2)) for k, dim in enumerate(dims)
        ]
    inputs: list[Value] = [Draw(dims, type_), Draw(where, "i64", below=dims[axis])]
    if kind == "ScatterElements":
        inputs.append(Draw(where, type_))
    name = _name(kind.lower(), dims, axis, where, type_)
    return Form(name, kind, inputs, [], {"axis": axis})


@_family(4)
def _resize(rng: random.Random) -> Form:
    dims = [rng.choice((1, 1, 2)), _size(rng, 64), rng.randint(5, 60), rng.randint(5, 60)]
    scales = [rng.choice((2.0, 2.0, 3.0, 0.5, 1.5)) for _ in range(2)]
    mode = rng.choice(("nearest", "linear", "linear", "cubic"))
    how = rng.choice(("half_pixel", "asymmetric", "align_corners"))
    if how == "align_corners":
        # onnxruntime rounds a size before it divides by it, onnx does not.
        scales = [float(math.ceil(scale)) for scale in scales]
    attributes = {"mode": mode, "coordinate_transformation_mode": how}
    weights: list[Value | None] = [None, np.array([1, 1, *scales], "f4")]
    return Form(
        _name("resize", mode, how, dims, scales), "Resize", [Draw(dims)], weights, attributes
    )


@_family(3)
def _top_k(rng: random.Random) -> Form:
    dims = _dims(rng, (1, 2, 3), 100_000)
    axis = rng.choice((len(dims) - 1, rng.randrange(len(dims))))
    k = rng.choice((1, 2, 5, 10, 20, 100, dims[axis]))
    k = min(k, dims[axis])
    name = _name("topk", dims, k, axis)
    return Form(name, "TopK", [Draw(dims)], [indices(k)], {"axis": axis}, outputs=2)


@_family(2)
def _scan(rng: random.Random) -> Form:
    dims, axis_of = _dims(rng, (1, 2, 3)), rng.randrange
    axis = axis_of(len(dims))
    attributes = {"exclusive": rng.randint(0, 1), "reverse": rng.randint(0, 1)}
    name = _name("scan", dims, axis, *attributes.values())
    return Form(name, "CumSum", [Draw(dims)], [np.array(axis)], attributes)


@_family(3)
def _einsum(rng: random.Random) -> Form | None:
    letters: Mapping[str, int] = {c: _size(rng, 64) for c in "abcdefg"}
    equation = rng.choice(
        "abc,acd->abd abcd,abed->abce abcd,ed->abce ab,ac->bc abc,dbc->ad abcd,ce->abed "
        "abc,c->ab abc,abd->acd a,b->ab abc->cab abcd,aecd->abe".split()
    )
    sources = equation.split("->")[0].split(",")
    shapes = [[letters[c] for c in source] for source in sources]
    if math.prod(letters[c] for c in set("".join(sources))) > _MOST_PRODUCTS:
        return None
    if max(map(math.prod, shapes)) < 500:
        return None
    name = _name("einsum", equation.replace(",", "_").replace("->", "_"), *shapes)
    return Form(name, "Einsum", [Draw(shape) for shape in shapes], [], {"equation": equation})


@_family(3)
def _rotary(rng: random.Random) -> Form:
    batch, heads, length, half = rng.choice((1, 2)), _size(rng, 16), _size(rng, 128), _size(rng, 64)
    is_apart = rng.random() < 0.5

    def nodes(operands: Sequence[str], results: Sequence[str]) -> list[NodeProto]:
        x, cos, sin, begin, middle, end, axis, one, two = operands
        first, second = ([begin, middle, axis, one], [middle, end, axis, one])
        if is_apart:
            first, second = ([begin, end, axis, two], [one, end, axis, two])
        joined = [helper.make_node("Concat", ["n", "a"], ["r"], axis=-1)]
        if is_apart:
            joined = [
                *(helper.make_node("Unsqueeze", [v, axis], [f"u{v}"]) for v in "na"),
                helper.make_node("Concat", ["un", "ua"], ["c"], axis=-1),
                helper.make_node("Shape", [x], ["shape"]),
                helper.make_node("Reshape", ["c", "shape"], ["r"]),
            ]
        return [
            helper.make_node("Slice", [x, *first], ["a"]),
            helper.make_node("Slice", [x, *second], ["b"]),
            helper.make_node("Neg", ["b"], ["n"]),
            *joined,
            helper.make_node("Mul", [x, cos], ["xc"]),
            helper.make_node("Mul", ["r", sin], ["rs"]),
            helper.make_node("Add", ["xc", "rs"], results),
        ]

    dims = [batch, heads, length, 2 * half]
    table = Draw([length, 2 * half])
    numbers = [indices(n) for n in (0, half, 2 * half, -1, 1, 2)]
    name = _name("rotary", dims, "apart" if is_apart else "halves")
    return Form(name, nodes, [Draw(dims)], [table, table, *numbers])
