"""Pools in passes along lines: every way, type, shape of windows and size of tiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.schedule import Schedule
from lowerdeck.lowering.strategies.base import Candidate
from lowerdeck.lowering.targets import target_named

from ..choosing import with_numbers  # noqa: TID251  (these are tests, not the folder of sources)
from ..forms import some  # noqa: TID251  (as above)
from ..programs import Suite, module_of, symbol, typed  # noqa: TID251  (as above)
from ..targets import OTHER_TARGETS, SOME_TARGETS, suite_for, suite_in_turn  # noqa: TID251  (as above)
from .blocked import BlockedProgram, constant  # noqa: TID251  (as above)

Array = NDArray[Any]


@dataclass(frozen=True)
class Form:
    """A pool but for its kind: windows, and padding before and behind, an entry an axis."""

    shape: tuple[int, ...]
    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    begin: Sequence[int]
    end: Sequence[int]
    overhang: Sequence[int]

    def pool(self, x: SSAValue, kind: str, **flags: bool) -> SSAValue:
        """The largest, the sum or the average of each window."""
        return PoolOp(
            kind,
            x,
            kernel=self.kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads_begin=self.begin,
            pads_end=self.end,
            overhang=self.overhang,
            **flags,
        ).result


FORMS = [
    Form((2, 3, 7, 21), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (0, 0)),
    Form((1, 2, 9, 40), (3, 3), (2, 2), (1, 1), (1, 1), (1, 0), (0, 0)),
    Form((1, 9, 6, 37), (2, 2), (2, 2), (1, 1), (0, 0), (0, 1), (0, 1)),
    Form((1, 1, 8, 35), (3, 2), (3, 3), (1, 2), (0, 0), (0, 0), (0, 0)),
    Form((1, 2, 12, 21), (7, 5), (4, 5), (1, 1), (3, 4), (2, 3), (1, 2)),
    Form((1, 2, 5, 6), (5, 5), (1, 1), (2, 2), (4, 4), (4, 4), (0, 0)),
    Form((1, 1, 13, 13), (13, 13), (1, 1), (1, 1), (6, 6), (6, 6), (0, 0)),
    Form((2, 3, 45), (5,), (2,), (1,), (4,), (3,), (0,)),
    Form((1, 2, 64), (4,), (1,), (3,), (0,), (0,), (0,)),
    Form((1, 2, 4, 5, 18), (3, 2, 3), (1, 1, 1), (1, 1, 1), (1, 0, 2), (2, 1, 1), (0, 0, 0)),
    Form((1, 1, 4, 6, 18), (2, 2, 2), (2, 2, 2), (1, 1, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    Form((1, 3, 1, 30), (1, 9), (1, 4), (1, 1), (0, 4), (0, 4), (0, 0)),
    Form((1, 3, 30, 8), (9, 1), (2, 1), (1, 1), (4, 0), (4, 0), (0, 0)),
    # Some windows hold nothing that an average counts.
    Form((1, 2, 5, 37), (2, 2), (2, 2), (1, 1), (0, 5), (7, 8), (0, 0)),
    Form((1, 2, 5, 37), (2, 2), (2, 2), (1, 1), (0, 1), (7, 8), (7, 7)),
]

TWO_TARGETS = ("x86-64-v4", "x86-64")
THREE_TARGETS = (*TWO_TARGETS, "c99")

KINDS = (("max", False), ("sum", False), ("average", False), ("average", True))


def numbers(shape: Sequence[int], dtype: Any) -> Array:
    """Around zero, with both zeros; NaN and infinities among floats."""
    x = np.random.default_rng(0).standard_normal(shape) * 30
    if np.dtype(dtype).kind in "iu":
        return x.astype(np.int64).astype(dtype)
    x = x.astype(dtype)
    x.flat[:: max(x.size // 5, 1)] = -0.0
    x.flat[3 :: max(x.size // 3, 1)] = np.nan
    x.flat[5 :: max(x.size // 2, 1)] = -np.inf
    return x


def add(
    suite: Suite, target: str, form: Form, dtype: Any, kind: tuple[str, bool], **options: Any
) -> None:
    """One more program, as the target's schedules have it."""
    name, x = f"p{len(suite.programs)}", numbers(form.shape, dtype)
    is_blocked = options.pop("is_blocked", False)
    names = ("keeps_first", "from_lowest", "keeps_nan")
    flags = {key: options.pop(key, False) for key in names}
    if flags["keeps_first"] or (flags["keeps_nan"] and x.dtype.kind == "f"):
        x.flat[:: 3 + len(suite.programs) % 3] = np.nan
    if flags["from_lowest"]:
        generator = np.random.default_rng(len(suite.programs))
        nothing = generator.choice(np.array([np.nan, -np.inf], np.float32), x.shape)
        x = np.where(generator.uniform(size=x.shape) < 0.9, nothing, x)
        x[..., : x.shape[-1] // 2] = -np.inf

    def body(x: SSAValue) -> SSAValue:
        result = form.pool(x, kind[0], count_pads=kind[1], **flags)
        if flags["from_lowest"]:
            return e.NegOp(result).result
        if dtype != np.float32:
            return result
        return e.MaxOp(result, constant(np.full((), -5, np.float32))).result

    module = module_of([typed(x.dtype, *options.pop("dims", x.shape))], body)
    program = BlockedProgram(
        name,
        module,
        [x],
        target=target,
        border=(0, 1),
        # The lowest number and -infinity would be the same but for rounding.
        ulps=0 if flags["from_lowest"] else 16,
        scale=1,
        is_blocked=is_blocked,
        **options,
    )
    suite.programs.append(program)


def by_way(way: int) -> Any:
    """Candidates that combine windows in a way."""

    def is_wanted(candidate: Candidate) -> bool:
        return candidate.schedule.get("way") == way

    return is_wanted


def in_small_tiles(schedule: Schedule) -> Schedule:
    """Two rows and few columns at a time."""
    if schedule.get("way") is None:
        return schedule
    return with_numbers(schedule, rows=2, columns=schedule.parameter("vector"))


@pytest.mark.parametrize("target", SOME_TARGETS)
def test_every_form(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    for number, form in enumerate(FORMS):
        for kind in (KINDS[0], KINDS[1 + number % 3]):
            add(suite, target, form, np.float32, kind, threads=1 + number % 2)
    suite.check()
    if target_named(target).lanes > 1:
        used = {_way(program) for program in suite.programs}
        assert used & {0, 1}


def _way(program: Any) -> int | None:
    found = [op.schedule.data for op in program.module.walk() if getattr(op, "schedule", None)]
    ways = [way for schedule in found if (way := schedule.get("way")) is not None]
    return ways[0] if ways else None


@pytest.mark.parametrize("way", [0, 1, 2])
def test_every_way(tmp_path: Path, way: int) -> None:
    """Also in tiles so small that there are several of them along both axes."""
    suite = suite_for("x86-64-v3", tmp_path)
    for number, form in some(list(enumerate(FORMS[:10])), 3):
        options = {"wanted": by_way(way), "change": in_small_tiles, "keeps_first": way == 2}
        kind = KINDS[0 if way == 2 else (number + way) % 4]
        add(suite, "x86-64-v3", form, np.float32, kind, **options)
    suite.check()


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64])
def test_every_type(tmp_path: Path, dtype: Any) -> None:
    suite = suite_for("x86-64-v4", tmp_path)
    is_float = np.dtype(dtype).kind == "f"
    for number, form in some(list(enumerate(FORMS[:10])), 3):
        add(suite, "x86-64-v4", form, dtype, KINDS[number % 4 if is_float else 0])
    suite.check()


