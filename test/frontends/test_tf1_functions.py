"""Import of the functions of a TensorFlow graph's library, and what is refused of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import BlockArgument

from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.tf1.functions import FunctionOp
from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import AttrValue, FunctionDef, GraphDef, NameAttrList
from lowerdeck.frontends.tf1.import_ import import_graph

from .tf1_graphs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    INT,
    graph,
    node,
    placeholder,
)

X = placeholder("x")


def func(name: str, **attributes: Any) -> AttrValue:
    """The value of an attribute that names a function."""
    return AttrValue(func=NameAttrList(name=name, attr=attributes))


def signature(name: str, inputs: str = "x", outputs: str = "y", more: str = "") -> str:
    """The signature of a function of floats."""
    arguments = [
        f'{kind}_arg {{ name: "{argument}" type: DT_FLOAT }}'
        for kind, listed in (("input", inputs), ("output", outputs))
        for argument in listed.split()
    ]
    return f'signature {{ name: "{name}" {" ".join(arguments)} {more} }}'


def body_node(name: str, op: str, *inputs: str, attributes: str = "") -> str:
    """A node of a function, of type float."""
    listed = " ".join(f'input: "{text}"' for text in inputs)
    dtype = "" if "T" in attributes else 'attr { key: "T" value { type: DT_FLOAT } }'
    return f'node_def {{ name: "{name}" op: "{op}" {listed} {dtype} {attributes} }}'


def ret(**results: str) -> str:
    """Which values are the results."""
    return " ".join(f'ret {{ key: "{key}" value: "{value}" }}' for key, value in results.items())


def library(proto: GraphDef, *functions: str) -> GraphDef:
    """The graph with functions, each made of parts in text."""
    for function in functions:
        proto.library.function.append(text_format.Parse(function, FunctionDef()))
    return proto


def calling(*functions: str, called: str = "f") -> GraphDef:
    """A graph `y = f(x)` of floats."""
    return library(graph(X, node("y", called, "x")), *functions)


NEGATE = " ".join([signature("f"), body_node("n", "Neg", "x"), ret(y="n:y:0")])


def functions_of(module: ModuleOp) -> dict[str, FunctionOp]:
    """The functions of a module by symbol."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FunctionOp)}


def named(function: FunctionOp) -> dict[str, Tf1Op]:
    """The ops of a function by node."""
    found: dict[str, Tf1Op] = {}
    for op in function.body.block.ops:
        if isinstance(op, Tf1Op) and isinstance(op.location, NameLoc):
            found[op.location.desc.data] = op
    return found


def refused(proto: GraphDef) -> str:
    """The message of the refusal."""
    with pytest.raises(FrontendError) as caught:
        import_graph(proto, outputs=["y"])
    return str(caught.value)


