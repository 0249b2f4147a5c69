"""Loops of a million iterations: each takes as much memory, and time, as one of ten does."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

import lowerdeck

PAGE = 4096

BOUNDED = """
// Carries a number, and a vector that changes its size; each iteration has one more of its own.
func.func @main(%x : tensor<4xf32> {core.name = "x:0"}, %n : tensor<i32> {core.name = "n:0"}) -> (tensor<*xf32> {core.name = "v:0"}, tensor<*xf32> {core.name = "s:0"}) {
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %first = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<1xi32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %seven = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x07000000">} : () -> tensor<i32>
  %half = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000003F">} : () -> tensor<f32>
  %start = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32>
  %c = tf1.Less %zero, %n {T = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
  %ri, %rv, %rs = core.loop cond %c : tensor<*xi1> carry %zero, %x, %start : tensor<i32>, tensor<4xf32>, tensor<f32> -> tensor<*xi32>, tensor<*xf32>, tensor<*xf32> {
  ^bb0(%k : tensor<i64>, %i : tensor<*xi32>, %v : tensor<*xf32>, %s : tensor<*xf32>):
    %i1 = tf1.AddV2 %i, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %long = tf1.Size %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xi32>
    %rest = tf1.FloorMod %long, %seven {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %size = tf1.ExpandDims %rest, %zero {T = #tf1.dtype<int32>, Tdim = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %part = tf1.Slice %v, %first, %size {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<1xi32>, tensor<*xi32>) -> tensor<*xf32>
    %w = tf1.ConcatV2 %part, %x, %zero {T = #tf1.dtype<float>, N = 2 : i64, Tidx = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<4xf32>, tensor<i32>) -> tensor<*xf32>
    %upto = tf1.FloorMod %i, %seven {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %range = tf1.Range %zero, %upto, %one {Tidx = #tf1.dtype<int32>} : (tensor<i32>, tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %sum = tf1.Sum %range, %first {T = #tf1.dtype<int32>, Tidx = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<1xi32>) -> tensor<*xi32>
    %add = tf1.Cast %sum {SrcT = #tf1.dtype<int32>, DstT = #tf1.dtype<float>} : (tensor<*xi32>) -> tensor<*xf32>
    %less = tf1.Mul %s, %half {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %s1 = tf1.AddV2 %less, %add {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %more = tf1.Less %i1, %n {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
    core.yield %more, %i1, %w, %s1 : tensor<*xi1>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>
  }
  func.return %rv, %rs : tensor<*xf32>, tensor<*xf32>
}
"""  # noqa: E501

WRITTEN = """
// An array of as many elements as iterations, written from its end, and what it holds at last.
func.func @main(%x : tensor<4xf32> {core.name = "x:0"}, %n : tensor<i32> {core.name = "n:0"}) -> (tensor<*xf32> {core.name = "y:0"}) {
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %c = tf1.Less %zero, %n {T = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> tensor<*xi1>
  %ri, %rf = core.loop cond %c : tensor<*xi1> carry %zero, %f : tensor<i32>, tensor<*xf32> -> tensor<*xi32>, tensor<*xf32> {
  ^bb0(%k : tensor<i64>, %i : tensor<*xi32>, %g : tensor<*xf32>):
    %i1 = tf1.AddV2 %i, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
    %at = tf1.Sub %n, %i1 {T = #tf1.dtype<int32>} : (tensor<i32>, tensor<*xi32>) -> tensor<*xi32>
    %number = tf1.Cast %i {SrcT = #tf1.dtype<int32>, DstT = #tf1.dtype<float>} : (tensor<*xi32>) -> tensor<*xf32>
    %e = tf1.AddV2 %x, %number {T = #tf1.dtype<float>} : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
    %w = tf1.TensorArrayWriteV3 %h, %at, %e, %g {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %more = tf1.Less %i1, %n {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
    core.yield %more, %i1, %w : tensor<*xi1>, tensor<*xi32>, tensor<*xf32>
  }
  %all = tf1.Range %zero, %n, %one {Tidx = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<*xi32>
  %y = tf1.TensorArrayGatherV3 %h, %all, %rf {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
"""  # noqa: E501


def _compiled(path: Path, text: str) -> lowerdeck.Model:
    path.write_text(text)
    return lowerdeck.compile(path)


def _resident() -> int:
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_a_million_iterations_need_no_more_memory(tmp_path: Path) -> None:
    model = _compiled(tmp_path / "bounded.mlir", BOUNDED)
    x = np.arange(4, dtype=np.float32)
    vector, total = x, np.float32(0)
    for i in range(700):
        vector = np.concatenate([vector[: len(vector) % 7], x])
        total = total / 2 + np.float32(sum(range(i % 7)))
    found = model({"x:0": x, "n:0": np.array(700, np.int32)})
    before = _resident()
    # As many iterations more as make no difference to what comes out.
    last = model({"x:0": x, "n:0": np.array(700 + 12 * 7 * 12_000, np.int32)})
    assert _resident() - before < 1 << 20
    np.testing.assert_array_equal(found["v:0"], vector)
    np.testing.assert_array_equal(found["s:0"], total)
    np.testing.assert_array_equal(last["v:0"], vector)
    np.testing.assert_array_equal(last["s:0"], total)


def test_what_is_written_to_an_array_is_all_that_a_write_touches(tmp_path: Path) -> None:
    """Copies of the whole array would be a thousand times the work."""
    model = _compiled(tmp_path / "written.mlir", WRITTEN)
    x, count = np.arange(4, dtype=np.float32), 200_000
    begin = process_time()
    found = model({"x:0": x, "n:0": np.array(count, np.int32)})["y:0"]
    assert process_time() - begin < 10
    numbers = np.arange(count - 1, -1, -1, dtype=np.float32)
    np.testing.assert_array_equal(found, x + numbers[:, None])
