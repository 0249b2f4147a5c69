"""
What `lowerdeck batch` costs beside the calls of the model.

    python -m bench.batches rate [--rounds N] [--ray [ADDRESS]]
    python -m bench.batches start [--engine ray]
    python -m bench.batches memory

`rate`: rows a second of `lowerdeck.batching.batch`, from files to files, beside a plain loop in C
that calls the same library on rows in memory, with the same number of rows a call, by turns: of a
model that takes some milliseconds a call and takes one row at a time, and of one that takes some
50 us alone and has batches. In one process by processor time; with `--ray` by wall time on all
processors of a cluster on this machine, where the loop runs in as many processes.

`start`: seconds from the start of `lowerdeck batch`, with an empty cache and a warm one, until the
first rows that it has computed are told.

`memory`: what a process that computes rows of a model with large weights takes over a Python with
numpy, and what the weights take in each of several of them at once: the proportional set size of
Linux, in which a page that n processes map counts 1/n in each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from bench.measuring import text_table
from lowerdeck.batching import batch
from lowerdeck.engines import Engine
from lowerdeck.ray import Cluster

_LOOP = Path(__file__).with_name("batches.c")
_SECONDS = 1.0
"""Of the loop in C, each time."""


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
    rows=300,
    batch=1,
    result_bytes=256,
)
FAST = Case(
    "products, batches",
    [
        _product("x", "a", "w0"),
        helper.make_node("Relu", ["a"], ["b"]),
        _product("b", "y", "w1"),
    ],
    {"w0": (256, 1024), "w1": (1024, 256)},
    (256,),
    is_open=True,
    rows=40_000,
    batch=64,
    result_bytes=1024,
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
        command = [*self._command, *given, str(_SECONDS)]
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
    for case in (SLOW, FAST):
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
    for k in range(processors):
        np.savez(inputs / f"{k}.npz", x=data)
    count = len(data) * processors
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("rate", help="rows a second, beside a loop in C")
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--ray", nargs="?", const="", metavar="ADDRESS")
    one.set_defaults(run=_rate)
    given = parser.parse_args(arguments)
    return given.run(given)


if __name__ == "__main__":
    sys.exit(main())
