"""Linear ops that are left beside convolutions: how they are counted, and that there are none."""

from __future__ import annotations

from xdsl.parser import Parser

from bench.linear_ops import FREE, count, linear_ops
from lowerdeck.compiler import CompileOptions
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext
from models.corpus import Case

WINDOW = "strides [1] dilations [1] pads [0] [PAD] groups 1"
TYPE = "tensor<1x2x5xf32>"


def reasons(pad: int, uses: str, *lines: str) -> list[str]:
    """Those of the linear ops of a function of %x, with a weight %w, a factor %s, and a row %r."""
    text = f"""
    func.func @main(%x : {TYPE}) -> ({", ".join([TYPE] * len(uses.split(",")))}) {{
      %w = core.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
      %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
      %r = core.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
      {chr(10).join(lines)}
      func.return {uses} : {", ".join([TYPE] * len(uses.split(",")))}
    }}"""
    context = LowerdeckContext()
    register_dialects(context)
    text = text.replace("WINDOW", WINDOW.replace("PAD", str(pad)))
    if pad:
        text = text.replace("RESULT", "tensor<1x2x6xf32>")
    module = Parser(context, text.replace("RESULT", TYPE)).parse_module()
    return [reason for _, reason in linear_ops(module)]


CONVOLUTION = f"core.conv %i, %w WINDOW : ({TYPE}, tensor<2x2x1xf32>) -> RESULT"
SCALE = f"core.mul %i, %s : ({TYPE}, tensor<2x1xf32>) -> {TYPE}"
SUM = f"core.add %i, %s : ({TYPE}, tensor<2x1xf32>) -> {TYPE}"
ROW = f"core.mul %i, %r : ({TYPE}, tensor<5xf32>) -> {TYPE}"


def after(line: str, operand: str) -> str:
    return line.replace("%i", operand)


def test_reasons() -> None:
    conv, scale = f"%c = {after(CONVOLUTION, '%x')}", f"%y = {after(SCALE, '%c')}"
    assert reasons(0, "%y", conv, scale) == [FREE]
    assert reasons(0, "%y, %c", conv, scale) == ["shared"]
    assert reasons(0, "%y", conv, f"%y = {after(ROW, '%c')}") == []
    assert reasons(0, "%y", f"%y = {after(SCALE, '%x')}") == []
    before, ahead = f"%a = {after(SUM, '%x')}", f"%y = {after(CONVOLUTION, '%a')}"
    assert reasons(0, "%y", before, ahead) == [FREE]
    assert reasons(0, "%y, %a", before, ahead) == ["other"]
    cut = f"%z = core.slice %y [0, 0, 0] [1, 2, 5] [1, 1, 1] : (RESULT) -> {TYPE}"
    assert reasons(1, "%z", before, ahead, cut) == ["padded"]


def _left(case: Case) -> list[str]:
    found = count(str(case.model), CompileOptions(outputs=case.outputs))
    return [text for text, reason in found if reason == FREE]


def test_none_is_left_in_tensorflow(tf1_case: Case) -> None:
    # Without a convolution there is nothing that an op could be left beside.
    assert b"Conv" not in tf1_case.model.read_bytes() or _left(tf1_case) == []


def test_none_is_left_in_caffe(caffe_case: Case) -> None:
    assert _left(caffe_case) == []
