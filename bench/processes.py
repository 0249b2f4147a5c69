"""Modules of `bench` and `models` in processes of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command_of(
    module: str, *arguments: str | Path, python: str | Path = sys.executable
) -> list[str]:
    """What runs a module, in the environment of `environment_for`, wherever the process is."""
    return [str(python), "-P", "-m", module, *map(str, arguments)]


def environment_for(product: Path = ROOT) -> dict[str, str]:
    """The environment, with modules of this checkout and the product of that one."""
    paths = [str(product / "typings"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
