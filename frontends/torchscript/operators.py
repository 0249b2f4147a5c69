"""
Calls of operators: which overload is meant, and the op of the pt2 dialect that it becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    FileLineColLoc,
    NameLoc,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.arguments import Argument, Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.types import (
    UNKNOWN,
    element_of,
    f32,
    f64,
    i1,
    i64,
    is_float,
    numpy_dtype,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.frameworks import FRAMEWORKS
from lowerdeck.dialects.pt2.ops import Pt2Op, op_class
from lowerdeck.dialects.pt2.schema import functional, overloads, positional, results_of
from lowerdeck.dialects.pt2.strides import (
    can_view,
    is_contiguous,
    overlaps,
    strides_of_view,
)
from lowerdeck.frontends.pt2.aliases import (
    IDENTITY,
    SHOWING,
    VIEWS,
    AliasError,
    may_share,
    shown_by,
)
from lowerdeck.frontends.torchscript.archive import ELEMENTS
from lowerdeck.frontends.torchscript.values import (
    Cell,
    Device,
    Journal,
    Number,
    Rows,
    ScriptError,
    Tensor,
    Unknown,
    UnknownError,
    kind_of,
)

KINDS: dict[type, Attribute] = {bool: i1, int: i64, float: f64}
"""The element types of numbers."""

_USUAL_ORDER = (None, 0, 1)
"""Numbers of memory formats: that of indices, and what the operand has."""

_MAY_COPY = frozenset("reshape flatten ravel unflatten contiguous reshape_as".split())
"""Operators whose results show the elements of the operand if these lie in order."""

_END = (1 << 63) - 1
"""Where a slice without an end ends."""

_OUT_OF_ORDER = frozenset(
    "transpose permute t mT mH numpy_T adjoint matrix_H swapaxes swapdims movedim moveaxis expand "
    "expand_as broadcast_to select slice narrow diagonal linalg_diagonal unfold chunk split "
    "split_with_sizes unbind tensor_split hsplit vsplit dsplit real imag as_strided".split()
)
"""Views whose elements lie apart, or in another order."""

_ALWAYS_IN_ORDER = frozenset(
    "linear mm bmm addmm baddbmm embedding layer_norm stack index_select new_zeros new_ones "
    "new_full new_empty one_hot".split()
)
"""Operators whose results lie in the order of their indices, whatever the operands do."""

_BY_A_NUMBER = frozenset("add sub mul div multiply subtract divide true_divide".split())
"""Operators that PyTorch runs by a plain number where the second operand is a constant number."""

_PLAIN_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "SymInt": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "Scalar": (int, float, bool, complex),
}

_WITHOUT_MEANING = ("Device", "Layout", "MemoryFormat", "Generator")


class Operators:
    """What ops are added to, and what is known of their results."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.blocks: list[Block] = [Block()]
        self.follower: Any = FRAMEWORKS["pt2"].follower()() if FRAMEWORKS["pt2"].follower else None
        self.where: FileLineColLoc | NameLoc | None = None
        self.path = ""
        self.undecided: dict[SSAValue, str] = {}
        """What values are that have no type, as branches give them different ones."""
        self.made = 0
        """Ops so far: also an order in which storages are born."""

    @property
    def block(self) -> Block:
        """Where ops go."""
        return self.blocks[-1]

    # Values

    def tensor(self, value: SSAValue, *, in_order: bool = False) -> Tensor:
        """A tensor that shares its elements with no other one."""
        self.made += 1
        return Tensor(Cell(value, born=self.made), value, in_order=in_order)

    def read(self, tensor: Tensor) -> SSAValue:
        """The value of a tensor now."""
        block = tensor.value.owner
        block = block if isinstance(block, Block) else block.parent
        is_seen = any(block is one for one in self.blocks)
        if tensor.version != tensor.storage.version or not is_seen:
            self.journal.alias(tensor)
            before = self.block.last_op
            tensor.version = -1
            tensor.read(self.block)
            if tensor.steps:
                self._follow_from(before)
        return tensor.value

    def _follow_from(self, before: Operation | None) -> None:
        """Find the types of the ops of the block behind one of them."""
        op = self.block.first_op if before is None else before.next_op
        while op is not None:
            if isinstance(op, Pt2Op):
                self.follow(op)
            op = op.next_op

    def add(self, op: Operation) -> Operation:
        """Add an op to the block."""
        self.made += 1
        if self.where is not None:
            op.location = self.where
        self.block.add_op(op)
        if isinstance(op, ConstantOp):
            self.follower.constant(op)
        return op

    def follow(self, op: Pt2Op) -> None:
        """Find the types of the results of an op; ScriptError if it has no form in `core`."""
        for value in op.operands:
            self._require_type(value)
        try:
            self.follower.op(op)
        except ValueError as error:
            raise ScriptError(str(error)) from None

    def _require_type(self, value: SSAValue) -> None:
        if value in self.undecided:
            raise ScriptError(self.undecided[value])
        if not self.follower.knows(value):
            raise UnknownError

    def constant(self, number: float, kind: type | None = None) -> SSAValue:
        """A plain number as a value."""
        element = KINDS[kind or type(number)]
        if element == i64 and not -(1 << 63) <= number < 1 << 63:
            raise ScriptError(f"the number {number}, which 64 bits do not hold")
        op = scalar(number, element)
        self.add(op)
        return op.result

    def require_known(self, value: Any) -> None:
        """
        UnknownError for a value that is not known since what makes it was refused; ScriptError if
        nothing was: what the program does with it would be lost.
        """
        if isinstance(value, Unknown):
            if value.reason:
                raise ScriptError(value.reason)
            raise UnknownError

    def value_of(self, value: Any, kind: type | None = None) -> SSAValue:
        """The value that a tensor or number is."""
        match value:
            case Tensor():
                return self.read(value)
            case Number():
                return value.value
            case SSAValue():
                return cast(SSAValue, value)
            case bool() | int() | float():
                return self.constant(value, kind)
            case Unknown():
                self.require_known(value)
                raise UnknownError
            case _:
                raise ScriptError(f"{describe(value)} in the place of a tensor")

    def number(self, value: SSAValue) -> Any:
        """A number: plain if it is known."""
        self._require_type(value)
        element = cast(Attribute, self.follower.element_of(value))
        kind = bool if element == i1 else float if is_float(element) else int
        found = self.follower.number(value)
        return Number(value, kind) if found is None else kind(found)

    def dims(self, tensor: Tensor) -> list[Any]:
        """The dimensions of a tensor, as expressions."""
        value = self.read(tensor)
        self._require_type(value)
        return self.follower.dims(value)

    def element(self, tensor: Tensor) -> Attribute:
        """The element type of a tensor."""
        value = self.read(tensor)
        self._require_type(value)
        return cast(Attribute, self.follower.element_of(value))

    # Overloads

    def call(self, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What an operator gives: a tensor, a number, a tuple or a list of them."""
        for value in (*args, *keywords.values()):
            self.require_known(value)
        base = name if name in _NAMED_IN_PLACE else functional(f"{name}.").removesuffix(".")
        candidates = overloads(base) or overloads(name)
        if not candidates:
            raise ScriptError("the operator is not known")
        for is_lenient in (False, True):
            for target in candidates:
                given = self._matched(target, args, keywords, is_lenient)
                if given is not None:
                    return self._apply(target, name, given)
        kinds = ", ".join(describe(value) for value in (*args, *keywords.values()))
        raise ScriptError(f"no overload of {name} is known for {kinds[:300]}")

    def _matched(
        self, target: str, args: Sequence[Any], keywords: Mapping[str, Any], is_lenient: bool
    ) -> dict[str, Any] | None:
        """The arguments by name, or None if they are of other types."""
        cls = op_class(target)
        assert cls is not None
        formals = cls.schema.arguments
        if len(args) > positional(target) or keywords.keys() - formals.keys():
            return None
        values = dict(zip(formals, args, strict=False))
        if values.keys() & keywords.keys():
            return None
        values.update(keywords)
        found: dict[str, Any] = {}
        for name, formal in formals.items():
            if name not in values:
                if formal.default is None and not formal.type.endswith("?") and name != "out":
                    return None
                continue
            fits, value = fitted(formal, values[name], is_lenient)
            if not fits:
                return None
            found[name] = value
        return found

    def _apply(self, target: str, name: str, values: Mapping[str, Any]) -> Any:
        cls = op_class(target)
        assert cls is not None
        base = target.split(".")[1]
        in_place = name.rpartition(".")[2] != base and name.endswith("_")
        formals = cls.schema.arguments
        given = {
            key: found
            for key, value in values.items()
            if (found := self._given(formals[key], value)) is not None
        }
        other = values.get("other")
        if base in _BY_A_NUMBER and isinstance(other, Tensor) and "rounding_mode" not in given:
            if other.number is not None:
                given["other"] = plain_attribute(other.number)
        results = results_of(target)
        count = len(results)
        if results == ["Tensor[]"]:
            count = self._count(target, values)
        writes = in_place and base not in VIEWS
        op = cls(given, [UnrankedTensorType(UNKNOWN)] * count, writes)
        if self.where is not None:
            op.location = self.where
        self.block.add_op(op)
        self.made += 1
        try:
            self.follow(op)
        except (ScriptError, UnknownError):
            op.detach()
            raise
        if results and results[0] in ("Scalar", "SymInt", "int", "float", "bool"):
            return self.number(op.results[0])
        found = self._bound(op, values, in_place)
        return found if results == ["Tensor[]"] else found[0] if count == 1 else tuple(found)

    def _bound(self, op: Pt2Op, values: Mapping[str, Any], in_place: bool) -> list[Tensor]:
        """The tensors that the results of an op are."""
        tensors = [value for value in values.values() if isinstance(value, Tensor)]
        first = next(iter(values.values()), None)
        source = first if isinstance(first, Tensor) else None
        base = op.op_type.split(".")[1]
        if in_place and base not in VIEWS:
            if source is None or len(op.results) != 1:
                raise ScriptError("an operator in place that writes to no tensor")
            self.write(source, op.results[0])
            return [source]
        other_order = values.get("memory_format") not in _USUAL_ORDER
        in_order = all(tensor.in_order for tensor in tensors) or base in _ALWAYS_IN_ORDER
        in_order &= not other_order
        if base not in VIEWS or source is None:
            lists = (cast("list[Any]", one) for one in values.values() if isinstance(one, list))
            shown = [*tensors, *(one for each in lists for one in each if isinstance(one, Tensor))]
            if base in SHOWING:
                return [self._shown(op, k, one) for k, one in enumerate(shown)]
            made = [self.tensor(result, in_order=in_order) for result in op.results]
            if may_share(base, len(shown)):
                for one in (*made, *shown):
                    self.journal.storage(one.storage)
                    one.storage.unclear = True
            return made
        is_copy = None if other_order else self._is_copy(op, base, source)
        if is_copy:
            return [self.tensor(result, in_order=True) for result in op.results]
        if is_copy is False or self._is_view(op, base, source, other_order):
            found: list[Tensor] = []
            for index, result in enumerate(op.results):
                steps = (*source.steps, (op, index))
                in_order = source.in_order and base not in _OUT_OF_ORDER
                in_order |= source.in_order and self._is_outer(op, base, source)
                one = Tensor(source.storage, result, steps, source.storage.version, in_order)
                self._stride(one, op, source)
                found.append(one)
            if not in_place:
                return found
            return [source if base in IDENTITY else self._turned(source, found[0])]
        # What is reshaped may still show the operand's elements, in the order in which they lie.
        in_order = not other_order and (source.in_order or base == "contiguous")
        found = [self.tensor(result, in_order=in_order) for result in op.results]
        if source.storage.unclear:
            for one in found:
                one.storage.unclear = True
        return found

    def _shown(self, op: Pt2Op, index: int, source: Tensor) -> Tensor:
        """The result of an op that shows one of its operands, as views of that."""
        for view in shown_by(op, index, self.read(source)):
            self.add(view)
            self.follow(view)
            (source,) = self._bound(view, {"self": source}, in_place=False)
        return source

    def _turned(self, tensor: Tensor, view: Tensor) -> Tensor:
        """The tensor, which has become a view of itself for everybody who has it."""
        if len(self.blocks) > 1:
            raise ScriptError("another shape of a tensor itself, in a branch or a loop")
        self.journal.alias(tensor)
        tensor.value, tensor.version, tensor.steps = view.value, view.version, view.steps
        tensor.in_order, tensor.strides = view.in_order, view.strides
        return tensor

    def _strides(self, tensor: Tensor) -> tuple[list[int], list[int]] | None:
        """The sizes and the strides of a tensor, if all of them are known."""
        known = self._sizes(self.read(tensor))
        if known is None:
            return None
        if tensor.in_order:
            return known, [prod(known[k + 1 :]) for k in range(len(known))]
        return None if tensor.strides is None else (known, list(tensor.strides))

    def _sizes(self, value: SSAValue) -> list[int] | None:
        """The sizes of a tensor, if all of them are known."""
        if not self.follower.knows(value):
            return None
        sizes = [size.value for size in self.follower.dims(value)]
        known = [size for size in sizes if size is not None]
        return known if len(known) == len(sizes) else None

    def _stride(self, view: Tensor, op: Pt2Op, source: Tensor) -> None:
        """Find the strides of a view, if they follow from those of what it is taken of."""
        found, sizes = self._strides(source), self._sizes(view.value)
        if view.in_order or found is None or sizes is None:
            return
        strides = strides_of_view(op, *found, sizes)
        if strides is not None:
            view.strides, view.in_order = tuple(strides), is_contiguous(sizes, strides)

    def _is_copy(self, op: Pt2Op, base: str, source: Tensor) -> bool | None:
        """Whether results show nothing of an operand in another order; None if it is not known."""
        if base == "flatten" and op.argument("start_dim") == op.argument("end_dim"):
            return False  # of one dimension it is the tensor itself
        if base not in _MAY_COPY or source.in_order or (found := self._strides(source)) is None:
            return None
        if (shape := self._sizes(op.results[0])) is None:
            return None
        if base in ("contiguous", "ravel"):
            return not is_contiguous(*found)
        return not can_view(*found, shape)

    def _is_outer(self, op: Pt2Op, base: str, source: Tensor) -> bool:
        """True for rows that lie one behind the other, and for all of them."""
        if base == "slice":
            start, end, step = (op.argument(name) for name in ("start", "end", "step"))
            if step == 1 and start in (None, 0) and end in (None, _END):
                return True
        if base not in ("select", "slice", "narrow", "unbind", "chunk", "split"):
            return False
        if base == "slice" and op.argument("step") != 1:
            return False
        return op.argument("dim") == 0

    def _is_view(self, op: Pt2Op, base: str, source: Tensor, other_order: bool) -> bool:
        """Whether results show the elements of the operand, as PyTorch decides it."""
        if base == "as_strided" and not (source.in_order and self._begins_at_zero(source)):
            raise ScriptError("found other strides of a tensor that may have strides")
        if base in ("to", "type_as"):
            is_same = self.follower.element_of(op.results[0]) == self.element(source)
            if not is_same or (base == "to" and op.argument("copy") is True):
                return False
        if other_order or (base in _MAY_COPY and not source.in_order):
            self.journal.storage(source.storage)
            source.storage.unclear = True
            return False
        return not base.endswith("dropout") or not op.argument("train")

    def _begins_at_zero(self, source: Tensor) -> bool:
        """True for a tensor whose first element is the first of its storage."""
        return not any(op.op_type.split(".")[1] in _OUT_OF_ORDER for op, _ in source.steps)

    def write(self, into: Tensor, value: SSAValue) -> None:
        """Let the elements of a tensor be those of a value."""
        found = self._strides(into)
        if overlaps(*found) if found else any(self._shows_twice(op) for op, _ in into.steps):
            raise ScriptError("a write to elements that the tensor shows several times")
        self.journal.storage(into.storage)
        self.journal.alias(into)
        before = self.block.last_op
        version = max(into.storage.version, self.made)
        try:
            into.write(self.block, value)
        except AliasError as error:
            raise ScriptError(str(error)) from None
        self.made += 1
        into.storage.version = into.version = version + 1
        if into.steps:
            self._follow_from(before)

    def _shows_twice(self, op: Pt2Op) -> bool:
        """True for a view that repeats elements."""
        if op.op_type == "aten.unfold.default":
            size, step = op.argument("size"), op.argument("step")
            return not isinstance(size, int) or not isinstance(step, int) or size > step
        if op.op_type.split(".")[1] not in ("expand", "expand_as", "broadcast_to"):
            return False
        sizes = [product(self.follower.dims(v)) for v in (op.operands[0], op.results[0])]
        return sizes[0] != sizes[1] and sizes[1] != 0

    def _given(self, formal: Argument, value: Any) -> Given | None:
        """An argument of an op; None for one without meaning."""
        kind = formal.type.rstrip("?")
        if kind.startswith(_WITHOUT_MEANING) or isinstance(value, Device):
            return None
        match value:
            case None:
                return plain_attribute(None)
            case Tensor():
                return self.read(value)
            case Number():
                return value.value
            case list():
                items = cast("list[Any]", value)
                if any(isinstance(item, Tensor | Number) for item in items):
                    return [None if item is None else self.value_of(item) for item in items]
                return plain_attribute(items)
            case complex():
                op = array_constant(value, None)
                self.add(op)
                return op.result
            case bool() | int() | float() | str():
                if kind == "ScalarType":
                    return self._dtype(value)
                return plain_attribute(value)
            case _:
                raise ScriptError(f"{describe(value)} as an argument")

    def _dtype(self, number: Any) -> Attribute:
        found = ELEMENTS.get(number)
        if found is None:
            raise ScriptError(f"elements of type number {number}")
        return found

    def _count(self, target: str, values: Mapping[str, Any]) -> int:
        """How many tensors an operator gives."""
        base = target.split(".")[1]
        first = next(iter(values.values()))
        if isinstance(first, list):
            return len(cast("list[Any]", first))
        if base.startswith("split") and isinstance(second := [*values.values()][1], list):
            return len(cast("list[Any]", second))
        if base in ("nonzero_numpy", "where"):
            return len(self.dims(cast(Tensor, first)))
        if "indices" in values:  # of *split
            return len(values["indices"]) + 1
        axis = values.get("dim", 0)
        dims = self.dims(cast(Tensor, first))
        if not isinstance(axis, int) or not -len(dims) <= axis < len(dims):
            raise ScriptError(f"dimension {axis} of {len(dims)}")
        size = dims[axis].value
        parts = next((values[k] for k in ("split_size", "chunks", "sections") if k in values), None)
        if size is None or isinstance(parts, Number):
            raise ScriptError(
                f"a number of parts that depends on the open size {dims[axis]}; give the size "
                "(--input-shape)"
            )
        if base == "unbind":
            return size
        if not isinstance(parts, int) or parts < 1:
            raise ScriptError(f"{parts} parts")
        if base in ("tensor_split", "hsplit", "vsplit", "dsplit"):
            return parts
        if size == 0 and "chunk" in base:
            return parts
        each = max(1, -(-size // parts)) if "chunk" in base else parts
        return max(1, -(-size // each))

    # Short spellings

    def size(self, tensor: Tensor, axis: int) -> Any:
        """The size of a dimension: a number, plain if it is known."""
        dims = self.dims(tensor)
        if not -len(dims) <= axis < len(dims):
            raise ScriptError(f"dimension {axis} of {len(dims)}")
        if (size := dims[axis].value) is not None:
            return size
        return self.call("aten.sym_size", [tensor, axis % len(dims)], {})

    def item(self, tensor: Tensor) -> Any:
        """The only element of a tensor as a number."""
        return self.call("aten.item", [tensor], {})


_NAMED_IN_PLACE = frozenset(["aten.__and__", "aten.__or__", "aten.__xor__"])


def fitted(formal: Argument, value: Any, is_lenient: bool) -> tuple[bool, Any]:
    """Whether a value is of the type of an argument, and as what it is given."""
    kind = formal.type
    if value is None:
        return kind.endswith("?"), None
    kind = kind.rstrip("?")
    if isinstance(value, Device):
        return kind == "Device", value
    if kind.startswith(_WITHOUT_MEANING):
        return isinstance(value, int) and kind != "Generator", value
    if kind == "ScalarType":
        return type(value) is int, value
    if kind.endswith("]") and not kind.startswith("Tensor?["):
        item = Argument(formal.name, kind[: kind.index("[")], None)
        if isinstance(value, tuple):
            value = list(cast("tuple[Any, ...]", value))
        if not isinstance(value, list):
            is_single = kind[-2].isdigit() and fitted(item, value, is_lenient)[0]
            count = int(kind[kind.index("[") + 1 : -1]) if is_single else 0
            return is_single, _repeated(value, count)
        pairs = [fitted(item, one, is_lenient) for one in cast("list[Any]", value)]
        return all(fits for fits, _ in pairs), [one for _, one in pairs]
    if kind.startswith("Tensor?["):
        if not isinstance(value, list):
            return False, None
        items = cast("list[Any]", value)
        return all(one is None or isinstance(one, Tensor) for one in items), items
    if kind == "Tensor":
        return isinstance(value, Tensor), value
    return _fits_plain(kind, value, is_lenient)


def _repeated(value: Any, count: int) -> list[Any]:
    return [value] * count


def _fits_plain(kind: str, value: Any, is_lenient: bool) -> tuple[bool, Any]:
    wanted = _PLAIN_TYPES.get(kind, ())
    found = kind_of(value)
    if found in wanted:
        return True, value
    if is_lenient and found in (int, bool, float) and wanted and str not in wanted:
        is_exact = found is not float or wanted != (int,)
        if isinstance(value, Number):
            return is_exact, value
        return is_exact and bool not in wanted, wanted[0](value) if is_exact else value
    return False, value


def describe(value: Any) -> str:
    """What messages call a value."""
    match value:
        case Tensor():
            return "a tensor"
        case Number():
            return f"a number of kind {value.kind.__name__} that depends on data"
        case Rows():
            return "items of a list whose length depends on data"
        case Unknown():
            return value.reason or "an unknown value"
        case list():
            items = cast("list[Any]", value)
            return f"a list of {len(items)}" + (f" ({describe(items[0])})" if items else "")
        case None | bool() | int() | float():
            return repr(value)
        case str():
            return repr(value[:40])
        case _:
            return type(value).__name__.lower()


def array_constant(values: Any, element: Attribute | None) -> ConstantOp:
    """The constant of nested lists of plain numbers."""
    import numpy as np

    try:
        found = np.array(values)
        if element is None:
            element = f32 if found.dtype.kind == "f" else element_of(found.dtype)
        return ConstantOp.of(found.astype(numpy_dtype(element)))
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        raise ScriptError(f"a tensor of such numbers: {error}") from None
