"""What a handler works with: typed attributes, operands, subgraphs, and a builder of `core` ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import YieldOp
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.onnx.types import element_from_proto
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer, PoisonedError, refuse
from lowerdeck.passes.legalize.walk import FunctionWalk

_ABSENT = NoneType()


class Attributes:
    """
    Typed access to the attributes of one node, with the defaults of its schema.

    `default` is for attributes that have none there; without any, an absent one is refused. Reading
    is recorded: an attribute that the file gives and that is never read is refused.
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
        """Refuse attributes that have not been read, unless they are at their defaults."""
        names = self._op.properties.keys() - self._read
        unread = sorted(name for name in names if self._op.is_given(name))
        if unread:
            refuse(f"attributes without effect: {', '.join(unread)}", "none that is not understood")

    def _note(self, name: str) -> str:
        self._read.add(name)
        return name

    def _required(self, name: str, found: Any, default: Any) -> Any:
        found = default if found is None else found
        return refuse(f"no attribute '{name}'", "it to be given") if found is None else found


class OnnxLegalizer(Legalizer):
    """What a handler works with: the node's operands and attributes, and a builder before it."""

    def __init__(self, op: OnnxOp, walk: FunctionWalk) -> None:
        """`walk` legalizes subgraphs."""
        super().__init__(op, walk.symbols)
        self.op = op
        self.attrs = Attributes(op)
        self._walk = walk

    # Operands and results

    def input(self, name: str | int) -> SSAValue | None:
        """The operand for a formal input (by name or position), or None if it is absent."""
        return self.op.input(name)

    def operand(self, name: str | int) -> SSAValue:
        """The operand for a formal input that must be present."""
        value = self.op.input(name)
        return self.refuse(f"no input '{name}'", "it to be given") if value is None else value

    def element(self, number: int) -> Attribute:
        """The element type for a TensorProto.DataType; refused if it is none."""
        try:
            return element_from_proto(number)
        except ValueError as error:
            return self.refuse(str(error))

    @property
    def inputs(self) -> list[SSAValue]:
        """All operands that are present, in order."""
        return [value for value in self.op.operands if value.type != _ABSENT]

    def wants(self, index: int) -> bool:
        """True if the node has result `index` and the result is named."""
        return index < len(self.op.results) and self.op.results[index].type != _ABSENT

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
            raise PoisonedError
        _end(block)
        return region

    def attempt(self, region: Region) -> bool:
        """Legalize a region that has no owner yet, as `region` does; False if that cannot be."""
        if not self._walk.attempt(region.block):
            return False
        _end(region.block)
        return True

    def first(self, op: Operation) -> None:
        """Legalize an op of the same block, which does not depend on this one, before it."""
        op.detach()
        Rewriter.insert_op(op, self.point)
        if not self._walk.node(op):
            raise PoisonedError


def _end(block: Block) -> None:
    """Let a legalized block end in `core.yield`."""
    last = block.last_op
    assert last is not None
    end = YieldOp(last.operands)
    end.location = last.location
    Rewriter.replace_op(last, end, [])
