"""The versions of what results may depend on: for reports of faults."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("xdsl", "onnx", "numpy", "ml-dtypes", "protobuf")


def versions() -> Iterator[tuple[str, str]]:
    """Name and version: lowerdeck first, then packages, Python, machine and C compiler."""
    for package in ("lowerdeck", *_PACKAGES):
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, "missing"
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "machine", f"{platform.system()} {platform.machine()}"
    yield "C compiler", _compiler()


def _compiler() -> str:
    from lowerdeck.build import compiler_version, find_compiler

    command = find_compiler()
    if command is None:
        return "none"
    try:
        lines = compiler_version(tuple(command)).splitlines()
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return f"{' '.join(command)}: {lines[0] if lines else 'unknown'}"
