"""MindIR models: closures and tail calls, the order of effects, and what is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.compiler import CompileOptions
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.exporting import export_with
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.mindir.mind_ir_pb2 import ModelProto
from lowerdeck.passes.legalize.mindir.framework import MindirWalk
from lowerdeck.passes.legalize.walk import LegalizationError

from .mindir_graphs import BOOL, FLOAT, INT, Graph, Type, counter, write  # noqa: TID251

ort = cast(Any, onnxruntime)

Array = NDArray[Any]

X = np.array([1, 2, 3], np.float32)
V: Type = (FLOAT, [3])
SCALAR: Type = (INT, [])
TRUTH: Type = (BOOL, [])


def _both(module: ModuleOp) -> list[Calls]:
    """The module as it is imported, and legalized."""
    copy = module.clone()
    (main,) = copy.body.block.ops
    assert isinstance(main, func.FuncOp)
    MindirWalk(main).run()
    return [Calls(module), Calls(copy)]


def _count(module: ModuleOp, kind: type[Any]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def _check(path: Path, expected: Callable[..., Array], *inputs: dict[str, Any]) -> ModuleOp:
    module = load_model(path)
    for call in _both(module):
        for given in inputs:
            found = call({f"main:{name}": value for name, value in given.items()})
            want = expected(**given)
            np.testing.assert_allclose(np.asarray(next(iter(found.values()))), want, rtol=1e-6)
    return module


def test_what_is_assigned_lives_on_and_is_read_in_the_order_of_memory(tmp_path: Path) -> None:
    for call in _both(load_model(counter(tmp_path / "m.mindir"))):
        found = [np.asarray(next(iter(call({"main:x": X}).values()))).tolist() for _ in range(2)]
        assert found == [[1, 2, 3], [2, 4, 6]]


def test_a_state_that_a_call_of_the_exported_model_leaves_out_is_what_it_was_first(
    tmp_path: Path,
) -> None:
    export_with(str(counter(tmp_path / "m.mindir")), str(tmp_path / "m.onnx"), CompileOptions())
    session: Any = ort.InferenceSession(str(tmp_path / "m.onnx"))
    names = [output.name for output in session.get_outputs()]
    (state,) = [given.name for given in session.get_overridable_initializers()]
    found: dict[str, Array] = {}
    for expected in ([1, 2, 3], [2, 4, 6]):
        held = {state: found[f"{state}_next"]} if found else {}
        found = dict(zip(names, session.run(names, {"main:x": X, **held}), strict=True))
        assert found[names[0]].tolist() == expected


def test_a_parameter_that_is_read_without_a_load_holds_what_it_does_there(tmp_path: Path) -> None:
    main = Graph("main", x=V)
    kept = main.parameter("main:kept", X)
    start = main.constant("memory")
    doubled = main.node("Add", kept, kept, type_=V)  # before the first assignment
    first = main.node("Assign", kept, main["x"], start, type_=V)
    between = main.node("UpdateState", start, first, type_=None)
    sum_ = main.node("Add", kept, main["x"], type_=V)  # after the first one
    second = main.node("Assign", kept, sum_, between, type_=V)
    after = main.node("UpdateState", between, second, type_=None)
    early = main.node("Assign", kept, doubled, start, type_=V)
    total = main.node("Add", early, main.node("Load", kept, after, type_=V), type_=V)
    last = main.node("Depend", total, after, type_=V)
    path = write(tmp_path / "m.mindir", main.result(last))
    for call in _both(load_model(path)):
        (found, state) = (np.asarray(v) for v in call({"main:x": 10 * X}).values())
        assert found.tolist() == (2 * X + 20 * X).tolist()
        assert state.tolist() == (20 * X).tolist()


def _power(leave: bool) -> list[Graph]:
    """
    i from 0 while i < n: x doubles; with `leave` the loop ends with 10 x where x[0] is over 5, and
    skips what comes after the doubling where i is 1.
    """
    main = Graph("main", x=V, n=SCALAR)
    zero = main.constant(np.array(0, np.int32))
    main.result(main.node("head", zero, main["x"], main["n"], type_=V))
    carried = {"i": SCALAR, "x": V, "n": SCALAR}
    head = Graph("head", **carried)
    going = head.node("Less", head["i"], head["n"], type_=TRUTH)
    body = head.node("Partial", "body", head["n"], head["x"], head["i"])
    done = head.node("Partial", "done", head["x"])
    chosen = head.node("Switch", going, body, done)
    head.result(head.node(chosen, type_=V))
    done_ = Graph("done", x=V)
    done_.result(done_.node("Neg", done_["x"], type_=V))
    inner = Graph("body", n=SCALAR, x=V, i=SCALAR)
    twice = inner.node("Muls", inner["x"], inner.constant(2), type_=V)
    one = inner.constant(np.array(1, np.int32))
    following = inner.node("Add", inner["i"], one, type_=SCALAR)
    graphs = [main, head, done_, inner]
    if not leave:
        inner.result(inner.node("head", following, twice, inner["n"], type_=V))
        return graphs
    most = inner.node("Max", twice)
    is_over = inner.node("Greater", most, inner.constant(np.array(50.0, np.float32)), type_=TRUTH)
    out = inner.node("Partial", "out", twice)
    skip = inner.node("Partial", "skip", following, twice, inner["n"])
    again = inner.node("Switch", is_over, out, skip)
    inner.result(inner.node(again, type_=V))
    leaving = Graph("out", x=V)
    leaving.result(leaving.node("Muls", leaving["x"], leaving.constant(10), type_=V))
    skipping = Graph("skip", i=SCALAR, x=V, n=SCALAR)
    is_one = skipping.node(
        "Equal", skipping["i"], skipping.constant(np.array(1, np.int32)), type_=TRUTH
    )
    plain = skipping.node("Partial", "plain", skipping["i"], skipping["x"], skipping["n"])
    more = skipping.node("Partial", "more", skipping["i"], skipping["x"], skipping["n"])
    which = skipping.node("Switch", is_one, plain, more)
    skipping.result(skipping.node(which, type_=V))
    plain_ = Graph("plain", **carried)
    plain_.result(plain_.node("head", plain_["i"], plain_["x"], plain_["n"], type_=V))
    more_ = Graph("more", **carried)
    added = more_.node("Add", more_["x"], more_.constant(np.array(0.5, np.float32)), type_=V)
    more_.result(more_.node("head", more_["i"], added, more_["n"], type_=V))
    return [*graphs, leaving, skipping, plain_, more_]


def test_a_graph_that_calls_itself_last_is_a_loop(tmp_path: Path) -> None:
    def expected(x: Array, n: Array) -> Array:
        return -x * 2.0**n

    path = write(tmp_path / "m.mindir", *_power(leave=False))
    given = [{"x": X, "n": np.array(n, np.int32)} for n in (0, 1, 4)]
    module = _check(path, expected, *given)
    assert _count(module, LoopOp) == 1
    assert _count(module, IfOp) == 0


def test_a_loop_that_is_left_in_the_middle_and_goes_on_from_two_places(tmp_path: Path) -> None:
    def expected(x: Array, n: Array) -> Array:
        i = 0
        while i < n:
            x = x * 2
            i += 1
            if x.max() > 50:
                return x * 10
            x = x if i == 1 else x + 0.5
        return -x

    path = write(tmp_path / "m.mindir", *_power(leave=True))
    _check(path, expected, *({"x": X, "n": np.array(n, np.int32)} for n in (0, 1, 3, 9)))


def test_what_follows_a_conditional_is_there_once(tmp_path: Path) -> None:
    def expected(x: Array) -> Array:
        return np.exp(x * x if x.max() > 2 else -x)

    main = Graph("main", x=V)
    is_large = main.node(
        "Greater",
        main.node("Max", main["x"]),
        main.constant(np.array(2.0, np.float32)),
        type_=TRUTH,
    )
    arms = [main.node("Partial", name, main["x"]) for name in ("yes", "no")]
    main.result(main.node(main.node("Switch", is_large, *arms), type_=V))
    yes, no, rest = (Graph(name, x=V) for name in ("yes", "no", "rest"))
    yes.result(yes.node("rest", yes.node("Square", yes["x"], type_=V), type_=V))
    no.result(no.node("rest", no.node("Neg", no["x"], type_=V), type_=V))
    rest.result(rest.node("Exp", rest["x"], type_=V))
    path = write(tmp_path / "m.mindir", main, yes, no, rest)
    module = _check(path, expected, {"x": X}, {"x": X / 2})
    assert _count(module, IfOp) == 1
    assert sum(op.name == "mindir.Exp" for op in module.walk()) == 1


def test_one_of_three_graphs_by_a_number(tmp_path: Path) -> None:
    main = Graph("main", x=V, k=SCALAR)
    names = ("yes", "no", "rest")
    closures = [main.node("Partial", name, main["x"]) for name in names]
    tuple_ = main.node("MakeTuple", *closures)
    main.result(main.node(main.node("switch_layer", main["k"], tuple_), type_=V))
    graphs = [Graph(name, x=V) for name in names]
    for graph, op_type in zip(graphs, ("Square", "Neg", "Exp"), strict=True):
        graph.result(graph.node(op_type, graph["x"], type_=V))
    path = write(tmp_path / "m.mindir", main, *graphs)
    functions = (np.square, np.negative, np.exp)
    given = [{"x": X, "k": np.array(k, np.int32)} for k in (0, 1, 2, -1)]

    def expected(x: Array, k: Array) -> Array:
        return functions[int(k)](x)

    _check(path, expected, *given)


def test_a_graph_that_calls_itself_in_the_middle_is_refused(tmp_path: Path) -> None:
    main, again = Graph("main", x=V), Graph("again", x=V)
    main.result(main.node("again", main["x"], type_=V))
    inner = again.node("again", again["x"], type_=V)
    again.result(again.node("Neg", inner, type_=V))
    path = write(tmp_path / "m.mindir", main, again)
    with pytest.raises(FrontendError, match="again"):
        load_model(path)


def test_sizes_that_are_open(tmp_path: Path) -> None:
    main = Graph("main", x=(FLOAT, [-1, 2, -1]))
    sizes = main.node("Shape", main["x"], type_=[SCALAR] * 3)
    first = main.node("TupleGetItem", sizes, main.constant(0), type_=SCALAR)
    shape = main.node("MakeTuple", first, main.constant(-1))
    main.result(main.node("Reshape", main["x"], shape, type_=(FLOAT, [-1, -1])))
    path = write(tmp_path / "m.mindir", main)
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)

    def expected(x: Array) -> Array:
        return x.reshape(len(x), -1)

    _check(path, expected, {"x": x}, {"x": x[:1]})


def test_all_unknown_primitives_are_named(tmp_path: Path) -> None:
    main = Graph("main", x=V)
    first = main.node("NoSuch", main["x"], type_=V)
    main.result(main.node("Other", first, type_=V))
    with pytest.raises(FrontendError) as error:
        load_model(write(tmp_path / "m.mindir", main))
    assert "NoSuch" in str(error.value)
    assert "Other" in str(error.value)


def test_all_primitives_without_legalization_are_named(tmp_path: Path) -> None:
    main = Graph("main", x=V)
    found = [main.node(name, main["x"], type_=V) for name in ("BesselJ0", "BesselY1")]
    main.result(main.node("MakeTuple", *found))
    (function,) = load_model(write(tmp_path / "m.mindir", main)).body.block.ops
    assert isinstance(function, func.FuncOp)
    with pytest.raises(LegalizationError) as error:
        MindirWalk(function).run()
    assert "BesselJ0" in str(error.value)
    assert "BesselY1" in str(error.value)


def _without_end(model: ModelProto) -> None:
    model.graph.output.pop()


def _of_another_size(model: ModelProto) -> None:
    model.graph.parameter[0].raw_data += b"x"


def _outside(model: ModelProto) -> None:
    tensor = model.graph.parameter[0]
    tensor.ClearField("raw_data")
    tensor.external_data.location = "../weights"


def _of_another_name(model: ModelProto) -> None:
    model.graph.node[-1].input[0] = "nobody"


@pytest.mark.parametrize("fault", [_without_end, _of_another_size, _outside, _of_another_name])
def test_a_broken_model_is_refused(tmp_path: Path, fault: Callable[[ModelProto], None]) -> None:
    path = counter(tmp_path / "m.mindir")
    model = ModelProto.FromString(path.read_bytes())
    fault(model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FrontendError):
        load_model(path)


def test_attributes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    main = Graph("main", x=V)
    wide = main.node("Reshape", main["x"], main.constant((1, 1, 1, 3)), type_=V)
    given = [main.constant(value) for value in ((1, 1, 2, 2), (1, 1, 1, 1), "pad")]
    pool = main.node("AvgPool", wide, *given, type_=V)
    whole = main.node("BroadcastTo", wide, main.constant((2, 2)), type_=V)
    main.result(main.node("MakeTuple", pool, whole))
    (function,) = load_model(write(tmp_path / "m.mindir", main)).body.block.ops
    assert isinstance(function, func.FuncOp)
    with pytest.raises(LegalizationError) as error:
        MindirWalk(function).run()
    assert "pad_mode 'pad'" in str(error.value)
    assert "a shape of 2 dimensions" in str(error.value)


def test_a_loop_that_nothing_leaves_is_refused(tmp_path: Path) -> None:
    main, head = Graph("main", x=V), Graph("head", x=V)
    main.result(main.node("head", main["x"], type_=V))
    largest = head.node("Max", head["x"])
    is_large = head.node("Greater", largest, head.constant(np.array(2.0, np.float32)), type_=TRUTH)
    arms = [head.node("Partial", name, head["x"]) for name in ("more", "less")]
    chosen = head.node("Switch", is_large, *arms)
    head.result(head.node(chosen, type_=V))
    again: list[Graph] = []
    for name, factor in (("more", 3), ("less", 2)):
        arm = Graph(name, x=V)
        scaled = arm.node("Muls", arm["x"], arm.constant(factor), type_=V)
        again.append(arm.result(arm.node("head", scaled, type_=V)))
    with pytest.raises(FrontendError, match="the loop of graph 'head' has no end"):
        load_model(write(tmp_path / "m.mindir", main, head, *again))


def test_a_transposed_convolution_to_another_rank_is_refused(tmp_path: Path) -> None:
    main = Graph("main", x=(FLOAT, [1, 1, 2, 2]))
    weight = main.parameter("w", np.ones((1, 1, 2, 2), np.float32))
    size = main.constant((1, 1, 3))
    main.result(main.node("Conv2DTranspose", main["x"], weight, size, type_=(FLOAT, [1, 1, 3, 3])))
    given = {"Conv2DTranspose": {"pad_mode": 2, "pad": 0, "stride": 1, "dilation": 1, "group": 1}}
    module = load_model(write(tmp_path / "m.mindir", main, attributes=given))
    (function,) = module.body.block.ops
    assert isinstance(function, func.FuncOp)
    with pytest.raises(LegalizationError, match="of 2 and 1 dimensions, expected 2 each"):
        MindirWalk(function).run()


def test_too_few_inputs_are_refused(tmp_path: Path) -> None:
    for primitive in ("TupleGetItem", "Depend", "Load", "Switch", "Partial", "UpdateState"):
        main = Graph("main", x=V)
        inputs = [main["x"]] if primitive not in ("Partial", "UpdateState") else []
        main.result(main.node(primitive, *inputs, type_=V))
        with pytest.raises(FrontendError, match=f"inputs of {primitive}"):
            load_model(write(tmp_path / "m.mindir", main))


def test_a_write_in_place_to_what_may_be_held_elsewhere_is_refused(tmp_path: Path) -> None:
    writes = {"InplaceMuls": {"side_effect_mem": True}}
    for kind in ("input", "constant", "view"):
        main = Graph("main", x=V)
        into = {"input": main["x"], "constant": main.constant(X)}.get(kind)
        into = into or main.node("Reshape", main["x"], main.constant((3,)), type_=V)
        main.result(main.node("InplaceMuls", into, main.constant(2), type_=V))
        path = write(tmp_path / "m.mindir", main, attributes=writes)
        with pytest.raises(FrontendError, match="held elsewhere"):
            load_model(path)


def test_a_write_in_place_to_a_computed_tensor(tmp_path: Path) -> None:
    main = Graph("main", x=V)
    fresh = main.node("Neg", main["x"], type_=V)
    main.result(main.node("InplaceMuls", fresh, main.constant(2), type_=V))
    writes = {"InplaceMuls": {"side_effect_mem": True}}
    path = write(tmp_path / "m.mindir", main, attributes=writes)

    def expected(x: Array) -> Array:
        return -2 * x

    _check(path, expected, {"x": X})
