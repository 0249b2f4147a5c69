"""The driver: its options, provenance, and that its work grows with the number of ops."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.core import Core
from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.elementwise import AddOp, ExpOp, FloatUnaryOp, NegOp
from lowerdeck.passes.fold.cse import CsePass
from lowerdeck.passes.fold.dce import DcePass
from lowerdeck.passes.fold.fold import FoldPass
from lowerdeck.passes.fold.simplify import SimplifyPass
from lowerdeck.passes.machinery.context import LowerdeckContext, options_of, recorder_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, apply_patterns
from lowerdeck.passes.machinery.options import UNSPECIFIED, CompileOptions
from lowerdeck.passes.machinery.provenance import NodeMatcher, derive, describe, source_names
from lowerdeck.passes.machinery.recorder import Recorder


def context(**options: Any) -> LowerdeckContext:
    """A context with our dialects and the given options."""
    ctx = LowerdeckContext(options=CompileOptions(target="c99", **options))
    for dialect in (Builtin, Func, Core):
        ctx.load_dialect(dialect)
    return ctx


def chain(length: int, name: str = "n") -> ModuleOp:
    """`length` negations in a row, each from its own source node."""
    lines = [
        f'%v{i + 1} = core.neg %v{i} : (tensor<2xf32>) -> tensor<2xf32> loc("{name}{i}")'
        for i in range(length)
    ]
    body = "\n".join(lines)
    text = f"""
    func.func @main(%v0 : tensor<2xf32>) -> tensor<2xf32> {{
      {body}
      func.return %v{length} : tensor<2xf32>
    }}"""
    return Parser(context(), text).parse_module()


def ops_of(module: ModuleOp, *classes: type[Operation]) -> list[Operation]:
    """The ops of some classes in program order."""
    return [op for op in module.walk() if isinstance(op, classes)]


class NegBecomesExp(Pattern):
    """One rewrite an op, in order."""

    name = "neg-becomes-exp"
    roots = (NegOp,)

    def __init__(self) -> None:
        self.asked = 0

    def match(self, op: NegOp) -> Match:
        self.asked += 1
        return Match((op,), "a test")

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        rewriter.replace(match.root, ExpOp(match.root.operands[0]))


class MergeExps(Pattern):
    """exp(exp(x)) -> exp(x): consumes both, so that locations accumulate."""

    name = "merge-exps"
    roots = (ExpOp,)

    def match(self, op: FloatUnaryOp) -> Match | None:
        inner = op.input.owner
        return Match((op, inner)) if isinstance(inner, ExpOp) else None

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        inner = match.consumed[1]
        rewriter.replace(match.root, ExpOp(inner.operands[0]))


class CancelNegs(Pattern):
    """neg(neg(x)) -> x, as if it consumed only the outer one: the inner one loses its use."""

    name = "cancel-negs"
    roots = (NegOp,)

    def match(self, op: NegOp) -> Match | None:
        return Match((op,)) if isinstance(op.input.owner, NegOp) else None

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        inner = match.root.operands[0].owner
        assert isinstance(inner, NegOp)
        rewriter.replace(match.root, inner.input)


class Forever(Pattern):
    """Replaces an op by an equal one."""

    name = "forever"
    roots = (NegOp,)

    def match(self, op: NegOp) -> Match:
        return Match((op,))

    def rewrite(self, match: Match, rewriter: Rewriter) -> None:
        rewriter.replace(match.root, NegOp(match.root.operands[0]))


def run(module: ModuleOp, patterns: Sequence[Pattern[Any]], recorder: Recorder) -> int:
    """The number of rewrites of the patterns."""
    return apply_patterns(module, patterns, recorder, pass_name="test")


def test_rewrite_limit_counts_across_passes() -> None:
    recorder = Recorder(rewrite_limit=5)
    assert run(chain(3), [NegBecomesExp()], recorder) == 3
    module = chain(4)
    assert run(module, [NegBecomesExp()], recorder) == 2
    assert [type(op) for op in ops_of(module, NegOp, ExpOp)[:3]] == [ExpOp, ExpOp, NegOp]
    assert recorder.last == "5 test/neg-becomes-exp on core.neg: a test; from 'n1'"


def test_log_and_statistics() -> None:
    log = io.StringIO()
    recorder = Recorder(log=log, skip_nodes="n1")
    run(chain(3), [NegBecomesExp()], recorder)
    assert log.getvalue().splitlines() == [
        "1 test/neg-becomes-exp on core.neg: a test; from 'n0'",
        "2 test/neg-becomes-exp on core.neg: a test; from 'n2'",
    ]
    assert recorder.statistics == Counter({("test", "neg-becomes-exp"): 2})
    assert recorder.skipped == Counter({("test", "neg-becomes-exp"): 1})
    assert "2 rewrites      1 skipped  test/neg-becomes-exp" in recorder.summary()


def test_skip_nodes_binds_optional_passes_only() -> None:
    recorder = Recorder(skip_nodes=".")
    module = chain(3)
    assert run(module, [NegBecomesExp()], recorder) == 0
    patterns = [NegBecomesExp()]
    assert apply_patterns(module, patterns, recorder, pass_name="test", optional=False) == 3


def test_skip_nodes_binds_all_that_is_consumed() -> None:
    module = chain(3)
    run(module, [NegBecomesExp()], Recorder())
    assert run(module, [MergeExps()], Recorder(skip_nodes="^n0$")) == 1
    first, second = ops_of(module, ExpOp)
    assert source_names(first) == ["n0"]
    assert sorted(source_names(second)) == ["n1", "n2"]


def test_skip_nodes_keeps_what_loses_its_use() -> None:
    for skipped, left in (("^n0$", ["n0"]), ("none", [])):
        module = chain(2)
        assert run(module, [CancelNegs()], Recorder(skip_nodes=skipped)) == 1
        assert [source_names(op)[0] for op in ops_of(module, NegOp)] == left


def test_skip_nodes_keeps_what_a_dead_op_needs() -> None:
    text = """
    func.func @main(%n : tensor<i64>, %x : tensor<f32>) -> tensor<f32> {
      %a, %b = core.loop trip %n : tensor<i64> carry %x, %x : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
      ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>):
        %q2 = core.neg %q : (tensor<f32>) -> tensor<f32> loc("kept")
        %p2 = core.exp %p : (tensor<f32>) -> tensor<f32>
        core.yield %p2, %q2 : tensor<f32>, tensor<f32>
      }
      func.return %a : tensor<f32>
    }"""  # noqa: E501
    for skipped, carried in (("kept", 2), ("none", 1)):
        module = Parser(context(), text).parse_module()
        DcePass().apply(context(skip_nodes=skipped), module)
        module.verify()
        (loop,) = ops_of(module, LoopOp)
        assert len(loop.results) == carried


def test_skip_nodes_sees_through_rewrites() -> None:
    module = chain(8)
    run(module, [NegBecomesExp(), MergeExps()], Recorder())
    (merged,) = ops_of(module, ExpOp)
    assert sorted(source_names(merged)) == [f"n{i}" for i in range(8)]
    assert NodeMatcher("^n5$").matches(merged)
    assert not NodeMatcher("^n9$").matches(merged)


def test_names_are_cut_only_when_printed() -> None:
    module = chain(40)
    run(module, [NegBecomesExp(), MergeExps()], Recorder())
    (merged,) = ops_of(module, ExpOp)
    assert len(source_names(merged)) == 16
    assert len(source_names(merged, limit=100)) == 40
    text = io.StringIO()
    Printer(text, print_debuginfo=True).print_op(module)
    assert '"and 24 more"]' in text.getvalue()
    again = Parser(context(), text.getvalue()).parse_module()
    assert source_names(ops_of(again, ExpOp)[0], limit=3) == source_names(merged, limit=3)


def test_derived_locations_share() -> None:
    first, second = ops_of(chain(2), NegOp)
    both = derive([first.location, second.location])
    assert derive([both, both]) is both
    assert derive([first.location, first.location]) == first.location
    assert describe(first) == "node 'n0' (core.neg)"


def test_patterns_that_never_end_are_an_error() -> None:
    with pytest.raises(PassFailedException, match="ops and no end, the last of them by 'forever'"):
        run(chain(3), [Forever(), NegBecomesExp()], Recorder())


@pytest.mark.parametrize("length", [50, 500])
def test_each_op_is_looked_at_a_bounded_number_of_times(length: int) -> None:
    pattern = NegBecomesExp()
    assert run(chain(length), [pattern], Recorder()) == length
    assert pattern.asked <= 4 * length


def counted_work(pass_: PatternPass | FoldPass, module: ModuleOp) -> int:
    """Calls of Python functions while a pass runs: work, measured without a clock."""
    import sys

    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        pass_.apply(context(), module)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("pass_", [CsePass(), DcePass(), FoldPass(), SimplifyPass()])
def test_work_is_linear(pass_: PatternPass | FoldPass) -> None:
    small, large = (counted_work(pass_, chain(length)) for length in (100, 800))
    assert large < 8 * small * 1.25


def test_ifs_on_one_condition_are_linear_for_cse() -> None:
    def module(count: int) -> ModuleOp:
        body = "\n".join(
            f"""%r{i} = core.if %c : tensor<i1> -> tensor<f32> {{
              %s = core.constant dense<{i}.0> : tensor<f32>
              core.yield %s : tensor<f32>
            }} else {{
              core.yield %x : tensor<f32>
            }}"""
            for i in range(count)
        )
        text = f"""
        func.func @main(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {{
          {body}
          func.return %r0 : tensor<f32>
        }}"""
        return Parser(context(), text).parse_module()

    small, large = (counted_work(CsePass(), module(count)) for count in (50, 400))
    assert large < 8 * small * 1.25


def test_options_of_a_plain_context_are_the_defaults() -> None:
    assert options_of(Context()) == UNSPECIFIED
    ctx = context(disable=frozenset({"cse"}))
    assert options_of(ctx.clone()) is ctx.options
    assert recorder_of(ctx.clone()) is ctx.recorder


def test_a_disabled_pass_does_nothing() -> None:
    module = chain(2)
    SimplifyPass().apply(context(disable=frozenset({"simplify"})), module)
    assert len(ops_of(module, NegOp)) == 2
    SimplifyPass().apply(context(), module)
    assert not ops_of(module, NegOp)


def test_replaced_names_and_uses_stay_linked() -> None:
    module = chain(1)
    run(module, [NegBecomesExp()], Recorder())
    (exp,) = ops_of(module, ExpOp)
    assert exp.results[0].name_hint == "v1"
    assert not ops_of(module, AddOp)
    module.verify()
