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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp
from lowerdeck.dialects.core.control_flow import YieldOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.onnx.builder import CoreBuilder
from lowerdeck.passes.legalize.onnx.registry import handler_of
from lowerdeck.passes.legalize.onnx.symbolic import SymbolicValues

if TYPE_CHECKING:
    from lowerdeck.dialects.onnx.ops import OnnxOp

_ABSENT = NoneType()


class RefusalError(Exception):
    """A node that has no form in `core`: what was found, expected, and what to do."""


class LegalizationError(PassFailedException):
    """All nodes that were refused, one a line."""

    def __init__(self, refusals: Sequence[str]) -> None:
        super().__init__("\n".join(refusals))
        self.refusals = tuple(refusals)


class _PoisonedError(Exception):
    """A subgraph holds a node that was refused, and reported, already."""


class Attributes:
    """
    Typed access to the attributes of one node, with the defaults of its schema.

    `default` is for attributes that have none there; without any, an absent one is refused. Reading
    is recorded: an attribute that the file gives and nobody reads is refused.
    """

    def __init__(self, op: OnnxOp) -> None:
        self._op = op
        self._read: set[str] = set()

    def int(self, name: str, default: int | None = None) -> int:
        return self._required(name, self.opt_int(name), default)

    def float(self, name: str, default: float | None = None) -> float:
        return self._required(name, self.opt_float(name), default)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """An integer that stands for true or false."""
        found = self.opt_int(name)
        return self._required(name, None if found is None else found != 0, default)

    def string(
        self, name: str, default: str | None = None, among: Sequence[str] | None = None
    ) -> str:
        """A text; refused unless it is one of `among`."""
        text = self._required(name, self.opt_string(name), default)
        if among is not None and text not in among:
            refuse(f"attribute '{name}' is '{text}'", f"one of {', '.join(among)}")
        return text

    def ints(self, name: str, default: Sequence[Any] | None = None) -> list[Any]:
        return list(self._required(name, self.opt_ints(name), default))

    def floats(self, name: str, default: Sequence[Any] | None = None) -> list[Any]:
        return list(self._required(name, self.opt_floats(name), default))

    def strings(self, name: str, default: Sequence[str] | None = None) -> list[str]:
        return list(self._required(name, self.opt_strings(name), default))

    def opt_int(self, name: str) -> Any | None:
        """An integer, or None if it is absent; so for the other `opt_` methods."""
        return self._op.get_int(self._note(name))

    def opt_float(self, name: str) -> Any | None:
        return self._op.get_float(self._note(name))

    def opt_string(self, name: str) -> str | None:
        return self._op.get_string(self._note(name))

    def opt_ints(self, name: str) -> list[Any] | None:
        found = self._op.get_ints(self._note(name))
        return None if found is None else list(found)

    def opt_floats(self, name: str) -> list[Any] | None:
        found = self._op.get_floats(self._note(name))
        return None if found is None else list(found)

    def opt_strings(self, name: str) -> list[str] | None:
        found = self._op.get_strings(self._note(name))
        return None if found is None else list(found)

    def tensor(self, name: str) -> NDArray[Any] | None:
        """The elements of a tensor attribute."""
        found = self._op.get_tensor(self._note(name))
        return None if found is None else found.array()

    def raw(self, name: str) -> Attribute | None:
        """An attribute of any other kind, as it is."""
        return self._op.attribute(self._note(name))

    def has(self, name: str) -> bool:
        """True if the file gives the attribute; this does not count as reading it."""
        return name in self._op.properties

    def ignore(self, *names: str) -> None:
        """State that attributes do not influence the results."""
        self._read.update(names)

    def require_read(self) -> None:
        """Refuse attributes that nobody has read."""
        unread = sorted(self._op.properties.keys() - self._read)
        if unread:
            refuse(f"attributes without effect: {', '.join(unread)}", "none that is not understood")

    def _note(self, name: str) -> str:
        self._read.add(name)
        return name

    def _required(self, name: str, found: Any, default: Any) -> Any:
        found = default if found is None else found
        return refuse(f"no attribute '{name}'", "it to be given") if found is None else found


def refuse(found: str, expected: str = "", next_step: str = "") -> NoReturn:
    """Give up on the current node: `found ..., expected ...; next step`."""
    text = f"found {found}"
    text += f", expected {expected}" if expected else ""
    text += f"; {next_step}" if next_step else ""
    raise RefusalError(text)


