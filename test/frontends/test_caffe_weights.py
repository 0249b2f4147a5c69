"""Weights reach their layers: by name, in any form that files have, checked and shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import BlobProto, NetParameter
from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.frontends.caffe.import_ import import_net
from lowerdeck.frontends.caffe.parse import parse_weights

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    INPUT,
    layers_of,
    problems_of,
    weights_of,
    write_net,
)

NET = (
    INPUT
    + """layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 4 } }"""
)

W = np.arange(12, dtype=np.float32).reshape(4, 3)
B = np.arange(4, dtype=np.float32) - 2


def constants_of(op: CaffeOp) -> list[ConstantOp]:
    """The constants that are a layer's blobs."""
    found = [blob.owner for blob in op.blobs]
    return [each for each in found if isinstance(each, ConstantOp)]


def blobs_of(path: Path, **options: Any) -> list[NDArray[Any]]:
    """The blobs of the only layer with blobs."""
    (op,) = [op for op in layers_of(import_net(path, **options)) if op.blobs]
    return [constant.array for constant in constants_of(op)]


def check(path: Path, **options: Any) -> None:
    """The layer `ip` has the weights W and B."""
    w, b = blobs_of(path, **options)
    np.testing.assert_array_equal(w, W)
    np.testing.assert_array_equal(b, B)


# Files


def test_the_file_of_the_same_name_is_found(tmp_path: Path) -> None:
    write_net(tmp_path, NET, weights_of({"ip": [W, B]}))
    (tmp_path / "other.caffemodel").write_bytes(b"never read")
    check(tmp_path / "net.prototxt")


