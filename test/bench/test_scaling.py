"""The chains that show how compile time grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx
import pytest
from scaling import chain, growth, render

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.interpret import find_function


@pytest.mark.parametrize("kind", ["convolutions", "elementwise"])
def test_nothing_of_a_chain_is_optimized_away(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "chain.onnx")
    cast(Any, onnx).save(chain(kind, 24), path)
    module, _ = import_and_lower(path, "optimized", CompileOptions())
    ops = [op for op in find_function(module, "main").body.block.ops if op.operands]
    assert len([op for op in ops if not isinstance(op, ConstantOp)]) == 24 + 1  # and the return


def entry(length: int, seconds: float) -> dict[str, Any]:
    return {
        "kind": "elementwise",
        "length": length,
        "python_seconds": seconds,
        "cc_seconds": 2 * seconds,
        "peak_bytes": 4_000_000,
    }


def test_growth_is_of_the_time_per_op() -> None:
    assert growth(entry(10, 1.0), entry(100, 15.0), "python_seconds") == pytest.approx(1.5)


def test_table() -> None:
    lines = render([entry(10, 1.0), entry(100, 15.0)]).splitlines()
    assert lines[1].split() == "elementwise 10 100.000 200.000 4.0 400.0".split()
    assert lines[2].split() == "elementwise 100 150.000 1.50 300.000 1.50 4.0 40.0".split()
