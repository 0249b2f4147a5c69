"""Open sizes of inputs of which every run accepts one value are told when the model is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.dims import ExprLike, maximum, minimum
from lowerdeck.dialects.interpret import find_function
from lowerdeck.lowering import compile_to_c
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Body,
    module_of,
    symbol,
    typed,
)

K, M, N = map(symbol, "kmn")


def said_of(body: Body, **dims: tuple[ExprLike, ...]) -> list[str]:
    """The beginnings of what is said of inputs with these names and dimensions."""
    module = module_of([typed(np.float32, *each) for each in dims.values()], body)
    find_function(module, "main").properties["arg_attrs"] = named(list(dims))
    said: list[str] = []
    context = LowerdeckContext(options=CompileOptions(target="c99", warn=said.append))
    compile_to_c(context, module, "m")
    return [text.partition(", or a run")[0] for text in said]


def table() -> Any:
    return ConstantOp.of(np.ones((10, 3), np.float32)).result


def test_sizes_that_meet_constants() -> None:
    def body(x: Any, y: Any) -> Any:
        return [e.AddOp(x, table()), t.ConcatOp([y, table()], 0)]

    assert said_of(body, x=(N, 3), y=(K, M)) == [
        "input 'y': dimension 1 ('m') can only be 3",
        "input 'x': dimension 0 ('n') can only be 10 or 1",
    ]


def test_sizes_that_meet_others_or_nothing() -> None:
    """Equal to another input, or computed from it, a size stays open."""

    def body(x: Any, y: Any, z: Any) -> Any:
        return [e.AddOp(x, y), e.NegOp(z)]

    assert said_of(body, x=(N, 3), y=(K, 3), z=(M, N + 1)) == []


def test_what_else_sizes_must_be() -> None:
    def body(x: Any, y: Any) -> Any:
        whole = t.SliceOp(e.NegOp(x).result, [0], [N // 4 * 4]).result
        few = t.SliceOp(e.NegOp(y).result, [0], [M - 3]).result
        return [t.ReshapeOp(whole, [N]).result, t.SliceOp(y, [2], [M - 5]).result, few]

    assert said_of(body, x=(N,), y=(M,)) == [
        "input 'x': dimension 0 ('n') must be a multiple of 4",
        "input 'y': dimension 0 ('m') must be at least 5",
    ]


def test_all_sizes_but_one() -> None:
    """As a Squeeze without axes takes a dimension of open size."""

    def body(x: Any) -> Any:
        return t.SliceOp(e.NegOp(x).result, [maximum(minimum(N, 1) * 2 - N, 0)], [N])

    assert said_of(body, x=(N,)) == ["input 'x': dimension 0 ('n') must not be 1"]


def test_one_is_one() -> None:
    """A row of one is repeated, or taken as it is."""

    def repeated(x: Any) -> Any:
        return t.BroadcastOp(x, [10, 3])

    def flat(x: Any) -> Any:
        return t.ReshapeOp(x, [3])

    assert said_of(repeated, x=(N, 3)) == ["input 'x': dimension 0 ('n') can only be 10 or 1"]
    assert said_of(flat, x=(N, 3)) == ["input 'x': dimension 0 ('n') can only be 1"]
