"""How far apart the elements of views lie, as numpy says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType

from lowerdeck.dialects.arguments import plain_attribute
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.pt2.ops import op_class
from lowerdeck.dialects.pt2.strides import is_contiguous, strides_of_view

Array: TypeAlias = "np.ndarray[Any, Any]"

X: Array = np.zeros((4, 3, 1, 5), np.int8)[::2].transpose(0, 3, 2, 1)
"""Of shape 2 x 5 x 1 x 3."""

_CASES: list[tuple[str, dict[str, Any], Callable[[Array], Array]]] = [
    ("alias.default", {}, lambda x: x),
    ("narrow.default", {"dim": 1, "start": 1, "length": 2}, lambda x: x[:, 1:3]),
    ("view.default", {"size": [2, 5, 1, 1, 3]}, lambda x: x[:, :, None]),
    ("view.default", {"size": [1, 2, 5, 3]}, lambda x: x[None, :, :, 0]),
    ("expand.default", {"size": [2, 2, 5, 4, 3]}, lambda x: np.broadcast_to(x, (2, 2, 5, 4, 3))),
    ("select.int", {"dim": -1, "index": 1}, lambda x: x[..., 1]),
    ("unbind.int", {"dim": 1}, lambda x: x[:, 0]),
    ("slice.Tensor", {"dim": -3, "step": 2}, lambda x: x[:, ::2]),
    ("slice.Tensor", {"start": 1}, lambda x: x[1:]),
    ("unsqueeze.default", {"dim": -2}, lambda x: x[:, :, :, None]),
    ("squeeze.default", {}, lambda x: x[:, :, 0]),
    ("squeeze.dim", {"dim": 0}, lambda x: x),
    ("squeeze.dims", {"dim": [-2, 0]}, lambda x: x[:, :, 0]),
    ("permute.default", {"dims": [-1, 0, 2, 1]}, lambda x: x.transpose(3, 0, 2, 1)),
    ("transpose.int", {"dim0": -1, "dim1": 0}, lambda x: x.swapaxes(3, 0)),
    ("swapaxes.default", {"axis0": 1, "axis1": -1}, lambda x: x.swapaxes(1, 3)),
    ("numpy_T.default", {}, lambda x: x.T),
    ("mT.default", {}, lambda x: x.swapaxes(2, 3)),
    ("movedim.int", {"source": -1, "destination": 1}, lambda x: np.moveaxis(x, -1, 1)),
    ("movedim.intlist", {"source": [0, 3], "destination": [-2, 0]},
     lambda x: np.moveaxis(x, [0, 3], [-2, 0])),
    ("diagonal.default", {"offset": 1, "dim1": 0, "dim2": -1}, lambda x: x.diagonal(1, 0, 3)),
    ("unfold.default", {"dimension": 1, "size": 3, "step": 2},
     lambda x: sliding_window_view(x, 3, 1)[:, ::2]),
    ("as_strided.default", {"size": [2, 2], "stride": [1, 7]},
     lambda x: as_strided(x, (2, 2), (1, 7))),
]  # fmt: skip


@pytest.mark.parametrize(("target", "given", "view"), _CASES)
def test_strides_of_views(
    target: str, given: dict[str, Any], view: Callable[[Array], Array]
) -> None:
    """Those of dimensions of one element have no meaning."""
    cls = op_class(f"aten.{target}")
    assert cls is not None
    (x,) = test.TestOp(result_types=[TensorType(f32, X.shape)]).results
    arguments = {key: plain_attribute(value) for key, value in given.items()}
    op = cls({"self": x, **arguments}, [TensorType(f32, [])])
    seen = view(X)
    found = strides_of_view(op, X.shape, X.strides, seen.shape)
    assert found is not None
    kept = [k for k, size in enumerate(seen.shape) if size != 1]
    assert [found[k] for k in kept] == [seen.strides[k] for k in kept]


def test_what_depends_on_values_is_not_known() -> None:
    cls = op_class("aten.slice.Tensor")
    assert cls is not None
    x, step = test.TestOp(result_types=[TensorType(f32, [4]), TensorType(f32, [])]).results
    assert strides_of_view(cls({"self": x, "step": step}, [x.type]), [4], [1], [2]) is None


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [([2, 3], [3, 1], True), ([1, 3], [9, 1], True), ([3], [2], False), ([2, 0], [7, 7], True)],
)
def test_what_lies_in_order(sizes: list[int], strides: list[int], expected: bool) -> None:
    assert is_contiguous(sizes, strides) == expected