@pytest.mark.parametrize("target", TWO_TARGETS)
def test_first_nan(tmp_path: Path, target: str) -> None:
    """What comes first in a window decides, also where windows begin outside of the image."""
    suite = suite_in_turn(target, tmp_path, TWO_TARGETS)
    options: dict[str, Any] = {"keeps_first": True, "change": in_small_tiles}
    forms = [
        *FORMS,
        Form((1, 2, 6, 23), (3, 3), (1, 1), (2, 2), (2, 2), (2, 2), (0, 0)),
        Form((1, 2, 7, 23), (3, 3), (2, 2), (3, 3), (5, 5), (1, 0), (0, 0)),
        Form((1, 2, 2, 19), (3, 3), (2, 1), (3, 5), (3, 5), (3, 5), (0, 0)),
        Form((1, 2, 4, 5, 18), (2, 2, 3), (1, 1, 2), (2, 1, 2), (1, 1, 3), (1, 0, 3), (0, 0, 0)),
    ]
    for number, form in enumerate(forms):
        wanted = by_way(0 if number % 3 == 0 else 2)
        add(suite, target, form, np.float32, KINDS[0], wanted=wanted, **options)
    for form in forms[-4:-1]:
        sized = dataclasses.replace(form, shape=(1, 17, *form.shape[2:]))
        add(suite, target, sized, np.float32, KINDS[0], is_blocked=True, keeps_first=True)
        dims = (symbol("n"), 2, symbol("h"), symbol("w"))
        add(suite, target, form, np.float32, KINDS[0], dims=dims, **options)
    sized = Form((1, 17, 9, 11), (5, 5), (1, 1), (2, 2), (4, 3), (4, 4), (0, 0))
    add(suite, target, sized, np.float32, KINDS[0], is_blocked=True, wanted=by_way(2), **options)
    suite.check()


