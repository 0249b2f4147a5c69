"""Which versions of the operator sets a graph of the onnx dialect can be written in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from lowerdeck.dialects.onnx.ops import OPSET, OnnxOp, latest_opset, op_class
from lowerdeck.exporters.errors import ExportError

NEW_OPSET = 21
"""The version of the operators of graphs that come from core."""


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


def chosen_opset(function: FuncOp, versions: range | None) -> int:
    """
    The standard opset for a function's ops, of those that are possible: that of the model, or the
    nearest. None stands for any.
    """
    own = function.attributes.get(OPSET)
    wanted = cast("IntegerAttr[Any]", own).value.data if isinstance(own, IntegerAttr) else NEW_OPSET
    return wanted if versions is None else min(max(wanted, versions[0]), versions[-1])


def versions_of(cls: type[OnnxOp]) -> range:
    """The opset versions in which an operator is this class."""
    domain, name, since = cls.schema.domain, cls.schema.name, cls.schema.since_version
    end = since + 1
    while end <= (latest_opset(domain) or 0) and op_class(domain, name, end) is cls:
        end += 1
    return range(since, end)


def _common(a: range, b: range) -> range:
    return range(max(a.start, b.start), min(a.stop, b.stop))
