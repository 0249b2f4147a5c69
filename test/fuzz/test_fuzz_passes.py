"""Random programs of every op, through every pass, and what the fuzzer says of a wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir import Operation
from xdsl.parser import Parser

from fuzz import fuzz_passes
from fuzz.core_programs import RECIPES, Builder, random_program
from lowerdeck.dialects.core import Core
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.elementwise import SubOp
from lowerdeck.dialects.interpret import Value
from lowerdeck.engines import InProcess
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter


def made_by(key: Any) -> Sequence[Operation]:
    """The ops of a recipe, as soon as there is a program where it fits."""
    for seed in range(2000):
        builder = Builder(Random(seed))
        builder.grow(3)
        if builder.attempt(key):
            return list(builder.block.walk())
    return []


@pytest.mark.parametrize("key", RECIPES, ids=lambda key: getattr(key, "name", key))
def test_every_recipe_makes_what_it_says(key: Any) -> None:
    made = made_by(key)
    assert made
    assert isinstance(key, str) or any(isinstance(op, key) for op in made)


def test_there_is_a_recipe_for_every_op() -> None:
    elsewhere = {ConstantOp, YieldOp, KernelOp, CustomOp}
    assert {cls for cls in Core.operations if cls not in RECIPES} == elsewhere


@settings(max_examples=40)
@given(fuzz_passes.RANDOMS)
def test_passes_keep_results(random: Random) -> None:
    program = random_program(random)
    program.module.verify()
    check_contract(program.module, "optimized")
    subject = fuzz_passes.Subject(program.module, program.feeds)
    assert not list(subject.findings([*fuzz_passes.EVERY, fuzz_passes.ALL])), program.module


class Turned(Pattern[None]):
    """x - y -> y - x, which is wrong."""

    name = "turned"
    roots = (SubOp,)

    def match(self, op: SubOp) -> Match[None]:
        return Match((op,))

    def rewrite(self, match: Match[None], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, SubOp)
        rewriter.replace(op, SubOp(op.rhs, op.lhs))


class WrongPass(PatternPass):
    """Turns differences."""

    name = "wrong"
    recursive = False

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [Turned()]


def test_a_wrong_pass_is_found_and_shrunk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ALL_PASSES, "wrong", lambda: WrongPass)
    parts = fuzz_passes.parts_of(60, 0, 0)
    fuzz = fuzz_passes.campaign(InProcess(), ["wrong"], parts, tmp_path)
    assert fuzz.counts["findings"]
    assert "patterns: wrong/turned" in capsys.readouterr().out
    text = (tmp_path / "1-wrong-differs.mlir").read_text()
    assert text.count("core.sub") == 1
    parsed(text).verify()
    assert text.count(" = core.") <= 3
    assert (tmp_path / "1-wrong-differs.npz").exists()


ROUNDING = """
func.func @main(%x : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %k = core.constant dense<3.0> : tensor<f32>
  %a = core.mul %x, %k : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = core.floor %a : (tensor<2xf32>) -> tensor<2xf32>
  %c = core.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %b, %c : tensor<2xf32>, tensor<2xf32>
}
"""


def parsed(text: str) -> ModuleOp:
    context = LowerdeckContext()
    for dialect in (Builtin, Func, Core):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def test_what_last_bits_decide_is_no_finding() -> None:
    # 3 * x is an integer, but for a last bit.
    subject = fuzz_passes.Subject(parsed(ROUNDING), [{"0": np.array([1, 2.5], np.float32)}])
    (expected,) = subject.expected

    def with_result(name: str, *numbers: float) -> dict[str, Value]:
        return {**expected, name: np.array(numbers, np.float32)}

    below = with_result("0", 2, 7)
    assert subject.difference("fuse-linear", 0, below) is None
    assert subject.rounded == 1
    assert subject.difference("simplify-arithmetic", 0, below) is not None
    assert subject.difference("fuse-linear", 0, with_result("0", 3, 6)) is not None
    assert subject.difference("fuse-linear", 0, with_result("1", 2, 5.1)) is not None
