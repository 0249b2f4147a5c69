"""
The on-disk cache of compiled models.

An entry is a folder that appears by one rename, so that processes may share the cache; an entry
that another one removes counts as missing. Each has a record of what the model was read from and of
what lies in the entry, and whatever does not agree with it counts as missing, too: files that were
cut short, entries of another user, entries for other weights. The least recently used go when the
cache grows too large. A cache that cannot be used is no error: then there is none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from lowerdeck.dialects.files import FileState, cache_folder

MAX_BYTES = 4 << 30
"""Entries are removed, oldest first, until they take no more than this."""

_RECORD = "record.json"
"""The file of an entry that says what belongs to it."""

_UNFINISHED = ".new-"
"""What the names of folders begin with that are not yet entries."""

_SOURCES = (".py", ".h", ".c", ".toml", ".txt")
"""What the names of files end with that decide what is generated."""

_VERSIONED = ("lowerdeck-", "xdsl-")
"""What the names of packages' metadata begin with, before their versions."""

_FOR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def usable_folder() -> str | None:
    """The cache folder, made if it is missing; None if it cannot be had, or is another user's."""
    if (folder := cache_folder()) is None:
        return None
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            status = os.stat(folder)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                return None
            if status.st_mode & _FOR_OTHERS:
                os.chmod(folder, 0o700)
    except OSError:
        return None
    return folder


def cache_key(model: str, *parts: str) -> str:
    """What a compiled model depends on: the model file's bytes, ourselves, and `parts`."""
    digest = hashlib.sha256(_digest_of(model).encode())
    for part in (compiler_identity(), *parts):
        digest.update(b"\0" + part.encode())
    return digest.hexdigest()[:40]


def _digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def compiler_identity() -> str:
    """
    Our version and that of xDSL, and size and time of every source file: an edited source is
    another compiler.
    """
    import lowerdeck.dialects
    import lowerdeck.frontends
    import lowerdeck.lowering
    import lowerdeck.passes
    from lowerdeck.plugins import package_folders

    packages = (lowerdeck, lowerdeck.dialects, lowerdeck.frontends, lowerdeck.lowering)
    folders = sorted({f for p in (*packages, lowerdeck.passes) for f in p.__path__})
    names = {os.path.basename(folder) for folder in package_folders()}
    versions = sorted(name for name in names if name.startswith(_VERSIONED))
    digest = hashlib.sha256(" ".join(versions).encode())
    for folder in folders:
        for path in _sources(folder):
            status = os.stat(path)
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(folder: str) -> Iterator[str]:
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (os.path.join(base, f) for f in sorted(files) if f.endswith(_SOURCES))


@dataclass(frozen=True)
class Sources:
    """The files that a model is read from, as they were when they were first looked at."""

    graph: str
    """The one whose bytes are part of the key."""
    states: dict[str, FileState]

    @staticmethod
    def of(files: Sequence[str]) -> Sources:
        """Those whose names are known before the model is read; the first one is the graph."""
        paths = [os.path.abspath(file) for file in files]
        return Sources(paths[0], {path: FileState.of(path) for path in paths})

    def add(self, states: Mapping[str, FileState]) -> None:
        """Files that turned out to be needed."""
        for path, state in states.items():
            self.states.setdefault(path, state)

    @property
    def are_unchanged(self) -> bool:
        """True if what lies there now is what was read."""
        return all(state.still_holds(path) for path, state in self.states.items())

    def name(self, path: str) -> str:
        """A file as a record has it: where it lies beside the graph, or else where it is."""
        relative = os.path.relpath(path, os.path.dirname(self.graph))
        return path if relative.startswith(os.pardir) else relative

    def path(self, name: str) -> str:
        """The file that a record means by a name."""
        return os.path.join(os.path.dirname(self.graph), name)


