"""The layers of a model that can be quantized: products with constant weights, in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.tensor import ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, rank_of
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import is_ranked

LONGEST_SUM = (1 << 31) // 255**2
"""Products of bytes without their zero points, whose sum fits into an i32."""

Product: TypeAlias = ConvOp | ConvTransposeOp | MatmulOp

PRODUCTS = (ConvOp, ConvTransposeOp, MatmulOp)


@record
class Layer:
    """
    A convolution, or a product with a constant right matrix; or a transposed convolution whose
    steps are its kernel, so that each result is a sum of products of one position.
    """

    op: Product
    is_dynamic: bool
    """True if each row of its input is quantized by its own range."""

    @property
    def input(self) -> SSAValue:
        return self.op.operands[0]

    @property
    def products(self) -> int:
        """Its multiplications, with open sizes as 1."""
        return _terms(self.op, self.weight.array.shape) * prod(
            dim.value or 1 for dim in dims_of(self.op.result)
        )

    @property
    def summed_axes(self) -> Sequence[int]:
        """Those of the weights whose elements have one scale: all but that of output channels."""
        if isinstance(self.op, MatmulOp):
            return (0,)
        channels = 0 if isinstance(self.op, ConvOp) else 1
        return [axis for axis in range(rank_of(self.op.weight)) if axis != channels]

    @property
    def input_axis(self) -> int | None:
        """That of the weights along which input channels lie; None for groups of channels."""
        if isinstance(self.op, ConvOp):
            return 1 if self.op.groups.data == 1 else None
        return 0

    @property
    def weight(self) -> ConstantOp:
        owner = self.op.operands[1].owner
        assert isinstance(owner, ConstantOp)
        return owner


def layers_of(module: ModuleOp) -> list[Layer]:
    """
    The layers of a module in `core`, in f32. Rows have their own ranges in products of a
    transformer, whose activations differ from token to token, and in those of a loop, such as what
    a recurrent cell makes of its state, which no sample shows; convolutions of loops are no layers.
    """
    ops = all_ops(module)
    is_transformer = any(isinstance(op, AttentionOp | LayerNormOp) for op in ops)
    found = (op for op in ops if isinstance(op, PRODUCTS) and _has_weights(op))
    layers = [
        Layer(op, isinstance(op, MatmulOp) and (is_transformer or not _runs_once(op)))
        for op in found
    ]
    return [each for each in layers if each.is_dynamic or _runs_once(each.op)]


def observed(layers: Sequence[Layer]) -> dict[int, int]:
    """For each layer that has one range, the first of those that read the same value."""
    first: dict[SSAValue, int] = {}
    own = [(number, layer) for number, layer in enumerate(layers) if not layer.is_dynamic]
    return {number: first.setdefault(layer.input, number) for number, layer in own}


def inputs(layers: Sequence[Layer]) -> dict[int, int]:
    """For each layer that every run computes once, the first of those that read the same."""
    first: dict[SSAValue, int] = {}
    own = [(number, layer) for number, layer in enumerate(layers) if _runs_once(layer.op)]
    return {number: first.setdefault(layer.input, number) for number, layer in own}


def matrices(layers: Sequence[Layer]) -> dict[int, int]:
    """For each product that every run computes once, the first of those that read the same."""
    first: dict[SSAValue, int] = {}
    own = [(number, layer) for number, layer in enumerate(layers)]
    return {
        number: first.setdefault(layer.input, number)
        for number, layer in own
        if isinstance(layer.op, MatmulOp) and _runs_once(layer.op)
    }


def last_layers(layers: Sequence[Layer]) -> set[int]:
    """The layers after which there is no other, such as those that give the scores of classes."""
    own: dict[Operation, int] = {layer.op: number for number, layer in enumerate(layers)}
    blocks = {block: None for op in own if (block := op.parent_block()) is not None}
    found: set[int] = set()
    for block in blocks:
        before: set[SSAValue] = set()
        """What layers are computed from."""
        for op in reversed(block.ops):
            inside = list(op.walk())
            leads = not before.isdisjoint(op.results)
            if op in own and not leads:
                found.add(own[op])
            if leads or any(each in own for each in inside):
                before.update(operand for each in inside for operand in each.operands)
    return found


def _has_weights(op: Product) -> bool:
    weight = op.operands[1].owner
    if not is_ranked(op) or not op.is_uniform or not isinstance(weight, ConstantOp):
        return False
    if isinstance(op.operands[0].owner, ConstantOp) or element_type(op.results[0]) != f32:
        return False
    if isinstance(op, MatmulOp) and rank_of(op.rhs) != 2:
        return False
    try:
        array = weight.array
    except ElidedBlobError:
        return False
    if isinstance(op, ConvTransposeOp) and not _is_in_steps(op, array.shape):
        return False
    is_short = 0 < _terms(op, array.shape) <= LONGEST_SUM
    return is_short and array.size > 0 and bool(np.isfinite(array).all())


def _terms(op: Product, shape: Sequence[int]) -> int:
    """Of each sum."""
    return prod(shape[1:]) if isinstance(op, ConvOp) else shape[0]


def _is_in_steps(op: ConvTransposeOp, shape: Sequence[int]) -> bool:
    """True if windows of a transposed convolution lie side by side: others stay in f32."""
    pads = (*op.pads_begin.data, *op.pads_end.data, *ints(op.output_padding))
    is_dense = list(ints(op.strides)) == [*shape[2:]] and {*ints(op.dilations)} == {1}
    return is_dense and op.groups.data == 1 and not any(pad != 0 for pad in pads)


def _runs_once(op: Product) -> bool:
    return isinstance(op.parent_op(), FuncOp)


def fingerprint(layers: Sequence[Layer]) -> str:
    """What identifies the layers of a model: kinds and weights, whatever sizes inputs have."""
    digest = hashlib.sha256()
    for layer in layers:
        array = layer.weight.array
        digest.update(f"{layer.op.name} {array.shape} {layer.is_dynamic}\n".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()
