"""What is known of the values of a graph: their types, and the elements of shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.blob import BlobAttr, ElidedBlobError
from lowerdeck.dialects.core.types import element_type, static_shape, tensor
from lowerdeck.dialects.onnx.ops import InitializerOp, OnnxOp, op_class
from lowerdeck.exporters.onnx.opset import NEW_OPSET, chosen_opset, opsets_of, versions_of
from lowerdeck.passes.legalize.inference import (
    declare_results,
    observe,
    set_types,
)
from lowerdeck.passes.legalize.symbolic import Elements
from lowerdeck.passes.legalize.walk import FunctionWalk


class Known:
    """
    What legalizing a copy of a module's functions told, and which operators can be used.

    Only what is outside of all subgraphs is known: the body of a loop may be legalized for several
    iterations, which need not have the same sizes.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._elements: dict[Operation, list[Elements | None]] = {}
        self._opsets: list[int] = []
        """Those that new nodes may be of, the best first."""
        for function in module.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                self._learn(function)
        self.choose_opsets(module)

    def choose_opsets(self, module: ModuleOp) -> None:
        """Let new nodes be of opsets that the nodes of a module are of."""
        found = opsets_of([module]).get("")
        functions = (op for op in module.body.block.ops if isinstance(op, FuncOp))
        wanted = max((chosen_opset(function, found) for function in functions), default=NEW_OPSET)
        versions = [wanted] if found is None else sorted(found, key=lambda v: abs(v - wanted))
        self._opsets = versions

    def _learn(self, function: FuncOp) -> None:
        from lowerdeck.passes.legalize.onnx.framework import OnnxWalk

        types: dict[Operation, list[Attribute | None]] = {}

        def note(op: Operation, values: Sequence[SSAValue | None], walk: FunctionWalk) -> None:
            if op.parent_op() is function:
                types[op] = [None if value is None else value.type for value in values]
                found = [None if v is None else _elements_of(v, walk) for v in values]
                if any(elements is not None for elements in found):
                    self._elements[op] = found

        observe(function, OnnxWalk, note)
        for op, found in types.items():
            set_types(op.results, found)
        declare_results(function)
        for op in list(function.body.walk()):
            if isinstance(op, OnnxOp) and op.op_type == "Loop":
                _declare_arguments(op)

    def node(
        self,
        op_type: str,
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
    ) -> OnnxOp:
        """A node of an operator in an opset that goes with all others."""
        cls = self._class_of(op_type)
        assert cls is not None, op_type
        self._opsets = [version for version in self._opsets if version in versions_of(cls)]
        return cls.create(
            operands=operands, result_types=result_types, properties=dict(properties or {})
        )

    def has(self, op_type: str) -> bool:
        """True if there is an operator of this name in one of the opsets that are possible."""
        return self._class_of(op_type) is not None

    def _class_of(self, op_type: str) -> type[OnnxOp] | None:
        classes = (op_class("", op_type, version) for version in self._opsets)
        return next((cls for cls in classes if cls is not None), None)

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a small tensor of integers as expressions, as far as they are known."""
        if not isinstance(value, OpResult) or value.op not in self._elements:
            return None
        return self._elements[value.op][value.index]


def _elements_of(value: SSAValue, walk: FunctionWalk) -> Elements | None:
    return walk.symbols.elements(value) if isinstance(value.type, TensorType) else None


def _declare_arguments(loop: OnnxOp) -> None:
    """
    What runtimes want to be told of the body of a loop: the number of the iteration and the
    condition are scalars, and a carried value that comes and goes with one known shape has it all
    the time, as a shape that changes is not known.
    """
    body = loop.regions[0].block
    scalars = [tensor(element_type(argument), []) for argument in body.args[:2]]
    carried = zip(loop.operands[2:], loop.results, strict=False)
    shapes = [
        first.type if first.type == last.type and _has_known_shape(first) else None
        for first, last in carried
    ]
    for argument, type_ in zip(tuple(body.args), [*scalars, *shapes], strict=False):
        if isinstance(argument.type, UnrankedTensorType) and type_ is not None:
            Rewriter.replace_value_with_new_type(argument, type_)


def _has_known_shape(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and static_shape(value) is not None


def constant(value: SSAValue | None) -> NDArray[Any] | None:
    """The elements of an initializer, unless they are strings or were left out of the text."""
    if value is None or not isinstance(op := value.owner, InitializerOp):
        return None
    if not isinstance(op.value, BlobAttr):
        return None
    try:
        return op.array()
    except ElidedBlobError:
        return None


def numbers(value: SSAValue | None) -> list[int] | None:
    """The elements of an initializer of integers."""
    array = constant(value)
    return None if array is None else [int(one) for one in array.reshape(-1)]


def scalar(value: SSAValue | None) -> float | None:
    """The number that all elements of an initializer are; None if there is no such number."""
    array = constant(value)
    if array is None or not array.size or array.dtype == np.bool_:
        return None
    first = array.reshape(-1)[0]
    return float(first) if (array == first).all() else None


def made_by(value: SSAValue | None, *op_types: str) -> OnnxOp | None:
    """The node of one of these operators that a value comes from."""
    if not isinstance(value, OpResult) or not isinstance(value.op, OnnxOp):
        return None
    return value.op if value.op.op_type in op_types and not value.op.domain else None


def only_user(value: SSAValue) -> Operation | None:
    """The op that uses a value, if it is one and uses it once."""
    return use.operation if value.has_one_use() and (use := value.first_use) else None
