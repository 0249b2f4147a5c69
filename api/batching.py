"""A model over files of rows: `batch`, which goes on where it was when it was killed."""

from __future__ import annotations

import json
import math
import os
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import IO, Any, NamedTuple, cast

import numpy as np

from lowerdeck.binding import RunError
from lowerdeck.calibration import Array, CalibrationError, Sample, division, has_batch, part
from lowerdeck.compiler import Model
from lowerdeck.dialects.files import replacing
from lowerdeck.engines import Engine, InProcess, LostTask
from lowerdeck.metadata import TensorInfo
from lowerdeck.row_files import BatchError, files_in, heads_of, load

__all__ = [
    "BatchError",
    "Done",
    "Rows",
    "Settings",
    "Task",
    "batch",
    "checked_rows",
    "compute",
    "plan",
]

ROWS = "lowerdeck.rows"
"""What output files have beside the outputs: for each result the number of its row."""

KEYS = "lowerdeck.keys"
"""The names of the rows, where those have any: samples in a tar file, or images."""

ERRORS = "errors.jsonl"
"""The file of rows that have failed."""

_PARTS = ".errors"
"""The folder of errors by task, of which ERRORS is made."""

_RECORD = ".batch.json"
_CHUNK = 8192
"""Rows of a task, at most."""
_CHUNK_BYTES = 1 << 24
"""Of the inputs and outputs of a task: what a process holds at once."""
_CHUNK_WORK = 1 << 35
"""Bytes of weights that a task reads, once for each row: some seconds."""

_FIRST, _MOST = 16, 4096
"""The batch that is tried first, and the largest one, where it is chosen by what it gains."""
_LONGEST = 0.25
"""Seconds of a call after which a larger batch would only delay what is told."""
_FASTER = 1.1
_TIMES = 3
"""Calls of a size, of which the fastest counts: others are disturbed."""

_PROBE, _PROBED = 8, 128
"""Rows of each task that are computed one by one, too, to see that a batch gives the same bits: so
many, but no more than one of so many."""


@dataclass(frozen=True)
class Settings:
    """How rows are computed."""

    batch: int | None = None
    """The most rows of a call; None finds out how many make rows fastest. A model without an open
    batch dimension takes one at a time."""
    max_errors: int = 0
    allow_nan: bool = True
    """Whether NaN and infinities of inputs are computed with; they fail otherwise."""


@dataclass(frozen=True)
class Task:
    """Rows of a file that become one file."""

    file: str
    start: int
    stop: int
    output: str

    @property
    def errors(self) -> str:
        """The file of the rows that fail."""
        folder, name = os.path.split(self.output)
        return os.path.join(folder, _PARTS, f"{name}.jsonl")

    def is_done(self) -> bool:
        """Whether the results are there; the errors were before them."""
        return os.path.exists(self.output)


@dataclass(frozen=True)
class Done:
    """What has become of a task."""

    task: Task
    rows: int
    errors: int
    one_by_one: bool = False
    """Whether batches would have given other results than single rows."""

    @staticmethod
    def found(task: Task) -> Done:
        """What another process has done."""
        return Done(task, task.stop - task.start, _count(task.errors))


