"""What the command line tools share: errors for users, and start-up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lowerdeck.dialects.recursion import working_on_modules

_LISTED = 16
"""Ops that fail verification and are named, before the rest is left out."""

_LINE_LENGTH = 200
"""Characters of a line of IR that an error quotes."""

FAULT = 70
"""The exit status of a fault of ours, apart from those for errors of users (1)."""

TERMINATED = 128 + 15
"""The exit status after SIGTERM."""

EXIT_CODES = (
    "exit codes: 0 success; 1 a wrong model, file or option, or a model that cannot be compiled; "
    "of check: 2 results that differ, 3 results that could not all be compared; "
    f"{FAULT} a fault of lowerdeck; 130 interrupted; {TERMINATED} terminated"
)
"""What `--help` and the documents say of them."""

_TRACEBACK = "LOWERDECK_TRACEBACK"
"""The environment variable with which a fault shows its traceback."""


class ToolError(Exception):
    """What is wrong with the user's files or options: one message, without a traceback."""


def run_tool(tool: str, main: Callable[[], int]) -> int:
    """
    The exit status of `main`; errors that users can cause become one message on stderr and 1, and
    faults of ours become one message and FAULT.
    """
    with working_on_modules(), _ending_cleanly():
        return _status_of(tool, main)


class _TerminatedError(BaseException):
    """SIGTERM has come."""


@contextmanager
def _ending_cleanly() -> Generator[None]:
    """SIGTERM ends what runs as an exception does, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise _TerminatedError

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _status_of(tool: str, main: Callable[[], int]) -> int:
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has gone, as `head` does. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except _TerminatedError:
        return TERMINATED
    except SystemExit as error:
        # argparse has printed its message and leaves with 2.
        return 0 if not error.code else 1
    except user_errors() as error:
        print(message_of(error, tool), file=sys.stderr)
        return 1
    except Exception as error:
        return _report_fault(error, tool)


def _report_fault(error: Exception, tool: str) -> int:
    """The exit status of a fault of ours, which is one message, too."""
    from lowerdeck.dialects.errors import LimitError, located

    raised = located(error, tool)
    print(raised, file=sys.stderr)
    if isinstance(raised, LimitError):
        return 1
    if os.environ.get(_TRACEBACK):
        import traceback

        traceback.print_exception(error)
    else:
        print(f"{tool}: set {_TRACEBACK}=1 to see where it happened", file=sys.stderr)
    return FAULT


def user_errors() -> tuple[type[Exception], ...]:
    """The exceptions that a wrong input or option causes; any other is a bug of ours."""
    from xdsl.utils.exceptions import (
        DiagnosticException,
        ParseError,
        UnregisteredConstructException,
    )

    from lowerdeck.build import BuildError
    from lowerdeck.dialects.blob import ElidedBlobError
    from lowerdeck.dialects.errors import ModelError, PluginFault
    from lowerdeck.lowering.targets.machine import MachineError
    from lowerdeck.passes.machinery.options import OptionError
    from lowerdeck.plugins import PluginError

    return (
        ToolError,
        BuildError,
        DiagnosticException,
        ElidedBlobError,
        MachineError,
        ModelError,
        OSError,
        OptionError,
        ParseError,
        PluginError,
        PluginFault,
        UnregisteredConstructException,
    )


def message_of(error: Exception, subject: str) -> str:
    """The text of an error, without the notes that hold whole modules; begins with a file."""
    from xdsl.utils.exceptions import ParseError

    from lowerdeck.dialects.errors import ModelError
    from lowerdeck.passes.machinery.options import OptionError

    match error:
        case ParseError():
            place, *context = str(error).splitlines()
            text = "\n".join([f"{place}: {error.msg}", *map(_shortened, context[:2])])
        case ToolError() | ModelError():
            text = str(error)
        case OSError():
            text = f"{error.filename or subject}: {error.strerror or error}"
        case OptionError():
            flags = ((name.replace("_", "-"), text) for name, text in error.problems)
            text = "\n".join(f"{subject}: --{flag}: {text}" for flag, text in flags)
        case _:
            text = str(error).rstrip() or type(error).__name__
            # What is wrong may be in a file of the folder that is spoken of.
            starts = (f"{subject}:", f"{subject.rstrip(os.sep)}{os.sep}")
            text = text if text.startswith(starts) else f"{subject}: {text}"
    return text


@contextmanager
def about(file: str) -> Generator[None]:
    """Errors of users inside become a ToolError that begins with `file`."""
    try:
        yield
    except ToolError:
        raise
    except user_errors() as error:
        raise ToolError(message_of(error, file)) from error
    except Exception as error:
        from lowerdeck.dialects.errors import LimitError, located

        raised = located(error, file)
        raised = ToolError(str(raised)) if isinstance(raised, LimitError) else raised
        if raised is error:
            raise
        raise raised from error


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]} ..."


def verify(module: Any, file: str, last_pass: str | None = None) -> None:
    """ToolError that lists the ops of `module` that are not well-formed, with their sources."""
    from lowerdeck.dialects.verification import problems_of

    if found := problems_of(module):
        problems = list(_listed(found, file))
        if last_pass is not None:
            problems.append(f"{file}: note: this is the module after the pass '{last_pass}'")
        raise ToolError("\n".join(problems))


def _listed(found: Sequence[tuple[Any, str]], file: str) -> Iterator[str]:
    from lowerdeck.passes.machinery.provenance import describe, source_file

    for op, text in found[:_LISTED]:
        where = describe(op) if source_file(op) is not None else f"{file}: {describe(op)}"
        yield f"{where}: {text}"
    if len(found) > _LISTED:
        yield f"{file}: note: more ops do not verify"
