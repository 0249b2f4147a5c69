"""Which tensors share elements: what a write through a view changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.pt2 import schema
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.pt2.aliases import VIEWS

from .pt2_archives import meta, node, write  # noqa: TID251


def test_what_shares_elements_by_its_schema_is_a_view() -> None:
    lines = (Path(schema.__file__).parent / "ops.txt").read_text().splitlines()
    shown = [re.match(r"aten\.(\w+)\.\w+\(.*\) -> Tensor\(a( -> \*)?\)", line) for line in lines]
    names = {found[1] for found in shown if found}
    assert len(names) > 50
    assert names <= VIEWS


def _ints(*numbers: int) -> dict[str, Any]:
    return {"as_ints": list(numbers)}


def _int(number: int) -> dict[str, Any]:
    return {"as_int": number}


_CASES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[Any, ...]]] = {
    "narrow": ("narrow.default", {"dim": _int(1), "start": _int(1), "length": _int(2)}, (2, 2),
               (slice(None), slice(1, 3))),
    "numpy_T": ("numpy_T.default", {}, (3, 2), (...,)),
    "swapdims": ("swapdims.default", {"dim0": _int(0), "dim1": _int(1)}, (3, 2), (...,)),
    "view_as": ("view_as.default", {"other": "z"}, (3, 2), (...,)),
    "positive": ("positive.default", {}, (2, 3), (...,)),
    "unfold": ("unfold.default", {"dimension": _int(1), "size": _int(1), "step": _int(2)},
               (2, 2, 1), (slice(None), slice(None, None, 2))),
    "expand": ("expand.default", {"size": _ints(1, 2, 3)}, (1, 2, 3), (...,)),
    "diagonal": ("linalg_diagonal.default", {"offset": _int(1)}, (2,), ([0, 1], [1, 2])),
}  # fmt: skip
"""The view, its arguments and shape, and which elements of `x` it shows."""


@pytest.mark.parametrize("name", _CASES)
def test_a_write_through_a_view_changes_what_it_shows(tmp_path: Path, name: str) -> None:
    target, arguments, shape, places = _CASES[name]
    first = "A" if name == "diagonal" else "self"
    nodes = [
        node(target, "v", **{first: "x"}, **arguments),
        node("mul.Tensor", "w", self="v", other="v"),
        node("copy_.default", "c", self="v", src="w"),
    ]
    tensors = {"x": meta("f4", [2, 3]), "z": meta("f4", [3, 2])}
    tensors |= {one: meta("f4", shape) for one in ("v", "w", "c")}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x", "z"], ["x"], {})
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    found = Calls(load_model(path))({"x": x, "z": x.T})
    expected = x.copy()
    expected[places] *= expected[places]
    assert np.asarray(found["x"]).tolist() == expected.tolist()
    assert np.asarray(found["x_next"]).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("target", "arguments", "shape", "shown"),
    [
        ("expand.default", {"size": _ints(4, 2, 3)}, (4, 2, 3), (..., slice(None))),
        (
            "unfold.default",
            {"dimension": _int(0), "size": _int(1), "step": _int(1)},
            (2, 3, 1),
            (1, slice(None)),
        ),
        (
            "as_strided.default",
            {"size": _ints(3, 4), "stride": _ints(1, 1)},
            (3, 4),
            ([0, 0, 1, 1], [1, 2, 0, 1]),
        ),
    ],
    ids=["expand", "unfold", "as_strided"],
)
def test_a_write_to_a_part_of_what_is_shown_twice(
    tmp_path: Path, target: str, arguments: dict[str, Any], shape: tuple[int, ...], shown: Any
) -> None:
    """The other places of the same elements do not bring back what was there."""
    nodes = [
        node(target, "v", self="x", **arguments),
        node("select.int", "p", self="v", dim=_int(0), index=_int(1)),
        node("mul.Tensor", "w", self="p", other="p"),
        node("copy_.default", "c", self="p", src="w"),
    ]
    tensors = {"x": meta("f4", [2, 3]), "v": meta("f4", shape)}
    tensors |= {one: meta("f4", shape[1:]) for one in ("p", "w", "c")}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["x"], {})
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    found = Calls(load_model(path))({"x": x})
    expected = x.copy()
    expected[shown] *= expected[shown]
    assert np.asarray(found["x_next"]).tolist() == expected.tolist()


@pytest.mark.parametrize("strides", [(6, 1, 3), (6, 3, 1)])
def test_what_has_to_lie_otherwise_is_a_copy(tmp_path: Path, strides: tuple[int, ...]) -> None:
    """`contiguous` with a memory format gives the tensor itself only if it lies so already."""
    nodes = [
        node("contiguous.default", "c", self="x", memory_format={"as_memory_format": 2}),
        node("relu_.default", "r", self="c"),
        node("add.Tensor", "y", self="x", other="r"),
    ]
    tensors = {name: meta("f4", [1, 2, 3]) for name in ("x", "c", "r", "y")}
    tensors["c"] = tensors["c"] | {"strides": [{"as_int": one} for one in strides]}
    call = Calls(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    x = np.array([[[1, -2, 3], [-4, 5, -6]]], np.float32)
    relu = np.maximum(x, 0)
    expected = x + relu if strides == (6, 1, 3) else relu + relu
    assert np.asarray(call({"x": x})["y"]).tolist() == expected.tolist()


@pytest.mark.parametrize("target", ["flatten.using_ints", "ravel.default"])
def test_a_line_of_elements_that_lie_apart(tmp_path: Path, target: str) -> None:
    """`ravel` copies it, where `flatten` shows it."""
    nodes = [
        node("select.int", "v", self="x", dim=_int(1), index=_int(0)),
        node(target, "f", self="v"),
        node("neg_.default", "n", self="f"),
        node("add.Tensor", "y", self="x", other="x"),
    ]
    column = meta("f4", [2]) | {"strides": [{"as_int": 3}]}
    tensors = {"x": meta("f4", [2, 3]), "y": meta("f4", [2, 3]), "v": column}
    tensors |= dict.fromkeys("fn", column if target.startswith("flatten") else meta("f4", [2]))
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    call = Calls(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    expected = 2 * x
    if target.startswith("flatten"):
        expected[:, 0] *= -1
    assert np.asarray(call({"x": x})["y"]).tolist() == expected.tolist()


def test_a_buffer_that_is_turned_by_its_other_name(tmp_path: Path) -> None:
    nodes = [
        node("neg_.default", "n", self="b"),
        node("t_.default", "t", self="n"),
        node("add.Tensor", "y", self="b", other="x"),
    ]
    tensors = {name: meta("f4", [2, 2]) for name in ("x", "b", "n", "t", "y")}
    b = np.array([[1, 2], [3, 4]], np.float32)
    call = Calls(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {"b": b})))
    x = np.array([[10, 20], [30, 40]], np.float32)
    assert np.asarray(call({"x": x})["y"]).tolist() == (x - b.T).tolist()
    assert np.asarray(call.states["b"]).tolist() == (-b.T).tolist()


@pytest.mark.parametrize(
    ("target", "given", "shape"),
    [
        ("broadcast_tensors.default", {}, (3,)),
        ("meshgrid.default", {}, (3, 1)),
        ("meshgrid.indexing", {"indexing": {"as_string": "xy"}}, (1, 3)),
        ("atleast_2d.Sequence", {}, (1, 3)),
    ],
)
def test_a_write_to_what_shows_one_of_several_tensors(
    tmp_path: Path, target: str, given: dict[str, Any], shape: tuple[int, ...]
) -> None:
    """They are views by what they do, not by their schemas; the other tensor stays as it is."""
    several = node(target, "v", tensors={"as_tensors": [{"name": "x"}, {"name": "z"}]}, **given)
    several["outputs"] = [{"as_tensors": [{"name": "v"}, {"name": "u"}]}]
    nodes = [
        several,
        node("relu_.default", "w", self="v"),
        node("add.Tensor", "s", self="x", other="z"),
        node("add.Tensor", "t", self="v", other="u"),
    ]
    tensors = {"x": meta("f4", [3]), "z": meta("f4", [1]), "s": meta("f4", [3])}
    tensors |= {name: meta("f4", list(shape)) for name in "vwt"}
    tensors["u"] = meta("f4", [1, 1] if target.startswith("atleast") else list(shape))
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x", "z"], ["s", "t"], {})
    x, z = np.array([-1, 2, -3], np.float32), np.array([-10], np.float32)
    found = Calls(load_model(path))({"x": x, "z": z})
    expected = np.maximum(x, 0) + z
    assert np.asarray(found["s"]).tolist() == expected.tolist()
    assert np.asarray(found["t"]).tolist() == expected.reshape(shape).tolist()


def test_a_write_to_what_may_be_the_operand_is_refused(tmp_path: Path) -> None:
    """A view by what it does, if it does nothing."""
    nodes = [node("conj_physical.default", "v", self="x"), node("relu_.default", "w", self="v")]
    tensors = {name: meta("f4", [3]) for name in "xvw"}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["w"], {})
    with pytest.raises(FrontendError, match="of which another tensor may have a copy"):
        load_model(path)
