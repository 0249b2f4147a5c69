"""
Plans nets of the caffe dialect from core; the topics beside this file say how for each op.

A converter sees one op of core, whose results a layer or an output needs, and says by which layers
it is computed from which values of core. These layers are a plan: nothing is added to the module
until every op that is needed has one.

    @converts(SoftmaxOp)
    def _softmax(net: Net, op: SoftmaxOp) -> Blob:
        return net.layer("Softmax", [net.blob(op.input)], axis=op.axis.data)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.blob import Blob as Bytes
from lowerdeck.dialects.blob import BlobAttr, ElidedBlobError
from lowerdeck.dialects.caffe.caffe_pb2 import BlobShape, FillerParameter, LayerParameter
from lowerdeck.dialects.caffe.layers import layer_types
from lowerdeck.dialects.caffe.parameters import fields_of, is_repeated
from lowerdeck.dialects.caffe.shapes import Shape, ShapeError, layer_shapes
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.records import record
from lowerdeck.exporters.caffe.elements import Range
from lowerdeck.passes.legalize.legalizer import RefusalError, refuse
from lowerdeck.passes.machinery.values import uniform_value

Array: TypeAlias = NDArray[Any]

Fields: TypeAlias = dict[str, Any]
"""Fields of the parameter messages of a layer."""

DIALECTS: Mapping[str, frozenset[str]] = {
    "bvlc": frozenset(),
    "ssd": frozenset({"Normalize", "Permute", "ReLU6"}),
}
"""The forks of Caffe for which nets are written, and the layer types that they add."""

_FORK_LAYERS = frozenset[str]().union(*DIALECTS.values())


@record
class Weight:
    """A parameter blob: bytes that stay where they are, in a shape."""

    value: BlobAttr
    shape: Shape

    @staticmethod
    def of(array: Array) -> Weight:
        """The elements of an array, which is f32."""
        return Weight(BlobAttr(Bytes.of(array.astype(np.float32, copy=False))), array.shape)

    def reshaped(self, shape: Sequence[int]) -> Weight:
        """The same elements in another shape."""
        return Weight(self.value, tuple(shape))


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer that is planned; `suffix` tells it from others of its node."""

    parameter: LayerParameter
    bottoms: tuple[Blob, ...]
    weights: tuple[Weight, ...]
    tops: tuple[Shape, ...]
    suffix: str
    name: str | None = None
    """Its name, if it is not that of its node with the suffix."""
    origin: Operation | None = None
    """The op whose node gives the layer its name, if it is not the one that is converted."""

    @property
    def type(self) -> str:
        """The layer type."""
        return self.parameter.type


@dataclass(frozen=True, eq=False)
class Blob:
    """A value of the net: one of core, or a top of a layer."""

    shape: Shape
    value: SSAValue | None = None
    layer: Layer | None = None
    index: int = 0

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


class State(NamedTuple):
    """One of the steps of a recurrent layer."""

    states: Blob
    step: int


Plan: TypeAlias = "Blob | Sequence[Blob]"
"""What stands for the results of an op."""

Converter: TypeAlias = "Callable[[Net, Any], Plan]"
Formula: TypeAlias = "Callable[[Net, Any], Plan | None]"

CONVERTERS: dict[type[Operation], Converter] = {}
"""How an op is computed by layers, by class."""

FORMULAS: dict[type[Operation], list[Formula]] = {}
"""What an op may be the last op of that a layer computes as a whole, by class; tried before."""


def converts(*classes: type[Operation]) -> Callable[[Converter], Converter]:
    """Register the converter of some classes."""

    def register(converter: Converter) -> Converter:
        for cls in classes:
            CONVERTERS[cls] = converter
        return converter

    return register


def recognizes(*classes: type[Operation]) -> Callable[[Formula], Formula]:
    """Register a formula whose last op is of one of some classes; it gives None if it is not it."""

    def register(formula: Formula) -> Formula:
        for cls in classes:
            FORMULAS.setdefault(cls, []).append(formula)
        return formula

    return register


