"""Outputs of graphs: those that are asked for are fetched, and nothing else is."""

from __future__ import annotations

from typing import Any

from lowerdeck.frontends import load_model
from models.corpus import Case


def test_outputs_are_found_where_nothing_reads_them(tf1_case: Case) -> None:
    """What is asked for and is read by no node is found, and nothing else is."""
    (fetch,) = (op for op in load_model(tf1_case.model).walk() if op.name == "tf1.fetch")
    found: Any = fetch.properties["names"]
    assert {name.data for name in found} <= set(tf1_case.outputs)
