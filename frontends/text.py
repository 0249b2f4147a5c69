"""Reads IR text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.errors import FrontendError


def read_module(
    path: str,
    context: Context | None,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """The module in a file of IR text; FrontendError if it cannot be read."""
    if outputs is not None or input_shapes:
        message = "outputs and input shapes cannot be changed in IR text; edit the text"
        raise FrontendError.of_file(path, message)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return Parser(context or default_context(), text, path).parse_module()
    except OSError as error:
        raise FrontendError.of_file(path, f"cannot be read: {error.strerror}") from None
    except (ParseError, VerifyException, UnicodeDecodeError) as error:
        raise FrontendError.of_file(path, f"is not valid IR text:\n{error}") from None
    except RecursionError:
        raise FrontendError.of_file(path, "its regions are nested too deeply") from None


def default_context() -> Context:
    """A context with all dialects."""
    context = Context()
    register_dialects(context)
    return context
