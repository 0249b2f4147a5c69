"""Schemas of operators from outside, as if onnx defined them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from onnx import defs
from xdsl.dialects.builtin import DictionaryAttr, UnrankedTensorType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.operators import (
    KINDS,
    CustomOperator,
    from_attributes,
)
from lowerdeck.dialects.core.types import COMPUTABLE
from lowerdeck.dialects.onnx.types import type_string

VERSION = 1
"""That of every operator from outside: the version of its domain says nothing of it."""


def schema_of(operator: CustomOperator) -> defs.OpSchema:
    """A schema in which every input and output may be a tensor of any type that C has."""
    schema: Any = defs.OpSchema
    types = sorted(filter(None, (type_string(UnrankedTensorType(one)) for one in COMPUTABLE)))
    required, optional = list(operator.inputs), list(operator.optional_inputs)
    options = [schema.FormalParameterOption.Single] * len(required)
    options += [schema.FormalParameterOption.Optional] * len(optional)

    def formals(names: Sequence[str], variable: str, options: Sequence[Any]) -> list[Any]:
        return [
            schema.FormalParameter(name, f"{variable}{k}", param_option=option)
            for k, (name, option) in enumerate(zip(names, options, strict=True))
        ]

    inputs = formals([*required, *optional], "T", options)
    single = [schema.FormalParameterOption.Single] * len(operator.outputs)
    outputs = formals(operator.outputs, "V", single)
    found = schema(
        operator.op_type,
        operator.domain,
        VERSION,
        inputs=inputs,
        outputs=outputs,
        type_constraints=[(formal.type_str, types, "any") for formal in (*inputs, *outputs)],
        attributes=[_attribute(operator, name) for name in operator.attributes],
    )
    return cast(defs.OpSchema, found)


def _attribute(operator: CustomOperator, name: str) -> Any:
    schema: Any = defs.OpSchema
    type_ = operator.type_of(name)
    kind = getattr(schema.AttrType, KINDS[type_])
    return schema.Attribute(name, kind, required=operator.attributes[name] is type_)


def parameters_of(operator: CustomOperator, properties: Mapping[str, Attribute]) -> dict[str, Any]:
    """The attributes of a node, with the defaults of those that it does not give."""
    given = from_attributes(DictionaryAttr(properties))
    defaults = {name: value for name, value in operator.attributes.items() if name not in given}
    return {**given, **defaults}
