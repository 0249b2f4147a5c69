"""Legalization of the keras dialect: every default and quirk of Keras made explicit in `core`."""

from lowerdeck.passes.legalize.keras.framework import LegalizeKerasPass

__all__ = ["LegalizeKerasPass"]
