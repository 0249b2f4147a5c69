"""Targets as they are described: what a new one takes, and what is said of wrong ones."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, bf16, f32, f64, i32
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.lowering import emit_c, targets
from lowerdeck.lowering.emit_c.vector_arithmetic import rounding_or_root
from lowerdeck.lowering.pipeline import check_options, run_to_phase
from lowerdeck.lowering.strategies.costs import least
from lowerdeck.lowering.strategies.tiled_matmul import product_tiles
from lowerdeck.lowering.targets import TARGETS, target_named, target_names
from lowerdeck.lowering.targets.isa import Builtin, Isa
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions, OptionError

from .programs import VECTOR_FLAGS, Suite, module_of, typed  # noqa: TID251  (these are tests)
from .test_layouts import LayoutProgram, values  # noqa: TID251  (as above)
from .toy_target import TOY  # noqa: TID251  (as above)


def product() -> ModuleOp:
    """Rows of 24 elements by a matrix."""

    def body(x: SSAValue) -> SSAValue:
        return MatmulOp(x, ConstantOp.of(values(24, 40, seed=1)).result).result

    return module_of([typed(np.float32, 9, 24)], body)


def test_a_toy_is_a_file_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TARGETS", [*TARGETS, TOY])
    check_options(CompileOptions(target="toy"))
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    program = LayoutProgram("p", product(), [values(9, 24)], ulps=64, scale=1, target="toy")
    suite.programs.append(program)
    suite.check()
    module = product()
    context = LowerdeckContext(options=CompileOptions(target="toy"))
    run_to_phase(context, module, "kernels", after="optimized")
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert kernel.schedule is not None
    # Tiles fit into six registers, and vectors have four lanes.
    assert dict(kernel.schedule.data.lanes) == {"n": 4}
    assert kernel.schedule.data.tile("m") * kernel.schedule.data.tile("n") < TOY.machine.registers


def test_unknown() -> None:
    with pytest.raises(OptionError, match="target: 'toy' is not one of native, x86-64-amx, "):
        check_options(CompileOptions(target="toy"))
    with pytest.raises(ValueError, match="target 'toy' is not one of native, x86-64-amx, "):
        target_named("toy")


def test_a_name_fits_into_the_header_of_the_weights() -> None:
    """Names that only differ behind what is cut off would be one."""
    with pytest.raises(ValueError, match=r"'riscv64-rvv1\.0': its name takes 14 bytes; .* has 12"):
        replace(TOY, name="riscv64-rvv1.0")


@pytest.mark.parametrize("name", target_names())
def test_lanes_by_element(name: str) -> None:
    target = target_named(name)
    assert target.name == name
    assert target.lanes == target.lanes_of(f32) == target.lanes_of(i32)
    assert target.lanes_of(f64) == max(target.lanes // 2, 1)
    assert target.lanes_of(bf16) == 1


def test_printing_knows_no_processor() -> None:
    """What is special to one is in the table of its instructions."""
    folder = Path(emit_c.__file__).parent
    special = re.compile(r"_ia32_|__(?:AVX|SSE|F16C|AMX|ARM|aarch64)|_tile_\w+\(|__asm__|immintrin")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(folder.glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if special.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("macro", "condition"), [("ROOT", "defined(ROOT)"), ("A B", "defined(A) && defined(B)")]
)
def test_an_instruction_of_ones_own(macro: str, condition: str) -> None:
    """It stands before the plain C, under all its macros."""
    own = Isa(functions={("sqrt", "f32", 4): Builtin(macro, "toy_root(x)")})
    lines = rounding_or_root("sqrt", f32, 4, own).definition("f", ()).splitlines()
    assert lines[1:4] == [
        f"#if {condition} && !defined(__clang__)",
        "  return toy_root(x);",
        "#else",
    ]
    plain = rounding_or_root("sqrt", f32, 4, Isa()).definition("f", ()).splitlines()
    assert [lines[0], *lines[4:-2], lines[-1]] == plain


@pytest.mark.parametrize(("target", "tile"), [("x86-64-v4", (13, 2)), ("x86-64-v3", (3, 3))])
def test_tiles_of_products_leave_sums_time(target: str, tile: tuple[int, int]) -> None:
    """
    Eight sums of vectors that are half a line would only just hide the time of a multiply-add;
    three of them are fewer than two lines.
    """
    assert least(product_tiles(target_named(target), 128, 384, 320))[1] == tile
