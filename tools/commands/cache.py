"""`lowerdeck cache`: where compiled models are kept, how many there are, and their removal."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    text = "show or empty the cache of compiled models"
    one = commands.add_parser("cache", help=text, description=text)
    one.add_argument(
        "action",
        choices=("info", "clear"),
        nargs="?",
        default="info",
        help="show where it is and what it holds (default), or remove all of it",
    )
    one.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Print what there is; 1 if entries cannot be removed."""
    from lowerdeck import cache, kernel_files
    from lowerdeck.dialects.files import cache_folder

    folder = cache.usable_folder()
    if folder is None:
        where = cache_folder() or "no home folder is known"
        print(f"no cache: {where}: cannot be used; LOWERDECK_CACHE names another folder")
        return 0
    entries = cache.entries()
    size = sum(entry.size for entry in entries)
    if args.action == "clear":
        left = [entry for entry in entries if not cache.remove(entry)]
        kernel_files.clear(folder)
        print(f"removed {len(entries) - len(left)} compiled models from {folder}")
        for entry in left:
            print(f"{entry.path}: cannot be removed")
        return 1 if left else 0
    print(f"folder   {folder} (set by LOWERDECK_CACHE, XDG_CACHE_HOME or HOME)")
    print(f"holds    {len(entries)} compiled models, {size:,} bytes")
    print(f"at most  {cache.MAX_BYTES:,} bytes; those not used for longest go first")
    kernels = kernel_files.bytes_used(folder)
    print(f"kernels  {kernels:,} bytes of at most {kernel_files.MAX_BYTES:,}, for other models")
    return 0
