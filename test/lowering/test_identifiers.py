"""Names of a model meet no macro of a header that a program includes beside ours."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import pytest

from lowerdeck.lowering.abi import AFTER_TENSORS
from lowerdeck.lowering.emit_c.identifiers import KEYWORDS, identifier

C_LIBRARY = (
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal "
    "stdalign stdarg stdbool stddef stdint stdio stdlib string time wchar wctype"
).split()


@cache
def objects(compiler: str, *headers: str) -> dict[str, str]:
    """What each macro without parameters stands for, of these headers."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    text = "".join(f"#include <{name}.h>\n" for name in headers)
    command = [compiler, "-D_GNU_SOURCE", "-D_USE_MATH_DEFINES", "-dM", "-E", "-x", "c", "-"]
    listed = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    pairs = re.findall(r"^#define (\w+)(?: (.*))?$", listed.stdout, re.MULTILINE)
    return {name: body.strip() for name, body in pairs if not name.startswith("_")}


@pytest.mark.parametrize(
    ("compiler", "headers"),
    [("gcc", C_LIBRARY), ("x86_64-w64-mingw32-gcc", [*C_LIBRARY, "winsock2", "windows"])],
)
def test_no_macro(compiler: str, headers: list[str]) -> None:
    """The name of a macro is not kept, and does not become that of another one."""
    macros = objects(compiler, *headers)
    assert "NULL" in macros
    found = [(identifier(name, set()), name, body) for name, body in macros.items()]
    wrong = [one for one, name, body in found if macros.get(one, one) != one and body != name]
    assert not wrong


def test_kept_names() -> None:
    """A letter with or without a number, and what has lower case, is no macro by convention."""
    for name in ("X", "Y_h", "W1", "W_2", "GetLogits", "Placeholder", "st_1", "image"):
        assert identifier(name, set()) == name


def test_capitals() -> None:
    """They become lower case, which may be a word of C."""
    taken: set[str] = set()
    found = [identifier(name, taken) for name in ("INPUT_IDS", "input_ids", "VOID", "M", "M", "I")]
    assert found == ["input_ids", "input_ids_2", "void_2", "M", "xM_2", "I_2"]


def test_members() -> None:
    """Those of the arguments are no names of tensors."""
    assert not KEYWORDS.isdisjoint(AFTER_TENSORS)
    assert not {identifier(name, set()) for name in AFTER_TENSORS} & {*AFTER_TENSORS}
