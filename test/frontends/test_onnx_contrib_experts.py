"""Mixtures of experts, beside ONNX Runtime where it has a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    found_of,
    model_of,
    normal,
)


def experts(*, fused: bool, has_bias: bool, dims: tuple[int, ...] = (7,)) -> dict[str, Any]:
    """Five experts of 8 numbers, with 6 inside, for tokens of some dimensions."""
    width = 12 if fused else 6
    return {
        "x": normal(0, *dims, 8),
        "router": normal(1, int(np.prod(dims)), 5) * 2,
        "w1": normal(2, 5, width, 8) / 3,
        "b1": normal(3, 5, width) if has_bias else None,
        "w2": normal(4, 5, 8, 6) / 2,
        "b2": normal(5, 5, 8) if has_bias else None,
    }


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalized", [0, 1])
def test_mixtures(kind: str, normalized: int) -> None:
    for k, dims in ((1, (7,)), (3, (2, 4)), (5, (7,))):
        inputs = experts(fused=False, has_bias=k != 3, dims=dims)
        attributes: dict[str, Any] = {"k": k, "activation_type": kind}
        attributes["normalize_routing_weights"] = normalized
        agree("MoE", inputs, tolerance=1e-4, **attributes)


@pytest.mark.parametrize("has_limit", [False, True])
def test_gated_mixtures(has_limit: bool) -> None:
    """Both parts side by side, one behind the other, or apart."""
    attributes: dict[str, Any] = {"k": 2, "activation_type": "swiglu"}
    attributes |= {"activation_alpha": 1.702, "activation_beta": 1.0}
    if has_limit:
        attributes["swiglu_limit"] = 0.7
    inputs = experts(fused=True, has_bias=True)
    agree("MoE", inputs, swiglu_fusion=1, tolerance=1e-4, **attributes)
    want = found_of("MoE", inputs, swiglu_fusion=1, **attributes)["y"]
    halves: dict[str, tuple[Array, Array]] = {
        name: (inputs[name][:, ::2], inputs[name][:, 1::2]) for name in ("w1", "b1")
    }
    behind = {name: np.concatenate(parts, axis=1) for name, parts in halves.items()}
    found = found_of("MoE", {**inputs, **behind}, swiglu_fusion=2, **attributes)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    apart = {"w1": halves["w1"][0], "b1": halves["b1"][0]}
    more = {"w3": halves["w1"][1], "b3": halves["b1"][1]}
    found = found_of("MoE", {**inputs, **apart, **more}, **attributes)["y"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"use_sparse_mixer": 1}, "found a sparse mixer"),
        ({"activation_type": "swiglu"}, "found swiglu without fc3"),
        ({"swiglu_fusion": 1}, "found swiglu_fusion = 1 with the activation 'relu'"),
        ({"activation_type": "mish"}, "'activation_type' is 'mish', expected one of relu"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    inputs = experts(fused=False, has_bias=True)
    with pytest.raises(FrontendError, match=message):
        import_model(model_of("MoE", inputs, **attributes))
