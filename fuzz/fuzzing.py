"""
What the fuzzers share: batches of graphs that are dealt out, their outcomes told once for each
cause, and the C of many in one library.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from xdsl.utils.exceptions import PassFailedException

from lowerdeck.binding import SHIM
from lowerdeck.engines import Engine, LostTask
from lowerdeck.exporters.errors import ExportError
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.targets import obstacle

REFUSALS = (ExportError, FrontendError, LoweringError, PassFailedException)
"""How the compiler says that it does not compile a graph."""

BATCH = 40
"""Graphs that are compiled together."""

BAD = ("wrong", "crashed", "uncompilable", "hangs", "lost")
"""Statuses that are faults of the compiler."""

BATCH_SECONDS = 1200.0
"""After which a batch counts as one that does not end: many times what it takes."""

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
    about: str = ""
    """What the graph is made of, in a line."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What reproduces it, by the ends of the names of files; shrunk, where that is said."""
    shrunk: Outcome | None = None
    """The same of the smallest graph."""

    @property
    def kind(self) -> str:
        """The message without what is different from graph to graph."""
        line = self.message.partition("\n")[0]
        line = re.sub(r"'[^']*'", "_", line)
        return f"{self.status}: {re.sub(r'[(].*?[)]|if .*', '', line)[:100]}"

    @property
    def line(self) -> str:
        """It, and what it is about, with a message of several lines set in."""
        about = f" ({self.about})" if self.about else ""
        message = self.message.rstrip().replace("\n", "\n    ")
        return f"{self.seed}: {self.status}{about}: {message}"


