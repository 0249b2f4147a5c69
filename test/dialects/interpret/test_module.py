"""Functions, symbols, control flow and mixed dialects in the interpreter."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from lowerdeck.dialects.interpret import (
    Interpreter,
    InterpretError,
    StepLimitError,
    Value,
    find_function,
    run_module,
)
from lowerdeck.frontends.text import default_context


def parse(text: str) -> ModuleOp:
    module = Parser(default_context(), text).parse_module()
    module.verify()
    return module


SHARED = """
func.func @main(
  %x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "x"},
  %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "y"}
) -> (tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "z"}) {
  %z = core.add %x, %y : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>,
    tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  func.return %z : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}
"""


def floats(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, np.float32)


def test_shapes_of_numbers() -> None:
    module = parse(
        'func.func @main(%x: tensor<2x3xf32> {core.name = "x"}) -> tensor<2x3xf32> {\n'
        "  %y = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        "  func.return %y : tensor<2x3xf32>\n}\n"
    )
    (found,) = run_module(module, {"x": floats(2, 3)}).values()
    np.testing.assert_array_equal(np.asarray(found), -floats(2, 3))
    for shape in ((3, 2), (2, 4), (1, 3)):
        with pytest.raises(InterpretError, match=rf"shape \[{shape[0]}, {shape[1]}\], expected"):
            run_module(module, {"x": floats(*shape)})


def test_names_and_symbols() -> None:
    found = run_module(parse(SHARED), {"y": floats(3, 2), "x": floats(3, 2)})
    assert list(found) == ["z"]
    np.testing.assert_array_equal(np.asarray(found["z"]), 2 * floats(3, 2))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"x": floats(3, 2)}, r"no value for the inputs \['y'\]"),
        ({"x": floats(3, 2), "y": floats(3, 2), "w": floats(1)}, r"\['w'\] are not inputs"),
        (
            {"x": floats(3, 2), "y": floats(4, 2)},
            r"'y' has the shape \[4, 2\].*\[n, 2\] = \[3, 2\]",
        ),
        ({"x": floats(3, 5), "y": floats(3, 2)}, r"'x' has the shape \[3, 5\]"),
        ({"x": floats(3), "y": floats(3, 2)}, "'x' has the shape .* expected 2 dimensions"),
        ({"x": np.ones((3, 2)), "y": floats(3, 2)}, "'x' has the dtype float64"),
    ],
)
def test_wrong_inputs(inputs: dict[str, Any], text: str) -> None:
    with pytest.raises(InterpretError, match=text):
        run_module(parse(SHARED), inputs)


def test_unknown_function() -> None:
    with pytest.raises(InterpretError, match="@other"):
        run_module(parse(SHARED), {}, "other")


LOOP = """
func.func @main(%n : tensor<i64>, %x : tensor<2xf32>) -> (
    tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>>) {
  %r, %s = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32>
      -> tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %w = core.add %v, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %w, %v : tensor<2xf32>, tensor<2xf32>
  } {count = "t"}
  func.return %r, %s : tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>>
}
"""


def test_loops() -> None:
    module, x = parse(LOOP), np.array([1, 2], np.float32)
    for trips in (0, 1, 5):
        found = run_module(module, {"0": np.array(trips), "1": x})
        np.testing.assert_array_equal(np.asarray(found["0"]), x * (trips + 1))
        expected = x * np.arange(1, trips + 1, dtype=np.float32)[:, None]
        np.testing.assert_array_equal(np.asarray(found["1"]), expected)


def test_step_limit() -> None:
    inputs = {"0": np.array(10**12), "1": floats(2)}
    with pytest.raises(StepLimitError):
        run_module(parse(LOOP), inputs, max_steps=1000)


BRANCH = """
func.func @main(%c : tensor<i1>, %x : tensor<2xi64>) -> tensor<2xi64> {
  %y = core.if %c : tensor<i1> -> tensor<2xi64> {
    core.yield %x : tensor<2xi64>
  } else {
    %i = core.constant dense<7> : tensor<1xi64>
    %g = core.gather %x, %i axis 0 :
      (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
    %b = core.broadcast %g [2] : (tensor<1xi64>) -> tensor<2xi64>
    core.yield %b : tensor<2xi64>
  }
  func.return %y : tensor<2xi64>
}
"""


def test_only_the_chosen_branch_runs() -> None:
    module, x = parse(BRANCH), np.array([3, 4])
    found = run_module(module, {"0": np.array(True), "1": x})
    np.testing.assert_array_equal(np.asarray(found["0"]), x)
    with pytest.raises(InterpretError, match=r"core\.gather.*index 7"):
        run_module(module, {"0": np.array(False), "1": x})


MIXED = """
func.func @main(%x : tensor<3xf32>) -> tensor<3xf32> {
  %a = onnx.Relu_14 %x : (tensor<3xf32>) -> tensor<3xf32>
  %b = core.neg %a : (tensor<3xf32>) -> tensor<3xf32>
  %k = core.kernel @k (%b) : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%v : tensor<3xf32>):
    %e = core.add %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %e : tensor<3xf32>
  }
  func.return %k : tensor<3xf32>
}
"""


def test_mixed_dialects_and_kernels() -> None:
    x = np.array([-1, 2, 3], np.float32)
    found = run_module(parse(MIXED), {"0": x})
    np.testing.assert_array_equal(np.asarray(found["0"]), [0, -4, -6])


DATA = """
func.func @main(%x : tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, k]>> {
  %c = core.count_nonzero %x : (tensor<4xf32>) -> tensor<i64>
  core.bind_symbols %c ["k"] : tensor<i64>
  %i = core.nonzero %x [k] :
    (tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, k]>>
  func.return %i : tensor<1x?xi64, #core.tensor<dims = [1, k]>>
}
"""


def test_symbols_bound_to_data() -> None:
    found = run_module(parse(DATA), {"0": np.array([0, 1, 0, 2], np.float32)})
    np.testing.assert_array_equal(np.asarray(found["0"]), [[1, 3]])


CHAIN = """
func.func @main(%x : tensor<64xf32>) -> tensor<64xf32> {
  %a = core.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %b = core.neg %a : (tensor<64xf32>) -> tensor<64xf32>
  %c = core.neg %b : (tensor<64xf32>) -> tensor<64xf32>
  func.return %c : tensor<64xf32>
}
"""


def test_values_are_freed_after_their_last_use() -> None:
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []

    def observe(op: Operation, results: Any) -> None:
        counts.append(sum(ref() is not None for ref in alive))
        alive.extend(weakref.ref(value) for value in results)

    inputs: list[Value] = [floats(64)]
    gc.disable()
    try:
        Interpreter(observe=observe).call(find_function(parse(CHAIN), "main"), inputs)
    finally:
        gc.enable()
    # When an op has run, its operand is there, and what it was made of no more.
    assert counts == [0, 1, 1]


def test_a_result_of_another_shape_than_declared_is_an_error() -> None:
    declared = "core.tensor<dims = [n + 1, 2]>>"
    text = SHARED.replace("core.tensor<dims = [n, 2]>>\n  func", f"{declared}\n  func")
    text = text.replace(
        "func.return %z : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>",
        f"func.return %z : tensor<?x2xf32, #{declared}",
    )
    module = Parser(default_context(), text).parse_module()
    with pytest.raises(InterpretError, match=r"core\.add.*\[n \+ 1, 2\]"):
        run_module(module, {"x": floats(3, 2), "y": floats(3, 2)})
