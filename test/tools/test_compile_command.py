"""`lowerdeck compile` at first use: where it writes, what it says, how what it wrote is built."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck.tools.commands.compile import at_least_sizes
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.progress import Progress

_NOBODY = 65534


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = softmax(tanh(x)) of any number of rows."""
    rows = ["n", 3]
    graph = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])],
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


def test_a_folder_in_one_that_is_closed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As where a container mounts /out: nothing is written beside it."""
    main(["compile", str(model), "-o", str(model.parent / "first"), "--target=c99"])
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as parent:
        out, copy = os.path.join(parent, "out"), os.path.join(parent, "m.onnx")
        os.mkdir(out)
        shutil.copyfile(model, copy)
        os.chmod(copy, 0o444)
        os.chmod(parent, 0o555)
        # Root may write anywhere, so it is another user for a while.
        if is_root:
            os.chown(out, _NOBODY, _NOBODY)
            os.seteuid(_NOBODY)
        try:
            with pytest.raises(PermissionError):
                os.mkdir(os.path.join(parent, "beside"))
            status = main(["compile", copy, "-o", out, "--target=c99"])
        finally:
            if is_root:
                os.seteuid(0)
            os.chmod(parent, 0o755)
        assert status == 0, capsys.readouterr().err
        assert {"m.c", "m.h", "m.json"} <= set(os.listdir(out))
        assert sorted(os.listdir(parent)) == ["m.onnx", "out"]


def test_a_folder_that_is_not_given(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is called like the model, is written again, and is none that holds other files."""
    monkeypatch.chdir(model.parent)
    command = ["compile", model.name, "--target=c99", "--library=none"]
    assert (main(command), main(command)) == (0, 0)
    assert "wrote m for c99" in capsys.readouterr().out
    assert Path("m", "m.c").exists()
    Path("m", "m.json").unlink()
    assert main(command) == 1
    assert "m holds other files: give -o DIR" in capsys.readouterr().err


def test_memory_as_numbers(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compile", str(model), "-o", str(tmp_path / "out"), "--target=c99"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(" bytes for n = 1") for line in lines)
    assert "also those that never change" in (tmp_path / "out" / "m.h").read_text()
    assert main([*command, "--input-shape", "x=4,3"]) == 0
    assert " = 1" not in capsys.readouterr().out


def test_weights_that_become_larger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By Winograd's algorithm and by nothing else: it is said, with what to do."""
    weight = np.random.default_rng(0).standard_normal((32, 32, 3, 3), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 24, 24])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 24, 24])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "conv.onnx"
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    out = str(tmp_path / "out")
    command = ["compile", str(path), "-o", out, "--target=x86-64-v4"]
    said = f" times the {weight.nbytes:,} of the model; --small-weights"
    for options, is_said in (([], True), (["--small-weights"], False), (["--target=c99"], False)):
        assert main([*command, *options]) == 0
        assert (said in capsys.readouterr().out) == is_said


