"""Programs of PaddlePaddle: both forms, weights, mutable names, control flow, broken files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.passes.legalize.paddle.framework import PaddleWalk
from lowerdeck.passes.legalize.walk import LegalizationError

from .paddle_programs import (  # noqa: TID251
    array_type,
    array_variable,
    call,
    feed,
    fetch,
    floats,
    node,
    parameter,
    region,
    type_of,
    variable,
    write_pir,
    write_program,
)

X = floats([1, -2, 3], [4, 5, -6])


def _results(path: Path, inputs: Mapping[str, Any], **options: Any) -> dict[str, NDArray[Any]]:
    """What a program gives, as it is and legalized, which must be the same."""
    module = load_model(path, **options)
    found = Calls(module)(inputs)
    again = Calls(_legal(module))(inputs)
    for name, value in found.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(again[name]))
    return {name: np.asarray(value) for name, value in found.items()}


def _legal(module: ModuleOp) -> ModuleOp:
    copy = module.clone()
    (main,) = copy.body.block.ops
    assert isinstance(main, func.FuncOp)
    PaddleWalk(main).run()
    return copy


def _linear(path: Path) -> Path:
    variables = [
        variable("x", "float32", [-1, 3]),
        variable("b", "float32", [2], persistable=True),
        variable("a", "float32", [3, 2], persistable=True),
        *(variable(name, "float32", [-1, 2]) for name in ("m", "y")),
    ]
    calls = [
        feed("x", 0),
        call("mul", {"X": "x", "Y": "a"}, {"Out": "m"}, x_num_col_dims=1),
        call("elementwise_add", {"X": "m", "Y": "b"}, {"Out": "y"}, axis=1),
        fetch("y", 0),
    ]
    weights = {"b": floats(10, 20), "a": floats([1, 0], [0, 1], [1, 1])}
    return write_program(path, (variables, calls), weights=weights)


def test_weights_lie_in_the_order_of_their_names(tmp_path: Path) -> None:
    found = _results(_linear(tmp_path / "m.pdmodel"), {"x": X})
    assert found["y"].tolist() == [[14, 21], [8, 19]]


def test_weights_of_a_folder_lie_in_a_file_each(tmp_path: Path) -> None:
    from .paddle_programs import write_weights  # noqa: TID251

    _linear(tmp_path / "__model__")
    for name, array in {"b": floats(0, 0), "a": floats([1, 0], [0, 1], [0, 0])}.items():
        write_weights(tmp_path / name, {name: array})
    (tmp_path / "__model__.pdiparams").unlink(missing_ok=True)
    assert _results(tmp_path, {"x": X})["y"].tolist() == [[1, -2], [4, 5]]


@pytest.mark.parametrize("change", [b"", b"more", b"\0" * 2000])
def test_weights_of_another_length_are_refused(tmp_path: Path, change: bytes) -> None:
    path = _linear(tmp_path / "m.pdmodel")
    weights = path.with_suffix(".pdiparams")
    weights.write_bytes((weights.read_bytes() + change) if change else b"")
    with pytest.raises(FrontendError, match=r"weights|begins no tensor"):
        load_model(path)


def test_a_name_that_is_written_twice_is_two_values(tmp_path: Path) -> None:
    names = [variable(name, "float32", [2, 3]) for name in ("x", "y")]
    calls = [
        feed("x", 0),
        call("scale", {"X": "x"}, {"Out": "y"}, scale=2.0, bias=0.0, bias_after_scale=True),
        call("scale", {"X": "x"}, {"Out": "x"}, scale=1.0, bias=1.0, bias_after_scale=True),
        call("elementwise_add", {"X": "x", "Y": "y"}, {"Out": "y"}, axis=-1),
        fetch("y", 0),
    ]
    path = write_program(tmp_path / "m.pdmodel", (names, calls))
    assert _results(path, {"x": X})["y"].tolist() == (3 * X + 1).tolist()


def test_a_while_carries_what_its_block_writes(tmp_path: Path) -> None:
    names = [
        variable("n", "int64", [1]),
        variable("x", "float32", [2, 3]),
        variable("zero", "int64", [1]),
        variable("on", "bool", [1]),
    ]
    calls = [
        feed("x", 0),
        feed("n", 1),
        call("fill_constant", {}, {"Out": "zero"}, shape=[1], value=0.0, dtype=3),
        call("greater_than", {"X": "n", "Y": "zero"}, {"Out": "on"}, axis=-1),
        call(
            "while",
            {"X": ["n", "x"], "Condition": "on"},
            {"Out": ["n", "x", "on"], "StepScopes": []},
            sub_block=1,
        ),
        fetch("x", 0),
    ]
    body = [
        call("increment", {"X": "n"}, {"Out": "n"}, step=-1.0),
        call("scale", {"X": "x"}, {"Out": "t"}, scale=2.0, bias=0.0, bias_after_scale=True),
        call("assign", {"X": "t"}, {"Out": "x"}),
        call("greater_than", {"X": "n", "Y": "zero"}, {"Out": "on"}, axis=-1),
    ]
    inner = [variable("t", "float32", [2, 3])]
    path = write_program(tmp_path / "m.pdmodel", (names, calls), (inner, body))
    for trips in (0, 3):
        found = _results(path, {"x": X, "n": np.array([trips], np.int64)})
        assert found["x"].tolist() == (X * 2**trips).tolist()


def test_branches_and_a_choice_are_an_if(tmp_path: Path) -> None:
    names = [variable(name, "float32", [2, 3]) for name in ("x", "a", "b", "y")]
    names += [variable(name, "bool", [1]) for name in ("on", "off")]
    names += [variable("mask", "int32", [1])]
    scaled = {"bias": 0.0, "bias_after_scale": True}
    calls = [
        feed("x", 0),
        feed("on", 1),
        call("conditional_block", {"Cond": "on", "Input": "x"}, {"Out": "a"}, sub_block=1),
        call("logical_not", {"X": "on"}, {"Out": "off"}),
        call("conditional_block", {"Cond": "off", "Input": "x"}, {"Out": "b"}, sub_block=2),
        call("cast", {"X": "on"}, {"Out": "mask"}, in_dtype=0, out_dtype=2),
        call("select_input", {"X": ["b", "a"], "Mask": "mask"}, {"Out": "y"}),
        fetch("y", 0),
    ]
    one = [call("scale", {"X": "x"}, {"Out": "a"}, scale=3.0, **scaled)]
    other = [call("scale", {"X": "x"}, {"Out": "b"}, scale=-1.0, **scaled)]
    path = write_program(tmp_path / "m.pdmodel", (names, calls), ([], one), ([], other))
    for on, factor in ((True, 3), (False, -1)):
        found = _results(path, {"x": X, "on": np.array([on])})
        assert found["y"].tolist() == (X * factor).tolist()


def test_what_a_branch_may_not_write_is_not_read(tmp_path: Path) -> None:
    names = [variable("x", "float32", [2, 3]), variable("on", "bool", [1])]
    names += [variable("y", "float32", [2, 3])]
    calls = [
        feed("x", 0),
        feed("on", 1),
        call("conditional_block", {"Cond": "on", "Input": "x"}, {"Out": "y"}, sub_block=1),
        call("relu", {"X": "y"}, {"Out": "x"}),
        fetch("x", 0),
    ]
    body = [call("assign", {"X": "x"}, {"Out": "y"})]
    path = write_program(tmp_path / "m.pdmodel", (names, calls), ([], body))
    with pytest.raises(FrontendError, match=r"node 'x' \(relu\).*'y'"):
        load_model(path)


def test_scalars_of_old_versions_have_a_dimension(tmp_path: Path) -> None:
    names = [variable("x", "float32", [2, 3]), variable("y", "float32", [1])]
    calls = [feed("x", 0), call("mean", {"X": "x"}, {"Out": "y"}), fetch("y", 0)]
    for version, shape in ((2004000, (1,)), (2006000, ())):
        path = write_program(tmp_path / "m.pdmodel", (names, calls), version=version)
        assert _results(path, {"x": X})["y"].shape == shape


def test_moments_of_old_versions_that_nothing_reads(tmp_path: Path) -> None:
    """They are not computed, although they have one element."""
    names = [variable(name, "float32", [1, 3]) for name in ("x", "y")]
    names += [variable(name, "float32", [1]) for name in ("mean", "variance")]
    outputs = {"Mean": "mean", "Variance": "variance", "Y": "y"}
    norm = call("layer_norm", {"X": "x"}, outputs, begin_norm_axis=1, epsilon=1e-5)
    calls = [feed("x", 0), norm, fetch("y", 0)]
    path = write_program(tmp_path / "m.pdmodel", (names, calls), version=2004000)
    found = _results(path, {"x": floats([1, 2, 3])})["y"]
    np.testing.assert_allclose(found, floats([-1.2247, 0, 1.2247]), atol=1e-4)


def _pir_loop(path: Path) -> Path:
    row, number, on = type_of("float32", [-1, 3]), type_of("int64", []), type_of("bool", [])
    loop = [
        node("1.add", [-2, 3], {10: row}),
        node("1.full", [], {11: number}, shape=[], value=1.0, dtype="int64"),
        node("1.subtract", [-1, 11], {12: number}),
        node("1.greater_than", [12, 5], {13: on}),
        node("2.yield", [13, 12, 10], {}),
    ]
    nodes = [
        parameter("w", 3, type_of("float32", [3])),
        node("1.data", [], {1: row}, name="x", shape=[-1, 3], dtype="float32"),
        node("1.data", [], {2: number}, name="n", shape=[], dtype="int64"),
        node("1.full", [], {5: number}, shape=[], value=0.0, dtype="int64"),
        node("1.greater_than", [2, 5], {6: on}),
        node("1.while", [6, 2, 1], {7: number, 8: row}, region(loop, {-1: number, -2: row})),
        node(
            "1.if",
            [6],
            {20: row},
            region([node("2.yield", [8], {})]),
            region([node("1.relu", [8], {21: row}), node("2.yield", [21], {})]),
        ),
        node("1.fetch", [20], {22: row}, name="y", col=0),
    ]
    return write_pir(path, nodes, {"w": floats(1, 2, 3)})


def test_control_flow_of_pir(tmp_path: Path) -> None:
    path = _pir_loop(tmp_path / "m.json")
    for trips in (0, 2):
        found = _results(path, {"x": X, "n": np.array(trips, np.int64)})
        expected = X + 2 * floats(1, 2, 3) if trips else np.maximum(X, 0)
        assert found["y"].tolist() == expected.tolist()


def test_who_reads_later_sees_what_is_written_in_place(tmp_path: Path) -> None:
    """Also from inside of a loop and of a branch, and under the name of what was written over."""
    row, number, on = type_of("float32", [2, 3]), type_of("int64", []), type_of("bool", [])
    loop = [
        node("1.add_", [3, 1], {10: row}),
        node("1.full", [], {11: number}, shape=[], value=1.0, dtype="int64"),
        node("1.subtract", [-1, 11], {12: number}),
        node("1.greater_than", [12, 5], {13: on}),
        node("2.yield", [13, 12], {}),
    ]
    branch = [node("1.relu_", [3], {15: row}), node("1.exp", [3], {16: row})]
    nodes = [
        node("1.data", [], {1: row}, name="x", shape=[2, 3], dtype="float32"),
        node("1.data", [], {2: number}, name="n", shape=[], dtype="int64"),
        node("1.add", [1, 1], {30: row}),
        node("1.abs", [30], {3: row}),
        node("1.full", [], {5: number}, shape=[], value=0.0, dtype="int64"),
        node("1.greater_than", [2, 5], {6: on}),
        node("1.while", [6, 2], {7: number}, region(loop, {-1: number})),
        node(
            "1.if",
            [6],
            {20: row},
            region([*branch, node("2.yield", [16], {})]),
            region([node("2.yield", [3], {})]),
        ),
        node("1.add_", [3, 1], {21: row}),
        node("1.full", [], {24: number}, shape=[1], value=-1.0, dtype="float32"),
        node("1.scale_", [21, 24], {23: row}, bias=0.0, bias_after_scale=True),
        node("1.fetch", [3], {22: row}, name="y", col=0),
    ]
    path = write_pir(tmp_path / "m.json", nodes)
    for trips in (0, 2):
        found = _results(path, {"x": X, "n": np.array(trips, np.int64)})
        sums = np.abs(X + X) + trips * X
        expected = -((np.maximum(sums, 0) if trips else sums) + X)
        assert found["y"].tolist() == expected.tolist()


def test_an_array_of_pir_grows_in_a_loop_that_does_not_carry_it(tmp_path: Path) -> None:
    row, number, on = type_of("float32", [2, 3]), type_of("int64", [1]), type_of("bool", [1])
    array = array_type("float32")
    loop = [
        node("1.array_read", [4, -1], {10: row}),
        node("1.add", [10, 1], {11: row}),
        node("1.full", [], {12: number}, shape=[1], value=1.0, dtype="int64"),
        node("1.add", [-1, 12], {13: number}),
        node("1.array_write_", [4, 11, 13], {14: array}),
        node("1.less_than", [13, 2], {15: on}),
        node("2.yield", [15, 13], {}),
    ]
    nodes = [
        node("1.data", [], {1: row}, name="x", shape=[2, 3], dtype="float32"),
        node("1.data", [], {2: number}, name="n", shape=[1], dtype="int64"),
        node("1.full", [], {3: number}, shape=[1], value=0.0, dtype="int64"),
        node("1.create_array", [], {4: array}, dtype="float32"),
        node("1.array_write_", [4, 1, 3], {5: array}),
        node("1.less_than", [3, 2], {6: on}),
        node("1.while", [6, 3], {7: number}, region(loop, {-1: number})),
        node("1.array_to_tensor", [4], {8: row, 9: number}, axis=1, use_stack=True),
        node("1.array_length", [4], {16: number}),
        node("1.fetch", [8], {20: row}, name="y", col=0),
        node("1.fetch", [16], {21: number}, name="count", col=1),
    ]
    path = write_pir(tmp_path / "m.json", nodes)
    for trips in (0, 3):
        found = _results(path, {"x": X, "n": np.array([trips], np.int64)})
        expected = np.stack([X * k for k in range(1, trips + 2)], 1)
        assert found["y"].tolist() == expected.tolist()
        assert found["count"].tolist() == [trips + 1]


def test_an_array_of_a_program_is_first_written_in_a_loop(tmp_path: Path) -> None:
    names = [variable(name, "int64", [1]) for name in ("n", "i", "count")]
    names += [variable("x", "float32", [2, 3]), variable("y", "float32", [2, 3])]
    names += [array_variable("a", "float32"), variable("on", "bool", [1])]
    calls = [
        feed("x", 0),
        feed("n", 1),
        call("fill_constant", {}, {"Out": "i"}, shape=[1], value=0.0, dtype=3),
        call("less_than", {"X": "i", "Y": "n"}, {"Out": "on"}, axis=-1),
        call(
            "while",
            {"X": ["n", "x", "i"], "Condition": "on"},
            {"Out": ["i", "a", "x", "on"], "StepScopes": []},
            sub_block=1,
        ),
        call("lod_array_length", {"X": "a"}, {"Out": "count"}),
        call("increment", {"X": "i"}, {"Out": "i"}, step=-1.0),
        call("read_from_array", {"X": "a", "I": "i"}, {"Out": "y"}),
        fetch("y", 0),
        fetch("count", 1),
    ]
    body = [
        call("write_to_array", {"X": "x", "I": "i"}, {"Out": "a"}),
        call("scale", {"X": "x"}, {"Out": "x"}, scale=2.0, bias=0.0, bias_after_scale=True),
        call("increment", {"X": "i"}, {"Out": "i"}, step=1.0),
        call("less_than", {"X": "i", "Y": "n"}, {"Out": "on"}, axis=-1),
    ]
    path = write_program(tmp_path / "m.pdmodel", (names, calls), ([], body))
    for trips in (1, 3):
        found = _results(path, {"x": X, "n": np.array([trips], np.int64)})
        assert found["y"].tolist() == (X * 2 ** (trips - 1)).tolist()
        assert found["count"].tolist() == [trips]


def test_a_window_wider_than_the_image_by_less_than_a_stride_has_one_place(
    tmp_path: Path,
) -> None:
    image = type_of("float32", [1, 1, 2, 3])
    window = {"strides": [2, 2], "paddings": [0, 0], "padding_algorithm": "EXPLICIT"}
    pool = {**window, "ceil_mode": False, "exclusive": False, "data_format": "NCHW"}
    pool |= {"global_pooling": False, "adaptive": False}
    columns = {"kernel_sizes": [3, 3], "strides": [2, 2], "paddings": [0, 0], "dilations": [1, 1]}
    turned = {**window, "strides": [5, 4], "dilations": [1, 1], "groups": 1}
    same = {"padding_algorithm": "SAME", "pooling_type": "avg"}
    one = type_of("float32", [1, 1, 1, 1])
    nodes = [
        parameter("w", 2, type_of("float32", [1, 1, 3, 3])),
        node("1.data", [], {1: image}, name="x", shape=[1, 1, 2, 3], dtype="float32"),
        node("1.conv2d", [1, 2], {3: one}, **window, dilations=[1, 1], groups=1),
        node("1.full_int_array", [], {4: type_of("int64", [2])}, value=[3, 3], dtype="int64"),
        node("1.full_int_array", [], {10: type_of("int64", [2])}, value=[2, 2], dtype="int64"),
        node("1.pool2d", [1, 4], {5: one}, **pool, pooling_type="max"),
        node("1.pool2d", [1, 4], {6: one}, **pool, pooling_type="avg"),
        node("1.unfold", [1], {7: one}, **columns),
        # Where the stride is longer than the window, a transposed one keeps its size.
        node("1.conv2d_transpose", [1, 2], {8: one}, **turned),
        # Padding at the end counts where there is as much at the beginning.
        node("1.pool2d", [1, 10], {9: one}, **(pool | same)),
        *(
            node("1.fetch", [k], {20 + k: one}, name=name, col=k)
            for k, name in (
                (3, "conv"),
                (5, "max"),
                (6, "mean"),
                (7, "columns"),
                (8, "transposed"),
                (9, "same"),
            )
        ),
    ]
    path = write_pir(tmp_path / "m.json", nodes, {"w": np.ones((1, 1, 3, 3), np.float32)})
    found = _results(path, {"x": X.reshape(1, 1, 2, 3)})
    assert found["transposed"].shape == (1, 1, 8, 11)
    np.testing.assert_allclose(found["same"], floats([[[2, -1.5]]]), rtol=1e-6)
    assert found["conv"].tolist() == [[[[X.sum()]]]]
    assert found["max"].tolist() == [[[[5]]]]
    np.testing.assert_allclose(found["mean"], [[[[X.mean()]]]], rtol=1e-6)
    assert found["columns"].reshape(-1).tolist() == [*X.reshape(-1), 0, 0, 0]


def test_a_window_of_too_few_numbers_is_refused(tmp_path: Path) -> None:
    variables = [variable("x", "float32", [1, 1, 4, 4]), variable("y", "float32", [1, 1, 2, 2])]
    variables.append(variable("w", "float32", [1, 1, 3, 3], persistable=True))
    given: dict[str, Any] = {"strides": [1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1}
    conv = call("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}, **given)
    weights = {"w": np.ones((1, 1, 3, 3), np.float32)}
    calls = [feed("x", 0), conv, fetch("y", 0)]
    path = write_program(tmp_path / "m.pdmodel", (variables, calls), weights=weights)
    with pytest.raises(LegalizationError, match="as many of each"):
        _legal(load_model(path))


def test_functions_at_the_ends_of_their_domains(tmp_path: Path) -> None:
    x = floats(-2, -1, 0, 1, 2, np.nan)
    row = type_of("float32", [6])
    nodes = [
        node("1.data", [], {1: row}, name="x", shape=[6], dtype="float32"),
        node("1.erfinv", [1], {2: row}),
        node("1.digamma", [1], {3: row}),
        node("1.fetch", [2], {4: row}, name="erfinv", col=0),
        node("1.fetch", [3], {5: row}, name="digamma", col=1),
    ]
    path = write_pir(tmp_path / "m.json", nodes)
    found = _results(path, {"x": x})
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(found["erfinv"], floats(-inf, -inf, 0, inf, inf, nan))
    np.testing.assert_array_equal(found["digamma"][:3], floats(nan, nan, -inf))
    assert _results(path, {"x": np.full(6, -0.0, np.float32)})["digamma"].tolist() == [inf] * 6


def test_digamma_of_zero_is_nan_in_a_program(tmp_path: Path) -> None:
    variables = [variable(name, "float32", [3]) for name in "xy"]
    calls = [feed("x", 0), call("digamma", {"X": "x"}, {"Out": "y"}), fetch("y", 0)]
    path = write_program(tmp_path / "m.pdmodel", (variables, calls))
    found = _results(path, {"x": floats(0, -0.0, 1)})["y"]
    np.testing.assert_allclose(found, floats(np.nan, np.nan, -0.5772157), 1e-6)


def test_a_bias_of_zero_makes_zero_of_negative_zero(tmp_path: Path) -> None:
    row = type_of("float32", [2])
    nodes = [
        node("1.data", [], {1: row}, name="x", shape=[2], dtype="float32"),
        node("1.full", [], {2: type_of("float32", [1])}, shape=[1], value=1.0, dtype="float32"),
        *(
            node("1.scale", [1, 2], {number: row}, bias=0.0, bias_after_scale=True)
            for number in (3, 4)
        ),
        node("1.reciprocal", [3], {5: row}),
        node("1.softmax", [4], {6: row}, axis=0),
        node("1.fetch", [5], {7: row}, name="y", col=0),
        node("1.fetch", [6], {8: row}, name="z", col=1),
    ]
    module = _legal(load_model(write_pir(tmp_path / "m.json", nodes)))
    # Only one of the two is read by what tells the zeros apart.
    assert sum(isinstance(op, AddOp) for op in module.walk()) == 1
    found = Calls(module)({"x": floats(0, -0.0)})["y"]
    assert np.asarray(found).tolist() == [np.inf, np.inf]


def test_a_dimension_that_stays_has_neighbors_of_weight_zero(tmp_path: Path) -> None:
    before, after = type_of("float32", [1, 1, 2, 3]), type_of("float32", [1, 1, 4, 3])
    sizes: dict[str, Any] = {"out_d": -1, "out_h": 4, "out_w": 3, "scale": [], "align_mode": 0}
    nodes = [
        node("1.data", [], {1: before}, name="x", shape=[1, 1, 2, 3], dtype="float32"),
        node("1.bilinear_interp", [1], {2: after}, align_corners=True, **sizes),
        node("1.fetch", [2], {3: after}, name="y", col=0),
    ]
    x = floats(1, np.nan, 3, 4, 5, 6).reshape(1, 1, 2, 3)
    found = _results(write_pir(tmp_path / "m.json", nodes), {"x": x})["y"][0, 0]
    # Every row has a part of the upper one, of weight zero at the end.
    assert np.isnan(found).tolist() == [[True, True, False]] * 3 + [[False, False, False]]
    nodes[1] = node("1.bilinear_interp", [1], {2: before}, **{**sizes, "out_h": 2})
    same = _results(write_pir(tmp_path / "m.json", nodes), {"x": x})["y"]
    np.testing.assert_array_equal(same, x)


_WINDOWS = {
    "kernel_sizes": [2, 1 << 20],
    "strides": [1, 1],
    "paddings": [0] * 4,
    "dilations": [1, 1],
}


@pytest.mark.parametrize(
    ("operator", "inputs", "given", "message"),
    [
        ("argmax", [1, 2], {"flatten": False, "keepdims": False}, "no elements to choose among"),
        ("unfold", [3], _WINDOWS, "windows of [2, 1048576]"),
        ("concat", [4, 2], {}, "no operands"),
        ("pool2d", [3, 5], {"adaptive": True, "pooling_type": "avg"}, "pool of (0, 2) windows"),
        ("prior_box", [1, 3], {}, "'input' of 2 dimensions"),
        ("expand", [3, 5], {}, "2 sizes for 4 dimensions"),
        ("deformable_conv", [3, 3, 3], {**_WINDOWS, "strides": [1] * 3}, "3 numbers as 'strides'"),
        (
            "prior_box",
            [3, 3],
            {"min_sizes": [4.0], "max_sizes": [8.0] * 2},
            "2 largest sizes for 1",
        ),
        ("affine_grid", [8, 5], {}, "2 sizes"),
        (
            "max_pool2d_with_index",
            [3],
            {"adaptive": True, "kernel_size": [2]},
            "1 numbers of windows",
        ),
        ("set_value", [3, 5, 5, 5], {"axes": [0], "values": [1.0]}, "2 numbers as 'starts'"),
        ("yolo_box", [3, 1], {"anchors": [1, 2, 3]}, "3 numbers as 'anchors'"),
        ("conv2d_transpose", [3, 3], {**_WINDOWS, "paddings": [0]}, "1 paddings for 2"),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    operator: str, inputs: list[int], given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    empty, image = type_of("float32", [0, 2]), type_of("float32", [1, 1, 4, 4])
    cube = type_of("float32", [1, 2, 3])
    nodes = [
        node("1.data", [], {1: empty}, name="x", shape=[0, 2], dtype="float32"),
        node("1.full", [], {2: type_of("int64", [1])}, shape=[1], value=0.0, dtype="int64"),
        node("1.data", [], {3: image}, name="y", shape=[1, 1, 4, 4], dtype="float32"),
        node("0.combine", [], {4: image}),
        node("1.full_int_array", [], {5: type_of("int64", [2])}, value=[0, 2], dtype="int64"),
        node("1.data", [], {8: cube}, name="t", shape=[1, 2, 3], dtype="float32"),
        node(f"1.{operator}", inputs, {6: image}, **given),
        node("1.fetch", [6], {7: image}, name="z", col=0),
    ]
    with pytest.raises(LegalizationError, match=re.escape(message)):
        _legal(load_model(write_pir(tmp_path / "m.json", nodes)))


def test_any_tensor_may_be_the_output(tmp_path: Path) -> None:
    found = _results(_linear(tmp_path / "m.pdmodel"), {"x": X}, outputs=["m"])
    assert found["m"].tolist() == [[4, 1], [-2, -1]]
    with pytest.raises(FrontendError, match="no tensor is named 'z'"):
        load_model(tmp_path / "m.pdmodel", outputs=["z"])


def test_all_unknown_operators_are_named(tmp_path: Path) -> None:
    names = [variable(name, "float32", [2]) for name in ("x", "y", "z")]
    calls = [
        feed("x", 0),
        call("sequence_pool", {"X": "x"}, {"Out": "y"}),
        call("no_such", {"X": "y"}, {"Out": "z"}),
        fetch("z", 0),
    ]
    with pytest.raises(FrontendError) as error:
        load_model(write_program(tmp_path / "m.pdmodel", (names, calls)))
    assert "(sequence_pool)" in str(error.value)
    assert "(no_such)" in str(error.value)


def test_refusals_name_the_operator_as_the_file_does(tmp_path: Path) -> None:
    names = [variable(name, "float32", [2]) for name in ("x", "y")]
    calls = [feed("x", 0), call("dropout", {"X": "x"}, {"Out": "y"}, is_test=False)]
    module = load_model(write_program(tmp_path / "m.pdmodel", (names, [*calls, fetch("y", 0)])))
    with pytest.raises(LegalizationError, match=r"'y' \(dropout\): found random numbers"):
        _legal(module)


@pytest.mark.parametrize(
    "text",
    ['{"base_code":{"magic":"pir","version":9}}', '{"base_code":{}', '{"base_code":{"magic":1}}'],
)
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(FrontendError, match="the program is broken"):
        load_model(path)


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-x))


def _gru(x: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any], keeps: bool) -> NDArray[Any]:
    """The rows of PaddlePaddle's `gru`."""
    hidden = len(weight)
    flat = weight.reshape(-1)
    gates = flat[: 2 * hidden * hidden].reshape(hidden, 2 * hidden)
    candidate = flat[2 * hidden * hidden :].reshape(hidden, hidden)
    state, found = np.zeros(hidden), list[NDArray[Any]]()
    for row in x + bias:
        u, r = np.split(_sigmoid(row[: 2 * hidden] + state @ gates), 2)
        c = np.tanh(row[2 * hidden :] + (r * state) @ candidate)
        state = u * state + (1 - u) * c if keeps else (1 - u) * state + u * c
        found.append(state)
    return np.array(found)


