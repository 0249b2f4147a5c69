"""
What `lowerdeck export` makes of ONNX models, beside the original and onnxsim.

    python -m bench.export_sizes [FOLDER [NAME ...]] [--onnxsim PYTHON] [--time] [--operators]
    python -m bench.export_sizes --corpus tf1|caffe

For each model: nodes of the original, of the export and of onnxsim's result, without constants and
with those in subgraphs; what onnxruntime makes of the original and of the export; and the largest
difference of results, relative to the largest number. Without FOLDER the models are those of
`export_networks.py`. FOLDER holds NAME.onnx and NAME.npz, with arrays `input:<tensor>`. PYTHON has
onnx and onnxsim. `--time` adds the ratio of onnxruntime's medians, export to original, which run in
turns on one thread, and its interval of 95 %. The exit status is 1 if a result differs, or the
export has more nodes than onnxsim's or, once onnxruntime has optimized both, than the original.

With `--corpus`, the cases of another framework are exported, and nodes are counted; whether they
give what they should, `corpus.py --export onnx` tells.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from bench.measuring import alternate, gain, plan_for, text_table, timed
from bench.peer_runs import load_onnxruntime
from bench.reference import recorded_inputs
from models.export_networks import networks

Arrays: TypeAlias = "dict[str, NDArray[Any]]"

_TOLERANCE = 1e-4
_SECONDS = 4.0

_SIMPLIFY = "import onnx, onnxsim, sys; onnx.save(onnxsim.simplify(sys.argv[1])[0], sys.argv[2])"


@dataclass
class Row:
    """What is found of one model."""

    name: str
    original: Counter[str]
    ours: Counter[str]
    simplified: Counter[str] | None
    runtime: tuple[int, int]
    """Nodes of the original and of the export as onnxruntime runs them."""
    error: float
    time: tuple[float, float, float] | None = None
    """Medians, export to original: the ratio, and the ends of its interval."""
    problems: list[str] = field(default_factory=list[str])

    def judge(self) -> None:
        """Note what is not as it should be."""
        if self.error > _TOLERANCE:
            self.problems.append("other results")
        if self.simplified is not None and self.ours.total() > self.simplified.total():
            self.problems.append("more nodes than onnxsim's")
        if self.runtime[1] > self.runtime[0]:
            self.problems.append("more nodes in onnxruntime")

    def cells(self) -> list[str]:
        """As a row of the table."""
        simplified = "" if self.simplified is None else str(self.simplified.total())
        ratio = "" if self.time is None else "{:.3f} ({:.3f}-{:.3f})".format(*self.time)
        counts = [str(n.total()) for n in (self.original, self.ours)]
        runtime = [str(count) for count in self.runtime]
        return [
            *(self.name, *counts, simplified, *runtime, f"{self.error:.1e}", ratio),
            "; ".join(self.problems),
        ]


_HEAD = ("model", "original", "export", "onnxsim", "in ort", "export", "error", "time", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something is not as it should be."""
    options = _parse(arguments)
    if options.corpus is not None:
        return _count_corpus(options.corpus)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for path, inputs in _models(options, Path(scratch)):
            rows.append(_measure(path, inputs, Path(scratch), options))
            print(f"{path.stem}: done", file=sys.stderr, flush=True)
    print(text_table(_HEAD, [row.cells() for row in rows]))
    for row in rows if options.operators else ():
        gone, new = dict(row.original - row.ours), dict(row.ours - row.original)
        print(f"{row.name}: gone {gone}, new {new}")
    return int(any(row.problems for row in rows))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--onnxsim", metavar="PYTHON", help="a Python that has onnxsim")
    parser.add_argument("--time", action="store_true", help="compare times in onnxruntime")
    parser.add_argument("--operators", action="store_true", help="list operators gone and new")
    parser.add_argument("--corpus", choices=("tf1", "caffe"))
    return parser.parse_args(arguments)


def _models(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[Path, Arrays]]:
    if options.folder is not None:
        names = options.names or sorted(path.stem for path in options.folder.glob("*.onnx"))
        for name in names:
            path = options.folder / f"{name}.onnx"
            yield path, recorded_inputs(str(path.with_suffix(".npz")))
        return
    for name, (model, inputs) in networks().items():
        path = scratch / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        yield path, inputs


def _measure(path: Path, inputs: Arrays, scratch: Path, options: argparse.Namespace) -> Row:
    from lowerdeck.exporting import export

    ours, simple = scratch / "ours.onnx", scratch / "simple.onnx"
    export(str(path), ours)
    simplified = None
    if options.onnxsim:
        command = [options.onnxsim, "-c", _SIMPLIFY, str(path), str(simple)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            print(f"{path.stem}: onnxsim: {result.stderr.strip()}", file=sys.stderr)
        else:
            simplified = operators(simple)
    before, expected = _optimized(path, inputs, scratch)
    after, found = _optimized(ours, inputs, scratch)
    error = max((_error(found[name], expected[name]) for name in expected), default=0.0)
    row = Row(path.stem, operators(path), operators(ours), simplified, (before, after), error)
    if options.time:
        row.time = _time(path, ours, inputs)
    row.judge()
    return row


def operators(path: Path) -> Counter[str]:
    """The nodes of a model by operator, in subgraphs too, without constants."""
    model = onnx.ModelProto.FromString(path.read_bytes())
    return Counter(node.op_type for node in _nodes(model.graph) if node.op_type != "Constant")


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _optimized(path: Path, inputs: Mapping[str, NDArray[Any]], scratch: Path) -> tuple[int, Arrays]:
    """The number of nodes that onnxruntime runs, and its results."""
    runtime: Any = onnxruntime
    settings, target = runtime.SessionOptions(), scratch / "optimized.onnx"
    settings.log_severity_level = 4
    settings.optimized_model_filepath = str(target)
    session = runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    feed = {value.name: inputs[value.name] for value in session.get_inputs()}
    return operators(target).total(), dict(zip(names, session.run(names, feed), strict=True))


def _error(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference to the largest number; infinite for other shapes or types."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return float("inf")
    finite = np.isfinite(expected)
    wide, difference = np.abs(expected[finite]), np.abs(found[finite] - expected[finite])
    return float(difference.max(initial=0.0)) / (float(wide.max(initial=0.0)) or 1.0)


def _time(original: Path, ours: Path, inputs: Arrays) -> tuple[float, float, float]:
    calls = {
        name: timed(load_onnxruntime(str(path), inputs, 1).call)
        for name, path in (("original", original), ("ours", ours))
    }
    for call in calls.values():
        call()
    times = alternate(calls, plan_for([call() for call in calls.values()], _SECONDS))
    saved = gain(times["ours"], times["original"])
    return 1 - saved.saved, 1 - saved.high, 1 - saved.low


# Cases of other frameworks


def _count_corpus(framework: str) -> int:
    from lowerdeck.compiler import CompileOptions
    from lowerdeck.exporting import export_with
    from models.corpus import corpus_folder, load_cases

    folder, total = corpus_folder(), Counter[str]()
    if folder is None:
        print("no corpus: set LOWERDECK_CORPUS", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "ours.onnx"
        for case in load_cases(folder, framework):
            export_with(str(case.model), str(target), CompileOptions(outputs=case.outputs))
            found = operators(target)
            total += found
            print(f"{case.name} {found.total()}")
    listed = ", ".join(f"{name} {count}" for name, count in total.most_common())
    print(f"{total.total()} nodes: {listed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
