"""Sequences, and operators with graphs of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.onnx_graphs import BOOL, F32, F64, I32, I64, Builder, Skip, Value, recipe

# Sequences


@recipe("SequenceConstruct", weight=2)
def sequence(b: Builder, op: str) -> None:
    dtype = b.dtype(op)
    x = b.pick(dtype, low=1)
    items = [x, *(b.pick(dtype, x.array.shape) for _ in range(b.random.randint(0, 2)))]
    (made,) = b.node(op, items)
    if b.chance(0.3):
        (made,) = b.node("SequenceInsert", [made, x, b.leaf(np.array(0, np.int64), 0)])
        items.insert(0, x)
    match b.random.choice(("at", "length", "concat", "stack")):
        case "at":
            at = b.random.randrange(-len(items), len(items))
            b.node("SequenceAt", [made, b.parameter(at)])
        case "length":
            b.node("SequenceLength", [made])
        case "concat":
            b.node("ConcatFromSequence", [made], axis=b.random.randrange(x.array.ndim))
        case _:
            b.node("ConcatFromSequence", [made], axis=0, new_axis=1)


@recipe("SplitToSequence", weight=2)
def split_to_sequence(b: Builder, op: str) -> None:
    x = b.pick(b.dtype(op), low=1, test=lambda a: bool(a.size), closed=True)
    axis = b.axis(x.array.ndim)
    size = b.random.randint(1, x.array.shape[axis])
    parts = b.leaf(np.array(size, np.int64), 0) if b.chance(0.5) else None
    keep = b.random.choice((None, 0, 1)) if parts is None else None
    (made,) = b.node(op, [x, parts], axis=axis, keepdims=keep)
    b.node("SequenceAt", [made, b.leaf(np.array(0, np.int64), 0)])


# Control flow


def body(b: Builder, count: int) -> Builder:
    """A graph inside, with some nodes."""
    if b.depth >= 2:
        raise Skip
    inner = Builder(b.random, b.opset, b)
    return inner


def like(inner: Builder, value: Value, same_shape: bool = True) -> Value:
    """A value of the body of the type of another one, that a node of the body makes."""
    made = {name for node in inner.nodes for name in node.output}
    able = [
        v
        for v in inner.values
        if v.name in made
        and not isinstance(v.array, list)
        and v.array.dtype == value.array.dtype
        and (not same_shape or v.array.shape == value.array.shape)
        # Results of two ranks are refused unless what follows can go into the branches.
        and (v.array.ndim == value.array.ndim or inner.chance(0.05))
    ]
    if able and inner.chance(0.8):
        return inner.random.choice(able[-3:])
    dtype = value.array.dtype
    if same_shape:
        source = inner.pick(dtype, value.array.shape)
    else:
        source = inner.pick(dtype, low=value.array.ndim, high=value.array.ndim)
    return inner.node("Identity", [source])[0]


@recipe("If", weight=6)
def if_(b: Builder, op: str) -> None:
    condition = b.pick(BOOL, ())
    branches = [body(b, 0) for _ in range(2)]
    first = branches[0]
    first.grow(b.random.randint(1, 3))
    made = {name for node in first.nodes for name in node.output}
    able = [v for v in first.values if v.name in made and not isinstance(v.array, list)]
    if not able:
        raise Skip
    chosen = b.random.sample(able, b.random.randint(1, min(2, len(able))))
    branches[1].grow(b.random.randint(0, 2))
    same = not b.chance(0.2)
    others = distinct(branches[1], [like(branches[1], v, same) for v in chosen])
    pairs = [chosen, others]
    if b.chance(0.5):
        pairs.reverse()
        branches.reverse()
    graphs = [g.graph(b.name("g"), p) for g, p in zip(branches, pairs, strict=True)]
    b.node(op, [condition], len(chosen), then_branch=graphs[0], else_branch=graphs[1])


@recipe("Loop", weight=6)
def loop(b: Builder, op: str) -> None:
    trips = b.random.choice((0, 1, 2, 2, 3, 3, 4))
    trip_count = b.leaf(np.array(trips, np.int64), 0.2) if b.chance(0.85) else None
    condition = (
        b.leaf(np.array(not b.chance(0.1)), 0.2) if b.chance(0.5) or trip_count is None else None
    )
    state = [
        b.pick(b.random.choice((F32, F32, F32, I64, F64, BOOL, I32)))
        for _ in range(b.random.randint(0, 2))
    ]
    inner = body(b, 0)
    step = bind(inner, "i", np.array(0, np.int64))
    going = bind(inner, "k", np.array(True))
    carried = [bind(inner, "s", v.array) for v in state]
    inner.grow(b.random.randint(1, 4))
    following = [like(inner, v) for v in carried]
    # Without a condition the body's own is ignored, says the text, and no witness does so.
    if trip_count is None or (condition is not None and b.chance(0.4)):
        limit = inner.leaf(np.array(b.random.randint(0, 3), np.int64), 0)
        keep = inner.node("Less", [step, limit])[0]
    else:
        keep = (
            inner.node("Identity", [going])[0] if condition is not None or b.chance(0.5) else None
        )
        if keep is None:
            keep = inner.node("Identity", [inner.leaf(np.array(True), 0)])[0]
    made = {name for node in inner.nodes for name in node.output}
    able = [v for v in inner.values if v.name in made and not isinstance(v.array, list)]
    count = b.random.choice((0, 1, 1, 2) if state else (1, 2))
    if trip_count is None and not b.chance(0.05):
        count = 0  # how many elements there may be is not known then, which is refused
    scans = [b.random.choice(able) for _ in range(count)]
    following = distinct(inner, following)
    scans = distinct(inner, scans)
    if not following and not scans:
        raise Skip
    graph = inner.graph(b.name("g"), distinct(inner, [keep, *following, *scans]))
    inputs = [trip_count, condition, *state]
    made_here = b.node(op, inputs, len(following) + len(scans), body=graph)
    # What shape the elements would have that there are none of nobody says.
    if any(not v.array.shape[0] for v in made_here[len(following) :]):
        raise Skip


def distinct(inner: Builder, values: list[Value]) -> list[Value]:
    """The values, of which none is there twice."""
    found: list[Value] = []
    for value in values:
        if value.name in [v.name for v in found] or value.name in inner.inputs:
            value = inner.node("Identity", [value])[0]
        found.append(value)
    return found


def bind(inner: Builder, prefix: str, array: Any) -> Value:
    """An argument of a body."""
    value = Value(inner.name(prefix), np.asarray(array))
    inner.inputs[value.name] = value.array
    inner.values.append(value)
    return value


@recipe("Scan", weight=4)
def scan(b: Builder, op: str) -> None:
    if b.opset < 9:
        raise Skip
    length = b.random.choice((1, 2, 3))
    state = [b.pick(F32) for _ in range(b.random.randint(0, 2))]
    count = b.random.randint(1, 2)
    rest = [b.shape(None, 0, 2) for _ in range(count)]
    axes = [b.random.randint(0, len(shape)) for shape in rest] if b.chance(0.3) else [0] * count
    types = [b.random.choice((F32, F32, I64, F64)) for _ in rest]
    scanned = [
        b.pick(t, (*s[:a], length, *s[a:])) for t, s, a in zip(types, rest, axes, strict=True)
    ]
    inner = body(b, 0)
    carried = [bind(inner, "s", v.array) for v in state]
    for value, axis in zip(scanned, axes, strict=True):
        bind(inner, "e", np.take(value.array, 0, axis))
    inner.grow(b.random.randint(1, 3))
    following = [like(inner, v) for v in carried]
    made = {name for node in inner.nodes for name in node.output}
    able = [v for v in inner.values if v.name in made and not isinstance(v.array, list)]
    if not able:
        raise Skip
    outs = [b.random.choice(able) for _ in range(b.random.randint(0 if state else 1, 2))]
    graph = inner.graph(b.name("g"), distinct(inner, [*following, *outs]))
    directions = [b.random.randint(0, 1) for _ in scanned] if b.chance(0.3) else None
    out_directions = [b.random.randint(0, 1) for _ in outs] if outs and b.chance(0.3) else None
    out_axes = [b.random.randint(0, v.array.ndim) for v in outs] if outs and b.chance(0.3) else None
    b.node(
        op,
        [*state, *scanned],
        len(following) + len(outs),
        body=graph,
        num_scan_inputs=count,
        scan_input_axes=axes if any(axes) else None,
        scan_input_directions=directions,
        scan_output_directions=out_directions,
        scan_output_axes=out_axes,
    )
