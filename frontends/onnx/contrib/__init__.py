"""
Operators of ONNX Runtime's own, which have no schema in onnx: each is a function of standard
operators, as if the model brought it along.
"""

from lowerdeck.frontends.onnx.contrib import (
    attention,
    diffusion,
    experts,
    fused,
    group_query,
    images,
    nchwc,
    quantized,
    recurrent,
    refused,
    rotary,
    tensors,
)
from lowerdeck.frontends.onnx.contrib.definition import function_makers, is_defined, operators
from lowerdeck.frontends.onnx.contrib.weights import ModelWeights

TOPICS = (
    attention,
    diffusion,
    experts,
    fused,
    group_query,
    images,
    nchwc,
    quantized,
    recurrent,
    refused,
    rotary,
    tensors,
)
"""The modules with definitions."""

__all__ = ["TOPICS", "ModelWeights", "function_makers", "is_defined", "operators"]
