"""From a file to a ModelProto without its weights, and from tensors to constants."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.onnx.convert import opset_of
from lowerdeck.dialects.onnx.ops import latest_opset
from lowerdeck.dialects.onnx.tensors import (
    TensorAttr,
    is_packed,
    raw_size,
    raw_tensor,
    tensor_from_proto,
    tensor_type,
)
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.messages import is_all_text
from lowerdeck.frontends.wire import (
    Format,
    Holder,
    ScanError,
    bytes_field,
    detach_file,
    number_field,
    text_field,
)

FIRST_IR_WITH_OPSETS = 3

_SELF_KEY = "lowerdeck.self"
"""The key of the external-data entry that holds `offset,size` in the model file itself."""

_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14


def _external(offset: int, size: int) -> bytes:
    """External data that is in the model file itself, as fields of a TensorProto."""
    entry = text_field(1, _SELF_KEY) + text_field(2, f"{offset},{size}")
    return bytes_field(_EXTERNAL_DATA, entry) + number_field(_DATA_LOCATION, TensorProto.EXTERNAL)


FORMAT = Format(
    root="model",
    nested={
        "model": {7: "graph", 25: "function"},
        "graph": {1: "node", 5: "tensor"},
        "function": {7: "node"},
        "node": {5: "attribute"},
        "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    },
    holders={
        "tensor": Holder(
            {_RAW_DATA: _external},
            unless=frozenset({_EXTERNAL_DATA}),
            dropped=frozenset({_DATA_LOCATION}),
        )
    },
)
"""The locations of large tensors in a ModelProto."""

_REMARKS = frozenset({"doc_string", "metadata_props", "producer_name", "producer_version"})
"""Fields that the import does not read."""


def parse_model(path: str) -> onnx.ModelProto:
    """The model at `path`; its large tensors refer to the file. FrontendError if not readable."""
    try:
        model = _parse(path)
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    except (ScanError, DecodeError) as error:
        message = f"is not a valid onnx model, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None
    check_model(path, model)
    return model


def _parse(path: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.ParseFromString(detach_file(path, FORMAT))
    return model


def check_model(file: str, model: onnx.ModelProto) -> None:
    """FrontendError unless names are text and this onnx version supports the model's versions."""
    if not is_all_text(model, but=_REMARKS):
        message = "is damaged: a name in it is not UTF-8 text; get a fresh copy"
        raise FrontendError.of_file(file, message)
    _check_versions(file, model)


def _check_versions(file: str, model: onnx.ModelProto) -> None:
    problems: list[str] = []
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        problems.append(
            f"found IR version {model.ir_version}, expected 1 to {onnx.IR_VERSION}; "
            f"export the model again for onnx {onnx.__version__} or older"
        )
    if not model.HasField("graph"):
        problems.append("it holds no graph; is it an onnx model?")
    opset = model_opset(model)
    if not opset:
        problems.append("it imports no opset, expected at least one")
    problems += _opset_problems(opset)
    for function in model.functions:
        problems += [
            f"function '{function.name}': {problem}"
            for problem in _opset_problems(opset_of(function.opset_import))
        ]
    if problems:
        raise FrontendError(Problem(file, "", "", problem) for problem in problems)


def model_opset(model: onnx.ModelProto) -> dict[str, int]:
    """The version of each domain; models that are older than opsets use the first."""
    if not model.opset_import and model.ir_version < FIRST_IR_WITH_OPSETS:
        return {"": 1}
    return opset_of(model.opset_import)


def _opset_problems(opset: dict[str, int]) -> list[str]:
    """Known domains must be of a known version; unknown ones may hold model-local functions."""
    problems: list[str] = []
    for domain, version in opset.items():
        latest = latest_opset(domain)
        if latest is not None and not 1 <= version <= latest:
            shown = f"domain '{domain}'" if domain else "the default domain"
            problems.append(
                f"found opset {version} of {shown}, expected 1 to {latest}; "
                f"convert the model to an opset that onnx {onnx.__version__} knows"
            )
    return problems


@dataclass
class TensorLoader:
    """
    Reads tensors of a model; large ones, and those in other files, become mapped blobs.

    Files must be inside the model's folder, and ranges inside the files.
    """

    path: str | None
    """The model's file; None for a model in memory, which can have no external data."""

    _folders: dict[str, str] = dataclasses.field(default_factory=dict[str, str])

    def __call__(self, proto: TensorProto) -> TensorAttr:
        """The constant; ValueError that says what is wrong."""
        if proto.data_location != TensorProto.EXTERNAL or self.path is None:
            return tensor_from_proto(proto)
        type_ = tensor_type(proto)
        if proto.data_type == TensorProto.STRING:
            raise ValueError("strings cannot be kept in external data")
        file, offset, size = self._range(proto)
        try:
            blob = Blob.map(file, offset, size)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read its external data: {error}") from None
        if is_packed(proto):
            return raw_tensor(proto, type_, blob.data)
        return TensorAttr(type_, BlobAttr(blob))

    def _range(self, proto: TensorProto) -> tuple[str, int, int]:
        """File, offset and size of external data; the size must be that of the type."""
        assert self.path is not None
        entries = {entry.key: entry.value for entry in proto.external_data}
        expected = raw_size(proto)
        if _SELF_KEY in entries:
            offset, _, length = entries[_SELF_KEY].partition(",")
            file = self.path
        else:
            offset, length = entries.get("offset", "0"), entries.get("length", str(expected))
            file = self._resolve(entries.get("location", ""))
        start, size = _number("offset", offset), _number("length", length)
        if size != expected:
            raise ValueError(f"it has {size} bytes of data, expected {expected}")
        return file, start, size

    def _resolve(self, location: str) -> str:
        """The file of external data, which must be inside the model's folder."""
        assert self.path is not None
        if not location or "\0" in location:
            raise ValueError("its external data names no file")
        if os.path.isabs(location) or Path(location).drive or "\\" in location:
            raise ValueError(
                f"its external data is in '{location}', expected a path relative to the model"
            )
        if location not in self._folders:
            folder = os.path.realpath(os.path.dirname(os.path.abspath(self.path)))
            file = os.path.realpath(os.path.join(folder, location))
            if os.path.commonpath([folder, file]) != folder:
                raise ValueError(
                    f"its external data '{location}' leads out of the model's folder; "
                    "put the file beside the model"
                )
            if not os.path.isfile(file):
                raise ValueError(
                    f"its external data file '{location}' does not exist; put it beside the model"
                )
            self._folders[location] = file
        return self._folders[location]


def _number(what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ValueError(f"the {what} of its external data is '{text[:40]}', expected a number")
    return int(text)
