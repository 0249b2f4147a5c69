"""Sums, means, extrema, and what finds their places."""

from __future__ import annotations

import math
from collections.abc import Callable

from fuzz.tflite_graphs import Graph

_FACTORS = 16
"""Of products of more floats it depends on the order whether what is on the way has overflown."""

_TYPES = {
    "MEAN": ("FLOAT32", "INT8", "UINT8", "INT16"),
    "SUM": ("FLOAT32", "INT32", "UINT8"),
    "REDUCE_MAX": ("FLOAT32", "INT8", "UINT8", "INT16", "INT32"),
    "REDUCE_MIN": ("FLOAT32", "INT8", "UINT8", "INT16", "INT32"),
    "REDUCE_PROD": ("FLOAT32", "INT32", "INT8", "INT16"),
    "REDUCE_ANY": ("BOOL",),
    "REDUCE_ALL": ("BOOL",),
}


def reduce(g: Graph) -> object:
    """Reductions along some axes, of which some may be negative or repeat."""
    kind = g.rng.choice(list(_TYPES))
    x = g.pick(*_TYPES[kind])
    axes = g.rng.sample(range(x.rank), g.rng.randint(1, x.rank))
    keep = g.chance(0.5)
    kept = [1 if k in axes else size for k, size in enumerate(x.shape)]
    shape = kept if keep else [size for k, size in enumerate(x.shape) if k not in axes]
    given = [k - x.rank if g.chance(0.3) else k for k in axes]
    if kind == "REDUCE_PROD" and x.type == "FLOAT32" and x.size > _FACTORS * math.prod(shape):
        kind = "SUM"
    q = x.q
    if kind in ("MEAN", "SUM", "REDUCE_PROD") and q is not None and g.chance(0.7):
        q = g.near(q.scale, x.type)
    exact = x.type != "FLOAT32" or (x.exact and kind in ("REDUCE_MAX", "REDUCE_MIN"))
    return g.op(
        kind,
        [x, g.integers(given)],
        (shape, x.type, q),
        options=("ReducerOptions", {"keep_dims": keep}),
        exact=exact,
    )


def arg(g: Graph) -> object:
    """ARG_MAX and ARG_MIN: the first of equal ones."""
    kind = g.rng.choice(["ARG_MAX", "ARG_MIN"])
    x = g.pick("FLOAT32", "INT8", "UINT8", "INT32", exact=True)
    axis = g.rng.randrange(x.rank)
    type_ = g.rng.choice(["INT32", "INT64"])
    shape = [size for k, size in enumerate(x.shape) if k != axis]
    name = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
    given = g.integers(axis - x.rank if g.chance(0.3) else axis)
    return g.op(kind, [x, given], (shape, type_, None), options=(name, {"output_type": type_}))


def top_k(g: Graph) -> object:
    """TOPK_V2: of equal ones that of the lower index first."""
    x = g.pick("FLOAT32", "INT8", "UINT8", "INT32", exact=True)
    k = g.rng.randint(1, x.shape[-1])
    shape = [*x.shape[:-1], k]
    return g.op(
        "TOPK_V2",
        [x, g.integers(k)],
        (shape, x.type, x.q),
        (shape, "INT32", None),
        options=("TopKV2Options", {}),
    )


def cumsum(g: Graph) -> object:
    """CUMSUM from either side, with and without the element itself."""
    x = g.pick("FLOAT32", "INT32", "INT64")
    options = {"exclusive": g.chance(0.5), "reverse": g.chance(0.5)}
    axis = g.rng.randint(-x.rank, x.rank - 1)
    return g.op(
        "CUMSUM",
        [x, g.integers(axis)],
        (x.shape, x.type, None),
        options=("CumsumOptions", options),
        exact=x.type != "FLOAT32",
    )


RECIPES: tuple[Callable[[Graph], object], ...] = (reduce, reduce, reduce, arg, top_k, cumsum)
