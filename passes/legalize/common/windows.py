"""Windows of convolutions and pools with explicit padding: of SAME, and rounded up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.legalizer import refuse


@record
class Window:
    """A window over the spatial dimensions, with one entry each."""

    kernel: tuple[Expr, ...]
    strides: list[int]
    dilations: list[int]
    begin: list[Expr]
    end: list[Expr]
    overhang: list[Expr]
    """How much of `end` only makes room for a last window (`ceil_mode`)."""

    @property
    def extents(self) -> list[Expr]:
        """The number of elements from the first to the last that a window touches."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def is_whole(self) -> bool:
        """True if nothing is padded."""
        return all(pad == 0 for pad in (*self.begin, *self.end))


def _require_fit(window: Window, dims: Sequence[Expr]) -> None:
    """Refuse a window of another number of dimensions."""
    parts = (window.kernel, window.strides, window.dilations, window.begin, window.end)
    if counts := {len(part) for part in parts} - {len(dims)}:
        refuse(
            f"a window with {min(counts)} numbers", f"as many of each as dimensions, {len(dims)}"
        )


def same(window: Window, dims: Sequence[Expr], *, upper: bool) -> Window:
    """As much padding as ceil(dim / stride) windows need; an odd one goes to the end if `upper`."""
    begin: list[Expr] = []
    end: list[Expr] = []
    for total in _missing(window, dims):
        less, more = total // 2, total - total // 2
        begin.append(less if upper else more)
        end.append(more if upper else less)
    return Window(window.kernel, window.strides, window.dilations, begin, end, window.overhang)


def surplus(window: Window, dims: Sequence[Expr], *, upper: bool) -> list[Expr]:
    """
    How many elements stand before the first window of SAME where it needs fewer than there are:
    half of those, less one if not `upper`, as if the padding were negative.

    That is how onnxruntime and onnx's reference place the windows of pools, but not those of
    convolutions.
    """
    totals = _missing(window, dims, signed=True)
    return [(maximum(-total, 0) if upper else maximum(-total - 1, 0)) // 2 for total in totals]


def _missing(window: Window, dims: Sequence[Expr], *, signed: bool = False) -> Iterator[Expr]:
    """How many elements ceil(dim / stride) windows touch beyond those of each dimension."""
    _require_fit(window, dims)
    for dim, extent, stride in zip(dims, window.extents, window.strides, strict=True):
        total = ((dim + stride - 1) // stride - 1) * stride + extent - dim
        # It is at least extent - stride; without `max` the result's size is ceil(dim / stride).
        least = (extent - stride).value
        if least is not None and least >= 0:
            yield total
        elif extent == 1 and not signed:
            # The last window begins inside.
            yield Expr.const(0)
        else:
            yield total if signed else maximum(total, 0)


def round_up(window: Window, dims: Sequence[Expr]) -> Window:
    """
    The window of `ceil_mode`: a last window may hang over the end of the padded input, unless it
    starts behind the input and its padding at the beginning.
    """
    _require_fit(window, dims)
    ends: list[Expr] = []
    overhangs: list[Expr] = []
    for dim, extent, stride, begin, end in zip(
        dims, window.extents, window.strides, window.begin, window.end, strict=True
    ):
        count = (dim + begin + end - extent + stride - 1) // stride + 1
        slack = (extent - end - stride).value
        if slack is not None and slack >= 0:
            # No window starts in the padding: the last one ends at or behind it.
            ends.append((count - 1) * stride + extent - dim - begin)
            overhangs.append(ends[-1] - end)
            continue
        count = minimum(count, (dim + begin - 1) // stride + 1)
        exact = (count - 1) * stride + extent - dim - begin
        overhangs.append(maximum(exact - end, 0))
        ends.append(_fitting(exact, end, stride))
    return Window(window.kernel, window.strides, window.dilations, window.begin, ends, overhangs)


def _fitting(exact: Expr, end: Expr, stride: int) -> Expr:
    """Padding with which exactly the windows that end `exact` behind the input fit."""
    if exact.value is None or end.value is None:
        return maximum(exact, end)
    is_one_more = end.value - exact.value >= stride
    return Expr.const(max(exact.value, 0) if is_one_more else max(exact.value, end.value))


def with_a_place(window: Window, dims: Sequence[Expr]) -> Window:
    """
    A window that is wider than the image by less than a stride has one place, where it hangs over
    the end: PaddlePaddle's division cuts off.
    """
    _require_fit(window, dims)
    missing = [
        extent - dim - first - last
        for extent, dim, first, last in zip(
            window.extents, dims, window.begin, window.end, strict=True
        )
    ]
    over = [
        size if size.value is not None and 0 < size.value < stride else Expr.const(0)
        for size, stride in zip(missing, window.strides, strict=True)
    ]
    ends = [last + more for last, more in zip(window.end, over, strict=True)]
    return replace(window, end=ends, overhang=over)


def hanging(window: Window, dims: Sequence[Expr]) -> list[Expr]:
    """The padding at the end with room for a last window; it must not begin behind the image."""
    ends: list[Expr] = []
    for dim, size, stride, begin, end in zip(
        dims, window.kernel, window.strides, window.begin, window.end, strict=True
    ):
        count = (dim + begin + end - size + stride - 1) // stride + 1
        beyond = ((count - 1) * stride - begin - dim).value
        if beyond is not None and beyond >= 0:
            refuse("a window that begins behind the image", "less padding")
        ends.append((count - 1) * stride + size - dim - begin)
    return ends
