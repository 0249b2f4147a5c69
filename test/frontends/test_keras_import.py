"""Models of Keras: both kinds of files, nested and shared models, and what is refused."""

from __future__ import annotations

import io
import json
import math
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.keras.import_ import import_model
from lowerdeck.passes.legalize.walk import LegalizationError
from lowerdeck.reading import model_file

pytest.importorskip("h5py", reason="models of Keras need h5py: pip install lowerdeck[hdf5]")

Arrays = Mapping[str, Sequence[NDArray[Any]]]

_W = np.ones((2, 1, 2), np.float32)


def _h5() -> Any:
    return import_module("h5py")


def _layer(class_name: str, *nodes: Any, **config: Any) -> dict[str, Any]:
    """A layer as Keras 3 writes it; each node has the arguments of a call."""
    name = config.setdefault("name", class_name.lower())
    module = config.pop("module", "keras.layers")
    calls: list[Any] = [{"args": list(args), "kwargs": {}} for args in nodes]
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": config.pop("registered_name", None),
        "name": name,
        "inbound_nodes": calls,
    }


def _input(name: str, *shape: int | None) -> dict[str, Any]:
    return _layer("InputLayer", name=name, batch_shape=list(shape), dtype="float32")


def _ref(name: str, node: int = 0, index: int = 0) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, node, index]}}


def _functional(
    layers: Sequence[Any], inputs: Sequence[str], outputs: Sequence[Any], *nodes: Any, **more: Any
) -> dict[str, Any]:
    return _layer(
        "Functional",
        *nodes,
        module="keras",
        layers=list(layers),
        input_layers=[[name, 0, 0] for name in inputs],
        output_layers=list(outputs),
        **more,
    )


def _zip(path: Path, config: Mapping[str, Any], weights: Arrays) -> str:
    data = io.BytesIO()
    with _h5().File(data, "w") as file:
        for folder, arrays in weights.items():
            for number, array in enumerate(arrays):
                file[f"layers/{folder}/vars/{number}"] = array
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.9.0"}))
        archive.writestr("model.weights.h5", data.getvalue())
    return str(path)


def _old(
    path: Path, config: Mapping[str, Any], weights: Mapping[str, Mapping[str, NDArray[Any]]]
) -> str:
    """A file of Keras 2; the weights of each layer by their names."""
    with _h5().File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(config)
        file.attrs["keras_version"] = "2.11.0"
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [name.encode() for name in weights]
        for name, arrays in weights.items():
            layer = group.create_group(name)
            layer.attrs["weight_names"] = [key.encode() for key in arrays]
            for key, array in arrays.items():
                layer[key] = array
    return str(path)


def _run(path: str, **inputs: NDArray[Any]) -> list[NDArray[Any]]:
    """The results of the legal module, which those of the imported one equal."""
    legal, _ = import_and_lower(path, "legal", CompileOptions())
    found = Calls(legal)(inputs)
    imported: ModuleOp = import_model(path)
    for name, value in Calls(imported)(inputs).items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(found[name]))
    return [np.asarray(value) for value in found.values()]


