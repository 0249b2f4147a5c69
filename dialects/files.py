"""
Which files are read, and whether they have changed since; files that are written whole; where
what is kept from run to run lies.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any, NamedTuple


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


def is_special(path: str) -> bool:
    """True for what is written to and never replaced: a device, a pipe, a socket."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def replacing(path: str, mode: str = "w", *, keep_empty: bool = True) -> Generator[IO[Any]]:
    """
    A file that takes the place of `path`, or of what it is a link to, when the block ends without
    an error; what is special is written to directly.

    An empty one is dropped unless `keep_empty`.
    """
    if is_special(path):
        with open(path, mode) as file:
            yield file
        return
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    except OSError as error:
        error.filename = path  # not the one that nobody has asked for
        raise
    try:
        with os.fdopen(handle, mode) as file:
            yield file
        if not keep_empty and os.path.getsize(temporary) == 0:
            os.unlink(temporary)
            return
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            error.filename, error.filename2 = path, None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def cache_folder() -> str | None:
    """
    `$LOWERDECK_CACHE`, or `lowerdeck` in the user's cache folder; None if that cannot be told.

    As the XDG specification has it, a relative `$XDG_CACHE_HOME` is ignored.
    """
    if folder := os.environ.get("LOWERDECK_CACHE"):
        return os.path.abspath(folder)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "") or _home_of_user()
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return os.path.join(base, "lowerdeck")


def _home_of_user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
