"""Legalization of the tf1 dialect: every quirk of TensorFlow made explicit in `core`."""

from lowerdeck.passes.legalize.tf1.framework import LegalizeTf1Pass

__all__ = ["LegalizeTf1Pass"]
