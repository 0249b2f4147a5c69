"""Which values differ between the iterations of a loop."""

from __future__ import annotations

from xdsl.parser import Parser

from lowerdeck.dialects.buffer.kernel import FuncOp, StoreOp
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.loops.varying import is_varying, varying_values
from lowerdeck.passes.machinery.context import LowerdeckContext

BRANCH = """
buffer.func @f {
^bb0(%i: index, %x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
  %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
  %zero = arith.constant 0.0 : f32
  %is_less = arith.cmpf olt, %a, %zero : f32
  scf.if %is_less {
    %b = arith.negf %a : f32
    %c = arith.negf %zero : f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    scf.yield
  }
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
"""


def test_what_is_inside_of_a_branch_that_varies() -> None:
    context = LowerdeckContext()
    register_dialects(context)
    module = Parser(context, BRANCH).parse_module()
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    block = function.body.block
    varying = varying_values(block, [block.args[0]])
    assert {value.name_hint for value in varying} == {"i", "a", "is_less", "b"}
    (store,) = (op for op in all_ops(function) if isinstance(op, StoreOp))
    assert is_varying(store, varying)
