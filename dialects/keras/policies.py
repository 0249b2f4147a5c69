"""The type policies of layers: in which type one computes, and how its variables are quantized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from lowerdeck.dialects.records import record

_PLAIN = frozenset({"DTypePolicy", "Policy", "FloatDTypePolicy"})
_QUANTIZED = frozenset({"QuantizedDTypePolicy", "Int4DTypePolicy"})


@record
class Policy:
    """What a configuration says under `dtype`."""

    name: str
    """The type, or a mixture of types; the class of a policy that is not known."""
    is_known: bool = True
    mode: str = ""
    """int8, int4 and so on, or nothing."""
    block: int = -1
    """How many rows of a kernel share a scale and a zero point; all of them without zero point."""


def policy_of(config: Mapping[str, Any]) -> Policy | None:
    """The policy of a layer; None without one."""
    given = config.get("dtype")
    if given is None:
        return None
    if not isinstance(given, dict):
        name, _, source = str(given).partition("_from_")
        mode, _, block = name.partition("/")
        return Policy(source, mode=mode, block=int(block or -1)) if source else Policy(name)
    entry = cast("dict[str, Any]", given)
    kind, inner = str(entry.get("class_name")), cast("dict[str, Any]", entry.get("config") or {})
    if kind in _PLAIN:
        return Policy(str(inner.get("name")))
    if kind not in _QUANTIZED:
        return Policy(kind, is_known=False)
    mode, _, block = str(inner.get("mode")).partition("/")
    return Policy(str(inner.get("source_name")), mode=mode, block=int(block or -1))
