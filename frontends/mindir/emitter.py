"""Adds ops to blocks: constants, parameters, and primitives with the types that a file states."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp, constant_array, scalar
from lowerdeck.dialects.core.types import f32, i1, i64
from lowerdeck.dialects.mindir.ops import op_class
from lowerdeck.dialects.mindir.schema import schemas
from lowerdeck.dialects.plain import attribute_of
from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.mindir.mind_ir_pb2 import AttributeProto
from lowerdeck.frontends.mindir.model import ELEMENTS, MindirError, Model, Node
from lowerdeck.frontends.mindir.values import Memory, Value

Dims: TypeAlias = "tuple[int, ...] | None"
"""The sizes that a file states, -1 for open ones; None for an open number of them."""

_T = TypeVar("_T")


class ChangedError(Exception):
    """A parameter is assigned that was thought to be constant."""

    def __init__(self, name: str) -> None:
        self.name = name


class Emitter:
    """Adds ops, whose locations are the nodes that they come from."""

    def __init__(self, model: Model, changed: set[str]) -> None:
        self.model = model
        self.file = model.path
        self.changed = frozenset(changed)
        """The parameters that are states."""
        self.main = Block()
        """The body of the function, which begins with the constants."""
        self.location: LocationAttr = self.whole()
        """That of ops which are added."""
        self.dims: dict[SSAValue, Dims] = {}
        self._constants: dict[str, SSAValue] = {}

    @contextmanager
    def located(self, node: Node) -> Generator[None]:
        """Ops that are added come from a node, and so does what is wrong."""
        outer, self.location = self.location, self.locate(node.output)
        try:
            yield
        except MindirError as error:
            op_type = self.model.primitive_name(node) or "call"
            raise FrontendError([Problem(self.file, node.output, op_type, str(error))]) from None
        finally:
            self.location = outer

    def add(self, op: Operation, block: Block) -> None:
        """Add an op to a block, at the place of the node that is imported."""
        op.location = self.location
        block.add_op(op)

    def whole(self) -> LocationAttr:
        """The place of the model itself."""
        return FileLineColLoc(StringAttr(self.file), IntAttr(0), IntAttr(0))

    def locate(self, name: str) -> LocationAttr:
        """The place of what a file calls so."""
        return NameLoc(StringAttr(name), self.whole())

    def initial(self, name: str) -> ConstantOp:
        """What a parameter holds in the file."""
        return self.model.constant(self.model.parameters[name])

    def change(self, name: str) -> None:
        """State that a parameter is assigned."""
        if name not in self.changed:
            raise ChangedError(name)

    # Constants

    def parameter(self, name: str) -> SSAValue:
        """What a parameter holds that is never assigned."""
        if name not in self._constants:
            op = self.initial(name)
            op.location = self.locate(name)
            self.main.add_op(op)
            self._constants[name] = op.result
        return self._constants[name]

    def constant(self, node: Node) -> Value:
        """The value of a constant node; tensors are constants at the beginning."""
        found = node.attribute("value")
        if found is None:
            raise MindirError(f"constant '{node.output}' has no value")
        return self._constant(found, node.output)

    def _constant(self, found: AttributeProto, name: str) -> Value:
        if found.type in (AttributeProto.TUPLE, AttributeProto.LIST):
            return tuple(self._constant(item, f"{name}:{k}") for k, item in enumerate(found.values))
        if found.type in (AttributeProto.TENSORS, AttributeProto.TENSOR):
            if name not in self._constants:
                protos = list(found.tensors) or [found.t]
                if len(protos) != 1:
                    raise MindirError(f"constant '{name}' has {len(protos)} tensors, expected one")
                op = self.model.constant(protos[0])
                op.location = self.locate(name)
                self.main.add_op(op)
                self._constants[name] = op.result
            return self._constants[name]
        return self.plain(found)

    def plain(self, found: AttributeProto) -> Value:
        """A number, a text or a tuple of them."""
        kinds = AttributeProto
        match found.type:
            case kinds.TUPLE | kinds.LIST:
                return tuple(map(self.plain, found.values))
            case kinds.FLOAT | kinds.FLOAT16 | kinds.BFLOAT16:
                return found.f if found.HasField("f") else _only(found.floats)
            case kinds.DOUBLE:
                return found.d if found.HasField("d") else _only(found.doubles)
            case kinds.STRING:
                text = found.s if found.HasField("s") else _only(found.strings)
                return text.decode("utf-8", "replace")
            case kinds.BOOL:
                return bool(found.i if found.HasField("i") else _only(found.ints))
            case kinds.NONE | kinds.UNDEFINED:
                return None
            case _ if found.HasField("i") or found.ints:
                return found.i if found.HasField("i") else _only(found.ints)
            case _:
                raise MindirError(f"found a value of type {found.type}, expected a number or text")

    def known(self, value: Value) -> float | None:
        """The number that a value is known to be."""
        if isinstance(value, int | float):
            return value
        array = constant_array(value) if isinstance(value, SSAValue) else None
        return array.reshape(-1)[0].item() if array is not None and array.size == 1 else None

    # Primitives

    def call(
        self,
        op_type: str,
        inputs: Sequence[SSAValue | Attribute | float | bool],
        kind: Attribute,
        dims: Dims,
        block: Block,
    ) -> SSAValue:
        """The result of a primitive that is not in the file."""
        cls = op_class(op_type)
        assert cls is not None
        given: dict[str, Given] = {}
        for name, value in zip(cls.schema.arguments, inputs, strict=False):
            given[name] = value if isinstance(value, SSAValue) else plain_attribute(value)
        op = cls(given, [UnrankedTensorType(kind)])
        self.add(op, block)
        self.dims[op.results[0]] = dims
        return op.results[0]

    def number(self, number: float | bool, block: Block) -> SSAValue:
        """A scalar tensor of a plain number."""
        kind = i1 if isinstance(number, bool) else i64 if isinstance(number, int) else f32
        op = scalar(number, kind)
        self.add(op, block)
        self.dims[op.result] = ()
        return op.result

    def primitive(self, node: Node, inputs: Sequence[Value], block: Block) -> Value:
        """The results of a primitive."""
        primitive = self.model.primitive_name(node)
        assert primitive is not None
        schema = schemas()[primitive]
        formals = list(schema.arguments)
        inputs = [value for value in inputs if not isinstance(value, Memory)]
        if len(inputs) > len(formals):
            raise MindirError(f"found {len(inputs)} inputs of {primitive}, expected {formals}")
        given: dict[str, Given] = {}
        for name, value in zip(formals, inputs, strict=False):
            given[name] = self._given(value, block)
        for name, attribute in self.model.attributes(node).items():
            name = _RENAMED.get(name, name)
            if name in schema.arguments and name not in given:
                given[name] = _attribute(self.plain(attribute))
        types = _result_types(node)
        cls = op_class(primitive)
        assert cls is not None
        flat = list(_flat(types))
        op = cls(given, [UnrankedTensorType(each.element) for each in flat])
        self.add(op, block)
        for result, each in zip(op.results, flat, strict=True):
            self.dims[result] = each.dims
        return _nested(types, iter(op.results))

    def _given(self, value: Value, block: Block) -> Given:
        """A value as an argument of an op."""
        match value:
            case SSAValue():
                return value
            case tuple() if any(isinstance(item, SSAValue) for item in value):
                return [
                    item if isinstance(item, SSAValue) else self.number(_plain(item), block)
                    for item in value
                ]
            case _:
                return _attribute(value)


_RENAMED = {"format": "data_format", "groups": "group"}
"""Attributes of primitives that the file calls otherwise than their definition."""

_OPEN_SCALAR = 39
"""The type of a number that is not known."""


def is_order(constant: Node) -> bool:
    """True for the state of memory with which a graph begins."""
    value = constant.attribute("value")
    return value is not None and value.type in (AttributeProto.UMONAD, AttributeProto.IOMONAD)


@record
class _Tensor:
    """What the file states of a result."""

    element: Attribute
    dims: Dims


_Stated: TypeAlias = "_Tensor | list[_Stated]"


def _result_types(node: Node) -> _Stated:
    """What the file states of a result, or a list of that of several."""
    stated = node.attribute("shape")
    if stated is None:
        raise MindirError("the file does not state the type of the result")
    return _stated(stated)


def _stated(stated: AttributeProto) -> _Stated:
    if stated.type in (AttributeProto.TUPLE, AttributeProto.LIST):
        return [_stated(item) for item in stated.values]
    if len(stated.tensors) > 1:
        return [_stated(AttributeProto(type=stated.type, tensors=[t])) for t in stated.tensors]
    number = stated.tensors[0].data_type if stated.tensors else stated.type
    kind = ELEMENTS.get(number)
    if kind is None:
        raise MindirError(f"found a result of type {stated.type}, expected tensors")
    if not stated.tensors or stated.type == _OPEN_SCALAR:
        return _Tensor(kind, ())
    dims = tuple(stated.tensors[0].dims)
    return _Tensor(kind, None if -2 in dims else dims)


def _flat(types: _Stated) -> Iterator[_Tensor]:
    if isinstance(types, _Tensor):
        yield types
    else:
        for item in types:
            yield from _flat(item)


def _nested(types: _Stated, results: Iterator[SSAValue]) -> Value:
    if isinstance(types, _Tensor):
        return next(results)
    return tuple(_nested(item, results) for item in types)


def _attribute(value: Value) -> Attribute:
    """The attribute of a plain value; what is none is refused."""
    if isinstance(value, tuple):
        return ArrayAttr(map(_attribute, value))
    if value is None or isinstance(value, int | float | str):
        return attribute_of(value)
    raise MindirError(f"found {type(value).__name__} as an argument, expected a tensor")


def _plain(value: Value) -> float | bool:
    if not isinstance(value, int | float):
        raise MindirError(f"found {value} among tensors, expected numbers")
    return value


def _only(values: Sequence[_T]) -> _T:
    if len(values) != 1:
        raise MindirError(f"found {len(values)} values of an attribute, expected one")
    return values[0]
