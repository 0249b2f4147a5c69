"""Padding that repeats elements, of dimensions that have none."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import lowerdeck

from .sanitized import model_of

node = onnx.helper.make_node


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("rows", [0, "n"])
@pytest.mark.parametrize("computed", [False, True])
def test_only_what_is_padded_must_have_elements(mode: str, rows: int | str, computed: bool) -> None:
    amounts = {"p": np.array([0, 1, 0, 2])}
    types = {"x": (np.float32, [rows, 4])} | ({"p": (np.int64, [4])} if computed else {})
    pad = node("Pad", ["x", "p"], ["y"], mode=mode)
    model = lowerdeck.compile(
        model_of([pad], types, ["y"], initializers={} if computed else amounts), cache=False
    )
    inputs = {"x": np.zeros((0, 4), np.float32)} | (amounts if computed else {})
    assert model(inputs)["y"].shape == (0, 7)
    if computed:
        with pytest.raises(lowerdeck.compiler.RunError, match="do not fit together"):
            model({**inputs, "p": np.array([1, 0, 0, 0])})
