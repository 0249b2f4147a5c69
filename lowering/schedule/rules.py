"""Rules that give kernels their schedules: what they share, and those for convolutions and maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, yielded
from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.tensor import ConcatOp, ints
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.dims import constants
from lowerdeck.lowering.kernels.convolution import (
    DEPTH,
    OUTPUT_CHANNEL,
    PANEL,
    SHARE,
    TAPS,
    can_be_blocked,
    can_be_rows,
    crosses_groups,
    has_blocks,
    input_block_of_conv,
    lanes_of_conv,
    last_position,
)
from lowerdeck.lowering.schedule.parameters import Schedule
from lowerdeck.lowering.targets import Machine


@dataclass(frozen=True)
class Choice:
    """A schedule, and the layouts of inputs of the kernel that it wants to be constants."""

    schedule: Schedule
    layouts: dict[SSAValue, LayoutAttr]


Rule = Callable[[KernelOp, Any, Machine], Choice | None]
R = TypeVar("R", bound=Rule)

RULES: dict[type[Operation], list[Rule]] = {}
"""By anchor: how a kernel runs, as the first rule says that gives a choice; else plain loops."""


def schedule_rule(op: type[Operation], *, first: bool = False) -> Callable[[R], R]:
    """Register the rule for kernels with an anchor; `first` of all, or behind the others."""

    def register(rule: R) -> R:
        rules = RULES.setdefault(op, [])
        rules.insert(0 if first else len(rules), rule)
        return rule

    return register


def layout_in(kernel: KernelOp, value: SSAValue) -> LayoutAttr:
    """The layout of a value in a kernel: row-major unless it is an argument or a result."""
    if value in kernel.body.block.args or value in yielded(kernel.body):
        return kernel.layout(value)
    return LayoutAttr.row_major(len(dims_of(value)))


ASSUMED_SIZE = 64
"""What a dimension is taken for that is known only at run time."""


def assumed_shape(value: SSAValue) -> list[int]:
    """A shape to choose by."""
    sizes = (dim.value for dim in dims_of(value))
    return [ASSUMED_SIZE if size is None else size for size in sizes]


def choose_maps(kernel: KernelOp, machine: Machine) -> Choice | None:
    """The innermost dimension of row-major results in lanes."""
    if machine.lanes == 1 or len(kernel.results) != 1:
        return None
    layout = kernel.layout_at(len(kernel.inputs))
    if not layout.rank:
        return None
    if (block := layout.inner(layout.data.pieces[-1].axis)) > 1:
        return Choice(Schedule(), blocked_constants(kernel, block))
    innermost = f"d{len(layout.data.pieces) - 1}"
    return Choice(Schedule(lanes=((innermost, machine.lanes),)), {})


@schedule_rule(ConcatOp)
def choose_concat(kernel: KernelOp, op: ConcatOp, machine: Machine) -> Choice | None:
    """Parts are copied in blocks; of row-major ones every loop is taken by itself."""
    block = kernel.layout_at(len(kernel.inputs)).inner(1) if len(dims_of(op.result)) > 1 else 1
    return Choice(Schedule(), blocked_constants(kernel, block)) if block > 1 else None


def tiles(size: int, tile: int) -> Iterator[tuple[int, int]]:
    """The tiles that a dimension is cut into: how many, and how large."""
    if size // tile:
        yield size // tile, tile
    if size % tile:
        yield 1, size % tile


_TILE_CYCLES = 24.0
"""About what it takes to begin and end a tile, beside its sums."""


def reduction_cycles(
    sizes: Sequence[int], tile: Sequence[int], depth: int, loads: Callable[[Sequence[int]], int]
) -> float:
    """
    About how long it takes to compute sums of `depth` products in tiles of accumulators: two
    multiply-adds or two loads a cycle, and no less than what their latency allows.
    """
    total = 0.0
    variants: list[tuple[int, list[int]]] = [(1, [])]
    for size, part in zip(sizes, tile, strict=True):
        variants = [
            (count * number, [*shape, extent])
            for count, shape in variants
            for number, extent in tiles(size, part)
        ]
    for count, shape in variants:
        sums = prod(shape)
        step = max(sums / 2, loads(shape) / 2, 4.0)
        total += count * (depth * step + _TILE_CYCLES + sums)
    return total


def fits(machine: Machine, rows: int, vectors: int) -> bool:
    """True if the sums of a tile fit into the registers, with a row of weights and one input."""
    return rows * vectors + vectors + 1 < machine.registers


def window_sums_tile(
    machine: Machine, sizes: tuple[int, int, int], depth: int, *, even_only: bool = False
) -> tuple[int, int, int]:
    """
    Blocks of output channels, rows and columns of a tile of sums of `depth` products; with
    `even_only`, the blocks divide into tiles.
    """
    blocks, height, width = sizes

    def cost(tile: Sequence[int]) -> float:
        return reduction_cycles(sizes, tile, depth, lambda s: s[0] + s[1] * s[2])

    candidates = [
        (count, rows, columns)
        for count in range(1, min(blocks, 6) + 1)
        for rows in range(1, min(height, 4) + 1)
        for columns in range(1, min(width, machine.registers) + 1)
        if fits(machine, rows * columns, count)
    ]
    # What is read for a tile should divide into parts if it is much.
    much = machine.l2 // 8 // (depth * machine.lanes * 4)
    much = 0 if even_only else much
    whole = [tile for tile in candidates if tile[0] <= much or blocks % tile[0] == 0]
    return machine.best(whole, cost)


_FEW_ON_IMAGE = 0.8
"""Part of the products of dilated windows, below which they leave out those with padding."""

_FEW_OF_DENSE = 0.5
"""The same of other windows, which may run by Winograd's algorithm."""


