"""Numbers that are written down in choices: they may become fewer, not more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lowerdeck.lowering import cost, nests, strategies

_PLAIN = (0, 1, 2, 0.0, 1.0, 2.0)

MOST = {strategies: 148, nests: 47, cost: 0}
"""What there is today; lower it when some are gone. What a machine does belongs into its file."""


def numbers_of(tree: ast.AST) -> Iterator[ast.Constant]:
    """Numeric literals but for 0, 1 and 2, with or without a sign."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if node.value not in _PLAIN:
                yield node


@pytest.mark.parametrize("package", MOST, ids=lambda package: package.__name__.rpartition(".")[2])
def test_choices_have_no_more_numbers(package: ModuleType) -> None:
    (folder,) = package.__path__
    found = [
        f"{path.name}:{number.lineno}: {number.value}"
        for path in sorted(Path(folder).glob("*.py"))
        for number in numbers_of(ast.parse(path.read_text()))
    ]
    assert len(found) <= MOST[package], "\n".join(found)


def test_what_counts() -> None:
    text = "X = 0.85\ndef f(x, y=-1):\n    return x[1:] * 3 + -2 + 2.0, True, 'a4', [0, 7]\n"
    assert {number.value for number in numbers_of(ast.parse(text))} == {0.85, 3, 7}
