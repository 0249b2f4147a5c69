"""`pack-weights`: constants in the layouts that kernels read, in the order of their use."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import DimsAttr, numpy_dtype
from lowerdeck.dialects.dims import constants
from lowerdeck.dialects.walking import all_ops

Packing: TypeAlias = tuple[BlobAttr, LayoutAttr, DimsAttr, Attribute]
"""All that the packed bytes depend on: bytes, layout, dimensions and element type of a tensor."""


def pack(op: entry_ops.WeightOp, packed: dict[Packing, BlobAttr]) -> None:
    """Convert the bytes of a constant to its layout; identical tensors are packed once."""
    if op.layout is None or op.dims is None:
        return
    element = ref_type(op.result).element
    # Uniform matrices of several shapes have the same bytes, but not the same padding.
    key = (op.value, op.layout, op.dims, element)
    if key not in packed:
        shape = constants(op.dims.data)
        assert shape is not None
        array = op.value.data.array(numpy_dtype(element), shape)
        packed[key] = BlobAttr(Blob.of(op.layout.pack(array)))
    op.properties["value"] = packed[key]
    del op.properties["layout"], op.properties["dims"]


def sort_by_use(entry: EntryOp) -> None:
    """Sort the constants of the entry function's own block by their first use."""
    block = entry.body.block
    weights = [op for op in block.ops if isinstance(op, entry_ops.WeightOp)]
    found: dict[Operation, None] = {}
    for op in all_ops(entry):
        for operand in op.operands:
            if isinstance(operand.owner, entry_ops.WeightOp):
                found[operand.owner] = None
    ordered = [op for op in found if op.parent is block]
    ordered += [op for op in weights if op not in found]
    for op in reversed(ordered):
        op.detach()
        first = block.first_op
        assert first is not None
        block.insert_op_before(op, first)


class PackWeightsPass(ModulePass):
    """
    Convert constants to the layouts that kernels read, at compile time, and sort them by their
    first use, so that a run reads the weights from front to back.
    """

    name = "pack-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        packed: dict[Packing, BlobAttr] = {}
        if (entry := find_entry(op)) is None:
            return
        for weight in all_ops(entry):
            if isinstance(weight, entry_ops.WeightOp):
                pack(weight, packed)
        sort_by_use(entry)
