"""
Is the C the same? Digests of everything that is generated, before and after a change.

    python -m bench.same_c write FILE MODEL ... [--targets T ...] [--threads N ...]
    python -m bench.same_c compare BEFORE AFTER

`write` compiles every model to C for every target and number of threads, and writes a SHA-256 of
each generated file (the C, the header, the weights, the description) into FILE, a JSON of
`model -> target/threads -> file -> digest`; what FILE holds for other models or targets stays. A
model that is refused has the message in place of files. `compare` lists what differs, by model,
target and file, and what only one of the two holds; its exit status is 1 if anything differs.

To compare two checkouts, run the script of either with PYTHONPATH set to the `typings` folder of
the one that is to generate the C.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

Files: TypeAlias = "dict[str, str]"
"""Digest by name of file."""
Digests: TypeAlias = "dict[str, dict[str, Files]]"
"""By model, then by target and threads."""

TARGETS = ("x86-64-v4", "x86-64-v3", "aarch64", "c99")
THREADS = (1, 2)


def digests_of(model: str, target: str, threads: int) -> Files:
    """The digests of what is generated for a model; the message of a refusal."""
    from xdsl.utils.exceptions import PassFailedException

    from lowerdeck.compiler import CompileOptions, generate
    from lowerdeck.dialects.errors import InternalError
    from lowerdeck.frontends.errors import FrontendError

    with tempfile.TemporaryDirectory(prefix="same-c-") as folder:
        try:
            generate(model, folder, CompileOptions(target=target, threads=threads))
        except (FrontendError, PassFailedException, InternalError) as error:
            return {"refusal": str(error)}
        return {file.name: _digest(file) for file in sorted(Path(folder).iterdir())}


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def write(
    file: Path, models: Sequence[str], targets: Sequence[str], threads: Sequence[int]
) -> None:
    """Add the digests of models to a file, model after model, so that an end in between is none."""
    known = read(file) if file.exists() else {}
    for model in models:
        for target in targets:
            for number in threads:
                found = digests_of(model, target, number)
                known.setdefault(model, {})[f"{target}/{number}"] = found
                print(f"{model} {target}/{number}: {len(found)} files", flush=True)
        file.write_text(json.dumps(known, indent=1, sort_keys=True))


def read(file: Path) -> Digests:
    """What `write` has written."""
    return json.loads(file.read_text())


def differences(before: Digests, after: Digests) -> Iterator[str]:
    """A line for each file that differs, and for each that one side alone has."""
    for model in sorted(before.keys() | after.keys()):
        one, other = before.get(model, {}), after.get(model, {})
        for variant in sorted(one.keys() | other.keys()):
            old, new = one.get(variant, {}), other.get(variant, {})
            for name in sorted(old.keys() | new.keys()):
                if name not in new:
                    yield f"{model} {variant} {name}: only before"
                elif name not in old:
                    yield f"{model} {variant} {name}: only after"
                elif old[name] != new[name]:
                    yield f"{model} {variant} {name}: differs"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="digests of what is generated")
    writing.add_argument("file", type=Path)
    writing.add_argument("models", nargs="+")
    writing.add_argument("--targets", nargs="+", default=TARGETS)
    writing.add_argument("--threads", nargs="+", type=int, default=THREADS)
    comparing = commands.add_parser("compare", help="what differs between two files of digests")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "write":
        write(arguments.file, arguments.models, arguments.targets, arguments.threads)
        return 0
    lines = list(differences(read(arguments.before), read(arguments.after)))
    print(*lines, sep="\n") if lines else print("everything is the same")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
