"""`form-kernels`: which ops form one C function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.elementwise import (
    ELEMENTWISE,
    SHORT_ERF,
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ErfOp,
    ExpOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NotOp,
    OrOp,
    SelectOp,
    ShortErfOp,
    SigmoidOp,
    SubOp,
    TanhOp,
)
from lowerdeck.dialects.core.linear import ContractionOp, ConvOp, MatmulOp, WindowsOp
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    GatherElementsOp,
    GatherOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, static_shape
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import ANCHORS
from lowerdeck.lowering.strategies.line_plans import plan_lines
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import MOST_STATEMENTS, Target
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.provenance import derive

MAX_OPS = 64
"""Longer chains are split, so that the length of C functions is bounded."""

_OF_OTHERS = 6
"""C statements of most maps."""

_STATEMENTS: Mapping[type[Operation], int] = {
    ExpOp: 38,
    SigmoidOp: 40,
    LogOp: 60,
    TanhOp: 72,
    ErfOp: 84,
    ShortErfOp: 2 * (len(SHORT_ERF) + _OF_OTHERS),
}
"""C statements of functions that become arithmetic, for the vector and the remainder loop."""

_MOST_OF_A_MASK = 8
"""Ops that compute a mask once more for each head, in place of memory for all of it."""

_OF_MASKS = (
    AddOp,
    SubOp,
    MulOp,
    MinOp,
    MaxOp,
    AndOp,
    OrOp,
    NotOp,
    CompareOp,
    SelectOp,
    CastOp,
)
"""Ops of few instructions."""

LARGEST_BLOCK = 16
"""Of channel blocks, on any target."""

Op = TypeVar("Op", bound=Operation)

_DRIVER_OPS = (BindSymbolsOp, ReshapeOp, KernelOp)
"""Ops of `core` that the entry function executes without a kernel."""


@dataclass
class Group:
    """The ops of a future kernel; the last one computes its results."""

    ops: list[Operation]
    anchor: Operation | None


class KernelFormer:
    """Forms the kernels of one block, first to last."""

    def __init__(self, names: dict[str, int], target: Target) -> None:
        self._groups: dict[Operation, Group] = {}
        self._names = names
        self._target = target

    def form(self, block: Block) -> None:
        """Replace the ops of a block and its nested blocks by kernels."""
        for op in list(block.ops):
            if isinstance(op, SplitOp):
                _slice_up(op)
            elif isinstance(op, AttentionOp):
                _compute_masks(op)
        for op in list(block.ops):
            for region in op.regions:
                KernelFormer(self._names, self._target).form(region.block)
            if _belongs_in_kernel(op):
                self._place(op)
        groups = {id(group): group for group in self._groups.values()}
        for group in groups.values():
            self._outline(group)
        for op in list(block.ops):
            if isinstance(op, ConstantOp) and not op.result.uses:
                # Only kernels used the constant, as a literal.
                op.detach()
                op.erase()

    def _place(self, op: Operation) -> None:
        """Form a group of `op` and the producers that it can absorb."""
        group = Group([], op if type(op) in ANCHORS else None)
        is_alone = self._is_read_narrow(op)
        for value in () if is_alone else dict.fromkeys(op.operands):
            producer = self._groups.get(value.owner) if isinstance(value.owner, Operation) else None
            if producer is not None and self._can_take_in(op, value, producer, group):
                group.ops.extend(producer.ops)
        group.ops.append(op)
        if isinstance(op, (*ELEMENTWISE, ConcatOp)) and not is_alone:
            self._take_in_shared(op, group)
        for member in group.ops:
            self._groups[member] = group

    def _is_read_narrow(self, op: Operation) -> bool:
        """True if what a pool reads is made wide where it reads it, and narrow in memory."""
        users = [use.operation for result in op.results for use in result.uses]
        is_read = isinstance(op, CastOp) and all(isinstance(user, PoolOp) for user in users)
        return is_read and self._target.has_scalar_sums

    def _take_in_shared(self, op: Operation, group: Group) -> None:
        """Absorb a producer whose users are all in the group: the x of x * sigmoid(x)."""
        members = set(group.ops)
        pending = [value for member in group.ops for value in member.operands]
        while pending:
            value = pending.pop()
            producer = self._groups.get(value.owner) if isinstance(value.owner, Operation) else None
            if producer is None or value.owner in members or producer.ops[-1] is not value.owner:
                continue
            users = {use.operation for use in value.uses}
            if not users <= members or not all(_reads_once(user, value) for user in users):
                continue
            if isinstance(op, ConcatOp):
                # Each part has loops of its own: nothing but what is read is shared.
                is_slice = all(isinstance(member, SliceOp) for member in producer.ops)
                if not is_slice or not self._can_be_part(op, producer, group):
                    continue
            elif not self._can_precede(op, value, producer, group):
                continue
            group.ops[:0] = producer.ops
            members.update(producer.ops)
            pending += [value for member in producer.ops for value in member.operands]

    def _can_take_in(self, op: Operation, value: SSAValue, producer: Group, group: Group) -> bool:
        """
        True if `producer`, which computes `value` as its last op, can join the group of `op`.

        All uses must be in `op`, at the same index.
        """
        if producer.ops[-1] is not value.owner or any(
            use.operation is not op for use in value.uses
        ):
            return False
        if isinstance(op, ReduceOp):
            # Every element is read once, so computing it in the loop costs nothing extra.
            return producer.anchor is None and has_room_for_one_more(producer.ops, group.ops)
        if isinstance(op, PoolOp):
            return all(map(self._is_read_narrow, producer.ops))
        if isinstance(op, AttentionOp):
            # A slice of the heads is read in place.
            is_slice = all(isinstance(member, SliceOp) for member in producer.ops)
            return is_slice or (value in op.masks and formula_of(value) is not None)
        if isinstance(op, ConcatOp):
            return self._can_be_part(op, producer, group)
        if isinstance(op, GatherElementsOp):
            # Every index is read once.
            is_index = _reads_once(op, value) and producer.anchor is None
            return is_index and has_room_for_one_more(producer.ops, group.ops)
        if isinstance(op, ContractionOp) and _is_widened_constant(producer):
            return True
        if isinstance(op, ConvOp):
            return value is op.input and self._is_widened(op, producer)
        if isinstance(op, MatmulOp):
            # Windows are copied a part at a time, right before they are multiplied.
            return value is op.rhs and isinstance(value.owner, WindowsOp)
        return self._can_precede(op, value, producer, group)

    def _is_widened(self, op: ConvOp, producer: Group) -> bool:
        """True if a convolution of one channel a group copies lines of bytes that it makes f32."""
        if op.groups.data == 1 or dims_of(op.weight)[1] != 1:
            return False
        is_cast = all(isinstance(member, CastOp | SubOp) for member in producer.ops)
        sources = [member.input for member in producer.ops if isinstance(member, CastOp)]
        are_bytes = len(sources) == 1 and numpy_dtype(element_type(sources[0])).itemsize == 1
        return is_cast and are_bytes and plan_lines(op, self._target) is not None

    def _can_be_part(self, op: ConcatOp, producer: Group, group: Group) -> bool:
        """True if a concatenation, which copies its parts anyway, can compute one while it does."""
        is_slice = all(isinstance(member, SliceOp) for member in producer.ops)
        # Without lanes, channels do not lie in blocks.
        has_blocks = self._target.lanes > 1
        is_cut = (has_blocks or is_slice) and _cuts_blocks(op)
        if is_joined_at_front(op) and not is_cut:
            return False
        if is_slice:
            return True
        joins_channels = has_blocks and op.axis.data == 1 < len(dims_of(op.result)) - 1
        if joins_channels or not has_room_for_one_more(producer.ops, group.ops):
            return False
        read = (*ELEMENTWISE, SliceOp) if has_blocks else (*ELEMENTWISE, SliceOp, GatherOp)
        is_moved = any(not isinstance(member, read) for member in producer.ops)
        return not is_moved and not self._is_epilogue(producer)

    def _is_epilogue(self, group: Group) -> bool:
        """True if a group of maps can follow an anchor in its kernel."""
        dims = dims_of(group.ops[-1].results[0])
        for value in (value for member in group.ops for value in member.operands):
            source = self._groups.get(value.owner) if isinstance(value.owner, Operation) else None
            if source is not None and source.anchor is not None and dims_of(value) == dims:
                return True
        return False

    @staticmethod
    def _can_precede(op: Operation, value: SSAValue, producer: Group, group: Group) -> bool:
        """True if a map `op` can follow the producer of `value`, at the same index, in a kernel."""
        if not has_room_for_one_more(producer.ops, group.ops):
            return False
        if not isinstance(op, ELEMENTWISE) or dims_of(value) != dims_of(op.results[0]):
            return False
        return producer.anchor is None

    def _outline(self, group: Group) -> None:
        """Move the ops into the region of a kernel at the position of the last one."""
        last = group.ops[-1]
        members = set(group.ops)
        outside = dict.fromkeys(
            value for op in group.ops for value in op.operands if value.owner not in members
        )
        is_custom = isinstance(group.anchor, CustomOp)  # its C function reads memory
        inputs = [value for value in outside if is_custom or not _is_inlined(value)]
        block = Block(arg_types=[value.type for value in inputs])
        inner: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
        for value in outside:
            if value not in inner:
                assert isinstance(value.owner, ConstantOp)
                copy = value.owner.clone()
                block.add_op(copy)
                inner[value] = copy.result
        results = list(last.results)
        for op in group.ops:
            copy = op.clone(inner)
            copy.location = op.location
            block.add_op(copy)
        block.add_op(YieldOp([inner[result] for result in results]))
        kernel = KernelOp(self._name(group), inputs, Region(block))
        kernel.location = derive(op.location for op in group.ops)
        parent = last.parent
        assert parent is not None
        parent.insert_op_before(kernel, last)
        for old, new in zip(results, kernel.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        for op in reversed(group.ops):
            op.detach()
            op.erase()

    def _name(self, group: Group) -> str:
        """The dominant op of the kernel, and a number."""
        stem = (group.anchor or group.ops[-1]).name.split(".")[-1]
        number = self._names.get(stem, 0)
        self._names[stem] = number + 1
        return f"{stem}_{number}"


def _is_widened_constant(group: Group) -> bool:
    """True for constants of fewer bits that a product, which reads them, makes wide."""
    (op,) = group.ops if len(group.ops) == 1 else (None,)
    is_widening = isinstance(op, CastOp | DequantizeOp)
    return is_widening and all(isinstance(value.owner, ConstantOp) for value in op.operands)


def has_room_for_one_more(*parts: Sequence[Operation]) -> bool:
    """True if a kernel of these ops and one more is not too long."""
    count = sum(map(len, parts))
    if count >= MAX_OPS:
        return False
    most = max(_STATEMENTS.values())
    if (count + 1) * most <= MOST_STATEMENTS:
        return True
    total = sum(_STATEMENTS.get(type(op), _OF_OTHERS) for part in parts for op in part)
    return total + most <= MOST_STATEMENTS


def is_joined_at_front(op: ConcatOp) -> bool:
    """True if the parts are contiguous in memory, one after the other: no copy is needed."""
    return all(dim == 1 for dim in dims_of(op.result)[: op.axis.data])


def _cuts_blocks(op: ConcatOp) -> bool:
    """True if parts end within a block of channels, so that they cannot be views of the result."""
    sizes = [dims_of(value)[1].value for value in op.inputs] if op.axis.data == 1 else []
    return any(size is None or size % LARGEST_BLOCK for size in sizes[:-1])


def _slice_up(op: SplitOp) -> None:
    """Replace a split by a slice for each used part: maps that their users can absorb."""
    axis, whole = op.axis.data, list(dims_of(op.input))
    total = sum(op.sizes.data, Expr.const(0))
    source = op.input
    if total != whole[axis]:
        # The slices alone would accept sizes that end before the dimension does.
        whole[axis] = total
        source = _insert_before(op, ReshapeOp(source, whole)).result
    for start, part in zip(op.starts, op.parts, strict=True):
        if not part.uses:
            continue
        starts = [start if k == axis else Expr.const(0) for k in range(len(whole))]
        new = _insert_before(op, SliceOp(source, starts, dims_of(part))).result
        new.name_hint = part.name_hint
        part.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _compute_masks(op: AttentionOp) -> None:
    """Give each mask that is computed from what is smaller ops of its own, to be absorbed."""
    for mask in op.masks:
        source = _without_ones(mask)
        if (ops := formula_of(source)) is None:
            continue
        copies: dict[SSAValue, SSAValue] = {}
        for member in ops:
            copy = member.clone(copies)
            copy.location = member.location
            _insert_before(op, copy)
            copies.update(zip(member.results, copy.results, strict=True))
        mask.replace_uses_with_if(copies[source], lambda use: use.operation is op)
        _erase_unused(dict.fromkeys([mask.owner, *reversed(ops)]))


def _without_ones(value: SSAValue) -> SSAValue:
    """The value before leading dimensions of one element were added, which a mask does without."""
    op = value.owner
    if not isinstance(op, ReshapeOp):
        return value
    inner, dims = dims_of(op.input), dims_of(value)
    added = len(dims) - len(inner)
    return op.input if added > 0 and dims == (*[Expr.const(1)] * added, *inner) else value


def formula_of(value: SSAValue) -> list[Operation] | None:
    """
    The ops, first to last, that compute a mask of an open size from what is smaller, such as the
    positions of keys and queries of a causal one; None if others do.
    """
    dims = dims_of(value)
    if all(dim.value is not None for dim in dims):
        return None
    ops: dict[Operation, None] = {}
    pending = [value]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, _OF_MASKS) or dims_of(op.results[0]) != dims:
            return None
        ops.pop(op, None)
        ops[op] = None  # behind all that read it
        if len(ops) > _MOST_OF_A_MASK:
            return None
        pending += [each for each in op.operands if not _is_smaller(dims_of(each), dims)]
    return list(reversed(ops))


def _is_smaller(part: Sequence[Expr], dims: Sequence[Expr]) -> bool:
    """True if a value is repeated along a dimension."""
    whole = (*[Expr.const(1)] * (len(dims) - len(part)), *part)
    return any(one == 1 != dim for one, dim in zip(whole, dims, strict=True))


def _erase_unused(ops: Iterable[Operation | Block]) -> None:
    for op in ops:
        if isinstance(op, Operation) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()


def _insert_before(op: Operation, new: Op) -> Op:
    new.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    return new


def _reads_once(op: Operation, value: SSAValue) -> bool:
    """True if an op reads every element of an operand for one element of its result."""
    return isinstance(op, ELEMENTWISE) or (
        isinstance(op, GatherElementsOp) and value is op.indices and value is not op.input
    )


def _belongs_in_kernel(op: Operation) -> bool:
    return isinstance(op, CoreOp) and not isinstance(op, (*_DRIVER_OPS, ConstantOp))


def _is_inlined(value: SSAValue) -> bool:
    """True for a constant of one element: it becomes a literal."""
    return (
        isinstance(value.owner, ConstantOp)
        and static_shape(value) is not None
        and (value.owner.array.size == 1)
    )


class FormKernelsPass(ModulePass):
    """
    Put every computing op into a `core.kernel`.

    An elementwise op absorbs the map that produces an operand if that map has no other use and both
    run over the same indices, so that a chain of maps is one loop nest; `fuse-epilogue` decides
    which other ops such a chain follows. A reduction absorbs the maps before it, a pool, where sums
    are in registers, what widens its input, and a convolution of one channel a group, which copies
    lines of it, what makes bytes f32. Attention absorbs slices, and ops of its own
    for a mask of an open size that few ops make of what is smaller, as they make a causal one of
    positions. A concatenation that has to copy its parts absorbs slices, too, and elementwise ops
    that are nobody's epilogue, unless it joins channels that lie in blocks; on a target without
    lanes also what they gather, such as a resized image. Constants of one element become literals.
    A split becomes slices. Reshapes, control flow and symbols stay outside: the entry function
    executes them without a kernel. A concatenation whose parts are contiguous in memory, one after
    the other, stays alone, for they may be computed in place.

    Gathered elements absorb the maps that compute their indices, each of which is read once.
    """

    name = "form-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names: dict[str, int] = {}
        for func in op.body.block.ops:
            if isinstance(func, FuncOp):
                KernelFormer(names, target_named(options_of(ctx).target)).form(func.body.block)
