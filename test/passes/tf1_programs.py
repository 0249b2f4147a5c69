"""Random programs as graphs of TensorFlow 1: nested conditionals and loops, in many spellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.types import element_of, element_type, i1, i64, tensor
from lowerdeck.dialects.tf1.attributes import DTypeAttr
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, Tf1Op, op_class
from lowerdeck.passes.machinery.provenance import source_location

FLOAT, BOOL, INT = DTypeAttr("float"), DTypeAttr("bool"), DTypeAttr("int32")

_NUMPY = {FLOAT: np.float32, BOOL: np.bool_, INT: np.int32}

Import = Callable[[SSAValue], SSAValue]


@dataclass
class Builder:
    """A graph that grows; every node has a control token and a name."""

    random: Random
    block: Block = field(default_factory=Block)
    call: Callable[[Scope, int], None] | None = None
    """Adds code that calls functions, if there are to be any."""
    count: int = 0

    def node(
        self,
        op_type: str,
        inputs: Sequence[SSAValue],
        controls: Sequence[SSAValue] = (),
        **attributes: Attribute,
    ) -> Tf1Op:
        """A new node."""
        cls = op_class(op_type)
        assert cls is not None
        return self._add(cls([*inputs, *controls], attributes, has_control=True))

    def constant(self, value: object, dtype: DTypeAttr, controls: Sequence[SSAValue]) -> SSAValue:
        """A scalar constant, which is in the frame of its controls."""
        array = np.array(value, _NUMPY[dtype])
        cls = op_class("Const")
        assert cls is not None
        attributes = {"dtype": dtype, "value": BlobAttr(Blob.of(array))}
        types = [tensor(element_of(array.dtype), [])]
        return self._add(cls(controls, attributes, has_control=True, result_types=types)).results[0]

    def _add(self, op: Tf1Op) -> Tf1Op:
        self.count += 1
        op.location = source_location(f"n{self.count}_{op.op_type}")
        self.block.add_op(op)
        return op


@dataclass
class Scope:
    """Where code is built: what is outside comes in by `bring`, constants wait for `pivot`."""

    builder: Builder
    outer: Scope | None
    bring: Import
    pivot: SSAValue | None
    frames: list[str] = field(default_factory=list[str])
    """The names of the loops in this frame, which branches share."""
    floats: list[SSAValue] = field(default_factory=list[SSAValue])
    bools: list[SSAValue] = field(default_factory=list[SSAValue])

    def controls(self) -> list[SSAValue]:
        """The control inputs of a constant."""
        return [] if self.pivot is None else [self.pivot]

    def value(self, is_bool: bool) -> SSAValue:
        """A value of this scope, from outside, or new."""
        random = self.builder.random
        own = self.bools if is_bool else self.floats
        if self.outer is not None and random.random() < 0.3:
            found = self.bring(self.outer.value(is_bool))
            own.append(found)
            return found
        if own and random.random() < 0.85:
            return random.choice(own)
        if is_bool:
            return self.compare()
        number = round(random.uniform(-2, 2), 2)
        return self.builder.constant(number, FLOAT, self.controls())

    def compare(self) -> SSAValue:
        """A new predicate."""
        inputs = [self.value(False), self.value(False)]
        return self.builder.node("Less", inputs, T=FLOAT).results[0]


def random_graph(seed: int, size: int = 6) -> ModuleOp:
    """A module with a graph of random nested code over inputs x:0 and y:0 (float), p:0 (bool)."""
    return ModuleOp([graph_of(Builder(Random(seed)), size)])


def graph_of(builder: Builder, size: int) -> GraphOp:
    """The graph of random code that a builder makes."""
    root = Scope(builder, None, lambda value: value, None)
    for name, dtype in (("x", FLOAT), ("y", FLOAT), ("p", BOOL)):
        op = builder.node("Placeholder", [], dtype=dtype)
        op.location = source_location(name)
        (root.bools if dtype is BOOL else root.floats).append(op.results[0])
    for _ in range(size):
        statement(root, 3)
    fetched = root.floats[2:]
    builder.block.add_op(FetchOp(fetched, [f"out{k}" for k in range(len(fetched))]))
    return GraphOp("main", Region(builder.block))


def statement(scope: Scope, depth: int) -> None:
    """Add some code to a scope, and what it computes to the scope's values."""
    random, node = scope.builder.random, scope.builder.node
    if scope.builder.call is not None and depth and random.random() < 0.3:
        return scope.builder.call(scope, depth)
    kinds = ("map", "zip", "logic", *(["cond"] * 3 + ["loop"] if depth else []))
    match random.choice(kinds):
        case "map":
            kind = random.choice(("Neg", "Tanh", "Abs", "Identity"))
            scope.floats.append(node(kind, [scope.value(False)], T=FLOAT).results[0])
        case "zip":
            kind = random.choice(("AddV2", "Mul", "Maximum"))
            inputs = [scope.value(False), scope.value(False)]
            wide = node(kind, inputs, T=FLOAT).results[0]
            scope.floats.append(node("Tanh", [wide], T=FLOAT).results[0])
        case "logic":
            a, b = scope.value(True), scope.value(True)
            kind = random.choice(("LogicalNot", "LogicalAnd", "LogicalOr"))
            inputs = [a] if kind == "LogicalNot" else [a, b]
            scope.bools.append(node(kind, inputs).results[0])
        case "cond":
            _conditional(scope, depth)
        case _:
            _loop(scope, depth)