def _values(*shape: int, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_nested_and_shared(tmp_path: Path) -> None:
    """A layer used twice, a model used twice, and folders that are counted by class."""
    inner = _functional(
        [_input("a", None, 3), _layer("Dense", [_ref("a")], name="mix", units=3, use_bias=False)],
        ["a"],
        [["mix", 0, 0]],
        [_ref("first")],
        [_ref("first", 1)],
        name="inner",
    )
    config = _functional(
        [
            _input("x", None, 2),
            _input("y", None, 2),
            _layer("Dense", [_ref("x")], [_ref("y")], name="first", units=3, activation="relu"),
            inner,
            _layer("Concatenate", [[_ref("inner"), _ref("inner", 1)]], name="cat", axis=-1),
            _layer("Dense", [_ref("cat")], name="last", units=1, activation="hard_sigmoid"),
        ],
        ["x", "y"],
        [["last", 0, 0], ["cat", 0, 0]],
        name="model",
    )
    w, b, v, u, c = (_values(*s) for s in ((2, 3), (3,), (3, 3), (6, 1), (1,)))
    path = _zip(
        tmp_path / "model.keras",
        config,
        {"dense": [w, b], "functional/layers/dense": [v], "dense_1": [u, c]},
    )
    x, y = _values(4, 2, seed=1), _values(4, 2, seed=2)
    last, cat = _run(path, x=x, y=y)
    expected = np.concatenate([np.maximum(x @ w + b, 0) @ v, np.maximum(y @ w + b, 0) @ v], 1)
    np.testing.assert_allclose(cat, expected, 1e-4, 1e-5)
    np.testing.assert_allclose(last, np.clip(expected @ u + c + 3, 0, 6) / 6, 1e-4, 1e-5)


def test_keras_2(tmp_path: Path) -> None:
    """Variables of a nested model: those that are trained come first; an older hard sigmoid."""
    entry = {"class_name": "Dense", "config": {"name": "d", "units": 2, "use_bias": False}}
    nested = {
        "class_name": "Sequential",
        "config": {
            "name": "inner",
            "layers": [
                {
                    "class_name": "BatchNormalization",
                    "config": {
                        "name": "bn",
                        "axis": [1],
                        "epsilon": 0.0,
                        "batch_input_shape": [None, 3],
                    },
                },
                entry,
            ],
        },
    }
    last = {"class_name": "Activation", "config": {"name": "a", "activation": "hard_sigmoid"}}
    config = {"class_name": "Sequential", "config": [nested, last]}
    gamma, beta, center, kernel = (_values(*s) for s in ((3,), (3,), (3,), (3, 2)))
    spread = np.abs(_values(3, seed=3)) + 1
    weights = {
        "bn/gamma:0": gamma,
        "bn/beta:0": beta,
        "d/kernel:0": kernel,
        "bn/moving_mean:0": center,
        "bn/moving_variance:0": spread,
    }
    path = _old(tmp_path / "model.h5", config, {"inner": weights, "a": {}})
    x = _values(5, 3, seed=4)
    (found,) = _run(path, bn_input=x)
    product = ((x - center) / np.sqrt(spread) * gamma + beta) @ kernel
    np.testing.assert_allclose(found, np.clip(0.2 * product + 0.5, 0, 1), 1e-4, 1e-5)


def test_refused(tmp_path: Path) -> None:
    """Code and classes of others are refused, all at once, and nothing is decoded."""
    layers = [
        _input("x", None, 2),
        _layer("Lambda", [_ref("x")], name="f", function={"config": {"code": "!"}}),
        _layer("Swirl", [_ref("f")], name="s", module="mine", registered_name="mine>Swirl"),
    ]
    path = _zip(tmp_path / "m.keras", _functional(layers, ["x"], [["s", 0, 0]]), {})
    with pytest.raises(FrontendError) as error:
        import_model(path)
    first, second = str(error.value).splitlines()
    assert "'f' (Lambda): it holds code" in first
    assert "'s' (mine>Swirl)" in second


def test_options_of_other_types(tmp_path: Path) -> None:
    """Every option whose value is of another type is named, all at once."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("Conv2D", {"filters": 1, "kernel_size": 1, "groups": "two"}),
        ("Resizing", {"height": None, "width": 2}),
        ("Normalization", {"axis": None, "mean": [0.2, [0.1]], "variance": 1.0}),
        ("GlobalAveragePooling2D", {"dtype": {"class_name": "DTypePolicy", "config": []}}),
        ("Permute", {"dims": [1, None]}),
        ("UpSampling2D", {"size": 1 << 31}),
        ("ZeroPadding2D", {"padding": [[1, 2], {}]}),
    ]
    layers = [
        _layer(name, [_ref("x")], name=f"l{k}", **config) for k, (name, config) in enumerate(wrong)
    ]
    model = _functional([_input("x", None, 4, 4, 1), *layers], ["x"], [["l0", 0, 0]])
    with pytest.raises(FrontendError) as error:
        import_model(_zip(tmp_path / "m.keras", model, {}))
    lines = str(error.value).splitlines()
    assert len(lines) == len(wrong)
    options = ("groups", "height", "mean", "dtype", "dims", "size", "padding")
    for line, option in zip(lines, options, strict=True):
        assert f"'{option}' is " in line


def test_places_beyond_all_files(tmp_path: Path) -> None:
    """A place that no file has is an error of the file; HDF5 keeps that of a driver at byte 48."""
    path = tmp_path / "m.keras"
    _zip(path, _functional([_input("x", None, 2)], ["x"], [["x", 0, 0]]), {})
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    data = entries["model.weights.h5"]
    assert data[48:56] == b"\xff" * 8
    entries["model.weights.h5"] = data[:48] + (2**64 - 2**12).to_bytes(8, "little") + data[56:]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(FrontendError, match="is damaged"):
        import_model(str(path))


def test_heaps_without_an_end(tmp_path: Path) -> None:
    """HDF5 would read free space of no bytes for ever, and make room for what is not there."""
    layers = [_input("x", None, 2), _layer("Dense", [_ref("x")], units=3, use_bias=False)]
    path = tmp_path / "m.h5"
    _old(path, _functional(layers, ["x"], [["dense", 0, 0]]), {"dense": {"k": _values(2, 3)}})
    data = bytearray(path.read_bytes())
    place = data.index(b"GCOL") + 16
    for size in (1 << 12, (1 << 64) - 1):
        damaged = data.copy()
        damaged[place + 8 : place + 16] = size.to_bytes(8, "little")
        path.write_bytes(damaged)
        with pytest.raises(FrontendError, match=f"{size} bytes in the heap at byte {place - 16}"):
            import_model(str(path))
    while int.from_bytes(data[place : place + 2], "little"):
        size = int.from_bytes(data[place + 8 : place + 16], "little")
        place += 16 + (size + 7) // 8 * 8
    data[place + 8 : place + 16] = bytes(8)
    path.write_bytes(data)
    with pytest.raises(FrontendError, match="a heap without an end"):
        import_model(str(path))
    heap = data.index(b"GCOL")
    data[heap + 8 : heap + 16] = (1 << 31).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(FrontendError, match=f"a heap of {1 << 31} bytes"):
        import_model(str(path))


def test_texts_longer_than_the_file(tmp_path: Path) -> None:
    """HDF5 would make room for a text before it looks for it."""
    config = _functional([_input("x", None, 2)], ["x"], [["x", 0, 0]])
    path = tmp_path / "m.h5"
    _old(path, config, {})
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL").to_bytes(8, "little")
    length = len(json.dumps(config)).to_bytes(4, "little")
    assert data.count(length + heap) == 1
    path.write_bytes(data.replace(length + heap, (1 << 31).to_bytes(4, "little") + heap))
    with pytest.raises(FrontendError, match="'model_config' that is longer than the file"):
        import_model(str(path))


@pytest.mark.parametrize("value", [np.float32(1), np.zeros([2, 2])])
def test_attributes_that_are_no_texts(tmp_path: Path, value: Any) -> None:
    """Names that are numbers are an error of the file; HDF5 would trust any type that it states."""
    layers = [_input("x", None, 2), _layer("Dense", [_ref("x")], units=3, use_bias=False)]
    path = tmp_path / "m.h5"
    _old(path, _functional(layers, ["x"], [["dense", 0, 0]]), {"dense": {"k": _values(2, 3)}})
    with _h5().File(path, "a") as file:
        file["model_weights/dense"].attrs["weight_names"] = value
    with pytest.raises(FrontendError, match="an attribute 'weight_names' of float"):
        import_model(str(path))


def test_entries_that_claim_more_than_the_file_has(tmp_path: Path) -> None:
    """No room is made for them."""
    path = tmp_path / "m.keras"
    _zip(path, _functional([_input("x", None, 2)], ["x"], [["x", 0, 0]]), {})
    data = bytearray(path.read_bytes())
    last = data.rindex(b"PK\1\2")  # of the directory: the size in the file at 20, its own at 24
    data[last + 20 : last + 28] = (1 << 31).to_bytes(4, "little") * 2
    path.write_bytes(data)
    with pytest.raises(FrontendError, match=r"'model.weights.h5' that is longer than the file"):
        import_model(str(path))


def test_weights_only(tmp_path: Path) -> None:
    """A file with weights alone says so."""
    path = tmp_path / "weights.h5"
    with _h5().File(path, "w") as file:
        file.attrs["layer_names"] = [b"dense"]
    with pytest.raises(FrontendError, match=r"has weights, but no model"):
        import_model(str(path))


@pytest.mark.parametrize("config", ["[]", "{}", '{"class_name": "Functional", "config": {}}', "!"])
def test_malformed(tmp_path: Path, config: str) -> None:
    """What is no configuration of a model is an error of the file."""
    path = tmp_path / "m.keras"
    data = io.BytesIO()
    _h5().File(data, "w").close()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", config)
        archive.writestr("model.weights.h5", data.getvalue())
    with pytest.raises(FrontendError):
        import_model(str(path))


def test_a_number_of_a_node_that_is_infinite(tmp_path: Path) -> None:
    layer = _layer("ReLU", [_ref("x")], name="y")
    layer["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = ["x", float("inf"), 0]
    config = _functional([_input("x", 2), layer], ["x"], [["y", 0, 0]])
    with pytest.raises(FrontendError, match="cannot convert float infinity"):
        import_model(_zip(tmp_path / "m.keras", config, {}))


def test_missing_variables(tmp_path: Path) -> None:
    """Variables that are not in the file, or of another shape, are reported."""
    config = _functional(
        [_input("x", None, 2), _layer("Dense", [_ref("x")], units=3)], ["x"], [["dense", 0, 0]]
    )
    path = _zip(tmp_path / "m.keras", config, {"dense": [_values(2, 3)]})
    with pytest.raises(FrontendError, match="the file has no variable 'bias'"):
        import_model(path)


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-x))


def test_masked_sequences(tmp_path: Path) -> None:
    """A mask that begins at an embedding holds the state of an LSTM, and is not counted."""
    rnn = {"units": 2, "activation": "tanh", "recurrent_activation": "sigmoid", "use_bias": True}
    layers = [
        _input("ids", None, 4),
        _layer("Embedding", [_ref("ids")], input_dim=5, output_dim=3, mask_zero=True),
        _layer("Dropout", [_ref("embedding")], rate=0.5),
        _layer("LSTM", [_ref("dropout")], return_sequences=False, **rnn),
        _layer("GlobalAveragePooling1D", [_ref("dropout")], name="mean"),
    ]
    layers[0]["config"]["dtype"] = "int32"
    table, w, u, b = (_values(*s, seed=k) for k, s in enumerate(((5, 3), (3, 8), (2, 8), (8,))))
    config = _functional(layers, ["ids"], [["lstm", 0, 0], ["mean", 0, 0]])
    path = _zip(tmp_path / "m.keras", config, {"embedding": [table], "lstm/cell": [w, u, b]})
    ids = np.array([[3, 1, 0, 2], [0, 4, 4, 0]], np.int32)
    last, mean = _run(path, ids=ids)
    for row, (state, average) in enumerate(zip(last, mean, strict=True)):
        taken = [table[k] for k in ids[row] if k]
        h = c = np.zeros(2, np.float32)
        for x in taken:
            i, f, g, o = np.split(x @ w + h @ u + b, 4)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(state, h, 1e-4, 1e-5)
        np.testing.assert_allclose(average, np.mean(taken, axis=0), 1e-4, 1e-5)


@pytest.mark.parametrize("more", [(), (1,)])
def test_masks_with_a_dimension_of_one(tmp_path: Path, more: tuple[int, ...]) -> None:
    """A mask that is given may have one more dimension than sequences have steps."""
    mask = _layer("NotEqual", [_ref("m"), 0.0], name="mask", module="keras.src.ops.numpy")
    rnn = _layer("SimpleRNN", [_ref("x")], name="y", units=1, activation="linear", use_bias=False)
    rnn["inbound_nodes"][0]["kwargs"]["mask"] = _ref("mask")
    inputs = [_input("x", None, 3, 1), _input("m", None, 3, *more)]
    config = _functional([*inputs, mask, rnn], ["x", "m"], [["y", 0, 0]])
    ones = np.ones((1, 1), np.float32)
    path = _zip(tmp_path / "m.keras", config, {"simple_rnn/cell": [ones, 2 * ones]})
    given = np.array([[1, 0, 1]], np.float32).reshape(1, 3, *more)
    (found,) = _run(path, x=np.array([[[1], [5], [3]]], np.float32), m=given)
    assert found.tolist() == [[2 * 1 + 3]]


def test_masks_of_parts(tmp_path: Path) -> None:
    """
    Two sequences after one another, of which one has a mask; RMSNormalization drops it, as Keras
    does. Where steps without mask count for nothing, the last one alone decides.
    """
    rnn = {"units": 1, "activation": "linear", "use_bias": False}
    layers = [
        _input("ids", None, 3),
        _layer("Embedding", [_ref("ids")], input_dim=3, output_dim=1, mask_zero=True),
        _layer("Rescaling", [_ref("embedding")], scale=1.0, offset=0.0),
        _input("x", None, 2, 1),
        _layer("Concatenate", [[_ref("rescaling"), _ref("x")]], axis=1),
        _layer("SimpleRNN", [_ref("concatenate")], name="all", **rnn),
        _layer("SimpleRNN", [_ref("embedding")], name="z", zero_output_for_mask=True, **rnn),
        _layer("RMSNormalization", [_ref("embedding")], axis=-1, epsilon=0.0),
        _layer("SimpleRNN", [_ref("rmsnormalization")], name="dropped", **rnn),
    ]
    layers[0]["config"]["dtype"] = "int32"
    outputs = [["all", 0, 0], ["z", 0, 0], ["dropped", 0, 0]]
    one = np.ones((1, 1), np.float32)
    values: dict[str, Any] = {f"simple_rnn{k}/cell": [one, one] for k in ("", "_1", "_2")}
    values["embedding"] = [np.array([[7], [1], [2]], np.float32)]
    values["rms_normalization"] = [np.ones(1, np.float32)]
    path = _zip(tmp_path / "m.keras", _functional(layers, ["ids", "x"], outputs), values)
    ids = np.array([[1, 0, 2], [2, 1, 0]], np.int32)
    found = _run(path, ids=ids, x=np.array([[[10], [20]], [[10], [20]]], np.float32))
    np.testing.assert_array_equal(np.hstack(found), [[33, 3, 3], [33, 0, 3]])


def test_masks_of_stacked_cells(tmp_path: Path) -> None:
    """From the last step on, the second cell sees what the first one gives in that order."""
    config = {"units": 1, "activation": "linear", "use_bias": False}
    cells = [
        {
            "module": "keras.layers",
            "class_name": "SimpleRNNCell",
            "config": {**config, "name": name},
        }
        for name in ("one", "two")
    ]
    stacked = {"module": "keras.layers", "class_name": "StackedRNNCells"}
    stacked |= {"config": {"name": "cells", "cells": cells}}
    layers = [
        _input("ids", None, 3),
        _layer("Embedding", [_ref("ids")], input_dim=3, output_dim=1, mask_zero=True),
        _layer("RNN", [_ref("embedding")], cell=stacked, go_backwards=True),
    ]
    layers[0]["config"]["dtype"] = "int32"
    one = np.ones((1, 1), np.float32)
    values: dict[str, Any] = {"embedding": [np.array([[7], [1], [2]], np.float32)]}
    values |= {f"rnn/cell/cells/simple_rnn_cell{k}": [one, one] for k in ("", "_1")}
    path = _zip(tmp_path / "m.keras", _functional(layers, ["ids"], [["rnn", 0, 0]]), values)
    (found,) = _run(path, ids=np.array([[1, 2, 0], [0, 1, 2], [1, 0, 2]], np.int32))
    np.testing.assert_array_equal(found, [[5], [5], [5]])


def test_masks_of_merges(tmp_path: Path) -> None:
    """Extrema and products are of what masks do not exclude; a sum is of all."""
    kinds = ("Maximum", "Multiply", "Minimum", "Add")
    layers = [
        _input("a", None, 4),
        _input("b", None, 4),
        _layer("Embedding", [_ref("a")], [_ref("b")], input_dim=3, output_dim=1, mask_zero=True),
        _input("x", None, 4, 1),
        *(
            _layer(
                kind, [[_ref("embedding"), _ref("embedding", 1)]], [[_ref("embedding"), _ref("x")]]
            )
            for kind in kinds
        ),
    ]
    for layer in layers[:2]:
        layer["config"]["dtype"] = "int32"
    outputs = [[kind.lower(), node, 0] for node in (0, 1) for kind in kinds]
    table = np.array([[-7], [2], [3]], np.float32)
    config = _functional(layers, ["a", "b", "x"], outputs)
    path = _zip(tmp_path / "m.keras", config, {"embedding": [table]})
    a, b = np.array([[0, 0, 1, 1]], np.int32), np.array([[0, 2, 0, 2]], np.int32)
    found = _run(path, a=a, b=b, x=np.array([[[-9], [-9], [-9], [9]]], np.float32))
    # Where all is excluded, an extremum is the first value, and a product 0.
    expected = [[-7, 3, 2, 3], [0, 3, 2, 6], [-7, 3, 2, 2], [-14, -4, -5, 5]]
    # With a value that has no mask, that alone counts where the other one is excluded.
    expected += [[-9, -9, 2, 9], [-9, -9, -18, 18], [-9, -9, -9, 2], [-16, -16, -7, 11]]
    np.testing.assert_array_equal(np.concatenate(found)[..., 0], expected)


def test_spectra(tmp_path: Path) -> None:
    """Spectrograms by kernels that are variables, the mel scale, and transforms of pairs."""
    names = {"module": "keras.src.ops.math"}
    mel = {"fft_length": 16, "sequence_stride": 4, "sequence_length": 12, "window": "hann"}
    mel |= {"sampling_rate": 8000, "num_mel_bins": 3, "min_freq": 20.0, "max_freq": 4000}
    mel |= {"mag_exp": 2.0, "min_power": 1e-10, "ref_power": 1.0, "top_db": 80.0}
    stft = {"mode": "psd", "frame_length": 8, "frame_step": 4, "padding": "valid"}
    layers = [
        _input("x", None, 20),
        _layer("Reshape", [_ref("x")], target_shape=[20, 1]),
        _layer("STFTSpectrogram", [_ref("reshape")], data_format="channels_last", **stft),
        _layer("MelSpectrogram", [_ref("x")], power_to_db=False, **mel),
        _layer("RFFT", [_ref("x")], fft_length=None, **names),
        _layer("IRFFT", [[_ref("rfft"), _ref("rfft", 0, 1)]], fft_length=None, **names),
        _layer("Logsumexp", [_ref("x")], axis=None, keepdims=False, **names),
        _layer("Average", [_ref("x")], axis=1, module="keras.src.ops.numpy"),
    ]
    outputs = ["stftspectrogram", "melspectrogram", "rfft", "irfft", "logsumexp", "average"]
    config = _functional(layers, ["x"], [[name, 0, 0] for name in outputs])
    kernels = [_values(8, 1, 5, seed=k) for k in (1, 2)]
    path = _zip(tmp_path / "m.keras", config, {"stft_spectrogram": kernels})
    x = _values(2, 20)
    frames = np.stack([x[:, k : k + 8] for k in range(0, 13, 4)], 1)
    power = sum((frames @ kernel[:, 0]) ** 2 for kernel in kernels)
    padded = np.pad(x, [(0, 0), (8, 8)], mode="reflect")
    window = np.pad(0.5 - 0.5 * np.cos(np.arange(12) * np.pi / 6), 2)
    parts = np.stack([padded[:, k : k + 16] * window for k in range(0, 21, 4)], 1)
    place: NDArray[Any] = 1127 * np.log(1 + np.arange(1, 9) * 500 / 700)
    low, high = (1127 * math.log(1 + frequency / 700) for frequency in (20, 4000))
    edges: NDArray[Any] = np.linspace(low, high, 5)
    rising: NDArray[Any] = place[:, None] - edges[:3]
    falling: NDArray[Any] = place[:, None] - edges[2:]
    widths: NDArray[Any] = np.diff(edges)
    bins: NDArray[Any] = np.maximum(0, np.minimum(rising / widths[:3], -falling / widths[1:]))
    expected: list[Any] = [
        power * [1, 2, 2, 2, 1],
        ((np.abs(np.fft.rfft(parts)) ** 2)[..., 1:] @ bins).swapaxes(1, 2),
        np.fft.rfft(x).real,
        x,
        np.log(np.exp(x).sum()),
        x.mean(1),
    ]
    for found, want in zip(_run(path, x=x), expected, strict=True):
        np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def test_stateful(tmp_path: Path) -> None:
    """A state lives on from call to call."""
    layers = [
        _input("x", 1, 2, 1),
        _layer("SimpleRNN", [_ref("x")], units=1, activation="linear", stateful=True),
    ]
    one = np.ones((1, 1), np.float32)
    path = _zip(
        tmp_path / "m.keras",
        _functional(layers, ["x"], [["simplernn", 0, 0]]),
        {"simple_rnn/cell": [one, one, np.zeros(1, np.float32)]},
    )
    legal, _ = import_and_lower(path, "legal", CompileOptions())
    calls = Calls(legal)
    x = np.ones((1, 2, 1), np.float32)
    found = [np.asarray(calls({"x": x})["simplernn"]) for _ in range(2)]
    assert [value.item() for value in found] == [2, 4]


def test_functions(tmp_path: Path) -> None:
    """Operators of keras.ops, and TensorFlow's functions in files of Keras 2."""
    ops = "keras.src.ops.numpy"
    whole = {"class_name": "__slice__", "config": {"start": None, "stop": None, "step": None}}
    layers = [
        _input("x", None, 3),
        _layer("Subtract", [1.0, _ref("x")], module=ops),
        _layer("GetItem", [_ref("subtract"), [whole, 1]], name="second", module=ops),
    ]
    path = _zip(tmp_path / "m.keras", _functional(layers, ["x"], [["second", 0, 0]]), {})
    x = _values(2, 3)
    np.testing.assert_array_equal(_run(path, x=x)[0], 1 - x[:, 1])
    entries: list[dict[str, Any]] = [
        {"class_name": "InputLayer", "config": {"name": "x", "batch_input_shape": [None, 3]}},
        {"class_name": "TFOpLambda", "config": {"name": "f", "function": "math.multiply"}},
    ]
    nodes: list[Any] = [[], [["x", 0, 0, {"y": ["x", 0, 0], "name": None}]]]
    for entry, calls in zip(entries, nodes, strict=True):
        entry |= {"name": entry["config"]["name"], "inbound_nodes": calls}
    model = {"layers": entries, "input_layers": [["x", 0, 0]], "output_layers": [["f", 0, 0]]}
    path = _old(tmp_path / "m.h5", {"class_name": "Model", "config": model}, {"x": {}, "f": {}})
    np.testing.assert_array_equal(_run(path, x=x)[0], x * x)


def test_attention_over_features_is_refused(tmp_path: Path) -> None:
    config = {"num_heads": 1, "key_dim": 2, "use_bias": False, "attention_axes": [2]}
    heads = _layer("MultiHeadAttention", [_ref("x"), _ref("x")], name="y", **config)
    parts = {f"{name}_dense": [_W] for name in ("query", "key", "value")}
    parts["output_dense"] = [_W.transpose(1, 2, 0)]
    weights = {f"multi_head_attention/{name}": arrays for name, arrays in parts.items()}
    model = _functional([_input("x", None, 3, 2), heads], ["x"], [["y", 0, 0]])
    with pytest.raises(LegalizationError, match="found axis 2, expected -2 to 1"):
        _run(_zip(tmp_path / "m.keras", model, weights), x=_values(1, 3, 2))


def test_factors_of_roots_of_mean_squares_lie_along_the_last_dimensions(tmp_path: Path) -> None:
    """Whatever the axes of the mean are."""
    factors, x = np.array([1, 2], np.float32), _values(3, 2, 2)
    layer = _layer("RMSNormalization", [_ref("x")], name="y", axis=[1], epsilon=0.0)
    config = _functional([_input("x", None, 2, 2), layer], ["x"], [["y", 0, 0]])
    path = _zip(tmp_path / "m.keras", config, {"rms_normalization": [factors]})
    roots = np.sqrt((x * x).mean(1, keepdims=True))
    np.testing.assert_allclose(_run(path, x=x)[0], x / roots * factors, rtol=1e-6)


def test_attention_is_of_sequences(tmp_path: Path) -> None:
    layer = _layer("Attention", [[_ref("x"), _ref("x")]], name="y", score_mode="concat")
    config = _functional([_input("x", None, 2), layer], ["x"], [["y", 0, 0]])
    path = _zip(tmp_path / "m.keras", config, {"attention": [np.ones((), np.float32)]})
    with pytest.raises(LegalizationError, match="'sequence' of type"):
        import_and_lower(path, "legal", CompileOptions())


@pytest.mark.parametrize(
    ("layer", "config", "x", "y"),
    [
        ("ReLU", {"threshold": 0.5}, [0.5, 0.75, -1], [0, 0.75, 0]),
        (
            "ReLU",
            {"threshold": -1.0, "max_value": 2.0, "negative_slope": 0.5},
            [-0.5, -2, 3, -1],
            [0, -0.5, 2, 0],
        ),
        ("UnitNormalization", {"axis": -1}, [-6e-12, 0, 8e-12], [-0.6, 0, 0.8]),
        (
            "LayerNorm",
            {"module": "keras.src.ops.nn", "rms_scaling": True, "epsilon": 0.0},
            [1, 3, 5, 7],
            [1 / 5**0.5, 3 / 5**0.5, 5**0.5, 7 / 5**0.5],
        ),
        ("Round", {"module": "keras.src.ops.numpy", "decimals": 1}, [0.26, -1.25], [0.3, -1.2]),
    ],
)
def test_edges_of_functions(
    tmp_path: Path, layer: str, config: dict[str, Any], x: list[float], y: list[float]
) -> None:
    """The threshold itself is below; limits begin at zero; lengths may be tiny."""
    size = len(x)
    made = _functional(
        [_input("x", None, size), _layer(layer, [_ref("x")], name="y", **config)],
        ["x"],
        [["y", 0, 0]],
    )
    path = _zip(tmp_path / "m.keras", made, {})
    (found,) = _run(path, x=np.array([x], np.float32))
    np.testing.assert_allclose(found, np.array([y], np.float32), rtol=1e-6)


_STFT = {"sequence_length": 4, "sequence_stride": 1, "fft_length": 1 << 25, "window": None}


@pytest.mark.parametrize(
    ("layer", "config", "told"),
    [
        ("CategoryEncoding", {"num_tokens": 1 << 30, "output_mode": "multi_hot"}, ""),
        ("Split", {"indices_or_sections": 1 << 30, "axis": 1}, f"{1 << 30} results of 'y'"),
        ("Unstack", {"num": 1 << 30, "axis": 1}, f"{1 << 30} results of 'y'"),
        ("Split", {"indices_or_sections": 3, "axis": 1}, "3 parts of 4"),
        ("STFT", _STFT, f"a window of 4 in {1 << 25} elements"),
    ],
)
def test_sizes_far_beyond_what_there_is(
    tmp_path: Path, layer: str, config: dict[str, Any], told: str
) -> None:
    """Refused, or without a table of them."""
    module = "keras.layers" if layer == "CategoryEncoding" else "keras.src.ops.numpy"
    node = _layer(layer, [_ref("x")], name="y", module=module, **config)
    path = _zip(
        tmp_path / "m.keras", _functional([_input("x", None, 4), node], ["x"], [["y", 0, 0]]), {}
    )
    if told:
        with pytest.raises((FrontendError, LegalizationError), match=told):
            import_and_lower(path, "legal", CompileOptions())
    else:
        import_and_lower(path, "legal", CompileOptions())


def test_an_activation_of_halves(tmp_path: Path) -> None:
    """`glu` leaves half of the last dimension."""
    config = _functional(
        [_input("x", None, 4), _layer("Activation", [_ref("x")], name="y", activation="glu")],
        ["x"],
        [["y", 0, 0]],
    )
    path, x = _zip(tmp_path / "m.keras", config, {}), _values(2, 4)
    (found,) = _run(path, x=x)
    np.testing.assert_allclose(found, x[:, :2] / (1 + np.exp(-x[:, 2:])), rtol=1e-6)


def test_spectral_normalization(tmp_path: Path) -> None:
    """The layer inside, with the kernel that is stored; files of rows have the vector, too."""
    inner = _layer("Dense", name="mix", units=2, use_bias=False, activation="sparsemax")
    layer = _layer("SpectralNormalization", [_ref("x")], name="n", layer=inner, power_iterations=1)
    layers = [_input("x", None, 2), layer]
    config = _functional(layers, ["x"], [["n", 0, 0]])
    x, w, u = np.array([[1, 0.75], [4, 0]], np.float32), np.eye(2, dtype=np.float32), _values(1, 2)
    folder = "spectral_normalization"
    path = _zip(tmp_path / "m.keras", config, {f"{folder}/layer": [w], folder: [u]})
    # Keras' threshold of the first row is (1 + 1.75 - 1) / 2, that of the paper 0.375.
    np.testing.assert_array_equal(_run(path, x=x)[0], np.array([[0.125, 0], [1, 0]], np.float32))
    rows = {"x": {}, "n": {"n/mix/kernel": w, "n/vector_u": u}}
    config["config"]["layers"][1]["inbound_nodes"] = [[["x", 0, 0, {}]]]
    path = _old(tmp_path / "m.h5", config, rows)
    np.testing.assert_array_equal(_run(path, x=x)[0][0], np.array([0.125, 0], np.float32))
    layer["config"]["layer"]["config"]["dtype"] = "mixed_float16"
    path = _zip(tmp_path / "m.keras", config, {f"{folder}/layer": [w], folder: [u]})
    with pytest.raises(FrontendError, match="normalized in the type of its input"):
        import_model(path)


def test_layers_of_applications(tmp_path: Path) -> None:
    """ConvNeXt's, in which a class of the same name that somebody else registers is unknown."""
    module = "keras.src.applications.convnext"
    scale = _layer("LayerScale", [_ref("x")], name="s", module=module, init_values=1e-6)
    drop = _layer("StochasticDepth", [_ref("s")], name="d", module=module, drop_path_rate=0.5)
    config = _functional([_input("x", None, 2, 3), scale, drop], ["x"], [["d", 0, 0]])
    x, gamma = _values(2, 2, 3), _values(3, seed=1)
    path = _zip(tmp_path / "m.keras", config, {"layer_scale": [gamma]})
    np.testing.assert_array_equal(_run(path, x=x)[0], x * gamma)
    scale["registered_name"] = "Custom>LayerScale"
    with pytest.raises(FrontendError, match=r"'s'.*Custom>LayerScale"):
        import_model(_zip(tmp_path / "m.keras", config, {"layer_scale": [gamma]}))


def test_functions_take_no_mask(tmp_path: Path) -> None:
    """`keras.ops.softmax` is a Softmax in a file, as the layer is, to which masks come along."""
    x = np.array([[[0, 0], [1, 3]], [[2, 2], [0, 0]]], np.float32)
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    for module, is_plain in (("keras.src.ops.nn", True), ("keras.layers", False)):
        layers = [
            _input("x", None, 2, 2),
            _layer("Masking", [_ref("x")], mask_value=0.0),
            _layer("Softmax", [_ref("masking")], axis=-1, module=module),
        ]
        path = _zip(tmp_path / "m.keras", _functional(layers, ["x"], [["softmax", 0, 0]]), {})
        found = _run(path, x=x)[0]
        assert np.allclose(found, shares) == is_plain


def test_sums_of_functions_in_rows(tmp_path: Path) -> None:
    """Keras 3 writes `keras.ops.add` like the layer Add, but with two arguments."""
    layers = [_input("x", None, 3), _layer("Add", [_ref("x"), 1.0], name="y", module=None)]
    config = _functional(layers, ["x"], [["y", 0, 0]])
    path = tmp_path / "m.h5"
    _old(path, config, {"x": {}, "y": {}})
    with _h5().File(path, "a") as file:
        file.attrs["keras_version"] = "3.15.1"
    x = _values(2, 3)
    np.testing.assert_array_equal(_run(str(path), x=x)[0], x + 1)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link to another file is no variable."""
    layers: list[Any] = [{"class_name": "ReLU", "config": {}}]
    config: dict[str, Any] = {"class_name": "Sequential", "config": layers}
    path = _old(tmp_path / "m.h5", config, {})
    with _h5().File(path, "a") as file:
        file["model_weights"].attrs["layer_names"] = [b"re_lu"]
        file["model_weights/re_lu"] = _h5().ExternalLink("/tmp/other.h5", "/x")
    with pytest.raises(FrontendError, match="a link to somewhere else"):
        import_model(path)


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is said, and how it is installed."""
    path = _zip(tmp_path / "m.keras", _functional([_input("x", 1)], ["x"], [["x", 0, 0]]), {})
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(FrontendError, match=r"needs the package h5py; install lowerdeck\[hdf5\]"):
        import_model(path)


def test_shared_among_models(tmp_path: Path) -> None:
    """A layer that two models share is in the file once, where it is found first."""
    dense = {"name": "d", "units": 2, "use_bias": False}
    inner = _functional(
        [_input("a", None, 2), _layer("Dense", [_ref("a")], **dense)],
        ["a"],
        [["d", 0, 0]],
        [_ref("x")],
        name="inner",
    )
    layers = [_input("x", None, 2), inner, _layer("Dense", [_ref("inner")], **dense)]
    kernel, x = _values(2, 2), _values(3, 2)
    path = _zip(
        tmp_path / "m.keras",
        _functional(layers, ["x"], [["d", 0, 0]]),
        {"functional/layers/dense": [kernel]},
    )
    np.testing.assert_allclose(_run(path, x=x)[0], x @ kernel @ kernel, 1e-4, 1e-5)


def test_an_object_is_compiled_as_the_file_that_it_saves(tmp_path: Path) -> None:
    path = _zip(tmp_path / "m.keras", _functional([_input("x", 1)], ["x"], [["x", 0, 0]]), {})

    class Model:
        def save(self, file: str) -> None:
            Path(file).write_bytes(Path(path).read_bytes())

    Model.__module__ = "keras.src.models.model"
    with model_file(type("Functional", (Model,), {})()) as saved:
        assert Path(saved).suffix == ".keras"
        assert list(import_model(saved, outputs=None, input_shapes=None).ops)
    layer = type("Dense", (), {"__module__": "keras.src.layers.core.dense"})()
    with pytest.raises(TypeError, match="give the model that it is of"), model_file(layer):
        pass


@pytest.mark.parametrize("dtype", ["9" * 5000, "O", "f4,i4", "M8"])
def test_types_are_names_that_are_known(tmp_path: Path, dtype: str) -> None:
    """numpy reads more of a type's text than a name: digits as Python does, and several types."""
    layers = [_input("x", None, 3), _layer("ReLU", [_ref("x")], name="y")]
    layers[0]["config"]["dtype"] = dtype
    path = _zip(tmp_path / "m.keras", _functional(layers, ["x"], [["y", 0, 0]]), {})
    with pytest.raises(FrontendError, match=r"found an input of .{1,40}, expected numbers"):
        import_model(path)
