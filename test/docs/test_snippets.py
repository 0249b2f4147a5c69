"""
What the documents show is run: README.md, and the pages of docs/ that are written by hand.

The blocks of a page are run in order, in a folder that has `examples`, and `model.onnx`:

- a block with a title is a file of that name, or its next part; if the title begins with `part of`,
  it is found in that file, of the sources or made by a command;
- `sh` is run, each line a command that succeeds, and `python` without a title is a program;
- `text` with the title `prints` is what the block before it prints, `...` being anything; other
  `text` is a picture.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from lowerdeck.plugins import temporarily
from lowerdeck.tools.gen_docs import PAGES as GENERATED
from lowerdeck.tools.lowerdeck import main as lowerdeck
from lowerdeck.tools.opt_tool import main as opt_tool

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md") if p.name not in GENERATED),
]
FILES = {
    "model.onnx": "examples/digits/digits.onnx",
    "counter.tflite": "test/frontends/tflite_models/counter.tflite",
    "counter.pt2": "test/frontends/pt2_models/counter.pt2",
    "loop.json": "test/frontends/paddle_models/loop.json",
    "loop.pdiparams": "test/frontends/paddle_models/loop.pdiparams",
    "counter.mindir": "test/frontends/mindir_models/counter.mindir",
    "net-symbol.json": "test/frontends/mxnet_models/net-symbol.json",
    "net-0000.params": "test/frontends/mxnet_models/net-0000.params",
    "tiny.cfg": "test/frontends/darknet_models/tiny.cfg",
    "tiny.weights": "test/frontends/darknet_models/tiny.weights",
    "deploy.prototxt": "examples/digits/digits_lenet.prototxt",
    "deploy.caffemodel": "examples/digits/digits_lenet.caffemodel",
    "export/1": "test/frontends/saved_models/trained/model",
    "export/2": "test/frontends/saved_models/examples/model",
    **{name: name for name in ("examples", "frontends", "lowering", "passes", "test")},
}
"""What there is in the folder of a page, by name."""

BLOCK = re.compile(r'^```(\w*)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PRINTS, PART_OF = "prints", "part of "


MAINS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "lowerdeck": lowerdeck,
    "opt-tool": opt_tool,
}
"""Commands that need no process of their own, where the line needs no shell."""


@dataclass(frozen=True)
class Block:
    """Code in a page."""

    place: str
    """Page and line."""
    language: str
    title: str
    text: str


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(f"{page}:{line}", match[1], match[2] or "", match[3])


def check(blocks: Sequence[Block]) -> None:
    """Run blocks in the working folder; AssertionError for the first that is wrong."""
    printed = ""
    begun: set[str] = set()
    for block in blocks:
        title = block.title
        if title == PRINTS:
            assert agrees(block.text, printed), f"{block.place}: prints\n{printed}"
        elif title.startswith(PART_OF):
            whole = Path(title.removeprefix(PART_OF)).read_text()
            assert block.text in whole, f"{block.place}: is not {title}"
        elif title:
            Path(title).parent.mkdir(parents=True, exist_ok=True)
            with open(title, "a" if title in begun else "w") as file:
                file.write(block.text)
            begun.add(title)
        elif block.language == "sh":
            printed = "".join(_output(block.place, line) for line in _lines(block.text))
        elif block.language == "python":
            with redirect_stdout(StringIO()) as out:
                exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})
            printed = out.getvalue()
        else:
            assert block.language == "text", f"{block.place}: nothing runs this block"


def agrees(expected: str, printed: str) -> bool:
    """True if it is what was printed, but for `...` and space at the ends."""
    pattern = ".*".join(map(re.escape, expected.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def _lines(text: str) -> list[str]:
    """The commands; `\\` at the end of a line joins it to the next, and comments are left out."""
    lines = text.replace("\\\n", "").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _output(place: str, line: str) -> str:
    """What a command prints; AssertionError if it fails."""
    words = shlex.split(line, comments=True)
    if words[0] in MAINS and re.search(r"[|<>;&$*]", line) is None:
        with StringIO() as out, redirect_stdout(out), redirect_stderr(out):
            status = MAINS[words[0]](words[1:])
            assert status == 0, f"{place}: {line}: {out.getvalue()}"
            return out.getvalue()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, f"{place}: {line}: {result.stdout}"
    return result.stdout


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, source in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(ROOT / source)
    with temporarily():
        check([*blocks_of(page, (ROOT / page).read_text())])


WRONG = {
    "other_output": '```sh\necho one\n```\n```text title="prints"\ntwo\n```\n',
    "more_output": '```python\nprint(1)\nprint(2)\n```\n```text title="prints"\n1\n```\n',
    "failure": "```sh\nfalse\n```\n",
    "failure_in_process": "```sh\nopt-tool missing.mlir\n```\n",
    "no_part": '```sh\necho one > f\n```\n```c title="part of f"\ntwo\n```\n',
    "not_run": "```c\nint x;\n```\n",
    "exception": "```python\nraise ValueError\n```\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ValueError)):
        check([*blocks_of("page", WRONG[name])])


def test_what_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        '```python title="a/b.py"\nprint("one",\n```\n```python title="a/b.py"\n      "two")\n```\n'
        "```sh\npython a/b.py\ncat a/b.py | head -n 1\n```\n"
        '```text title="prints"\none ...\nprint("one",\n```\n'
        '```python title="part of a/b.py"\n      "two")\n```\n'
    )
    check([*blocks_of("page", text)])
