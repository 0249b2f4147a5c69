"""A builder of Caffe nets with generated weights, written as prototxt and caffemodel."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from numpy.typing import NDArray

from lowerdeck.dialects.caffe.caffe_pb2 import BlobShape, LayerParameter, NetParameter
from lowerdeck.dialects.caffe.shapes import Shape, layer_shapes
from lowerdeck.frontends.wire import bytes_field, text_field

Size = int | tuple[int, int]


class NetBuilder:
    """
    A net that grows layer by layer; every method adds one or a few and returns its top.

    A `plain` net avoids the layers that OpenCV does not read, with the same numbers: weights follow
    from names, and those of a substitute have the names of what it replaces.
    """

    def __init__(self, name: str, *, plain: bool = False) -> None:
        self.plain = plain
        self.parameter = NetParameter(name=name)
        self.shapes: dict[str, Shape] = {}
        self.blobs: dict[str, list[Shape]] = {}
        self.gains: dict[str, float] = {}
        self.aliases: dict[str, str] = {}

    @property
    def inputs(self) -> dict[str, Shape]:
        """The inputs and their shapes."""
        tops = [layer.top[0] for layer in self.parameter.layer if layer.type == "Input"]
        return {top: self.shapes[top] for top in tops}

    @property
    def outputs(self) -> list[str]:
        """The blobs that no layer reads."""
        read = {name for layer in self.parameter.layer for name in layer.bottom}
        return [name for name in self.shapes if name not in read]

    @property
    def parameters(self) -> int:
        """How many numbers the weights have, without the statistics' factors."""
        return sum(prod(shape) for shapes in self.blobs.values() for shape in shapes)

    # Layers

    def input(self, name: str, *shape: int) -> str:
        """An input of the net."""
        layer = self.parameter.layer.add(name=name, type="Input", top=[name])
        layer.input_param.shape.add(dim=shape)
        self.shapes[name] = shape
        return name

    def add(
        self,
        name: str,
        type_: str,
        *bottoms: str,
        tops: Sequence[str] = (),
        in_place: bool = False,
        gain: float = 1.0,
        alias: str = "",
        **parameters: Any,
    ) -> str:
        """A layer; its top has its name unless `tops` says others or it works in place."""
        names = list(tops) or [bottoms[0] if in_place else name]
        layer = LayerParameter(name=name, type=type_, bottom=bottoms, top=names, **parameters)
        found = layer_shapes(layer, [self.shapes[bottom] for bottom in bottoms], len(names))
        self.parameter.layer.append(layer)
        self.shapes.update(zip(names, found.tops, strict=True))
        if found.blobs:
            self.blobs[name] = found.blobs
            self.gains[name] = gain
            self.aliases[name] = alias
        return names[0]

    def relu(self, x: str, name: str = "") -> str:
        """A ReLU in place."""
        return self.add(name or f"{x}_relu", "ReLU", x, in_place=True)

    def conv(
        self,
        name: str,
        x: str,
        outputs: int,
        kernel: Size,
        stride: int = 1,
        pad: Size = 0,
        *,
        group: int = 1,
        dilation: int = 1,
        bias: bool = True,
        relu: bool = False,
        gain: float = 1.0,
        type_: str = "Convolution",
    ) -> str:
        """A convolution, with a ReLU in place if it is asked for."""
        p: dict[str, Any] = {"num_output": outputs, "bias_term": bias}
        if isinstance(kernel, tuple):
            p |= {"kernel_h": kernel[0], "kernel_w": kernel[1]}
        else:
            p["kernel_size"] = [kernel]
        if isinstance(pad, tuple):
            p |= {"pad_h": pad[0], "pad_w": pad[1]}
        elif pad:
            p["pad"] = [pad]
        if stride > 1:
            p["stride"] = [stride]
        if group > 1:
            p["group"] = group
        if dilation > 1:
            p["dilation"] = [dilation]
        top = self.add(name, type_, x, gain=gain, convolution_param=p)
        return self.relu(top) if relu else top

    def norm(
        self, x: str, relu: bool = True, name: str = "", in_place: bool = True, alias: str = ""
    ) -> str:
        """Batch normalization and scale, and a ReLU; with the numbers of the BN layer `alias`."""
        name, p = name or x, {"bias_term": True}
        y = self.add(
            f"{name}_bn", "BatchNorm", x, in_place=in_place, alias=alias, batch_norm_param={}
        )
        y = self.add(f"{name}_scale", "Scale", y, in_place=True, alias=alias, scale_param=p)
        return self.relu(y, f"{name}_relu") if relu else y

    def conv_norm(
        self,
        name: str,
        x: str,
        outputs: int,
        kernel: Size,
        *rest: Any,
        relu: bool = True,
        **options: Any,
    ) -> str:
        """A convolution without bias, and what `norm` adds."""
        return self.norm(self.conv(name, x, outputs, kernel, *rest, bias=False, **options), relu)

    def pool(
        self, name: str, x: str, kernel: int, stride: int = 1, pad: int = 0, *, pool: str = "MAX"
    ) -> str:
        """A pool; of whole planes if the kernel is 0."""
        p: dict[str, Any] = {"pool": pool}
        if kernel == 0:
            return self.add(name, "Pooling", x, pooling_param=p | {"global_pooling": True})
        p |= {"kernel_size": kernel, "stride": stride} | ({"pad": pad} if pad else {})
        return self.add(name, "Pooling", x, pooling_param=p)

    def dense(self, name: str, x: str, outputs: int, *, relu: bool = False) -> str:
        """An InnerProduct; with a ReLU, a Dropout behind it."""
        top = self.add(name, "InnerProduct", x, inner_product_param={"num_output": outputs})
        if not relu:
            return top
        self.relu(top)
        return self.add(f"{name}_drop", "Dropout", top, in_place=True)

    def concat(self, name: str, *parts: str, axis: int = 1) -> str:
        """The parts behind each other."""
        return self.add(name, "Concat", *parts, concat_param={"axis": axis})

    def sum(self, name: str, *parts: str, relu: bool = False, coeff: Sequence[float] = ()) -> str:
        """The sum of blobs."""
        p = {"coeff": coeff} if coeff else {}
        top = self.add(name, "Eltwise", *parts, eltwise_param=p)
        return self.relu(top) if relu else top

    def softmax(self, x: str, name: str = "prob") -> str:
        """Probabilities."""
        return self.add(name, "Softmax", x)

    # Weights

    def weights(self) -> Iterator[tuple[str, list[NDArray[np.float32]]]]:
        """The blobs of each layer that has some."""
        types = {layer.name: layer for layer in self.parameter.layer}
        for name, shapes in self.blobs.items():
            values = _values(types[name], self.aliases[name] or name, shapes, self.gains[name])
            yield name, values

    def write(self, folder: Path, name: str) -> Path:
        """`name.prototxt` with `name.caffemodel` beside it; the former."""
        path = folder / f"{name}.prototxt"
        path.write_text(text_format.MessageToString(self.parameter))
        with path.with_suffix(".caffemodel").open("wb") as file:
            for layer, blobs in self.weights():
                body = text_field(1, layer) + b"".join(_blob_field(blob) for blob in blobs)
                file.write(bytes_field(100, body))
        return path


