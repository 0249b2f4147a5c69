"""MXNet: symbols of all versions, weights in all forms, and what is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.constant import constant_array
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import facts_of, load_model
from lowerdeck.frontends.detect import detect_format
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.mxnet.weights import read_weights
from lowerdeck.passes.legalize.mxnet.framework import MxnetWalk
from lowerdeck.passes.legalize.walk import LegalizationError

from .mxnet_symbols import (  # noqa: TID251
    V1,
    V2,
    V3,
    Array,
    dense,
    node,
    sparse,
    variable,
    write_symbol,
    write_weights,
)

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
SHAPE = {"__shape__": "(2, 3)"}


def _legal(module: ModuleOp) -> ModuleOp:
    (main,) = module.body.block.ops
    assert isinstance(main, func.FuncOp)
    MxnetWalk(main).run()
    return module


def _results(path: Path, inputs: dict[str, Array], **options: Any) -> dict[str, Array]:
    """What the interpreter gives for the module as it is imported, and legalized."""
    module = load_model(path, **options)
    found = [Calls(each)(inputs) for each in (module.clone(), _legal(module))]
    for name, value in found[0].items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(found[1][name]))
    return {name: np.asarray(value) for name, value in found[1].items()}


def _layer(folder: Path, **options: Any) -> Path:
    """A product with weights that are not in the file."""
    nodes = [
        variable("data", **SHAPE),
        variable("fc_weight"),
        variable("fc_bias"),
        node("FullyConnected", "fc", 0, 1, 2, num_hidden="2"),
    ]
    return write_symbol(folder, nodes, **options)


WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
BIAS = np.array([1, 2], np.float32)


@pytest.mark.parametrize("form", [0, V1, V2, V3])
def test_weights_of_every_form_and_name(tmp_path: Path, form: int) -> None:
    path = _layer(tmp_path)
    arrays = {"arg:fc_weight": dense(WEIGHT, form), "fc_bias": dense(BIAS, form)}
    write_weights(tmp_path / "net-0012.params", arrays)
    assert detect_format(str(path)) == "mxnet"
    assert facts_of(path) == {"MXNet": "1.9.1"}
    found = _results(path, {"data": X})
    assert list(found) == ["fc_output"]
    np.testing.assert_array_equal(found["fc_output"], X @ WEIGHT.T + BIAS)


def test_arrays_of_every_type_and_sparse_ones(tmp_path: Path) -> None:
    arrays = {
        dtype: np.arange(4).reshape(2, 2).astype(dtype)
        for dtype in ("float16", "float64", "int8", "uint8", "int64", "bool", "int16", "uint32")
    }
    parts = {name: dense(array, V2) for name, array in arrays.items()}
    parts["scalar"] = dense(np.array(2.5, np.float32), V3)
    index = np.array([2, 0], np.int64)
    parts["rows"] = sparse(1, (3, 2), arrays["float64"], index)
    starts, columns = np.array([0, 1, 1, 2], np.int64), np.array([1, 0], np.int64)
    parts["csr"] = sparse(2, (3, 2), BIAS, starts, columns)
    found = read_weights(str(write_weights(tmp_path / "w.params", parts)))
    constants = {name: constant_array(op.result) for name, op in found.items()}
    for name, array in arrays.items():
        np.testing.assert_array_equal(np.asarray(constants[name]), array)
    assert np.asarray(constants["scalar"]).item() == 2.5
    assert np.asarray(constants["rows"]).tolist() == [[2, 3], [0, 0], [0, 1]]
    assert np.asarray(constants["csr"]).tolist() == [[0, 1], [0, 0], [2, 0]]


def test_several_files_of_weights_are_a_choice(tmp_path: Path) -> None:
    path = _layer(tmp_path)
    arrays = {"fc_weight": dense(WEIGHT, V2), "fc_bias": dense(BIAS, V2)}
    for epoch in (1, 2):
        write_weights(tmp_path / f"net-000{epoch}.params", arrays)
    with pytest.raises(FrontendError, match=r"net-0001.params, net-0002.params.*--weights"):
        load_model(path)
    found = _results(path, {"data": X}, weights=tmp_path / "net-0002.params")
    np.testing.assert_array_equal(found["fc_output"], X @ WEIGHT.T + BIAS)
    with pytest.raises(FrontendError, match=r"net-symbol.json"):
        load_model(tmp_path / "net-0001.params")


def test_what_is_missing_names_the_option(tmp_path: Path) -> None:
    path = _layer(tmp_path)
    with pytest.raises(FrontendError, match=r"'fc_weight', 'fc_bias': found no file.*--weights"):
        load_model(path)
    write_symbol(tmp_path, [variable("data"), node("relu", "y", 0)])
    with pytest.raises(FrontendError, match=r"'data'.*--input-shape data="):
        load_model(path)
    with pytest.raises(FrontendError, match=r"shape is given for 'z'"):
        load_model(path, input_shapes={"data": [2, 3], "z": [1]})
    found = _results(path, {"data": X}, input_shapes={"data": [2, 3]})
    assert found["y_output"].tolist() == np.maximum(X, 0).tolist()


def test_sizes_of_zero_are_open(tmp_path: Path) -> None:
    path = write_symbol(tmp_path, [variable("x", __shape__="(0, 3)"), node("relu", "y", 0)])
    for rows in (1, 2):
        found = _results(path, {"x": X[:rows]})
        assert found["y_output"].tolist() == np.maximum(X[:rows], 0).tolist()


def test_arguments_that_mxnet_does_not_read_are_not_read(tmp_path: Path) -> None:
    nodes = [variable("x", __shape__="(2, 3)"), node("zeros_like", "y", 0, dtype="int64")]
    assert _results(write_symbol(tmp_path, nodes), {"x": X})["y_output"].dtype == np.float32


def test_files_of_version_0_8_are_upgraded(tmp_path: Path) -> None:
    nodes = [
        variable("data", **SHAPE),
        variable("bn_gamma"),
        variable("bn_beta"),
        node("BatchNorm", "bn", 0, 1, 2, key="param", fix_gamma="False", eps="0"),
        node("_Plus", "sum", 3, 0, key="param"),
        node("argmax", "best", 4, key="param", axis="-1"),
    ]
    for each in nodes:
        each["backward_source_id"] = -1
        each["inputs"] = [entry[:2] for entry in each["inputs"]]
    nodes[3]["attr"] = {"ctx_group": "a", "weight_lr_mult": "2"}
    path = write_symbol(tmp_path, nodes, version=None)
    ones = np.ones(3, np.float32)
    arrays = {"arg:bn_gamma": ones, "arg:bn_beta": ones * 0}
    arrays |= {"aux:bn_moving_mean": ones, "aux:bn_moving_var": 4 * ones}
    packed = {name: dense(array, 0) for name, array in arrays.items()}
    write_weights(tmp_path / "net-0001.params", packed)
    found = _results(path, {"data": X}, outputs=["sum", "best"])
    np.testing.assert_allclose(found["sum"], (X - 1) / 2 + X)
    assert found["best"].tolist() == [4]


def test_labels_are_no_inputs(tmp_path: Path) -> None:
    nodes = [variable("x", **SHAPE), variable("label"), node("SoftmaxOutput", "softmax", 0, 1)]
    found = _results(write_symbol(tmp_path, nodes), {"x": X})
    np.testing.assert_allclose(found["softmax_output"].sum(1), 1, rtol=1e-6)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    nodes = [
        variable("x", **SHAPE),
        node("sum", "a", 0, slope="2"),
        node("Pad", "b", 1, mode="edge", pad_width="(1, 2"),
        node("sum", "c", 2, keepdims="maybe"),
        node("relu", "d", 3, 0),
    ]
    path = write_symbol(tmp_path, nodes)
    with pytest.raises(FrontendError) as error:
        load_model(path)
    assert [problem.node for problem in error.value.problems] == ["a", "b", "c", "d"]
    nodes = [variable("x", **SHAPE), node("Mine", "y", 0), node("_random_uniform", "z", 1)]
    with pytest.raises(FrontendError, match=r"'y' \(Mine\): the operator is not known"):
        load_model(write_symbol(tmp_path, nodes))
    nodes = [variable("x", **SHAPE), node("_shuffle", "y", 0), node("_linalg_gelqf", "z", 0)]
    nodes.append(node("elemwise_add", "s", 1, 2))
    with pytest.raises(LegalizationError, match=r"(?s)'y' \(_shuffle\).*'z' \(_linalg_gelqf\)"):
        _legal(load_model(write_symbol(tmp_path, nodes)))


@pytest.mark.parametrize(
    "change",
    [
        {"heads": []},
        {"heads": [[7, 0, 0]]},
        {"heads": [[1, 70000, 0]]},
        {"heads": [[0, 1, 0]]},
        {"nodes": {}},
        {"nodes": [variable("x", **SHAPE), node("relu", "y", 5)]},
        {"nodes": [{"op": "null"}]},
        {"heads": [["x"]]},
    ],
)
def test_a_broken_symbol_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_symbol(tmp_path, [variable("x", **SHAPE), node("relu", "y", 0)], **change)
    with pytest.raises(FrontendError, match="the model is broken"):
        load_model(path)


def test_a_version_of_no_number_is_the_first(tmp_path: Path) -> None:
    nodes = [variable("x", **SHAPE), node("relu", "y", 0)]
    path = write_symbol(tmp_path, nodes, attrs={"mxnet_version": []})
    assert _results(path, {"x": X})["y_output"].shape == X.shape


def test_inputs_of_another_rank_are_told(tmp_path: Path) -> None:
    nodes = [
        variable("x", **SHAPE),
        variable("image", __shape__="(1, 2, 3, 4)"),
        node("ROIPooling", "pool", 0, 0, pooled_size="(2, 2)", spatial_scale="1"),
        node("SequenceLast", "last", 0, 0, use_sequence_length="True"),
        node("batch_take", "take", 1, 0),
        node("Concat", "all", dim="0"),
    ]
    heads = [[number, 0, 0] for number in range(2, 6)]
    with pytest.raises(LegalizationError) as error:
        _legal(load_model(write_symbol(tmp_path, nodes, heads=heads)))
    assert len(str(error.value).splitlines()) == 4
    assert "'all' (Concat): found no inputs as 'data'" in str(error.value)


def test_numbers_that_do_not_fit_are_told(tmp_path: Path) -> None:
    nodes = [
        variable("x", **SHAPE),
        variable("image", __shape__="(1, 2, 3, 4)"),
        variable("large", __shape__="(1, 2, 30000, 40000)"),
        node("_np_roll", "roll", 0, shift="()"),
        node("_split_v2", "split", 0, sections="2147483647", axis="0"),
        node("_contrib_MultiBoxPrior", "negative", 1, ratios="(-1,)"),
        node("_contrib_MultiBoxPrior", "many", 2),
        variable("series", __shape__="(3, 1, 2)"),
        variable("weights", __shape__="(40,)"),
        variable("before", __shape__="(1, 1, 2)"),
        node("RNN", "deep", 7, 8, 9, mode="gru", state_size="2", num_layers="2147483647"),
        node("_arange", "range", start="0", stop="4", repeat="2147483647"),
        node("_arange", "back", start="4", stop="0", repeat="-1"),
        node("_contrib_arange_like", "like", 0, repeat="0"),
        variable("rois", __shape__="(3, 5)"),
        node("ROIPooling", "bins", 1, 14, pooled_size="(2147483647, 2)", spatial_scale="1"),
        node("broadcast_like", "pairs", 0, 8, lhs_axes="(0, 1)", rhs_axes="(0,)"),
        node("_npi_rot90", "plane", 1, k="1", axes="(0,)"),
    ]
    heads = [[number, 0, 0] for number in (*range(3, 7), *range(10, 14), *range(15, 18))]
    with pytest.raises(LegalizationError) as error:
        _legal(load_model(write_symbol(tmp_path, nodes, heads=heads)))
    told = str(error.value)
    assert len(told.splitlines()) == 11
    for message in (
        "2147483647 bins",
        "2 axes for 1",
        "a plane of 1 dimensions",
        "8589934588 numbers",
        "found -1 numbers",
        "0 repetitions",
        "2147483647 layers",
        "found 0 shifts",
        "2147483647 parts",
        "which are positive",
        "1 to 4194304",
    ):
        assert message in told


def test_broken_weights_are_told(tmp_path: Path) -> None:
    path = _layer(tmp_path)
    arrays = {"fc_weight": dense(WEIGHT, V2), "fc_bias": dense(BIAS, V2)}
    weights = write_weights(tmp_path / "net-0001.params", arrays)
    data = weights.read_bytes()
    for broken in (data[:-9], data[:60], b"", b"\0" * 40, data[:24] + b"\xff" * 60):
        weights.write_bytes(broken)
        with pytest.raises(FrontendError, match="the model is broken"):
            load_model(path)
