"""
The frame of `legalize-onnx`: the walk over a function, and what a handler works with.

A handler sees one node whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("Gelu", since=20)
    def legalize_gelu(op: OnnxOp, lower: Legalizer) -> Results:
        x = lower.operand("X")
        approximate = lower.attrs.string("approximate")
        ...
        return [lower.add(MulOp(x, cdf))]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FunctionType,
    LocationAttr,
    ModuleOp,
    NameLoc,
    TensorType,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp
from lowerdeck.dialects.core.types import (
    OptionalType,
    SequenceType,
    dims_of,
    element_type,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.passes.legalize.onnx.legalizer import Legalizer, PoisonedError, RefusalError, refuse
from lowerdeck.passes.legalize.onnx.symbolic import SymbolicValues

if TYPE_CHECKING:
    from lowerdeck.dialects.onnx.ops import OnnxOp


_TRANSIENT = ("onnx.none", "onnx.list")
"""Ops that stand for something until no node refers to it any more."""


class LegalizationError(PassFailedException):
    """All nodes that were refused, one a line."""

    def __init__(self, refusals: Sequence[str]) -> None:
        super().__init__("\n".join(refusals))
        self.refusals = tuple(refusals)


class _FunctionWalk:
    """The legalization of one function: what is known, and what was refused."""

    def __init__(self, function: func.FuncOp) -> None:
        self.symbols = SymbolicValues(_symbols_of(function))
        self.refusals: list[str] = []
        self._failed: set[SSAValue] = set()

    def block(self, block: Block) -> bool:
        """Legalize all nodes of a block; False if one of them was refused."""
        complete = True
        for op in list(block.ops):
            complete &= self._op(op)
        for op in reversed(list(block.ops)):
            if op.name in _TRANSIENT and op.results[0].first_use is None:
                op.detach()
                op.erase()
        return complete

    def check_results(self, block: Block) -> None:
        """Refuse results of the function that are not tensors."""
        last = block.last_op
        for value in () if last is None else last.operands:
            if isinstance(value.type, SequenceType | OptionalType) and value not in self._failed:
                owner = value.owner
                where = "the model" if isinstance(owner, Block) else describe(owner)
                self.refusals.append(
                    f"{where}: found an output of type {value.type}, expected tensors; "
                    "make its elements outputs of their own"
                )

    def _op(self, op: Operation) -> bool:
        from lowerdeck.dialects.onnx.ops import InitializerOp, OnnxOp

        if isinstance(op, InitializerOp | OnnxOp):
            if any(value in self._failed for value in _used_by(op)):
                return self._fail(op)
            try:
                self._initializer(op) if isinstance(op, InitializerOp) else self._node(op)
            except (RefusalError, VerifyException, ZeroDivisionError) as error:
                self.refusals.append(f"{describe(op)}: {error}")
                return self._fail(op)
            except PoisonedError:
                return self._fail(op)
        return not any(value in self._failed for value in op.operands)

    def _fail(self, op: Operation) -> bool:
        self._failed.update(op.results)
        return False

    def _initializer(self, op: Any) -> None:
        if not isinstance(op.value, BlobAttr):
            refuse("a constant of strings", "numbers", "remove text processing from the model")
        constant = ConstantOp(op.value, op.output.type)
        constant.location = op.location
        Rewriter.replace_op(op, constant)

    def _node(self, op: OnnxOp) -> None:
        from lowerdeck.passes.legalize.onnx.handlers import handler_of

        handler = handler_of(op)
        if handler is None:
            return self._expand(op)
        lower = Legalizer(op, self.symbols, self.block)
        try:
            results = list(handler(op, lower))
            lower.attrs.require_read()
        except (RefusalError, VerifyException, ZeroDivisionError, PoisonedError):
            _erase_unused(lower.created)
            raise
        results += [None] * (len(op.results) - len(results))
        self._replace(op, [self._materialized(value, lower) for value in results])
        _erase_unused(lower.created)

    def _replace(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        for result, value in zip(op.results, values, strict=True):
            if value is None and result.first_use is not None:
                refuse(f"a use of result {result.index}", "none: it is not computed")
            if value is not None:
                if value.name_hint is None:
                    value.name_hint = result.name_hint
                result.replace_all_uses_with(value)
        op.detach()
        op.erase()

    def _materialized(self, value: SSAValue | None, lower: Legalizer) -> SSAValue | None:
        """Shape arithmetic that is known as expressions does not stay as data."""
        if value is None or not isinstance(value.type, TensorType):
            return value
        owner = value.owner
        if isinstance(owner, Block | ConstantOp | FromDimsOp) or owner not in lower.created:
            return value
        elements = self.symbols.elements(value)
        if elements is None or any(element is None for element in elements.reshape(-1)):
            return value
        dims: list[Expr] = list(elements.reshape(-1))
        if (numbers := constants(dims)) is not None:
            array = np.array(numbers, object).astype(numpy_dtype(element_type(value)))
            return lower.tensor(array.reshape(elements.shape))
        return lower.cast(lower.dims(dims, elements.shape), value)

    def _expand(self, op: OnnxOp) -> None:
        """Legalize the function that the schema gives for an operator without a handler."""
        from lowerdeck.dialects.onnx.functions import expand_function, function_body
        from lowerdeck.passes.legalize.onnx.widening import is_widened, widen

        if is_widened(op):
            return self._substitute(op, *widen(op))
        body = function_body(op)
        if body is None:
            domain = f" of domain {op.domain}" if op.domain else ""
            raise RefusalError(
                f"no legalization for {op.op_type} (opset {op.since_version}){domain}"
            )
        self._substitute(op, *expand_function(op, body))

    def _substitute(
        self, op: Operation, ops: Sequence[Operation], values: Sequence[SSAValue | None]
    ) -> None:
        """Legalize `ops`, whose `values` take the place of the results of `op`."""
        # The uses move first: legalizing the inner ops replaces `values` once more.
        self._replace(op, values)
        if not all([self._op(inner) for inner in ops]):
            raise PoisonedError


def _used_by(op: Operation) -> Iterator[SSAValue]:
    """The operands of an op and of everything in its regions."""
    for inner in op.walk():
        yield from inner.operands


def _erase_unused(ops: Sequence[Operation]) -> None:
    """Erase ops whose results nobody uses, last first."""
    for op in reversed(ops):
        if op.parent is None or isinstance(op, BindSymbolsOp) or not op.results:
            continue
        if all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()


def _symbols_of(function: func.FuncOp) -> set[str]:
    """The symbols in the types of a function's arguments."""
    symbols = {"floordiv", "mod", "min", "max"}
    for argument in function.body.block.args:
        if isinstance(argument.type, TensorType):
            for dim in dims_of(argument):
                symbols |= dim.symbols
    return symbols