def test_a_function_is_imported_as_it_is() -> None:
    function = " ".join(
        [
            signature("f", "x z", "a b"),
            body_node("late", "AddV2", "split:output:1", "z:0", "^early", "^z"),
            body_node(
                "split",
                "Split",
                "axis:output:0",
                "early:y",
                attributes='attr { key: "num_split" value { i: 2 } }',
            ),
            body_node("early", "Neg", "x"),
            'node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } '
            'attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} } } } }',
            body_node("unused", "NoSuchOp", "x"),
            body_node(
                "check",
                "CheckNumerics",
                "x",
                attributes='attr { key: "message" value { s: "" } }',
            ),
            ret(b="late:z:0", a="split:output:0"),
            'control_ret { key: "run" value: "check" }',
        ]
    )
    call = node("y", "f", "x", "x")
    module = import_graph(library(graph(X, call), function), outputs=["y:1"])
    module.verify()
    (f,) = functions_of(module).values()
    ops = named(f)
    assert sorted(ops) == ["f/axis", "f/check", "f/early", "f/late", "f/split"]
    x, z = f.body.block.args
    split, late, check = ops["f/split"], ops["f/late"], ops["f/check"]
    assert ops["f/early"].inputs == (x,)
    assert late.inputs == (split.results[1], z)
    assert late.controls == (ops["f/early"].control,)
    assert list(f.end.values) == [split.results[0], late.results[0], check.control]
    found = run_module(module, {"x:0": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(found["y:1"], [-1, 0])


def test_a_node_whose_operator_is_a_function_is_a_call_of_it() -> None:
    module = import_graph(calling(NEGATE))
    (call,) = (op for op in module.walk() if op.name == "tf1.PartitionedCall")
    assert isinstance(call, Tf1Op)
    assert (call.attr("f"), call.attr("Tin"), call.attr("Tout")) == ("f", ["float"], ["float"])
    assert run_module(module, {"x:0": np.array(2, np.float32)}) == {"y:0": -2}


def test_functions_that_nothing_calls_are_left_out_with_what_is_wrong_in_them() -> None:
    odd = " ".join([signature("odd"), body_node("n", "NoSuchOp", "gone")])
    assert list(functions_of(import_graph(calling(NEGATE, odd)))) == ["f"]


def test_the_symbol_of_the_graph_is_not_that_of_a_function() -> None:
    module = import_graph(calling(NEGATE.replace('"f"', '"main"'), called="main"))
    assert list(functions_of(module)) == ["main_1"]


def test_attributes_give_functions_their_types() -> None:
    double = " ".join(
        [
            'signature { name: "f" input_arg { name: "x" type_attr: "T" } ',
            'output_arg { name: "y" type_attr: "T" } attr { name: "T" type: "type" ',
            "default_value { type: DT_FLOAT } } }",
            'node_def { name: "sum" op: "AddV2" input: "x" input: "x" '
            'attr { key: "T" value { placeholder: "T" } } }',
            ret(y="sum:z:0"),
        ]
    )
    twice = " ".join(
        [
            'signature { name: "g" input_arg { name: "x" type_attr: "U" } ',
            'output_arg { name: "y" type_attr: "U" } attr { name: "U" type: "type" } }',
            'node_def { name: "c" op: "PartitionedCall" input: "x" '
            'attr { key: "Tin" value { list { type: DT_INT32 } } } '
            'attr { key: "Tout" value { list { type: DT_INT32 } } } '
            'attr { key: "f" value { func { name: "f" '
            'attr { key: "T" value { placeholder: "U" } } } } } }',
            ret(y="c:output:0"),
        ]
    )
    nodes = [
        X,
        placeholder("k", dtype=INT),
        node("a", "f", "x"),
        node("b", "f", "x", T=FLOAT, _note="nothing"),
        node("c", "f", "k", T=INT),
        node("d", "g", "k", U=INT),
    ]
    module = import_graph(library(graph(*nodes), double, twice), outputs=["a", "b", "c", "d"])
    module.verify()
    assert list(functions_of(module)) == ["f", "f_1", "g"]
    one, two = np.array(1.5, np.float32), np.array(2, np.int32)
    found = run_module(module, {"x:0": one, "k:0": two})
    assert found == {"a:0": 3, "b:0": 3, "c:0": 4, "d:0": 4}


def test_an_argument_may_stand_for_several_values() -> None:
    function = " ".join(
        [
            'signature { name: "f" input_arg { name: "x" type: DT_FLOAT number_attr: "N" } ',
            'output_arg { name: "y" type: DT_FLOAT number_attr: "N" } ',
            'attr { name: "N" type: "int" } }',
            'node_def { name: "all" op: "IdentityN" input: "x" '
            'attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }',
            ret(y="all:output"),
        ]
    )
    proto = library(graph(X, placeholder("z"), node("y", "f", "x", "z", N=2)), function)
    one, two = np.array(1, np.float32), np.array(2, np.float32)
    found = run_module(import_graph(proto), {"x:0": one, "z:0": two})
    assert found == {"y:0": 1, "y:1": 2}


def test_outputs_behind_one_that_stands_for_several_values() -> None:
    inner = " ".join(
        [
            'signature { name: "f" input_arg { name: "x" type: DT_FLOAT number_attr: "N" } ',
            'output_arg { name: "all" type: DT_FLOAT number_attr: "N" } ',
            'output_arg { name: "last" type: DT_FLOAT } attr { name: "N" type: "int" } }',
            body_node("n", "Neg", "x:1"),
            ret(all="x", last="n:y"),
        ]
    )
    call = 'node_def { name: "c" op: "f" input: "x" input: "z" attr { key: "N" value { i: 2 } } }'
    outer = " ".join([signature("g", "x z", "a b c"), call])
    outer += ret(a="c:last:0", b="c:all:1", c="c:all:0")
    proto = library(graph(X, placeholder("z"), node("y", "g", "x", "z")), inner, outer)
    one, two = np.array(1, np.float32), np.array(2, np.float32)
    found = run_module(import_graph(proto), {"x:0": one, "z:0": two})
    assert found == {"y:0": -2, "y:1": 2, "y:2": 1}


def test_what_has_an_effect_is_run() -> None:
    writing = " ".join(
        [
            'signature { name: "f" input_arg { name: "h" type: DT_RESOURCE } ',
            'input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }',
            'node_def { name: "i" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } '
            'attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} } } } }',
            body_node("write", "TensorArrayWriteV3", "h", "i:output:0", "x", "x"),
            ret(y="x"),
        ]
    )
    size = node("n", "Const", value=np.array(1, np.int32), dtype=INT)
    proto = library(
        graph(X, size, node("h", "TensorArrayV3", "n", dtype=FLOAT), node("y", "f", "h", "x")),
        writing,
    )
    (f,) = functions_of(import_graph(proto, outputs=["y"])).values()
    assert isinstance(f.end.values[0], BlockArgument)
    assert list(f.end.values[1:]) == [named(f)["f/write"].control]


LOOP = node("y", "While", "x", T=[FLOAT], cond=func("c"), body=func("b"))
TWO = " ".join([signature("b", "x z"), ret(y="x")])
NONE = signature("c", outputs="")


NO_CASE = node("y", "Case", "x", "x", Tin=[FLOAT], Tout=[FLOAT], branches=AttrValue(list={}))
GONE = node("y", "PartitionedCall", "x", Tin=[FLOAT], Tout=[FLOAT], f=func("g"))
FED = body_node("n", "Placeholder", attributes='attr {key: "dtype" value {type: DT_FLOAT}}')


def changed(old: str, new: str, *more: str) -> GraphDef:
    """`y = f(x)` with something changed in the function."""
    assert old in NEGATE
    return calling(NEGATE.replace(old, new), *more)


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (
            graph(X, GONE),
            ["'y' (PartitionedCall): attribute 'f': the function 'g' is not in the graph's"],
        ),
        (
            library(graph(X, LOOP), TWO, NONE),
            [
                "node 'y' (While): its cond 'c' takes (tensor<*xf32>) and gives (), expected "
                "(float) and one value; its body 'b' takes (tensor<*xf32>, tensor<*xf32>) and "
                "gives (tensor<*xf32>), expected (float) and (float)"
            ],
        ),
        (graph(X, NO_CASE), ["node 'y' (Case): found no branches, expected at least one"]),
        (calling(NEGATE, NEGATE), ["two functions of its library are called 'f'"]),
        (calling(signature("f")), ["function 'f': nothing is said to give its result 'y'"]),
        (changed("n:y:0", "m:y:0"), ["function 'f': its input 'm:y:0' is not in the function"]),
        (changed("n:y:0", "x:1"), ["function 'f': its input 'x:1' is not there"]),
        (changed("n:y:0", "n:y:1"), ["function 'f': its input 'n:y:1' is not there"]),
        (
            changed("n:y:0", "n:z:0"),
            ["function 'f': its input 'n:z:0' is not there: 'n' has the outputs 'y'"],
        ),
        (
            calling(NEGATE + ' control_ret { key: "a" value: "m" }'),
            ["function 'f': it has to run 'm', which is not there"],
        ),
        (
            changed('input: "x"', 'input: "y"'),
            ["node 'f/n' (Neg): its input 'y' is not in the function"],
        ),
        (
            changed('input: "x"', 'input: "x" input: "x:0"'),
            ["node 'f/n' (Neg): found 2 inputs, expected 1"],
        ),
        (
            changed('input: "x"', 'input: "x" input: "^m"'),
            ["node 'f/n' (Neg): its input 'm' is not in the graph"],
        ),
        (
            changed("type: DT_FLOAT } }  ", "type: DT_INT32 } }  "),
            ["node 'f/n' (Neg): input 0, 'x:0', is float, expected int32", "function 'f': its"],
        ),
        (
            changed('"x" type: DT_FLOAT', '"x" type: DT_INT32'),
            ["'f/n' (Neg): input 0, 'x:0', is int32", "'y' (f): input 0, 'x:0', is float"],
        ),
        (
            changed('"y" type: DT_FLOAT', '"y" type: DT_INT32'),
            ["function 'f': its results are ['float'], expected ['int32']"],
        ),
        (
            changed('name: "n"', 'name: "x"', signature("unused")),
            ["function 'f': its input 'n:y:0' is not in the function"],
        ),
        (
            changed("ret {", body_node("n", "Exp", "x") + " ret {"),
            ["node 'f/n' (Exp): the name is that of another node, too"],
        ),
        (
            changed("type: DT_FLOAT } }  ", 'placeholder: "T" } }  '),
            ["'f/n' (Neg): attribute 'T' is the placeholder 'T' of a function, expected type"],
        ),
        (
            changed('"x" type: DT_FLOAT', '"x" type_attr: "T"'),
            ["node 'y' (f): its attribute 'T' has no value"],
        ),
        (
            calling(" ".join([signature("f"), FED, ret(y="n:output")])),
            ["node 'f/n' (Placeholder): found an input inside a function, expected an argument"],
        ),
        (
            calling(
                " ".join(
                    [
                        signature("f"),
                        body_node("n", "Nope", "x"),
                        body_node("m", "AddV2", "n:y", "o:y"),
                        'node_def { name: "o" op: "g" input: "x" }',
                        ret(y="m:z"),
                    ]
                ),
                " ".join([signature("g"), body_node("p", "Never", "x"), ret(y="p:z")]),
            ),
            ["node 'f/n' (Nope): its operator", "node 'g/p' (Never): its operator"],
        ),
    ],
)
def test_what_is_not_valid(proto: GraphDef, expected: list[str]) -> None:
    message = refused(proto)
    for text in expected:
        assert text in message
    assert message.count("\n") == len(expected) - 1, message


