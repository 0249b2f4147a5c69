"""The forms of single operators, listed and drawn: models that ONNX accepts."""

from __future__ import annotations

import onnx
import pytest

from models.operator_forms import Form, forms, opened
from models.random_forms import random_forms

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


def test_opened_forms_know_no_size() -> None:
    """Each dimension has a name that no other has, and the form itself keeps its sizes."""
    form = next(form for form in DRAWN.values() if len(form.inputs) > 1)
    model, inputs = form.build()
    dims = [dim for value in opened(model).graph.input for dim in value.type.tensor_type.shape.dim]
    assert len({dim.dim_param for dim in dims}) == len(dims)
    assert not any(dim.HasField("dim_value") for dim in dims)
    kept = [dim.dim_value for dim in model.graph.input[1].type.tensor_type.shape.dim]
    assert kept == list(inputs["x1"].shape)
