"""Dimension symbols: their uses in attributes and ops, and their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute, SSAValue

from lowerdeck.dialects.core.constant import BindSymbolsOp, FromDimsOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import (
    DimsAttr,
    OptionalType,
    SequenceType,
    TensorEncoding,
    dims_of,
    tensor,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.driver import Rewriter

_NONE: frozenset[str] = frozenset()
_WITH_DIMS = (DimsAttr, TensorEncoding)
_WITHOUT_DIMS = (DenseArrayBase, FloatAttr, IntegerAttr, StringAttr)
"""Told first: most attributes are of these."""


def symbols_of(attribute: Attribute) -> frozenset[str]:
    """The dimension symbols that occur in a type or property."""
    if isinstance(attribute, TensorType):
        encoding = cast("TensorType[Attribute]", attribute).encoding
        return _NONE if isinstance(encoding, NoneAttr) else symbols_of(encoding)
    if isinstance(attribute, _WITHOUT_DIMS):
        return _NONE
    if isinstance(attribute, _WITH_DIMS):
        return _NONE.union(*(expr.symbols for expr in attribute.data))
    if isinstance(attribute, ArrayAttr):
        return _NONE.union(*map(symbols_of, cast("ArrayAttr[Attribute]", attribute).data))
    if isinstance(attribute, DictionaryAttr):
        return _NONE.union(*map(symbols_of, attribute.data.values()))
    if isinstance(attribute, Data):
        return _NONE
    if isinstance(attribute, ParametrizedAttribute):
        parameters = cast("tuple[Attribute, ...]", cast(Any, attribute).parameters)
        return _NONE.union(*map(symbols_of, parameters))
    return _NONE


def substitute(attribute: Attribute, values: Mapping[str, Expr]) -> Attribute:
    """An attribute or type with symbols replaced."""
    if not symbols_of(attribute) & values.keys():
        return attribute
    if isinstance(attribute, TensorType):
        type_ = cast("TensorType[Attribute]", attribute)
        encoding = cast(Any, type_.encoding)
        dims = [dim.substitute(values) for dim in encoding.data]
        return tensor(type_.element_type, dims)
    if isinstance(attribute, DimsAttr):
        return DimsAttr.of(dim.substitute(values) for dim in attribute.data)
    if isinstance(attribute, ArrayAttr):
        parts = cast("ArrayAttr[Attribute]", attribute)
        return ArrayAttr([substitute(part, values) for part in parts])
    if isinstance(attribute, DictionaryAttr):
        return DictionaryAttr(
            {name: substitute(part, values) for name, part in attribute.data.items()}
        )
    if isinstance(attribute, FunctionType):
        return FunctionType.from_lists(
            [substitute(type_, values) for type_ in attribute.inputs],
            [substitute(type_, values) for type_ in attribute.outputs],
        )
    if isinstance(attribute, SequenceType):
        return SequenceType(substitute(attribute.element, values))
    if isinstance(attribute, OptionalType):
        return OptionalType(substitute(attribute.element, values))
    raise NotImplementedError(f"symbols in {attribute.name}")


def symbols_used_by(op: Operation) -> frozenset[str]:
    """The symbols in the properties, attributes and result types of one op (not of its regions)."""
    return _NONE.union(*filter(None, map(symbols_of, _attributes(op))))


def _attributes(op: Operation) -> Iterator[Attribute]:
    yield from op.properties.values()
    yield from op.attributes.values()
    yield from op.result_types
    for region in op.regions:
        for block in region.blocks:
            yield from block.arg_types


def bind_dims(
    rewriter: Rewriter, anchor: Operation, value: SSAValue, like: SSAValue, made: Mapping[int, str]
) -> SSAValue:
    """
    Bind the symbols `made`, by axis, to the dimensions of `value`, before `anchor`; returns `value`
    with the type of `like`, which has these symbols.
    """
    if not made:
        return value
    sizes = FromDimsOp([dims_of(value)[axis] for axis in made])
    rewriter.insert_before(anchor, sizes)
    rewriter.insert_before(anchor, BindSymbolsOp(sizes.result, list(made.values())))
    return rewriter.insert_before(anchor, ReshapeOp(value, dims_of(like))).result