class Tally:
    """
    What became of graphs: a line for the first of each cause that is not fine, its files in the
    folder `out`, and at the end how many there are of each.
    """

    def __init__(self, fine: Sequence[str] = ("ok",), out: Path | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._fine = fine
        self._out = out
        self._causes: dict[str, str] = {}
        """By kind that of the smallest graph: what several graphs show may be one fault."""
        self._seeds: defaultdict[str, list[int]] = defaultdict(list)

    @property
    def known(self) -> frozenset[str]:
        """The kinds of which one was told: they need not be shrunk again."""
        return frozenset(self._causes)

    def add(self, outcome: Outcome) -> None:
        """One more outcome."""
        self.counts[outcome.status] += 1
        if outcome.status in self._fine:
            return
        least = outcome.shrunk or outcome
        cause = self._causes.setdefault(outcome.kind, least.kind)
        if cause not in self._seeds:
            print(least.line, flush=True)
            self._write(least)
        self._seeds[cause].append(outcome.seed)

    def _write(self, outcome: Outcome) -> None:
        if self._out is None or not outcome.files:
            return
        self._out.mkdir(parents=True, exist_ok=True)
        kind = re.sub(r"[^A-Za-z0-9]+", "-", outcome.kind)[:60].strip("-")
        for suffix, data in {**outcome.files, ".txt": f"{outcome.line}\n".encode()}.items():
            (self._out / f"{kind}-{outcome.seed}{suffix}").write_bytes(data)

    def conclude(self) -> int:
        """Print causes and numbers; the exit status, 1 if there is one of `BAD`."""
        causes = sorted(self._seeds.items(), key=lambda item: (-len(item[1]), item[0]))
        for cause, seeds in causes:
            print(f"{len(seeds):6} {cause} (first {min(seeds)})")
        print(", ".join(f"{count} {status}" for status, count in self.counts.most_common()))
        return int(any(self.counts[status] for status in BAD))


# Batches


@dataclass(frozen=True)
class Batch:
    """Graphs that one task is about."""

    seeds: Sequence[int]
    known: frozenset[str] = frozenset()
    """Kinds of outcomes that need not be shrunk."""


def batches_of(first: int, count: int) -> list[Sequence[int]]:
    """The seeds of graphs that are compiled alike, and together."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for seed in range(first, first + count):
        found[seed // BATCH].append(seed)
    return list(found.values())


def deal(
    engine: Engine,
    work: Callable[[Batch], Sequence[Outcome]],
    batches: Sequence[Sequence[int]],
    tally: Tally,
    died: Callable[[int], Outcome] = lambda seed: Outcome(seed, "lost", "the process ends"),
) -> None:
    """
    Add what becomes of all graphs to `tally`. A batch whose process ends is halved until it is
    known which graph it is; `died` says what of that one is.
    """
    while batches:
        halves: list[Sequence[int]] = []
        tasks = (Batch(seeds, tally.known) for seeds in batches)
        for batch, future in engine.deal(work, tasks, seconds=BATCH_SECONDS):
            for outcome in _outcomes(batch.seeds, future, died):
                tally.add(outcome)
            if isinstance(future.exception(), LostTask) and (half := len(batch.seeds) // 2):
                halves += [batch.seeds[:half], batch.seeds[half:]]
        batches = halves


def _outcomes(
    seeds: Sequence[int], future: Future[Sequence[Outcome]], died: Callable[[int], Outcome]
) -> Iterator[Outcome]:
    try:
        yield from future.result()
    except LostTask:
        if len(seeds) == 1:
            yield died(seeds[0])


_MANY = 500_000
"""Objects that were made since garbage was collected, which looks at all that there are."""


class Mismatch(Exception):
    """Two ways give different results."""


def outcome_of(seed: int, run: Callable[[], object]) -> Outcome | None:
    """
    What `run` raises as an outcome; None if nothing is wrong. Where Python's own collector is off,
    garbage is collected before there is much of it.
    """
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
        if not gc.isenabled() and gc.get_count()[0] > _MANY:
            gc.collect()
    return None


def settle() -> None:
    """
    Begin a batch: deep graphs are walked, and what is there before is not looked through for
    garbage after each graph. That of the batch before goes first, or its files would stay open.
    """
    sys.setrecursionlimit(10_000)
    gc.disable()
    gc.collect()
    gc.freeze()


def build(
    artifacts: Sequence[CArtifact],
    folder: Path,
    flags: Sequence[str] = QUICK_FLAGS,
    compiler: str = "gcc",
) -> Path:
    """One library with all graphs; RuntimeError with the compiler's words if it fails."""
    (folder / "shim.c").write_text(SHIM.format(model=f"{artifacts[0].name}.h"))
    command = [compiler, *flags, "-shared", "-fPIC"]
    return _made(command, artifacts, folder, "shim.c", "all.so")


def build_program(artifacts: Sequence[CArtifact], folder: Path, command: Sequence[str]) -> Path:
    """A program of all graphs and of `main.c`, by a compiler and its flags; errors as above."""
    return _made([*command, "-lpthread"], artifacts, folder, "main.c", "program")


def _made(
    command: Sequence[str], artifacts: Sequence[CArtifact], folder: Path, own: str, name: str
) -> Path:
    lines: list[str] = []
    # Headers that are shared have the same text, whoever ships them.
    sources: dict[str, None] = {"all.c": None, own: None}
    for artifact in artifacts:
        for file, text in artifact.files.items():
            (folder / file).write_text(text)
        weights = b"".join(bytes(chunk) for chunk in artifact.weight_chunks())
        (folder / f"{artifact.name}.weights").write_bytes(weights)
        lines.append(f'#include "{artifact.name}.c"')
        files = cast("Sequence[str]", artifact.metadata["sources"])
        sources |= {file: None for file in files if file != f"{artifact.name}.c"}
    (folder / "all.c").write_text("\n".join(lines) + "\n")
    path = folder / name
    libraries = {f"-l{k}" for a in artifacts for k in cast(Any, a.metadata["libraries"])}
    options = ["-w", f"-I{folder}", "-o", str(path)]
    files = [str(folder / source) for source in sources]
    done = subprocess.run(
        [*command, *options, *files, *sorted(libraries)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    return path
