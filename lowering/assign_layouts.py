"""`assign-layouts`: how values between kernels lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ConcatOp, SliceOp, ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.lowering.channel_links import channel_offsets
from lowerdeck.lowering.kernels.convolution import FEWEST_LANES
from lowerdeck.lowering.kernels.depthwise import is_depthwise
from lowerdeck.lowering.kernels.lower import ANCHORS
from lowerdeck.lowering.kernels.transposed import has_phases, transposed_border
from lowerdeck.lowering.schedule.rules import assumed_shape, leaves_out_padding
from lowerdeck.lowering.targets import machine_of
from lowerdeck.passes.context import options_of

_BLOCKED = (ConvOp, ConvTransposeOp, PoolOp, ConcatOp, ReduceOp)
"""Anchors that work on channels in blocks."""

Border = tuple[int, ...]
"""Elements of padding: at the begin of all axes, then at their end."""


def anchor_of(kernel: KernelOp) -> Operation | None:
    """The op of a kernel that is not a map."""
    return next((op for op in kernel.body.block.ops if type(op) in ANCHORS), None)


@dataclass(frozen=True)
class Role:
    """What a kernel with one result asks of the layouts of its values."""

    linked: dict[int, int] = field(default_factory=dict[int, int])
    """The inputs that have to be blocked if the result is, by position: channel c of the result
    needs channel c + offset of them."""
    is_blocked: bool = False
    """True if the result is blocked whatever the inputs are."""
    image: int | None = None
    """The input that a convolution slides over."""
    is_free: bool = False
    """True if inputs may lie in any way, however the result does."""
    prefers_blocks: bool = False
    """True if the kernel is much faster on blocks."""
    works_on_rows: bool = False
    """True for a convolution that takes and gives its values row-major, with a border."""


def role_of(kernel: KernelOp, lanes: int) -> Role | None:
    """What a kernel asks for; None if it takes and gives row-major values only."""
    if len(kernel.results) != 1:
        return None
    anchor = anchor_of(kernel)
    if anchor is not None and not isinstance(anchor, _BLOCKED):
        return None
    if isinstance(anchor, ConvOp):
        return _role_of_conv(kernel, anchor, lanes)
    if isinstance(anchor, ConvTransposeOp):
        return _role_of_transposed(kernel, anchor)
    offsets = None if isinstance(anchor, ReduceOp) else channel_offsets(kernel)
    if offsets is None or not can_be_blocked(kernel.results[0]):
        return Role(is_free=True)
    if any(offset % lanes for offset in offsets.values()):
        return Role(is_free=True)
    return Role(offsets)


def _role_of_conv(kernel: KernelOp, op: ConvOp, lanes: int) -> Role | None:
    offsets = channel_offsets(kernel)
    pads = [pad.value for pad in (*op.pads_begin.data, *op.pads_end.data)]
    weight = static_shape(op.weight)
    if offsets is None or None in pads or weight is None or not can_be_blocked(kernel.results[0]):
        return None
    image = _position(kernel, op.input)
    parameters = [op.weight] if op.bias is None else [op.weight, op.bias]
    if image is None or not all(_is_constant(kernel, value) for value in parameters):
        return None
    if is_depthwise(op):
        return Role(offsets, image=image, prefers_blocks=True)
    size = weight[0] // op.groups.data
    if op.groups.data > 1 and size < lanes and gcd(size, lanes) < FEWEST_LANES:
        return None
    if lanes > 1 and _works_on_rows(kernel, op):
        return Role(offsets, image=image, works_on_rows=True)
    return Role(offsets, is_blocked=True, image=image)


def _works_on_rows(kernel: KernelOp, op: ConvOp) -> bool:
    """True if blocks would only have to be undone: few channels come in, and rows go out."""
    if leaves_out_padding(kernel, op):
        return False
    leaves = not any(isinstance(use.operation, KernelOp) for use in kernel.results[0].uses)
    few = (dims_of(op.input)[1].value or FEWEST_LANES + 1) <= FEWEST_LANES
    return leaves and few and op.groups.data == 1 and ints(op.strides)[-1] == 1


def _role_of_transposed(kernel: KernelOp, op: ConvTransposeOp) -> Role | None:
    offsets, image = channel_offsets(kernel), _position(kernel, op.input)
    if offsets is None or image is None or not can_be_blocked(kernel.results[0]):
        return None
    parameters = [op.weight] if op.bias is None else [op.weight, op.bias]
    if not has_phases(op) or not all(_is_constant(kernel, value) for value in parameters):
        return None
    return Role(offsets, is_blocked=True, image=image)


def _position(kernel: KernelOp, value: SSAValue) -> int | None:
    return next((k for k, a in enumerate(kernel.body.block.args) if a is value), None)


def _is_constant(kernel: KernelOp, value: SSAValue) -> bool:
    position = _position(kernel, value)
    return position is not None and isinstance(kernel.inputs[position].owner, ConstantOp)


def can_be_blocked(value: SSAValue) -> bool:
    """True for f32 with a known number of channels (dimension 1) and dimensions behind them."""
    dims = dims_of(value)
    return len(dims) > 2 and (dims[1].value or 0) > 0 and element_type(value) == f32


def block_for(channels: int, lanes: int) -> int:
    """The size of blocks for a number of channels: fewer lanes if there are few."""
    block = min(FEWEST_LANES, lanes)
    while block < min(channels, lanes):
        block *= 2
    return block


def size_of(value: SSAValue) -> int:
    """About how many elements a value has."""
    return prod(assumed_shape(value))


class Components:
    """Values that lie alike: union-find."""

    def __init__(self) -> None:
        self._parents: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        """The value that stands for all of a component."""
        root = value
        while (parent := self._parents.get(root, root)) is not root:
            root = parent
        while (parent := self._parents.get(value, value)) is not root:
            self._parents[value], value = root, parent
        return root

    def join(self, one: SSAValue, other: SSAValue) -> None:
        """Make two components one."""
        self._parents[self.find(one)] = self.find(other)


def kernels_in(block: Block) -> Iterator[KernelOp]:
    """The kernels of a block and of the blocks in it, in order."""
    for op in block.ops:
        if isinstance(op, KernelOp):
            yield op
            continue
        for region in op.regions:
            yield from kernels_in(region.block)


class LayoutPlan:
    """
    Which values of a function are blocked, and with what border.

    Values that kernels without a preference lead to each other lie alike. Each such component is
    blocked or row-major, whichever moves less memory in conversions.
    """

    def __init__(self, body: Block, lanes: int) -> None:
        self._lanes = lanes
        self.roles: dict[KernelOp, Role] = {}
        for kernel in kernels_in(body):
            if (role := role_of(kernel, lanes)) is not None:
                self.roles[kernel] = role
        self._components = Components()
        self._saved: dict[SSAValue, float] = {}
        """By component: the memory traffic that blocks save."""
        self._channels: dict[SSAValue, int] = {}
        self._join()
        self._weigh()
        self._borders = self._find_borders()

    def _values(self) -> dict[SSAValue, None]:
        """Everything that could be blocked."""
        found: dict[SSAValue, None] = {}
        for kernel, role in self.roles.items():
            inputs = {*role.linked, *(() if role.image is None else (role.image,))}
            for value in (*(kernel.inputs[k] for k in sorted(inputs)), kernel.results[0]):
                if can_be_blocked(value):
                    found[value] = None
        return found

    def _join(self) -> None:
        for kernel, role in self.roles.items():
            for position in role.linked:
                self._components.join(kernel.inputs[position], kernel.results[0])
        for value in self._values():
            root, channels = self._components.find(value), dims_of(value)[1].value or 0
            self._channels[root] = max(self._channels.get(root, 0), channels)

    def _weigh(self) -> None:
        for value in self._values():
            root = self._components.find(value)
            self._saved[root] = self._saved.get(root, 0.0) + self._worth(value)

    def _worth(self, value: SSAValue) -> float:
        """The elements that need not be converted if a value's component is blocked."""
        owner = value.owner
        role = self.roles.get(owner) if isinstance(owner, KernelOp) else None
        asks = [self._asks(use.operation, use.index) for use in value.uses]
        channels = dims_of(value)[1].value or 1
        block = self.block(value)
        blocked = size_of(value) / channels * (-(-channels // block) * block)
        worth = 0.0
        if role is None:
            # Made row-major: convolutions with few channels take that as well as anything.
            worth -= blocked if "linked" in asks else 0.0
        elif role.is_blocked:
            worth += size_of(value) if "linked" in asks or "plain" in asks else 0.0
            worth -= size_of(value) if "plain" in asks else 0.0
        else:
            worth -= size_of(value) if "plain" in asks else 0.0
            worth += size_of(value) / 2 if "image" in asks else 0.0
            worth += size_of(value) if role.prefers_blocks else 0.0
        # Elements of padding are computed, too.
        return worth - (blocked - size_of(value)) / 4 if worth > 0 else worth

    def _asks(self, op: Operation, index: int) -> str:
        """What a use asks for: linked (as the result lies), image, free or plain."""
        role = self.roles.get(op) if isinstance(op, KernelOp) else None
        if role is None:
            return "plain"
        if index in role.linked:
            return "linked"
        return "image" if index == role.image else "free"

    def block(self, value: SSAValue) -> int:
        """The size of the blocks of a value, if it is blocked."""
        channels = self._channels.get(self._components.find(value), dims_of(value)[1].value or 1)
        return block_for(channels, self._lanes)

    def is_wanted_blocked(self, value: SSAValue) -> bool:
        """True if the kernels that a value is linked to are to work on blocks."""
        return self._saved.get(self._components.find(value), 0.0) > 0

    def is_blocked(self, value: SSAValue) -> bool:
        """True if a value is made in blocks."""
        role = self.roles.get(value.owner) if isinstance(value.owner, KernelOp) else None
        if role is None or not can_be_blocked(value):
            return False
        return role.is_blocked or (self.is_wanted_blocked(value) and not role.works_on_rows)

    # Borders

    def _find_borders(self) -> dict[SSAValue, Border]:
        """
        What convolutions want around their inputs. Parts of a concatenation, and what is cut out of
        a value, have the border of the whole, so that they can lie in it.
        """
        views = Components()
        for kernel, role in self.roles.items():
            if _is_view(kernel) and role.linked and self.is_wanted_blocked(kernel.results[0]):
                for position in role.linked:
                    views.join(kernel.inputs[position], kernel.results[0])
        borders: dict[SSAValue, Border] = {}
        for kernel, role in self.roles.items():
            if role.image is None or not (self._works_on_blocks(kernel) or role.works_on_rows):
                continue
            value, border = kernel.inputs[role.image], border_of_conv(kernel)
            root = views.find(value)
            old = borders.get(root, border)
            borders[root] = tuple(map(max, old, border))
        return {
            value: borders[views.find(value)]
            for value in self._values()
            if views.find(value) in borders
        }

    def _works_on_blocks(self, kernel: KernelOp) -> bool:
        role = self.roles[kernel]
        wants = self.is_wanted_blocked(kernel.results[0]) and not role.works_on_rows
        return role.is_blocked or wants

    def padded(self, layout: LayoutAttr, value: SSAValue) -> LayoutAttr:
        """A layout with the border that is wanted around a value."""
        border = self._borders.get(value)
        if border is None:
            return layout
        return layout.padded(border[: layout.rank], border[layout.rank :])

    def blocked(self, value: SSAValue) -> LayoutAttr:
        """The layout of a value in blocks."""
        layout = LayoutAttr.blocked(len(dims_of(value)), 1, self.block(value))
        return self.padded(layout, value)

    def made(self, value: SSAValue) -> LayoutAttr:
        """How a value lies as it is made."""
        plain = LayoutAttr.row_major(len(dims_of(value)))
        if self.is_blocked(value):
            return self.blocked(value)
        is_padded = isinstance(value.owner, KernelOp) and value.owner in self.roles
        return self.padded(plain, value) if is_padded else plain

    def wanted(self, kernel: KernelOp, position: int) -> LayoutAttr | None:
        """How a kernel wants an input, which may be as it is made; None if it takes any."""
        value = kernel.inputs[position]
        plain = LayoutAttr.row_major(len(dims_of(value)))
        role, made = self.roles.get(kernel), self.made(value)
        if isinstance(value.owner, ConstantOp):
            return None
        if role is None:
            return plain
        if role.works_on_rows and position == role.image:
            return self.padded(plain, value)
        if not self._works_on_blocks(kernel):
            return plain if position in role.linked or position == role.image else None
        if position in role.linked:
            return self.blocked(value)
        if position != role.image or _has_border(made, border_of_conv(kernel)):
            return None
        few = (dims_of(value)[1].value or 0) <= FEWEST_LANES
        return self.padded(plain, value) if few else self.blocked(value)


def _is_view(kernel: KernelOp) -> bool:
    """True for a kernel that only cuts out channels, or joins them."""
    ops = list(kernel.body.block.ops)
    if len(ops) != 2:
        return False
    if isinstance(op := ops[0], SliceOp):
        dims = zip(dims_of(op.input), op.sizes.data, strict=True)
        return all(whole == size for k, (whole, size) in enumerate(dims) if k != 1)
    return isinstance(op, ConcatOp) and op.axis.data == 1


def border_of_conv(kernel: KernelOp) -> Border:
    """What the convolution in a kernel reads beyond its input."""
    op = anchor_of(kernel)
    if isinstance(op, ConvTransposeOp):
        first, last = transposed_border(op)
        return (0, 0, *first, 0, 0, *last)
    assert isinstance(op, ConvOp)
    if leaves_out_padding(kernel, op):
        return (0,) * (2 * len(dims_of(op.input)))
    begin, end = ([pad.value or 0 for pad in pads.data] for pads in (op.pads_begin, op.pads_end))
    return (0, 0, *begin, 0, 0, *end)


def _has_border(layout: LayoutAttr, border: Sequence[int]) -> bool:
    have = (*layout.data.begin, *layout.data.end)
    return all(map(int.__ge__, have, border))


class LayoutAssigner:
    """Writes a plan to kernels, and inserts conversions."""

    def __init__(self, plan: LayoutPlan) -> None:
        self._plan = plan
        self._layouts: dict[SSAValue, LayoutAttr] = {}
        """Of the results of conversions."""
        self._converted: dict[tuple[SSAValue, LayoutAttr], SSAValue] = {}

    def assign(self, block: Block) -> None:
        """Every kernel of a block, and of the blocks in it."""
        for op in list(block.ops):
            if isinstance(op, KernelOp):
                self._assign_kernel(op)
                continue
            for region in op.regions:
                self.assign(region.block)
            for number, value in enumerate(op.operands):
                plain = LayoutAttr.row_major(len(dims_of(value)))
                op.operands[number] = self._convert(value, plain, op)

    def _layout(self, value: SSAValue) -> LayoutAttr:
        return self._layouts.get(value) or self._plan.made(value)

    def _assign_kernel(self, kernel: KernelOp) -> None:
        wanted = [self._plan.wanted(kernel, position) for position in range(len(kernel.inputs))]
        for position, layout in enumerate(wanted):
            if layout is not None:
                kernel.operands[position] = self._convert(kernel.inputs[position], layout, kernel)
        layouts = [self._layout(value) for value in (*kernel.inputs, *kernel.results)]
        if not all(layout.is_row_major for layout in layouts):
            kernel.properties["layouts"] = ArrayAttr(layouts)

    def _convert(self, value: SSAValue, layout: LayoutAttr, user: Operation) -> SSAValue:
        """The value in another layout: a kernel that copies it, where the first user needs it."""
        if self._layout(value) == layout:
            return value
        key = (value, layout)
        if key in self._converted:
            return self._converted[key]
        block = Block(arg_types=[value.type])
        block.add_op(YieldOp([block.args[0]]))
        kernel = KernelOp(f"layout_{len(self._converted)}", [value], Region(block))
        kernel.properties["layouts"] = ArrayAttr([self._layout(value), layout])
        if isinstance(value.owner, Operation):
            kernel.location = value.owner.location
        # In the block of the value, so that whoever comes later may use it.
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        assert home is not None
        before = home.find_ancestor_op_in_block(user)
        assert before is not None
        home.insert_op_before(kernel, before)
        self._converted[key] = kernel.results[0]
        self._layouts[kernel.results[0]] = layout
        return kernel.results[0]


@dataclass(frozen=True)
class AssignLayoutsPass(ModulePass):
    """
    Choose the layout of every value between kernels.

    Convolutions give their channels in blocks of as many as the target has lanes (fewer if there
    are few channels) and take them so, with a border of zeros as wide as their padding; one that
    reads an argument of the function with a few channels takes it row-major. Maps, pools,
    concatenations and depthwise convolutions work on blocks if that saves conversions: values that
    they lead to each other lie alike, blocked or not, whichever copies less. Everything else, and
    what functions and control flow take and give, is row-major. A value that is needed otherwise
    than it is made is converted once, by a kernel that copies it.
    """

    name = "assign-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = machine_of(options_of(ctx).target).lanes
        if lanes == 1:
            return
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                block = function.body.block
                LayoutAssigner(LayoutPlan(block, lanes)).assign(block)
