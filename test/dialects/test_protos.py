"""The generated modules of the .proto files are in step with them (`make protos`)."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROTOS = sorted((*ROOT.glob("dialects/*/*.proto"), *ROOT.glob("frontends/*/*.proto")))

_TOKEN = re.compile(
    r"(?:message|enum) +(?P<name>\w+) *\{|(?P<end>\})"
    r"|(?P<field>\w+) *= *(?P<number>\d+) *(?:\[(?P<options>[^]]*)\])? *;"
)


def numbers_in_text(text: str) -> dict[str, int]:
    """The number of each field and enum value, by its full name."""
    text = re.sub(r"//[^\n]*|reserved [^;]*;|oneof \w+ *\{(?P<body>[^}]*)\}", r"\g<body>", text)
    found: dict[str, int] = {}
    scope: list[str] = []
    for match in _TOKEN.finditer(text):
        if match["name"]:
            scope.append(match["name"])
        elif match["end"]:
            scope.pop()
        else:
            found[".".join([*scope, match["field"]])] = int(match["number"])
    return found


def numbers_in_module(file: Any) -> dict[str, int]:
    """The same from the descriptors of a generated module."""
    found: dict[str, int] = {}

    def add(path: str, message: Any) -> None:
        if message.GetOptions().map_entry:
            return
        found.update({f"{path}.{field.name}": field.number for field in message.fields})
        for enum in message.enum_types:
            found.update({f"{path}.{enum.name}.{v.name}": v.number for v in enum.values})
        for nested in message.nested_types:
            add(f"{path}.{nested.name}", nested)

    for name, message in file.message_types_by_name.items():
        add(name, message)
    for name, enum in file.enum_types_by_name.items():
        found.update({f"{name}.{value.name}": value.number for value in enum.values})
    return found


@pytest.mark.parametrize("proto", PROTOS, ids=[path.name for path in PROTOS])
def test_generated_modules(proto: Path) -> None:
    name = ".".join(("lowerdeck", *proto.relative_to(ROOT).with_suffix("").parts)) + "_pb2"
    assert numbers_in_module(import_module(name).DESCRIPTOR) == numbers_in_text(proto.read_text())
