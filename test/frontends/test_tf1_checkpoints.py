"""Checkpoints: tables, Snappy, slices, and what a reader has to refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.checkpoint import Checkpoint, Slice, checkpoint_prefix
from lowerdeck.frontends.tf1.graph_pb2 import DataType, VersionDef
from lowerdeck.frontends.tf1.saved_model_pb2 import (
    BundleEntryProto,
    BundleHeaderProto,
    TensorSliceProto,
)
from lowerdeck.frontends.tf1.table import TableError, decompress, masked_checksum, read_table

from .tf1_checkpoints import (  # noqa: TID251  (these are tests, not the folder of sources)
    literal,
    slice_key,
    table,
    write_checkpoint,
)
from .tf1_graphs import shape_proto  # noqa: TID251  (these are tests, not the folder of sources)

RECORDED = Path(__file__).parent / "saved_models"
PIECES = np.sin(np.arange(1, 31) * 0.7).astype(np.float32).reshape(10, 3)


# Snappy


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"\x00", b""),
        (b"\x03\x08abc", b"abc"),
        (b"\x05\xf0\x04abcde", b"abcde"),  # a length in one more byte
        (b"\x08\x0cabcd\x01\x04", b"abcdabcd"),  # a copy with an offset of 11 bits
        (b"\x0a\x00a\x22\x01\x00", b"aaaaaaaaaa"),  # a copy of what it makes
        (b"\x06\x08abc\x0b\x03\x00\x00\x00", b"abcabc"),  # an offset of 32 bits
        (literal(bytes(range(200))), bytes(range(200))),
    ],
)
def test_snappy(stream: bytes, expected: bytes) -> None:
    assert decompress(stream) == expected


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\x03",
        b"\x03\x08ab",
        b"\x04\x08abc",
        b"\x02\x08abc",
        b"\x08\x0cabcd\x01\x05",  # before the start
        b"\x08\x0cabcd\x01\x00",  # no distance at all
        b"\x08\x0cabcd\x01",
        b"\xff\xff\xff\xff\x0f\x00a",  # four gigabytes out of two bytes
    ],
)
def test_snappy_that_is_damaged(stream: bytes) -> None:
    with pytest.raises(TableError):
        decompress(stream)


# Tables


def test_the_checksum_of_a_known_text() -> None:
    """The CRC-32C of the digits is 0xe3069283."""
    assert masked_checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % (
        1 << 32
    )


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_table(is_compressed: bool) -> None:
    entries = {b"": b"header", b"a": b"x" * 300, b"ab": b""}
    assert read_table(table(entries, is_compressed=is_compressed)) == entries


def test_a_table_with_a_flipped_bit_is_as_it_was_or_refused() -> None:
    entries = {b"": b"header", b"key": b"value"}
    data = table(entries)
    refused = 0
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        try:
            assert read_table(bytes(damaged)) == entries
        except TableError:
            refused += 1
    assert refused > 4 * len(data)


# Slices


def test_slices_are_mapped_or_joined() -> None:
    checkpoint = Checkpoint(str(RECORDED / "resources" / "model" / "variables" / "variables"))
    for spec, rows, columns, is_mapped in (
        ("", slice(0, 10), slice(0, 3), False),
        ("10 3 0,4:0,3", slice(0, 4), slice(0, 3), True),
        ("10 3 4,3:-", slice(4, 7), slice(0, 3), True),
        ("10 3 2,4:1,2", slice(2, 6), slice(1, 3), False),
    ):
        stored = checkpoint.read("pieces", spec)
        expected = PIECES[rows, columns]
        array = stored.data.array(np.dtype(np.float32), expected.shape)
        np.testing.assert_array_equal(array, expected)
        assert (stored.data.file is not None) == is_mapped


def test_a_slice_of_what_is_stored_whole(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_checkpoint(tmp_path / "c", {"v": values})
    stored = Checkpoint(str(tmp_path / "c")).read("v", "3 4 1,2:0,3")
    found = stored.data.array(np.dtype(np.float32), (2, 3))
    np.testing.assert_array_equal(found, values[1:3, :3])


@pytest.mark.parametrize("starts", [(0,), (0, 0), (0, 1), (2, 4)])
def test_slices_that_leave_something_out(starts: tuple[int, ...], tmp_path: Path) -> None:
    """A vector of 4 in slices of 2."""
    values = np.ones(2, np.float32)
    parts = [TensorSliceProto.Extent(start=start, length=2) for start in starts]
    keys = {slice_key("v", (start, 2)): values for start in starts}
    whole = BundleEntryProto(
        dtype=DataType.DT_FLOAT,
        shape=shape_proto((4,)),
        slices=[TensorSliceProto(extent=[part]) for part in parts],
    )
    write_checkpoint(tmp_path / "c", keys, others={b"v": whole.SerializeToString()})
    assert "slice" in _problem(tmp_path / "c")


def test_slices_one_after_the_other(tmp_path: Path) -> None:
    keys = {slice_key("v", (k, 2)): np.array([k, k + 1], np.float32) for k in (2, 0)}
    extents = [TensorSliceProto.Extent(start=start, length=2) for start in (2, 0)]
    whole = BundleEntryProto(
        dtype=DataType.DT_FLOAT,
        shape=shape_proto((4,)),
        slices=[TensorSliceProto(extent=[extent]) for extent in extents],
    )
    write_checkpoint(tmp_path / "c", keys, others={b"v": whole.SerializeToString()})
    stored = Checkpoint(str(tmp_path / "c")).read("v")
    found = stored.data.array(np.dtype(np.float32), (4,))
    np.testing.assert_array_equal(found, np.arange(4))


@pytest.mark.parametrize(
    "text", ["3 4 0,3", "3 4 2,2:-", "3 4 -1,2:-", "4 4 -:-", "3 4 a,b:-", "3 4 0,1:-:-", "x"]
)
def test_slices_that_are_not_valid(text: str) -> None:
    with pytest.raises(ValueError, match=r"slice|part of a dimension"):
        Slice.parse(text, (3, 4))


# What is refused


def _problem(prefix: Path, name: str = "v") -> str:
    with pytest.raises((ValueError, FrontendError)) as caught:
        Checkpoint(str(prefix)).read(name)
    return str(caught.value)


def test_headers_of_other_readers(tmp_path: Path) -> None:
    v = {"v": np.zeros(2, np.float32)}
    for header, expected in (
        (BundleHeaderProto(num_shards=1, endianness=BundleHeaderProto.BIG), "big-endian machine"),
        (BundleHeaderProto(num_shards=1, version=VersionDef(min_consumer=2)), "version 2"),
        (BundleHeaderProto(), "names no file with tensors"),
    ):
        write_checkpoint(tmp_path / "c", v, header=header)
        assert expected in _problem(tmp_path / "c")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"crc32c": 1}, "its checksum in"),
        ({"size": 4}, "has 4 bytes for 'v', expected 8"),
        ({"offset": 1}, "'v' is cut off"),
        ({"offset": -1}, "'v' is cut off"),
        ({"offset": 1 << 62}, "'v' is cut off"),
        ({"shard_id": 3}, "data-00003-of-00001, which cannot be read"),
        ({"dtype": DataType.DT_STRING}, "elements are of type string, expected numbers"),
        ({"dtype": DataType.DT_VARIANT}, "elements are of type variant, expected numbers"),
        ({"dtype": 999}, "999 is not the number of an element type"),
    ],
)
def test_entries_that_are_not_valid(changes: dict[str, int], expected: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"v": np.zeros(2, np.float32)}, changes=changes)
    assert expected in _problem(tmp_path / "c")


def test_names_that_are_not_there(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {f"v{k}": np.zeros(1, np.float32) for k in range(7)})
    assert "has no tensor 'v', only 'v0', 'v1', 'v2', 'v3', 'v4', ..." in _problem(tmp_path / "c")


def test_the_form_of_before_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(table({b"": b"tensors"}))
    assert "the form of before TensorFlow 0.12" in _problem(tmp_path / "model.ckpt")
    (tmp_path / "other").write_bytes(b"no tensors")
    for name in ("other", "missing"):
        assert "cannot be read: No such file or directory" in _problem(tmp_path / name)


def test_a_compressed_index(tmp_path: Path) -> None:
    values = np.arange(5, dtype=np.int32)
    write_checkpoint(tmp_path / "c", {"v": values}, is_compressed=True)
    stored = Checkpoint(str(tmp_path / "c")).read("v")
    np.testing.assert_array_equal(stored.data.array(np.dtype(np.int32), (5,)), values)


def test_prefixes() -> None:
    for path in ("a/model.ckpt", "a/model.ckpt.index", "a/model.ckpt.data-00000-of-00001"):
        assert checkpoint_prefix(path) == "a/model.ckpt"
    assert checkpoint_prefix("model.ckpt-12.meta") == "model.ckpt-12"
