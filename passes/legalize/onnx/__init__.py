"""Legalization of the onnx dialect: every framework quirk made explicit in `core`."""

from lowerdeck.passes.legalize.onnx.framework import LegalizeOnnxPass

__all__ = ["LegalizeOnnxPass"]
