"""The nets of Caffe are those that are well known, by the number of their parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.caffe.import_ import import_net
from models.caffe_detectors import NETWORKS, build
from models.caffe_nets import NetBuilder

MILLIONS = {
    "alexnet": 60.97,
    "caffenet": 60.97,
    "densenet121": 8.06,
    "enet": 0.35,
    "faster_rcnn": 137.08,
    "fcn8s": 134.49,
    "googlenet": 7.00,
    "inception_resnet_v2": 55.90,
    "mobilenet_ssd": 5.82,
    "mobilenet_v1": 4.25,
    "mobilenet_v2": 3.54,
    "nsfw": 5.93,
    "openpose": 52.31,
    "pspnet": 46.84,
    "resnet50": 25.61,
    "resnet101": 44.65,
    "resnet152": 60.34,
    "se_resnet50": 28.14,
    "squeezenet": 1.24,
    "vgg16": 138.36,
    "vgg19": 143.67,
    "vgg_ssd": 26.29,
}
"""With the statistics of normalizations, which are blobs, too."""

OTHERS = {
    "bbox_pred": (1, 84),
    "cls_prob": (1, 21),
    "conv6_interp": (1, 150, 473, 473),
    "deconv6_0_0": (1, 19, 512, 1024),
    "detection_out": (1, 1, 1, 7),
    "net_output": (1, 57, 46, 46),
    "score": (1, 21, 500, 500),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    net = build(name)
    assert round(net.parameters / 1e6, 2) == MILLIONS[name]
    for output in net.outputs:
        if output == "prob":
            classes = 2 if name == "nsfw" else 1000
            assert net.shapes[output][:2] == (1, classes)
        else:
            assert net.shapes[output] == OTHERS[output]
    types = {layer.type for layer in build(name, plain=True).parameter.layer}
    assert types.isdisjoint({"Axpy", "BN", "Python", "Upsample"})


def test_a_substitute_has_the_numbers_of_what_it_replaces(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 4, 3, 3)).astype(np.float32)
    found: list[np.ndarray] = []
    for plain in (False, True):
        net = NetBuilder("norm", plain=plain)
        y = net.input("x", 1, 4, 3, 3)
        if plain:
            y = net.norm(y, relu=False, name="bn", in_place=False, alias="bn")
        else:
            net.add("bn", "BN", y, bn_param={"slope_filler": {"value": 1}})
        module = import_net(net.write(tmp_path, f"plain{plain}"))
        found += [np.asarray(value) for value in run_module(module, {"x": x}).values()]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