def _blob_field(blob: NDArray[np.float32]) -> bytes:
    shape = BlobShape(dim=blob.shape).SerializeToString()
    return bytes_field(7, bytes_field(7, shape) + bytes_field(5, blob.tobytes()))


def _values(
    layer: LayerParameter, name: str, shapes: Sequence[Shape], gain: float
) -> list[NDArray[np.float32]]:
    """Weights that keep the spread of what they are multiplied with about as it is."""
    random = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(shape: Shape, spread: float, center: float = 0.0) -> NDArray[np.float32]:
        return random.standard_normal(shape, np.float32) * np.float32(spread) + np.float32(center)

    def positive(shape: Shape) -> NDArray[np.float32]:
        return random.uniform(0.7, 1.3, shape).astype(np.float32)

    if layer.name != name and layer.type in ("BatchNorm", "Scale"):
        stored = LayerParameter(name=name, type="BN")
        whole = _values(stored, name, [shapes[0]] * 4, gain)
        is_scale = layer.type == "Scale"
        return whole[:2] if is_scale else [*whole[2:], np.ones(1, np.float32)]
    match layer.type:
        case "BatchNorm":
            scale = [positive(shapes[0]), normal(shapes[0], 0.1)] if len(shapes) > 3 else []
            mean, variance = normal(shapes[0], 0.1), positive(shapes[1])
            return [mean, variance, np.ones(1, np.float32), *scale]
        case "BN":
            scale, shift = positive(shapes[0]), normal(shapes[1], 0.1)
            more = [normal(shapes[2], 0.1), positive(shapes[3])] if len(shapes) > 2 else []
            return [scale, shift, *more]
        case "Scale":
            return [positive(shapes[0]), *(normal(shape, 0.1) for shape in shapes[1:])]
        case "PReLU":
            return [normal(shapes[0], 0.05, 0.25)]
        case "Normalize":
            return [normal(shapes[0], 1.0, 20.0)]
        case "Deconvolution" if layer.convolution_param.group > 1:
            return [_bilinear(shapes[0])]
        case _:
            fan_in = prod(shapes[0][1:])
            weight = normal(shapes[0], gain * sqrt(2 / fan_in))
            return [weight, *(normal(shape, 0.05) for shape in shapes[1:])]


def _bilinear(shape: Shape) -> NDArray[np.float32]:
    """The interpolation that segmentation nets start from, for each channel."""
    size = shape[-1]
    factor = (size + 1) // 2
    center = factor - 1 if size % 2 else factor - 0.5
    line = 1 - np.abs(np.arange(size) - center) / factor
    return np.broadcast_to(line[:, None] * line, shape).astype(np.float32)
