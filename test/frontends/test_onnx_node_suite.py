"""
Every case of the official node suite is imported, printed, read back and translated back; by the
interpreter nothing of it is wrong, and little is refused. The slow tier has all of it through C,
with what functions expand to.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto
from onnx import numpy_helper as arrays
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from lowerdeck.dialects.errors import InternalError
from lowerdeck.dialects.interpret.onnx import Value, evaluate_region
from lowerdeck.dialects.onnx.convert import opset_of
from lowerdeck.dialects.onnx.functions import expand_function, function_body
from lowerdeck.dialects.onnx.nodes import op_to_node
from lowerdeck.dialects.onnx.ops import OnnxOp, op_class
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.frontends.text import default_context
from models.onnx_suite import load_cases, main, run_case

TOPICS = "conv|pool|lstm|gru|rnn|softmax|norm|reduce|einsum|gemm|matmul|quantize|cast|clip|elu"


def main_of(module: ModuleOp) -> FuncOp:
    main = module.body.block.first_op
    assert isinstance(main, FuncOp)
    return main


@pytest.mark.parametrize(
    "expanded", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["nodes", "expanded"]
)
def test_cases_are_imported_and_translated_back(expanded: bool) -> None:
    """The bodies of functions, of which there are as many as of other cases, are slow."""
    context = default_context()
    chosen = [case for case in load_cases() if ("expanded" in case.name) == expanded]
    assert len(chosen) > 500
    for position, case in enumerate(chosen):
        module = import_model(case.model)
        module.verify()
        assert_translates_back(case.model, main_of(module), case.name)
        if position % 4 == 0 and "elided" not in (text := str(module)):
            again = Parser(context, text).parse_module()
            again.verify()
            assert str(again) == text, case.name


def assert_translates_back(model: onnx.ModelProto, main: FuncOp, name: str) -> None:
    nodes = list(model.graph.node)
    ops = [op for op in main.body.block.ops if isinstance(op, OnnxOp)]
    if len(ops) != len(nodes):  # a model with functions
        return
    for op, node in zip(ops, nodes, strict=True):
        back = op_to_node(op, list(node.input), list(node.output))
        assert normalized(back) == normalized(node), name


def normalized(node: NodeProto) -> NodeProto:
    """The node without what the translation may change: order, names of nodes, forms of data."""
    result = NodeProto(
        op_type=node.op_type,
        domain=node.domain if node.domain != "ai.onnx" else "",
        input=node.input,
        output=node.output,
    )
    for attribute in sorted(node.attribute, key=lambda attribute: attribute.name):
        copy = result.attribute.add()
        copy.CopyFrom(attribute)
        copy.ClearField("doc_string")
        match attribute.type:
            case AttributeProto.TENSOR:
                copy.t.CopyFrom(plain(copy.t))
            case AttributeProto.SPARSE_TENSOR:
                copy.sparse_tensor.values.CopyFrom(plain(copy.sparse_tensor.values))
                copy.sparse_tensor.indices.CopyFrom(plain(copy.sparse_tensor.indices))
            case AttributeProto.GRAPH:
                nodes = [normalized(inner) for inner in copy.g.node]
                operators = [f"{inner.domain}.{inner.op_type}" for inner in nodes]
                copy.g.Clear()
                copy.g.name = " ".join(op for op in operators if op != ".Identity")
            case _:
                pass
    return result


def plain(tensor: TensorProto) -> TensorProto:
    return arrays.from_array(arrays.to_array(tensor))


def values_of(data: Any) -> Value:
    if isinstance(data, TensorProto):
        return arrays.to_array(data)
    if isinstance(data, list):
        return [values_of(item) for item in cast(list[Any], data)]
    return data


def assert_close(name: str, found: Value, expected: Value) -> None:
    if isinstance(expected, list):
        assert isinstance(found, list), name
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            assert_close(name, one, other)
    elif expected is None:
        assert found is None, name
    else:
        assert isinstance(found, np.ndarray), name
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        if found.dtype == object or found.dtype.kind in "biu":
            assert found.tolist() == expected.tolist(), name
        else:
            wide = np.complex128 if found.dtype.kind == "c" else np.float64
            one, other = found.astype(wide), expected.astype(wide)
            np.testing.assert_allclose(one, other, 1e-2, 1e-3, err_msg=name)


def expandable() -> Iterator[tuple[Any, FuncOp]]:
    """The first case for each op with a function in its schema."""
    seen = set[str]()
    for case in load_cases():
        nodes = list(case.model.graph.node)
        if len(nodes) != 1 or nodes[0].op_type == "Bernoulli":  # random numbers
            continue
        opset = opset_of(case.model.opset_import)
        cls = op_class(nodes[0].domain, nodes[0].op_type, opset.get(nodes[0].domain, 0))
        if cls is None or cls.name in seen or not has_function(cls):
            continue
        seen.add(cls.name)
        yield case, main_of(import_model(case.model))


def has_function(cls: type[OnnxOp]) -> bool:
    schema = cast(Any, cls.schema)
    return schema.has_function or schema.has_context_dependent_function


def test_expanded_functions_compute_the_same() -> None:
    count = 0
    for case, function in expandable():
        expand_all(function)
        for inputs, outputs in case.data_sets:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = evaluate_region(function.body, [values_of(value) for value in inputs], {})
            for one, other in zip(found, map(values_of, outputs), strict=True):
                assert_close(case.name, one, other)
        count += 1
    assert count > 40


def expand_all(main: FuncOp) -> None:
    for op in list(main.body.block.ops):
        if not isinstance(op, OnnxOp) or (body := function_body(op)) is None:
            continue
        _, results = expand_function(op, body)
        for old, new in zip(op.results, results, strict=True):
            if new is not None:
                old.replace_all_uses_with(new)
        op.detach()
        op.erase()


def test_cases_of_the_main_topics_pass(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        ["--interpret", "--jobs", "1", "--filter", f"^test_(?!.*expanded)[a-z_]*({TOPICS})"]
    )
    printed = capsys.readouterr().out
    assert status == 0, printed
    total = next(line for line in printed.splitlines() if line.startswith("all "))
    passed, refused, *rest = map(int, total.split()[1:])
    assert not any(rest), printed
    assert passed > 480, printed
    assert refused < 30, printed


def test_a_fault_is_an_error_of_its_case() -> None:
    def run(model: object, values: object) -> NoReturn:
        raise InternalError("m: KeyError: k")

    case = next(case for case in load_cases() if case.name == "test_relu")
    assert run_case(case, run=run) == ("error", "InternalError: m: KeyError: k")
