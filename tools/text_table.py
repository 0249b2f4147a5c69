"""Tables as lines of text: those of rich, the same in a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from io import StringIO

_WIDTH = 1 << 20
"""Columns of a line, at most: nothing is cut or wrapped."""


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int] = (0,)
) -> list[str]:
    """
    Columns that line up, two spaces apart: those with these numbers to the left, the others to the
    right. What is wide in a terminal counts as two columns.
    """
    # Tables are the last thing that a command makes, and most make none.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for number in range(len(head)):
        table.add_column(justify="left" if number in left else "right", no_wrap=True)
    # A column as one cell of many lines takes a third of the time that cells of their own take.
    columns = zip(head, *rows, strict=True)
    table.add_row(*(Text("\n".join(map(_line, cells))) for cells in columns))
    text = StringIO()
    Console(file=text, width=_WIDTH, color_system=None, legacy_windows=False).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def _line(cell: str) -> str:
    return " ".join(cell.splitlines())
