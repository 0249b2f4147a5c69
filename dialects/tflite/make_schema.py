"""
Writes `schema.txt` from TensorFlow Lite's schema.fbs.

    python -m lowerdeck.dialects.tflite.make_schema schema.fbs

A line for each enumeration, union and table, in the order of the schema; the fields of a table are
in the order of their slots, deprecated ones as `-`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TABLE = Path(__file__).parent / "schema.txt"


def lines_of(text: str) -> list[str]:
    """The lines of the table."""
    text = re.sub(r"//[^\n]*", "", text)
    lines: list[str] = []
    pattern = r"(enum|union|table)\s+(\w+)\s*(?::\s*(\w+)\s*)?\{([^}]*)\}"
    for kind, name, width, body in re.findall(pattern, text):
        if kind == "enum":
            lines.append(f"enum {name} {width} {' '.join(_numbered(body))}")
        elif kind == "union":
            members = [part.split("(")[0].strip() for part in body.split(",")]
            lines.append(f"union {name} {' '.join(part for part in members if part)}")
        else:
            lines.append(f"table {name} {' '.join(map(_field, _fields(body)))}".rstrip())
    return lines


def _numbered(body: str) -> list[str]:
    number, found = -1, list[str]()
    for part in filter(None, map(str.strip, body.split(","))):
        name, _, value = part.split("(")[0].partition("=")
        number = int(value) if value.strip() else number + 1
        found.append(f"{name.strip()}={number}")
    return found


def _fields(body: str) -> list[str]:
    return [part.strip() for part in body.split(";") if part.strip()]


def _field(text: str) -> str:
    declaration, _, attributes = text.partition("(")
    if "deprecated" in attributes:
        return "-"
    name, _, rest = declaration.partition(":")
    kind, _, default = rest.partition("=")
    suffix = f"={default.strip()}" if default.strip() else ""
    return f"{name.strip()}:{kind.strip()}{suffix}"


if __name__ == "__main__":
    TABLE.write_text("\n".join(lines_of(Path(sys.argv[1]).read_text())) + "\n")
