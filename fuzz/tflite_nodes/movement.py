"""What moves elements and computes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.tflite_graphs import Graph, Value

_ANY = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL")
_COMMON = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32")
_SMALL = ("FLOAT32", "INT8", "UINT8", "INT32")


def reshape(g: Graph) -> object:
    """RESHAPE, with one size left open at times."""
    x = g.pick(*_COMMON)
    left, shape = x.size, list[int]()
    for _ in range(g.rng.randint(0, 3)):
        size = g.rng.choice([k for k in range(1, left + 1) if left % k == 0])
        shape.append(size)
        left //= size
    shape.append(left)
    g.rng.shuffle(shape)
    given = [-1 if k == 0 and g.chance(0.4) else size for k, size in enumerate(shape)]
    options = ("ReshapeOptions", {"new_shape": given})
    return g.op("RESHAPE", [x, g.integers(given)], (shape, x.type, x.q), options=options)


def transpose(g: Graph) -> object:
    """TRANSPOSE of up to five dimensions."""
    x = g.pick(*_COMMON, ranks=(1, 2, 3, 4, 5))
    order = g.rng.sample(range(x.rank), x.rank)
    shape = [x.shape[k] for k in order]
    return g.op("TRANSPOSE", [x, g.integers(order)], (shape, x.type, x.q))


def slice_(g: Graph) -> object:
    """SLICE, to the end at times."""
    x = g.pick(*_ANY)
    begin = [g.rng.randint(0, size - 1) for size in x.shape]
    shape = [g.rng.randint(1, size - b) for size, b in zip(x.shape, begin, strict=True)]
    sizes = [
        -1 if s == full - b and g.chance(0.5) else s
        for s, full, b in zip(shape, x.shape, begin, strict=True)
    ]
    return g.op("SLICE", [x, g.integers(begin), g.integers(sizes)], (shape, x.type, x.q))


def strided_slice(g: Graph) -> object:
    """STRIDED_SLICE with all masks but those of new axes."""
    x = g.pick(*_ANY, ranks=(1, 2, 3, 4))
    begin, end, strides, shape = list[int](), list[int](), list[int](), list[int]()
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0}
    for k, size in enumerate(x.shape):
        stride = g.rng.choice([1, 1, 2, 3, -1, -2])
        low, high = sorted(g.rng.sample(range(size + 1), 2))
        first, last = (low, high) if stride > 0 else (high - 1, low - 1)
        if g.chance(0.15):
            masks["shrink_axis_mask"] |= 1 << k
            stride, last = 1, first + 1
        else:
            if g.chance(0.2):
                masks["begin_mask"] |= 1 << k
                first = 0 if stride > 0 else size - 1
            if g.chance(0.2) or last < 0:
                masks["end_mask"] |= 1 << k
                last = size if stride > 0 else -1
            shape.append(len(range(first, last, stride)))
        begin.append(first - size if g.chance(0.3) else first)
        end.append(last - size if g.chance(0.3) and 0 < last < size else last)
        strides.append(stride)
    if 0 in shape:
        return None
    inputs = [x, g.integers(begin), g.integers(end), g.integers(strides)]
    options = ("StridedSliceOptions", masks)
    return g.op("STRIDED_SLICE", inputs, (shape, x.type, x.q), options=options)


def pad(g: Graph) -> object:
    """PAD with zero, PADV2 with a number, MIRROR_PAD."""
    x = g.pick(*_COMMON, ranks=(1, 2, 3, 4))
    kind = g.rng.choice(["PAD", "PADV2", "MIRROR_PAD"])
    if kind == "MIRROR_PAD":
        mode = g.rng.choice(["REFLECT", "SYMMETRIC"])
        reach = [size - (mode == "REFLECT") for size in x.shape]
        widths = [[g.rng.randint(0, min(most, 3)) for _ in range(2)] for most in reach]
    else:
        mode = ""
        widths = [[g.rng.randint(0, 2) for _ in range(2)] for _ in x.shape]
    shape = [size + sum(pair) for size, pair in zip(x.shape, widths, strict=True)]
    inputs = [x, g.integers(widths, g.rng.choice(["INT32", "INT64"]))]
    if kind == "PADV2":
        inputs.append(g.constant(g_scalar(g, x), x.type, x.q))
    options = ("MirrorPadOptions", {"mode": mode}) if mode else None
    return g.op(kind, inputs, (shape, x.type, x.q), options=options)


def g_scalar(g: Graph, x: Value) -> np.ndarray:
    """A number of a value's type, as a tensor of one element."""
    if x.type in ("INT32", "INT64"):
        return g.numbers.integers(-9, 9, 1).astype(x.type.lower())
    return g.weights([1], x.type)


