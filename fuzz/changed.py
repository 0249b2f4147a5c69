"""
The tests that a change can break, nearest first, for as long as one wants to wait: `make check`.

    python -m fuzz.changed [--since main] [--seconds 50] [--list]

Changed is what differs from the last commit in common with a branch, committed or not. From there
imports are followed backwards to the tests. Nearest are tests that mutants of the same file name
(`mutants.toml`); then those that import the file, or name the pass that it holds, as the RUN lines
of textual tests do, and textual tests that use its operations. What is found by its name when it is
needed, as passes, frontends and dialects are, is farther away: all that compiles a model gets
there, so that the nearest files of tests are taken, and no test starts when the time is over.
`make test` runs them all.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fuzz.mutants import argument_of, load_mutants

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("bench", "dialects", "exporters", "frontends", "fuzz", "lowering", "models", "passes")
SOURCES = ("api", *FOLDERS, "test", "tools")

NEAR, BY_NAME, OPERATION = 2, 6, 3
"""Steps of an import, of what looks a module up by its name, of a test that uses an operation."""
NAMESAKE = 0
"""Steps to a test of the same name, whatever leads there."""
ALIKE, BESIDE = 1, 2
"""A test is nearer to what has a part of its name, and to what is in the folder that it is for."""

PIPELINE = "passes/machinery/pipeline.py"
"""It finds passes by their names."""
LIT = "test/test_lit.py"
_SETTINGS = {"Makefile", "pyproject.toml", "test/conftest.py"}
_FROM = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^ *import ([\w.]+)", re.MULTILINE)
_STRING = re.compile(r'"([^"\n]{2,100})"')
_PASS = re.compile(r"^class \w+Pass\(", re.MULTILINE)
_OPERATION = re.compile(r'^    name = "(\w+\.\w+)"', re.MULTILINE)
_WORDS = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*", re.IGNORECASE)
_PLAN, _DEADLINE = "LOWERDECK_CHECK_PLAN", "LOWERDECK_CHECK_DEADLINE"


# What there is, and what leads to it


class Graph:
    """Files of the project, and which of them leads to which in how many steps."""

    def __init__(self) -> None:
        self.files = [
            path.relative_to(ROOT).as_posix()
            for folder in SOURCES
            for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in (".py", ".mlir") and "__pycache__" not in path.parts
        ]
        self.modules = {_module_of(file): file for file in self.files if file.endswith(".py")}
        texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in self.files}
        self._passes = {
            Path(file).stem.replace("_", "-"): file
            for file in self.files
            if file.startswith(("passes/", "lowering/")) and _PASS.search(texts[file])
        }
        self._operations: dict[str, str] = {}
        for file in self.files:
            if file.startswith("dialects/"):
                for name in _OPERATION.findall(texts[file]):
                    self._operations[name] = file
        self.users: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for file, text in texts.items():
            edges = self._of_module(file, text) if file.endswith(".py") else self._of_text(text)
            for used, steps in edges:
                if used != file:
                    known = self.users[used].get(file, steps)
                    self.users[used][file] = min(known, steps)

        # What nobody imports, its package finds by the name of the file.
        for module, file in self.modules.items():
            if not self.users[file]:
                for found, steps in self._found(module.rpartition(".")[0], BY_NAME):
                    self.users[file][found] = steps

    def _of_module(self, file: str, text: str) -> Iterator[tuple[str, int]]:
        for base, names in _FROM.findall(text):
            package = _absolute(file, base)
            for name in re.findall(r"\w+", names):
                yield from self._found(f"{package}.{name}", NEAR) or self._found(package, NEAR)
        for name in _IMPORT.findall(text):
            yield from self._found(name, NEAR)
        for string in _STRING.findall(text):
            yield from self._found(string, BY_NAME) or self._found(f"lowerdeck.{string}", BY_NAME)
            if file.startswith("test/"):
                for word in self._passes.keys() & _WORDS.findall(string):
                    yield self._passes[word], NEAR
        if file == PIPELINE:
            yield from ((found, BY_NAME) for found in self._passes.values())

    def _of_text(self, text: str) -> Iterator[tuple[str, int]]:
        runs = " ".join(line for line in text.splitlines() if "RUN:" in line)
        for word in _WORDS.findall(runs):
            if word in self._passes:
                yield self._passes[word], NEAR
            if word == "compile-to":
                yield PIPELINE, NEAR
        for name in set(re.findall(r"\b\w+\.\w+\b", text)) & self._operations.keys():
            yield self._operations[name], OPERATION

    def _found(self, module: str, steps: int) -> list[tuple[str, int]]:
        return [(self.modules[module], steps)] if module in self.modules else []

    def distances(self, changed: Mapping[str, int]) -> dict[str, int]:
        """The steps from files to all that they lead to."""
        found: dict[str, int] = {}
        queue = [(steps, file) for file, steps in changed.items()]
        heapq.heapify(queue)
        while queue:
            steps, file = heapq.heappop(queue)
            if file not in found:
                found[file] = steps
                for user, more in self.users[file].items():
                    heapq.heappush(queue, (steps + more, user))
        return found


def _module_of(file: str) -> str:
    """The name that a file is imported by; of a test, one that only tests use."""
    parts = list(Path(file).with_suffix("").parts)
    if parts[0] == "api":
        parts[0] = "lowerdeck"
    elif parts[0] not in ("bench", "fuzz", "models", "test"):
        parts.insert(0, "lowerdeck")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(file: str, module: str) -> str:
    """The module that an import of a file names."""
    name = module.lstrip(".")
    if not (level := len(module) - len(name)):
        return name
    package = _module_of(f"{Path(*Path(file).parts[:-level])}/__init__.py")
    return ".".join([package, *filter(None, [name])])


# What changed, and the tests of it


def changed_since(branch: str) -> list[str]:
    """The files that differ from the last commit in common with a branch, new ones among them."""
    base = _git("merge-base", "HEAD", branch).strip()
    different = _git("diff", "--name-only", base).splitlines()
    return sorted({*different, *_git("ls-files", "--others", "--exclude-standard").splitlines()})


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def reached(changed: Sequence[str], graph: Graph) -> dict[str, int]:
    """How far each test that can be reached is: files of tests, or what pytest calls one test."""
    starts = {file: 0 for file in changed}
    for file in changed:
        if Path(file).suffix not in (".py", ".mlir", ".md"):
            starts.update(_readers(graph, Path(file).name))
    found: dict[str, int] = {}
    folders = {folder for name in changed for folder in Path("test", name).parents[:-2]}
    for file, steps in graph.distances(starts).items():
        path = Path(file)
        if path.parts[0] != "test" or not (ROOT / file).exists():
            continue
        if path.suffix == ".mlir":
            test = f"{LIT}::test_lit[{path.relative_to('test')}]"
        elif path.name.startswith("test_") and file != LIT:
            test = file
        else:
            continue
        words = path.stem.replace("-", "_").removeprefix("test_")
        stems = [Path(name).stem for name in changed]
        if words in stems:
            found[test] = min(steps, NAMESAKE)
            continue
        alike = any(words in stem or stem in words for stem in stems)
        found[test] = steps - (ALIKE if alike else 0) - (BESIDE if path.parent in folders else 0)
    # A frontend is found by what it reads, so that imports hardly lead to the tests of its folders.
    rooms = {room for file in changed for room in Path(file).parts[1:-1]}
    beside = {Path("test", name).parent for name in changed}
    for file in graph.files:
        stem = Path(file).stem
        if not stem.startswith("test_") or file == LIT:
            continue
        if Path(file).parent in beside:
            found[file] = min(found.get(file, BY_NAME), BY_NAME - BESIDE)
        elif any(f"_{room}_" in f"{stem}_" for room in rooms):
            found[file] = min(found.get(file, BY_NAME), BY_NAME)
    for mutant in load_mutants():
        if mutant.file in changed:
            found.update((argument_of(test), -ALIKE) for test in mutant.tests)
    if any(file.startswith("docs/") or file.endswith(".md") for file in changed):
        found.setdefault("test/docs", NEAR)
    if any(file.startswith(SOURCES) for file in changed):
        found.setdefault("test/test_layout.py", NEAR)
        found.setdefault("test/test_mutants.py", NEAR)
    return found


def _readers(graph: Graph, name: str) -> dict[str, int]:
    """The modules and tests that name a file which is neither."""
    return {file: NEAR for file in graph.files if name in (ROOT / file).read_text(encoding="utf-8")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; the exit status is that of pytest, or 0 where all of them are slow ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--since", default="main", metavar="BRANCH")
    parser.add_argument("--seconds", type=float, default=50, help="no test starts after them")
    parser.add_argument("--most", type=int, default=40, metavar="N", help="files of tests")
    parser.add_argument("--list", action="store_true", help="print the tests and their distances")
    parser.add_argument("pytest", nargs="*", help="more arguments for pytest, after --")
    options = parser.parse_args(arguments)
    deadline = time.time() + options.seconds
    changed = changed_since(options.since)
    found = reached(changed, Graph())
    ranked = sorted(found, key=lambda test: (found[test], test))[: options.most]
    print(
        f"{len(changed)} files differ from {options.since} and reach {len(found)} files of tests, "
        f"of which the nearest {len(ranked)} run"
    )
    if settings := sorted(_SETTINGS.intersection(changed)):
        print(f"{', '.join(settings)}: what this can break, `make test` alone tells")
    if options.list:
        print("\n".join(f"{found[test]:4}  {test}" for test in ranked))
        return 0
    if not ranked:
        return 0
    os.environ[_PLAN], os.environ[_DEADLINE] = json.dumps(found), str(deadline)
    whole = [test for test in ranked if "::" not in test]
    single = [test for test in ranked if test.partition("::")[0] not in whole]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fuzz.changed", *options.pytest]
    status = subprocess.run([*command, *whole, *single], cwd=ROOT, check=False).returncode
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


# In the process of pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The nearest first."""
    plan: dict[str, int] = json.loads(os.environ[_PLAN])

    def distance(item: pytest.Item) -> int:
        node = item.nodeid
        file, function = node.partition("::")[0], node.partition("[")[0]
        named = [plan[name] for name in (node, function, file) if name in plan]
        return min(named, default=BY_NAME)

    items.sort(key=distance)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No test starts when the time is over."""
    if time.time() > float(os.environ[_DEADLINE]):
        pytest.skip("no time is left; `make test` runs it")


if __name__ == "__main__":
    raise SystemExit(main())
