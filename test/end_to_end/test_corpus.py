"""Models of TensorFlow 1 and Caffe give the answers that the frameworks gave, or are refused."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from models.corpus import (
    Case,
    PlainCase,
    compiled,
    exported,
    interpreted,
    interpreted_as_caffe,
    run_case,
)

REFUSED: Mapping[str, frozenset[str]] = {
    "tf1": frozenset(),
    "caffe": frozenset(),
}
"""The cases that are refused so far; a case that is refused no more must leave the list."""


def _check(kind: str, case: Any, prepare: Any) -> None:
    outcome = run_case(case, prepare)
    expected = "refused" if case.name in REFUSED[kind] else "pass"
    assert outcome.status == expected, outcome.message


@pytest.mark.slow_cases("net_resnet", "net_unet")
def test_tf1_through_c(tf1_case: Case) -> None:
    _check("tf1", tf1_case, compiled)


@pytest.mark.slow_cases(
    *("net_caffenet_full_conv", "net_fcn", "net_googlenet", "net_mobilenet_v1", "net_resnet50"),
    "net_vgg_ssd",
)
def test_caffe_through_c(caffe_case: Case) -> None:
    _check("caffe", caffe_case, compiled)


def test_names_and_order_mean_nothing(tf1_case: Case, tmp_path: Path) -> None:
    """Every node renamed to random letters, the file shuffled: the same answers."""
    graph = GraphDef.FromString(tf1_case.model.read_bytes())
    names = renamed(graph, random.Random(tf1_case.name))
    path = tmp_path / "model.pb"
    path.write_bytes(graph.SerializeToString())
    _check("tf1", _Renamed(tf1_case, path, names), interpreted)


def renamed(graph: GraphDef, generator: random.Random) -> dict[str, str]:
    """Rename all nodes and frames of a graph, and shuffle it; the new names by the old ones."""
    names = {node.name: _letters(generator, index) for index, node in enumerate(graph.node)}
    frames: dict[bytes, bytes] = {}
    for node in graph.node:
        node.name = names[node.name]
        node.input[:] = [_with_name(text, names) for text in node.input]
        if "frame_name" in node.attr:
            frame = node.attr["frame_name"]
            frame.s = frames.setdefault(frame.s, _letters(generator, len(frames)).encode())
        for attribute in [name for name in node.attr if name.startswith("_")]:
            del node.attr[attribute]
    nodes = list(graph.node)
    generator.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
    return names


def _letters(generator: random.Random, number: int) -> str:
    return "".join(generator.choices(string.ascii_letters, k=6)) + str(number)


def _with_name(text: str, names: Mapping[str, str]) -> str:
    """An input of a node: `name`, `name:port` or `^name`."""
    mark = "^" if text.startswith("^") else ""
    name, colon, port = text.removeprefix("^").partition(":")
    return f"{mark}{names[name]}{colon}{port}"


class _Renamed(PlainCase):
    """A case whose tensors have other names."""

    def __init__(self, case: Any, model: Path, names: Mapping[str, str]) -> None:
        self.name, self.model = case.name, model
        self._case, self._names = case, names
        self.outputs: Sequence[str] = [_with_name(name, names) for name in case.outputs]

    def samples(self) -> Any:
        for inputs, expected in self._case.samples():
            yield {_with_name(name, self._names): array for name, array in inputs.items()}, expected

    def difference(self, found: Mapping[str, Any], expected: Any) -> str:
        old = dict(zip(self.outputs, self._case.outputs, strict=True))
        results = {old[name]: array for name, array in found.items() if name in old}
        return self._case.difference(results, expected)


# Through C, every case runs in each run of the tests; as what it is exported, only here or there.


@pytest.mark.cases_in_turn(0, ())
def test_tf1_through_onnx(tf1_case: Case) -> None:
    _check("tf1", tf1_case, exported)


@pytest.mark.cases_in_turn(0, ())
def test_caffe_through_onnx(caffe_case: Case) -> None:
    _check("caffe", caffe_case, exported)


@pytest.mark.cases_in_turn(1, ())
def test_caffe_through_caffe(caffe_case: Case) -> None:
    _check("caffe", caffe_case, interpreted_as_caffe)


CONVOLUTIONAL = frozenset(
    """
    batchnorm_old conv_1d_3d conv_bn_relu6 conv_same_s2_even conv_valid_explicit deconv
    depthwise_separable dilated head_mean_softmax layout_ops lrn net_crnn net_inception_stem
    net_mobilenetv2 net_resnet net_tf_layers net_unet pad_conv_valid pools resize_bilinear
    resize_nearest split_group_conv split_group_conv_not strided_slice_masks
    """.split()
)
"""The cases of TensorFlow that are nets of Caffe as well; others may be refused."""


@pytest.mark.cases_in_turn(1, CONVOLUTIONAL)
def test_tf1_through_caffe(tf1_case: Case) -> None:
    outcome = run_case(tf1_case, interpreted_as_caffe)
    allowed = ("pass",) if tf1_case.name in CONVOLUTIONAL else ("pass", "refused")
    assert outcome.status in allowed, outcome.message
