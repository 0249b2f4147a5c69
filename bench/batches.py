"""
What `lowerdeck batch` costs beside the calls of the model.

    python -m bench.batches rate [--rounds N] [--ray [ADDRESS]]
    python -m bench.batches start [--engine ray]
    python -m bench.batches memory [--workers N] [--ray]
    python -m bench.batches nodes [--rows N]

`rate`: rows a second of `lowerdeck.batching.batch`, from files to files, beside a plain loop in C
that calls the same library on rows in memory, by turns: of a model that takes some milliseconds a
call and takes one row at a time, and of two that take some 50 us alone and have batches, with small
results and with results as large as rows. In one process by processor time; with `--ray` by wall
time on all processors of a cluster on this machine, where the loop runs in as many processes.

`start`: seconds from the start of `lowerdeck batch`, with an empty cache, until each line that it
prints.

`memory`: what processes that compute rows of a model with 64 MB of weights take, at the same time,
over a Python with numpy, or with `--ray` over a worker of Ray with numpy: proportional set sizes of
Linux, where a page that n processes map counts 1/n in each.

`nodes`: digits over N rows on three nodes of Ray on this machine, of which one is killed after a
fifth of the tasks, and another joins after two fifths: all files have to be those of one process.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import IO, Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from bench import workers
from bench.measuring import text_table
from lowerdeck.batching import ROWS, Done, Settings, batch
from lowerdeck.engines import Engine
from lowerdeck.ray import Cluster
from models.campaign import main_of

_DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"
_LOOP = Path(__file__).with_name("batches.c")
_SECONDS = 0.5
"""Of the loop in C, each time."""
_LONG_SECONDS = 4.0
"""The same by wall time: systems may give processes only a part of each second."""


@dataclass(frozen=True)
class Case:
    """A model, and rows for it."""

    name: str
    nodes: Sequence[Any]
    constants: Mapping[str, Sequence[int]]
    """The shapes of its weights."""
    row: Sequence[int]
    is_open: bool
    """Whether it takes batches."""
    rows: int
    """Of a file."""
    files: int
    """For each processor of a cluster, where a run begins by giving the model to its workers."""
    batch: int
    """Of the loop in C."""
    result_bytes: int

    def model(self) -> onnx.ModelProto:
        """With weights by chance."""
        random = np.random.default_rng(0)
        weights = [
            numpy_helper.from_array(0.05 * random.standard_normal(shape).astype(np.float32), name)
            for name, shape in self.constants.items()
        ]
        first = "n" if self.is_open else 1
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, *self.row])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", [x], [y], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

    def data(self) -> NDArray[np.float32]:
        """The rows, side by side."""
        random = np.random.default_rng(1)
        return random.standard_normal((self.rows, *self.row)).astype(np.float32)


def _conv(source: str, target: str, weights: str) -> Any:
    return helper.make_node("Conv", [source, weights], [target], pads=[1, 1, 1, 1])


def _product(source: str, target: str, weights: str) -> Any:
    return helper.make_node("MatMul", [source, weights], [target])


SLOW = Case(
    "convolutions, a row a call",
    [
        _conv("x", "a", "w0"),
        _conv("a", "b", "w1"),
        _conv("b", "c", "w2"),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ],
    {"w0": (64, 3, 3, 3), "w1": (64, 64, 3, 3), "w2": (64, 64, 3, 3)},
    (3, 112, 112),
    is_open=False,
    rows=200,
    files=6,
    batch=1,
    result_bytes=256,
)


def _layers(name: str, width: int, results: int) -> Case:
    return Case(
        name,
        [
            _product("x", "a", "w0"),
            helper.make_node("Relu", ["a"], ["b"]),
            _product("b", "y", "w1"),
        ],
        {"w0": (256, width), "w1": (width, results)},
        (256,),
        is_open=True,
        rows=40_000,
        files=8,
        batch=64,
        result_bytes=4 * results,
    )


CASES = (
    SLOW,
    _layers("layers, 1 KB to 128 bytes", 1792, 32),
    _layers("layers, 1 KB to 1 KB", 1024, 256),
)


# Rates


class Loop:
    """The loop in C over the library of a model."""

    def __init__(self, case: Case, model: lowerdeck.Model, folder: Path) -> None:
        model.save(folder)
        self._name, self._folder = model.name, folder
        self._case = case
        case.data().tofile(folder / "rows")
        dims = ", ".join(map(str, (case.batch, *case.row)))
        self._command = [str(folder / "loop"), str(folder / f"{model.name}.weights")]
        subprocess.run(
            [
                *("cc", "-O2", f"-DMODEL={model.name}", f'-DHEADER="{model.name}.h"'),
                *(f"-DDIMS={dims}", f"-I{folder}", str(_LOOP), str(folder / f"lib{model.name}.so")),
                *(f"-Wl,-rpath,{folder}", "-o", self._command[0]),
            ],
            check=True,
        )

    def rates(self, batch: int, processes: int = 1) -> tuple[float, float]:
        """Rows a second of processor time, in the mean, and of wall time, in the sum."""
        given = [str(self._folder / "rows"), str(batch), str(self._case.result_bytes)]
        seconds = _SECONDS if processes == 1 else _LONG_SECONDS
        command = [*self._command, *given, str(seconds)]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
        ]
        found = [process.communicate()[0].split() for process in started]
        return (
            sum(float(cpu) for cpu, _ in found) / processes,
            sum(float(wall) for _, wall in found),
        )


def _rate(arguments: argparse.Namespace) -> int:
    engine = None if arguments.ray is None else Cluster(arguments.ray or None)
    rows: list[list[str]] = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(_compared(case, Path(folder), engine, arguments.rounds))
    print(text_table(["", "alone", "C", "batch", "ratio", "all ratios"], rows))
    return 0


def _compared(case: Case, folder: Path, engine: Engine | None, rounds: int) -> list[str]:
    """A row of the table."""
    model = lowerdeck.compile(case.model())
    loop = Loop(case, model, folder / "c")
    processors = 1 if engine is None else os.cpu_count() or 1
    inputs = folder / "rows"
    inputs.mkdir()
    data = case.data()
    files = 1 if engine is None else processors * case.files
    for k in range(files):
        np.savez(inputs / f"{k}.npz", x=data)
    count = len(data) * files
    clock: Callable[[], float] = time.process_time if engine is None else time.perf_counter
    batch(model, inputs, folder / "first", engine=engine)  # the workers have the model then
    c_rates: list[float] = []
    own: list[float] = []
    for k in range(rounds):
        c_rates.append(loop.rates(case.batch, processors)[0 if engine is None else 1])
        start = clock()
        batch(model, inputs, folder / f"o{k}", engine=engine)
        own.append(count / (clock() - start))
    ratios = [one / other for one, other in zip(own, c_rates, strict=True)]
    return [
        case.name,
        f"{1e6 / loop.rates(1)[0]:.0f} us",
        f"{median(c_rates):.0f}/s",
        f"{median(own):.0f}/s",
        f"{median(ratios):.2f}",
        " ".join(f"{ratio:.2f}" for ratio in sorted(ratios)),
    ]


# Start


def _start(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/x.npz", image=_images(20_000))
        command = [sys.executable, "-m", "lowerdeck", "batch", str(_DIGITS)]
        command += ["--inputs", f"{folder}/x.npz", "--output", f"{folder}/out"]
        begin = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--engine", arguments.engine],
            env={**os.environ, "XDG_CACHE_HOME": f"{folder}/cache"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in cast("IO[str]", process.stdout):
            print(f"{time.perf_counter() - begin:6.2f} s  {line.rstrip()}", flush=True)
        return process.wait()


def _images(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((count, 1, 8, 8)).astype(np.float32)


# Memory


def _memory(arguments: argparse.Namespace) -> int:
    count: int = arguments.workers
    nodes = [_product("x", "y", "w")]
    case = Case("", nodes, {"w": (4096, 4096)}, (4096,), True, 512, 1, 64, 0)
    with tempfile.TemporaryDirectory() as folder:
        model = lowerdeck.compile(case.model())
        np.save(f"{folder}/x.npy", case.data())
        model.save(f"{folder}/model")
        apart = _on_ray if arguments.ray else _in_processes
        found = {name: apart(name, folder, count) for name in ("bare", "worker")}
    print(f"{count} at once; weights of {model.weights_size / 2**20:.0f} MB")
    head = [f"{part} {k + 1}" for k in range(count) for part in ("MB of", "weights of")]
    rows = [
        [name, *(f"{one[part]:.1f}" for one in each for part in ("all", "weights"))]
        for name, each in found.items()
    ]
    print(text_table(["", *head], rows))
    return 0


def _in_processes(name: str, folder: str, count: int) -> list[dict[str, float]]:
    code = f"import json; from bench.workers import *; print(json.dumps({name}({folder!r}, %d)))"
    started = [
        subprocess.Popen([sys.executable, "-c", code % k], stdout=subprocess.PIPE, text=True)
        for k in range(count)
    ]
    return [json.loads(process.communicate()[0]) for process in started]


def _on_ray(name: str, folder: str, count: int) -> list[dict[str, float]]:
    work = partial(getattr(workers, name), folder)
    return [future.result() for _, future in Cluster().deal(work, range(count))]


# Nodes


def _nodes(arguments: argparse.Namespace) -> int:
    utils: Any = importlib.import_module("ray.cluster_utils")
    model = lowerdeck.compile(_DIGITS)
    rows: int = arguments.rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows").mkdir()
        images = _images(rows)
        for k in range(10):
            np.save(folder / "rows" / f"{k}.npy", images[rows * k // 10 : rows * (k + 1) // 10])
        batch(model, folder / "rows", folder / "one", Settings(1))
        node = {"num_cpus": 1, "include_dashboard": False}
        cluster = utils.Cluster(initialize_head=True, head_node_args=node)
        _, lost = (cluster.add_node(num_cpus=1) for _ in range(2))
        ends: list[str] = []
        begin = time.perf_counter()

        def changes(done: Done | None, count: int, total: int) -> None:
            if done is None:
                return
            ends.append(done.task.output)
            done_before, now = (count - done.rows) / total, count / total
            for share, what, change in (
                (0.2, "killed a node", partial(cluster.remove_node, lost, allow_graceful=False)),
                (0.4, "added a node", partial(cluster.add_node, num_cpus=1)),
            ):
                if done_before < share <= now:
                    change()
                    print(f"{time.perf_counter() - begin:6.2f} s  {count} rows: {what}", flush=True)

        engine = Cluster(cluster.address)
        found = batch(
            model, folder / "rows", folder / "three", Settings(1), engine=engine, progress=changes
        )
        print(f"{time.perf_counter() - begin:6.2f} s  {found[0]} rows, {found[1]} failed")
        one, three = (_hashes(folder / each) for each in ("one", "three"))
        numbers = sum(len(np.load(path)[ROWS]) for path in (folder / "three").glob("*.npz"))
        is_same = one == three and numbers == rows and len({*ends}) == len(ends) == len(one)
        text = "as" if is_same else "NOT as"
        print(f"{len(three)} files with {numbers} rows, {text} those of one process")
        return int(not is_same)


def _hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.npz")
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("rate", help="rows a second, beside a loop in C")
    one.add_argument("--rounds", type=int, default=15)
    one.add_argument("--ray", nargs="?", const="", metavar="ADDRESS")
    one.set_defaults(run=_rate)
    one = commands.add_parser("start", help="seconds until there are rows")
    one.add_argument("--engine", choices=("local", "ray"), default="local")
    one.set_defaults(run=_start)
    one = commands.add_parser("memory", help="what workers take")
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--ray", action="store_true")
    one.set_defaults(run=_memory)
    one = commands.add_parser("nodes", help="a node is killed, another joins")
    one.add_argument("--rows", type=int, default=200_000)
    one.set_defaults(run=_nodes)
    given = parser.parse_args(arguments)
    return given.run(given)


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
