"""Gathers and scatters of StableHLO."""

from __future__ import annotations

from lowerdeck.dialects.core.types import i1, i64, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.indexed_parts import gathered_parts, scattered_parts
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.stablehlo import require_plain

_REDUCTIONS = {
    "": "none",
    "ADD": "add",
    "MULTIPLY": "mul",
    "MUL": "mul",
    "MAXIMUM": "max",
    "MINIMUM": "min",
}


def _vectors_last(builder: TfliteLegalizer) -> TensorValue:
    """The dimension of the index vectors as the last one; a number is a vector of one."""
    indices, axis = builder.value(1), int(builder.option("index_vector_dim"))
    rank = len(indices.dims)
    if not 0 <= axis <= rank:
        builder.refuse(f"'index_vector_dim' is {axis}", f"one up to {rank}")
    if axis == rank:
        return indices.reshape([*indices.dims, 1])
    return indices.transpose([*(k for k in range(rank) if k != axis), axis])


@legalizes("STABLEHLO_GATHER")
def legalize_gather(builder: TfliteLegalizer) -> Results:
    """Parts of one size, which begin at index vectors, moved to where all of them fits."""
    builder.require_equal_scales(0)
    builder.ignore("indices_are_sorted")
    x = builder.value(0)
    builder.require_rank(x.value, range(1, 1 << 16), "operand")
    sizes = [Expr.const(k) for k in builder.counted("slice_sizes", len(x.dims), least=0)]
    mapped, collapsed = (
        builder.axes_option(name, len(x.dims))
        for name in ("start_index_map", "collapsed_slice_dims")
    )
    vectors = _vectors_last(builder).cast(i64)
    rank = len(vectors.dims) - 1 + len(x.dims) - len(collapsed)
    offsets = builder.axes_option("offset_dims", rank)
    return gathered_parts(builder, x, vectors, sizes, mapped, collapsed, offsets)


@legalizes("STABLEHLO_SCATTER")
def legalize_scatter(builder: TfliteLegalizer) -> Results:
    """Updates meet what is there, in their order; those outside are left out."""
    builder.require_equal_scales(0, 2)
    builder.ignore("indices_are_sorted", "unique_indices")
    if len(builder.inputs) != 3:
        builder.refuse(f"{len(builder.inputs)} inputs", "one tensor, indices and updates")
    body = str(builder.option("body") or "")
    if body not in _REDUCTIONS:
        builder.refuse(f"a body '{body}'", "the update, a sum, a product or an extremum")
    if body:
        require_plain(builder)
    x, updates = builder.value(0), builder.value(2)
    element = x.element
    if element == i1:
        x, updates = x.cast(ui8), updates.cast(ui8)
    windows = builder.axes_option("update_window_dims", len(updates.dims))
    inserted, mapped = (
        builder.axes_option(name, len(x.dims))
        for name in ("inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    vectors = _vectors_last(builder).cast(i64)
    kind = _REDUCTIONS[body]
    result = scattered_parts(builder, x, vectors, updates, mapped, inserted, windows, kind)
    return result.ne(0) if element == i1 else result
