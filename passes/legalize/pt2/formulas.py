"""Operators that are formulas of others: losses, windows, differences, matrices, statistics."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    i1,
    i64,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.decomposition import matrix_norm, singular_values, swapped
from lowerdeck.passes.legalize.common.diagonals import all_alike
from lowerdeck.passes.legalize.common.fourier import WINDOWS, bell
from lowerdeck.passes.legalize.common.functions import close_to
from lowerdeck.passes.legalize.common.interpolation import affine_grid
from lowerdeck.passes.legalize.common.linear import correlations, covariance, matmul
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.order import counted, histogram
from lowerdeck.passes.legalize.common.promotion import wide_type
from lowerdeck.passes.legalize.common.reduction import mean, norm
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.common.unique import runs, unique
from lowerdeck.passes.legalize.pt2.applied import aten, torch_value
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied


def _torch(builder: Pt2Legalizer, target: str, **arguments: Any) -> TensorValue:
    """What an overload gives whose only result has the type of this op's."""
    return torch_value(builder, target, builder.element(), **arguments)


# Elements


@legalizes("one_hot")
def legalize_one_hot(builder: Pt2Legalizer) -> Results:
    """A new last dimension of classes; -1 of them are as many as the numbers need."""
    x = builder.value().cast(i64)
    count = builder.expr("num_classes")
    if count == -1:
        largest = x.reshape([product(x.dims)]).reduce("max", [0])
        count = size_of(builder, (largest + 1).value, "the number of classes")
    return one_hot(x, count, len(x.dims)).cast(i64)


@legalizes("isclose")
def legalize_close(builder: Pt2Legalizer) -> Results:
    """Equal, or finite and no further apart than rtol * other + atol."""
    a, b = builder.value(), builder.value("other")
    bounds = builder.number("rtol"), builder.number("atol")
    return close_to(a, b, *bounds, equal_nan=builder.flag("equal_nan"))


@legalizes("equal", "allclose")
def legalize_equality(builder: Pt2Legalizer) -> Results:
    """Whether all elements are, and the shapes."""
    a, b = builder.value(), builder.value("other")
    if a.dims != b.dims:
        builder.refuse("tensors of different dimensions", "the same")
    if builder.name == "allclose":
        bounds = builder.number("rtol"), builder.number("atol")
        found = close_to(a, b, *bounds, equal_nan=builder.flag("equal_nan"))
    else:
        found = a.eq(b)
    return found.reduce("min", list(range(len(a.dims))))


@legalizes("_addmm_activation", "_add_relu")
def legalize_activated(builder: Pt2Legalizer) -> Results:
    """A sum and its activation."""
    names = [name for name in builder.op.schema.arguments if name != "use_gelu"]
    target = "addmm.default" if builder.name == "_addmm_activation" else "add.Tensor"
    found = _torch(builder, target, **{name: builder.get(name) for name in names})
    if builder.has("use_gelu") and builder.flag("use_gelu"):
        return _torch(builder, "gelu.default", self=found.value)
    return found.maximum(0)


# Windows


@legalizes(*(f"{name}_window" for name in WINDOWS))
def legalize_window(builder: Pt2Legalizer) -> Results:
    """A bell of numbers; a periodic one is the beginning of one that is longer by one."""
    count, name = builder.integer("window_length"), builder.name.removesuffix("_window")
    first, second = ("beta", "beta") if name == "kaiser" else ("alpha", "beta")
    a = builder.number(first) if builder.has(first) else 12.0 if name == "kaiser" else 0.54
    b = builder.number(second) if builder.has(second) else 0.46
    periodic = bool(builder.get("periodic")) if builder.has("periodic") else True
    values = bell(name, count, a, b, periodic=periodic)
    return builder.tensor(values.astype(numpy_dtype(builder.element())))


# Neighbors


