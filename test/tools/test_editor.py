"""The grammar that editors color IR text by, applied as they apply it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context

from lowerdeck.tools.universe import UNIVERSE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tools" / "editor"
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "mlir.tmLanguage.json").read_text())

SOURCES = sorted((ROOT / "test").rglob("*.mlir"))

SAMPLE = """\
// RUN: opt-tool %s | filecheck %s
func.func private @main(%x: tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {core.name = "x \\"y"}) {
  %y.0:2 = "core.split"(%x#1) <{axis = -1 : i64}> : (tensor<*xf32>) -> !buffer.ref<[s0, 16] x bf16>
^bb0(%i: index):
  %z = core.constant dense<[0x7F, -1.5e-3]> : tensor<2xf64> loc("a/b"("m.onnx":0:0))
  buffer.for(%i) <[max(-d0 + 1, 0), d0 floordiv 2, 1]> // expected-error {{none}}
}
"""

EXPECTED = [
    ("RUN:", "keyword.other.test"),
    ("func", "entity.name.namespace.dialect"),
    ("func", "entity.name.function.operation"),
    ("private", "storage.modifier"),
    ("@main", "entity.name.function.symbol"),
    ("%x", "variable.other.value"),
    ("tensor", "support.type.shaped"),
    ("?x", "constant.numeric.dimension"),
    ("3x", "constant.numeric.dimension"),
    ("f32", "support.type.scalar"),
    ("#core.tensor", "support.other.attribute"),
    ("dims", "variable.parameter.attribute"),
    ("n", "variable.other.word"),
    ("3", "constant.numeric.integer"),
    ("core.name", "variable.parameter.attribute"),
    ('"x ', "string.quoted.double"),
    ('\\"', "constant.character.escape"),
    ("%y.0:2", "variable.other.value"),
    ('"core.split"', "string.quoted.double"),
    ("%x#1", "variable.other.value"),
    ("axis", "variable.parameter.attribute"),
    ("-1", "constant.numeric.integer"),
    ("i64", "support.type.scalar"),
    ("*x", "constant.numeric.dimension"),
    ("->", "keyword.operator.arrow"),
    ("!buffer.ref", "entity.name.type.dialect"),
    ("s0", "variable.other.word"),
    ("bf16", "support.type.scalar"),
    ("^bb0", "entity.name.section.block"),
    ("index", "support.type.scalar"),
    ("core", "entity.name.namespace.dialect"),
    ("constant", "entity.name.function.operation"),
    ("dense", "support.function.builtin"),
    ("0x7F", "constant.numeric.hex"),
    ("-1.5e-3", "constant.numeric.float"),
    ("2x", "constant.numeric.dimension"),
    ("f64", "support.type.scalar"),
    ("loc", "keyword.control.location"),
    ('"a/b"', "string.quoted.double"),
    ("buffer", "entity.name.namespace.dialect"),
    ("for", "entity.name.function.operation"),
    ("max", "keyword.operator.word"),
    ("d0", "variable.other.word"),
    ("floordiv", "keyword.operator.word"),
    ("expected-error", "keyword.other.diagnostic"),
]
"""Of the sample, in order; what lies between may be anything."""

Found = tuple[dict[str, Any], re.Match[str] | None]

Token = tuple[str, str]
"""Text, and the innermost scope without the language's suffix; "" for none."""


def rules(patterns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The patterns of a list, where those of the repository are included."""
    for pattern in patterns:
        if (name := pattern.get("include")) is not None:
            yield from rules(GRAMMAR["repository"][name.removeprefix("#")]["patterns"])
        else:
            yield pattern


OUTER = [
    (re.compile(rule.get("match") or rule["begin"]), rule) for rule in rules(GRAMMAR["patterns"])
]
"""The rules outside of what has a begin and an end, in the order in which they are tried."""


def scope(name: str) -> str:
    assert name.endswith(".mlir")
    return name.removesuffix(".mlir")


def tokens_of_line(line: str) -> Iterator[Token]:
    """What an editor makes of a line: the first match wins, and of those the first rule."""
    ahead: list[re.Match[str] | None] = [regex.search(line) for regex, _ in OUTER]
    inside: dict[str, Any] | None = None
    at = 0
    while at < len(line):
        found: tuple[int, dict[str, Any], re.Match[str]] | None = None
        for rule, match in (
            next_of_outer(line, at, ahead) if inside is None else next_of_inner(line, at, inside)
        ):
            if match is not None and (found is None or match.start() < found[0]):
                found = match.start(), rule, match
        around = "" if inside is None else scope(inside["name"])
        if found is None:
            yield line[at:], around
            return
        start, rule, match = found
        if start > at:
            yield line[at:start], around
        if inside is not None and "name" not in rule:
            yield match[0], around
            inside = None
        elif "begin" in rule:
            yield match[0], scope(rule["name"])
            inside = rule
        elif "captures" in rule:
            for number, capture in rule["captures"].items():
                if match[int(number)]:
                    yield match[int(number)], scope(capture["name"])
        else:
            yield match[0], scope(rule["name"])
        at = match.end()


def next_of_outer(line: str, at: int, ahead: list[re.Match[str] | None]) -> Iterator[Found]:
    """The next match of each rule; `ahead` has those that were found before."""
    for k, (regex, rule) in enumerate(OUTER):
        match = ahead[k]
        if match is not None and match.start() < at:
            match = ahead[k] = regex.search(line, at)
        yield rule, match


def next_of_inner(line: str, at: int, inside: dict[str, Any]) -> Iterator[Found]:
    """The next match of what ends a rule, and of each rule within."""
    for rule in ({"match": inside["end"]}, *inside["patterns"]):
        yield rule, re.compile(rule["match"]).search(line, at)


def merged(tokens: Iterator[Token]) -> list[Token]:
    """Neighbors of one scope are one token."""
    result: list[Token] = []
    for text, name in tokens:
        if result and result[-1][1] == name and name.startswith(("string", "comment")):
            result[-1] = result[-1][0] + text, name
        else:
            result.append((text, name))
    return result


def test_sample() -> None:
    found = [token for line in SAMPLE.splitlines() for token in merged(tokens_of_line(line))]
    rest = iter(found)
    for expected in EXPECTED:
        assert expected in rest, f"{expected} is not in its place in {found}"


def test_every_operation() -> None:
    """All ops of all dialects that `xdsl-opt` knows of this project."""
    context = Context()
    for name, factory in UNIVERSE.all_dialects.items():
        context.register_dialect(name, factory)
    names = [
        op.name
        for dialect in UNIVERSE.all_dialects
        for op in context.get_dialect(dialect).operations
    ]
    assert len(names) > 1000
    for name in names:
        dialect, _, own = name.partition(".")
        tokens = list(tokens_of_line(f"  %0 = {name} %1 : f32"))
        assert (dialect, "entity.name.namespace.dialect") in tokens, name
        assert (own, "entity.name.function.operation") in tokens, name


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=lambda p: p.name)
def test_every_test_is_covered(folder: Path) -> None:
    """Nothing but white space is left without a scope in the IR of the tests."""
    for path in (path for path in SOURCES if path.parent == folder):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for text, name in tokens_of_line(line):
                assert name or not text.strip(), f"{path}:{number}: {text!r} of {line!r}"


def test_extension() -> None:
    """What the manifest of the extension names is there."""
    manifest = json.loads((FOLDER / "package.json").read_text())
    contributed = manifest["contributes"]
    (language,), (grammar,) = contributed["languages"], contributed["grammars"]
    assert (FOLDER / language["configuration"]).is_file()
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    assert (FOLDER / grammar["path"]).is_file()
    assert {name.removeprefix(".") for name in language["extensions"]} == {*GRAMMAR["fileTypes"]}
