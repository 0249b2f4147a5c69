"""
Quicker forms of what xDSL does most often, put in place of its own.

xDSL is written for clarity: an operand is read by its name through a view of all operands, a value
is hashed by a function of Python, an op is made in ten steps, and a question about a class goes
through the machinery of abstract classes. A compilation does these things millions of times. Each
function here does what the one of the same name in xDSL does, in the version that `pyproject.toml`
pins; `install` puts them there, before a dialect is defined. Tests compare them with the originals.
"""

# What is replaced here is not public.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property
from math import prod
from operator import attrgetter
from typing import Any

from xdsl import traits
from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Data, Operation, OpResult, ParametrizedAttribute, Region, Use
from xdsl.ir.core import BlockOps, IRWithUses, OpOperands, SSAValue, SSAValues, _IRNode
from xdsl.irdl import AttrSizedSegments, OpDef, OptionalDef, VarIRConstruct, base
from xdsl.irdl import operations as irdl
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import AttrParser, attribute_parser
from xdsl.traits import (
    EffectInstance,
    IsolatedFromAbove,
    MemoryEffect,
    NoMemoryEffect,
    OpTrait,
    SameOperandsAndResultType,
)
from xdsl.utils.mlir_lexer import MLIRTokenKind

from lowerdeck.dialects.quick_verification import verify_definition, verify_operation

Method = Callable[..., Any]