def _neighbors(builder: Pt2Legalizer, x: SSAValue, axis: int) -> tuple[TensorValue, TensorValue]:
    if dims_of(x)[axis] == 0:
        return TensorValue.of(builder, x), TensorValue.of(builder, x)
    count = dims_of(x)[axis] - 1
    near, far = (builder.slice_axis(x, axis, k, count) for k in (0, 1))
    return TensorValue.of(builder, near), TensorValue.of(builder, far)


@legalizes("diff")
def legalize_difference(builder: Pt2Legalizer) -> Results:
    """What each element is more than the one before."""
    axis = builder.dim()
    ends = [builder.optional(name) for name in ("prepend", "self", "append")]
    values = [builder.cast(end, builder.element()) for end in ends if end is not None]
    x = concat(builder, values, axis)
    for _ in range(builder.integer("n")):
        near, far = _neighbors(builder, x, axis)
        x = (far.ne(near) if far.element == i1 else far - near).value
    return x


@legalizes("trapezoid", "trapz", "cumulative_trapezoid")
def legalize_trapezoid(builder: Pt2Legalizer) -> Results:
    """The area below points, by trapezoids."""
    y = builder.input("y")
    axis = builder.axis(builder.integer("dim"), rank_of(y))
    near, far = _neighbors(builder, y, axis)
    area = (near + far).cast(builder.element()) * 0.5  # integers are added in their own type
    if builder.has("x"):
        x = builder.value("x")
        lead = [1] * (rank_of(y) - len(x.dims))
        x = x.column(rank_of(y), axis) if len(x.dims) == 1 else x.reshape([*lead, *x.dims])
        before, after = _neighbors(builder, x.value, axis)
        area = area * (after - before).cast(area.element)
    else:
        area = area * builder.number("dx")
    if builder.name == "cumulative_trapezoid":
        return _torch(builder, "cumsum.default", self=area.value, dim=axis)
    return area.reduce("sum", [axis])


# Matrices

_SOLVED = {
    name: solved
    for solved, names in {
        "MatrixInverse": "inverse linalg_inv linalg_inv_ex",
        "MatrixDeterminant": "det linalg_det _linalg_det",
        "LogMatrixDeterminant": "slogdet linalg_slogdet _linalg_slogdet logdet",
        "Cholesky": "cholesky linalg_cholesky linalg_cholesky_ex",
    }.items()
    for name in names.split()
}


@legalizes(*_SOLVED)
def legalize_solved(builder: Pt2Legalizer) -> Results:
    """What elimination gives; that it cannot fail is left to the caller."""
    x = builder.input("self" if builder.has("self") else "A")
    found = applied(builder, _SOLVED[builder.name], x)
    if builder.name == "logdet":
        sign, size = (TensorValue(builder, one) for one in found)
        return sign.lt(0).where(size * math.nan, size)
    if builder.has("upper") and builder.flag("upper"):
        rank = rank_of(x)
        found = [builder.transpose(found[0], [*range(rank - 2), rank - 1, rank - 2])]
    if builder.name.endswith("_ex"):
        found.append(builder.broadcast(builder.scalar(0, builder.element(1)), dims_of(x)[:-2]))
    others = range(len(found), len(builder.op.results))
    if any(map(builder.wants, others)):
        builder.refuse("the factors of a matrix beside its determinant", "that alone")
    return [*found, *(None for _ in others)]


@legalizes("linalg_solve", "linalg_solve_triangular")
def legalize_solve(builder: Pt2Legalizer) -> Results:
    """X of A X = B, or of X A = B."""
    a, b = builder.input("A" if builder.has("A") else "self"), builder.input("B")
    left = builder.flag("left")
    is_vector = builder.name == "linalg_solve" and rank_of(b) < rank_of(a)
    b = builder.unsqueeze(b, [rank_of(b)]) if is_vector else b

    def turned(x: SSAValue) -> SSAValue:
        rank = rank_of(x)
        return x if left else builder.transpose(x, [*range(rank - 2), rank - 1, rank - 2])

    a, b = turned(a), turned(b)
    if builder.name == "linalg_solve":
        batch = broadcast([dims_of(a)[:-2], dims_of(b)[:-2]])
        a, b = (builder.broadcast(v, [*batch, *dims_of(v)[-2:]]) for v in (a, b))
        (found,) = applied(builder, "MatrixSolve", a, b)
    else:
        if builder.flag("unitriangular"):
            builder.refuse("ones on the diagonal that are not there", "unitriangular False")
        lower = builder.flag("upper") != left
        (found,) = applied(builder, "MatrixTriangularSolve", a, b, lower=lower)
    found = turned(found)
    return builder.squeeze(found, [rank_of(found) - 1]) if is_vector else found


