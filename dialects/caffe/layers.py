"""
The layer types that the dialect knows: their parameter messages and how many blobs they take.

The numbers are those that the layers of Caffe check themselves (MinBottomBlobs, ExactNumTopBlobs
and so on).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter, PoolingParameter
from lowerdeck.dialects.records import record

_ANY = 1 << 30


@record
class Count:
    """How many blobs may occur, from `least` to `most`."""

    least: int
    most: int

    def __contains__(self, number: int) -> bool:
        return self.least <= number <= self.most

    def __str__(self) -> str:
        if self.most == _ANY:
            return f"at least {self.least}"
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"


def _exactly(number: int) -> Count:
    return Count(number, number)


def _at_least(number: int) -> Count:
    return Count(number, _ANY)


ONE = _exactly(1)


@record
class LayerType:
    """A layer type; `parameters` are the fields of LayerParameter that it reads."""

    name: str
    parameters: tuple[str, ...] = ()
    bottoms: Count = ONE
    tops: Count = ONE
    equal: bool = False
    """There are as many tops as bottoms."""


@cache
def layer_types() -> Mapping[str, LayerType]:
    """All layer types by name. Layers that only bring data in are arguments instead."""
    return {layer.name: layer for layer in (*_NEURONS, *_SHAPES, *_LINEAR, *_LOSSES, *_OTHERS)}


INPUT_TYPES = {
    "Input": "input_param",
    "Data": "data_param",
    "HDF5Data": "hdf5_data_param",
    "ImageData": "image_data_param",
    "MemoryData": "memory_data_param",
    "WindowData": "window_data_param",
}
"""The layer types whose tops are the inputs of a net, and their parameters."""

_NEURONS = (
    LayerType("AbsVal"),
    LayerType("BNLL"),
    LayerType("Clip", ("clip_param",)),
    LayerType("CReLU", ("crelu_param",)),
    LayerType("Dropout", ("dropout_param",)),
    LayerType("ELU", ("elu_param",)),
    LayerType("Exp", ("exp_param",)),
    LayerType("HardSwish"),
    LayerType("HSigmoid"),
    LayerType("HSwish"),
    LayerType("Log", ("log_param",)),
    LayerType("Mish"),
    LayerType("Power", ("power_param",)),
    LayerType("PReLU", ("prelu_param",)),
    LayerType("ReLU", ("relu_param",)),
    LayerType("ReLU6"),
    LayerType("Sigmoid", ("sigmoid_param",)),
    LayerType("SiLU"),
    LayerType("Swish", ("swish_param",)),
    LayerType("TanH", ("tanh_param",)),
    LayerType("Threshold", ("threshold_param",)),
)

_SHAPES = (
    LayerType("BatchReindex", bottoms=_exactly(2)),
    LayerType("Concat", ("concat_param",), bottoms=_at_least(1)),
    LayerType("Crop", ("crop_param",), bottoms=_exactly(2)),
    LayerType("Filter", bottoms=_at_least(2), tops=_at_least(1)),
    LayerType("Flatten", ("flatten_param",)),
    LayerType("HDF5Output", ("hdf5_output_param",), bottoms=_at_least(1), tops=_exactly(0)),
    LayerType("Im2col", ("convolution_param",)),
    LayerType("Permute", ("permute_param",)),
    LayerType("Reorg", ("reorg_param",)),
    LayerType("Reshape", ("reshape_param",)),
    LayerType("Reverse", ("reverse_param",)),
    LayerType("ShuffleChannel", ("shuffle_channel_param",)),
    LayerType("Silence", bottoms=_at_least(1), tops=_exactly(0)),
    LayerType("Slice", ("slice_param",), tops=_at_least(1)),
    LayerType("Split", tops=_at_least(1)),
    LayerType("Tile", ("tile_param",)),
)

_LINEAR = (
    LayerType("Axpy", bottoms=_exactly(3)),
    LayerType("BatchNorm", ("batch_norm_param",)),
    LayerType("Bias", ("bias_param",), bottoms=Count(1, 2)),
    LayerType("BN", ("bn_param",)),
    *(
        LayerType(
            name,
            ("convolution_param",),
            bottoms=_at_least(1),
            tops=_at_least(1),
            equal=True,
        )
        for name in (
            "Convolution",
            "ConvolutionDepthwise",
            "Deconvolution",
            "DepthwiseConvolution",
        )
    ),
    LayerType("Embed", ("embed_param",)),
    LayerType("InnerProduct", ("inner_product_param",)),
    LayerType("LSTM", ("recurrent_param",), bottoms=Count(2, 5), tops=Count(1, 3)),
    LayerType("LSTMUnit", bottoms=_exactly(3), tops=_exactly(2)),
    LayerType("RNN", ("recurrent_param",), bottoms=Count(2, 4), tops=Count(1, 2)),
    LayerType("Scale", ("scale_param",), bottoms=Count(1, 2)),
)

_LOSSES = (
    LayerType("Accuracy", ("accuracy_param",), bottoms=_exactly(2), tops=Count(1, 2)),
    LayerType("ContrastiveLoss", ("contrastive_loss_param",), bottoms=_exactly(3)),
    LayerType("EuclideanLoss", ("loss_param",), bottoms=_exactly(2)),
    LayerType("HingeLoss", ("hinge_loss_param", "loss_param"), bottoms=_exactly(2)),
    LayerType(
        "InfogainLoss",
        ("infogain_loss_param", "loss_param"),
        bottoms=Count(2, 3),
        tops=Count(1, 2),
    ),
    LayerType("MultinomialLogisticLoss", ("loss_param",), bottoms=_exactly(2)),
    LayerType("SigmoidCrossEntropyLoss", ("loss_param",), bottoms=_exactly(2)),
    LayerType(
        "SoftmaxWithLoss", ("softmax_param", "loss_param"), bottoms=_exactly(2), tops=Count(1, 2)
    ),
)

_OTHERS = (
    LayerType("ArgMax", ("argmax_param",)),
    LayerType("ContinuationIndicator", ("continuation_indicator_param",), bottoms=_exactly(0)),
    LayerType("DetectionOutput", ("detection_output_param",), bottoms=Count(3, 4)),
    LayerType("DummyData", ("dummy_data_param",), bottoms=_exactly(0), tops=_at_least(1)),
    LayerType("Eltwise", ("eltwise_param",), bottoms=_at_least(2)),
    LayerType("Interp", ("interp_param",)),
    LayerType("LRN", ("lrn_param",)),
    LayerType("MVN", ("mvn_param",)),
    LayerType("Normalize", ("norm_param",)),
    LayerType("Parameter", ("parameter_param",), bottoms=_exactly(0)),
    LayerType("Pooling", ("pooling_param",), tops=Count(1, 2)),
    LayerType("PriorBox", ("prior_box_param",), bottoms=_exactly(2)),
    LayerType("Proposal", ("proposal_param",), bottoms=_exactly(3), tops=Count(1, 2)),
    LayerType("PSROIPooling", ("psroi_pooling_param",), bottoms=_exactly(2)),
    LayerType("Python", ("python_param",), bottoms=Count(0, _ANY), tops=Count(0, _ANY)),
    LayerType("Reduction", ("reduction_param",)),
    LayerType("ROIPooling", ("roi_pooling_param",), bottoms=_exactly(2)),
    LayerType("Softmax", ("softmax_param",)),
    LayerType("SPP", ("spp_param",)),
    LayerType("Upsample", ("upsample_param",), bottoms=Count(1, 2)),
)

TRAINING_TYPES = frozenset(
    "BoxAnnotatorOHEM DetectionEvaluate MultiBoxLoss SegAccuracy SmoothL1Loss SmoothL1LossOHEM "
    "SoftmaxWithLossOHEM".split()
)
"""Layer types of forks that only training and its tests need."""

PROPOSALS = ("rpn.proposal_layer", "ProposalLayer")
"""Module and class of the Python layer of Faster R-CNN that is part of nets for deployment."""

TRAINING_LAYERS = frozenset(
    {
        ("roi_data_layer.layer", "RoIDataLayer"),
        ("rpn.anchor_target_layer", "AnchorTargetLayer"),
        ("rpn.proposal_target_layer", "ProposalTargetLayer"),
    }
)
"""Those that are not."""


def python_layer(layer: LayerParameter) -> tuple[str, str]:
    """Module and class of a Python layer."""
    return layer.python_param.module, layer.python_param.layer


def has_own_scale(layer: LayerParameter) -> bool:
    """True if a BatchNorm layer has scale and bias blobs, as in NVIDIA's fork."""
    p = layer.batch_norm_param
    return p.scale_bias or p.HasField("scale_filler") or p.HasField("bias_filler")


