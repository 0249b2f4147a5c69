"""
Would the tests notice? Small mistakes are put into the sources, one at a time; a test has to fail.

    python -m fuzz.mutants [--jobs N | --ray [ADDRESS]] --filter plan-memory

Copies of the tree are made in the folder for temporary files (TMPDIR), which all nodes of a cluster
see. `mutants.toml` lists the mutants: a line, what it becomes, the mistake, and the tests that are
expected to find it. Each mutant runs in a copy of the tree of its own. The tests have to pass
without it first. Exits with 1 if a mutant survives, or if its tests could not decide.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lowerdeck.engines import Engine
from models.campaign import add_options, engine_of, every_processor, main_of

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("mutants.toml")

COPIED = (
    *("api", "bench", "dialects", "exporters", "frontends", "fuzz", "lowering", "models", "passes"),
    *("test", "tools", "typings"),
)
SETTINGS = "pyproject.toml"

TIME_LIMIT = 180
"""Seconds for the tests of one mutant; they take a few."""

_PART = 40
"""Selections of tests that run together without a mutant."""

UNUSABLE = 70
"""The exit status of `RUNNER` if the module cannot be imported; pytest has none above 5."""

RUNNER = f"""
import importlib, os, sys, traceback
name, *arguments = sys.argv[1:]
try:
    if name and not importlib.import_module(name).__file__.startswith(os.getcwd()):
        raise ImportError(name + " is not that of this tree")
except Exception:
    traceback.print_exc(file=sys.stdout)
    sys.exit({UNUSABLE})
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments]))
"""
"""Imports a module, then runs tests: in one process, because starting Python takes long."""

KILLED, SURVIVED, UNDECIDED = "killed", "SURVIVED", "UNDECIDED"


class MutantError(Exception):
    """The list does not fit the sources, or the copy of the tree cannot be used."""


@dataclass(frozen=True)
class Mutant:
    """One mistake."""

    name: str
    file: str
    """Relative to the root."""
    line: str
    """The original line without its indentation."""
    becomes: str
    mistake: str
    tests: tuple[str, ...]
    """What pytest is asked to run, relative to `test`; a file `.mlir` is one test."""
    occurrence: int = 0
    """Which of several equal lines, from 1; 0 if there is only one."""

    def apply(self, source: str) -> str:
        """The source with the mistake; MutantError if the line is not there exactly once."""
        lines = source.splitlines(keepends=True)
        places = [k for k, line in enumerate(lines) if line.strip() == self.line]
        if not places or (len(places) > 1) != (self.occurrence > 0):
            raise MutantError(
                f"{self.name}: found {len(places)} lines '{self.line}' in {self.file}, expected "
                f"{'several' if self.occurrence else 'one'}; bring mutants.toml up to date"
            )
        if self.occurrence > len(places):
            raise MutantError(f"{self.name}: found no occurrence {self.occurrence} in {self.file}")
        if self.becomes == self.line:
            raise MutantError(f"{self.name}: the line does not change")
        place = places[max(self.occurrence - 1, 0)]
        lines[place] = lines[place].replace(self.line, self.becomes)
        return "".join(lines)

    @property
    def module(self) -> str:
        """The module that the file is; empty for a file of C."""
        if not self.file.endswith(".py"):
            return ""
        folder, stem = os.path.split(self.file.removesuffix(".py"))
        return ".".join(["lowerdeck", *folder.split("/"), *([] if stem == "__init__" else [stem])])


def load_mutants(path: Path = LIST) -> list[Mutant]:
    """The mutants of a list, in order; MutantError if two have one name."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(tests=tuple(entry.pop("tests")), **entry) for entry in entries]
    counts = Counter(mutant.name for mutant in mutants)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise MutantError(f"two mutants have the name {twice}")
    return mutants


