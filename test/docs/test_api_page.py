"""The page of the Python API has all that `lowerdeck` exports."""

import re
from pathlib import Path

import lowerdeck

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_every_exported_name_is_there() -> None:
    shown = re.findall(r"^::: lowerdeck\.(?:\w+\.)*(\w+)$", PAGE.read_text(), re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert set(lowerdeck.__all__) - set(shown) == {"__version__"}