def describe(op: Operation) -> str:
    """`file: node 'name' (Operator)`, as far as the location knows."""
    kind = cast(str, getattr(op, "op_type", op.name))
    file, name = _place(op.location)
    return f"{file}: node '{name}' ({kind})" if file else f"node '{name}' ({kind})"


def _place(location: LocationAttr) -> tuple[str, str]:
    if isinstance(location, NameLoc):
        child = location.location
        file = child.filename.data if isinstance(child, FileLineColLoc) else ""
        return file, location.desc.data
    return "", ""


@dataclass(frozen=True)
class LegalizeOnnxPass(ModulePass):
    """
    Convert every onnx op to `core` ops with exact types.

    Operators without a legalization of their own are replaced by the function that their schema
    defines. All nodes that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-onnx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                legalize_function(function)


def legalize_function(function: func.FuncOp) -> None:
    """Legalize the body of a function and give it the types of what it returns."""
    walk = _FunctionWalk(function)
    walk.block(function.body.block)
    walk.check_results(function.body.block)
    if walk.refusals:
        # A subgraph that was tried with several types repeats its refusals.
        raise LegalizationError(list(dict.fromkeys(walk.refusals)))
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    function.function_type = FunctionType.from_lists(
        function.body.block.arg_types, last.arguments.types
    )
