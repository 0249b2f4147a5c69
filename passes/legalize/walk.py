"""
The walk of a legalization over a function: one node after the other, in order of dominance.

What a node was refused for is collected, and what depends on it is left alone, so that one error
lists all nodes that cannot be converted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    MAX_RANK,
    OptionalType,
    SequenceType,
    dims_of,
    element_type,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, constants
from lowerdeck.dialects.errors import CompileError, located
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.legalize.legalizer import Legalizer, PoisonedError, RefusalError, refuse
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.machinery.provenance import describe


class LegalizationError(CompileError):
    """All nodes that were refused, one a line."""

    def __init__(self, refusals: Sequence[str]) -> None:
        super().__init__("\n".join(refusals))
        self.refusals = tuple(refusals)


class FunctionWalk(ABC):
    """The legalization of one function: what is known, and what was refused."""

    def __init__(self, function: func.FuncOp) -> None:
        self.symbols = SymbolicValues(symbols_of_arguments(function))
        self.refusals: list[str] = []
        self._failed: set[SSAValue] = set()
        self._function = function
        self.companions: dict[SSAValue, SSAValue] = {}
        """What goes with a value where one of the framework's becomes two of `core`."""
        self.where = ""
        """What refusals say beside the node while its region is walked through."""
        self.on_results: Callable[[Operation, Sequence[SSAValue | None]], None] | None = None
        """Told of each op that is replaced, and by what."""
        self.on_arguments: Callable[[Operation, Sequence[Attribute]], None] | None = None
        """Told of the types that the arguments of a loop's region turn out to have."""

    @abstractmethod
    def converts(self, op: Operation) -> bool:
        """True if the op is one of the framework's, which `convert` replaces."""

    @abstractmethod
    def convert(self, op: Operation) -> None:
        """Replace an op; RefusalError, PoisonedError or VerifyException if it cannot be."""

    def adopt(self, value: SSAValue, type_: Attribute) -> None:
        """An operand of the only op is a value of core already; its type was `type_` before."""

    def is_transient(self, op: Operation) -> bool:
        """True if the op stands for something until no node refers to it any more."""
        del op
        return False

    def place(self, op: Operation) -> str:
        """What a refusal says of where the op is, after its name."""
        del op
        return self.where

    def run(self) -> None:
        """
        Legalize the body of the function and give it the types of what it returns.

        LegalizationError lists what was refused.
        """
        block = self._function.body.block
        self.block(block)
        self._check_results(block)
        if self.refusals:
            # A subgraph that was tried with several types repeats its refusals.
            raise LegalizationError(list(dict.fromkeys(self.refusals)))
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        self._function.function_type = FunctionType.from_lists(
            block.arg_types, last.arguments.types
        )

    def block(self, block: Block) -> bool:
        """Legalize all nodes of a block; False if one of them was refused."""
        complete = True
        for op in list(block.ops):
            if op.parent is not None:  # else it went with one before it
                complete &= self.node(op)
        self.erase_transient(block)
        return complete

    def attempt(self, block: Block) -> bool:
        """`block` for one that need not be possible: its refusals are forgotten."""
        count = len(self.refusals)
        complete = self.block(block)
        del self.refusals[count:]
        return complete

    def erase_transient(self, block: Block) -> None:
        """
        Erase what stood for something that no node of a block refers to any more, as numbers of
        types that C does not have.
        """
        for op in reversed(list(block.ops)):
            is_transient = isinstance(op, PoisonOp) or self.is_transient(op) or _is_narrow(op)
            if is_transient and all(r.first_use is None for r in op.results):
                op.detach()
                op.erase()

    def _check_results(self, block: Block) -> None:
        """Refuse results of the function that are not tensors."""
        last = block.last_op
        for value in () if last is None else last.operands:
            if isinstance(value.type, SequenceType | OptionalType) and value not in self._failed:
                owner = value.owner
                where = "the model" if isinstance(owner, Block) else describe(owner)
                self.refusals.append(
                    f"{where}: found an output of type {value.type}, expected tensors; "
                    "make its elements outputs of their own (--output)"
                )

    def node(self, op: Operation) -> bool:
        """Legalize an op; False if it, or what it depends on, was refused."""
        if self.converts(op):
            if any(value in self._failed for value in _used_by(op)):
                return self._fail(op)
            try:
                _require_ranks(op)
                self.convert(op)
            except (RefusalError, VerifyException, ZeroDivisionError) as error:
                self.refusals.append(f"{describe(op)}{self.place(op)}: {error}")
                return self._fail(op)
            except PoisonedError:
                return self._fail(op)
            except Exception as error:
                if (raised := located(error, f"{describe(op)}{self.place(op)}")) is error:
                    raise
                raise raised from error
        return not any(value in self._failed for value in op.operands)

    def _fail(self, op: Operation) -> bool:
        self._failed.update(op.results)
        return False

    def handle(
        self, op: Operation, builder: Legalizer, handler: Callable[[], Sequence[SSAValue | None]]
    ) -> None:
        """
        Replace `op` by what `handler` builds with `builder`: missing values by none. Those
        of optional results at the end that the node does not have are left out.
        """
        try:
            results = list(handler())
        except (RefusalError, VerifyException, ZeroDivisionError, PoisonedError):
            _erase_unused(builder.created)
            raise
        results = [*results, *[None] * len(op.results)][: len(op.results)]
        self.replace(op, [self._materialized(value, builder) for value in results])
        _erase_unused(builder.created)

    def substitute(
        self, op: Operation, ops: Sequence[Operation], values: Sequence[SSAValue | None]
    ) -> None:
        """Legalize `ops`, whose `values` take the place of the results of `op`."""
        # The uses move first: legalizing the inner ops replaces `values` once more.
        self.replace(op, values)
        if not all([self.node(inner) for inner in ops]):
            raise PoisonedError

    def replace(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Let `values` take the place of the results of `op`, which goes."""
        if self.on_results is not None:
            self.on_results(op, values)
        for result, value in zip(op.results, values, strict=True):
            if value is None and result.first_use is not None:
                refuse(f"a use of result {result.index}", "none: it is not computed")
            if value is not None:
                if value.name_hint is None:
                    value.name_hint = result.name_hint
                result.replace_all_uses_with(value)
        op.detach()
        op.erase()

    def _materialized(self, value: SSAValue | None, builder: Legalizer) -> SSAValue | None:
        """Shape arithmetic that is known as expressions does not stay as data."""
        if value is None or not isinstance(value.type, TensorType):
            return value
        owner = value.owner
        if isinstance(owner, Block | ConstantOp | FromDimsOp) or owner not in builder.created:
            return value
        elements = self.symbols.elements(value)
        if elements is None or any(element is None for element in elements.reshape(-1)):
            return value
        dims: list[Expr] = list(elements.reshape(-1))
        if (numbers := constants(dims)) is not None:
            array = np.array(numbers, object).astype(numpy_dtype(element_type(value)))
            return builder.tensor(array.reshape(elements.shape))
        return builder.cast(builder.dims(dims, elements.shape), value)


def _require_ranks(op: Operation) -> None:
    """Refuse an op if an operand has more dimensions than there can be."""
    for position, value in enumerate(op.operands):
        if isinstance(value.type, TensorType) and (rank := rank_of(value)) > MAX_RANK:
            refuse(f"input {position} of {rank} dimensions", f"up to {MAX_RANK}")


def _is_narrow(op: Operation) -> bool:
    """True for what is of a type that C does not have."""
    if not isinstance(op, CoreOp) or not op.has_trait(Pure):
        return False
    return all(element_type(result) not in COMPUTABLE for result in op.results)


def _used_by(op: Operation) -> Iterator[SSAValue]:
    """The operands of an op and of everything in its regions."""
    for inner in all_ops(op):
        yield from inner.operands


def _erase_unused(ops: Sequence[Operation]) -> None:
    """Erase ops whose results are unused, last first."""
    for op in reversed(ops):
        if op.parent is None or isinstance(op, BindSymbolsOp) or not op.results:
            continue
        if all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()


def symbols_of_arguments(function: func.FuncOp) -> set[str]:
    """The symbols in the types of a function's arguments."""
    symbols = {"floordiv", "mod", "min", "max"}
    for argument in function.body.block.args:
        if isinstance(argument.type, TensorType):
            for dim in dims_of(argument):
                symbols |= dim.symbols
    return symbols
