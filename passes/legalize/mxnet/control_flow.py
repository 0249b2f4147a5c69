"""Subgraphs: steps over data, steps while a condition holds, and one of two branches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.core.control_flow import IfOp, YieldOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i1
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.control_flow import legalize_if
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.legalizer import PoisonedError
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _inline(
    builder: MxnetLegalizer, at: CoreBuilder, region: Region, arguments: Sequence[SSAValue]
) -> list[SSAValue]:
    """The results of a subgraph for its arguments, legalized at a builder."""
    block = region.block
    if len(block.args) != len(arguments):
        builder.refuse(f"{len(arguments)} arguments of a subgraph", f"{len(block.args)}")
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    copies = [op.clone(values) for op in block.ops]
    for copy in copies:
        Rewriter.insert_op(copy, at.point)
    holder = copies.pop()
    for copy in copies:
        if not builder.walk.node(copy):
            raise PoisonedError
    found = list(holder.operands)
    Rewriter.erase_op(holder)
    return found


def _regions(builder: MxnetLegalizer, count: int) -> Sequence[Region]:
    regions = builder.op.regions
    if len(regions) != count:
        builder.refuse(f"{len(regions)} subgraphs", f"{count}")
    return regions


def _chosen(builder: MxnetLegalizer, name: str, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The values at the places that an argument lists."""
    places = builder.sizes(name)
    if any(not 0 <= place < len(values) for place in places):
        builder.refuse(f"'{name}' is {places}", f"places below {len(values)}")
    return [values[place] for place in places]


def _truth(x: SSAValue, builder: CoreBuilder) -> TensorValue:
    """A condition of one element as a scalar."""
    return TensorValue.of(builder, x).reshape([]).ne(0)


@legalizes("_foreach")
def legalize_steps(builder: MxnetLegalizer) -> Results:
    """The subgraph for each element of the data; its first results are stacked, others carried."""
    (region,) = _regions(builder, 1)
    values = builder.inputs("data")
    locations = [builder.sizes(f"{name}_locs") for name in ("in_data", "in_state", "remain")]
    order = [place for group in locations for place in group]
    if sorted(order) != list(range(len(values))) or not locations[0]:
        builder.refuse(f"places {order} of {len(values)} inputs", "each once")
    scanned, carried = len(locations[0]), len(locations[1])
    data, states = values[:scanned], values[scanned : scanned + carried]
    stacked = builder.integer("num_out_data")

    def step(inner: CoreBuilder, number: Expr, before: State) -> tuple[State, State]:
        index = inner.dims([number], [])
        parts = [inner.add(GatherOp(value, index, 0, inside=True)) for value in data]
        given = [*parts, *(one.value for one in before), *values[scanned + carried :]]
        placed = dict(zip(order, given, strict=True))
        found = _inline(builder, inner, region, [placed[k] for k in range(len(values))])
        results = [TensorValue(inner, value) for value in found]
        return tuple(results[stacked:]), tuple(results[:stacked])

    after, outputs = run_steps(builder, dims_of(data[0])[0], states, step)
    return [*outputs, *after]


@legalizes("_while_loop")
def legalize_while(builder: MxnetLegalizer) -> Results:
    """
    The subgraph as long as a condition holds, at most `max_iterations` times; its first results are
    stacked, and zero from where it ends, others carried.
    """
    condition, body = _regions(builder, 2)
    values = builder.inputs("data")
    inside = builder.sizes("func_input_locs")
    places = [inside[place] for place in builder.sizes("func_var_locs") if place < len(inside)]
    states = [values[place] for place in places if place < len(values)]
    stacked, count = builder.integer("num_out_data"), builder.integer("max_iterations")
    alive = builder.scalar(True, i1)

    def step(inner: CoreBuilder, _: Expr, before: State) -> tuple[State, State]:
        was_alive, *state = before
        current = list(values)
        for place, one in zip(places, state, strict=True):
            current[place] = one.value
        goes_on = _inline(builder, inner, condition, _chosen(builder, "cond_input_locs", current))
        is_alive = was_alive & _truth(goes_on[0], inner)
        found = _inline(builder, inner, body, _chosen(builder, "func_input_locs", current))
        results = [TensorValue(inner, value) for value in found]
        if len(results) != stacked + len(state):
            builder.refuse(f"a body of {len(results)} results", f"{stacked + len(state)}")
        kept = [is_alive.where(new, old) for new, old in zip(results[stacked:], state, strict=True)]
        return (is_alive, *kept), tuple(is_alive.where(each, 0) for each in results[:stacked])

    after, outputs = run_steps(builder, Expr.const(count), [alive, *states], step)
    return [*outputs, *after[1:]]


def _branch(
    builder: MxnetLegalizer, region: Region, given: Sequence[SSAValue], count: int
) -> Region:
    """A copy of a subgraph over values of the outside, of so many results."""
    if len(given) != len(region.block.args):
        builder.refuse(f"{len(given)} arguments of a subgraph", f"{len(region.block.args)}")
    block = Block()
    mapped: dict[SSAValue, SSAValue] = dict(zip(region.block.args, given, strict=True))
    block.add_ops([op.clone(mapped) for op in region.block.ops])
    last = block.last_op
    if last is None or len(last.operands) < count:
        builder.refuse("a branch of fewer results", f"{count}")
    last.operands = list(last.operands)[:count]
    return Region(block)


@legalizes("_cond")
def legalize_branch(builder: MxnetLegalizer) -> Results:
    """The results of one of two subgraphs."""
    condition, *branches = _regions(builder, 3)
    values, types = builder.inputs("data"), [result.type for result in builder.op.results]
    found = _inline(builder, builder, condition, _chosen(builder, "cond_input_locs", values))
    regions = [
        _branch(builder, branch, _chosen(builder, f"{name}_input_locs", values), len(types))
        for name, branch in zip(("then", "else"), branches, strict=True)
    ]
    op = IfOp(_truth(found[0], builder).value, *regions, result_types=types)
    op.location = builder.location
    holder = YieldOp(list(op.results))
    for each in (op, holder):
        Rewriter.insert_op(each, builder.point)
    try:
        legalize_if(op, builder.walk)
        return list(holder.operands)
    finally:
        holder.detach()
        holder.erase()
