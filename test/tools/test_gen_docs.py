"""The reference pages are those of the definitions, and miss none of them."""

import re
import shutil
import subprocess
from inspect import cleandoc

import pytest

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.tools.gen_docs import DOCS, PAGES, specification


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    """`make docs` writes all of them."""
    if name.startswith("man/"):
        pytest.importorskip("argparse_manpage", reason="argparse-manpage is not installed")
    assert (DOCS / name).read_text() == PAGES[name](), f"docs/{name} is stale: run make docs"


def test_every_op_has_an_entry_with_its_constraints() -> None:
    page = PAGES["ops.md"]()
    entries = dict(re.findall(r"^#### `(\S+)`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    ops = [*Core.operations, *Buffer.operations]
    assert sorted(entries) == sorted(op.name for op in ops)
    for op in ops:
        found = specification(op)
        assert found.text in entries[op.name]
        assert re.findall(r"^- \((C\d+)\)", entries[op.name], re.MULTILINE) == [
            label for label in found.constraints if label.startswith("C")
        ]


def test_every_pass_has_an_entry_with_its_docstring() -> None:
    page = PAGES["passes.md"]()
    for name, factory in ALL_PASSES.items():
        cls = factory()
        assert cls.__dict__.get("__doc__"), f"{name} has no docstring"
        assert page.count(f"### {name}\n") == 1
        assert cleandoc(cls.__doc__ or "") in page


def test_links_lead_to_entries() -> None:
    page = PAGES["passes.md"]()
    headings = set(re.findall(r"^### (\S+)$", page, re.MULTILINE))
    assert set(re.findall(r"\]\(#(\S+?)\)", page)) <= headings


def test_arguments_of_all_commands_are_there() -> None:
    page = PAGES["cli.md"]()
    for words in (
        "### lowerdeck compile",
        "`--embed-weights`",
        "`--tune SECONDS`",
        "`--check-each`",
    ):
        assert words in page
    assert page.count("`--skip-nodes REGEX,...`") == 2  # of lowerdeck, and of opt-tool


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("man/")])
def test_manual_pages(name: str) -> None:
    """Every option of the commands, as groff shows it without a warning."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-Tascii", "-P-cbou", "-ww", "-rLL=10000n", str(DOCS / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert "NAME" in lines
    assert any(line.split(maxsplit=1) == ["--embed-weights"] for line in lines)
    assert any(line.strip().startswith("--skip-nodes REGEX,...") for line in lines)
    if name == "man/lowerdeck.1":
        assert any(line.strip() == "lowerdeck compile" for line in lines)
        assert any(line.strip().startswith("--tune SECONDS") for line in lines)
    else:
        assert any(line.strip().startswith("--check-each") for line in lines)
