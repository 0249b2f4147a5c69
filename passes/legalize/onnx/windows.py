"""Windows of convolutions and pools as attributes give them."""

from __future__ import annotations

from collections.abc import Sequence

from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.passes.legalize.common.windows import Window, same
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def read_kernel(builder: OnnxLegalizer, kernel: Sequence[Expr]) -> tuple[Expr, ...]:
    """The kernel's sizes from its weights; refused if `kernel_shape` contradicts them."""
    given = builder.attrs.opt_ints("kernel_shape")
    found = constants(kernel)
    if given is not None and found is not None and tuple(given) != found:
        builder.refuse(f"kernel_shape {given} for weights of {list(found)}", "the same sizes")
    return tuple(kernel) if given is None else tuple(map(Expr.const, given))


def read_list(builder: OnnxLegalizer, name: str, default: int, count: int) -> list[int]:
    """An attribute with one entry from `default` on for each spatial dimension."""
    values = builder.attrs.opt_ints(name)
    if values is None:
        return [default] * count
    if len(values) != count:
        builder.refuse(f"{len(values)} {name}", str(count))
    if min(values, default=default) < default:
        builder.refuse(f"{name} {values}", f"numbers from {default} on")
    return values


def read_window(
    builder: OnnxLegalizer,
    dims: Sequence[Expr],
    kernel: Sequence[Expr],
    *,
    has_dilations: bool = True,
) -> Window:
    """The window that a node's attributes describe over spatial dimensions `dims`."""
    count = len(dims)
    if len(kernel) != count:
        builder.refuse(f"a kernel of {len(kernel)} dimensions over {count}", "the same number")
    strides = read_list(builder, "strides", 1, count)
    dilations = read_list(builder, "dilations", 1, count) if has_dilations else [1] * count
    begin, end = read_pads(builder, count)
    window = Window(tuple(kernel), strides, dilations, begin, end, [Expr.const(0)] * count)
    auto_pad = builder.attrs.string("auto_pad", among=AUTO_PADS)
    if auto_pad in ("NOTSET", "VALID"):
        if auto_pad == "VALID" and not window.is_whole:
            builder.refuse("pads together with auto_pad VALID", "one of them")
        return window
    return same(window, dims, upper=auto_pad == "SAME_UPPER")


def read_pads(builder: OnnxLegalizer, count: int) -> tuple[list[Expr], list[Expr]]:
    """The attribute `pads`: all begins, then all ends."""
    begin, end = read_numbers(builder, count)
    return [Expr.const(pad) for pad in begin], [Expr.const(pad) for pad in end]


def read_numbers(builder: OnnxLegalizer, count: int) -> tuple[list[int], list[int]]:
    """The same as numbers."""
    pads = builder.attrs.opt_ints("pads") or [0] * (2 * count)
    if len(pads) != 2 * count:
        builder.refuse(f"{len(pads)} pads", str(2 * count))
    if min(pads, default=0) < 0:
        builder.refuse(f"pads {pads}", "none negative", "slice the input instead")
    return pads[:count], pads[count:]
