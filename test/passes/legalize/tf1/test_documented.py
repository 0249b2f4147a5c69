"""docs/operators.md lists the TensorFlow operators that are legalized."""

from __future__ import annotations

import re
from pathlib import Path

from lowerdeck.dialects.tf1.signatures import known_operators
from lowerdeck.passes.legalize.tf1.framework import is_legalized

PAGE = Path(__file__).parents[4] / "docs" / "operators.md"


def test_all_are_listed() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## TensorFlow 1")[2].partition("\n## ")[0]
    text, *_, listed = section.strip().split("\n\n")
    legalized = [name for name in known_operators() if is_legalized(name)]
    assert re.findall(r"`(\w+)`", listed) == legalized
    assert text.startswith(f"{len(legalized)} operators are legalized")
