"""
The state of lowering one kernel, whose straight-line `core` ops become a loop nest.

Most ops are *maps*: element i of the result is an expression of elements of the operands. They need
no loops of their own; `element` builds that expression wherever a consumer asks for it, so a chain
of maps is one nest. A kernel has at most one op that is not a map, its root op or *anchor* (two
where a strategy takes both). The plain loops of a root op (`@anchor`), or those of the strategy
that the kernel's schedule names, call `finish` for every element, which applies the epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.buffer.kernel import FuncOp, LoadOp, ReturnOp, ScratchOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.control_flow import KernelBody, YieldOp
from lowerdeck.dialects.core.index_maps import broadcast_index
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder
from lowerdeck.lowering.nests.channel_links import channel_offsets

Index = Sequence[Expr]
MapRule = Callable[["KernelLowering", Any, Index], SSAValue]
Nest = Callable[["KernelLowering"], None]
"""Builds the loops of a kernel."""
AnchorRule = Callable[["KernelLowering", Any], None]

M = TypeVar("M", bound=MapRule)

MAPS: dict[type[Operation], MapRule] = {}
ANCHORS: dict[type[Operation], AnchorRule] = {}
ACCUMULATING: set[type[Operation]] = set()
"""Root ops that accumulate in the output buffer, so the maps after them must keep its type."""
ALONE: set[type[Operation]] = set()
"""Root ops that write the result themselves, so no maps follow them in their kernel."""


A = TypeVar("A", bound=AnchorRule)


def map_rule(*ops: type[Operation]) -> Callable[[M], M]:
    """Register the rule that computes one element of a map's result."""

    def register(rule: M) -> M:
        MAPS.update(dict.fromkeys(ops, rule))
        return rule

    return register


def anchor(
    op: type[Operation], *, accumulating: bool = False, alone: bool = False
) -> Callable[[A], A]:
    """Register the loop nest of an op that is not a map."""

    def register(rule: A) -> A:
        ANCHORS[op] = rule
        if accumulating:
            ACCUMULATING.add(op)
        if alone:
            ALONE.add(op)
        return rule

    return register


