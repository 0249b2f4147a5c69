"""What the imports of both forms share: the function that is built, and how control flow is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import MAX_RANK, element_type, i1, i64, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.paddle.ops import known_class
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.paddle.elements import ProgramError
from lowerdeck.frontends.symbols import Symbols

MOST_DEPTH = 32
"""Blocks inside of one another."""

MOST_OPS = 1 << 18
"""Ops of a program with all its blocks."""


def unranked(value: SSAValue) -> Attribute:
    """The type of a value of the same elements and any shape."""
    return UnrankedTensorType(element_type(value))


class Building:
    """The function that an import makes, and what is wrong with the program."""

    def __init__(self, file: str, shapes: Mapping[str, Sequence[int]]) -> None:
        self.file = file
        self.location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.block = Block()
        self.inputs: list[str] = []
        self._shapes = shapes
        self._symbols = Symbols()
        self._count = 0

    # Problems

    def report(self, node: str, op_type: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(self.file, node, op_type, message))

    def raise_problems(self) -> None:
        """FrontendError if there is a problem."""
        if self.problems:
            raise FrontendError(self.problems)

    def fail(self, node: str, op_type: str, message: str) -> NoReturn:
        """Note a problem after which nothing can be told."""
        self.report(node, op_type, message)
        raise FrontendError(self.problems)

    # Values

    def input(self, name: str, element: Attribute, sizes: Sequence[int]) -> SSAValue:
        """An argument; each size of -1 is a dimension of its own."""
        if len(sizes) > MAX_RANK:
            raise ProgramError(f"'{name}' of {len(sizes)} dimensions")
        dims: list[ExprLike] = [self._symbols.unnamed() if n < 0 else n for n in sizes]
        if name in self._shapes:
            given = list(self._shapes[name])
            if len(given) != len(dims) or any(size < 0 for size in given):
                self.report("", "", f"shape {given} for '{name}' of rank {len(dims)}")
            dims = [*given]
        argument = self.block.insert_arg(tensor(element, dims), len(self.block.args))
        argument.location = NameLoc(StringAttr(name), self.location)
        argument.name_hint = name if name.isidentifier() else None
        self.inputs.append(name)
        return argument

    def weight(self, name: str, constant: ConstantOp) -> SSAValue:
        """A constant of the main block."""
        constant.location = NameLoc(StringAttr(name), self.location)
        self.block.add_op(constant)
        return constant.result

    def insert(self, block: Block, op: Operation, name: str) -> Sequence[SSAValue]:
        """Add an op to a block; its results."""
        self._count += 1
        if self._count > MOST_OPS:
            raise ProgramError(f"more than {MOST_OPS} operators")
        op.location = self.locate(name)
        block.add_op(op)
        return op.results

    def locate(self, name: str) -> LocationAttr:
        """Where a node is."""
        return NameLoc(StringAttr(name), self.location)

    def call(
        self, block: Block, name: str, op_type: str, element: Attribute, **given: Any
    ) -> SSAValue:
        """An operator with one result; arguments are values or plain."""
        cls = known_class(op_type)
        found: dict[str, Given] = {
            key: value if isinstance(value, SSAValue) else plain_attribute(value)
            for key, value in given.items()
        }
        counts = [1] + [0] * (len(cls.declared.results) - 1)
        return self.insert(block, cls(found, [UnrankedTensorType(element)], counts), name)[0]

    def truth(self, block: Block, name: str, value: SSAValue) -> SSAValue:
        """A condition as a truth value."""
        if element_type(value) == i1:
            return value
        return self.call(block, name, "cast", i1, x=value, dtype=i1)

    def integer(self, block: Block, name: str, number: int) -> SSAValue:
        """A scalar constant."""
        return self.insert(block, scalar(number, i64), name)[0]

    def create_array(self, block: Block, name: str, type_: Attribute) -> SSAValue:
        """An array of tensors without elements."""
        return self.insert(block, known_class("create_array")({}, [type_], [1]), name)[0]

    # Control flow

    def branch(
        self,
        block: Block,
        name: str,
        condition: SSAValue,
        blocks: tuple[Block, Block],
        values: tuple[Sequence[SSAValue], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """The values of one of two blocks."""
        regions: list[Region] = []
        for inner, yielded in zip(blocks, values, strict=True):
            inner.add_op(YieldOp(list(yielded)))
            regions.append(Region(inner))
        types = [unranked(value) for value in values[0]]
        op = IfOp(self.truth(block, name, condition), *regions, result_types=types)
        return self.insert(block, op, name)

    def loop_block(self, inits: Sequence[SSAValue]) -> Block:
        """The body of a loop, whose first argument is the iteration number."""
        return Block(arg_types=[tensor(i64, []), *map(unranked, inits)])

    def loop(
        self,
        block: Block,
        name: str,
        condition: SSAValue,
        inits: Sequence[SSAValue],
        body: Block,
        after: tuple[SSAValue, Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """The values that a loop carries, after it; `after` is what its body computes."""
        going, values = after
        body.add_op(YieldOp([self.truth(body, name, going), *values]))
        op = LoopOp(None, self.truth(block, name, condition), list(inits), Region(body))
        return self.insert(block, op, name)

    # The module

    def module(self, names: Sequence[str], values: Sequence[SSAValue]) -> ModuleOp:
        """The module with the function that returns values by name."""
        for name in self._shapes.keys() - set(self.inputs):
            known = ", ".join(f"'{known}'" for known in self.inputs)
            self.report("", "", f"a shape is given for '{name}', but the inputs are {known}")
        self.raise_problems()
        last = func.ReturnOp(*values)
        self.block.add_op(last)
        main = func.FuncOp(
            "main",
            (self.block.arg_types, last.arguments.types),
            Region(self.block),
            arg_attrs=named(self.inputs),
            res_attrs=named(_distinct(names)),
        )
        main.location = last.location = self.location
        return ModuleOp([main])


def _distinct(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    found: list[str] = []
    for base in names:
        name, count = base, 1
        while name in taken:
            name, count = f"{base}_{count}", count + 1
        taken.add(name)
        found.append(name)
    return found
