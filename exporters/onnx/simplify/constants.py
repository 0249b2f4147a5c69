"""Nodes whose results are known become initializers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype, static_shape
from lowerdeck.dialects.dims import constants
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.interpret import InterpretError, run_module
from lowerdeck.dialects.onnx.ops import NONE, InitializerOp, OnnxOp
from lowerdeck.dialects.onnx.tensors import TensorAttr
from lowerdeck.exporters.onnx.simplify.known import Known, constant
from lowerdeck.passes.fold.fold_constants import GROWTH_LIMIT
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.passes.legalize.symbolic import Elements
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter

Array = NDArray[Any]

_STAYS = (
    # Runtimes look for these around integer products.
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    # They take long.
    *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv"),
    *("LSTM", "GRU", "RNN", "Einsum"),
)

_STEPS = 1000
"""Ops of core that an op may take."""

_GROWS = (
    *("ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile"),
    *("Upsample", "SequenceEmpty"),
)
"""What may give any number of elements for few."""


class FoldNode(Pattern[list[Array]]):
    """f(constants) -> constants [not much larger]"""

    name = "fold-node"
    roots = (OnnxOp,)

    def match(self, op: OnnxOp) -> Match[list[Array]] | None:
        if op.regions or not op.has_trait(Pure) or op.op_type in _STAYS:
            return None
        if any(result.type == NONE for result in op.results) or not _is_small(op):
            return None
        arguments = [constant(value) for value in op.operands]
        pairs = zip(arguments, op.operands, strict=True)
        if any(array is None and value.type != NONE for array, value in pairs):
            return None
        arrays = _evaluated(op)
        if arrays is None or not all(map(_has_type, op.results, arrays)):
            return None
        return Match((op,), "its operands are constants", arrays)

    def rewrite(self, match: Match[list[Array]], rewriter: Rewriter) -> None:
        new = [rewriter.add(InitializerOp(TensorAttr.of(array))) for array in match.data]
        rewriter.replace(match.root, [op.output for op in new])


def _evaluated(op: OnnxOp) -> list[Array] | None:
    """The results of an op of constants, as what it is legalized to gives them."""
    copies: dict[SSAValue, SSAValue] = {}
    block = Block()
    for value in dict.fromkeys(op.operands):
        assert isinstance(value.owner, Operation)
        block.add_op(copy := value.owner.clone())
        copies[value] = copy.results[0]
    block.add_op(new := op.clone(copies))
    block.add_op(ReturnOp(*new.results))
    function = FuncOp("main", ([], [result.type for result in new.results]), Region(block))
    module = ModuleOp([function])
    try:
        LegalizeOnnxPass().apply(Context(), module)
        results = run_module(module, {}, max_steps=_STEPS)
    except (CompileError, InterpretError):
        return None
    arrays = [each for each in results.values() if isinstance(each, np.ndarray)]
    return arrays if len(arrays) == len(new.results) else None


def _has_type(value: SSAValue, array: Array) -> bool:
    return _dtype_of(value) in (None, array.dtype)


def _dtype_of(value: SSAValue) -> np.dtype[Any] | None:
    try:
        return numpy_dtype(element_type(value))
    except (KeyError, TypeError):
        return None


def _is_small(op: OnnxOp) -> bool:
    """
    True if the results are not much larger than the operands that they replace. What other nodes
    read stays: a table of embeddings is not written once more for the product that reads it
    transposed.
    """
    shapes = [static_shape(r) if isinstance(r.type, TensorType) else None for r in op.results]
    if any(shape is None for shape in shapes):
        return op.op_type not in _GROWS
    made = sum(prod(shape) * 8 for shape in shapes if shape is not None)
    if made <= GROWTH_LIMIT:
        return True
    given = 0
    for value in op.operands:
        if isinstance(owner := value.owner, InitializerOp) and _goes_with(op, value):
            given += prod(owner.output.type.get_shape()) * 8
    return made <= given + GROWTH_LIMIT


def _goes_with(op: OnnxOp, value: SSAValue) -> bool:
    """True if all that reads an initializer is `op`, or has constants alone and is folded, too."""

    def is_folded(user: Operation) -> bool:
        known = (isinstance(v.owner, InitializerOp) or v.type == NONE for v in user.operands)
        return isinstance(user, OnnxOp) and user.op_type not in _STAYS and all(known)

    return all(use.operation is op or is_folded(use.operation) for use in value.uses)


class FoldKnown(Pattern[Array]):
    """f(shapes) -> constant [all elements are known numbers]"""

    name = "fold-known"
    roots = (OnnxOp,)

    def __init__(self, known: Known) -> None:
        self._known = known

    def match(self, op: OnnxOp) -> Match[Array] | None:
        if len(op.results) != 1 or op.regions or not op.has_trait(Pure):
            return None
        elements = self._known.elements(result := op.results[0])
        if elements is None or any(element is None for element in elements.reshape(-1)):
            return None
        values, dtype = constants(elements.reshape(-1)), _dtype_of(result)
        if values is None or dtype is None:
            return None
        array = np.array(values, object).astype(dtype).reshape(elements.shape)
        return Match((op,), "its elements are known", array)

    def rewrite(self, match: Match[Array], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, InitializerOp(TensorAttr.of(match.data)))


class FoldTarget(Pattern[Array]):
    """
    reshape(x, shape), expand(x, shape) -> with a constant for shape

    A size that is one of the input's is a 0 for Reshape and a 1 for Expand. What is left may be one
    size that Reshape finds itself, if all others are numbers.
    """

    name = "fold-target"
    roots = (OnnxOp,)

    def __init__(self, known: Known) -> None:
        self._known = known

    def match(self, op: OnnxOp) -> Match[Array] | None:
        if op.op_type not in ("Reshape", "Expand") or op.domain or len(op.operands) < 2:
            return None
        elements = self._known.elements(op.operands[1])
        if elements is None or not isinstance(op.operands[0].type, TensorType):
            return None
        target = _reshape(op, elements) if op.op_type == "Reshape" else _expand(op, elements)
        if target is None:
            return None
        return Match((op,), "its shape is known", np.array(target, np.int64))

    def rewrite(self, match: Match[Array], rewriter: Rewriter) -> None:
        root = match.root
        target = rewriter.add(InitializerOp(TensorAttr.of(match.data)))
        rewriter.set_operands(root, [root.operands[0], target.output, *root.operands[2:]])


def _reshape(op: OnnxOp, elements: Elements) -> list[int] | None:
    dims, found, is_open = dims_of(op.operands[0]), list[int](), False
    if op.since_version >= 14 and op.get_int("allowzero"):
        return None
    for axis, element in enumerate(elements):
        if element is not None and element.value is not None:
            found.append(element.value)
        elif element is not None and axis < len(dims) and element == dims[axis]:
            found.append(0)
        else:
            found.append(-1)
            is_open = True
    given = [e.value for e in elements if e is not None and e.value is not None]
    # A zero that is given means a copy; beside a copy, which may be zero, no size can be found.
    if len(given) == len(found) or 0 in given or (is_open and 0 in found):
        return None
    return found if found.count(-1) <= 1 and min(found) >= -1 else None


def _expand(op: OnnxOp, elements: Elements) -> list[int] | None:
    dims, found = dims_of(op.operands[0]), list[int]()
    offset = len(elements) - len(dims)
    for axis, element in enumerate(elements):
        if element is not None and element.value is not None:
            found.append(element.value)
        elif element is not None and axis >= offset and element == dims[axis - offset]:
            found.append(1)
        else:
            return None
    return None if constants(list(elements)) is not None else found
