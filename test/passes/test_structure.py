"""Keys of ops: equal where ops do the same, different where anything that matters is."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from lowerdeck.dialects.registry import register_dialects
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.structure import nameless_key, op_key, region_key


def parsed(text: str) -> ModuleOp:
    """The module of a text."""
    context = LowerdeckContext()
    register_dialects(context)
    return Parser(context, text).parse_module()


FUNCTION = """
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = core.kernel @k(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%i: tensor<2x3xf32>):
    %s = core.softmax %i axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %m = core.mul %s, %i : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    core.yield %m : tensor<2x3xf32>
  }
  func.return %b : tensor<2x3xf32>
}
"""


def whole(text: str) -> Hashable:
    return region_key(parsed(text).body, {})


def test_names_of_values_do_not_matter() -> None:
    renamed = FUNCTION
    for old, new in (("%a", "%0"), ("%s", "%first"), ("%i", "%argument"), ("%x", "%other")):
        renamed = renamed.replace(old, new)
    assert whole(renamed) == whole(FUNCTION)
    assert hash(whole(renamed)) == hash(whole(FUNCTION))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("core.mul %s, %i", "core.mul %i, %s"),
        ("core.mul", "core.div"),
        ("axis 1", "axis 0"),
        ("core.yield %m", "core.yield %s"),
        ("core.add %x, %y", "core.add %y, %x"),
        ("3xf32", "4xf32"),
        ("@k", "@l"),
        ("core.mul %s, %i", "core.mul %s, %a"),
    ],
)
def test_what_matters(old: str, new: str) -> None:
    assert whole(FUNCTION.replace(old, new)) != whole(FUNCTION)


def test_values_from_outside_are_themselves() -> None:
    """Two equal ops on two values are different, on one value equal, and not the same op."""
    text = FUNCTION.replace(
        "%b = core",
        """%c = core.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = core.add %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = core""",
    )
    (function,) = parsed(text).body.block.ops
    a, c, d, *_ = function.regions[0].block.ops
    assert op_key(a, {}) == op_key(c, {})
    assert op_key(a, {}) != op_key(d, {})
    # Values of a region whose key is built are their numbers.
    x, y = function.regions[0].block.args
    assert op_key(d, {x: 0, y: 0}) == op_key(a, {x: 0, y: 0})


def test_nameless() -> None:
    """Two kernels are one function if only what they are called, and called with, is different."""
    first, second = (
        next(op for op in parsed(text).walk() if op.name == "core.kernel")
        for text in (FUNCTION, FUNCTION.replace("@k(%a)", "@l(%x)"))
    )
    assert nameless_key(first) == nameless_key(second)
    other = next(
        op for op in parsed(FUNCTION.replace("axis 1", "axis 0")).walk() if op.name == "core.kernel"
    )
    assert nameless_key(first) != nameless_key(other)
