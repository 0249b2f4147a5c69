"""What PaddlePaddle leaves open is told, with what depends on it; what it does not is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.corpus import Case, interpreted, run_case

from .paddle_programs import (  # noqa: TID251
    call,
    feed,
    fetch,
    floats,
    variable,
    write_program,
)

NAN = float("nan")


def _case(folder: Path, calls: Sequence[bytes], x: Any, expected: Any) -> Case:
    """A program from x to y by way of a."""
    variables = [variable(name, "float32", array.shape) for name, array in (("x", x), ("a", x))]
    variables.append(variable("y", "float32", expected.shape))
    write_program(folder / "model.pdmodel", (variables, [feed("x", 0), *calls, fetch("y", 0)]))
    np.savez(folder / "in.npz", x=x)
    np.savez(folder / "out.npz", y=expected)
    data = {
        "framework": "paddle",
        "model": "model.pdmodel",
        "outputs": [{"name": "y", "dtype": "float32"}],
        "samples": [{"inputs": "in.npz", "expected": "out.npz"}],
        "tolerance": {"rtol": 1e-4, "atol": 1e-5},
    }
    return Case("case", folder, data)


def _outcome(folder: Path, calls: Sequence[bytes], x: Any, expected: Any) -> tuple[str, str]:
    found = run_case(_case(folder, calls, x, expected), interpreted)
    return found.status, found.message


def _largest() -> list[bytes]:
    largest = call("reduce_max", {"X": "x"}, {"Out": "a"}, dim=[0], keep_dim=True, reduce_all=False)
    return [largest, call("relu", {"X": "a"}, {"Out": "y"})]


def test_an_extremum_of_nan_is_open_and_what_depends_on_it(tmp_path: Path) -> None:
    status, message = _outcome(tmp_path, _largest(), floats(1, NAN, 3), floats(3))
    assert (status, message) == ("pass", "sample 0: an extremum of numbers and NaN")


def test_an_extremum_of_numbers_is_not_open(tmp_path: Path) -> None:
    assert _outcome(tmp_path, _largest(), floats(1, 2, 3), floats(2))[0] == "wrong"


def _slice(start: int) -> list[bytes]:
    given: dict[str, Any] = {"axes": [0], "starts": [start], "ends": [9], "strides": [1]}
    given |= {"infer_flags": [1], "decrease_axis": []}
    return [call("strided_slice", {"Input": "x"}, {"Out": "y"}, **given)]


def test_a_slice_behind_the_end_is_open(tmp_path: Path) -> None:
    status, message = _outcome(tmp_path, _slice(3), floats(1, 2, 3), floats(7))
    assert (status, message) == ("pass", "sample 0: a slice behind the end")
    assert _outcome(tmp_path, _slice(2), floats(1, 2, 3), floats(7))[0] == "wrong"


def test_a_step_is_open_next_to_it_only(tmp_path: Path) -> None:
    calls = [call("tanh", {"X": "x"}, {"Out": "a"}), call("trunc", {"X": "a"}, {"Out": "y"})]
    below = floats(9.5)
    assert _outcome(tmp_path, calls, below, floats(1 - np.trunc(np.tanh(below[0]))))[0] == "pass"
    assert _outcome(tmp_path, calls, floats(2), floats(1))[0] == "wrong"


def test_a_steep_function_is_open_next_to_its_pole_only(tmp_path: Path) -> None:
    for steep, near, far in (("tan", 0.999999, 0.5), ("asin", 25.0, 0.5), ("digamma", -3.0, 2.0)):
        inner = {"tan": "asin", "asin": "tanh", "digamma": "sin"}[steep]
        calls = [call(inner, {"X": "x"}, {"Out": "a"}), call(steep, {"X": "a"}, {"Out": "y"})]
        near = math.pi - 1e-5 if steep == "digamma" else near
        assert _outcome(tmp_path, calls, floats(near), floats(99))[0] == "pass", steep
        assert _outcome(tmp_path, calls, floats(far), floats(99))[0] == "wrong", steep