@legalizes("cholesky_solve", "cholesky_inverse")
def legalize_cholesky_solve(builder: Pt2Legalizer) -> Results:
    """X of A X = B, or the inverse of A, by its factor."""
    if builder.name == "cholesky_solve":
        b, factor = builder.input(), builder.input("input2")
    else:
        factor = builder.input()
        row = TensorValue.iota(builder, dims_of(factor)[-1])
        b = row.column(2, 0).eq(row.column(2, 1)).cast(element_type(factor)).value
        b = builder.broadcast(b, dims_of(factor))
    upper = builder.flag("upper")
    other = swapped(builder, factor)
    for matrix, is_upper in ((other, False), (factor, True)) if upper else (
        (factor, False), (other, True)
    ):  # fmt: skip
        (b,) = applied(builder, "MatrixTriangularSolve", matrix, b, lower=not is_upper)
    return b


@legalizes("linalg_svdvals")
def legalize_singular_values(builder: Pt2Legalizer) -> Results:
    """In descending order."""
    return singular_values(builder, builder.value("A")).cast(builder.element())


@legalizes("linalg_tensorinv")
def legalize_tensor_inverse(builder: Pt2Legalizer) -> Results:
    """The inverse of the matrix whose rows are the first dimensions."""
    x, ind = builder.input(), builder.integer("ind")
    rows, columns = dims_of(x)[:ind], dims_of(x)[ind:]
    flat = builder.reshape(x, [product(rows), product(columns)])
    (found,) = applied(builder, "MatrixInverse", flat)
    return builder.reshape(found, [*columns, *rows])


@legalizes("combinations")
def legalize_combinations(builder: Pt2Legalizer) -> Results:
    """All choices of several elements, a row for each."""
    x, count = builder.input(), dims_of(builder.input())[0].value
    if count is None:
        builder.refuse("an open number of elements", "a known one")
    make = combinations_with_replacement if builder.flag("with_replacement") else combinations
    chosen = list(make(range(count), builder.integer("r")))
    rows = np.array(chosen, np.int64).reshape(len(chosen), builder.integer("r"))
    return builder.add(GatherOp(x, builder.tensor(rows), 0))


@legalizes("diagflat")
def legalize_diagflat(builder: Pt2Legalizer) -> Results:
    """A matrix with all elements on a diagonal."""
    x = builder.input()
    flat = builder.reshape(x, [product(dims_of(x))])
    return _torch(builder, "diag_embed.default", self=flat, offset=builder.get("offset"))


@legalizes("fill_diagonal")
def legalize_fill_diagonal(builder: Pt2Legalizer) -> Results:
    """A number where all indices are one."""
    x = builder.value()
    on = all_alike(builder, x.dims, wraps=builder.flag("wrap"))
    return on.where(builder.operand("fill_value", x.element), x)


@legalizes("norm_except_dim", "_weight_norm", "_weight_norm_interface")
def legalize_weight_norm(builder: Pt2Legalizer) -> Results:
    """v * g / |v|, the length of all but one dimension; of all for -1."""
    v, axis = builder.value("v"), builder.integer("dim")
    rank = len(v.dims)
    axes = [k for k in range(rank) if axis == -1 or k != builder.axis(axis, rank)]
    order = float(builder.number("pow")) if builder.has("pow") else 2.0
    size = norm(v.abs(), axes, axis != -1, order)
    if builder.name == "norm_except_dim":
        return size
    g = builder.value("g")
    return [(v * (g / size)).value, size.value][: len(builder.op.results)]


