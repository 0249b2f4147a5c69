"""Forms of Caffe's files: HDF5, data of any type, fields of forks, text, stages, means."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import BlobProto, NetParameter
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.caffe.import_ import import_net

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    INPUT,
    layers_of,
    names_of,
    problems_of,
    types_of,
    weights_of,
    write_net,
)

NET = (
    INPUT
    + """layer { name: "a/ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 4 } }"""
)
W = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
B = np.arange(4, dtype=np.float32) - 2
X = np.ones((2, 3), np.float32)


def answer(path: Path, x: NDArray[Any] = X, **options: Any) -> NDArray[Any]:
    (result,) = run_module(import_net(path, **options), {"x": x}).values()
    return np.asarray(result)


# HDF5

MAGIC = b"\x89HDF\r\n\x1a\n"


class _Group(dict[str, Any]):
    """As much of a group of h5py as is read: members by path."""

    def get(self, key: str, default: Any = None) -> Any:
        inner: Any = self
        for part in key.split("/"):
            if part not in inner:
                return default
            inner = inner[part]
        return inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def hdf5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, net: str, root: Mapping[str, Any]
) -> Path:
    """A net with a file beside it that a stand-in for h5py reads as `root`."""

    def group(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        members = cast(dict[str, Any], value)
        return _Group({key: group(inner) for key, inner in members.items()})

    def file(_path: str, _mode: str) -> Any:
        return group(root)

    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace(File=file))
    (tmp_path / "net.caffemodel.h5").write_bytes(MAGIC)
    return write_net(tmp_path, net)


def test_weights_in_hdf5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = {"data": {"a": {"ip": {"0": W.astype(np.float64), "1": B}}, "other": {"0": B}}}
    path = hdf5(tmp_path, monkeypatch, NET, root)
    np.testing.assert_allclose(answer(path), X @ W.T + B)