def _lstm(x: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any]) -> list[NDArray[Any]]:
    """The rows of outputs and memories of PaddlePaddle's `lstm` with peepholes."""
    hidden = len(weight)
    looks = np.split(bias[0, 4 * hidden :], 3)
    state, memory = np.zeros(hidden), np.zeros(hidden)
    found: list[list[NDArray[Any]]] = [[], []]
    for row in x + bias[:, : 4 * hidden]:
        c, i, f, o = np.split(row + state @ weight, 4)
        memory = np.tanh(c) * _sigmoid(i + memory * looks[0]) + memory * _sigmoid(
            f + memory * looks[1]
        )
        state = _sigmoid(o + memory * looks[2]) * np.tanh(memory)
        found[0].append(state)
        found[1].append(memory)
    return [np.array(rows) for rows in found]


def _path(scores: NDArray[Any], table: NDArray[Any]) -> list[int]:
    """The best of all paths."""
    count = scores.shape[1]

    def total(path: tuple[int, ...]) -> float:
        moves = sum(table[2 + a, b] for a, b in itertools.pairwise(path))
        inner = sum(scores[k, state] for k, state in enumerate(path))
        return float(table[0, path[0]] + table[1, path[-1]] + moves + inner)

    return list(max(itertools.product(range(count), repeat=len(scores)), key=total))


