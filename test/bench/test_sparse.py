"""The network of the experiment on blocks of zeros."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from bench.sparse import network


def test_so_many_blocks_are_zero_and_no_channel_is() -> None:
    weights = [numpy_helper.to_array(each) for each in network(0.7, 32).graph.initializer]
    matrices = [weight[:, :, 0, 0] for weight in weights if weight.ndim > 1]
    assert len(matrices) == 37
    for matrix in matrices:
        blocks = matrix.reshape(-1, 32, matrix.shape[1]).any(axis=1)
        assert abs(1 - blocks.mean() - 0.7) < 0.01
        assert len(matrix) <= matrix.shape[1] or blocks.any(axis=0).all()
    assert not any(np.isnan(weight).any() for weight in weights)
