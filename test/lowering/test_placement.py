"""Plans of memory: nothing in use together overlaps, and little is wasted."""

from __future__ import annotations

import random
import time

import pytest
from xdsl.dialects.builtin import f32

from lowerdeck.dialects.buffer.entry_ops import AllocOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.entry.placement import Buffer, largest_sum, place


def buffer(size: int, start: int, end: int) -> Buffer:
    return Buffer(AllocOp(RefType.of(f32, [size // 4])), Expr.const(size), start, end)


def offset_of(placed: Buffer) -> int:
    assert placed.op.offset is not None
    value = placed.op.offset.data[0].value
    assert value is not None
    return value


def overlaps(a: Buffer, b: Buffer) -> bool:
    sizes = a.size.value or 0, b.size.value or 0
    in_time = a.start <= b.end and b.start <= a.end
    return (
        in_time
        and offset_of(a) < offset_of(b) + sizes[1]
        and offset_of(b) < offset_of(a) + sizes[0]
    )


def random_buffers(rng: random.Random, count: int, span: int) -> list[Buffer]:
    """As in a network: most are used soon after they were made."""
    buffers: list[Buffer] = []
    for start in range(count):
        end = start + (rng.randrange(1, 4) if rng.random() < 0.8 else rng.randrange(1, span))
        buffers.append(buffer(64 * rng.randrange(1, 200), start, end))
    return buffers


def test_largest_sum() -> None:
    assert largest_sum([]) == 0
    assert largest_sum([buffer(8, 0, 2), buffer(4, 2, 5), buffer(8, 3, 4)]) == 12
    assert largest_sum([buffer(8, 0, 2), buffer(4, 3, 3), buffer(4, 3, 9), buffer(8, 4, 4)]) == 12
    unknown = Buffer(AllocOp(RefType.of(f32, [Expr.symbol("n")])), Expr.symbol("n"), 0, 1)
    assert largest_sum([unknown]) is None


@pytest.mark.parametrize("seed", range(20))
def test_plans_are_right_and_near_the_bound(seed: int) -> None:
    buffers = random_buffers(random.Random(seed), 120, 30)
    size = place(buffers).value
    bound = largest_sum(buffers)
    assert size is not None
    assert bound is not None
    assert bound <= size <= 1.10 * bound
    assert not any(overlaps(a, b) for k, a in enumerate(buffers) for b in buffers[:k])
    assert all(offset_of(placed) + (placed.size.value or 0) <= size for placed in buffers)


def test_largest_first_is_not_always_best() -> None:
    # Largest first puts the 5 at 0 and the two that meet it above one another, with a gap left.
    buffers = [buffer(64 * n, s, e) for n, s, e in [(4, 0, 1), (3, 1, 2), (5, 2, 3), (3, 3, 4)]]
    buffers.append(buffer(64 * 2, 0, 4))
    assert place(buffers).value == largest_sum(buffers)


def test_time_grows_with_the_number_of_buffers() -> None:
    def seconds(count: int) -> float:
        start = time.perf_counter()
        place(random_buffers(random.Random(1), count, 30))
        return time.perf_counter() - start

    seconds(100)
    assert seconds(4000) < 16 * seconds(1000)