def test_the_only_file_beside_the_net_is_found(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    (tmp_path / "it.caffemodel").write_bytes(weights_of({"ip": [W, B]}).SerializeToString())
    check(path)


def test_of_two_files_one_has_to_be_named(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    for name in ("a.caffemodel", "b.caffemodel"):
        (tmp_path / name).write_bytes(weights_of({"ip": [W, B]}).SerializeToString())
    assert problems_of(path) == [
        "no weights for the layers 'ip' (InnerProduct); give the .caffemodel file, or put it "
        "beside the net under the same name"
    ]
    check(path, weights=tmp_path / "b.caffemodel")


def test_a_net_without_blobs_needs_no_file(tmp_path: Path) -> None:
    net = INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }'
    (tmp_path / "net.caffemodel").write_bytes(b"never read")
    assert len(layers_of(import_net(write_net(tmp_path, net)))) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty, expected a caffemodel"),
        (b"\x00\x01\x02\x03", "is not a valid caffemodel, or is damaged"),
        (b"some words", "line 1: "),
    ],
)
def test_files_that_are_no_caffemodel(data: bytes, message: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    (tmp_path / "net.caffemodel").write_bytes(data)
    (problem,) = problems_of(path)
    assert problem.startswith(message)


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    assert problems_of(path, weights=tmp_path / "missing") == [
        "cannot be read: No such file or directory"
    ]


# Forms


def legacy(array: NDArray[Any]) -> BlobProto:
    """A blob with four dimensions, the first ones 1."""
    sizes = (1,) * (4 - array.ndim) + array.shape
    names = ("num", "channels", "height", "width")
    return BlobProto(data=array.ravel().tolist(), **dict(zip(names, sizes, strict=True)))


def test_legacy_shapes(tmp_path: Path) -> None:
    net = NetParameter()
    net.layers.add(name="ip", blobs=[legacy(W), legacy(B)])
    check(write_net(tmp_path, NET, net))


def test_weights_in_v0_layers(tmp_path: Path) -> None:
    net = NetParameter()
    old = net.layers.add().layer
    old.name = "ip"
    old.blobs.extend([legacy(W), legacy(B)])
    check(write_net(tmp_path, NET, net))


def test_doubles_are_rounded(tmp_path: Path) -> None:
    net = NetParameter()
    layer = net.layer.add(name="ip")
    for array in (W * (1 + 1e-12), B):
        layer.blobs.add(double_data=array.ravel().tolist()).shape.dim.extend(array.shape)
    check(write_net(tmp_path, NET, net))


def test_weights_as_text(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    text = text_format.MessageToString(weights_of({"ip": [W, B]}))
    (tmp_path / "net.caffemodel").write_text(text)
    check(path)


def test_weights_in_the_net_itself(tmp_path: Path) -> None:
    net = text_format.Parse(NET, NetParameter())
    net.layer[1].blobs.extend(weights_of({"ip": [W, B]}).layer[0].blobs)
    check(write_net(tmp_path, text_format.MessageToString(net)))


def test_other_layers_other_order_and_unknown_fields(tmp_path: Path) -> None:
    net = weights_of({"z": [B], "x_in_0_split": [], "ip": [W, B], "a": []})
    extra = bytes([0xA2, 0x1F, 2, 8, 1])  # field 500: a message
    path = write_net(tmp_path, NET)
    (tmp_path / "net.caffemodel").write_bytes(extra + net.SerializeToString() + extra)
    check(path)


def large_net(tmp_path: Path, kind: type[np.floating[Any]]) -> tuple[Path, NDArray[Any]]:
    """A net with weights of 64 KiB, as floats or doubles, and gradients beside them."""
    net = (
        INPUT.replace("dim: 3", "dim: 128")
        + """
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
          inner_product_param { num_output: 128 bias_term: false } }"""
    )
    w = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)
    weights = NetParameter()
    values = w.ravel().tolist()
    blob = weights.layer.add(name="ip").blobs.add()
    if kind is np.float32:
        blob.data.extend(values)
        blob.diff.extend(values)
    else:
        blob.double_data.extend(values)
        blob.double_diff.extend(values)
    blob.shape.dim.extend(w.shape)
    return write_net(tmp_path, net, weights), w


def test_large_floats_stay_in_the_file(tmp_path: Path) -> None:
    path, w = large_net(tmp_path, np.float32)
    (op,) = layers_of(import_net(path))
    (constant,) = constants_of(op)
    assert constant.value.data.file == str(tmp_path / "net.caffemodel")
    np.testing.assert_array_equal(constant.array, w)
    assert parse_weights(str(tmp_path / "net.caffemodel")).ByteSize() < 100


def test_large_doubles_are_read_from_the_file(tmp_path: Path) -> None:
    path, w = large_net(tmp_path, np.float64)
    np.testing.assert_array_equal(blobs_of(path)[0], w)
    assert parse_weights(str(tmp_path / "net.caffemodel")).ByteSize() < 100


def test_floats_that_are_not_packed(tmp_path: Path) -> None:
    """In parts, which only protobuf joins."""
    path, w = large_net(tmp_path, np.float32)
    data = w.tobytes()
    half = len(data) // 2
    parts = [bytes([0x2A]) + _varint(half) + part for part in (data[:half], data[half:])]
    shape = bytes([0x3A, 6, 0x0A, 4, 0x80, 1, 0x80, 1])
    blob = b"".join([*parts, shape])
    layer = bytes([0x0A, 2]) + b"ip" + bytes([0x3A]) + _varint(len(blob)) + blob
    net = bytes([0xA2, 0x06]) + _varint(len(layer)) + layer
    (tmp_path / "net.caffemodel").write_bytes(net)
    np.testing.assert_array_equal(blobs_of(path)[0], w)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


# What does not fit


@pytest.mark.parametrize(
    ("blobs", "message"),
    [
        (
            [W],
            "node 'ip' (InnerProduct): the weights have 1 blobs for it, expected 2; "
            "blob 1 of the shape [4] is missing",
        ),
        (
            [W, B, B],
            "node 'ip' (InnerProduct): the weights have 3 blobs for it, expected 2",
        ),
        (
            [W.T, B],
            "node 'ip' (InnerProduct): blob 0 of its weights has the shape [3, 4], expected [4, 3]",
        ),
        (
            [W, B.reshape(4, 1)],
            "node 'ip' (InnerProduct): blob 1 of its weights has the shape [4, 1], expected [4]",
        ),
    ],
)
def test_weights_that_do_not_fit(blobs: list[NDArray[Any]], message: str, tmp_path: Path) -> None:
    assert problems_of(write_net(tmp_path, NET, weights_of({"ip": blobs}))) == [message]


def test_fewer_numbers_than_the_shape_says(tmp_path: Path) -> None:
    net = weights_of({"ip": [W, B]})
    net.layer[0].blobs[0].data.pop()
    assert problems_of(write_net(tmp_path, NET, net)) == [
        "node 'ip' (InnerProduct): blob 0 of its weights has 11 numbers, expected 12"
    ]


def test_layers_without_weights_are_reported_at_once(tmp_path: Path) -> None:
    net = (
        NET
        + """layer { name: "b" type: "Bias" bottom: "y" top: "z" }
        layer { name: "s" type: "Scale" bottom: "z" top: "s" }"""
    )
    path = write_net(tmp_path, net, weights_of({"b": [B]}))
    assert problems_of(path) == [
        f"node 'ip' (InnerProduct): '{tmp_path}/net.caffemodel' has no weights for it",
        f"node 's' (Scale): '{tmp_path}/net.caffemodel' has no weights for it",
    ]


def test_two_layers_of_one_name(tmp_path: Path) -> None:
    net = NET + """layer { name: "ip" type: "Bias" bottom: "y" top: "z" }"""
    (problem,) = problems_of(write_net(tmp_path, net, weights_of({"ip": [W, B]})))
    assert problem == (
        "node 'ip' (Bias): another layer has this name, so that its weights are not known"
    )


# Sharing

SHARED = (
    INPUT
    + """
    layer { name: "a" type: "Bias" bottom: "x" top: "y" param { name: "b" } }
    layer { name: "b" type: "Bias" bottom: "y" top: "z" param { name: "b" } }"""
)


def test_shared_blobs_may_be_in_the_file_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        path = write_net(tmp_path, SHARED, weights_of({name: [W[1]]}))
        first, second = (constants_of(op)[0].array for op in layers_of(import_net(path)))
        np.testing.assert_array_equal(first, W[1])
        np.testing.assert_array_equal(second, W[1])


def test_of_different_values_for_shared_blobs_the_last_one_counts(tmp_path: Path) -> None:
    """Caffe copies them into one blob, in the order of the file."""
    path = write_net(tmp_path, SHARED, weights_of({"b": [W[1]], "a": [W[2]]}))
    for op in layers_of(import_net(path)):
        np.testing.assert_array_equal(constants_of(op)[0].array, W[2])


@pytest.mark.parametrize("mode", ["STRICT", "PERMISSIVE"])
def test_shared_blobs_of_different_shapes(mode: str, tmp_path: Path) -> None:
    net = f"""{INPUT}
        layer {{ name: "a" type: "Bias" bottom: "x" top: "y" param {{ name: "b" }} }}
        layer {{ name: "r" type: "Reshape" bottom: "y" top: "r"
          reshape_param {{ shape {{ dim: 2 dim: 3 dim: 1 }} }} }}
        layer {{ name: "b" type: "Bias" bottom: "r" top: "z" bias_param {{ num_axes: 2 }}
          param {{ name: "b" share_mode: {mode} }} }}"""
    path = write_net(tmp_path, net, weights_of({"a": [W[1]]}))
    if mode == "STRICT":
        assert problems_of(path) == [
            "node 'b' (Bias): shares 'b' of the shape [3] with layer 'a', expected the shape [3, 1]"
        ]
        return
    last = layers_of(import_net(path))[-1]
    assert constants_of(last)[0].array.shape == (3, 1)
