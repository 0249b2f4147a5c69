"""MindIR models that tests write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.mindir.mind_ir_pb2 import (
    AttributeProto,
    GraphProto,
    ModelProto,
    TensorProto,
)

_NUMBERS = {"float32": 1, "int32": 6, "int64": 7, "bool": 9}

FLOAT, INT, BOOL = "float32", "int32", "bool"

Type: TypeAlias = "tuple[str, list[int]]"
Stated: TypeAlias = "Type | list[Type] | None"
"""The type of a result, or of several, or of memory."""


def _tensor(array: NDArray[Any], name: str = "") -> TensorProto:
    number = _NUMBERS[array.dtype.name]
    return TensorProto(name=name, dims=array.shape, data_type=number, raw_data=array.tobytes())


def _value(value: Any) -> AttributeProto:
    kinds = AttributeProto
    match value:
        case np.ndarray():
            return kinds(type=kinds.TENSORS, tensors=[_tensor(cast("NDArray[Any]", value))])
        case None:
            return kinds(type=kinds.NONE)
        case "memory":
            return kinds(type=kinds.UMONAD)
        case bool():
            return kinds(type=kinds.BOOL, i=int(value))
        case int():
            return kinds(type=kinds.INT64, i=value)
        case float():
            return kinds(type=kinds.FLOAT, f=value)
        case str():
            return kinds(type=kinds.STRING, s=value.encode())
        case _:
            items = list(cast("tuple[Any, ...]", value))
            return kinds(type=kinds.TUPLE, values=[_value(item) for item in items])


class Graph:
    """A graph under construction; every method gives the name of what it adds."""

    def __init__(self, name: str, **inputs: Type | None) -> None:
        self.proto = GraphProto(name=name)
        for key, type_ in inputs.items():
            info = self.proto.input.add(name=f"{name}:{key}")
            if type_ is None:
                info.attr_info.type = AttributeProto.UMONAD
            else:
                info.tensor.add(data_type=_NUMBERS[type_[0]], dims=type_[1])

    def __getitem__(self, key: str) -> str:
        """The name of an input."""
        return f"{self.proto.name}:{key}"

    def parameter(self, name: str, array: NDArray[Any]) -> str:
        """A parameter of the model."""
        self.proto.parameter.append(_tensor(array, name))
        return name

    def constant(self, value: Any) -> str:
        """A constant: a number, a text, a tuple, an array, or "memory"."""
        name = f"{self.proto.name}_c{len(self.proto.node)}"
        node = self.proto.node.add(name=name, op_type="Constant", output=[name])
        attribute = _value(value)
        attribute.name = "value"
        node.attribute.append(attribute)
        return name

    def node(self, op_type: str, *inputs: str, type_: Stated = (FLOAT, [])) -> str:
        """The application of a primitive, a graph or a closure; `type_` is that of the result."""
        name = f"{self.proto.name}:{len(self.proto.node)}"
        node = self.proto.node.add(
            name=name, op_type=f"REF::{op_type}", input=inputs, output=[name]
        )
        stated = _stated(type_)
        stated.name = "shape"
        node.attribute.append(stated)
        return name

    def result(self, name: str) -> Graph:
        """The graph, which ends with a node."""
        self.proto.output.add(name=name)
        return self


def _stated(type_: Stated) -> AttributeProto:
    kinds = AttributeProto
    if isinstance(type_, list):
        return kinds(type=kinds.TUPLE, values=map(_stated, type_))
    if type_ is None:
        return kinds(type=kinds.UMONAD)
    tensor = TensorProto(data_type=_NUMBERS[type_[0]], dims=type_[1])
    return kinds(type=kinds.TENSORS, tensors=[tensor])


def write(
    path: Path, main: Graph, *functions: Graph, attributes: Mapping[str, Any] | None = None
) -> Path:
    """A model; `attributes` are those of primitives, by name."""
    model = ModelProto(
        ir_version="1.1",
        producer_name="test",
        producer_version="1",
        model_version="1",
        graph=main.proto,
        functions=[each.proto for each in functions],
        little_endian=True,
        mind_ir_version=3,
    )
    names = {each.proto.name for each in (main, *functions)}
    made = {node.name for each in (main, *functions) for node in each.proto.node}
    called = {
        node.op_type.removeprefix("REF::")
        for each in (main, *functions)
        for node in each.proto.node
        if node.op_type.startswith("REF::")
    }
    for name in sorted(called - names - made):
        primitive = model.primitives.add(name=name, op_type=name)
        for key, value in (attributes or {}).get(name, {}).items():
            attribute = _value(value)
            attribute.name = key
            primitive.attribute.append(attribute)
    path.write_bytes(model.SerializeToString())
    return path


def counter(path: Path) -> Path:
    """n, which lives on, grows by one; x * n is returned, of the new n."""
    main = Graph("main", x=(FLOAT, [3]))
    n = main.parameter("main:n", np.array(0, np.float32))
    start = main.constant("memory")
    one = main.constant(np.array(1, np.float32))
    added = main.node("AssignAdd", n, one, start)
    after = main.node("UpdateState", start, added, type_=None)
    held = main.node("Load", n, after)
    product = main.node("Mul", main["x"], held, type_=(FLOAT, [3]))
    last = main.node("Depend", product, after, type_=(FLOAT, [3]))
    return write(path, main.result(last))
