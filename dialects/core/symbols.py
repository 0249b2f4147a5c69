"""The interface of ops that make dimension symbols, on every level."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.ir import Operation, Region

from lowerdeck.dialects.walking import all_ops


class MakesSymbols(Operation, ABC):
    """Interface of ops that give dimension symbols their values."""

    @property
    def made_symbols(self) -> Sequence[str]:
        """The symbols that it makes for the ops after it, to the end of the enclosing block."""
        return ()

    @property
    def inner_symbols(self) -> Sequence[str]:
        """The symbols that it makes for the ops in its regions."""
        return ()


def symbols_made_by(op: object) -> Sequence[str]:
    """The dimension symbols that an op introduces for the ops after it."""
    return op.made_symbols if isinstance(op, MakesSymbols) else ()


def region_symbols_made_by(op: object) -> Sequence[str]:
    """The dimension symbols that an op introduces for its regions."""
    return op.inner_symbols if isinstance(op, MakesSymbols) else ()


def symbols_made_within(region: Region) -> set[str]:
    """The dimension symbols that are known only inside of the region."""
    return {
        name
        for op in all_ops(region)
        for name in (*symbols_made_by(op), *region_symbols_made_by(op))
    }
