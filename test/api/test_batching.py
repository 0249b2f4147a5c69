"""Files of rows: `lowerdeck batch`, in this process and on Ray."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck import batching
from lowerdeck.batching import ROWS, BatchError, BatchSize, Done, Settings, Task, batch
from lowerdeck.compiler import Model, RunError
from lowerdeck.engines import Engine, InProcess, LostTask, lost
from lowerdeck.ray import Served
from lowerdeck.tools.lowerdeck import main

Array = NDArray[Any]

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def digits() -> Model:
    return lowerdeck.compile(DIGITS / "digits.onnx")


@pytest.fixture(scope="module")
def table() -> Model:
    """y = t[i], which fails for rows that are not there; row i of input is an index."""
    return model_of(
        [helper.make_node("Gather", ["t", "i"], ["y"], name="the/lookup")],
        ("i", TensorProto.INT64, ["n"]),
        {"t": np.arange(12, dtype=np.float32).reshape(4, 3)},
    )


def model_of(
    nodes: Sequence[Any], graph_input: tuple[str, int, list[Any]], constants: dict[str, Array]
) -> Model:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*graph_input)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    return lowerdeck.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def images(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 1, 8, 8)).astype(np.float32)


def results(folder: Path) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            found[path.name] = {name: file[name] for name in file.files}
    return found


def hashes(folder: Path) -> dict[str, str]:
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.glob("[!.]*.*"))
    }


def errors(folder: Path) -> dict[str, str]:
    lines = (folder / "errors.jsonl").read_text().splitlines()
    return {row["key"]: row["message"] for row in map(json.loads, lines)}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files, of which the first one is two tasks."""
    monkeypatch.setattr(batching, "_CHUNK", 20)
    folder = tmp_path / "rows"
    folder.mkdir()
    np.savez(folder / "a.npz", image=images(33))
    np.save(folder / "b.npy", images(7, seed=1))
    (folder / "notes.txt").write_text("no rows")
    return folder


def test_results_are_those_of_single_rows(digits: Model, rows: Path, tmp_path: Path) -> None:
    alone: list[Array] = [digits(row)[0] for row in images(33)[:, None]]
    outputs = [tmp_path / f"by{size}" for size in (1, 7, 64)]
    for size, folder in zip((1, 7, 64), outputs, strict=True):
        assert batch(digits, rows, folder, Settings(batch=size)) == (40, 0)
    found = results(outputs[0])
    assert [*found] == ["a.npz.0000000000.npz", "a.npz.0000000020.npz", "b.npy.0000000000.npz"]
    parts = [found[name] for name in found if name.startswith("a")]
    np.testing.assert_array_equal(
        np.concatenate([one["logits"] for one in parts]), np.concatenate(alone)
    )
    np.testing.assert_array_equal(np.concatenate([one[ROWS] for one in parts]), np.arange(33))
    for folder in outputs[1:]:
        for name, arrays in results(folder).items():
            np.testing.assert_array_equal(arrays["logits"], found[name]["logits"])


class Killed(InProcess):
    """Ends after two tasks, as a user may end it."""

    def deal(self, work: Any, tasks: Any, *, seconds: float | None = None) -> Iterator[Any]:
        yield from super().deal(work, islice(tasks, 2))
        raise KeyboardInterrupt


class Counted(InProcess):
    """Knows what it has computed."""

    def deal(self, work: Any, tasks: Any, *, seconds: float | None = None) -> Iterator[Any]:
        listed: list[Task] = list(tasks)
        self.computed = [Path(task.output).name for task in listed]
        yield from super().deal(work, listed)


def test_a_killed_run_goes_on(digits: Model, rows: Path, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "results"
    batch(digits, rows, whole)
    with pytest.raises(KeyboardInterrupt):
        batch(digits, rows, folder, engine=Killed())
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}
    counted = Counted()
    assert batch(digits, rows, folder, engine=counted) == (40, 0)
    assert counted.computed == ["b.npy.0000000000.npz"]
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == before
    assert hashes(folder) == hashes(whole)
    np.save(rows / "c.npy", images(1))
    assert batch(digits, rows, folder) == (41, 0)
    np.save(rows / "b.npy", images(8))
    with pytest.raises(BatchError, match=r"b\.npy: has changed"):
        batch(digits, rows, folder)
    with pytest.raises(BatchError, match="is the folder of the rows"):
        batch(digits, rows, rows)


