"""Files appear whole, where a link points; what is no file of its own is never replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lowerdeck.dialects.files import replacing


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(str(path)) as file:
        file.write(1)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "x", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(str(link)) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(str(pipe)) as file:
            file.write("new")
        assert os.read(reader, 9) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "none" / "x")
    with pytest.raises(FileNotFoundError) as error, replacing(path):
        pass
    assert error.value.filename == path
    # What the block itself fails on keeps its name.
    with pytest.raises(FileNotFoundError) as error, replacing(str(tmp_path / "x")):
        (tmp_path / "other").read_text()
    assert error.value.filename == str(tmp_path / "other")
