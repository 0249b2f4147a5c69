"""Compiles the C of a model to a shared library."""

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
from lowerdeck.lowering.targets import machine_key, obstacle

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


def build_library(folder: str, metadata: Mapping[str, Any], target: str) -> None:
    """
    Compile the sources in `folder` to the library `target`, which appears whole.

    What kind of machine it runs on is written beside it. BuildError if the code cannot run here,
    or with the compiler's own words if it fails.
    """
    if (reason := obstacle(metadata["target"])) is not None:
        raise BuildError(f"{reason}; build it there with the CMakeLists.txt beside the C")
    command = require_compiler()
    name = metadata["name"]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target), prefix=".build-") as scratch:
        shim = os.path.join(scratch, "binding.c")
        with open(shim, "w", encoding="utf-8") as file:
            file.write(SHIM.format(name=name))
        sources = [os.path.join(folder, source) for source in metadata["sources"]]
        library = os.path.join(scratch, "library.so")
        options = [
            *metadata["cflags"],
            *user_flags(),
            "-fPIC",
            "-shared",
            f"-I{folder}",
            "-o",
            library,
        ]
        libraries = [f"-l{library}" for library in metadata["libraries"]]
        result = _run([*command, *options, *sources, shim, *libraries])
        if result.returncode:
            lines = result.stderr.splitlines()[:_SHOWN_LINES]
            raise BuildError("\n".join([f"{' '.join(command)} failed:", *lines]))
        machine = os.path.join(scratch, "machine")
        with open(machine, "w", encoding="utf-8") as file:
            file.write(_identity(library, metadata["target"]))
        os.replace(library, target)
        os.replace(machine, target + MACHINE_SUFFIX)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"cannot run the C compiler {command[0]}: {error.strerror}") from error
