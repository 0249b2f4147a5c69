"""The layers of a model that can be quantized: products with constant weights, in order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, rank_of
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import is_ranked

LONGEST_SUM = (1 << 31) // 255**2
"""Products of bytes without their zero points, whose sum fits into an i32."""

Product: TypeAlias = ConvOp | MatmulOp


@dataclass(frozen=True)
class Layer:
    """A convolution, or a product with a constant right matrix."""

    op: Product
    is_dynamic: bool
    """True if each row of its input is quantized by its own range."""

    @property
    def input(self) -> SSAValue:
        return self.op.operands[0]

    @property
    def products(self) -> int:
        """Its multiplications, with open sizes as 1."""
        shape = self.weight.array.shape
        terms = prod(shape[1:]) if isinstance(self.op, ConvOp) else shape[0]
        return terms * prod(dim.value or 1 for dim in dims_of(self.op.result))

    @property
    def weight(self) -> ConstantOp:
        owner = self.op.operands[1].owner
        assert isinstance(owner, ConstantOp)
        return owner


def layers_of(module: ModuleOp) -> list[Layer]:
    """
    The layers of a module in `core`, in f32, that every run computes once or whose rows have their
    own ranges: products of a transformer, whose activations differ from token to token.
    """
    ops = all_ops(module)
    is_transformer = any(isinstance(op, AttentionOp | LayerNormOp) for op in ops)
    found = (op for op in ops if isinstance(op, ConvOp | MatmulOp) and _has_weights(op))
    layers = [Layer(op, isinstance(op, MatmulOp) and is_transformer) for op in found]
    return [each for each in layers if each.is_dynamic or _runs_once(each.op)]


def observed(layers: Sequence[Layer]) -> dict[int, int]:
    """For each layer that has one range, the first of those that read the same value."""
    first: dict[SSAValue, int] = {}
    own = [(number, layer) for number, layer in enumerate(layers) if not layer.is_dynamic]
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
    terms = prod(array.shape[1:]) if isinstance(op, ConvOp) else array.shape[0]
    return 0 < terms <= LONGEST_SUM and array.size > 0 and bool(np.isfinite(array).all())


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
