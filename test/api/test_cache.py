"""The cache and saved folders, when files are cut short, foreign, changed or in the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

import lowerdeck
from lowerdeck import cache, compiler, kernel_files
from lowerdeck.build import BuildError
from lowerdeck.compiler import CompileOptions, compile_with
from lowerdeck.dialects.files import cache_folder
from lowerdeck.frontends.errors import FrontendError

helper = onnx.helper
save_model, load_model = cast(Any, onnx).save, cast(Any, onnx).load


def save_scaling(path: Path, factor: float, *, size: int = 4, data: str | None = None) -> Path:
    """A model that multiplies by a constant, which may lie in another file."""
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size]) for name in ("x", "y")
    )
    weights = onnx.numpy_helper.from_array(np.full(size, factor, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])], "g", [x], [y], [weights]
    )
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    kept: dict[str, Any] = {} if data is None else {
        "save_as_external_data": True, "location": data, "size_threshold": 0
    }  # fmt: skip
    save_model(model, path, **kept)
    return path


def scaled(model: lowerdeck.Model) -> float:
    """The factor of a compiled model."""
    size = model.inputs[0].shape[0]
    assert isinstance(size, int)
    return float(model(np.ones(size, np.float32))[0][0])


@pytest.fixture(autouse=True)
def private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that C was generated into."""
    made: list[str] = []
    generate = compiler._generate  # pyright: ignore[reportPrivateUsage]

    def counting(path: str, folder: str, *others: Any) -> None:
        made.append(folder)
        generate(path, folder, *others)

    monkeypatch.setattr(compiler, "_generate", counting)
    return made


def entry_of(folder: Path) -> Path:
    """The only entry of a cache."""
    (entry,) = entries_of(folder)
    return entry


def entries_of(folder: Path) -> list[Path]:
    """What is in a cache besides finished kernels."""
    return [path for path in folder.iterdir() if path.name != kernel_files.FOLDER]


# What is compiled once


def test_second_compilation_is_free(private: Path, counted: list[str], tmp_path: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    lowerdeck.compile(str(path))
    assert len(counted) == 1
    assert len(entries_of(private)) == 1
    lowerdeck.compile(path, disable=["cse"])
    assert len(counted) == 2


def test_failure_leaves_nothing(private: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x0anonsense")
    with pytest.raises(FrontendError):
        lowerdeck.compile(path)
    assert not private.exists() or not entries_of(private)


def test_processes_share_it(private: Path, tmp_path: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    script = f"import lowerdeck; lowerdeck.compile({str(path)!r})"
    running = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(entries_of(private)) == 1


def test_oldest_entries_go(private: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lowerdeck.cache.MAX_BYTES", 0)
    model = load_model(save_scaling(tmp_path / "m.onnx", 2))
    for threads in (1, 2):
        lowerdeck.compile(model, threads=threads)
    assert len(entries_of(private)) == 1


# Models that change


def test_changed_model_is_compiled_again(counted: list[str], tmp_path: Path) -> None:
    for factor in (2, 3):
        path = save_scaling(tmp_path / "m.onnx", factor)
        assert scaled(lowerdeck.compile(path)) == factor
    assert len(counted) == 2


def test_changed_external_weights_are_noticed(counted: list[str], tmp_path: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2, size=64, data="m.data")
    assert scaled(lowerdeck.compile(path)) == 2
    (tmp_path / "m.data").write_bytes(np.full(64, 3, np.float32).tobytes())
    os.utime(tmp_path / "m.data", (1, 1))
    assert scaled(lowerdeck.compile(path)) == 3
    assert len(counted) == 2


def test_model_changes_while_it_is_compiled(tmp_path: Path) -> None:
    path, done = save_scaling(tmp_path / "m.onnx", 2), list[str]()
    old = shutil.copy(path, tmp_path / "old.onnx")

    def change(step: str) -> None:
        if step == "import" and not done:
            done.append(step)
            save_scaling(path, 3)

    assert scaled(compile_with(str(path), CompileOptions(progress=change))) == 3
    shutil.copy(old, path)
    assert scaled(lowerdeck.compile(path)) == 2


def test_weights_change_while_the_model_is_compiled(tmp_path: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2, size=64, data="m.data")
    data, done = tmp_path / "m.data", list[str]()

    def change(step: str) -> None:
        if step == "c" and not done:
            done.append(step)
            data.write_bytes(np.full(64, 3, np.float32).tobytes())

    compile_with(str(path), CompileOptions(progress=change))
    data.write_bytes(np.full(64, 2, np.float32).tobytes())
    assert scaled(lowerdeck.compile(path)) == 2
    data.write_bytes(np.full(64, 3, np.float32).tobytes())
    assert scaled(lowerdeck.compile(path)) == 3


@pytest.mark.parametrize("replaced", [False, True])
def test_weights_of_equal_size_and_time(tmp_path: Path, replaced: bool) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2, size=64, data="m.data")
    assert scaled(lowerdeck.compile(path)) == 2
    data = tmp_path / "m.data"
    before = data.stat()
    if replaced:
        data.unlink()
    data.write_bytes(np.full(64, 3, np.float32).tobytes())
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scaled(lowerdeck.compile(path)) == 3


def test_folded_weights_are_noticed(tmp_path: Path) -> None:
    """Constants that no longer are those of the file come from it all the same."""
    path = save_scaling(tmp_path / "m.onnx", 2, size=64, data="m.data")
    model = load_model(path, load_external_data=False)
    model.graph.node.insert(0, helper.make_node("Neg", ["w"], ["v"]))
    model.graph.node[1].input[1] = "v"
    save_model(model, path)
    assert scaled(lowerdeck.compile(path)) == -2
    (tmp_path / "m.data").write_bytes(np.full(64, 3, np.float32).tobytes())
    assert scaled(lowerdeck.compile(path)) == -3


def test_a_copy_with_its_weights_is_the_same_model(tmp_path: Path, counted: list[str]) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2, size=64, data="m.data")
    lowerdeck.compile(path)
    other = tmp_path / "other"
    other.mkdir()
    for name in ("m.onnx", "m.data"):
        shutil.copy(tmp_path / name, other / name)
    assert scaled(lowerdeck.compile(other / "m.onnx")) == 2
    assert len(counted) == 1
    (other / "m.data").write_bytes(np.full(64, 3, np.float32).tobytes())
    assert scaled(lowerdeck.compile(other / "m.onnx")) == 3


# Entries that are not whole


def rewritten(path: Path, data: bytes) -> None:
    """Another file of that name: this process may have mapped the old one."""
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(data)
    path.chmod(mode)


def truncated(path: Path) -> None:
    rewritten(path, path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    rewritten(path, b"")


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    rewritten(path, bytes(data))


def removed(path: Path) -> None:
    path.unlink()


def writable_for_all(path: Path) -> None:
    path.chmod(0o666)


def linked(path: Path) -> None:
    copy = path.parent.parent / f"{path.name}.copy"
    shutil.copy(path, copy)
    path.unlink()
    path.symlink_to(copy)


FILES = ("libm.so", "libm.so.machine", "m.weights", "m.json", "m.c", "record.json")


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        # Every file is looked at, and in every way.
        (removed, FILES),
        # The record is one file that need not be as it was written, while it says the same.
        (flipped, FILES[:-1]),
        (truncated, ("libm.so", "record.json")),
        (emptied, ("libm.so", "record.json")),
        (writable_for_all, ("libm.so",)),
        (linked, ("libm.so",)),
    ],
)
def test_damaged_entries_are_made_anew(
    tmp_path: Path,
    private: Path,
    counted: list[str],
    damage: Callable[[Path], None],
    names: Sequence[str],
) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2, size=64)
    lowerdeck.compile(path)
    entry = entry_of(private)
    for number, name in enumerate(names, 2):
        damage(entry / name)
        assert scaled(lowerdeck.compile(path)) == 2
        assert len(counted) == number


