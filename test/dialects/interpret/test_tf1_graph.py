"""Execution of graphs with control flow: frames, iterations, dead branches and TensorArrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from lowerdeck.dialects.interpret import InterpretError, StepLimitError, run_module
from lowerdeck.frontends.text import default_context


def module(body: str) -> ModuleOp:
    """
    A graph of ops. `<T>`, `<I>` and `<B>` stand for an attribute T of float, int32 and bool, and
    F, N and P for the tensors of them.
    """
    for short, dtype in (("T", "float"), ("I", "int32"), ("B", "bool")):
        body = body.replace(f"<{short}>", f"T = #tf1.dtype<{dtype}>")
    for short, type_ in (("F", "tensor<*xf32>"), ("N", "tensor<*xi32>"), ("P", "tensor<*xi1>")):
        body = re.sub(rf"(?m)(?<=[ (]){short}(?=[,)]|$| loc| \{{)", type_, body)
    parsed = Parser(default_context(), f"tf1.graph @main {{\n{body}\n}}").parse_module()
    parsed.verify()
    return parsed


X = '%x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> F loc("x")\n'
PRED = '%p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> P loc("p")\n'


def number(name: str, value: int) -> str:
    """An int32 constant."""
    data = int(value).to_bytes(4, "little", signed=True).hex()
    value_attr = f'value = #core.blob<"0x{data}">, dtype = #tf1.dtype<int32>'
    return f"%{name} = tf1.Const {{{value_attr}}} : () -> tensor<i32>\n"


def run(body: str, max_steps: int | None = None, **inputs: Any) -> list[Any]:
    """What is fetched."""
    arrays = {
        f"{name}:0": np.asarray(value, np.bool_ if name == "p" else np.float32)
        for name, value in inputs.items()
    }
    return list(run_module(module(body), arrays, max_steps=max_steps).values())


CONDITIONAL = (
    X
    + PRED
    + """
%f, %t = tf1.Switch %x, %p {<T>} : (F, P) -> (F, F)
%n = tf1.Neg %t {<T>} : (F) -> F
%y, %which = tf1.Merge %f, %n {<T>, N = 2 : i64} : (F, F) -> (F, N)
tf1.fetch %y, %which : F, N {names = ["y", "which"]}"""
)


def test_a_merge_takes_what_is_alive_and_says_which() -> None:
    assert run(CONDITIONAL, x=3, p=True) == [-3, 1]
    assert run(CONDITIONAL, x=3, p=False) == [3, 0]


def test_a_dead_output_is_an_error() -> None:
    body = X + PRED + "%f, %t = tf1.Switch %x, %p {<T>} : (F, P) -> (F, F)\n"
    body += 'tf1.fetch %t : F {names = ["t"]}'
    assert run(body, x=3, p=True) == [3]
    with pytest.raises(InterpretError, match=r"\['t'\] are dead"):
        run(body, x=3, p=False)


def test_a_dead_control_input_makes_an_op_dead() -> None:
    body = (
        X
        + PRED
        + """
%f, %t = tf1.Switch %p, %p {<B>} : (P, P) -> (P, P)
%pivot, %c = tf1.Identity %t {<B>} : (P) -> (P, !tf1.control)
%one = tf1.Neg %x, %c {<T>} : (F, !tf1.control) -> F
%other, %d = tf1.Identity %f {<B>} : (P) -> (P, !tf1.control)
%two = tf1.Square %x, %d {<T>} : (F, !tf1.control) -> F
%y, %which = tf1.Merge %two, %one {<T>, N = 2 : i64} : (F, F) -> (F, N)
tf1.fetch %y : F {names = ["y"]}"""
    )
    assert run(body, x=3, p=True) == [-3]
    assert run(body, x=3, p=False) == [9]


def test_two_live_inputs_of_a_merge_are_an_error() -> None:
    body = X + "%y, %which = tf1.Merge %x, %x {<T>, N = 2 : i64} : (F, F) -> (F, N)\n"
    with pytest.raises(InterpretError, match="two of its inputs are alive"):
        run(body + 'tf1.fetch %y : F {names = ["y"]}', x=1)


def test_a_merge_waits_for_its_control_inputs() -> None:
    body = (
        X
        + """
%slow, %c = tf1.Neg %x {<T>} : (F) -> (F, !tf1.control)
%y, %which = tf1.Merge %x, %c {<T>, N = 1 : i64} : (F, !tf1.control) -> (F, N)
tf1.fetch %y : F {names = ["y"]}"""
    )
    assert run(body, x=1) == [1]


def switch_n(index: int) -> list[Any]:
    body = (
        X
        + number("k", index)
        + """