def batch(
    model: Model,
    inputs: str | os.PathLike[str],
    output: str | os.PathLike[str],
    settings: Settings = Settings(),
    *,
    engine: Engine | None = None,
    progress: Callable[[Done | None, int, int], None] | None = None,
) -> tuple[int, int]:
    """
    Run a model on all rows of `inputs`, a file or a folder of files that docs/scale.md lists, and
    write a file of results for each 8,192 rows of a file into the folder `output`. Returns how many
    rows there are, and how many of them have failed.

    Files appear whole, and what is there is not computed again: a run that was killed goes on.
    Results are those of single rows, whatever the batch. `engine` computes tasks, by default in
    this process; `progress` is told of each, with the rows done and all rows; and of None first,
    and in this process after each call.

    BatchError lists all files that do not fit, before anything is computed; or that more rows have
    failed than `settings.max_errors`: what is whole stays.
    """
    folder = os.fspath(output)
    _check_model(model, settings)
    if os.path.exists(folder) and os.path.realpath(folder) == os.path.realpath(inputs):
        raise BatchError(f"{folder}: is the folder of the rows; results need one of their own")
    tasks = plan(model, os.fspath(inputs), folder)
    _claim(folder, model, tasks, settings)
    total = sum(task.stop - task.start for task in tasks)
    left = [task for task in tasks if not task.is_done()]
    rows = total - sum(task.stop - task.start for task in left)
    failed = sum(_count(task.errors) for task in tasks if task.is_done())
    if progress is not None:
        progress(None, rows, total)
    _check_errors(folder, tasks, failed, settings)

    def tell(count: int) -> None:
        """Rows of the task that runs, on top of those that are done."""
        if progress is not None:
            progress(None, rows + count, total)

    is_told = engine is None and progress is not None
    work = partial(_computed, model, settings, tell if is_told else None)
    for task, future in (engine or InProcess()).deal(work, map(_absolute, left)):
        try:
            done = future.result()
        except LostTask as error:
            raise BatchError(f"{task.file}, rows from {task.start}: {error}") from None
        rows, failed = rows + done.rows, failed + done.errors
        if progress is not None:
            progress(done, rows, total)
        _check_errors(folder, tasks, failed, settings)
    _gather(folder, tasks)
    return rows, failed


def _check_model(model: Model, settings: Settings) -> None:
    if settings.batch is not None and settings.batch < 1:
        raise BatchError(f"a batch of {settings.batch} rows; expected at least 1")
    if settings.max_errors < 0:
        raise BatchError(f"at most {settings.max_errors} errors; expected no less than 0")
    if model.state:
        raise BatchError(f"{model.name}: remembers: a row would depend on those before it")


def _check_errors(folder: str, tasks: Sequence[Task], failed: int, settings: Settings) -> None:
    if failed > settings.max_errors:
        _gather(folder, tasks)
        path = os.path.join(folder, ERRORS)
        with open(path, encoding="utf-8") as file:
            first = json.loads(file.readline())
        raise BatchError(
            f"{path}: {failed} rows have failed, more than {settings.max_errors}, the first one "
            f"{first['key']}: {first['message']}; run again with a larger --max-errors to go on"
        )


# The plan


def plan(model: Model, inputs: str, output: str) -> list[Task]:
    """The tasks for files of rows; BatchError lists all files that do not fit the model."""
    files = files_in(inputs)
    tasks: list[Task] = []
    problems: list[str] = []
    for file in files:
        try:
            heads = heads_of(file, model.inputs)
            count = checked_rows(model, file, heads)
        except (BatchError, CalibrationError) as error:
            problems.append(str(error))
            continue
        name = os.path.basename(os.path.normpath(file))
        size = _rows_of_task(model, heads, count)
        for start in range(0, max(count, 1), size):
            path = os.path.join(output, f"{name}.{start:010d}.npz")
            tasks.append(Task(file, start, min(start + size, count), path))
    if problems:
        raise BatchError("\n".join(problems))
    return tasks


