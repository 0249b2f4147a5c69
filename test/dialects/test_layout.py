"""What a layout packs it unpacks, and the storage has the dimensions that it says."""

import numpy as np
import pytest

from lowerdeck.dialects.core.layout import LayoutAttr, Piece
from lowerdeck.dialects.dims import Expr

LAYOUTS = [
    LayoutAttr.row_major(3),
    LayoutAttr.row_major(3, (0, 1, 2), (0, 2, 0)),
    LayoutAttr.of([Piece(2), Piece(0), Piece(1)]),
    LayoutAttr.blocked(3, 1, 4),
    LayoutAttr.blocked(3, 2, 4, (0, 0, 1), (0, 3, 1)),
    LayoutAttr.of([Piece(1, 4), Piece(2), Piece(0), Piece(1, 2, 2), Piece(1, 1, 2)]),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 8, 4), (3, 0, 2)])
def test_unpack(layout: LayoutAttr, shape: tuple[int, ...]) -> None:
    array = np.arange(1, 1 + np.prod(shape), dtype=np.int16).reshape(shape)
    storage = layout.pack(array)
    assert list(storage.shape) == [dim.value for dim in layout.dims(list(map(Expr.const, shape)))]
    assert np.array_equal(layout.unpack(storage.reshape(-1), shape), array)
    assert np.count_nonzero(storage) == array.size


def test_a_scalar() -> None:
    layout = LayoutAttr.row_major(0)
    assert layout.unpack(layout.pack(np.array(3.0)).reshape(-1), ()) == 3


@pytest.mark.parametrize("size", [2, 4])
def test_transformed_taps_are_restored(size: int) -> None:
    layout = LayoutAttr.of(list(map(Piece, (2, 3, 0, 1))), winograd=size)
    taps = np.random.default_rng(0).standard_normal((4, 5, 3, 3)).astype(np.float32)
    storage = layout.pack(taps)
    assert storage.shape == (size + 2, size + 2, 4, 5)
    restored = layout.unpack(storage.reshape(-1), taps.shape)
    assert restored.dtype == np.float32
    np.testing.assert_allclose(restored, taps, rtol=0, atol=2e-6)