def leaves_out_padding(kernel: KernelOp, op: ConvOp) -> bool:
    """
    True for a convolution that runs tap by tap: so many of its products have a factor of padding
    that it pays to add to sums in memory.
    """
    weight, strides, dilations = static_shape(op.weight), ints(op.strides), ints(op.dilations)
    pads = constants((*op.pads_begin.data, *op.pads_end.data))
    if weight is None or pads is None or op.groups.data > 1:
        return False
    if len(kernel.results) != 1 or element_type(kernel.results[0]) != f32:
        return False
    part, rank = 1.0, len(strides)
    for d, size in enumerate(assumed_shape(op.input)[2:]):
        reach = (weight[d + 2] - 1) * dilations[d]
        count = max(1, (size + pads[d] + pads[d + rank] - reach - 1) // strides[d] + 1)
        origins = [position * strides[d] - pads[d] for position in range(count)]
        on_image = sum(
            0 <= origin + tap * dilations[d] < size
            for origin in origins
            for tap in range(weight[d + 2])
        )
        part *= on_image / (count * weight[d + 2])
    return part < (_FEW_ON_IMAGE if max(dilations) > 1 else _FEW_OF_DENSE)


@schedule_rule(ConvOp)
def choose_conv_by_taps(kernel: KernelOp, op: ConvOp, machine: Machine) -> Choice | None:
    """Tap by tap, where that leaves out much padding: a row of positions by output channels."""
    target = kernel.layout_at(len(kernel.inputs))
    if not leaves_out_padding(kernel, op) or not has_blocks(op, target):
        return None
    if not is_constant(kernel, op.weight):
        return None
    shape, w, lanes = assumed_shape(op.result), static_shape(op.weight), target.inner(1)
    assert w is not None
    blocks = -(-shape[1] // lanes)
    count, _, columns = window_sums_tile(machine, (blocks, 1, shape[-1]), w[1], even_only=True)
    sizes = ((f"x{len(shape) - 3}", columns), (OUTPUT_CHANNEL, count), (TAPS, 1))
    layouts = blocked_constants(kernel, lanes)
    pieces = [Piece(0, lanes * count), *map(Piece, range(2, len(w))), Piece(1)]
    if count > 1:
        pieces.append(Piece(0, lanes, count))
    layouts[op.weight] = LayoutAttr.of([*pieces, Piece(0, 1, lanes)])
    return Choice(Schedule(sizes), layouts)


@schedule_rule(ConvOp)
def choose_conv(kernel: KernelOp, op: ConvOp, machine: Machine) -> Choice | None:
    """
    Direct convolution: a tile of positions by blocks of output channels. Channels are the outer
    loop if there are more weights than inputs, so that the larger one is read once; and if the
    first cache has room for the weights of one tile, but not of all. Where those of one tile are
    many, sums are made in parts, each of which is added up for many panels of output channels.
    """
    target = kernel.layout_at(len(kernel.inputs))
    source = layout_in(kernel, op.input)
    shape, x, w = assumed_shape(op.result), assumed_shape(op.input), static_shape(op.weight)
    if w is None or not can_be_blocked(op, source, target):
        return None
    if not is_constant(kernel, op.weight):
        return None
    lanes, block = lanes_of_conv(op, target), input_block_of_conv(op, source)
    # A tile across groups has one block, of which the groups differ from the next one's.
    blocks = 1 if crosses_groups(op, target) else -(-shape[1] // lanes) // op.groups.data
    depth = prod(w[1:])
    spatial = [f"x{axis}" for axis in range(len(shape) - 2)]
    # Dimensions of one element at the end are no rows.
    wide = [axis for axis in range(len(spatial)) if shape[axis + 2] != 1]
    inner = wide[-1] if wide else len(spatial) - 1
    width, height = shape[inner + 2], shape[inner + 1] if inner else 1

    # A tile of two groups would have no inputs in common.
    even_only = op.groups.data > 1
    count, rows, columns = window_sums_tile(
        machine, (blocks, height, width), depth, even_only=even_only
    )
    order = ["n", OUTPUT_CHANNEL, *spatial]
    panel = depth * count * lanes * 4
    stays = panel <= machine.l1 * 2 // 3 < depth * shape[1] * 4
    part = None
    # Parts pay where tiles read the same weights again, and threads have alike much to do.
    again = rows * columns < height * width
    plain = op.groups.data == 1 and element_type(kernel.results[0]) == f32
    even = _busy(blocks // count, machine.threads) * machine.threads * count <= blocks * 5 // 4
    if again and plain and blocks % count == 0 and even:
        step = block * prod(w[2:]) * count * lanes * 4
        part = part_of_depth(machine, *divmod(w[1], block), step)
    if (prod(w) <= prod(x) and not stays and part is None) != machine.other_order:
        order = ["n", *spatial, OUTPUT_CHANNEL]
    sizes = [(spatial[inner], columns), (OUTPUT_CHANNEL, count)]
    if inner:
        sizes.insert(0, (spatial[inner - 1], rows))
    layouts = blocked_constants(kernel, target.inner(1))
    # The weight last: it may have as many input channels as there are output channels.
    layouts[op.weight] = packed_weight(op, block, lanes, count)
    if order[1] != OUTPUT_CHANNEL:
        return Choice(Schedule(tuple(sizes), tuple(order)), layouts)
    if part is not None:
        panels = blocks // count
        share = panels_in_group(panels, machine.threads)
        sizes += [(DEPTH, part), (SHARE, share)]
        order.insert(1, PANEL)
        layouts[op.weight] = packed_weight(op, block, lanes, count, (part, share))
    ahead = kernel.body.block.args.index(op.weight)
    return Choice(Schedule(tuple(sizes), tuple(order), prefetch=ahead), layouts)


@schedule_rule(ConvOp)
def choose_row_conv(kernel: KernelOp, op: ConvOp, machine: Machine) -> Choice | None:
    """Row-major: vectors of positions by output channels, row by row."""
    source, target = layout_in(kernel, op.input), kernel.layout_at(len(kernel.inputs))
    shape, w = assumed_shape(op.result), static_shape(op.weight)
    if machine.lanes == 1 or w is None or not can_be_rows(op, source, target):
        return None
    if not is_constant(kernel, op.weight):
        return None
    vectors = -(-shape[-1] // machine.lanes)
    candidates = [
        (channels, columns)
        for channels in range(1, min(shape[1], 8) + 1)
        for columns in range(1, min(vectors, 4) + 1)
        if fits(machine, channels, columns)
    ]

    def cost(tile: Sequence[int]) -> float:
        return reduction_cycles([shape[1], vectors], tile, prod(w[1:]), sum)

    channels, columns = machine.best(candidates, cost)
    spatial = [f"x{axis}" for axis in range(len(shape) - 2)]
    order = ("n", *spatial[:-1], OUTPUT_CHANNEL, spatial[-1])
    sizes = ((OUTPUT_CHANNEL, channels), (spatial[-1], columns))
    pieces = [Piece(0, channels), *map(Piece, range(1, len(w))), Piece(0, 1, channels)]
    weight = LayoutAttr.of(pieces) if channels > 1 else LayoutAttr.row_major(len(w))
    lanes = ((last_position(op), machine.lanes),)
    return Choice(Schedule(sizes, order, lanes), {op.weight: weight})


def part_of_depth(machine: Machine, blocks: int, rest: int, step: int) -> int | None:
    """
    How many blocks of input channels are added up for all positions before the next ones, if the
    weights of a panel do not stay in the first cache: `step` bytes a block. None for all of them.
    """
    if rest or blocks < 2 or blocks * step < machine.l2 // 16:
        return None
    fitting = [size for size in range(1, blocks) if blocks % size == 0]
    return max((size for size in fitting if size * step <= machine.l1 // 2), default=1)


def panels_in_group(panels: int, threads: int) -> int:
    """How many panels take turns, so that threads have alike many of them."""
    sizes = [size for size in range(1, panels + 1) if panels % size == 0]
    return min(sizes, key=lambda size: (_busy(panels // size, threads) * size, -size))


def _busy(groups: int, threads: int) -> int:
    """How many groups the busiest thread has."""
    return -(-groups // threads)


def packed_weight(
    op: ConvOp, block: int, lanes: int, count: int, parts: tuple[int, int] | None = None
) -> LayoutAttr:
    """
    [oc / (count lanes)][ic / block][taps][ic % block][oc / lanes % count][oc % lanes].

    With `parts`, the blocks of input channels in a part, and the panels that take turns with them:
    [oc / (turns count lanes)][ic / (part block)][oc / (count lanes) % turns][ic / block % part]...
    """
    rank = len(dims_of(op.weight))
    part, turns = parts or (1, 1)
    pieces = [Piece(0, lanes * count * turns), Piece(1, block * part)]
    if turns > 1:
        pieces.append(Piece(0, lanes * count, turns))
    if part > 1:
        pieces.append(Piece(1, block, part))
    pieces += map(Piece, range(2, rank))
    if block > 1:
        pieces.append(Piece(1, 1, block))
    if count > 1:
        pieces.append(Piece(0, lanes, count))
    return LayoutAttr.of([*pieces, Piece(0, 1, lanes)])


def blocked_constants(kernel: KernelOp, lanes: int) -> dict[SSAValue, LayoutAttr]:
    """Constants along the channels of a blocked result, in blocks as it is."""
    (result,) = kernel.results
    rank, channels = len(dims_of(result)), dims_of(result)[1]
    layouts: dict[SSAValue, LayoutAttr] = {}
    for argument in kernel.body.block.args:
        if not is_constant(kernel, argument):
            continue
        dims = dims_of(argument)
        axis = len(dims) - rank + 1
        if len(dims) == 1:
            # The bias of a convolution, or a parameter along the last dimension.
            axis = 0
        if 0 <= axis < len(dims) and dims[axis] == channels and channels != 1:
            layouts[argument] = LayoutAttr.blocked(len(dims), axis, lanes)
    return layouts


def is_constant(kernel: KernelOp, value: SSAValue) -> bool:
    """True for an argument of a kernel that is a constant."""
    if value not in kernel.body.block.args:
        return False
    position = next(k for k, a in enumerate(kernel.body.block.args) if a is value)
    return isinstance(kernel.inputs[position].owner, ConstantOp)
