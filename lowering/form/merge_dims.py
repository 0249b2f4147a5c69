"""`merge-dims`: dimensions next to each other that a kernel treats alike become one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.disjoint_set import DisjointSet

from lowerdeck.dialects.core.base import CoreOp, int_array
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import PadMode
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp, LayerNormOp, MatmulOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import DimsAttr, dims_of, element_type, tensor
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.structure import nameless_key

Joint: TypeAlias = tuple[SSAValue, int]
"""Two dimensions of a value next to each other, by the number of the first one."""


LONGEST_REACH = 256
"""How far the taps of a window may be apart along a line: what lies between them is copied."""


class Joints:
    """Which dimensions of the values of a kernel are one with the next, and with which others."""

    def __init__(self, values: Sequence[SSAValue]) -> None:
        self._joints: list[Joint] = [
            (value, axis) for value in values for axis in range(len(dims_of(value)) - 1)
        ]
        self._sets = DisjointSet[Joint | None]([None, *self._joints])

    def link(self, one: Joint, other: Joint) -> None:
        """Both stay apart, or neither does."""
        self._sets.union_left(one, other)

    def split(self, value: SSAValue, *axes: int) -> None:
        """These dimensions are not one with those behind them; there may be none behind them."""
        for axis in axes:
            if 0 <= axis < len(dims_of(value)) - 1:
                self._sets.union_left(None, (value, axis))

    def are_one(self, joint: Joint) -> bool:
        """True if nothing keeps the two apart."""
        return not self._sets.connected(None, joint)

    def groups(self, value: SSAValue) -> list[list[int]]:
        """The dimensions of a value, those that become one side by side."""
        groups: list[list[int]] = []
        for axis in range(len(dims_of(value))):
            if axis and self.are_one((value, axis - 1)):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def group_of(self, value: SSAValue, axis: int) -> int:
        """What number the dimension has of which `axis` becomes a part."""
        return next(k for k, group in enumerate(self.groups(value)) if axis in group)

    def dims(self, value: SSAValue) -> list[Expr]:
        """The dimensions that a value has afterwards."""
        dims = dims_of(value)
        return [product([dims[axis] for axis in group]) for group in self.groups(value)]

    def scaled(self, value: SSAValue, places: Sequence[Expr]) -> DimsAttr:
        """
        Places along the dimensions of a value, in elements of what these become. Only the first of
        each has one that is not zero.
        """
        dims = dims_of(value)
        return DimsAttr.of(
            [
                places[first] * product([dims[axis] for axis in rest])
                for first, *rest in self.groups(value)
            ]
        )


@record
class _Rule:
    """How an op sees dimensions, and what of its properties changes with them."""

    join: Callable[[Joints, CoreOp], None]
    properties: Callable[[Joints, CoreOp], Mapping[str, Attribute]]


def _unchanged(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    return {}


def _join_broadcast(joints: Joints, op: CoreOp) -> None:
    """Two dimensions are one where each operand has both, or is repeated along both."""
    result = op.results[0]
    dims = dims_of(result)
    for operand in op.operands:
        skipped = len(dims) - len(dims_of(operand))
        repeats = _repeats(dims_of(operand), dims)
        for axis, (outer, inner) in enumerate(pairwise(repeats)):
            if axis >= skipped:
                joints.link((result, axis), (operand, axis - skipped))
            if outer != inner:
                joints.split(result, axis)


def _repeats(own: Sequence[Expr], dims: Sequence[Expr]) -> list[bool | Expr]:
    """
    Along which dimensions of a result an operand is repeated; one of a single element goes with
    the one before it, and the first ones with what follows. Where only the run shows whether the
    operand is repeated, the dimension is like no other: it stands for itself.
    """
    missing = [Expr.const(1)] * (len(dims) - len(own))
    found: list[bool | Expr] = []
    for one, whole in zip([*missing, *own], dims, strict=True):
        if whole == 1 and found:
            found.append(found[-1])
        elif one in (whole, 1):
            found.append(one != whole)
        else:
            found.append(Expr.symbol(f"axis.{len(found)}"))
    first = next((k for k, whole in enumerate(dims) if whole != 1), 0)
    return found[first : first + 1] * first + found[first:]


def _join_transpose(joints: Joints, op: CoreOp) -> None:
    assert isinstance(op, TransposeOp)
    order = ints(op.permutation)
    follows = {axis: other for axis, other in pairwise(order) if other == axis + 1}
    for axis, source in enumerate(order[:-1]):
        if source in follows:
            joints.link((op.result, axis), (op.input, source))
        else:
            joints.split(op.result, axis)
    joints.split(op.input, *(axis for axis in range(len(order)) if axis not in follows))


def _transposed(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, TransposeOp)
    order = ints(op.permutation)
    firsts = [order[group[0]] for group in joints.groups(op.result)]
    return {"permutation": int_array([joints.group_of(op.input, axis) for axis in firsts])}


def _join_slice(joints: Joints, op: CoreOp) -> None:
    """Whole lines of what is cut with a step of one."""
    assert isinstance(op, SliceOp)
    starts, steps = op.starts.data, op.steps.data
    whole, part = dims_of(op.input), dims_of(op.result)
    for axis in range(len(whole) - 1):
        joints.link((op.result, axis), (op.input, axis))
        is_whole = starts[axis + 1] == 0 and whole[axis + 1] == part[axis + 1]
        if not is_whole or steps[axis] != 1 or steps[axis + 1] != 1:
            joints.split(op.result, axis)


def _sliced(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, SliceOp)
    return {
        "starts": joints.scaled(op.input, op.starts.data),
        "sizes": DimsAttr.of(joints.dims(op.result)),
        "steps": DimsAttr.of([op.steps.data[group[0]] for group in joints.groups(op.input)]),
    }


def _join_pad(joints: Joints, op: CoreOp) -> None:
    """Whole lines of what is padded with a constant; nothing that is mirrored or repeated."""
    assert isinstance(op, PadOp)
    pads = list(zip(op.begin.data, op.end.data, strict=True))
    for axis, (outer, inner) in enumerate(pairwise(pads)):
        joints.link((op.result, axis), (op.input, axis))
        moves = any(pad != 0 for pad in inner)
        mirrors = op.mode.data is not PadMode.CONSTANT and any(pad != 0 for pad in outer)
        if moves or mirrors:
            joints.split(op.result, axis)


def _padded(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, PadOp)
    return {
        "begin": joints.scaled(op.input, op.begin.data),
        "end": joints.scaled(op.input, op.end.data),
    }


def _join_concat(joints: Joints, op: CoreOp) -> None:
    """What is joined and whole lines of it, or one of it."""
    assert isinstance(op, ConcatOp)
    axis, dims = op.axis.data, dims_of(op.result)
    for operand in op.inputs:
        for k, (one, other) in enumerate(zip(dims_of(operand), dims, strict=True)):
            if k + 1 < len(dims):
                joints.link((op.result, k), (operand, k))
            if k != axis and one != other:
                joints.split(op.result, k - 1, k)
    if any(dim != 1 for dim in dims[:axis]):
        joints.split(op.result, axis - 1)


def _join_reduce(joints: Joints, op: CoreOp) -> None:
    """Reduced dimensions, and those that stay, each among themselves."""
    assert isinstance(op, ReduceOp | ArgReduceOp)
    axes = ints(op.axes) if isinstance(op, ReduceOp) else [op.axis.data]
    rank, keeps = len(dims_of(op.input)), bool(op.keep_dims.value.data)
    stay = [axis for axis in range(rank) if keeps or axis not in axes]
    for axis in range(rank - 1):
        if (axis in axes) != (axis + 1 in axes):
            joints.split(op.input, axis)
    for at, (axis, following) in enumerate(pairwise(stay)):
        if following == axis + 1:
            joints.link((op.result, at), (op.input, axis))
        else:
            joints.split(op.result, at)


def _reduced(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, ReduceOp)
    axes = {joints.group_of(op.input, axis) for axis in ints(op.axes)}
    return {"axes": int_array(sorted(axes))}


def _join_pool(joints: Joints, op: CoreOp) -> None:
    """
    Spatial dimensions, if the only window is all of the input; channels and the dimensions behind
    them that windows have one element of.
    """
    assert isinstance(op, PoolOp)
    rank = len(dims_of(op.input))
    first = 2 + _single(op)
    joints.split(op.input, 0)
    joints.split(op.result, 0)
    for axis in range(1, rank - 1):
        if axis + 1 < first or (axis >= 2 and _is_whole(op)):
            joints.link((op.result, axis), (op.input, axis))
        else:
            joints.split(op.input, axis)
            joints.split(op.result, axis)


def _single(op: PoolOp) -> int:
    """How many of the first spatial dimensions are so many images side by side, but not all."""
    if _is_whole(op):
        return 0
    entries = zip(
        op.kernel.data, ints(op.strides), op.pads_begin.data, op.pads_end.data, strict=True
    )
    is_single = [kernel == 1 and step == 1 and b == e == 0 for kernel, step, b, e in entries]
    return is_single[:-1].index(False) if False in is_single[:-1] else len(is_single) - 1


def _is_whole(op: PoolOp) -> bool:
    is_padded = any(pad != 0 for pad in (*op.pads_begin.data, *op.pads_end.data))
    is_dilated = any(dilation != 1 for dilation in ints(op.dilations))
    return not is_padded and not is_dilated and tuple(op.kernel.data) == dims_of(op.input)[2:]


def _pooled(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, PoolOp)
    if not _is_whole(op):
        axes = [group[0] - 2 for group in joints.groups(op.input)[2:]]
        numbers = {"strides": op.strides, "dilations": op.dilations}
        sizes = {
            "kernel": op.kernel,
            "pads_begin": op.pads_begin,
            "pads_end": op.pads_end,
            "overhang": op.overhang,
        }
        return {
            **{name: int_array([ints(all_)[k] for k in axes]) for name, all_ in numbers.items()},
            **{name: DimsAttr.of([all_.data[k] for k in axes]) for name, all_ in sizes.items()},
        }
    kernel = joints.dims(op.input)[2:]
    ones, zeros = int_array([1] * len(kernel)), DimsAttr.of([0] * len(kernel))
    return {
        "kernel": DimsAttr.of(kernel),
        **dict.fromkeys(("strides", "dilations"), ones),
        **dict.fromkeys(("pads_begin", "pads_end", "overhang"), zeros),
    }


def _join_along(joints: Joints, op: CoreOp) -> None:
    """Every dimension but the one that the op goes along."""
    assert isinstance(op, SoftmaxOp | CumulativeOp)
    for axis in range(len(dims_of(op.input)) - 1):
        joints.link((op.result, axis), (op.input, axis))
    joints.split(op.input, op.axis.data - 1, op.axis.data)


def _join_norm(joints: Joints, op: CoreOp) -> None:
    """Dimensions that are normalized, and those that stay, where parameters allow it."""
    assert isinstance(op, LayerNormOp)
    _join_broadcast(joints, op)
    joints.split(op.result, op.axis.data - 1)


def _join_gather(joints: Joints, op: CoreOp) -> None:
    """Those of the indices, those before and those behind what is gathered along."""
    assert isinstance(op, GatherOp)
    axis, rank = op.axis.data, len(dims_of(op.indices))
    joints.split(op.input, axis - 1, axis)
    joints.split(op.result, axis - 1, axis + rank - 1)
    for k in range(len(dims_of(op.input)) - 1):
        if k + 1 < axis:
            joints.link((op.result, k), (op.input, k))
        elif k > axis:
            joints.link((op.result, k + rank - 1), (op.input, k))
    for k in range(rank - 1):
        joints.link((op.result, axis + k), (op.indices, k))


def _join_matmul(joints: Joints, op: CoreOp) -> None:
    """The rows of all left matrices, if all of them meet the same right one."""
    assert isinstance(op, MatmulOp)
    left, right, dims = map(dims_of, (op.lhs, op.rhs, op.result))
    rows = len(dims) - 2
    is_shared = len(right) == 2 and not any(map(dims_of, op.zeros[:1]))
    for axis in range(rows):
        if is_shared:
            joints.link((op.result, axis), (op.lhs, axis))
        else:
            joints.split(op.result, axis)
    joints.split(op.result, rows)
    joints.split(op.lhs, *(() if is_shared else range(len(left))), len(left) - 2)
    joints.split(op.rhs, *range(len(right)))
    for zeros in op.zeros:
        joints.split(zeros, *range(len(dims_of(zeros))))


def _join_conv(joints: Joints, op: CoreOp) -> None:
    """
    Spatial dimensions, the second of which windows have one element of: lines above each other
    become one line, in which taps of the first are whole lines apart.
    """
    assert isinstance(op, ConvOp)
    rank = len(dims_of(op.input))
    for value in (op.input, op.weight, op.result):
        joints.split(value, 0, 1)
    for zeros in op.zero_points:
        joints.split(zeros, *range(len(dims_of(zeros))))
    for axis in range(2, rank - 1):
        joints.link((op.result, axis), (op.input, axis))
        joints.link((op.weight, axis), (op.input, axis))
        if op.zero_points or not _is_line_by_line(op, axis):
            joints.split(op.input, axis)


def _is_line_by_line(op: ConvOp, axis: int) -> bool:
    """True if a dimension may be one with the next one."""
    taps, strides = dims_of(op.weight), ints(op.strides)
    outer, inner = axis - 2, axis - 1
    is_free = [op.pads_begin.data[k] == op.pads_end.data[k] == 0 for k in (outer, inner)]
    if taps[axis + 1] != 1 or strides[outer] != 1 or strides[inner] != 1 or not is_free[1]:
        return False
    if taps[axis] == 1 and is_free[0]:
        return True
    reach = product(dims_of(op.input)[axis + 1 :]) * (taps[axis] - 1) * ints(op.dilations)[outer]
    return reach.value is not None and reach.value <= LONGEST_REACH


def _convolved(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(op, ConvOp)
    dims, groups = dims_of(op.input), joints.groups(op.input)[2:]
    axes = [group[0] - 2 for group in groups]
    lines = [product([dims[axis] for axis in group[1:]]) for group in groups]
    dilations = [
        ints(op.dilations)[axis] * (1 if dims_of(op.weight)[axis + 2] == 1 else line.value or 1)
        for axis, line in zip(axes, lines, strict=True)
    ]
    pads = {
        name: DimsAttr.of([all_.data[axis] * line for axis, line in zip(axes, lines, strict=True)])
        for name, all_ in (("pads_begin", op.pads_begin), ("pads_end", op.pads_end))
    }
    return {
        "strides": int_array([ints(op.strides)[axis] for axis in axes]),
        "dilations": int_array(dilations),
        **pads,
    }


def _axis(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    assert isinstance(
        op, ArgReduceOp | SoftmaxOp | CumulativeOp | ConcatOp | GatherOp | LayerNormOp
    )
    return {"axis": IntAttr(joints.group_of(op.operands[0], op.axis.data))}


def _broadcast_dims(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    return {"dims": DimsAttr.of(joints.dims(op.results[0]))}


_RULES: Mapping[type[Operation], _Rule] = {
    **dict.fromkeys(ELEMENTWISE, _Rule(_join_broadcast, _unchanged)),
    BroadcastOp: _Rule(_join_broadcast, _broadcast_dims),
    TransposeOp: _Rule(_join_transpose, _transposed),
    SliceOp: _Rule(_join_slice, _sliced),
    PadOp: _Rule(_join_pad, _padded),
    ConcatOp: _Rule(_join_concat, _axis),
    ReduceOp: _Rule(_join_reduce, _reduced),
    ArgReduceOp: _Rule(_join_reduce, _axis),
    PoolOp: _Rule(_join_pool, _pooled),
    SoftmaxOp: _Rule(_join_along, _axis),
    CumulativeOp: _Rule(_join_along, _axis),
    LayerNormOp: _Rule(_join_norm, _axis),
    GatherOp: _Rule(_join_gather, _axis),
    MatmulOp: _Rule(_join_matmul, _unchanged),
    ConvOp: _Rule(_join_conv, _convolved),
}


def joints_of(kernel: KernelOp) -> Joints | None:
    """Which dimensions become one; None if none does, or the kernel has an op without a rule."""
    if kernel.view is not None or not all(layout.is_row_major for layout in _layouts(kernel)):
        return None
    ops = [op for op in kernel.body.block.ops if not isinstance(op, YieldOp)]
    values = [*kernel.body.block.args, *(result for op in ops for result in op.results)]
    joints = Joints(values)
    for op in ops:
        rule = _RULES.get(type(op))
        if rule is not None:
            assert isinstance(op, CoreOp)
            rule.join(joints, op)
        elif isinstance(op, ConstantOp):
            joints.split(op.result, *range(len(dims_of(op.result))))
        else:
            return None
    merges = any(len(joints.dims(value)) < len(dims_of(value)) for value in values)
    return joints if merges else None


def _layouts(kernel: KernelOp) -> Iterator[LayoutAttr]:
    return map(kernel.layout_at, range(len(kernel.inputs) + len(kernel.results)))


@record
class Merged:
    """What a kernel becomes, and any that is equal to it."""

    dims: Sequence[Sequence[Expr]]
    """Of the values that it reads."""
    body: Region
    """To be cloned."""


def merged(kernel: KernelOp, joints: Joints) -> Merged:
    """A kernel with fewer dimensions."""
    arguments = kernel.body.block.args
    dims = [joints.dims(argument) for argument in arguments]
    types = [tensor(element_type(a), own) for a, own in zip(arguments, dims, strict=True)]
    block = Block(arg_types=types)
    values: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
    for op in kernel.body.block.ops:
        operands = [values[operand] for operand in op.operands]
        if isinstance(op, YieldOp):
            new: Operation = YieldOp(operands)
        else:
            assert isinstance(op, CoreOp)
            new = op.with_operands(operands, _properties(joints, op))
        values.update(zip(op.results, new.results, strict=True))
        block.add_op(new)
    return Merged(dims, Region(block))


def replace(kernel: KernelOp, by: Merged) -> None:
    """Reshape what a kernel reads and what it gives, so that it has fewer dimensions."""
    inputs = [
        _reshaped(value, dims, kernel) for value, dims in zip(kernel.inputs, by.dims, strict=True)
    ]
    body = by.body.clone()
    for op, new in zip(kernel.body.block.ops, body.block.ops, strict=True):
        new.location = op.location
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
    replacement = KernelOp(kernel.sym_name.data, inputs, body)
    replacement.location = kernel.location
    Rewriter.insert_op(replacement, InsertPoint.before(kernel))
    results = [
        _reshaped(new, dims_of(old), kernel)
        for new, old in zip(replacement.results, kernel.results, strict=True)
    ]
    for old, result in zip(kernel.results, replacement.results, strict=True):
        result.name_hint = old.name_hint
    Rewriter.replace_op(kernel, [], results)


def _properties(joints: Joints, op: CoreOp) -> Mapping[str, Attribute]:
    rule = _RULES.get(type(op))
    return {} if rule is None else rule.properties(joints, op)


def _reshaped(value: SSAValue, dims: Sequence[Expr], kernel: KernelOp) -> SSAValue:
    """
    A value with other dimensions, before a kernel; what has been reshaped is so only once, and a
    constant of known dimensions stays one.
    """
    while list(dims_of(value)) != list(dims) and isinstance(value.owner, ReshapeOp):
        value = value.owner.input
    if list(dims_of(value)) == list(dims):
        return value
    if isinstance(value.owner, ConstantOp) and constants(dims) is not None:
        new = ConstantOp(value.owner.value, tensor(element_type(value), dims))  # the same bytes
    else:
        new = ReshapeOp(value, dims)
    new.location = kernel.location
    Rewriter.insert_op(new, InsertPoint.before(kernel))
    return new.result


class MergeDimsPass(ModulePass):
    """
    f(x : a x b x c) -> reshape(f(reshape(x) : a x bc)) : a x b x c
        [values row-major; f treats b and c alike: maps of equal shapes or of one element along
         both, both reduced or neither, both normalized or neither, both under one window, images
         of a volume that pools take one by one, rows that meet the same right matrix, lines of
         which windows of a convolution have one element each, whole lines cut out, joined,
         padded, moved or gathered]

    Loops become fewer and longer, so that vectors and threads have more side by side.
    """

    name = "merge-dims"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        recorder = recorder_of(ctx)
        known: dict[Hashable, Merged | None] = {}
        for kernel in [k for k in all_ops(op) if isinstance(k, KernelOp)]:
            key = nameless_key(kernel)
            if key not in known:
                joints = joints_of(kernel)
                known[key] = None if joints is None else merged(kernel, joints)
            if (by := known[key]) is not None and recorder.decide(
                self.name, "merge-dims", [kernel], "what is treated alike is one dimension"
            ):
                replace(kernel, by)
        for reshape in [r for r in op.walk(reverse=True) if isinstance(r, ReshapeOp)]:
            if not any(reshape.result.uses):
                Rewriter.erase_op(reshape)
