"""
Functions of `keras.ops` of whole arrays that mean what an operator of PyTorch means: a line each.
"""

from __future__ import annotations

import ast
from typing import Any, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import i32, i64, rank_of
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import as_float, common_type
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.pt2.applied import aten_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied
from lowerdeck.passes.legalize.torch_tables import overloads

_OF_FLOATS = """
    CDist: cdist.default x1=0 x2=1
    Cholesky: linalg_cholesky.default self=0 upper=upper
    Corrcoef: corrcoef.default self=0
    Det: linalg_det.default A=0
    Inv: linalg_inv.default A=0
    Logdet: logdet.default self=0
    Logsumexp: logsumexp.default self=0 dim=all_axes keepdim=keepdims
    Nanmean: nanmean.default self=0 dim=all_axes keepdim=keepdims
    Nanmedian: nanquantile.scalar self=0 q:0.5 dim=axis keepdim=keepdims
    Nanquantile: nanquantile.default self=0 q=1 dim=axis keepdim=keepdims interpolation=method
    Nansum: nansum.default self=0 dim=all_axes keepdim=keepdims
    Quantile: quantile.default self=0 q=1 dim=axis keepdim=keepdims
    Solve: linalg_solve.default A=0 B=matrix
    SolveTriangular: linalg_solve_triangular.default self=0 B=matrix upper=upper_of_lower
    Trapezoid: trapezoid.dx y=0 dx=dx dim=axis
"""
"""Of floats, which integers become, in one type."""

_OF_ANY = """
    Amax: amax.default self=0 dim=all_axes keepdim=keepdims
    Amin: amin.default self=0 dim=all_axes keepdim=keepdims
    BroadcastTo: broadcast_to.default self=0 size=numbers_of_shape
    Cross: linalg_cross.default self=0 other=1 dim=axisa
    Diag: diag.default self=0 diagonal=k
    Diagflat: diagflat.default self=0 offset=k
    Diagonal: diagonal.default self=0 offset=offset dim1=axis1 dim2=axis2
    Diff: diff.default self=0 n=n dim=one_axis
    Flip: flip.default self=0 dims=all_axes
    Fliplr: fliplr.default self=0
    Flipud: flipud.default self=0
    Hstack: hstack.default tensors=tensors
    Inner: inner.default self=0 other=1
    Kron: kron.default self=0 other=1
    Moveaxis: movedim.intlist self=0 source=source destination=destination
    Ravel: ravel.default self=0
    Roll: roll.default self=0 shifts=one_an_axis dims=axis
    Rot90: rot90.default self=0 k=k dims=axes
    Sort: sort.default self=0 dim=one_axis
    Swapaxes: transpose.int self=0 dim0=axis1 dim1=axis2
    Tril: tril.default self=0 diagonal=k
    Triu: triu.default self=0 diagonal=k
    Vander: vander.default x=0 N=N increasing=increasing
    Vstack: vstack.default tensors=tensors
"""
"""Of elements of any type, which is that of the result."""

_TRUTHS = """
    IsIn: isin.Tensor_Tensor elements=0 test_elements=1 assume_unique=assume_unique invert=invert
    Isclose: isclose.default self=0 other=1 rtol=2 atol=3 equal_nan=equal_nan
"""

_PLACES = """
    Argsort: argsort.stable self=0 stable:True dim=one_axis
    CountNonzero: count_nonzero.dim_IntList self=0 dim=all_axes
    Digitize: bucketize.Tensor self=0 boundaries=1 right:True
    SearchSorted: searchsorted.Tensor sorted_sequence=0 self=1 side=side
"""
"""Places and counts, which are 32-bit integers."""

_TABLE = _OF_FLOATS + _OF_ANY + _TRUTHS + _PLACES
_ONE_AXIS = frozenset({"Nanmedian", "Nanquantile", "Quantile"})


@legalizes(*overloads(_TABLE))
def legalize_as_torch(builder: KerasLegalizer) -> Results:
    """One of the tables."""
    name = builder.op_type
    builder.ignore("axisb", "axisc")
    if name == "Quantile" and builder.config("method", "linear") != "linear":
        builder.refuse(f"the method {builder.config('method')}", "linear, which Keras computes")
    operands = _operands(builder, as_floats=name in overloads(_OF_FLOATS))
    element: Attribute = TensorValue.of(builder, operands[0]).element
    if name in overloads(_TRUTHS):
        element = i1
    if name in overloads(_PLACES):
        element = i64
    result = as_torch(builder, operands, element)
    if name in overloads(_PLACES):
        result = result.cast(i32)
    if name in ("Solve", "SolveTriangular") and _is_vector(operands):
        result = result.reshape(result.dims[:-1])
    return [result.value]


def as_torch(
    builder: KerasLegalizer, operands: list[SSAValue], element: Attribute, name: str = ""
) -> TensorValue:
    """What a line of the tables gives, of an element type."""
    overload = overloads(_TABLE)[name or builder.op_type]
    given: dict[str, Any] = {}
    for argument, source in overload.sources.items():
        value = _argument(builder, operands, source)
        if value is not None:
            given[argument] = value
    if builder.op_type in _ONE_AXIS and not isinstance(given.get("dim", 0), int):
        builder.refuse(f"the axes {given['dim']}", "one, or all")
    (found,) = aten_of(builder, overload.target, element, **given)
    return TensorValue.of(builder, found)


def _operands(builder: KerasLegalizer, *, as_floats: bool) -> list[SSAValue]:
    """The tensors and numbers that are given in order, in one type."""
    given = builder.positional()
    if len(given) == 1 and isinstance(given[0], list):
        given = cast("list[Any]", given[0])
    else:
        given = given[:2]  # the tolerances of a comparison are no tensors
    like = next((cast("SSAValue", value) for value in given if isinstance(value, SSAValue)), None)
    if like is None:
        builder.refuse("no tensors", "one or more")
    values = common_type(builder, [builder.number_like(value, like) for value in given])
    if not as_floats:
        return values
    return [as_float(TensorValue.of(builder, value)).value for value in values]


def _is_vector(operands: list[SSAValue]) -> bool:
    return rank_of(operands[1]) == rank_of(operands[0]) - 1


def _argument(builder: KerasLegalizer, operands: list[SSAValue], source: str) -> Any:
    """What an argument of PyTorch's is: a tensor by its place, or a part of the configuration."""
    rank = rank_of(operands[0])
    match source:
        case "tensors":
            return operands
        case "all_axes":
            return builder.axes_of(builder.config("axis"), rank)
        case "one_axis":
            return builder.one_axis(rank)
        case "one_an_axis":
            shifts = builder.integers(builder.config("shift"), "shifts")
            axes = builder.axes_of(builder.config("axis") or 0, rank)
            return shifts * len(axes) if len(shifts) == 1 else shifts
        case "numbers_of_shape":
            return builder.integers(builder.config("shape"), "the shape")
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
