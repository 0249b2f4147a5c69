"""Matrix products and attention by schedule: the same numbers for every shape and target."""

# Bodies of programs are lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.printer import Printer

import lowerdeck
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp
from lowerdeck.dialects.core.types import dims_of, f32, f64
from lowerdeck.dialects.interpret import run_module
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.blocked_attention import BlockedAttention
from lowerdeck.lowering.strategies.costs import of_busiest
from lowerdeck.lowering.targets import target_named

from ..choosing import Change, unchanged, with_numbers  # noqa: TID251  (these are tests)
from ..forms import EVERY_FORM  # noqa: TID251  (these are tests, not the folder of sources)
from ..programs import VECTOR_FLAGS, Suite, module_of, symbol, typed  # noqa: TID251  (these are tests)
from ..targets import OTHER_TARGETS, SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from ..test_layouts import add, values  # noqa: TID251  (as above)

Shape = tuple[int, ...]

TWO_TARGETS = ("x86-64-v4", "x86-64")

PRODUCTS: list[tuple[Shape, Shape]] = [
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((5, 1), (1, 3)),
    ((1, 9), (9, 150)),
    ((13, 17), (17, 37)),
    ((15, 400), (400, 19)),
    ((2, 3, 5), (5, 16)),
    ((2, 3, 9), (2, 9, 21)),
    ((2, 1, 4, 6), (3, 6, 33)),
    ((9, 1, 8), (8, 40)),
    ((2, 5, 1, 8), (2, 1, 8, 24)),
    ((4, 1024), (1024, 16)),
]


def types_of(*arrays: Any) -> list[Any]:
    """Static types."""
    return [typed(array.dtype, *array.shape) for array in arrays]


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_products(tmp_path: Path, target: str) -> None:
    """With a packed right matrix, and with one that is not known before."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for left, right in PRODUCTS:
        x, w = values(*left), values(*right, seed=1)
        add(suite, target, types_of(x), lambda x, w=w: MatmulOp(x, ConstantOp.of(w).result), x)
        add(suite, target, types_of(x, w), MatmulOp, x, w)
    suite.check()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_few_columns(tmp_path: Path, threads: int) -> None:
    """Of one row, as many columns as one tile has: each thread has some of them, none twice."""
    suite = Suite(tmp_path, flags=VECTOR_FLAGS)
    options: dict[str, Any] = {"threads": threads, "runs_scheduled": False}
    for columns in (64, 100):
        x, w = values(1, 9000), values(9000, columns, seed=1)
        types = types_of(x, w)

        def by_constant(x: Any, w: Any = w) -> MatmulOp:
            return MatmulOp(x, ConstantOp.of(w).result)

        add(suite, "x86-64-v3", types[:1], by_constant, x, **options)
        add(suite, "x86-64-v3", types, MatmulOp, x, w, **options)
    for artifact in suite.artifacts:
        assert "part_number" in artifact.files[f"{artifact.name}.c"]
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_products_of_doubles(tmp_path: Path, target: str) -> None:
    """With what follows, and sums as exact as doubles are."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for left, right in PRODUCTS:
        x, w = values(*left).astype(np.float64) / 3, values(*right, seed=1).astype(np.float64) / 7

        def body(x: Any, w: Any = w) -> Any:
            linear = MatmulOp(x, ConstantOp.of(w).result).result
            return e.AddOp(e.MulOp(linear, scalar(0.5, f64).result).result, scalar(2, f64).result)

        add(suite, target, types_of(x), body, x)
        add(suite, target, types_of(x, w), MatmulOp, x, w)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_epilogue(tmp_path: Path, target: str) -> None:
    """What follows a product is computed from the sums: bias, function, residual."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)

    def body(x: Any, residual: Any) -> Any:
        weight = ConstantOp.of(values(11, 27, seed=1)).result
        bias = ConstantOp.of(values(27, seed=2)).result
        linear = e.AddOp(MatmulOp(x, weight).result, bias).result
        return e.AddOp(residual, e.TanhOp(e.MulOp(linear, scalar(0.5, f32).result).result).result)

    x, residual = values(2, 9, 11), values(2, 9, 27, seed=3)
    add(suite, target, types_of(x, residual), body, x, residual)

    def by_computed(x: Any, w: Any, residual: Any) -> Any:
        return e.AddOp(e.NegOp(residual).result, MatmulOp(x, w).result)

    # The last columns are computed twice: what they are added to is still there.
    w = values(11, 27, seed=4)
    add(suite, target, types_of(x, w, residual), by_computed, x, w, residual)
    suite.check()


def test_long_sums(tmp_path: Path) -> None:
    """Products in parts, with what follows behind the last one."""
    suite = suite_for("x86-64-v4", tmp_path)
    x, w, bias = values(2, 8, 2100), values(2100, 5, seed=1), values(5, seed=2)

    def body(x: Any) -> Any:
        linear = MatmulOp(x, ConstantOp.of(w).result).result
        return e.MaxOp(e.AddOp(linear, ConstantOp.of(bias).result).result, scalar(0, f32).result)

    add(suite, "x86-64-v4", types_of(x), body, x)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_open_sizes(tmp_path: Path, target: str) -> None:
    """Rows, columns and depth that only a run knows."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    m, k, n = symbol("m"), symbol("k"), symbol("n")
    weight = values(6, 21, seed=1)
    for rows in (1, 30):
        x = values(rows, 6)
        types = [typed(np.float32, m, 6)]
        add(suite, target, types, lambda x: MatmulOp(x, ConstantOp.of(weight).result), x)
        y = values(6, 45)
        add(suite, target, [typed(np.float32, m, k), typed(np.float32, k, n)], MatmulOp, x, y)
    suite.check()


