"""Small graphs that the tests of the tf1 frontend import, break and damage."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.tf1.graph_pb2 import (
    AttrValue,
    DataType,
    GraphDef,
    NodeDef,
    TensorProto,
    TensorShapeProto,
    VersionDef,
)

_TYPES = {
    np.dtype(np.float32): DataType.DT_FLOAT,
    np.dtype(np.int32): DataType.DT_INT32,
    np.dtype(np.bool_): DataType.DT_BOOL,
}


class Type(str):
    """An element type as the value of an attribute: `Type("float")`."""

    @property
    def enumerator(self) -> str:
        """Its name in DataType."""
        return f"DT_{self.upper()}"


class Shape(tuple[int, ...]):
    """A shape as the value of an attribute; -1 is not known."""


FLOAT, INT = Type("float"), Type("int32")


def attribute(value: Any) -> AttrValue:
    """The AttrValue for a value in Python."""
    match value:
        case AttrValue():
            return value
        case Type():
            return AttrValue(type=value.enumerator)
        case Shape():
            return AttrValue(shape=shape_proto(value))
        case bool():
            return AttrValue(b=value)
        case int():
            return AttrValue(i=value)
        case float():
            return AttrValue(f=value)
        case str():
            return AttrValue(s=value.encode())
        case TensorProto():
            return AttrValue(tensor=value)
        case np.ndarray():
            return AttrValue(tensor=tensor(cast(NDArray[Any], value)))
        case _:
            items = [attribute(item) for item in value]
            return AttrValue(
                list=AttrValue.ListValue(
                    i=[item.i for item in items if item.WhichOneof("value") == "i"],
                    type=[item.type for item in items if item.WhichOneof("value") == "type"],
                )
            )


def shape_proto(dims: tuple[int, ...]) -> TensorShapeProto:
    """A shape of known rank."""
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=dim) for dim in dims])


def tensor(array: NDArray[Any]) -> TensorProto:
    """A tensor by its content."""
    return TensorProto(
        dtype=_TYPES[array.dtype],
        tensor_shape=shape_proto(array.shape),
        tensor_content=array.tobytes(),
    )


def node(name: str, op: str, *inputs: str, **attributes: Any) -> NodeDef:
    """A node."""
    attr = {key: attribute(value) for key, value in attributes.items()}
    return NodeDef(name=name, op=op, input=inputs, attr=attr)


def const(name: str, value: Any, *inputs: str, dtype: Any = np.float32) -> NodeDef:
    """A constant; its inputs are control inputs."""
    array = np.array(value, dtype)
    kind = {np.float32: FLOAT, np.int32: INT}[dtype]
    return node(name, "Const", *inputs, value=array, dtype=kind)


def placeholder(name: str, shape: tuple[int, ...] | None = (), dtype: Type = FLOAT) -> NodeDef:
    """A placeholder; None is a shape without a rank."""
    proto = TensorShapeProto(unknown_rank=True) if shape is None else shape_proto(shape)
    return node(name, "Placeholder", dtype=dtype, shape=AttrValue(shape=proto))


def graph(*nodes: NodeDef, producer: int = 2000) -> GraphDef:
    """A graph of a producer."""
    return GraphDef(node=nodes, versions=VersionDef(producer=producer))


def doubling_loop() -> GraphDef:
    """`x` is doubled while it is below 100, and counted: fetch `y` and `count`."""
    frame = {"frame_name": "loop", "T": FLOAT}
    counter = {"frame_name": "loop", "T": INT}
    return graph(
        placeholder("x"),
        const("zero", 0, dtype=np.int32),
        node("enter_x", "Enter", "x", **frame),
        node("enter_n", "Enter", "zero", **counter),
        node("merge_x", "Merge", "enter_x", "next_x", T=FLOAT, N=2),
        node("merge_n", "Merge", "enter_n", "next_n", T=INT, N=2),
        const("limit", 100, "^merge_x"),
        node("less", "Less", "merge_x", "limit", T=FLOAT),
        node("condition", "LoopCond", "less"),
        node("switch_x", "Switch", "merge_x", "condition", T=FLOAT),
        node("switch_n", "Switch", "merge_n", "condition", T=INT),
        node("double", "AddV2", "switch_x:1", "switch_x:1", T=FLOAT),
        const("one", 1, "^double", dtype=np.int32),
        node("plus", "AddV2", "switch_n:1", "one", T=INT),
        node("next_x", "NextIteration", "double", T=FLOAT),
        node("next_n", "NextIteration", "plus", T=INT),
        node("y", "Exit", "switch_x", T=FLOAT),
        node("count", "Exit", "switch_n", T=INT),
    )
