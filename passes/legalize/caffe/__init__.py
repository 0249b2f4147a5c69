"""Legalization of the caffe dialect: every quirk of Caffe made explicit in `core`."""

from lowerdeck.passes.legalize.caffe.framework import LegalizeCaffePass

__all__ = ["LegalizeCaffePass"]