def test_a_library_cut_short_ends_no_process(tmp_path: Path, private: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    truncated(entry_of(private) / "libm.so")
    script = f"import lowerdeck; lowerdeck.compile({str(path)!r})"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "text", ["null", "[]", "{", "{}", '{"key": 1}', "[" * 100_000, '{"files": 3, "key": "KEY"}']
)
def test_damaged_records(tmp_path: Path, private: Path, text: str) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    entry = entry_of(private)
    (entry / "record.json").write_text(text.replace("KEY", entry.name))
    assert scaled(lowerdeck.compile(path)) == 2


def test_entries_do_not_stand_for_each_other(tmp_path: Path, private: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    entry = entry_of(private)
    save_scaling(path, 3)
    lowerdeck.compile(path)
    other = next(folder for folder in entries_of(private) if folder != entry)
    shutil.rmtree(other)
    entry.rename(other)
    assert scaled(lowerdeck.compile(path)) == 3


# Whose the cache is


def test_modes(tmp_path: Path, private: Path) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    before = os.umask(0)
    try:
        lowerdeck.compile(path)
    finally:
        os.umask(before)
    for found in (private, *private.rglob("*")):
        assert not found.stat().st_mode & 0o077, found


def test_open_folder_is_closed(tmp_path: Path, private: Path) -> None:
    private.mkdir(mode=0o777)
    private.chmod(0o777)
    lowerdeck.compile(save_scaling(tmp_path / "m.onnx", 2))
    assert private.stat().st_mode & 0o777 == 0o700


def test_cache_of_another_user(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch, counted: list[str]
) -> None:
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert scaled(lowerdeck.compile(path)) == 2
    assert len(counted) == 2
    assert len(entries_of(private)) == 1


def test_abandoned_folders_go(tmp_path: Path, private: Path) -> None:
    """But not those that a process is working in."""
    path = save_scaling(tmp_path / "m.onnx", 2)
    lowerdeck.compile(path)
    abandoned = private / ".new-abandoned"
    abandoned.mkdir()
    (abandoned / "m.c").write_text("int x;")
    working = cache.new_scratch()
    assert working is not None
    lowerdeck.compile(save_scaling(tmp_path / "m.onnx", 3))
    assert not abandoned.exists()
    assert os.path.exists(working.path)
    working.close()
    assert all(not folder.name.startswith(".") for folder in entries_of(private))


def test_cache_in_the_way(tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be used is no cache, and no error."""
    path = save_scaling(tmp_path / "m.onnx", 2)
    private.write_text("a file")
    assert scaled(lowerdeck.compile(path)) == 2
    monkeypatch.setenv("LOWERDECK_CACHE", "/proc/lowerdeck/cache")
    assert scaled(lowerdeck.compile(path)) == 2
    monkeypatch.setenv("LOWERDECK_CACHE", str(path / "below" / "a" / "file"))
    assert scaled(lowerdeck.compile(path)) == 2


def test_full_disk(tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that cannot be finished leaves nothing."""
    path = save_scaling(tmp_path / "m.onnx", 2)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", full)
    assert scaled(lowerdeck.compile(path)) == 2
    assert entries_of(private) == []


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOWERDECK_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/x")
    assert cache_folder() == "/var/x/lowerdeck"
    for ignored in ("", "relative", "./x"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == str(tmp_path / ".cache" / "lowerdeck")
    monkeypatch.setenv("HOME", "")
    folder = cache_folder()
    assert folder is not None
    assert not folder.startswith(("/.cache", "."))
    monkeypatch.setenv("HOME", "relative")
    assert cache_folder() is None


# Saved folders


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    lowerdeck.compile(save_scaling(tmp_path / "m.onnx", 2, size=64)).save(tmp_path / "saved")
    return tmp_path / "saved"


def test_damaged_libraries_are_built_anew(saved: Path) -> None:
    copies: list[Path] = []
    for damage in (truncated, emptied, flipped, removed):
        copies.append(saved.with_name(damage.__name__))
        shutil.copytree(saved, copies[-1])
        damage(copies[-1] / "libm.so")
    folders = [str(copy) for copy in copies]
    # To load one that is cut short would end the process.
    script = f"import lowerdeck\nfor folder in {folders}: lowerdeck.load(folder)"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert [scaled(lowerdeck.load(copy)) for copy in copies] == [2] * len(copies)


@pytest.mark.parametrize("name", FILES[1:-1])
def test_damaged_folders(saved: Path, name: str) -> None:
    """Right, or one of the exceptions that there may be."""
    (saved / "libm.so").unlink()
    for damage in (truncated, emptied, removed):
        damage(saved / name)
        try:
            model = lowerdeck.load(saved)
        except (OSError, ValueError, BuildError):
            continue
        assert scaled(model) == 2


def changes() -> list[Callable[[dict[str, Any]], Any]]:
    """Descriptions that are not as they should be."""

    def without(key: str) -> Callable[[dict[str, Any]], Any]:
        return lambda data: {k: v for k, v in data.items() if k != key}

    def port(**values: Any) -> Callable[[dict[str, Any]], Any]:
        return lambda data: {**data, "inputs": [{**data["inputs"][0], **values}]}

    def replaced(**values: Any) -> Callable[[dict[str, Any]], Any]:
        return lambda data: {**data, **values}

    keys = ("name", "target", "inputs", "outputs", "workspace", "weights_size", "cflags")
    return [
        *map(without, (*keys, "embeds_weights", "is_parallel", "sources", "libraries")),
        replaced(name="../m"),
        replaced(name=3),
        replaced(target="none"),
        replaced(inputs=None),
        replaced(inputs=[None]),
        replaced(outputs=[{}]),
        replaced(workspace="("),
        replaced(weights_size=1),
        replaced(sources=[1]),
        replaced(abi="1"),
        replaced(arguments={}),
        lambda data: {**data, "arguments": {**data["arguments"], "weights": 0}},
        lambda data: {**data, "outputs": data["inputs"]},
        port(dtype="float33"),
        port(dtype=",,"),
        port(dtype="f4,(2)i8"),
        port(dtype="object"),
        port(dims=["(" * 100_000 + ")" * 100_000]),
        port(dims=["n floordiv 0"]),
        port(dims=["__import__('os')"]),
        port(dims=[-1]),
        port(dims=[None]),
        lambda data: None,
        lambda data: [],
    ]


def test_damaged_descriptions(saved: Path) -> None:
    path = saved / "m.json"
    whole = path.read_text()
    for change in changes():
        path.write_text(json.dumps(change(json.loads(whole))))
        with pytest.raises((OSError, ValueError)):
            lowerdeck.load(saved)


def test_no_description(saved: Path) -> None:
    for text in ("", "{", "[" * 100_000, "\xff"):
        (saved / "m.json").write_text(text, encoding="latin-1")
        with pytest.raises((OSError, ValueError)):
            lowerdeck.load(saved)
