"""Places of equal elements may come in any order, those of others may not."""

from __future__ import annotations

import numpy as np
import pytest

from models.equal_elements import are_places

SOURCE = np.array([[2.0, np.nan, 2.0, 1.0]], np.float32)


@pytest.mark.parametrize(
    ("found", "is_right"),
    [
        ([1, 0, 2], True),
        ([1, 2, 0], True),
        ([1, 2, 2], False),
        ([1, 0, 3], False),
        ([2, 0, 1], False),
        ([1, 0, 4], False),
        ([1, 0, -2], False),
    ],
)
def test_places_of_the_largest(found: list[int], is_right: bool) -> None:
    places, expected = np.array([found]), np.array([[1, 0, 2]])
    assert are_places(SOURCE, 1, places, expected) is is_right
    assert not are_places(SOURCE, 1, places[:, :2], expected)