@legalizes("norm", "linalg_norm", "linalg_vector_norm", "linalg_matrix_norm", "frobenius_norm")
def legalize_norm(builder: Pt2Legalizer) -> Results:
    """Norms of vectors, and those of matrices that are sums or sizes."""
    x = builder.stated().abs()
    rank, name = len(x.dims), "p" if builder.has("p") else "ord" if builder.has("ord") else ""
    order = builder.get(name) if name else None
    order = order if order is None or isinstance(order, str) else builder.number(name)
    axes = builder.axes_of("dim", rank) if builder.has("dim") else list(range(rank))
    keep = builder.has("keepdim") and builder.flag("keepdim")
    is_matrix = builder.name == "linalg_matrix_norm" or (
        builder.name == "linalg_norm" and order is not None and len(axes) == 2
    )
    if not is_matrix or order == "fro":
        return norm(x, axes, keep, 2.0 if order in (None, "fro") else float(order))
    return matrix_norm(builder, builder.stated(), axes, order, keep)


@legalizes("pdist", "_pdist_forward")
def legalize_all_distances(builder: Pt2Legalizer) -> Results:
    """Norms of the differences of all pairs of rows."""
    x = builder.input()
    if (count := dims_of(x)[0].value) is None:
        builder.refuse("an open number of rows", "a known one")
    places = np.array(list(combinations(range(count), 2)), np.int64).reshape(-1, 2)
    a, b = (
        TensorValue(builder, builder.add(GatherOp(x, builder.tensor(places[:, k]), 0)))
        for k in (0, 1)
    )
    return norm((a - b).abs(), [1], False, float(builder.number("p")))


@legalizes("renorm")
def legalize_renorm(builder: Pt2Legalizer) -> Results:
    """Parts along a dimension whose norm is larger than allowed are shortened."""
    x, axis = builder.value(), builder.dim()
    axes = [k for k in range(len(x.dims)) if k != axis]
    size = norm(x.abs(), axes, True, float(builder.number("p")))
    most = float(builder.number("maxnorm"))
    return size.gt(most).where(x * (most / (size + 1e-7)), x)


@legalizes("linalg_vander", "vander")
def legalize_vander(builder: Pt2Legalizer) -> Results:
    """Powers of numbers."""
    x = builder.stated(builder.op.schema.arguments["x"].name)
    count = builder.get("N")
    number = TensorValue.iota(builder, x.dims[-1] if count is None else builder.expr("N"))
    if builder.name == "vander" and not builder.flag("increasing"):
        number = TensorValue.dim(builder, number.dims[0] - 1) - number
    wide = builder.unsqueeze(x.value, [len(x.dims)])
    power = number.cast(x.element).value
    return _torch(builder, "pow.Tensor_Tensor", self=wide, exponent=power)


@legalizes("linalg_vecdot", "vdot")
def legalize_vecdot(builder: Pt2Legalizer) -> Results:
    """Products along a dimension, added up."""
    names = ("x", "y") if builder.has("x") else ("self", "other")
    element = wide_type(builder.element())
    found = builder.operand(names[0], element) * builder.operand(names[1], element)
    axis = builder.integer("dim") if builder.has("dim") else 0
    return found.reduce("sum", [builder.axis(axis, len(found.dims))]).cast(builder.element())


@legalizes("cov", "corrcoef")
def legalize_covariance(builder: Pt2Legalizer) -> Results:
    """How much rows vary together."""
    for name in ("fweights", "aweights"):
        if builder.has(name) and builder.get(name) is not None:
            builder.refuse(f"'{name}'", "none")
    x = builder.floating().value
    x = builder.unsqueeze(x, list(range(2 - rank_of(x))))
    if builder.name == "corrcoef":
        found = correlations(builder, x)
    else:
        found = covariance(builder, x, float(builder.number("correction")))[0]
    return builder.reshape(found.value, []) if rank_of(builder.input()) < 2 else found.value


