"""Attention, in all three ways: masks, factors, what is kept, and queries without any key."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import IotaOp, scalar
from lowerdeck.dialects.core.types import f32

from .programs import Suite, symbol, typed  # noqa: TID251  (these are tests, not sources)
from .test_kernels import values  # noqa: TID251  (as above)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention(suite: Suite, dtype: Any) -> None:
    """With all kinds of masks; T, S, H, D and E differ, so that no two can be confused."""
    q, k, v = values((2, 4, 3, 5), dtype), values((2, 6, 3, 5), dtype), values((2, 6, 3, 2), dtype)
    hidden = np.where(values((4, 6)) > 0.5, -np.inf, 0).astype(dtype)
    hidden[:, 0] = 0
    suite.on(
        lambda q, k, v, a, b, c: [
            AttentionOp(q, k, v, scale=0.5),
            AttentionOp(q, k, v, a, scale=-2.0),
            AttentionOp(q, k, v, b),
            AttentionOp(q, k, v, c),
            e.NegOp(AttentionOp(q, k, v, a).result),
        ],
        q,
        k,
        v,
        values((3, 1, 6), dtype, 1),
        values((2, 1, 4, 1), dtype, 2),
        hidden,
        ulps=64,
        scale=1,
    )
    suite.on(AttentionOp, *(values((3, 2, 4), dtype),) * 3, ulps=64, scale=1)
    suite.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_to_what_is_kept(suite: Suite, dtype: Any) -> None:
    """Scores that are not kept may be infinite or no number; a query may keep none."""
    q, k, v = values((2, 4, 3, 5), dtype), values((2, 6, 3, 5), dtype), values((2, 6, 3, 2), dtype)
    k[:, 2], k[:, 3] = np.nan, np.inf
    kept = values((4, 6)) > -0.5
    kept[:, 2:4], kept[1] = False, False
    suite.on(
        lambda q, k, v, a, b, c: [
            AttentionOp(q, k, v, keep=b, fill=-1e9, scale=0.5),
            AttentionOp(q, k, v, a, keep=b, fill=-3e38, scale=-2.0),
            AttentionOp(q, k, v, keep=c, fill=0.25),
            AttentionOp(q, k, v, factor=a, keep=b, fill=-1e9),
            AttentionOp(q, k, v, keep=b, fill=-3e38, zero_hidden=True),
            AttentionOp(q, k, v, a, keep=c, fill=0.25, zero_hidden=True),
        ],
        q,
        k,
        v,
        values((3, 1, 6), dtype, 1),
        kept,
        kept[0],
        ulps=64,
        scale=1,
    )
    suite.check()


@pytest.mark.parametrize("count", [5, 150])
def test_causal_attention(suite: Suite, count: int) -> None:
    """Masks of an open size that the kernels compute: of two attentions, as truth and as sums."""
    n = symbol("n")

    def causal(x: SSAValue) -> list[Operation]:
        keys = IotaOp([n], 0).result
        mask = e.CompareOp("le", keys, t.ReshapeOp(keys, [n, 1]).result).result
        lowest = e.SelectOp(mask, scalar(0.0, f32).result, scalar(-1e9, f32).result).result
        first = AttentionOp(x, x, x, keep=mask, fill=-1e9, scale=0.5)
        return [first, AttentionOp(first.result, x, x, t.ReshapeOp(lowest, [1, n, n]).result)]

    suite.add([typed(np.float32, n, 2, 3)], causal, values((count, 2, 3)), ulps=64, scale=1)
    suite.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_with_factors(suite: Suite, dtype: Any) -> None:
    """Before masks, of every shape; a factor of zero leaves infinite scores no number."""
    q, k, v = values((2, 4, 3, 5), dtype), values((2, 6, 3, 5), dtype), values((2, 6, 3, 2), dtype)
    causal = np.tril(np.ones((4, 6), dtype), 2)
    suite.on(
        lambda q, k, v, a, b, c: [
            AttentionOp(q, k, v, b, factor=a, scale=0.5),
            AttentionOp(q, k, v, factor=c),
            AttentionOp(q, k, v, c, factor=b, scale=2.0, zero_nan=True),
        ],
        q,
        k,
        v,
        causal,
        (causal - 1) * dtype(1e4),
        values((2, 3, 1, 6), dtype, 2),
        ulps=64,
        scale=1,
    )
    q[0, 1, 2, 0] = np.inf
    suite.on(lambda q, k, v, a: AttentionOp(q, k, v, factor=a), q, k, v, causal, ulps=64, scale=1)
    suite.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_with_zero_for_nan(suite: Suite, dtype: Any) -> None:
    """
    Queries without any key, with an infinite score or one that is no number; behind each of them
    one with weights. Values that are no number stay so.
    """
    q, k, v = values((2, 4, 3, 5), dtype), values((2, 6, 3, 5), dtype), values((2, 6, 3, 2), dtype)
    mask = values((4, 6), dtype, 1)
    mask[0], mask[2, 1] = -np.inf, np.nan
    other = mask.copy()
    other[2, 1], other[3, 0] = np.inf, -np.inf
    v[1, 3, 2, 1] = np.nan
    suite.on(
        lambda q, k, v, a, b, c: [
            AttentionOp(q, k, v, a, scale=0.5, zero_nan=True),
            AttentionOp(q, k, v, b, zero_nan=True),
            AttentionOp(q, k, v, keep=c, fill=-np.inf, zero_nan=True),
            AttentionOp(q, k, v, a, keep=c, fill=-1e9, zero_nan=True),
        ],
        q,
        k,
        v,
        mask,
        other,
        np.isfinite(mask),
        ulps=64,
        scale=1,
    )
    suite.check()


def test_attention_to_parts(suite: Suite) -> None:
    """Query, key and value are parts of one tensor, which attention reads where they lie."""

    def body(x: Any) -> Any:
        parts = t.SplitOp(x, 2, [3, 3, 3]).parts
        return e.NegOp(AttentionOp(*parts, scale=0.5).result)

    suite.on(body, values((2, 4, 9, 5)), ulps=64, scale=1)
    suite.check()


def test_attention_of_unknown_sizes(suite: Suite) -> None:
    """Of no keys the mean is zero."""
    n, m, h = symbol("n"), symbol("m"), symbol("h")
    for queries, keys in ((3, 5), (2, 0), (0, 3)):
        suite.add(
            [
                typed(np.float32, n, h, 4),
                typed(np.float32, m, h, 4),
                typed(np.float32, m, h, 3),
                typed(np.float32, n, m),
            ],
            lambda q, k, v, mask: AttentionOp(q, k, v, mask, scale=0.5),
            values((queries, 2, 4)),
            values((keys, 2, 4)),
            values((keys, 2, 3)),
            values((queries, keys)),
            ulps=64,
            scale=1,
        )
    suite.add(
        [typed(np.float32, n, 2, 4), typed(np.float32, m, 2, 4)],
        lambda q, v: AttentionOp(q, q, v),
        values((3, 2, 4)),
        values((2, 2, 4)),
        may_fail=True,
    )
    suite.check()
