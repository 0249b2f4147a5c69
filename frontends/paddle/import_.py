"""
One-to-one import of a program: one paddle op for each operator.

Both forms become the same dialect, whose names are those of PIR. Control flow is that of core.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.paddle.elements import ProgramError
from lowerdeck.frontends.paddle.import_pir import import_pir, operators_of
from lowerdeck.frontends.paddle.import_program import import_program
from lowerdeck.frontends.paddle.pir import read_pir
from lowerdeck.frontends.paddle.program import read_program

_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    VerifyException,
)
"""What is raised where a program lacks something, or has it in another form."""


def import_model(
    path: str | os.PathLike[str],
    *,
    is_pir: bool,
    weights: str | os.PathLike[str] | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module for a program: `func.func @main`.

    Arguments are what is fed, results what is fetched, or the tensors `outputs` instead.
    `input_shapes` replaces the shapes of inputs; `weights` is a file, or a folder with one for each
    weight, if they are not beside the program. FrontendError lists everything that prevents the
    import.
    """
    file = os.fspath(path)
    load = import_pir if is_pir else import_program
    try:
        return load(
            file, None if weights is None else os.fspath(weights), outputs, input_shapes or {}
        )
    except (FrontendError, MemoryError):
        raise
    except (ProgramError, OSError) as error:
        raise FrontendError.of_file(file, f"the program is broken: {error}") from None
    except _BROKEN as error:
        text = f"the program is broken: {type(error).__name__} {error}"
        raise FrontendError.of_file(file, text[:500]) from None


def operators(path: str, *, is_pir: bool) -> Iterator[tuple[str, str]]:
    """The operators of a program, and how messages call their nodes."""
    try:
        if is_pir:
            for node in operators_of(read_pir(path)):
                yield node.op_type, node.name
            return
        for section in read_program(path).sections:
            for call in section.calls:
                if call.op_type not in ("feed", "fetch"):
                    yield call.op_type, call.name
    except _BROKEN as error:
        raise FrontendError.of_file(path, f"the program is broken: {error}") from None