class KernelLowering:
    """The state of lowering one kernel: the builder, the buffers, and what is bound to them."""

    def __init__(self, kernel: KernelBody) -> None:
        self.kernel = kernel
        source = kernel.body.block
        last = source.last_op
        assert isinstance(last, YieldOp)
        self.roots: tuple[SSAValue, ...] = tuple(last.values)
        self.block = Block()
        self.builder = KernelBuilder(self.block)
        for position, value in enumerate((*source.args, *self.roots)):
            layout = kernel.layout_at(position)
            dims, _ = self.builder.bound(layout.dims(dims_of(value)))
            type_ = RefType.of(element_type(value), dims)
            argument = self.block.insert_arg(type_, len(self.block.args))
            if not layout.is_row_major:
                self.builder.layouts[argument] = layout
        count = len(source.args)
        self.inputs: dict[SSAValue, SSAValue] = dict(
            zip(source.args, self.block.args[:count], strict=True)
        )
        self.outputs: list[SSAValue] = list(self.block.args[count:])
        self.pads: dict[Operation, bool] = {}
        """Whether what is asked of a padding lies on its input, where that is known: a constant one
        in all dimensions, others in the last."""
        self._bound: dict[SSAValue, Callable[[Index], SSAValue]] = {}
        self._scratch = 0

    def lower(self, nest: Nest | None = None) -> FuncOp:
        """The kernel as a `buffer.func`, with the loops that `nest` builds; plain ones without."""
        if nest is None:
            self.lower_plain()
        else:
            nest(self)
        for number in range(len(self.outputs)):
            self._fill_border(number)
        self.builder.append(ReturnOp())
        remove_unused(self.block)
        if self.kernel.in_place is not None:
            # It has the layout of the result.
            self.block.erase_arg(self.block.args[self.kernel.in_place.data])
        name = self.kernel.sym_name.data
        outputs = len(self.outputs) + self._scratch
        func = FuncOp(name, self.builder.symbols, outputs, Region(self.block))
        func.location = self.kernel.location
        func.schedule = self.kernel.schedule
        return func

    def lower_plain(self) -> None:
        """The plain loops of the root op, or over the elements of the results of maps."""
        anchors = [op for op in self.kernel.body.block.ops if type(op) in ANCHORS]
        if len(anchors) > 1:
            raise LoweringError(anchors[1], "is the second anchor of its kernel; run form-kernels")
        if anchors:
            ANCHORS[type(anchors[0])](self, anchors[0])
        else:
            self._lower_maps()

    def _lower_maps(self) -> None:
        for number, (root, output) in enumerate(zip(self.roots, self.outputs, strict=True)):
            for nest in self.output_nests(number):
                with nest as at:
                    self.builder.store(self.element(root, at), output, at)

    def layout_of(self, value: SSAValue) -> LayoutAttr:
        """The memory layout of an argument of the kernel; row-major for computed values."""
        if value in self.inputs:
            return self.kernel.layout(value)
        return LayoutAttr.row_major(len(dims_of(value)))

    def output_layout(self, number: int = 0) -> LayoutAttr:
        """The memory layout of a result."""
        return self.kernel.layout_at(len(self.inputs) + number)

    def output_nests(self, number: int) -> Iterator[AbstractContextManager[list[Expr]]]:
        """
        Independent loops over all elements of a result in storage order, including the padding at
        the end of its last channel block; two nests without that padding, if inputs have no
        padding to read there. Other padding is never touched.
        """
        dims, layout = dims_of(self.roots[number]), self.output_layout(number)
        if _is_padded_elsewhere(layout, dims):
            yield from self._inside_nests(layout, dims)
            return
        block = layout.inner(1) if layout.rank > 1 else 1
        channels = dims[1].value if block > 1 else None
        if channels is None or channels % block == 0 or self.has_padding_to_read(number):
            yield self.nest_over(layout, dims)
            return
        if channels >= block:
            yield self.nest_over(
                layout, [dims[0], Expr.const(channels // block * block), *dims[2:]]
            )
        yield self._rest_nest(layout, dims, channels // block * block)

    def _inside_nests(
        self, layout: LayoutAttr, dims: Sequence[Expr]
    ) -> Iterator[AbstractContextManager[list[Expr]]]:
        """
        Loops over the axes of a tensor, in the order of their outermost pieces, and last over the
        block that lies innermost; what is left of the last block is a nest of its own.
        """
        block = Expr.const(layout.inner(layout.data.pieces[-1].axis))
        whole = dims[layout.data.pieces[-1].axis] // block
        rest = dims[layout.data.pieces[-1].axis] - whole * block
        for first, count, lanes in ((Expr.const(0), whole, block), (whole, Expr.const(1), rest)):
            if count != 0 and lanes != 0:
                yield self._inside_nest(layout, dims, first, (count, lanes))

    @contextmanager
    def _inside_nest(
        self, layout: LayoutAttr, dims: Sequence[Expr], first: Expr, sizes: tuple[Expr, Expr]
    ) -> Generator[list[Expr]]:
        """From the first block on so many blocks of the innermost axis, and elements in each."""
        count, lanes = sizes
        last = layout.data.pieces[-1]
        axes = list(dict.fromkeys(piece.axis for piece in layout.data.pieces))
        labels = [(f"d{k}", count if k == last.axis else dims[k]) for k in axes]
        width = lanes.value or 0
        mode = "lanes" if width > 1 and width & (width - 1) == 0 else None
        b = self.builder
        with (
            b.labeled_nest(labels, parallel=True) as outer,
            b.loop(lanes, label="lane", mode=mode) as lane,
        ):
            at = dict(zip(axes, outer, strict=True))
            at[last.axis] = (at[last.axis] + first) * layout.inner(last.axis) + lane
            yield [at[axis] for axis in range(len(dims))]

    def nest_over(
        self, layout: LayoutAttr, dims: Sequence[Expr]
    ) -> AbstractContextManager[list[Expr]]:
        """
        Independent loops over all elements of a tensor in storage order; yields the index in the
        tensor. Loops are labeled `d0`, `d1`, ... by dimension of the storage; the loop over an
        innermost block is a loop over lanes.
        """
        inside = layout.padded((0,) * layout.rank, (0,) * layout.rank)
        return self._storage_nest(inside, inside.dims(dims))

    def _rest_nest(
        self, layout: LayoutAttr, dims: Sequence[Expr], first: int
    ) -> AbstractContextManager[list[Expr]]:
        """Like `nest_over`, for the channels from `first` on, which are fewer than a block."""
        begin = (0, -first, *([0] * (layout.rank - 2)))
        inside = layout.padded(begin, (0,) * layout.rank)
        sizes = inside.dims(dims)
        sizes[-1] = dims[1] - first
        return self._storage_nest(inside, sizes)

    @contextmanager
    def _storage_nest(self, layout: LayoutAttr, sizes: Sequence[Expr]) -> Generator[list[Expr]]:
        labels = [(f"d{k}", size) for k, size in enumerate(sizes)]
        # A scalar has no dimensions.
        is_blocked = bool(sizes) and layout.inner(layout.data.pieces[-1].axis) > 1
        with self.builder.labeled_nest(labels[:-1] if is_blocked else labels, parallel=True) as at:
            if not is_blocked:
                yield layout.tensor_index(at)
                return
            with self.builder.loop(labels[-1][1], label=labels[-1][0], mode="lanes") as lane:
                yield layout.tensor_index([*at, lane])

    def has_padding_to_read(self, number: int) -> bool:
        """
        True if result channels beyond the last one, up to a multiple of its block, need no element
        beyond the end of an input: all values that vary along the channels have the same blocks.
        """
        if (offsets := channel_offsets(self.kernel)) is None:
            return False
        rank, block = len(dims_of(self.roots[number])), self.output_layout(number).inner(1)
        for position, argument in enumerate(self.kernel.body.block.args):
            dims, layout = dims_of(argument), self.kernel.layout_at(position)
            # Constants may have fewer dimensions.
            axis = len(dims) - rank + 1
            is_constant = self.kernel.is_constant(position)
            if position in offsets:
                if layout.inner(1) != block or offsets[position] % block:
                    return False
            elif is_constant and axis >= 0 and dims[axis] != 1 and layout.inner(axis) != block:
                return False
        return True

    def _fill_border(self, number: int) -> None:
        """Set the border of a result to zero, in loops that share no element."""
        dims, layout = dims_of(self.roots[number]), self.output_layout(number)
        spans = [(Expr.const(0), size) for size in layout.dims(dims)]
        outer = {piece.axis: piece for piece in layout.data.pieces if piece.size is None}
        for axis, (begin, end) in enumerate(zip(layout.data.begin, layout.data.end, strict=True)):
            if not (begin or end):
                continue
            place, inside = layout.data.pieces.index(outer[axis]), dims[axis] + begin
            for lower, upper in ((0, begin), (inside, inside + end)):
                if Expr.of(lower) != upper:
                    spans[place] = (Expr.of(lower), Expr.of(upper))
                    self._fill(number, layout, spans)
            spans[place] = (Expr.const(begin), inside)

    def _fill(self, number: int, layout: LayoutAttr, spans: Sequence[tuple[Expr, Expr]]) -> None:
        """Zeros where each dimension of the storage lies within its bounds."""
        b = self.builder
        lanes = layout.inner(layout.data.pieces[-1].axis)
        labels = [
            (f"b{k}", upper - lower) for k, (lower, upper) in enumerate(spans) if k < len(spans) - 1
        ]
        with b.labeled_nest(labels, parallel=True) as at:
            mode = "lanes" if lanes > 1 else None
            lower, upper = spans[-1]
            with b.loop(upper - lower, label=f"b{len(spans) - 1}", mode=mode) as last:
                where = [i + lower for i, (lower, _) in zip([*at, last], spans, strict=True)]
                zero = scalars.constant(b, 0, element_type(self.roots[number]))
                narrow = scalars.narrow(b, zero, element_type(self.roots[number]))
                b.store_border(narrow, self.outputs[number], where)

    # For rules

    def element(self, value: SSAValue, at: Index) -> SSAValue:
        """The element of a value of the kernel at an index, computed where the builder stands."""
        at = tuple(at)
        if (known := self.builder.recall((value, at))) is not None:
            return known
        if value in self._bound:
            result = self._bound[value](at)
        elif value in self.inputs:
            result = self.builder.load(self.inputs[value], at)
        else:
            result = self._map(value, at)
        return self.builder.remember((value, at), result)

    def _map(self, value: SSAValue, at: Index) -> SSAValue:
        assert isinstance(value, OpResult)
        rule = MAPS.get(type(value.op))
        if rule is None:
            raise LoweringError(value.op, "has no lowering to loops")
        return rule(self, value.op, at)

    def operand(self, value: SSAValue, at: Index, dims: Sequence[Expr]) -> SSAValue:
        """The element of an operand that broadcasts to `dims`, for the result's index."""
        return self.element(value, broadcast_index(at, dims_of(value), dims))

    def bind(self, value: SSAValue, rule: Callable[[Index], SSAValue]) -> None:
        """Set the rule that computes an element of a value of the kernel from here on."""
        self._bound[value] = rule

    def scratch(self, element: Attribute, dims: Sequence[int]) -> SSAValue:
        """
        A workspace buffer within the kernel: one more output, after the results, that is never
        read.
        """
        self._scratch += 1
        return self.block.insert_arg(RefType.of(element, dims), len(self.block.args))

    def finish(self, op: Operation, at: Index, value: SSAValue) -> None:
        """The root op's element at `at` is `value`: apply the epilogue to it and store it."""
        self.builder.store(self.finished(op, at, value), self.outputs[0], at)

    def finished(self, op: Operation, at: Index, value: SSAValue) -> SSAValue:
        """The epilogue applied to the root op's element at `at`, which is `value`."""
        self._bound[op.results[0]] = lambda _: value
        return self.element(self.roots[0], at)

    def finish_in_place(self, op: Operation, at: Index) -> None:
        """The root op's element at `at` is in the output buffer: apply the epilogue to it."""
        self._bound[op.results[0]] = lambda where: self.builder.load(self.outputs[0], where)
        self.builder.store(self.element(self.roots[0], at), self.outputs[0], at)

    def has_epilogue(self, op: Operation) -> bool:
        """True if maps follow the root op."""
        return self.roots[0] is not op.results[0]


def _is_padded_elsewhere(layout: LayoutAttr, dims: Sequence[Expr]) -> bool:
    """True if an axis that ends within a block is another one than channels in innermost blocks."""
    for axis, dim in enumerate(dims):
        block = layout.block(axis)
        is_whole = dim.value is not None and dim.value % block == 0
        if not is_whole and block > 1 and not (axis == 1 and layout.inner(1) == block):
            return True
    return False


def remove_unused(block: Block) -> None:
    """Erase ops that make or read unused values, so that rules need not look ahead."""
    for op in list(block.walk(reverse=True)):
        is_removable = op.has_trait(Pure) or isinstance(op, LoadOp | ScratchOp)
        if is_removable and op.results and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