class Legalizer(CoreBuilder):
    """What a handler works with: the node's operands and attributes, and a builder before it."""

    def __init__(self, op: OnnxOp, walk: _FunctionWalk) -> None:
        super().__init__(InsertPoint.before(op), walk.symbols, op.location)
        self.op = op
        self.attrs = Attributes(op)
        self._walk = walk

    def refuse(self, found: str, expected: str = "", next_step: str = "") -> NoReturn:
        """Give up on this node: `found ..., expected ...; next step`."""
        refuse(found, expected, next_step)

    # Operands and results

    def input(self, name: str | int) -> SSAValue | None:
        """The operand for a formal input (by name or position), or None if it is absent."""
        return self.op.input(name)

    def operand(self, name: str | int) -> SSAValue:
        """The operand for a formal input that must be present."""
        value = self.op.input(name)
        return self.refuse(f"no input '{name}'", "it to be given") if value is None else value

    @property
    def inputs(self) -> list[SSAValue]:
        """All operands that are present, in order."""
        return [value for value in self.op.operands if value.type != _ABSENT]

    def wants(self, index: int) -> bool:
        """True if the node has result `index` and the result is named."""
        return index < len(self.op.results) and self.op.results[index].type != _ABSENT

    def axis(self, axis: int, rank: int) -> int:
        """`axis` counted from the front; refused if it is out of range."""
        if not -rank <= axis < rank:
            self.refuse(f"axis {axis}", f"-{rank} to {rank - 1}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """The distinct `axes` counted from the front, in order of their appearance."""
        found = [self.axis(axis, rank) for axis in axes]
        if len(set(found)) != len(found):
            self.refuse(f"axes {list(axes)}", "each dimension once")
        return found

    # Values that must be known

    def require_constant(self, value: SSAValue, what: str) -> NDArray[Any]:
        """The elements of `value`; refused if they depend on data."""
        array = self.constant(value)
        if array is None:
            self.refuse(f"{what} that depends on data", "a constant")
        return array

    def require_ints(self, value: SSAValue, what: str) -> list[int]:
        """The elements of an integer tensor; refused if they depend on data or symbols."""
        return [int(number) for number in self.require_constant(value, what).reshape(-1)]

    def require_exprs(self, value: SSAValue, what: str) -> list[Expr]:
        """The elements of a small integer tensor, as `exprs`; refused if it is not one."""
        found = self.exprs(value)
        if found is None:
            self.refuse(f"{what} of type {value.type}", "a short list of integers of known length")
        return found

    # Subgraphs

    def region(
        self,
        name: str,
        argument_types: Sequence[Attribute] = (),
        prepare: Callable[[CoreBuilder, Block], None] | None = None,
    ) -> Region:
        """
        A legalized copy of the subgraph `name`, ending in `core.yield`; the op keeps the original,
        so that it can be tried again with other types.

        `argument_types` replace the types of the block's arguments. Then `prepare` may change the
        arguments and build ops at the beginning of the block; its builder's symbols may be told
        what arguments are (`builder.symbols.know`). Values of enclosing blocks are used directly.
        """
        region = self.op.region(name).clone()
        block = region.block
        for argument, type_ in zip(block.args, argument_types, strict=False):
            if argument.type != type_:
                Rewriter.replace_value_with_new_type(argument, type_)
        if prepare is not None:
            prepare(self.at(InsertPoint.at_start(block)), block)
        if not self._walk.block(block):
            raise _PoisonedError
        last = block.last_op
        assert last is not None
        end = YieldOp(last.operands)
        end.location = last.location
        Rewriter.replace_op(last, end, [])
        return region


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
        for op in list(block.ops):
            if op.name == "onnx.none" and op.results[0].first_use is None:
                op.detach()
                op.erase()
        return complete

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
            except _PoisonedError:
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
        handler = handler_of(op)
        if handler is None:
            return self._expand(op)
        lower = Legalizer(op, self)
        try:
            results = list(handler(op, lower))
            lower.attrs.require_read()
        except (RefusalError, VerifyException, ZeroDivisionError, _PoisonedError):
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
        dims = lower.dims(list(elements.reshape(-1)), elements.shape)
        if (array := lower.constant(dims)) is not None:
            return lower.tensor(array.astype(numpy_dtype(element_type(value))))
        return lower.cast(dims, value)

    def _expand(self, op: OnnxOp) -> None:
        """Legalize the function that the schema gives for an operator without a handler."""
        from lowerdeck.dialects.onnx.functions import expand_function, function_body

        body = function_body(op)
        if body is None:
            domain = f" of domain {op.domain}" if op.domain else ""
            raise RefusalError(
                f"no legalization for {op.op_type} (opset {op.since_version}){domain}"
            )
        ops, values = expand_function(op, body)
        # The uses move first: legalizing the inner ops replaces `values` once more.
        self._replace(op, values)
        if not all([self._op(inner) for inner in ops]):
            raise _PoisonedError


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
        import lowerdeck.passes.legalize.onnx.handlers  # noqa: F401

        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                legalize_function(function)


def legalize_function(function: func.FuncOp) -> None:
    """Legalize the body of a function and give it the types of what it returns."""
    walk = _FunctionWalk(function)
    walk.block(function.body.block)
    if walk.refusals:
        # A subgraph that was tried with several types repeats its refusals.
        raise LegalizationError(list(dict.fromkeys(walk.refusals)))
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    function.function_type = func.FunctionType.from_lists(
        function.body.block.arg_types, last.arguments.types
    )
