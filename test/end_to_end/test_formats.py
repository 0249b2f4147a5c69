"""The tools take models of every format, told apart by their content."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from google.protobuf import text_format
from numpy.typing import NDArray

import lowerdeck
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.opt_tool import main as opt_tool

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
IMAGES: NDArray[Any] = np.load(DIGITS / "held_back.npz")["images"][:1]


def _recorded(name: str, output: str) -> NDArray[Any]:
    return np.load(DIGITS / f"{name}.npz")[output][:1]


def _images(rank: int) -> NDArray[Any]:
    """The image with a dimension for its channel, or without."""
    return IMAGES if rank == IMAGES.ndim else IMAGES[:, 0]


@pytest.fixture
def pbtxt(tmp_path: Path) -> Path:
    """The frozen graph as text, under a name that says nothing."""
    graph = GraphDef.FromString((DIGITS / "digits_lstm.pb").read_bytes())
    path = tmp_path / "graph.txt"
    path.write_text(text_format.MessageToString(graph))
    return path


@pytest.fixture
def pb(tmp_path: Path) -> Path:
    """The frozen graph, under a name that says nothing."""
    return Path(shutil.copy(DIGITS / "digits_lstm.pb", tmp_path / "graph"))


@pytest.fixture
def apart(tmp_path: Path) -> tuple[Path, Path]:
    """A net and its weights, in two folders."""
    (tmp_path / "weights").mkdir()
    net = shutil.copy(DIGITS / "digits_lenet.prototxt", tmp_path / "net")
    weights = shutil.copy(DIGITS / "digits_lenet.caffemodel", tmp_path / "weights" / "w")
    return Path(net), Path(weights)


def _run(model: Path, tmp_path: Path, *options: str) -> dict[str, NDArray[Any]]:
    """What `lowerdeck run` writes for the first image."""
    (image,) = lowerdeck.compile(model, weights=options[1] if options else None).inputs
    given, out = tmp_path / "in.npz", tmp_path / "out.npz"
    inputs: dict[str, Any] = {image.name: _images(len(image.shape))}
    np.savez(given, **inputs)
    command = ["run", str(model), "--inputs", str(given), "--outputs", str(out), *options]
    assert main(command) == 0
    with np.load(out) as file:
        return {key: file[key] for key in file.files}


def test_graph(pb: Path, tmp_path: Path) -> None:
    found = _run(pb, tmp_path)
    np.testing.assert_allclose(
        found["logits:0"], _recorded("digits_lstm", "logits:0"), rtol=1e-4, atol=1e-4
    )


def test_graph_as_text(pbtxt: Path, tmp_path: Path) -> None:
    found = _run(pbtxt, tmp_path)
    np.testing.assert_allclose(
        found["logits:0"], _recorded("digits_lstm", "logits:0"), rtol=1e-4, atol=1e-4
    )


def test_graph_in_memory(pb: Path) -> None:
    model = lowerdeck.compile(GraphDef.FromString(pb.read_bytes()), outputs=["logits"])
    (found,) = model(_images(3))
    expected = _recorded("digits_lstm", "logits:0")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_message_that_is_no_model() -> None:
    with pytest.raises(TypeError, match="a NodeDef is no model; expected one of ModelProto"):
        lowerdeck.compile(GraphDef().node.add())


def test_net_with_weights_apart(apart: tuple[Path, Path], tmp_path: Path) -> None:
    net, weights = apart
    found = _run(net, tmp_path, "--weights", str(weights))
    expected = _recorded("digits_lenet", "prob")
    np.testing.assert_allclose(found["prob"], expected, rtol=1e-4, atol=1e-5)


def test_net_without_its_weights(
    apart: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, _ = apart
    assert main(["compile", str(net), "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert message.startswith(f"{net}: ")
    assert "give the .caffemodel file" in message
    assert not (tmp_path / "out").exists()


def test_weights_that_belong_to_no_model(
    pb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = ["--weights", str(pb), "-o", str(tmp_path / "out")]
    assert main(["compile", str(pb), *rest]) == 1
    assert "the variables are to be in" in capsys.readouterr().err
    assert main(["compile", str(DIGITS / "digits.onnx"), *rest]) == 1
    message = capsys.readouterr().err
    assert "the option 'weights' is for tf1, paddle" in message
    assert "and caffe only, not onnx" in message


@pytest.mark.parametrize("name", ["digits_lstm.pb", "digits_lenet.prototxt"])
def test_export(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert main(["export", str(DIGITS / name), "-o", str(out)]) == 0
    session = cast(Any, onnxruntime).InferenceSession(str(out), providers=["CPUExecutionProvider"])
    stem = name.partition(".")[0]
    (output,) = session.get_outputs()
    (image,) = session.get_inputs()
    (found,) = session.run(None, {image.name: _images(len(image.shape))})
    np.testing.assert_allclose(found, _recorded(stem, output.name), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "line"),
    [("digits_lstm.pb", "TensorArrayReadV3"), ("digits_lenet.prototxt", "Slice")],
)
def test_ops(name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(DIGITS / name)]) == 0
    printed = capsys.readouterr().out
    assert line in printed
    assert "NOT SUPPORTED" not in printed


@pytest.mark.parametrize(
    ("name", "pipeline", "present", "absent"),
    [
        ("digits_lstm.pb", "raise-tf1-control-flow", "core.loop", "tf1.Merge"),
        ("digits_lstm.pb", "raise-tf1-control-flow,infer-shapes,legalize-tf1", "core.", "tf1."),
        ("digits_lenet.prototxt", "legalize-caffe", "core.split", "caffe."),
    ],
)
def test_opt_tool(
    name: str, pipeline: str, present: str, absent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opt_tool([str(DIGITS / name), f"--pass-pipeline={pipeline}"]) == 0
    text = capsys.readouterr().out
    assert present in text
    assert absent not in text
