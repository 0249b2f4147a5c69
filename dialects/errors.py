"""
What is told apart when something goes wrong: models that are wrong, limits, and our own faults.

Whatever is wrong with a model or cannot be compiled has an error of its own (`is_declared`). Any
other exception is a fault: of a plugin if it passed through a file of one, and else of the
compiler. It becomes a PluginFault or an InternalError where it is known what was being worked on.
Code outside may catch them; code of ours must not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from traceback import walk_tb
from types import CodeType

from xdsl.utils.exceptions import (
    DiagnosticException,
    ParseError,
    PassFailedException,
    UnregisteredConstructException,
    VerifyException,
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


class PluginFault(LowerdeckError):
    """A fault of a plugin; the message names its file and line, its cause tells what happened."""


PLUGIN_FILES: dict[str, str] = {}
"""The plugin that a file is of, by the path that Python knows the file by."""

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


def located(error: Exception, where: str, suspect: object = None) -> Exception:
    """
    What an exception that came out of the work on `where` (file, node, op) is raised as; `suspect`
    is the function whose result was at fault, if it was no longer running.
    """
    place = None if _is_meant(error) else _place_in_plugin(error, suspect)
    if place is None and is_declared(error):
        return error
    if place is None and isinstance(error, RecursionError):
        return LimitError(f"{where}: regions or types are nested too deeply")
    if isinstance(error, MemoryError):
        return LimitError(f"{where}: there is not enough memory")
    text = str(error).partition("\n")[0]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if place is not None:
        return PluginFault(f"{where}: {what}; {place}")
    return InternalError(
        f"{where}: {what}; this is a fault of lowerdeck: please report it with the model"
    )


def _is_meant(error: Exception) -> bool:
    """True for what a plugin may raise to say something of a model."""
    return is_declared(error) and not isinstance(error, VerifyException)


def _place_in_plugin(error: Exception, suspect: object) -> str | None:
    """The innermost line of a plugin's that an exception passed through, or the suspect's first."""
    lines = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    code = getattr(suspect, "__code__", None)
    if isinstance(code, CodeType):
        lines.insert(0, (code, code.co_firstlineno))
    own = [(code, line) for code, line in lines if code.co_filename in PLUGIN_FILES]
    if isinstance(error, RecursionError) and len(own) == len({code for code, _ in own}):
        return None  # it is not the plugin that calls itself
    if not own:
        return None
    code, line = own[-1]
    plugin = PLUGIN_FILES[code.co_filename]
    return f"{code.co_filename}:{line}, in {code.co_qualname}, of {plugin}"


def plugin_of(class_: type) -> str:
    """The plugin that a class is of, and its file."""
    file = getattr(sys.modules.get(class_.__module__), "__file__", None) or class_.__module__
    plugin = PLUGIN_FILES.get(file, "a plugin")
    return plugin if file in plugin else f"{plugin} ({file})"


@contextmanager
def working_on(where: Callable[[], str]) -> Generator[None]:
    """Exceptions that are not declared become an InternalError (or LimitError) with a place."""
    try:
        yield
    except Exception as error:
        if (raised := located(error, where())) is error:
            raise
        raise raised from error
