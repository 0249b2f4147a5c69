"""Which files are read, and whether they have changed since."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class FileState(NamedTuple):
    """What changes whenever a file is written or replaced."""

    size: int
    modified: int
    changed: int
    """The time that no program can set."""
    inode: int

    @staticmethod
    def of(path: str) -> FileState:
        """The state of a file; OSError if there is none."""
        status = os.stat(path)
        return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def still_holds(self, path: str) -> bool:
        """True if the file has not changed."""
        try:
            return FileState.of(path) == self
        except OSError:
            return False


_record: ContextVar[dict[str, FileState] | None] = ContextVar("record", default=None)


@contextmanager
def recording_files() -> Generator[dict[str, FileState]]:
    """Collects the files that are mapped, by absolute path, as they are when they are."""
    found: dict[str, FileState] = {}
    token = _record.set(found)
    try:
        yield found
    finally:
        _record.reset(token)


def record_file(path: str) -> FileState:
    """The state of a file that is about to be read."""
    state, found = FileState.of(path), _record.get()
    if found is not None:
        found.setdefault(os.path.abspath(path), state)
    return state
