"""Model files of TensorFlow Lite: what is read, what is remembered, and what is broken."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fuzz.file_seeds import Seed
from fuzz.file_trees import tree_of
from fuzz.tflite_graphs import Graph, Scale
from fuzz.tflite_nodes.recurrent import lstm_of_bytes
from fuzz.tflite_writer import flatbuffer
from lowerdeck.dialects.core.names import STATES
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tflite.flatbuffer import FlatbufferError, Table
from lowerdeck.frontends.tflite.flexbuffer import read_map
from lowerdeck.frontends.tflite.model import CUSTOM, Node
from lowerdeck.passes.legalize.tflite.framework import TfliteWalk

COUNTER = Path(__file__).parent / "tflite_models" / "counter.tflite"
X = np.array([[1, 0, 0, 1]], np.float32)


def test_a_variable_lives_on_and_is_reset() -> None:
    calls = Calls(load_model(COUNTER))
    found = [calls({"x": X})["sum"] for _ in range(2)]
    assert [np.asarray(value).tolist() for value in found] == [[[6, 1.5]], [[11, 2.5]]]
    calls.reset()
    assert np.asarray(calls({"x": X})["sum"]).tolist() == [[6, 1.5]]


def test_signatures_are_entries() -> None:
    assert STATES in find_function(load_model(COUNTER, signature="count"), "main").attributes
    with pytest.raises(FrontendError, match="no signature 'other'; the model has 'count'"):
        load_model(COUNTER, signature="other")


def test_twice_the_operators_take_twice_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[object] = []
    made = Table.__init__

    def counted(table: Table, *arguments: Any) -> None:
        tables.append(table)
        made(table, *arguments)

    monkeypatch.setattr(Table, "__init__", counted)
    counts: list[int] = []
    for size in (20, 40, 80):
        graph = Graph(Random(0), np.random.default_rng(0))
        value = graph.input([2], "FLOAT32")
        for _ in range(size):
            (value,) = graph.op("ABS", [value], ([2], "FLOAT32", None))
        path = tmp_path / f"{size}.tflite"
        path.write_bytes(graph.program().data)
        tables.clear()
        load_model(path)
        counts.append(len(tables))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0


def test_inputs_that_no_memory_holds(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    for size, is_found in ((1 << 20, False), (1 << 24, True)):
        graph = Graph(Random(0), np.random.default_rng(0))
        x = graph.input([size, size], "INT8")
        graph.op("SHAPE", [x], ([2], "INT32", None), options=("ShapeOptions", {"out_type": 2}))
        path.write_bytes(graph.file(graph.nodes, [x.index]))
        if is_found:
            with pytest.raises(FrontendError, match=r"2\^48 elements in input 't0'"):
                load_model(path)
        else:
            load_model(path)


def test_what_a_variable_begins_with_is_not_written_out(tmp_path: Path) -> None:
    graph = Graph(Random(0), np.random.default_rng(0))
    q = Scale((0.5,), (3,))
    x, state = graph.input([1], "INT8", q), graph.state([1 << 20, 1 << 20], "INT8", q)
    graph.op("ADD", [x, state], ([1 << 20, 1 << 20], "INT8", q), options=("AddOptions", {}))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.file(graph.nodes, [x.index]))
    assert STATES in find_function(load_model(path), "main").attributes


def test_a_sparse_number_is_itself(tmp_path: Path) -> None:
    graph = Graph(Random(0), np.random.default_rng(0))
    x, two = graph.input([2], "FLOAT32"), graph.constant(np.array(2, np.float32), "FLOAT32")
    levels: dict[str, list[Any]] = {"traversal_order": [], "block_map": [], "dim_metadata": []}
    graph.tensors[two.index]["sparsity"] = levels
    graph.op("ADD", [x, two], ([2], "FLOAT32", None), options=("AddOptions", {}))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.program().data)
    (found,) = Calls(load_model(path))({"t0": np.array([1, -1], np.float32)}).values()
    assert np.asarray(found).tolist() == [3, 1]


def test_any_tensor_is_an_output() -> None:
    module = load_model(COUNTER, outputs=["fc"])
    found = Calls(module)({"x": X})
    assert np.asarray(found["fc"]).tolist() == [[5, 1]]
    with pytest.raises(FrontendError, match="no tensor is named 'y'; the outputs are 'sum'"):
        load_model(COUNTER, outputs=["y"])


def _adding(*, assigns: bool) -> bytes:
    """
    A variable of one f32 that a loop, which has a handle of it, adds x to as long as it is below 5;
    or reads only.
    """
    names = ["VAR_HANDLE", "WHILE", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE", "LESS"]
    handle = {"type": "RESOURCE", "name": "handle"}
    number, truth = {"type": "FLOAT32", "shape": [1]}, {"type": "BOOL", "shape": [1]}

    def operator(name: str, inputs: list[int], outputs: list[int], **more: Any) -> dict[str, Any]:
        return {"opcode_index": names.index(name), "inputs": inputs, "outputs": outputs, **more}

    loops = ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    total = ("VarHandleOptions", {"shared_name": "total"})
    graphs = [
        (
            [{**number, "name": "x"}, handle, number, handle, {**number, "name": "y"}],
            ([0], [4]),
            [
                operator("VAR_HANDLE", [], [1], builtin_options=total),
                operator("WHILE", [0, 1], [2, 3], builtin_options=loops),
                operator("READ_VARIABLE", [3], [4]),
            ],
        ),
        (
            [number, handle, number, {**number, "buffer": 1}, truth],
            ([0, 1], [4]),
            [operator("READ_VARIABLE", [1], [2]), operator("LESS", [2, 3], [4])],
        ),
        (
            [number, handle, number, number],
            ([0, 1], [0, 1]),
            [
                operator("READ_VARIABLE", [1], [2]),
                operator("ADD", [0, 2], [3]),
                *([operator("ASSIGN_VARIABLE", [1, 3], [])] if assigns else []),
            ],
        ),
    ]
    fields = {
        "version": 3,
        "operator_codes": [{"builtin_code": name} for name in names],
        "subgraphs": [
            {"tensors": tensors, "inputs": ends[0], "outputs": ends[1], "operators": operators}
            for tensors, ends, operators in graphs
        ],
        "buffers": [{}, {"data": np.array([5], np.float32).tobytes()}],
    }
    return flatbuffer("Model", fields)


def test_what_vela_made_is_told(tmp_path: Path) -> None:
    """Its operators have tensors without data; all of them are named."""
    path, tensor = tmp_path / "vela.tflite", {"type": "UINT8", "shape": [4]}
    fields: dict[str, Any] = {
        "version": 3,
        "operator_codes": [{"builtin_code": CUSTOM, "custom_code": "ethos-u"}],
        "subgraphs": [
            {
                "tensors": [{**tensor, "name": name} for name in ("x", "scratch", "h", "y")],
                "inputs": [0],
                "outputs": [3],
                "operators": [
                    {"opcode_index": 0, "inputs": [k, 1], "outputs": [k + 2 - k // 2]}
                    for k in (0, 2)
                ],
            }
        ],
        "buffers": [{}],
    }
    path.write_bytes(flatbuffer("Model", fields))
    with pytest.raises(FrontendError, match="file that Vela was given") as told:
        load_model(path)
    assert str(told.value).count("ethos-u") == 2


def _one_node(name: str, inputs: Sequence[dict[str, Any] | None], **options: Any) -> bytes:
    """A node; of its inputs only the first comes from outside."""
    tensors = [value for value in inputs if value is not None]
    places = iter(range(len(tensors)))
    sizes = [math.prod(value["shape"]) for value in tensors]
    for number, value in enumerate(tensors[1:], 1):
        value["buffer"] = 0 if value.get("is_variable") else number
    fields: dict[str, Any] = {
        "version": 3,
        "operator_codes": [{"builtin_code": name}],
        "subgraphs": [
            {
                "tensors": [*tensors, {"type": "FLOAT32", "shape": [1]}],
                "inputs": [0],
                "outputs": [len(tensors)],
                "operators": [
                    {
                        "opcode_index": 0,
                        "inputs": [-1 if value is None else next(places) for value in inputs],
                        "outputs": [len(tensors)],
                        **options,
                    }
                ],
            }
        ],
        "buffers": [{}, *({"data": bytes([1, 0, 0, 0]) * size} for size in sizes[1:])],
    }
    return flatbuffer("Model", fields)


def _floats(*shape: int) -> dict[str, Any]:
    return {"type": "FLOAT32", "shape": list(shape)}


def test_bounds_that_are_floats_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    ends = [{**_floats(1), "type": "INT32"} for _ in range(2)]
    path.write_bytes(_one_node("STRIDED_SLICE", [_floats(4), _floats(1), *ends]))
    with pytest.raises(CompileError, match="bounds of type tensor<1xf32>, expected integers"):
        TfliteWalk(find_function(load_model(path), "main")).run()


@pytest.mark.parametrize(
    ("name", "types", "told"),
    [
        ("L2_NORMALIZATION", ["INT8"], "a result of f32, expected i8"),
        ("DIV", ["INT8", "UINT8"], "input 1 of ui8, expected i8"),
        ("ADD", ["INT16", "INT8"], "input 1 of i8, expected i16"),
    ],
)
def test_quantized_integers_of_several_types_are_told(
    tmp_path: Path, name: str, types: list[str], told: str
) -> None:
    path = tmp_path / "model.tflite"
    scales = {"scale": [0.5], "zero_point": [0]}
    node = {"shape": [2], "quantization": scales, "is_variable": True}
    nodes = [{**node, "type": type_} for type_ in types]
    path.write_bytes(_one_node(name, nodes))
    with pytest.raises(CompileError, match=told):
        TfliteWalk(find_function(load_model(path), "main")).run()


def test_scales_of_very_many_channels_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    weights: dict[str, Any] = {"type": "INT8", "shape": [1 << 26, 1], "is_variable": True}
    weights["quantization"] = {"scale": [0.5], "zero_point": [0]}
    nodes = [_floats(2, 1, 1), weights, weights, _floats(1), {**_floats(1, 1), "is_variable": True}]
    path.write_bytes(_one_node("UNIDIRECTIONAL_SEQUENCE_RNN", nodes))
    with pytest.raises(CompileError, match=f"1 scales of {1 << 26} channels"):
        TfliteWalk(find_function(load_model(path), "main")).run()


@pytest.mark.parametrize(
    ("name", "kind", "option", "told"),
    [
        (
            "SHAPE",
            "ShapeOptions",
            {"out_type": "INT64"},
            "out_type INT64 has the result '' of FLOAT",
        ),
        ("LEAKY_RELU", "LeakyReluOptions", {"alpha": math.nan}, "has alpha nan"),
        ("RELU", None, {}, "found a result of f32, expected f16"),
    ],
)
def test_options_and_types_that_are_not_those_of_results_are_told(
    tmp_path: Path, name: str, kind: str | None, option: dict[str, Any], told: str
) -> None:
    path = tmp_path / "model.tflite"
    x = {"type": "FLOAT16" if kind is None else "FLOAT32", "shape": [2]}
    options = {} if kind is None else {"builtin_options": (kind, option)}
    path.write_bytes(_one_node(name, [x], **options))
    with pytest.raises((CompileError, FrontendError), match=told):
        TfliteWalk(find_function(load_model(path), "main")).run()


def test_a_cell_of_bytes_without_units(tmp_path: Path) -> None:
    """It has no scale at all."""
    path = tmp_path / "model.tflite"
    scales = {"scale": [0.5], "zero_point": [0]}
    weights = [
        {"type": "INT8", "shape": shape, "quantization": scales} for shape in ([0, 3], [0, 0])
    ]
    nodes = [_floats(2, 1, 3), *weights, _floats(0), {**_floats(1, 0), "is_variable": True}]
    path.write_bytes(_one_node("UNIDIRECTIONAL_SEQUENCE_RNN", nodes))
    module = load_model(path)
    TfliteWalk(find_function(module, "main")).run()
    assert "tensor<2x1x0xf32>" in str(find_function(module, "main").function_type.outputs)


def test_a_cell_of_very_many_units_is_told(tmp_path: Path) -> None:
    """The cell of integers has a factor for each of them."""
    path, graph = tmp_path / "model.tflite", Graph(Random(0), np.random.default_rng(0))
    lstm_of_bytes(graph)
    inputs: list[int] = graph.nodes[0]["inputs"]
    weights = graph.tensors[inputs[6]]
    weights |= {"shape": [1 << 28, *weights["shape"][1:]], "buffer": 0, "is_variable": True}
    path.write_bytes(graph.program().data)
    with pytest.raises(CompileError, match=r"expected at most 2\^24 units"):
        TfliteWalk(find_function(load_model(path), "main")).run()


def test_a_cell_of_bytes_without_a_scale_is_told(tmp_path: Path) -> None:
    path, graph = tmp_path / "model.tflite", Graph(Random(0), np.random.default_rng(0))
    lstm_of_bytes(graph)
    inputs: list[int] = graph.nodes[0]["inputs"]
    graph.tensors[inputs[19]]["quantization"] = {"scale": [0.0], "zero_point": [0]}
    path.write_bytes(graph.program().data)
    with pytest.raises(CompileError, match=r"a cell of scale 0.0, expected a power of two"):
        TfliteWalk(find_function(load_model(path), "main")).run()


@pytest.mark.parametrize(("height", "width"), [(0, 2), ((1 << 31) - 1, 0), (-1, -1)])
def test_windows_without_elements_are_told(tmp_path: Path, height: int, width: int) -> None:
    path = tmp_path / "model.tflite"
    fields = {"stride_h": 1, "stride_w": 1, "filter_height": height, "filter_width": width}
    x: dict[str, Any] = {"type": "INT8", "shape": [1, 2, 2, 1]}
    x["quantization"] = {"scale": [1.0], "zero_point": [0]}
    path.write_bytes(_one_node("AVERAGE_POOL_2D", [x], builtin_options=("Pool2DOptions", fields)))
    with pytest.raises(CompileError, match=f"windows of {height} x {width}, expected positive"):
        TfliteWalk(find_function(load_model(path), "main")).run()


@pytest.mark.parametrize(
    ("name", "shape", "states", "told"),
    [
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", (2, 1, 3), [(), ()], "'matrix' of type tensor<f32>"),
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", (1, 3), [(1, 2)] * 2, "'sequence' of type tensor<1x3xf32"),
        ("UNIDIRECTIONAL_SEQUENCE_RNN", (2, 1, 3), [(2,)], "'matrix' of type tensor<2xf32>"),
        ("SVDF", (), [(1, 4)], "'matrix' of type tensor<f32>"),
    ],
)
def test_sequences_and_states_of_other_ranks_are_told(
    tmp_path: Path, name: str, shape: tuple[int, ...], states: list[tuple[int, ...]], told: str
) -> None:
    path = tmp_path / "model.tflite"
    given: list[Any] = [{**_floats(*state), "is_variable": True} for state in states]
    x = _floats(*shape)
    if len(states) == 1:
        inputs = [x, _floats(2, 3), _floats(2, 2), _floats(2), *given]
    else:
        weights: list[Any] = [_floats(*size) for size in [(2, 3)] * 4 + [(2, 2)] * 4]
        weights += [None, None, None, *(_floats(2) for _ in range(4))]
        inputs = [x, *weights, None, None, *given]
    path.write_bytes(_one_node(name, inputs))
    with pytest.raises(CompileError, match=told):
        TfliteWalk(find_function(load_model(path), "main")).run()


def test_a_loop_has_handles_of_variables(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_adding(assigns=True))
    calls = Calls(load_model(path))
    found = [float(np.asarray(calls({"x": np.array([x], np.float32)})["y"])[0]) for x in (2, 1, 7)]
    assert found == [6, 6, 6]
    calls.reset()
    assert np.asarray(calls({"x": np.array([4], np.float32)})["y"]).tolist() == [8]


def test_a_variable_that_nothing_assigns(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_adding(assigns=False))
    with pytest.raises(FrontendError, match=r"'total'.*nothing assigns it"):
        load_model(path)


def test_an_output_that_is_a_variable_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    seed = Seed("adding", "tflite", {"m.tflite": _adding(assigns=True)}, "m.tflite")
    tree = tree_of(seed, "m.tflite")
    assert tree is not None
    tree["subgraphs"][0]["outputs"] = [3, 4]
    path.write_bytes(flatbuffer("Model", tree))
    with pytest.raises(FrontendError, match="the output 'handle' is a variable"):
        load_model(path)


def _of_one(name: str, inputs: list[int], tensors: list[dict[str, Any]], outputs: int = 1) -> bytes:
    """A model of one operator, whose last tensor is the output."""
    last = len(tensors) - 1
    operator = {"opcode_index": 0, "inputs": inputs, "outputs": [last] * outputs}
    graph = {"tensors": tensors, "inputs": [0], "outputs": [last], "operators": [operator]}
    fields: dict[str, Any] = {
        "version": 3,
        "operator_codes": [{"builtin_code": name}],
        "subgraphs": [graph],
        "buffers": [{}, {"data": bytes([255, 2, 128, 3])}],
    }
    return flatbuffer("Model", fields)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "message"),
    [
        ("ASSIGN_VARIABLE", [0], 0, "1 inputs, expected 2"),
        ("IF", [], 1, "0 inputs, expected 1"),
        ("STABLEHLO_CASE", [], 1, "0 inputs, expected 1"),
        ("ADD", [0, 1], 1, "'huge' has a shape of"),
        ("ADD", [0, 2], 1, "'less' has a shape of"),
        ("ADD", [0, 3], 1, "'twice' has a shape of"),
    ],
)
def test_what_no_runtime_reads(
    tmp_path: Path, name: str, inputs: list[int], outputs: int, message: str
) -> None:
    number = {"type": "FLOAT32", "shape": [1], "name": "x"}
    huge = {**number, "name": "huge", "shape": [0, 1 << 30, 1 << 30]}
    less = {**number, "name": "less", "shape": [0, -3]}
    twice = {**number, "name": "twice", "shape": [-1, -1], "buffer": 1}
    path = tmp_path / "model.tflite"
    path.write_bytes(_of_one(name, inputs, [number, huge, less, twice, number], outputs))
    with pytest.raises(FrontendError, match=message):
        load_model(path)


@pytest.mark.parametrize("kind", ["INT8", "UINT8"])
@pytest.mark.parametrize("name", ["FULLY_CONNECTED", "EMBEDDING_LOOKUP"])
def test_weights_for_floats_are_signed_whatever_an_old_file_calls_them(
    tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / "model.tflite"
    scales = {"scale": [0.5], "zero_point": [0]}
    weights = {"type": kind, "shape": [1, 4], "buffer": 1, "quantization": scales}
    is_product = name == "FULLY_CONNECTED"
    x = (
        {**_floats(1, 4), "name": "x"}
        if is_product
        else {"type": "INT32", "shape": [1], "name": "x"}
    )
    path.write_bytes(_of_one(name, [0, 1], [x, weights, {**_floats(1, 1), "name": "y"}]))
    module = load_model(path)
    TfliteWalk(find_function(module, "main")).run()
    given = np.array([[127, 0, -127, 0]], np.float32) if is_product else np.zeros(1, np.int32)
    found = np.asarray(Calls(module)({"x": given})["y"]).tolist()
    assert found == ([[(127 * -1 + 127 * 128) / 2]] if is_product else [[-0.5, 1, -64, 1.5]])


@pytest.mark.parametrize(("kind", "zero"), [("UINT8", -1), ("INT8", 128), ("INT16", 1 << 15)])
def test_zero_points_outside_of_their_type_are_told(tmp_path: Path, kind: str, zero: int) -> None:
    path = tmp_path / "model.tflite"
    scales = {"scale": [0.5], "zero_point": [zero]}
    x = {"type": kind, "shape": [1], "name": "x", "quantization": scales}
    path.write_bytes(_of_one("DEQUANTIZE", [0], [x, {"type": "FLOAT32", "shape": [1]}]))
    with pytest.raises(FrontendError, match=f"'x' of {kind} with zero point {zero}"):
        load_model(path)


def damaged() -> Iterator[bytes]:
    """The file cut short, and with words that point elsewhere."""
    data = COUNTER.read_bytes()
    for size in range(8, len(data), 97):
        yield data[:size]
    for place in range(8, len(data) - 4, 20):
        for word in (0xFFFFFFFF, 0x7FFFFFF0, place):
            yield data[:place] + struct.pack("<I", word) + data[place + 4 :]


def test_damaged_files_end_in_a_message(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    outcomes: set[str] = set()
    for data in damaged():
        path.write_bytes(data)
        try:
            function = find_function(load_model(path), "main")
            TfliteWalk(function).run()
            outcomes.add("read")
        except (FrontendError, CompileError) as error:
            outcomes.add(type(error).__name__)
    assert {"read", "FrontendError"} <= outcomes


def test_options_of_custom_operators() -> None:
    # A map of one key "a" with the integer 5: keys, then values with their types.
    data = bytes([97, 0, 1, 3, 1, 1, 1, 5, 4, 2, 36, 1])
    assert read_map(data) == {"a": 5}

    def listed(kind: int, *values: int) -> dict[str, Any]:
        """A map of the key "a" with a list: its number, what lies in it, and the map behind it."""
        start = len(values) + 2
        keys, there = [1, start + 1], [1, 1, 1, start + 2, kind << 2]
        return read_map(bytes([97, 0, *values, *keys, *there, 2, 36, 1]))

    assert listed(11, 2, 1, 255) == {"a": [1, -1]}
    assert listed(12, 2, 1, 255) == {"a": [1, 255]}
    assert listed(36, 2, 1, 0) == {"a": [True, False]}
    assert listed(10, 2, 7, 1, 1 << 2, 26 << 2) == {"a": [7, True]}
    assert listed(10, 2, 7, 1, 1 << 2, 9 << 2) == {}
    assert listed(11, 0) == {"a": []}
    with pytest.raises(FlatbufferError, match="a list of 200 values"):
        listed(11, 200, 1, 2)
    with pytest.raises(FlatbufferError):
        read_map(b"\0\0")


def test_options_of_integers() -> None:
    """What is not there is not set, and what is behind them does not count."""
    table: Any = {"custom_options": np.array([1, 2, 3, 9], "<i4").view(np.uint8)}
    node = Node(0, CUSTOM, "Convolution2DTransposeBias", (), (), (), table)
    given = {"custom_code": "Convolution2DTransposeBias", "padding": 1}
    assert node.options() == {**given, "stride_w": 2, "stride_h": 3}
    table["custom_options"] = table["custom_options"][:7]
    assert node.options() == given


def test_options_of_unknown_custom_operators_are_bytes() -> None:
    """They are refused by their names, and not for the form of their options."""
    table: Any = {"custom_options": np.arange(12, dtype=np.uint8)}
    unknown = Node(0, CUSTOM, "AudioSpectrogram", (), (), (), table)
    assert unknown.options() == {"custom_code": "AudioSpectrogram"}
    with pytest.raises(FlatbufferError, match="expected a map"):
        Node(0, CUSTOM, "TFLite_Detection_PostProcess", (), (), (), table).options()
