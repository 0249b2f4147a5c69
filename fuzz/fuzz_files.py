"""
Damaged model files of every format through the compiler: C or a clear error has to come of each.

    python -m fuzz.fuzz_files --mutants 100000 [--seed S] [--jobs N | --ray [ADDRESS]]
        [--out FOLDER] [--formats F,G]
    python -m fuzz.fuzz_files --neighbors [...]

Mutants of `file_mutants` are read, imported and legalized; every `--whole`th goes all the way to C.
What may come out is an error of a class that says what is wrong with the file. Anything else is a
finding: another exception, the compiler's own report of a fault, a process that dies, over 5 s of
CPU time, over 1 GB of memory. Findings that arise in the same function are one; the first of each
is made smaller and written to `--out`, and the exit status is 1 if there is any.

Workers are forked from a process that has everything loaded, and live for many mutants. `--only N`
shows what becomes of one mutant, with its traceback. `--neighbors` takes them from
`file_neighbors` instead, each once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import mmap
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

from xdsl.utils.exceptions import DiagnosticException

from fuzz.file_mutants import Mutant, as_json, mutant, smaller
from fuzz.file_neighbors import Neighbors
from fuzz.file_seeds import FORMATS, RANGES, Files, Seed, find_seeds, weights_of
from lowerdeck.binding import RunError
from lowerdeck.build import BuildError
from lowerdeck.compiler import CompileOptions, import_and_lower, load
from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.errors import InternalError, ModelError
from lowerdeck.dialects.frameworks import IMPORT_WEIGHTS
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends import load_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import PHASES, check_contract
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import Ranges
from models.campaign import add_options, engine_of, main_of

ERRORS = (DiagnosticException, ElidedBlobError, ModelError)
"""What says what is wrong with a model."""
LOADING_ERRORS = (BuildError, OSError, RunError, ValueError)
"""The same for the folder of a compiled model."""

CPU_SECONDS = 5.0
MEMORY = 1 << 30

_SPARE_SECONDS = 5
"""After the limit, until a process that looks at no signal is killed."""
_LIFE = 1500
"""Mutants that a worker sees."""
_PART = 1500
"""Mutants of a task."""
_COLLECT = 25
_SHRINK_SECONDS = 20.0


class TimeIsUp(BaseException):
    """The mutant has had its CPU time."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    what: str
    """ok, error, or what kind of finding."""
    where: str = ""
    """The innermost function of ours."""
    text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The same for findings that are probably one."""
        return self.what, self.where

    @property
    def is_finding(self) -> bool:
        """True unless it is as it should be."""
        return self.what not in ("ok", "error")


# One mutant


def run(seed: Seed, folder: Path, *, whole: bool) -> None:
    """Read the model in a folder and go on as far as it goes."""
    path = str(folder / seed.entry) if seed.entry else str(folder)
    if seed.format == "compiled":
        load(path)
        return
    if seed.format == "ranges":
        ranges = Ranges.read(folder / RANGES)
        options = CompileOptions(precision="int8", ranges=ranges)
        import_and_lower(path, "scheduled" if whole else "optimized", options)
        return
    context = LowerdeckContext()
    register_dialects(context)
    weights = weights_of(seed)
    given = {} if weights is None else {IMPORT_WEIGHTS.name: str(folder / weights)}
    module = load_model(path, context=context, **cast("dict[str, Any]", given))
    if seed.phase in ("buffer", "scheduled"):
        # The way to C begins before that; passes are applied to such text one by one.
        check_contract(module, seed.phase)
        str(module)
        return
    if seed.phase != "imported":
        check_contract(module, seed.phase)
    first = PHASES.index(seed.phase) + (seed.phase != "imported")
    last = len(PHASES) if whole else max(first, PHASES.index("legal") + 1)
    if first < last:
        after = PHASES[first - 1] if first else None
        run_to_phase(context, module, PHASES[last - 1], after=after)
    if last == len(PHASES):
        emit(context, module, "m")


def write(files: Files, folder: Path) -> None:
    """The files of a model in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in files.items():
        (path := folder / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def judge(seed: Seed, files: Files, folder: Path, *, whole: bool) -> Verdict:
    """What becomes of a model, in this process."""
    write(files, folder)
    # The highest use of memory begins anew.
    Path("/proc/self/clear_refs").write_text("5")
    try:
        with _limited():
            run(seed, folder, whole=whole)
        verdict = Verdict("ok")
    except ERRORS as error:
        verdict = Verdict("error", text=str(error))
        if not verdict.text.strip() or isinstance(error.__cause__, MemoryError):
            what = "over the memory" if verdict.text.strip() else "no message"
            verdict = Verdict(what, _where(error.__cause__ or error), _report(error))
    except TimeIsUp as error:
        verdict = Verdict("over the time", _where(error), _report(error))
    except Exception as error:  # whatever it is, it is what is looked for
        is_told = (seed.format == "compiled" and isinstance(error, LOADING_ERRORS)) or (
            seed.format == "ranges" and isinstance(error, OptionError)
        )
        if is_told:
            verdict = Verdict("error", text=str(error))
        else:
            cause = (error.__cause__ or error) if isinstance(error, InternalError) else error
            verdict = Verdict(type(cause).__name__, _where(cause), _report(error))
    if not verdict.is_finding and _peak_memory() > MEMORY:
        verdict = Verdict("over the memory", text=f"{_peak_memory():,} bytes")
    return verdict


def _report(error: BaseException) -> str:
    lines = traceback.format_exception(error)
    text = "".join(lines if len(lines) < 60 else [*lines[:10], "...\n", *lines[-40:]])
    return text[-12_000:]


_OURS = re.compile(r"/(api|dialects|frontends|lowering|passes|tools)/(?!.*site-packages)")


def _where(error: BaseException) -> str:
    """The innermost function of the compiler on the way to an error."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _OURS.search(file) and "site-packages" not in file:
            parts = file.split("/")
            found = f"{'/'.join(parts[-2:])}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return found


@contextmanager
def _limited(*, is_killed: bool = True) -> Generator[None]:
    """
    TimeIsUp once the CPU time is used up, and again if that is ignored; a process that does not
    listen may be killed later.
    """

    def stop(signal_: int, frame: FrameType | None) -> None:
        del signal_, frame
        raise TimeIsUp

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if is_killed:
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + CPU_SECONDS) + _SPARE_SECONDS, hard))
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


# Workers


@dataclass
class Worker:
    """A process that goes through mutants."""

    pid: int
    pipe: int
    """Where it tells of findings and of its end."""
    current: mmap.mmap
    """The number of the mutant it is at."""
    numbers: range
    text: str = ""


@dataclass
class Run:
    """All mutants, and what was found."""

    seeds: Sequence[Seed]
    seed: int
    whole: int
    folder: Path
    neighbors: Neighbors | None = None
    owner: object = None
    """What removes the folder."""
    counts: Counter[str] = field(default_factory=Counter[str])
    findings: dict[tuple[str, str], list[int]] = field(
        default_factory=dict[tuple[str, str], list[int]]
    )
    texts: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def mutant(self, number: int) -> Mutant:
        """The mutant of a number."""
        if self.neighbors is not None:
            return self.neighbors.mutant(number)
        return mutant(self.seeds, self.seed, number)

    def is_whole(self, number: int) -> bool:
        """True if a mutant goes all the way to C."""
        return bool(self.whole) and number % self.whole == 0

    def start(self, numbers: range) -> Worker:
        """A worker for mutants."""
        current = mmap.mmap(-1, 8)
        current[:8] = numbers[0].to_bytes(8, "little")
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            os.close(writing)
            return Worker(pid, reading, current, numbers)
        try:
            os.close(reading)
            self._work(numbers, writing, current)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            os._exit(3)
        os._exit(0)

    def _work(self, numbers: range, pipe: int, current: mmap.mmap) -> None:
        _prepare()
        folder = self.folder / str(os.getpid()) / "model"
        statuses: Counter[str] = Counter()
        for count, number in enumerate(numbers[:_LIFE]):
            current[:8] = number.to_bytes(8, "little")
            one = self.mutant(number)
            verdict = judge(one.seed, one.files, folder, whole=self.is_whole(number))
            statuses[f"{one.seed.format} {verdict.what}"] += 1
            if verdict.is_finding:
                _tell(pipe, "finding", str(number), verdict.what, verdict.where, verdict.text)
            if count % _COLLECT == 0:
                gc.collect()
        for status, count in statuses.items():
            _tell(pipe, "count", status, str(count))
        _tell(pipe, "end", str(numbers[min(len(numbers), _LIFE) - 1]))
        shutil.rmtree(folder.parent, ignore_errors=True)

    def all(self, numbers: range) -> None:
        """Go through the mutants."""
        while numbers:
            worker = self.start(numbers)
            with os.fdopen(worker.pipe, "rb") as pipe:
                worker.text = pipe.read().decode("utf-8", "replace")
            numbers = self._ended(worker)

    def add(self, other: Run) -> None:
        """What another process has found; what is new is told."""
        self.counts.update(other.counts)
        for key, numbers in other.findings.items():
            self.findings.setdefault(key, []).extend(numbers)
            if key not in self.texts:
                self.texts[key] = other.texts[key]
                last = other.texts[key].rstrip().rpartition("\n")[2]
                print(f"{numbers[0]}: {key[0]} in {key[1]}: {last[:200]}", flush=True)

    def _ended(self, worker: Worker) -> range:
        """What a worker has left to do."""
        _, status = os.waitpid(worker.pid, 0)
        last: int | None = None
        for line in worker.text.splitlines():
            kind, *parts = json.loads(line)
            if kind == "finding":
                number, what, where, text = parts
                self._found(int(number), Verdict(what, where, text))
            elif kind == "count":
                self.counts[parts[0]] += int(parts[1])
            elif kind == "end":
                last = int(parts[0])
        if last is None:
            last = int.from_bytes(worker.current[:8], "little")
            code = os.waitstatus_to_exitcode(status)
            if code == 3:
                raise SystemExit("a worker failed by itself")
            name = signal.Signals(-code).name if code < 0 else f"status {code}"
            self._found(last, Verdict(f"died of {name}"))
        done = worker.numbers.index(last) + 1
        return worker.numbers[done:]

    def _found(self, number: int, verdict: Verdict) -> None:
        numbers = self.findings.setdefault(verdict.key, [])
        numbers.append(number)
        self.texts.setdefault(verdict.key, verdict.text)


def _tell(pipe: int, *parts: str) -> None:
    data = json.dumps(parts).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def _prepare() -> None:
    """What the tools do, and limits that hold for the process."""
    sys.setrecursionlimit(10_000)
    warnings.simplefilter("ignore")
    gc.disable()
    gc.freeze()
    os.environ["CC"] = "false"  # for models that are loaded: nothing is compiled
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (size + 2 * MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


# Tasks


@dataclass(frozen=True)
class Setup:
    """Which mutants there are."""

    formats: tuple[str, ...]
    quick: bool
    seed: int
    whole: int
    neighbors: bool


@cache
def run_of(setup: Setup) -> Run:
    """
    The run of a setup: seeds, which take some seconds, and a folder that lasts as long as the
    process. Processes that are forked find it there.
    """
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.TemporaryDirectory(prefix="fuzz-files-", dir=shared)
    seeds = find_seeds(setup.formats, quick=setup.quick)
    run_ = Run(seeds, setup.seed, setup.whole, Path(folder.name), owner=folder)
    if setup.neighbors:
        run_.neighbors = Neighbors(run_.seeds)
    _warm_up(run_)
    return run_


def tried(setup: Setup, numbers: range) -> Run:
    """What is found among mutants, without the seeds."""
    known = run_of(setup)
    own = replace(known, counts=Counter(), findings={}, texts={})
    own.all(numbers)
    return replace(own, seeds=(), neighbors=None, owner=None)


# Findings


def in_child(run_: Run, seed: Seed, files: Files, *, whole: bool) -> Verdict:
    """What becomes of a model, in a process of its own."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        _prepare()
        folder = run_.folder / str(os.getpid()) / "model"
        verdict = judge(seed, files, folder, whole=whole)
        _tell(writing, verdict.what, verdict.where, verdict.text)
        shutil.rmtree(folder.parent, ignore_errors=True)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode()
    _, status = os.waitpid(pid, 0)
    if not text:
        code = os.waitstatus_to_exitcode(status)
        return Verdict(f"died of {signal.Signals(-code).name if code < 0 else code}")
    return Verdict(*json.loads(text))


def shrunk(run_: Run, number: int, key: tuple[str, str]) -> Files:
    """The files of a finding, as small as single steps lead to in the time there is."""
    one = run_.mutant(number)
    whole = run_.is_whole(number)
    end = time.process_time() + _SHRINK_SECONDS
    wall = time.monotonic() + 3 * _SHRINK_SECONDS
    files, changed = one.files, True
    while changed:
        changed = False
        current = Mutant(number, one.seed, files, one.damaged, one.changes)
        for candidate in smaller(current):
            if time.process_time() > end or time.monotonic() > wall:
                return files
            if in_child(run_, one.seed, candidate, whole=whole).key == key:
                files, changed = candidate, True
                break
    return files


def write_findings(run_: Run, out: Path) -> None:
    """A folder for each finding: the smallest files, and what happens with them."""
    for key, numbers in run_.findings.items():
        one = run_.mutant(numbers[0])
        name = re.sub(r"[^\w]+", "_", "_".join(key)).strip("_")
        folder = out / f"{name}_{numbers[0]}"
        write(shrunk(run_, numbers[0], key), folder)
        (folder / "finding.json").write_text(as_json(one, *key, run_.texts[key]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Go through mutants, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    add_options(parser)
    parser.add_argument("--formats", default=",".join(FORMATS), help="of these formats only")
    parser.add_argument("--whole", type=int, default=10, help="every Nth to C; 0 for none")
    parser.add_argument("--neighbors", action="store_true", help="all neighbors, none at random")
    parser.add_argument("--out", type=Path, help="the folder for findings")
    parser.add_argument("--quick", action="store_true", help="only models that are at hand at once")
    parser.add_argument("--only", type=int, help="the number of one mutant")
    options = parser.parse_args(arguments)
    formats = tuple(options.formats.split(","))
    if unknown := set(formats) - set(FORMATS):
        parser.error(f"there are no formats {sorted(unknown)}")
    sys.setrecursionlimit(10_000)
    setup = Setup(formats, options.quick, options.seed, options.whole, options.neighbors)
    run_ = run_of(setup)
    if run_.neighbors is not None:
        options.mutants = min(options.mutants, len(run_.neighbors) - options.first)
    if options.only is not None:
        return _show(run_, options.only, options.out)
    found = replace(run_, counts=Counter(), findings={}, texts={})
    numbers = range(options.first, options.first + options.mutants)
    parts = [numbers[k : k + _PART] for k in range(0, len(numbers), _PART)]
    for _, future in engine_of(options).deal(partial(tried, setup), parts):
        found.add(future.result())
    for listed in found.findings.values():
        listed.sort()
    if options.out is not None:
        write_findings(found, options.out)
    return _summary(found, options.mutants)


def _show(run_: Run, number: int, out: Path | None) -> int:
    one = run_.mutant(number)
    print(f"{one.seed.name} ({one.seed.format}, {one.seed.phase}): {one.damaged}: {one.changes}")
    if out is not None:
        write(one.files, out)
    verdict = in_child(run_, one.seed, one.files, whole=run_.is_whole(number))
    print(verdict.what, verdict.where, verdict.text, sep="\n")
    return int(verdict.is_finding)


def _warm_up(run_: Run) -> None:
    """Load what whole models of each format need, before workers are forked."""
    first = {(seed.format, seed.phase): seed for seed in reversed(run_.seeds)}
    for seed in first.values():
        write(seed.files, run_.folder / "model")
        # This process, which may have used much time already, is not to be killed.
        with contextlib.suppress(Exception, TimeIsUp), _limited(is_killed=False):
            run(seed, run_.folder / "model", whole=True)
    gc.collect()


def _summary(run_: Run, mutants: int) -> int:
    for (what, where), numbers in sorted(run_.findings.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(map(str, numbers[:5]))
        print(f"{len(numbers):6} {what} in {where or 'an unknown place'}: {shown}")
    for status, count in sorted(run_.counts.items()):
        print(f"{count:8} {status}")
    print(f"{mutants} mutants, {len(run_.findings)} distinct findings")
    return int(bool(run_.findings))


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
