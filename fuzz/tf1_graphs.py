"""
Random graphs of TensorFlow 1 with loops and branches, as raw nodes.

A graph is built from the execution model alone: of every value it is known in which cases it is
alive, as a table over the predicates drawn so far. Whatever keeps to the model may come out, and
most of it no API would write:

- a Merge takes any values that are never alive together, two or six, nested or flat, and may have
  an input that is always dead; its index is a value like others;
- a value gets to where it is alive by Switches, by control inputs, or by what it is computed with;
- a predicate may be computed anew, spelled in another way, wherever it is asked again;
- loops are rings of Enter, Merge, Switch and NextIteration with any number of each, in branches,
  loops and conditions, of equal names, with variables that change places, shape or not at all.

All numbers are small integers, whatever their type, so that every order of computing them gives
the same result, and no predicate depends on rounding.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.tf1.graph_pb2 import GraphDef, NodeDef

Array = NDArray[Any]

_ATOMS = 10
ALWAYS = (1 << (1 << _ATOMS)) - 1
"""The cases: every combination of the predicates, one bit each."""

_FLOAT, _INT, _BOOL, _RESOURCE = 1, 3, 10, 20
_DTYPES = {"f": _FLOAT, "v": _FLOAT, "a": _FLOAT, "i": _INT, "b": _BOOL, "h": _RESOURCE, "-": _INT}
"""
Element types by kind: a number, a vector of them, the flow of an array, an integer, a Boolean, the
handle of an array.
"""

_TYPES = frozenset({"T", "dtype", "Tdim", "Tidx", "Index", "out_type"})
"""Attributes that are types."""

_LENGTH = 4
"""Of arrays; no loop has as many iterations."""

_MIRRORED = {
    "Less": "Greater",
    "Greater": "Less",
    "LessEqual": "GreaterEqual",
    "GreaterEqual": "LessEqual",
    "Equal": "Equal",
    "NotEqual": "NotEqual",
}
_SWAPPED = ("AddV2", "Mul", "LogicalAnd", "LogicalOr")


def _cases_of(atom: int) -> int:
    """The cases in which an atom is true."""
    block = 1 << atom
    ones = ((1 << block) - 1) << block
    table = 0
    for start in range(0, 1 << _ATOMS, 2 * block):
        table |= ones << start
    return table


_TABLES = [_cases_of(atom) for atom in range(_ATOMS)]


@dataclass(frozen=True, eq=False)
class Value:
    """One output of a node."""

    ref: str
    kind: str
    when: int
    """The cases in which it is alive."""
    truth: int = 0
    """Of a Boolean, the cases in which it is true."""
    op: str = ""
    """The operator of the node, where a copy of it would give the same value."""
    inputs: tuple[Value, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    switch: int | None = None
    """Of an output of a Switch, the cases in which that runs; it is either output that is dead."""

    @property
    def runs(self) -> int:
        """The cases in which its node lets others run that wait for it."""
        return self.when if self.switch is None else self.switch

    @property
    def node(self) -> str:
        """The name of its node."""
        return self.ref.partition(":")[0]


@dataclass(eq=False)
class Frame:
    """Where nodes are: the graph itself, or one iteration of a loop."""

    parent: Frame | None
    context: int
    """The cases in which all variables of the loop are alive."""
    name: str = ""
    values: list[Value] = field(default_factory=list[Value])
    names: list[str] = field(default_factory=list[str])
    """The names of frames inside."""
    depth: int = 0
    arrays: list[TensorArray] = field(default_factory=list["TensorArray"])
    """The arrays that may be read."""


@dataclass(frozen=True)
class TensorArray:
    """An array of numbers, some of which may never have been written: these are zero."""

    handle: Value
    flow: Value


@dataclass(frozen=True)
class Program:
    """A graph with what it is to be run on."""

    graph: GraphDef
    fetches: tuple[str, ...]
    feeds: tuple[dict[str, Array], ...]


@dataclass(frozen=True)
class Size:
    """How large graphs get."""

    steps: int = 5
    depth: int = 3
    """Of loops in loops."""
    nodes: int = 200
    """Beyond which no branch or loop is begun."""
    reuses_names: bool = True
    """
    Some graphs have frames of one name in different ones. They are different frames, which
    TensorFlow of today takes for a mistake.
    """


def random_program(seed: int, size: Size = Size()) -> Program:
    """The graph of a seed, shuffled and with names of random letters."""
    return Generator(Random(seed), size).program()


class Generator:
    """One graph, while it is built."""

    def __init__(self, random: Random, size: Size) -> None:
        self.random = random
        self.size = size
        self.nodes: dict[str, NodeDef] = {}
        self.atoms = 0
        # Graphs differ in what there is most of.
        self.limit = random.randint(size.nodes // 4, size.nodes)
        self.merges, self.loops = random.randint(1, 5), random.randint(0, 6)
        self.reuses_names = size.reuses_names and random.random() < 0.1

    def program(self) -> Program:
        root = Frame(None, ALWAYS)
        inputs = {"x": "f", "y": "f", "n": "i", "p": "b", "q": "b", "z": "v"}
        for name, kind in inputs.items():
            node = NodeDef(name=name, op="Placeholder")
            _set_attribute(node, "dtype", _DTYPES[kind])
            shape = node.attr["shape"].shape
            shape.SetInParent()
            if kind == "v":
                shape.dim.add().size = -1
            self.nodes[name] = node
            truth = self.atom() if kind == "b" else 0
            root.values.append(Value(name, kind, ALWAYS, truth))
        given = len(root.values)
        for _ in range(self.random.randint(2, self.size.steps)):
            self.step(root, ALWAYS, self.size.depth)
        fetches = self._fetches(root, root.values[given:])
        feeds = tuple(self._feed() for _ in range(3))
        return Program(self._graph(), fetches, feeds)

    def _feed(self) -> dict[str, Array]:
        random = self.random
        vector = [random.randint(-3, 3) for _ in range(random.randint(0, 4))]
        return {
            "x:0": np.array(random.randint(-3, 3), np.float32),
            "y:0": np.array(random.randint(-3, 3), np.float32),
            "n:0": np.array(random.randint(-1, 4), np.int32),
            "p:0": np.array(random.random() < 0.5),
            "q:0": np.array(random.random() < 0.5),
            "z:0": np.array(vector, np.float32),
        }

    def _fetches(self, root: Frame, made: Sequence[Value]) -> tuple[str, ...]:
        """Values that are always alive, and Merges of those that are not."""
        alive = [v for v in made if v.when == ALWAYS and v.kind in "fvib"]
        joined = [v for v in alive if self.nodes[v.node].op in ("Exit", "Merge")]
        found = dict.fromkeys(v.ref for v in alive[-3:])
        for values, most in ((joined, 6), (alive, 3)):
            chosen = self.random.sample(values, min(most, len(values)))
            found.update(dict.fromkeys(v.ref for v in chosen))
        merged = self.merge(root, self.random.choice("ffiv"), ALWAYS, 0)
        found[merged.ref] = None
        return tuple(ref if ":" in ref else f"{ref}:0" for ref in found)

    def _graph(self) -> GraphDef:
        graph = GraphDef()
        graph.versions.producer = 27
        nodes = list(self.nodes.values())
        self.random.shuffle(nodes)
        graph.node.extend(nodes)
        return graph

    # Nodes

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = "".join(self.random.choices(string.ascii_letters, k=3)) + str(len(self.nodes))
        node = NodeDef(name=name, op=op, input=inputs)
        for key, value in attributes.items():
            _set_attribute(node, key, value)
        self.nodes[name] = node
        return name

    def op(
        self,
        frame: Frame,
        op: str,
        inputs: Sequence[Value],
        kind: str,
        truth: int = 0,
        controls: Sequence[Value] = (),
        **attributes: Any,
    ) -> Value:
        """A node that is alive if all its inputs are."""
        when = ALWAYS
        for value in inputs:
            when &= value.when
        for value in controls:
            when &= value.runs
        name = self.node(
            op, [*(v.ref for v in inputs), *(f"^{v.node}" for v in controls)], **attributes
        )
        value = Value(name, kind, when, truth, op, tuple(inputs), attributes)
        frame.values.append(value)
        return value

    def constant(self, frame: Frame, array: Any, kind: str, when: int) -> Value:
        """A constant that is alive in some cases at least; in a loop it has a control input."""
        truth = ALWAYS if kind == "b" and bool(array) else 0
        controls: list[Value] = []
        if frame.parent is not None or self.random.random() < 0.2:
            controls = [self.waited_for(frame, when)]
        return self.op(frame, "Const", (), kind, truth, controls, dtype=_DTYPES[kind], value=array)

    def waited_for(self, frame: Frame, when: int) -> Value:
        """A value whose node runs in some cases at least; just in these, mostly."""
        able = [v for v in frame.values if when in (v.when & when, v.runs & when)]
        exact = [v for v in able if when in (v.when, v.runs)]
        found = self.random.choice(exact if exact and self.random.random() < 0.8 else able)
        return found if found.runs & when == when else self.pivot(frame, found)

    def pivot(self, frame: Frame, value: Value) -> Value:
        """A node that runs when the value is alive."""
        kind = value.kind
        return self.op(frame, "Identity", [value], kind, value.truth, T=_DTYPES[kind])

    # Values that are there in some cases

    def pick(self, frame: Frame, kind: str, when: int) -> Value:
        """A value of a kind that is alive in some cases at least."""
        random = self.random
        able = [v for v in frame.values if v.kind == kind and v.when & when == when]
        exact = [v for v in able if v.when == when]
        if exact and random.random() < 0.5:
            able = exact
        if able and random.random() < 0.8:
            return able[-1 - min(int(random.expovariate(0.3)), len(able) - 1)]
        if frame.parent is not None and random.random() < 0.6:
            return self.bring(frame, self.pick(frame.parent, kind, frame.context))
        match kind:
            case "f":
                return self.constant(frame, np.float32(random.randint(-3, 3)), kind, when)
            case "i":
                return self.constant(frame, np.int32(random.randint(0, 3)), kind, when)
            case "b":
                return self.compare(frame, when)
            case _:
                vector = [random.randint(-3, 3) for _ in range(random.randint(0, 3))]
                return self.constant(frame, np.array(vector, np.float32), kind, when)

    def bring(self, frame: Frame, value: Value) -> Value:
        """An invariant of the loop, alive where the value is, be the loop entered or not."""
        name = self.enter(frame, value, True)
        entered = Value(name, value.kind, value.when, value.truth)
        frame.values.append(entered)
        return entered

    def enter(self, frame: Frame, value: Value, is_constant: bool) -> str:
        return self.node(
            "Enter",
            [value.ref],
            T=_DTYPES[value.kind],
            frame_name=frame.name,
            is_constant=is_constant,
            parallel_iterations=10,
        )

    def compare(self, frame: Frame, when: int) -> Value:
        """A new predicate, as long as there may be more of them."""
        known = [v for v in frame.values if v.kind == "b" and v.when & when == when]
        if self.atoms >= _ATOMS and known:
            return self.random.choice(known)
        if self.atoms >= _ATOMS or self.random.random() < 0.05:
            return self.constant(frame, np.bool_(self.random.random() < 0.5), "b", when)
        kind = self.random.choice("fi")
        inputs = [self.pick(frame, kind, when) for _ in range(2)]
        op = self.random.choice(list(_MIRRORED))
        return self.op(frame, op, inputs, "b", self.atom(), T=_DTYPES[kind])

    def atom(self) -> int:
        self.atoms += 1
        return _TABLES[self.atoms - 1]

    def respelled(self, frame: Frame, value: Value, depth: int = 2) -> Value:
        """The same value computed again, if it is what a pure operator gives."""
        random = self.random
        if not value.op or value.op.startswith("TensorArray"):
            return value
        if value.op == "Const" and random.random() < 0.5:
            return value
        if value.op == "Const":
            array = value.attributes["value"]
            return self.constant(frame, array, value.kind, value.when)
        inputs = list(value.inputs)
        if depth:
            inputs = [self.respelled(frame, v, depth - 1) for v in inputs]
        op, kind = value.op, inputs[0].kind
        if random.random() < 0.3:
            same = self.op(frame, "Identity", inputs[:1], kind, inputs[0].truth, T=_DTYPES[kind])
            inputs[0] = same
        if op in _MIRRORED and random.random() < 0.3:
            op, inputs = _MIRRORED[op], inputs[::-1]
        elif op in _SWAPPED and random.random() < 0.3:
            inputs = inputs[::-1]
        again = self.op(frame, op, inputs, value.kind, value.truth, **value.attributes)
        return again

    def predicate(self, frame: Frame, when: int) -> Value:
        """A Boolean that is there in some cases at least, and mostly differs among them."""
        random = self.random
        known = [v for v in frame.values if v.kind == "b" and v.when & when == when]
        parting = [v for v in known if 0 != v.truth & when != when]
        if parting and random.random() < 0.75:
            found = random.choice(parting)
        elif known and random.random() < 0.08:
            found = random.choice(known)
        else:
            found = self.compare(frame, when)
        if random.random() < 0.3:
            found = self.composed(frame, found, when)
        if random.random() < 0.3:
            again = self.respelled(frame, found)
            if again.when & when == when:
                found = again
        return found

    def composed(self, frame: Frame, value: Value, when: int) -> Value:
        match self.random.choice(("Not", "And", "Or", "Identity")):
            case "Not":
                return self.op(frame, "LogicalNot", [value], "b", ALWAYS & ~value.truth)
            case "And":
                other = self.pick(frame, "b", when)
                return self.op(frame, "LogicalAnd", [value, other], "b", value.truth & other.truth)
            case "Or":
                other = self.pick(frame, "b", when)
                return self.op(frame, "LogicalOr", [value, other], "b", value.truth | other.truth)
            case _:
                return self.op(frame, "Identity", [value], "b", value.truth, T=_BOOL)

    def switch(self, frame: Frame, data: Value, predicate: Value) -> tuple[Value, Value]:
        """The data where the predicate is false, and where it is true."""
        name = self.node("Switch", [data.ref, predicate.ref], T=_DTYPES[data.kind])
        both = data.when & predicate.when
        no = Value(name, data.kind, both & ~predicate.truth, data.truth, switch=both)
        yes = Value(f"{name}:1", data.kind, both & predicate.truth, data.truth, switch=both)
        frame.values += [no, yes]
        return no, yes

    def gated(self, frame: Frame, value: Value, when: int) -> Value:
        """A value, alive in exactly these cases; it is in them."""
        random = self.random
        if value.when == when:
            return value
        ways: list[Callable[[], Value]] = []
        exact = [v for v in frame.values if when in (v.runs, v.when)]
        for predicate in [v for v in frame.values if v.kind == "b" and v.when & when == when]:
            both = value.when & predicate.when
            for side, cases in enumerate((both & ~predicate.truth, both & predicate.truth)):
                if cases == when:
                    ways.append(lambda p=predicate, s=side: self.switch(frame, value, p)[s])
        if exact and (random.random() < 0.5 or not ways):
            pivot = random.choice(exact)
            pivots = [pivot if pivot.runs == when else self.pivot(frame, pivot)]
            kind = value.kind
            return self.op(frame, "Identity", [value], kind, value.truth, pivots, T=_DTYPES[kind])
        return random.choice(ways)()

    def parts(self, frame: Frame, kind: str, when: int, depth: int, budget: int) -> list[Value]:
        """Values that are alive in turn, and together in exactly these cases."""
        random = self.random
        if depth <= 0 or random.random() < 0.15:
            return [self.gated(frame, self.pick(frame, kind, when), when)]
        predicate = self.predicate(frame, when)
        data = predicate if random.random() < 0.5 else self.pick(frame, "f", when)
        pivot = self.gated(frame, data, when)
        sides = self.switch(frame, pivot, predicate)
        parts: list[Value] = []
        for cases in (side.when for side in sides):
            if not cases:
                if random.random() < 0.3:  # never alive
                    dead = self.switch(frame, self.pick(frame, kind, when), predicate)
                    parts += [v for v in dead if not v.when]
                continue
            for _ in range(random.randint(0, 2)):
                self.step(frame, cases, budget)
            inner = self.parts(frame, kind, cases, depth - random.randint(1, 2), budget)
            # Flat or nested.
            parts += inner if random.random() < 0.5 else [self.merged(frame, inner)]
        if len(parts) > 3 and random.random() < 0.4:
            # Some of them first, which cuts across what decided them.
            random.shuffle(parts)
            parts = [self.merged(frame, parts[:2]), *parts[2:]]
        return parts

    def merged(self, frame: Frame, parts: Sequence[Value]) -> Value:
        """The Merge of values that are alive in turn."""
        if len(parts) == 1 and self.random.random() < 0.8:
            return parts[0]
        parts = self.random.sample(parts, len(parts))
        when = truth = 0
        for part in parts:
            assert not when & part.when
            when |= part.when
            truth |= part.when & part.truth
        kind = parts[0].kind
        controls: list[str] = []
        if self.random.random() < 0.05:  # which need not be alive
            controls = [f"^{self.random.choice(frame.values).node}"]
        refs = [*(part.ref for part in parts), *controls]
        name = self.node("Merge", refs, T=_DTYPES[kind], N=len(parts))
        value = Value(name, kind, when, truth)
        frame.values.append(value)
        if self.random.random() < 0.3:
            frame.values.append(Value(f"{name}:1", "i", when))
        return value

    def merge(self, frame: Frame, kind: str, when: int, budget: int) -> Value:
        depth = self.random.randint(1, 3)
        return self.merged(frame, self.parts(frame, kind, when, depth, budget))

    # Steps

    def step(self, frame: Frame, when: int, budget: int) -> None:
        """Some more nodes that are alive in some cases at least, or not much less."""
        kinds = ["map", "map", "zip", "zip", "grow", "part", "logic", "read"]
        if len(self.nodes) < self.limit:
            kinds += ["merge"] * self.merges
            if budget > 0 and frame.depth < self.size.depth:
                kinds += ["loop"] * self.loops
        getattr(self, f"_step_{self.random.choice(kinds)}")(frame, when, budget)

    def _controls(self, frame: Frame, when: int) -> list[Value]:
        """What a node may wait for: mostly nothing that kills it."""
        if self.random.random() < 0.85:
            return []
        return [self.waited_for(frame, when if self.random.random() < 0.8 else 0)]

    def _step_map(self, frame: Frame, when: int, budget: int) -> None:
        kind = self.random.choice("ffiv")
        op = self.random.choice(("Neg", "Abs", "Identity", "Sign"))
        x = self.pick(frame, kind, when)
        self.op(frame, op, [x], kind, 0, self._controls(frame, when), T=_DTYPES[kind])

    def _step_zip(self, frame: Frame, when: int, budget: int) -> None:
        """Sums are limited."""
        op = self.random.choice(("AddV2", "Sub", "Mul", "Maximum", "Minimum"))
        inputs = [self.pick(frame, "f", when), self.pick(frame, self.random.choice("ffv"), when)]
        kind = inputs[1].kind
        self.random.shuffle(inputs)
        value = self.op(frame, op, inputs, kind, 0, self._controls(frame, when), T=_FLOAT)
        if op in ("AddV2", "Sub", "Mul"):
            frame.values.remove(value)
            self.op(frame, "Relu6", [value], kind, T=_FLOAT)

    def _step_logic(self, frame: Frame, when: int, budget: int) -> None:
        self.predicate(frame, when)

    def _step_part(self, frame: Frame, when: int, budget: int) -> None:
        """A Switch, of which both sides may be used or none."""
        data = self.pick(frame, self.random.choice("fvib"), when)
        self.switch(frame, data, self.predicate(frame, when))

    def _step_grow(self, frame: Frame, when: int, budget: int) -> None:
        """A vector of another length, or a number made of one."""
        vector = self.pick(frame, "v", when)
        zero = self.constant(frame, np.int32(0), "i", when)
        match self.random.choice(("append", "drop", "sum", "size")):
            case "append":
                number = self.pick(frame, "f", when)
                one = self.op(frame, "ExpandDims", [number, zero], "v", T=_FLOAT, Tdim=_INT)
                inputs = [vector, one, zero]
                self.op(frame, "ConcatV2", inputs, "v", N=2, T=_FLOAT, Tidx=_INT)
            case "drop":
                ends = [self.constant(frame, np.array([k], np.int32), "-", when) for k in (1, 0)]
                self.op(
                    frame,
                    "StridedSlice",
                    [vector, *ends, ends[0]],
                    "v",
                    T=_FLOAT,
                    Index=_INT,
                    begin_mask=0,
                    end_mask=1,
                    ellipsis_mask=0,
                    new_axis_mask=0,
                    shrink_axis_mask=0,
                )
            case "sum":
                total = self.op(
                    frame, "Sum", [vector, zero], "f", T=_FLOAT, Tidx=_INT, keep_dims=False
                )
                frame.values.remove(total)
                self.op(frame, "Relu6", [total], "f", T=_FLOAT)
            case _:
                self.op(frame, "Size", [vector], "i", T=_FLOAT, out_type=_INT)

    def _step_read(self, frame: Frame, when: int, budget: int) -> None:
        """Elements of an array, of this loop or one around it."""
        home, way = frame, list[Frame]()
        while not home.arrays and home.parent is not None:
            way.append(home)
            home = home.parent
        needed = when if home is frame else frame.context
        able = [a for a in home.arrays if a.flow.when & needed == needed == a.handle.when & needed]
        if not able:
            return
        array = self.random.choice(able)
        handle, flow = array.handle, array.flow
        for inner in reversed(way):
            if {handle.when & inner.context, flow.when & inner.context} != {inner.context}:
                return
            handle, flow = self.bring(inner, handle), self.bring(inner, flow)
        self.read(frame, handle, flow, when)

    def read(self, frame: Frame, handle: Value, flow: Value, when: int) -> None:
        """One element, all of them, or how many there are."""
        match self.random.choice(("one", "all", "size")):
            case "one":
                at = self.constant(frame, np.int32(self.random.randint(0, _LENGTH - 1)), "-", when)
                self.op(frame, "TensorArrayReadV3", [handle, at, flow], "f", dtype=_FLOAT)
            case "all":
                at = self.constant(frame, np.arange(_LENGTH, dtype=np.int32), "-", when)
                inputs = [handle, at, flow]
                self.op(frame, "TensorArrayGatherV3", inputs, "v", dtype=_FLOAT, element_shape=())
            case _:
                self.op(frame, "TensorArraySizeV3", [handle, flow], "i")

    def _step_merge(self, frame: Frame, when: int, budget: int) -> None:
        self.merge(frame, self.random.choice("fffvib"), when, budget - 1)

    def _step_loop(self, frame: Frame, when: int, budget: int) -> None:
        _Loop(self, frame, when, budget).build()


class _Loop:
    """One loop, while it is built."""

    def __init__(self, generator: Generator, outer: Frame, when: int, budget: int) -> None:
        self.g = generator
        self.random = generator.random
        self.outer = outer
        self.when = when
        self.budget = budget - 1
        reused = f"w{len(outer.names)}"
        name = reused if generator.reuses_names else f"w{len(generator.nodes)}"
        outer.names.append(name)
        self.frame = Frame(outer, when, name, depth=outer.depth + 1)
        self.merges: list[Value] = []
        self.enters: list[str] = []
        self.arrays: dict[Value, tuple[Value, bool]] = {}
        """By the Merge of its flow, the handle outside, and whether the array is written inside."""

    def build(self) -> None:
        g, frame, random = self.g, self.frame, self.random
        zero = g.constant(self.outer, np.int32(0), "i", self.when)
        self._variable(g.gated(self.outer, zero, self.when), "i")
        for kind in random.choices("fffbvi", k=random.randint(1, 3)):
            first = g.gated(self.outer, g.pick(self.outer, kind, self.when), self.when)
            if kind != "b" or g.atoms < _ATOMS:
                self._variable(first, kind)
        if random.random() < 0.25:
            self._array()
        for _ in range(random.choice((0, 0, 1, 2))):
            g.step(frame, self.when, self.budget)
        going = self._condition()
        conditions = [self._loop_cond(going)]
        if random.random() < 0.05:
            conditions.append(g.respelled(frame, going))
        inside = self.when & going.truth
        after = self.when & ~going.truth
        ends: list[Value] = []
        for merge in self.merges:
            sides = g.switch(frame, merge, random.choice(conditions))
            ends.append(sides[0])
        for merge, (handle, is_written) in self.arrays.items():
            if inside and not is_written:
                at = self.merges[0]
                inputs = [g.bring(frame, handle), at, merge]
                g.op(frame, "TensorArrayReadV3", inputs, "f", dtype=_FLOAT)
        for _ in range(random.randint(0, 3) if inside else 0):
            g.step(frame, inside, self.budget)
        for merge, enter in zip(self.merges, self.enters, strict=True):
            self._close(merge, enter, inside)
        self._exits(ends, after)

    def _array(self) -> None:
        """An array that is filled before and read inside, or filled inside and read after."""
        g, outer = self.g, self.outer
        length = g.constant(outer, np.int32(_LENGTH), "-", self.when)
        length = g.gated(outer, length, self.when)
        handle = g.op(
            outer,
            "TensorArrayV3",
            [length],
            "h",
            dtype=_FLOAT,
            element_shape=(),
            dynamic_size=False,
            clear_after_read=False,
            identical_element_shapes=True,
        )
        flow = Value(f"{handle.ref}:1", "a", handle.when)
        outer.values.append(flow)
        is_written = self.random.random() < 0.6
        if not is_written:
            at = g.constant(outer, np.arange(_LENGTH, dtype=np.int32), "-", self.when)
            numbers = [self.random.randint(-3, 3) for _ in range(_LENGTH)]
            values = g.constant(outer, np.array(numbers, np.float32), "v", self.when)
            inputs = [handle, at, values, flow]
            flow = g.op(outer, "TensorArrayScatterV3", inputs, "a", T=_FLOAT)
        self._variable(flow, "a")
        self.arrays[self.merges[-1]] = handle, is_written

    def _written(self, merge: Value, flow: Value, inside: int) -> Value:
        """The flow with the element of this iteration written, or perhaps so."""
        g, frame = self.g, self.frame
        handle = g.bring(frame, self.arrays[merge][0])

        def write(flow: Value, when: int) -> Value:
            number = g.pick(frame, "f", when)
            inputs = [handle, self.merges[0], number, flow]
            return g.op(frame, "TensorArrayWriteV3", inputs, "a", T=_FLOAT)

        if self.random.random() < 0.5:
            return write(flow, inside)
        no, yes = g.switch(frame, flow, g.predicate(frame, inside))
        if yes.when:
            yes = write(yes, yes.when)
        return g.merged(frame, [side for side in (no, yes) if side.when])

    def _variable(self, first: Value, kind: str) -> None:
        g = self.g
        enter = g.enter(self.frame, first, False)
        name = g.node("Merge", [enter, enter], T=_DTYPES[kind], N=2)
        merge = Value(name, kind, self.when, g.atom() if kind == "b" else 0)
        self.frame.values.append(merge)
        self.merges.append(merge)
        self.enters.append(enter)

    def _condition(self) -> Value:
        """It ends after a few iterations at most."""
        g, frame, random = self.g, self.frame, self.random
        limit = g.constant(frame, np.int32(random.randint(0, 3)), "i", self.when)
        if g.atoms >= _ATOMS:
            return g.constant(frame, np.bool_(False), "b", self.when)
        going = g.op(frame, "Less", [self.merges[0], limit], "b", g.atom(), T=_INT)
        if random.random() < 0.4:
            other = g.predicate(frame, self.when)
            cases = going.truth & other.truth
            if self.when & cases:
                going = g.op(frame, "LogicalAnd", [going, other], "b", cases)
        return going

    def _loop_cond(self, going: Value) -> Value:
        name = self.g.node("LoopCond", [going.ref])
        value = Value(name, "b", going.when, going.truth)
        self.frame.values.append(value)
        return value

    def _close(self, merge: Value, enter: str, inside: int) -> None:
        """What the next iteration begins with."""
        g, frame, random = self.g, self.frame, self.random
        parts: list[Value] = []
        if not inside:
            dead = [v for v in frame.values if not v.when and v.kind == merge.kind]
            parts = dead[:1]
        elif merge is self.merges[0]:
            step = g.constant(frame, np.int32(1), "i", inside)
            added = g.op(frame, "AddV2", random.sample([merge, step], 2), "i", T=_INT)
            parts = [g.gated(frame, added, inside)]
        elif merge in self.arrays:
            flow = g.gated(frame, merge, inside)
            written = self.arrays[merge][1]
            parts = [self._written(merge, flow, inside) if written else flow]
            parts = [g.gated(frame, parts[0], inside)]
        elif random.random() < 0.5:
            parts = [g.gated(frame, g.pick(frame, merge.kind, inside), inside)]
        else:
            parts = g.parts(frame, merge.kind, inside, random.randint(1, 2), self.budget)
            if random.random() < 0.7:
                parts = [g.merged(frame, parts)]
        back = [g.node("NextIteration", [v.ref], T=_DTYPES[v.kind]) for v in parts]
        node = g.nodes[merge.node]
        refs = [enter, *back]
        random.shuffle(refs)
        node.input[:] = refs
        node.attr["N"].i = len(refs)

    def _exits(self, ends: Sequence[Value], after: int) -> None:
        g, frame, random = self.g, self.frame, self.random
        if not after:
            return
        chosen = random.sample(ends, random.randint(1, len(ends)))
        for number, end in enumerate(chosen):
            if end.kind != "a" and random.random() < 0.2:
                chosen[number] = g.merged(frame, g.parts(frame, end.kind, after, 1, 0))
        kind = random.choice("fv")
        several = g.parts(frame, kind, after, 2, 0) if random.random() < 0.2 else []
        # Nothing is brought into the loop from here on.
        handles = {
            end: self.arrays.get(merge) for merge, end in zip(self.merges, ends, strict=True)
        }
        self._part_exits(several)
        for value in chosen:
            for _ in range(random.choice((1, 1, 1, 2))):
                left = self._exit(value)
                if left is not None and (array := handles.get(value)) is not None:
                    self.outer.arrays.append(TensorArray(array[0], left))

    def _part_exits(self, parts: Sequence[Value]) -> None:
        """An Exit for each of several ways to end, of which nobody outside knows when it is."""
        g, alive = self.g, [part for part in parts if part.when]
        if len(alive) < 2 or g.atoms + len(alive) > _ATOMS:
            return
        left, values = self.when, list[Value]()
        for part in alive:
            when = left & g.atom() if part is not alive[-1] else left
            left &= ~when
            name = g.node("Exit", [part.ref], T=_DTYPES[part.kind])
            values.append(Value(name, part.kind, when))
        self.outer.values += values
        g.merged(self.outer, values)

    def _exit(self, value: Value) -> Value | None:
        """What comes out, if there is room for one more predicate where that is needed."""
        g = self.g
        if value.kind == "b" and g.atoms >= _ATOMS:
            return None
        truth = g.atom() if value.kind == "b" else 0
        name = g.node("Exit", [value.ref], T=_DTYPES[value.kind])
        left = Value(name, value.kind, self.when, truth)
        self.outer.values.append(left)
        return left


def _set_attribute(node: NodeDef, key: str, value: Any) -> None:
    attribute: Any = node.attr[key]
    match value:
        case bool():
            attribute.b = value
        case str():
            attribute.s = value.encode()
        case int() if key in _TYPES:
            attribute.type = value
        case int():
            attribute.i = value
        case ():
            attribute.shape.SetInParent()
        case _:
            array = np.asarray(value)
            attribute.tensor.dtype = {"f": _FLOAT, "i": _INT, "b": _BOOL}[array.dtype.kind]
            attribute.tensor.tensor_shape.SetInParent()
            for size in array.shape:
                attribute.tensor.tensor_shape.dim.add().size = size
            attribute.tensor.tensor_content = array.tobytes()
