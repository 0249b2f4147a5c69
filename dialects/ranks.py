"""Tables of how many dimensions the inputs of operators have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Spans: TypeAlias = "Mapping[str, Mapping[str, tuple[int, int | None]]]"
"""By operator and input the least and the largest number of dimensions, None for any."""


def read_ranks(table: str) -> Spans:
    """
    The entries of a table. Each line has operators, a colon, and inputs with their dimensions: a
    number, a least one with `+`, or two with `-`.
    """
    found: dict[str, dict[str, tuple[int, int | None]]] = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        names, _, inputs = line.partition(": ")
        spans = dict(_span(text) for text in inputs.split())
        for name in names.split():
            found[name] = spans
    return found


def _span(text: str) -> tuple[str, tuple[int, int | None]]:
    name, _, given = text.partition("=")
    if given.endswith("+"):
        return name, (int(given[:-1]), None)
    least, _, most = given.partition("-")
    return name, (int(least), int(most or least))
