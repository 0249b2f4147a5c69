"""What the commands say, keep and refuse, beyond what they compute."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import lowerdeck
from lowerdeck.tools.lowerdeck import argument_parser, main
from lowerdeck.tools.opt_tool import main as opt_tool
from lowerdeck.tools.summary import described


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = tanh(x), of as many rows as one likes."""
    rows = ["n", 3]
    graph = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["y"], name="the/node")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, rows)],
    )
    opsets = [helper.make_opsetid("", 21)]
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    )
    return path


def output_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(arguments) == 0
    return capsys.readouterr().out


def error_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


# Versions, errors and representations


def test_module_is_the_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "lowerdeck", "--version"], capture_output=True, text=True
    )
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"lowerdeck {lowerdeck.__version__}"
    assert any(line.startswith("xdsl 0.74") for line in lines)


def test_every_public_name_exists() -> None:
    assert all(hasattr(lowerdeck, name) for name in lowerdeck.__all__)
    errors = [getattr(lowerdeck, name) for name in lowerdeck.__all__ if name.endswith("Error")]
    assert len(errors) == len(set(errors)) == 14
    assert all(issubclass(error, lowerdeck.LowerdeckError) for error in errors)


def test_refusals_have_one_base(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x0a\x12garbage")
    with pytest.raises(lowerdeck.LowerdeckError):
        lowerdeck.compile(tmp_path / "bad.onnx")
    with pytest.raises(lowerdeck.LowerdeckError, match="no strategy"):
        lowerdeck.compile(tmp_path / "bad.onnx", disable_strategy=["winnograd"])
    graph = tmp_path / "t.mlir"
    graph.write_text("builtin.module {\n}\n")
    with pytest.raises(lowerdeck.CompileError):
        lowerdeck.compile(graph)


def test_bytes_are_no_model() -> None:
    source: Any = b"\x08"
    with pytest.raises(TypeError, match=r"onnx\.load_from_string"):
        lowerdeck.compile(source)


def test_repr_and_name(model: Path) -> None:
    compiled = lowerdeck.compile(model, target="c99", name="other", cache=False)
    assert repr(compiled) == (
        "<lowerdeck.Model 'other' for c99: x: float32[n, 3] -> y: float32[n, 3]>"
    )
    assert compiled.workspace_for({"x": (5, 3)}) >= 0
    with pytest.raises(ValueError, match="has the shape"):
        compiled.workspace_for({"x": (5, 4)})
    with pytest.raises(ValueError, match=r"\['x'\]; given are \['img'\]"):
        compiled({"img": np.zeros((1, 3), np.float32)})
    with pytest.raises(lowerdeck.OptionError, match="'no name' is no identifier"):
        lowerdeck.compile(model, name="no name")


# compile


def test_compile_says_what_it_wrote(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    text = output_of(["compile", str(model), "-o", str(out), "--name", "tanh_net"], capsys)
    assert f"wrote {out} for native and one thread: " in text
    assert "call tanh_net_run of tanh_net.h" in text
    assert "input x: float32[n, 3]" in text
    assert (out / "tanh_net.c").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "out"]


def _double_negation(path: Path) -> Path:
    """-(-x) is x: with the module, the function and its end six operations become four."""
    path.write_text(
        """
        func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
          %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
          %b = core.neg %a : (tensor<4xf32>) -> tensor<4xf32>
          %z = core.tanh %b : (tensor<4xf32>) -> tensor<4xf32>
          func.return %z : tensor<4xf32>
        }
        """
    )
    return path


@pytest.mark.parametrize("option", ["-v", "--log-level=info"])
def test_verbose_counts_what_passes_do(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _double_negation(tmp_path / "m.mlir")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--target=c99", option]) == 0
    lines = [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()]
    simplify = next(line for line in lines if line.startswith("simplify: "))
    assert re.fullmatch(r"simplify: \d+\.\d{3} s, 6 -> 4 operations, 1 rewrite", simplify)
    assert lines[0] == "import"
    assert lines.index("legal") < lines.index("optimized") < lines.index("C compiler")


def test_log_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each says what the one before says; results do not depend on them."""
    path, threads = _double_negation(tmp_path / "m.mlir"), 8 * (os.cpu_count() or 1) + 1
    said: dict[str, str] = {}
    for level in ("error", "warning", "info", "debug"):
        out = tmp_path / level
        command = ["compile", str(path), "-o", str(out), "--target=c99", "--log-level", level]
        assert main([*command, f"--threads={threads}"]) == 0
        said[level] = capsys.readouterr().err
    rewrite = re.compile(r" s  1 simplify-arithmetic/\S+ on core.neg\b.*; from .*m.mlir:4:")
    assert said["error"] == ""
    assert "this machine has" in said["warning"]
    assert "simplify: " not in said["warning"]
    assert "simplify: " in said["info"]
    assert rewrite.search(said["info"]) is None
    assert "this machine has" in said["debug"]
    assert "simplify: " in said["debug"]
    assert rewrite.search(said["debug"]) is not None, said["debug"]
    texts = {(tmp_path / level / "m.c").read_text() for level in said}
    assert len(texts) == 1


def test_compile_keeps_files_of_the_user(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "example.c").write_text("int main(void) { return 42; }\n")
    (out / "m.h").write_text("#define M 1\n")
    command = ["compile", str(model), "-o", str(out)]
    lines = error_of(command, capsys).splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{out}/example.c", f"{out}/m.h"]
    assert sorted(path.name for path in out.iterdir()) == ["example.c", "m.h"]
    assert "42" in (out / "example.c").read_text()
    output_of([*command, "--force"], capsys)
    assert "42" not in (out / "example.c").read_text()
    output_of(command, capsys)  # what lowerdeck wrote, it replaces


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("export", "-o", "mine.onnx"),
        ("view", "-o", "mine.html"),
        ("report", "--html", "mine.html"),
    ],
)
def test_files_of_the_user_are_kept(
    model: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    option: str,
    name: str,
) -> None:
    """Not what lowerdeck wrote itself, and not with --force; the model is the user's, too."""
    path = model.with_name(name)
    arguments = [command, str(model), option, str(path)]
    output_of(arguments, capsys)
    output_of(arguments, capsys)
    path.write_text("my own work")
    assert f"{path}: is not a file that lowerdeck wrote; --force" in error_of(arguments, capsys)
    assert path.read_text() == "my own work"
    output_of([*arguments, "--force"], capsys)
    assert "my own work" not in path.read_text(errors="replace")
    before = model.read_bytes()
    if command == "export":
        assert "--force" in error_of([command, str(model), option, str(model)], capsys)
    assert model.read_bytes() == before


def test_weights_in_c_are_files_of_lowerdeck(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(model), "-o", str(tmp_path / "out"), "--embed-weights"]
    for target in ("c99", "x86-64"):
        output_of([*arguments, "--library", "none", "--target", target], capsys)


def test_a_file_is_no_folder(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README").write_text("mine")
    error = error_of(["compile", str(model), "-o", str(tmp_path / "README")], capsys)
    assert error == f"{tmp_path / 'README'}: is not a folder\n"


def test_sigterm_leaves_nothing(model: Path, tmp_path: Path) -> None:
    """Nor is anything written beside the folder before, where there may be no right to."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    compiler = tmp_path / "slow-cc"
    compiler.write_text("#!/bin/sh\nexec sleep 30\n")
    compiler.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "lowerdeck", "compile", str(model), "-o", str(tmp_path / "out")],
        env={**os.environ, "TMPDIR": str(scratch), "CC": str(compiler)},
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 60
    while time.monotonic() < end and not list(scratch.glob("lowerdeck-*/m.c")):
        time.sleep(0.05)
    beside = sorted(path.name for path in tmp_path.iterdir())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert beside == ["m.onnx", "slow-cc", "tmp"]
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "out").exists()


# run and bench


def test_run_says_what_the_outputs_hold(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = tmp_path / "in.npz"
    np.savez(inputs, x=np.array([[0.0, np.inf, -np.inf]], np.float32))
    command = ["run", str(model), "--inputs", str(inputs)]
    assert output_of(command, capsys) == "y: float32[1, 3], -1 to 1, mean 0: 0 1 -1\n"
    assert output_of([*command, "--quiet"], capsys) == ""


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            np.array([1.0, np.nan, np.inf, 3.0]),
            "a: float64[4], 1 to 3, mean 2, 1 NaN, 1 infinite: 1 nan inf 3",
        ),
        (np.zeros((0, 2), np.int64), "a: int64[0, 2], empty"),
        (np.array([True, False]), "a: bool[2], 1 of 2 true: True False"),
        (np.float32(2.5), "a: float32[]: 2.5"),
        (
            np.arange(9, dtype=np.uint8),
            "a: uint8[9], 0 to 8, mean 4: 0 1 2 3 4 5 6 7 ...",
        ),
        ([np.float32(1), None], "a: 2 tensors\n  a[0]: float32[]: 1\n  a[1]: nothing"),
        (np.array(["b"], object), "a: object[1]: 'b'"),
    ],
)
def test_described(array: Any, text: str) -> None:
    assert described("a", array) == text


def test_one_array_is_not_enough(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((1, 3), np.float32))
    assert "one array without a name" in error_of(
        ["run", str(model), "--inputs", str(path)], capsys
    )


def test_bench_says_on_what(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bench", str(model), "--seconds", "0"]
    text = output_of([*command, "--dim", "n=7"], capsys)
    assert "inputs     x: float32[7, 3] (random)" in text
    assert " p99, " in text
    assert "runs a second" in text
    out = tmp_path / "out"
    output_of(["compile", str(model), "-o", str(out)], capsys)
    text = output_of(["bench", str(out), "--seconds", "0", "--dim", "n=9"], capsys)
    assert "x: float32[9, 3] (random)" in text
    assert "expected NAME=N" in error_of([*command, "--dim", "n"], capsys)
    assert "not a number of seconds" in error_of(["bench", str(model), "--seconds", "-1"], capsys)


def test_bench_says_which_sizes_did_not_fit(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three elements there are none behind the fourth."""
    path = tmp_path / "t.mlir"
    path.write_text(
        """
        !x = tensor<?xf32, #core.tensor<dims = [n]>>
        !y = tensor<?xf32, #core.tensor<dims = [n - 4]>>
        func.func @main(%x : !x) -> !y {
          %y = core.slice %x [4] [n - 4] [1] : (!x) -> !y
          func.return %y : !y
        }
        """
    )
    command = ["bench", str(path), "--target=c99", "--seconds=0.01", "--no-cache"]
    error = error_of(command, capsys)
    assert "random inputs were" in error
    assert "--dim, --input-shape or --inputs" in error
    assert "(random)" in output_of([*command, "--dim", "n=9"], capsys)


def test_options_are_written_in_full(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compile", str(model), "-o", str(tmp_path / "out"), "--out", "y"]
    assert "unrecognized arguments: --out y" in error_of(command, capsys)


# The cache


def test_cache(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LOWERDECK_CACHE", str(folder))
    bench = ["bench", str(model), "--seconds", "0"]
    output_of([*bench, "--no-cache"], capsys)
    assert "holds    0 compiled models, 0 bytes" in output_of(["cache", "info"], capsys)
    output_of(bench, capsys)
    text = output_of(["cache"], capsys)
    assert f"folder   {folder} " in text
    assert "holds    1 compiled models, " in text
    text = output_of(["cache", "clear"], capsys)
    assert text == f"removed 1 compiled models from {folder}\n"
    assert list(folder.iterdir()) == []


def test_a_cache_that_cannot_be_used_stops_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWERDECK_CACHE", "/dev/null/cache")
    assert "median" in output_of(["bench", str(model), "--seconds", "0"], capsys)
    assert output_of(["cache"], capsys).startswith("no cache: /dev/null/cache: cannot be used")


# opt-tool


def test_list_passes_has_every_pass(capsys: pytest.CaptureFixture[str]) -> None:
    from lowerdeck.lowering.pipeline import ALL_PASSES

    assert opt_tool(["--list-passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.strip().split("{")[0].split(" ")[0] for line in lines]
    assert {name for name in ALL_PASSES if names.count(name) != 1} == set()
    assert "  legalize-onnx (required)" in lines
    assert "      Convert every onnx op to `core` ops with exact types." in lines
    assert any(line.startswith("  parallelize{") for line in lines)


def test_list_targets(capsys: pytest.CaptureFixture[str]) -> None:
    from lowerdeck.lowering.targets import target_names

    assert opt_tool(["--list-targets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == target_names()
    assert "; runs on this machine; numbers: " in lines[-1]
    assert "; this machine; numbers of " in lines[0]


PASS = """
from xdsl.passes import ModulePass


class NothingPass(ModulePass):
    name = "nothing-at-all"

    def apply(self, ctx, op):
        op.attributes.clear()
"""


def test_passes_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, text = tmp_path / "my_pass.py", tmp_path / "t.mlir"
    file.write_text(PASS)
    text.write_text("builtin.module attributes {a = 1 : i32} {\n}\n")
    for spec in (str(file), f"{file}:NothingPass"):
        command = [str(text), "--load", spec, "--pass-pipeline=nothing-at-all"]
        assert opt_tool(command) == 0
        assert "a = 1" not in capsys.readouterr().out
    for spec, reason in (
        (f"{file}:Other", "no attribute 'Other'"),
        (f"{file}:ModulePass.name", "no attribute"),
        (str(tmp_path / "none.py"), "No such file"),
        ("no.such.module:X", "No module named"),
        ("os.path", "defines neither PLUGIN nor a pass"),
        ("os.path:join", "neither a Plugin nor a class derived from ModulePass"),
    ):
        assert opt_tool([str(text), "--load", spec]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"opt-tool: plugin '{spec}': ")
        assert reason in error


def test_standard_input_by_its_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.mlir"
    path.write_text("builtin.module {\n}\n")
    with open(path) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert opt_tool(["-"]) == 0
    assert capsys.readouterr().out.strip() == "builtin.module {\n}"


# Other tools


def test_xdsl_reads_our_dialects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What `xdsl-opt` does with the entry point; ours has the dialects but once then."""
    import importlib.metadata

    from xdsl.universe import XDSL_UNIVERSE
    from xdsl.xdsl_opt_main import xDSLOptMain

    from lowerdeck.tools.universe import UNIVERSE

    class Point:
        def __init__(self, name: str, universe: object) -> None:
            self.name, self._universe = name, universe

        def load(self) -> object:
            return self._universe

    points = [Point("lowerdeck", UNIVERSE), Point("xdsl", XDSL_UNIVERSE)]

    def entry_points(group: str) -> list[Point]:
        return points if group == "xdsl.universe" else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    path, out = tmp_path / "t.mlir", tmp_path / "out.mlir"
    path.write_text(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %y = core.neg %x : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  %z = core.neg %y : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  func.return %z : tensor<2xf32>\n}\n"
    )
    xDSLOptMain(args=[str(path), "-p", "simplify-arithmetic", "-o", str(out)]).run()
    assert "core.neg" not in out.read_text()
    assert opt_tool([str(path), "-o", str(out)]) == 0
    assert out.read_text().count("core.neg") == 2


def test_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command and option can be told to a shell."""
    argcomplete = pytest.importorskip("argcomplete")
    finder = argcomplete.CompletionFinder(argument_parser())
    words = finder._get_completions([], "", "", None)
    assert {"compile", "run", "bench", "cache"} <= {word.strip() for word in words}


@pytest.mark.parametrize(
    ("tool", "line", "expected"),
    [
        ("lowerdeck", "lowerdeck be", {"bench"}),
        ("lowerdeck", "lowerdeck compile --log-level i", {"info"}),
        ("opt_tool", "opt-tool --print-ir-t", {"--print-ir-tree-dir"}),
        ("opt_tool", "opt-tool --list-", {"--list-passes", "--list-targets"}),
    ],
)
def test_shells_are_answered(tool: str, line: str, expected: set[str], tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    out = tmp_path / "out"
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    command = [sys.executable, "-m", f"lowerdeck.tools.{tool}"]
    subprocess.run(command, env={**os.environ, **variables}, check=False, capture_output=True)
    assert {word.strip() for word in out.read_text().splitlines()} == expected


# Errors


def test_users_of_weights_that_cannot_be_read_are_not_at_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 3])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.data")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="one"),
        helper.make_node("MatMul", ["a", "nowhere"], ["y"], name="two"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [2, 3])],
        [value("y", TensorProto.FLOAT, [2, 3])],
        [weight],
    )
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    lines = error_of(["compile", str(path), "-o", str(tmp_path / "out")], capsys).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "initializer 'w'",
        "node 'two' (MatMul)",
    ]


def test_ops_says_what_is_refused_as_it_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Tanh", ["x"], ["a"], name="fine"),
            helper.make_node("RandomNormalLike", ["a"], ["y"], name="random"),
        ],
        "g",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    written = tmp_path / "ops.json"
    assert main(["ops", str(path), "--json", str(written)]) == 1
    found = json.loads(written.read_text())
    assert [
        (each["operator"], each["nodes"], each["is_compiled"]) for each in found["operators"]
    ] == [("RandomNormalLike", ["random"], False), ("Tanh", ["fine"], True)]
    assert "node 'random'" in found["refusal"]
    random, tanh, reason = capsys.readouterr().out.splitlines()
    assert random.endswith("legalized, but refused as it is used")
    assert tanh.endswith("legalized")
    assert "node 'random'" in reason


def test_models_come_through_pipes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(model, encoding="latin-1") as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert "Tanh" in output_of(["ops", "-"], capsys)


def test_a_compiler_that_is_none(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "/no/cc -O1")
    assert main(["compile", str(model), "-o", str(tmp_path / "out")]) == 0
    assert "no C compiler '/no/cc' found (CC); wrote no library" in capsys.readouterr().err
    assert (tmp_path / "out" / "m.c").exists()