def is_segnet_norm(layer: LayerParameter) -> bool:
    """True if a BN layer is SegNet's: scale and shift alone, by the names of its fields."""
    fields = ("scale_filler", "shift_filler", "bn_mode")
    return any(layer.bn_param.HasField(name) for name in fields)


def count_problem(layer: LayerParameter, bottoms: int, tops: int) -> str | None:
    """What is wrong with the number of bottoms or tops of a layer of a known type, or None."""
    type_ = layer_types()[layer.type]
    wanted_bottoms, wanted_tops = _counts(type_, layer)
    if bottoms not in wanted_bottoms:
        return f"found {bottoms} bottoms, expected {wanted_bottoms}"
    if tops not in wanted_tops:
        return f"found {tops} tops, expected {wanted_tops}"
    if type_.name == "Filter" and bottoms != tops + 1:
        return f"found {bottoms} bottoms and {tops} tops, expected one bottom more"
    if type_.equal and bottoms != tops:
        return f"found {bottoms} bottoms and {tops} tops, expected as many of each"
    return None


def _counts(type_: LayerType, layer: LayerParameter) -> tuple[Count, Count]:
    """The numbers of bottoms and tops, which depend on parameters for some types."""
    if type_.name in HIDDEN_STATES:
        hidden = exposed_states(layer)
        return Count(2 + hidden, 3 + hidden), _exactly(1 + hidden)
    if type_.name == "Pooling" and layer.pooling_param.pool != PoolingParameter.MAX:
        return type_.bottoms, ONE
    if type_.name == "Python" and python_layer(layer) == PROPOSALS:
        return layer_types()["Proposal"].bottoms, layer_types()["Proposal"].tops
    return type_.bottoms, type_.tops


