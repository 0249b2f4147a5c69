"""Libraries of C that is compiled again and again, run after run: unchanged C is compiled once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lowerdeck.build import compiler_version
from lowerdeck.lowering.targets import machine_key

KEPT = Path(__file__).parents[2] / ".pytest_cache" / "libraries"
"""They are forgotten with what else pytest keeps."""

MAX_BYTES = 512 << 20


def build(command: Sequence[str], sources: Sequence[Path], library: Path) -> None:
    """
    Run a C compiler on sources and whatever lies beside them, or take what it has made of the same.
    """
    kept = KEPT / _key(command, sources)
    if kept.exists():
        os.utime(kept)
        # One that is loaded already stays as it is.
        library.unlink(missing_ok=True)
        shutil.copy(kept, library)
        return
    done = subprocess.run(
        [*command, "-o", str(library), *map(str, sources), "-lm", "-lpthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:4000]
    _make_room()
    with tempfile.NamedTemporaryFile(dir=KEPT, prefix=".new-", delete=False) as new:
        new.write(library.read_bytes())
    os.replace(new.name, kept)


def _key(command: Sequence[str], sources: Sequence[Path]) -> str:
    """The compiler, its flags, the machine, and all sources and headers."""
    digest = hashlib.sha256(compiler_version((command[0],)).encode())
    digest.update("\0".join([*command, machine_key("native"), *(s.name for s in sources)]).encode())
    for file in sorted(sources[0].parent.iterdir()):
        if file.suffix in (".c", ".h"):
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _make_room() -> None:
    """Remove those that were not used for longest, once a process."""
    KEPT.mkdir(parents=True, exist_ok=True)
    states = [(file.stat(), file) for file in KEPT.iterdir() if not file.name.startswith(".")]
    total = sum(state.st_size for state, _ in states)
    for state, file in sorted(states, key=lambda pair: pair[0].st_mtime):
        if total <= MAX_BYTES:
            break
        file.unlink(missing_ok=True)
        total -= state.st_size
