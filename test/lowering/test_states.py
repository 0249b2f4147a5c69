"""What models remember: one place in memory, however it is computed, and an instance for each."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.parser import parse_model
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import lowerdeck
from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.report.memory import memory_plan
from lowerdeck.tools.report.report import memory_sentence

FORMS = """
<ir_version: 8, opset_import: ["" : 17]>
forms (float[1,3] x, int64[1,1] at, bool[4,1] where,
       float[2,2,3] cache, float[4,3] chosen, float[4,3] rolled, float[3] one, float[3] other,
       float[2] kept, float[4,3] read, float[1,3] total, float[1,3] unread)
   => (float[1,3] y, float[3] before, float[1,3] also,
       float[2,2,3] cache_, float[4,3] chosen_, float[4,3] rolled_, float[3] one_, float[3] other_,
       float[2] kept_, float[4,3] read_, float[1,3] total_, float[1,3] unread_)
{
  rows = Constant<value = int64[2] {4, 3}>()
  blocks = Constant<value = int64[3] {2, 2, 3}>()
  axis = Constant<value = int64[1] {0}>()
  first = Constant<value = int64[1,1] {0}>()
  begin = Constant<value = int64[1] {1}>()
  end = Constant<value = int64[1] {4}>()
  two = Constant<value = float {2}>()
  flat = Reshape(cache, rows)
  once = ScatterND(flat, at, x)
  twice = ScatterND(once, first, x)
  cache_ = Reshape(twice, blocks)
  chosen_ = Where(where, x, chosen)
  tail = Slice(rolled, begin, end, axis)
  rolled_ = Concat<axis = 0>(tail, x)
  one_ = Identity(other)
  other_ = Identity(one)
  kept_ = Identity(kept)
  read_ = ScatterND(read, at, x)
  before = ReduceSum<keepdims = 0>(read, axis)
  total_ = Add(total, x)
  also = Identity(total_)
  unread_ = Mul(x, two)
  sums = ReduceSum<keepdims = 1>(twice, axis)
  y = Add(sums, x)
}
"""
NAMES = ("cache", "chosen", "rolled", "one", "other", "kept", "read", "total", "unread")
STATES = {name: f"{name}_" for name in NAMES}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("states") / "forms.onnx"
    path.write_bytes(parse_model(FORMS).SerializeToString())
    return str(path)


def _module(path: str, phase: str, states: Mapping[str, str] = STATES) -> ModuleOp:
    options = CompileOptions(states=states, target="c99")
    return import_and_lower(path, phase, options)[0]


def _inputs(step: int) -> dict[str, NDArray[Any]]:
    return {
        "x": np.array([[step + 1, step * 2, -3]], np.float32),
        "at": np.array([[step % 4]]),
        "where": np.arange(4).reshape(4, 1) == 3 - step % 4,
    }


FIRST = {name: np.arange(3, dtype=np.float32) + k for k, name in enumerate(("one", "other"))}


def test_every_form_is_updated_as_it_is_computed(forms: str) -> None:
    """The lowered module, and the C of two instances and a copy, do what the model says."""
    calls, lowered = Calls(_module(forms, "legal")), _module(forms, "scheduled")
    model = lowerdeck.compile(forms, states=STATES, target="c99", cache=False)
    assert [one.name for one in model.inputs] == ["x", "at", "where"]
    assert [one.name for one in model.outputs] == ["y", "before", "also"]
    untouched = pickle.loads(pickle.dumps(model))
    model.state = FIRST
    held = {**{k: v for k, v in calls.states.items() if k not in FIRST}, **FIRST}
    for step in range(5):
        if step == 3:
            model = pickle.loads(pickle.dumps(copy.copy(model)))
        untouched(_inputs(0))
        inputs = _inputs(step)
        expected = run_module(_module(forms, "legal"), {**held, **inputs})
        found = run_module(lowered, {**held, **inputs})
        results = model(inputs)
        state = model.state
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)
        for name, value in results.items():
            np.testing.assert_array_equal(value, expected[name], name)
        held = {before: expected[after] for before, after in STATES.items()}
        for name, value in held.items():
            np.testing.assert_array_equal(state[name], value, name)
    assert untouched.state["total"].tolist() == [[5, 0, -15]]
    model.reset()
    assert not any(array.any() for array in model.state.values())


def test_only_what_is_read_after_it_is_written_is_copied(forms: str) -> None:
    """Of the forms above: two that change places, what `before` reads, an output."""
    entry = find_entry(_module(forms, "scheduled"))
    assert entry is not None
    assert not any(before is not None and before.uses for before, _ in entry.states_args)
    after: dict[SSAValue, str] = {
        value: name for (_, value), name in zip(entry.states_args, NAMES, strict=True)
    }
    copied = [
        after[op.target]
        for op in all_ops(entry)
        if isinstance(op, entry_ops.CopyOp) and op.target in after
    ]
    assert sorted(copied) == ["one", "other", "read", "total"]


ROLLS = """
<ir_version: 8, opset_import: ["" : 17]>
rolls (float[2,3] x, float[2,1,3] wide, float[1,2,2] last,
       float[20,3] rows, float[2,5,3] heads, float[1,2,9] inner, float[5,3] back, float[6,3] window,
       float[6,3] seen)
   => (float[5,3] y, float[20,3] rows_, float[2,5,3] heads_, float[1,2,9] inner_, float[5,3] back_,
       float[6,3] window_, float[6,3] seen_, float[6,3] old)
{
  zero = Constant<value = int64[1] {0}>()
  one = Constant<value = int64[1] {1}>()
  two = Constant<value = int64[1] {2}>()
  four = Constant<value = int64[1] {4}>()
  end = Constant<value = int64[1] {99}>()
  rows_tail = Slice(rows, two, end, zero)
  rows_ = Concat<axis = 0>(rows_tail, x)
  heads_tail = Slice(heads, one, end, one)
  heads_ = Concat<axis = 1>(heads_tail, wide)
  inner_tail = Slice(inner, two, end, two)
  inner_ = Concat<axis = 2>(inner_tail, last)
  first = Slice(x, zero, one, zero)
  back_head = Slice(back, zero, four, zero)
  back_ = Concat<axis = 0>(first, back_head)
  longer = Concat<axis = 0>(window, x)
  window_ = Slice(longer, two, end, zero)
  seen_tail = Slice(seen, two, end, zero)
  seen_ = Concat<axis = 0>(seen_tail, x)
  old = Add(seen, window_)
  y = Add(back_, back)
}
"""
ROLLED = ("rows", "heads", "inner", "back", "window", "seen")


def test_what_rolls_moves_within_its_buffer(tmp_path: Path) -> None:
    """
    Along any axis, by one place or several, to the front; to the back, out of something longer, or
    where the old values are read afterwards, there is another buffer.
    """
    path = tmp_path / "rolls.onnx"
    path.write_bytes(parse_model(ROLLS).SerializeToString())
    states, random = {name: f"{name}_" for name in ROLLED}, np.random.default_rng(8)
    shapes = {"x": (2, 3), "wide": (2, 1, 3), "last": (1, 2, 2)}
    calls = Calls(_module(str(path), "legal", states))
    models = [
        lowerdeck.compile(str(path), states=states, target=target, cache=False, threads=threads)
        for target, threads in (("c99", 1), ("native", 2))
    ]
    for _ in range(4):
        inputs = {k: random.normal(size=shape).astype(np.float32) for k, shape in shapes.items()}
        expected = calls(inputs)
        for model in models:
            for name, value in model(inputs).items():
                np.testing.assert_array_equal(value, expected[name], name)
            for name, value in calls.states.items():
                np.testing.assert_array_equal(model.state[name], value, name)
    entry = find_entry(_module(str(path), "scheduled", states))
    assert entry is not None
    after: dict[SSAValue, str] = {
        value: name for (_, value), name in zip(entry.states_args, ROLLED, strict=True)
    }
    copied = {
        after[op.target]
        for op in all_ops(entry)
        if isinstance(op, entry_ops.CopyOp) and op.target in after
    }
    assert copied == {"back", "seen", "window"}


def test_reports_know_what_is_remembered(forms: str) -> None:
    plan = memory_plan(_module(forms, "scheduled"), "c99")
    assert plan is not None
    assert (plan.inputs, plan.outputs, plan.state) == (24, 36, 4 * (12 * 4 + 3 * 4 + 2))
    assert "outputs 36, state 248)" in memory_sentence(plan)


def test_instances_are_exact_in_any_order(tmp_path: Path) -> None:
    """A thousand calls of two instances, then from four threads; profiles and prepared calls."""
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    add (float[2] x, float[2] s) => (float[2] y, float[2] t) { t = Add(s, x) y = Neg(t) }
    """
    (tmp_path / "add.onnx").write_bytes(parse_model(text).SerializeToString())
    model = lowerdeck.compile(
        tmp_path / "add.onnx", states={"s": "t"}, target="c99", cache=False, profile=True
    )
    other = copy.deepcopy(model)
    x, z = (np.array(each, np.float32) for each in ([0.1, 3], [0.7, -1]))
    sums = np.zeros((2, 2), np.float32)
    for _ in range(1000):
        sums += [x, z]
        np.testing.assert_array_equal(model(x)[0], -sums[0])
        np.testing.assert_array_equal(other(z)[0], -sums[1])
    ones = np.ones(2, np.float32)
    model.reset()
    threads = [Thread(target=lambda: [model(ones) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.state["s"].tolist() == [2000, 2000]
    call = model.prepare({"x": ones})
    call()
    assert call.outputs[0].tolist() == [-2002, -2002]
    model.profile({"x": ones}, seconds=0.01)
    assert model.state["s"].tolist() == [2000, 2000]
    with pytest.raises(ValueError, match=r"the state 's' is float32\[2\], not float64\[2\]"):
        model.state = {"s": np.zeros(2)}


def test_what_is_no_state_is_refused_all_at_once(forms: str) -> None:
    with pytest.raises(LowerdeckError) as found:
        _module(forms, "optimized", {"c": "cache_", "cache": "z", "one": "kept_", "read": "kept_"})
    text = str(found.value)
    for expected in (
        "c=cache_: 'c' is no input; the inputs are 'x',",
        "cache=z: 'z' is no output; the outputs are 'y',",
        "one=kept_: 'kept_' is the output of several states",
    ):
        assert expected in text
    with pytest.raises(LowerdeckError) as found:
        _module(forms, "optimized", {"one": "kept_", "cache": "chosen_"})
    assert "the state 'one' is tensor<3xf32> before a run and 'kept_' tensor<2xf32>" in str(
        found.value
    )
    assert "the state 'cache'" in str(found.value)


def test_a_cache_that_grows_is_refused(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    grow (float[1] x, float[n] past) => (float[m] present) { present = Concat<axis = 0>(past, x) }
    """
    (tmp_path / "grow.onnx").write_bytes(parse_model(text).SerializeToString())
    with pytest.raises(LowerdeckError, match="export the model with a cache of a fixed size"):
        lowerdeck.compile(tmp_path / "grow.onnx", states={"past": "present"}, target="c99")
