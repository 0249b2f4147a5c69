"""The experiment on folding normalization: its arms and its network."""

from __future__ import annotations

import numpy as np

import lowerdeck
from bench.conv_bn import APART, DEFAULT, UNFOLDED, arms, one_convolution


def test_arms_follow_what_the_compiler_has() -> None:
    found = {arm.name: arm.disable for arm in arms(["cse", "fuse-linear"])}
    assert found == {DEFAULT: (), UNFOLDED: ("fuse-linear",), APART: None}
    found = {arm.name: arm.disable for arm in arms(["fuse-epilogue", "fuse-linear"])}
    assert found == {
        DEFAULT: (),
        UNFOLDED: ("fuse-linear",),
        APART: ("fuse-linear", "fuse-epilogue"),
    }
    assert {arm.name: arm.disable for arm in arms([])} == {DEFAULT: (), UNFOLDED: None, APART: None}


def test_arms_agree() -> None:
    model = one_convolution(channels=4, size=6)
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6), np.float32)
    folded = lowerdeck.compile(model)(x)[0]
    apart = lowerdeck.compile(model, disable=("fuse-linear",))(x)[0]
    assert 0 < (folded > 0).mean() < 1
    np.testing.assert_allclose(folded, apart, atol=1e-5)
