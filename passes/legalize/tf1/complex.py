"""
Complex numbers: a tensor of them is one of real numbers with their two parts along a last
dimension more.

Only operators that are known to work on them get to see such a tensor (`complex_handler_of`), so
that none takes it for what it looks like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp, NegOp, SqrtOp, SubOp
from lowerdeck.dialects.core.types import dims_of, f32, f64, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.tf1.attributes import DTypeAttr, is_complex_value
from lowerdeck.dialects.tf1.ops import Tf1Op, expected_types, op_class
from lowerdeck.passes.legalize.fourier import transformed
from lowerdeck.passes.legalize.quantity import Quantity, stack
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.special import apply
from lowerdeck.passes.legalize.table import HandlerTable
from lowerdeck.passes.legalize.tf1.elementwise import angle_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Handler, Results
from lowerdeck.passes.legalize.tf1.registry import legalizes as legalizes_real

legalizes: HandlerTable[Handler] = HandlerTable()
"""The legalizations of nodes whose operands or results are complex."""

_REAL = {"complex64": "float", "complex128": "double"}


def is_complex(op: Tf1Op) -> bool:
    """True if an operand or a result of a node is complex."""
    arguments = (*op.signature.inputs, *op.signature.outputs)
    return not _REAL.keys().isdisjoint(expected_types(op.signature, op.properties, arguments))


def complex_handler_of(op_type: str) -> Handler | None:
    """The function for an operator on complex numbers, or None."""
    return legalizes.get(op_type)


# Parts


def _parts(lower: Tf1Legalizer, name: str | int) -> tuple[Quantity, Quantity]:
    """The real and the imaginary part of an operand."""
    return _split(lower, lower.operand(name))


def _split(lower: Tf1Legalizer, value: SSAValue) -> tuple[Quantity, Quantity]:
    if is_complex_value(value):
        lower.refuse("complex numbers from outside", "real and imaginary parts as two inputs")
    x = Quantity(lower, value)
    axis = len(x.dims) - 1
    return x.pick(axis, 0), x.pick(axis, 1)


def _joined(real: Quantity, imaginary: Quantity) -> SSAValue:
    return stack([real, imaginary], len(real.dims)).value


@legalizes("Complex")
def legalize_complex(lower: Tf1Legalizer) -> Results:
    """Two real tensors, which broadcast, as parts."""
    real, imaginary = (Quantity(lower, lower.operand(name)) for name in ("real", "imag"))
    zero = Quantity.number(lower, 0, real.element)
    dims = (real * zero + imaginary * zero).dims
    return [_joined(real.broadcast(dims), imaginary.broadcast(dims))]


@legalizes("Real")
def legalize_real(lower: Tf1Legalizer) -> Results:
    return [_parts(lower, "input")[0].value]


@legalizes("Imag")
def legalize_imaginary(lower: Tf1Legalizer) -> Results:
    return [_parts(lower, "input")[1].value]


@legalizes("Conj")
def legalize_conjugate(lower: Tf1Legalizer) -> Results:
    """a - b i"""
    real, imaginary = _parts(lower, "input")
    return [_joined(real, -imaginary)]


@legalizes("ComplexAbs")
def legalize_absolute(lower: Tf1Legalizer) -> Results:
    """sqrt(a^2 + b^2), by the larger part and the quotient, which does not overflow."""
    real, imaginary = (part.abs() for part in _parts(lower, "x"))
    large, small = real.maximum(imaginary), real.minimum(imaginary)
    ratio = small / large.eq(0).where(large + 1, large)
    size = large * apply(SqrtOp, ratio * ratio + 1)
    # Two infinities have no quotient.
    return [large.eq(math.inf).where(large, size).value]


@legalizes("Angle")
def legalize_angle(lower: Tf1Legalizer) -> Results:
    """The angle of the point (a, b)."""
    real, imaginary = _parts(lower, "input")
    return [angle_of(imaginary, real).value]


@legalizes("Const", "HostConst")
def legalize_const(lower: Tf1Legalizer) -> Results:
    """The bytes of complex numbers are those of their parts, one after the other."""
    lower.attrs.ignore("value")
    value = lower.op.properties["value"]
    assert isinstance(value, BlobAttr)
    given = lower.op.outputs[0]
    element = f32 if lower.op.attr("dtype") == "complex64" else f64
    return lower.insert(ConstantOp(value, tensor(element, [*dims_of(given), 2])))


@legalizes("Cast")
def legalize_cast(lower: Tf1Legalizer) -> Results:
    """Real numbers have no imaginary part, and it is dropped for them."""
    target = str(lower.op.attr("DstT"))
    lower.attrs.ignore("DstT", "Truncate")
    if str(lower.op.attr("SrcT")) not in _REAL:
        element = f32 if target == "complex64" else f64
        x = Quantity(lower, lower.operand("x")).cast(element)
        zero = Quantity.number(lower, 0, element)
        return [_joined(x, zero.broadcast(x.dims))]
    if target in _REAL:
        return [lower.cast(lower.operand("x"), f32 if target == "complex64" else f64)]
    return [lower.cast(_parts(lower, "x")[0].value, lower.result_element())]


# Arithmetic


@legalizes("Add", "AddV2", "Sub")
def legalize_sum(lower: Tf1Legalizer) -> Results:
    op = SubOp if lower.op_type == "Sub" else AddOp
    pairs = zip(_parts(lower, 0), _parts(lower, 1), strict=True)
    real, imaginary = (Quantity(lower, lower.add(op(x.value, y.value))) for x, y in pairs)
    return [_joined(real, imaginary)]


@legalizes("Mul")
def legalize_product(lower: Tf1Legalizer) -> Results:
    """(a + b i) (c + d i) = ac - bd + (ad + bc) i"""
    (a, b), (c, d) = _parts(lower, 0), _parts(lower, 1)
    return [_joined(a * c - b * d, a * d + b * c)]


@legalizes("Neg")
def legalize_negation(lower: Tf1Legalizer) -> Results:
    return [lower.add(NegOp(lower.operand(0)))]


# Movement

_MOVES = (
    "BatchToSpaceND BroadcastTo ConcatV2 ExpandDims Gather GatherNd GatherV2 Identity Mean Pack "
    "Pad Reshape ReverseV2 Roll Slice Snapshot SpaceToBatchND Split SplitV Squeeze StopGradient "
    "StridedSlice Sum Tile Transpose Unpack"
)
_SIZES = "Rank Shape Size"


@legalizes(*_MOVES.split())
def legalize_move(lower: Tf1Legalizer) -> Results:
    """Each part as the operator on real numbers does."""
    real, imaginary = (_of_part(lower, index) for index in (0, 1))
    return [
        _joined(Quantity(lower, x), Quantity(lower, y))
        for x, y in zip(real, imaginary, strict=True)
        if x is not None and y is not None
    ]


@legalizes(*_SIZES.split())
def legalize_size(lower: Tf1Legalizer) -> Results:
    """What the shape of one part is."""
    return _of_part(lower, 0)


def _of_part(lower: Tf1Legalizer, index: int) -> Results:
    """What the operator on real numbers makes of one part of the complex operands."""
    handler = legalizes_real.get(lower.op_type)
    cls = op_class(lower.op_type)
    assert handler is not None
    assert cls is not None
    signature = lower.op.signature
    expected = expected_types(signature, lower.op.properties, signature.inputs)
    operands = [
        _split(lower, value)[index].value if dtype in _REAL else value
        for value, dtype in zip(lower.op.inputs, expected, strict=True)
    ]
    node = cls(operands, {name: _as_real(value) for name, value in lower.op.properties.items()})
    Rewriter.insert_op(node, InsertPoint.before(lower.op))
    inner = Tf1Legalizer(node, lower.symbols, {})
    inner.created = lower.created
    results = handler(inner)
    inner.attrs.require_read()
    lower.attrs.ignore(*lower.op.properties)
    node.detach()
    node.erase()
    return results


def _as_real(attribute: Attribute) -> Attribute:
    match attribute:
        case DTypeAttr():
            return DTypeAttr(_REAL.get(attribute.data, attribute.data))
        case ArrayAttr():
            return ArrayAttr([_as_real(item) for item in attribute])
        case _:
            return attribute


# Fourier transforms


def _transforms(kind: str) -> list[str]:
    return [kind, f"{kind}2D", f"{kind}3D"]


def _axes(lower: Tf1Legalizer, rank: int) -> list[int]:
    """The dimensions that are transformed: as many of the last ones as the operator says."""
    count = int(lower.op_type[-2]) if lower.op_type.endswith("D") else 1
    return list(range(rank - count, rank))


def _lengths(lower: Tf1Legalizer, axes: Sequence[int]) -> list[Expr]:
    lengths = sizes_of(lower, lower.operand("fft_length"), "the lengths")
    if len(lengths) != len(axes):
        lower.refuse(f"{len(lengths)} lengths", f"{len(axes)}")
    return lengths


@legalizes(*_transforms("FFT"), *_transforms("IFFT"))
def legalize_transform(lower: Tf1Legalizer) -> Results:
    """Of complex numbers, along each dimension."""
    x = lower.operand("input")
    inverse = lower.op_type.startswith("I")
    for axis in _axes(lower, rank_of(x) - 1):
        x = transformed(lower, x, axis, None, inverse, False)
    return [x]


@legalizes(*_transforms("RFFT"))
def legalize_real_transform(lower: Tf1Legalizer) -> Results:
    """Of real numbers: along the last dimension half of it, which has the rest in it."""
    x = lower.operand("input")
    axes = _axes(lower, rank_of(x))
    lengths = _lengths(lower, axes)
    x = lower.unsqueeze(x, [rank_of(x)])
    x = transformed(lower, x, axes[-1], lengths[-1], False, True)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        x = transformed(lower, x, axis, length, False, False)
    return [x]


@legalizes(*_transforms("IRFFT"))
def legalize_inverse_real_transform(lower: Tf1Legalizer) -> Results:
    """Real numbers from half of their transform."""
    x = lower.operand("input")
    axes = _axes(lower, rank_of(x) - 1)
    lengths = _lengths(lower, axes)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        x = transformed(lower, x, axis, length, True, False)
    x = transformed(lower, x, axes[-1], lengths[-1], True, True)
    return [lower.squeeze(x, [rank_of(x) - 1])]
