"""Legalization of the tflite dialect: every quirk of TensorFlow Lite made explicit in `core`."""

from lowerdeck.passes.legalize.tflite.framework import LegalizeTflitePass

__all__ = ["LegalizeTflitePass"]
