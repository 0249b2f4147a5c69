"""Graphs as they are imported, cycles included, give the answers that TensorFlow gave."""

from __future__ import annotations

from typing import Any

from corpus import Case

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model


def test_the_imported_graph(tf1_case: Case) -> None:
    module = load_model(tf1_case.model, outputs=tf1_case.outputs)
    module.verify()
    for inputs, expected in tf1_case.samples():
        assert tf1_case.difference(run_module(module, inputs), expected) == ""


def test_outputs_are_found_where_nothing_reads_them(tf1_case: Case) -> None:
    """What is asked for and is read by no node is found, and nothing else is."""
    (fetch,) = (op for op in load_model(tf1_case.model).walk() if op.name == "tf1.fetch")
    found: Any = fetch.properties["names"]
    assert {name.data for name in found} <= set(tf1_case.outputs)