@dataclass
class Net:
    """What converters plan with."""

    dialect: str = "bvlc"
    """The fork whose layers there are: a key of `DIALECTS`."""
    floats: Mapping[SSAValue, Range] = field(default_factory=dict[SSAValue, Range])
    """The values of other elements than f32 that blobs hold, and their numbers."""
    needed: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """The values that the layers planned so far read, and those that are returned."""
    op: Operation | None = field(default=None, init=False)
    """The op that is converted."""
    states: dict[SSAValue, State | None] = field(
        default_factory=dict[SSAValue, "State | None"], init=False
    )
    """The states of recurrent layers planned so far; None where there is no such layer."""

    # Values of core

    def blob(self, value: SSAValue) -> Blob:
        """A value of core; a constant becomes a layer without bottoms."""
        shape = self.shape(value)
        self.require_floats(value)
        if not isinstance(value.owner, ConstantOp):
            return Blob(shape, value)
        if (number := uniform_value(value)) is not None:
            return self.filled(shape, float(number))
        array = None if element_type(value) == f32 else self.array(value)
        weight = self.weight(value, "") if array is None else Weight.of(array)
        size = BlobShape(dim=shape)
        return self.layer("Parameter", [], [weight], suffix="constant", shape=size)

    def require_floats(self, value: SSAValue) -> None:
        """Refuse a value that blobs do not hold."""
        if (element := element_type(value)) != f32 and value not in self.floats:
            refuse(f"elements of {element}", "f32, which is all that Caffe's blobs hold")

    def shape(self, value: SSAValue) -> Shape:
        """The shape of a value; refused if it is not all numbers."""
        shape = static_shape(value)
        if shape is None:
            dims = ", ".join(map(str, dims_of(value)))
            refuse(f"a value of shape [{dims}]", "numbers", "give the shapes with --input-shape")
        return shape

    def array(self, value: SSAValue) -> Array | None:
        """The elements of a constant; None if it is none."""
        try:
            return constant_array(value)
        except ElidedBlobError:
            refuse("a constant whose bytes were left out of the text", "its bytes")

    def weight(self, value: SSAValue, what: str) -> Weight:
        """A constant as it is; refused if it depends on data."""
        owner = value.owner
        if not isinstance(owner, ConstantOp):
            refuse(f"{what} that depends on data", "a constant")
        return Weight(owner.value, self.shape(value))

    # Layers

    def layers(
        self,
        type_: str,
        bottoms: Sequence[Blob],
        weights: Sequence[Weight] = (),
        *,
        tops: int = 1,
        suffix: str = "",
        name: str | None = None,
        origin: Operation | None = None,
        **parameters: Any,
    ) -> list[Blob]:
        """The tops of a layer with these fields of its parameters; None and empty are left out."""
        if not self.has(type_):
            forks = [name for name, types in DIALECTS.items() if type_ in types]
            choice = " or ".join(f"--dialect={name}" for name in forks)
            refuse(f"what needs a layer {type_}", "a layer of BVLC Caffe", f"choose {choice}")
        layer = LayerParameter(type=type_)
        for field_name, value in parameters.items():
            _set(layer, field_name, value)
        try:
            shapes = layer_shapes(layer, [bottom.shape for bottom in bottoms], tops)
        except ShapeError as error:
            raise RefusalError(f"found what {type_} does not take: {error}") from None
        expected, found = shapes.blobs, [weight.shape for weight in weights]
        assert expected == found, f"{type_}: weights {found}, expected {expected}"
        tops_ = tuple(shapes.tops)
        planned = Layer(layer, tuple(bottoms), tuple(weights), tops_, suffix, name, origin)
        return [Blob(shape, None, planned, index) for index, shape in enumerate(shapes.tops)]

    def layer(
        self,
        type_: str,
        bottoms: Sequence[Blob],
        weights: Sequence[Weight] = (),
        *,
        suffix: str = "",
        name: str | None = None,
        origin: Operation | None = None,
        **parameters: Any,
    ) -> Blob:
        """The only top of a layer."""
        names: Fields = {"suffix": suffix, "name": name, "origin": origin}
        return self.layers(type_, bottoms, weights, **names, **parameters)[0]

    def has(self, type_: str) -> bool:
        """True if the dialect has layers of a type."""
        return type_ not in _FORK_LAYERS or type_ in DIALECTS[self.dialect]

    # Layers that others need before or behind them

    def filled(self, shape: Sequence[int], value: float) -> Blob:
        """A blob of one number."""
        return self.layer(
            "DummyData",
            [],
            suffix="constant",
            shape=[BlobShape(dim=shape)],
            data_filler=[FillerParameter(type="constant", value=value)],
        )

    def reshaped(self, x: Blob, shape: Sequence[int], suffix: str = "reshape") -> Blob:
        """The elements of a blob in another shape; what stays in front is copied from it."""
        shape = tuple(shape)
        while x.layer is not None and x.layer.type in ("Flatten", "Reshape"):
            x = x.layer.bottoms[0]
        if shape == x.shape:
            return x
        if x.rank >= 2 and shape == (x.shape[0], prod(x.shape[1:])):
            return self.layer("Flatten", [x], suffix=suffix)
        kept = 0
        while kept < min(len(shape), x.rank) and shape[kept] == x.shape[kept] != 0:
            kept += 1
        dims = BlobShape(dim=[0] * kept + list(shape[kept:]))
        return self.layer("Reshape", [x], suffix=suffix, shape=dims)

    def cut(self, x: Blob, axis: int, start: int, size: int) -> Blob:
        """A range of an axis; the layers that follow silence the rest."""
        whole = x.shape[axis]
        if (start, size) == (0, whole):
            return x
        if size == 0:
            refuse("a part of no elements", "at least one")
        points = [point for point in (start, start + size) if 0 < point < whole]
        parts = self.layers(
            "Slice", [x], tops=len(points) + 1, suffix="slice", axis=axis, slice_point=points
        )
        return parts[1 if start else 0]

    def scaled(self, x: Blob, factor: float, shift: float = 0.0, suffix: str = "") -> Blob:
        """factor * x + shift"""
        return self.layer(
            "Power",
            [x],
            suffix=suffix,
            scale=None if factor == 1 else factor,
            shift=shift or None,
        )

    def tiled(self, x: Blob, shape: Sequence[int]) -> Blob:
        """A blob repeated along its dimensions of one, as numpy broadcasts it to a shape."""
        x = self.reshaped(x, [1] * (len(shape) - x.rank) + list(x.shape))
        for axis, size in enumerate(shape):
            if x.shape[axis] != size:
                x = self.layer("Tile", [x], suffix="tile", axis=axis, tiles=size)
        return x


def _set(layer: LayerParameter, name: str, value: Any) -> None:
    """Set a field of the parameter message of a layer that has it."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return
    for message_name in layer_types()[layer.type].parameters:
        message: Message = getattr(layer, message_name)
        if (descriptor := fields_of(type(message)).get(name)) is None:
            continue
        if is_repeated(descriptor):
            getattr(message, name).extend(value)
        elif descriptor.message_type is not None:
            getattr(message, name).CopyFrom(value)
        else:
            setattr(message, name, value)
        message.SetInParent()
        return
    raise KeyError(f"{layer.type} has no field '{name}'")


def layers_of(blobs: Sequence[Blob]) -> Iterator[Layer]:
    """All layers that blobs are made by, each after those that it reads."""
    seen: set[Layer] = set()
    stack: list[tuple[Layer, bool]] = [(b.layer, False) for b in reversed(blobs) if b.layer]
    while stack:
        layer, is_ready = stack.pop()
        if is_ready:
            yield layer
        elif layer not in seen:
            seen.add(layer)
            stack.append((layer, True))
            stack.extend((b.layer, False) for b in reversed(layer.bottoms) if b.layer)
