"""What every exporter raises."""

from __future__ import annotations

from lowerdeck.dialects.errors import CompileError


class ExportError(CompileError):
    """A module that has no form in a framework's dialect; the message lists every op at fault."""
