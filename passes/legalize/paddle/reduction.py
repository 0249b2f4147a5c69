"""Reductions, running sums, order, and what is found by comparing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from xdsl.ir import Attribute

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i32, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.functions import truth
from lowerdeck.passes.legalize.common.generators import diagonals
from lowerdeck.passes.legalize.common.order import kth, middle, most_frequent, ordered
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.unique import unique
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

_KINDS = {"max": "max", "amax": "max", "min": "min", "amin": "min"}


@legalizes("sum", "mean", "prod", "nansum", *_KINDS)
def legalize_reduction(builder: PaddleLegalizer) -> Results:
    """Elements along axes combined; half precision is added up in f32."""
    x = builder.input("x")
    axes, keep = builder.reduced(x), builder.flag("keepdim")
    if (kind := _KINDS.get(builder.name)) is not None:
        return builder.reduce(kind, x, axes, keep)
    dtype = builder.get("dtype") if builder.has("dtype") else None
    x = builder.cast(x, dtype if isinstance(dtype, Attribute) else builder.kept(x))
    if builder.name == "mean":
        return mean(builder, x, axes, keep)
    wide = TensorValue.of(builder, builder.cast(x, wide_element(x)))
    if builder.name == "nansum":
        wide = wide.eq(wide).where(wide, 0)
    kind = "prod" if builder.name == "prod" else "sum"
    return builder.cast(wide.reduce(kind, axes, keep).value, x)


_WHOLE: Mapping[str, Callable[[TensorValue, list[int]], TensorValue]] = {
    "mean_all": lambda x, axes: TensorValue(x.builder, mean(x.builder, x.value, axes)),
    "l1_norm": lambda x, axes: x.abs().reduce("sum", axes),
    "squared_l2_norm": lambda x, axes: (x * x).reduce("sum", axes).reshape([1]),
}


@legalizes(*_WHOLE, "frobenius_norm")
def legalize_whole(builder: PaddleLegalizer) -> Results:
    """Of all elements; the Frobenius norm along axes."""
    x = builder.wide()
    if (function := _WHOLE.get(builder.name)) is not None:
        return builder.narrow(function(x, list(range(len(x.dims)))))
    total = (x * x).reduce("sum", builder.reduced(x.value), builder.flag("keep_dim"))
    return builder.narrow(apply(SqrtOp, total))


@legalizes("all", "any")
def legalize_truth(builder: PaddleLegalizer) -> Results:
    """Whether each element is not zero, or one."""
    x = truth(builder.value("x"))
    kind = "max" if builder.name == "any" else "min"
    return x.reduce(kind, builder.reduced(x.value), builder.flag("keepdim")).value


@legalizes("logsumexp")
def legalize_logsumexp(builder: PaddleLegalizer) -> Results:
    """log(sum(exp(x)))"""
    x = builder.wide()
    given = {"dim": builder.reduced(x.value), "keepdim": builder.flag("keepdim")}
    (found,) = builder.torch("logsumexp.default", x.element, self=x.value, **given)
    return builder.narrow(TensorValue(builder, found))


@legalizes("p_norm", "dist")
def legalize_norm(builder: PaddleLegalizer) -> Results:
    """The p-norm of vectors, or of a difference."""
    if builder.name == "dist":
        a, b = builder.pair("x", "y")
        x, axes, keep = (a - b).abs(), None, False
        order = builder.real("p")
    else:
        x, keep = builder.wide().abs(), builder.flag("keepdim")
        order = builder.real("porder")
        is_all = builder.flag("asvector") or not x.dims
        axes = None if is_all else [builder.along(x.value)]
    axes = list(range(len(x.dims))) if axes is None else axes
    (found,) = builder.torch(
        "linalg_vector_norm.default", x.element, self=x.value, ord=order, dim=axes, keepdim=keep
    )
    return builder.narrow(TensorValue(builder, found))


@legalizes("norm")
def legalize_normalize(builder: PaddleLegalizer) -> Results:
    """x by the norm along an axis, and the norm."""
    x = builder.wide()
    total = (x * x).reduce("sum", [builder.along(x.value)], True) + builder.number("epsilon")
    size = apply(SqrtOp, total)
    norm = builder.cast(size.value, builder.input("x"))
    return builder.results(out=builder.narrow(x / size), norm=norm)


@legalizes("var", "std")
def legalize_variance(builder: PaddleLegalizer) -> Results:
    """The sum of squares by the count less a correction."""
    x, keep = builder.input("x"), builder.flag("keepdim")
    less = builder.real("correction") if builder.flag("unbiased") else 0.0
    given = {"dim": builder.reduced(x), "correction": less, "keepdim": keep}
    return builder.torch(f"{builder.name}.correction", self=x, **given)


@legalizes("reduce_as")
def legalize_reduce_as(builder: PaddleLegalizer) -> Results:
    """The sum along the axes in which a target is smaller."""
    x, target = builder.input("x"), dims_of(builder.input("target"))
    lead = rank_of(x) - len(target)
    axes = list(range(lead))
    axes += [k + lead for k, dim in enumerate(target) if dim == 1 and dims_of(x)[k + lead] != 1]
    found = builder.reduce("sum", builder.cast(x, wide_element(x)), axes)
    return builder.cast(builder.reshape(found, target), x)


# Places


@legalizes("argmax", "argmin")
def legalize_arg(builder: PaddleLegalizer) -> Results:
    """Where the first extremum is, of which NaN is none."""
    x, kind, keep = builder.value("x"), builder.name[3:], builder.flag("keepdims")
    rank = len(x.dims)
    if x.element == i1:
        x = x.cast(i32)
    if is_float(x.element):
        x = x.ne(x).where(builder.known(-math.inf if kind == "max" else math.inf, x.element), x)
    is_flat = builder.flag("flatten") or not rank
    x, axis = (x.reshape([product(x.dims)]), 0) if is_flat else (x, builder.along(x.value))
    if x.dims[axis] == 0:
        builder.refuse("no elements to choose among", "one or more")
    found = builder.add(ArgReduceOp(kind, x.value, axis, keep and not is_flat))
    found = builder.reshape(found, [Expr.const(1)] * rank) if keep and is_flat else found
    return builder.cast(found, builder.dtype())


@legalizes("max_with_index", "min_with_index")
def legalize_with_index(builder: PaddleLegalizer) -> Results:
    """The extremum along a dimension and where it is first."""
    x, target = builder.input("x"), f"{builder.name[:3]}.dim"
    given = {"dim": builder.along(x, "dim"), "keepdim": builder.flag("keepdim")}
    return builder.torch(target, element_type(x), i64, self=x, **given)


@legalizes("topk", "top_k", "argsort", "kthvalue", "mode")
def legalize_order(builder: PaddleLegalizer) -> Results:
    """The first in order, all, one of them, or the most frequent one, and where they were."""
    x = builder.input("x")
    if not rank_of(x):
        return [x, builder.scalar(0, i64)]
    axis = rank_of(x) - 1 if builder.name == "top_k" else builder.along(x)
    match builder.name:
        case "argsort":
            return ordered(builder, x, axis, builder.flag("descending"))
        case "kthvalue":
            return kth(builder, x, axis, builder.expr("k") - 1, builder.flag("keepdim"))
        case "mode":
            return most_frequent(builder, x, axis, builder.flag("keepdim"))
        case _:
            largest = builder.name == "top_k" or builder.flag("largest")
            return ordered(builder, x, axis, largest, builder.expr("k"))


@legalizes("median", "nanmedian")
def legalize_median(builder: PaddleLegalizer) -> Results:
    """The middle one of the order, or the mean of the two."""
    x = builder.value("x")
    axes = builder.reduced(x.value)
    if builder.has_result("medians"):
        builder.refuse("where the median is", "the median's value")
    skips = builder.name == "nanmedian"
    lower = builder.text("mode") == "min"
    found = middle(x, axes, builder.element(), lower=lower, skips=skips).value
    return builder.results(out=found if builder.flag("keepdim") else builder.squeeze(found, axes))


@legalizes("searchsorted")
def legalize_search(builder: PaddleLegalizer) -> Results:
    """How many of the sorted elements are below, or not above; all where it is infinite or NaN."""
    borders, x = builder.pair("sorted_sequence", "values")
    x = x.abs().lt(math.inf).where(x, math.nan) if is_float(x.element) else x
    right = builder.flag("right")
    return builder.torch(
        "searchsorted.Tensor", sorted_sequence=borders.value, right=right, self=x.value
    )


@legalizes("histogram")
def legalize_histogram(builder: PaddleLegalizer) -> Results:
    """How many elements lie in each of equal intervals between two numbers."""
    low, high, bins = (builder.number(name) for name in ("min", "max", "bins"))
    if low == high or builder.flag("density") or builder.optional("weight") is not None:
        builder.refuse("a histogram whose bounds are those of the data", "min and max")
    x = builder.wide("input")
    given = {"bins": int(bins), "min": low, "max": high}
    (found,) = builder.torch("histc.default", x.element, self=x.value, **given)
    return builder.cast(found, builder.element())


@legalizes("unique")
def legalize_unique(builder: PaddleLegalizer) -> Results:
    """The different elements in order, where they are first, their places, and how many each is."""
    x = builder.value("x")
    axes = builder.ints_of("axis") if builder.get("axis") else []
    if axes:
        axis = builder.axis(axes[0], len(x.dims))
    else:
        x, axis = x.reshape([product(x.dims)]), 0
    values, firsts, places, counts = unique(builder, x, axis, True)
    names = ("indices", "inverse", "counts")
    kept = dict(zip(names, (firsts, places, counts), strict=True))
    found = {
        name: builder.cast(value, builder.dtype())
        for name, value in kept.items()
        if builder.places(name)
    }
    return builder.results(out=values, **found)


@legalizes("trace")
def legalize_trace(builder: PaddleLegalizer) -> Results:
    """The sum of a diagonal."""
    x = builder.input("x")
    axes = {f"dim{k}": builder.integer(f"axis{k}") for k in (1, 2)}
    offset = builder.integer("offset")
    (line,) = builder.torch("diagonal.default", element_type(x), self=x, offset=offset, **axes)
    total = builder.reduce("sum", builder.cast(line, wide_element(x)), [rank_of(line) - 1])
    return builder.cast(total, builder.element())


# Running


@legalizes("cumsum", "cumprod", "logcumsumexp")
def legalize_running(builder: PaddleLegalizer) -> Results:
    """Running sums and products, without the element if `exclusive`, from the end if `reverse`."""
    x, dims = builder.input("x"), dims_of(builder.input("x"))
    is_flat = not dims or (builder.has("flatten") and builder.flag("flatten"))
    x = builder.reshape(x, [product(dims_of(x))]) if is_flat else x
    axis = 0 if is_flat else builder.along(x, "dim" if builder.name == "cumprod" else "axis")
    ways = {name: builder.flag(name) for name in ("exclusive", "reverse")}
    if builder.name == "logcumsumexp":
        if any(ways.values()):
            builder.refuse("a logcumsumexp from the end", "from the front")
        (found,) = builder.torch("logcumsumexp.default", element_type(x), self=x, dim=axis)
    else:
        kind = builder.name.removeprefix("cum")
        op = CumulativeOp(kind, builder.cast(x, wide_element(x)), axis, **ways)
        found = builder.cast(builder.add(op), x)
    return found if dims else builder.reshape(found, [])


@legalizes("cummax", "cummin")
def legalize_running_extremum(builder: PaddleLegalizer) -> Results:
    """The extremum so far, and where the last one is."""
    x, target = builder.input("x"), f"{builder.name}.default"
    found, places = builder.torch(target, element_type(x), i64, self=x, dim=builder.along(x))
    return [found, builder.cast(places, builder.element(1))]


# Softmax

_LEAST = -64.0


@legalizes("softmax", "log_softmax")
def legalize_softmax(builder: PaddleLegalizer) -> Results:
    """Along a dimension. A logarithm takes what is far below the largest as no farther than 64."""
    x, is_log = builder.input("x"), builder.name == "log_softmax"
    if not rank_of(x):
        zero = builder.value("x") * 0
        return (zero if is_log else zero + 1).value
    axis = builder.along(x)
    if not is_log:
        return builder.add(SoftmaxOp(x, axis))
    wide = builder.wide()
    rest = (wide - wide.reduce("max", [axis], True)).maximum(_LEAST)
    return builder.narrow(rest - rest.exp().reduce("sum", [axis], True).log())


@legalizes("fused_softmax_mask", "fused_softmax_mask_upper_triangle")
def legalize_masked_softmax(builder: PaddleLegalizer) -> Results:
    """softmax(x + mask); the mask may hide what comes later."""
    if builder.name == "fused_softmax_mask":
        x = builder.wide()
        scores = x + builder.wide("mask")
    else:
        x = builder.wide("X")
        scores = diagonals(builder, x.value).le(0).where(x, -math.inf)
    found = TensorValue(builder, builder.add(SoftmaxOp(scores.value, len(scores.dims) - 1)))
    return builder.narrow(found)