def _twice(value: Any) -> Any:
    """Two matrices, the second one negative."""
    rows, columns = dims_of(value)
    first, second = (ReshapeOp(v, [1, rows, columns]) for v in (value, e.NegOp(value).result))
    return ConcatOp([first.result, second.result], 0).result


OPEN_COLUMNS = (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 30, 32, 33, 50)
"""Of a program that does not know how many: none of a vector, ends of short ones and long ones."""


def test_open_columns(tmp_path: Path) -> None:
    """One program for all numbers of rows, columns and terms, of matrices, batches and vectors."""
    m, k, n = symbol("m"), symbol("k"), symbol("n")

    def body(x: Any, w: Any, v: Any) -> list[Any]:
        one, batch = MatmulOp(x, w), MatmulOp(_twice(x), _twice(w))
        return [one, e.NegOp(one.result), batch, MatmulOp(x, v)]

    for target, dtype in (("native", np.float32), ("x86-64-v3", np.float64)):
        types = [typed(dtype, m, k), typed(dtype, k, n), typed(dtype, k, 1)]
        module = module_of(types, body)
        path = tmp_path / f"{target}.mlir"
        with path.open("w", encoding="utf-8") as text:
            Printer(text).print_op(module)
        threads = [lowerdeck.compile(path, target=target, threads=t) for t in (1, 2)]
        for number, columns in enumerate(OPEN_COLUMNS):
            rows, depth = (1, 4, 13, 29)[number % 4], (0, 1, 15, 16, 40)[number % 5]
            sizes = ((rows, depth), (depth, columns), (depth, 1))
            inputs = [values(*size, seed=s).astype(dtype) for s, size in enumerate(sizes)]
            meant = run_module(module, dict(zip("012", inputs, strict=True))).values()
            for expected, *found in zip(meant, *(each(*inputs) for each in threads), strict=True):
                for own in found:
                    np.testing.assert_allclose(own, np.asarray(expected), rtol=1e-4, atol=1e-5)


def in_chunks(schedule: Schedule) -> Schedule:
    """Scores of eight keys at a time."""
    is_attention = schedule.strategy == BlockedAttention.name
    return with_numbers(schedule, chunk=8) if is_attention else schedule