def test_weights_in_a_real_hdf5_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "net.caffemodel.h5", "w") as file:
        file["data/a/ip/0"], file["data/a/ip/1"] = W, B
    np.testing.assert_allclose(answer(write_net(tmp_path, NET)), X @ W.T + B)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({}, "has no group 'data', expected weights of Caffe"),
        ({"data": {}}, "node 'a/ip' (InnerProduct): '{file}' has no weights for it"),
        (
            {"data": {"a": {"ip": {"0": W}}}},
            "node 'a/ip' (InnerProduct): '{file}' has no blob 1 of the shape [4] for it",
        ),
        (
            {"data": {"a": {"ip": {"0": W.T, "1": B}}}},
            "node 'a/ip' (InnerProduct): blob 0 of its weights has the shape [3, 4], "
            "expected [4, 3]",
        ),
        (
            {"data": {"a": {"ip": {"0": W, "1": B, "2": B}}}},
            "node 'a/ip' (InnerProduct): the weights have a blob 2 that it has not",
        ),
        (
            {"data": {"a": {"ip": {"0": W.astype(np.int32), "1": B}}}},
            "blob 0 of 'a/ip' is of the type int32, expected floats",
        ),
    ],
)
def test_hdf5_that_does_not_fit(
    root: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hdf5(tmp_path, monkeypatch, NET, root)
    file = f"{tmp_path}/net.caffemodel.h5"
    assert problems_of(path) == [message.format(file=file)]


def test_only_owners_of_shared_blobs_are_in_hdf5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = f"""{INPUT}
        layer {{ name: "a" type: "Bias" bottom: "x" top: "y" param {{ name: "b" }} }}
        layer {{ name: "b" type: "Bias" bottom: "y" top: "z" param {{ name: "b" }} }}"""
    path = hdf5(tmp_path, monkeypatch, net, {"data": {"a": {"0": W[1]}, "b": {}}})
    np.testing.assert_allclose(answer(path), X + 2 * W[1])


def test_hdf5_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = write_net(tmp_path, NET)
    (tmp_path / "net.caffemodel.h5").write_bytes(MAGIC)
    assert problems_of(path) == [
        "these weights are in the HDF5 format, which needs the package h5py; "
        "install lowerdeck[hdf5], or save them as caffemodel with Caffe"
    ]


# Data of any type

RawType: TypeAlias = Literal["DOUBLE", "FLOAT", "FLOAT16", "INT"]


@pytest.mark.parametrize(("type_", "dtype"), [("FLOAT16", "f2"), ("FLOAT", "f4"), ("DOUBLE", "f8")])
@pytest.mark.parametrize("outputs", [4, 400])
def test_data_as_bytes(type_: RawType, dtype: str, outputs: int, tmp_path: Path) -> None:
    """Small ones are in the message, large ones stay in the file."""
    w = np.resize(W, (outputs, 3))
    net = NetParameter()
    layer = net.layer.add(name="a/ip")
    for array in (w, np.resize(B, outputs)):
        blob = layer.blobs.add(raw_data=array.astype(dtype).tobytes(), raw_data_type=type_)
        blob.shape.dim.extend(array.shape)
    path = write_net(tmp_path, NET.replace("num_output: 4", f"num_output: {outputs}"), net)
    np.testing.assert_allclose(answer(path), X @ w.T + np.resize(B, outputs))


@pytest.mark.parametrize(
    ("type_", "data", "message"),
    [
        ("INT", bytes(48), "has data of the type INT, expected floats"),
        ("FLOAT16", bytes(48), "has 24 numbers, expected 12"),
        ("FLOAT", bytes(2047), "has 511.75 numbers, expected 12"),
    ],
)
def test_bytes_that_do_not_fit(type_: RawType, data: bytes, message: str, tmp_path: Path) -> None:
    net = weights_of({"a/ip": [W, B]})
    blob = net.layer[0].blobs[0]
    blob.ClearField("data")
    blob.MergeFrom(BlobProto(raw_data=data, raw_data_type=type_))
    assert problems_of(write_net(tmp_path, NET, net)) == [
        f"node 'a/ip' (InnerProduct): blob 0 of its weights {message}"
    ]


# Fields of forks


def test_fields_that_forks_number_otherwise(tmp_path: Path) -> None:
    """In another fork a string may have the number that is a message here."""
    text = bytes([0xCA, 0x0C, 3]) + b"\xff\xff\xff"  # field 201 of a layer
    permute = bytes([0xD2, 0x0C, 3]) + b"\xff\xff\xff"  # field 202, permute_param here
    old = weights_of({"a/ip": [W, B], "mine": [B]}).layer
    path = write_net(tmp_path, NET)
    net = b""
    for layer in old:
        body = text + layer.SerializeToString() + permute
        net += bytes([0xA2, 0x06]) + _varint(len(body)) + body
    (tmp_path / "net.caffemodel").write_bytes(net)
    np.testing.assert_allclose(answer(path), X @ W.T + B)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


# Text


@pytest.mark.parametrize("minus", ["-", "- ", "-\t", "-\n", "- # of - 3\n # 4\n  "])
@pytest.mark.parametrize(("number", "value"), [("2", -2.0), (".5f", -0.5), ("inf", -np.inf)])
def test_a_minus_before_a_number(minus: str, number: str, value: float, tmp_path: Path) -> None:
    """As protobuf reads it in C++; what looks the same in strings and comments stays."""
    net = f"""{INPUT} # it's - 2, or "- 3
        layer {{ name: 'p "\\' - 2' type: "Power" bottom: "x" top: "y # - 2"
        power_param {{ shift: {minus}{number} scale:1}} }}"""
    path = write_net(tmp_path, net)
    assert names_of(import_net(path))[1] == ["y # - 2"]
    np.testing.assert_array_equal(answer(path), X + np.float32(value))


@pytest.mark.parametrize("value", ["- -2", "-- 2", "-", "+ 2", "- + 2", '- "2"', "- true", "1 - 2"])
def test_a_minus_without_a_number(value: str, tmp_path: Path) -> None:
    layer = f"""layer {{ name: "p" type: "Power" bottom: "x" top: "y"
        power_param {{\nshift: {value}\n}} }}"""
    (problem,) = problems_of(write_net(tmp_path, f"{INPUT}\n{layer}"))
    assert "line " in problem
    assert "correct the text" in problem


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("1f", 1),
        ("-.5F", -0.5),
        ("1.", 1),
        ("1.e1f", 10),
        ("1E-1", 0.1),
        ("-INF", -np.inf),
        ("0", 0),
    ],
)
def test_numbers(number: str, value: float, tmp_path: Path) -> None:
    net = f"""{INPUT} layer {{ name: "p" type: "Power" bottom: "x" top: "y"
        power_param {{ shift:{number}}} }}"""
    np.testing.assert_array_equal(answer(write_net(tmp_path, net)), X + np.float32(value))


