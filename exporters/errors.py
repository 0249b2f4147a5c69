"""What every exporter raises."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException


class ExportError(PassFailedException):
    """A module that has no form in a framework's dialect; the message lists every op at fault."""