class Tree:
    """A copy of everything that the tests use; Python finds the package in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of(source: Path, folder: Path) -> Tree:
        """The copy of a tree."""
        for name in COPIED:
            ignored = shutil.ignore_patterns("Output", ".hypothesis")
            # Times stay the same, so that compiled files stay good.
            shutil.copytree(source / name, folder / name, symlinks=True, ignore=ignored)
        shutil.copy2(source / SETTINGS, folder)
        return Tree(folder)

    def test(
        self, tests: Sequence[str], module: str = "", limit: int = TIME_LIMIT
    ) -> subprocess.CompletedProcess[str]:
        """
        Run tests up to the first that fails.

        UNUSABLE if a module cannot be imported first; TimeoutExpired after some seconds.
        """
        environment = dict(os.environ)
        environment.pop("LOWERDECK_CACHE", None)
        # Before the installed package, which is the tree that this was copied from.
        environment["PYTHONPATH"] = str(self.folder / "typings")
        return subprocess.run(
            [sys.executable, "-c", RUNNER, module, *map(argument_of, tests)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )

    def mutate(self, mutant: Mutant) -> None:
        """Put a mistake into this tree."""
        path = self.folder / mutant.file
        path.write_text(mutant.apply(path.read_text()))


def argument_of(test: str) -> str:
    """A test of the list for pytest."""
    return f"test/test_lit.py::test_lit[{test}]" if test.endswith(".mlir") else f"test/{test}"


def require_noticed_mistakes(pristine: Path, scratch: Path) -> None:
    """MutantError if the tests, those of lit included, run anything but the tree they are in."""
    file = "passes/fold/cse.py"
    tree = Tree.of(pristine, scratch)
    path = tree.folder / file
    # The pass is still found by its class.
    path.write_text(f'{path.read_text()}\nraise ImportError("a mistake")\n')
    for test in ("passes/fold/cse.mlir", "passes/test_driver.py"):
        done = tree.test([test])
        if done.returncode == 0 or "a mistake" not in done.stdout:
            raise MutantError(f"{test} does not see a mistake in {file}:\n{done.stdout[-2000:]}")


@dataclass(frozen=True)
class Verdict:
    """What came of one mutant."""

    mutant: Mutant
    outcome: str
    seconds: float
    detail: str = ""


def failing(pristine: Path, selections: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The selections of tests that fail without a mutant, and what they say."""
    # One run for all is faster; each is looked at alone only if that fails.
    every = sorted({test for tests in selections for test in tests})
    if Tree(pristine).test(every, limit=TIME_LIMIT * len(every)).returncode:
        done = [(tests, Tree(pristine).test(tests)) for tests in selections]
        return {tests: run.stdout + run.stderr for tests, run in done if run.returncode}
    return {}


def judge(pristine: Path, scratch: Path, mutant: Mutant) -> Verdict:
    """Run the tests of a mutant in a copy with it."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        tree = Tree.of(pristine, Path(folder))
        tree.mutate(mutant)
        try:
            done = tree.test(mutant.tests, mutant.module)
        except subprocess.TimeoutExpired as error:
            return Verdict(mutant, UNDECIDED, time.monotonic() - start, str(error))
    # Pytest ends with 1 if tests ran and one failed; with more if it could not run them. Generated
    # C that ends in a signal takes it along.
    is_crash = done.returncode < 0
    outcome = KILLED if is_crash else {0: SURVIVED, 1: KILLED}.get(done.returncode, UNDECIDED)
    return Verdict(mutant, outcome, time.monotonic() - start, done.stdout)


def describe(verdict: Verdict, verbose: bool) -> str:
    """A line of the table, and what the tests said where that is of interest."""
    mutant = verdict.mutant
    line = f"{verdict.outcome:9} {verdict.seconds:5.1f} s  {mutant.name:40} {mutant.mistake}"
    if verdict.outcome == KILLED and not verbose:
        return line
    return f"{line}\n    {mutant.file}: {mutant.becomes}\n{verdict.detail[-2000:]}"


def run(mutants: Sequence[Mutant], engine: Engine, verbose: bool) -> int:
    """Judge mutants and print the table; 1 if one was not killed."""
    for mutant in mutants:
        mutant.apply((ROOT / mutant.file).read_text())
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        scratch = Path(name).resolve()
        pristine = Tree.of(ROOT, scratch / "pristine").folder
        require_noticed_mistakes(pristine, scratch / "noticed")
        selections = list(dict.fromkeys(mutant.tests for mutant in mutants))
        parts = [selections[k : k + _PART] for k in range(0, len(selections), _PART)]
        broken: dict[tuple[str, ...], str] = {}
        for _, found in engine.deal(partial(failing, pristine), parts):
            broken.update(found.result())
        outcomes: Counter[str] = Counter()
        judged = [mutant for mutant in mutants if mutant.tests not in broken]
        for mutant in mutants:
            if mutant.tests in broken:
                verdict = Verdict(mutant, UNDECIDED, 0, f"without it:\n{broken[mutant.tests]}")
                outcomes[UNDECIDED] += 1
                print(describe(verdict, verbose), flush=True)
        for _, future in engine.deal(partial(judge, pristine, scratch), judged):
            verdict = future.result()
            outcomes[verdict.outcome] += 1
            print(describe(verdict, verbose), flush=True)
    print(
        f"{len(mutants)} mutants: {outcomes[KILLED]} killed, {outcomes[SURVIVED]} survived, "
        f"{outcomes[UNDECIDED]} undecided"
    )
    return int(outcomes[KILLED] != len(mutants))


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Check that the tests find mistakes.")
    add_options(parser, every_processor())
    parser.add_argument("--filter", default="", metavar="RE", help="mutants by name or file")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what the tests said")
    arguments = parser.parse_args()
    mutants = [
        mutant
        for mutant in load_mutants()
        if re.search(arguments.filter, f"{mutant.name} {mutant.file}")
    ]
    try:
        return run(mutants, engine_of(arguments), arguments.verbose)
    except MutantError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
