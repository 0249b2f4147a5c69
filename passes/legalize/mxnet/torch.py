"""Operators that mean what an operator of PyTorch means: the overload and its arguments."""

from __future__ import annotations

from lowerdeck.dialects.core.types import element_type, i1
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.torch_tables import as_torch

_OPERATORS = """
    Concat: cat.default tensors=data dim
    LogisticRegressionOutput: sigmoid.default self=data
    SwapAxis: transpose.int self=data dim0=dim1 dim1=dim2
    _grad_add: add.Tensor self=lhs other=rhs
    _image_flip_left_right: flip.default self=data dims:[-2]
    _image_flip_top_bottom: flip.default self=data dims:[-3]
    _np_moveaxis: movedim.intlist self=a source destination
    _npi_bitwise_not: bitwise_not.default self=x
    _npi_column_stack: column_stack.default tensors=data
    _npi_dstack: dstack.default tensors=data
    _npi_flip: flip.default self=data dims=axis
    _npi_hstack: hstack.default tensors=data
    _npi_nan_to_num: nan_to_num.default self=data nan posinf neginf
    _npi_rot90: rot90.default self=data k dims=axes
    _npi_stack: stack.default tensors=data dim=axis
    _npi_tril: tril.default self=data diagonal=k
    _npi_vstack: vstack.default tensors=data
    _rnn_param_concat: cat.default tensors=data dim
    expand_dims: unsqueeze.default self=data dim=axis
    repeat: repeat_interleave.self_int self=data repeats dim=axis
    reverse: flip.default self=data dims=axis
    stack: stack.default tensors=data dim=axis
    tile: tile.default self=data dims=reps
"""
"""A line each, in the type of the first tensor."""

_TESTS = """
    _npi_isfinite: isfinite.default self=x
    _npi_isinf: isinf.default self=x
    _npi_isnan: isnan.default self=x
    _npi_isneginf: isneginf.default self=x
    _npi_isposinf: isposinf.default self=x
"""
"""Truth values."""


legalizes.rows(as_torch(_OPERATORS) | as_torch(_TESTS, i1))


@legalizes("_np_atleast_1d", "_np_atleast_2d", "_np_atleast_3d")
def legalize_at_least(builder: MxnetLegalizer) -> Results:
    """With dimensions of one, if there are too few."""
    target = f"{builder.name.removeprefix('_np_')}.default"
    return [builder.torch(target, element_type(x), self=x) for x in builder.inputs("arys")]