def test_cells_over_rows_and_the_likeliest_path(tmp_path: Path) -> None:
    random, hidden, labels = np.random.default_rng(0), 3, 4
    sizes = {
        "gw": (hidden, 3 * hidden),
        "gb": (1, 3 * hidden),
        "lw": (hidden, 4 * hidden),
        "lb": (1, 7 * hidden),
        "t": (labels + 2, labels),
    }
    weights = {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    inputs = {"xg": 3 * hidden, "xl": 4 * hidden, "e": labels}
    results = ("gru", "kept", "back", "out", "cell")
    variables = [variable(name, "float32", [-1, width]) for name, width in inputs.items()]
    variables += [variable(name, "float32", sizes[name], persistable=True) for name in sizes]
    variables += [variable(name, "float32", [-1, hidden]) for name in results]
    variables.append(variable("path", "int64", [-1, 1]))
    slots = {"Input": "xg", "Weight": "gw", "Bias": "gb"}
    calls = [feed(name, k) for k, name in enumerate(inputs)]
    calls += [
        call("gru", slots, {"Hidden": "gru"}),
        call("gru", slots, {"Hidden": "kept"}, origin_mode=True),
        call("gru", slots, {"Hidden": "back"}, is_reverse=True),
        call(
            "lstm",
            {"Input": "xl", "Weight": "lw", "Bias": "lb"},
            {"Hidden": "out", "Cell": "cell"},
            use_peepholes=True,
        ),
        call("crf_decoding", {"Emission": "e", "Transition": "t"}, {"ViterbiPath": "path"}),
    ]
    calls += [fetch(name, k) for k, name in enumerate((*results, "path"))]
    path = write_program(tmp_path / "m.pdmodel", (variables, calls), weights=weights)
    for count in (1, 5):
        given = {
            name: random.normal(size=(count, width)).astype(np.float32)
            for name, width in inputs.items()
        }
        found = Calls(_legal(load_model(path)))(given)
        gru = weights["gw"], weights["gb"]
        expected = {
            "gru": _gru(given["xg"], *gru, False),
            "kept": _gru(given["xg"], *gru, True),
            "back": _gru(given["xg"][::-1], *gru, False)[::-1],
        }
        expected["out"], expected["cell"] = _lstm(given["xl"], weights["lw"], weights["lb"])
        for name, value in expected.items():
            np.testing.assert_allclose(np.asarray(found[name]), value, 1e-5, 1e-6, err_msg=name)
        labels_found = np.asarray(found["path"]).reshape(-1).tolist()
        assert labels_found == _path(given["e"], weights["t"])


def test_weights_over_their_largest_singular_value(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes: dict[str, list[int]] = {"w": [2, 3, 4], "u": [3], "v": [8]}
    given = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    cube = type_of("float32", shapes["w"])
    nodes = [
        *(
            node("1.data", [], {k: type_of("float32", s)}, name=n, shape=s, dtype="float32")
            for k, (n, s) in enumerate(shapes.items(), 1)
        ),
        node("1.spectral_norm", [1, 2, 3], {4: cube}, dim=1, power_iters=40, eps=1e-12),
        node("1.fetch", [4], {5: cube}, name="y", col=0),
    ]
    found = _results(write_pir(tmp_path / "m.json", nodes), given)["y"]
    largest = np.linalg.svd(given["w"].transpose(1, 0, 2).reshape(3, 8))[1][0]
    np.testing.assert_allclose(found, given["w"] / largest, 1e-4)


def test_one_element_of_a_row_is_the_first_or_in_the_middle(tmp_path: Path) -> None:
    before, after = type_of("float32", [1, 1, 5]), type_of("float32", [1, 1, 1])
    sizes: dict[str, Any] = {"out_d": -1, "out_h": -1, "out_w": 1, "align_mode": 0}
    nodes = [
        node("1.data", [], {1: before}, name="x", shape=[1, 1, 5], dtype="float32"),
        node("1.linear_interp", [1], {2: after}, align_corners=False, scale=[], **sizes),
        node("1.fetch", [2], {3: after}, name="y", col=0),
    ]
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    assert _results(write_pir(tmp_path / "m.json", nodes), {"x": x})["y"] == [[[2]]]
    variables = [variable("x", "float32", [1, 1, 5]), variable("y", "float32", [1, 1, 1])]
    resized = call("linear_interp_v2", {"X": "x"}, {"Out": "y"}, align_corners=False, **sizes)
    path = write_program(
        tmp_path / "m.pdmodel", (variables, [feed("x", 0), resized, fetch("y", 0)])
    )
    assert _results(path, {"x": x})["y"] == [[[0]]]


def test_a_volume_is_resized_by_its_nearest_elements(tmp_path: Path) -> None:
    before, after = type_of("float32", [1, 1, 1, 1, 2]), type_of("float32", [1, 1, 1, 1, 4])
    sizes: dict[str, Any] = {"out_d": 1, "out_h": 1, "out_w": 4, "scale": []}
    nodes = [
        node("1.data", [], {1: before}, name="x", shape=[1, 1, 1, 1, 2], dtype="float32"),
        node("1.nearest_interp", [1], {2: after}, align_corners=False, align_mode=1, **sizes),
        node("1.fetch", [2], {3: after}, name="y", col=0),
    ]
    found = _results(write_pir(tmp_path / "m.json", nodes), {"x": floats([[[[1, 2]]]])})["y"]
    assert found.reshape(-1).tolist() == [1, 1, 2, 2]


def test_a_copy_of_nothing_is_refused(tmp_path: Path) -> None:
    variables = [variable(name, "float32", [2]) for name in "xy"]
    calls = [feed("x", 0), call("assign", {}, {"Out": "y"}), fetch("y", 0)]
    path = write_program(tmp_path / "m.pdmodel", (variables, calls))
    with pytest.raises(LegalizationError, match="'x'"):
        _legal(load_model(path))


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_a_scale_that_is_no_number_is_refused(scale: float, tmp_path: Path) -> None:
    row = type_of("float32", [1, 1, 2])
    sizes: dict[str, Any] = {"out_d": -1, "out_h": -1, "out_w": -1, "scale": [scale]}
    nodes = [
        node("1.data", [], {1: row}, name="x", shape=[1, 1, 2], dtype="float32"),
        node("1.linear_interp", [1], {2: row}, align_corners=False, **sizes),
        node("1.fetch", [2], {3: row}, name="y", col=0),
    ]
    with pytest.raises(LegalizationError, match="expected a positive number"):
        _legal(load_model(write_pir(tmp_path / "m.json", nodes)))


def test_a_number_of_no_elements_is_refused(tmp_path: Path) -> None:
    number, none = type_of("float32", [1]), type_of("int32", [0])
    row = type_of("float32", [3])
    nodes = [
        node("1.data", [], {1: number}, name="x", shape=[1], dtype="float32"),
        node("1.full_int_array", [], {2: none}, value=[], dtype="int32"),
        node("1.linspace", [1, 1, 2], {3: row}, dtype="float32"),
        node("1.fetch", [3], {4: row}, name="y", col=0),
    ]
    with pytest.raises(LegalizationError, match="is empty, expected a number"):
        _legal(load_model(write_pir(tmp_path / "m.json", nodes)))


def test_an_empty_size_of_a_transposed_convolution_is_none(tmp_path: Path) -> None:
    image, large = type_of("float32", [1, 1, 2, 2]), type_of("float32", [1, 1, 3, 3])
    windows = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1]}
    nodes = [
        node("1.data", [], {1: image}, name="x", shape=[1, 1, 2, 2], dtype="float32"),
        node("1.full_int_array", [], {2: type_of("int64", [0])}, value=[], dtype="int64"),
        node("1.conv2d_transpose", [1, 1, 2], {3: large}, **windows),
        node("1.fetch", [3], {4: large}, name="y", col=0),
    ]
    found = _results(write_pir(tmp_path / "m.json", nodes), {"x": floats([[[1, 2], [3, 4]]])})["y"]
    assert found.reshape(3, 3).tolist() == [[1, 4, 4], [6, 20, 16], [9, 24, 16]]


@pytest.mark.parametrize("right", [False, True])
def test_what_is_infinite_is_searched_behind_the_end(right: bool, tmp_path: Path) -> None:
    row, places = type_of("float32", [4]), type_of("int64", [4])
    nodes = [
        *(
            node("1.data", [], {number: row}, name=name, shape=[4], dtype="float32")
            for number, name in enumerate("sx", 1)
        ),
        node("1.searchsorted", [1, 2], {3: places}, out_int32=False, right=right),
        node("1.fetch", [3], {4: places}, name="y", col=0),
    ]
    given = {"s": floats(-1, 0, 0.5, np.inf), "x": floats(-np.inf, np.inf, np.nan, 0.5)}
    found = _results(write_pir(tmp_path / "m.json", nodes), given)["y"]
    assert found.tolist() == [4, 4, 4, 2 + right]
