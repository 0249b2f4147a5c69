"""
lit's tests in this process: a tool of ours is a call of its `main` instead of a program.

lit reads the tests, is their shell and says what failed, as ever; only the way in which it starts a
program is another. Most of the time of a textual test would be the start of Python.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any
from unittest.mock import patch

import lit.TestRunner
from filecheck.main import main as filecheck

from lowerdeck.plugins import temporarily
from lowerdeck.tools.opt_tool import main as opt_tool

MAINS: Mapping[str, Callable[[Sequence[str]], object]] = {
    "filecheck": lambda args: filecheck(["filecheck", *args]),
    "opt-tool": opt_tool,
}
"""By name, what a program does with its arguments: the status, or SystemExit, as in its script."""

PROCESS_WIDE = frozenset({"--disable-verify", "--syntax-highlight"})
"""Options that change classes of xDSL for the rest of a process."""


@contextmanager
def tools_in_process() -> Generator[None]:
    """Within, lit starts no process for the tools of MAINS."""
    start = SimpleNamespace(PIPE=subprocess.PIPE, STDOUT=subprocess.STDOUT, Popen=_start)
    with patch.object(lit.TestRunner, "subprocess", start):
        yield


def _start(
    args: Sequence[str], *, executable: str, env: Mapping[str, str], **options: Any
) -> _Finished | subprocess.Popen[str]:
    """What stands for `subprocess.Popen` in lit's shell."""
    name = Path(executable).name
    if name in MAINS and PROCESS_WIDE.isdisjoint(args):
        streams = (options[stream] for stream in ("stdin", "stdout", "stderr"))
        return _Finished(name, args[1:], env, options["cwd"], *streams)
    return subprocess.Popen(args, executable=executable, env=env, **options)


class _Finished:
    """
    A program that has run, with as much of `subprocess.Popen` as lit's shell uses.

    Pipes are files, so that they hold all that is written, and processes can read from them.
    """

    def __init__(
        self,
        name: str,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        stdin: IO[str] | int,
        stdout: IO[str] | int,
        stderr: IO[str] | int,
    ) -> None:
        self.stdin = _pipe() if stdin == subprocess.PIPE else None
        self.stdout = _pipe() if stdout == subprocess.PIPE else None
        self.stderr = _pipe() if stderr == subprocess.PIPE else None
        files = (self.stdin or stdin, self.stdout or stdout, self.stderr or stderr)
        with _process(env, cwd, *files), temporarily(), _modules_of(env):
            self.returncode = _status(name, args)
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.seek(0)

    def communicate(self) -> tuple[str | None, str | None]:
        """What is unread of stdout and of stderr; None for one that is no pipe."""
        return self.stdout and self.stdout.read(), self.stderr and self.stderr.read()

    def wait(self) -> int:
        """The exit status."""
        return self.returncode


def _pipe() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")


@contextmanager
def _process(
    env: Mapping[str, str],
    cwd: str,
    stdin: IO[str] | int,
    stdout: IO[str] | int,
    stderr: IO[str] | int,
) -> Generator[None]:
    """Streams, environment and settings of Python as those of a process; then what they were."""
    collects, limit = gc.isenabled(), sys.getrecursionlimit()
    with ExitStack() as stack:
        out = stack.enter_context(_again(stdout, "w"))
        error = out if stderr == subprocess.STDOUT else stack.enter_context(_again(stderr, "w"))
        stack.enter_context(patch.object(sys, "stdin", stack.enter_context(_again(stdin, "r"))))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(error))
        stack.enter_context(patch.dict(os.environ, env, clear=True))
        stack.enter_context(chdir(cwd))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)
            if collects:
                gc.enable()


@contextmanager
def _modules_of(env: Mapping[str, str]) -> Generator[None]:
    """What lies in the folders of PYTHONPATH can be imported, and is forgotten behind that."""
    named = env.get("PYTHONPATH", "").split(os.pathsep)
    folders = [folder for folder in named if folder and folder not in sys.path]
    before = set(sys.modules)
    with patch.object(sys, "path", [*folders, *sys.path]):
        yield
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if any(Path(file).is_relative_to(folder) for folder in folders):
            del sys.modules[name]


def _again(file: IO[str] | int, mode: str) -> IO[str]:
    """The same open file: whoever closes this one does not close that."""
    assert not isinstance(file, int)
    return open(os.dup(file.fileno()), mode, encoding="utf-8")


def _status(name: str, args: Sequence[str]) -> int:
    """What the program ends with, once its `main` has written all it has to say."""
    try:
        status = MAINS[name](args)
    except SystemExit as error:
        status = error.code
    except Exception:
        # As Python ends a process; the test sees the traceback and the status.
        traceback.print_exc()
        status = 1
    return status if isinstance(status, int) else int(status is not None)
