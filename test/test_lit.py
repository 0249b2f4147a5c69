"""Every `.mlir` file below this folder is a lit test and one pytest case."""

from pathlib import Path

import pytest
from lit import LitTestCase

ROOT = Path(__file__).parent
NOT_TESTS = frozenset({"Inputs", "Output"})  # as in lit.cfg.py


def lit_files() -> list[str]:
    """Paths relative to this folder, sorted: all pytest workers must see one order."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.mlir"))
    return sorted(str(path) for path in paths if NOT_TESTS.isdisjoint(path.parts))


def run_lit(path: Path) -> str | None:
    """The report of the failed test at `path`, or None."""
    (case,) = LitTestCase.load_test_suite([str(path)])
    assert isinstance(case, LitTestCase.LitTestCase)
    try:
        case.runTest()
    except (AssertionError, LitTestCase.UnresolvedError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("path", lit_files())
def test_lit(path: str) -> None:
    if (report := run_lit(ROOT / path)) is not None:
        pytest.fail(report, pytrace=False)
