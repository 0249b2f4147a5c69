"""The folder of a compiled model: its C, its weights, its description and its library."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lowerdeck import cache as disk_cache
from lowerdeck.binding import Binding
from lowerdeck.build import build_library, is_for_this_machine, library_name
from lowerdeck.metadata import read_metadata

if TYPE_CHECKING:
    from lowerdeck.lowering.emit_c.module import CArtifact


class OwnFolder:
    """A temporary folder that is there as long as this, which a model owns."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="lowerdeck-")
        # Not a TemporaryDirectory, which warns where it is not closed by hand.
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def build(folder: str, command: Sequence[str] | None = None) -> None:
    """
    Compile the library of a model into the folder that holds its C, by the C compiler `command` or
    the one that is installed.

    BuildError if there is no C compiler, or if it fails.
    """
    metadata = read_metadata(folder)
    library = os.path.join(folder, library_name(metadata["name"]))
    build_library(folder, metadata, library, command)


def write_artifact(artifact: CArtifact, folder: str) -> None:
    """Write the C of a module, its weights and its description into an existing folder."""
    from lowerdeck.lowering.emit_c.interface import weights_source

    texts = {**artifact.files, f"{artifact.name}.json": json.dumps(artifact.metadata, indent=2)}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    if artifact.embeds_weights:
        path = os.path.join(folder, weights_source(artifact.name))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(artifact.weights_text())
    elif artifact.weights_size:
        with open(os.path.join(folder, f"{artifact.name}.weights"), "wb") as file:
            for chunk in artifact.weight_chunks():
                file.write(chunk)


def build_artifact(artifact: CArtifact, folder: str) -> None:
    """
    Write the C of a module and its library into an existing folder, for `load`.

    BuildError if there is no C compiler, or if it fails.
    """
    write_artifact(artifact, folder)
    build(folder)


def write_files(files: Mapping[str, bytes], folder: str) -> None:
    for name, data in files.items():
        with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
            file.write(data)


def digest_of(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def publish(source: str, folder: str) -> None:
    """Copy the files of a model into a folder, made if missing; each appears whole."""
    os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
        names = [n for n in sorted(os.listdir(source)) if not disk_cache.is_support_file(n)]
        for name in names:
            shutil.copyfile(os.path.join(source, name), os.path.join(scratch, name))
        for name in names:
            os.replace(os.path.join(scratch, name), os.path.join(folder, name))


def open_library(folder: str, metadata: Mapping[str, Any], threads: int) -> Binding:
    """The library of a model; compiled here if there is none, or none that this machine loads."""
    library = os.path.join(folder, library_name(metadata["name"]))
    if os.path.exists(library) and is_for_this_machine(library, metadata["target"]):
        try:
            return Binding(folder, metadata, library, threads)
        except OSError:
            # Of another system. If the weights are what is missing, this fails again below.
            pass
    with tempfile.TemporaryDirectory(prefix="lowerdeck-") as scratch:
        rebuilt = os.path.join(scratch, library_name(metadata["name"]))
        build_library(folder, metadata, rebuilt)
        return Binding(folder, metadata, rebuilt, threads)
