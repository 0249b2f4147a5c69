"""
The types of a program that states none, one op after the other, while it is imported.

There is one definition of what an operator gives, its legalization. So a follower legalizes a copy
of each op, in a function of its own, and says what is known of the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.pt2.ops import Pt2Op
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import PoisonedError, RefusalError
from lowerdeck.passes.legalize.pt2.complex import complex_of
from lowerdeck.passes.legalize.pt2.framework import core_values
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.torchscript.elements import result_element

_REFUSED = (RefusalError, PoisonedError, VerifyException, ZeroDivisionError, OverflowError)

_MISFIT = (IndexError, KeyError, TypeError, ValueError, AttributeError, AssertionError)
"""What is raised for arguments that no exported program has, such as an empty list of tensors."""


class FollowError(ValueError):
    """An op that has no form in `core`."""


class Follower:
    """What is known of the values of a program so far."""

    def __init__(self) -> None:
        self._block = Block()
        self._function = func.FuncOp("followed", ([], []), Region(self._block))
        self._symbols = SymbolicValues({"floordiv", "mod", "min", "max"})
        self._values: dict[SSAValue, SSAValue] = {}
        self._pairs: set[SSAValue] = set()
        """Complex numbers, as a last dimension of two."""
        self._numbers: dict[SSAValue, int | float | bool | None] = {}

    # What is known

    def knows(self, value: SSAValue) -> bool:
        """True if the type of a value was found."""
        return value in self._values

    def values(self) -> Sequence[SSAValue]:
        """All values whose types are known, in their order."""
        return list(self._values)

    def type_of(self, value: SSAValue) -> Tensor:
        """The exact type of a value."""
        return tensor(self.element_of(value), self.dims(value))

    def element_of(self, value: SSAValue) -> Attribute:
        """The element type of a value."""
        return self._element(self._values[value])

    def _element(self, found: SSAValue) -> Attribute:
        element = element_type(found)
        return complex_of(element) if found in self._pairs else element

    def dims(self, value: SSAValue) -> list[Expr]:
        """The dimensions of a value."""
        found = self._values[value]
        return list(dims_of(found)[:-1] if found in self._pairs else dims_of(found))

    def number(self, value: SSAValue) -> int | float | bool | None:
        """The only element of a value, if it is known."""
        if value not in self._numbers:
            self._numbers[value] = self._number(self._values[value])
        return self._numbers[value]

    def _number(self, value: SSAValue) -> int | float | bool | None:
        if math.prod(dim.value or 0 for dim in dims_of(value)) != 1:
            return None
        found = self._builder().constant(value)
        if found is None:
            return None
        return found.reshape(-1)[0].item()

    # What there is

    def declare(self, value: SSAValue, type_: Tensor) -> None:
        """An argument, or what else has no op that is followed."""
        self._values[value] = self._block.insert_arg(type_, len(self._block.args))
        self._numbers[value] = None
        for dim in dims_of(type_):
            self._symbols.declare(dim.symbols)

    def constant(self, op: ConstantOp) -> None:
        """A constant."""
        copy = op.clone()
        self._block.add_op(copy)
        self._values[op.result] = copy.result

    def op(self, op: Pt2Op) -> None:
        """
        Find the types of the results of an op, and set them as far as ops have types.

        FollowError if it has no form in `core`.
        """
        copy = op.clone()
        copy.operands = [self._values[value] for value in op.operands]
        self._block.add_op(copy)
        try:
            self._guess(copy)
            found = self._legalized(copy)
        except _REFUSED as error:
            raise FollowError(str(error)) from None
        except _MISFIT as error:
            raise FollowError(f"arguments that do not fit: {str(error)[:200]}") from None
        finally:
            copy.detach()
        for old, value in zip(tuple(op.results), found, strict=False):
            result: SSAValue = old
            if value is not None and isinstance(value.type, TensorType):
                type_ = UnrankedTensorType(self._element(value))
                if result.type != type_:
                    result = Rewriter.replace_value_with_new_type(result, type_)
                self._values[result] = value

    def _guess(self, copy: Operation) -> None:
        """Give the results the element types that PyTorch's rules say."""
        assert isinstance(copy, Pt2Op)
        builder = Pt2Legalizer(copy, self._symbols, self._pairs)
        for index, result in enumerate(tuple(copy.results)):
            element = element_type(copy.operands[0]) if copy.is_in_place else None
            found = element or result_element(builder, index)
            Rewriter.replace_value_with_new_type(result, UnrankedTensorType(found))

    def _legalized(self, copy: Operation) -> list[SSAValue | None]:
        assert isinstance(copy, Pt2Op)
        try:
            return self._tried(copy, len(copy.results))
        except RefusalError:
            if len(copy.results) < 2:
                raise
            return self._tried(copy, 1)

    def _tried(self, copy: Pt2Op, wanted: int) -> list[SSAValue | None]:
        builder = Pt2Legalizer(copy, self._symbols, self._pairs)
        builder.wants = lambda index: index < wanted
        return core_values(copy, builder)[: max(wanted, 1)]

    def _builder(self) -> CoreBuilder:
        return CoreBuilder(InsertPoint.at_end(self._block), self._symbols)

    # Types that meet

    def joined(self, one: Tensor, other: Tensor) -> Tensor | None:
        """A type of which both are, if their ranks and elements agree."""
        if element_type(one) != element_type(other):
            return None
        pairs = list(zip(dims_of(one), dims_of(other), strict=False))
        if len(dims_of(one)) != len(dims_of(other)):
            return None
        return tensor(element_type(one), [a if a == b else self._open() for a, b in pairs])

    def _open(self) -> Expr:
        return Expr.symbol(self._symbols.fresh(nonnegative=True))
