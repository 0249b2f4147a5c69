"""`fold-constants`: evaluate ops whose operands are constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import Tensor, element_type, numpy_dtype, static_shape, tensor
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.passes.driver import CorePass, Match, Pattern, Rewriter
from lowerdeck.passes.symbols import symbols_of

GROWTH_LIMIT = 1 << 16
"""Bytes by which the results of a folded op may exceed its operands."""


class FoldConstants(Pattern[list[NDArray[Any]]]):
    """f(constants) -> constants, if they are not much larger."""

    name = "fold-constants"
    roots = (CoreOp,)
    ranked = True

    def match(self, op: CoreOp) -> Match[list[NDArray[Any]]] | None:
        if isinstance(op, ConstantOp) or not is_evaluable(op) or not _is_small(op):
            return None
        if any(symbols_of(attribute) for attribute in op.properties.values()):
            return None
        if (results := _evaluated(op)) is None:
            return None
        return Match((op,), "its operands are constants", results)

    def rewrite(self, match: Match[list[NDArray[Any]]], rewriter: Rewriter) -> None:
        root = match.root
        if isinstance(root, ReshapeOp) and isinstance(source := root.input.owner, ConstantOp):
            type_ = cast(Tensor, root.result.type)
            rewriter.replace(root, ConstantOp(source.value, type_))  # the same bytes
            return
        constants = [rewriter.add(ConstantOp.of(array)) for array in match.data]
        rewriter.replace(root, [constant.result for constant in constants])


def _is_small(op: Operation) -> bool:
    """True if all operands are constants, and the results' size is known and within the limit."""
    if not all(isinstance(value.owner, ConstantOp) for value in op.operands):
        return False
    budget = GROWTH_LIMIT + sum(_bytes(value.type) or 0 for value in op.operands)
    sizes = [_bytes(result.type) for result in op.results]
    return bool(sizes) and None not in sizes and sum(size or 0 for size in sizes) <= budget


def _bytes(type_: Any) -> int | None:
    shape = static_shape(type_)
    if shape is None:
        return None
    return numpy_dtype(element_type(type_)).itemsize * int(np.prod(shape, dtype=np.int64))


def _evaluated(op: CoreOp) -> list[NDArray[Any]] | None:
    """The results, or None if the op fails (then it fails at run time, if it is reached)."""
    try:
        args = [array for value in op.operands if (array := constant_array(value)) is not None]
        results = evaluate(op, args, {})
    except (InterpretError, ElidedBlobError):
        return None
    for array, result in zip(results, op.results, strict=True):
        if tensor(element_type(result), array.shape) != result.type:
            return None
        if array.dtype != numpy_dtype(element_type(result)):
            return None
    return results


class FoldConstantsPass(CorePass):
    """
    Ops whose operands are constants are evaluated by the interpreter.

    - f(c1, c2, ...) -> c [results at most 64 KB larger than the operands]

    Sums, products and transcendental functions are computed in float64, in a fixed order, without
    BLAS, and are rounded once, so that every machine folds alike. An op that fails on its operands,
    such as a gather out of range, stays.
    """

    name = "fold-constants"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FoldConstants()]
