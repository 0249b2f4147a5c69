"""Which part of its input a convolution or pool needs for a part of its windows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.base import int_array
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, window_sizes
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import DimsAttr, dims_of
from lowerdeck.dialects.dims import Expr, constants, maximum, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.movement.ranges import Crop, Range, Ranges, are_whole, needed


@record
class _Windows:
    """The windows of one dimension."""

    dim: Expr
    kernel: Expr
    stride: int
    dilation: int
    begin: Expr
    end: Expr

    def count(self) -> Expr:
        lists = ([self.dim], [self.kernel], [self.stride], [self.dilation])
        return window_sizes(*lists, [self.begin], [self.end])[0]


@record
class _Cut:
    """What is left of the windows of one dimension."""

    input: Range
    stride: int
    begin: Expr
    end: Expr


def _cut(windows: _Windows, part: Range) -> _Cut | None:
    """The windows of a part, on as little of the input as they read."""
    dim, stride = windows.dim, windows.stride
    if part.is_whole(windows.count()):
        return _Cut(Range.of(0, dim), stride, windows.begin, windows.end)
    step = part.step.value
    if step is None or step < 1:
        return None
    stride *= step
    if part.start == 0:
        # Of every second window and so on, what is at the end may not even have to be cut off.
        whole = _Windows(dim, windows.kernel, stride, windows.dilation, windows.begin, windows.end)
        if whole.count() == part.size:
            return _Cut(Range.of(0, dim), stride, windows.begin, windows.end)
    numbers = constants((dim, windows.kernel, windows.begin, part.start, part.size))
    if numbers is None:
        return _open_cut(windows, part, stride)
    length, kernel, begin, start, count = numbers
    extent = (kernel - 1) * windows.dilation + 1
    first = start * windows.stride - begin
    last = first + (count - 1) * stride + extent - 1
    low, high = max(first, 0), min(last, length - 1)
    if high < low:
        return None
    if high < length - 1 and length - 1 - last < stride:
        # No other window fits into the rest: it may stay.
        high = length - 1
    ends = (Expr.const(low - first), Expr.const(max(last - high, 0)))
    return _Cut(Range.of(low, high - low + 1), stride, *ends)


def _open_cut(windows: _Windows, part: Range, stride: int) -> _Cut | None:
    """The same where the dimension is no number, but what is cut off is."""
    numbers = constants((windows.kernel, windows.begin, windows.end, part.start))
    if numbers is None:
        return None
    kernel, begin, end, start = numbers
    extent = (kernel - 1) * windows.dilation + 1
    first = windows.stride * start - begin
    low = max(first, 0)
    begin = low - first
    rest = (windows.count() - start - part.size).value
    if part.step == 1 and rest is not None and rest > 0:
        if rest * stride >= end:
            # The last window ends inside. The input of no windows is not smaller than nothing.
            left = (part.size - 1) * stride + extent - begin
            cut = _Cut(Range.of(low, left), stride, Expr.const(begin), Expr.const(0))
            return cut if begin + stride <= extent else None
        end -= rest * stride
    if low > 0 and begin + end + stride > extent:
        return None
    ends = (Expr.const(begin), Expr.const(end))
    left = windows.dim - low
    fits = _Windows(left, windows.kernel, stride, windows.dilation, *ends).count() == part.size
    return _Cut(Range.of(low, left), stride, *ends) if fits else None


def _cuts(op: ConvOp | PoolOp, kernel: Sequence[Expr], parts: Ranges) -> list[_Cut] | None:
    lists = (
        dims_of(op.input)[2:],
        kernel,
        ints(op.strides),
        ints(op.dilations),
        op.pads_begin.data,
        op.pads_end.data,
    )
    cuts = [_cut(_Windows(*values), part) for *values, part in zip(*lists, parts[2:], strict=True)]
    found = [cut for cut in cuts if cut is not None]
    return found if len(found) == len(cuts) else None


def _properties(cuts: Sequence[_Cut]) -> dict[str, Attribute]:
    return {
        "strides": int_array([cut.stride for cut in cuts]),
        "pads_begin": DimsAttr.of([cut.begin for cut in cuts]),
        "pads_end": DimsAttr.of([cut.end for cut in cuts]),
    }


def cropped_pool(op: PoolOp, parts: Ranges) -> Crop | None:
    """A part of the windows, channels and images of a pool."""
    if (cuts := _cuts(op, op.kernel.data, parts)) is None:
        return None
    properties = _properties(cuts)
    lists = zip(cuts, op.pads_end.data, op.overhang.data, strict=True)
    # The padding that counts stays where it is; what lies beyond it does not count.
    overhang = [maximum(cut.end - (end - over), 0) for cut, end, over in lists]
    properties["overhang"] = DimsAttr.of(overhang)
    return Crop([needed(op.input, [*parts[:2], *(cut.input for cut in cuts)])], properties)


def cropped_conv(op: ConvOp, parts: Ranges) -> Crop | None:
    """A part of the windows, output channels and images of a convolution."""
    weight = dims_of(op.weight)
    cuts = _cuts(op, weight[2:], parts)
    if cuts is None or not _keeps_zero_points(op, parts):
        return None
    channels = _channels(op, parts[1])
    if channels is None:
        return None
    source, groups = channels
    properties = {**_properties(cuts), "groups": IntAttr(groups)}
    rows = [parts[1], *(Range.of(0, dim) for dim in weight[1:])]
    operands = [
        needed(op.input, [parts[0], source, *(cut.input for cut in cuts)]),
        needed(op.weight, rows),
    ]
    if op.bias is not None:
        operands.append(needed(op.bias, [parts[1]]))
    operands += [(zero, None) for zero in op.zero_points]
    return Crop(operands, properties)


def _keeps_zero_points(op: ConvOp, parts: Ranges) -> bool:
    """False if the zero points would have to be cut, too."""
    if not op.zero_points:
        return True
    input, weight = op.zero_points
    if product(dims_of(input)) != 1:
        return False
    return product(dims_of(weight)) == 1 or parts[1].is_whole(dims_of(op.result)[1])


def _channels(op: ConvOp, part: Range) -> tuple[Range, int] | None:
    """The input channels that a part of the output channels needs, and in how many groups."""
    inputs, groups = dims_of(op.input)[1], op.groups.data
    outputs = dims_of(op.weight)[0]
    if groups == 1 or part.is_whole(outputs):
        return Range.of(0, inputs), groups
    numbers, sizes = part.numbers, constants((outputs, dims_of(op.weight)[1]))
    if numbers is None or sizes is None:
        return None
    (start, size, step), (made, read) = numbers, (sizes[0] // groups, sizes[1])
    if made == read == 1:
        return Range.of(start, size, step), size
    if step != 1 or start % made or size % made:
        return None
    return Range.of(start // made * read, size // made * read), size // made


def cropped_conv_transpose(op: ConvTransposeOp, parts: Ranges) -> Crop | None:
    """Adjacent rows and columns of a transposed convolution, as if there were more padding."""
    result = dims_of(op.result)
    if not are_whole([parts[1]], [result[1]]) or any(part.step != 1 for part in parts[2:]):
        return None
    lists = zip(parts[2:], result[2:], op.pads_begin.data, op.pads_end.data, strict=True)
    begin: list[Expr] = []
    end: list[Expr] = []
    for part, dim, before, after in lists:
        rest = dim - part.size - part.start
        if part.start.value is None or rest.value is None:
            return None
        begin.append(before + part.start)
        end.append(after + rest)
    operands: list[tuple[SSAValue, Ranges | None]] = [
        needed(op.input, [parts[0], *(Range.of(0, dim) for dim in dims_of(op.input)[1:])]),
        *((value, None) for value in op.operands[1:]),
    ]
    return Crop(operands, {"pads_begin": DimsAttr.of(begin), "pads_end": DimsAttr.of(end)})
