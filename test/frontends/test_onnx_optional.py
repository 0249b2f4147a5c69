"""ONNX initializers that are inputs, too: which of them a caller may give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from onnx.parser import parse_model
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.blob import bytes_of_constants
from lowerdeck.dialects.core.defaults import default_arrays
from lowerdeck.dialects.core.names import unused_inputs, value_names
from lowerdeck.dialects.interpret import find_function, run_module
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.dialects.verification import problems_of
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.weights import WeightsFile, has_anonymous_weights

X = np.array([1, 2, 3], np.float32)


def parsed(graph: str, version: int = 8) -> ModelProto:
    """The model of a graph in ONNX's text form."""
    return parse_model(f'<ir_version: {version}, opset_import: ["" : 18]>\n{graph}')


def main_of(module: ModuleOp) -> FuncOp:
    return find_function(module, "main")


def inputs_of(
    graph: str, version: int = 8, optional: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """The names of all inputs, and of those that may be left out."""
    main = main_of(import_model(parsed(graph, version), optional=optional))
    return value_names(main.arg_attrs, len(main.body.block.args)), [*default_arrays(main)]


SCALED = """
scaled (float[3] k, float[n] x, float[3] c) => (float[3] y) <float[3] k = {1, 2, 4}>
{ z = Mul(x, k) y = Add(z, c) }
"""


def test_inputs_keep_the_order_of_the_graph() -> None:
    assert inputs_of(SCALED) == (["k", "x", "c"], ["k"])


@pytest.mark.parametrize(("version", "optional"), [(3, None), (8, []), (4, None), (3, ["k"])])
def test_the_version_decides_unless_the_user_does(version: int, optional: list[str] | None) -> None:
    found = ["k"] if optional or (version > 3 and optional is None) else []
    assert inputs_of(SCALED, version, optional)[1] == found


@pytest.mark.parametrize(
    "nodes",
    [
        "y = MatMul(x, w)",
        "v = Transpose(w) y = Gemm(x, v)",
        "two = Constant<value_float = 2.0>() v = Mul(w, two) y = MatMul(v, x)",
        "y = BatchNormalization(x, k, k, k, k) z = Identity(w)",
        "z = Identity(w) a = Cast<to = 7>(k) y = ReduceSum<keepdims = 0>(x, a)",
        """two = Cast<to = 7>(k) s = SequenceConstruct(x, w)
        i = ReduceMax<keepdims = 0>(two) y = SequenceAt(s, i)""",
        """c = Constant<value_int = 1>() b = Cast<to = 9>(c)
        y = If(b) <
          then_branch = one () => (t) { t = MatMul(x, w) },
          else_branch = other () => (f) { f = Identity(x) }
        >""",
    ],
)
def test_weights_by_role_keep_all_that_are_listed_constants(nodes: str) -> None:
    graph = f"""
    g (float[2, 2] x, float[2, 2] w, float[2] k) => (float[2, 2] y)
    <float[2, 2] w = {{1, 2, 3, 4}}, float[2] k = {{0, 1}}> {{ {nodes} }}
    """
    assert inputs_of(graph) == (["x"], [])
    assert inputs_of(graph, optional=["k"]) == (["x", "k"], ["k"])


def test_weights_that_are_not_listed_say_nothing_of_the_others() -> None:
    graph = """
    g (float[2, 2] x, float k) => (float[2, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float k = {2}> { z = MatMul(x, w) y = Mul(z, k) }
    """
    assert inputs_of(graph) == (["x", "k"], ["k"])


def test_an_operand_that_is_computed_from_inputs_is_no_weight() -> None:
    graph = """
    g (float[2, 2] x, float[2, 2] k) => (float[2, 2] y) <float[2, 2] k = {1, 2, 3, 4}>
    { z = Add(x, k) y = MatMul(x, z) }
    """
    assert inputs_of(graph) == (["x", "k"], ["k"])


def test_what_the_outputs_do_not_need_is_no_input_but_may_be_given() -> None:
    graph = """
    g (float[3] x, float[3] k) => (float[3] y, float[3] z) <float[3] k = {1, 2, 4}>
    { y = Neg(x) z = Mul(x, k) }
    """
    main = main_of(import_model(parsed(graph), outputs=["y"]))
    assert unused_inputs(main) == ["k"]
    assert not default_arrays(main)


def test_a_value_or_other_sizes_take_the_default_away() -> None:
    graph = """
    g (float[3] x, float[m] k) => (float[n] y) <float[3] k = {1, 2, 4}>
    { y = Concat<axis = 0>(x, k) }
    """
    fixed = main_of(import_model(parsed(graph), fixed={"k": [1, 2]}))
    assert len(fixed.body.block.args) == 1
    for shape, names in (((3,), ["k"]), ((5,), [])):
        main = main_of(import_model(parsed(graph), input_shapes={"k": shape}))
        assert len(main.body.block.args) == 2
        assert list(default_arrays(main)) == names


def test_sizes_that_the_model_or_the_user_fixes_take_it_away(tmp_path: Path) -> None:
    graph = """
    g (float[n, 2] x, float[m, n] k, float[2, 3] w) => (float[m, 3] y)
    <float[2, 3] k = {1, 2, 3, 4, 5, 6}> { z = MatMul(x, w) y = MatMul(k, z) }
    """
    path = tmp_path / "g.onnx"
    path.write_bytes(parsed(graph).SerializeToString())
    for dims, names in (({}, ["k"]), ({"n": 3}, ["k"]), ({"n": 4}, []), ({"m": 1}, [])):
        options = CompileOptions(target="c99", dims=dims, import_options={"optional": ["k"]})
        module, _ = import_and_lower(str(path), "optimized", options)
        assert list(default_arrays(main_of(module))) == names
        assert not problems_of(module)


def test_an_input_of_unknown_rank_has_that_of_its_default() -> None:
    proto = parsed(SCALED)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    module = import_model(proto)
    assert str(main_of(module).body.block.args[0].type) == "tensor<3xf32>"


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(FrontendError) as caught:
        import_model(parsed(SCALED.replace("float[3] k,", "float[4] k,")))
    assert "input 'k' of type tensor<4xf32> has an initializer of tensor<3xf32>" in str(
        caught.value
    )
    with pytest.raises(FrontendError) as caught:
        import_model(parsed(SCALED), optional=["k", "x"])
    assert "'x' is called optional, but the inputs with an initializer are 'k'" in str(caught.value)


def test_values_at_every_level(tmp_path: Path) -> None:
    """Left out, given, of another size, and empty; names that are no inputs are refused."""
    graph = """
    g (float[b, 2] x, float[k, 2] table, float scale, bool[] flip) => (float[n, 2] y)
    <float[1, 2] table = {5, 6}, float scale = {2}, bool flip = {1}>
    {
      all = Concat<axis = 0>(x, table) scaled = Mul(all, scale) negative = Neg(scaled)
      y = Where(flip, negative, scaled)
    }
    """
    path = tmp_path / "g.onnx"
    path.write_bytes(parsed(graph).SerializeToString())
    x = np.array([[1, -2]], np.float32)
    table = np.array([[5, 6]], np.float32)
    given = {"table": np.empty((0, 2), np.float32), "scale": np.array(3, np.float32)}
    for phase in ("imported", "optimized", "kernels", "scheduled"):
        module, _ = import_and_lower(str(path), phase, CompileOptions(target="c99"))
        (left_out,) = run_module(module, {"x": x}).values()
        np.testing.assert_array_equal(left_out, -2 * np.concatenate([x, table]))
        (found,) = run_module(module, {"x": x, **given, "flip": np.array(False)}).values()
        np.testing.assert_array_equal(found, 3 * x)
        with pytest.raises(InterpretError, match="no value for the inputs"):
            run_module(module, given)


def test_a_state_begins_with_the_default(tmp_path: Path) -> None:
    graph = """
    g (float[3] x, float[3] before) => (float[3] after) <float[3] before = {1, 2, 4}>
    { after = Add(x, before) }
    """
    path = tmp_path / "g.onnx"
    path.write_bytes(parsed(graph).SerializeToString())
    options = CompileOptions(target="c99", states={"before": "after"})
    module, _ = import_and_lower(str(path), "optimized", options)
    assert not default_arrays(main_of(module))
    calls = Calls(module)
    np.testing.assert_array_equal(calls({"x": X})["after"], [2, 4, 7])
    np.testing.assert_array_equal(calls({"x": X})["after"], [3, 6, 10])


def test_a_large_default_is_written_with_the_text(tmp_path: Path) -> None:
    k = np.arange(600, dtype=np.float32)
    proto = parsed("g (float[600] x, float[600] k) => (float[600] y) { y = Add(x, k) }")
    proto.graph.initializer.append(numpy_helper.from_array(k, "k"))
    module = import_model(proto)
    assert has_anonymous_weights(module)
    with (tmp_path / "weights").open("wb") as file:
        WeightsFile(str(tmp_path / "weights"), file).store(module)
    assert not has_anonymous_weights(module)
    assert bytes_of_constants(module) == k.nbytes
    context = LowerdeckContext()
    register_dialects(context)
    read = Parser(context, str(module)).parse_module()
    np.testing.assert_array_equal(run_module(read, {"x": k})["y"], 2 * k)