def find(key: str, sources: Sources) -> str | None:
    """
    The folder of a complete entry for a model with these sources, or None.

    Beside the graph, which is part of the key, it needs the files that the entry was made from, in
    the same places as seen from the graph, with the same content.
    """
    if (base := usable_folder()) is None:
        return None
    folder = os.path.join(base, key)
    try:
        record = _read_record(folder)
        if record is None or record["key"] != key or not _is_whole(folder, record["files"]):
            return None
        if not _is_made_from(record["dependencies"], sources):
            return None
        os.utime(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        # Whatever stands in a damaged record, it is none.
        return None
    return folder


def _read_record(folder: str) -> dict[str, Any] | None:
    """What an entry says of itself; None for a folder that another user can write to."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or not is_own(status):
        return None
    with open(os.path.join(folder, _RECORD), encoding="utf-8") as file:
        return cast("dict[str, Any]", json.load(file))


def is_own(status: os.stat_result) -> bool:
    """True for what this user alone can have written."""
    return status.st_uid == os.geteuid() and not status.st_mode & _FOR_OTHERS


def _is_whole(folder: str, files: Mapping[str, Sequence[Any]]) -> bool:
    """True if the files are those that were stored."""
    for name, (size, digest) in files.items():
        path = os.path.join(folder, name)
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or not is_own(status) or status.st_size != size:
            return False
        if _digest_of(path) != digest:
            return False
    return True


def _is_made_from(dependencies: Mapping[str, Sequence[Any]], sources: Sources) -> bool:
    """True if the sources have the content that the record has of them."""
    others = {sources.name(path) for path in sources.states if path != sources.graph}
    if not others <= dependencies.keys():
        return False
    return all(
        FileState(*numbers).still_holds(sources.path(name))
        or _digest_of(sources.path(name)) == digest
        for name, (digest, *numbers) in dependencies.items()
    )


class Scratch:
    """A new folder in the cache, a future entry; it is never removed while it is open."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    def close(self) -> None:
        """Remove what has not become an entry."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def new_scratch() -> Scratch | None:
    """An empty folder to make an entry in; None if the cache cannot be used."""
    if (base := usable_folder()) is None:
        return None
    try:
        while True:
            path = tempfile.mkdtemp(prefix=_UNFINISHED, dir=base)
            if (lock := _locked(path)) is not None:
                return Scratch(path, lock)
    except OSError:
        return None


def _locked(folder: str) -> int | None:
    """A descriptor that holds the lock of a folder; None if another owner has it, or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.exists(folder):
            return descriptor
    except BlockingIOError:
        pass
    except OSError:
        # A file system without locks.
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def store(scratch: Scratch, key: str, sources: Sources) -> str | None:
    """
    Make a scratch folder the entry for `key`; returns its path.

    None, and the scratch stays, if the sources have changed since they were first looked at: what
    was compiled may be something else. None also if the cache cannot be used.
    """
    try:
        dependencies = _dependencies(sources)
        if dependencies is None:
            return None
        _seal(scratch.path, key, dependencies)
        return _publish(scratch.path, key, sources)
    except OSError:
        return None


def _dependencies(sources: Sources) -> dict[str, list[Any]] | None:
    """The content and state of all files but the graph; None if any has changed."""
    found: dict[str, list[Any]] = {
        sources.name(path): [_digest_of(path), *state]
        for path, state in sorted(sources.states.items())
        if path != sources.graph
    }
    return found if sources.are_unchanged else None


def _seal(folder: str, key: str, dependencies: Mapping[str, list[Any]]) -> None:
    """
    Write the record, for the user alone. That all reaches the disk is not waited for: what a crash
    of the machine leaves of an entry does not agree with its record, which has digests of all.
    """
    files: dict[str, list[Any]] = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        files[name] = [os.path.getsize(path), _digest_of(path)]
    record = {"key": key, "dependencies": dependencies, "files": files}
    with open(os.path.join(folder, _RECORD), "w", encoding="utf-8") as file:
        json.dump(record, file)
    for name in (*files, _RECORD):
        path = os.path.join(folder, name)
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & 0o700)


def _publish(scratch: str, key: str, sources: Sources) -> str:
    folder = os.path.join(os.path.dirname(scratch), key)
    try:
        os.rename(scratch, folder)
    except OSError:
        # Another process was faster, or the entry is damaged or has been made from something else:
        # it is a folder with files, which a rename does not replace.
        if find(key, sources) is not None:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(scratch, folder)
    _prune(folder)
    return folder


@dataclass(frozen=True, order=True)
class Entry:
    """A compiled model in the cache; the one used longest ago comes first."""

    used: float
    """Seconds since the epoch."""
    size: int
    """Bytes of its files."""
    path: str


def entries() -> list[Entry]:
    """All entries, those not used for longest first; none if the cache cannot be used."""
    base = usable_folder()
    return [] if base is None else _entries_of(base)


def remove(entry: Entry) -> bool:
    """Remove an entry; False if something of it is left."""
    shutil.rmtree(entry.path, ignore_errors=True)
    return not os.path.exists(entry.path)


def _entries_of(base: str) -> list[Entry]:
    """The entries in a folder; what unfinished processes have left behind is removed."""
    found: list[Entry] = []
    for entry in os.scandir(base):
        # Another process may remove it meanwhile.
        try:
            if entry.name.startswith(_UNFINISHED):
                _remove_if_abandoned(entry.path)
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                size = sum(os.path.getsize(file.path) for file in os.scandir(entry.path))
                found.append(Entry(entry.stat().st_mtime, size, entry.path))
        except OSError:
            continue
    return sorted(found)


def _prune(newest: str) -> None:
    """
    Remove the entries not used for longest, but never the one just made, and what processes have
    left behind that ended before they were done.
    """
    found = _entries_of(os.path.dirname(newest))
    total = sum(entry.size for entry in found)
    for entry in found:
        if total <= MAX_BYTES:
            return
        if entry.path != newest:
            remove(entry)
            total -= entry.size


def _remove_if_abandoned(folder: str) -> None:
    if (lock := _locked(folder)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def is_support_file(name: str) -> bool:
    """True for files of an entry that are not part of the model."""
    return name == _RECORD
