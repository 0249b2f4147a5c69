"""Compiles the C of a model to a library."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lowerdeck.binding import SHIM
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.lowering.targets import GCC_FLAGS, machine_key, obstacle
from lowerdeck.profile import PARTS_FLAG, PARTS_SHIM

MACHINE_SUFFIX = ".machine"
"""Of the file beside a library that says on which machines it runs, and which bytes it has."""

_SHOWN_LINES = 20
"""Lines of a C compiler's complaint that an error repeats."""


class BuildError(LowerdeckError):
    """There is no C compiler, or it has failed."""


def find_compiler() -> list[str] | None:
    """The command of the C compiler: `CC` from the environment, or the first one installed."""
    if command := shlex.split(os.environ.get("CC", "")):
        return command
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return [name]
    return None


def require_compiler() -> list[str]:
    """The command of the C compiler; BuildError if there is none."""
    command = find_compiler()
    if command is None:
        raise BuildError(
            "no C compiler found: install gcc or clang, or name one in CC; without it, "
            "'lowerdeck compile' still writes the C and 'lowerdeck run --interpret' still runs"
        )
    return command


@cache
def compiler_version(command: tuple[str, ...]) -> str:
    """What identifies a compiler: the output of `--version`."""
    result = _run([*command, "--version"])
    return result.stdout


def library_name(name: str) -> str:
    """The file name of a model's library."""
    return f"lib{name}.so"


def user_flags() -> list[str]:
    """`CFLAGS` from the environment, which come after ours."""
    return shlex.split(os.environ.get("CFLAGS", ""))


def is_for_this_machine(library: str, target: str) -> bool:
    """True if `build_library` has made just this library on a machine like this one."""
    try:
        with open(library + MACHINE_SUFFIX, encoding="utf-8") as file:
            return file.read() == _identity(library, target)
    except (OSError, ValueError):
        return False


def _identity(library: str, target: str) -> str:
    """The machines, and the content: loading a library that was cut short ends the process."""
    with open(library, "rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return f"{machine_key(target)}\n{digest.hexdigest()}\n"


def build_library(
    folder: str,
    metadata: Mapping[str, Any],
    target: str,
    command: Sequence[str] | None = None,
) -> None:
    """
    Compile the sources in `folder` to the library `target`, which appears whole.

    What kind of machine it runs on is written beside it. BuildError if the code cannot run here,
    or with the compiler's own words if it fails.
    """
    if (reason := obstacle(metadata["target"])) is not None:
        raise BuildError(f"{reason}; build it there with the CMakeLists.txt beside the C")
    command = command or require_compiler()
    name = metadata["name"]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target), prefix=".build-") as scratch:
        shim = os.path.abspath(os.path.join(scratch, "binding.c"))
        with open(shim, "w", encoding="utf-8") as file:
            # The C compiler takes one file sooner than two.
            file.write(SHIM.format(model=f"{name}.c"))
            is_traced = metadata["is_parallel"] and metadata.get("profile") is not None
            if is_traced:
                file.write(PARTS_SHIM)
        library = os.path.join(scratch, "library.so")
        options = [PARTS_FLAG] if is_traced else []
        sources = [shim, *(each for each in metadata["sources"] if each != f"{name}.c")]
        _build_shared(command, folder, metadata, library, sources, options)
        machine = os.path.join(scratch, "machine")
        with open(machine, "w", encoding="utf-8") as file:
            file.write(_identity(library, metadata["target"]))
        os.replace(library, target)
        os.replace(machine, target + MACHINE_SUFFIX)


def build_for_programs(
    folder: str, metadata: Mapping[str, Any], command: Sequence[str], *, is_static: bool
) -> None:
    """
    Compile the sources in `folder` to a library there that holds nothing but them, for programs in
    C, on whatever machine this compiler makes code for. BuildError with its own words if it fails.
    """
    name = metadata["name"]
    out = os.path.join(folder, static_library_name(name) if is_static else library_name(name))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as scratch:
        library = os.path.join(scratch, "library")
        if is_static:
            objects: list[str] = []
            for source in metadata["sources"]:
                objects.append(os.path.join(scratch, f"{source}.o"))
                _compile(command, folder, metadata, ["-c", "-o", objects[-1]], [source])
            # In this order and without times, so that the same C makes the same file.
            _checked([*_archiver(command), "rcsD", library, *objects])
        else:
            _build_shared(command, folder, metadata, library, metadata["sources"])
        os.replace(library, out)


def static_library_name(name: str) -> str:
    """The file name of a model's static library."""
    return f"lib{name}.a"


@cache
def machine_of(command: tuple[str, ...]) -> str:
    """The architecture that a C compiler makes code for (`x86_64`); empty if it does not tell."""
    result = _run([*command, "-dumpmachine"])
    return "" if result.returncode else result.stdout.strip().partition("-")[0]


def _archiver(command: Sequence[str]) -> list[str]:
    """The program `ar` that belongs to a compiler, or that `AR` names."""
    if named := shlex.split(os.environ.get("AR", "")):
        return named
    result = _run([*command, "-print-prog-name=ar"])
    return [result.stdout.strip() or "ar"] if not result.returncode else ["ar"]


def _build_shared(
    command: Sequence[str],
    folder: str,
    metadata: Mapping[str, Any],
    library: str,
    sources: Sequence[str],
    flags: Sequence[str] = (),
) -> None:
    """A shared library from sources that are those of a model."""
    libraries = [f"-l{one}" for one in metadata["libraries"]]
    options = [*flags, "-fPIC", "-shared", "-o", library]
    _compile(command, folder, metadata, options, sources, libraries)


def _compile(
    command: Sequence[str],
    folder: str,
    metadata: Mapping[str, Any],
    options: Sequence[str],
    sources: Sequence[str],
    libraries: Sequence[str] = (),
) -> None:
    refused = _refused_flags(tuple(command))
    known = [flag for flag in metadata["cflags"] if flag not in refused]
    flags = [*known, *user_flags(), *options, f"-I{folder}"]
    paths = [os.path.join(folder, source) for source in sources]
    _checked([*command, *flags, *paths, *libraries])


@cache
def _refused_flags(command: tuple[str, ...]) -> list[str]:
    """The flags for gcc that another compiler does not take, as some versions of Clang."""
    probe = ("-fsyntax-only", "-x", "c", os.devnull)
    return [flag for flag in GCC_FLAGS if _run([*command, flag, *probe]).returncode]


def _checked(command: Sequence[str]) -> None:
    """Run a command; BuildError with its own words if it fails."""
    result = _run(command)
    if result.returncode:
        lines = result.stderr.splitlines()[:_SHOWN_LINES]
        raise BuildError("\n".join([f"{' '.join(command)} failed:", *lines]))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error.strerror}") from error
