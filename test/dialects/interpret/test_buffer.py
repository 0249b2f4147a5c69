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


KERNEL = """
buffer.kernel @changed {
^bb0(%x : tensor<3xf32>, %w : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>):
  %s = core.slice %w [n - 1, 0] [1, 1] [1, 1] : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<1x1xf32>
  %r = core.reshape %s [1] : (tensor<1x1xf32>) -> tensor<1xf32>
  %y = core.sub %x, %r : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  core.yield %y : tensor<3xf32>
} {symbols = ["n"], LAYOUTS}
buffer.entry ["x", "w"] -> ["y"] {
^bb0(%x : !buffer.ref<[3] x f32>, %w : !buffer.ref<[2, k] x f32>, %y : !buffer.ref<[SIZE] x f32>):
  BODY
  buffer.return
}
"""  # noqa: E501


def run_kernel(layouts: str, body: str, size: int = 3) -> list[float]:
    """
    What the entry function writes to y for x = [1, 2, 3]; @changed takes the first of the last row
    of w from it, which is 10, and w lies column by column.
    """
    text = KERNEL.replace("LAYOUTS", layouts).replace("BODY", body).replace("SIZE", str(size))
    context = Context()
    for dialect in (Builtin, Arith, Core, Buffer):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    columns = np.array([[7, 8, 9, 10], [1, 1, 1, 1]], np.float32)
    inputs = {"x": np.array([1, 2, 3], np.float32), "w": columns}
    result = run_module(module, inputs)["y"]
    assert isinstance(result, np.ndarray)
    return result.tolist()


def layouts(result: str) -> str:
    return f"layouts = [#core.layout<0>, #core.layout<1, 0>, #core.layout<{result}>]"


CALL = (
    "buffer.call @changed(%x, %w, %y) <[k]> : "
    "(!buffer.ref<[3] x f32>, !buffer.ref<[2, k] x f32>, !buffer.ref<[SIZE] x f32>)"
)


def test_a_kernel_without_loops_reads_and_writes_by_layouts() -> None:
    assert run_kernel(layouts("0"), CALL) == [-9, -8, -7]
    bordered = CALL.replace("SIZE", "5")
    assert run_kernel(layouts("0 pad [1] [1]"), bordered, 5) == [0, -9, -8, -7, 0]


def test_a_kernel_without_loops_changes_its_argument_in_place() -> None:
    body = """
    buffer.copy %x, %y : !buffer.ref<[3] x f32>, !buffer.ref<[3] x f32>
    buffer.call @changed(%w, %y) <[k]> : (!buffer.ref<[2, k] x f32>, !buffer.ref<[3] x f32>)
    buffer.call @changed(%w, %y) <[k]> : (!buffer.ref<[2, k] x f32>, !buffer.ref<[3] x f32>)"""
    assert run_kernel(f"{layouts('0')}, in_place = #builtin.int<0>", body) == [-19, -18, -17]


def test_a_kernel_without_loops_needs_buffers_that_fit() -> None:
    with pytest.raises(InterpretError, match=r"@changed: .* of 8 elements, the tensor \[6, 2\]"):
        run_kernel(layouts("0"), CALL.replace("<[k]>", "<[k + 2]>"))
    overlapping = CALL.replace("(%x", "(%y")
    with pytest.raises(InterpretError, match="an output overlaps another buffer"):
        run_kernel(layouts("0"), overlapping)
