"""
Old nets as new ones: V0 layers become V1 layers, these become layers, inputs become Input layers.

The upgrades are those that Caffe makes when it reads a net.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowerdeck.dialects.caffe.caffe_pb2 import (
    LayerParameter,
    NetParameter,
    NetState,
    NetStateRule,
    ParamSpec,
    Phase,
    V0LayerParameter,
    V1LayerParameter,
)
from lowerdeck.frontends.errors import Problem

_V1_TYPES: Mapping[int, str] = {
    V1LayerParameter.NONE: "",
    V1LayerParameter.ABSVAL: "AbsVal",
    V1LayerParameter.ACCURACY: "Accuracy",
    V1LayerParameter.ARGMAX: "ArgMax",
    V1LayerParameter.BNLL: "BNLL",
    V1LayerParameter.CONCAT: "Concat",
    V1LayerParameter.CONTRASTIVE_LOSS: "ContrastiveLoss",
    V1LayerParameter.CONVOLUTION: "Convolution",
    V1LayerParameter.DATA: "Data",
    V1LayerParameter.DECONVOLUTION: "Deconvolution",
    V1LayerParameter.DROPOUT: "Dropout",
    V1LayerParameter.DUMMY_DATA: "DummyData",
    V1LayerParameter.ELTWISE: "Eltwise",
    V1LayerParameter.EUCLIDEAN_LOSS: "EuclideanLoss",
    V1LayerParameter.EXP: "Exp",
    V1LayerParameter.FLATTEN: "Flatten",
    V1LayerParameter.HDF5_DATA: "HDF5Data",
    V1LayerParameter.HDF5_OUTPUT: "HDF5Output",
    V1LayerParameter.HINGE_LOSS: "HingeLoss",
    V1LayerParameter.IM2COL: "Im2col",
    V1LayerParameter.IMAGE_DATA: "ImageData",
    V1LayerParameter.INFOGAIN_LOSS: "InfogainLoss",
    V1LayerParameter.INNER_PRODUCT: "InnerProduct",
    V1LayerParameter.LRN: "LRN",
    V1LayerParameter.MEMORY_DATA: "MemoryData",
    V1LayerParameter.MULTINOMIAL_LOGISTIC_LOSS: "MultinomialLogisticLoss",
    V1LayerParameter.MVN: "MVN",
    V1LayerParameter.POOLING: "Pooling",
    V1LayerParameter.POWER: "Power",
    V1LayerParameter.RELU: "ReLU",
    V1LayerParameter.SIGMOID: "Sigmoid",
    V1LayerParameter.SIGMOID_CROSS_ENTROPY_LOSS: "SigmoidCrossEntropyLoss",
    V1LayerParameter.SILENCE: "Silence",
    V1LayerParameter.SLICE: "Slice",
    V1LayerParameter.SOFTMAX: "Softmax",
    V1LayerParameter.SOFTMAX_LOSS: "SoftmaxWithLoss",
    V1LayerParameter.SPLIT: "Split",
    V1LayerParameter.TANH: "TanH",
    V1LayerParameter.THRESHOLD: "Threshold",
    V1LayerParameter.WINDOW_DATA: "WindowData",
}

_V0_TYPES: Mapping[str, tuple[V1LayerParameter.LayerType, str]] = {
    "accuracy": (V1LayerParameter.ACCURACY, ""),
    "bnll": (V1LayerParameter.BNLL, ""),
    "concat": (V1LayerParameter.CONCAT, "concat_param"),
    "conv": (V1LayerParameter.CONVOLUTION, "convolution_param"),
    "data": (V1LayerParameter.DATA, "data_param"),
    "dropout": (V1LayerParameter.DROPOUT, "dropout_param"),
    "euclidean_loss": (V1LayerParameter.EUCLIDEAN_LOSS, ""),
    "flatten": (V1LayerParameter.FLATTEN, ""),
    "hdf5_data": (V1LayerParameter.HDF5_DATA, "hdf5_data_param"),
    "hdf5_output": (V1LayerParameter.HDF5_OUTPUT, "hdf5_output_param"),
    "im2col": (V1LayerParameter.IM2COL, ""),
    "images": (V1LayerParameter.IMAGE_DATA, "image_data_param"),
    "infogain_loss": (V1LayerParameter.INFOGAIN_LOSS, "infogain_loss_param"),
    "innerproduct": (V1LayerParameter.INNER_PRODUCT, "inner_product_param"),
    "lrn": (V1LayerParameter.LRN, "lrn_param"),
    "multinomial_logistic_loss": (V1LayerParameter.MULTINOMIAL_LOGISTIC_LOSS, ""),
    "pool": (V1LayerParameter.POOLING, "pooling_param"),
    "relu": (V1LayerParameter.RELU, ""),
    "sigmoid": (V1LayerParameter.SIGMOID, ""),
    "softmax": (V1LayerParameter.SOFTMAX, ""),
    "softmax_loss": (V1LayerParameter.SOFTMAX_LOSS, ""),
    "split": (V1LayerParameter.SPLIT, ""),
    "tanh": (V1LayerParameter.TANH, ""),
    "window_data": (V1LayerParameter.WINDOW_DATA, "window_data_param"),
}
"""The types of V0 layers, and the V1 message that their fields move to."""

_V0_FIELDS: Mapping[str, str] = {
    "biasterm": "bias_term",
    "kernelsize": "kernel_size",
    "batchsize": "batch_size",
    "shuffle_images": "shuffle",
    "det_fg_threshold": "fg_threshold",
    "det_bg_threshold": "bg_threshold",
    "det_fg_fraction": "fg_fraction",
    "det_context_pad": "context_pad",
    "det_crop_mode": "crop_mode",
}
"""Fields of V0 layers that have another name in V1 messages."""

_TRANSFORM: Mapping[str, str] = {
    "scale": "scale",
    "meanfile": "mean_file",
    "cropsize": "crop_size",
    "mirror": "mirror",
}
_COMMON = frozenset({"name", "type", "blobs", "blobs_lr", "weight_decay", "hdf5_output_param"})

_DATA_MESSAGES: Mapping[int, str] = {
    V1LayerParameter.DATA: "data_param",
    V1LayerParameter.IMAGE_DATA: "image_data_param",
    V1LayerParameter.WINDOW_DATA: "window_data_param",
}


class Upgrade:
    """The upgrade of one net; `problems` lists what prevents it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def _report(self, node: str, op: str, message: str) -> None:
        self.problems.append(Problem(self.file, node, op, message))

    def layers(self, net: NetParameter) -> list[LayerParameter]:
        """All layers of a net as layers of today, its inputs as Input layers in front."""
        if net.layers and net.layer:
            self._report("", "", "found both 'layers' and 'layer' fields, expected one of them")
        layers = [*self._inputs(net), *net.layer]
        for layer in self._without_padding(net.layers):
            layers.append(self._from_v1(self._from_v0(layer)))
        return layers

    # Inputs

    def _inputs(self, net: NetParameter) -> list[LayerParameter]:
        names, shapes, dims = list(net.input), net.input_shape, list(net.input_dim)
        if not names:
            return []
        if shapes and dims:
            self._report("", "", "found both 'input_shape' and 'input_dim', expected one of them")
            return []
        if dims and len(dims) != 4 * len(names):
            self._report("", "", f"found {len(dims)} input_dim, expected {4 * len(names)}")
            return []
        if shapes and len(shapes) != len(names):
            self._report("", "", f"found {len(shapes)} input_shape, expected {len(names)}")
            return []
        layer = LayerParameter(name="input", type="Input", top=names)
        for index in range(len(names)):
            if shapes:
                layer.input_param.shape.add().CopyFrom(shapes[index])
            elif dims:
                layer.input_param.shape.add(dim=dims[4 * index : 4 * index + 4])
        return [layer]

    # V0 to V1

    def _without_padding(self, layers: Iterable[V1LayerParameter]) -> list[V1LayerParameter]:
        """The layers without V0 padding layers, whose padding the next layer takes over."""
        kept: list[V1LayerParameter] = []
        paddings: dict[str, V1LayerParameter] = {}
        for original in layers:
            if original.layer.type == "padding":
                paddings.update((top, original) for top in original.top)
                continue
            layer = V1LayerParameter()
            layer.CopyFrom(original)
            for index, name in enumerate(original.bottom):
                if (padding := paddings.get(name)) is None:
                    continue
                if layer.layer.type not in ("conv", "pool") or layer.layer.pad:
                    self._report(
                        layer.layer.name,
                        layer.layer.type,
                        "a padding layer is before it, expected a conv or pool without padding",
                    )
                elif len(padding.bottom) == 1:
                    layer.bottom[index] = padding.bottom[0]
                    layer.layer.pad = padding.layer.pad
            for name in layer.top:
                paddings.pop(name, None)
            kept.append(layer)
        return kept

    def _from_v0(self, layer: V1LayerParameter) -> V1LayerParameter:
        """The layer with the fields of its V0 layer, if it has one, in V1 messages."""
        if not layer.HasField("layer"):
            return layer
        old = layer.layer
        new = V1LayerParameter(name=old.name, bottom=layer.bottom, top=layer.top)
        if old.type not in _V0_TYPES:
            self._report(old.name, old.type, "this V0 layer type is not known")
            return new
        new.type, message = _V0_TYPES[old.type]
        new.blobs.extend(old.blobs)
        new.blobs_lr.extend(old.blobs_lr)
        new.weight_decay.extend(old.weight_decay)
        if old.HasField("hdf5_output_param"):
            new.hdf5_output_param.CopyFrom(old.hdf5_output_param)
        for field, _ in old.ListFields():
            if field.name not in _COMMON and not self._move(old, field.name, new, message):
                self._report(old.name, old.type, f"a V0 layer of this type has no '{field.name}'")
        return new

    def _move(self, old: V0LayerParameter, name: str, new: V1LayerParameter, message: str) -> bool:
        """Copy a field of a V0 layer to the V1 message; False if it does not belong there."""
        if new.type in _DATA_MESSAGES and name in _TRANSFORM:
            setattr(new.transform_param, _TRANSFORM[name], getattr(old, name))
            return True
        target = getattr(new, message) if message else None
        renamed = _V0_FIELDS.get(name, name)
        if target is None or renamed not in target.DESCRIPTOR.fields_by_name:
            return False
        value = getattr(old, name)
        field = target.DESCRIPTOR.fields_by_name[renamed]
        if field.is_repeated:
            getattr(target, renamed).append(value)
        elif field.message_type is not None:
            getattr(target, renamed).CopyFrom(value)
        else:
            setattr(target, renamed, value)
        return True

    # V1 to layers of today

    def _from_v1(self, old: V1LayerParameter) -> LayerParameter:
        new = LayerParameter(
            name=old.name,
            type=_V1_TYPES[old.type],
            bottom=old.bottom,
            top=old.top,
            loss_weight=old.loss_weight,
        )
        new.include.extend(old.include)
        new.exclude.extend(old.exclude)
        new.blobs.extend(old.blobs)
        for index, name in enumerate(old.param):
            _param(new, index).name = name
        for index, mode in enumerate(old.blob_share_mode):
            setattr(_param(new, index), "share_mode", int(mode))
        for index, factor in enumerate(old.blobs_lr):
            _param(new, index).lr_mult = factor
        for index, factor in enumerate(old.weight_decay):
            _param(new, index).decay_mult = factor
        for field, value in old.ListFields():
            if field.name.endswith("_param"):
                getattr(new, field.name).CopyFrom(value)
        _move_transform(old.type, new)
        return new


