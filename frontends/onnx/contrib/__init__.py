"""
Operators of ONNX Runtime's own, which have no schema in onnx: each is a function of standard
operators, as if the model brought it along.
"""

from lowerdeck.frontends.onnx.contrib import (
    attention,
    fused,
    group_query,
    quantized,
    recurrent,
    rotary,
)
from lowerdeck.frontends.onnx.contrib.definition import DOMAIN, function_makers, is_defined

TOPICS = (attention, fused, group_query, quantized, recurrent, rotary)
"""The modules with definitions."""

__all__ = ["DOMAIN", "TOPICS", "function_makers", "is_defined"]
