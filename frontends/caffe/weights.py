"""The values of parameter blobs: found by layer name, checked, and shared by parameter name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.caffe.caffe_pb2 import (
    BlobProto,
    LayerParameter,
    ParamSpec,
    WeightsParameter,
)
from lowerdeck.dialects.caffe.shapes import Shape, strip_ones
from lowerdeck.dialects.records import record
from lowerdeck.frontends.caffe.hdf5 import read_layers
from lowerdeck.frontends.caffe.parse import data_ranges, is_hdf5, parse_weights
from lowerdeck.frontends.errors import FrontendError, Problem

SUFFIX = ".caffemodel"
_SUFFIXES = (SUFFIX, f"{SUFFIX}.h5")


def find_weights(prototxt: str) -> str | None:
    """The caffemodel beside a prototxt: of the same name, or the only one there."""
    stem, _ = os.path.splitext(prototxt)
    for suffix in _SUFFIXES:
        if os.path.isfile(stem + suffix):
            return stem + suffix
    folder = os.path.dirname(prototxt) or "."
    found = sorted(name for name in os.listdir(folder) if name.lower().endswith(_SUFFIXES))
    return os.path.join(os.path.dirname(prototxt), found[0]) if len(found) == 1 else None


@record
class Slot:
    """One parameter blob of a layer of the net."""

    layer: LayerParameter
    index: int
    shape: Shape

    @property
    def param(self) -> ParamSpec | None:
        """Its settings in the net, if there are any."""
        return self.layer.param[self.index] if self.index < len(self.layer.param) else None

    @property
    def shared_name(self) -> str:
        """The name under which layers share it; empty if it is the layer's own."""
        return "" if self.param is None else self.param.name


