"""SavedModels and checkpoints: their values, signatures and names, and what is refused."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

import lowerdeck
from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model, model_files
from lowerdeck.frontends.detect import detect_format
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import NodeDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.frontends.tf1.saved_model_pb2 import MetaGraphDef
from lowerdeck.tools.lowerdeck import main

from .tf1_checkpoints import (  # noqa: TID251  (these are tests, not the folder of sources)
    STRING,
    meta_graph,
    restoring,
    texts,
    variable,
    write_checkpoint,
    write_saved_model,
)
from .tf1_graphs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    INT,
    Type,
    const,
    graph,
    node,
    placeholder,
)

RECORDED = Path(__file__).parent / "saved_models"
Arrays = dict[str, NDArray[Any]]

PARSED = ("ParseExample/ParseExampleV2:0", "ParseExample/ParseExampleV2:1")


def samples(name: str) -> tuple[Arrays, Arrays]:
    """The inputs and what TensorFlow computed."""
    with np.load(RECORDED / name / "samples.npz") as file:
        arrays = {key: file[key] for key in file.files}
    inputs = {key[3:]: array for key, array in arrays.items() if key.startswith("in:")}
    return inputs, {key[4:]: array for key, array in arrays.items() if key.startswith("out:")}


def op_names(module: ModuleOp) -> set[str]:
    return {op.name for op in module.walk()}


def run(module: ModuleOp, inputs: Arrays) -> Arrays:
    """The outputs by the reference."""
    return {name: np.asarray(value) for name, value in run_module(module, inputs).items()}


def interpreted(module: ModuleOp, inputs: Arrays, name: str) -> list[Any]:
    """One output by the reference."""
    return run(module, inputs)[name].tolist()


def refused(path: Path, **options: Any) -> str:
    """The message of the refusal."""
    with pytest.raises(FrontendError) as caught:
        load_model(path, **options)
    return str(caught.value)


# What TensorFlow computed

CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("trained", "model", {}, ["scores"]),
    ("trained", "model", {"signature": "features"}, ["hidden"]),
    ("trained", "model/saved_model.pb", {"tags": ["train"], "outputs": ["scores:0"]}, []),
    ("resources", "model", {}, ["looped", "parts", "whole"]),
    ("sharded", "model.ckpt.meta", {"outputs": ["y"]}, ["y:0"]),
    ("examples", "model", {"input_shapes": {key: [1, 2] for key in PARSED}}, ["y"]),
    ("functions", "model", {}, ["y"]),
]


@pytest.mark.parametrize(("name", "path", "options", "outputs"), CASES)
def test_recorded(name: str, path: str, options: dict[str, Any], outputs: list[str]) -> None:
    inputs, expected = samples(name)
    if not outputs:
        # Another graph of the model: its tensors have their own names.
        inputs, expected = {"images:0": inputs["pixels"]}, {"scores:0": expected["scores"]}
        outputs = ["scores:0"]
    module = load_model(RECORDED / name / path, **options)
    module.verify()
    model = lowerdeck.compile(RECORDED / name / path, target="c99", cache=False, **options)
    for found in (run(module, inputs), model(inputs)):
        assert list(found) == outputs
        for key in outputs:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-5, atol=1e-6)


def test_a_signature_may_start_in_the_middle() -> None:
    _, expected = samples("trained")
    module = load_model(RECORDED / "trained" / "model", signature="from_hidden")
    found = run(module, {"hidden": expected["hidden"]})
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-5)
    # What computes it is not there any more.
    assert "tf1.Relu" not in op_names(module)


def test_variables_are_mapped_where_they_lie() -> None:
    module = load_model(RECORDED / "trained" / "model")
    values = [op.properties.get("value") for op in module.walk() if op.name == "tf1.VariableV2"]
    assert len(values) == 3
    for value in values:
        assert isinstance(value, BlobAttr)
        assert str(value.data.file).endswith("variables.data-00000-of-00001")


def test_what_saves_and_restores_is_no_output(tmp_path: Path) -> None:
    step = node("step", "ReadVariableOp", "v", dtype=FLOAT)
    late = node("late", "Identity", "file", "^save/restore", T=STRING)
    nodes = (*SIMPLE, step, texts("file", "here"), late, *restoring(v="v"))
    model = write_saved_model(tmp_path / "m", meta_graph(*nodes), tensors={"v": A})
    (fetch,) = (op for op in load_model(model).walk() if op.name == "tf1.fetch")
    names: Any = fetch.properties["names"]
    assert [name.data for name in names] == ["y:0"]


# Formats


@pytest.mark.parametrize(
    ("path", "format_"),
    [
        ("trained/model", "saved-model"),
        ("trained/model/saved_model.pb", "saved-model"),
        ("resources/model", "saved-model"),
        ("resources/model/saved_model.pbtxt", "saved-model"),
        ("sharded/model.ckpt.meta", "meta-graph"),
    ],
)
def test_formats_by_content(path: str, format_: str, tmp_path: Path) -> None:
    source = RECORDED / path
    assert detect_format(str(source)) == format_
    if source.is_file():
        assert detect_format(str(shutil.copy(source, tmp_path / "without_suffix"))) == format_


def test_text_and_binary_forms_are_one(tmp_path: Path) -> None:
    folder = RECORDED / "sharded"
    meta = MetaGraphDef.FromString((folder / "model.ckpt.meta").read_bytes())
    for part in folder.glob("model.ckpt.*"):
        shutil.copy(part, tmp_path)
    binary = str(load_model(tmp_path / "model.ckpt.meta", outputs=["y"]))
    (tmp_path / "model.ckpt.meta").write_text(text_format.MessageToString(meta))
    assert str(load_model(tmp_path / "model.ckpt.meta", outputs=["y"])) == binary


def test_a_graph_apart_from_its_checkpoint(tmp_path: Path) -> None:
    folder = RECORDED / "sharded"
    meta = MetaGraphDef.FromString((folder / "model.ckpt.meta").read_bytes())
    path = tmp_path / "graph.pb"
    path.write_bytes(meta.graph_def.SerializeToString())
    inputs, expected = samples("sharded")
    for weights in ("model.ckpt", "model.ckpt.index"):
        module = load_model(path, outputs=["y"], weights=folder / weights)
        np.testing.assert_allclose(run(module, inputs)["y:0"], expected["y:0"], rtol=1e-5)
    assert "give its checkpoint as --weights" in refused(path, outputs=["y"])


def test_what_is_near_a_model_leads_to_it(tmp_path: Path) -> None:
    folder = RECORDED / "sharded"
    assert f"give {folder}/model.ckpt.meta" in refused(folder / "model.ckpt.index")
    assert f"its graph is in {folder}/model.ckpt.meta" in refused(folder / "model.ckpt")
    model = RECORDED / "trained" / "model"
    assert f"; give {model}" in refused(model / "variables" / "variables.data-00000-of-00001")
    assert "give one of the folders in it: model" in refused(RECORDED / "trained")
    assert "is a folder, expected a file" in refused(tmp_path)


# Restoring

A, B = np.array([1, 2], np.float32), np.array([5, 7], np.float32)
X = placeholder("x", (2,))
READ = node("read", "ReadVariableOp", "v", dtype=FLOAT)
SUM = node("y", "AddV2", "x", "read", T=FLOAT)
PREDICT = {"serving_default": ({"x": "x:0"}, {"y": "y:0"})}
SIMPLE = (X, variable("v"), READ, SUM)


def added(path: Path, **options: Any) -> list[float]:
    """The value that a model adds to its input."""
    return interpreted(load_model(path, **options), {"x": np.zeros(2, np.float32)}, "y")


def test_a_saver_says_which_part_a_variable_is(tmp_path: Path) -> None:
    meta = meta_graph(*SIMPLE, *restoring(v="other"), signatures=PREDICT)
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": A, "other": B})
    assert added(model) == [5, 7]


def test_a_saver_that_does_not_restore_a_variable(tmp_path: Path) -> None:
    nodes = (*SIMPLE, variable("w"), *restoring(w="w"))
    model = write_saved_model(
        tmp_path / "m", meta_graph(*nodes, signatures=PREDICT), tensors={"v": A, "w": B}
    )
    assert "node 'v' (VarHandleOp): is a variable, but nothing restores it" in refused(model)


def test_what_is_assigned_after_restoring(tmp_path: Path) -> None:
    nodes = (*SIMPLE, *restoring(v="v"), const("three", [3, 3]))
    assign = node("init", "AssignVariableOp", "v", "three", dtype=FLOAT)
    meta = meta_graph(*nodes, assign, main_op="init", signatures=PREDICT)
    model = write_saved_model(tmp_path / "constant", meta, tensors={"v": A})
    assert added(model) == [3, 3]
    computed = node("twice", "AddV2", "three", "three", T=FLOAT)
    assign = node("init", "AssignVariableOp", "v", "twice", dtype=FLOAT)
    meta = meta_graph(*nodes, computed, assign, main_op="init", signatures=PREDICT)
    model = write_saved_model(tmp_path / "computed", meta, tensors={"v": A})
    assert "'init' computes its value when the model is loaded" in refused(model)


def test_without_a_saver_names_are_those_of_variables_or_of_what_restores_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "graph.pb"
    write_checkpoint(tmp_path / "c", {"v": A, "other": B})

    def value(*nodes: NodeDef) -> list[float]:
        path.write_bytes(meta_graph(*SIMPLE, *nodes).graph_def.SerializeToString())
        module = load_model(path, weights=tmp_path / "c", outputs=["y"])
        return interpreted(module, {"x:0": np.zeros(2, np.float32)}, "y:0")

    assert value() == [1, 2]
    assert value(*restoring(v="other")) == [5, 7]
    # An initial value is no part of restoring.
    initial = [const("zero", [0, 0]), node("i", "AssignVariableOp", "v", "zero", dtype=FLOAT)]
    assert value(*initial, *restoring(v="other")) == [5, 7]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (np.zeros(3, np.float32), "its value has the shape [3], expected [2]"),
        (np.zeros(2, np.int32), "its value is of element type int32, expected float"),
    ],
)
def test_values_of_another_type(stored: NDArray[Any], expected: str, tmp_path: Path) -> None:
    meta = meta_graph(*SIMPLE, *restoring(v="v"), signatures=PREDICT)
    assert expected in refused(write_saved_model(tmp_path / "m", meta, tensors={"v": stored}))


def test_all_variables_without_a_value_are_listed(tmp_path: Path) -> None:
    read = node("read_w", "ReadVariableOp", "w", dtype=FLOAT)
    total = node("z", "AddV2", "y", "read_w", T=FLOAT)
    nodes = (*SIMPLE, variable("w"), read, total, *restoring(v="v", w="w"))
    meta = meta_graph(*nodes, signatures={"serving_default": ({"x": "x:0"}, {"z": "z:0"})})
    message = refused(write_saved_model(tmp_path / "m", meta, tensors={"u": A}))
    assert [line.partition("node ")[2][:3] for line in message.split("\n")] == ["'v'", "'w'"]
    assert message.count("has no tensor") == 2


# Variables in a graph


def test_a_handle_goes_through_frames_and_branches(tmp_path: Path) -> None:
    """The reference runs the loop as it is; a value of its own in each iteration would differ."""
    resource = {"T": Type("resource"), "frame_name": "f"}
    nodes = [
        X,
        variable("v"),
        const("zero", 0, dtype=np.int32),
        node("enter_v", "Enter", "v", is_constant=True, **resource),
        node("enter_x", "Enter", "x", T=FLOAT, frame_name="f"),
        node("enter_i", "Enter", "zero", T=INT, frame_name="f"),
        node("merge_x", "Merge", "enter_x", "next_x", T=FLOAT, N=2),
        node("merge_i", "Merge", "enter_i", "next_i", T=INT, N=2),
        const("limit", 3, "^merge_i", dtype=np.int32),
        node("less", "Less", "merge_i", "limit", T=INT),
        node("cond", "LoopCond", "less"),
        node("switch_x", "Switch", "merge_x", "cond", T=FLOAT),
        node("switch_i", "Switch", "merge_i", "cond", T=INT),
        const("one", 1, "^switch_i", dtype=np.int32),
        node("plus", "AddV2", "switch_i:1", "one", T=INT),
        node("is_one", "Equal", "switch_i:1", "one", T=INT),
        node("choose", "Switch", "enter_v", "is_one", T=Type("resource")),
        node("read", "ReadVariableOp", "choose:1", dtype=FLOAT),
        node("zeros", "ZerosLike", "left", T=FLOAT),
        node("left", "ReadVariableOp", "choose", dtype=FLOAT),
        node("either", "Merge", "zeros", "read", T=FLOAT, N=2),
        node("sum", "AddV2", "switch_x:1", "either", T=FLOAT),
        node("next_x", "NextIteration", "sum", T=FLOAT),
        node("next_i", "NextIteration", "plus", T=INT),
        node("y", "Exit", "switch_x", T=FLOAT),
    ]
    meta = meta_graph(*nodes, *restoring(v="v"), signatures=PREDICT)
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": A})
    assert added(model) == [1, 2]
    compiled = lowerdeck.compile(model, target="c99", cache=False)
    assert compiled(np.zeros(2, np.float32))[0].tolist() == [1, 2]


def test_rows_of_a_variable_by_batches(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    ids = np.array([[1, 3], [0, 2]], np.int32)
    gather = {"dtype": FLOAT, "Tindices": INT}
    nodes = [
        placeholder("x", (2, 2), INT),
        variable("v", (2, 4, 3)),
        node("rows", "ResourceGather", "v", "x", batch_dims=1, **gather),
        node("nd", "ResourceGatherNd", "v", "x", **gather),
        node("shape", "VariableShape", "v"),
        node("there", "VarIsInitializedOp", "v"),
    ]
    names = ("rows", "nd", "shape", "there")
    meta = meta_graph(
        *nodes,
        *restoring(v="v"),
        signatures={"serving_default": ({"x": "x:0"}, {name: f"{name}:0" for name in names})},
    )
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": values})
    compiled = lowerdeck.compile(model, target="c99", cache=False)
    for found in (run(load_model(model), {"x": ids}), compiled({"x": ids})):
        np.testing.assert_array_equal(
            found["rows"], np.stack([values[0][ids[0]], values[1][ids[1]]])
        )
        np.testing.assert_array_equal(found["nd"], [values[1, 3], values[0, 2]])
        np.testing.assert_array_equal(found["shape"], [2, 4, 3])
        assert found["there"]


def test_a_variable_that_changes_in_each_run_is_refused(tmp_path: Path, capsys: Any) -> None:
    change = node("change", "AssignAddVariableOp", "v", "x", dtype=FLOAT)
    late = node("read", "ReadVariableOp", "v", "^change", dtype=FLOAT)
    meta = meta_graph(X, variable("v"), change, late, SUM, *restoring(v="v"), signatures=PREDICT)
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": A})
    assert main(["compile", str(model), "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert "node 'change' (AssignAddVariableOp): found a node that changes state" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]


# Tables and records


def test_lookup_tables_are_refused_with_what_to_do(tmp_path: Path, capsys: Any) -> None:
    model = RECORDED / "lookup" / "model"
    assert main(["compile", str(model), "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert "(HashTableV2)" in message
    assert "look keys up outside of the model" in message
    assert not list(tmp_path.iterdir())


def test_records_are_refused_with_what_to_do(tmp_path: Path, capsys: Any) -> None:
    model = RECORDED / "examples" / "model"
    assert main(["compile", str(model), "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "(ParseExampleV2)" in message
    assert "make what they hold its inputs" in message


# Tags, signatures and names


def test_tags_and_signatures_that_are_not_there() -> None:
    model = RECORDED / "trained" / "model"
    assert "choose by --tags one of 'train', 'serve'" in refused(model, tags=["tpu"])
    known = "'features', 'from_hidden', 'serving_default'"
    assert f"choose by --signature one of {known}" in refused(model, signature="predict")
    other = RECORDED / "sharded" / "model.ckpt.meta"
    assert "tags choose among the graphs of a SavedModel only" in refused(other, tags=["serve"])


def test_the_only_signature_is_chosen_but_not_one_of_several(tmp_path: Path) -> None:
    nodes = (*SIMPLE, *restoring(v="v"))
    named = PREDICT["serving_default"]
    one = write_saved_model(
        tmp_path / "one", meta_graph(*nodes, signatures={"predict": named}), tensors={"v": A}
    )
    assert added(one) == [1, 2]
    meta = meta_graph(*nodes, signatures={"predict": named, "classify": named})
    two = write_saved_model(tmp_path / "two", meta, tensors={"v": A})
    assert "has no signature 'serving_default'" in refused(two)
    assert added(two, signature="predict") == [1, 2]
    assert interpreted(load_model(two, outputs=["y"]), {"x:0": A}, "y:0") == [2, 4]


def test_no_tags_are_tags(tmp_path: Path) -> None:
    meta = meta_graph(*SIMPLE, *restoring(v="v"), tags=(), signatures=PREDICT)
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": A})
    assert "with the tags 'serve'" in refused(model)
    assert added(model, tags=[]) == [1, 2]


def test_shapes_are_given_by_the_names_of_a_signature(tmp_path: Path) -> None:
    nodes = (placeholder("x", (-1,)), *SIMPLE[1:], *restoring(v="v"))
    meta = meta_graph(*nodes, signatures={"serving_default": ({"pixels": "x:0"}, {"y": "y:0"})})
    model = write_saved_model(tmp_path / "m", meta, tensors={"v": A})
    for name in ("pixels", "x:0"):
        compiled = lowerdeck.compile(model, target="c99", cache=False, input_shapes={name: [1]})
        assert [(i.name, i.shape) for i in compiled.inputs] == [("pixels", (1,))]
    assert "but the inputs are 'pixels'" in refused(model, input_shapes={"images": [1]})


def test_any_tensor_may_be_an_input() -> None:
    split = node("s", "Split", "axis", "x", T=FLOAT, num_split=2)
    total = node("y", "Sub", "s", "s:1", T=FLOAT)
    nodes = [placeholder("x", (4,)), const("axis", 0, dtype=np.int32), split, total]
    one = import_graph(graph(*nodes), outputs=["y"], input_shapes={"s:1": [2]})
    four = np.array([1, 2, 3, 4], np.float32)
    assert interpreted(one, {"x:0": four, "s:1": B}, "y:0") == [-4, -5]
    both = import_graph(graph(*nodes), outputs=["y"], input_shapes={"s:1": [2], "s": [2]})
    assert interpreted(both, {"s:0": B, "s:1": A}, "y:0") == [4, 5]
    assert "tf1.Split" not in op_names(both)
    with pytest.raises(FrontendError, match=r"cannot be the input 's:2': it has 2 outputs"):
        import_graph(graph(*nodes), outputs=["y"], input_shapes={"s:2": [2]})


# The cache


def test_models_that_differ_in_their_variables_alone(tmp_path: Path) -> None:
    """Their graphs are the same file, which is what the cache looks at first."""
    meta = meta_graph(*SIMPLE, *restoring(v="v"), signatures=PREDICT)
    one = write_saved_model(tmp_path / "one" / "m", meta, tensors={"v": A})
    two = write_saved_model(tmp_path / "two" / "m", meta, tensors={"v": B})
    zero = np.zeros(2, np.float32)
    for model, expected in ((one, [1, 2]), (two, [5, 7]), (one, [1, 2])):
        found = lowerdeck.compile(model, target="c99")
        assert found(zero)[0].tolist() == expected
    write_checkpoint(one / "variables" / "variables", {"v": B})
    assert lowerdeck.compile(one, target="c99")(zero)[0].tolist() == [5, 7]
    assert [Path(path).name for path in model_files(one)] == [
        "saved_model.pb",
        "variables.index",
        "variables.data-00000-of-00001",
    ]


# Damage


def _outcome(model: Path) -> str:
    """The imported text, or nothing if it is refused; any other error fails the test."""
    with suppress(FrontendError):
        return str(load_model(model, outputs=["scores"]))
    return ""


@pytest.mark.parametrize(
    ("file", "may_pass"),
    [
        ("saved_model.pb", True),
        ("variables/variables.index", False),
        ("variables/variables.data-00000-of-00001", False),
    ],
)
def test_damaged_files(file: str, may_pass: bool, tmp_path: Path) -> None:
    """Variables have checksums: they are right, or there is no model."""
    model = Path(shutil.copytree(RECORDED / "trained" / "model", tmp_path / "m"))
    whole, path = _outcome(model), model / file
    assert whole
    data = path.read_bytes()
    generator = random.Random(3)
    for size in sorted(generator.sample(range(len(data)), min(len(data), 20))):
        path.write_bytes(data[:size])
        assert may_pass or not _outcome(model)
        _outcome(model)
    for _ in range(60):
        damaged = bytearray(data)
        damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        assert may_pass or _outcome(model) in ("", whole)
        _outcome(model)
    path.write_bytes(data)
    assert _outcome(model) == whole


def test_files_that_are_missing(tmp_path: Path) -> None:
    model = Path(shutil.copytree(RECORDED / "trained" / "model", tmp_path / "m"))
    (model / "variables" / "variables.data-00000-of-00001").unlink()
    message = refused(model)
    assert message.count("which cannot be read: No such file or directory") == 3
    (model / "variables" / "variables.index").unlink()
    message = refused(model)
    assert "variables.index: cannot be read" in message
    assert message.count("\n") == 0


def test_variables_need_their_shape_in_the_ir() -> None:
    """A value whose size is not that of the variable does not verify."""
    module = load_model(RECORDED / "resources" / "model")
    (op,) = (op for op in module.walk() if op.name == "tf1.VarHandleOp" and "half" in str(op))
    op.properties["shape"] = type(op.properties["shape"])((5,))  # pyright: ignore
    with pytest.raises(Exception, match="8 bytes do not fit"):
        module.verify()
