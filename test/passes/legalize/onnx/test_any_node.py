"""One node of every operator, with inputs and attributes that nothing has looked at before."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, defs, helper

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.legalize.walk import LegalizationError
from lowerdeck.passes.machinery.contracts import ContractError

REFUSALS = FrontendError, LegalizationError, ContractError, LoweringError

ELEMENTS = {
    f"tensor({name})": int(TensorProto.DataType.Value(name.upper()))
    for name in ("float", "double", "float16", "int64", "int32", "int8", "uint8", "bool")
}
ATTRIBUTES: Mapping[str, Callable[[Random], Any]] = {
    "INT": lambda random: random.randrange(-2, 4),
    "INTS": lambda random: [random.randrange(-2, 4) for _ in range(random.randrange(1, 5))],
    "FLOAT": lambda random: random.choice([0.0, 0.5, 1.0]),
}
PER_OPERATOR = 4


def random_node(schema: Any, random: Random) -> ModelProto | None:
    """A model of one node, mostly wrong; None if it needs what is not made here."""
    make_node: Any = helper.make_node
    types: dict[str, int] = {}
    names: list[str] = []
    inputs: list[ValueInfoProto] = []
    constants: list[TensorProto] = []
    most = min(schema.max_input, len(schema.inputs) + 1)
    for index in range(random.randint(schema.min_input, most)):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if formal.option.name == "Optional" and random.random() < 0.3:
            names.append("")
            continue
        if formal.type_str not in types:
            allowed = sorted(formal.types & ELEMENTS.keys())
            if not allowed:
                return None
            types[formal.type_str] = ELEMENTS[random.choice(allowed)]
        names.append(name := f"i{index}")
        dims: list[Any] = [random.choice([0, 1, 2, 2, 3, "n"]) for _ in range(random.randrange(6))]
        if "n" in dims or random.random() < 0.7:
            inputs.append(helper.make_tensor_value_info(name, types[formal.type_str], dims))
        else:
            count = int(np.prod(np.array(dims, int)))
            numbers = [random.randrange(3) for _ in range(count)]
            constants.append(helper.make_tensor(name, types[formal.type_str], dims, numbers))
    attributes = _attributes(schema, random)
    if attributes is None:
        return None
    outputs = [f"o{index}" for index in range(max(1, schema.min_output))]
    node = make_node(schema.name, names, outputs, "node", **attributes)
    results = [ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=10)


def _attributes(schema: Any, random: Random) -> Mapping[str, Any] | None:
    made: dict[str, Any] = {}
    for name, attribute in schema.attributes.items():
        make = ATTRIBUTES.get(attribute.type.name)
        if make is None and attribute.required:
            return None
        if make is not None and (attribute.required or random.random() < 0.2):
            made[name] = make(random)
    return made


@cache
def all_schemas() -> Sequence[Any]:
    """The operators of ONNX."""
    found: Any = defs.get_all_schemas()
    return [one for one in found if one.domain == ""]


@pytest.mark.parametrize("letter", "ABCDEFGHILMNOPQRSTUWX")
def test_c_or_a_refusal(letter: str, tmp_path: Path) -> None:
    """Neither an exception nor an internal error, which would not be one of these."""
    schemas = [one for one in all_schemas() if one.name[0] == letter]
    judged = 0
    for schema in schemas:
        random = Random(zlib.crc32(schema.name.encode()))
        for _ in range(PER_OPERATOR):
            model = random_node(schema, random)
            if model is None:
                continue
            (file := tmp_path / "model.onnx").write_bytes(model.SerializeToString())
            judged += 1
            with suppress(*REFUSALS):
                import_and_lower(str(file), "legal", CompileOptions())
    assert judged >= len(schemas)


def test_every_operator_has_its_turn() -> None:
    assert {one.name[0] for one in all_schemas()} == set("ABCDEFGHILMNOPQRSTUWX")
