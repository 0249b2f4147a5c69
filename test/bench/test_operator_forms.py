"""The forms of single operators, listed and drawn: models that ONNX accepts."""

from __future__ import annotations

import onnx
import pytest
from operator_forms import Form, forms
from random_forms import random_forms

DRAWN = random_forms(150, 7)


@pytest.mark.parametrize(
    "form", [*list(forms().values())[::5], *DRAWN.values()], ids=lambda f: f.name
)
def test_forms(form: Form) -> None:
    """A model whose shapes can be inferred, and inputs by name."""
    model, inputs = form.build()
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert [value.name for value in model.graph.input] == list(inputs)
    assert len(model.graph.output) == form.outputs


def test_a_seed_draws_the_same() -> None:
    """By name, and other forms with another seed."""
    assert list(random_forms(20, 7)) == list(DRAWN)[:20]
    assert list(random_forms(20, 8)) != list(DRAWN)[:20]
