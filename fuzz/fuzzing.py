"""What the fuzzers share: outcomes of graphs, and the C of many in one library."""

from __future__ import annotations

import gc
import re
import subprocess
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from xdsl.utils.exceptions import PassFailedException

from lowerdeck.binding import SHIM
from lowerdeck.exporters.errors import ExportError
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.targets import obstacle

REFUSALS = (ExportError, FrontendError, LoweringError, PassFailedException)
"""How the compiler says that it does not compile a graph."""

BATCH = 40
"""Graphs that are compiled together."""

QUICK_FLAGS = ("-std=c99", "-O0", "-ffp-contract=off", "-fno-math-errno")


@dataclass(frozen=True)
class Way:
    """What graphs are compiled for."""

    target: str
    flags: tuple[str, ...]
    """None are the product's own."""
    threads: int = 1


QUICK = Way("c99", QUICK_FLAGS)
_OPTIMIZED = tuple(
    "-std=c99 -O1 -fexpensive-optimizations -ffp-contract=fast -fno-math-errno".split()
)
"""Vectors are contracted by an expensive optimization, and have to be as other numbers are."""
OTHERS = {
    1: Way("native", ()),
    9: Way("x86-64-v3", (*_OPTIMIZED, "-march=x86-64-v3")),
    17: Way("native", (*_OPTIMIZED, "-march=native"), 2),
    25: Way("x86-64", _OPTIMIZED),
}
"""By number of the batch, of 32."""


def way_of(seed: int) -> Way:
    """What a graph is compiled for; those of one batch are compiled alike."""
    way = OTHERS.get(seed // BATCH % 32, QUICK)
    return QUICK if obstacle(way.target) is not None else way


def flags_of(artifact: CArtifact, way: Way) -> Sequence[str]:
    """What gcc is told."""
    return way.flags or cast("Sequence[str]", artifact.metadata["cflags"])


@dataclass(frozen=True)
class Outcome:
    """What became of a graph."""

    seed: int
    status: str
    """ok, refused, wrong, crashed, or what a fuzzer has beside these."""
    message: str = ""

    @property
    def kind(self) -> str:
        """The message without what is different from graph to graph."""
        line = self.message.partition("\n")[0]
        line = re.sub(r"'[^']*'", "_", line)
        return f"{self.status}: {re.sub(r'[(].*?[)]|if .*', '', line)[:100]}"


class Tally:
    """What became of graphs: a line for each that is not fine, and at the end how many of each."""

    def __init__(self, fine: Sequence[str] = ("ok",)) -> None:
        self._fine = fine
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        """One more outcome."""
        self._counts[outcome.status] += 1
        if outcome.status not in self._fine:
            self._kinds[outcome.kind] += 1
            message = outcome.message.rstrip().replace("\n", "\n    ")
            print(f"{outcome.seed}: {outcome.status}: {message}", flush=True)

    def conclude(self) -> int:
        """Print the numbers; the exit status, 1 if a result is wrong or something crashed."""
        for kind, count in self._kinds.most_common():
            print(f"{count:6} {kind}")
        print(", ".join(f"{count} {status}" for status, count in self._counts.most_common()))
        return int(bool(self._counts["wrong"] or self._counts["crashed"]))


class Mismatch(Exception):
    """Two ways give different results."""


def outcome_of(seed: int, run: Callable[[], object]) -> Outcome | None:
    """What `run` raises as an outcome; None if nothing is wrong."""
    try:
        run()
    except REFUSALS as error:
        return Outcome(seed, "refused", str(error))
    except Mismatch as error:
        return Outcome(seed, "wrong", str(error))
    except Exception as error:  # whatever it is, it is what is looked for
        text = "".join(traceback.format_exception(error, limit=-4))
        return Outcome(seed, "crashed", f"{type(error).__name__}: {error}\n{text}")
    finally:
        gc.collect()
    return None


def build(artifacts: Sequence[CArtifact], folder: Path, flags: Sequence[str] = QUICK_FLAGS) -> Path:
    """One library with all graphs; RuntimeError with the words of gcc if it fails."""
    lines: list[str] = []
    # Headers that are shared have the same text, whoever ships them.
    sources: dict[str, None] = {"all.c": None, "shim.c": None}
    for artifact in artifacts:
        for name, text in artifact.files.items():
            (folder / name).write_text(text)
        weights = b"".join(bytes(chunk) for chunk in artifact.weight_chunks())
        (folder / f"{artifact.name}.weights").write_bytes(weights)
        lines.append(f'#include "{artifact.name}.c"')
        names = cast("Sequence[str]", artifact.metadata["sources"])
        sources |= {name: None for name in names if name != f"{artifact.name}.c"}
    (folder / "all.c").write_text("\n".join(lines) + "\n")
    (folder / "shim.c").write_text(SHIM.format(name=artifacts[0].name))
    library = folder / "all.so"
    libraries = {f"-l{name}" for a in artifacts for name in cast(Any, a.metadata["libraries"])}
    options = [*flags, "-w", "-shared", "-fPIC", f"-I{folder}", "-o", str(library)]
    command = ["gcc", *options, *(str(folder / name) for name in sources), *sorted(libraries)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    return library
