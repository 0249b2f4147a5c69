"""`lowerdeck explain`: the changes of each pass, against counts by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.tools.lowerdeck import main

OUTPUTS = 8 * 6 * 6
CHANNELS = 8
TAPS = 3 * 3 * 3


def normalized(folder: Path, batch: int | str = 1) -> Path:
    """A convolution without a bias, its normalization, and a maximum with zero."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((CHANNELS, 3, 3, 3))}
    weights |= {name: rng.uniform(0.5, 1.5, CHANNELS) for name in ("s", "b", "m", "v")}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["y"], name="relu"),
    ]
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 8, 8]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, CHANNELS, 6, 6]),
    ]
    constants = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    opsets = [helper.make_opsetid("", 17)]
    path = folder / "normalized.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    return path


def explained(folder: Path, *options: str, batch: int | str = 1) -> dict[str, Any]:
    out = folder / "explained.json"
    path = str(normalized(folder, batch))
    assert main(["explain", path, f"--json={out}", "--target=c99", *options]) == 0
    return json.loads(out.read_text())


def entry(data: dict[str, Any], name: str) -> dict[str, Any]:
    found = [one for one in data["passes"] if one["pass"] == name]
    return next((one for one in found if one["rewrites"] or any(one["change"].values())), found[0])


def test_a_normalization_goes_into_weights(tmp_path: Path) -> None:
    data = explained(tmp_path)
    legal = [one for one in data["passes"] if one["phase"] == "legal"][-1]["after"]
    convolution = 2 * OUTPUTS * TAPS
    # Four steps of each element and two of each channel; then the maximum.
    assert legal["flops"] == convolution + 4 * OUTPUTS + 2 * CHANNELS + OUTPUTS
    assert legal["multiply_adds"] == OUTPUTS * TAPS
    # The normalization has four numbers a channel, the maximum a zero.
    assert legal["parameters"] == CHANNELS * TAPS + 4 * CHANNELS + 1
    assert legal["parameter_bytes"] == 4 * legal["parameters"]
    image, result = 4 * 3 * 8 * 8, 4 * OUTPUTS
    weights = 4 * CHANNELS * TAPS
    norm = 2 * result + 4 * 4 * CHANNELS
    assert legal["bytes_moved"] == image + weights + result + norm + 2 * result + 4
    fuse = entry(data, "fuse")
    # A bias for each element is what is left of it.
    assert fuse["change"]["flops"] == -(4 * OUTPUTS + 2 * CHANNELS) + OUTPUTS
    assert fuse["change"]["operations"] == -1
    assert fuse["change"]["bytes_moved"] == -norm + 4 * CHANNELS
    assert fuse["rewrites"] == {"fuse-linear/fuse-into-producer": 1}
    # In one kernel, the maximum moves nothing.
    epilogue = entry(data, "fuse-epilogue")
    assert epilogue["after"]["bytes_moved"] == image + weights + 4 * CHANNELS + result
    assert epilogue["after"]["kernels"] == 1
    assert epilogue["rewrites"] == {"fuse-epilogue/fuse-epilogue": 1}


def test_changes_add_up(tmp_path: Path) -> None:
    data = explained(tmp_path)
    before = None
    for one in data["passes"]:
        for name, change in one["change"].items():
            if before is not None and change is not None:
                assert before[name] + change == one["after"][name]
        before = one["after"]
    # Nothing is known of the arithmetic of loops; the weights are still there.
    assert before is not None
    assert before["flops"] is None
    assert before["parameters"] == CHANNELS * TAPS + CHANNELS


def test_a_pass_that_is_disabled_does_nothing(tmp_path: Path) -> None:
    data = explained(tmp_path, "--disable=fuse")
    assert "fuse" not in [one["pass"] for one in data["passes"]]
    last = [one for one in data["passes"] if one["phase"] == "optimized"][-1]["after"]
    assert last["flops"] == 2 * OUTPUTS * TAPS + 5 * OUTPUTS + 2 * CHANNELS


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(normalized(tmp_path))
    assert main(["explain", path, "--target=c99"]) == 0
    text = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line}
    assert lines["fuse"][:3] == ["-1", f"{-3 * OUTPUTS - 2 * CHANNELS:+,}", "-24"]
    assert lines["fuse-linear/fuse-into-producer"] == ["1"]
    assert "move-stride" not in lines
    assert "~" not in text
    assert main(["explain", path, "--target=c99", "--all"]) == 0
    assert "  move-stride\n" in capsys.readouterr().out


def test_open_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = explained(tmp_path, batch="n")
    out = capsys.readouterr().out
    assert "~ sizes are open, or loops end by a condition and count once" in out
    several = explained(tmp_path, "--input-shape=x=5,3,8,8", batch="n")
    assert "~" not in capsys.readouterr().out
    counts = [entry(data, "fuse")["after"]["flops"] for data in (one, several)]
    assert counts == [f"n * {counts[1] // 5}", counts[1]]


@pytest.mark.parametrize("options", [[], ["--threads=2"], ["--target=cortex-m4"]])
def test_cycles_of_kernels(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each term is there and the total is theirs; measured is what one thread runs here."""
    out = tmp_path / "cycles.json"
    path = str(normalized(tmp_path))
    assert main(["explain", path, "--cycles", f"--json={out}", "--target=c99", *options]) == 0
    kernels = json.loads(out.read_text())
    text = capsys.readouterr().out
    assert kernels
    for each in kernels:
        terms = each["terms"]
        assert list(terms) == ["units", "L2", "shared", "memory", "jumps", "starts"]
        starts = terms.pop("starts")
        assert each["total"] == max(terms.values()) + starts > 0
        assert (each["measured"] or 0) > 0 or options
        assert each["measured"] is None or not options
        assert each["kernel"] in text
    # 27 taps of 288 sums at least, one after the other.
    assert sum(each["total"] for each in kernels) > OUTPUTS * TAPS / 2
    assert ("measured" in text.splitlines()[0]) == (not options)
    assert "numbers: " in text.splitlines()[-1]
