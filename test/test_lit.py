"""Every `.mlir` file below this folder is a lit test and one pytest case, run in this process."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from lit import LitTestCase

from .in_process import tools_in_process

ROOT = Path(__file__).parent

NUMBERED = re.compile(r" *// *[A-Z0-9_]+(-[A-Z0-9]+)*:.*%[0-9]")
"""A CHECK line with the number of a value."""


def lit_cases(*paths: Path) -> dict[str, LitTestCase.LitTestCase]:
    """What lit finds, by path in the suite; sorted: all pytest workers must see one order."""
    suite = LitTestCase.load_test_suite([str(path) for path in paths])
    cases = [case for case in suite if isinstance(case, LitTestCase.LitTestCase)]
    return dict(sorted((case.id().partition(" :: ")[2], case) for case in cases))


def report_of(case: LitTestCase.LitTestCase) -> str | None:
    """The report of a test that fails, or None."""
    try:
        case.runTest()
    except (AssertionError, LitTestCase.UnresolvedError) as error:
        return str(error)
    return None


PATHS = list(lit_cases(ROOT))


@pytest.mark.parametrize("path", PATHS)
def test_lit(path: str) -> None:
    (case,) = lit_cases(ROOT / path).values()
    with tools_in_process():
        report = report_of(case)
    if report is not None:
        pytest.fail(report, pytrace=False)


def test_values_are_captured() -> None:
    """The numbers of values change with anything that is printed before them."""
    lines = ((path, line) for path in PATHS for line in (ROOT / path).read_text().splitlines())
    assert [(path, line) for path, line in lines if NUMBERED.match(line)] == []


def test_lit_by_itself() -> None:
    """Plain `lit` runs the tests, too, with programs that each import what they need."""
    (case,) = lit_cases(ROOT / "passes/wrong-phase.mlir").values()
    assert report_of(case) is None


MODULE = "func.func @f() {\n  func.return\n}\n"
RIGHT = {
    "input": "opt-tool %s | opt-tool | filecheck %s --check-prefix=RETURN",
    "both_outputs": "not opt-tool %s --disable=fuze 2>&1 | filecheck %s --check-prefix=NO_PASS",
    "error_output": "opt-tool %s -p cse --rewrite-log 2>&1 >%t | filecheck %s --allow-empty",
    "file": "opt-tool %s >%t && opt-tool %t -o %t.again && filecheck %s <%t.again "
    "--check-prefix=RETURN",
    "environment": "env LOWERDECK_CACHE=1 opt-tool %s | filecheck %s --check-prefix=RETURN",
}
WRONG = {
    "mismatch": "opt-tool %s | filecheck %s --check-prefix=NO_PASS",
    "status_in_pipe": "opt-tool %s --disable=fuze 2>&1 | filecheck %s --check-prefix=NO_PASS",
    "status_alone": "opt-tool %s.missing",
    "success": "not opt-tool %s",
    "no_input": "filecheck %s --check-prefix=RETURN",
    "outputs_apart": "not opt-tool %s --disable=fuze | filecheck %s --check-prefix=NO_PASS",
    "unknown": "opt-tule %s",
}
CHECKS = "// RETURN: func.return\n// NO_PASS: no pass 'fuze'\n// CHECK-NOT: error\n"


def failing(folder: Path, lines: Mapping[str, str]) -> set[str]:
    """The names of the RUN lines that fail, each a test of its own."""
    shutil.copy(ROOT / "lit.cfg.py", folder)
    for name, line in lines.items():
        (folder / f"{name}.mlir").write_text(f"// RUN: {line}\n{CHECKS}{MODULE}")
    reports = {path: report_of(case) for path, case in lit_cases(folder).items()}
    return {Path(path).stem for path, report in reports.items() if report is not None}


def test_what_passes_and_what_fails(tmp_path: Path) -> None:
    with tools_in_process():
        assert failing(tmp_path, RIGHT | WRONG) == WRONG.keys()


def test_what_fails_by_itself(tmp_path: Path) -> None:
    names = "both_outputs", "status_in_pipe", "success"
    lines = {name: (RIGHT | WRONG)[name] for name in names}
    assert failing(tmp_path, lines) == {"status_in_pipe", "success"}
