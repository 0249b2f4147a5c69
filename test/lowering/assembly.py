"""
The innermost loops in the assembly that gcc makes of C for a target, and what they compute with.

`loops_of(target, source)` gives them by function; `obstacle_to_assembly(target)` says why
there is no compiler for the target, for tests to be skipped with.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lowerdeck.lowering.targets import compiler_flags, target_named

_ARM = ("aarch64", "arm64")


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions, without labels and directives."""

    instructions: Sequence[str]
    is_arm: bool

    @property
    def vectors(self) -> list[str]:
        """Instructions on vectors, loads and stores among them."""
        return [text for text in self.instructions if self._pattern(0).search(text)]

    @property
    def scalars(self) -> list[str]:
        """Floating-point instructions that compute one number."""
        return [text for text in self.instructions if self._pattern(1).search(text)]

    @property
    def is_scalar(self) -> bool:
        """True if it computes with single numbers, but for what belongs to vectors beside them."""
        return len(self.scalars) > len(self.vectors)

    @property
    def spilled(self) -> list[str]:
        """Instructions that keep a vector in a fixed place of the stack, for want of registers."""
        place = _STACK_OF_ARM if self.is_arm else _STACK_OF_X86
        return [text for text in self.instructions if place.search(text)]

    def _pattern(self, number: int) -> re.Pattern[str]:
        return (_OF_ARM if self.is_arm else _OF_X86)[number]


_OF_ARM = (
    re.compile(r"\bv\d+\.(?:16b|8b|8h|4h|4s|2s|2d)|\b(?:ld[pr]|ldur|st[pr]|stur)\s+q\d"),
    re.compile(r"^f(?:n?m(?:ul|add|sub)|add|sub|div|max\w*|min\w*|sqrt)\s+[sdh]\d"),
)
_OF_X86 = (
    re.compile(
        r"^v?(?!movap|xorp|pxor)(?:\w+p[sd]\b|p[a-z]\w*\s[^#]*[xyz]mm|movdq[au]\w*|lddqu|broadcasts[sd])"
    ),
    re.compile(r"^v?(?:mul|add|sub|div|max|min|sqrt|fn?m(?:add|sub)\d+)s[sd]\b"),
)
"""
Instructions on vectors, and those that compute with single floating-point numbers. On x86, scalar
code has some of the former, too: copies of registers, and zeros.
"""

_STACK_OF_ARM = re.compile(r"\b[qv]\d+\b.*\[(?:sp|x29)(?:, -?\d+)?\]")
_STACK_OF_X86 = re.compile(r"^(?!movdqu|movup)(?=.*%[xyz]mm)(?:.*[\d\s]\(%rsp\)|.*-\d+\(%rbp\))")
"""
A vector and a place of the stack at a known distance; what lies in an array there is found by an
index. Loads that need no alignment are of arrays: the frame pointer may hold an address.
"""

_FUNCTION = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)*:$")
_LABEL = re.compile(r"(\.L\w+):$")
_JUMP = re.compile(r"^(?:j\w+|b|b\.?\w\w|cbn?z|tbn?z)\s(?:.*[\s,])?(\.L\w+)$")


def obstacle_to_assembly(target: str) -> str | None:
    """Why no assembly can be made for a target; None if it can."""
    compiler = _compiler(target)
    return None if shutil.which(compiler) else f"{compiler} not found"


def _compiler(target: str) -> str:
    """The system's gcc for its own kind of processor, else a cross compiler."""
    architectures = target_named(target).architectures
    if platform.machine() in architectures:
        return "gcc"
    return f"{architectures[0]}-linux-gnu-gcc"


def loops_of(target: str, source: Path) -> dict[str, list[Loop]]:
    """The innermost loops of every function of a C file, by its name."""
    output = source.with_suffix(".s")
    command = [_compiler(target), *compiler_flags(target), "-S", str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    is_arm = target_named(target).architectures == _ARM
    return {
        name: [Loop(loop, is_arm) for loop in _innermost(lines)]
        for name, lines in _functions(output.read_text())
    }


def _functions(assembly: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in map(str.strip, assembly.splitlines()):
        if (match := _FUNCTION.match(line)) is not None:
            yield name, lines
            name, lines = match[1], []
        elif _LABEL.match(line) or not line.startswith((".", "#", "//")):
            lines.append(line)
    yield name, lines


def _innermost(lines: Sequence[str]) -> Iterator[list[str]]:
    """What lies between labels and the jumps back to them, where no other loop lies in it."""
    places: dict[str, int] = {}
    last = -1
    for number, line in enumerate(lines):
        if (label := _LABEL.match(line)) is not None:
            places[label[1]] = number
        elif (jump := _JUMP.match(line)) is not None:
            start = places.get(jump[1])
            if start is not None and start > last:
                yield [text for text in lines[start:number] if not _LABEL.match(text)]
                last = number
