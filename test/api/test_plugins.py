"""Plugins: how they are found and refused, and the operators that they bring."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from xdsl.ir import SSAValue

import lowerdeck
from lowerdeck import plugins
from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.operators import OPERATORS, Parameters
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, f32, tensor
from lowerdeck.dialects.errors import CompileError
from lowerdeck.lowering.targets import target_names
from lowerdeck.lowering.targets.c99 import C99
from lowerdeck.passes.fold.fold import FoldPass
from lowerdeck.plugins import CFunction, CustomOperator, Plugin, PluginError
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.opt_tool import main as opt_tool

MY_PASS = '''
from dataclasses import dataclass

from xdsl.passes import ModulePass


@dataclass(frozen=True)
class NothingAtAllPass(ModulePass):
    """Does nothing."""

    name = "nothing-at-all"
    times: int = 1

    def apply(self, ctx, op):
        for _ in range(self.times):
            print("nothing")
'''


@pytest.fixture(autouse=True)
def forgotten() -> Generator[None]:
    """Each test begins without plugins."""
    with plugins.temporarily():
        yield


# Operators

ROW_SUMS_C = """
#include <string.h>

static void acme_row_sums(const float *x, const int64_t *x_dims, int64_t x_rank, const float *bias,
                          const int64_t *bias_dims, int64_t bias_rank, float *y,
                          const int64_t *y_dims, int64_t y_rank, uint8_t *workspace,
                          const int64_t *powers, int64_t powers_count, double scale,
                          const char *mode) {
  double *sums = (double *)workspace;
  for (int64_t i = 0; i < x_dims[0]; i++) {
    sums[i] = 0;
    for (int64_t j = 0; j < x_dims[1]; j++)
      for (int64_t k = 0; k < powers_count; k++)
        sums[i] += powers[k] == 2 ? (double)x[i * x_dims[1] + j] * x[i * x_dims[1] + j]
                                  : (double)x[i * x_dims[1] + j];
  }
  for (int64_t i = 0; i < y_dims[0]; i++)
    y[i] = (float)((strcmp(mode, "negative") == 0 ? -sums[i] : sums[i]) * scale) +
           (bias ? bias[0] : 0);
  (void)x_rank, (void)bias_dims, (void)bias_rank, (void)y_rank;
}
"""


def infer_row_sums(types: Sequence[Tensor], parameters: Parameters) -> Sequence[Tensor]:
    if element_type(types[0]) != f32:
        raise ValueError(f"expected f32, got {element_type(types[0])}")
    return [tensor(f32, dims_of(types[0])[:1])]


def row_sums(arrays: Sequence[NDArray[Any]], parameters: Parameters) -> Sequence[NDArray[Any]]:
    x = arrays[0].astype(np.float64)
    total = np.sum([(x**power).sum(axis=1) for power in parameters["powers"]], axis=0)
    sign = -1 if parameters["mode"] == "negative" else 1
    y = (sign * total * parameters["scale"]).astype(np.float32)
    return [y + (arrays[1].reshape(-1)[0] if len(arrays) > 1 else np.float32(0))]


ROW_SUMS = CustomOperator(
    domain="com.acme",
    op_type="RowSums",
    inputs=["X"],
    optional_inputs=["bias"],
    attributes={"powers": [1, 2], "scale": 0.5, "mode": str},
    infer=infer_row_sums,
    compute=row_sums,
    c_function=CFunction(
        name="acme_row_sums",
        source=ROW_SUMS_C,
        parameters=["powers", "scale", "mode"],
        workspace=lambda types, parameters: dims_of(types[0])[0] * 8,
    ),
)


def decompose_twice(
    builder: Any, operands: Sequence[SSAValue], parameters: Parameters
) -> Sequence[SSAValue]:
    """As docs/plugins.md has it."""
    text = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
    (source,) = re.findall(r"```python\n(def decompose.*?)```", text, re.DOTALL)
    scope: dict[str, Any] = {"AddOp": AddOp, "MulOp": MulOp}
    exec(source, scope)
    return scope["decompose"](builder, operands, parameters)


TWICE = CustomOperator(
    domain="com.acme",
    op_type="Twice",
    attributes={"factor": 1.0},
    infer=lambda types, parameters: types,
    compute=lambda arrays, parameters: [(arrays[0] + arrays[0]) * np.float32(parameters["factor"])],
    decompose=decompose_twice,
)


def same(builder: Any, values: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """What is given."""
    return values


def none(builder: Any, values: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """Nothing."""
    return []


def two(types: Sequence[Any], parameters: Parameters) -> Sequence[Any]:
    """All of it twice."""
    return [*types, *types]


def fails(*arguments: Any) -> Any:
    """Raises what nobody expects."""
    raise ZeroDivisionError("division by zero")


def model_of(
    path: Path, *nodes: onnx.NodeProto, element: int = TensorProto.FLOAT, rank: int = 1
) -> str:
    """A model with the input x of n rows of 4, the scalar b, and the output y."""
    dims = ["n", 4][:rank]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", element, ["n", 4]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info("y", element, dims)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.acme", 3)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    return str(path)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(
        op_type,
        inputs.split(","),
        [output],
        name=f"{op_type.lower()}_{output}",
        domain="com.acme",
        **attributes,
    )


X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
B = np.array([3], np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        ("x", {"mode": "plain"}),
        ("x,b", {"mode": "negative", "powers": [2], "scale": 2.0}),
        ("x,", {"mode": "plain", "powers": [1]}),
    ],
)
def test_c_function_with_workspace_and_optional_input(
    tmp_path: Path, inputs: str, attributes: dict[str, Any], threads: int
) -> None:
    plugins.register(Plugin(operators=[ROW_SUMS]))
    model = model_of(tmp_path / "m.onnx", node("RowSums", inputs, "y", **attributes))
    values = {"powers": [1, 2], "scale": 0.5, **attributes}
    expected = row_sums([X, B] if inputs == "x,b" else [X], values)[0]
    compiled = lowerdeck.compile(model, cache=False, threads=threads)
    np.testing.assert_allclose(compiled({"x": X, "b": B})["y"], expected, rtol=1e-6)


def test_a_constant_of_one_element_is_memory_for_a_c_function(tmp_path: Path) -> None:
    plugins.register(Plugin(operators=[ROW_SUMS]))
    seven = helper.make_node(
        "Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.full(1, 7, np.float32))
    )
    model = model_of(tmp_path / "m.onnx", seven, node("RowSums", "x,c", "y", mode="plain"))
    found = lowerdeck.compile(model, cache=False)({"x": X, "b": B})["y"]
    values = {"powers": [1, 2], "scale": 0.5, "mode": "plain"}
    np.testing.assert_allclose(found, row_sums([X, np.full(1, 7)], values)[0], rtol=1e-6)


def test_checked_after_each_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Interpreter of onnx, core and buffers, and the C."""
    plugins.register(Plugin(operators=[ROW_SUMS, TWICE]))
    nodes = [node("Twice", "x", "t", factor=1.5), node("RowSums", "t,b", "y", mode="negative")]
    model = model_of(tmp_path / "m.onnx", *nodes)
    assert opt_tool([model, "--compile-to=c", "--check-each"]) == 0
    source = capsys.readouterr().out
    assert source.count("static void acme_row_sums(") == 1
    assert main(["check", model]) == 0
    found = capsys.readouterr()
    assert "the interpreter and the C agree in " in found.out
    assert "not compared: onnxruntime: " in found.err
    for command in ("ops", "report"):
        assert main([command, model]) == 0
        assert "RowSums" in capsys.readouterr().out