def test_rows_that_fail_are_kept_apart(table: Model, tmp_path: Path) -> None:
    index = np.array([0, 9, 3, 1, -7, 2])
    np.save(tmp_path / "i.npy", index)
    folder = tmp_path / "results"
    with pytest.raises(
        BatchError, match=r"2 rows have failed, more than 0, the first one i\.npy:1"
    ):
        batch(table, tmp_path / "i.npy", folder)
    assert results(folder) == {}
    for size in (1, 3, 64):
        other = folder if size == 1 else tmp_path / f"by{size}"
        assert batch(table, tmp_path / "i.npy", other, Settings(size, max_errors=2)) == (6, 2)
        (found,) = results(other).values()
        assert found[ROWS].tolist() == [0, 2, 3, 5]
        np.testing.assert_array_equal(found["y"][:, 0], [0, 9, 3, 6])
        assert [*errors(other)] == ["i.npy:1", "i.npy:4"]
        assert {*errors(other).values()} == {"an index from data lies outside of its dimension"}
    # What has failed counts when the results are found again, too.
    with pytest.raises(BatchError, match="2 rows have failed, more than 1"):
        batch(table, tmp_path / "i.npy", folder, Settings(max_errors=1))


def test_rows_that_would_be_mixed_are_computed_alone(tmp_path: Path) -> None:
    mixing = model_of(
        [
            helper.make_node("ReduceMean", ["x", "axis"], ["m"]),
            helper.make_node("Sub", ["x", "m"], ["y"]),
        ],
        ("x", TensorProto.FLOAT, ["n", 2]),
        {"axis": np.array([0])},
    )
    np.save(tmp_path / "x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    told: list[Done | None] = []

    def tell(done: Done | None, rows: int, total: int) -> None:
        assert rows <= total == 5
        told.append(done)

    batch(mixing, tmp_path / "x.npy", tmp_path / "out", progress=tell)
    (found,) = results(tmp_path / "out").values()
    np.testing.assert_array_equal(found["y"], np.zeros((5, 2)))
    # A batch in which a row fails shows nothing: the next one does.
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    x[0, 0] = np.nan
    np.save(tmp_path / "nan.npy", x)
    settings = Settings(batch=2, max_errors=1, allow_nan=False)
    batch(mixing, tmp_path / "nan.npy", tmp_path / "nan", settings, progress=tell)
    (found,) = results(tmp_path / "nan").values()
    np.testing.assert_array_equal(found["y"], np.zeros((4, 2)))
    assert found[ROWS].tolist() == [1, 2, 3, 4]
    assert [done.one_by_one for done in told if done] == [True, True]
    other = model_of(
        [helper.make_node("Neg", ["x"], ["y"])], ("x", TensorProto.FLOAT, ["n", 2]), {}
    )
    with pytest.raises(BatchError, match="results of another model"):
        batch(other, tmp_path / "x.npy", tmp_path / "out")


def test_closed_dimensions(tmp_path: Path) -> None:
    """A model of two rows takes pairs of them; one more dimension is one of samples, too."""
    pairs = model_of([helper.make_node("Neg", ["x"], ["y"])], ("x", TensorProto.FLOAT, [2, 3]), {})
    x = np.arange(24, dtype=np.float32)
    np.save(tmp_path / "joined.npy", x.reshape(8, 3))
    np.save(tmp_path / "stacked.npy", x.reshape(4, 2, 3))
    for name in ("joined", "stacked"):
        path = tmp_path / f"{name}.npy"
        assert batch(pairs, path, tmp_path / name) == (4, 0)
        (found,) = results(tmp_path / name).values()
        np.testing.assert_array_equal(found["y"], -np.load(path))
    np.save(tmp_path / "odd.npy", x[:21].reshape(7, 3))
    with pytest.raises(BatchError, match=r"float32\[7, 3\].* its first dimension is closed to 2"):
        batch(pairs, tmp_path / "odd.npy", tmp_path / "odd")


def test_all_files_that_do_not_fit_are_listed(digits: Model, tmp_path: Path) -> None:
    rows, folder = tmp_path / "rows", tmp_path / "results"
    rows.mkdir()
    with pytest.raises(BatchError, match=r"holds no file of \.npz"):
        batch(digits, rows, folder)
    (rows / "a.npz").write_bytes(b"PK\x03\x04 garbage")
    np.savez(rows / "b.npz", img=images(1))
    np.save(rows / "c.npy", images(2).astype(np.float64))
    np.save(rows / "d.npy", np.zeros((2, 1, 8, 9), np.float32))
    np.save(rows / "e.npy", np.array([{}], object))
    np.save(rows / "f.npy", images(2))
    with pytest.raises(BatchError) as caught:
        batch(digits, rows, folder)
    lines = str(caught.value).splitlines()
    starts = [f"{rows}/{name}: " for name in ("a.npz", "b.npz", "b.npz", "c.npy", "d.npy", "e.npy")]
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=True)] == [True] * 6
    assert "cannot be read" in lines[0]
    assert "convert it to float32" in lines[3]
    assert not folder.exists()
    # No rows at all are no error: there is a file of results without any.
    for name in "abcde":
        next(rows.glob(f"{name}.*")).unlink()
    np.save(rows / "f.npy", images(0))
    assert batch(digits, rows, folder) == (0, 0)
    (found,) = results(folder).values()
    assert found["logits"].shape == (0, 10)


