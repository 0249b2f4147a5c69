"""
Random models of Keras, by the interpreter and as C, beside Keras itself.

    python -m fuzz.fuzz_keras --keras PYTHON --models 2000 --seed S [--interpret]
        [--jobs N | --ray [ADDRESS]]

`--keras` names a Python that has Keras 3 (`make_in_keras`), which makes the models and what they
give, or `--made FOLDER` is where it has, for a cluster one that all of its nodes see. Each file is
read, legalized and run in the interpreter of core, and compiled to C, of which one run of gcc
compiles many (not with `--interpret`). Types and shapes have to be equal, and numbers close to one
another.

A seed of which Keras makes no model counts as `not made`, and there is a line for each layer that
Keras refused, in whose place another one was drawn: neither is a fault.

The exit status is 1 if a model is computed wrong or something crashes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np

from fuzz.fuzz_tflite import Ready, compare, interpreted, run_c
from fuzz.fuzzing import BATCH, Outcome, Tally, Way, build, flags_of, outcome_of, settle, way_of
from fuzz.tflite_graphs import Array
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.engines import LostTask
from lowerdeck.frontends.keras.import_ import import_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from models.campaign import add_options, engine_of, main_of

_RELATIVE = 1e-4
"""How far floats may be apart, of the largest of a tensor."""


def made(python: str, folder: Path, seeds: Sequence[int]) -> None:
    """Let Keras make models; SystemExit with what it says if it cannot."""
    script = str(Path(__file__).with_name("make_in_keras.py"))
    command = [python, script, str(folder), str(seeds[0]), str(len(seeds))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{python} makes no models:\n{done.stderr[-1000:]}")


def _arrays(path: Path, kind: str) -> list[Array]:
    with np.load(path) as file:
        count = sum(name.startswith(f"{kind}/") for name in file.files)
        return [file[f"{kind}/{k}"] for k in range(count)]


def lowered(path: Path, way: Way, *, as_c: bool) -> Ready | None:
    """The C of a model whose legalized form gives the results; Mismatch if it does not."""
    module = import_model(str(path))
    main = find_function(module, "main")
    inputs = value_names(main.arg_attrs, len(main.function_type.inputs))
    outputs = value_names(main.res_attrs, len(main.function_type.outputs))
    answers = path.with_suffix(".npz")
    feeds = [dict(zip(inputs, _arrays(answers, "in"), strict=True))]
    want = [dict(zip(outputs, _arrays(answers, "out"), strict=True))]
    context = LowerdeckContext(options=CompileOptions(target=way.target, threads=way.threads))
    register_dialects(context)
    run_to_phase(context, module, "legal")
    core = interpreted(Calls(module), feeds)
    compare("core", core, want, _RELATIVE)
    if not as_c:
        return None
    run_to_phase(context, module, "scheduled", after="legal")
    seed = int(path.stem)
    return Ready(seed, feeds, _RELATIVE, emit(context, module, f"g{seed}"), core, want)


def against(folder: Path, seeds: Sequence[int]) -> list[Outcome]:
    """What Keras has against models, and against layers of those that it made."""
    found: list[Outcome] = []
    for seed in seeds:
        refused, drawn = folder / f"{seed}.no", folder / f"{seed}.drawn"
        if refused.exists():
            found.append(Outcome(seed, "not made", refused.read_text()))
        if drawn.exists():
            lines = drawn.read_text().splitlines()
            found += [Outcome(seed, "layer refused by Keras", line) for line in lines]
    return found


def check(paths: Sequence[Path], way: Way, *, as_c: bool) -> list[Outcome]:
    """What becomes of models."""
    found: list[Outcome] = []
    ready: list[Ready] = []
    for path in paths:

        def prepare(path: Path = path) -> None:
            item = lowered(path, way, as_c=as_c)
            if item is not None:
                ready.append(item)
            else:
                found.append(Outcome(int(path.stem), "ok"))

        outcome = outcome_of(int(path.stem), prepare)
        if outcome is not None:
            found.append(outcome)
    if not ready:
        return found
    with tempfile.TemporaryDirectory(prefix="fuzz-keras-") as folder:
        artifacts = [item.artifact for item in ready]
        library = build(artifacts, Path(folder), flags_of(artifacts[0], way))
        for item in ready:
            outcome = outcome_of(item.seed, lambda item=item: run_c(item, library, way.threads))
            found.append(outcome or Outcome(item.seed, "ok"))
    return found


def _checked(task: tuple[Sequence[Path], Way], *, as_c: bool) -> list[Outcome]:
    settle()
    batch, way = task
    return check(batch, way, as_c=as_c)


def _outcomes(batch: Sequence[Path], future: Future[list[Outcome]]) -> list[Outcome]:
    try:
        return future.result()
    except LostTask as error:
        return [Outcome(int(batch[0].stem), "lost", f"{error}, or with one of the next models")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check models and print a line for each with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="that of the first model")
    parser.add_argument("--keras", help="a Python that has Keras 3")
    parser.add_argument("--made", type=Path, help="a folder with models that are there already")
    parser.add_argument("--interpret", action="store_true", help="do not compile C")
    add_options(parser)
    options = parser.parse_args(arguments)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fuzz-keras-") as name:
        folder = options.made or Path(name)
        seeds = range(options.seed, options.seed + options.models)
        if options.keras:
            made(options.keras, folder, seeds)
        for outcome in against(folder, seeds):
            tally.add(outcome)
        paths = [
            path
            for path in (folder / f"{k}{suffix}" for k in seeds for suffix in (".keras", ".h5"))
            if path.exists()
        ]
        there = {int(path.stem) for path in paths}
        if missing := [k for k in seeds if k not in there and not (folder / f"{k}.no").exists()]:
            raise SystemExit(
                f"{folder}: nothing of {len(missing)} seeds, the first is {missing[0]}"
            )
        tasks = [
            (paths[start : start + BATCH], way_of(options.seed + start))
            for start in range(0, len(paths), BATCH)
        ]
        work = partial(_checked, as_c=not options.interpret)
        for (batch, _), future in engine_of(options).deal(work, tasks):
            for outcome in _outcomes(batch, future):
                tally.add(outcome)
    return tally.conclude()


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
