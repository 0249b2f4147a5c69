"""Files of numpy are read or told to be broken, whatever numpy itself raises for them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from lowerdeck.frontends.numpy_files import read_numpy

X = np.array([[1, 2, 3]], np.float32)


def _npy(header: str | None = None) -> bytes:
    """A file of `X`, of which the header is another text."""
    out = io.BytesIO()
    np.save(out, X)
    data = out.getvalue()
    size = int.from_bytes(data[8:10], "little")
    text = data[10 : 10 + size] if header is None else header.encode().ljust(size)
    return data[:10] + text + data[10 + size :]


def test_an_array_and_arrays_by_name() -> None:
    out = io.BytesIO()
    np.savez(out, x=X, k=np.int64(3))
    found = read_numpy(io.BytesIO(out.getvalue()))
    assert isinstance(found, dict)
    assert {name: array.tolist() for name, array in found.items()} == {"x": [[1, 2, 3]], "k": 3}
    alone = read_numpy(io.BytesIO(_npy()))
    assert isinstance(alone, np.ndarray)
    assert (alone == X).all()


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3",  # no tokens of Python
        "  {'descr': '<f4'\n 0}",  # nor is this indented as it should be
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9" + 40 * "9" + ",), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }",
        "((((((",
    ],
)
def test_damaged_headers_are_told(header: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_numpy(io.BytesIO(_npy(header)))