@pytest.mark.parametrize(
    "number",
    [
        *"+2 -+2 +.5 010 00 08 00.5 0x10 1_000 1__0 ٣ 1٣ 3ff 1ff 1.5.2 1e 1L 0b11 0o17".split(),
        *"inff -inff nanf infinityf".split(),
    ],
)
def test_what_is_no_number(number: str, tmp_path: Path) -> None:
    """Python's reader takes some of these; protobuf in C++, and so Caffe, takes none."""
    layer = f"""layer {{ name: "p" type: "Power" bottom: "x" top: "y"
        power_param {{\nshift: {number}\n}} }}"""
    (problem,) = problems_of(write_net(tmp_path, f"{INPUT}\n{layer}"))
    assert f"line {INPUT.count(chr(10)) + 4}: " in problem
    assert "correct the text" in problem


@pytest.mark.parametrize("number", ["3", "03", "0x3", "0X03"])
def test_integers(number: str, tmp_path: Path) -> None:
    net = f"""{INPUT} layer {{ name: "t" type: "Tile" bottom: "x" top: "y"
        tile_param {{ axis: 1 tiles: {number} }} }}"""
    np.testing.assert_array_equal(answer(write_net(tmp_path, net)), np.tile(X, (1, 3)))


@pytest.mark.parametrize("number", ["+3", "0b11", "0o3", "3_0", "08", "3.", "3f"])
def test_what_is_no_integer(number: str, tmp_path: Path) -> None:
    layer = f"""layer {{ name: "t" type: "Tile" bottom: "x" top: "y"
        tile_param {{\ntiles: {number}\n}} }}"""
    (problem,) = problems_of(write_net(tmp_path, f"{INPUT}\n{layer}"))
    assert f"line {INPUT.count(chr(10)) + 4}: " in problem


def test_strings(tmp_path: Path) -> None:
    """Escapes of C, parts one after the other, and what would be wrong outside of strings."""
    top = r'''"a\?\x41\101" '+2 1_0 é"#' # ٣ +3
        "\\?\"."'''
    net = f"""{INPUT} layer {{ name: "t" type: "Power" bottom: "x" top: {top} }}"""
    assert names_of(import_net(write_net(tmp_path, net)))[1] == ['a?AA+2 1_0 é"#\\?".']


def test_what_is_no_escape(tmp_path: Path) -> None:
    layer = r"""layer { name: "t" # \q
        type: "Power" bottom: "x" top: '\\q\q' }"""
    (problem,) = problems_of(write_net(tmp_path, f"{INPUT}\n{layer}"))
    assert f"line {INPUT.count(chr(10)) + 3}: found \\q in a string" in problem


# Stages


def test_stages(tmp_path: Path) -> None:
    net = f"""{INPUT}
        layer {{ name: "1" type: "ReLU" bottom: "x" top: "x" include {{ stage: "deploy" }} }}
        layer {{ name: "2" type: "TanH" bottom: "x" top: "y" }}"""
    path = write_net(tmp_path, net)
    assert types_of(import_net(path)) == ["TanH"]
    assert types_of(import_net(path, stages=["deploy"])) == ["ReLU", "TanH"]
    assert types_of(import_net(path, stages=["other"])) == ["TanH"]


# Transformations

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 6, 7)).astype(np.float32)
SHAPES = {"x": IMAGES.shape}