def concatenation(g: Graph) -> object:
    """CONCATENATION of parts with the scale of the result; of u8 with any scale."""
    x = g.pick(*_COMMON)
    axis = g.rng.randrange(x.rank)
    parts = [x]
    for _ in range(g.rng.randint(1, 3)):
        shape = [g.size() if k == axis else size for k, size in enumerate(x.shape)]
        own = g.scale("UINT8") if x.type == "UINT8" and g.chance(0.5) else x.q
        is_constant = g.chance(0.2) and x.type in ("FLOAT32", "INT8", "UINT8")
        parts.append(
            g.constant(g.weights(shape, x.type), x.type, own)
            if is_constant
            else g.input(shape, x.type, own)
        )
    g.rng.shuffle(parts)
    shape = list(x.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    given = axis - x.rank if g.chance(0.3) else axis
    options = ("ConcatenationOptions", {"axis": given})
    return g.op("CONCATENATION", parts, (shape, x.type, x.q), options=options)


def pack(g: Graph) -> object:
    """PACK of a value and others like it."""
    x = g.pick(*_COMMON, ranks=(1, 2, 3))
    parts = [x, *(g.input(x.shape, x.type, x.q) for _ in range(g.rng.randint(0, 2)))]
    axis = g.rng.randint(0, x.rank)
    shape = [*x.shape[:axis], len(parts), *x.shape[axis:]]
    options = ("PackOptions", {"values_count": len(parts), "axis": axis})
    return g.op("PACK", parts, (shape, x.type, x.q), options=options)


def unpack(g: Graph) -> object:
    """UNPACK into all parts along an axis."""
    x = g.pick(*_COMMON, where=lambda value: min(value.shape) < 5)
    axis = x.shape.index(min(x.shape))
    shape = [size for k, size in enumerate(x.shape) if k != axis]
    options = ("UnpackOptions", {"num": x.shape[axis], "axis": axis})
    results = [(shape, x.type, x.q)] * x.shape[axis]
    return g.op("UNPACK", [x], *results, options=options)


def split(g: Graph) -> object:
    """SPLIT into equal parts and SPLIT_V into parts of any size."""
    x = g.pick(*_COMMON)
    axis = g.rng.randrange(x.rank)
    size = x.shape[axis]
    if g.chance(0.5):
        count = g.rng.choice([k for k in range(1, size + 1) if size % k == 0])
        sizes = [size // count] * count
        inputs = [g.integers(axis), x]
        kind, options = "SPLIT", ("SplitOptions", {"num_splits": count})
    else:
        cut = g.rng.randint(0, size)
        sizes = [cut, size - cut] if 0 < cut < size else [size]
        inputs = [x, g.integers(sizes), g.integers(axis)]
        kind, options = "SPLIT_V", ("SplitVOptions", {"num_splits": len(sizes)})
    results = [([*x.shape[:axis], part, *x.shape[axis + 1 :]], x.type, x.q) for part in sizes]
    return g.op(kind, inputs, *results, options=options)


def dims(g: Graph) -> object:
    """EXPAND_DIMS and SQUEEZE."""
    x = g.pick(*_ANY, ranks=(1, 2, 3))
    if 1 in x.shape and g.chance(0.6):
        axes = [k for k, size in enumerate(x.shape) if size == 1]
        shape = [size for k, size in enumerate(x.shape) if k not in axes]
        options = ("SqueezeOptions", {"squeeze_dims": axes} if g.chance(0.6) else {})
        return g.op("SQUEEZE", [x], (shape, x.type, x.q), options=options)
    axis = g.rng.randint(0, x.rank)
    shape = [*x.shape[:axis], 1, *x.shape[axis:]]
    given = axis - x.rank - 1 if g.chance(0.3) else axis
    return g.op("EXPAND_DIMS", [x, g.integers(given)], (shape, x.type, x.q))


def repeat(g: Graph) -> object:
    """TILE and BROADCAST_TO."""
    x = g.pick("FLOAT32", "INT32", "INT64", "INT8", "UINT8", "BOOL")
    if g.chance(0.5):
        times = [g.rng.choice([1, 1, 2, 3]) for _ in x.shape]
        shape = [size * k for size, k in zip(x.shape, times, strict=True)]
        return g.op("TILE", [x, g.integers(times)], (shape, x.type, x.q))
    shape = [*g.shape(g.rng.choice([0, 0, 1]), 3), *(g.size(4) if s == 1 else s for s in x.shape)]
    return g.op("BROADCAST_TO", [x, g.integers(shape)], (shape, x.type, x.q))


def gather(g: Graph) -> object:
    """GATHER along an axis, at times with batch dimensions."""
    x = g.pick(*_COMMON)
    axis = g.rng.randrange(x.rank)
    batch = g.rng.randint(0, axis) if g.chance(0.3) else 0
    shape = [*x.shape[:batch], *g.shape(g.rng.randint(0, 2), 4)]
    places = g.constant(g.numbers.integers(0, x.shape[axis], shape).astype("i4"), "INT32")
    made = [*x.shape[:axis], *shape[batch:], *x.shape[axis + 1 :]]
    options = ("GatherOptions", {"axis": axis, "batch_dims": batch})
    return g.op("GATHER", [x, places], (made, x.type, x.q), options=options)


def gather_nd(g: Graph) -> object:
    """GATHER_ND of elements or of whole parts."""
    x = g.pick(*_SMALL)
    depth = g.rng.randint(1, x.rank)
    rows = g.shape(g.rng.randint(1, 2), 4)
    places = np.stack([g.numbers.integers(0, x.shape[k], rows) for k in range(depth)], -1)
    made = [*rows, *x.shape[depth:]]
    return g.op("GATHER_ND", [x, g.integers(places)], (made, x.type, x.q))


def scatter_nd(g: Graph) -> object:
    """SCATTER_ND, which adds what has one place."""
    rows, size = g.size(), g.size()
    x = g.pick("FLOAT32", "INT32", rank=2)
    rows = x.shape[0]
    places = g.numbers.integers(0, size, (rows, 1))
    made = [size, x.shape[1]]
    inputs = [g.integers(places), x, g.integers(made)]
    return g.op("SCATTER_ND", inputs, (made, x.type, None), exact=x.type != "FLOAT32")


def reverse(g: Graph) -> object:
    """REVERSE_V2, and REVERSE_SEQUENCE by lengths."""
    x = g.pick("FLOAT32", "INT32", "UINT8", "INT8", "INT16", ranks=(2, 3, 4))
    axis = g.rng.randrange(x.rank)
    if g.chance(0.5):
        return g.op("REVERSE_V2", [x, g.integers([axis])], (x.shape, x.type, x.q))
    batch = g.rng.choice([k for k in range(x.rank) if k != axis])
    lengths = g.constant(
        g.numbers.integers(1, x.shape[axis] + 1, x.shape[batch]).astype("i4"), "INT32"
    )
    options = ("ReverseSequenceOptions", {"seq_dim": axis, "batch_dim": batch})
    return g.op("REVERSE_SEQUENCE", [x, lengths], (x.shape, x.type, x.q), options=options)


def one_hot(g: Graph) -> object:
    """ONE_HOT; indices out of range are off."""
    x = g.pick("INT32", "INT64")
    depth, axis = g.size(9), g.rng.randint(-1, x.rank)
    axis_ = x.rank if axis < 0 else axis
    shape = [*x.shape[:axis_], depth, *x.shape[axis_:]]
    ends = [g.constant(np.array(v, "f4"), "FLOAT32") for v in (1.5, -0.5)]
    options = ("OneHotOptions", {"axis": axis})
    return g.op("ONE_HOT", [x, g.integers(depth), *ends], (shape, "FLOAT32", None), options=options)


def update(g: Graph) -> object:
    """DYNAMIC_UPDATE_SLICE, whose start is clamped."""
    x = g.pick("FLOAT32", "INT8", "INT32", "INT64", "BOOL")
    shape = [g.rng.randint(1, size) for size in x.shape]
    part = g.input(shape, x.type, x.q)
    start = g.integers([g.rng.randint(-2, size + 1) for size in x.shape])
    return g.op("DYNAMIC_UPDATE_SLICE", [x, part, start], (x.shape, x.type, x.q))


RECIPES: tuple[Callable[[Graph], object], ...] = (
    reshape, transpose, slice_, strided_slice, pad, pad, concatenation, pack, unpack, split, dims,
    repeat, gather, gather_nd, scatter_nd, reverse, one_hot, update,
)  # fmt: skip
