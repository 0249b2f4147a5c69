"""Where rows have their largest and smallest elements, and what those are, for every type."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, ReduceOp
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from ..programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    module_of,
    symbol,
    typed,
)
from ..targets import suite_for  # noqa: TID251  (as above)
from ..test_layouts import add  # noqa: TID251  (as above)

Array = NDArray[Any]

TYPES = (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32)


def rows(dtype: Any, length: int) -> Array:
    """Many equal elements; among floats both zeros and, in later rows, NaN and infinities."""
    rng = np.random.default_rng(length)
    x = rng.integers(0 if dtype is np.uint8 else -3, 4, (6, length)).astype(dtype)
    x[0] = 1
    if np.dtype(dtype).kind == "f":
        x[1] = np.where(x[1] > 0, -0.0, 0.0)
        x[2, 1::5], x[2, 3::7] = np.inf, -np.inf
        x[3, length // 2 :: 3] = np.nan
        x[4, 0] = x[4, -1] = np.nan
        x[5] = np.nan
    return x


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_places(tmp_path: Path, target: str) -> None:
    """The first or the last of equal ones, with remainders; rows of unknown length may be short."""
    suite = suite_for(target, tmp_path, share=2)

    def body(x: Any) -> list[Any]:
        ways = (("max", False), ("min", True), ("max", True), ("min", False))
        return [ArgReduceOp(kind, x, 1, last_index=last) for kind, last in ways]

    for dtype in TYPES:
        for length in (64, 131):
            x = rows(dtype, length)
            add(suite, target, [typed(dtype, *x.shape)], body, x, strategy=("arg_rows",))
    for length in (1, 15, 83):
        x = rows(np.float32, length)
        types = [typed(np.float32, 6, symbol("n"))]
        add(suite, target, types, body, x, strategy=("arg_rows",))
    suite.check()


@pytest.mark.parametrize(
    ("shape", "is_along"),
    [((1, 50257), True), ((8, 4096), True), ((128, 80), False), ((1000, 21), False)],
)
def test_few_long_rows_are_taken_one_by_one(shape: tuple[int, int], is_along: bool) -> None:
    """Of many short ones several are side by side: computed cycles say so."""
    module = module_of([typed(np.float32, *shape)], lambda x: ArgReduceOp("max", x, 1).result)
    context = LowerdeckContext(options=CompileOptions(target="x86-64-zen4"))
    run_to_phase(context, module, "kernels", after="optimized")
    (kernel,) = (op for op in module.walk() if isinstance(op, KernelOp))
    assert (kernel.schedule is not None) == is_along


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64"])
def test_reductions(tmp_path: Path, target: str) -> None:
    """Along rows and across them; NaN in any lane is kept."""
    suite = suite_for(target, tmp_path, share=2)
    for dtype in TYPES:
        for length in (21, 83):
            x = rows(dtype, length)
            add(
                suite,
                target,
                [typed(dtype, *x.shape)],
                lambda x: [
                    ReduceOp(kind, x, axes) for kind in ("max", "min", "sum") for axes in ([0], [1])
                ],
                x,
            )
    suite.check()
