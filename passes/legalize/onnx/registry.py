"""Which function legalizes which operator version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.records import record

if TYPE_CHECKING:
    from lowerdeck.dialects.onnx.ops import OnnxOp
    from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a result of the node, None for results that are absent."""
Handler: TypeAlias = "Callable[[OnnxOp, OnnxLegalizer], Results]"


@record
class _Entry:
    since: int
    until: int | None
    handler: Handler

    def covers(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)


_HANDLERS: dict[tuple[str, str], list[_Entry]] = {}


def legalizes(
    *op_types: str, since: int = 1, until: int | None = None, domain: str = ""
) -> Callable[[Handler], Handler]:
    """
    Register a function as the legalization of operators, for the versions (`since_version` of the
    op class) from `since` to `until`, both included.
    """

    def register(handler: Handler) -> Handler:
        for op_type in op_types:
            entries = _HANDLERS.setdefault((domain, op_type), [])
            entry = _Entry(since, until, handler)
            if any(other.covers(since) or entry.covers(other.since) for other in entries):
                raise ValueError(f"{op_type} has two legalizations from version {since} on")
            entries.append(entry)
        return handler

    return register


def registered_handler(op: OnnxOp) -> Handler | None:
    """The function for an op, or None."""
    for entry in _HANDLERS.get((op.domain, op.op_type), ()):
        if entry.covers(op.since_version):
            return entry.handler
    return None
