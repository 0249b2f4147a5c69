"""Random programs whose control flow is in functions, beside and inside of the cyclic form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.tf1.attributes import DTypeAttr, value_type
from lowerdeck.dialects.tf1.functions import FunctionOp, ReturnOp
from lowerdeck.dialects.tf1.ops import Tf1Op

from .tf1_programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    BOOL,
    FLOAT,
    INT,
    Builder,
    Scope,
    graph_of,
    statement,
)

DTypes = Sequence[DTypeAttr]


def random_functions(seed: int, size: int = 5) -> ModuleOp:
    """A module as `random_graph` gives, with functions."""
    library = _Library(Random(seed))
    graph = graph_of(Builder(library.random, call=library.statement), size)
    return ModuleOp([graph, *library.functions])


@dataclass
class _Library:
    """Functions as far as they are needed; one may be used several times."""

    random: Random
    functions: list[FunctionOp] = field(default_factory=list[FunctionOp])
    known: dict[tuple[DTypeAttr, ...], list[tuple[int, str]]] = field(
        default_factory=dict[tuple[DTypeAttr, ...], list[tuple[int, str]]]
    )
    """Symbols with how deep the function may nest, by types of arguments, then of results."""

    def statement(self, scope: Scope, depth: int) -> None:
        """Add a node that runs functions to a scope, and its results to the scope's values."""
        random = self.random
        inputs = [random.choice((FLOAT, FLOAT, BOOL)) for _ in range(random.randint(0, 3))]
        outputs = [random.choice((FLOAT, FLOAT, BOOL)) for _ in range(random.randint(1, 3))]
        match random.choice(("call", "if", "case", "while")):
            case "call":
                op = self._call(scope, inputs, outputs, depth)
            case "if":
                op = self._if(scope, inputs, outputs, depth)
            case "case":
                op = self._case(scope, inputs, outputs, depth)
            case _:
                op = self._while(scope, [INT, *inputs], depth)
                outputs = [INT, *inputs]
        for dtype, value in zip(outputs, op.outputs, strict=True):
            if dtype is not INT:
                (scope.bools if dtype is BOOL else scope.floats).append(value)

    def _node(
        self, scope: Scope, op_type: str, inputs: Sequence[SSAValue], **attributes: Attribute
    ) -> Tf1Op:
        # Without inputs it waits for the branch that it is in.
        controls = scope.controls() if not inputs or self.random.random() < 0.3 else ()
        return scope.builder.node(op_type, inputs, controls, **attributes)

    def _call(self, scope: Scope, inputs: DTypes, outputs: DTypes, depth: int) -> Tf1Op:
        kind = self.random.choice(("PartitionedCall", "StatefulPartitionedCall"))
        f = self._function(inputs, outputs, depth)
        values = _values(scope, inputs)
        return self._node(scope, kind, values, Tin=_list(inputs), Tout=_list(outputs), f=f)

    def _if(self, scope: Scope, inputs: DTypes, outputs: DTypes, depth: int) -> Tf1Op:
        dtype = self.random.choice((BOOL, FLOAT, INT))
        return self._node(
            scope,
            self.random.choice(("If", "StatelessIf")),
            [self._condition(scope, dtype), *_values(scope, inputs)],
            Tcond=dtype,
            Tin=_list(inputs),
            Tout=_list(outputs),
            then_branch=self._function(inputs, outputs, depth),
            else_branch=self._function(inputs, outputs, depth),
        )

    def _case(self, scope: Scope, inputs: DTypes, outputs: DTypes, depth: int) -> Tf1Op:
        count = self.random.randint(1, 3)
        branches = [self._function(inputs, outputs, depth) for _ in range(count)]
        return self._node(
            scope,
            self.random.choice(("Case", "StatelessCase")),
            [self._condition(scope, INT), *_values(scope, inputs)],
            Tin=_list(inputs),
            Tout=_list(outputs),
            branches=ArrayAttr(branches),
        )

    def _condition(self, scope: Scope, dtype: DTypeAttr) -> SSAValue:
        """A Boolean, or a number that is often zero."""
        if dtype is BOOL:
            return scope.value(True)
        value = scope.value(False)
        whole = scope.builder.node("Cast", [value], SrcT=FLOAT, DstT=INT).results[0]
        if dtype is INT:
            return whole
        return scope.builder.node("Cast", [whole], SrcT=INT, DstT=FLOAT).results[0]

    def _while(self, scope: Scope, dtypes: DTypes, depth: int) -> Tf1Op:
        """A loop whose first variable counts."""
        zero = scope.builder.constant(0, INT, scope.controls())
        return self._node(
            scope,
            self.random.choice(("While", "StatelessWhile")),
            [zero, *_values(scope, dtypes[1:])],
            T=_list(dtypes),
            cond=self._going(dtypes, depth),
            body=self._body(dtypes, depth),
        )

    # Functions

    def _function(self, inputs: DTypes, outputs: DTypes, depth: int) -> SymbolRefAttr:
        """A function of random code, old or new."""
        key = (*inputs, INT, *outputs)
        fitting = [symbol for deep, symbol in self.known.get(key, ()) if deep < depth]
        if fitting and self.random.random() < 0.4:
            return SymbolRefAttr(self.random.choice(fitting))
        scope = self._scope(inputs)
        for _ in range(self.random.randint(0, 3)):
            statement(scope, depth - 1)
        made = self._made(scope, _values(scope, outputs))
        self.known.setdefault(key, []).append((depth - 1, made.string_value()))
        return made

    def _going(self, dtypes: DTypes, depth: int) -> SymbolRefAttr:
        """The condition: true for a few iterations at most, and of any type."""
        scope = self._scope(dtypes)
        counter = scope.builder.block.args[0]
        limit = scope.builder.constant(self.random.randint(0, 3), INT, [])
        if self.random.random() < 0.3:
            left = scope.builder.node("Sub", [limit, counter], T=INT).results[0]
            return self._made(scope, [left])
        going = scope.builder.node("Less", [counter, limit], T=INT).results[0]
        if self.random.random() < 0.5:
            statement(scope, depth - 1)
            both = [going, scope.value(True)]
            going = scope.builder.node("LogicalAnd", both).results[0]
        return self._made(scope, [going])

    def _body(self, dtypes: DTypes, depth: int) -> SymbolRefAttr:
        scope = self._scope(dtypes)
        counter = scope.builder.block.args[0]
        one = scope.builder.constant(1, INT, [])
        following = scope.builder.node("AddV2", [counter, one], T=INT).results[0]
        for _ in range(self.random.randint(0, 3)):
            statement(scope, depth - 1)
        return self._made(scope, [following, *_values(scope, dtypes[1:])])

    def _scope(self, inputs: DTypes) -> Scope:
        """The inside of a new function."""
        block = Block(arg_types=[value_type(dtype.data) for dtype in inputs])
        builder = Builder(self.random, block, self.statement)
        scope = Scope(builder, None, lambda value: value, None)
        for dtype, argument in zip(inputs, block.args, strict=True):
            if dtype is not INT:
                (scope.bools if dtype is BOOL else scope.floats).append(argument)
        return scope

    def _made(self, scope: Scope, results: Sequence[SSAValue]) -> SymbolRefAttr:
        symbol = f"f{len(self.functions)}"
        scope.builder.block.add_op(ReturnOp(results))
        self.functions.append(FunctionOp(symbol, Region(scope.builder.block)))
        return SymbolRefAttr(symbol)


def _values(scope: Scope, dtypes: DTypes) -> list[SSAValue]:
    return [scope.value(dtype is BOOL) for dtype in dtypes]


def _list(dtypes: DTypes) -> ArrayAttr[DTypeAttr]:
    return ArrayAttr(dtypes)