def test_outputs_of_any_name_and_damaged_data(tmp_path: Path) -> None:
    rows = ["n", 2]
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["file"], to=TensorProto.BFLOAT16)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)],
        [helper.make_tensor_value_info("file", TensorProto.BFLOAT16, rows)],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = lowerdeck.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    x = np.random.default_rng(0).integers(-256, 256, (200, 2)).astype(np.float32)
    np.savez_compressed(tmp_path / "x.npz", x=x)
    batch(model, tmp_path / "x.npz", tmp_path / "out")
    (found,) = results(tmp_path / "out").values()
    np.testing.assert_array_equal(found["file"], x)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    (tmp_path / "bad.npz").write_bytes(data)
    with pytest.raises(lowerdeck.LowerdeckError, match=r"bad\.npz: cannot be read"):
        batch(model, tmp_path / "bad.npz", tmp_path / "bad")


def test_command(
    table: Model,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = images(5)
    x[2, 0, 3, 3] = np.nan
    np.savez(tmp_path / "x.npz", image=x)
    model, folder = str(DIGITS / "digits.onnx"), tmp_path / "out"
    arguments = ["batch", model, "--inputs", str(tmp_path / "x.npz"), "--output", str(folder)]
    assert main([*arguments, "--refuse-nan"]) == 1
    assert "x.npz:2: NaN or infinities in image" in capsys.readouterr().err
    assert main([*arguments, "--refuse-nan", "--max-errors", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"5 rows, 1 failed; wrote {folder}\n"
    assert "5 of 5 rows" in shown.err
    assert main([*arguments[:-1], str(tmp_path / "all")]) == 0
    (found,) = results(tmp_path / "all").values()
    assert np.isnan(found["logits"]).any(1).tolist() == [False, False, True, False, False]
    capsys.readouterr()
    for more, text in (
        (["--batch", "0"], "a batch of 0 rows"),
        (["--address", "x:1"], "is for --engine ray"),
        (["--max-errors", "1"], "with other options"),
    ):
        assert main([*arguments, *more]) == 1
        assert text in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main([*arguments, "--engine", "ray"]) == 1
    assert "pip install 'lowerdeck[ray]'" in capsys.readouterr().err


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    model = model_of(
        [helper.make_node("Neg", ["x"], ["y"])], ("x", TensorProto.FLOAT, ["n", 2]), {}
    )
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for name, column in (
        ("lists", pa.array(x.tolist(), pa.list_(pa.float32()))),
        ("fixed", pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 2)),
    ):
        path = tmp_path / f"{name}.parquet"
        table = pa.table({"key": ["a", "b", "c"], "x": column})
        parquet.write_table(table, path)
        with pa.OSFile(str(path.with_suffix(".arrow")), "wb") as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
        for each in (path, path.with_suffix(".arrow")):
            folder = tmp_path / f"{name}{each.suffix}-out"
            batch(model, each, folder)
            (found,) = results(folder).values()
            np.testing.assert_array_equal(found["y"], -x)
    (tmp_path / "bad.arrow").write_bytes(b"ARROW1")
    with pytest.raises(BatchError, match="cannot be read"):
        batch(model, tmp_path / "bad.arrow", tmp_path / "bad")
    # What is missing in a row, or has another size, is the problem of this row.
    good, odd = [1.0, 2.0], [1.0, 2.0, 3.0]
    for number, rows in enumerate(([odd, good, good], [good, None, good], [[1.0, None], good])):
        path = tmp_path / f"bad{number}.parquet"
        table = pa.table({"x": pa.array(rows, pa.list_(pa.float32()))})
        parquet.write_table(table, path, row_group_size=2)
        if number == 0:  # nothing is known but the first row
            with pytest.raises(BatchError, match=r"float32\[3, 3\], expected rows of x"):
                batch(model, path, tmp_path / "bad")
            table = (
                table.slice(1)
                .take([0, 1, 1])
                .set_column(0, "x", pa.array([good, odd, good], pa.list_(pa.float32())))
            )
            parquet.write_table(table, path, row_group_size=2)
        folder = tmp_path / f"bad{number}"
        assert batch(model, path, folder, Settings(max_errors=1)) == (len(rows), 1)
        (problem,) = errors(folder).values()
        assert ("expected" if number == 0 else "column 'x' has missing values") in problem
        (found,) = results(folder).values()
        np.testing.assert_array_equal(found["y"], -np.array([good] * (len(rows) - 1)))
    parquet.write_table(pa.table({"x": pa.array([None], pa.list_(pa.float32()))}), path)
    with pytest.raises(BatchError, match="none of its first 1 rows can be read: column 'x' has"):
        batch(model, path, tmp_path / "none")


def test_rows_of_parts_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(batching, "_CHUNK", 7)
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], ("x", TensorProto.FLOAT, ["n"]), {})
    x = np.arange(40, dtype=np.float32)
    parquet.write_table(pa.table({"x": x}), tmp_path / "x.parquet", row_group_size=9)
    assert batch(model, tmp_path / "x.parquet", tmp_path / "out") == (40, 0)
    parts = results(tmp_path / "out").values()
    np.testing.assert_array_equal(np.concatenate([part["y"] for part in parts]), -x)
    parquet.write_table(pa.table({"x": x[:0]}), tmp_path / "none.parquet")
    assert batch(model, tmp_path / "none.parquet", tmp_path / "none") == (0, 0)