class PlainMeta(ABCMeta):
    """Of classes that no other class is registered for: inheritance alone makes subclasses."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


_OPERAND, _RESULT, _REGION = VarIRConstruct.OPERAND, VarIRConstruct.RESULT, VarIRConstruct.REGION
_item = tuple.__getitem__


def _constructs(op: Any, construct: VarIRConstruct) -> tuple[Any, ...]:
    """`get_op_constructs`, but for the view of the operands."""
    if construct is _OPERAND:
        return op._operands
    if construct is _RESULT:
        return op.results
    return op.regions if construct is _REGION else op._successors


def _get_before(self: Any, obj: Any, objtype: Any = None) -> Any:
    """`BeforeVariadicSingleAccessor.__get__`"""
    if self.construct is _OPERAND:
        return _item(obj._operands, self.idx)
    return _item(_constructs(obj, self.construct), self.idx)


def _get_after(self: Any, obj: Any, objtype: Any = None) -> Any:
    """`AfterVariadicSingleAccessor.__get__`"""
    return _item(_constructs(obj, self.construct), self.idx - self.num_defs)


def _get_variadic(self: Any, obj: Any, objtype: Any = None) -> Any:
    """`UniqueVariadicAccessor.__get__`"""
    args = _constructs(obj, self.construct)
    part = slice(self.idx, self.idx + len(args) - self.num_defs + 1)
    return SSAValues(_item(args, part)) if type(args) is SSAValues else args[part]


def _get_sized(self: Any, obj: Any, objtype: Any = None) -> Any:
    """`BaseAttrAccessor.__get__`"""
    option = self.option
    sizes = option.container(obj)[option.attribute_name]
    return self.index(sizes.get_values(), _constructs(obj, self.construct))


def _values_of_array(self: Any) -> Any:
    """`DenseArrayBase.get_values`: they never change, so they are unpacked once"""
    known = self.__dict__.get("_values")
    if known is None:
        known = _unpacked(self)
        object.__setattr__(self, "_values", known)
    return known


def _init_operation(
    self: Any,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: LocationAttr | None = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    """`Operation.__init__`"""
    values = self._operands = SSAValues(operands)
    uses: list[Use] = []
    for index, value in enumerate(values):
        first = value.first_use  # `SSAValue.add_use`
        use = Use(self, index, None, first)
        if first is not None:
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    self._operand_uses = tuple(uses)
    self.results = SSAValues(
        [OpResult(type_, self, index) for index, type_ in enumerate(result_types)]
    )
    self.properties = dict(properties)
    self.attributes = dict(attributes)
    self.location = builtin.UNKNOWN_LOC if location is None else location
    if successors:
        self.successors = list(successors)
    self.regions = ()
    for region in regions:
        self.add_region(region)
    self.__post_init__()


def _clone_alone(
    self: Any,
    value_mapper: dict[SSAValue, SSAValue] | None = None,
    block_mapper: dict[Block, Block] | None = None,
    *,
    clone_name_hints: bool = True,
    clone_operands: bool = True,
) -> Any:
    """`Operation.clone_without_regions`, where there are none, and no other blocks"""
    if self.regions or self._successors:
        return _clone_with_parts(
            self,
            value_mapper,
            block_mapper,
            clone_name_hints=clone_name_hints,
            clone_operands=clone_operands,
        )
    mapper: dict[SSAValue, SSAValue] = {} if value_mapper is None else value_mapper
    before = self.results
    cloned = self.create(
        operands=[mapper.get(value, value) for value in self._operands] if clone_operands else (),
        result_types=[result._type for result in before],
        properties=self.properties,
        attributes=self.attributes,
        location=self.location,
    )
    for old, new in zip(before, cloned.results, strict=True):
        mapper[old] = new
        if clone_name_hints and old._name is not None:
            new.name_hint = old._name
    return cloned


_defaults: dict[type[Any], tuple[list[tuple[str, Attribute]], list[tuple[str, Attribute]]]] = {}
"""The properties and the attributes that an op of a class has unless it is given others."""


def _complete(self: Any) -> None:
    """`IRDLOperation.__post_init__`"""
    cls = type(self)
    if (known := _defaults.get(cls)) is None:
        definition = self.get_irdl_definition()
        tables = definition.properties, definition.attributes
        known = _defaults[cls] = (_required(tables[0]), _required(tables[1]))
    for name, value in known[0]:
        self.properties.setdefault(name, value)
    for name, value in known[1]:
        self.attributes.setdefault(name, value)
    Operation.__post_init__(self)  # which `ImplicitBuilder` replaces


def _required(definitions: Mapping[str, Any]) -> list[tuple[str, Attribute]]:
    return [
        (name, each.default_value)
        for name, each in definitions.items()
        if not isinstance(each, OptionalDef) and each.default_value is not None
    ]


def _check_attribute(self: Any) -> None:
    """`Attribute.__post_init__`"""
    self._verify()
    if not isinstance(self, Data) and not isinstance(self, ParametrizedAttribute):
        raise TypeError("Attributes should only be Data or ParametrizedAttribute")


def _result_types(self: Any) -> Sequence[Attribute]:
    return tuple([result._type for result in self.results])


def _attach(self: Any, operation: Any) -> None:
    """`Block._attach_op`: an op without regions contains no block."""
    if operation.parent:
        raise ValueError("Can't add to a block an operation already attached to a block.")
    if operation.regions and operation.is_ancestor(self):
        raise ValueError("Can't add an operation to a block contained in the operation.")
    operation.parent = self


def _following(op: Any) -> Iterator[Operation]:
    """The op and those after it; the next one is looked up before an op is given."""
    while op is not None:
        after = op._next_op
        yield op
        op = after


def _iterate(self: Any) -> Iterator[Operation]:
    """`BlockOps.__iter__`"""
    return _following(self.block._first_op)


def _count(self: Any) -> int:
    """`BlockOps.__len__`, which making a list asks for, too"""
    number, op = 0, self.block._first_op
    while op is not None:
        number, op = number + 1, op._next_op
    return number


_single: dict[type[Any], bool] = {}
"""Of classes of arguments: True if one is no sequence."""


def _build_arguments(
    construct: VarIRConstruct,
    args: Sequence[Any],
    arg_defs: Sequence[tuple[str, Any]],
    error_prefix: str = "",
) -> tuple[list[Any], list[int]]:
    """`irdl_build_arg_list`: as most are, each argument by itself"""
    if len(args) == len(arg_defs):
        for arg in args:
            cls = type(arg)
            if (alone := _single.get(cls)) is None:
                alone = _single[cls] = arg is not None and not isinstance(arg, Sequence)
            if not alone:
                break
        else:
            return list(args), [1] * len(args)
    return _build_any_arguments(construct, args, arg_defs, error_prefix)


def _init_by_definition(
    self: Any,
    op_def: OpDef,
    *,
    operands: Sequence[Any],
    result_types: Sequence[Any],
    properties: Mapping[str, Attribute | None],
    attributes: Mapping[str, Attribute | None],
    successors: Sequence[Any],
    regions: Sequence[Any],
) -> None:
    """`irdl_op_init`: as most are, of single values and types alone"""
    if (
        any([isinstance(option, AttrSizedSegments) for option in op_def.options])
        or op_def.regions
        or op_def.successors
        or regions
        or successors
        or len(operands) != len(op_def.operands)
        or len(result_types) != len(op_def.results)
        or not all([isinstance(value, SSAValue) for value in operands])
        or not all([isinstance(type_, Attribute) for type_ in result_types])
    ):
        _init_by_any_definition(
            self,
            op_def,
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            successors=successors,
            regions=regions,
        )
        return
    Operation.__init__(
        self,
        operands=operands,
        result_types=result_types,
        properties={name: value for name, value in properties.items() if value is not None},
        attributes={name: value for name, value in attributes.items() if value is not None},
    )


_traits: dict[tuple[type[Any], type[Any]], tuple[frozenset[OpTrait], OpTrait | None]] = {}
"""The first trait of a class, by the classes of ops and traits, and among which it was found."""


def _get_trait(cls: Any, trait: Any) -> Any:
    """`Operation.get_trait`"""
    if not isinstance(trait, type):
        return next((each for each in cls.traits if each == trait), None)
    present = cls.traits.traits
    known = _traits.get((cls, trait))
    if known is None or known[0] is not present:
        found = next((each for each in present if isinstance(each, trait)), None)
        known = _traits[cls, trait] = (present, found)
    return known[1]


_nothing_else: dict[type[Any], tuple[frozenset[OpTrait], bool]] = {}
"""Of classes of ops and their traits: True if all that these say of effects is: there are none."""

_NO_EFFECTS: AbstractSet[EffectInstance] = frozenset()


def _effects_of(op: Any) -> AbstractSet[EffectInstance] | None:
    """`get_effects`, where the class decides"""
    present = op.traits.traits
    known = _nothing_else.get(type(op))
    if known is None or known[0] is not present:
        found = [each for each in present if isinstance(each, MemoryEffect)]
        has_none = bool(found) and all(isinstance(each, NoMemoryEffect) for each in found)
        known = _nothing_else[type(op)] = (present, has_none)
    return _NO_EFFECTS if known[1] else _effects_of_each(op)


def _same_types(self: Any, op: Any) -> None:
    """`SameOperandsAndResultType.verify`: what is one type needs no comparison of its parts"""
    operands, results = op._operands, op.results
    if operands and results:
        first = results[0]._type
        for value in (*results, *operands):
            if value._type != first:
                break
        else:
            return
    _same_types_by_parts(self, op)


def _isolated(self: Any, op: Any) -> None:
    """`IsolatedFromAbove.verify`, where operands come from around the op that uses them"""
    todo: list[tuple[Region, frozenset[Block]]] = [(region, frozenset()) for region in op.regions]
    while todo:
        region, around = todo.pop()
        within = around.union(region.blocks)
        for block in region.blocks:
            for inner in block.ops:
                for operand in inner._operands:
                    owner = operand.owner
                    if (owner if isinstance(owner, Block) else owner.parent) not in within:
                        _isolated_by_ancestors(self, op)  # it says what is wrong, if something is
                        return
                if inner.regions and not inner.has_trait(IsolatedFromAbove):
                    todo += [(each, within) for each in inner.regions]


def _erase_value(self: Any, safe_erase: bool = True) -> None:
    """`SSAValue.erase`, where nothing uses it: there is nothing to replace"""
    if self.first_use is not None:
        _erase_used_value(self, safe_erase)


def _value_of(arg: Any, *, type: Any = Attribute) -> Any:
    """`SSAValue.get`, of a value whatever its type: that is not checked, so it is not made"""
    if type is Attribute and isinstance(arg, SSAValue):
        return arg
    return _value_of_any(arg, type=type)


def _set_operand(self: Any, idx: int, operand: Any) -> None:
    """`OpOperands.__setitem__`"""
    _put_operand(self._op, idx, operand)


def _put_operand(op: Any, index: int, operand: Any) -> None:
    values, use = op._operands, op._operand_uses[index]
    _item(values, index).remove_use(use)
    operand.add_use(use)
    others = list(values)
    others[index] = operand
    op._operands = SSAValues(others)


def _replace_everywhere(self: Any, value: Any) -> None:
    """`SSAValue.replace_all_uses_with`"""
    if value is self:
        return
    uses: list[Use] = []
    use = self.first_use
    while use is not None:
        uses.append(use)
        use = use._next_use
    for use in uses:
        _put_operand(use._operation, use._index, value)
    if value._name is None and self._name is not None:
        value.name_hint = self._name
    assert self.first_use is None, "a use that is not replaced"


def _value_at(self: Any, index: int | slice) -> Any:
    """`SSAValues.__getitem__`"""
    found: Any = _item(self, index)
    return SSAValues(found) if isinstance(index, slice) else found


_PLAIN_TYPE = re.compile(r"(?:tensor|vector)<(?:\d+x)*(?:[su]?i\d+|bf16|f16|f32|f64|index)>")
"""Tensors and vectors of numbers, without anything else."""

_plain_types: dict[str, Attribute] = {}
"""Those that were read, by their texts: the same ones stand in a text again and again."""

_MOST_PLAIN = 1 << 9


def _parse_parametrized_type(self: Any) -> Any:
    """`AttrParser._parse_optional_builtin_parametrized_type`"""
    token = self._current_token
    if token.kind is not MLIRTokenKind.BARE_IDENT:
        return None
    match = _PLAIN_TYPE.match(token.span.input.content, token.span.start)
    if match is None:
        return _parse_any_parametrized_type(self)
    known = _plain_types.get(match[0])
    if known is not None:
        self._resume_from(match.end())
        return known
    read = _parse_any_parametrized_type(self)
    if len(_plain_types) > _MOST_PLAIN:
        _plain_types.clear()
    if read is not None:
        _plain_types[match[0]] = read
    return read


class LazyFormat:
    """The format of a class of ops, parsed when it is first needed: most never are."""

    def __init__(self, text: str, definition: OpDef) -> None:
        self._text = text
        self._definition = definition

    @cached_property
    def _program(self) -> FormatProgram:
        return _parse_format(self._text, self._definition)

    def parse(self, parser: Any, op_type: Any) -> Any:
        """The op that the text says."""
        return self._program.parse(parser, op_type)

    def print(self, printer: Any, op: Any) -> None:
        """Print an op."""
        self._program.print(printer, op)


_GIVEN: Mapping[type[Any], tuple[str, ...]] = {
    SSAValue: ("type",),
    Operation: ("next_op", "prev_op"),
    Block: ("first_op", "last_op"),
    Use: ("operation", "index"),
}
"""Properties that give an attribute of the same name behind an underscore, and do no more."""


def _dense_of(type: Any, data: Sequence[Any]) -> Any:
    """`DenseIntOrFPElementsAttr.from_list`, where one value again and again is packed once."""
    if len(data) > 1 and _is_one_value(data) and len(data) == prod(type.get_shape()):
        data = data[:1]
    return _dense_of_list(type, data)


def _is_one_value(data: Sequence[Any]) -> bool:
    first = data[0]
    # Zeros of either sign are equal.
    is_told = isinstance(first, int) or (isinstance(first, float) and bool(first))
    return is_told and data.count(first) == len(data)


def _hash_once(hash_of: Callable[[Any], int]) -> Callable[[Any], int]:
    """`__hash__` of an attribute of several parts: it never changes, so it is computed once"""

    def __hash__(self: Any) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = hash_of(self)
            object.__setattr__(self, "_hash", known)
        return known

    return __hash__


_unpacked = DenseArrayBase.get_values
_dense_of_list = DenseIntOrFPElementsAttr.from_list
_parse_format = FormatProgram.from_str
_build_any_arguments = irdl.irdl_build_arg_list
_parse_any_parametrized_type = AttrParser._parse_optional_builtin_parametrized_type
_init_by_any_definition = irdl.irdl_op_init
_clone_with_parts = Operation.clone_without_regions
_effects_of_each = traits.get_effects
_erase_used_value = SSAValue.erase
_value_of_any = SSAValue.get
_same_types_by_parts = SameOperandsAndResultType.verify
_isolated_by_ancestors = IsolatedFromAbove.verify

_REPLACED: list[tuple[Any, str, Any]] = [
    # The same constraint for each constant of a text takes most of the time to read it.
    (attribute_parser, "base", cache(base)),
    (AttrParser, "_parse_optional_builtin_parametrized_type", _parse_parametrized_type),
    (irdl, "irdl_build_arg_list", _build_arguments),
    (irdl, "irdl_op_init", _init_by_definition),
    (BlockOps, "__iter__", _iterate),
    (BlockOps, "__len__", _count),
    (Operation, "get_trait", classmethod(_get_trait)),
    (traits, "get_effects", _effects_of),
    (SameOperandsAndResultType, "verify", _same_types),
    (IsolatedFromAbove, "verify", _isolated),
    (Operation, "operands", property(OpOperands, Operation.operands.fset)),
    (OpOperands, "__setitem__", _set_operand),
    (SSAValue, "get", staticmethod(_value_of)),
    (SSAValue, "replace_all_uses_with", _replace_everywhere),
    (SSAValue, "erase", _erase_value),
    (SSAValues, "__getitem__", _value_at),
    (irdl.BeforeVariadicSingleAccessor, "__get__", _get_before),
    (irdl.AfterVariadicSingleAccessor, "__get__", _get_after),
    (irdl.UniqueVariadicAccessor, "__get__", _get_variadic),
    (irdl.BaseAttrAccessor, "__get__", _get_sized),
    (DenseArrayBase, "get_values", _values_of_array),
    (DenseIntOrFPElementsAttr, "from_list", staticmethod(_dense_of)),
    (irdl.OpDef, "verify", verify_definition),
    (Operation, "verify", verify_operation),
    (Operation, "__init__", _init_operation),
    (Operation, "clone_without_regions", _clone_alone),
    (Operation, "result_types", property(_result_types)),
    (irdl.IRDLOperation, "__post_init__", _complete),
    (Attribute, "__post_init__", _check_attribute),
    (Block, "_attach_op", _attach),
    (FormatProgram, "from_str", staticmethod(LazyFormat)),
    # What only gives an attribute is a function of C.
    *(
        (cls, name, property(attrgetter(f"_{name}")))
        for cls, names in _GIVEN.items()
        for name in names
    ),
    *(
        (cls, "__hash__", _hash_once(cls.__hash__))
        for cls in (TensorType, VectorType, IntegerType, IntegerAttr, DenseArrayBase)
    ),
    # They are equal by identity, which is what an object is anyway.
    *(
        (cls, name, getattr(object, name))
        for cls in (SSAValue, _IRNode, irdl.IRDLOperation, Use)
        for name in ("__eq__", "__hash__")
    ),
]

ORIGINAL: dict[tuple[Any, str], Any] = {}
"""What was replaced, by class or module and name."""

_ROOTS = (_IRNode, IRWithUses, Attribute, OpTrait)
"""The base classes of what isinstance is asked about most."""


def install() -> None:
    """Replace what is slow, once."""
    if ORIGINAL:
        return
    for cls, name, value in _REPLACED:
        ORIGINAL[cls, name] = cls.__dict__.get(name)
        setattr(cls, name, value)
    for root in _ROOTS:
        _make_plain(root)


def _make_plain(cls: type[Any]) -> None:
    if type(cls) is ABCMeta:
        cls.__class__ = PlainMeta
    for derived in type(cls).__subclasses__(cls):
        _make_plain(derived)
