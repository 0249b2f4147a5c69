"""Common parts of all `core` ops: inferred result types, assembly format and its verification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from xdsl.dialects.builtin import DenseArrayBase, IntAttr, TensorType, UnrankedTensorType
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue, SSAValues
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from lowerdeck.dialects.core.types import MAX_RANK, UNKNOWN, DimsAttr, broadcast, element_type
from lowerdeck.dialects.dims import Expr, parse_exprs
from lowerdeck.dialects.numbers import dense_ints
from lowerdeck.dialects.quick_xdsl import install

install()

TYPES = "attr-dict `:` functional-type(operands, results)"
"""The end of most formats: `{other properties} : (types of operands) -> types of results`."""

FORMAT = f"operands {TYPES}"
"""`core.name %a, %b {properties} : (types of operands) -> types of results`."""


@irdl_custom_directive
class Dims(CustomDirective):
    """`[n, 3]` for a list of expressions."""

    values: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.values.set(state, DimsAttr(parse_exprs(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        values = self.values.get(op)
        assert isinstance(values, DimsAttr)
        state.print_whitespace(printer)
        printer.print_string(f"[{', '.join(map(str, values.data))}]")


@irdl_custom_directive
class Number(CustomDirective):
    """`1` for an integer."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, IntAttr(parser.parse_integer(allow_boolean=False)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        value = self.value.get(op)
        assert isa(value, IntAttr)
        state.print_whitespace(printer)
        printer.print_int(value.data)


_NOT_YET = UnrankedTensorType(UNKNOWN)
"""The type of a result until it is inferred."""


class CoreOp(IRDLOperation, ABC):
    """
    An op whose result types follow from its operands and properties.

    Subclasses define `infer`; building, verification and `infer-shapes` all use it. Element types
    and ranks are therefore checked there and not by constraints of the definition, which builders
    do not check.

    Constraints:

    - (T1) each result has the type inferred from operands and properties.
    - (T2) each dimension is a number or has identity: an expression in `#core.tensor<dims = ...>`.
    - (T3) a result has at most 64 dimensions.
    """

    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (Dims, Number)

    def __init__(
        self,
        operands: Sequence[SSAValue | Operation | Sequence[SSAValue] | None],
        properties: Mapping[str, Attribute | None] | None = None,
        regions: Sequence[Region | Sequence[Region]] = (),
        results: int = 1,
        *,
        variadic: bool = False,
    ) -> None:
        """With `variadic`, the results are those of one variadic definition."""
        types = [_NOT_YET] * results
        super().__init__(
            operands=operands,
            properties={} if properties is None else properties,
            regions=regions,
            result_types=[types] if variadic else types,
        )
        self.refine()

    @abstractmethod
    def infer(self) -> Sequence[Attribute]:
        """The result types; VerifyException if the operand types are invalid."""

    def refine(self) -> bool:
        """Set the result types to the inferred ones; True if one of them changed."""
        before, types = self.results, self._inferred()
        if self.result_types == tuple(types):
            return False
        # All at once: to replace one of an op with thousands of results copies the others.
        self.results = SSAValues(
            old if old.type == type_ else OpResult(type_, self, old.index)
            for old, type_ in zip(before, types, strict=True)
        )
        changed = False
        for old, new in zip(before, self.results, strict=True):
            if new is not old:
                new.name_hint = old.name_hint
                if old.first_use is not None:
                    old.replace_all_uses_with(new)
                changed = True
        return changed

    def _inferred(self) -> Sequence[Attribute]:
        """`infer`; VerifyException if a result has more than the maximum number of dimensions."""
        types = self.infer()
        for type_ in types:
            if isinstance(type_, TensorType) and (rank := len(type_.shape)) > MAX_RANK:
                raise VerifyException(
                    f"a tensor of {rank} dimensions, expected up to {MAX_RANK} (T3)"
                )
        return types

    def with_operands(
        self, operands: Sequence[SSAValue], properties: Mapping[str, Attribute] | None = None
    ) -> Self:
        """
        The same op with other operands, and with other values of some properties, which determine
        its result types; not in a block yet.
        """
        new = type(self).create(
            operands=operands,
            result_types=self.result_types,
            properties={**self.properties, **(properties or {})},
            attributes=dict(self.attributes),
        )
        new.refine()
        return new

    @property
    def is_inferable(self) -> bool:
        """False while an operand or result has no rank: before `infer-shapes` has run."""
        values = (*self.operands, *self.results)
        return not any(isinstance(value.type, UnrankedTensorType) for value in values)

    def verify_(self) -> None:
        if not self.is_inferable:
            return
        for result, expected in zip(self.results, self._inferred(), strict=True):
            if result.type != expected:
                raise VerifyException(
                    f"result {result.index} has type {result.type}, "
                    f"but its operands give {expected} (T1)"
                )


class SameTypeOp(CoreOp, ABC):
    """An op whose only result has the type of its first operand."""

    def infer(self) -> Sequence[Attribute]:
        return [self.operands[0].type]


Ints = DenseArrayBase.constr(builtin_i64)
"""The constraint of a property `array<i64: ...>`."""


def ints(attribute: DenseArrayBase[Any]) -> list[int]:
    """The numbers of an `array<i64: ...>`."""
    return [int(value) for value in attribute.get_values()]


def int_array(values: Sequence[int]) -> DenseArrayBase[Any]:
    """`array<i64: ...>`; VerifyException for an integer that does not fit."""
    return dense_ints(list(values))


def require(condition: bool, message: str | Callable[[], str], label: str = "") -> None:
    """
    VerifyException with `message` unless `condition`. A message that prints types should be a
    function: printing takes longer than most checks.

    `label` is that of the constraint in the op's docstring, such as C1; the message ends with it.
    """
    if not condition:
        text = message if isinstance(message, str) else message()
        raise VerifyException(f"{text} ({label})" if label else text)


def require_same_element(values: Sequence[SSAValue], label: str = "") -> Attribute:
    """The element type of all values; VerifyException if they differ."""
    elements = {element_type(value) for value in values}
    require(
        len(elements) == 1,
        lambda: f"operands have different element types: {', '.join(sorted(map(str, elements)))}",
        label,
    )
    return elements.pop()


def require_axis(axis: int, rank: int, label: str = "") -> int:
    """`axis`; VerifyException unless it is in 0 .. rank - 1."""
    require(0 <= axis < rank, f"axis {axis} is out of range for rank {rank}", label)
    return axis


def require_broadcast(shapes: Sequence[Sequence[Expr]], label: str) -> tuple[Expr, ...]:
    """The shape of numpy broadcasting; VerifyException if two dimensions can never agree."""
    try:
        return broadcast(shapes)
    except VerifyException as error:
        raise VerifyException(f"{error} ({label})") from error


def is_ranked(value: SSAValue) -> bool:
    """True if the value is a tensor with known rank."""
    return isinstance(value.type, TensorType)
