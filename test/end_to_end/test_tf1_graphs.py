"""Graphs as they are imported, cycles included, give the answers that TensorFlow gave."""

from __future__ import annotations

from typing import Any

import pytest

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model

from .corpus import cases


@pytest.mark.parametrize("case", cases("tf1"))
def test_the_imported_graph(case: Any) -> None:
    module = load_model(case.model, outputs=case.outputs)
    module.verify()
    for inputs, expected in case.samples():
        assert case.difference(run_module(module, inputs), expected) == ""


@pytest.mark.parametrize("case", cases("tf1"))
def test_outputs_are_found_where_nothing_reads_them(case: Any) -> None:
    """What is asked for and is read by no node is found, and nothing else is."""
    (fetch,) = (op for op in load_model(case.model).walk() if op.name == "tf1.fetch")
    found: Any = fetch.properties["names"]
    assert {name.data for name in found} <= set(case.outputs)