def _param(layer: LayerParameter, index: int) -> ParamSpec:
    while len(layer.param) <= index:
        layer.param.add()
    return layer.param[index]


def _move_transform(type_: int, layer: LayerParameter) -> None:
    """Preprocessing that data messages once held belongs to `transform_param`."""
    if type_ not in _DATA_MESSAGES:
        return
    data = getattr(layer, _DATA_MESSAGES[type_])
    for name in _TRANSFORM.values():
        if data.HasField(name):
            setattr(layer.transform_param, name, getattr(data, name))
            data.ClearField(name)


# What is part of a net for tests


def is_included(layer: LayerParameter, state: NetState) -> bool:
    """True if a layer is part of the net in this state; it has rules of at most one kind."""
    if layer.include:
        return any(_meets(state, rule) for rule in layer.include)
    return not any(_meets(state, rule) for rule in layer.exclude)


def _meets(state: NetState, rule: NetStateRule) -> bool:
    if rule.HasField("phase") and rule.phase != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    return set(rule.stage) <= set(state.stage) and set(rule.not_stage).isdisjoint(state.stage)


def state_for_tests(net: NetParameter) -> NetState:
    """
    The state of the net: the stages are those that it gives itself. Its phase and level are not:
    Caffe replaces them with those that a net is loaded for, where the level is 0.
    """
    return NetState(phase=Phase.TEST, stage=net.state.stage)
