"""Handlers are found where they are defined, or it is said why not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lowerdeck.passes.legalize.table import HandlerTable


def test_a_module_that_cannot_be_imported_is_told_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "toy_handlers"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "broken.py").write_text("import no_such_module_of_toys\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    table: HandlerTable[int] = HandlerTable("toy_handlers")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_module_of_toys"):
            table.get("Relu")
    (package / "broken.py").write_text("")
    assert table.get("Relu") is None
