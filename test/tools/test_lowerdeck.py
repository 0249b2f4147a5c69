"""The lowerdeck command: what it writes, what it prints, and that failures leave nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import lowerdeck
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tune import write_schedules

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


def write_model(path: Path, op_type: str = "Tanh", domain: str = "") -> Path:
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x:0"], ["y:0"], name="the/node", domain=domain)],
        "g",
        [helper.make_tensor_value_info("x:0", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y:0", TensorProto.FLOAT, ["n", 3])],
    )
    opsets = [helper.make_opsetid(name, 21 if name == "" else 1) for name in {"", domain}]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def save(path: Path, x: NDArray[Any]) -> None:
    arrays: dict[str, Any] = {"x:0": x}
    np.savez(path, **arrays)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "my model.onnx")


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    save(tmp_path / "in.npz", X)
    return tmp_path / "in.npz"


def test_compile_then_run_the_folder(model: Path, inputs: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "a" / "b", tmp_path / "out.npz"
    assert main(["compile", str(model), "-o", str(folder)]) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert {"my_model.c", "my_model.h", "libmy_model.so", "my_model.json"} <= set(names)
    assert main(["run", str(folder), "--inputs", str(inputs), "--outputs", str(out)]) == 0
    np.testing.assert_allclose(np.load(out)["y:0"], np.tanh(X), rtol=1e-6)


def test_compile_again_replaces(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(folder)]) == 0
    (folder / "my_model.c").write_text("old")
    (folder / "notes.txt").write_text("the user's own")
    assert main(["compile", str(model), "-o", str(folder)]) == 0
    assert (folder / "my_model.c").read_text() != "old"
    assert (folder / "notes.txt").read_text() == "the user's own"


@pytest.mark.parametrize("how", [[], ["--interpret"]])
def test_run(how: list[str], model: Path, inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    arguments = ["run", str(model), "--inputs", str(inputs), "--outputs", str(out), *how]
    assert main(arguments) == 0
    np.testing.assert_allclose(np.load(out)["y:0"], np.tanh(X), rtol=1e-6)


def test_without_a_c_compiler(
    model: Path,
    inputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    out = str(tmp_path / "out.npz")
    run = ["run", str(model), "--inputs", str(inputs), "--outputs", out]
    assert main(run) == 1
    assert "no C compiler found" in capsys.readouterr().err
    assert main([*run, "--interpret"]) == 0
    assert main(["compile", str(model), "-o", str(tmp_path / "c")]) == 0
    assert (tmp_path / "c" / "my_model.c").exists()
    assert not (tmp_path / "c" / "libmy_model.so").exists()


def test_bench(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "bench.json"
    assert main(["bench", str(model), "--json", str(report)]) == 0
    assert "median" in capsys.readouterr().out
    data = json.loads(report.read_text())
    assert data["latency_ms"]["min"] <= data["latency_ms"]["median"]


def test_profile(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "profile.json"
    options = ["--profile", "--by", "source", "--seconds", "0", "--json", str(report)]
    assert main(["bench", str(model), *options]) == 0
    assert "GFLOP/s" in capsys.readouterr().out
    (kernel,) = json.loads(report.read_text())["kernels"]
    assert kernel["calls"] == 1
    assert kernel["seconds"] <= kernel["median"]


def test_profile_needs_a_model_compiled_for_it(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, inputs = tmp_path / "out", tmp_path / "in.npz"
    save(inputs, X)
    assert main(["compile", str(model), "-o", str(out)]) == 0
    error = fails(["bench", str(out), "--profile", "--inputs", str(inputs)], capsys)
    assert "not compiled with profile" in error


def test_compile_tunes(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, outputs = tmp_path / "out", tmp_path / "out.npz"
    schedules = tmp_path / "schedules.json"
    command = ["compile", str(model), "-o", str(out), "--schedules", str(schedules)]
    assert main([*command, "--tune", "0"]) == 0
    assert "variant 1" in capsys.readouterr().err
    assert main(command) == 0
    write_schedules(str(schedules), {"tanh_9": "2xf32 -> 2xf32: row_maps"})
    assert main(command) == 1
    assert "'tanh_9'], which are no kernels: tune again" in capsys.readouterr().err
    schedules.write_text("{}")
    assert main(command) == 1
    assert f"{schedules}: holds no schedules" in capsys.readouterr().err
    write_schedules(str(schedules), {})
    assert main(command) == 0
    inputs = tmp_path / "in.npz"
    save(inputs, X)
    assert main(["run", str(out), "--inputs", str(inputs), "--outputs", str(outputs)]) == 0
    with np.load(outputs) as found:
        np.testing.assert_allclose(found[found.files[0]], np.tanh(X), rtol=1e-6)


def test_export(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert main(["export", str(model), "-o", str(out)]) == 0
    session = cast(Any, onnxruntime).InferenceSession(str(out))
    found = session.run(None, {"x:0": X})[0]
    np.testing.assert_allclose(np.asarray(found), np.tanh(X), rtol=1e-6)


def test_export_to_caffe(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.prototxt"
    assert main(["export", str(model), "-o", str(out), "--input-shape", "x:0=4,3"]) == 0
    assert 'name: "the/node"\n  type: "TanH"' in out.read_text()
    assert out.with_suffix(".caffemodel").exists()
    found = lowerdeck.compile(out, cache=False)({"x:0": X})
    np.testing.assert_allclose(found["y:0"], np.tanh(X), rtol=1e-6)


def test_refused_export_lists_all_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batch has no size, and no layer rounds."""
    model = write_model(tmp_path / "m.onnx", "Round")
    assert main(["export", str(model), "-o", str(tmp_path / "out.prototxt")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("found")[0] for line in lines] == [
        f"{model}: input 'x:0': ",
        f"{model}: node 'the/node' (core.round): ",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("name", ["out.caffemodel", "out.pb", "out", "onnx"])
def test_export_of_unknown_format(
    model: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(["export", str(model), "-o", str(out)]) == 1
    assert not out.exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_ops(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", str(model)]) == 0
    count, name, version, support = capsys.readouterr().out.split()
    assert (count, name, version, support) == ("1", "Tanh", "13", "legalized")


def test_ops_names_what_is_not_supported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "m.onnx", "Frobnicate", "com.example")
    assert main(["ops", str(model)]) == 1
    out = capsys.readouterr().out
    assert "com.example.Frobnicate" in out
    assert "NOT SUPPORTED: 'the/node'" in out


def fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a command that must fail with status 1 and without a traceback."""
    capsys.readouterr()
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("command", ["compile", "run", "bench", "export", "ops"])
@pytest.mark.parametrize("content", [None, b"", b"\x08\x0a\x12garbage", b"text"])
def test_unreadable_models(
    command: str, content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "bad.onnx"
    if content is not None:
        model.write_bytes(content)
    target = str(tmp_path / "out")
    more = {
        "compile": ["-o", target],
        "export": ["-o", f"{target}.onnx"],
        "run": ["--outputs", target],
    }.get(command, [])
    assert fails([command, str(model), *more], capsys).startswith(f"{model}: ")
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else ["bad.onnx"])


def test_unknown_operator_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "m.onnx", "Frobnicate", "com.example")
    error = fails(["compile", str(model), "-o", str(tmp_path / "out")], capsys)
    assert "the/node" in error
    assert "Frobnicate" in error
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_wrong_inputs_leave_nothing(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.npz"
    run = ["run", str(model), "--outputs", str(out)]
    assert "no value for the inputs ['x:0']" in fails(run, capsys)
    save(tmp_path / "in.npz", X.astype(np.float64))
    for how in ([], ["--interpret"]):
        text = fails([*run, "--inputs", str(tmp_path / "in.npz"), *how], capsys)
        assert "float64" in text
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--disable", "fuze"], "fuze"),
        (["--disable-strategy", "winnograd"], "did you mean winograd?"),
        (["--strategy", "rows", "--disable-strategy", "rows"], "'rows' is disabled, too"),
        (["--skip-nodes", "("], "--skip-nodes"),
        (["--threads", "0"], "threads"),
        (["--input-shape", "x=a"], "expected NAME=1,2,3"),
        (["--output", "nowhere"], "nowhere"),
        (["--input-shape", "nowhere=2,3"], "nowhere"),
        (["--bogus"], "--bogus"),
    ],
)
def test_wrong_options(
    options: list[str],
    text: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = fails(["compile", str(model), "-o", str(tmp_path / "out"), *options], capsys)
    assert text in error
    assert [path.name for path in tmp_path.iterdir()] == ["my model.onnx"]


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "COMMAND" in fails([], capsys)


def test_compile_says_what_the_model_occupies(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(model), "-o", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "weights " in text
    assert "arena " in text
