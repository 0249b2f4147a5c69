"""What each phase refuses, all of it at once, with source nodes and the pass that is missing."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from lowerdeck.dialects.buffer import Buffer
from lowerdeck.dialects.core import Core
from lowerdeck.dialects.onnx import onnx_dialect
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import PHASES, ContractError, check_contract, violations
from lowerdeck.passes.machinery.pipeline import PASSES, passes_of_phase


def parse(text: str) -> ModuleOp:
    """The module that a text of core, buffer and onnx ops describes."""
    context = LowerdeckContext()
    for dialect in (Builtin, Func, Core, Buffer, onnx_dialect()):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_a_plain_core_module_is_legal_and_optimized() -> None:
    module = parse("""
    func.func @main(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>> {
      %a = core.exp %x : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
      func.return %a : tensor<?xf32, #core.tensor<dims = [n]>>
    }""")  # noqa: E501
    for phase in ("imported", "legal", "optimized"):
        check_contract(module, phase)


def test_all_nodes_of_another_dialect_are_listed() -> None:
    module = parse("""
    func.func @main(%x : tensor<2xf32>) -> tensor<2xf32> {
      %a = onnx.Relu_14 %x : (tensor<2xf32>) -> tensor<2xf32> loc("first"("m.onnx":0:0))
      %b = onnx.Relu_14 %a : (tensor<2xf32>) -> tensor<2xf32> loc("second"("m.onnx":0:0))
      func.return %b : tensor<2xf32>
    }""")
    check_contract(module, "imported")
    with pytest.raises(ContractError) as error:
        check_contract(module, "legal")
    assert error.value.problems == tuple(
        f"m.onnx: node '{name}' (Relu): found 'onnx.Relu_14', which may not occur once the module "
        "is legal; legalize-onnx should have converted it"
        for name in ("first", "second")
    )


def test_types_without_a_form_in_c_are_refused() -> None:
    module = parse("""
    func.func @main(%x : tensor<2xcomplex<f32>>, %s : !core.sequence<tensor<2xf32>>) {
      func.return
    }""")
    found = list(violations(module, "legal"))
    assert len(found) == 2
    assert "element type complex<f32> has no C form" in found[0]
    assert "type !core.sequence<tensor<2xf32>> has no C form" in found[1]


def test_ranks_are_needed_from_optimized_on() -> None:
    module = parse("""
    func.func @main(%x : tensor<*xf32>) -> tensor<*xf32> {
      %a = core.exp %x : (tensor<*xf32>) -> tensor<*xf32> loc("act")
      func.return %a : tensor<*xf32>
    }""")
    check_contract(module, "legal")
    (argument, result) = violations(module, "optimized")
    assert "has no rank; infer-shapes should have found it" in argument
    assert result.startswith("node 'act' (core.exp): ")


def test_a_dimension_without_a_symbol_is_refused() -> None:
    module = parse("func.func @main(%x : tensor<?xf32>) { func.return }")
    (problem,) = violations(module, "optimized")
    assert "has a dimension without a symbol" in problem


def test_only_driver_ops_stay_outside_of_kernels() -> None:
    module = parse("""
    func.func @main(%x : tensor<2xf32>) -> tensor<2xf32> {
      %a = core.exp %x : (tensor<2xf32>) -> tensor<2xf32> loc("lonely")
      %b = core.kernel @k (%a) : (tensor<2xf32>) -> tensor<2xf32> {
      ^bb0(%p : tensor<2xf32>):
        %q = core.neg %p : (tensor<2xf32>) -> tensor<2xf32>
        core.yield %q : tensor<2xf32>
      }
      func.return %b : tensor<2xf32>
    }""")
    (problem,) = violations(module, "kernels")
    assert problem == (
        "node 'lonely' (core.exp): 'core.exp' is not in a kernel; "
        "form-kernels should have put it into one"
    )
    assert len(list(violations(module, "buffer"))) > 3


def test_constants_have_the_bytes_that_kernels_read() -> None:
    module = parse("""
    buffer.entry [] -> [] {
      %a = buffer.weight {value = #core.blob<"0x0101">} : !buffer.ref<[4] x i8> loc("w")
      %b = buffer.weight {value = #core.blob<"0x0101">, layout = #core.layout<0/4, 0 mod 4>, dims = #core.dims<[2]>} : !buffer.ref<[1, 4] x i8>
      %c = buffer.weight {value = #core.blob<"0x0101">} : !buffer.ref<[2] x i8>
      buffer.return
    }""")  # noqa: E501
    for phase in ("buffer", "scheduled"):
        short, unpacked = violations(module, phase)
        assert short.startswith("node 'w' (buffer.weight): the blob has 2 bytes, but 4 are expect")
        assert "is not in its layout; pack-weights should have packed it" in unpacked


def test_kernels_have_loops() -> None:
    module = parse("""
    buffer.kernel @twice {
    ^bb0(%x : tensor<4xf32>):
      %y = core.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      core.yield %y : tensor<4xf32>
    }""")
    for phase in ("buffer", "scheduled"):
        (problem,) = violations(module, phase)
        assert "the kernel @twice has no loops; lower-kernels should have made them" in problem


def test_uses_before_definitions_are_found() -> None:
    module = parse("""
    func.func @main(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {
      %a = core.exp %b : (tensor<f32>) -> tensor<f32> loc("early")
      %b = core.exp %x : (tensor<f32>) -> tensor<f32>
      func.return %a : tensor<f32>
    }""")
    (problem,) = violations(module, "legal")
    assert problem == (
        "node 'early' (core.exp): operand 0 is used before it is defined: "
        "%b, a result of 'core.exp'"
    )


def test_values_do_not_leave_their_region() -> None:
    module = parse("""
    func.func @main(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {
      %r = core.if %c : tensor<i1> -> tensor<f32> {
        %a = core.exp %x : (tensor<f32>) -> tensor<f32>
        core.yield %a : tensor<f32>
      } else {
        core.yield %x : tensor<f32>
      }
      func.return %r : tensor<f32>
    }""")
    (exp,) = (op for op in module.walk() if op.name == "core.exp")
    (ret,) = (op for op in module.walk() if op.name == "func.return")
    check_contract(module, "legal")
    ret.operands = [exp.results[0]]
    (problem,) = violations(module, "legal")
    assert "operand 0 is used before it is defined" in problem


SYMBOL = """
func.func @main(%c : tensor<i1>, %n : tensor<i64>) {
  {before}
  {bind}
  {after}
  func.return
}"""
IOTA = "%r = core.iota [u] axis 0 : tensor<?xi64, #core.tensor<dims = [u]>>"
BIND = 'core.bind_symbols %n ["u"] : tensor<i64>'
IN_BRANCH = "core.if %c : tensor<i1> {\n " + BIND + "\n core.yield\n } else {\n core.yield\n }"


@pytest.mark.parametrize(
    ("before", "bind", "after", "message"),
    [
        ("", BIND, IOTA, None),
        (IOTA, BIND, "", "uses the symbol 'u' before it is made"),
        ("", IN_BRANCH, IOTA, "uses the symbol 'u' before it is made"),
        (BIND, BIND, "", "symbol 'u' is made a second time"),
        (BIND, IN_BRANCH, "", "symbol 'u' is made a second time"),
        (IN_BRANCH, IN_BRANCH, "", None),
    ],
)
def test_symbols_are_made_before_they_are_used(
    before: str, bind: str, after: str, message: str | None
) -> None:
    text = SYMBOL.replace("{before}", before).replace("{bind}", bind).replace("{after}", after)
    found = list(violations(parse(text), "legal"))
    assert all(message is not None and message in problem for problem in found)
    assert bool(found) == (message is not None)


def test_loop_symbols_have_their_scopes() -> None:
    module = parse("""
    func.func @main(%n : tensor<i64>, %x : tensor<f32>) -> tensor<?xi64, #core.tensor<dims = [t]>> {
      %s = core.loop trip %n : tensor<i64> -> tensor<?xi64, #core.tensor<dims = [t]>> {
      ^bb0(%i : tensor<i64>):
        %d = core.from_dims [k + 1] shape [] : tensor<i64>
        core.yield %d : tensor<i64>
      } {count = "t", iteration = "k"}
      func.return %s : tensor<?xi64, #core.tensor<dims = [t]>>
    }""")
    check_contract(module, "optimized")


SIZES = """
func.func @main(%n : tensor<i64>, %x : tensor<1xf32>) -> tensor<?xf32, #core.tensor<dims = [r]>> {{
  %y = core.loop trip %n : tensor<i64> carry %x : tensor<1xf32>
      -> tensor<?xf32, #core.tensor<dims = [r]>> {{
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>):
    %d = core.from_dims [{inside}] shape [] : tensor<i64>
    core.yield %x : tensor<1xf32>
  }} {{carried_symbols = ["s"], result_symbols = ["r"]}}
  %d = core.from_dims [{after}] shape [] : tensor<i64>
  func.return %y : tensor<?xf32, #core.tensor<dims = [r]>>
}}"""


def test_sizes_of_carried_values_are_known_in_their_scope() -> None:
    check_contract(parse(SIZES.format(inside="s", after="r")), "optimized")
    for inside, after, unknown in (("r", "r", "r"), ("s", "s", "s")):
        (problem,) = violations(parse(SIZES.format(inside=inside, after=after)), "optimized")
        assert f"uses the symbol '{unknown}' before it is made" in problem


DERIVED = """
func.func @main(
    %x : tensor<?xf32, #core.tensor<dims = [(h + 31) floordiv 32]>>,
    %y : tensor<?xf32, #core.tensor<dims = [{dim}]>>) {{
  func.return
}}"""


def test_symbols_of_arguments_are_dimensions_by_themselves() -> None:
    check_contract(parse(DERIVED.format(dim="h")), "optimized")
    first, second = violations(parse(DERIVED.format(dim="h * w")), "optimized")
    assert "argument 0 uses the symbol 'h', expected one that is a dimension" in first
    assert "argument 1 uses the symbol 'h', 'w'" in second


def test_every_registered_pass_has_its_name_and_can_be_made() -> None:
    for name, factory in PASSES.items():
        assert factory().name == name
        assert factory()().name == name


def test_phases_name_registered_passes() -> None:
    names = [name for phase in PHASES[:3] for name in passes_of_phase(phase)]
    assert set(names) <= set(PASSES)
    assert names[0] == "legalize-onnx"
