"""The chains that show how compile time grows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import onnx
import pytest

from bench.scaling import chain, growth, render, render_decoders
from lowerdeck.compiler import CompileOptions, generate, import_and_lower
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.interpret import find_function
from models.decoders import gpt2


@pytest.mark.parametrize("kind", ["convolutions", "elementwise"])
def test_nothing_of_a_chain_is_optimized_away(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "chain.onnx")
    cast(Any, onnx).save(chain(kind, 24), path)
    module, _ = import_and_lower(path, "optimized", CompileOptions())
    ops = [op for op in find_function(module, "main").body.block.ops if op.operands]
    assert len([op for op in ops if not isinstance(op, ConstantOp)]) == 24 + 1  # and the return


@pytest.mark.parametrize("quantized", [False, True])
def test_the_c_of_a_decoder_grows_by_calls_alone(quantized: bool, tmp_path: Path) -> None:
    texts: list[str] = []
    sizes: list[int] = []
    for layers in (2, 3, 4):
        path = str(tmp_path / "decoder.onnx")
        cast(Any, onnx).save(gpt2(layers, quantized=quantized), path)
        generate(path, str(tmp_path), CompileOptions(target="x86-64-v3"))
        texts.append((tmp_path / "decoder.c").read_text())
        sizes.append((tmp_path / "decoder.weights").stat().st_size)
    assert len({text.count("\nLOWERDECK_KERNEL ") for text in texts}) == 1
    lines = [text.count("\n") for text in texts]
    calls = [len(re.findall(r"^  decoder_\w+\(", text, re.MULTILINE)) for text in texts]
    assert 0 < lines[2] - lines[1] == calls[2] - calls[1]
    assert lines[2] - lines[1] == lines[1] - lines[0]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]


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


def test_table_of_decoders() -> None:
    of_c = [{"lines": 1000, "functions": 9}, {"lines": 1100, "functions": 9}]
    decoders = [entry(k, k * 1.0) | c for k, c in zip((12, 24), of_c, strict=True)]
    lines = render_decoders(decoders).splitlines()
    assert lines[1].split() == "elementwise 12 9 1000 24.00 12.0".split()
    assert lines[2].split() == "elementwise 24 9 1100 1.10 48.00 2.00 24.0".split()