def test_more_threads_than_processors(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compile", str(model), "-o", str(tmp_path / "out"), "--target=c99", "--threads"]
    count = 8 * (os.cpu_count() or 1)
    assert main([*command, str(count)]) == 0
    assert "processors" not in capsys.readouterr().err
    assert main([*command, str(count + 1)]) == 0
    assert f"--threads {count + 1}: this machine has" in capsys.readouterr().err


_APP = """
#include <stdio.h>
#include "m.h"
int main(void) {
  static float x[6], y[6];
  static unsigned char workspace[4096];
  m_args args = {.x = {x, {2, 3}}, .y = {.data = y, .capacity = 6}};
  args.workspace = workspace;
  args.workspace_size = sizeof workspace;
  const int status = m_run(&args);
  printf("%d %.3f\\n", status, (double)y[0]);
  return status;
}
"""


def _requires(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize("kind", ["static", "shared"])
@pytest.mark.parametrize("target", ["aarch64", "c99"])
def test_libraries_for_another_machine(
    model: Path, tmp_path: Path, kind: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By one command; they run there, and hold nothing for Python."""
    cc = "aarch64-linux-gnu-gcc"
    _requires(cc, "qemu-aarch64", "aarch64-linux-gnu-nm")
    out = tmp_path / "out"
    command = ["compile", str(model), "-o", str(out), "--target", target, "--cc", cc]
    assert main([*command, "--library", kind]) == 0, capsys.readouterr().err
    library = {"static": "libm.a", "shared": "libm.so"}[kind]
    assert library in capsys.readouterr().out
    symbols = subprocess.run(
        ["aarch64-linux-gnu-nm", out / library], capture_output=True, text=True, check=True
    )
    assert " T m_run" in symbols.stdout
    assert "binding" not in symbols.stdout
    (tmp_path / "app.c").write_text(_APP)
    libraries = [str(out / library), "-lm"]
    link = [cc, f"-I{out}", "app.c", *libraries, "-o", "app", f"-Wl,-rpath,{out}"]
    subprocess.run(link, cwd=tmp_path, check=True)
    run = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "./app"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "0 0.333\n"


def test_kinds_of_libraries_follow_one_another(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of an earlier run is left, which would be another model's."""
    out = tmp_path / "out"
    command = ["compile", str(model), "-o", str(out), "--target=c99"]
    for options, expected in (
        ([], {"libm.so", "libm.so.machine"}),
        (["--library", "static"], {"libm.a"}),
        (["--library", "shared"], {"libm.so", "libm.so.machine"}),
        (["--library", "none"], set[str]()),
    ):
        assert main([*command, *options]) == 0
        assert {name for name in os.listdir(out) if name.startswith("lib")} == expected
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_a_library_by_another_compiler(
    model: Path, tmp_path: Path, cc: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the flags that this one takes; it is the library that Python loads."""
    _requires(cc)
    out = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(out), "--cc", cc]) == 0, capsys.readouterr().err
    assert (b"clang version" in (out / "libm.so").read_bytes()) == (cc == "clang")
    (y,) = lowerdeck.load(out)(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(y, np.full((2, 3), 1 / 3), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cc", "no-such-cc"], "no C compiler 'no-such-cc' found (--cc)"),
        (["--target=aarch64", "--library=static"], "target aarch64 is for aarch64, and"),
        (["--target=aarch64", "--cc=gcc"], "gcc makes code for x86_64: --cc names a compiler"),
        (["--cc=aarch64-linux-gnu-gcc"], "target native is for x86_64, and aarch64-linux-gnu-gcc"),
    ],
)
def test_compilers_that_do_not_fit(
    model: Path, tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("is said of x86_64")
    _requires(*(o.removeprefix("--cc=") for o in options if o.startswith("--cc=")))
    out = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(out), *options]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert f"{out}: holds the C alone\n" in error
    assert {file.suffix for file in out.iterdir()} <= {".c", ".h", ".json", ".txt", ".weights"}


def test_two_files_of_one_name(model: Path, tmp_path: Path) -> None:
    """With `--name` both are part of one program; the pool is compiled once."""
    for name in ("left", "right"):
        out = str(tmp_path / name)
        options = ["--name", name, "--target=c99", "--threads=2"]
        assert main(["compile", str(model), "-o", out, *options]) == 0
    (tmp_path / "app.c").write_text(
        '#include "left.h"\n#include "right.h"\n'
        "int main(void) { return left_run(0) != 1 || right_run(0) != 1; }\n"
    )
    sources = ["app.c", "left/left.c", "right/right.c", "left/lowerdeck_pool.c"]
    command = ["cc", "-Ileft", "-Iright", *sources, "-lm", "-lpthread", "-o", "app"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "app"], check=True)


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_cmake_with_a_compiler(model: Path, tmp_path: Path, cc: str) -> None:
    _requires("cmake", cc)
    assert main(["compile", str(model), "-o", str(tmp_path), "--library=none"]) == 0
    for command in (
        ["cmake", "-S", ".", "-B", "b", f"-DCMAKE_C_COMPILER={cc}"],
        ["cmake", "--build", "b"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_parts_of_another_project(model: Path, tmp_path: Path) -> None:
    """Their examples are not built then, which have one name for a program each."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.14)\nproject(app C)\n"
        "add_subdirectory(left)\nadd_subdirectory(right)\n"
        "add_executable(app app.c)\ntarget_link_libraries(app left right)\n"
    )
    (tmp_path / "app.c").write_text(
        '#include "left.h"\n#include "right.h"\n'
        "int main(void) { return left_run(0) != 1 || right_run(0) != 1; }\n"
    )
    for name in ("left", "right"):
        out = str(tmp_path / name)
        assert main(["compile", str(model), "-o", out, "--name", name, "--target=c99"]) == 0
    for command in (["cmake", "-S", ".", "-B", "built"], ["cmake", "--build", "built"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([tmp_path / "built" / "app"], check=True)
    assert list((tmp_path / "built").rglob("*_example")) == []

    # What is installed of them is found, though the whole has no type of build.
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.14)\nproject(user C)\nfind_package(left REQUIRED)\n"
        "add_library(user SHARED ../app.c)\ntarget_link_libraries(user lowerdeck::left)\n"
    )
    for command in (
        ["cmake", "--install", "built", "--prefix", "installed"],
        ["cmake", "-S", "user", "-B", "used", f"-DCMAKE_PREFIX_PATH={tmp_path}/installed"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_libm_is_for_compilers_that_have_it(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(model), "-o", str(out), "--target=c99"]) == 0
    lines = (out / "CMakeLists.txt").read_text().splitlines()
    start = lines.index("if(NOT MSVC)")
    end = lines.index("endif()", start)
    linked = [n for n, line in enumerate(lines) if "target_link_libraries(m PUBLIC" in line]
    assert linked
    assert all(start < number < end for number in linked)


def test_the_line_of_progress() -> None:
    shown = Progress()
    shown.expect(["fold", "dce", "fold"])
    shown("import")
    assert shown.text() == "import (0 s)"
    for number, step in enumerate(("fold", "dce", "fold"), 1):
        shown(step)
        assert shown.text() == f"{step} (0 s, pass {number} of 3)"
    shown("C compiler")
    assert shown.text() == "C compiler (0 s, pass 3 of 3)"


def test_edited_files_are_kept(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the user has changed is replaced with --force alone."""
    out = tmp_path / "out"
    compile_ = ["compile", str(model), "-o", str(out), "--target=c99", "--library=none"]
    assert main(compile_) == main(compile_) == 0
    for name in ("CMakeLists.txt", "example.c"):
        written = (out / name).read_text()
        (out / name).write_text(written.replace("\n", "\n\n", 1))
        assert main(compile_) == 1
        said = f"{out / name}: was edited since lowerdeck wrote it; --force replaces it"
        assert said in capsys.readouterr().err
        assert main([*compile_, "--force"]) == 0
        assert (out / name).read_text() == written


def test_the_sizes_for_which_memory_is_told() -> None:
    """The smallest that the model can have."""
    conditions = [
        ["h", "eq", "(h floordiv 4) * 4", ""],
        ["2", "le", "h floordiv 4", ""],
        ["h", "eq", "w", "of both"],
        ["n", "broadcast", "3", ""],
    ]
    assert at_least_sizes("h * w + n", conditions) == ({"h": 8, "n": 1, "w": 1}, 9)
    assert at_least_sizes("w", [["w", "le", "-1", "never"]]) == ({"w": 1}, 1)


# Several models


def written(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def compiled_alone(models: list[Path], targets: list[str], out: Path) -> dict[str, bytes]:
    """What single runs write."""
    for one in models:
        for target in targets:
            folder = out / one.stem / target
            folder.parent.mkdir(parents=True, exist_ok=True)
            assert main(["compile", str(one), "-o", str(folder), "--target", target]) == 0
    return written(out)


def test_several_models_and_targets(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.onnx"
    shutil.copyfile(model, other)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"\x08\x0a\x12garbage")
    targets = ["c99", "x86-64"]
    expected = compiled_alone([model, other], targets, tmp_path / "alone")
    arguments = ["compile", str(model), str(other), "--targets", *targets, "-o"]
    assert main([*arguments, str(tmp_path / "all"), "--jobs", "2"]) == 0
    assert written(tmp_path / "all") == expected
    assert "4 of 4 compiled" in capsys.readouterr().out
    out = str(tmp_path / "some")
    assert main(["compile", str(bad), str(model), "-o", out, "--target", "c99"]) == 1
    shown = capsys.readouterr()
    assert "1 of 2 compiled" in shown.out
    assert shown.err.count("bad.onnx") >= 1
    assert {path.name for path in (tmp_path / "some").iterdir()} == {model.stem}
    for options, text in (
        ([str(model), "--tune", "1"], "--tune is for one model"),
        ([str(model)], f"several models are called {model.stem}"),
        ([str(other), "--jobs", "0"], "expected at least 1"),
        ([str(other), "--address", "x:1"], "is for --on ray"),
    ):
        assert main(["compile", str(model), *options, "-o", out]) == 1
        assert text in capsys.readouterr().err


def test_several_models_on_ray(cluster: object, model: Path, tmp_path: Path) -> None:
    del cluster
    expected = compiled_alone([model], ["c99", "x86-64"], tmp_path / "alone")
    out = tmp_path / "out"
    arguments = ["compile", str(model), "--on", "ray", "--targets", "c99", "x86-64"]
    assert main([*arguments, "-o", str(out)]) == 0
    assert written(out) == expected