# Samples


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def npy_of(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture(scope="module")
def negative() -> Model:
    """y = -x, of any number of images of 2 x 4 with three channels."""
    return model_of(
        [helper.make_node("Neg", ["x"], ["y"])], ("x", TensorProto.FLOAT, ["n", 3, 2, 4]), {}
    )


def test_tar_files_of_samples(
    negative: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_CHUNK", 20)
    x = np.random.default_rng(0).standard_normal((25, 3, 2, 4)).astype(np.float32)
    members = {f"d/{k:03}.npy": npy_of(x[k]) for k in range(25)}
    members |= {f"d/{k:03}.cls": b"7" for k in range(25)}  # what is no input is left alone
    members |= {"d/003.npy": b"\x93NUMPY", "d/011.npy": npy_of(x[11, :, :, :3]), "d/012.x.npy": b""}
    path = tar_of(tmp_path / "a.tar", members)
    outputs = [tmp_path / name for name in ("single", "many")]
    for size, folder in zip((1, None), outputs, strict=True):
        settings = Settings(batch=size, max_errors=5)
        assert batch(negative, path, folder, settings) == (25, 3)
        assert errors(folder).keys() == {"a.tar:d/003", "a.tar:d/011", "a.tar:d/012"}
    assert hashes(outputs[0]) == hashes(outputs[1])
    parts = results(outputs[0])
    assert [*parts] == ["a.tar.0000000000.npz", "a.tar.0000000020.npz"]
    kept = [k for k in range(25) if k not in (3, 11, 12)]
    np.testing.assert_array_equal(np.concatenate([p["y"] for p in parts.values()]), -x[kept])
    np.testing.assert_array_equal(np.concatenate([p[ROWS] for p in parts.values()]), kept)
    keys = np.concatenate([p["lowerdeck.keys"] for p in parts.values()])
    assert keys.tolist() == [f"d/{k:03}" for k in kept]
    with pytest.raises(BatchError, match=r"a\.tar:d/003"):
        batch(negative, path, tmp_path / "none")


def test_folders_of_images(negative: Model, tmp_path: Path) -> None:
    pillow: Any = pytest.importorskip("PIL.Image")
    rows = tmp_path / "rows"
    rows.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 2, 4, 3), np.uint8)
    for k in range(3):
        pillow.fromarray(pixels[k]).save(rows / f"{k}.png")
    (rows / "3.jpg").write_bytes(b"\xff\xd8\xff")
    pillow.fromarray(pixels[0, :, :3]).save(rows / "4.png")
    pillow.fromarray(pixels[3]).convert("L").save(rows / "5.PNG")
    folder = tmp_path / "out"
    assert batch(negative, rows, folder, Settings(max_errors=2)) == (6, 2)
    (found,) = results(folder).values()
    np.testing.assert_array_equal(found["y"][:3], -pixels[:3].transpose(0, 3, 1, 2).astype("f4"))
    assert found["lowerdeck.keys"].tolist() == ["0.png", "1.png", "2.png", "5.PNG"]
    assert (found["y"][3, 0] == found["y"][3, 1]).all()
    said = errors(folder)
    assert "no image that can be read" in said["rows:3.jpg"]
    assert "expected" in said["rows:4.png"]


