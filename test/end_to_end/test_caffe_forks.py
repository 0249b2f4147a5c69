"""Layers of Caffe's forks through C, beside the reference interpreter of their dialect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import lowerdeck
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.caffe.import_ import import_net
from models.caffe_nets import NetBuilder

Arrays = dict[str, NDArray[np.float32]]


def check(net: NetBuilder, folder: Path, **given: NDArray[np.float32]) -> Arrays:
    """Both give the same numbers; those of the C."""
    return check_runs(net, folder, given)[0]


def check_runs(net: NetBuilder, folder: Path, *runs: Arrays) -> list[Arrays]:
    """The same for several runs with some inputs given; the others are random."""
    path = net.write(folder, "net")
    module, model = import_net(path), lowerdeck.compile(path, cache=False)
    random = np.random.default_rng(7)
    drawn = {name: random.standard_normal(shape, np.float32) for name, shape in net.inputs.items()}
    results: list[Arrays] = []
    for given in runs:
        expected, found = run_module(module, drawn | given), model(drawn | given)
        assert list(found) == list(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], np.asarray(array), rtol=2e-5, atol=2e-5)
        results.append(dict(found))
    return results


def test_layers_that_keep_the_number_of_elements_known(tmp_path: Path) -> None:
    net = NetBuilder("forks")
    x = net.input("x", 2, 8, 6, 4)
    for type_ in ("HardSwish", "HSigmoid", "HSwish", "Mish", "SiLU"):
        net.add(type_, type_, x)
    y = net.add("shuffle", "ShuffleChannel", x, shuffle_channel_param={"group": 4})
    y = net.add("bn", "BN", y, bn_param={"slope_filler": {"value": 1}})
    y = net.add("segnet", "BN", y, bn_param={"bn_mode": "INFERENCE"})
    p = {"num_output": 8, "kernel_size": [3], "pad": [2], "hole": 2}
    y = net.add("depthwise", "ConvolutionDepthwise", y, convolution_param=p)
    y = net.add("own", "BatchNorm", y, batch_norm_param={"scale_bias": True})
    side = net.pool("side", x, 0, pool="AVE")
    y = net.add("axpy", "Axpy", side, y, x)
    y = net.add("crelu", "CReLU", y)
    y = net.add("reverse", "Reverse", y, reverse_param={"axis": 1})
    net.add("reorg", "Reorg", y, reorg_param={"stride": 2})
    y = net.add("interp", "Interp", y, interp_param={"height": 9, "width": 5, "pad_end": -1})
    net.add("nearest", "Upsample", y, upsample_param={"scale": 3})
    p = {"pool": "MAX", "kernel_size": 2, "stride": 2, "ceil_mode": False}
    pooled = net.add("pool", "Pooling", x, tops=["pool", "mask"], pooling_param=p)
    net.add("unpool", "Upsample", pooled, "mask", upsample_param={"scale": 2})
    check(net, tmp_path)


@pytest.mark.parametrize("regions", [0, 1, 5])
def test_pools_of_regions(regions: int, tmp_path: Path) -> None:
    net = NetBuilder("regions")
    x, rois = net.input("x", 2, 12, 7, 9), net.input("rois", regions, 5)
    p = {"pooled_h": 3, "pooled_w": 2, "spatial_scale": 0.5}
    net.add("roi", "ROIPooling", x, rois, roi_pooling_param=p)
    p = {"output_dim": 3, "group_size": 2, "spatial_scale": 0.5}
    net.add("psroi", "PSROIPooling", x, rois, psroi_pooling_param=p)
    random = np.random.default_rng(regions)
    places = random.uniform(-3, 20, (regions, 4)).astype(np.float32)
    images = random.integers(0, 2, (regions, 1)).astype(np.float32)
    check(net, tmp_path, rois=np.concatenate([images, places], 1))


def detector(python: bool) -> NetBuilder:
    """As Faster R-CNN: what follows the proposals has as many items as these."""
    net = NetBuilder("detector")
    x, info = net.input("x", 1, 4, 6, 8), net.input("info", 1, 3)
    scores = net.add("score", "Sigmoid", net.conv("raw", x, 18, 1))
    deltas = net.conv("delta", x, 36, 1, gain=0.1)
    if python:
        p = {"module": "rpn.proposal_layer", "layer": "ProposalLayer"}
        p["param_str"] = "{'feat_stride': 16, 'scales': (1, 2, 4)}"
        rois = net.add("rois", "Python", scores, deltas, info, python_param=p)
    else:
        p = {"ratio": [0.5, 1, 2], "scale": [1, 2, 4], "pre_nms_topn": 60, "post_nms_topn": 7}
        rois = net.add("rois", "Proposal", scores, deltas, info, proposal_param=p)
    p = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1 / 16}
    x = net.add("pool", "ROIPooling", x, rois, roi_pooling_param=p)
    net.softmax(net.dense("cls", net.dense("fc", x, 16, relu=True), 5))
    return net


@pytest.mark.parametrize("python", [False, True])
def test_a_net_that_proposes_regions(python: bool, tmp_path: Path) -> None:
    """Nothing is as large as the second scale asks for."""
    infos = [np.array([info], np.float32) for info in ([96, 128, 1], [20, 20, 9])]
    some, none = check_runs(detector(python), tmp_path, *({"info": info} for info in infos))
    assert len(some["prob"]) > 3
    if python:
        assert none["prob"].shape == (0, 5)
    else:  # there are as many regions as are asked for
        assert {one["prob"].shape for one in (some, none)} == {(7, 5)}


@pytest.mark.parametrize("eta", [1.0, 0.9])
def test_detections(eta: float, tmp_path: Path) -> None:
    net = NetBuilder("ssd")
    image, x = net.input("image", 2, 3, 40, 60), net.input("x", 2, 4, 4, 6)
    p = {"min_size": [12.0], "max_size": [24.0], "aspect_ratio": [2.0], "variance": [0.1]}
    priors = net.add("prior", "PriorBox", x, image, prior_box_param=p)
    loc = net.add("loc", "Flatten", net.conv("l", x, 16, 1, gain=0.3))
    conf = net.add("conf", "Flatten", net.add("s", "Sigmoid", net.conv("c", x, 12, 1)))
    nms = {"nms_threshold": 0.6, "top_k": 40, "eta": eta}
    p = {"num_classes": 3, "code_type": "CENTER_SIZE", "keep_top_k": 25, "nms_param": nms}
    net.add("out", "DetectionOutput", loc, conf, priors, detection_output_param=p)
    assert check(net, tmp_path)["out"].shape[2] > 10


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_items_that_are_chosen(value: float, tmp_path: Path) -> None:
    net = NetBuilder("filter")
    x, y, choice = net.input("x", 4, 3), net.input("y", 4, 2, 2), net.input("choice", 4, 1)
    first = net.add("filter", "Filter", x, y, choice, tops=["a", "b"])
    net.relu(first)
    chosen = np.array([[value], [0], [value], [0]], np.float32)
    found = check(net, tmp_path, choice=chosen)
    assert found["b"].shape == (2 * int(value), 2, 2)
