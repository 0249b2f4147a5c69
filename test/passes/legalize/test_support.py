"""What `lowerdeck ops` says of operators: those that are legalized, and others."""

from importlib import import_module

import pytest

from lowerdeck.dialects.frameworks import FRAMEWORKS

KNOWN = {
    "passes.legalize.caffe.support": "ReLU",
    "passes.legalize.darknet.support": "convolutional",
    "passes.legalize.keras.support": "ReLU",
    "passes.legalize.mindir.support": "ReLU",
    "passes.legalize.mxnet.support": "Activation",
    "passes.legalize.onnx.support": "Relu",
    "passes.legalize.paddle.support": "relu",
    "passes.legalize.pt2.support": "aten.relu.default",
    "passes.legalize.tf1.support": "Relu",
    "passes.legalize.tflite.support": "RELU",
}
"""An operator of each framework, by the module that knows."""


@pytest.mark.parametrize("module", KNOWN)
def test_support(module: str) -> None:
    support = import_module(f"lowerdeck.{module}").support
    assert FRAMEWORKS[module.split(".")[-2]].support() is support
    assert support("", KNOWN[module], 13).how == "legalized"
    assert support("", "nonsense", 13).how is None


def test_every_framework_is_asked() -> None:
    assert {module.split(".")[-2] for module in KNOWN} == {*FRAMEWORKS}


def test_operators_of_paddle_that_work_in_place() -> None:
    support = FRAMEWORKS["paddle"].support()
    assert support("", "relu_", None).how == "legalized"
    assert support("", "while", None).how == "at import"
