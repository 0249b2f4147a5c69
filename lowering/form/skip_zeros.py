"""`skip-zeros`: products with constant matrices whose blocks are mostly zero."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp, SparseProductOp
from lowerdeck.dialects.core.tensor import SliceOp, ints
from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.nests.sums import PART
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.costs import least
from lowerdeck.lowering.strategies.facts import anchors_of, assumed_shape, is_of
from lowerdeck.lowering.strategies.registry import choose
from lowerdeck.lowering.strategies.sparse_products import (
    SparseProducts,
    lanes_along,
    sparse_tiles,
)
from lowerdeck.passes.machinery.context import options_of, recorder_of


@record
class _Sparse:
    """A product of a kernel with a matrix [K, N], of which only blocks are kept."""

    op: ConvOp | MatmulOp
    weight: SSAValue
    matrix: NDArray[Any]
    width: int
    """Of a block."""
    kept: NDArray[Any]
    """By panel of columns and row, which blocks are not zero."""
    cycles: float


def _product(kernel: KernelOp) -> tuple[ConvOp | MatmulOp, SSAValue] | None:
    """The only root op of a kernel, if it is a product of f32 with a matrix, and that."""
    found = anchors_of(kernel)
    if len(found) != 1 or len(kernel.results) != 1 or kernel.in_place is not None:
        return None
    match op := found[0]:
        case MatmulOp():
            weight, is_plain = op.rhs, len(dims_of(op.rhs)) == 2 and op.packing is None
        case ConvOp():
            weight, taps = op.weight, dims_of(op.weight)[2:]
            pads = (*op.pads_begin.data, *op.pads_end.data)
            is_plain = op.groups.data == 1 and all(tap == 1 for tap in taps)
            is_plain = is_plain and all(pad == 0 for pad in pads)
        case _:
            return None
    is_read = weight in kernel.body.block.args and weight.has_one_use()
    return (op, weight) if is_plain and is_read and is_of(op, f32) else None


def _axis(op: ConvOp | MatmulOp) -> int:
    """The columns of the matrix in the result."""
    return 1 if isinstance(op, ConvOp) else len(dims_of(op.result)) - 1


def _place(kernel: KernelOp, value: SSAValue) -> int:
    """The number of an argument of a kernel."""
    return next(k for k, argument in enumerate(kernel.body.block.args) if argument is value)


def _sparse(kernel: KernelOp, setting: Setting) -> _Sparse | None:
    """The way to keep blocks of a kernel's product that takes the least time."""
    if (found := _product(kernel)) is None:
        return None
    op, weight = found
    source = kernel.inputs[_place(kernel, weight)].owner
    lanes = lanes_along(kernel, op.result, _axis(op), setting.target)
    if not isinstance(source, ConstantOp) or source.value.data.is_elided or lanes is None:
        return None
    array = source.array
    if not 0 < np.count_nonzero(array) < array.size:
        return None
    matrix = array if isinstance(op, MatmulOp) else array.reshape(array.shape[:2]).T
    depth, columns = len(matrix), matrix[0].size
    size = prod(assumed_shape(op.result)) // columns
    best: _Sparse | None = None
    for vectors in range(1, setting.target.limits.stream_vectors + 1):
        panels, rest = divmod(columns, lanes * vectors)
        if rest:
            continue
        kept = np.any(matrix.reshape(depth, panels, -1) != 0, axis=2).T
        sizes, count = (panels, vectors), int(np.count_nonzero(kept))
        ways = sparse_tiles(setting.target, sizes, lanes, (1, size), count)
        cycles, _ = least(ways) if ways else (inf, 0)
        cycles /= setting.threads
        if best is None or cycles < best.cycles:
            best = _Sparse(op, weight, matrix, lanes * vectors, kept, cycles)
    return best


