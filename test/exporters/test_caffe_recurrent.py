"""An LSTM of other frameworks, which is unrolled, as a layer of Caffe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SliceOp

from .caffe_programs import check, constant, floats, net_of, number

STEPS, BATCH, WIDTH, SIZE = 4, 2, 3, 5


def lstm(
    x: SSAValue,
    gates: str = "iofg",
    *,
    states: tuple[SSAValue | None, SSAValue | None] = (None, None),
    forget: float = 0.0,
    backward: bool = False,
    matrices: int = 1,
) -> tuple[list[SSAValue], SSAValue]:
    """The hidden states after each step, and the last cell."""
    width = 4 * SIZE
    weight, bias = constant(floats(WIDTH, width)), constant(floats(width))
    recurrent = [constant(floats(SIZE, width)) for _ in range(matrices)]
    rows = ReshapeOp(x, [STEPS * BATCH, WIDTH]).result
    inputs = e.AddOp(MatmulOp(rows, weight).result, bias).result
    inputs = ReshapeOp(inputs, [STEPS, BATCH, width]).result
    h, c = states
    found: list[SSAValue] = []
    for step in range(STEPS)[:: -1 if backward else 1]:
        part = SliceOp(inputs, [step, 0, 0], [1, BATCH, width], [1, 1, 1]).result
        total = ReshapeOp(part, [BATCH, width]).result
        if h is not None:
            product = MatmulOp(h, recurrent[step % matrices]).result
            total = e.AddOp(total, product).result
        parts = {
            name: SliceOp(total, [0, SIZE * k], [BATCH, SIZE], [1, 1]).result
            for k, name in enumerate(gates)
        }
        i, o = (e.SigmoidOp(parts[name]).result for name in "io")
        f = e.SigmoidOp(e.AddOp(parts["f"], number(forget)).result).result
        new = e.MulOp(i, e.TanhOp(parts["g"]).result).result
        c = new if c is None else e.AddOp(e.MulOp(f, c).result, new).result
        h = e.MulOp(o, e.TanhOp(c).result).result
        found.append(h)
    assert c is not None
    return found, c


def joined(states: list[SSAValue]) -> SSAValue:
    rows = [ReshapeOp(each, [1, BATCH, SIZE]).result for each in states]
    return ConcatOp(rows, 0).result


X = {"x": floats(STEPS, BATCH, WIDTH)}


@pytest.mark.parametrize(("gates", "forget"), [("iofg", 0.0), ("igfo", 1.0), ("gofi", 1.0)])
def test_order_of_gates(tmp_path: Path, gates: str, forget: float) -> None:
    """Caffe's is i, f, o, g; `cont` is 0 at the first step only."""
    types = check(tmp_path, X, lambda x: joined(lstm(x, gates, forget=forget)[0]))
    assert types == ["DummyData", "DummyData", "Concat", "LSTM"]


def test_last_state_and_all(tmp_path: Path) -> None:
    """One layer has all states."""

    def program(x: SSAValue) -> list[SSAValue]:
        states = lstm(x)[0]
        return [joined(states), states[-1], e.NegOp(states[1]).result]

    types = check(tmp_path, X, program)
    assert types.count("LSTM") == 1
    assert "Sigmoid" not in types


def test_from_the_last_step_on(tmp_path: Path) -> None:
    types = check(tmp_path, X, lambda x: joined(lstm(x, backward=True)[0][::-1]))
    assert types == [
        "Slice",
        "Concat",
        "DummyData",
        "DummyData",
        "Concat",
        "LSTM",
        "Slice",
        "Concat",
    ]


def test_states_of_zero(tmp_path: Path) -> None:
    """They need no bottoms."""

    def program(x: SSAValue) -> SSAValue:
        zeros = constant(np.zeros((BATCH, SIZE), np.float32))
        return joined(lstm(x, states=(zeros, zeros))[0])

    assert check(tmp_path, X, program) == ["DummyData", "DummyData", "Concat", "LSTM"]


def test_states_before_and_behind(tmp_path: Path) -> None:
    """They are bottoms and tops of the layer."""

    def program(x: SSAValue, h: SSAValue) -> list[SSAValue]:
        found, cell = lstm(x, states=(h, constant(floats(BATCH, SIZE))))
        return [joined(found), cell, e.NegOp(found[-1]).result]

    types = check(tmp_path, {**X, "h": floats(BATCH, SIZE)}, program)
    assert types.count("LSTM") == 1
    assert "Sigmoid" not in types
    layers = net_of(tmp_path / "net.prototxt").layer
    (layer,) = (layer for layer in layers if layer.type == "LSTM")
    assert layer.recurrent_param.expose_hidden
    assert (len(layer.bottom), len(layer.top)) == (4, 3)


def test_nearest_misses(tmp_path: Path) -> None:
    """Other weights at some steps, no state that a layer gives, and parts of two layers."""
    types = check(tmp_path, X, lambda x: joined(lstm(x, matrices=2)[0]))
    assert "LSTM" not in types
    types = check(tmp_path, X, lambda x: [lstm(x)[1]])
    assert "LSTM" not in types
    types = check(tmp_path, X, lambda x: joined([*lstm(x)[0][:2], *lstm(x)[0][2:]]))
    assert types.count("LSTM") == 1