%a, %b, %c = tf1._SwitchN %x, %k {<T>, num_outs = 3 : i64} : (F, tensor<i32>) -> (F, F, F)
%y, %which = tf1.Merge %a, %b, %c {<T>, N = 3 : i64} : (F, F, F) -> (F, N)
tf1.fetch %which : N {names = ["which"]}"""
    )
    return run(body, x=1)


def test_a_switch_with_several_outputs_falls_back_to_the_last() -> None:
    assert [switch_n(index) for index in (0, 1, 2, 7, -1)] == [[0], [1], [2], [2], [2]]


def loop(name: str, source: str, limit: str, body: str, depth: str = "outer") -> str:
    """A counter from `source` while it is below `limit`; `body` makes %NAME_next of %NAME_in."""
    enter = f'frame_name = "{depth}"'
    return f"""
%{name}_e = tf1.Enter %{source} {{<I>, {enter}}} : (N) -> N
%{name}_l = tf1.Enter %{limit} {{<I>, {enter}, is_constant = true}} : (N) -> N
%{name}_m, %{name}_v = tf1.Merge %{name}_e, %{name}_n {{<I>, N = 2 : i64}} : (N, N) -> (N, N)
%{name}_less = tf1.Less %{name}_m, %{name}_l {{<I>}} : (N, N) -> P
%{name}_c = tf1.LoopCond %{name}_less : (P) -> P
%{name}_out, %{name}_in = tf1.Switch %{name}_m, %{name}_c {{<I>}} : (N, P) -> (N, N)
%{name} = tf1.Exit %{name}_out {{<I>}} : (N) -> N
{body}
%{name}_n = tf1.NextIteration %{name}_next {{<I>}} : (N) -> N"""


COUNTS = (
    '%a = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> N loc("a")\n'
    '%b = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> N loc("b")\n'
)
DOUBLE = "%i_next = tf1.AddV2 %i_in, %i_in {<I>} : (N, N) -> N"


def count(body: str, a: int, b: int, max_steps: int | None = None) -> int:
    inputs = {"a:0": np.array(a, np.int32), "b:0": np.array(b, np.int32)}
    (found,) = run_module(module(COUNTS + body), inputs, max_steps=max_steps).values()
    return int(np.asarray(found))


def test_loops_run_any_number_of_times() -> None:
    body = loop("i", "a", "b", DOUBLE) + '\ntf1.fetch %i : N {names = ["i"]}'
    assert [count(body, 1, limit) for limit in (0, 1, 2, 100)] == [1, 1, 2, 128]


def test_an_endless_loop_meets_the_step_limit() -> None:
    body = loop("i", "a", "b", DOUBLE) + '\ntf1.fetch %i : N {names = ["i"]}'
    with pytest.raises(StepLimitError):
        count(body, 0, 1, max_steps=1000)


@pytest.mark.parametrize("inner_name", ["inner", "outer"])
def test_frames_of_one_name_are_apart_if_their_parents_are(inner_name: str) -> None:
    """The inner loop doubles up to the outer bound minus one, the outer one then adds one."""
    inner = (
        loop("i", "j_in", "j_l", DOUBLE, inner_name)
        + """
%one = tf1.Enter %unit {<I>, frame_name = "outer", is_constant = true} : (tensor<i32>) -> N
%j_next = tf1.AddV2 %i, %one {<I>} : (N, N) -> N"""
    )
    body = number("unit", 1) + loop("j", "a", "b", inner) + '\ntf1.fetch %j : N {names = ["j"]}'
    assert count(body, 1, 10) == 17
    assert count(body, 10, 10) == 10


def test_a_loop_in_a_dead_branch_does_not_run() -> None:
    """Even if it would not end."""
    body = (
        number("zero", 0)
        + """
%less = tf1.Less %a, %b {<I>} : (N, N) -> P
%f, %start = tf1.Switch %zero, %less {<I>} : (tensor<i32>, P) -> (N, N)"""
        + loop("i", "start", "b", DOUBLE)
        + """