def _constants(sparse: _Sparse) -> list[ConstantOp]:
    """The blocks, panel after panel, the rows that they are of, and where parts begin."""
    (panels, depth), width = sparse.kept.shape, sparse.width
    panel, row = np.nonzero(sparse.kept)
    blocks = sparse.matrix.reshape(depth, panels, width)[row, panel]
    # Parts are of so many rows of the whole matrix, so that sums are rounded as those of it.
    firsts = [*range(0, max(depth - PART, 0) + 1, PART), depth]
    before = np.concatenate([[0], np.cumsum(np.count_nonzero(sparse.kept, axis=1))])
    starts = [before[:-1] + np.count_nonzero(sparse.kept[:, :first], axis=1) for first in firsts]
    arrays = blocks, row.astype(np.int32), np.stack(starts, axis=1).astype(np.int32)
    return [ConstantOp.of(np.ascontiguousarray(array)) for array in arrays]


def _rewrite(kernel: KernelOp, sparse: _Sparse) -> None:
    """Put a kernel that reads the blocks in place of one that reads the matrix."""
    op, gone, stored = sparse.op, _place(kernel, sparse.weight), _constants(sparse)
    layouts = [kernel.layout_at(k) for k in range(len(kernel.inputs) + 1)]
    places = [LayoutAttr.row_major(len(dims_of(each.result))) for each in stored]
    layouts = [*layouts[:gone], *layouts[gone + 1 : -1], *places, layouts[-1]]
    inputs = [*kernel.inputs[:gone], *kernel.inputs[gone + 1 :]]
    Rewriter.insert_op(stored, InsertPoint.before(kernel))
    body = kernel.detach_region(kernel.body)
    own = [body.block.insert_arg(each.result.type, len(body.block.args)) for each in stored]
    x, bias, ops = op.factors[0], None, list[Operation]()
    if isinstance(op, ConvOp):
        bias = op.bias
        if set(ints(op.strides)) != {1}:
            (count, channels, *_), (_, _, *space) = dims_of(x), dims_of(op.result)
            starts, steps = [0] * (len(space) + 2), [1, 1, *ints(op.strides)]
            ops.append(SliceOp(x, starts, [count, channels, *space], steps))
            x = ops[0].results[0]
    blocks, rows, starts = own
    product = SparseProductOp(x, blocks, rows, starts, bias, axis=_axis(op))
    ops.append(product)
    for each in (*stored, *ops):
        each.location = kernel.location
    Rewriter.replace_op(op, ops, [product.result])
    body.block.erase_arg(body.block.args[gone])
    new = KernelOp(kernel.sym_name.data, [*inputs, *(each.result for each in stored)], body)
    new.location, new.layouts = kernel.location, ArrayAttr(layouts)
    new.results[0].name_hint = kernel.results[0].name_hint
    Rewriter.replace_op(kernel, [new], [new.results[0]])


class SkipZerosPass(ModulePass):
    """
    matmul(x, w), conv(x, w, b) of one tap -> sparse_product(x, blocks of w, b)
        [w a constant of f32, some of it zero; that takes less time]

    A block is a row of the matrix of a product, or an input channel of a convolution, by as many
    columns, or filters, as are computed together: blocks that are zero are not there. So the result
    is finite, too, where an input that only meets them is infinite or NaN.
    """

    name = "skip-zeros"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        setting, recorder = Setting.of(options_of(ctx)), recorder_of(ctx)
        if SparseProducts.name in setting.disabled:
            return
        for kernel in [k for k in all_ops(op) if isinstance(k, KernelOp)]:
            if (sparse := _sparse(kernel, setting)) is None:
                continue
            if SparseProducts.name not in setting.asked:
                whole, margin = choose(kernel, setting), setting.target.costs.efficiency
                # Blocks are not asked for ahead, which estimates do not know.
                if whole is None or sparse.cycles >= whole.cycles * margin:
                    continue
            share = np.count_nonzero(sparse.kept) / sparse.kept.size
            reason = f"{share:.0%} of the blocks of {sparse.width} columns are not zero"
            if recorder.decide(self.name, "skip-zeros", [kernel], reason):
                _rewrite(kernel, sparse)
