"""
Complex numbers: a tensor of them is one of real numbers with their two parts along a last
dimension more.

Only operators that are known to work on them get to see such a tensor (`complex_handler_of`), so
that none takes it for what it looks like.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp, NegOp, SubOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, f32, f64, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.tf1.attributes import DTypeAttr, is_complex_value
from lowerdeck.dialects.tf1.ops import Tf1Op, expected_types, known_class
from lowerdeck.passes.legalize.common.complex import FUNCTIONS, over, times
from lowerdeck.passes.legalize.common.fourier import spectrum
from lowerdeck.passes.legalize.common.special import angle_of, hypot
from lowerdeck.passes.legalize.sizes import sizes_of
from lowerdeck.passes.legalize.table import HandlerTable
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Handler, Results
from lowerdeck.passes.legalize.tf1.registry import legalizes as legalizes_real

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.tf1")
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


def _parts(builder: Tf1Legalizer, name: str | int) -> tuple[TensorValue, TensorValue]:
    """The real and the imaginary part of an operand."""
    return _split(builder, builder.operand(name))


def _split(builder: Tf1Legalizer, value: SSAValue) -> tuple[TensorValue, TensorValue]:
    if is_complex_value(value):
        builder.refuse("complex numbers from outside", "real and imaginary parts as two inputs")
    x = TensorValue(builder, value)
    axis = len(x.dims) - 1
    return x.pick(axis, 0), x.pick(axis, 1)


def _joined(real: TensorValue, imaginary: TensorValue) -> SSAValue:
    return stack([real, imaginary], len(real.dims)).value


@legalizes("Complex")
def legalize_complex(builder: Tf1Legalizer) -> Results:
    """Two real tensors, which broadcast, as parts."""
    real, imaginary = (TensorValue(builder, builder.operand(name)) for name in ("real", "imag"))
    zero = TensorValue.number(builder, 0, real.element)
    dims = (real * zero + imaginary * zero).dims
    return [_joined(real.broadcast(dims), imaginary.broadcast(dims))]


@legalizes("Real")
def legalize_real(builder: Tf1Legalizer) -> Results:
    return [_parts(builder, "input")[0].value]


@legalizes("Imag")
def legalize_imaginary(builder: Tf1Legalizer) -> Results:
    return [_parts(builder, "input")[1].value]


@legalizes("Conj")
def legalize_conjugate(builder: Tf1Legalizer) -> Results:
    """a - b i"""
    real, imaginary = _parts(builder, "input")
    return [_joined(real, -imaginary)]


@legalizes("ComplexAbs")
def legalize_absolute(builder: Tf1Legalizer) -> Results:
    """The length, which does not overflow."""
    return [hypot(*_parts(builder, "x")).value]


@legalizes("Angle")
def legalize_angle(builder: Tf1Legalizer) -> Results:
    """The angle of the point (a, b)."""
    real, imaginary = _parts(builder, "input")
    return [angle_of(imaginary, real).value]


@legalizes("Const", "HostConst")
def legalize_const(builder: Tf1Legalizer) -> Results:
    """The bytes of complex numbers are those of their parts, one after the other."""
    builder.attrs.ignore("value")
    value = builder.op.properties["value"]
    assert isinstance(value, BlobAttr)
    given = builder.op.outputs[0]
    element = f32 if builder.op.attr("dtype") == "complex64" else f64
    return builder.insert(ConstantOp(value, tensor(element, [*dims_of(given), 2])))


@legalizes("Cast")
def legalize_cast(builder: Tf1Legalizer) -> Results:
    """Real numbers have no imaginary part, and it is dropped for them."""
    target = str(builder.op.attr("DstT"))
    builder.attrs.ignore("DstT", "Truncate")
    if str(builder.op.attr("SrcT")) not in _REAL:
        element = f32 if target == "complex64" else f64
        x = TensorValue(builder, builder.operand("x")).cast(element)
        zero = TensorValue.number(builder, 0, element)
        return [_joined(x, zero.broadcast(x.dims))]
    if target in _REAL:
        return [builder.cast(builder.operand("x"), f32 if target == "complex64" else f64)]
    return [builder.cast(_parts(builder, "x")[0].value, builder.result_element())]


# Arithmetic


@legalizes("Add", "AddV2", "Sub")
def legalize_sum(builder: Tf1Legalizer) -> Results:
    op = SubOp if builder.op_type == "Sub" else AddOp
    pairs = zip(_parts(builder, 0), _parts(builder, 1), strict=True)
    real, imaginary = (TensorValue(builder, builder.add(op(x.value, y.value))) for x, y in pairs)
    return [_joined(real, imaginary)]


@legalizes("Mul", "Div", "RealDiv")
def legalize_product(builder: Tf1Legalizer) -> Results:
    """The product, or the quotient."""
    combine = times if builder.op_type == "Mul" else over
    return [_joined(*combine(_parts(builder, 0), _parts(builder, 1)))]


_FUNCTIONS = {"Inv": "reciprocal"} | {
    name: name.lower()
    for name in ("Cos Cosh Exp Log Reciprocal Rsqrt Sigmoid Sin Sinh Sqrt Square Tan Tanh".split())
}


@legalizes(*_FUNCTIONS)
def legalize_function(builder: Tf1Legalizer) -> Results:
    """Functions of one number."""
    return [_joined(*FUNCTIONS[_FUNCTIONS[builder.op_type]](_parts(builder, 0)))]


@legalizes("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def legalize_product_of_matrices(builder: Tf1Legalizer) -> Results:
    """Four products of real matrices; an adjoint one is transposed, with the opposite imaginary."""
    names, flag = (("a", "b"), "transpose") if builder.op_type == "MatMul" else (("x", "y"), "adj")
    builder.attrs.ignore(
        *(n for n in ("grad_a", "grad_b", "grad_x", "grad_y") if builder.attrs.has(n))
    )
    sides: list[tuple[TensorValue, TensorValue]] = []
    for name in names:
        real, imaginary = _parts(builder, name)
        if builder.attrs.flag(f"{flag}_{name}"):
            rank = len(real.dims)
            order = [*range(rank - 2), rank - 1, rank - 2]
            real, imaginary = real.transpose(order), imaginary.transpose(order)
            imaginary = -imaginary if flag == "adj" else imaginary
        sides.append((real, imaginary))

    def product(x: TensorValue, y: TensorValue) -> TensorValue:
        return TensorValue(builder, builder.add(MatmulOp(x.value, y.value)))

    (a, b), (c, d) = sides
    return [_joined(product(a, c) - product(b, d), product(a, d) + product(b, c))]


@legalizes("Neg")
def legalize_negation(builder: Tf1Legalizer) -> Results:
    return [builder.add(NegOp(builder.operand(0)))]


# Movement

_MOVES = (
    "AddN BatchToSpaceND BroadcastTo Concat ConcatV2 Cumsum ExpandDims Gather GatherNd GatherV2 "
    "Identity Mean Pack Pad Reshape ReverseV2 Roll Select SelectV2 Slice Snapshot SpaceToBatchND "
    "Split SplitV Squeeze StopGradient StridedSlice Sum Tile Transpose Unpack ZerosLike"
)
_SIZES = "Rank Shape Size"


@legalizes(*_MOVES.split())
def legalize_move(builder: Tf1Legalizer) -> Results:
    """Each part as the operator on real numbers does."""
    real, imaginary = (_of_part(builder, index) for index in (0, 1))
    return [
        _joined(TensorValue(builder, x), TensorValue(builder, y))
        for x, y in zip(real, imaginary, strict=True)
        if x is not None and y is not None
    ]


@legalizes(*_SIZES.split())
def legalize_size(builder: Tf1Legalizer) -> Results:
    """What the shape of one part is."""
    return _of_part(builder, 0)


def _of_part(builder: Tf1Legalizer, index: int) -> Results:
    """What the operator on real numbers makes of one part of the complex operands."""
    handler = legalizes_real.get(builder.op_type)
    cls = known_class(builder.op_type)
    assert handler is not None
    signature = builder.op.signature
    expected = expected_types(signature, builder.op.properties, signature.inputs)
    operands = [
        _split(builder, value)[index].value if dtype in _REAL else value
        for value, dtype in zip(builder.op.inputs, expected, strict=True)
    ]
    node = cls(operands, {name: _as_real(value) for name, value in builder.op.properties.items()})
    Rewriter.insert_op(node, InsertPoint.before(builder.op))
    inner = Tf1Legalizer(node, builder.symbols, {})
    inner.created = builder.created
    results = handler(inner)
    inner.attrs.require_read()
    builder.attrs.ignore(*builder.op.properties)
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


def _axes(builder: Tf1Legalizer, rank: int) -> list[int]:
    """The dimensions that are transformed: as many of the last ones as the operator says."""
    count = int(builder.op_type[-2]) if builder.op_type.endswith("D") else 1
    return list(range(rank - count, rank))


def _lengths(builder: Tf1Legalizer, axes: Sequence[int]) -> list[Expr]:
    lengths = sizes_of(builder, builder.operand("fft_length"), "the lengths")
    if len(lengths) != len(axes):
        builder.refuse(f"{len(lengths)} lengths", f"{len(axes)}")
    return lengths


@legalizes(*_transforms("FFT"), *_transforms("IFFT"))
def legalize_transform(builder: Tf1Legalizer) -> Results:
    """Of complex numbers, along each dimension."""
    x = builder.operand("input")
    axes = _axes(builder, rank_of(x) - 1)
    inverse = builder.op_type.startswith("I")
    return [spectrum(builder, x, axes, [None] * len(axes), "c2c", inverse)]


@legalizes(*_transforms("RFFT"))
def legalize_real_transform(builder: Tf1Legalizer) -> Results:
    """Of real numbers: along the last dimension half of it, which has the rest in it."""
    x = builder.operand("input")
    axes = _axes(builder, rank_of(x))
    x = builder.unsqueeze(x, [rank_of(x)])
    return [spectrum(builder, x, axes, _lengths(builder, axes), "r2c", False)]


@legalizes(*_transforms("IRFFT"))
def legalize_inverse_real_transform(builder: Tf1Legalizer) -> Results:
    """Real numbers from half of their transform."""
    x = builder.operand("input")
    axes = _axes(builder, rank_of(x) - 1)
    x = spectrum(builder, x, axes, _lengths(builder, axes), "c2r", True)
    return [builder.squeeze(x, [rank_of(x) - 1])]
