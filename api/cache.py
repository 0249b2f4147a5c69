"""
The on-disk cache of compiled models.

An entry is a folder that appears by one rename, so that processes may share the cache; an entry
that another one removes counts as missing. The least recently used go when it grows too large.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from functools import cache

MAX_BYTES = 4 << 30
"""Entries are removed, oldest first, until they take no more than this."""

_DEPENDENCIES = "dependencies.list"
"""The file of an entry that lists which other files the model was read from."""


def cache_folder() -> str:
    """`$LOWERDECK_CACHE`, or `lowerdeck` in the user's cache folder."""
    if folder := os.environ.get("LOWERDECK_CACHE"):
        return folder
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lowerdeck")


def cache_key(model: str, *parts: str) -> str:
    """What a compiled model depends on: the model file's bytes, ourselves, and `parts`."""
    digest = hashlib.sha256()
    with open(model, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    for part in (compiler_identity(), *parts):
        digest.update(b"\0" + part.encode())
    return digest.hexdigest()[:40]


@cache
def compiler_identity() -> str:
    """The version, and size and time of every source file: an edited source is another compiler."""
    import lowerdeck.dialects
    import lowerdeck.frontends
    import lowerdeck.lowering
    import lowerdeck.passes

    packages = (lowerdeck, lowerdeck.dialects, lowerdeck.frontends, lowerdeck.lowering)
    folders = sorted({f for p in (*packages, lowerdeck.passes) for f in p.__path__})
    digest = hashlib.sha256(importlib.metadata.version("lowerdeck").encode())
    for folder in folders:
        for path in _sources(folder):
            status = os.stat(path)
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(folder: str) -> Iterator[str]:
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (os.path.join(base, f) for f in sorted(files) if f.endswith((".py", ".h", ".c")))


def find(key: str, model: str | None = None) -> str | None:
    """
    The folder of a complete entry whose dependencies have not changed, or None.

    If there are several, it is for a model in one place only: a file like it elsewhere may have
    other weights beside it.
    """
    folder = os.path.join(cache_folder(), key)
    try:
        with open(os.path.join(folder, _DEPENDENCIES), encoding="utf-8") as file:
            dependencies: dict[str, list[int]] = json.load(file)
        if any(_state(path) != state for path, state in dependencies.items()):
            return None
        if model and len(dependencies) > 1 and os.path.abspath(model) not in dependencies:
            return None
        os.utime(folder)
    except OSError:
        return None
    return folder


def _state(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def store(scratch: str, key: str, dependencies: Iterable[str], model: str | None = None) -> str:
    """Make the folder `scratch`, which lies in the cache, the entry for `key`; returns its path."""
    states = {path: _state(path) for path in sorted(set(dependencies))}
    with open(os.path.join(scratch, _DEPENDENCIES), "w", encoding="utf-8") as file:
        json.dump(states, file)
    folder = os.path.join(cache_folder(), key)
    try:
        os.rename(scratch, folder)
    except OSError:
        # Another process was faster, or a dependency has changed: an entry is a folder with files,
        # which a rename does not replace.
        if find(key, model) is not None:
            shutil.rmtree(scratch, ignore_errors=True)
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(scratch, folder)
    _prune(folder)
    return folder


def _prune(newest: str) -> None:
    """Remove the entries not used for longest, but never the one just made."""
    entries: list[tuple[float, int, str]] = []
    for entry in os.scandir(cache_folder()):
        # Another process may remove it meanwhile.
        try:
            if entry.is_dir() and not entry.name.startswith("."):
                size = sum(os.path.getsize(file.path) for file in os.scandir(entry.path))
                entries.append((entry.stat().st_mtime, size, entry.path))
        except OSError:
            continue
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= MAX_BYTES:
            return
        if path != newest:
            shutil.rmtree(path, ignore_errors=True)
            total -= size


def is_support_file(name: str) -> bool:
    """True for files of an entry that are not part of the model."""
    return name == _DEPENDENCIES