def _switch(scope: Scope, value: SSAValue, predicate: SSAValue, dtype: DTypeAttr) -> list[SSAValue]:
    """What the value is where the predicate is false and true, by one of many spellings."""
    node, random = scope.builder.node, scope.builder.random
    if random.random() < 0.2:
        predicate = node("Identity", [predicate], T=BOOL).results[0]
    if random.random() < 0.3:
        negated = node("LogicalNot", [predicate]).results[0]
        switch = node("Switch", [value, negated], T=dtype)
        return [switch.results[1], switch.results[0]]
    return list(node("Switch", [value, predicate], T=dtype).results[:2])


def _branch(scope: Scope, predicate: SSAValue, side: bool) -> Scope:
    """The scope of one side of a conditional."""
    pivot = _switch(scope, predicate, predicate, BOOL)[side]
    waiting = scope.builder.node("Identity", [pivot], T=BOOL).results[1]

    def bring(value: SSAValue) -> SSAValue:
        return _switch(scope, value, predicate, _dtype(value))[side]

    return Scope(scope.builder, scope, bring, waiting, scope.frames)


def _conditional(scope: Scope, depth: int) -> None:
    """A conditional of up to three results; its inputs may be those of nested ones."""
    builder, random = scope.builder, scope.builder.random
    predicate = scope.value(True)
    count = random.randint(1, 3)
    sides: list[list[list[SSAValue]]] = []
    for side in (False, True):
        inner = _branch(scope, predicate, side)
        for _ in range(random.randint(0, 3)):
            statement(inner, depth - 1)
        if depth > 1 and random.random() < 0.3:  # a Merge of three or four inputs
            again = inner.value(True)
            parts = [_branch(inner, again, way) for way in (False, True)]
            for part in parts:
                statement(part, depth - 2)
            sides.append([[part.value(False) for _ in range(count)] for part in parts])
        else:
            sides.append([[inner.value(False) for _ in range(count)]])
    for number in range(count):
        inputs = [values[number] for side in sides for values in side]
        random.shuffle(inputs)
        merge = builder.node("Merge", inputs, T=FLOAT, N=IntegerAttr(len(inputs), i64))
        scope.floats.append(merge.results[0])
        if random.random() < 0.3:
            cast = builder.node("Cast", [merge.results[1]], SrcT=INT, DstT=FLOAT)
            scope.floats.append(cast.results[0])


def _loop(scope: Scope, depth: int) -> None:
    """A loop of a few trips over up to three floats; any variable may follow any other."""
    builder, random = scope.builder, scope.builder.random
    node = builder.node
    frame = StringAttr(f"w{len(scope.frames)}")  # inner loops may have the names of outer ones
    scope.frames.append(frame.data)

    def enter(value: SSAValue, dtype: DTypeAttr, constant: bool) -> SSAValue:
        flag = IntegerAttr(int(constant), i1)
        return node("Enter", [value], T=dtype, frame_name=frame, is_constant=flag).results[0]

    def merge(value: SSAValue, dtype: DTypeAttr) -> Tf1Op:
        first = enter(value, dtype, False)
        return node("Merge", [first, first], T=dtype, N=IntegerAttr(2, i64))

    zero = builder.constant(0, INT, scope.controls())
    counter = merge(zero, INT)
    count = random.randint(1, 3)
    merges = [merge(scope.value(False), FLOAT) for _ in range(count)]

    def bring(value: SSAValue) -> SSAValue:
        return enter(value, _dtype(value), True)

    alive = node("Identity", [counter.results[0]], T=INT).results[1]
    inner: list[str] = []
    head = Scope(builder, scope, bring, alive, inner, [m.results[0] for m in merges])
    if random.random() < 0.4:
        statement(head, depth - 1)
    limit = builder.constant(random.randint(0, 2), INT, [alive])
    going = node("Less", [counter.results[0], limit], T=INT).results[0]
    if random.random() < 0.4:
        going = node("LogicalAnd", [going, head.value(True)]).results[0]
    condition = node("LoopCond", [going]).results[0]
    # Switches of the body, and of what is after it.
    switches = [node("Switch", [m.results[0], condition], T=FLOAT) for m in merges]
    step = node("Switch", [counter.results[0], condition], T=INT)
    pivot = node("Identity", [step.results[1]], T=INT)

    def bring_if_alive(value: SSAValue) -> SSAValue:
        """An invariant in the body has to wait for the condition of each iteration."""
        inside, dtype = bring(value), _dtype(value)
        if random.random() < 0.5:
            return node("Switch", [inside, condition], T=dtype).results[1]
        return node("Identity", [inside], [pivot.results[1]], T=dtype).results[0]

    inside: list[SSAValue] = [switch.results[1] for switch in switches]
    body = Scope(builder, scope, bring_if_alive, pivot.results[1], inner, inside)
    for _ in range(random.randint(0, 4)):
        statement(body, depth - 1)
    one = builder.constant(1, INT, [pivot.results[1]])
    added = node("AddV2", [pivot.results[0], one], T=INT).results[0]
    following = [random.choice(body.floats) for _ in merges]
    for loop_variable, value, dtype in (
        (counter, added, INT),
        *((m, f, FLOAT) for m, f in zip(merges, following, strict=True)),
    ):
        back = node("NextIteration", [value], T=dtype).results[0]
        operands = list(loop_variable.operands)
        operands[random.randint(0, 1)] = back
        loop_variable.operands = operands
    for switch in random.sample(switches, random.randint(1, count)):
        value = switch.results[0]
        if random.random() < 0.3:
            value = node("Neg", [value], T=FLOAT).results[0]
        scope.floats.append(node("Exit", [value], T=FLOAT).results[0])


def _dtype(value: SSAValue) -> DTypeAttr:
    return BOOL if element_type(value) == i1 else FLOAT
