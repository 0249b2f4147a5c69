"""What lowering reports when it cannot go on."""

from __future__ import annotations

from xdsl.ir import Operation

from lowerdeck.dialects.errors import CompileError
from lowerdeck.passes.machinery.provenance import describe


class LoweringError(CompileError):
    """An op that cannot be lowered, with its source nodes."""

    def __init__(self, op: Operation, message: str) -> None:
        super().__init__(f"{describe(op)}: {message}")
