"""A module of the caffe dialect as the two files of a net: its layers, and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import IO

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from lowerdeck.dialects.blob import Blob
from lowerdeck.dialects.caffe.caffe_pb2 import BlobShape, InputParameter, LayerParameter
from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.caffe.parameters import is_repeated
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import given_name, value_names
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.exporters.errors import ExportError
from lowerdeck.passes.machinery.provenance import describe

_IN_PLACE = frozenset(
    "BNLL BatchNorm Bias Clip Dropout ELU Exp Log PReLU Power ReLU ReLU6 Scale Sigmoid "
    "Swish TanH Threshold".split()
)
"""The layer types that compute their first bottom in place if they are told to; AbsVal does not."""

_SHARING = frozenset("Concat Flatten Reshape Slice Split".split())
"""The layer types whose top is the memory of their bottom, if there is one of each."""

_LARGEST = (1 << 31) - 1
"""Protobuf ends at 2 GB."""


class NetWriter:
    """
    The net of a function whose ops are layers and their weights.

    A layer that can computes in place: if nothing else reads its bottom, which is no input, its top
    has the same name. Other tops are named after their layers, and results have their own names. A
    layer that is called like the result it makes does not compute in place, because some readers of
    nets know blobs by the layers that make them first.
    """

    def __init__(self, function: FuncOp, name: str) -> None:
        block = function.body.block
        last = block.last_op
        self.name = name
        self.layers: list[tuple[LayerParameter, Sequence[ConstantOp]]] = []
        results = tuple(last.operands) if isinstance(last, ReturnOp) else ()
        self._ops = [op for op in block.ops if isinstance(op, CaffeOp)]
        for op in block.ops:
            if not isinstance(op, CaffeOp | ConstantOp | ReturnOp):
                raise ExportError(f"{describe(op)}: is no op of caffe; run convert-to-caffe")
        input_names = value_names(function.arg_attrs, len(block.args))
        result_names = value_names(function.res_attrs, len(results))
        self._names: dict[SSAValue, str] = dict(zip(block.args, input_names, strict=True))
        self._taken = {*input_names, *result_names}
        self._name_blobs(dict(zip(results, result_names, strict=True)))
        for argument, name in zip(block.args, input_names, strict=True):
            self.layers.append((_input(name, static_shape(argument) or ()), ()))
        for op in self._ops:
            self.layers.append((self._layer(op), _weights(op)))
        self._check_size()

    # Names

    def _name_blobs(self, results: dict[SSAValue, str]) -> None:
        """
        Names of all tops. What is computed in place is one blob, named after its last value if
        that is a result, else after the layer that makes it.
        """
        sources: dict[CaffeOp, SSAValue] = {}
        for op in reversed(self._ops):
            source = _overwritten(op)
            if source is None or results.get(op.results[0]) == _name(op):
                continue
            sources[op] = source
            if op.results[0] in results:
                results.setdefault(source, results[op.results[0]])
        for op in self._ops:
            for top in op.results:
                if (source := sources.get(op)) is not None:
                    self._names[top] = self._names[source]
                elif (name := results.get(top)) is not None:
                    self._names[top] = name
                else:
                    self._names[top] = self._fresh(_name(op))

    def _fresh(self, name: str) -> str:
        found, count = name, 1
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    # Layers

    def _layer(self, op: CaffeOp) -> LayerParameter:
        layer = LayerParameter(name=_name(op))
        layer.MergeFrom(op.layer())
        layer.bottom.extend(self._names[value] for value in op.bottoms)
        layer.top.extend(self._names[value] for value in op.results)
        return layer

    def _check_size(self) -> None:
        size = sum(_message_size(layer, weights) for layer, weights in self.layers)
        if size > _LARGEST:
            raise ExportError(
                f"the weights are {size} bytes, but a caffemodel ends at 2 GB; export ONNX"
            )

    # Files

    def write_text(self, file: IO[str]) -> None:
        """The prototxt: layers in order, the fields of each in the order of Caffe's definition."""
        file.write(f"# generated by lowerdeck\nname: {_quoted(self.name)}\n")
        for layer, _ in self.layers:
            file.write("layer {\n")
            file.writelines(f"  {line}\n" for line in _lines(layer))
            file.write("}\n")

    def write_weights(self, file: IO[bytes]) -> None:
        """The caffemodel: the same layers with their blobs."""
        file.write(_field(1, self.name.encode()))
        for layer, weights in self.layers:
            file.write(_tag(100) + _varint(_message_size(layer, weights)))
            file.write(layer.SerializeToString(deterministic=True))
            for constant in weights:
                shape, data = _shape_field(constant), constant.value.data
                head = shape + _tag(5) + _varint(data.size)
                file.write(_tag(7) + _varint(len(head) + data.size) + head)
                _write(file, data)