def test_samples_that_do_not_fit(negative: Model, tmp_path: Path) -> None:
    good = npy_of(np.zeros((3, 2, 4), np.float32))
    cut = tar_of(tmp_path / "whole.tar", {"a.npy": good}).read_bytes()[:300]
    for name, data, text in (
        ("cut", cut, "cannot be read"),
        ("none", tar_of(tmp_path / "e.tar", {}).read_bytes(), "holds no samples"),
        ("type", tar_of(tmp_path / "t.tar", {"a.npy": npy_of(np.zeros((3, 2, 4)))}), "convert it"),
        ("size", tar_of(tmp_path / "s.tar", {"a.npy": npy_of(np.zeros(3, "f4"))}), "expected rows"),
        ("what", tar_of(tmp_path / "w.tar", {"a.json": b"{}"}), "has nothing for input 'x'"),
        ("two", tar_of(tmp_path / "2.tar", {"a.npy": good, "a.png": b""}), "could be any of"),
    ):
        path = data if isinstance(data, Path) else tmp_path / f"{name}.tar"
        if isinstance(data, bytes):
            path.write_bytes(data)
        with pytest.raises(lowerdeck.LowerdeckError, match=text):
            batch(negative, path, tmp_path / f"out-{name}")


def test_batches_grow_while_rows_become_faster() -> None:
    size = BatchSize(None)
    seen: list[int] = []
    for speed in (1.0, 2.0, 3.0, 2.9, 9.9):
        seen.append(size.rows)
        size.took(size.rows - 1, 1e-9)  # the rest of a task says nothing
        for disturbed in (4, 1, 9):
            size.took(size.rows, size.rows / speed * disturbed * 1e-6)
    assert seen == [16, 32, 64, 128, 64]
    size = BatchSize(None)
    size.took(16, 1.0)  # a large model
    assert size.rows == 16
    size = BatchSize(5)
    size.took(5, 1e-6)
    assert size.rows == 5


class Losing:
    """An engine whose processes end."""

    def deal(
        self, work: Any, tasks: Iterable[Any], *, seconds: float | None = None
    ) -> Iterator[tuple[Any, Future[Any]]]:
        """See `Engine.deal`."""
        del work, seconds
        yield from ((task, lost("the worker ran out of memory")) for task in tasks)


