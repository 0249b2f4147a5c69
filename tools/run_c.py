"""
The results of generated C, whatever it does: it runs in a process of its own, which therefore
imports what runs a model, and nothing of what makes one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lowerdeck.binding import RunError
from lowerdeck.compiler import load
from lowerdeck.metadata import read_metadata
from lowerdeck.model_folders import build_artifact

if TYPE_CHECKING:
    from lowerdeck.lowering.emit_c.module import CArtifact
    from lowerdeck.tools.compare import Results

_SECONDS = 600
"""How long the C may run."""

_FILES = "question.pickle", "answer.pickle"
"""What the process reads, and what it writes, in the folder of the C."""


_PROGRAM = "from lowerdeck.tools.run_c import answer; answer()"


def run_c(artifact: CArtifact, inputs: Mapping[str, NDArray[Any]], threads: int) -> Results | str:
    """
    The results of the C, or why there are none; in a process of its own, for it may crash. That
    process does not run the program that asks again, as one of multiprocessing would.
    """
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        build_artifact(artifact, folder)
        question, written = (os.path.join(folder, name) for name in _FILES)
        with open(question, "wb") as file:
            pickle.dump((dict(inputs), threads), file)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, folder],
                env=environment,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it does not end within {_SECONDS} seconds"
        if done.returncode:
            return f"it crashes with exit code {done.returncode}"
        with open(written, "rb") as file:
            return pickle.load(file)


def answer() -> None:
    """Run the model in the folder that the command line names; what to run it on is there, too."""
    folder = sys.argv[1]
    question, written = (os.path.join(folder, name) for name in _FILES)
    with open(question, "rb") as file:
        inputs, threads = pickle.load(file)
    try:
        found: Results | str = _results(folder, inputs, threads)
    except (RunError, ValueError) as error:
        found = str(error)
    with open(written, "wb") as file:
        pickle.dump(found, file)


def _results(folder: str, inputs: dict[str, NDArray[Any]], threads: int) -> Results:
    """The outputs, and what a model remembers, under the names that they have in the module."""
    model = load(folder, threads=threads)
    states: list[dict[str, str]] = read_metadata(folder).get("states", [])
    names = [entry["name"] for entry in states]
    model.state = {name: inputs.pop(name) for name in names if name in inputs}
    found = dict(model(inputs))
    state = model.state
    return {**found, **{entry["after"]: state[entry["name"]] for entry in states}}
