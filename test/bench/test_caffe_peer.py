"""Nets of Caffe beside a stand-in for OpenCV: what is compared, and what of it is told."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from google.protobuf import text_format
from onnx import helper

import lowerdeck
from bench import caffe_exports, caffe_peer, peers
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from models import caffe_detectors
from models.caffe_nets import NetBuilder


def small(net: NetBuilder) -> None:
    x = net.conv("conv", net.input("data", 1, 3, 6, 6), 4, 3, relu=True)
    net.softmax(net.dense("fc", x, 5))


class Peer:
    """Reads nets as OpenCV does, and adds an error to what they compute."""

    def __init__(self, error: float) -> None:
        self.error, self.threads = error, list[int]()
        self.dnn = SimpleNamespace(readNetFromCaffe=self._read)
        self.setNumThreads = self.threads.append

    def _read(self, path: str, weights: str) -> Any:
        inputs: dict[str, Any] = {}

        def forward(names: Sequence[str]) -> list[Any]:
            model = lowerdeck.compile(path, weights=weights, outputs=names, cache=False)
            return [value + np.float32(self.error) for value in model(inputs).values()]

        def set_input(array: Any, name: str) -> None:
            inputs[name] = array

        def retrieve(layers: Sequence[str]) -> list[list[Any]]:
            return [[value] for value in forward(layers)]

        return SimpleNamespace(
            setInput=set_input,
            forward=forward,
            forwardAndRetrieve=retrieve,
            getLayerNames=Mock(return_value=["y"]),
        )


@pytest.fixture
def only_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (caffe_detectors, caffe_peer):
        monkeypatch.setattr(module, "NETWORKS", {"small": small})


@pytest.mark.usefixtures("only_small")
@pytest.mark.parametrize(("error", "status"), [(0, 0), (0.1, 1), (np.nan, 1)])
def test_an_output_that_differs(
    error: float, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer(error)
    monkeypatch.setattr(caffe_peer, "_opencv", lambda: peer)
    assert peers.main(["--caffe", str(tmp_path), "--threads", "1"]) == status
    assert peer.threads == []


@pytest.mark.usefixtures("only_small")
def test_without_opencv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(caffe_peer, "_opencv", lambda: None)
    assert caffe_peer.main([str(tmp_path), "--threads", "1"]) == 0
    assert "nothing is compared" in capsys.readouterr().err


def result(name: str, times: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    found = {"net": name, "is_part": False, "finite": True, "compile": 2.5, "difference": 1e-6}
    return {**found, "times": times, **others}


def test_ratios() -> None:
    results = [
        result("a", {"1": {"ours": 0.1, "OpenCV": 0.2}, "2": {"ours": 0.05, "OpenCV": 0.2}}),
        result("b", {"1": {"ours": 0.1, "OpenCV": 0.8}, "2": {"ours": 0.1}}, is_part=True),
    ]
    found = [line.split() for line in caffe_peer.summary(results, [1, 2]).splitlines()]
    assert found[1] == ["a", "1.0e-06", "2.5", "100.0", "200.0", "2.00", "50.0", "200.0", "4.00"]
    assert found[2] == ["b*", "1.0e-06", "2.5", "100.0", "800.0", "8.00", "100.0", "-", "-"]
    one, two = (" ".join(line) for line in found[3:])
    assert one == "1 thread: 2 nets, OpenCV takes 4.00 times as long, 2.00 times at least"
    assert two == "2 threads: 1 nets, OpenCV takes 4.00 times as long, 4.00 times at least"


def test_what_is_wrong() -> None:
    assert not caffe_peer.is_wrong(result("a", {}))
    assert caffe_peer.is_wrong(result("a", {}, difference=0.01))
    assert caffe_peer.is_wrong(result("a", {}, finite=False))


# Exported models


def layers(text: str) -> NetParameter:
    return text_format.Parse(text, NetParameter())


def test_why_opencv_may_differ() -> None:
    net = """
        layer { name: "a" type: "Clip" top: "x" }
        layer { name: "b" type: "InnerProduct" top: "y" inner_product_param { axis: 2 } }
        layer { name: "c" type: "Pooling" bottom: "y" top: "u" top: "v" }
        layer { name: "d" type: "ReLU" bottom: "u" bottom: "v" top: "v" }
    """
    found = ["InnerProduct along another axis", "no layer Clip"]
    assert caffe_exports.reasons(layers(net)) == found
    unread = net.replace('bottom: "v"', "")
    found += ["no places of maxima that nothing reads"]
    assert caffe_exports.reasons(layers(unread)) == found
    named = unread.replace('name: "a"', 'name: "v"')
    found.insert(2, "no layer with the name of a blob that another one makes")
    assert caffe_exports.reasons(layers(named)) == found


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("Tanh", 0, "same"),
        (
            "Tanh",
            0.1,
            "same, but in OpenCV: y differs by .* of the largest value (NO KNOWN REASON)",
        ),
        ("Ceil", 0, "refused: .* an op that no layer of Caffe computes.*"),
    ],
)
def test_exported_models(
    function: str,
    error: float,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", Peer(error))
    monkeypatch.setattr(caffe_exports, "corpus_folder", Mock(return_value=None))
    types = [helper.make_tensor_value_info(name, 1, [1, 3]) for name in "xy"]
    node = helper.make_node(function, ["x"], ["y"], name="y")
    model = helper.make_model(helper.make_graph([node], "g", types[:1], types[1:]))
    path, x = tmp_path / "model.onnx", np.array([[0.25, -1, 2]], np.float32)
    path.write_bytes(model.SerializeToString())
    arrays: dict[str, Any] = {"input:x": x, "output:y": np.tanh(x)}
    np.savez(path.with_suffix(".npz"), **arrays)
    assert caffe_exports.main([str(path)]) == int(error > 0)
    first, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(f"onnx  model +{said}".replace("(NO", r"\(NO").replace("N)", r"N\)"), first)
    assert last.endswith(f"wrong {int(error > 0)}")
