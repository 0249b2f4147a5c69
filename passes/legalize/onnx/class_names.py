"""Names of the classes that outputs of classifiers number."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.names import CLASSES, value_names
from lowerdeck.dialects.onnx.ops import OnnxOp

_FORWARDING = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "ZipMap"})
"""Operators whose result holds the classes that their first operand holds."""


def note_class_names(function: FuncOp) -> None:
    """Let a function say what the numbers in outputs stand for that are classes with names."""
    last = function.body.block.last_op
    if not isinstance(last, ReturnOp):
        return
    names = value_names(function.res_attrs, len(last.arguments))
    found = {
        name: ArrayAttr(map(StringAttr, classes))
        for name, value in zip(names, last.arguments, strict=True)
        if (classes := _classes(value))
    }
    if found:
        function.attributes[CLASSES] = DictionaryAttr(found)


def _classes(value: SSAValue) -> tuple[str, ...]:
    """The classes of a value that is the first result of a classifier."""
    while isinstance(op := value.owner, OnnxOp):
        if op.op_type in _FORWARDING:
            value = op.operands[0]
            continue
        is_label = value is op.results[0] and "classlabels_strings" in op.properties
        return (op.get_strings("classlabels_strings") or ()) if is_label else ()
    return ()
