"""How many dimensions the inputs of operators have, where that is not left open."""

from __future__ import annotations

from functools import cache

from lowerdeck.dialects.ranks import Spans, read_ranks

_TABLE = """
    BatchNorm BatchNorm_v1 _contrib_SyncBatchNorm _contrib_BatchNormWithReLU: data=2+ gamma=1 \
        beta=1 moving_mean=1 moving_var=1
    BilinearSampler: data=4 grid=4
    Convolution Convolution_v1 Deconvolution: data=3-5 weight=3-5 bias=1
    Correlation: data1=4 data2=4
    Crop: data=4
    Embedding _contrib_SparseEmbedding: weight=2
    FullyConnected: data=1+ weight=2 bias=1
    GroupNorm: data=3+ gamma=1 beta=1
    InstanceNorm: data=3+ gamma=1 beta=1
    L2Normalization: data=2+
    LRN: data=4
    LayerNorm: data=1+ gamma=1 beta=1
    Pooling Pooling_v1: data=3-5
    RNN: data=3 parameters=1 state=3 state_cell=3 sequence_length=1
    ROIPooling _contrib_PSROIPooling _contrib_ROIAlign: data=4 rois=2
    SequenceLast SequenceMask SequenceReverse: data=2+ sequence_length=1
    SpatialTransformer: data=4 loc=2
    UpSampling: data=4
    _contrib_AdaptiveAvgPooling2D: data=4
    _contrib_BilinearResize2D: data=4 like=4
    _contrib_DeformableConvolution: data=4 offset=4 weight=4 bias=1
    _contrib_ModulatedDeformableConvolution: data=4 offset=4 mask=4 weight=4 bias=1
    _contrib_MultiBoxDetection: cls_prob=3 loc_pred=2 anchor=3
    _contrib_MultiBoxPrior: data=4
    _contrib_Proposal _contrib_MultiProposal: cls_prob=4 bbox_pred=4 im_info=2
    _contrib_boolean_mask: data=1+ index=1
    _contrib_box_decode: data=3 anchors=3
    _contrib_box_iou: lhs=1+ rhs=1+
    _contrib_count_sketch: data=2+ h=1-2 s=1-2
    _contrib_index_copy: old_tensor=1+ index_vector=1 new_tensor=1+
    _contrib_interleaved_matmul_encdec_qk: queries=3 keys_values=3
    _contrib_interleaved_matmul_encdec_valatt: keys_values=3 attention=3
    _contrib_interleaved_matmul_selfatt_qk: queries_keys_values=3
    _contrib_interleaved_matmul_selfatt_valatt: queries_keys_values=3 attention=3
    _linalg_extractdiag _linalg_sumlogdiag: A=2+
    _linalg_gemm: A=2+ B=2+ C=2+
    _linalg_gemm2 _linalg_trmm: A=2+ B=2+
    _linalg_makediag: A=1+
    _linalg_syrk: A=2+
    _ravel_multi_index: data=1+
    _sparse_retain: data=1+ indices=1
    batch_dot: lhs=3 rhs=3
    batch_take: a=2 indices=1
    depth_to_space space_to_depth: data=4
    dot: lhs=1+ rhs=1+
    fill_element_0index: lhs=2 mhs=1 rhs=1
    gather_nd: data=1+ indices=1+
    im2col: data=3-5
    khatri_rao: args=2
    moments: data=1+
    scatter_nd: data=1+ indices=1+
"""
"""Operators, and the dimensions of inputs."""


@cache
def ranks() -> Spans:
    """The table."""
    return read_ranks(_TABLE)
