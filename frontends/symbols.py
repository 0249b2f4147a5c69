"""Dimension symbols for sizes that a model leaves open."""

from __future__ import annotations

from lowerdeck.dialects.dims import Expr


class Symbols:
    """One symbol for each name that a model gives a dimension, a fresh one for each unnamed one."""

    def __init__(self) -> None:
        self._symbols: dict[str, str] = {}
        self._taken: set[str] = {"floordiv", "mod", "min", "max"}
        self._count = 0

    def unnamed(self) -> Expr:
        """A new symbol: `d0`, `d1`, ..."""
        symbol, self._count = self._fresh(f"d{self._count}"), self._count + 1
        return Expr.symbol(symbol)

    def named(self, name: str) -> Expr:
        """The symbol of a name, made of the characters that a symbol may have."""
        if name not in self._symbols:
            self._symbols[name] = self._fresh(_identifier(name))
        return Expr.symbol(self._symbols[name])

    def _fresh(self, base: str) -> str:
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name


def _identifier(name: str) -> str:
    """The name with characters other than ASCII letters, digits and `_` replaced."""
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return text if text[:1].isalpha() else f"d_{text.lstrip('_')}"
