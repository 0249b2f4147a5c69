"""Damaged nets and weights: one FrontendError that says what is wrong, or a harmless change."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    weights_of,
    write_net,
)

NET = """name: "net"
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: [1, 2, 9, 9] } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: "bn" type: "BatchNorm" bottom: "c" top: "c" batch_norm_param { eps: 1e-3 } }
layer { name: "relu" type: "ReLU" bottom: "c" top: "c" relu_param { negative_slope: .5 } }
layer { name: "pool" type: "Pooling" bottom: "c" top: "p"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } include { phase: TEST } }
layer { name: "ip" type: "InnerProduct" bottom: "p" top: "y"
  inner_product_param { num_output: 3 } param { name: "w" } }
layer { name: "prob" type: "Softmax" bottom: "y" top: "prob" }
"""


def net_weights() -> NetParameter:
    """Weights for the net, some of them large enough to stay in the file."""
    source = np.random.default_rng(0)
    shapes = {
        "conv": [(16, 2, 3, 3), (16,)],
        "bn": [(16,), (16,), (1,)],
        "ip": [(3, 400), (3,)],
    }
    return weights_of(
        {name: [source.random(shape) for shape in each] for name, each in shapes.items()}
    )


def load(path: Path) -> FrontendError | None:
    """The error of loading the net; any other exception fails the test."""
    found = None
    try:
        str(load_model(path))
    except FrontendError as error:
        found = error
    assert found is None or str(found).startswith(str(path.parent))
    return found


def test_the_net_itself(tmp_path: Path) -> None:
    assert load(write_net(tmp_path, NET, net_weights())) is None


def test_truncated_nets(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET, net_weights())
    for size in range(0, len(NET) - 1, 3):
        path.write_text(NET[:size])
        error = load(path)
        # A text that ends between two layers is a net, too.
        assert error is not None or NET[:size].rstrip().endswith("}"), size


@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits_in_nets(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    path = write_net(tmp_path, NET, net_weights())
    for _ in range(40):
        data = bytearray(NET.encode())
        for _ in range(source.choice([1, 1, 2, 5])):
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        path.write_bytes(data)
        load(path)


def test_truncated_weights(tmp_path: Path) -> None:
    path = write_net(tmp_path, NET)
    data = net_weights().SerializeToString()
    assert len(data) > 5000
    for size in range(0, len(data), 61):
        (tmp_path / "net.caffemodel").write_bytes(data[:size])
        assert load(path) is not None, size


@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits_in_weights(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    path = write_net(tmp_path, NET)
    data = net_weights().SerializeToString()
    # Most bytes are numbers, of which any value is a valid one: aim at what is between them.
    places = [place for place in range(len(data)) if not 20 < place % 1000 < 900]
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 5])):
            damaged[source.choice(places)] ^= 1 << source.randrange(8)
        (tmp_path / "net.caffemodel").write_bytes(damaged)
        load(path)


@pytest.mark.parametrize(
    "layer",
    [
        'type: "Input" top: "y" input_param { shape { dim: [99999, 99999, 99999] } }',
        'type: "Tile" bottom: "x" top: "y" tile_param { tiles: 2147483647 }',
        'type: "DummyData" top: "y" dummy_data_param { shape { dim: 4294967296 } }',
        'type: "Im2col" bottom: "x" top: "y" convolution_param { kernel_size: 1 pad: 4294967295 }',
        'type: "SPP" bottom: "x" top: "y" spp_param { pyramid_height: 4294967295 }',
        'type: "ArgMax" bottom: "x" top: "y" argmax_param { top_k: 4294967295 }',
    ],
)
def test_sizes_beyond_all_memory_are_refused(layer: str, tmp_path: Path) -> None:
    text = f'{NET.splitlines()[1]} layer {{ name: "odd" {layer} }}'
    error = load(write_net(tmp_path, text))
    assert error is not None
    assert [problem.node for problem in error.problems] == ["odd"]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    write_net(tmp_path, NET, net_weights())
    path.write_bytes(b"# \xff in a comment does no harm\n" + NET.encode())
    assert load(path) is None
    path.write_bytes(NET.encode().replace(b'"prob"', b'"pr\xffob"'))
    assert "line 11: it is not UTF-8 text" in str(load(path))
    path.write_bytes(NET.encode().replace(b"eps", b"e\xffs"))
    assert "line 5: it is not UTF-8 text" in str(load(path))
    path.write_text(NET)
    data = net_weights().SerializeToString().replace(b"conv", b"c\xffnv")
    (tmp_path / "net.caffemodel").write_bytes(data)
    assert "is not UTF-8 text" in str(load(path))
