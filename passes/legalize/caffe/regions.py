"""Pools over the bins of regions."""

from __future__ import annotations

from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.regions import largest_of_bins, means_of_bins


@legalizes("ROIPooling")
def legalize_roi_pooling(builder: CaffeLegalizer) -> Results:
    """The maximum over each bin."""
    p = builder.layer.roi_pooling_param
    size = (p.pooled_h, p.pooled_w)
    return [largest_of_bins(builder, builder.x, builder.bottoms[1], p.spatial_scale, size)]


@legalizes("PSROIPooling")
def legalize_psroi_pooling(builder: CaffeLegalizer) -> Results:
    """The average over each bin, of the channel that belongs to it."""
    p = builder.layer.psroi_pooling_param
    return [
        means_of_bins(
            builder, builder.x, builder.bottoms[1], p.spatial_scale, p.output_dim, p.group_size
        )
    ]
