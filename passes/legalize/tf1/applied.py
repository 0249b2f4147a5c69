"""Operators of TensorFlow applied to values of `core`, for frameworks that have the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.tf1.attributes import ELEMENTS, DTypeAttr, dtype_attr
from lowerdeck.dialects.tf1.ops import known_class
from lowerdeck.dialects.tf1.signatures import Signature, signature_of
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.ranks import require_ranks
from lowerdeck.passes.legalize.tf1.registry import legalizes

Operand: TypeAlias = "SSAValue | Sequence[SSAValue]"


def applied(
    builder: Legalizer, op_type: str, *operands: Operand, **attributes: Any
) -> list[SSAValue]:
    """
    What an operator without complex numbers gives for its formal inputs, in order; a list stands
    for an input of several values. Attributes are plain; types that inputs decide are left out.
    """
    signature = signature_of(op_type)
    handler = legalizes.get(op_type)
    assert signature is not None
    assert handler is not None
    if len(operands) != len(signature.inputs):
        builder.refuse(f"{len(operands)} inputs", str(len(signature.inputs)))
    if any(not isinstance(operand, SSAValue) and not operand for operand in operands):
        builder.refuse("no inputs", "one or more")
    found = _types(signature, operands)
    found |= {
        name: _attribute(value, signature.attrs[name].kind) for name, value in attributes.items()
    }
    values = [v for operand in operands for v in _listed(operand)]
    op = known_class(op_type)(values, found)
    op.location = builder.location
    Rewriter.insert_op(op, builder.point)
    try:
        inner = Tf1Legalizer(op, builder.symbols, {})
        inner.created = builder.created
        require_ranks(inner)
        # `wants` is about uses, which the results of this op never have.
        inner.wants = lambda index: index < len(op.outputs)
        results = list(handler(inner))
        inner.attrs.require_read()
    finally:
        op.detach()
        op.erase()
    return cast("list[SSAValue]", results)


def _listed(operand: Operand) -> Sequence[SSAValue]:
    return [operand] if isinstance(operand, SSAValue) else operand


def _types(signature: Signature, operands: Sequence[Operand]) -> dict[str, Attribute]:
    """The attributes that the types and the numbers of operands decide."""
    found: dict[str, Attribute] = {}
    for argument, operand in zip(signature.inputs, operands, strict=True):
        values = _listed(operand)
        if argument.type_attr is not None and values:
            found[argument.type_attr] = dtype_attr(values[0])
        if argument.number_attr is not None:
            found[argument.number_attr] = IntegerAttr(len(values), 64)
    return found


def _attribute(value: Any, kind: str) -> Attribute:
    match kind, value:
        case "type", _:
            return DTypeAttr(next(name for name, known in ELEMENTS.items() if known == value))
        case "list(int)", _:
            return cast(Attribute, DenseArrayBase.from_list(builtin_i64, list(value)))
        case "list(float)", _:
            return cast(Attribute, DenseArrayBase.from_list(builtin_f64, list(value)))
        case "bool", _:
            return BoolAttr.from_bool(bool(value))
        case "int", _:
            return IntegerAttr(int(value), 64)
        case "float", _:
            return FloatAttr(float(value), builtin_f64)
        case _:
            return StringAttr(str(value))
