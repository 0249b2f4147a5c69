"""Loops and branches whose values change their size: ONNX Runtime, core, and what is exported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporters.onnx import to_model
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract

Array = NDArray[Any]
Inputs = Mapping[str, Array]

GROW = """
g (int64 n, float[2, 3] x, float[k, 3] y) => (float[a, 3] r, float[b, 3] t, int64[2] size) {
  r = Loop (n, , x) <body = step (int64 i, bool c, float[p, 3] v) => (bool d, float[q, 3] w) {
    d = Identity (c)
    w = Concat <axis = 0> (v, y)
  }>
  t = Concat <axis = 0> (r, y)
  size = Shape (r)
}
"""

SHRINK = """
g (float[m] x, float limit) => (float[a] r, int64[c] lengths) {
  go = Constant <value = bool {1}> ()
  r, lengths = Loop (, go, x) <body = step (int64 i, bool c, float[p] v)
      => (bool d, float[q] w, int64 length) {
    zero = Constant <value = int64[1] {0}> ()
    two = Constant <value = int64[1] {2}> ()
    size = Shape (v)
    half = Div (size, two)
    w = Slice (v, zero, half)
    sum = ReduceSum <keepdims = 0> (w)
    d = Greater (sum, limit)
    length = Squeeze (half)
  }>
}
"""

SWAP = """
g (int64 n, float[2] x, float[1] y) => (float[a] r, float[b] t) {
  r, t = Loop (n, , x, y) <body = step (int64 i, bool c, float[p] v, float[q] w)
      => (bool d, float[s] e, float[u] f) {
    d = Identity (c)
    e = Identity (w)
    f = Concat <axis = 0> (v, y)
  }>
}
"""

NESTED = """
g (int64 n, float[1] x, bool flag) => (float[a] r) {
  r = Loop (n, , x) <body = outer (int64 i, bool c, float[p] v) => (bool d, float[q] w) {
    d = Identity (c)
    inner = Loop (i, , v) <body = deep (int64 j, bool e, float[s] a) => (bool f, float[t] b) {
      f = Identity (e)
      b = Concat <axis = 0> (a, x)
    }>
    w = If (flag) <
      then_branch = yes () => (float[k] o) { o = Concat <axis = 0> (inner, x) },
      else_branch = no () => (float[l] o) { o = Identity (inner) }
    >
  }>
}
"""

BRANCH = """
g (bool c, float[n, 2] x) => (float[a, 2] r, float[b] sums) {
  r = If (c) <
    then_branch = yes () => (float[k, 2] y) { y = Concat <axis = 0> (x, x) },
    else_branch = no () => (float[l, 2] y) {
      found = NonZero (x)
      zero = Constant <value = int64 {0}> ()
      rows = Gather <axis = 0> (found, zero)
      y = Gather <axis = 0> (x, rows)
    }
  >
  axes = Constant <value = int64[1] {1}> ()
  sums = ReduceSum <keepdims = 0> (r, axes)
}
"""

STOPS = """
g (float[1] x) => (float[a] r) {
  n = Constant <value = int64 {50}> ()
  go = Constant <value = bool {1}> ()
  r = Loop (n, go, x) <body = step (int64 i, bool c, float[p] v) => (bool d, float[q] w) {
    w = Concat <axis = 0> (v, x)
    five = Constant <value = int64[1] {5}> ()
    size = Shape (w)
    d = Less (size, five)
  }>
}
"""


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def session_results(model: onnx.ModelProto, inputs: Inputs) -> list[Array]:
    options = cast(Any, onnxruntime).SessionOptions()
    options.log_severity_level = 4
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    return session.run(None, dict(inputs))


def legalized(text: str) -> tuple[onnx.ModelProto, ModuleOp]:
    header = '<ir_version: 10, opset_import: ["" : 21]>'
    model = cast(Any, parser).parse_model(header + text)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    check_contract(module, "legal")
    return model, module


def check(text: str, inputs: Inputs) -> ModuleOp:
    """The module; before and after folding, and exported, it gives what ONNX Runtime does."""
    model, module = legalized(text)
    expected = session_results(model, inputs)
    results: list[list[Any]] = [list(run_module(module, inputs).values())]
    results.append(session_results(to_model(module), inputs))
    for name in ("infer-shapes", "fold", "cse", "dce"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    module.verify()
    check_contract(module, "legal")
    results.append(list(run_module(module, inputs).values()))
    for found in results:
        for value, wanted in zip(found, expected, strict=True):
            assert value.shape == wanted.shape
            np.testing.assert_allclose(value, wanted, rtol=1e-6)
    return module


def loops(module: ModuleOp) -> list[LoopOp]:
    return [op for op in module.walk() if isinstance(op, LoopOp)]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_loops(n: int) -> None:
    count = np.array(n, np.int64)
    module = check(GROW, {"n": count, "x": floats(2, 3), "y": floats(2, 3)})
    (loop,) = loops(module)
    assert [len(op.made_dims[0]) for op in (loop,)] == [1]
    check(SWAP, {"n": count, "x": floats(2), "y": floats(1)})
    for flag in (True, False):
        check(NESTED, {"n": count, "x": floats(1), "flag": np.array(flag)})


@pytest.mark.parametrize("limit", [1e9, 3.0, 0.0])
def test_number_of_iterations_from_data(limit: float) -> None:
    check(SHRINK, {"x": np.abs(floats(37)), "limit": np.array(limit, np.float32)})


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool) -> None:
    values = np.array([[0, 1], [0, 0], [2, 3]], np.float32)
    module = check(BRANCH, {"c": np.array(flag), "x": values})
    assert [op.made_symbols for op in module.walk() if isinstance(op, IfOp)] != [[]]


def test_short_loop_stops_where_its_sizes_say() -> None:
    """It is unrolled, so that what follows has a static shape."""
    module = check(STOPS, {"x": floats(1)})
    assert not loops(module)
