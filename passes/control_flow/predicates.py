"""
Predicates as canonical Boolean values: reduced ordered decision diagrams.

A predicate is a number; equal numbers mean equal functions of the atoms, and the other way round.
Nothing here recurses, for chains of conditionals are long.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

FALSE, TRUE = 0, 1

_TERMS = 6
"""Terms that an error prints before it leaves the rest out."""

_LEAF = 1 << 60
"""The level of the two constants, below that of every atom."""


class Predicates:
    """The predicates of one graph; atoms are ordered as they were first asked for."""

    def __init__(self) -> None:
        # Of each predicate: its topmost atom, and what it is where that is false, and true.
        self._nodes: list[tuple[int, int, int]] = [(_LEAF, 0, 0), (_LEAF, 1, 1)]
        self._known: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}
        self._atoms: dict[Hashable, int] = {}
        self._texts: list[str] = []

    def atom(self, key: Hashable, text: str) -> int:
        """The predicate that holds where the atom `key` is true; `text` names it in errors."""
        if key not in self._atoms:
            self._atoms[key] = len(self._texts)
            self._texts.append(text)
        return self._make(self._atoms[key], FALSE, TRUE)

    def negate(self, a: int) -> int:
        """not a"""
        return self._choose(a, FALSE, TRUE)

    def both(self, a: int, b: int) -> int:
        """a and b"""
        return self._choose(a, b, FALSE)

    def either(self, a: int, b: int) -> int:
        """a or b"""
        return self._choose(a, TRUE, b)

    def choice(self, a: int, b: int, c: int) -> int:
        """b where a holds, else c"""
        return self._choose(a, b, c)

    def all(self, predicates: Iterable[int]) -> int:
        """The conjunction of predicates, TRUE for none."""
        result = TRUE
        for predicate in self._from_below(predicates):
            result = self.both(predicate, result)
        return result

    def any(self, predicates: Iterable[int]) -> int:
        """The disjunction of predicates, FALSE for none."""
        result = FALSE
        for predicate in self._from_below(predicates):
            result = self.either(predicate, result)
        return result

    def implies(self, a: int, b: int) -> bool:
        """True if b holds wherever a does."""
        return a == b or self._choose(a, b, TRUE) == TRUE

    def disjoint(self, a: int, b: int) -> bool:
        """True if a and b never hold together."""
        return self.both(a, b) == FALSE

    def atoms_of(self, predicate: int) -> list[int]:
        """The numbers of the atoms that a predicate depends on, in order."""
        seen: set[int] = set()
        found: set[int] = set()
        stack = [predicate]
        while stack:
            current = stack.pop()
            if current in seen or current <= TRUE:
                continue
            seen.add(current)
            level, low, high = self._nodes[current]
            found.add(level)
            stack += (low, high)
        return sorted(found)

    def describe(self, predicate: int) -> str:
        """A disjunction of conjunctions of atoms, as text."""
        if predicate <= TRUE:
            return "always" if predicate == TRUE else "never"
        terms: list[str] = []
        for term in self._terms(predicate):
            if len(terms) == _TERMS:
                return f"{' or '.join(terms)} or ..."
            terms.append(" and ".join(term))
        return " or ".join(terms)

    def _from_below(self, predicates: Iterable[int]) -> list[int]:
        """Distinct predicates in the order in which they are combined with the least work."""
        return sorted(set(predicates), key=lambda p: self._nodes[p][0], reverse=True)

    def _terms(self, predicate: int) -> Iterator[list[str]]:
        """The ways to make a predicate true."""
        stack: list[tuple[int, list[str]]] = [(predicate, [])]
        while stack:
            current, term = stack.pop()
            if current == TRUE:
                yield term
            if current <= TRUE:
                continue
            level, low, high = self._nodes[current]
            text = self._texts[level]
            stack.append((low, [*term, f"not {text}"]))
            stack.append((high, [*term, text]))

    def _make(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (level, low, high)
        if (found := self._known.get(key)) is None:
            found = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def _choose(self, a: int, b: int, c: int) -> int:
        """b where a holds, else c."""
        done = self._choices
        stack = [(a, b, c)]
        while stack:
            key = stack[-1]
            if self._simple(key) is not None or key in done:
                stack.pop()
                continue
            level = min(self._nodes[part][0] for part in key)
            low, high = (self._side(key, level, side) for side in (1, 2))
            missing = [k for k in (high, low) if self._simple(k) is None and k not in done]
            if missing:
                stack += missing
                continue
            done[key] = self._make(level, self._result(low), self._result(high))
            stack.pop()
        return self._result((a, b, c))

    def _side(self, key: tuple[int, int, int], level: int, side: int) -> tuple[int, int, int]:
        """The parts of a choice where the atom of `level` is false (1) or true (2)."""
        a, b, c = (node[side] if (node := self._nodes[part])[0] == level else part for part in key)
        return a, b, c

    def _result(self, key: tuple[int, int, int]) -> int:
        simple = self._simple(key)
        return self._choices[key] if simple is None else simple

    @staticmethod
    def _simple(key: tuple[int, int, int]) -> int | None:
        a, b, c = key
        if a <= TRUE:
            return b if a == TRUE else c
        if b == c:
            return b
        return a if (b, c) == (TRUE, FALSE) else None
