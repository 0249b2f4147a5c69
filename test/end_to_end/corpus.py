"""The corpus for the tests: its cases, and how the benchmark runs them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

_BENCH: Any = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "corpus.py"))

run_case = _BENCH["run_case"]
compiled, interpreted, exported = (_BENCH[name] for name in ("compiled", "interpreted", "exported"))


def cases(kind: str) -> list[Any]:
    """A parameter for each case; one that skips, with the reason, where there is no corpus."""
    folder = _BENCH["corpus_folder"]()
    if folder is None:
        reason = f"no corpus; {_BENCH['PATH_VARIABLE']} names its folder"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(case, id=case.name) for case in _BENCH["load_cases"](folder, kind)]
