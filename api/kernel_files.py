"""
Finished kernels on disk, for other processes: a file each, in the folder of the cache.

A file appears by one rename and begins with the hash of the rest, so one that was cut short or
damaged counts as missing. What cannot be read or written is no error: then the kernel is lowered.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from lowerdeck.cache import compiler_identity, is_own, usable_folder

FOLDER = ".kernels"
"""Where they are in the folder of the cache."""

MAX_BYTES = 256 << 20
"""Files are removed, those not used for longest first, until they take no more than this."""

_DIGEST = hashlib.sha256().digest_size
_UNFINISHED = ".new-"


class KernelFiles:
    """A `KernelStore` of this compiler, run by this Python."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._compiler = f"{compiler_identity()} {sys.version}".encode()

    def get(self, key: bytes) -> bytes | None:
        """What was put there, whole; None if there is nothing."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                if not is_own(os.fstat(file.fileno())):
                    return None
                digest, data = file.read(_DIGEST), file.read()
            if hashlib.sha256(data).digest() != digest:
                return None
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, key: bytes, data: bytes) -> None:
        """Keep what is found by a key."""
        path = self._path(key)
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            file, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._folder)
            try:
                with open(file, "wb") as opened:
                    opened.write(hashlib.sha256(data).digest() + data)
                os.replace(unfinished, path)
            except BaseException:
                os.unlink(unfinished)
                raise
            if key[0] == 0:  # now and then
                remove_oldest(self._folder, MAX_BYTES)

    def _path(self, key: bytes) -> str:
        return os.path.join(self._folder, hashlib.sha256(self._compiler + key).hexdigest()[:40])


def kernel_files() -> KernelFiles | None:
    """Those in the cache; None if there is none."""
    base = usable_folder()
    return None if base is None else KernelFiles(os.path.join(base, FOLDER))


def remove_oldest(folder: str, most: int) -> None:
    """
    Remove the files not used for longest, until the others have no more bytes than `most`. Files
    that nobody has finished are among them.
    """
    found = sorted(_files(folder))
    total = sum(size for _, size, _ in found)
    for _, size, path in found:
        if total <= most:
            return
        with suppress(FileNotFoundError):
            os.unlink(path)
        total -= size


def bytes_used(base: str) -> int:
    """What the files in a folder of the cache take."""
    return sum(size for _, size, _ in _files(os.path.join(base, FOLDER)))


def clear(base: str) -> None:
    """Remove all files in a folder of the cache."""
    folder = os.path.join(base, FOLDER)
    remove_oldest(folder, 0)
    with suppress(OSError):  # another process has put one there, or there is none
        os.rmdir(folder)


def _files(folder: str) -> Iterator[tuple[float, int, str]]:
    """When each was last used, its size and its path; none if there is no such folder."""
    if not os.path.isdir(folder):
        return
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # another process removes some, too
            status = entry.stat(follow_symlinks=False)
            yield status.st_mtime, status.st_size, entry.path
