"""
Makes the graphs of this folder, and what TensorFlow computes from them.

    python make.py

It needs TensorFlow. The graphs are written node by node: old producers, other languages and tools
that rewrite graphs leave forms that no function of today's TensorFlow gives.
"""

# TensorFlow is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

FLOAT, INT, BOOL = 1, 3, 10
_TYPES = ("T", "dtype", "SrcT", "DstT", "Tidx", "Tdim", "index_type")


class Graph:
    """A graph that grows node by node."""

    def __init__(self) -> None:
        self.proto = tf.compat.v1.GraphDef()
        self.proto.versions.producer = 24

    def node(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        """A node; its name."""
        node = self.proto.node.add(name=name, op=op, input=inputs)
        for key, value in attributes.items():
            if isinstance(value, bool):
                node.attr[key].b = value
            elif isinstance(value, str):
                node.attr[key].s = value.encode()
            elif isinstance(value, np.ndarray | np.generic):
                node.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            elif key in _TYPES:
                node.attr[key].type = value
            else:
                node.attr[key].i = value
        return name

    def input(self, name: str, dtype: int = FLOAT) -> str:
        """A placeholder for a scalar."""
        node = self.proto.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.SetInParent()
        return name

    def constant(self, name: str, value: Any, *controls: str) -> str:
        """A constant."""
        array = np.asarray(value)
        dtype = {"f": FLOAT, "i": INT, "b": BOOL}[array.dtype.kind]
        kinds = {FLOAT: np.float32, INT: np.int32, BOOL: np.bool_}
        return self.node(name, "Const", *controls, dtype=dtype, value=array.astype(kinds[dtype]))

    def switch(self, name: str, data: str, predicate: str, dtype: int = FLOAT) -> tuple[str, str]:
        """Where the predicate is false, and where it is true."""
        self.node(name, "Switch", data, predicate, T=dtype)
        return name, f"{name}:1"

    def merge(self, name: str, *inputs: str, dtype: int = FLOAT) -> str:
        """Whichever is alive."""
        count = sum(not ref.startswith("^") for ref in inputs)
        return self.node(name, "Merge", *inputs, T=dtype, N=count)

    def enter(
        self, name: str, value: str, frame: str, dtype: int = FLOAT, constant: bool = False
    ) -> str:
        """Into a loop."""
        return self.node(
            name,
            "Enter",
            value,
            T=dtype,
            frame_name=frame,
            is_constant=constant,
            parallel_iterations=10,
        )


CASES: dict[str, Callable[[Graph], list[str]]] = {}


def case(function: Callable[[Graph], list[str]]) -> Callable[[Graph], list[str]]:
    """Register a graph; the function returns what is fetched."""
    CASES[function.__name__] = function
    return function


@case
def search_with_two_ends(g: Graph) -> list[str]:
    """A loop that halves x until it is small; two Exits say how it was left, a Merge joins them."""
    g.input("x")
    g.input("limit")
    g.enter("e", "x", "w")
    g.enter("l", "limit", "w", constant=True)
    g.merge("m", "e", "n")
    g.constant("small", 1.0, "^m")
    g.node("above", "Greater", "m", "small", T=FLOAT)
    g.node("below", "Less", "m", "l", T=FLOAT)
    g.node("go", "LogicalAnd", "above", "below")
    g.node("cond", "LoopCond", "go")
    f, t = g.switch("s", "m", "cond")
    g.constant("half", 0.5, "^half_pivot")
    g.node("half_pivot", "Identity", t, T=FLOAT)
    g.node("h", "Mul", t, "half", T=FLOAT)
    g.node("n", "NextIteration", "h", T=FLOAT)
    too_small, too_large = g.switch("why", f, "above")
    g.node("x0", "Exit", too_small, T=FLOAT)
    g.node("neg", "Neg", too_large, T=FLOAT)
    g.node("x1", "Exit", "neg", T=FLOAT)
    g.merge("y", "x0", "x1")
    return ["y:0", "y:1"]


@case
def ends_of_different_shapes(g: Graph) -> list[str]:
    """A loop with an Exit of a number and one of a vector: outside of it each has its own use."""
    g.input("x")
    g.enter("e", "x", "w")
    g.merge("m", "e", "n")
    g.constant("small", 1.0, "^m")
    g.constant("large", 30.0, "^m")
    g.node("above", "Greater", "m", "small", T=FLOAT)
    g.node("below", "Less", "m", "large", T=FLOAT)
    g.node("go", "LogicalAnd", "above", "below")
    g.node("cond", "LoopCond", "go")
    f, t = g.switch("s", "m", "cond")
    g.node("a", "AddV2", t, t, T=FLOAT)
    g.node("n", "NextIteration", "a", T=FLOAT)
    too_small, too_large = g.switch("why", f, "above")
    g.node("neg", "Neg", too_small, T=FLOAT)
    g.node("number", "Exit", "neg", T=FLOAT)
    g.constant("two", np.array([2]), "^too_large")
    g.node("too_large", "Identity", too_large, T=FLOAT)
    g.node("pair", "Fill", "two", "too_large", T=FLOAT, index_type=INT)
    g.node("vector", "Exit", "pair", T=FLOAT)
    g.constant("axis", 0, "^vector")
    g.node("sum", "Sum", "vector", "axis", T=FLOAT, Tidx=INT, keep_dims=False)
    g.merge("y", "number", "sum")
    return ["y:0", "y:1"]


@case
def loop_that_is_half_entered(g: Graph) -> list[str]:
    """A loop in a branch; what it does not change comes from outside, be it run or not."""
    g.input("x")
    g.input("limit")
    g.input("p", BOOL)
    no, yes = g.switch("b", "x", "p")
    g.enter("e", yes, "w")
    g.enter("l", "limit", "w", constant=True)
    g.merge("m", "n", "e")
    g.constant("one", 1.0, "^l")
    g.node("large", "Greater", "l", "one", T=FLOAT)
    small, big = g.switch("sl", "l", "large")
    g.node("root", "Sqrt", big, T=FLOAT)
    g.constant("two", 2.0, "^pivot")
    g.node("pivot", "Identity", small, T=FLOAT)
    g.merge("step", "root", "two")
    g.node("less", "Less", "m", "l", T=FLOAT)
    g.node("cond", "LoopCond", "less")
    f, t = g.switch("s", "m", "cond")
    g.node("a", "AddV2", t, "step", T=FLOAT)
    g.node("n", "NextIteration", "a", T=FLOAT)
    g.node("neg", "Neg", f, T=FLOAT)
    g.node("out", "Exit", "neg", T=FLOAT)
    g.merge("y", no, "out")
    return ["y:0", "y:1"]


@case
def loop_with_break(g: Graph) -> list[str]:
    """The body ends the loop by itself: no NextIteration is alive, but another Exit is."""
    g.input("x")
    g.input("stop")
    g.constant("zero", 0)
    g.enter("ei", "zero", "w", INT)
    g.enter("ex", "x", "w")
    g.enter("es", "stop", "w", constant=True)
    g.merge("i", "ei", "ni", dtype=INT)
    g.merge("m", "ex", "nx")
    g.constant("four", 4, "^i")
    g.node("less", "Less", "i", "four", T=INT)
    g.node("cond", "LoopCond", "less")
    _, ti = g.switch("si", "i", "cond", INT)
    fx, tx = g.switch("sx", "m", "cond")
    g.node("a", "AddV2", tx, tx, T=FLOAT)
    g.node("big", "Greater", "a", "es", T=FLOAT)
    stay, leave = g.switch("sb", "a", "big")
    g.node("wait", "Identity", stay, T=FLOAT)
    g.constant("one", 1, "^wait")
    g.node("ai", "AddV2", ti, "one", T=INT)
    g.node("ni", "NextIteration", "ai", T=INT)
    g.node("nx", "NextIteration", stay, T=FLOAT)
    g.node("end", "Exit", fx, T=FLOAT)
    g.node("broken", "Exit", leave, T=FLOAT)
    g.merge("y", "end", "broken")
    return ["y:0", "y:1"]


@case
def equal_conditions(g: Graph) -> list[str]:
    """Each Switch has a comparison of its own, and constants of its own."""
    g.input("x")
    for k in range(3):
        g.constant(f"c{k}", 2.0)
    g.node("p", "Less", "x", "c0", T=FLOAT)
    g.node("q", "Greater", "c1", "x", T=FLOAT)
    g.node("i", "Identity", "x", T=FLOAT)
    g.node("r", "Less", "i", "c2", T=FLOAT)
    _, t = g.switch("sp", "x", "p")
    f, _ = g.switch("sq", "x", "q")
    g.node("a", "Neg", t, T=FLOAT)
    g.node("b", "Relu6", f, T=FLOAT)
    g.merge("m", "a", "b")
    _, t2 = g.switch("sr", "m", "r")
    g.node("c", "Abs", t2, T=FLOAT)
    g.node("nr", "LogicalNot", "r")
    _, f2 = g.switch("sn", "m", "nr")
    g.merge("y", "c", f2)
    return ["y:0", "y:1"]


@case
def known_around_the_loop(g: Graph) -> list[str]:
    """The body of a loop in a branch has only the side of that branch."""
    g.input("x")
    g.input("p", BOOL)
    f, t = g.switch("s", "x", "p")
    g.node("pivot", "Identity", t, T=FLOAT)
    g.node("ps", "Identity", "p", "^pivot", T=BOOL)
    g.enter("e", t, "w")
    g.enter("pe", "ps", "w", BOOL, constant=True)
    g.merge("m", "e", "n")
    g.constant("limit", 50.0, "^m")
    g.node("less", "Less", "m", "limit", T=FLOAT)
    g.node("cond", "LoopCond", "less")
    fm, tm = g.switch("sm", "m", "cond")
    _, only = g.switch("again", tm, "pe")
    g.constant("three", 3.0, "^wait")
    g.node("wait", "Identity", only, T=FLOAT)
    g.node("a", "Mul", only, "three", T=FLOAT)
    g.node("n", "NextIteration", "a", T=FLOAT)
    g.node("out", "Exit", fm, T=FLOAT)
    g.node("neg", "Neg", f, T=FLOAT)
    g.merge("y", "neg", "out")
    return ["y:0"]


@case
def dead_control_of_a_merge(g: Graph) -> list[str]:
    """A Merge runs even if what it waits for is dead, and so does a ControlTrigger."""
    g.input("x")
    g.input("p", BOOL)
    f, t = g.switch("s", "x", "p")
    g.node("never", "AddV2", f, t, T=FLOAT)
    g.node("pf", "Identity", f, T=FLOAT)
    g.merge("m", f, t, "^never", "^pf")
    g.node("trigger", "ControlTrigger", "^never")
    g.constant("one", 1.0, "^trigger")
    g.node("y", "AddV2", "m", "one", T=FLOAT)
    return ["y:0"]


@case
def three_ways_in_a_circle(g: Graph) -> list[str]:
    """No single predicate tells the four inputs of the Merge apart."""
    g.input("x")
    for name in "pqr":
        g.input(name, BOOL)
    parts: list[str] = []
    for a, b in ("pq", "qr", "rp"):
        g.node(f"not_{b}", "LogicalNot", b)
        g.node(f"{a}{b}", "LogicalAnd", a, f"not_{b}")
        _, t = g.switch(f"s_{a}{b}", "x", f"{a}{b}")
        g.constant(f"k_{a}{b}", float(ord(a)), f"^w_{a}{b}")
        g.node(f"w_{a}{b}", "Identity", t, T=FLOAT)
        parts.append(g.node(f"v_{a}{b}", "AddV2", t, f"k_{a}{b}", T=FLOAT))
    g.node("some1", "LogicalOr", "pq", "qr")
    g.node("some", "LogicalOr", "some1", "rp")
    f, _ = g.switch("rest", "x", "some")
    g.merge("y", *parts, f)
    return ["y:0", "y:1"]


@case
def fibonacci_without_counter(g: Graph) -> list[str]:
    """Variables follow each other; the index of a Merge tells the first iteration."""
    g.input("limit")
    g.constant("zero", 0.0)
    g.constant("one", 1.0)
    g.enter("ea", "zero", "f")
    g.enter("eb", "one", "f")
    g.enter("el", "limit", "f", constant=True)
    g.merge("a", "na", "ea")
    g.merge("b", "eb", "nb")
    g.node("less", "Less", "b", "el", T=FLOAT)
    g.node("cond", "LoopCond", "less")
    fa, ta = g.switch("sa", "a", "cond")
    fb, tb = g.switch("sb", "b", "cond")
    fi, _ = g.switch("si", "b:1", "cond", INT)
    g.node("sum", "AddV2", ta, tb, T=FLOAT)
    g.node("na", "NextIteration", tb, T=FLOAT)
    g.node("nb", "NextIteration", "sum", T=FLOAT)
    g.node("y", "Exit", fa, T=FLOAT)
    g.node("z", "Exit", fb, T=FLOAT)
    g.node("again", "Exit", fi, T=INT)
    return ["y:0", "z:0", "again:0"]


@case
def loop_in_the_condition(g: Graph) -> list[str]:
    """The condition of a loop is the result of a loop, of a branch in it."""
    g.input("x")
    g.enter("e", "x", "outer")
    g.merge("m", "e", "n")
    g.enter("ie", "m", "inner")
    g.merge("im", "ie", "in")
    g.constant("ten", 10.0, "^im")
    g.node("iless", "Less", "im", "ten", T=FLOAT)
    g.node("icond", "LoopCond", "iless")
    fi, ti = g.switch("is", "im", "icond")
    g.node("ia", "AddV2", ti, "i_one", T=FLOAT)
    g.constant("i_one", 4.0, "^i_wait")
    g.node("i_wait", "Identity", ti, T=FLOAT)
    g.node("in", "NextIteration", "ia", T=FLOAT)
    g.node("ix", "Exit", fi, T=FLOAT)
    g.constant("twelve", 12.0, "^m")
    g.node("p", "Less", "ix", "twelve", T=FLOAT)
    pf, pt = g.switch("ps", "p", "p", BOOL)
    g.node("pivot_t", "Identity", pt, T=BOOL)
    g.constant("yes", True, "^pivot_t")
    g.node("pivot_f", "Identity", pf, T=BOOL)
    g.constant("no", False, "^pivot_f")
    g.merge("both", "no", "yes", dtype=BOOL)
    g.node("cond", "LoopCond", "both")
    f, t = g.switch("s", "m", "cond")
    g.node("wait", "Identity", t, T=FLOAT)
    g.constant("step", 1.0, "^wait")
    g.node("a", "AddV2", t, "step", T=FLOAT)
    g.node("n", "NextIteration", "a", T=FLOAT)
    g.node("y", "Exit", f, T=FLOAT)
    return ["y:0"]


@case
def four_loops_deep(g: Graph) -> list[str]:
    """Four loops in each other; the innermost one uses what is outside of all of them."""
    g.input("x")
    g.input("d")
    value, step = "x", "d"
    ends: list[tuple[str, str]] = []
    for k in range(4):
        g.enter(f"e{k}", value, f"w{k}")
        step = g.enter(f"d{k}", step, f"w{k}", constant=True)
        g.merge(f"m{k}", f"e{k}", f"n{k}")
        g.constant(f"zero{k}", 0, *([f"^pivot{k - 1}"] if k else []))
        g.enter(f"ei{k}", f"zero{k}", f"w{k}", INT)
        g.merge(f"i{k}", f"ei{k}", f"ni{k}", dtype=INT)
        g.constant(f"two{k}", 2, f"^i{k}")
        g.node(f"less{k}", "Less", f"i{k}", f"two{k}", T=INT)
        g.node(f"cond{k}", "LoopCond", f"less{k}")
        f, t = g.switch(f"s{k}", f"m{k}", f"cond{k}")
        _, ti = g.switch(f"si{k}", f"i{k}", f"cond{k}", INT)
        g.node(f"pivot{k}", "Identity", ti, T=INT)
        g.constant(f"one{k}", 1, f"^pivot{k}")
        g.node(f"ai{k}", "AddV2", ti, f"one{k}", T=INT)
        g.node(f"ni{k}", "NextIteration", f"ai{k}", T=INT)
        ends.append((f, t))
        value = t
    g.node("body", "AddV2", value, step, T=FLOAT)
    inner = "body"
    for k in reversed(range(4)):
        g.node(f"n{k}", "NextIteration", inner, T=FLOAT)
        inner = g.node(f"x{k}", "Exit", ends[k][0], T=FLOAT)
    return [f"{inner}:0"]


@case
def switch_of_many(g: Graph) -> list[str]:
    """A Switch of four ways, of which a number out of range takes the last."""
    g.input("x")
    g.input("k", INT)
    g.node("s", "_SwitchN", "x", "k", T=FLOAT, num_outs=4)
    g.node("a", "Neg", "s:0", T=FLOAT)
    g.node("b", "Relu6", "s:1", T=FLOAT)
    g.node("c", "Abs", "s:3", T=FLOAT)
    g.merge("y", "c", "s:2", "a", "b")
    return ["y:0", "y:1"]


@case
def constant_predicates(g: Graph) -> list[str]:
    """A branch that is never taken holds a loop that never ends; the predicate entered a loop."""
    g.input("x")
    g.constant("no", False)
    g.constant("yes", True)
    f, t = g.switch("s", "x", "no")
    g.enter("e", t, "dead")
    g.merge("m", "e", "n")
    g.constant("always", True, "^m")
    g.node("c", "LoopCond", "always")
    fm, tm = g.switch("sm", "m", "c")
    g.node("n", "NextIteration", tm, T=FLOAT)
    g.node("never", "Exit", fm, T=FLOAT)
    g.merge("y", "never", f)
    g.enter("e2", "y", "w")
    g.enter("yes2", "yes", "w", BOOL, constant=True)
    g.merge("m2", "n2", "e2")
    g.constant("limit", 9.0, "^m2")
    g.node("less", "Less", "m2", "limit", T=FLOAT)
    g.node("c2", "LoopCond", "less")
    f2, t2 = g.switch("s2", "m2", "c2")
    _, on = g.switch("on", t2, "yes2")
    g.constant("four", 4.0, "^wait")
    g.node("wait", "Identity", on, T=FLOAT)
    g.node("a", "AddV2", on, "four", T=FLOAT)
    g.node("n2", "NextIteration", "a", T=FLOAT)
    g.node("z", "Exit", f2, T=FLOAT)
    return ["y:0", "y:1", "z:0"]


@case
def no_loop_cond(g: Graph) -> list[str]:
    """A loop whose Switches ask the comparison itself, and a frame in which nothing goes round."""
    g.input("x")
    g.enter("e", "x", "w")
    g.merge("m", "e", "n")
    g.constant("limit", 20.0, "^m")
    g.node("less", "Less", "m", "limit", T=FLOAT)
    f, t = g.switch("s", "m", "less")
    g.node("a", "AddV2", t, t, T=FLOAT)
    g.node("n", "NextIteration", "a", T=FLOAT)
    g.node("out", "Exit", f, T=FLOAT)
    g.enter("e2", "out", "once")
    g.node("neg", "Neg", "e2", T=FLOAT)
    g.node("y", "Exit", "neg", T=FLOAT)
    return ["y:0"]


@case
def branches_with_their_own_next_iteration(g: Graph) -> list[str]:
    """The Merge of a loop variable has three inputs."""
    g.input("x")
    g.input("p", BOOL)
    g.enter("e", "x", "w")
    g.enter("pe", "p", "w", BOOL, constant=True)
    g.merge("m", "n1", "e", "n0")
    g.constant("limit", 30.0, "^m")
    g.node("less", "Less", "m", "limit", T=FLOAT)
    g.node("c", "LoopCond", "less")
    f, t = g.switch("s", "m", "c")
    no, yes = g.switch("sp", t, "pe")
    g.node("twice", "AddV2", no, no, T=FLOAT)
    g.constant("seven", 7.0, "^wait")
    g.node("wait", "Identity", yes, T=FLOAT)
    g.node("more", "AddV2", yes, "seven", T=FLOAT)
    g.node("n0", "NextIteration", "twice", T=FLOAT)
    g.node("n1", "NextIteration", "more", T=FLOAT)
    g.node("y", "Exit", f, T=FLOAT)
    return ["y:0"]


FEEDS: Mapping[int, Sequence[Any]] = {
    FLOAT: (1.0, 3.0, 40.0, 0.25, 100.0),
    INT: (0, 1, 2, 3, 7),
    BOOL: (True, False),
}


def feeds(graph: Graph) -> list[dict[str, Any]]:
    """Different values for all inputs."""
    random = np.random.default_rng(0)
    nodes = [node for node in graph.proto.node if node.op == "Placeholder"]
    found: list[dict[str, Any]] = []
    for _ in range(8):
        feed = {f"{n.name}:0": random.choice(FEEDS[n.attr["dtype"].type]).item() for n in nodes}
        if feed not in found:
            found.append(feed)
    return found


def record(name: str, folder: Path) -> None:
    """Write the graph, and inputs with the outputs of TensorFlow."""
    graph = Graph()
    fetches = CASES[name](graph)
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    tf_graph = tf.Graph()
    with tf_graph.as_default():
        tf.compat.v1.import_graph_def(graph.proto, name="")
    runs: list[dict[str, Any]] = []
    with tf.compat.v1.Session(graph=tf_graph, config=config) as session:
        for feed in feeds(graph):
            found = session.run(fetches, feed)
            outputs = {f: v.tolist() for f, v in zip(fetches, found, strict=True)}
            runs.append({"inputs": feed, "outputs": outputs})
    doc = (CASES[name].__doc__ or "").strip()
    (folder / f"{name}.pbtxt").write_text(f"# {doc}\n{text_format.MessageToString(graph.proto)}")
    data = json.dumps({"outputs": fetches, "runs": runs}, indent=1)
    (folder / f"{name}.json").write_text(f"{data}\n")


if __name__ == "__main__":
    tf.compat.v1.disable_eager_execution()
    for name in sys.argv[1:] or CASES:
        try:
            record(name, Path(__file__).parent)
        except (tf.errors.OpError, ValueError) as error:
            print(f"{name}: {str(error).splitlines()[-1][:300]}", file=sys.stderr)
