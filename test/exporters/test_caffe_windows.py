"""Pools of volumes, padding with elements of the blob itself, and the logarithm of a softmax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core import tensor
from lowerdeck.exporters.errors import ExportError

from .caffe_programs import (
    check,
    constant,
    floats,
    net_of,
)

INF, NAN = np.inf, np.nan
LOWEST = np.finfo(np.float32).min


# Pools


@pytest.mark.parametrize("kind", ["max", "average", "sum"])
@pytest.mark.parametrize("count_pads", [False, True])
@pytest.mark.parametrize("pads", [((0, 0, 0), (0, 0, 0)), ((1, 0, 1), (0, 1, 1))])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 2), (1, 2, 3)])
def test_windows_of_volumes(
    tmp_path: Path,
    kind: str,
    count_pads: bool,
    pads: tuple[tuple[int, ...], tuple[int, ...]],
    strides: tuple[int, ...],
) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            kind,
            x,
            kernel=[2, 3, 2],
            strides=strides,
            dilations=[1, 1, 1],
            pads_begin=pads[0],
            pads_end=pads[1],
            count_pads=count_pads and kind == "average",
        )

    check(tmp_path, {"x": floats(2, 3, 4, 5, 6)}, program)


@pytest.mark.parametrize(
    ("kernel", "expected"), [((1, 2, 2), 1), ((3, 1, 1), 1), ((1, 1, 1), 0), ((2, 1, 2), 2)]
)
def test_dimensions_that_are_left_alone(
    tmp_path: Path, kernel: tuple[int, ...], expected: int
) -> None:
    def program(x: SSAValue) -> Any:
        none = [0, 0, 0]
        ones = [1, 1, 1]
        return reductions.PoolOp(
            "max", x, kernel=kernel, strides=ones, dilations=ones, pads_begin=none, pads_end=none
        )

    types = check(tmp_path, {"x": floats(1, 2, 4, 5, 6)}, program)
    assert types.count("Pooling") == expected


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("rank", [1, 4])
def test_windows_of_any_number_of_dimensions(tmp_path: Path, kind: str, rank: int) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            kind,
            x,
            kernel=[2] * rank,
            strides=[1, 2, 1, 2][:rank],
            dilations=[1] * rank,
            pads_begin=[0] * rank,
            pads_end=[1] * rank,
        )

    check(tmp_path, {"x": floats(1, 2, *[3, 4, 5, 3][:rank])}, program)


def test_volumes_that_hang_over(tmp_path: Path) -> None:
    """What hangs over the padding is not counted, in any dimension."""

    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            "average",
            x,
            kernel=[3, 3, 3],
            strides=[2, 2, 2],
            dilations=[1, 1, 1],
            pads_begin=[1, 0, 1],
            pads_end=[2, 1, 1],
            overhang=[1, 1, 0],
            count_pads=True,
        )

    check(tmp_path, {"x": floats(1, 2, 4, 4, 5)}, program)


def test_nan_in_volumes(tmp_path: Path) -> None:
    """The maximum passes over it, in rows and in columns."""
    x = floats(1, 1, 3, 3, 3)
    x[..., ::2] = NAN

    def program(x: SSAValue) -> Any:
        twos, ones, none = [2] * 3, [1] * 3, [0] * 3
        return reductions.PoolOp(
            "max", x, kernel=twos, strides=ones, dilations=ones, pads_begin=none, pads_end=none
        )

    check(tmp_path, {"x": x}, program)


# Dilations


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("kind", ["max", "average", "sum"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads"),
    [((2, 3), 1, (2, 1)), ((2, 3), 3, (2, 1)), ((3,), 3, (0, 0)), ((2, 1, 2), 3, (2, 1))],
)
def test_windows_with_dilations(
    tmp_path: Path, kind: str, kernel: tuple[int, ...], stride: int, pads: tuple[int, int]
) -> None:
    """Padding that is or is no multiple of the dilation, and sizes that are none; NaN, too."""
    rank = len(kernel)
    x = floats(1, 2, *[8, 9, 6][:rank])
    if kind == "max":
        x[np.random.default_rng(3).random(x.shape) < 0.3] = NAN

    def program(x: SSAValue, keeps_first: bool) -> Any:
        padded = [size > 1 for size in kernel]
        return reductions.PoolOp(
            kind,
            x,
            kernel=kernel,
            strides=[stride, 1, 2][:rank],
            dilations=[3, 2, 1][:rank],
            pads_begin=[pads[0] * each for each in padded[:1]] + [0] * (rank - 1),
            pads_end=[pads[1] * each for each in padded[:1]] + [0] * (rank - 1),
            count_pads=kind == "average" and stride == 1,
            keeps_first=keeps_first,
            from_lowest=kind == "max" and not keeps_first,
        )

    types = check(tmp_path, {"x": x}, lambda x: program(x, False))
    assert "Pooling" in types
    assert "Eltwise" not in types
    if kind == "max":
        types = check(tmp_path, {"x": x}, lambda x: program(x, True))
        assert types.count("Eltwise") == 1


# Padding


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    ("shape", "begin", "end"),
    [
        ((1, 2, 5, 6), (0, 0, 2, 1), (0, 0, 1, 3)),
        ((1, 5, 6, 2), (0, 2, 0, 0), (0, 0, 1, 0)),
        ((3,), (2,), (2,)),
        ((2, 3), (0, 7), (1, 8)),
        ((1, 1), (2, 2), (0, 1)),
    ],
)
def test_padding_with_own_elements(
    tmp_path: Path,
    mode: str,
    shape: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
) -> None:
    """Also by more than there is, which goes back and forth, or around."""
    x = floats(*shape)
    x.flat[0], x.flat[-1] = NAN, -INF
    types = check(tmp_path, {"x": x}, lambda x: tensor.PadOp(x, begin, end, mode=mode))
    assert set(types) <= {"Slice", "Concat", "Silence"}


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_a_long_blob_with_little_padding(tmp_path: Path, mode: str) -> None:
    """Not every element is cut out; all of a wrap at once."""
    check(tmp_path, {"x": floats(1, 200)}, lambda x: tensor.PadOp(x, [0, 30], [0, 30], mode=mode))


def test_padding_of_many_parts(tmp_path: Path) -> None:
    """64 of them are joined, with the blob itself."""
    x = {"x": floats(200)}
    for mode in ("reflect", "edge"):
        check(tmp_path, x, lambda x, mode=mode: tensor.PadOp(x, [32], [31], mode=mode))
        with pytest.raises(ExportError, match="a new order of 65 parts, expected at most 64"):
            check(tmp_path, x, lambda x, mode=mode: tensor.PadOp(x, [32], [32], mode=mode))
    check(tmp_path, x, lambda x: tensor.PadOp(x, [100], [100], mode="wrap"))


@pytest.mark.parametrize("size", [7, 300])
def test_runs_of_places(tmp_path: Path, size: int) -> None:
    """Those that follow each other stay together, also if they overlap or are repeated."""
    order = np.array([5, 6, 0, 1, 2, 3, 1, 2, 3, 4, 4, 6, *range(size), *range(size), 0])
    types = check(
        tmp_path, {"x": floats(2, size, 2)}, lambda x: tensor.GatherOp(x, constant(order), 1)
    )
    assert types.count("Slice") == types.count("Concat") == 1


# Softmax

ROWS = [
    [1, 2, 3],
    [-INF, 1, 2],
    [-INF, -INF, -INF],
    [NAN, 1, 2],
    [NAN, NAN, NAN],
    [NAN, -INF, -INF],
    [INF, 1, 2],
    [INF, INF, -INF],
    [LOWEST, LOWEST, LOWEST],
    [-INF, LOWEST, LOWEST],
    [-LOWEST, LOWEST, 0],
    [1e4, 1e4 + 1, -1e4],
    [-200, 0, -104],
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero", "ignore:overflow")
def test_logarithm_of_softmax(tmp_path: Path, axis: int) -> None:
    """Rows of anything: small probabilities, infinities, NaN, and the lowest float."""
    rows = np.array(ROWS, np.float32)
    x = np.ascontiguousarray(rows if axis == 1 else rows.T)
    types = check(tmp_path, {"x": x}, lambda x: reductions.SoftmaxOp(x, axis, log=True))
    assert types.count("Convolution") == 3


@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 0), ((2, 1), 1), ((2, 3, 4, 5), 1), ((2, 3, 4), 2), ((2, 3, 4), 0)]
)
def test_axes_of_softmax(tmp_path: Path, shape: tuple[int, ...], axis: int) -> None:
    x = {"x": floats(*shape) * np.float32(30)}
    check(tmp_path, x, lambda x: reductions.SoftmaxOp(x, axis, log=True))
    check(tmp_path, x, lambda x: reductions.SoftmaxOp(x, axis))


def test_softmax_and_its_logarithm(tmp_path: Path) -> None:
    """The names of the layers are those of the nodes, and of their parts."""
    check(
        tmp_path,
        {"x": floats(2, 3)},
        lambda x: [
            reductions.SoftmaxOp(x, 1).result,
            e.NegOp(reductions.SoftmaxOp(x, 1, log=True).result).result,
        ],
    )
    names = {layer.name for layer in net_of(tmp_path / "net.prototxt").layer}
    assert {"softmax", "pooling/max", "exp/exp", "log/log"} <= names
