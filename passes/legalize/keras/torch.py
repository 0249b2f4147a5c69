"""Functions of `keras.ops` that mean what an operator of PyTorch means: a line each."""

from __future__ import annotations

import ast
from typing import Any, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import i32, i64, rank_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import common_type
from lowerdeck.passes.legalize.keras.operations import as_float
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.pt2.applied import aten, overloads
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied

_OF_FLOATS = """
    CDist: cdist.default x1=0 x2=1
    Cholesky: linalg_cholesky.default self=0 upper=upper
    Corrcoef: corrcoef.default self=0
    Det: linalg_det.default A=0
    Erfinv: erfinv.default self=0
    I0: i0.default self=0
    Inv: linalg_inv.default A=0
    Ldexp: ldexp.Tensor self=0 other=1
    Logdet: logdet.default self=0
    Logsumexp: logsumexp.default self=0 dim=all_axes keepdim=keepdims
    Nanmedian: nanquantile.scalar self=0 q:0.5 dim=axis keepdim=keepdims
    Nextafter: nextafter.default self=0 other=1
    Quantile: quantile.default self=0 q=1 dim=axis keepdim=keepdims
    Nanquantile: nanquantile.default self=0 q=1 dim=axis keepdim=keepdims interpolation=method
    Solve: linalg_solve.default A=0 B=matrix
    SolveTriangular: linalg_solve_triangular.default self=0 B=matrix upper=upper_of_lower
    Trapezoid: trapezoid.dx y=0 dx=dx dim=axis
"""
"""Of floats, which integers become, in one type."""

_OF_ANY = """
    Cross: linalg_cross.default self=0 other=1 dim=axisa
    Diag: diag.default self=0 diagonal=k
    Diagflat: diagflat.default self=0 offset=k
    Fliplr: fliplr.default self=0
    Flipud: flipud.default self=0
    Gcd: gcd.default self=0 other=1
    Kron: kron.default self=0 other=1
    Lcm: lcm.default self=0 other=1
    Rot90: rot90.default self=0 k=k dims=axes
    Vander: vander.default x=0 N=N increasing=increasing
"""
"""Of elements of any type, which is that of the result."""

_TRUTHS = """
    IsIn: isin.Tensor_Tensor elements=0 test_elements=1 assume_unique=assume_unique invert=invert
    Isclose: isclose.default self=0 other=1 rtol=2 atol=3 equal_nan=equal_nan
"""

_PLACES = """
    Digitize: bucketize.Tensor self=0 boundaries=1 right:True
    SearchSorted: searchsorted.Tensor sorted_sequence=0 self=1 side=side
"""
"""Places, which are 32-bit integers."""

_TABLE = _OF_FLOATS + _OF_ANY + _TRUTHS + _PLACES
_ONE_AXIS = frozenset({"Nanmedian", "Nanquantile", "Quantile"})


@legalizes(*overloads(_TABLE))
def legalize_as_torch(builder: KerasLegalizer) -> Results:
    """One of the tables."""
    name = builder.op_type
    overload = overloads(_TABLE)[name]
    builder.ignore("axisb", "axisc")
    if name == "Quantile" and builder.config("method", "linear") != "linear":
        builder.refuse(f"the method {builder.config('method')}", "linear, which Keras computes")
    operands = _operands(builder, as_floats=name in overloads(_OF_FLOATS))
    element: Attribute = TensorValue.of(builder, operands[0]).element
    if name in overloads(_TRUTHS):
        element = i1
    if name in overloads(_PLACES):
        element = i64
    given: dict[str, Any] = {}
    for argument, source in overload.sources.items():
        value = _argument(builder, operands, source)
        if value is not None:
            given[argument] = value
    if name in _ONE_AXIS and not isinstance(given.get("dim", 0), int):
        builder.refuse(f"the axes {given['dim']}", "one, or all")
    (found,) = aten(builder, overload.target, [element], **given)
    assert found is not None
    result = TensorValue.of(builder, found)
    if name in overloads(_PLACES):
        result = result.cast(i32)
    if name in ("Solve", "SolveTriangular") and _is_vector(operands):
        result = result.reshape(result.dims[:-1])
    return [result.value]


def _operands(builder: KerasLegalizer, *, as_floats: bool) -> list[SSAValue]:
    """The tensors and numbers that are given in order, in one type."""
    given = builder.positional()
    like = next(cast("SSAValue", value) for value in given if isinstance(value, SSAValue))
    # The tolerances of a comparison are no tensors.
    values = [builder.number_like(value, like) for value in given[:2]]
    values = common_type(builder, values)
    if not as_floats:
        return values
    return [as_float(TensorValue.of(builder, value)).value for value in values]


def _is_vector(operands: list[SSAValue]) -> bool:
    return rank_of(operands[1]) == rank_of(operands[0]) - 1


def _argument(builder: KerasLegalizer, operands: list[SSAValue], source: str) -> Any:
    """What an argument of PyTorch's is: a tensor by its place, or a part of the configuration."""
    rank = rank_of(operands[0])
    match source:
        case "all_axes":
            axis = builder.config("axis")
            if axis is None:
                return list(range(rank))
            return builder.axes([axis] if isinstance(axis, int) else list(axis), rank)
        case "matrix":
            value = TensorValue.of(builder, operands[1])
            return value.reshape([*value.dims, 1]).value if _is_vector(operands) else value.value
        case "upper_of_lower":
            return not builder.config("lower", False)
        case _ if source.startswith(":"):
            return ast.literal_eval(source[1:])
        case _ if source.isdigit():
            return operands[int(source)] if int(source) < len(operands) else _plain(builder, source)
        case _:
            return builder.config(source)


def _plain(builder: KerasLegalizer, source: str) -> Any:
    return builder.argument(int(source), {"2": "rtol", "3": "atol"}.get(source, ""))


# Functions of TensorFlow, which have the same layout


@legalizes("DepthToSpace", "SpaceToDepth")
def legalize_blocks(builder: KerasLegalizer) -> Results:
    """Blocks of pixels from channels, or back."""
    if builder.is_first():
        builder.refuse("channels_first", "channels_last: Keras' backends differ in the other order")
    return applied(
        builder, builder.op_type, builder.input(), block_size=builder.integer("block_size")
    )
