"""A cfg as sections with keys of known kinds; `read_cfg` of DarkNet, but for what it lets pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from lowerdeck.dialects.darknet.sections import NETWORK, Key, known_keys, sections
from lowerdeck.frontends.errors import FrontendError, Problem

_MOST = 2**31
_TRAINING = ("dontload", "dontloadscales")
_NET_KEYS = ("height", "width", "channels", "inputs")
_MOST_LAYERS = 10_000


@dataclass
class Block:
    """A section of a cfg; `index` is that of its layer, -1 for the first one."""

    section: str
    line: int
    index: int
    given: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each key; the first one counts."""
    keys: dict[str, Key] = field(default_factory=dict[str, Key])
    """The keys that inference reads, as far as they are given."""

    @property
    def name(self) -> str:
        """The name of the layer, which a cfg does not give: its section and number."""
        return self.section if self.index < 0 else f"{self.section}_{self.index}"


class CfgParser:
    """Reads a cfg, and collects all that is wrong with it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def report(self, block: Block, message: str) -> None:
        """Note a problem with a section."""
        self.problems.append(
            Problem(self.path, block.name, block.section, f"line {block.line}: {message}")
        )

    def raise_problems(self) -> None:
        """FrontendError if there are any."""
        if self.problems:
            raise FrontendError(self.problems)

    def blocks(self) -> list[Block]:
        """The sections; FrontendError if the text has none, or does not begin with the net."""
        blocks = self._split(_text(self.path))
        if not blocks or blocks[0].section not in NETWORK:
            found = f"[{blocks[0].section}]" if blocks else "no section"
            raise FrontendError.of_file(
                self.path, f"found {found}, expected a cfg with [net] first"
            )
        if len(blocks) > _MOST_LAYERS:
            message = f"found {len(blocks)} sections, expected at most {_MOST_LAYERS}"
            raise FrontendError.of_file(self.path, message)
        for block in blocks[1:]:
            self._parse(block)
        return blocks

    def _split(self, text: str) -> list[Block]:
        blocks: list[Block] = []
        for number, line in enumerate(text.split("\n"), 1):
            stripped = re.sub(r"[ \t\r\n]", "", line)
            if stripped.startswith("["):
                section = stripped.removeprefix("[").removesuffix("]")
                blocks.append(Block(section, number, len(blocks) - 1))
            elif stripped and stripped[0] not in "#;\0":
                self._add(stripped, number, blocks)
        return blocks

    def _add(self, line: str, number: int, blocks: list[Block]) -> None:
        key, equals, value = line.partition("=")
        if not blocks or not equals or not value:
            where = "after a section" if not blocks else "with a key and a value"
            message = f"line {number}: found '{line[:60]}', expected key=value {where}"
            self.problems.append(Problem(self.path, "", "", message))
            return
        blocks[-1].given.setdefault(key, value)

    # Keys

    def _parse(self, block: Block) -> None:
        """Give a layer its keys."""
        section = sections().get(block.section)
        if section is None:
            self.report(block, f"the section is not known{_near(block.section, [*sections()])}")
            return
        for key, text in block.given.items():
            if key in section.keys:
                self._set(block, key, section.keys[key][0], text)
            elif key in _TRAINING and text != "0":
                self.report(
                    block, f"found {key}={text}, expected weights of all layers in the file"
                )
            elif near := _misspelled(key, section.keys):
                self.report(block, f"the key '{key}' is not known; did you mean '{near}'?")

    def _set(self, block: Block, key: str, kind: str, text: str) -> None:
        parsed = _value(kind, text)
        if parsed is None:
            self.report(block, f"found {key}={text[:60]}, expected {_KINDS[kind]}")
        else:
            block.keys[key] = parsed

    def net_sizes(self, block: Block) -> Mapping[str, int]:
        """The sizes of the input, 0 where they are not given."""
        sizes: dict[str, int] = dict.fromkeys(_NET_KEYS, 0)
        for key, text in block.given.items():
            if key in sizes:
                parsed = _value("int", text)
                if not isinstance(parsed, int) or parsed < 0:
                    self.report(block, f"found {key}={text[:60]}, expected a number")
                else:
                    sizes[key] = parsed
            elif near := _misspelled(key, sizes):
                self.report(block, f"the key '{key}' is not known; did you mean '{near}'?")
        return sizes


_KINDS = {
    "int": "an integer",
    "float": "a number",
    "text": "a word",
    "ints": "integers with commas between them",
    "floats": "numbers with commas between them",
}


def _value(kind: str, text: str) -> Key:
    """The value of a key, None if it is not of the kind; a comment may follow."""
    text = re.split(r"[#;]", text)[0]
    match kind:
        case "int":
            return _int(text)
        case "float":
            return _float(text)
        case "ints":
            numbers = [_int(part) for part in _parts(text)]
            ints = [number for number in numbers if number is not None]
            return ints if ints and len(ints) == len(numbers) else None
        case "floats":
            found = [_float(part) for part in _parts(text)]
            floats = [number for number in found if number is not None]
            return floats if floats and len(floats) == len(found) else None
        case _:
            return text or None


def _parts(text: str) -> list[str]:
    """What is between commas; one may be at the end."""
    return text.removesuffix(",").split(",")


def _int(text: str) -> int | None:
    found = re.fullmatch(r"([+-]?[0-9]{1,10})(\.0*)?", text)
    if found is None:
        return None
    number = int(found[1])
    return number if -_MOST <= number < _MOST else None


def _float(text: str) -> float | None:
    if not re.fullmatch(
        r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?", text
    ):
        return None
    return float(text)


_ALIKE = 0.8
"""How much of its letters a key shares with one that it is taken for."""


def _misspelled(key: str, keys: Iterable[str]) -> str | None:
    """
    The key that inference reads, and that one which no section has was meant to be; other unknown
    keys are left aside, as DarkNet does.
    """
    if key in known_keys():
        return None
    return next(iter(get_close_matches(key, list(keys), 1, _ALIKE)), None)


def unknown_keys(path: str) -> list[str]:
    """The keys of a cfg that no section has."""
    blocks = CfgParser(path).blocks()
    return sorted({key for block in blocks for key in block.given} - known_keys())


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8-sig", "replace")
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
