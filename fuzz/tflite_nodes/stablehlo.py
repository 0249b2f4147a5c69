"""Operators of StableHLO for which LiteRT has kernels, and their relatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.tflite_graphs import DTYPES, Graph, Value

_NUMBERS = ("FLOAT32", "INT32", "INT64")
_ANY = ("FLOAT32", "INT32", "INT64", "INT8", "BOOL")
_SUMS = {"ADD": "sum", "MULTIPLY": "prod", "MAXIMUM": "max", "MINIMUM": "min"}


def _plain(
    g: Graph, *types: str, ranks: tuple[int, ...] = (1, 2, 3, 4), exact: bool = False
) -> Value:
    """A value without a scale."""
    found = g.pick(*types, ranks=ranks, exact=exact)
    return found if found.q is None else g.input(found.shape, found.type)


def _number(g: Graph, type_: str) -> Value:
    value = g.rng.choice([0, 1]) if type_ == "BOOL" else g.rng.randint(-4, 4)
    return g.constant(np.array(value, DTYPES[type_]), type_)


def arithmetic(g: Graph) -> object:
    """Sums, products and extrema."""
    x = _plain(g, *_NUMBERS)
    kind = g.rng.choice(list(_SUMS))
    y = g.input(x.shape, x.type)
    is_choice = kind in ("MAXIMUM", "MINIMUM")
    exact = x.exact and (is_choice or x.type != "FLOAT32")
    return g.op(f"STABLEHLO_{kind}", [x, y], (x.shape, x.type, None), exact=exact)


def dilate(g: Graph) -> object:
    """DILATE by steps for each dimension."""
    x = g.pick(*_ANY)
    steps = [g.rng.choice([1, 1, 2, 3]) for _ in x.shape]
    shape = [(size - 1) * step + 1 for size, step in zip(x.shape, steps, strict=True)]
    value = _number(g, x.type)
    if x.q is not None:
        value = g.constant(np.array(g.rng.randint(-128, 127), np.int8), x.type, x.q)
    return g.op("DILATE", [x, g.integers(steps), value], (shape, x.type, x.q))


def pad(g: Graph) -> object:
    """STABLEHLO_PAD around, between and by negative amounts."""
    x = _plain(g, *_ANY)
    low, high = ([g.rng.randint(-2, 3) for _ in x.shape] for _ in range(2))
    between = [g.rng.choice([0, 0, 1, 2]) for _ in x.shape]
    shape = [
        (size - 1) * (inner + 1) + 1 + a + b
        for size, a, b, inner in zip(x.shape, low, high, between, strict=True)
    ]
    if min(shape) < 1:
        return None
    options = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
    return g.op(
        "STABLEHLO_PAD",
        [x, _number(g, x.type)],
        (shape, x.type, None),
        options=("StablehloPadOptions", options),
    )


def _windows(g: Graph, x: Value, shape: list[int]) -> tuple[list[list[int]], list[int]] | None:
    sizes = [g.rng.randint(1, min(3, size)) for size in shape]
    if g.chance(0.1):
        sizes = list(shape)
    strides = [g.rng.choice([1, 1, 2, 3]) for _ in shape]
    dilations = [g.rng.choice([1, 1, 2]) for _ in shape]
    counts = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, s, d in zip(shape, sizes, strides, dilations, strict=True)
    ]
    return None if min(counts) < 1 else ([sizes, strides, dilations], counts)


def reduce_window(g: Graph) -> object:
    """REDUCE_WINDOW, whose windows are inputs."""
    kind = g.rng.choice(["ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY"])
    x = _plain(g, *(("BOOL",) if kind in ("ALL", "ANY") else _NUMBERS))
    if (found := _windows(g, x, list(x.shape))) is None:
        return None
    lists, counts = found
    inputs = [x, _number(g, x.type), *(g.integers(numbers, "INT64") for numbers in lists)]
    options = ("ReduceWindowOptions", {"reduce_function": kind})
    return g.op("REDUCE_WINDOW", inputs, (counts, x.type, None), options=options, exact=False)


def stablehlo_reduce_window(g: Graph) -> object:
    """STABLEHLO_REDUCE_WINDOW with padding, dilation and a body."""
    kind = g.rng.choice(list(_SUMS))
    x = _plain(g, *_NUMBERS)
    spread = [g.rng.choice([1, 1, 2]) for _ in x.shape]
    pads = [[g.rng.randint(-1, 2), g.rng.randint(-1, 2)] for _ in x.shape]
    shape = [
        (size - 1) * step + 1 + sum(pair)
        for size, step, pair in zip(x.shape, spread, pads, strict=True)
    ]
    if min(shape) < 1 or (found := _windows(g, x, shape)) is None:
        return None
    lists, counts = found
    options = {
        "window_dimensions": lists[0],
        "window_strides": lists[1],
        "window_dilations": lists[2],
        "base_dilations": spread,
        "padding": [amount for pair in pads for amount in pair],
        "body_subgraph_index": g.body(f"STABLEHLO_{kind}", x.type),
    }
    return g.op(
        "STABLEHLO_REDUCE_WINDOW",
        [x, _number(g, x.type)],
        (counts, x.type, None),
        options=("StablehloReduceWindowOptions", options),
        exact=False,
    )


def _vectors(g: Graph, batch: list[int], count: int, most: int) -> tuple[Value, int]:
    """Index vectors, with their dimension at some place or left out; that place."""
    axis = len(batch) if count == 1 and g.chance(0.4) else g.rng.randint(0, len(batch))
    is_left_out = axis == len(batch) and count == 1 and g.chance(0.5)
    shape = batch if is_left_out else [*batch[:axis], count, *batch[axis:]]
    type_ = g.rng.choice(["INT32", "INT64"])
    numbers = g.numbers.integers(-2, most + 2, tuple(shape))
    return g.constant(numbers.astype(DTYPES[type_]), type_), axis


def gather(g: Graph) -> object:
    """STABLEHLO_GATHER of parts at index vectors."""
    x = g.pick("FLOAT32", "INT32", "INT8")
    sizes = [g.rng.choice([1, size, g.rng.randint(1, size)]) for size in x.shape]
    collapsed = [k for k, size in enumerate(sizes) if size == 1 and g.chance(0.6)]
    mapped = g.rng.sample(range(x.rank), g.rng.randint(1, x.rank))
    batch = list(g.shape(g.rng.randint(0, 2), 4))
    vectors, axis = _vectors(g, batch, len(mapped), max(x.shape))
    kept = [size for k, size in enumerate(sizes) if k not in collapsed]
    rank = len(batch) + len(kept)
    offsets = sorted(g.rng.sample(range(rank), len(kept)))
    sources, parts = iter(batch), iter(kept)
    shape = [next(parts) if k in offsets else next(sources) for k in range(rank)]
    options = {
        "offset_dims": offsets,
        "collapsed_slice_dims": collapsed,
        "start_index_map": mapped,
        "index_vector_dim": axis,
        "slice_sizes": sizes,
    }
    return g.op(
        "STABLEHLO_GATHER",
        [x, vectors],
        (shape, x.type, x.q),
        options=("StablehloGatherOptions", options),
    )


def scatter(g: Graph) -> object:
    """STABLEHLO_SCATTER of updates at index vectors, some outside."""
    kind = g.rng.choice([None, *_SUMS])
    x = _plain(g, *_NUMBERS)
    sizes = [g.rng.choice([1, size, g.rng.randint(1, size)]) for size in x.shape]
    inserted = [k for k, size in enumerate(sizes) if size == 1 and g.chance(0.6)]
    mapped = g.rng.sample(range(x.rank), g.rng.randint(1, x.rank))
    batch = list(g.shape(g.rng.randint(0, 2), 4))
    vectors, axis = _vectors(g, batch, len(mapped), max(x.shape))
    kept = [size for k, size in enumerate(sizes) if k not in inserted]
    rank = len(batch) + len(kept)
    windows = sorted(g.rng.sample(range(rank), len(kept)))
    sources, parts = iter(batch), iter(kept)
    shape = [next(parts) if k in windows else next(sources) for k in range(rank)]
    options = {
        "update_window_dims": windows,
        "inserted_window_dims": inserted,
        "scatter_dims_to_operand_dims": mapped,
        "index_vector_dim": axis,
        "update_computation_subgraph_index": g.body(
            None if kind is None else f"STABLEHLO_{kind}", x.type
        ),
    }
    return g.op(
        "STABLEHLO_SCATTER",
        [x, vectors, g.input(shape, x.type)],
        (x.shape, x.type, None),
        options=("StablehloScatterOptions", options),
        exact=x.exact and (x.type != "FLOAT32" or kind in (None, "MAXIMUM", "MINIMUM")),
    )


RECIPES: tuple[Callable[[Graph], object], ...] = (
    arithmetic, dilate, pad, reduce_window, stablehlo_reduce_window, gather, scatter,
)  # fmt: skip
