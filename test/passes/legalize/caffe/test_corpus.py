"""Nets of the corpus, legalized and interpreted, give Caffe's answers."""

from __future__ import annotations

from models.corpus import Case, interpreted, run_case


def test_answers(caffe_case: Case) -> None:
    outcome = run_case(caffe_case, interpreted)
    assert outcome.status == "pass", outcome.message
