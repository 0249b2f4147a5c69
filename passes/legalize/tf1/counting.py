"""How often numbers occur."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import dims_of, f64, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.scatter import combined


@legalizes("Bincount")
def legalize_bincount(builder: Tf1Legalizer) -> Results:
    """The number, or the weights, of each of 0 .. size - 1; larger numbers are dropped."""
    x = builder.operand("arr")
    size = size_of(builder, builder.operand("size"), "the number of bins")
    x = builder.reshape(x, [product(dims_of(x))])
    return [_bins(builder, x, size, builder.result_element(), is_binary=False)]


@legalizes("DenseBincount")
def legalize_dense_bincount(builder: Tf1Legalizer) -> Results:
    """Of a vector, or of each row of a matrix; 1 for what occurs if `binary_output`."""
    x = builder.operand("input")
    size = size_of(builder, builder.operand("size"), "the number of bins")
    element, is_binary = builder.result_element(), builder.attrs.flag("binary_output")
    if rank_of(x) == 1:
        return [_bins(builder, x, size, element, is_binary=is_binary)]
    rows, columns = dims_of(x)
    numbers = TensorValue.of(builder, x).cast(i64)
    size_ = TensorValue.dim(builder, size)
    # The bins of row r begin at r * size.
    first = TensorValue.iota(builder, rows).column(2, 0) * size_
    inside = numbers.ge(0) & numbers.lt(size_)
    places = inside.where(numbers + first, -1).reshape([rows * columns])
    found = _bins(builder, places.value, rows * size, element, is_binary=is_binary)
    return [builder.reshape(found, [rows, size])]


def _bins(
    builder: Tf1Legalizer, x: SSAValue, size: Expr, element: Attribute, *, is_binary: bool
) -> SSAValue:
    """The bins of a vector; negative numbers are in none."""
    numbers = TensorValue.of(builder, x).cast(i64)
    numbers = numbers.lt(TensorValue.dim(builder, size)).where(numbers, -1)
    weights = builder.operand("weights")
    # Weights of unknown number are as many as there are numbers, which is checked at run time.
    if product(dims_of(weights)) == 0 or is_binary:
        weights = builder.broadcast(builder.scalar(1, element), dims_of(x))
    weights = builder.reshape(weights, dims_of(x))
    bins = combined(builder, "add", weights, numbers.value, size)
    return TensorValue(builder, bins).minimum(1).value if is_binary else bins


@legalizes("HistogramFixedWidth")
def legalize_histogram(builder: Tf1Legalizer) -> Results:
    """The numbers of values in parts of a range; those outside are in the first or last part."""
    x = TensorValue(builder, number(builder, "values"))
    bounds = TensorValue.of(builder, builder.operand("value_range"))
    low, high = bounds.pick(0, 0), bounds.pick(0, 1)
    size = size_of(builder, builder.operand("nbins"), "the number of parts")
    count = TensorValue.dim(builder, size)
    step = (high - low).cast(f64) / count.cast(f64)
    places = ((x.maximum(low) - low).cast(f64) / step).minimum((count - 1).cast(f64)).cast(i64)
    places = places.reshape([product(x.dims)])
    ones = builder.broadcast(builder.scalar(1, builder.result_element()), places.dims)
    return [combined(builder, "add", ones, places.value, size)]
