"""The work of a model, whatever runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.passes.machinery.statistics import statistics_of, symbol_sizes


@dataclass(frozen=True)
class Work:
    """Multiply-adds of convolutions and matrix products."""

    multiply_adds: int
    is_exact: bool
    """False if a size or a number of iterations depends on data; it was taken as 1."""


def count_work(module: ModuleOp, shapes: Mapping[str, Sequence[int]]) -> Work:
    """The work of `main` of a legal module for inputs of these shapes."""
    found = statistics_of(module, symbol_sizes(module, shapes))
    return Work(found.multiply_adds or 0, "multiply_adds" not in found.inexact)
