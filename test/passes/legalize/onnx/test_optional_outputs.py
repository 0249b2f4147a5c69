"""A node may have any of its optional results: what is left does not change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs
from xdsl.context import Context

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from models.onnx_suite import first_case

OPERATORS = {
    "Attention": "attention",
    "GRU": "gru",
    "LayerNormalization": "layernormalization",
    "LSTM": "lstm",
    "MaxPool": "maxpool",
    "RNN": "rnn",
    "SoftmaxCrossEntropyLoss": "softmax_cross_entropy_loss",
    "Unique": "unique",
}
"""
Each with its module of the official suite, all of which take longer. Dropout and
BatchNormalization have all of their results in training only.
"""


def test_operators_are_all_that_there_are() -> None:
    optional = defs.OpSchema.FormalParameterOption.Optional
    found = {
        schema.name
        for schema in defs.get_all_schemas()
        if not schema.domain and optional in [output.option for output in schema.outputs]
    }
    assert found == {*OPERATORS, "BatchNormalization", "Dropout"}


def _choices(count: int) -> Iterator[list[str]]:
    """Names for some of `count` results; those at the end are empty, and left out."""
    for chosen in itertools.product((True, False), repeat=count):
        if any(chosen):
            names = [f"r{k}" if is_chosen else "" for k, is_chosen in enumerate(chosen)]
            yield names
            while not names[-1]:
                names.pop()
            yield names


@pytest.mark.parametrize("operator", OPERATORS)
def test_any_of_the_results(operator: str) -> None:
    case = first_case(operator, OPERATORS[operator])
    values = dict(
        zip([value.name for value in case.model.graph.input], case.data_sets[0][0], strict=True)
    )
    expected: dict[str, Any] = {}
    version = case.model.opset_import[0].version
    for names in _choices(len(defs.get_schema(operator, version).outputs)):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        model.graph.node[0].output[:] = names
        del model.graph.output[:]
        model.graph.output.extend(
            onnx.helper.make_empty_tensor_value_info(name) for name in names if name
        )
        module = import_model(model)
        LegalizeOnnxPass().apply(Context(), module)
        module.verify()
        found = run_module(module, values)
        expected = expected or found
        assert list(found) == [name for name in names if name]
        for name, array in found.items():
            np.testing.assert_array_equal(array, expected[name])
