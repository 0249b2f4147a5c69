"""
Verification of an op against its definition, in place of xDSL's own way (`quick_xdsl`).

What is to be checked is found out once for each definition: the constraints of operands and results
one after the other, properties and attributes, and those traits that check anything. An op that
does not fit is verified again as xDSL does it, which says what is wrong.
"""

# What is replaced here is not public.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportDeprecated=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation
from xdsl.ir.core import ErasedSSAValue
from xdsl.irdl import AnyAttr, OpDef, OptionalDef, VariadicDef, VarIRConstruct
from xdsl.irdl import operations as irdl
from xdsl.irdl.constraints import SingleOf, VerificationContext
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.records import record

Check = Callable[[Any, VerificationContext], None]
"""Raises VerifyException for a value that does not satisfy a constraint."""


@record
class _Values:
    """The types of operands or results: of each before those that there may be several of, ..."""

    before: Sequence[Check | None]
    several: Check | None
    """Of a sequence of types; None if each definition stands for one value."""
    most: int | None
    """Of those."""
    after: Sequence[Check | None]

    def fit(self, values: Sequence[Any], context: VerificationContext) -> bool:
        """False if there are too many or too few; VerifyException if one does not fit."""
        before, after = self.before, self.after
        count = len(values) - len(before) - len(after)
        if self.several is None:
            if count:
                return False
        elif count < 0 or (self.most is not None and count > self.most):
            return False
        for check, value in zip(before, values, strict=False):
            if check is not None:
                check(value._type, context)
        if self.several is None:
            return True
        end = len(before) + count
        self.several([value._type for value in values[len(before) : end]], context)
        for check, value in zip(after, values[end:], strict=True):
            if check is not None:
                check(value._type, context)
        return True


@record
class _Entries:
    """Properties or attributes by name, and which of them need not be there."""

    checks: Sequence[tuple[str, Check | None, bool]]
    is_closed: bool
    """True if there are no others."""

    def fit(self, entries: Mapping[str, Attribute], context: VerificationContext) -> bool:
        """False if one is missing or too many; VerifyException if one does not fit."""
        present = 0
        for name, check, is_optional in self.checks:
            value = entries.get(name)
            if value is None:
                if not is_optional:
                    return False
                continue
            present += 1
            if check is not None:
                check(value, context)
        return not self.is_closed or present == len(entries)


class _Plan:
    """What ops of one definition are verified by."""

    def __init__(self, definition: OpDef) -> None:
        self._definition = definition
        self._operands = _values(definition, VarIRConstruct.OPERAND)
        self._results = _values(definition, VarIRConstruct.RESULT)
        self._properties = _entries(definition.properties, is_closed=True)
        self._attributes = _entries(definition.attributes, is_closed=False)
        self._has_regions = bool(definition.regions)
        self._has_successors = bool(definition.successors)
        self._known: frozenset[OpTrait] | None = None
        self._traits: list[OpTrait] = []

    def fits(self, op: Any) -> bool:
        """False, or VerifyException, for an op that does not fit."""
        definition, context = self._definition, VerificationContext()
        if self._operands is None:
            irdl.irdl_op_verify_arg_list(op, definition, VarIRConstruct.OPERAND, context)
        elif not self._operands.fit(op._operands, context):
            return False
        if self._results is None:
            irdl.irdl_op_verify_arg_list(op, definition, VarIRConstruct.RESULT, context)
        elif not self._results.fit(op.results, context):
            return False
        if self._has_regions:
            irdl.irdl_op_verify_regions(op, definition, context)
        elif op.regions:
            return False
        if self._has_successors:
            irdl.verify_variadic_size(op, definition, VarIRConstruct.SUCCESSOR)
        elif op._successors:
            return False
        if not (
            self._properties.fit(op.properties, context)
            and self._attributes.fit(op.attributes, context)
        ):
            return False
        for trait in self._checking():
            trait.verify(op)
        return True

    def _checking(self) -> Sequence[OpTrait]:
        """The traits that check something."""
        present = self._definition.traits.traits
        if self._known is not present:
            self._known = present
            self._traits = [each for each in present if type(each).verify is not OpTrait.verify]
        return self._traits


def _values(definition: OpDef, construct: VarIRConstruct) -> _Values | None:
    """None for what is verified as xDSL does it: where sizes are attributes, or several vary."""
    definitions = [each for _, each in irdl.get_construct_defs(definition, construct)]
    if any(
        isinstance(option, tuple(irdl.get_multiple_variadic_options(construct)))
        for option in definition.options
    ):
        return None
    varying = [k for k, each in enumerate(definitions) if isinstance(each, VariadicDef)]
    if len(varying) > 1:
        return None
    checks = [_of_one(each.constr) for each in definitions]
    if not varying:
        return _Values(checks, None, 0, [])
    (place,) = varying
    most = 1 if isinstance(definitions[place], OptionalDef) else None
    several = definitions[place].constr.verify
    return _Values(checks[:place], several, most, checks[place + 1 :])


def _of_one(constraint: Any) -> Check | None:
    """The check of one type, of a constraint on a sequence of them; None if any will do."""
    if type(constraint) is SingleOf:
        return _check_of(constraint.constr)
    return lambda type_, context: constraint.verify((type_,), context)


def _check_of(constraint: Any) -> Check | None:
    return None if type(constraint) is AnyAttr else constraint.verify


def _entries(definitions: Mapping[str, Any], *, is_closed: bool) -> _Entries:
    checks = [
        (name, _check_of(each.constr), isinstance(each, OptionalDef))
        for name, each in definitions.items()
    ]
    return _Entries(checks, is_closed)


def verify_definition(self: Any, op: Operation) -> None:
    """`OpDef.verify`"""
    plan: _Plan | None = self.__dict__.get("_plan")
    if plan is None:
        plan = self._plan = _Plan(self)
    try:
        if plan.fits(op):
            return
    except VerifyException:
        pass
    _original(self, op)


def verify_operation(self: Any, verify_nested_ops: bool = True) -> None:
    """`Operation.verify`: what ends no block, and goes to no other, may stand where it does."""
    if self._next_op is None or self._successors:
        _original_of_operation(self, verify_nested_ops)
        return
    for operand in self._operands:
        if isinstance(operand, ErasedSSAValue):
            raise ValueError("Erased SSA value is used by the operation")
    if verify_nested_ops:
        for region in self.regions:
            region.verify()
    try:
        self.verify_()
    except VerifyException as error:
        self.emit_error(f"Operation does not verify: {error}", error)


_original = OpDef.verify
_original_of_operation = Operation.verify