@legalizes("affine_grid_generator")
def legalize_affine_grid(builder: Pt2Legalizer) -> Results:
    """The places of a grid of -1 to 1, moved by matrices."""
    corners = builder.flag("align_corners")
    return affine_grid(builder, builder.value("theta"), builder.exprs_of("size"), corners)


# Counting


@legalizes("bincount")
def legalize_bincount(builder: Pt2Legalizer) -> Results:
    """How often each number occurs, or the sum of its weights."""
    x = builder.value().cast(i64)
    least = TensorValue.dim(builder, builder.expr("minlength"))
    edge = builder.tensor(np.array([-1], np.int64))
    largest = TensorValue(builder, concat(builder, [x.value, edge], 0)).reduce("max", [0]) + 1
    count = size_of(builder, largest.maximum(least).value, "the number of bins")
    if builder.optional("weights") is None:
        values = builder.broadcast(builder.scalar(1, builder.element()), x.dims)
    else:
        values = builder.cast(builder.input("weights"), builder.element())
    return counted(builder, x.value, values, count)


@legalizes("histc")
def legalize_histogram(builder: Pt2Legalizer) -> Results:
    """How many elements lie in each of equal intervals."""
    x = builder.floating()
    x = x.reshape([product(x.dims)])
    bins = builder.integer("bins")
    low, high = (builder.operand(name, x.element) for name in ("min", "max"))
    if low.array is not None and high.array is not None and low.array == high.array:
        low, high = x.reduce("min", [0]), x.reduce("max", [0])
        same = low.eq(high)
        low, high = same.where(low - 1.0, low), same.where(high + 1.0, high)
    return histogram(x, low, high, bins)


@legalizes("_unique", "_unique2", "unique_dim")
def legalize_unique(builder: Pt2Legalizer) -> Results:
    """The different elements, or parts, in order; where each is among them; how many they are."""
    x, axis = builder.value(), 0
    dims = x.dims
    if builder.has("dim"):
        axis = builder.dim()
        dims = (x.dims[axis],)
    else:
        x = x.reshape([product(dims)])
    values, _, places, counts = unique(builder, x, axis, True, merges_nan=False)
    return [values, builder.reshape(places, dims), counts][: len(builder.op.results)]


@legalizes("unique_consecutive")
def legalize_unique_consecutive(builder: Pt2Legalizer) -> Results:
    """The first of each row of equal elements, where each row is, and how long."""
    if builder.get("dim") is not None:
        builder.refuse("'dim'", "none")
    x = builder.input()
    values, places, counts = runs(builder, builder.reshape(x, [product(dims_of(x))]))
    return [values, builder.reshape(places, dims_of(x)), counts]


# Movement


@legalizes("column_stack")
def legalize_column_stack(builder: Pt2Legalizer) -> Results:
    """Vectors as columns beside each other."""
    values = [
        builder.reshape(value, [product(dims_of(value)), 1]) if rank_of(value) < 2 else value
        for value in builder.inputs("tensors")
    ]
    return concat(builder, [builder.cast(value, builder.element()) for value in values], 1)


@legalizes("hsplit.int", "vsplit.int", "dsplit.int", "hsplit.array", "vsplit.array", "dsplit.array")
def legalize_split_along(builder: Pt2Legalizer) -> Results:
    """Parts along the second, first or third dimension."""
    x = builder.input()
    axis = {"h": min(1, rank_of(x) - 1), "v": 0, "d": 2}[builder.name[0]]
    key = "sections" if builder.has("sections") else "indices"
    target = "tensor_split.sections" if key == "sections" else "tensor_split.indices"
    given = {"self": x, "dim": axis, key: builder.get(key)}
    return aten(builder, target, [element_type(x)] * len(builder.op.results), **given)


@legalizes("rot90")
def legalize_rot90(builder: Pt2Legalizer) -> Results:
    """Quarter turns of a plane."""
    x = builder.input()
    axes = builder.axes(builder.ints_of("dims"), rank_of(x))
    if len(axes) != 2:
        builder.refuse(f"a plane of {len(axes)} dimensions", "two")
    first, second = axes
    turns = builder.integer("k") % 4
    flipped = {1: [second], 2: [first, second], 3: [first]}.get(turns, [])
    if flipped:
        x = _torch(builder, "flip.default", self=x, dims=flipped).value
    order = list(range(rank_of(x)))
    if turns % 2:
        order[first], order[second] = second, first
    return builder.transpose(x, order)