def test_functions_without_end() -> None:
    """A function that calls itself with another type, and so on."""
    endless = " ".join(
        [
            'signature { name: "f" input_arg { name: "x" type: DT_FLOAT } ',
            'output_arg { name: "y" type: DT_FLOAT } attr { name: "g" type: "func" } }',
            'node_def { name: "c" op: "f" input: "x" attr { key: "g" value { func { name: "f" ',
            'attr { key: "g" value { placeholder: "g" } } } } } }',
            ret(y="c:y"),
        ]
    )
    proto = library(graph(X, node("y", "f", "x", g=func("f"))), endless)
    assert "its attributes name functions more than 32 deep" in refused(proto)


def test_the_text_form_and_weights_in_functions(tmp_path: Path) -> None:
    weights = np.linspace(0, 1, 400, dtype=np.float32)
    shape = "tensor_shape { dim { size: 400 } }"
    values = " ".join(f"float_val: {value!r}" for value in weights.tolist())
    constant = (
        'node_def { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } '
        f'attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT {shape} {values} }} }} }} }}'
    )
    parts = [signature("f"), constant, body_node("n", "AddV2", "x", "w:output:0"), ret(y="n:z:0")]
    proto = calling(" ".join(parts))
    tensor = proto.library.function[0].node_def[0].attr["value"].tensor
    del tensor.float_val[:]
    tensor.tensor_content = weights.tobytes()
    path = tmp_path / "model.pb"
    path.write_bytes(proto.SerializeToString())
    text = tmp_path / "model.pbtxt"
    text.write_text(text_format.MessageToString(proto))
    for module in (load_model(path), load_model(text)):
        found = run_module(module, {"x:0": np.array(1, np.float32)})
        np.testing.assert_array_equal(found["y:0"], weights + 1)


def test_unknown_fields_of_text_in_functions(tmp_path: Path) -> None:
    path = tmp_path / "model.pbtxt"
    text = text_format.MessageToString(calling(NEGATE))
    place = text.index("DT_FLOAT", text.index("node_def")) + len("DT_FLOAT")
    path.write_text(f"{text[:place]} novel: 1 {text[place:]}")
    with pytest.raises(FrontendError, match=r"'f/n'.*'T' is of a kind that is not known"):
        load_model(path)


def test_the_order_of_functions_and_nodes_means_nothing() -> None:
    path = Path(__file__).parents[1] / "end_to_end" / "functions" / "nested_branches.pb"
    proto = GraphDef.FromString(path.read_bytes())
    expected = str(import_graph(proto))
    generator = random.Random(3)
    functions = list(proto.library.function)
    for function in functions:
        nodes = list(function.node_def)
        generator.shuffle(nodes)
        del function.node_def[:]
        function.node_def.extend(nodes)
    generator.shuffle(functions)
    del proto.library.function[:]
    proto.library.function.extend(functions)
    assert str(import_graph(proto)) == expected
