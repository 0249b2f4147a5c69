"""Nodes as operators of a newer opset, where they mean the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.onnx.ops import InitializerOp, OnnxOp, attribute_kinds, op_class
from lowerdeck.dialects.onnx.tensors import TensorAttr

_CHANGED: Mapping[str, Callable[[OnnxOp], bool]] = {
    "AveragePool": lambda op: not op.get_int("ceil_mode"),
    "DFT": lambda op: op.since_version >= 20,
    "GroupNormalization": lambda op: False,
    "PRelu": lambda op: op.since_version >= 7,
    "Resize": lambda op: False,
    "RoiAlign": lambda op: op.since_version >= 16,
    "Scan": lambda op: False,
    "Split": lambda op: len(op.operands) > 1,
}
"""
What newer versions may compute otherwise that take all that `op` has, and when they do not. Some
have an attribute more, or one that has become an input, whose default is not what the older ones
did.
"""


def can_raise(module: ModuleOp, opset: int) -> bool:
    """True if all standard nodes of a module can be operators of an opset."""
    return all(_newer(op, opset) is not None for op in _nodes(module))


def raise_opset(module: ModuleOp, opset: int) -> None:
    """Make all standard nodes of a module operators of an opset; `can_raise` is true."""
    for op in list(_nodes(module)):
        cls = _newer(op, opset)
        assert cls is not None, op.op_type
        if cls is not type(op):
            _replace(op, cls)


def _nodes(module: ModuleOp) -> Iterator[OnnxOp]:
    return (op for op in module.walk() if isinstance(op, OnnxOp) and not op.domain)


def _newer(op: OnnxOp, opset: int) -> type[OnnxOp] | None:
    """The class for an op in an opset, if it gives the same for the same operands."""
    name = op.op_type
    found = (op_class("", name, version) for version in range(op.since_version, opset + 1))
    classes = list(dict.fromkeys(cls for cls in found if cls is not None))
    if not classes or classes[0] is not type(op):
        return None
    if len(classes) > 1 and name in _CHANGED and not _CHANGED[name](op):
        return None
    fits = all(_is_extension(op, old, new) for old, new in pairwise(classes))
    return classes[-1] if fits else None


def _is_extension(op: OnnxOp, old: type[OnnxOp], new: type[OnnxOp]) -> bool:
    """True if a version only adds to the one before, or if what `op` has is moved by `_MOVED`."""
    a, b = old.schema, new.schema
    moved = _MOVED.get(op.op_type, "") if "axes" in attribute_kinds(old) else ""
    if b.deprecated or len(op.operands) > b.max_input or len(op.results) > b.max_output:
        return False
    if [i.option for i in a.inputs] != [i.option for i in b.inputs][: len(a.inputs)]:
        return False
    for name, before in a.attributes.items():
        after = b.attributes.get(name)
        if after is None:
            if name in op.properties and name != moved:
                return False
        elif (after.type, after.default_value) != (before.type, before.default_value):
            return False
    return not any(each.required for name, each in b.attributes.items() if name not in a.attributes)


_MOVED: Mapping[str, str] = {
    name: "axes"
    for name in (
        *("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"),
        *("ReduceL2", "ReduceProd", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
    )
}
"""Attributes that have become an input, the second one."""


def _replace(op: OnnxOp, cls: type[OnnxOp]) -> None:
    properties, operands = dict(op.properties), list(op.operands)
    moved = _MOVED.get(op.op_type)
    if moved is not None and moved in properties and moved not in attribute_kinds(cls):
        axes = op.get_ints(moved)
        initializer = InitializerOp(TensorAttr.of(np.array(axes, np.int64)))
        initializer.location = op.location
        Rewriter.insert_op(initializer, InsertPoint.before(op))
        del properties[moved]
        operands.append(initializer.output)
    regions = [op.detach_region(region) for region in tuple(op.regions)]
    new = cls.create(
        operands=operands,
        result_types=list(op.result_types),
        properties=properties,
        attributes=dict(op.attributes),
        regions=regions,
        location=op.location,
    )
    hints = [result.name_hint for result in op.results]
    Rewriter.replace_op(op, new)
    for result, hint in zip(new.results, hints, strict=True):
        result.name_hint = hint
