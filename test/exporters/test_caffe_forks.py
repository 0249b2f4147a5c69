"""Layers of Caffe's forks leave and come back with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import lowerdeck
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporters.errors import ExportError
from models.caffe_nets import NetBuilder

SSD = {"Permute", "Normalize", "ReLU6"}
FORKS = {"Axpy", "BN", "ConvolutionDepthwise", "Interp", "Mish", "ShuffleChannel", "Upsample"}


def check(net: NetBuilder, folder: Path, dialect: str) -> set[str]:
    """The types of the layers of the exported net, which computes what the net does."""
    source = net.write(folder, "source")
    out = folder / "net.prototxt"
    lowerdeck.export(source, out, dialect=dialect)
    random = np.random.default_rng(7)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in net.inputs.items()}
    before, after = (
        run_module(import_and_lower(str(path), "legal", CompileOptions())[0], inputs)
        for path in (source, out)
    )
    assert sorted(before) == sorted(after)
    for name, value in before.items():
        np.testing.assert_allclose(np.asarray(after[name]), np.asarray(value), 1e-4, 1e-5)
    types = {layer.type for layer in text_format.Parse(out.read_text(), NetParameter()).layer}
    assert types.isdisjoint(FORKS)
    assert dialect == "ssd" or types.isdisjoint(SSD)
    return types


def neurons(net: NetBuilder, x: str) -> None:
    for type_ in ("HardSwish", "HSigmoid", "HSwish", "Mish", "SiLU"):
        x = net.add(type_, type_, x)


def crelu(net: NetBuilder, x: str) -> None:
    net.add("y", "CReLU", x, crelu_param={"negative_slope": 0.25})


def depthwise(net: NetBuilder, x: str) -> None:
    p = {"num_output": 8, "kernel_size": [3], "stride": [2], "hole": 2, "pad": [2]}
    net.add("y", "ConvolutionDepthwise", x, convolution_param=p)


def normalizations(net: NetBuilder, x: str) -> None:
    y = net.add("own", "BatchNorm", x, batch_norm_param={"scale_bias": True})
    y = net.add("segnet", "BN", y, bn_param={"bn_mode": "INFERENCE"})
    net.add("y", "BN", y, bn_param={"slope_filler": {"value": 1}})


def weighted(net: NetBuilder, x: str) -> None:
    net.add("y", "Axpy", net.pool("p", x, 0, pool="AVE"), x, x)


def moved(net: NetBuilder, x: str) -> None:
    y = net.add("shuffle", "ShuffleChannel", x, shuffle_channel_param={"group": 4})
    y = net.add("reverse", "Reverse", y, reverse_param={"axis": 1})
    net.add("nearest", "Upsample", y, upsample_param={"scale": 3})


@pytest.mark.parametrize("dialect", ["bvlc", "ssd"])
@pytest.mark.parametrize(
    "layers", [neurons, crelu, depthwise, normalizations, weighted, moved], ids=lambda f: f.__name__
)
def test_layers_of_forks(
    layers: Callable[[NetBuilder, str], None], dialect: str, tmp_path: Path
) -> None:
    net = NetBuilder("forks")
    layers(net, net.input("x", 2, 8, 6, 4))
    check(net, tmp_path, dialect)


def test_what_no_layer_says_is_refused(tmp_path: Path) -> None:
    net = NetBuilder("regions")
    x, rois = net.input("x", 1, 8, 6, 4), net.input("rois", 2, 5)
    p = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1}
    net.add("pool", "ROIPooling", x, rois, roi_pooling_param=p)
    with pytest.raises(ExportError, match=r"node 'pool' .*no layer of Caffe computes"):
        lowerdeck.export(net.write(tmp_path, "source"), tmp_path / "net.prototxt")
    assert not (tmp_path / "net.prototxt").exists()
