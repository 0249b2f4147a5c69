"""How many dimensions the inputs of operators have, where that is not left open."""

from __future__ import annotations

from functools import cache

from lowerdeck.dialects.ranks import Spans, read_ranks

_TABLE = """
    affine_channel: x=2+ scale=1 bias=1
    affine_grid: input=3
    anchor_generator: input=4
    batch_norm sync_batch_norm: x=2+ mean=1 variance=1 scale=1 bias=1
    bicubic_interp bilinear_interp: x=4
    bmm: x=3 y=3
    box_clip: input=2-3 im_info=2
    box_coder: prior_box=2 prior_box_var=1-2 target_box=2-3
    channel_shuffle pixel_shuffle pixel_unshuffle shuffle_channel space_to_depth temporal_shift: x=4
    collect_fpn_proposals: multi_level_rois=2
    conv2d depthwise_conv2d fused_conv2d_add_act: input=4 filter=4
    conv2d_transpose depthwise_conv2d_transpose: x=4 filter=4
    conv3d: input=5 filter=5
    conv3d_transpose: x=5 filter=5
    deformable_conv: x=4 offset=4 filter=4 mask=4
    density_prior_box prior_box: input=4 image=4
    diag: x=1-2
    distribute_fpn_proposals: fpn_rois=2
    embedding: weight=2
    fold: x=3
    fractional_max_pool2d lp_pool2d max_pool2d_with_index pool2d spp unfold: x=4
    fractional_max_pool3d max_pool3d_with_index pool3d: x=5
    gather_nd: index=1+
    generate_proposals: scores=4 bbox_deltas=4 im_shape=2 anchors=2-4 variances=2-4
    grid_sample: x=4-5 grid=4-5
    group_norm instance_norm: x=2+ scale=1 bias=1
    gru_unit: input=2 hidden_prev=2 weight=2
    index_add: x=1+ index=1 add_value=1+
    iou_similarity: x=2 y=2
    linear_interp: x=3
    lookup_table: w=2
    lrn: x=4
    matrix_nms: bboxes=3 scores=3
    multiclass_nms: bboxes=3 scores=2-3
    multiclass_nms3: bboxes=3 scores=2-3 rois_num=1
    mv: x=2 vec=1
    nearest_interp: x=3-5
    nms: x=2
    psroi_pool roi_align roi_pool: x=4 boxes=2 boxes_num=1
    rnn: x=3 pre_state=3 sequence_length=1
    split split_with_num: x=1+
    trilinear_interp: x=5
    unbind: input=1+
    unpool: x=4 indices=4
    unpool3d: x=5 indices=5
    unstack: x=1+
    viterbi_decode: potentials=3 transition_params=2 lengths=1
    yolo_box: x=4 img_size=2
"""
"""Operators as PIR names them, with the dimensions of inputs."""


@cache
def ranks() -> Spans:
    """The table."""
    return read_ranks(_TABLE)
