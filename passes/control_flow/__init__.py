"""Raising the control flow of TensorFlow 1: cyclic graphs become `core.loop` and `core.if`."""

from lowerdeck.passes.control_flow.raise_tf1 import RaiseTf1ControlFlowPass

__all__ = ["RaiseTf1ControlFlowPass"]
