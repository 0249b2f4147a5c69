"""The reference pages are those of the definitions, and miss none of them."""

import re
from inspect import cleandoc

import pytest

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.tools.gen_docs import DOCS, PAGES, specification


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    """`make docs` writes all of them."""
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
