"""Transformations that a net says of its data, as layers behind its inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from lowerdeck.dialects.caffe.caffe_pb2 import BlobProto, LayerParameter, TransformationParameter
from lowerdeck.dialects.caffe.layers import INPUT_TYPES
from lowerdeck.dialects.caffe.shapes import Shape
from lowerdeck.frontends.caffe.parse import parse_blob, parse_prototxt
from lowerdeck.frontends.caffe.upgrade import Upgrade
from lowerdeck.frontends.caffe.weights import blob_shape, blob_value
from lowerdeck.frontends.errors import FrontendError, Problem


def with_transformations(
    layers: Sequence[LayerParameter],
    names: Sequence[str],
    file: str,
    shapes: Mapping[str, Shape],
    problems: list[Problem],
) -> list[LayerParameter]:
    """
    The layers, and behind those whose first tops are inputs called `names` others that transform
    these tops in place as the layers' transform_param says: less the mean, cut to its middle,
    times the scale. What prevents it is added to `problems`.
    """
    left = list(names)
    result: list[LayerParameter] = []
    for layer in layers:
        result.append(layer)
        if layer.type in INPUT_TYPES and layer.top and layer.top[0] in left:
            left.remove(layer.top[0])
            try:
                result += _Transformation(layer, file, shapes).layers()
            except ValueError as error:
                problems.append(Problem(file, layer.name, layer.type, str(error)))
            except FrontendError as error:
                problems += error.problems
    for name in left:
        message = f"a transformation is asked for '{name}', which is not the first top of an input"
        problems.append(Problem(file, "", "", message))
    return result


def mean_files(path: str) -> list[str]:
    """The files with means that a net names, as far as they exist."""
    try:
        layers = Upgrade(path).layers(parse_prototxt(path))
    except FrontendError:
        return []
    named = [layer.transform_param.mean_file for layer in layers]
    return [found for name in named if name and os.path.isfile(found := _beside(path, name))]


def _beside(path: str, name: str) -> str:
    """A file that a net names: beside the net, or else where the name says."""
    beside = os.path.join(os.path.dirname(path), os.path.basename(name))
    return beside if os.path.isfile(beside) else name


class _Transformation:
    """The layers that transform one input."""

    def __init__(self, layer: LayerParameter, file: str, shapes: Mapping[str, Shape]) -> None:
        self.layer = layer
        self.file = file
        self.shape = _shape_of(layer, shapes)
        self.parameters: TransformationParameter = layer.transform_param

    def layers(self) -> Iterator[LayerParameter]:
        """The layers; ValueError if something is missing or does not fit."""
        p = self.parameters
        if not self.layer.HasField("transform_param"):
            raise ValueError("has no transform_param to apply")
        if p.mirror:
            raise ValueError("its transform_param mirrors at random; expected mirror: false")
        if p.force_color or p.force_gray:
            raise ValueError("its transform_param changes the channels, which only readers do")
        if len(self.shape) != 4:
            raise ValueError(f"'{self.layer.top[0]}' has not 4 dimensions; its shape is unknown")
        yield from self._mean()
        if p.crop_size:
            yield from self._crop(p.crop_size)
        if p.scale != 1:
            yield self._new("scale", "Power", power_param={"scale": p.scale})

    def _new(self, what: str, type_: str, **parameters: object) -> LayerParameter:
        """A layer that changes the input in place."""
        top = self.layer.top[0]
        name = f"{self.layer.name}/{what}"
        return LayerParameter(name=name, type=type_, bottom=[top], top=[top], **parameters)  # pyright: ignore[reportArgumentType]

    def _mean(self) -> Iterator[LayerParameter]:
        p, channels = self.parameters, self.shape[1]
        if p.mean_file and p.mean_value:
            raise ValueError("found both mean_file and mean_value, expected one of them")
        if p.mean_value:
            if len(p.mean_value) not in (1, channels):
                raise ValueError(f"found {len(p.mean_value)} mean values, expected 1 or {channels}")
            values = np.resize(np.array(p.mean_value, np.float32), channels)
            yield self._subtract(values, 1)
        elif p.mean_file:
            path = _beside(self.file, p.mean_file)
            blob = parse_blob(path)
            shape = blob_shape(blob)
            if shape[1:] != self.shape[1:] or shape[:1] != (1,):
                raise ValueError(
                    f"the mean in '{path}' has the shape {list(shape)}, expected "
                    f"{[1, *self.shape[1:]]}, as of the data before they are cut"
                )
            data = blob_value(blob, path, prod(shape)).data
            yield self._subtract(data.array(np.dtype(np.float32), shape[1:]), 3)

    def _subtract(self, mean: np.ndarray, axes: int) -> LayerParameter:
        blob = BlobProto(data=(-mean).ravel())
        blob.shape.dim.extend(mean.shape)
        return self._new("mean", "Bias", bias_param={"num_axes": axes}, blobs=[blob])

    def _crop(self, size: int) -> Iterator[LayerParameter]:
        """The middle of the images, as data are cut for tests."""
        height, width = self.shape[2:]
        if size > min(height, width):
            raise ValueError(f"crop_size {size} exceeds the data of {height} by {width}")
        like = f"{self.layer.name}/size"
        sizes = LayerParameter(name=like, type="DummyData", top=[like])
        sizes.dummy_data_param.shape.add(dim=[*self.shape[:2], size, size])
        yield sizes
        crop = self._new("crop", "Crop")
        crop.bottom.append(like)
        crop.crop_param.offset.extend([(height - size) // 2, (width - size) // 2])
        yield crop


def _shape_of(layer: LayerParameter, shapes: Mapping[str, Shape]) -> Shape:
    """The shape of the first top as the user gives it, or else the layer; () if it is unknown."""
    if (given := shapes.get(layer.top[0])) is not None:
        return given
    if layer.type == "Input" and layer.input_param.shape:
        return tuple(layer.input_param.shape[0].dim)
    p = layer.memory_data_param
    return (p.batch_size, p.channels, p.height, p.width) if layer.type == "MemoryData" else ()