def test_memory_that_is_not_there(
    digits: Model, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that needs too much is an error of it; a process that ends is one of its rows."""
    with pytest.raises(BatchError, match=r"a\.npz, rows from 0: the worker ran out of memory"):
        batch(digits, rows, tmp_path / "lost", engine=Losing())
    right = Model.__call__

    def small(self: Model, *inputs: Any) -> Any:
        if inputs[0]["image"].max() > 7:
            raise MemoryError
        return right(self, *inputs)

    monkeypatch.setattr(Model, "__call__", small)
    x = images(5)
    x[3, 0, 0, 0] = 8
    np.save(tmp_path / "x.npy", x)
    assert batch(digits, tmp_path / "x.npy", tmp_path / "few", Settings(max_errors=1)) == (5, 1)
    assert errors(tmp_path / "few") == {"x.npy:3": "there is no memory for it"}

    def none(*given: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(batching, "load", none)
    with pytest.raises(BatchError, match=r"x\.npy, rows from 0: no memory"):
        batch(digits, tmp_path / "x.npy", tmp_path / "none")


# Ray, where it is installed


def test_ray_gives_the_same_files(
    cluster: Engine, digits: Model, table: Model, rows: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert batch(digits, rows, here) == (40, 0)
    assert batch(digits, rows, there, engine=cluster) == (40, 0)
    assert hashes(here) == hashes(there)
    np.save(tmp_path / "i.npy", np.array([0, 9, 3]))
    with pytest.raises(BatchError, match=r"the first one i\.npy:1"):
        batch(table, tmp_path / "i.npy", tmp_path / "t", engine=cluster)
    assert batch(table, tmp_path / "i.npy", tmp_path / "t", Settings(max_errors=1)) == (3, 1)


def test_nodes_that_are_lost_and_join(
    nodes: Any, cluster: Engine, digits: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is there once, whatever becomes of nodes meanwhile."""
    monkeypatch.setattr(batching, "_CHUNK", 50)
    np.save(tmp_path / "a.npy", images(2000))
    lost = nodes.add_node(num_cpus=1, include_log_monitor=False)
    ends: list[str] = []
    ray: Any = importlib.import_module("ray")
    resources = ray.cluster_resources

    def changes(done: Done | None, rows: int, total: int) -> None:
        del rows, total
        ends.extend([done.task.output] if done is not None else [])
        if done is not None and len(ends) == 4:
            nodes.remove_node(lost, allow_graceful=False)
            # Ray knows it after some seconds; more tasks are under way then than there is room for.
            monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1})
        if done is not None and len(ends) == 8:
            monkeypatch.setattr(ray, "cluster_resources", resources)
            nodes.add_node(num_cpus=1, include_log_monitor=False)

    here, there = tmp_path / "here", tmp_path / "there"
    assert batch(digits, tmp_path / "a.npy", here) == (2000, 0)
    assert batch(digits, tmp_path / "a.npy", there, engine=cluster, progress=changes) == (2000, 0)
    assert hashes(here) == hashes(there)
    assert len({*ends}) == len(ends) == len(results(there)) == 40


def test_a_worker_that_is_ended_is_an_error(cluster: Engine) -> None:
    """As where the system has no memory for it: it is tried again, but not for ever."""
    tasks = [0, int(signal.SIGKILL), 0]
    ends = [*cluster.deal(signal.raise_signal, tasks, seconds=60.0)]
    found = {task: future.exception() for task, future in ends}
    assert len(ends) == 3
    assert isinstance(found[int(signal.SIGKILL)], LostTask)
    assert found[0] is None


def test_served(digits: Model) -> None:
    x = images(3)
    found = Served(digits).answer({"image": x.tolist()})
    np.testing.assert_array_equal(np.asarray(found["logits"], np.float32), digits(x)[0])
    with pytest.raises((ValueError, RunError)):
        Served(digits).answer({"picture": [1]})


def test_deployment(digits: Model) -> None:
    """As in Ray Serve, whose replicas are in this process here."""
    serve: Any = pytest.importorskip("ray.serve", reason="Ray Serve is not installed")
    from lowerdeck.ray import deployment

    x = images(2)
    handle = serve.run(deployment(digits), _local_testing_mode=True)
    found = handle.answer.remote({"image": x.tolist()}).result()
    np.testing.assert_array_equal(np.asarray(found["logits"], np.float32), digits(x)[0])


def test_map_batches(cluster: Engine, digits: Model) -> None:
    from lowerdeck.ray import map_batches

    data: Any = pytest.importorskip("ray.data")
    x = images(30)
    dataset = data.from_items([{"id": k, "image": x[k]} for k in range(30)])
    found = {
        row["id"]: row["logits"]
        for row in map_batches(dataset, digits, batch=8, concurrency=1).take_all()
    }
    assert sorted(found) == [*range(30)]
    expected = digits({"image": x})["logits"]
    np.testing.assert_array_equal([found[k] for k in range(30)], expected)


def test_no_cluster_is_an_error() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    code = "from lowerdeck import ray; ray._PATIENCE = 2.0; ray.Cluster('127.0.0.1:1')"
    command = [sys.executable, "-c", code]  # Ray is initialized here
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "RayError: no cluster at 127.0.0.1:1: " in done.stderr
