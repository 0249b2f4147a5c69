"""Every `.mlir` file below this folder is a lit test and one pytest case."""

from pathlib import Path

import pytest
from lit.LitTestCase import LitTestCase, load_test_suite

ROOT = Path(__file__).parent
NOT_TESTS = frozenset({"Inputs", "Output"})  # as in lit.cfg.py


def lit_files() -> list[str]:
    """Paths relative to this folder, sorted: all pytest workers must see one order."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.mlir"))
    return sorted(str(path) for path in paths if NOT_TESTS.isdisjoint(path.parts))


@pytest.mark.parametrize("path", lit_files())
def test_lit(path: str) -> None:
    (case,) = load_test_suite([str(ROOT / path)])
    assert isinstance(case, LitTestCase)
    try:
        case.runTest()
    except Exception as error:  # a failed check, or a file without a RUN line
        pytest.fail(str(error), pytrace=False)