def attention(
    suite: Suite,
    target: str,
    sizes: Sequence[int],
    mask: Shape | None,
    *,
    known: bool,
    change: Change = unchanged,
) -> None:
    """One more program: batch, queries, keys, heads, depth and columns."""
    batch, queries, keys, heads, depth, columns = sizes
    q = values(batch, queries, heads, depth)
    k = values(batch, keys, heads, depth, seed=1)
    v = values(batch, keys, heads, columns, seed=2)
    if mask is None:
        add(suite, target, types_of(q, k, v), lambda *x: AttentionOp(*x, scale=0.3), q, k, v)
        return
    hidden = values(*mask, seed=3)
    hidden[hidden > 1] = -np.inf
    hidden[..., 0] = 0
    if known:
        add(
            suite,
            target,
            types_of(q, k, v),
            lambda q, k, v: AttentionOp(q, k, v, ConstantOp.of(hidden).result, scale=0.3),
            q,
            k,
            v,
            change=change,
        )
    else:
        inputs = (q, k, v, hidden)
        types = types_of(*inputs)
        add(suite, target, types, lambda *x: AttentionOp(*x, scale=0.3), *inputs, change=change)


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_attention(tmp_path: Path, target: str) -> None:
    """Whole blocks of queries, parts of one, and none; columns that are no whole vectors."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    attention(suite, target, (1, 1, 1, 1, 1, 1), None, known=False)
    attention(suite, target, (2, 3, 5, 2, 7, 3), None, known=False)
    attention(suite, target, (1, 37, 21, 2, 8, 20), None, known=False)
    attention(suite, target, (1, 16, 400, 1, 2, 9), None, known=False)
    attention(suite, target, (1, 70, 9, 3, 4, 16), None, known=False)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_few_queries(tmp_path: Path, target: str) -> None:
    """Each alone: keys and components that fill vectors, leave some, or are fewer than lanes."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for keys, depth in ((37, 17), (16, 64), (400, 16), (3, 35)):
        for mask, known in product((None, (keys,), (2, 1, keys)), (False, True)):
            sizes = (2, 1, keys, 2, depth, 5)
            attention(suite, target, sizes, mask, known=known)
            attention(suite, target, sizes, mask, known=known, change=in_chunks)
    suite.check()


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_one_query_of_open_keys(tmp_path: Path, target: str) -> None:
    """As with a cache of keys: none of them, few, and more than are kept at a time."""
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    s = symbol("s")
    for keys in (0, 1, 15, 16, 140):
        q, k, v = values(2, 1, 3, 20), values(2, keys, 3, 20), values(2, keys, 3, 6, seed=2)
        kept = values(keys, seed=3) > -0.5
        kept[:1] = True
        types = [typed(np.float32, 2, 1, 3, 20), typed(np.float32, 2, s, 3, 20)]
        types += [typed(np.float32, 2, s, 3, 6), typed(np.bool_, s)]

        def body(q: Any, k: Any, v: Any, kept: Any) -> Any:
            return [
                AttentionOp(q, k, v, keep=kept, fill=fill, scale=0.2, zero_nan=fill < -1e9)
                for fill in (-1e9, -np.inf)
            ]

        add(suite, target, types, body, q, k, v, kept)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_attention_of_open_sizes(tmp_path: Path, target: str) -> None:
    """Queries and keys that only a run counts: few, whole blocks and chunks, and one more."""
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    n, t, s = symbol("n"), symbol("t"), symbol("s")
    sizes = ((1, 1, 1), (2, 15, 7), (1, 16, 16), (1, 17, 17), (1, 0, 3))
    for (batch, queries, keys), masked in product(sizes, (False, True)):
        q, k = values(batch, queries, 2, 4), values(batch, keys, 2, 4, seed=1)
        v = values(batch, keys, 2, 5, seed=2)
        inputs = [q, k, v]
        types = [typed(np.float32, n, t, 2, 4), typed(np.float32, n, s, 2, 4)]
        types.append(typed(np.float32, n, s, 2, 5))
        if masked:
            hidden = values(queries, keys, seed=3)
            hidden[:, : keys // 2] = -np.inf
            inputs.append(hidden)
            types.append(typed(np.float32, t, s))
        add(
            suite,
            target,
            types,
            lambda *x: e.NegOp(AttentionOp(*x, scale=0.3).result),
            *inputs,
            change=in_chunks,
        )
    suite.check()


def test_workspace_of_few_keys(tmp_path: Path) -> None:
    """Of the keys that are kept at a time, there is room for as many as there are."""
    target = "x86-64-v3"
    suite = suite_for(target, tmp_path)
    t, s = symbol("t"), symbol("s")
    for keys in (0, 1, 20, 127, 128, 150):
        q, k, v = (values(1, count, 2, 8, seed=count) for count in (19, keys, keys))
        hidden = values(19, keys, seed=3)
        hidden[:, 1::3] = -np.inf
        types = [typed(np.float32, 1, size, 2, 8) for size in (t, s, s)]
        types.append(typed(np.float32, t, s))
        add(
            suite,
            target,
            types,
            lambda *x: e.NegOp(AttentionOp(*x, scale=0.3).result),
            *(q, k, v, hidden),
        )
    suite.check()
    entry = find_entry(suite.programs[0].module)
    assert entry is not None
    assert entry.workspace is not None
    workspace = entry.workspace.data[0]
    room = {size: workspace.evaluate({"t": 19, "s": size}) for size in (10, 64, 128, 1000)}
    assert room[10] * 4 < room[64] < room[128] == room[1000]


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_attention_with_nothing_so_far(tmp_path: Path, target: str) -> None:
    """
    Chunks of keys whose scores are all hidden, infinite or no numbers, before others and alone, for
    queries in blocks and alone.
    """
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    t, s = symbol("t"), symbol("s")
    types = [typed(np.float32, 1, t, 2, 16), typed(np.float32, 1, s, 2, 16)]
    types += [typed(np.float32, 1, s, 2, 5), typed(np.float32, t, s)]
    sizes = ((1, 21), (3, 24), (6, 21), (20, 21), (2, 0))
    for (queries, keys), zero_nan in product(sizes, (False, True)):
        q, k = values(1, queries, 2, 16), values(1, keys, 2, 16, seed=1)
        v, mask = values(1, keys, 2, 5, seed=2), values(queries, keys, seed=3)
        mask[:, :12] = -np.inf
        mask[1::4] = -np.inf
        mask[2::4, 13:14] = np.inf
        mask[3::4, 14:15] = np.nan
        add(
            suite,
            target,
            types,
            lambda *x, zero_nan=zero_nan: e.NegOp(
                AttentionOp(*x, scale=0.3, zero_nan=zero_nan).result
            ),
            *(q, k, v, mask),
            change=in_chunks,
        )
    suite.check()


@pytest.mark.parametrize("known", [False, True])
def test_attention_in_chunks(tmp_path: Path, *, known: bool) -> None:
    """Of known sizes, where the scores of all keys would be too many."""
    suite = suite_for("x86-64-v4", tmp_path, share=2)
    for keys in (24, 27):
        for mask in ((17, keys), (keys,)):
            sizes = (1, 17, keys, 1, 4, 5)
            attention(suite, "x86-64-v4", sizes, mask, known=known, change=in_chunks)
    suite.check()


@pytest.mark.parametrize("target", TWO_TARGETS)
@pytest.mark.parametrize("known", [False, True])
def test_masks(tmp_path: Path, target: str, *, known: bool) -> None:
    """One for all queries, one for all heads, and one for each pair."""
    suite = suite_in_turn(target, tmp_path, TWO_TARGETS)
    sizes = (2, 21, 11, 2, 4, 5)
    for mask in ((11,), (2, 1, 1, 11), (21, 11), (2, 1, 11), (2, 21, 11), (2, 2, 21, 11)):
        attention(suite, target, sizes, mask, known=known)
    suite.check()


@pytest.mark.parametrize(
    ("target", "known", "masked"),
    [
        (target, known, masked)
        for target, known, masked in product(TWO_TARGETS, (False, True), (False, True))
        if EVERY_FORM or (known, masked) == (target == TWO_TARGETS[1], target == TWO_TARGETS[0])
    ],
)
def test_what_is_kept(tmp_path: Path, target: str, *, known: bool, masked: bool) -> None:
    """The same for all queries, for all heads, and for each pair; of all keys and in chunks."""
    suite = suite_in_turn(target, tmp_path, TWO_TARGETS)
    shapes = ((11,), (2, 1, 1, 11), (21, 11), (2, 2, 21, 11))
    for number, shape in enumerate(shapes, known + masked):
        q, k = values(2, 21, 2, 4), values(2, 11, 2, 4, seed=1)
        v, mask = values(2, 11, 2, 5, seed=2), values(21, 11, seed=4)
        k[:, 3] = np.inf
        kept = values(*shape, seed=3) > -0.7
        kept[..., 3] = False
        if len(shape) > 1:
            kept[..., 0, :] = False

        def body(q: Any, k: Any, v: Any, *parts: Any, kept: Any = kept) -> Any:
            keep = ConstantOp.of(kept).result if known else parts[-1]
            added = parts[0] if masked else None
            with_nan, without = (
                AttentionOp(q, k, v, added, keep=keep, fill=fill, scale=0.3, zero_nan=zero)
                for fill, zero in ((-1e9, False), (-np.inf, True))
            )
            if added is None:
                hidden = AttentionOp(q, k, v, keep=keep, fill=0.5, zero_hidden=True)
                return with_nan, without, hidden
            scaled = AttentionOp(q, k, v, factor=added, keep=keep, fill=-1e9)
            return with_nan, without, scaled

        inputs = [q, k, v, *([mask] if masked else []), *([] if known else [kept])]
        change = (unchanged, in_chunks)[number % 2]
        add(suite, target, types_of(*inputs), body, *inputs, change=change)
    suite.check()


def test_slices(tmp_path: Path) -> None:
    """Query, key and value as parts of one tensor, read where they lie."""
    suite = suite_for("x86-64-v4", tmp_path)

    def body(x: Any) -> Any:
        parts = [SliceOp(x, [0, 0, 2 * part, 0], [1, 19, 2, 16]).result for part in range(3)]
        return AttentionOp(*parts, scale=0.25)

    x = values(1, 19, 6, 16)
    add(suite, "x86-64-v4", types_of(x), body, x)
    suite.check()


def test_nothing_to_see(tmp_path: Path) -> None:
    """A query that sees nothing gets no number, and no other query does."""
    suite = suite_for("x86-64-v4", tmp_path)

    def body(q: Any, k: Any, v: Any) -> Any:
        mask = np.zeros((20, 6), np.float32)
        mask[7] = -np.inf
        return AttentionOp(q, k, v, ConstantOp.of(mask).result)

    q, k = values(1, 20, 1, 4), values(1, 6, 1, 4, seed=1)
    add(suite, "x86-64-v4", types_of(q, k, k), body, q, k, k)
    suite.check()


@pytest.mark.parametrize(
    ("parts", "busiest"), [(12, 6), (11, 6), (11.25, 6), (12.25, 6.25), (0.5, 0.5), (1.5, 1)]
)
def test_busiest_thread(parts: float, busiest: float) -> None:
    """Two threads share whole tiles; who has one less takes what they leave of a row."""
    cycles, target = 1e6, target_named("x86-64-v4")
    assert of_busiest(cycles, parts, Setting(target)) == cycles
    shared = of_busiest(cycles, parts, Setting(target, threads=2))
    assert shared == pytest.approx(cycles * busiest * 2 / parts)
