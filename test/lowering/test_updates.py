"""Loops that scatter into a carried value: in place, unless the old elements are still read."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.types import dims_of, i64, tensor

from .programs import Suite  # noqa: TID251  (these are tests, not the folder of sources)

Values = Sequence[SSAValue]


def loop(trips: SSAValue, inits: Values, body: Callable[..., Values]) -> Values:
    """A loop; `body` gives what it yields for the iteration number and the carried values."""
    block = Block(arg_types=[tensor(i64, []), *(value.type for value in inits)])
    with ImplicitBuilder(block) as args:
        YieldOp(list(body(*args)))
    return list(LoopOp(trips, None, inits, Region(block)).results)


def write(v: SSAValue, at: SSAValue, row: SSAValue, reduction: str = "none") -> SSAValue:
    """`v` with another row at a scalar index."""
    place = t.ReshapeOp(at, [1, 1]).result
    update = t.ReshapeOp(row, [1, *dims_of(row)]).result
    return t.ScatterNdOp(v, place, update, reduction).result


def read(v: SSAValue, at: SSAValue) -> SSAValue:
    return t.GatherOp(v, at, 0).result


def before(i: SSAValue) -> SSAValue:
    """The index before, or the last one."""
    return e.ModOp(e.AddOp(i, scalar(3, i64).result).result, scalar(4, i64).result).result


def reads_first(n: Any, x: Any) -> Any:
    return loop(n, [x], lambda i, v: [write(v, i, e.AddOp(read(v, before(i)), read(v, i)).result)])


def reads_between(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Values:
        once = write(v, i, e.NegOp(read(v, i)).result)
        return [write(once, before(i), read(once, i), "add")]

    return loop(n, [x], body)


def reads_after(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any, sum_: Any) -> Values:
        following = write(v, i, e.NegOp(read(v, i)).result)
        return [following, e.AddOp(sum_, read(v, i)).result]

    return loop(n, [x, read(x, n)], body)


def keeps_the_old(n: Any, x: Any) -> Any:
    return loop(n, [x, x], lambda i, v, old: [write(v, i, read(old, before(i))), v])


def swaps(n: Any, x: Any) -> Any:
    y = e.NegOp(x).result
    return loop(n, [x, y], lambda i, v, w: [w, write(v, i, read(w, before(i)))])


def writes_what_it_reshapes(n: Any, x: Any) -> Any:
    """The old elements in the order of the new ones."""

    def body(i: Any, v: Any) -> Values:
        flat = t.ReshapeOp(v, [8]).result
        rows = t.ReshapeOp(flat, [4, 2]).result
        order = t.ReshapeOp(e.ModOp(before(i), scalar(1, i64).result).result, [1]).result
        return [t.ScatterNdOp(v, t.BroadcastOp(order, [4, 1]).result, rows, "add").result]

    return loop(n, [x], body)


def nests(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Values:
        inner = loop(n, [v], lambda j, w: [write(w, j, read(w, before(i)))])
        return [write(inner[0], i, e.AddOp(read(v, i), read(inner[0], i)).result)]

    return loop(n, [x], body)


def reads_in_a_branch(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Values:
        is_even = e.CompareOp("eq", e.ModOp(i, scalar(2, i64).result).result, scalar(0, i64).result)
        branches = [Region(Block()), Region(Block())]
        with ImplicitBuilder(branches[0].block):
            YieldOp([read(t.ReshapeOp(v, [4, 2]).result, before(i))])
        with ImplicitBuilder(branches[1].block):
            YieldOp([e.NegOp(read(v, i)).result])
        row = IfOp(is_even.result, branches[0], branches[1]).results[0]
        return [write(v, i, row)]

    return loop(n, [x], body)


def gives_it_twice(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any, w: Any) -> Values:
        following = write(v, i, read(w, before(i)))
        return [following, following]

    return loop(n, [x, e.NegOp(x).result], body)


PROGRAMS = [
    reads_first,
    reads_between,
    reads_after,
    keeps_the_old,
    swaps,
    writes_what_it_reshapes,
    nests,
    reads_in_a_branch,
    gives_it_twice,
]


@pytest.mark.parametrize("threads", [1, 2])
def test_updates(tmp_path: Path, threads: int) -> None:
    suite = Suite(tmp_path)
    x = np.random.default_rng(1).standard_normal((4, 2)).astype(np.float32)
    for body in PROGRAMS:
        for count in (0, 1, 3):
            suite.on(body, np.array(count, np.int64), x, threads=threads)
    suite.check()