def data_net(tmp_path: Path, transform: str, type_: str = "Data") -> Path:
    return write_net(
        tmp_path,
        f"""layer {{ name: "d" type: "{type_}" top: "x" top: "l"
            transform_param {{ {transform} }} }}
        layer {{ name: "p" type: "Power" bottom: "x" top: "y" }}""",
    )


def mean_file(tmp_path: Path, shape: tuple[int, ...]) -> NDArray[Any]:
    mean = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    names = ("num", "channels", "height", "width")
    blob = BlobProto(data=mean.ravel(), **dict(zip(names, shape, strict=True)))
    (tmp_path / "mean.binaryproto").write_bytes(blob.SerializeToString())
    return mean


def test_a_transformation_is_applied_on_request(tmp_path: Path) -> None:
    path = data_net(tmp_path, "scale: 0.5 mean_value: 3 crop_size: 4")
    module = import_net(path, input_shapes=SHAPES, transform=["x"])
    assert names_of(module) == (["x"], ["y"])
    np.testing.assert_allclose(
        answer(path, IMAGES, input_shapes=SHAPES, transform=["x"]),
        (IMAGES - 3)[:, :, 1:5, 1:5] * np.float32(0.5),
    )
    np.testing.assert_array_equal(answer(path, IMAGES, input_shapes=SHAPES), IMAGES)


def test_a_mean_of_each_channel(tmp_path: Path) -> None:
    path = data_net(tmp_path, "mean_value: 1 mean_value: 2 mean_value: 4")
    expected = IMAGES - np.array([1, 2, 4], np.float32).reshape(3, 1, 1)
    found = answer(path, IMAGES, input_shapes=SHAPES, transform=["x"])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["mean.binaryproto", "/other/place/mean.binaryproto"])
def test_a_mean_file(name: str, tmp_path: Path) -> None:
    """It is as large as the data before they are cut."""
    mean = mean_file(tmp_path, (1, 3, 6, 7))
    path = data_net(tmp_path, f'mean_file: "{name}" crop_size: 3')
    found = answer(path, IMAGES, input_shapes=SHAPES, transform=["x"])
    np.testing.assert_array_equal(found, (IMAGES - mean[0])[:, :, 1:4, 2:5])


def test_an_input_layer_may_say_it_too(tmp_path: Path) -> None:
    net = """layer { name: "in" type: "Input" top: "x" transform_param { scale: 2 }
            input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }
        layer { name: "p" type: "Power" bottom: "x" top: "y" }"""
    x = np.ones((1, 1, 2, 2), np.float32)
    path = write_net(tmp_path, net)
    np.testing.assert_array_equal(answer(path, x, transform=["x"]), 2 * x)
    assert len(layers_of(import_net(path))) == 1


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("mirror: true", "its transform_param mirrors at random; expected mirror: false"),
        ("crop_size: 7", "crop_size 7 exceeds the data of 6 by 7"),
        ("mean_value: 1 mean_value: 2", "found 2 mean values, expected 1 or 3"),
        (
            'mean_value: 1 mean_file: "m"',
            "found both mean_file and mean_value, expected one of them",
        ),
        (
            'mean_file: "mean.binaryproto"',
            "the mean in '{folder}/mean.binaryproto' has the shape [1, 3, 6, 6], expected "
            "[1, 3, 6, 7], as of the data before they are cut",
        ),
        (
            "force_gray: true",
            "its transform_param changes the channels, which only readers do",
        ),
    ],
)
def test_transformations_that_do_not_fit(transform: str, message: str, tmp_path: Path) -> None:
    mean_file(tmp_path, (1, 3, 6, 6))
    problems = problems_of(data_net(tmp_path, transform), input_shapes=SHAPES, transform=["x", "y"])
    assert problems == [
        f"node 'd' (Data): {message.format(folder=tmp_path)}",
        "a transformation is asked for 'y', which is not the first top of an input",
    ]


def test_a_mean_that_is_missing(tmp_path: Path) -> None:
    path = data_net(tmp_path, 'mean_file: "nowhere.binaryproto"')
    with pytest.raises(Exception, match=r"nowhere\.binaryproto: cannot be read"):
        import_net(path, input_shapes=SHAPES, transform=["x"])