HIDDEN_STATES = {"LSTM": 2, "RNN": 1}
"""The number of states of the recurrent layer types."""


def exposed_states(layer: LayerParameter) -> int:
    """How many states of a recurrent layer are bottoms and tops."""
    return HIDDEN_STATES[layer.type] if layer.recurrent_param.expose_hidden else 0


def has_static_input(layer: LayerParameter, bottoms: int) -> bool:
    """True if a recurrent layer has a bottom that is the same in each step."""
    return bottoms > 2 + exposed_states(layer)


def blob_count(layer: LayerParameter, bottoms: int) -> int:
    """The number of parameter blobs of a layer of a known type."""
    match layer.type:
        case "BatchNorm":
            return 3 + 2 * has_own_scale(layer)
        case "BN":
            return 2 if is_segnet_norm(layer) else 4
        case "Bias":
            return int(bottoms == 1)
        case "Convolution" | "ConvolutionDepthwise" | "Deconvolution" | "DepthwiseConvolution":
            return 1 + layer.convolution_param.bias_term
        case "Embed":
            return 1 + layer.embed_param.bias_term
        case "InnerProduct":
            return 1 + layer.inner_product_param.bias_term
        case "LSTM":
            return 3 + has_static_input(layer, bottoms)
        case "RNN":
            return 5 + has_static_input(layer, bottoms)
        case "Normalize" | "Parameter" | "PReLU":
            return 1
        case "Scale":
            return int(bottoms == 1) + layer.scale_param.bias_term
        case _:
            return 0
