"""Bytes of constants: where they lie, how they compare, and their text."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from lowerdeck.dialects.blob import INLINE_BYTES, SPILL_BYTES, Blob, BlobAttr, ElidedBlobError
from lowerdeck.dialects.core import Core

DATA = bytes(range(64))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "weights.bin"
    path.write_bytes(DATA)
    return str(path)


def parse(text: str) -> BlobAttr:
    context = Context()
    context.load_dialect(Core)
    attribute = Parser(context, text).parse_attribute()
    assert isinstance(attribute, BlobAttr)
    return attribute


@pytest.mark.parametrize("size", [0, 1, SPILL_BYTES - 1, SPILL_BYTES, SPILL_BYTES + 1])
def test_array_goes_in_and_comes_out(size: int) -> None:
    array = (np.arange(size) % 251).astype(np.uint8)
    blob = Blob.of(array)
    assert blob.size == size
    assert blob.file is None
    view = blob.array(array.dtype, array.shape)
    np.testing.assert_array_equal(view, array)
    assert not view.flags.writeable


def test_array_is_a_copy_in_c_order() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    blob = Blob.of(array.T)
    array[:] = 0
    np.testing.assert_array_equal(blob.array(array.dtype, (3, 2)), [[0, 3], [1, 4], [2, 5]])


def test_large_array_is_spilled_without_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blob = Blob.of(np.ones(SPILL_BYTES, np.uint8))
    assert list(tmp_path.iterdir()) == []
    assert blob.data[-1] == 1


def test_one_element_says_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-0.0 equals 0.0, and NaN not even itself: bits count."""
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    for value in (1.5, -0.0, np.nan):
        array = np.full((128, 256), value, np.float32)
        for uniform in (array, np.broadcast_to(np.float32(value), array.shape), array.T):
            blob = Blob.of(uniform)
            assert blob.element == np.float32(value).tobytes()
            assert blob.size == array.nbytes
            assert not blob.is_elided
            assert not blob.is_anonymous
            view = blob.array(array.dtype, array.shape)
            assert view.tobytes() == array.tobytes()
            assert not view.flags.writeable
            with pytest.raises(ValueError, match="shape"):
                blob.array(array.dtype, (3,))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert bytes(Blob.uniform(b"abc", 300_000).data) == b"abc" * 100_000
    assert blob.array(np.dtype(np.uint8), (array.nbytes,)).tobytes() == array.tobytes()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [(0, 0), (64, 17), (127, 255)])
def test_one_other_element(place: tuple[int, int]) -> None:
    array = np.zeros((128, 256), np.float32)
    array[place] = -0.0
    for other in (array, array.T, np.broadcast_to(array, (2, *array.shape))):
        blob = Blob.of(other)
        assert blob.element is None
        assert blob.array(other.dtype, other.shape).tobytes() == other.tobytes()


def test_uniform_bytes_equal_written_ones(tmp_path: Path) -> None:
    ones = np.ones((256, 257), np.float32)
    path = tmp_path / "ones.bin"
    path.write_bytes(ones.tobytes())
    written = Blob.map(str(path), 0, ones.nbytes)
    assert Blob.of(ones) == written
    assert written == Blob.of(ones)
    assert hash(Blob.of(ones)) == hash(written)
    assert Blob.of(ones) == Blob.of(ones.T) != Blob.of(ones * 2)
    assert Blob.of(ones) != Blob.of(ones[:-1])
    assert Blob.uniform(bytes(4), 1 << 17) == Blob.uniform(bytes(8), 1 << 17)
    with pytest.raises(ValueError, match="not a number of elements"):
        Blob.uniform(b"abc", 4)


def test_views_share_memory() -> None:
    blob = Blob.of(np.arange(4, dtype=np.float32))
    first, second = (blob.array(np.dtype(np.float32), (4,)) for _ in range(2))
    assert np.shares_memory(first, second)


@pytest.mark.parametrize(("dtype", "shape"), [(np.float32, (3,)), (np.float64, (3,))])
def test_array_of_the_wrong_size(dtype: type, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"size"):
        Blob(memoryview(b"12345678"), 8, None, 0).array(np.dtype(dtype), shape)


