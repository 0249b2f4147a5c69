"""
Complex numbers, and Fourier transforms: a tensor of them is one of real numbers with their two
parts along a last dimension more.

Only operators that are known to work on them get to see such a tensor (`complex_handler_of`), so
that none takes it for what it looks like.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    f32,
    is_float,
    numpy_dtype,
    rank_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.complex import FUNCTIONS, over, power, squared, times
from lowerdeck.passes.legalize.common.fourier import spectra_of_frames, spectrum, transformed
from lowerdeck.passes.legalize.common.movement import pad, rolled
from lowerdeck.passes.legalize.common.special import angle_of, hypot
from lowerdeck.passes.legalize.common.walk import listed
from lowerdeck.passes.legalize.pt2.applied import aten, torch_value
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Handler, Results
from lowerdeck.passes.legalize.pt2.registry import legalizes as legalizes_real
from lowerdeck.passes.legalize.table import HandlerTable
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.pt2")
"""The legalizations of ops whose operands or results are complex."""

_MAKERS = frozenset(
    "view_as_complex complex polar _fft_c2c _fft_r2c fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 "
    "fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_ihfft stft".split()
)
_TO_REAL = frozenset(
    "view_as_real abs angle real imag _fft_c2r fft_irfft fft_irfft2 fft_irfftn fft_hfft istft "
    "eq ne isnan isfinite sym_size sym_numel".split()
)


def is_complex(builder: Pt2Legalizer) -> bool:
    """True if an operand or a result of the op is complex."""
    values = (*builder.op.operands, *builder.op.results)
    return any(
        value in builder.pairs or isinstance(element_type(value), ComplexType) for value in values
    )


def complex_element(builder: Pt2Legalizer) -> Attribute | None:
    """The type of complex numbers that an op gives for its operands, or None."""
    operands, name = builder.op.operands, builder.name
    if name == "stft" and not builder.flag("return_complex"):
        return None
    if name not in _MAKERS and (name in _TO_REAL or not is_complex(builder)):
        return None
    found = element_type(operands[0]) if operands else f32
    pairs = [value for value in operands if value in builder.pairs]
    found = element_type(pairs[0]) if pairs else found
    return complex_of(_part_of(found) or (found if is_float(found) else f32))


def complex_of(part: Any) -> Attribute:
    """The type of complex numbers whose parts have a type."""
    return ComplexType(cast("AnyFloat", part))


def complex_values(builder: Pt2Legalizer) -> list[SSAValue | None]:
    """What takes the place of the results of an op that works on complex numbers."""
    handler = legalizes.get(builder.name)
    if handler is None:
        text = f"complex numbers in {builder.op.op_type}"
        builder.refuse(text, "real ones", "compute with view_as_real")
    values = listed(handler(builder))
    for value, result in zip(values, builder.op.results, strict=False):
        if value is not None and isinstance(element_type(result), ComplexType):
            builder.pairs.add(value)
    return values


# Parts


def _pair(builder: Pt2Legalizer, value: SSAValue) -> SSAValue:
    """Complex numbers with their parts along a last dimension."""
    if value in builder.pairs:
        return value
    element, owner = element_type(value), value.owner
    if (part := _part_of(element)) is None:
        x = TensorValue(builder, value)
        return _joined(x, TensorValue.number(builder, 0, element))
    if not isinstance(owner, ConstantOp):
        builder.refuse("an input of complex numbers", "view_as_complex of a real one")
    # The bytes of complex numbers are those of their parts, one after the other.
    plain = tensor(part, [*dims_of(value), 2])
    return builder.insert(ConstantOp(owner.value, plain))[0]


def _part_of(element: object) -> Attribute | None:
    """The type of the parts of complex numbers; None for others."""
    found = cast("ComplexType[AnyFloat]", element) if isinstance(element, ComplexType) else None
    return None if found is None else found.element_type


def _is_complex_value(builder: Pt2Legalizer, value: SSAValue) -> bool:
    return value in builder.pairs or isinstance(element_type(value), ComplexType)


def _parts(builder: Pt2Legalizer, name: str = "") -> tuple[TensorValue, TensorValue]:
    """The real and the imaginary part of an operand, or of a number."""
    name = name or ("self" if builder.has("self") else next(iter(builder.op.schema.arguments)))
    value = builder.optional(name)
    if value is None:
        element = _real_element(builder)
        return builder.operand(name, element), builder.known(0, element)
    if not _is_complex_value(builder, value):
        element = _real_element(builder)
        x = TensorValue(builder, builder.cast(value, element))
        return x, TensorValue.number(builder, 0, element)
    x = TensorValue(builder, _pair(builder, value)).cast(_real_element(builder))
    axis = len(x.dims) - 1
    return x.pick(axis, 0), x.pick(axis, 1)


def _real_element(builder: Pt2Legalizer) -> Attribute:
    """The type of the parts of the result, or of the operand."""
    for value in (*builder.op.results, *builder.op.operands):
        element = element_type(value)
        if (part := _part_of(element)) is not None:
            return part
        if value in builder.pairs:
            return element
    return f32


def _joined(real: TensorValue, imaginary: TensorValue) -> SSAValue:
    dims = broadcast([real.dims, imaginary.dims])
    return stack([real.broadcast(dims), imaginary.broadcast(dims)], len(dims)).value


# Making them, and taking them apart


@legalizes("view_as_complex", "view_as_real")
def legalize_view(builder: Pt2Legalizer) -> Results:
    """The same numbers, as a value of its own: another one is complex or is not."""
    x = builder.input()
    x = x if builder.name == "view_as_complex" else _pair(builder, x)
    return builder.add(ReshapeOp(x, dims_of(x)))


@legalizes("complex", "polar")
def legalize_complex(builder: Pt2Legalizer) -> Results:
    """Of parts, or of a size and an angle."""
    if builder.name == "complex":
        return _joined(builder.value("real"), builder.value("imag"))
    size, angle = builder.value("abs"), builder.value("angle")
    return _joined(size * angle.cos(), size * angle.sin())


@legalizes("real", "imag")
def legalize_part(builder: Pt2Legalizer) -> Results:
    """One part."""
    return _parts(builder)[builder.name == "imag"]


@legalizes("abs", "angle")
def legalize_polar(builder: Pt2Legalizer) -> Results:
    """The length without overflow, or the angle."""
    real, imaginary = _parts(builder)
    found = hypot(real, imaginary) if builder.name == "abs" else angle_of(imaginary, real)
    return found


@legalizes("conj", "_conj", "conj_physical", "_conj_physical", "neg")
def legalize_opposite(builder: Pt2Legalizer) -> Results:
    """a - b i, or -a - b i."""
    real, imaginary = _parts(builder)
    return _joined(-real if builder.name == "neg" else real, -imaginary)


@legalizes_real("real", "conj", "_conj", "conj_physical", "_conj_physical", "angle")
def legalize_real(builder: Pt2Legalizer) -> Results:
    """Of a real number."""
    x = builder.stated()
    if builder.name == "angle":
        zero = TensorValue.number(builder, 0.0, x.element)
        return x.ne(x).where(x, x.lt(0).where(zero + math.pi, zero))
    return x


# Arithmetic


@legalizes("add", "sub", "rsub")
def legalize_sum(builder: Pt2Legalizer) -> Results:
    """self + alpha * other"""
    first, second = _parts(builder), _parts(builder, "other")
    alpha = builder.number("alpha", 1)
    if builder.name == "rsub":
        first, second = second, first
    second = second if alpha == 1 else (second[0] * alpha, second[1] * alpha)
    plus = builder.name == "add"
    found = [a + b if plus else a - b for a, b in zip(first, second, strict=True)]
    return _joined(*found)


@legalizes("mul", "div")
def legalize_product(builder: Pt2Legalizer) -> Results:
    """The product, or the quotient."""
    combine = times if builder.name == "mul" else over
    return _joined(*combine(_parts(builder), _parts(builder, "other")))


@legalizes(*FUNCTIONS)
def legalize_function(builder: Pt2Legalizer) -> Results:
    """Functions of one number."""
    return _joined(*FUNCTIONS[builder.name](_parts(builder)))


@legalizes("pow")
def legalize_power(builder: Pt2Legalizer) -> Results:
    """A square by itself."""
    x = _parts(builder)
    if builder.get("exponent") == 2:
        return _joined(*squared(x))
    return _joined(*power(x, _parts(builder, "exponent")))


@legalizes("eq", "ne", "isnan", "isfinite")
def legalize_test(builder: Pt2Legalizer) -> Results:
    """Both parts."""
    a, b = _parts(builder)
    if builder.name in ("eq", "ne"):
        c, d = _parts(builder, "other")
        return a.eq(c) & b.eq(d) if builder.name == "eq" else a.ne(c) | b.ne(d)
    if builder.name == "isnan":
        return a.ne(a) | b.ne(b)
    return a.abs().lt(math.inf) & b.abs().lt(math.inf)


_PRODUCTS = "matmul mm bmm mv dot einsum outer ger inner tensordot kron linear"


@legalizes(*_PRODUCTS.split())
def legalize_matmul(builder: Pt2Legalizer) -> Results:
    """The sum of real products of all choices of parts, each times a power of i."""
    names = builder.op.schema.arguments
    if builder.name == "linear" and builder.optional("bias") is not None:
        builder.refuse("a bias of complex numbers", "a sum after the product")
    given = {name: builder.get(name) for name in names}
    factors = [
        (name, k)
        for name, value in given.items()
        for k, one in enumerate(_listed(value))
        if isinstance(one, SSAValue) and _is_complex_value(builder, cast("SSAValue", one))
    ]
    element, target = _real_element(builder), builder.op.op_type.removeprefix("aten.")
    sums: list[TensorValue | None] = [None, None]
    for choice in itertools.product((0, 1), repeat=len(factors)):
        part = dict(zip(factors, choice, strict=True))
        arguments = {
            name: _chosen(builder, value, [part.get((name, k)) for k in range(len(_listed(value)))])
            for name, value in given.items()
            if value is not None
        }
        found = torch_value(builder, target, element, **arguments)
        turns = sum(choice)
        term, old = found, sums[turns % 2]
        term = -term if turns % 4 >= 2 else term
        sums[turns % 2] = term if old is None else old + term
    real, imaginary = sums
    assert real is not None
    assert imaginary is not None
    return _joined(real, imaginary)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _chosen(builder: Pt2Legalizer, value: Any, parts: Sequence[int | None]) -> Any:
    """An argument with one part of each complex number; a real one is cast."""
    found = [
        one if part is None else _value_of_part(builder, one, part)
        for one, part in zip(_listed(value), parts, strict=True)
    ]
    return found if isinstance(value, list) else found[0]


# Movement

_MOVES = (
    "view reshape _unsafe_view expand expand_as broadcast_to flatten unflatten ravel unsqueeze "
    "squeeze permute transpose t mT movedim moveaxis swapaxes swapdims slice narrow select cat "
    "stack index index_select gather flip roll clone alias detach contiguous lift_fresh_copy "
    "resolve_conj resolve_neg repeat split split_with_sizes unbind chunk constant_pad_nd pad sum "
    "mean cumsum where index_put slice_scatter select_scatter copy to _to_copy zeros_like diagonal "
    "masked_fill tile zeros fft_fftshift fft_ifftshift new_zeros empty_like"
)


@legalizes(*_MOVES.split())
def legalize_move(builder: Pt2Legalizer) -> Results:
    """Each part as the operator on real numbers does."""
    if builder.name in ("to", "_to_copy") and not _is_complex_value(
        builder, builder.op.operands[0]
    ):
        return _joined(*_parts(builder))
    results = builder.op.results
    elements = [_part_of(element) or element for element in map(element_type, results)]
    found: list[Results] = []
    for part in (0, 1):
        given = {name: _of_part(builder, name, part) for name in builder.op.schema.arguments}
        given = {name: value for name, value in given.items() if value is not None}
        target = builder.op.op_type.removeprefix("aten.")
        found.append(aten(builder, target, elements, **given))
    if not any(isinstance(element_type(result), ComplexType) for result in results):
        return found[0]
    return [
        None
        if x is None or y is None
        else _joined(TensorValue(builder, x), TensorValue(builder, y))
        for x, y in zip(*found, strict=True)
    ]


def _of_part(builder: Pt2Legalizer, name: str, part: int) -> Any:
    """An argument for one part: the parts of complex ones; of a number, the second is zero."""
    found = builder.get(name)
    if (element := _part_of(found)) is not None:
        return element
    if isinstance(found, list):
        return [_value_of_part(builder, one, part) for one in cast("list[Any]", found)]
    if name == "value" and part == 1 and isinstance(found, int | float):
        return 0.0
    return _value_of_part(builder, found, part)


def _value_of_part(builder: Pt2Legalizer, value: Any, part: int) -> Any:
    one = cast("SSAValue", value)
    if not isinstance(value, SSAValue) or not _is_complex_value(builder, one):
        return cast("Any", value)
    x = TensorValue(builder, _pair(builder, one))
    return x.pick(len(x.dims) - 1, part).value


@legalizes("sym_size", "sym_numel")
def legalize_size(builder: Pt2Legalizer) -> Results:
    """A size, as an integer."""
    dims = dims_of(_pair(builder, builder.input()))[:-1]
    if builder.name == "sym_numel":
        return TensorValue.dim(builder, product(dims))
    return TensorValue.dim(builder, dims[builder.axis(builder.integer("dim"), len(dims))])


# Fourier transforms


_MODES = ("backward", "ortho", "forward")


@legalizes("_fft_c2c", "_fft_r2c", "_fft_c2r")
def legalize_plain_transform(builder: Pt2Legalizer) -> Results:
    """Along dimensions, with no factor, one by the root, or one by the count."""
    value, kind = builder.input(), builder.name[5:]
    x = builder.unsqueeze(value, [rank_of(value)]) if kind == "r2c" else _pair(builder, value)
    inverse = kind == "c2r" or (kind == "c2c" and not builder.flag("forward"))
    modes = _MODES[::-1] if inverse else _MODES
    axes = builder.axes(builder.ints_of("dim"), rank_of(x) - 1)
    norm = builder.integer("normalization")
    if not axes or norm not in range(len(modes)):
        builder.refuse(f"the normalization {norm} along {len(axes)} dimensions", "0 to 2, and some")
    last = builder.expr("last_dim_size") if kind == "c2r" else None
    sizes = [*[None] * (len(axes) - 1), last]
    if kind == "r2c" and not builder.flag("onesided"):
        kind = "c2c"
    found = spectrum(builder, x, axes, sizes, kind, inverse, modes[norm])
    return _real_part(builder, found) if kind == "c2r" else found


def _real_part(builder: Pt2Legalizer, x: SSAValue) -> SSAValue:
    return builder.squeeze(x, [rank_of(x) - 1])


_NAMES = [f"fft_{i}{r}fft{n}" for i in ("", "i") for r in ("", "r") for n in ("", "2", "n")]


@legalizes(*_NAMES, "fft_hfft", "fft_ihfft")
def legalize_transform(builder: Pt2Legalizer) -> Results:
    """Of one dimension, two, or any number, cut or filled to sizes."""
    value, name = builder.input(), builder.name[4:]
    hermitian = "h" in name
    is_real = not _is_complex_value(builder, value)
    x = _pair(builder, value)
    if is_real:
        element = _real_element(builder)
        x = builder.unsqueeze(builder.cast(value, element), [rank_of(value)])
    rank = rank_of(x) - 1
    inverse, real = name.startswith("i"), "r" in name or hermitian
    axes, sizes = _axes(builder, rank)
    norm = builder.text("norm", "backward")
    if hermitian:
        # hfft is the inverse of what it has the name of, with the other norm, of conjugates
        inverse, norm = not inverse, {"backward": "forward", "forward": "backward"}.get(norm, norm)
        x = _conjugate(builder, x) if inverse else x
    kind = "c2c" if not real else "c2r" if inverse else "r2c"
    if kind == "c2r" and is_real:
        zero = TensorValue.number(builder, 0, element_type(x))
        x = _joined(TensorValue(builder, _real_part(builder, x)), zero)
    found = spectrum(builder, x, axes, sizes, kind, inverse, norm)
    if hermitian and not inverse:
        found = _conjugate(builder, found)
    return _real_part(builder, found) if kind == "c2r" else found


def _conjugate(builder: Pt2Legalizer, x: SSAValue) -> SSAValue:
    signs = builder.tensor(np.array([1, -1], numpy_dtype(element_type(x))))
    return (TensorValue(builder, x) * TensorValue(builder, signs)).value


def _axes(builder: Pt2Legalizer, rank: int) -> tuple[list[int], list[Expr | None]]:
    """The dimensions that are transformed, and their sizes."""
    if builder.has("n"):
        size = None if builder.get("n") is None else builder.expr("n")
        return [builder.axis(builder.integer("dim"), rank)], [size]
    given = builder.exprs_of("s") if builder.get("s") is not None else None
    if builder.get("dim") is not None:
        axes = builder.axes(builder.ints_of("dim"), rank)
    else:
        axes = list(range(0 if given is None else rank - len(given), rank))
    sizes: list[Expr | None] = [None] * len(axes)
    if given is not None:
        sizes = [None if size == -1 else size for size in given]
    return axes, sizes


@legalizes_real("fft_fftshift", "fft_ifftshift")
def legalize_shift(builder: Pt2Legalizer) -> Results:
    """Half of each dimension to the other end."""
    x = builder.input()
    for axis in builder.axes_of("dim", rank_of(x)):
        dim = dims_of(x)[axis]
        half = dim // 2
        x = rolled(builder, x, axis, half if builder.name == "fft_fftshift" else dim - half)
    return x


@legalizes_real("fft_fftfreq", "fft_rfftfreq")
def legalize_frequencies(builder: Pt2Legalizer) -> Results:
    """The frequencies of a spectrum."""
    make = np.fft.fftfreq if builder.name == "fft_fftfreq" else np.fft.rfftfreq
    found = make(builder.integer("n"), float(builder.number("d", 1.0)))
    return builder.cast(builder.tensor(np.asarray(found, np.float64)), builder.element())


def _window(builder: Pt2Legalizer, count: int, element: Attribute) -> SSAValue:
    """The window, with zeros on both sides up to `count`."""
    length = builder.get("win_length") or count
    given = builder.optional("window")
    one = builder.broadcast(builder.scalar(1, element), [length])
    window = one if given is None else builder.cast(given, element)
    before = (count - length) // 2
    return pad(builder, window, [Expr.const(before)], [Expr.const(count - length - before)])


@legalizes("stft")
@legalizes_real("stft")
def legalize_stft(builder: Pt2Legalizer) -> Results:
    """Spectra of windows."""
    x = builder.input()
    if x in builder.pairs:
        builder.refuse("a signal of complex numbers", "a real one")
    single = rank_of(x) == 1
    x = builder.unsqueeze(x, [0]) if single else x
    element, count = element_type(x), builder.integer("n_fft")
    if builder.has("center") and builder.flag("center"):
        pad = [count // 2] * 2
        mode = builder.text("pad_mode", "reflect")
        x = torch_value(builder, "pad.default", element, self=x, pad=pad, mode=mode).value
    step, window = builder.get("hop_length") or count // 4, _window(builder, count, element)
    onesided = builder.get("onesided") is not False
    x = builder.unsqueeze(x, [2])
    size, step = Expr.const(count), Expr.const(step)
    found = spectra_of_frames(builder, x, window, size, step, onesided)
    if builder.flag("normalized"):
        found = (TensorValue(builder, found) * (1 / math.sqrt(count))).value
    found = builder.transpose(found, [0, 2, 1, 3])
    return builder.squeeze(found, [0]) if single else found


@legalizes("istft")
def legalize_istft(builder: Pt2Legalizer) -> Results:
    """The signal whose windows have these spectra: the sum of windows, by that of their squares."""
    x = _pair(builder, builder.input())
    if builder.flag("return_complex"):
        builder.refuse("a signal of complex numbers", "a real one")
    single = rank_of(x) == 3
    x = builder.unsqueeze(x, [0]) if single else x
    element, count = element_type(x), builder.integer("n_fft")
    step = builder.get("hop_length") or count // 4
    window = TensorValue.of(builder, _window(builder, count, element))
    x = builder.transpose(x, [0, 2, 1, 3])
    onesided = builder.get("onesided") is not False
    found = transformed(builder, x, 2, Expr.const(count), True, onesided)
    waves = TensorValue(builder, found).pick(3, 0)
    if builder.flag("normalized"):
        waves = waves * math.sqrt(count)
    frames = waves.dims[1]
    total = (frames - 1) * step + count

    def added(rows: TensorValue) -> SSAValue:
        given: dict[str, Any] = {"kernel_size": [1, count], "stride": [1, step]}
        size = [1, builder.dims([total], [])]
        columns = rows.transpose([0, 2, 1]).value
        one = torch_value(
            builder, "col2im.default", element, self=columns, output_size=size, dilation=[1, 1],
            padding=[0, 0], **given,
        )  # fmt: skip
        return builder.squeeze(one.value, [1, 2])

    squares = (window * window).column(3, 2).broadcast([1, frames, count])
    signal, weight = added(waves * window.column(3, 2)), added(squares)
    start = Expr.const(count // 2 if builder.flag("center") else 0)
    size = builder.expr("length") if builder.get("length") is not None else total - start - start
    signal, weight = (builder.slice_axis(y, 1, start, size) for y in (signal, weight))
    found = (TensorValue(builder, signal) / TensorValue(builder, weight)).value
    return builder.squeeze(found, [0]) if single else found