@pytest.mark.parametrize("target", THREE_TARGETS)
def test_any_nan(tmp_path: Path, target: str) -> None:
    """A window with NaN is NaN, in each way, wherever it is in the window; integers have none."""
    suite = suite_in_turn(target, tmp_path, THREE_TARGETS)
    for number, form in enumerate(FORMS):
        wanted = by_way(number % 2) if number % 3 else None
        for options in ({"wanted": wanted, "change": in_small_tiles} if wanted else {}, {}):
            add(suite, target, form, np.float32, KINDS[0], keeps_nan=True, **options)
    for form in (FORMS[0], FORMS[1], FORMS[2], FORMS[4], FORMS[9], FORMS[10]):
        sized = dataclasses.replace(form, shape=(1, 17, *form.shape[2:]))
        add(suite, target, sized, np.float32, KINDS[0], is_blocked=True, keeps_nan=True)
    dims = (symbol("n"), 2, symbol("h"), symbol("w"))
    add(suite, target, FORMS[1], np.float32, KINDS[0], dims=dims, keeps_nan=True)
    for dtype in (np.float64, np.float16, np.uint8, np.int64):
        add(suite, target, FORMS[1], dtype, KINDS[0], keeps_nan=True)
    suite.check()


@pytest.mark.parametrize("target", THREE_TARGETS)
def test_lowest_number(tmp_path: Path, target: str) -> None:
    """Where a window has nothing but NaN and -infinity."""
    suite = suite_in_turn(target, tmp_path, THREE_TARGETS)
    for number, form in enumerate(FORMS):
        for wanted in ({}, {"wanted": by_way(2 * (number % 2))}):
            add(suite, target, form, np.float32, KINDS[0], from_lowest=True, **wanted)
    for form in (FORMS[0], FORMS[5]):
        sized = dataclasses.replace(form, shape=(1, 17, *form.shape[2:]))
        add(suite, target, sized, np.float32, KINDS[0], is_blocked=True, from_lowest=True)
    suite.check()


@pytest.mark.parametrize("target", ["x86-64-v3", "c99"])
def test_first_zero(tmp_path: Path, target: str) -> None:
    """Of zeros of either sign the first one counts where a pool says so, in each way."""
    suite = suite_for(target, tmp_path)
    for number, form in some(list(enumerate(FORMS[:12]))):

        def body(x: SSAValue, form: Form = form) -> SSAValue:
            result = form.pool(x, "max", from_lowest=True)
            return e.DivOp(constant(np.ones((), np.float32)), result).result

        choices = np.array([-0.0, 0.0, -1.0], np.float32)
        x = np.random.default_rng(number).choice(choices, form.shape)
        module = module_of([typed(x.dtype, *x.shape)], body)
        suite.programs.append(
            BlockedProgram(f"p{number}", module, [x], target=target, border=(0, 1), ulps=0, scale=1)
        )
    suite.check()


def test_open_sizes(tmp_path: Path) -> None:
    """Rows and columns that make up whole tiles, less, and more."""
    suite = suite_for("x86-64-v3", tmp_path)
    for height, width in ((1, 1), (3, 5), (8, 17), (9, 37)):
        for number, form in some(list(enumerate(FORMS[:3]))):
            shape = (2, 2, height + 2, width + 2)
            sized = Form(
                shape,
                form.kernel,
                form.strides,
                form.dilations,
                form.begin,
                form.end,
                form.overhang,
            )
            dims = (symbol("n"), 2, symbol("h"), symbol("w"))
            kind = KINDS[(number + height) % 4]
            add(suite, "x86-64-v3", sized, np.float32, kind, dims=dims, change=in_small_tiles)
    suite.check()


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_blocks_of_channels(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    shape = (1, 17, 9, 11)
    for form in (
        Form(shape, (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), (0, 0)),
        Form(shape, (9, 9), (2, 1), (1, 1), (4, 3), (4, 4), (1, 0)),
        Form(shape, (4, 5), (1, 2), (2, 2), (0, 0), (0, 0), (0, 0)),
    ):
        for kind in KINDS:
            options = {"wanted": by_way(1), "change": in_small_tiles}
            add(suite, target, form, np.float32, kind, is_blocked=True, **options)
        options = {"wanted": by_way(2), "change": in_small_tiles, "keeps_first": True}
        add(suite, target, form, np.float32, KINDS[0], is_blocked=True, **options)
    suite.check()
