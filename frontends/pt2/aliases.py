"""
Which tensors share their elements: what makes the in-place operators of a program functional.

A storage holds one value at a time; an alias is what a chain of views shows of it. A write through
an alias makes a new value of the storage, and each other alias is made anew from that when it is
read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ComplexType, UnrankedTensorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.types import element_type, i64
from lowerdeck.dialects.pt2.ops import Pt2Op, op_class

_SAME_ELEMENTS = frozenset(
    "view reshape flatten unflatten squeeze unsqueeze ravel view_as reshape_as _reshape_alias "
    "atleast_1d atleast_2d atleast_3d".split()
)
_ITSELF = frozenset("transpose swapaxes swapdims t mT conj _conj".split())
IDENTITY = frozenset(
    "alias detach lift lift_fresh contiguous to type_as dropout alpha_dropout feature_dropout "
    "positive pin_memory resolve_conj resolve_neg".split()
)
"""Operators of `aten` whose result is the operand, or as good as that."""
_COMPLEX = {"view_as_real": "view_as_complex", "view_as_complex": "view_as_real"}
_SCATTERS = {
    "select": "select_scatter",
    "slice": "slice_scatter",
    "diagonal": "diagonal_scatter",
}
_BY_PLACES = frozenset(
    "expand expand_as broadcast_to split split_with_sizes chunk unbind tensor_split narrow movedim "
    "moveaxis hsplit vsplit dsplit unfold as_strided numpy_T adjoint mH matrix_H linalg_diagonal "
    "real imag".split()
)
_REPEATING = frozenset("expand expand_as broadcast_to unfold as_strided".split())
"""Those that may show an element several times."""
_CONJUGATES = frozenset("conj _conj adjoint mH matrix_H".split())
_OTHER_TYPE = "aten.view.dtype"

VIEWS = (
    _SAME_ELEMENTS
    | _ITSELF
    | IDENTITY
    | _SCATTERS.keys()
    | _BY_PLACES
    | {"permute", "view_as_real", "view_as_complex"}
)
"""Operators of `aten`, without overloads, whose results show elements of their first operand."""


SHOWING = frozenset("broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d".split())
"""Operators of several tensors, of which each result shows one."""

_SHARING = frozenset("conj_physical sum_to_size".split())
_SHARING_ALONE = frozenset("einsum cartesian_prod".split())


def may_share(name: str, operands: int) -> bool:
    """
    True for an operator that is no view by its schema, and whose results may show elements of its
    tensors all the same.
    """
    return name in _SHARING or (name in _SHARING_ALONE and operands == 1)


def shown_by(op: Pt2Op, index: int, value: SSAValue) -> Iterator[Pt2Op]:
    """The views, one of the other, that a result of one of `SHOWING` is of its operand."""
    name = name_of(op)
    if name.startswith("atleast"):
        yield _made(f"aten.{name}.default", {"self": value}, value)
        return
    if name == "meshgrid":
        count, turned = len(op.results), "indexing" in op.schema.arguments
        turned = turned and op.argument("indexing") == "xy" and index < 2 <= count
        sizes = [1] * count
        sizes[1 - index if turned else index] = -1
        line = _made("aten.view.default", {"self": value, "size": plain_attribute(sizes)}, value)
        yield line
        value = line.results[0]
    yield _made("aten.expand_as.default", {"self": value, "other": op.results[index]}, value)


class AliasError(ValueError):
    """A write whose effect on other tensors is not known."""


@dataclass
class Storage:
    """Elements that a program may change."""

    value: SSAValue
    version: int = 0
    unclear: bool = False
    """True if it is not known which other tensors share the elements."""


@dataclass
class Alias:
    """A tensor of the program."""

    storage: Storage
    value: SSAValue
    steps: tuple[tuple[Pt2Op, int], ...] = ()
    """The views, and which of their results."""
    version: int = field(default=0)

    @staticmethod
    def of(value: SSAValue) -> Alias:
        """A tensor that shares its elements with no other one."""
        return Alias(Storage(value), value)

    def view(self, op: Pt2Op, index: int) -> Alias:
        """What a view of this one shows."""
        steps = (*self.steps, (op, index))
        return Alias(self.storage, op.results[index], steps, self.storage.version)

    def read(self, block: Block) -> SSAValue:
        """The value now; ops that make it are added to the block."""
        if self.version != self.storage.version:
            self.value = self._chain(block)[-1]
            self.version = self.storage.version
        return self.value

    def _chain(self, block: Block) -> list[SSAValue]:
        """The value of the storage, and what each view shows of it."""
        values = [self.storage.value]
        for op, index in self.steps:
            copy = op.clone()
            copy.operands[0] = values[-1]
            block.add_op(copy)
            values.append(copy.results[index])
        return values

    def write(self, block: Block, value: SSAValue) -> None:
        """Let the elements be those of a value of the same shape."""
        if self.storage.unclear:
            raise AliasError("a write to elements of which another tensor may have a copy")
        before = self._chain(block) if self.steps else [self.storage.value]
        new = value
        steps = self.steps
        for k, (op, _) in enumerate(steps):
            if name_of(op) in _REPEATING:  # other places of an element have its old value
                new = _put_by_places(block, steps[k:], before[k], new)
                steps = steps[:k]
                break
        for (op, index), base in reversed(list(zip(steps, before, strict=False))):
            new = _put(block, op, index, base, new)
        self.storage.value = new
        self.storage.version += 1
        self.value, self.version = value, self.storage.version


def name_of(op: Pt2Op) -> str:
    """The operator without namespace and overload."""
    return op.op_type.split(".")[1]


def _put(block: Block, op: Pt2Op, index: int, base: SSAValue, new: SSAValue) -> SSAValue:
    """What a view has been taken of, after `new` has been written into one of its results."""
    name = name_of(op)
    if name in _SCATTERS:
        target = f"aten.{_SCATTERS[name]}.default"
        if name == "select":
            target = "aten.select_scatter.default"
        kept = {key: value for key, value in op.properties.items() if key in op.schema.arguments}
        others: dict[str, Given] = {"self": base, "src": new}
        for key in op.schema.arguments:
            value = op.argument(key)
            if key != "self" and isinstance(value, SSAValue):
                others[key] = value
        return _add(block, target, {**others, **kept}, base)
    if name in IDENTITY:
        return new
    if name in _SAME_ELEMENTS and op.op_type != _OTHER_TYPE:
        return _add(block, "aten.view_as.default", {"self": new, "other": base}, base)
    if name in _ITSELF:
        copy = op.clone()
        copy.operands[0] = new
        block.add_op(copy)
        return copy.results[0]
    if name == "permute":
        order = op.argument("dims")
        order = [k % len(order) for k in order]
        back = [order.index(k) for k in range(len(order))]
        given: dict[str, Given] = {"self": new, "dims": plain_attribute(back)}
        return _add(block, "aten.permute.default", given, base)
    if name in _COMPLEX:
        return _add(block, f"aten.{_COMPLEX[name]}.default", {"self": new}, base)
    return _put_by_places(block, ((op, index),), base, new)


def _put_by_places(
    block: Block, steps: Sequence[tuple[Pt2Op, int]], base: SSAValue, new: SSAValue
) -> SSAValue:
    """As `_put`, for any views, one of the other: they are taken of the places of all elements."""
    is_complex = isinstance(element_type(base), ComplexType)
    whole = UnrankedTensorType(i64)
    count = _add(block, "aten.sym_numel.default", {"self": base}, whole)
    places = _add(block, "aten.arange.default", {"end": count}, whole)
    places = _add(block, "aten.view_as.default", {"self": places, "other": base}, whole)
    for op, index in steps:
        name = name_of(op)
        is_part = is_complex and name in ("real", "imag")
        if is_part or name in _COMPLEX or op.op_type == _OTHER_TYPE:
            raise AliasError("a write to the bytes of elements of another type")
        if is_complex and name in _CONJUGATES:
            new = _add(block, "aten._conj.default", {"self": new}, base)
        copy = op.clone()
        copy.operands[0] = places
        for result in copy.results:
            Rewriter.replace_value_with_new_type(result, whole)
        block.add_op(copy)
        places = copy.results[index]
    given: dict[str, Given] = {"self": base, "index": places, "source": new}
    return _add(block, "aten.put.default", given, base)


def _add(
    block: Block, target: str, given: dict[str, Given], like: SSAValue | Attribute
) -> SSAValue:
    op = _made(target, given, like)
    block.add_op(op)
    return op.results[0]


def _made(target: str, given: Mapping[str, Given], like: SSAValue | Attribute) -> Pt2Op:
    """An op whose result has the elements of another one, and any shape."""
    cls = op_class(target)
    assert cls is not None
    return cls(given, [UnrankedTensorType(element_type(like))])


def read_all(aliases: Sequence[Alias], block: Block) -> list[SSAValue]:
    """The values of several tensors now."""
    return [alias.read(block) for alias in aliases]


def unranked(value: SSAValue) -> Attribute:
    """The type of a value of the same elements and any shape."""
    return UnrankedTensorType(element_type(value))
