"""
What is told apart when something goes wrong: models that are wrong, limits, and our own faults.

Whatever is wrong with a model or cannot be compiled has an error of its own (`is_declared`). Any
other exception is a fault of the compiler, and becomes an InternalError where it is known what was
being worked on. Code outside may catch it; code of ours must not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    PassFailedException,
    UnregisteredConstructException,
)


class LowerdeckError(Exception):
    """What lowerdeck raises; the message is whole without a traceback."""


class ModelError(LowerdeckError):
    """A model that is wrong, or that cannot be read; the message names its file."""


class CompileError(LowerdeckError, PassFailedException):
    """What passes cannot compile; the message lists every op at fault, with its source nodes."""


class LimitError(ModelError):
    """A model for which this machine has not enough memory, or Python not enough stack."""


class InternalError(LowerdeckError):
    """A fault of the compiler; its cause is the exception that tells what happened."""


_DECLARED = (
    DiagnosticException,
    LowerdeckError,
    OSError,
    ParseError,
    UnregisteredConstructException,
)


def is_declared(error: BaseException) -> bool:
    """True for an exception whose message says already what is wrong, and where."""
    return isinstance(error, _DECLARED) or not isinstance(error, Exception)


def located(error: Exception, where: str) -> Exception:
    """What an exception that came out of the work on `where` (file, node, op) is raised as."""
    if is_declared(error):
        return error
    if isinstance(error, RecursionError):
        return LimitError(f"{where}: regions or types are nested too deeply")
    if isinstance(error, MemoryError):
        return LimitError(f"{where}: there is not enough memory")
    text = str(error).partition("\n")[0]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return InternalError(
        f"{where}: {what}; this is a fault of lowerdeck: please report it with the model"
    )


@contextmanager
def working_on(where: Callable[[], str]) -> Generator[None]:
    """Exceptions that are not declared become an InternalError (or LimitError) with a place."""
    try:
        yield
    except Exception as error:
        if (raised := located(error, where())) is error:
            raise
        raise raised from error