def test_file_is_mapped_in_place(file: str) -> None:
    blob = Blob.map(file, 4, 8)
    assert (blob.file, blob.offset, blob.size) == (file, 4, 8)
    assert bytes(blob.data) == DATA[4:12]
    assert Blob.map(file, 64, 0).size == 0


@pytest.mark.parametrize(("offset", "size"), [(0, 65), (64, 1), (-1, 4), (70, 1)])
def test_range_outside_of_the_file(file: str, offset: int, size: int) -> None:
    with pytest.raises(ValueError, match="holds 64 bytes"):
        Blob.map(file, offset, size)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Blob.map(str(tmp_path / "absent"), 0, 4)


def test_rewritten_file_is_read_anew(file: str) -> None:
    before = Blob.map(file, 0, 4)
    replacement = Path(file).with_suffix(".new")
    replacement.write_bytes(DATA[::-1])
    os.utime(replacement, ns=(1, 1))
    replacement.replace(file)
    after = Blob.map(file, 0, 4)
    assert bytes(after.data) == DATA[:-5:-1]
    assert bytes(before.data) == DATA[:4]
    assert before != after


def test_a_name_is_no_identity(tmp_path: Path) -> None:
    """A replaced file that differs where no sample is taken."""
    path, new = tmp_path / "w", tmp_path / "w.new"
    for file, middle in ((path, b"a"), (new, b"b")):
        file.write_bytes(bytes(10_000) + middle + bytes(10_000))
    before = Blob.map(str(path), 0, 20_001)
    os.utime(new, ns=(1, 1))
    new.replace(path)
    assert before != Blob.map(str(path), 0, 20_001)


def test_equality_is_of_content(file: str) -> None:
    mapped = Blob.map(file, 0, 64)
    copied = Blob.of(np.frombuffer(DATA, np.uint8))
    assert mapped == copied
    assert hash(mapped) == hash(copied)
    assert BlobAttr(mapped) == BlobAttr(copied)
    assert mapped != Blob.map(file, 0, 63)
    assert mapped != DATA


def test_blobs_that_differ_only_in_the_middle() -> None:
    one = np.zeros(3 * SPILL_BYTES, np.uint8)
    other = one.copy()
    other[len(other) // 2] = 1
    assert Blob.of(one) != Blob.of(other)


def test_elided_blob() -> None:
    blob = Blob.elided()
    assert blob.is_elided
    assert blob == blob
    assert blob != Blob.elided()
    with pytest.raises(ElidedBlobError, match="elided when it was printed"):
        _ = blob.data


def test_text_of_small_blobs_holds_the_bytes() -> None:
    blob = BlobAttr(Blob.of(np.array([1.0], np.float32)))
    assert str(blob) == '#core.blob<"0x0000803F">'
    assert parse(str(blob)) == blob
    assert parse('#core.blob<"0x">').data.size == 0


def test_text_of_large_blobs_is_elided() -> None:
    assert "elided" not in str(BlobAttr(Blob.of(np.zeros(INLINE_BYTES, np.uint8))))
    text = str(BlobAttr(Blob.of(np.zeros(INLINE_BYTES + 1, np.uint8))))
    assert text == "#core.blob<elided>"
    assert parse(text).data.is_elided


def test_text_of_mapped_blobs_names_the_file(file: str) -> None:
    blob = BlobAttr(Blob.map(file, 8, 4))
    assert str(blob) == f'#core.blob<"{file}", 8, 4>'
    again = parse(str(blob))
    assert again == blob
    assert again.data.file == file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#core.blob<"00">', "expected '0x'"),
        ('#core.blob<"0x0">', "hexadecimal digits"),
        ('#core.blob<"0xZZ">', "hexadecimal digits"),
        ('#core.blob<"/nonexistent/file", 0, 4>', "cannot read the blob"),
        ('#core.blob<"/dev/null", 0, 4>', "cannot read the blob"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)
