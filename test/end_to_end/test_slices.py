"""Slices of a dimension of any size by any numbers, as the specification of ONNX has them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import lowerdeck

from .sanitized import model_of

Array = NDArray[Any]

node = onnx.helper.make_node
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
BOUNDS = (LEAST, LEAST + 1, -(1 << 32), *range(-9, 10), 1 << 31, 1 << 62, GREATEST - 1, GREATEST)
STEPS = (LEAST, LEAST + 1, -9, -3, -2, -1, 1, 2, 3, 9, GREATEST)
SIZES = range(9)


def sliced(size: int, start: int, end: int, step: int) -> Array:
    """The result by the specification, which clamps a start before a negative step to [0, size)."""
    first, last = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        first, last = min(max(first, 0), size), min(max(last, 0), size)
    else:
        first, last = min(max(first, 0), size - 1), min(max(last, -1), size - 1)
    return np.array(range(first, last, step), np.float32)


def as_vectors(**numbers: int) -> dict[str, Array]:
    return {name: np.array([number]) for name, number in numbers.items()}


def differs(found: Array, expected: Array) -> bool:
    return found.shape != expected.shape or bool((found != expected).any())


@pytest.mark.parametrize("step", [None, 1, -1, 2, -3, LEAST, GREATEST])
def test_bounds_from_data(step: int | None) -> None:
    """A step from data goes either way."""
    inputs: dict[str, Any] = {"x": (np.float32, ["n"])}
    inputs |= dict.fromkeys(["s", "e"] if step is not None else ["s", "e", "t"], (np.int64, [1]))
    constants = as_vectors(a=0) if step is None else as_vectors(a=0, t=step)
    slice_ = node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    model = lowerdeck.compile(
        model_of([slice_], inputs, ["y"], initializers=constants), target="c99", cache=False
    )
    steps = STEPS if step is None else [step]
    wrong: list[tuple[int, ...]] = []
    for case in itertools.product(SIZES, BOUNDS, BOUNDS, steps):
        numbers = list(as_vectors(s=case[1], e=case[2], t=case[3]).values())
        x = np.arange(case[0], dtype=np.float32)
        (found,) = model(x, *(numbers if step is None else numbers[:2]))
        if differs(found, sliced(*case)):
            wrong.append(case)
    assert wrong == []


def test_constant_bounds() -> None:
    """One model with many slices of its only input."""
    bounds = (LEAST, -9, -3, -1, 0, 1, 3, 9, GREATEST)
    cases = list(itertools.product(bounds, bounds, (LEAST, -3, -1, 1, 2, GREATEST)))[::11]
    constants, nodes = as_vectors(a=0), list[onnx.NodeProto]()
    for k, (start, end, step) in enumerate(cases):
        constants |= as_vectors(**{f"s{k}": start, f"e{k}": end, f"t{k}": step})
        nodes.append(node("Slice", ["x", f"s{k}", f"e{k}", "a", f"t{k}"], [f"y{k}"]))
    outputs = [f"y{k}" for k in range(len(cases))]
    inputs = {"x": (np.float32, ["n"])}
    model = lowerdeck.compile(
        model_of(nodes, inputs, outputs, initializers=constants), target="c99", cache=False
    )
    wrong: list[tuple[int, ...]] = []
    for size in SIZES:
        results = model(np.arange(size, dtype=np.float32))
        for case, found in zip(cases, results, strict=True):
            if differs(found, sliced(size, *case)):
                wrong.append((size, *case))
    assert wrong == []


def test_step_of_zero() -> None:
    inputs = {"x": (np.float32, ["n"]), "t": (np.int64, [1])}
    slice_ = node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    constants = as_vectors(a=0, s=0, e=3)
    model = lowerdeck.compile(
        model_of([slice_], inputs, ["y"], initializers=constants), target="c99", cache=False
    )
    with pytest.raises(lowerdeck.compiler.RunError, match="do not fit together"):
        model(np.zeros(3, np.float32), np.array([0]))


@pytest.mark.parametrize("known", ["s", "e", "a", "t"])
def test_one_list_says_how_long_all_are(known: str) -> None:
    inputs: dict[str, Any] = {"x": (np.float32, [4, 5])}
    inputs |= {name: (np.int64, [2 if name == known else f"n{name}"]) for name in "seat"}
    slice_ = node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    model = lowerdeck.compile(model_of([slice_], inputs, ["y"]), target="c99", cache=False)
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    numbers = {"s": [4, 1], "e": [0, 3], "a": [1, 0], "t": [-2, 1]}
    feed = {name: np.array(values) for name, values in numbers.items()}
    assert not differs(model({"x": x, **feed})["y"], x[1:3, 4:0:-2])
    with pytest.raises(ValueError, match=r"has the shape \[1\], expected \[2\]"):
        model({"x": x, **feed, ("s" if known != "s" else "e"): np.array([0])})