class Weights:
    """
    The values of all parameter blobs of a net.

    `add_layer` announces the blobs of each layer in the order of the net, `load` reads a
    caffemodel; then `value` has the bytes of each blob. `problems` lists what does not fit.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._slots: dict[str, list[Slot]] = {}
        self._owners: dict[str, Slot] = {}
        self._values: dict[tuple[int, int], BlobAttr] = {}

    @property
    def is_needed(self) -> bool:
        """True if a blob has no value yet."""
        return any(self.value(slot) is None for slot in self._all_slots())

    def _all_slots(self) -> Iterator[Slot]:
        for slots in self._slots.values():
            yield from slots

    def _report(self, layer: LayerParameter, message: str) -> None:
        self.problems.append(Problem(self.file, layer.name, layer.type, message))

    def add_layer(self, layer: LayerParameter, shapes: Sequence[Shape]) -> list[Slot]:
        """The blobs of a layer of the net, with values if the net itself has them."""
        slots = [Slot(layer, index, shape) for index, shape in enumerate(shapes)]
        for slot in slots:
            self._share(slot)
        if layer.blobs and self._is_matching(layer, layer.blobs, slots):
            for slot, blob in zip(slots, layer.blobs, strict=True):
                if self._key(slot) not in self._values:
                    self._assign(slot, blob, self.file)
        # Of two layers with one name, weights go to the first.
        if slots and layer.name in self._slots:
            self._report(layer, "another layer has this name, so that its weights are not known")
        elif slots:
            self._slots[layer.name] = slots
        return slots

    def _share(self, slot: Slot) -> None:
        if not slot.shared_name:
            return
        owner = self._owners.setdefault(slot.shared_name, slot)
        is_permissive = slot.param is not None and slot.param.share_mode == ParamSpec.PERMISSIVE
        fits = prod(slot.shape) == prod(owner.shape) if is_permissive else slot.shape == owner.shape
        if not fits:
            self._report(
                slot.layer,
                f"shares '{slot.shared_name}' of the shape {list(owner.shape)} with layer "
                f"'{owner.layer.name}', expected the shape {list(slot.shape)}",
            )

    def _key(self, slot: Slot) -> tuple[int, int]:
        owner = self._owners.get(slot.shared_name, slot)
        return id(owner.layer), owner.index

    def value(self, slot: Slot) -> BlobAttr | None:
        """The bytes of a blob, f32; None if no file has them."""
        return self._values.get(self._key(slot))

    def load(self, path: str) -> None:
        """Read a caffemodel; what it has for other layers is left aside."""
        if is_hdf5(path):
            self._load_hdf5(path)
            return
        for name, blobs in _named_blobs(parse_weights(path)):
            if (slots := self._slots.get(name)) is None:
                continue
            if self._is_matching(slots[0].layer, blobs, slots):
                for slot, blob in zip(slots, blobs, strict=True):
                    self._assign(slot, blob, path)

    def _load_hdf5(self, path: str) -> None:
        """Blobs that have an owner elsewhere may be missing: only owners are saved."""
        for name, arrays in read_layers(path, self._slots).items():
            slots = self._slots[name]
            if extra := sorted(arrays.keys() - {slot.index for slot in slots}):
                self._report(slots[0].layer, f"the weights have a blob {extra[0]} that it has not")
            for slot in slots:
                if (array := arrays.get(slot.index)) is None:
                    continue
                if self._fits(slot, array.shape):
                    with np.errstate(over="ignore"):
                        blob = BlobAttr(Blob.of(np.ascontiguousarray(array, np.float32)))
                    self._values[self._key(slot)] = blob

    def _is_matching(
        self, layer: LayerParameter, blobs: Sequence[BlobProto], slots: Sequence[Slot]
    ) -> bool:
        if len(blobs) == len(slots):
            return True
        message = f"the weights have {len(blobs)} blobs for it, expected {len(slots)}"
        if len(blobs) < len(slots):
            missing = slots[len(blobs)]
            message += f"; blob {missing.index} of the shape {list(missing.shape)} is missing"
        self._report(layer, message)
        return False

    def _assign(self, slot: Slot, blob: BlobProto, path: str) -> None:
        if not self._fits(slot, blob_shape(blob)):
            return
        try:
            self._values[self._key(slot)] = blob_value(blob, path, prod(slot.shape))
        except ValueError as error:
            self._report(slot.layer, f"blob {slot.index} of its weights {error}")

    def _fits(self, slot: Slot, shape: Shape) -> bool:
        fits = strip_ones(shape) == strip_ones(slot.shape)
        if not fits:
            self._report(
                slot.layer,
                f"blob {slot.index} of its weights has the shape {list(shape)}, "
                f"expected {list(slot.shape)}",
            )
        return fits

    def report_missing(self, path: str | None) -> None:
        """Report the blobs that have no value after all files were read."""
        missing = {slot.layer.name: slot for slot in self._all_slots() if self.value(slot) is None}
        if path is None and missing:
            layers = [f"'{slot.layer.name}' ({slot.layer.type})" for slot in missing.values()]
            more = f" and {len(layers) - 10} more" if len(layers) > 10 else ""
            raise FrontendError.of_file(
                self.file,
                f"no weights for the layers {', '.join(layers[:10])}{more}; give the "
                f"{SUFFIX} file, or put it beside the net under the same name",
            )
        reported = {problem.node for problem in self.problems}
        for name, slot in missing.items():
            if name not in reported:
                others = (self.value(other) for other in self._slots[name])
                is_alone = any(value is not None for value in others)
                what = (
                    f"blob {slot.index} of the shape {list(slot.shape)}" if is_alone else "weights"
                )
                self._report(slot.layer, f"'{path}' has no {what} for it")


def _named_blobs(net: WeightsParameter) -> Iterator[tuple[str, Sequence[BlobProto]]]:
    for old in net.layers:
        if old.HasField("layer"):
            yield old.layer.name, old.layer.blobs
        else:
            yield old.name, old.blobs
    for layer in net.layer:
        yield layer.name, layer.blobs


def blob_shape(blob: BlobProto) -> Shape:
    """The shape of a blob, which old files give as four numbers."""
    if any(blob.HasField(name) for name in ("num", "channels", "height", "width")):
        return blob.num, blob.channels, blob.height, blob.width
    return tuple(blob.shape.dim)


_RAW_TYPES = {
    BlobProto.DOUBLE: np.dtype(np.float64),
    BlobProto.FLOAT: np.dtype(np.float32),
    BlobProto.FLOAT16: np.dtype(np.float16),
}


def blob_value(blob: BlobProto, path: str, count: int) -> BlobAttr:
    """The bytes of a blob as f32; ValueError if there are not `count` numbers."""
    floats, doubles, raw = data_ranges(blob)
    if raw is not None or blob.raw_data:
        return _raw_value(blob, raw, path, count)
    if doubles is not None or blob.double_data:
        if doubles is not None:
            _check_count(doubles[1] / 8, count)
            values = Blob.map(path, *doubles).array(np.dtype(np.float64), (count,))
        else:
            _check_count(len(blob.double_data), count)
            values = np.array(blob.double_data, np.float64)
        return _rounded(values)
    if floats is not None:
        _check_count(floats[1] / 4, count)
        return BlobAttr(Blob.map(path, *floats))
    _check_count(len(blob.data), count)
    return BlobAttr(Blob.of(np.array(blob.data, np.float32)))


def _raw_value(blob: BlobProto, range_: tuple[int, int] | None, path: str, count: int) -> BlobAttr:
    """Data as bytes of one of several types, as NVIDIA's fork writes them."""
    if (dtype := _RAW_TYPES.get(blob.raw_data_type)) is None:
        name = BlobProto.Type.Name(blob.raw_data_type)
        raise ValueError(f"has data of the type {name}, expected floats")
    size = len(blob.raw_data) if range_ is None else range_[1]
    _check_count(size / dtype.itemsize, count)
    if range_ is None:
        return _rounded(np.frombuffer(blob.raw_data, dtype))
    mapped = Blob.map(path, *range_)
    return BlobAttr(mapped) if dtype == np.float32 else _rounded(mapped.array(dtype, (count,)))


def _rounded(values: NDArray[Any]) -> BlobAttr:
    with np.errstate(over="ignore"):
        return BlobAttr(Blob.of(values.astype(np.float32)))


def _check_count(found: float, expected: int) -> None:
    if found != expected:
        raise ValueError(f"has {found:g} numbers, expected {expected}")
