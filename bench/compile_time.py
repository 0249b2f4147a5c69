"""
Where the time of compilations goes: by model, by pass and by function.

    python -m bench.compile_time [NAME ...] [--before TREE] [--repeats N] [--functions N] [--cc]
                                 [--target T] [--folder F] [--warm]

Twelve small models, twelve large ones and `programs`, random programs of `core` one after the other
as the tests have them. Each is compiled in a process of its own, from the start of Python on. Times
are CPU times, the least of the repeats; those of the C compiler (`--cc`) are apart. Memory is the
peak of the process. Each finds an empty cache, or with `--warm` the kernels that the first run of a
model has left there. `--before` is a checkout of another version, which compiles the same models by
turns, in its own environment if it has one (`.venv`); ratios are those of this version to that one.
`--functions` runs each model once more under a profiler: the functions with the most time of their
own, of all models together. NAME may also be the path of a model.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

from bench.measuring import MEGABYTE, memory_status, text_table
from bench.processes import ROOT, command_of, environment_for

_PROGRAMS = "programs"


def _digits(name: str, _folder: Path) -> Path:
    return ROOT / "examples" / "digits" / name


def _chain(kind: str, length: int, folder: Path) -> Path:
    from bench.scaling import model_of

    return _save(model_of(kind, length), folder)


def _exported(name: str, folder: Path) -> Path:
    from models.export_networks import networks

    return _save(networks()[name][0], folder)


def _recurrent(cell: str, folder: Path) -> Path:
    from models.recurrent import Network, operator

    return _save(operator(Network(cell, 16, 1, 32, 32, True)), folder)


def _caffe(name: str, folder: Path) -> Path:
    from models.caffe_detectors import build

    return build(name).write(folder, "model")


def _save(model: Any, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


Maker = Callable[[Path], Path]
"""Writes a model into a folder."""

SMALL: Mapping[str, Maker] = {
    "digits": partial(_digits, "digits.onnx"),
    "digits_lenet": partial(_digits, "digits_lenet.prototxt"),
    "digits_lstm": partial(_digits, "digits_lstm.pb"),
    "gru": partial(_exported, "gru"),
    "encoder": partial(_exported, "encoder"),
    "detection_head": partial(_exported, "detection_head"),
    "lstm_operator": partial(_recurrent, "lstm"),
    "gru_operator": partial(_recurrent, "gru"),
    "convolutions_16": partial(_chain, "convolutions", 16),
    "maps_32": partial(_chain, "elementwise", 32),
    "gpt2_1": partial(_chain, "layers", 1),
    "gpt2_1_bytes": partial(_chain, "quantized layers", 1),
}

LARGE: Mapping[str, Maker] = {
    **{
        name: partial(_caffe, name)
        for name in (
            "densenet121", "enet", "googlenet", "mobilenet_ssd", "mobilenet_v1", "mobilenet_v2",
            "openpose", "resnet50", "squeezenet",
        )
    },
    "gpt2_12": partial(_chain, "layers", 12),
    "gpt2_12_bytes": partial(_chain, "quantized layers", 12),
    "gpt2_48": partial(_chain, "layers", 48),
}  # fmt: skip


@dataclass
class Times:
    """CPU seconds and bytes of one compilation; `python` includes `imports`, which come first."""

    python: float
    imports: float
    cc: float
    peak: float
    passes: dict[str, float] = field(default_factory=dict[str, float])
    functions: dict[str, float] = field(default_factory=dict[str, float])


# In a process of its own


def measure(model: str, target: str, *, cc: bool, profiled: bool) -> Times:
    """Compile a model of this name or path, with the product that is found here."""
    profile = cProfile.Profile() if profiled else None
    if profile is not None:
        profile.enable()
    from lowerdeck.compiler import CompileOptions, generate

    passes: dict[str, float] = {}
    now, since = "", time.process_time()

    def progress(step: str) -> None:
        nonlocal now, since
        moment = time.process_time()
        passes[now] = passes.get(now, 0.0) + moment - since
        now, since = step, moment

    options = CompileOptions(target=target, progress=progress)
    imports = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        if model == _PROGRAMS:
            _compile_programs(folder, options)
        else:
            generate(model, folder, options)
        progress("")
        python = time.process_time()
        if profile is not None:
            profile.disable()
        if cc and model != _PROGRAMS:
            from lowerdeck.model_folders import build

            build(folder)
    # What comes after the last phase is the printing of C.
    passes["emit C"] = passes.pop("scheduled", 0.0)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = children.ru_utime + children.ru_stime if cc else 0.0
    functions = {} if profile is None else _own_times(profile)
    return Times(python, imports, used, memory_status("VmHWM"), passes, functions)


def _compile_programs(folder: str, options: Any) -> None:
    from fuzz.core_programs import random_program
    from lowerdeck.compiler import generate
    from lowerdeck.dialects.errors import LowerdeckError

    for seed in range(24):
        path = Path(folder, f"program{seed}.mlir")
        path.write_text(str(random_program(Random(seed)).module))
        try:
            generate(str(path), folder, options)
        except LowerdeckError:
            continue  # what a program may be refused for is no subject here


def _own_times(profile: cProfile.Profile) -> dict[str, float]:
    found = Counter[str]()
    for (file, _, name), values in cast(Any, pstats.Stats(profile)).stats.items():
        found["/".join([*Path(file).parts[-2:], name])] += values[2]
    return dict(found.most_common(200))


# In the process that was called


def run(tree: Path, model: str, options: argparse.Namespace, *, profiled: bool = False) -> Times:
    """One compilation in a process of its own, by the product of a checkout."""
    python = tree / ".venv" / "bin" / "python"
    command = command_of(
        "bench.compile_time",
        "--measure",
        model,
        python=python if python.exists() else sys.executable,
    )
    command += ["--target", options.target, *(["--cc"] if options.cc else [])]
    command += ["--functions", "1"] if profiled else []
    environment = environment_for(tree)
    # As it is for a user: bytecode is kept.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(Path(options.folder, "bytecode"))
    with tempfile.TemporaryDirectory(prefix="compile-time-") as empty:
        environment["LOWERDECK_CACHE"] = (
            str(Path(options.folder, "cache")) if options.warm else empty
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{model}: the compilation failed:\n{done.stderr}")
    return Times(**json.loads(done.stdout))


def best(runs: Sequence[Times]) -> Times:
    """The run with the least time of Python, and the least time of the C compiler of all."""
    found = min(runs, key=lambda one: one.python)
    found.cc = min(one.cc for one in runs)
    return found


def model_table(now: Mapping[str, Times], before: Mapping[str, Times]) -> str:
    """A line for each model, and ratios to what it took before."""
    head = ["model", "python s", "imports s", "cc s", "peak MB"]
    head += ["before s", "ratio", "before MB"] if before else []
    rows: list[list[str]] = []
    for name, one in now.items():
        cells = [name, *(f"{x:.2f}" for x in (one.python, one.imports, one.cc))]
        cells.append(f"{one.peak / MEGABYTE:.0f}")
        if (old := before.get(name)) is not None:
            cells += [f"{old.python:.2f}", f"{one.python / old.python:.2f}"]
            cells.append(f"{old.peak / MEGABYTE:.0f}")
        rows.append(cells)
    return text_table(head, rows)


def pass_table(now: Mapping[str, Times], before: Mapping[str, Times]) -> str:
    """The passes of all models together, those with the most time first."""
    totals = [Counter[str](), Counter[str]()]
    for total, runs in zip(totals, (now, before), strict=True):
        for one in runs.values():
            total.update(one.passes)
    rows = [
        [name or "between", *(f"{total[name]:.2f}" for total in totals[: 1 + bool(before)])]
        for name, _ in totals[bool(before)].most_common(30)
    ]
    return text_table(["pass", "s", *(["before"] if before else [])], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parse(arguments)
    if options.measure is not None:
        profiled = bool(options.functions)
        found = measure(options.measure, options.target, cc=options.cc, profiled=profiled)
        json.dump(asdict(found), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory(prefix="compile-time-") as scratch:
        options.folder = options.folder or scratch
        trees = [ROOT, *([Path(options.before).resolve()] if options.before else [])]
        found = [dict[str, Times]() for _ in (0, 1)]
        functions = Counter[str]()
        for name in options.names or [*SMALL, *LARGE, _PROGRAMS]:
            model = _model(name, Path(options.folder))
            runs: list[list[Times]] = [[] for _ in trees]
            for _ in range(options.repeats + 1):
                for tree, own in zip(trees, runs, strict=True):
                    own.append(run(tree, model, options))
            for side, own in zip(found, runs, strict=False):
                side[name] = best(own)
            if options.functions:
                functions.update(run(ROOT, model, options, profiled=True).functions)
            print(f"{name} done", file=sys.stderr, flush=True)
    now, before = found
    print(model_table(now, before), end="\n\n")
    print(pass_table(now, before))
    if options.functions:
        rows = [[name, f"{t:.2f}"] for name, t in functions.most_common(options.functions)]
        print("\n" + text_table(["function", "s"], rows))
    for kind, names in (("small", SMALL), ("large", LARGE)) if before else ():
        ratios = [now[name].python / before[name].python for name in names if name in now]
        mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
        print(f"{kind}: {mean:.3f} of before, at most {max(ratios, default=1):.2f}")
    return 0


def _model(name: str, folder: Path) -> str:
    """The path of a model, written unless it is there."""
    maker = {**SMALL, **LARGE}.get(name)
    if maker is None:
        return name
    own = folder / name
    own.mkdir(exist_ok=True)
    known = [*own.glob("model.prototxt"), *own.glob("model.onnx"), None]
    return str(known[0] or maker(own))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--before", metavar="TREE", help="a checkout of another version")
    parser.add_argument("--repeats", type=int, default=2, help="after a first run, by default 2")
    parser.add_argument("--functions", type=int, default=0, metavar="N")
    parser.add_argument("--cc", action="store_true", help="run the C compiler, too")
    parser.add_argument("--target", default="x86-64-v3")
    parser.add_argument("--warm", action="store_true", help="keep finished kernels between runs")
    parser.add_argument("--folder", help="where models are kept from call to call")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
