"""Windows of convolutions and pools: from `auto_pad` and `ceil_mode` to explicit padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowerdeck.dialects.dims import Expr, constants, maximum, minimum
from lowerdeck.passes.legalize.onnx.legalizer import Legalizer

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True)
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


def read_kernel(lower: Legalizer, kernel: Sequence[Expr]) -> tuple[Expr, ...]:
    """The kernel's sizes from its weights; refused if `kernel_shape` contradicts them."""
    given = lower.attrs.opt_ints("kernel_shape")
    found = constants(kernel)
    if given is not None and found is not None and tuple(given) != found:
        lower.refuse(f"kernel_shape {given} for weights of {list(found)}", "the same sizes")
    return tuple(kernel) if given is None else tuple(map(Expr.const, given))


def read_list(lower: Legalizer, name: str, default: int, count: int) -> list[int]:
    """An attribute with one entry a spatial dimension."""
    values = lower.attrs.opt_ints(name)
    if values is None:
        return [default] * count
    if len(values) != count:
        lower.refuse(f"{len(values)} {name}", str(count))
    return values


def read_window(
    lower: Legalizer, dims: Sequence[Expr], kernel: Sequence[Expr], *, has_dilations: bool = True
) -> Window:
    """The window that a node's attributes describe over spatial dimensions `dims`."""
    count = len(dims)
    if len(kernel) != count:
        lower.refuse(f"a kernel of {len(kernel)} dimensions over {count}", "the same number")
    strides = read_list(lower, "strides", 1, count)
    dilations = read_list(lower, "dilations", 1, count) if has_dilations else [1] * count
    begin, end = read_pads(lower, count)
    window = Window(tuple(kernel), strides, dilations, begin, end, [Expr.const(0)] * count)
    auto_pad = lower.attrs.string("auto_pad", among=AUTO_PADS)
    if auto_pad in ("NOTSET", "VALID"):
        if auto_pad == "VALID" and not window.is_whole:
            lower.refuse("pads together with auto_pad VALID", "one of them")
        return window
    return _same(window, dims, upper=auto_pad == "SAME_UPPER")


def read_pads(lower: Legalizer, count: int) -> tuple[list[Expr], list[Expr]]:
    """The attribute `pads`: all begins, then all ends."""
    pads = lower.attrs.opt_ints("pads") or [0] * (2 * count)
    if len(pads) != 2 * count:
        lower.refuse(f"{len(pads)} pads", str(2 * count))
    if min(pads, default=0) < 0:
        lower.refuse(f"pads {pads}", "none negative", "slice the input instead")
    amounts = [Expr.const(pad) for pad in pads]
    return amounts[:count], amounts[count:]


def _same(window: Window, dims: Sequence[Expr], *, upper: bool) -> Window:
    """As much padding as ceil(dim / stride) windows need; an odd one goes to the end if `upper`."""
    begin: list[Expr] = []
    end: list[Expr] = []
    for dim, extent, stride in zip(dims, window.extents, window.strides, strict=True):
        total = ((dim + stride - 1) // stride - 1) * stride + extent - dim
        # It is at least extent - stride; without `max` the result's size is ceil(dim / stride).
        least = (extent - stride).value
        total = total if least is not None and least >= 0 else maximum(total, 0)
        less, more = total // 2, total - total // 2
        begin.append(less if upper else more)
        end.append(more if upper else less)
    return Window(window.kernel, window.strides, window.dilations, begin, end, window.overhang)


def round_up(window: Window, dims: Sequence[Expr]) -> Window:
    """
    The window of `ceil_mode`: a last window may hang over the end of the padded input, unless it
    starts behind the input and its padding at the beginning.
    """
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
