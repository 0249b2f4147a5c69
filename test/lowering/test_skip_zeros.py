"""Products with matrices whose blocks are mostly zero: the same numbers, where it is faster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp, SparseProductOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import module_of, typed  # noqa: TID251  (these are tests, not sources)
from .targets import SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)
from .test_layouts import add, values  # noqa: TID251  (as above)

Array = NDArray[Any]
Case: TypeAlias = "tuple[list[Any], Any, list[Array]]"
"""Types, body and inputs of a program."""

ASKED = ("sparse_products",)


def sparse(depth: int, columns: int, width: int, kept: float = 0.3) -> Array:
    """A matrix of whose blocks of so many columns most are zero, a panel as a whole, too."""
    matrix = values(depth, columns, seed=1)
    is_kept = np.random.default_rng(2).random((depth, columns // width)) < kept
    is_kept[:, :-1] &= np.arange(columns // width - 1) > 0  # the first of several panels
    is_kept[0, -1] = True
    return matrix * np.repeat(is_kept, width, axis=1)


def conv(shape: Sequence[int], filters: int, width: int, stride: int = 1) -> Case:
    """A convolution of one tap, with a bias and a residual connection behind it."""
    weight = sparse(shape[1], filters, width).T.reshape(filters, shape[1], *[1] * len(shape[2:]))
    bias = values(filters, seed=3)
    rank = len(shape) - 2
    sizes = [-(-size // stride) for size in shape[2:]]

    def body(x: SSAValue, y: SSAValue) -> Any:
        w, b = (ConstantOp.of(np.ascontiguousarray(array)).result for array in (weight, bias))
        none: Any = {"pads_begin": [0] * rank, "pads_end": [0] * rank}
        options: Any = {"strides": [stride] * rank, "dilations": [1] * rank, **none}
        return AddOp(ConvOp(x, w, b, **options).result, y)

    arrays = [values(*shape), values(shape[0], filters, *sizes, seed=4)]
    return [typed(np.float32, *array.shape) for array in arrays], body, arrays


def matmul(shape: Sequence[int], columns: int, width: int, rows: Expr | None = None) -> Case:
    """A product with a bias behind it; of an open number of rows, if that is given."""
    weight, bias = sparse(shape[-1], columns, width), values(columns, seed=3)

    def body(x: SSAValue) -> Any:
        parameters = [ConstantOp.of(array).result for array in (weight, bias)]
        return AddOp(MatmulOp(x, parameters[0]).result, parameters[1])

    dims = [*shape[:-2], shape[-2] if rows is None else rows, shape[-1]]
    return [typed(np.float32, *dims)], body, [values(*shape)]


CASES = {
    "rows end": conv((1, 40, 3, 5), 64, 32),
    "long sums": conv((2, 600, 2, 3), 32, 16),
    "stride": conv((1, 24, 5, 6), 32, 16, stride=2),
    "few filters": conv((1, 20, 4, 4), 24, 8),
    "rows": matmul((7, 40), 96, 32),
    "one row": matmul((1, 500), 64, 64),
    "batches": matmul((2, 3, 40), 40, 8),
    "open": matmul((5, 40), 64, 16, rows=Expr.symbol("m")),
}


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_compiled(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for types, body, arrays in CASES.values():
        add(suite, target, types, body, *arrays, strategy=ASKED)
    add(suite, target, *CASES["rows end"][:2], *CASES["rows end"][2], strategy=ASKED, threads=2)
    suite.check()


def kernels_of(case: Case, **options: Any) -> ModuleOp:
    module = module_of(*case[:2])
    run_to_phase(LowerdeckContext(options=CompileOptions(**options)), module, "kernels")
    return module


def products(module: ModuleOp) -> list[SparseProductOp]:
    return [op for op in module.walk() if isinstance(op, SparseProductOp)]


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_kept(name: str) -> None:
    module = kernels_of(CASES[name], target="x86-64-v3", strategy=ASKED)
    (op,) = products(module)
    panels, width, _ = op.sizes
    blocks = dims_of(op.blocks)[0].value or 0
    assert 0 < blocks * width < panels * width * (dims_of(op.input)[op.axis.data].value or 0) / 2


def test_it_is_done_where_it_pays() -> None:
    def count(width: int, **options: Any) -> int:
        weight = sparse(256, 256, width)

        def body(x: SSAValue) -> Any:
            return MatmulOp(x, ConstantOp.of(weight).result)

        case: Case = [typed(np.float32, 64, 256)], body, []
        return len(products(kernels_of(case, target="x86-64-v3", **options)))

    assert count(32) == 1
    assert count(1) == 0
    assert count(32, disable=("skip-zeros",)) == 0
    assert count(32, disable_strategy=ASKED) == 0


def test_what_meets_zeros_does_not_matter() -> None:
    """An input that is infinite, or NaN, has no effect where only zeros meet it."""
    case = CASES["rows"]
    x = case[2][0].copy()
    module = kernels_of(case, target="x86-64-v3", strategy=ASKED)
    (expected,) = Interpreter().call(find_function(module, "main"), [x])
    x[:, 3] = [np.inf, np.nan, -np.inf, *[np.nan] * 4]
    (found,) = Interpreter().call(find_function(module, "main"), [x])
    meets = sparse(40, 96, 32)[3] != 0
    assert 0 < meets.sum() < len(meets)
    assert not np.isfinite(np.asarray(found)[:, meets]).any()
    np.testing.assert_array_equal(np.asarray(found)[:, ~meets], np.asarray(expected)[:, ~meets])


def test_all_parts_of_a_sum_are_added() -> None:
    module = kernels_of(CASES["long sums"], target="x86-64-v3", strategy=ASKED)
    (op,) = products(module)
    kernel = op.parent_op()
    assert isinstance(kernel, KernelOp)
    assert op.sizes[2] == 3
    at = next(k for k, argument in enumerate(kernel.body.block.args) if argument is op.starts)
    source = kernel.inputs[at].owner
    assert isinstance(source, ConstantOp)
    assert (np.diff(source.array, axis=1) > 0).any(axis=0).all()
    assert source.array[-1, -1] == dims_of(op.blocks)[0].value