# Attention


@legalizes("_native_multi_head_attention")
def legalize_native_attention(builder: Pt2Legalizer) -> Results:
    """Projections in one matrix, attention by heads, and a projection; the weights of values."""
    x, key, value = (builder.input(name) for name in ("query", "key", "value"))
    found, shares = _attention(builder, (x, key, value), builder.integer("num_head"))
    if not builder.flag("need_weights"):
        return [found, None]
    return [found, mean(builder, shares, [1]) if builder.flag("average_attn_weights") else shares]


def _linear(builder: Pt2Legalizer, x: SSAValue, weight: SSAValue, bias: SSAValue) -> SSAValue:
    return _torch(builder, "linear.default", input=x, weight=weight, bias=bias).value


def _attention(
    builder: Pt2Legalizer, inputs: tuple[SSAValue, SSAValue, SSAValue], heads: int
) -> tuple[SSAValue, SSAValue]:
    """What attention gives, and the weights of values: NaN where all keys are hidden."""
    weight, bias, out, out_bias = (
        builder.input(name) for name in ("qkv_weight", "qkv_bias", "proj_weight", "proj_bias")
    )
    width = builder.integer("embed_dim")
    parts: list[SSAValue] = []
    for k, x in enumerate(inputs):
        rows = builder.slice_axis(weight, 0, width * k, width)
        shift = builder.slice_axis(bias, 0, width * k, width)
        y = _linear(builder, x, rows, shift)
        y = builder.reshape(y, [*dims_of(x)[:2], heads, width // heads])
        parts.append(builder.transpose(y, [0, 2, 1, 3]))
    scale = math.sqrt(width / heads)
    scores = TensorValue(builder, matmul(builder, parts[0], swapped(builder, parts[1]))) / scale
    if (mask := builder.optional("mask")) is not None:
        mask = builder.unsqueeze(mask, [1, 2]) if builder.get("mask_type") == 1 else mask
        hidden = TensorValue.of(builder, mask).ne(0)
        scores = hidden.where(builder.known(-math.inf, scores.element), scores)
    shares = builder.add(SoftmaxOp(scores.value, 3))
    found = builder.transpose(matmul(builder, shares, parts[2]), [0, 2, 1, 3])
    return _linear(builder, builder.reshape(found, dims_of(inputs[0])), out, out_bias), shares


@legalizes("_transformer_encoder_layer_fwd")
def legalize_encoder_layer(builder: Pt2Legalizer) -> Results:
    """Attention and two linear layers, each added to its input and normalized."""
    x = builder.input("src")
    before = builder.flag("norm_first")

    def normalized(x: SSAValue, number: int) -> SSAValue:
        scale, shift = (builder.input(f"norm_{name}_{number}") for name in ("weight", "bias"))
        return _torch(
            builder, "layer_norm.default", input=x, normalized_shape=[dims_of(x)[-1].value],
            weight=scale, bias=shift, eps=builder.number("eps"),
        ).value  # fmt: skip

    def fed(x: SSAValue) -> SSAValue:
        y = _linear(builder, x, builder.input("ffn_weight_1"), builder.input("ffn_bias_1"))
        name = "gelu.default" if builder.flag("use_gelu") else "relu.default"
        y = _torch(builder, name, self=y).value
        return _linear(builder, y, builder.input("ffn_weight_2"), builder.input("ffn_bias_2"))

    def attended(x: SSAValue) -> SSAValue:
        return _attention(builder, (x, x, x), builder.integer("num_heads"))[0]

    for number, part in ((1, attended), (2, fed)):
        y = TensorValue(builder, part(normalized(x, number) if before else x))
        x = (TensorValue(builder, x) + y).value
        x = x if before else normalized(x, number)
    return x
