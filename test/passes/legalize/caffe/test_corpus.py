"""Nets of the corpus, legalized and interpreted, give Caffe's answers."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

BENCH = runpy.run_path(str(Path(__file__).parents[4] / "bench" / "corpus.py"))
FOLDER: Path | None = BENCH["corpus_folder"]()
CASES: list[Any] = [] if FOLDER is None else BENCH["load_cases"](FOLDER, "caffe")


@pytest.mark.skipif(FOLDER is None, reason="no corpus: LOWERDECK_CORPUS names none")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_answers(case: Any) -> None:
    outcome = BENCH["run_case"](case, BENCH["interpreted"])
    assert outcome.status == "pass", outcome.message
