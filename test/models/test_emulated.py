"""A model that remembers, called in an emulator."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from fuzz.tflite_graphs import Graph
from lowerdeck.compiler import CompileOptions
from models.emulated import Emulated, obstacle


def test_what_is_remembered_goes_from_call_to_call(tmp_path: Path) -> None:
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    g = Graph(Random(0), np.random.default_rng(0))
    x, one = g.input([2, 3], "FLOAT32"), g.constant(np.eye(3, dtype=np.float32), "FLOAT32")
    state = g.state([2, 3], "FLOAT32")
    bias = g.constant(np.zeros(3, np.float32), "FLOAT32")
    options = ("SequenceRNNOptions", {"fused_activation_function": "RELU", "time_major": False})
    wide = g.op("RESHAPE", [x, g.integers([2, 1, 3])], ([2, 1, 3], "FLOAT32", None))[0]
    g.op(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        [wide, one, one, bias, state],
        ([2, 1, 3], "FLOAT32", None),
        options=options,
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(g.program().data)
    model = Emulated(str(path), CompileOptions(target="aarch64"))
    feed = np.arange(6, dtype=np.float32).reshape(2, 3)

    def result() -> list[float]:
        found = model({model.inputs[0]: feed})
        return found[next(name for name in found if "state" not in name)].ravel().tolist()

    assert result() == feed.ravel().tolist()
    assert result() == (2 * feed).ravel().tolist()
    model.reset()
    assert result() == feed.ravel().tolist()