def test_exported_as_a_node_of_its_domain(tmp_path: Path) -> None:
    plugins.register(Plugin(operators=[ROW_SUMS]))
    given = {"mode": "negative", "scale": 0.25}
    model = model_of(tmp_path / "m.onnx", node("RowSums", "x,b", "y", **given))
    lowerdeck.export(model, tmp_path / "out.onnx")
    exported = onnx.load_model_from_string((tmp_path / "out.onnx").read_bytes())
    assert {one.domain: one.version for one in exported.opset_import} == {"": 21, "com.acme": 1}
    (found,) = exported.graph.node
    assert (found.domain, found.op_type, list(found.input)) == ("com.acme", "RowSums", ["x", "b"])
    values = {one.name: helper.get_attribute_value(one) for one in found.attribute}
    assert values == {"mode": b"negative", "scale": 0.25}
    one, other = (
        lowerdeck.compile(path, cache=False)({"x": X, "b": B})["y"]
        for path in (model, tmp_path / "out.onnx")
    )
    np.testing.assert_array_equal(one, other)


def test_a_wrong_decomposition_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = replace(TWICE, decompose=same)
    plugins.register(Plugin(operators=[wrong]))
    model = model_of(tmp_path / "m.onnx", node("Twice", "x", "y"), rank=2)
    assert opt_tool([model, "--compile-to=optimized", "--check-each"]) == 1
    assert "the pass 'decompose-custom' changes the results" in capsys.readouterr().err


