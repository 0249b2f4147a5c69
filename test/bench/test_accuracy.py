"""What `bench.accuracy` tells of outputs, and the samples that it makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.accuracy import (
    CASES,
    agreement,
    decisions_lost,
    edits,
    file_bytes,
    frames_of,
    overlap,
    rows_of,
    spelled,
    table,
)


def test_texts_are_compared_by_characters() -> None:
    assert [edits(*each) for each in (("", "ab"), ("kitten", "sitting"), ("same", "same"))] == [
        2,
        3,
        0,
    ]
    # No character, then one that lasts two steps, and the same one again after none.
    scores = np.eye(4, dtype=np.float32)[[0, 2, 2, 0, 2, 3]]
    assert spelled(scores, ["", "a", "b", "c"]) == "bbc"


def test_decisions_and_masks_are_compared() -> None:
    one, other = np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([[0.4, 0.6], [0.2, 0.8]])
    assert agreement([one], [other]) == 0.5
    assert overlap([one], [other]) == pytest.approx(1 / 4)
    assert overlap([np.zeros(3)], [np.zeros(3)]) == 0


def test_sound_is_cut_into_frames() -> None:
    """Each with the end of the one before it; what does not fill one is left out."""
    frames = frames_of(np.arange(1, 1300, dtype=np.float32))
    assert frames.shape == (2, 576)
    assert frames[0, 63:66].tolist() == [0, 1, 2]
    assert frames[1, [0, 63, 64, 575]].tolist() == [449, 512, 513, 1024]


def test_speech_is_decided_frame_by_frame() -> None:
    one, other = ({"p": np.array(each)} for each in ([0.9, 0.4, 0.6, 0.1], [0.9, 0.6, 0.7, 0.2]))
    assert decisions_lost([one, one], [one, other]) == 1 / 8


def test_both_ends_of_a_file_are_looked_at(tmp_path: Path) -> None:
    (path := tmp_path / "file").write_bytes(b"  ab" + b"x" * 5000 + b"yz\n")
    found = file_bytes(path)
    assert len(found) == 2048
    assert bytes(found[:3]) == b"abx"
    assert bytes(found[-3:]) == b"xyz"
    path.write_bytes(b"ab ")
    assert file_bytes(path) == [97, 98, 32, *[256] * 2043, 97, 98]


def test_a_network_is_measured() -> None:
    case = CASES["digits"](Path())
    seen, fresh = (
        {np.asarray(each).tobytes() for each in one} for one in (case.calibration, case.fresh)
    )
    assert not seen & fresh
    rows = list(rows_of("digits", case, ["int8"]))
    assert [row["way"] for row in rows] == ["f32", "int8"]
    assert rows[0]["right"] == pytest.approx(0.9889, abs=1e-4)
    assert rows[1]["agree"] >= 0.997
    assert "| digits | int8 | 100.00 | 98.89 |" in table(rows)
    nothing = replace(case, calibration=case.calibration[:0])
    assert "no samples" in list(rows_of("digits", nothing, ["int8"]))[1]["error"]
