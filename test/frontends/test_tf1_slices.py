"""Slices as TensorFlow has them."""

from __future__ import annotations

import itertools

import numpy as np

import lowerdeck

from . import tf1_graphs as g  # noqa: TID251  (the graphs beside this test)


def test_slices_of_tensorflow_are_those_of_numpy() -> None:
    """A start before the first element gives nothing to a slice that goes backward."""
    cases = list(itertools.product((-20, -1, 0, 9), (-20, -3, 0, 9), (-2, -1, 1)))
    nodes = [g.placeholder("x", (-1,))]
    types = {"T": g.FLOAT, "Index": g.INT}
    for k, case in enumerate(cases):
        names = [f"{name}{k}" for name in ("begin", "end", "strides")]
        nodes += [g.const(n, [v], dtype=np.int32) for n, v in zip(names, case, strict=True)]
        nodes.append(g.node(f"y{k}", "StridedSlice", "x", *names, **types))
    model = lowerdeck.compile(g.graph(*nodes), target="c99", cache=False)
    wrong: list[tuple[int, ...]] = []
    for size in range(5):
        value = np.arange(size, dtype=np.float32)
        results = model({model.inputs[0].name: value})
        for k, case in enumerate(cases):
            if results[f"y{k}:0"].tolist() != value[slice(*case)].tolist():
                wrong.append((size, *case))
    assert wrong == []
