"""The textual tests of a dialect leave none of its ops out."""

from pathlib import Path

import pytest
from xdsl.ir import Dialect

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("dialect", [Core, Buffer], ids=lambda dialect: dialect.name)
def test_every_op_is_printed_and_read_back(dialect: Dialect) -> None:
    words: set[str] = set()
    for path in FOLDER.glob(f"{dialect.name}_*.mlir"):
        text = path.read_text()
        if "RUN: LOWERDECK_GENERIC_ROUNDTRIP" in text:
            words.update(text.replace("(", " ").split())
    assert [op.name for op in dialect.operations if op.name not in words] == []
