"""Slices and concatenations that are views give what they would give as copies."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import dims_of

from .forms import some  # noqa: TID251  (these are tests, not the folder of sources)
from .programs import Suite, symbol, typed  # noqa: TID251  (these are tests, not the folder of sources)


def grow(rng: Random, values: list[SSAValue], count: int) -> None:
    """Ops that cut and join along the first axis that is not one, and kernels between them."""
    for _ in range(count):
        recent = values[-6:]
        value = rng.choice(recent)
        rows = dims_of(value)[1].value or 0
        match rng.randrange(4):
            case 0:
                parts = [rng.choice(recent) for _ in range(rng.randrange(2, 4))]
                if sum(dims_of(part)[1].value or 0 for part in parts) <= 12:
                    values.append(t.ConcatOp(parts, 1).result)
            case 1 if rows > 1:
                size = rng.randrange(1, rows)
                start = rng.randrange(rows - size + 1)
                values.append(t.SliceOp(value, [0, start, 0], [1, size, 3]).result)
            case _:
                values.append(SoftmaxOp(value, rng.choice([1, 2])).result)


@pytest.mark.parametrize("threads", [1, 2])
def test_random_chains(tmp_path: Path, threads: int) -> None:
    suite = Suite(tmp_path)
    for seed in some(range(40)):
        rng = Random(seed)

        def body(*inputs: SSAValue, rng: Random = rng) -> list[SSAValue]:
            values = list(inputs)
            grow(rng, values, 16)
            return [values[-1], *rng.sample(values[2:], 2)]

        numbers = np.random.default_rng(seed)
        arrays = [numbers.standard_normal((1, rows, 3)).astype(np.float32) for rows in (2, 4)]
        suite.on(body, *arrays, ulps=16, threads=threads)
    suite.check()
    views = concats = 0
    for program, _, _ in suite.lowered:
        entry = find_entry(program.module)
        assert entry is not None
        views += sum(isinstance(op, entry_ops.ViewOp) for op in entry.walk())
        calls = [
            op.callee.root_reference.data for op in entry.walk() if isinstance(op, entry_ops.CallOp)
        ]
        concats += sum("concat" in name for name in calls)
    assert views > 50
    assert concats < views


def halves(x: SSAValue) -> list[SSAValue]:
    """What a half and two quarters of a height are joined to, and whether it is four of them."""
    h = symbol("h")
    joined: list[SSAValue] = []
    for one, other in ((h // 2, h // 4 * 2), (h, h // 4 * 4)):
        parts = [
            SoftmaxOp(t.SliceOp(x, [0, 0, 0, 0], [1, 2, size, 3]).result, 1).result
            for size in (one, other)
        ]
        joined.append(SoftmaxOp(t.ConcatOp(parts, 1).result, 1).result)
    return joined


def test_multiples(tmp_path: Path) -> None:
    """Sizes that are equal for the heights that a run accepts; others are refused."""
    suite = Suite(tmp_path)
    numbers = np.random.default_rng(0)
    for height in (8, 4, 0, 12, 5, 6):
        x = numbers.standard_normal((1, 2, height, 3)).astype(np.float32)
        types = [typed(x.dtype, 1, 2, symbol("h"), 3)]
        suite.add(types, halves, x, ulps=16, may_fail=height % 4 > 0)
    suite.check()
    assert [program.is_refused for program in suite.programs] == [False] * 4 + [True] * 2
    entry = find_entry(suite.programs[0].module)
    assert entry is not None
    calls = [op.callee.string_value() for op in entry.walk() if isinstance(op, entry_ops.CallOp)]
    assert calls
    assert not any("concat" in name for name in calls)
