"""What strategies there are, how one is asked for or left out, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp
from lowerdeck.dialects.core.schedule import Schedule, ScheduleAttr
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies import registry
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.facts import assumed_size
from lowerdeck.lowering.strategies.registry import STRATEGIES, candidates, choose, lower_kernel
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, typed  # noqa: TID251  (these are tests)
from .targets import suite_for  # noqa: TID251  (as above)
from .test_layouts import LayoutProgram, values  # noqa: TID251  (as above)
from .toy_strategy import Toy  # noqa: TID251  (as above)

FOLDER = Path(registry.__file__).parent


def test_each_has_a_name_of_its_own() -> None:
    names = [strategy.name for strategy in STRATEGIES]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    # The file says it, but for what is one line more of a file's algorithm.
    assert {*names} - {path.stem for path in FOLDER.glob("*.py")} == {"concat_blocks"}


def convolutions() -> ModuleOp:
    """3 x 3, of a large image and many channels: Winograd's algorithm is the fastest."""

    def body(x: SSAValue) -> SSAValue:
        weight = ConstantOp.of(np.ones((64, 64, 3, 3), np.float32)).result
        ones = [1, 1]
        for _ in range(2):
            conv = ConvOp(x, weight, strides=ones, dilations=ones, pads_begin=ones, pads_end=ones)
            x = conv.result
        return x

    return module_of([typed(np.float32, 1, 64, 56, 56)], body)


def chosen(module: ModuleOp, options: CompileOptions) -> set[str]:
    """The strategies of convolutions."""
    run_to_phase(LowerdeckContext(options=options), module, "kernels", after="optimized")
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    return {
        kernel.schedule.data.strategy
        for kernel in kernels
        if kernel.schedule and any(isinstance(op, ConvOp) for op in kernel.body.block.ops)
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (CompileOptions(target="x86-64-v4"), "winograd"),
        (CompileOptions(target="x86-64-v4", disable_strategy=["winograd"]), "direct"),
        (CompileOptions(target="x86-64-v4", strategy=["direct"]), "direct"),
        # It cannot run them, so the others do.
        (CompileOptions(target="x86-64-v4", strategy=["depthwise"]), "winograd"),
    ],
)
def test_disabled_and_asked_for(options: CompileOptions, expected: str) -> None:
    assert chosen(convolutions(), options) == {expected}


def test_layouts_are_those_that_enabled_strategies_want() -> None:
    """Without any strategy for convolutions on blocks, nothing is brought into blocks."""
    module = convolutions()
    names = ["winograd", "direct", "taps", "rows", "conv_lines"]
    assert chosen(module, CompileOptions(target="x86-64-v4", disable_strategy=names)) == set()
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    assert [kernel.layouts for kernel in kernels] == [None] * 2


def test_ranks_go_through_all_strategies() -> None:
    module = convolutions()
    options = CompileOptions(target="x86-64-v4")
    context = LowerdeckContext(options=options)
    unchosen = {"choose-strategies": None}
    run_to_phase(context, module, "kernels", after="optimized", instead=unchosen)
    kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
    kernel = next(k for k in kernels if any(isinstance(op, ConvOp) for op in k.body.block.ops))
    setting = Setting.of(options)
    ways = list(candidates(kernel, setting))
    ranked = [choose(kernel, setting, rank) for rank in range(len(ways))]
    cycles = [way.cycles for way in ranked if way is not None]
    assert cycles == sorted(way.cycles for way in ways)
    assert {way.schedule.strategy for way in ways} == {"winograd", "direct"}
    # There are no more: the best.
    assert choose(kernel, setting, len(ways)) == ranked[0]


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (Schedule("winnograd"), "there is no strategy 'winnograd'; there are arg_rows, bands, "),
        (Schedule("rows"), "strategy 'rows' is for core.conv; this kernel has maps alone"),
        (
            Schedule("map_squares", parameters=(("sides", 8),)),
            r"strategy 'map_squares' has no parameters \['sides'\]; it has side, along, overlap",
        ),
    ],
)
def test_wrong_schedules(schedule: Schedule, problem: str) -> None:
    module = module_of([typed(np.float32, 8)], negated)
    run_to_phase(LowerdeckContext(), module, "kernels", after="optimized")
    kernel = next(op for op in module.walk() if isinstance(op, KernelOp))
    kernel.schedule = ScheduleAttr(schedule)
    with pytest.raises(LoweringError, match=problem):
        lower_kernel(kernel)


def added(x: SSAValue, y: SSAValue) -> SSAValue:
    """The sum of two values."""
    return e.AddOp(x, y).result


def negated(x: SSAValue) -> SSAValue:
    """A value with the other sign."""
    return e.NegOp(x).result


def test_a_toy_is_a_file_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is chosen by its estimate, keeps its parameters, and its loops run."""
    monkeypatch.setattr(registry, "STRATEGIES", [*STRATEGIES, Toy()])
    suite = suite_for("x86-64-v3", tmp_path)
    inputs = [values(7), values(7, seed=1)]
    module = module_of([typed(np.float32, 7)] * 2, added)
    program = LayoutProgram("p", module, inputs, ulps=1, target="x86-64-v3")
    suite.programs.append(program)
    suite.check()
    functions = [op for op in module.walk() if isinstance(op, FuncOp) and op.schedule]
    expected = "toy tile d0=2 pairs=1"
    assert [str(op.schedule.data) for op in functions if op.schedule] == [expected]


def test_a_pass_that_is_not_there_is_not_replaced() -> None:
    """Or a test would go on with what it wants to do without."""
    context, module = LowerdeckContext(), convolutions()
    unknown = {"choose-schedule": None}
    with pytest.raises(ValueError, match="no pass 'choose-schedule'; did you mean"):
        run_to_phase(context, module, "kernels", after="optimized", instead=unknown)


def test_open_signals_have_frames() -> None:
    """Also such whose frames are longer than images are wide."""
    n = Expr.symbol("n")
    assert assumed_size((n - 512) // 160 + 1) == 23
    assert assumed_size(n // 8) == 32
    assert assumed_size(n // 9 - n) == 1
