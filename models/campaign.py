"""What campaigns through many cases share: where they run, and how their programs begin."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import cast

from lowerdeck.engines import Engine, Processes


def add_options(parser: argparse.ArgumentParser, jobs: int = 1) -> None:
    """Add what `engine_of` reads."""
    parser.add_argument("--jobs", type=int, default=jobs, help="processes of this machine")
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run on a cluster instead, that of $RAY_ADDRESS by default, or else one of this "
        "machine alone; its nodes have this checkout in the same place",
    )


def every_processor() -> int:
    """How many processes keep this machine busy."""
    return os.cpu_count() or 1


def engine_of(options: argparse.Namespace) -> Engine:
    """Where a campaign runs; RayError without Ray or cluster."""
    if options.ray is None:
        return Processes(options.jobs)
    from lowerdeck.ray import Cluster

    return Cluster(options.ray or None)


def main_of(spec: ModuleSpec | None) -> int:
    """
    `main` of the module that runs as a program, by its own name: under that of `__main__`, other
    processes would not find what tasks refer to.
    """
    return cast("int", import_module(cast("ModuleSpec", spec).name).main())
