"""Mistakes of lowering that the interpreter of buffer is there to show."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.dialects.interpret import InterpretError, run_module

COPY = """
buffer.func @copy {
^bb0(%x : !buffer.ref<[3] x f32>, %y : !buffer.ref<[3] x f32>):
  buffer.for <[FROM, TO, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[3] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[3] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
"""

MODULE = """
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[3] x f32>, %y : !buffer.ref<[3] x f32>):
  BODY
  buffer.return
} {workspace = #core.dims<[128]>}
"""

TYPES = "(!buffer.ref<[3] x f32>, !buffer.ref<[3] x f32>)"


def run(body: str, first: int = 0, last: int = 3) -> list[float]:
    """What is written to y for x = [1, 2, 3]; @copy copies elements `first` to `last`."""
    kernel = COPY.replace("FROM", str(first)).replace("TO", str(last))
    context = Context()
    for dialect in (Builtin, Arith, Core, Buffer):
        context.load_dialect(dialect)
    module = Parser(context, kernel + MODULE.replace("BODY", body)).parse_module()
    module.verify()
    result = run_module(module, {"x": np.array([1, 2, 3], np.float32)})["y"]
    assert isinstance(result, np.ndarray)
    return result.tolist()


def test_copy() -> None:
    assert run(f"buffer.call @copy(%x, %y) <[]> : {TYPES}") == [1, 2, 3]


@pytest.mark.parametrize(("first", "last"), [(0, 4), (-1, 3)])
def test_access_outside_of_a_buffer(first: int, last: int) -> None:
    with pytest.raises(InterpretError, match="of a dimension of 3"):
        run(f"buffer.call @copy(%x, %y) <[]> : {TYPES}", first, last)


def test_memory_that_nobody_wrote_shows() -> None:
    """It is poison also where it was written under another name before."""
    alloc = "buffer.alloc {dynamic = false, offset = #core.dims<[64]>} : !buffer.ref<[3] x f32>"
    body = f"""
    %a = {alloc}
    buffer.call @copy(%x, %a) <[]> : {TYPES}
    %b = {alloc}
    buffer.call @copy(%b, %y) <[]> : {TYPES}"""
    poison = np.frombuffer(b"\x7f" * 12, np.float32).tolist()
    assert run(body) == poison


def test_outputs_overlap_nothing() -> None:
    with pytest.raises(InterpretError, match="overlaps"):
        run(f"buffer.call @copy(%x, %x) <[]> : {TYPES}")
