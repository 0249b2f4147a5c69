"""`assign-layouts`: the memory layouts of values between kernels."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, inf, prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.disjoint_set import DisjointSet

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.tensor import ConcatOp, SliceOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering.form.channels_last import ChannelsLast
from lowerdeck.lowering.strategies.base import Border, Setting, Wishes
from lowerdeck.lowering.strategies.conversions import conversion
from lowerdeck.lowering.strategies.costs import conversion_cycles
from lowerdeck.lowering.strategies.facts import assumed_shape, has_channels
from lowerdeck.lowering.strategies.registry import choose, wishes
from lowerdeck.lowering.targets.base import FEWEST_LANES
from lowerdeck.passes.machinery.context import options_of


def block_for(channels: int, lanes: int) -> int:
    """The block size for a number of channels: fewer than the lanes if there are few channels."""
    block = min(FEWEST_LANES, lanes)
    while block < min(channels, lanes):
        block *= 2
    return block


def whole_block_for(channels: int, lanes: int) -> int:
    """The largest block, of a power of two, that divides a number of channels, if there is one."""
    block = gcd(channels, lanes)
    return block if block >= min(FEWEST_LANES, lanes) else block_for(channels, lanes)


def size_of(value: SSAValue) -> int:
    """The approximate number of elements of a value."""
    return prod(assumed_shape(value))


def kernels_in(block: Block) -> Iterator[KernelOp]:
    """The kernels of a block and its nested blocks, in order."""
    for op in block.ops:
        if isinstance(op, KernelOp):
            yield op
            continue
        for region in op.regions:
            yield from kernels_in(region.block)


class LayoutPlan:
    """
    Which values of a function are blocked, and with which border.

    Values connected by kernels without a preference have the same layout. Each such component is
    blocked or row-major, whichever moves less memory in conversions.
    """

    def __init__(self, body: Block, setting: Setting) -> None:
        self._setting, self._lanes = setting, setting.target.lanes
        self.wishes: dict[KernelOp, Wishes] = {}
        for kernel in kernels_in(body):
            if (found := wishes(kernel, setting)) is not None:
                self.wishes[kernel] = found
        self._components = DisjointSet(self._all_values())
        self._saved: dict[SSAValue, float] = {}
        """By component: the memory traffic saved by blocking."""
        self._channels: dict[SSAValue, int] = {}
        self._join()
        self._weigh()
        self._borders = self._find_borders()

    def _all_values(self) -> list[SSAValue]:
        """The operands and results of kernels with wishes."""
        values = (v for kernel in self.wishes for v in (*kernel.inputs, *kernel.results))
        return list(dict.fromkeys(values))

    def _values(self) -> dict[SSAValue, None]:
        """All values that could be blocked."""
        found: dict[SSAValue, None] = {}
        for kernel, asked in self.wishes.items():
            inputs = {*asked.linked, *(() if asked.image is None else (asked.image,))}
            for value in (*(kernel.inputs[k] for k in sorted(inputs)), kernel.results[0]):
                if has_channels(value):
                    found[value] = None
        return found

    def _join(self) -> None:
        for kernel, asked in self.wishes.items():
            for position in asked.linked:
                self._components.union(kernel.inputs[position], kernel.results[0])
        for value in self._values():
            root, channels = self._components.find(value), dims_of(value)[1].value or 0
            join = gcd if self._setting.small else max
            self._channels[root] = join(self._channels.get(root, 0), channels)

    def _weigh(self) -> None:
        for value in self._values():
            root = self._components.find(value)
            self._saved[root] = self._saved.get(root, 0.0) + self._worth(value)

    def _worth(self, value: SSAValue) -> float:
        """The elements that need no conversion if the component of a value is blocked."""
        owner = value.owner
        asked = self.wishes.get(owner) if isinstance(owner, KernelOp) else None
        asks = [self._asks(use.operation, use.index) for use in value.uses]
        channels = dims_of(value)[1].value or 1
        block = self.block(value)
        blocked = size_of(value) / channels * (-(-channels // block) * block)
        worth = 0.0
        if asked is None:
            # Row-major result.
            worth -= blocked if "linked" in asks else 0.0
        elif asked.is_blocked:
            worth += size_of(value) if "linked" in asks or "plain" in asks else 0.0
            worth -= size_of(value) if "plain" in asks else 0.0
        else:
            worth -= size_of(value) if "plain" in asks else 0.0
            # Convolutions with few channels take them row-major as well as anything.
            is_few = channels <= FEWEST_LANES
            worth += size_of(value) / 2 if "image" in asks and not is_few else 0.0
            worth += size_of(value) * asked.saved
        # Padding elements are computed, too.
        return worth - (blocked - size_of(value)) / 4 if worth > 0 else worth

    def _asks(self, op: Operation, index: int) -> str:
        """The request of a use: linked (the layout of the result), image, free or plain."""
        asked = self.wishes.get(op) if isinstance(op, KernelOp) else None
        if asked is None:
            return "plain"
        if index in asked.linked:
            return "linked"
        if index != asked.image:
            return "free"
        return "plain" if asked.works_on_rows else "image"

    def block(self, value: SSAValue) -> int:
        """The block size of a value, if it is blocked."""
        channels = self._channels.get(self._components.find(value), dims_of(value)[1].value or 1)
        fitting = whole_block_for if self._setting.small else block_for
        return fitting(channels, self._lanes)

    def is_wanted_blocked(self, value: SSAValue) -> bool:
        """True if the kernels connected to a value should work on blocks."""
        return self._saved.get(self._components.find(value), 0.0) > 0

    def is_blocked(self, value: SSAValue) -> bool:
        """True if a value is produced in blocks."""
        asked = self.wishes.get(value.owner) if isinstance(value.owner, KernelOp) else None
        if asked is None or not has_channels(value):
            return False
        return asked.is_blocked or (self.is_wanted_blocked(value) and not asked.works_on_rows)

    # Borders

    def _find_borders(self) -> dict[SSAValue, Border]:
        """
        The borders that convolutions want around their inputs. Parts of a concatenation and slices
        of a value have the border of the whole, so that they can be views of it.
        """
        views = DisjointSet(self._all_values())
        for kernel, asked in self.wishes.items():
            if _is_view(kernel) and asked.linked and self.is_wanted_blocked(kernel.results[0]):
                for position in asked.linked:
                    views.union(kernel.inputs[position], kernel.results[0])
        borders: dict[SSAValue, Border] = {}
        for kernel, asked in self.wishes.items():
            if asked.image is None or not (self._works_on_blocks(kernel) or asked.works_on_rows):
                continue
            value, border = kernel.inputs[asked.image], asked.border
            root = views.find(value)
            old = borders.get(root, border)
            borders[root] = tuple(map(max, old, border))
        return {
            value: borders[views.find(value)]
            for value in self._values()
            if views.find(value) in borders
        }

    def _works_on_blocks(self, kernel: KernelOp) -> bool:
        asked = self.wishes[kernel]
        wants = self.is_wanted_blocked(kernel.results[0]) and not asked.works_on_rows
        return asked.is_blocked or wants

    def padded(self, layout: LayoutAttr, value: SSAValue) -> LayoutAttr:
        """A layout with the border wanted around a value."""
        border = self._borders.get(value)
        if border is None:
            return layout
        return layout.padded(border[: layout.rank], border[layout.rank :])

    def blocked(self, value: SSAValue) -> LayoutAttr:
        """The blocked layout of a value."""
        layout = LayoutAttr.blocked(len(dims_of(value)), 1, self.block(value))
        return self.padded(layout, value)

    def made(self, value: SSAValue) -> LayoutAttr:
        """The layout in which a value is produced."""
        plain = LayoutAttr.row_major(len(dims_of(value)))
        if self.is_blocked(value):
            return self.blocked(value)
        is_padded = isinstance(value.owner, KernelOp) and value.owner in self.wishes
        return self.padded(plain, value) if is_padded else plain

    def wanted(self, kernel: KernelOp, position: int) -> LayoutAttr | None:
        """The layout that a kernel wants for an input, possibly the one it has; None for any."""
        value = kernel.inputs[position]
        plain = LayoutAttr.row_major(len(dims_of(value)))
        asked, made = self.wishes.get(kernel), self.made(value)
        if isinstance(value.owner, ConstantOp):
            return None
        if asked is None:
            return plain
        if asked.works_on_rows and position == asked.image:
            return self.padded(plain, value)
        if not self._works_on_blocks(kernel):
            return plain if position in asked.linked or position == asked.image else None
        if position in asked.linked:
            return self.blocked(value)
        if position != asked.image:
            return None
        few = (dims_of(value)[1].value or 0) <= FEWEST_LANES
        if _has_border(made, asked.border):
            may_be_slower = not few and not self.is_blocked(value)
            is_slower = may_be_slower and self._pays_to_block(kernel, position)
            return self.blocked(value) if is_slower else None
        return self.padded(plain, value) if few else self.blocked(value)

    def _pays_to_block(self, kernel: KernelOp, position: int) -> bool:
        """True if a convolution that can read row-major images is faster with a copy in blocks."""
        image, others = kernel.inputs[position], range(len(kernel.inputs))
        layouts = [
            None if k == position else self.wanted(kernel, k) or self.made(kernel.inputs[k])
            for k in others
        ]

        def cycles(layout: LayoutAttr) -> float:
            kernel.layouts = ArrayAttr([*(own or layout for own in layouts), made])
            best = choose(kernel, self._setting)
            return inf if best is None else best.cycles

        before, made = kernel.layouts, self.made(kernel.results[0])
        as_it_is, in_blocks = cycles(self.made(image)), cycles(self.blocked(image))
        kernel.layouts = before
        copied = size_of(image) * conversion_cycles(self._setting.target) / self._setting.threads
        return in_blocks + copied < as_it_is


def _is_view(kernel: KernelOp) -> bool:
    """True for a kernel that only slices or concatenates channels."""
    ops = list(kernel.body.block.ops)
    if len(ops) != 2:
        return False
    if isinstance(op := ops[0], SliceOp):
        dims = zip(dims_of(op.input), op.sizes.data, strict=True)
        return all(whole == size for k, (whole, size) in enumerate(dims) if k != 1)
    return isinstance(op, ConcatOp) and op.axis.data == 1


def _has_border(layout: LayoutAttr, border: Border) -> bool:
    have = (*layout.data.begin, *layout.data.end)
    return all(map(int.__ge__, have, border))


class LayoutAssigner:
    """Writes a plan to kernels, and inserts conversions."""

    def __init__(self, plan: LayoutPlan | ChannelsLast) -> None:
        self._plan = plan
        self._layouts: dict[SSAValue, LayoutAttr] = {}
        """The layouts of the results of conversions."""
        self._converted: dict[tuple[SSAValue, LayoutAttr], SSAValue] = {}

    def assign(self, block: Block) -> None:
        """Assign layouts to every kernel of a block and its nested blocks."""
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
        """The value in another layout: a copy kernel, where the first user needs it."""
        if self._layout(value) == layout:
            return value
        key = (value, layout)
        if key in self._converted:
            return self._converted[key]
        name = f"layout_{len(self._converted)}"
        kernel = conversion(name, value, self._layout(value), layout)
        # In the block of the value, so that any later user can read it.
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        assert home is not None
        before = home.find_ancestor_op_in_block(user)
        assert before is not None
        home.insert_op_before(kernel, before)
        self._converted[key] = kernel.results[0]
        self._layouts[kernel.results[0]] = layout
        return kernel.results[0]


class AssignLayoutsPass(ModulePass):
    """
    Choose the layout of every value between kernels from the wishes of their strategies.

    Convolutions produce and consume channels in blocks of the target's lane count (smaller if
    there are few channels), with a border of zeros as wide as their padding; a convolution that
    reads a function argument with a few channels reads it row-major. Maps, pools, concatenations
    and depthwise convolutions work on blocks if that saves conversions: the values they connect
    have the same layout, blocked or not, whichever copies less. All other values, and the operands
    and results of functions and control flow, are row-major. A value that is needed in another
    layout than the one it is produced in is converted once, by a copy kernel.

    On targets whose sums of bytes go over words, without vectors, the channels of such bytes lie
    innermost.
    """

    name = "assign-layouts"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        setting = Setting.of(options_of(ctx))
        isa = setting.target.isa
        if setting.target.lanes == 1 and not isa.byte_additions:
            return
        for function in op.body.block.ops:
            if isinstance(function, FuncOp):
                block = function.body.block
                if isa.byte_additions:
                    plan = ChannelsLast(kernels_in(block), setting)
                else:
                    plan = LayoutPlan(block, setting)
                LayoutAssigner(plan).assign(block)
