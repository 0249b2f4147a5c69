"""Which versions of the operator sets a graph of the onnx dialect can be written in."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation

from lowerdeck.dialects.onnx.ops import OnnxOp, latest_opset, op_class
from lowerdeck.exporters.errors import ExportError


def opsets_of(ops: Iterable[Operation]) -> dict[str, range]:
    """
    The versions of each domain in which all ops, and those inside of them, are what they are.

    ExportError if there is none: two ops are of versions that no opset has both of.
    """
    found: dict[str, range] = {}
    for op in ops:
        for inner in op.walk():
            if isinstance(inner, OnnxOp):
                versions, new = found.get(inner.domain), versions_of(type(inner))
                found[inner.domain] = new if versions is None else _common(versions, new)
    if empty := sorted(domain for domain, versions in found.items() if not versions):
        names = ", ".join(domain or "ai.onnx" for domain in empty)
        raise ExportError(f"the ops of {names} are of versions that no opset has all of")
    return found


def versions_of(cls: type[OnnxOp]) -> range:
    """The opset versions in which an operator is this class."""
    domain, name, since = cls.schema.domain, cls.schema.name, cls.schema.since_version
    end = since
    while end <= (latest_opset(domain) or 0) and op_class(domain, name, end) is cls:
        end += 1
    return range(since, end)


def _common(a: range, b: range) -> range:
    return range(max(a.start, b.start), min(a.stop, b.stop))