%y, %which = tf1.Merge %f, %i {<I>, N = 2 : i64} : (N, N) -> (N, N)
tf1.fetch %y : N {names = ["y"]}"""
    )
    assert count(body, 1, 1, max_steps=100) == 0
    with pytest.raises(StepLimitError):
        count(body, 0, 1, max_steps=100)


def test_an_output_inside_a_loop_is_an_error() -> None:
    body = loop("i", "a", "b", DOUBLE) + '\ntf1.fetch %i_m : N {names = ["m"]}'
    with pytest.raises(InterpretError, match="inside a loop"):
        count(body, 1, 2)


def test_inputs_are_checked_by_name() -> None:
    parsed = module(X + 'tf1.fetch %x : F {names = ["x:0"]}')
    with pytest.raises(InterpretError, match=r"no value for the inputs \['x:0'\]"):
        run_module(parsed, {})
    with pytest.raises(InterpretError, match=r"\['z:0'\] are not inputs"):
        run_module(parsed, {"x:0": np.array(1.0), "z:0": np.array(1.0)})


def test_an_error_names_the_node() -> None:
    body = X + '%y = tf1.CheckNumerics %x {<T>, message = "bad"} : (F) -> F loc("check")\n'
    with pytest.raises(InterpretError, match=r"node 'check' \(tf1.CheckNumerics\): bad"):
        run(body + 'tf1.fetch %y : F {names = ["y"]}', x=np.inf)


# TensorArrays

HANDLE = "!tf1.resource"


class Arrays:
    """Builds a graph that does one thing after another to a TensorArray."""

    def __init__(self, size: int, attributes: str = "") -> None:
        self.count = 0
        extra = f", {attributes}" if attributes else ""
        self.text = X + number("size", size)
        self.text += (
            f"%h, %flow0 = tf1.TensorArrayV3 %size {{dtype = #tf1.dtype<float>{extra}}} : "
            f"(tensor<i32>) -> ({HANDLE}, F)\n"
        )

    def write(self, index: int, value: str = "x") -> Arrays:
        flow, self.count = self.count, self.count + 1
        self.text += number(f"k{self.count}", index)
        self.text += (
            f"%flow{self.count} = tf1.TensorArrayWriteV3 %h, %k{self.count}, %{value}, %flow{flow} "
            f"{{<T>}} : ({HANDLE}, tensor<i32>, F, F) -> F\n"
        )
        return self

    def read(self, index: int) -> Arrays:
        """What is read is kept as %r; what comes next waits for it."""
        flow, self.count = self.count, self.count + 1
        self.text += number(f"k{self.count}", index)
        self.text += (
            f"%r, %c{self.count} = tf1.TensorArrayReadV3 %h, %k{self.count}, %flow{flow} "
            f"{{dtype = #tf1.dtype<float>}} : ({HANDLE}, tensor<i32>, F) -> (F, !tf1.control)\n"
            f"%flow{self.count} = tf1.Identity %flow{flow}, %c{self.count} {{<T>}} : "
            f"(F, !tf1.control) -> F\n"
        ).replace("%r,", f"%r{self.count},")
        return self

    def fetch(self, what: str, x: Any = (1.0, 2.0)) -> Any:
        type_ = "N" if what == "n" else "F"
        return run(self.text + f'tf1.fetch %{what} : {type_} {{names = ["y"]}}', x=x)[0]

    def result(self, x: Any = (1.0, 2.0)) -> Any:
        """The last element that was read, or the flow."""
        last = f"r{self.count}" if f"%r{self.count}," in self.text else f"flow{self.count}"
        return self.fetch(last, x)

    def size(self) -> int:
        self.text += f"%n = tf1.TensorArraySizeV3 %h, %flow{self.count} : ({HANDLE}, F) -> N\n"
        return int(self.fetch("n"))


def test_an_element_is_written_and_read() -> None:
    np.testing.assert_array_equal(Arrays(3).write(1).read(1).result(), [1, 2])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (Arrays(3).read(1), "element 1 is read before it is written"),
        (Arrays(3).write(0).read(1), "element 1 is read before it is written"),
        (Arrays(3).write(0).read(0).read(0), "read again after it was cleared"),
        (Arrays(3).write(0).write(0), "written for the second time"),
        (Arrays(3).write(0).read(0).write(0), "written for the second time"),
        (Arrays(3, "clear_after_read = false").write(0).read(0).write(0), "second time"),
        (Arrays(1).write(1), "index 1 is out of range for 1 elements"),
        (Arrays(1).write(-1), "index -1 is out of range"),
        (Arrays(1).read(1), "index 1 is out of range"),
        (Arrays(1, "element_shape = #tf1.shape<[3]>").write(0), "expected"),
        (Arrays(-1).write(0), "the size -1 is negative"),
    ],
)
def test_what_tensor_arrays_refuse(arrays: Arrays, message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        arrays.result()


def test_elements_of_a_known_shape_are_zero_before_they_are_written() -> None:
    known = Arrays(2, "element_shape = #tf1.shape<[2]>").read(1)
    np.testing.assert_array_equal(known.result(), [0, 0])
    uniform = Arrays(2, "identical_element_shapes = true").write(0).read(1)
    np.testing.assert_array_equal(uniform.result(), [0, 0])


def test_elements_can_be_kept() -> None:
    arrays = Arrays(3, "clear_after_read = false").write(0).read(0).read(0)
    np.testing.assert_array_equal(arrays.result(), [1, 2])


def test_dynamic_arrays_grow() -> None:
    assert Arrays(1, "dynamic_size = true").write(4).size() == 5
    assert Arrays(3).write(1).size() == 3
