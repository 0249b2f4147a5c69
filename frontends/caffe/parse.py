"""From files to Caffe's messages: prototxt as text, caffemodels without their weights."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple, TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from lowerdeck.dialects.caffe.caffe_pb2 import BlobProto, NetParameter, WeightsParameter
from lowerdeck.frontends.caffe.text import TextError, as_python_reads, without_field
from lowerdeck.frontends.detect import HEAD_BYTES, is_text_head
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.messages import is_all_text
from lowerdeck.frontends.wire import Format, Holder, ScanError, detach_file, range_field, range_of

M = TypeVar("M", bound=Message)

_DATA, _DIFF, _DOUBLE_DATA, _DOUBLE_DIFF, _RAW_DATA, _RAW_DIFF = 5, 6, 8, 9, 12, 13
_RAW_DATA_RANGE, _DATA_RANGE, _DOUBLE_DATA_RANGE = 536870909, 536870910, 536870911
"""Fields that no file has: the largest numbers there are."""

_HDF5 = b"\x89HDF\r\n\x1a\n"


def _nothing(_offset: int, _size: int) -> bytes:
    return b""


FORMAT = Format(
    root="net",
    nested={
        "net": {2: "v1", 100: "layer"},
        "layer": {7: "blob"},
        "v1": {1: "v0", 6: "blob"},
        "v0": {50: "blob"},
    },
    holders={
        "blob": Holder(
            {
                _DATA: range_field(_DATA_RANGE),
                _DOUBLE_DATA: range_field(_DOUBLE_DATA_RANGE),
                _RAW_DATA: range_field(_RAW_DATA_RANGE),
                _DIFF: _nothing,
                _DOUBLE_DIFF: _nothing,
                _RAW_DIFF: _nothing,
            },
            dropped=frozenset({_DATA_RANGE, _DOUBLE_DATA_RANGE, _RAW_DATA_RANGE}),
        )
    },
)
"""Where a caffemodel has the data of its blobs; gradients are left out."""


def parse_prototxt(path: str) -> NetParameter:
    """The net described by a text file; FrontendError if it cannot be read."""
    if not is_text_head(_read(path, HEAD_BYTES)):
        raise FrontendError.of_file(
            path,
            "is no text, expected the .prototxt of a net; a caffemodel does not say all of how it "
            "is computed: give it with --weights, and the .prototxt as the model",
        )
    return _parse_text(path, NetParameter())


def is_hdf5(path: str) -> bool:
    """True for weights in the HDF5 format."""
    return _read(path, len(_HDF5)) == _HDF5


def parse_weights(path: str) -> WeightsParameter:
    """
    The weights in a caffemodel, binary or text, whose large data refer to the file.

    What else the file says of its layers is not read: forks use the same numbers for other fields.
    """
    if not _read(path, 1):
        raise FrontendError.of_file(path, "the file is empty, expected a caffemodel")
    try:
        data = detach_file(path, FORMAT)
        return _checked(path, WeightsParameter.FromString(data))
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    except (ScanError, DecodeError) as error:
        if is_text_head(_read(path, HEAD_BYTES)):
            net = _parse_text(path, NetParameter())
            return WeightsParameter.FromString(net.SerializeToString())
        message = f"is not a valid caffemodel, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None


def parse_blob(path: str) -> BlobProto:
    """The blob in a file, as of means; FrontendError if it cannot be read."""
    try:
        return _checked(path, BlobProto.FromString(_read(path)))
    except DecodeError as error:
        message = f"is not a valid blob, or is damaged: {error}; get a fresh copy"
        raise FrontendError.of_file(path, message) from None


class DataRanges(NamedTuple):
    """Where a file has the data of a blob (offset, size in bytes), as far as they are large."""

    floats: tuple[int, int] | None
    doubles: tuple[int, int] | None
    raw: tuple[int, int] | None


def data_ranges(blob: BlobProto) -> DataRanges:
    """Where the file of a blob has its data."""
    numbers = (_DATA_RANGE, _DOUBLE_DATA_RANGE, _RAW_DATA_RANGE)
    return DataRanges(*(range_of(blob, number) for number in numbers))


def _read(path: str, size: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None


def _parse_text(path: str, message: M) -> M:
    unknown: list[Problem] = []
    try:
        text = as_python_reads(_decoded(path))
        while (after := _parse_known(path, text, message, unknown)) is not None:
            text = after
    except TextError as error:
        problem = f"line {error.line}: {_shown(str(error))}"
        raise FrontendError.of_file(path, f"{problem}; correct the text") from None
    except text_format.ParseError as error:
        line = error.GetLine()
        place = "" if line is None else f"line {line}: "
        detail = str(error).split(" : ", 1)[-1].rstrip(".")
        unknown.append(Problem(path, "", "", f"{place}{_shown(detail)}; correct the text"))
    except ValueError as error:
        raise FrontendError.of_file(
            path, f"is not valid text of a net: {_shown(str(error))}; correct the text"
        ) from None
    if unknown:
        raise FrontendError(unknown)
    return _checked(path, message)


_UNKNOWN_FIELD = re.compile(
    r'Message type "[\w.]*?(?P<type>\w+)" has no field named "(?P<name>\w+)"'
)

_MOST_UNKNOWN = 50
"""Fields that are named; behind them the text is not read."""


def _parse_known(path: str, text: str, message: Message, unknown: list[Problem]) -> str | None:
    """
    Read a text into a message; where it has a field that is unknown, this becomes a problem, and
    the text without it is returned. ParseError where something else is wrong.
    """
    message.Clear()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        found = _UNKNOWN_FIELD.search(str(error))
        line, column = error.GetLine(), error.GetColumn()
        if found is None or line is None or column is None or len(unknown) == _MOST_UNKNOWN:
            raise
        rest = without_field(text, line, column)
        if rest is None:
            raise
        step = "correct the text"
        if found["type"] in ("LayerParameter", "V1LayerParameter"):
            step += ", or replace the layer, if it is one of another Caffe, by known ones"
        what = f"line {line}: {found['type']} has no field '{found['name']}'; {step}"
        unknown.append(Problem(path, "", "", what))
        return rest
    return None


def _decoded(path: str) -> str:
    """The text of a file, which may begin with a mark; comments may be in another encoding."""
    lines: list[str] = []
    for number, line in enumerate(_read(path).removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            code, comment, _ = line.partition(b"#")
            is_in_string = code.count(b'"') % 2 or code.count(b"'") % 2
            if not comment or is_in_string or not code.isascii():
                message = f"line {number}: it is not UTF-8 text; correct the text"
                raise FrontendError.of_file(path, message) from None
            lines.append(code.decode())
    return "\n".join(lines)


def _shown(text: str) -> str:
    """The text with what no terminal can show replaced, and not too much of it."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 200 else f"{printable[:200]}..."


def _checked(path: str, message: M) -> M:
    """The message, if all strings in it are text: protobuf does not see to it."""
    if not is_all_text(message):
        raise FrontendError.of_file(
            path, "is damaged: a name in it is not UTF-8 text; get a fresh copy"
        )
    return message