def _rows_of_task(model: Model, heads: Mapping[str, Array], count: int) -> int:
    """It depends on what is computed alone, not on how fast that is."""
    held = sum(array.nbytes for array in heads.values()) // max(count, 1)
    for info in model.outputs:
        held += math.prod(s for s in info.shape if isinstance(s, int)) * info.dtype.itemsize
    most = min(_CHUNK, _CHUNK_BYTES // max(held, 1), _CHUNK_WORK // max(model.weights_size, 1))
    return max(most, 1)


def checked_rows(model: Model, where: str, arrays: Mapping[str, Array]) -> int:
    """The number of rows of a file; BatchError for shapes and types that are not the model's."""
    sizes = _sizes(model, arrays)
    problems: list[str] = []
    for info in model.inputs:
        if (array := arrays.get(info.name)) is None:
            continue
        size = sizes[info.name][1]
        shape = array.shape[1:] if size is None else (size or _first(array), *array.shape[1:])
        found = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        if len(shape) != info.rank or any(
            isinstance(expected, int) and expected != own
            for expected, own in zip(info.shape, shape, strict=True)
        ):
            closed = info.shape[0] if info.shape else None
            note = f"; its first dimension is closed to {closed}" if isinstance(closed, int) else ""
            problems.append(f"input '{info.name}' is {found}, expected rows of {info}{note}")
        elif not np.can_cast(array.dtype, info.dtype, "safe"):
            text = f"input '{info.name}' is {found}, expected {info}; convert it to {info.dtype}"
            problems.append(text)
    counts = {name: count for name, (count, _) in sizes.items()}
    if not problems and len(set(counts.values())) > 1:
        found = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        problems.append(f"different numbers of rows: {found}")
    if not counts:
        problems.append("the model has no input that rows could be of")
    if problems:
        raise BatchError("\n".join(f"{where}: {text}" for text in problems))
    return next(iter(counts.values()))


def _first(array: Array) -> int:
    return array.shape[0] if array.ndim else 0


def _sizes(model: Model, arrays: Mapping[str, Array]) -> dict[str, tuple[int, int | None]]:
    """For each input the number of rows, and what `part` takes."""
    one = 1 if has_batch(model.inputs, model.outputs) else None
    infos = {info.name: info for info in model.inputs}
    return {name: division(array.shape, infos[name], one) for name, array in arrays.items()}


def _claim(folder: str, model: Model, tasks: Sequence[Task], settings: Settings) -> None:
    """BatchError if a folder has results of another run, or of files that have changed since."""
    files: dict[str, list[int]] = {}
    for file in {task.file for task in tasks}:
        status = os.stat(file)
        files[os.path.basename(file)] = [status.st_size, status.st_mtime_ns]
    own = {
        "model": model.digest,
        "allow_nan": settings.allow_nan,
        "rows": [_CHUNK, _CHUNK_BYTES, _CHUNK_WORK],
    }
    record: dict[str, Any] = {**own, "files": files}
    os.makedirs(os.path.join(folder, _PARTS), exist_ok=True)
    path = os.path.join(folder, _RECORD)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = cast("dict[str, Any]", json.load(file))
        if any(known.get(name) != value for name, value in own.items()):
            text = "has results of another model, or with other options; give another folder"
            raise BatchError(f"{folder}: {text}")
        changed = [n for n, state in known["files"].items() if files.get(n, state) != state]
        if changed:
            text = "has changed since its results were written; give another folder"
            raise BatchError("\n".join(f"{name}: {text}" for name in changed))
        record["files"] = {**known["files"], **files}
    with replacing(path) as file:
        json.dump(record, file)


# One task


def _absolute(task: Task) -> Task:
    """The task for processes in other folders."""
    return replace(task, file=os.path.abspath(task.file), output=os.path.abspath(task.output))


def _computed(
    model: Model, settings: Settings, told: Callable[[int], None] | None, task: Task
) -> Done:
    """What has become of a task; a file that another process has written is not written again."""
    return Done.found(task) if task.is_done() else compute(model, task, settings, told)


def compute(
    model: Model, task: Task, settings: Settings, told: Callable[[int], None] | None = None
) -> Done:
    """
    Compute the rows of a task and write its file, after that of its errors; nothing if more rows
    fail than are allowed. `told` hears after each call how many rows there are. BatchError if
    results cannot lie side by side in an array.
    """
    own = 1 if has_batch(model.inputs, model.outputs) else None
    try:
        loaded = load(task.file, model.inputs, task.start, task.stop, own)
    except (MemoryError, OSError) as error:
        text = str(error) or "no memory"
        raise BatchError(f"{task.file}, rows from {task.start}: {text}") from None
    rows = Rows(model, loaded.arrays, loaded.first, loaded.problems)
    failed: dict[int, str] = {}
    kept: list[Block] = []
    size = _batch_size(model.digest, settings.batch if rows.is_batch else 1)
    is_probed = one_by_one = False
    start = task.start
    while start < task.stop and len(failed) <= settings.max_errors:
        stop = min(start + (1 if one_by_one else size.rows), task.stop)
        begin = time.perf_counter()
        blocks = rows.run(start, stop, allow_nan=settings.allow_nan)
        if len(blocks) == 1:
            size.took(stop - start, time.perf_counter() - begin)
        if not is_probed and len(blocks) == 1 and len(blocks[0].rows) > 1:
            if not rows.is_same(blocks[0], min(_PROBE, (task.stop - task.start) // _PROBED + 1)):
                one_by_one = True
                continue
            is_probed = True
        for block in blocks:
            if block.problem is None:
                kept.append(block)
            else:
                failed[block.rows.start] = block.problem
        start = stop
        if told is not None:
            told(start - task.start)
    name = os.path.basename(os.path.normpath(task.file))
    with replacing(task.errors) as file:
        for number, message in failed.items():
            own = number if loaded.keys is None else loaded.keys[number - loaded.first]
            file.write(json.dumps({"key": f"{name}:{own}", "message": message}) + "\n")
    if len(failed) <= settings.max_errors:
        numbers = [number for block in kept for number in block.rows]
        arrays = {ROWS: np.asarray(numbers, np.int64), **rows.together(kept, name)}
        if loaded.keys is not None:
            keys = [loaded.keys[number - loaded.first] for number in numbers]
            arrays[KEYS] = np.asarray(keys, np.str_)
        with replacing(task.output, "wb") as file:
            _write(file, arrays)
    return Done(task, task.stop - task.start, len(failed), one_by_one)


def _write(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """An .npz file, as numpy writes it where no output has the name of an argument of its own."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            # The format has no bfloat16; a float holds all of its values.
            held = array.astype(np.float32) if array.dtype.kind == "V" else array
            whole = np.asarray(held, order="C")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = np.lib.format.header_data_from_array_1_0(whole)
                np.lib.format.write_array_header_1_0(member, header)
                member.write(whole.reshape(-1).view(np.uint8).data)


class BatchSize:
    """How many rows a call takes: twice as many as before, as long as rows become faster by it."""

    def __init__(self, rows: int | None) -> None:
        self.rows = rows or _FIRST
        self._is_open = rows is None
        self._speed = self._before = 0.0
        self._times = 0

    def took(self, rows: int, seconds: float) -> None:
        """So many rows of a call took so long."""
        if not self._is_open or rows < self.rows:
            return
        self._times += 1
        self._speed = max(self._speed, rows / max(seconds, 1e-9))
        if self._times < _TIMES and seconds < _LONGEST:
            return
        if self._speed < _FASTER * self._before:
            self._is_open = False
            self.rows //= 2 if self._speed < self._before else 1
        elif seconds > _LONGEST or 2 * self.rows > _MOST:
            self._is_open = False
        else:
            self.rows *= 2
        self._before, self._speed, self._times = self._speed, 0.0, 0


@lru_cache(maxsize=8)
def _batch_size(digest: str, rows: int | None) -> BatchSize:
    """That of a model, which goes on from task to task."""
    del digest
    return BatchSize(rows)


class Block(NamedTuple):
    """Rows that one call has computed: several, or one that may have failed."""

    rows: range
    outputs: Sequence[Array]
    problem: str | None = None


class Rows:
    """The rows that arrays hold side by side, and a model for them."""

    def __init__(
        self,
        model: Model,
        arrays: Mapping[str, Array],
        first: int = 0,
        problems: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """`first` is the number of the first row; those with `problems` are not computed."""
        self._model = model
        self._arrays = arrays
        self._first = first
        self._problems = problems
        self._infos = {info.name: info for info in model.inputs}
        self._sizes = {name: size for name, (_, size) in _sizes(model, arrays).items()}
        self.is_batch = (
            has_batch(model.inputs, model.outputs)
            and len(arrays) == len(model.inputs)
            and all(size == 1 for size in self._sizes.values())
        )
        """Whether one call takes several rows."""

    def row(self, number: int) -> Sample:
        """The inputs of one row."""
        return {
            name: self._input(name, part(array, self._sizes[name], number - self._first))
            for name, array in self._arrays.items()
        }

    def _input(self, name: str, array: Array) -> Array:
        return np.asarray(array, self._infos[name].dtype, order="C")

    def run(self, start: int, stop: int, *, allow_nan: bool = True) -> list[Block]:
        """What becomes of rows: one block if a single call computes them, else one for each."""
        is_whole = not any(start <= number < stop for number in self._problems)
        if self.is_batch and stop - start > 1 and is_whole:
            own = slice(start - self._first, stop - self._first)
            inputs = {n: self._input(n, array[own]) for n, array in self._arrays.items()}
            try:
                if allow_nan or not any(map(_has_nan, inputs.values())):
                    outputs = list(self._model(inputs).values())
                    if all(len(array) == stop - start for array in outputs):
                        return [Block(range(start, stop), outputs)]
            except (RunError, ValueError, MemoryError):
                pass  # which of the rows it is, is found below
        return [self.alone(number, allow_nan=allow_nan) for number in range(start, stop)]

    def alone(self, number: int, *, allow_nan: bool = True) -> Block:
        """What becomes of one row."""
        own = range(number, number + 1)
        if (problem := self._problems.get(number)) is not None:
            return Block(own, (), problem)
        inputs = self.row(number)
        if not allow_nan and (names := [n for n, array in inputs.items() if _has_nan(array)]):
            return Block(own, (), f"NaN or infinities in {', '.join(names)}")
        try:
            return Block(own, list(self._model(inputs).values()))
        except (RunError, ValueError, MemoryError) as error:
            return Block(own, (), str(error) or "there is no memory for it")

    def is_same(self, block: Block, count: int = _PROBE) -> bool:
        """Whether the first rows of a batch have the bits in it that they have alone."""
        for place, number in enumerate(block.rows[:count]):
            alone = self.alone(number)
            parts = [array[place : place + 1] for array in block.outputs]
            if alone.problem is not None or any(
                one.shape != other.shape or one.tobytes() != other.tobytes()
                for one, other in zip(alone.outputs, parts, strict=True)
            ):
                return False
        return True

    def together(self, blocks: Sequence[Block], file: str) -> dict[str, Array]:
        """
        The outputs of blocks, each in one array: joined as the inputs were, or one beside the
        other. BatchError for an output that has several shapes.
        """
        return {
            info.name: self._output(
                info, {block.rows.start: block.outputs[number] for block in blocks}, file
            )
            for number, info in enumerate(self._model.outputs)
        }

    def _output(self, info: TensorInfo, results: Mapping[int, Array], file: str) -> Array:
        skipped = 1 if self._joins(info) else 0
        shapes = {array.shape[skipped:]: row for row, array in results.items()}
        if len(shapes) > 1:
            listed = ", ".join(f"{list(shape)} of row {row}" for shape, row in shapes.items())
            raise BatchError(f"{file}: output '{info.name}' has several shapes: {listed}")
        if not results:
            sizes = [size if isinstance(size, int) else 0 for size in info.shape[skipped:]]
            return np.zeros((0, *sizes), info.dtype)
        arrays = [*results.values()]
        return np.concatenate(arrays) if skipped else np.stack(arrays)

    def _joins(self, info: TensorInfo) -> bool:
        """Whether a result has the first dimension that inputs are cut along."""
        firsts = [self._infos[name].shape[:1] for name in self._arrays]
        return (
            all(self._sizes.values())
            and bool(info.shape)
            and all(first == info.shape[:1] for first in firsts)
        )


def _has_nan(array: Array) -> bool:
    return array.dtype.kind not in "biu" and not np.isfinite(array.astype(np.float64)).all()


# Errors by row


def _count(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def _gather(folder: str, tasks: Sequence[Task]) -> None:
    """Write the errors of all tasks into one file, in the order of their rows."""
    with replacing(os.path.join(folder, ERRORS)) as file:
        for task in tasks:
            if os.path.exists(task.errors):
                with open(task.errors, encoding="utf-8") as own:
                    file.write(own.read())
