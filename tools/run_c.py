"""The results of generated C, whatever it does: it runs in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from lowerdeck.binding import RunError
from lowerdeck.compiler import build_artifact, load
from lowerdeck.metadata import read_metadata
from lowerdeck.tools.compare import Results

if TYPE_CHECKING:
    from lowerdeck.lowering.emit_c.module import CArtifact

_SECONDS = 600
"""How long the C may run."""


def run_c(artifact: CArtifact, inputs: Mapping[str, NDArray[Any]], threads: int) -> Results | str:
    """The results of the C, or why there are none; in a process of its own, for it may crash."""
    spawning = get_context("spawn")
    receiver, sender = spawning.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
        build_artifact(artifact, folder)
        process = spawning.Process(
            target=_send_results, args=(folder, dict(inputs), threads, sender)
        )
        process.start()
        sender.close()
        try:
            if not receiver.poll(_SECONDS):
                return f"it does not end within {_SECONDS} seconds"
            answer: Results | str = receiver.recv()
        except EOFError:
            process.join()
            return f"it crashes with exit code {process.exitcode}"
        finally:
            process.kill()
            process.join()
    return answer


def _results(folder: str, inputs: dict[str, NDArray[Any]], threads: int) -> Results:
    """The outputs, and what a model remembers, under the names that they have in the module."""
    model = load(folder, threads=threads)
    states: list[dict[str, str]] = read_metadata(folder).get("states", [])
    names = [entry["name"] for entry in states]
    model.state = {name: inputs.pop(name) for name in names if name in inputs}
    found = dict(model(inputs))
    state = model.state
    return {**found, **{entry["after"]: state[entry["name"]] for entry in states}}


def _send_results(
    folder: str, inputs: dict[str, NDArray[Any]], threads: int, sender: Connection
) -> None:
    """Run the model in a folder."""
    try:
        answer: Results | str = _results(folder, inputs, threads)
    except (RunError, ValueError) as error:
        answer = str(error)
    sender.send(answer)
