"""Tables of text: plain, aligned, whole."""

from __future__ import annotations

import pytest

from lowerdeck.tools.text_table import table_lines


def test_columns_line_up_and_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    rows = [
        ["a[red]b[/red]", "1", ":smile: https://x.y"],
        ["", "1,234", ""],
        ["層", "two\nlines", "x"],
    ]
    assert table_lines(("name", "n", "what"), rows, left=(0, 2)) == [
        "name                   n  what",
        "a[red]b[/red]          1  :smile: https://x.y",
        "                   1,234",
        "層             two lines  x",
    ]


def test_long_lines_are_whole() -> None:
    rows = [["x" * 9000, "y" * 3000]]
    assert table_lines(("", "n"), rows)[1] == f"{'x' * 9000}  {'y' * 3000}"


def test_a_table_of_a_head_alone() -> None:
    assert table_lines(("a", "b"), []) == ["a  b"]