def _name(op: CaffeOp) -> str:
    """The name of a layer."""
    return given_name(op, op.op_type.lower())


def _overwritten(op: CaffeOp) -> SSAValue | None:
    """
    What a layer computes in place: the top of another layer, if nothing else reads its memory. The
    memory of inputs and constants, which are filled once, is not overwritten.
    """
    if op.op_type not in _IN_PLACE:
        return None
    value = op.bottoms[0]
    while value.has_one_use():
        owner = value.owner
        if not isinstance(owner, CaffeOp) or not owner.bottoms:
            return None
        if owner.op_type not in _SHARING or len(owner.bottoms) + len(owner.results) > 2:
            return None if owner.op_type == "Split" else op.bottoms[0]
        value = owner.bottoms[0]
    return None


def _input(name: str, shape: Sequence[int]) -> LayerParameter:
    parameter = InputParameter(shape=[BlobShape(dim=shape)])
    return LayerParameter(name=name, type="Input", top=[name], input_param=parameter)


def _weights(op: CaffeOp) -> Sequence[ConstantOp]:
    constants = [value.owner for value in op.blobs]
    found = [each for each in constants if isinstance(each, ConstantOp)]
    if len(found) < len(constants):
        raise ExportError(f"{describe(op)}: a weight is no constant")
    return found


# Text


def _lines(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        for item in value if is_repeated(field) else (value,):
            if isinstance(item, BlobShape):
                sizes = " ".join(f"dim: {size}" for size in item.dim)
                yield f"{field.name} {{ {sizes} }}" if sizes else f"{field.name} {{}}"
            elif field.message_type is not None:
                yield f"{field.name} {{"
                yield from (f"  {line}" for line in _lines(item))
                yield "}"
            else:
                yield _text(field, item)


def _text(field: FieldDescriptor, item: object) -> str:
    out = StringIO()
    text_format.PrintField(field, item, out, as_utf8=True)
    return out.getvalue().rstrip("\n")


def _quoted(text: str) -> str:
    layer = LayerParameter(name=text)
    return next(_lines(layer)).removeprefix("name: ")


# Binary


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _tag(number: int) -> bytes:
    """That of a field with a length."""
    return _varint(number << 3 | 2)


def _field(number: int, data: bytes) -> bytes:
    return _tag(number) + _varint(len(data)) + data


def _shape_field(constant: ConstantOp) -> bytes:
    shape = static_shape(constant.result) or ()
    return _field(7, BlobShape(dim=shape).SerializeToString())


def _message_size(layer: LayerParameter, weights: Sequence[ConstantOp]) -> int:
    """The bytes of a layer with its blobs."""
    size = layer.ByteSize()
    for constant in weights:
        data = constant.value.data.size
        blob = len(_shape_field(constant)) + 1 + len(_varint(data)) + data
        size += 1 + len(_varint(blob)) + blob
    return size


def _write(file: IO[bytes], blob: Blob) -> None:
    """The bytes of a blob; one that repeats an element is not written out in memory."""
    if blob.element is None:
        file.write(blob.data)
        return
    run = blob.element * max((1 << 16) // len(blob.element), 1)
    for start in range(0, blob.size, len(run)):
        file.write(run[: blob.size - start])