def test_without_c_all_nodes_are_refused(tmp_path: Path) -> None:
    plugins.register(Plugin(operators=[replace(ROW_SUMS, c_function=None)]))
    nodes = [node("RowSums", "x", name, mode="plain") for name in ("a", "c")]
    model = model_of(tmp_path / "m.onnx", *nodes, helper.make_node("Add", ["a", "c"], ["y"]))
    with pytest.raises(CompileError) as caught:
        lowerdeck.compile(model, cache=False)
    lines = str(caught.value).splitlines()
    step = "give the CustomOperator com.acme.RowSums a `c_function` or a `decompose`"
    assert len(lines) == 1  # both compute the same, and became one
    assert "'rowsums_a'" in lines[0]
    assert lines[0].endswith(f"the operator com.acme.RowSums has no C; {step}")
    assert main(["ops", model]) == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"infer": fails}, "com.acme.Twice: division by zero (C3)"),
        ({"infer": two}, "com.acme.Twice infers 2 results, not 1 (C3)"),
        (
            {"decompose": fails},
            "the decomposition of com.acme.Twice fails: ZeroDivisionError: division by zero",
        ),
        (
            {"decompose": none},
            "the decomposition of com.acme.Twice gives 0 values for 1 results",
        ),
    ],
)
def test_what_an_operator_does_wrong_is_one_error(
    tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    plugins.register(Plugin(operators=[replace(TWICE, **changes)]))
    model = model_of(tmp_path / "m.onnx", node("Twice", "x", "y"), rank=2)
    with pytest.raises(CompileError) as caught:
        lowerdeck.compile(model, cache=False)
    assert str(caught.value).endswith(text)
    assert "'twice_y'" in str(caught.value)


def test_a_type_that_an_operator_does_not_take(tmp_path: Path) -> None:
    plugins.register(Plugin(operators=[ROW_SUMS]))
    nodes = [node("RowSums", "x", "y", mode="plain")]
    model = model_of(tmp_path / "m.onnx", *nodes, element=TensorProto.DOUBLE)
    with pytest.raises(CompileError, match=r"RowSums: expected f32, got f64 \(C3\)"):
        lowerdeck.compile(model, cache=False)


def test_attributes_are_checked(tmp_path: Path) -> None:
    plugins.register(Plugin(operators=[ROW_SUMS]))
    model = model_of(tmp_path / "m.onnx", node("RowSums", "x", "y", mod="plain"))
    with pytest.raises(lowerdeck.FrontendError) as caught:
        lowerdeck.compile(model, cache=False)
    assert "found attribute 'mod', expected one of: mode, powers, scale" in str(caught.value)
    assert "the required attribute 'mode' is missing" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"domain": ""}, "expected a domain and a name"),
        ({"attributes": {"table": np.zeros(3)}}, "attribute 'table' has no type that ONNX has"),
        ({"decompose": decompose_twice}, "a decomposition and a C function exclude each other"),
        (
            {"c_function": CFunction(name="f", source="void f(void);")},
            "its C defines no static function f",
        ),
        (
            {"attributes": {"powers": [1], "mode": str}},
            "the C takes 'scale', which is no attribute",
        ),
    ],
)
def test_definitions_that_contradict_themselves(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        replace(ROW_SUMS, **changes)


def test_text_of_an_operator_that_nobody_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can be read and printed, but not compiled."""
    model = model_of(tmp_path / "m.onnx", node("RowSums", "x", "y", mode="plain"))
    text = tmp_path / "m.mlir"
    with plugins.temporarily():
        plugins.register(Plugin(operators=[ROW_SUMS]))
        assert opt_tool([model, "--compile-to=legal", "-o", str(text)]) == 0
    assert opt_tool([str(text)]) == 0
    assert 'core.custom "com.acme.RowSums" %x {' in capsys.readouterr().out
    assert opt_tool([str(text), "--compile-to=c"]) == 1
    assert "com.acme.RowSums is not known; load the plugin" in capsys.readouterr().err


# Finding


def my_pass(folder: Path) -> str:
    (folder / "my_pass.py").write_text(MY_PASS)
    return str(folder / "my_pass.py")


def test_extra_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins.register(Plugin(operators=[TWICE]))
    spec = my_pass(tmp_path)
    model = model_of(tmp_path / "m.onnx", node("Twice", "x", "y"), rank=2)
    options = ["--load", spec, "--extra-passes=nothing-at-all{times=2}"]
    assert main(["compile", model, "-o", str(tmp_path / "out"), *options]) == 0
    assert capsys.readouterr().out.count("nothing\n") == 2
    lowerdeck.load_plugin(spec)  # twice is once
    compiled = lowerdeck.compile(model, extra_passes="nothing-at-all", cache=False)
    assert capsys.readouterr().out == "nothing\n"
    np.testing.assert_array_equal(compiled({"x": X, "b": B})["y"], 2 * X)
    assert (
        main(["compile", model, "-o", str(tmp_path / "out"), "--extra-passes=nothing-at-al"]) == 1
    )
    error = "lowerdeck: --extra-passes: no pass 'nothing-at-al'; did you mean nothing-at-all?"
    assert error in capsys.readouterr().err
    assert opt_tool(["--load", spec, "--list-passes"]) == 0
    assert "nothing-at-all{times=1}" in capsys.readouterr().out


FAULTS = """
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.elementwise import AddOp, ExpOp
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass


class Plain(Pattern):
    name, roots = "plain", (AddOp,)

    def match(self, op):
        return Match((op,), "a sum")

    def rewrite(self, match, rewriter):
        pass


class FaultyPass(PatternPass):
    name, limit = "faulty", 1.0

    def patterns(self, module):
        class Faulty(Plain):
            {method}

        return [Faulty()]
"""


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("match = lambda self, op: op.nothing", "AttributeError: 'AddOp' object has no"),
        ("match = lambda self, op: True", "TypeError: 'match' returned True, expected"),
        (
            "match = lambda self, op: setattr(op, 'operands', [op.rhs, op.lhs])",
            "ValueError: 'match' has changed the IR",
        ),
        ("rewrite = lambda self, match, rewriter: rewriter.nothing", "'Rewriter' object has no"),
        ("rewrite = lambda self, match, rewriter: rewriter.erase(match.root)", "still has uses"),
        ("raise KeyError('k')", "pass 'faulty': KeyError: 'k'"),
    ],
)
def test_a_fault_of_a_plugin_names_its_line(
    method: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text = tmp_path / "faulty.py", tmp_path / "in.mlir"
    file.write_text(FAULTS.format(method=method))
    text.write_text(SUM)
    assert opt_tool([str(text), "--load", str(file), "--pass-pipeline=faulty"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{text}:")
    assert said in error
    line = 1 + FAULTS[: FAULTS.index("{method}")].count("\n")
    assert f"; {file}:{line}, in FaultyPass.patterns.<locals>.Faulty" in error
    assert "fault of lowerdeck" not in error


SUM = """
func.func @main(%x : tensor<4xf32>, %z : tensor<4xf32>) -> tensor<4xf32> {
  %y = core.add %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = core.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""

LATE = """
from dataclasses import dataclass

from xdsl.passes import ModulePass


@dataclass(frozen=True)
class LatePass(ModulePass):
    name = "late"
    at: float = 0.5
    widths: tuple[float, ...] = ()

    def apply(self, ctx, op):
        assert type(self.at) is float and all(type(width) is float for width in self.widths)
        add, exp, _ = op.body.block.first_op.body.block.ops
        if self.at == 2.0:
            add.operands = [exp.results[0], add.operands[1]]
"""


def test_a_plugin_that_uses_values_before_they_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An integer for an option that is a float is one."""
    file, text, out = tmp_path / "late.py", tmp_path / "in.mlir", str(tmp_path / "out")
    file.write_text(LATE)
    text.write_text(SUM)
    command = ["compile", str(text), "-o", out, "--library=none", "--load", str(file)]
    assert main([*command, "--extra-passes=late{at=1 widths=1,2.5}"]) == 0
    capsys.readouterr()
    assert main([*command, "--extra-passes=late{at=2}"]) == 1
    assert capsys.readouterr().err == (
        f"{text}: pass 'late' of plugin '{file}' leaves IR that is not well-formed:\n"
        f"{text}:3:3: op 'core.add': operand 0 is used before it is defined: "
        "%a, a result of 'core.exp'\n"
    )
    # As text, and after each pass of a pipeline.
    command = [str(text), "--load", str(file), "--pass-pipeline=late{at=2}"]
    assert opt_tool(command) == 1
    assert "operand 0 is used before it is defined: %a" in capsys.readouterr().err
    assert opt_tool([*command, "--disable-verify"]) == 0
    text.write_text(capsys.readouterr().out)
    assert main(["compile", str(text), "-o", out]) == 1
    assert "operand 0 is used before it is defined: %a" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.onnx", "m.prototxt"])
def test_extra_passes_of_an_export(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They run on core, also where an ONNX model would not get there."""
    spec, out = my_pass(tmp_path), str(tmp_path / name)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    model = tmp_path / "in.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), model)  # pyright: ignore[reportUnknownMemberType]
    command = ["export", str(model), "-o", out, "--load", spec]
    assert main([*command, "--extra-passes=nothing-at-all"]) == 0
    assert capsys.readouterr().out.startswith("nothing\n")


def test_plugins_are_in_the_key_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another meaning of its operator, a model is another one."""
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    model = model_of(tmp_path / "m.onnx", node("Twice", "x", "y"), rank=2)
    for sign, expected in (("+", 2 * X), ("-", 0 * X)):
        source = f"""
from lowerdeck.dialects.core.elementwise import {"AddOp" if sign == "+" else "SubOp"} as Op
from lowerdeck.plugins import CustomOperator, Plugin

PLUGIN = Plugin(operators=[CustomOperator(
    domain="com.acme",
    op_type="Twice",
    infer=lambda types, parameters: types,
    compute=lambda arrays, parameters: [arrays[0] {sign} arrays[0]],
    decompose=lambda builder, operands, p: [builder.add(Op(operands[0], operands[0]))],
)])
"""
        (tmp_path / "twice.py").write_text(source)
        os.utime(tmp_path / "twice.py", ns=(10**18, 10**18 + ord(sign)))  # of one second
        with plugins.temporarily():
            lowerdeck.load_plugin(tmp_path / "twice.py")
            for _ in range(2):
                found = lowerdeck.compile(model)({"x": X, "b": B})["y"]
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("import lowerdeck.no.such_module", "No module named 'lowerdeck.no'"),
        (
            "import lowerdeck.passes.driver",
            "No module named 'lowerdeck.passes.driver'; "
            "there is 'lowerdeck.passes.machinery.driver'",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = 1", "defines neither PLUGIN nor a pass"),
        ("def f(", "SyntaxError: '(' was never closed (broken.py, line 1)"),
    ],
)
def test_a_broken_plugin_is_one_error(
    tmp_path: Path, text: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "broken.py", model_of(tmp_path / "m.onnx", node("A", "x", "y"))
    path.write_text(text)
    for tool, command in (
        (opt_tool, [model]),
        (main, ["ops", model]),
        (main, ["compile", model, "-o", str(tmp_path / "out")]),
    ):
        assert tool([*command, "--load", str(path)]) == 1
        assert f"plugin '{path}': {error}\n" in capsys.readouterr().err
    with pytest.raises(PluginError):
        lowerdeck.load_plugin(path)


def test_names_that_are_taken() -> None:
    both = Plugin(
        passes=[FoldPass], targets=[C99, C99], operators=[replace(ROW_SUMS, op_type="Gelu")]
    )
    plugins.register(Plugin(operators=[ROW_SUMS]), "plugin 'first'")
    with pytest.raises(PluginError) as caught:
        plugins.register(
            replace(both, operators=[*both.operators, replace(ROW_SUMS)]), "plugin 'second'"
        )
    assert str(caught.value).splitlines() == [
        "plugin 'second': the pass 'fold' is one of lowerdeck already",
        "plugin 'second': the target 'c99' is one of lowerdeck already",
        "plugin 'second': there are two of the target 'c99'",
        "plugin 'second': the operator 'com.acme.RowSums' is one of plugin 'first' already",
    ]
    # Nothing of it was taken.
    assert "com.acme.Gelu" not in OPERATORS
    assert target_names().count("c99") == 1
    with pytest.raises(PluginError, match=r"'com.microsoft.FusedMatMul' is one of lowerdeck"):
        plugins.register(
            Plugin(operators=[replace(TWICE, domain="com.microsoft", op_type="FusedMatMul")])
        )


def test_functions_in_c_are_those_of_one_operator() -> None:
    """Whether the other operator is there already, or comes with the same plugin."""
    assert ROW_SUMS.c_function is not None
    changed = replace(ROW_SUMS.c_function, source=ROW_SUMS_C + "/* Another one. */\n")
    other = replace(ROW_SUMS, op_type="Others", c_function=changed)
    text = "the C function 'acme_row_sums' is one of the operator 'com.acme.RowSums' already"
    with pytest.raises(PluginError, match=text):
        plugins.register(Plugin(operators=[ROW_SUMS, other]))
    assert "com.acme.RowSums" not in OPERATORS
    plugins.register(Plugin(operators=[ROW_SUMS]))
    with pytest.raises(PluginError, match=text):
        plugins.register(Plugin(operators=[other]))
    plugins.register(Plugin(operators=[replace(other, c_function=ROW_SUMS.c_function)]))


def install(folder: Path, value: str) -> None:
    """A package with one plugin."""
    package = folder / "acme-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nacme = {value}\n")


def test_installed_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are loaded with the first model, not for help, and a broken one is one error."""
    cast(Any, monkeypatch).syspath_prepend(str(tmp_path))
    monkeypatch.delenv(plugins.NO_PLUGINS, raising=False)
    (tmp_path / "acme_of_test.py").write_text("print('loaded')\nfrom test_only import nothing\n")
    plugins.register(Plugin(operators=[TWICE]))
    model = model_of(tmp_path / "m.onnx", node("Twice", "x", "y"), rank=2)
    install(tmp_path, "acme_of_test:PLUGIN")
    for command in (["--help"], ["compile", "--help"]):
        assert main(command) == 0
    assert "loaded" not in capsys.readouterr().out
    assert main(["ops", model]) == 1
    found = capsys.readouterr()
    assert (
        "plugin 'acme' (acme_of_test:PLUGIN, of acme 1.0): No module named 'test_only'" in found.err
    )
    monkeypatch.setenv(plugins.NO_PLUGINS, "1")
    assert main(["ops", model]) == 0
    monkeypatch.delenv(plugins.NO_PLUGINS)
    (tmp_path / "acme_of_test.py").write_text(
        "from dataclasses import replace\n"
        "from lowerdeck.lowering.targets.c99 import C99\n"
        "from lowerdeck.plugins import Plugin\n"
        "PLUGIN = Plugin(targets=[replace(C99, name='acme')])\n"
    )
    sys.modules.pop("acme_of_test", None)
    assert main(["compile", model, "-o", str(tmp_path / "out"), "--target", "acme"]) == 0
    assert "for target acme" in (tmp_path / "out" / "m.c").read_text()
    capsys.readouterr()
    assert opt_tool(["--list-targets"]) == 0
    assert "acme" in capsys.readouterr().out
