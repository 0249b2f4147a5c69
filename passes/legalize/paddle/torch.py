"""Operators that mean what an operator of PyTorch means: the overload and its arguments."""

from __future__ import annotations

from lowerdeck.passes.legalize.paddle.registry import legalizes
from lowerdeck.passes.legalize.torch_tables import as_torch

_OPERATORS = """
    addmm: addmm.default self=input mat1=x mat2=y beta alpha
    as_strided: as_strided.default self=input size=dims stride storage_offset=offset
    atan2: atan2.default self=x other=y
    baddbmm: baddbmm.default self=input batch1=x batch2=y beta alpha
    bilinear: bilinear.default input1=x input2=y weight bias
    bincount: bincount.default self=x weights minlength
    broadcast_tensors: broadcast_tensors.default tensors=input
    copysign: copysign.Tensor self=x other=y
    diag_embed: diag_embed.default self=input offset dim1 dim2
    diagonal: diagonal.default self=x offset dim1=axis1 dim2=axis2
    fill_diagonal_tensor: diagonal_scatter.default self=x src=y offset dim1 dim2
    flip: flip.default self=x dims=axis
    i0e: special_i0e.default self=x
    index_add: index_add.default self=x dim=axis index source=add_value
    index_put: index_put.default self=x indices values=value accumulate
    index_sample: gather.default self=x index dim:1
    kron: kron.default self=x other=y
    lerp: lerp.Tensor self=x end=y weight
    linspace: linspace.default start end=stop steps=number
    logspace: logspace.default start end=stop steps=num base
    masked_fill: masked_fill.Tensor self=x mask value
    masked_select: masked_select.default self=x mask
    matrix_power: matrix_power.default self=x n
    meshgrid: meshgrid.default tensors=inputs
    multi_dot: linalg_multi_dot.default tensors=x
    nextafter: nextafter.default self=x other=y
    renorm: renorm.default self=x p dim=axis maxnorm=max_norm
    repeat_interleave: repeat_interleave.self_int self=x repeats dim=axis
    repeat_interleave_with_tensor_index: repeat_interleave.self_Tensor self=x repeats dim=axis
    reverse: flip.default self=x dims=axis
    roll: roll.default self=x shifts dims=axis
    take_along_axis: gather.default self=arr index=indices dim=axis
    tril_indices: tril_indices.default row=rows col=cols offset
    triu_indices: triu_indices.default row col offset
"""
"""A line each, in the type of the result."""


legalizes.rows(as_torch(_OPERATORS))
