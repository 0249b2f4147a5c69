"""The list of strategies, and their combined answers for a kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.core.control_flow import KernelBody, KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.reduce import ReduceOp
from lowerdeck.dialects.core.schedule import Schedule, ScheduleAttr
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import product
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.nests.lower import KernelLowering
from lowerdeck.lowering.strategies.arg_rows import ArgRows
from lowerdeck.lowering.strategies.bands import Bands
from lowerdeck.lowering.strategies.base import Candidate, Setting, Strategy, Wishes
from lowerdeck.lowering.strategies.blocked_attention import BlockedAttention
from lowerdeck.lowering.strategies.blocked_pool import BlockedPool
from lowerdeck.lowering.strategies.byte_products import ByteProducts
from lowerdeck.lowering.strategies.byte_sums import ByteSums
from lowerdeck.lowering.strategies.channel_blocks import ChannelBlocks, ConcatBlocks
from lowerdeck.lowering.strategies.code_products import CodeProducts
from lowerdeck.lowering.strategies.computed import cycles_of_loops
from lowerdeck.lowering.strategies.conv_lines import ConvLines
from lowerdeck.lowering.strategies.conversions import computed_there, conversion, is_made_by_maps
from lowerdeck.lowering.strategies.depthwise import Depthwise
from lowerdeck.lowering.strategies.depthwise_words import DepthwiseWords
from lowerdeck.lowering.strategies.direct import Direct
from lowerdeck.lowering.strategies.dot_products import DotProducts
from lowerdeck.lowering.strategies.exact_winograd import ExactWinograd
from lowerdeck.lowering.strategies.facts import anchors_of, in_blocks, is_constant, stored
from lowerdeck.lowering.strategies.interleaved_concat import InterleavedConcat
from lowerdeck.lowering.strategies.interleaved_maps import InterleavedMaps
from lowerdeck.lowering.strategies.map_squares import MapSquares
from lowerdeck.lowering.strategies.matrix_tiles import MatrixTiles
from lowerdeck.lowering.strategies.row_maps import RowMaps
from lowerdeck.lowering.strategies.rows import Rows
from lowerdeck.lowering.strategies.separable_pool import SeparablePool
from lowerdeck.lowering.strategies.sparse_products import SparseProducts
from lowerdeck.lowering.strategies.streamed_matmul import StreamedMatmul
from lowerdeck.lowering.strategies.taps import Taps
from lowerdeck.lowering.strategies.tiled_matmul import TiledMatmul
from lowerdeck.lowering.strategies.transposed import Transposed
from lowerdeck.lowering.strategies.weight_sizes import grows_in_blocks, growth, keeps_small
from lowerdeck.lowering.strategies.window_products import WindowProducts
from lowerdeck.lowering.strategies.winograd import Winograd
from lowerdeck.passes.machinery.structure import nameless_key

STRATEGIES: list[Strategy] = [
    Depthwise(),
    ConvLines(),
    Taps(),
    Rows(),
    Direct(),
    Winograd(),
    Bands(),
    Transposed(),
    ByteSums(),
    DepthwiseWords(),
    ExactWinograd(),
    ByteProducts(),
    CodeProducts(),
    TiledMatmul(),
    MatrixTiles(),
    WindowProducts(),
    StreamedMatmul(),
    SparseProducts(),
    DotProducts(),
    BlockedAttention(),
    BlockedPool(),
    SeparablePool(),
    ArgRows(),
    ConcatBlocks(),
    InterleavedConcat(),
    ChannelBlocks(),
    RowMaps(),
    MapSquares(),
    InterleavedMaps(),
]
"""All strategies. If several have wishes for the layouts of a kernel, the first one counts; of
equal estimates the first one is taken."""


def strategy_named(name: str) -> Strategy | None:
    """The strategy that a schedule names."""
    return next((strategy for strategy in STRATEGIES if strategy.name == name), None)


def strategies_for(kernel: KernelOp, setting: Setting) -> list[Strategy]:
    """The strategies for the root ops of a kernel that the user has not disabled."""
    anchors = tuple(map(type, anchors_of(kernel)))
    return [
        strategy
        for strategy in STRATEGIES
        if strategy.anchors == anchors and strategy.name not in setting.disabled
    ]


def wishes(kernel: KernelOp, setting: Setting) -> Wishes | None:
    """The layout wishes of a kernel; None if it reads and writes row-major values only."""
    if len(kernel.results) != 1:
        return None
    for strategy in strategies_for(kernel, setting):
        found = strategy.wishes(kernel, setting)
        if found is not None and not (setting.small and grows_in_blocks(kernel, found, setting)):
            return found
    # Plain loops of a reduction read each element once, in any layout.
    anchors = anchors_of(kernel)
    is_reduction = bool(anchors) and isinstance(anchors[0], ReduceOp)
    return Wishes(is_free=True) if is_reduction else None


def candidates(kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
    """
    All candidates for a kernel besides plain loops; only those asked for, if there are any.

    Where constants are to stay small, only those that leave them so. If there are none, plain
    loops do, but for values in blocks, which get what adds least.
    """
    if _is_of_nothing(kernel):
        return
    if not setting.small:
        yield from _candidates(kernel, setting)
        return
    ways = [(way, _packed(kernel, way.schedule)) for way in _candidates(kernel, setting)]
    small = [way for way, packed in ways if keeps_small(kernel, packed)]
    if not small and not _is_row_major(kernel):
        least = min((growth(kernel, packed) for _, packed in ways), default=0)
        small = [way for way, packed in ways if growth(kernel, packed) == least]
    yield from small


def _packed(kernel: KernelOp, schedule: Schedule) -> dict[SSAValue, LayoutAttr]:
    """The layouts that a strategy wants of arguments of a kernel."""
    wanted = _of_schedule(kernel, schedule).packed(kernel, schedule)
    return {part: layout for value, layout in wanted.items() for part in _parts(value)}


def _parts(value: SSAValue) -> Sequence[SSAValue]:
    """What lies in memory of a value that is widened where it is read, and its scales."""
    return [stored(value)] if (op := in_blocks(value)) is None else op.operands


def _is_row_major(kernel: KernelOp) -> bool:
    count = len(kernel.inputs) + len(kernel.results)
    return all(kernel.layout_at(position).is_row_major for position in range(count))


def _candidates(kernel: KernelOp, setting: Setting) -> Iterator[Candidate]:
    able = strategies_for(kernel, setting)
    asked = [strategy for strategy in able if strategy.name in setting.asked]
    is_found = False
    for strategy in asked:
        for candidate in strategy.candidates(kernel, setting):
            is_found = True
            yield candidate
    if not is_found:
        for strategy in able:
            found = strategy.candidates(kernel, setting)
            yield from _computed(kernel, found, setting) if strategy.is_computed else found


def _computed(kernel: KernelOp, ways: Iterator[Candidate], setting: Setting) -> Iterator[Candidate]:
    """With computed cycles: those that take less than plain loops."""
    plain: float | None = None
    for way in ways:
        plain = _cycles(kernel, None, setting) if plain is None else plain
        if (cycles := _cycles(kernel, way.schedule, setting)) < plain:
            yield Candidate(cycles, way.schedule)


def _cycles(kernel: KernelOp, schedule: Schedule | None, setting: Setting) -> float:
    own = kernel.clone()
    own.schedule = None if schedule is None else ScheduleAttr(schedule)
    cycles = cycles_of_loops(lower_kernel(own), setting.target)
    own.erase(safe_erase=False)
    return cycles


Known: TypeAlias = "dict[Hashable, list[Candidate]]"
"""The candidates of kernels that were looked at."""


def choose(
    kernel: KernelOp, setting: Setting, rank: int = 0, known: Known | None = None
) -> Candidate | None:
    """
    The candidate with the lowest estimate, or the one `rank` places after it; None for plain loops.
    If there are fewer candidates, the best. Those of an equal kernel may be known.
    """
    key = None if known is None else _key(kernel, setting)
    if known is None or key is None:
        ways = list(candidates(kernel, setting))
    elif (found := known.get(key)) is not None:
        ways = found
    else:
        ways = known[key] = list(candidates(kernel, setting))
    if 0 < rank < len(ways):
        return sorted(ways, key=_estimate)[rank]
    return min(ways, key=_estimate, default=None)


def _key(kernel: KernelOp, setting: Setting) -> Hashable | None:
    """Equal for kernels with equal candidates; None if they depend on what is around a kernel."""
    if setting.small or any(each.looks_around for each in strategies_for(kernel, setting)):
        return None
    sources = tuple(
        (kernel.is_constant(position), is_made_by_maps(kernel, value))
        for position, value in enumerate(kernel.inputs)
    )
    return sources, nameless_key(kernel)


def described(kernel: KernelOp, schedule: Schedule) -> str:
    """A schedule with the shapes that it was found for: `64x9xf32 9x4xf32 -> 64x4xf32: rows`."""
    inputs, results = (
        " ".join("x".join(map(str, [*dims_of(value), element_type(value)])) for value in values)
        for values in (kernel.inputs, kernel.results)
    )
    return f"{inputs} -> {results}: {schedule}".strip()


def apply_schedule(kernel: KernelOp, schedule: Schedule) -> list[KernelOp]:
    """
    Write a schedule to a kernel, and the layouts that its strategy wants of what it packs: the
    bytes of constants, later, and other values by kernels before it, which are given. Another
    kernel takes its place where the strategy wants dimensions of the result as one.
    """
    strategy = _of_schedule(kernel, schedule)
    if (joined := strategy.joined(kernel, schedule)) > 1:
        kernel = _with_joined_dims(kernel, joined)
    packed = _packed(kernel, schedule)
    kernel.schedule = ScheduleAttr(schedule)
    if not packed:
        return []
    count = len(kernel.inputs) + len(kernel.results)
    layouts = [kernel.layout_at(position) for position in range(count)]
    conversions: list[KernelOp] = []
    for position, argument in enumerate(kernel.body.block.args):
        wanted = packed.get(argument, layouts[position])
        if wanted != layouts[position] and not is_constant(kernel, argument):
            value, name = kernel.inputs[position], f"{kernel.sym_name.data}_pack_{position}"
            copy = conversion(name, value, layouts[position], wanted)
            assert kernel.parent is not None
            kernel.parent.insert_op_before(copy, kernel)
            kernel.operands[position] = copy.results[0]
            conversions.append(copy)
        layouts[position] = wanted
    kernel.layouts = ArrayAttr(layouts)
    return conversions


def schedule_copy(copy: KernelOp, setting: Setting) -> None:
    """
    Schedule a copy that `apply_schedule` gave, or put in its place what computes in its layout what
    it reads, if that takes less time.
    """
    best = choose(copy, setting)
    if (kernel := computed_there(copy)) is not None:
        source, there = copy.inputs[0].owner, choose(kernel, setting)
        assert isinstance(source, KernelOp)
        alone = choose(source, setting)
        if there and alone and best and there.cycles < alone.cycles + best.cycles:
            Rewriter.replace_op(copy, kernel, kernel.results)
            Rewriter.erase_op(source)
            copy, best = kernel, there
    if best is not None:
        apply_schedule(copy, best.schedule)


def _with_joined_dims(kernel: KernelOp, count: int) -> KernelOp:
    """Put a kernel whose row-major result has its last dimensions as one in place of a kernel."""
    (result,), last = kernel.results, kernel.body.block.last_op
    assert isinstance(last, YieldOp)
    dims = dims_of(result)
    joined = ReshapeOp(last.values[0], [*dims[:-count], product(dims[-count:])])
    new_last = YieldOp([joined.result])
    kernel.body.block.insert_ops_before([joined, new_last], last)
    Rewriter.erase_op(last)
    layouts = [kernel.layout_at(position) for position in range(len(kernel.inputs))]
    new = KernelOp(kernel.sym_name.data, kernel.inputs, kernel.detach_region(kernel.body))
    new.layouts = ArrayAttr([*layouts, LayoutAttr.row_major(len(dims) - count + 1)])
    reshape = ReshapeOp(new.results[0], dims)
    for op in (joined, new_last, new, reshape):
        op.location = kernel.location
    Rewriter.insert_op([new, reshape], InsertPoint.before(kernel))
    new.results[0].name_hint = reshape.result.name_hint = result.name_hint
    Rewriter.replace_op(kernel, [], [reshape.result])
    return new


def lower_kernel(kernel: KernelBody) -> FuncOp:
    """
    The function of a kernel, with the loops of the strategy that its schedule names; plain loops
    without a schedule.
    """
    if kernel.schedule is None:
        return KernelLowering(kernel).lower()
    schedule = kernel.schedule.data
    strategy = _of_schedule(kernel, schedule)
    return KernelLowering(kernel).lower(lambda k: strategy.lower(k, schedule))


def _of_schedule(kernel: KernelBody, schedule: Schedule) -> Strategy:
    """LoweringError if there is no such strategy, or if it does not apply to the kernel."""
    strategy = strategy_named(schedule.strategy)
    if strategy is None:
        known = ", ".join(sorted(each.name for each in STRATEGIES))
        raise LoweringError(
            kernel, f"there is no strategy '{schedule.strategy}'; there are {known}"
        )
    found = tuple(map(type, anchors_of(kernel)))
    if strategy.anchors != found:
        raise LoweringError(
            kernel,
            f"strategy '{strategy.name}' is for {_names(strategy.anchors)}; "
            f"this kernel has {_names(found)}",
        )
    names = {name for name, _ in schedule.parameters}
    if unknown := sorted(names.difference(strategy.parameters)):
        known = ", ".join(strategy.parameters) or "none"
        raise LoweringError(
            kernel, f"strategy '{strategy.name}' has no parameters {unknown}; it has {known}"
        )
    return strategy


def _names(anchors: Sequence[type[Operation]]) -> str:
    return ", ".join(op.name for op in anchors) or "maps alone"


def _estimate(candidate: Candidate) -> float:
    return candidate.cycles


def _is_of_nothing(kernel: KernelOp) -> bool:
    """True if a tensor that the kernel reads or writes is known to be empty."""
    values = (*kernel.inputs, *kernel.results)
    return any(dim == 0 for value in values for dim in dims_of(value))
