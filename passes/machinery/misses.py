"""Why patterns do not match: the line at which the `match` of each gives up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from linecache import getline
from types import CodeType, FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def traced(match: Callable[[Any], T], op: object) -> tuple[T, str]:
    """
    What the `match` of a pattern says of an op, and where it ended: file, line and its text.

    It is the condition before a line that is no more than `return None`; and where the condition is
    that another method of the pattern has returned None, the line at which that ended.
    """
    trace = _Trace(getattr(match, "__self__", None), getattr(match, "__code__", None))
    before = sys.gettrace()
    sys.settrace(trace.called)
    try:
        result = match(op)
    finally:
        sys.settrace(before)
    return result, trace.end


class _Trace:
    """The lines of `match`, and of other methods of a pattern, as they run."""

    def __init__(self, pattern: object, code: CodeType | None) -> None:
        self._pattern = pattern
        self._code = code
        self._lines: dict[FrameType, list[int]] = {}
        self._inner = ""
        """Where a method has ended that was called by the line that runs."""
        self.end = "it has no lines in Python"

    def called(self, frame: FrameType, event: str, arg: object) -> Any:
        """What Python calls for each new frame; None if its lines do not matter."""
        code = frame.f_code
        is_method = bool(code.co_varnames) and frame.f_locals.get("self") is self._pattern
        return self._ran if code is self._code or (is_method and code.co_argcount) else None

    def _ran(self, frame: FrameType, event: str, arg: object) -> Any:
        lines = self._lines.setdefault(frame, [])
        if event == "line":
            if not _is_return_of_none(frame, frame.f_lineno):
                self._inner = ""
                lines.append(frame.f_lineno)
        elif event == "return" and arg is None and lines:
            line, file = lines[-1], frame.f_code.co_filename
            self._inner = self._inner or f"{file}:{line}: {getline(file, line).strip()}"
            self.end = self._inner
        return self._ran


def _is_return_of_none(frame: FrameType, line: int) -> bool:
    return getline(frame.f_code.co_filename, line).strip() in ("return None", "return")
