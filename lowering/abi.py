"""
The calling interface of the generated C: its version, and the offsets of the fields of `NAME_args`.

`emit_c/interface.py` prints the C struct; bindings and the model description (NAME.json) take the
offsets of its fields from here.
"""

from __future__ import annotations

from collections.abc import Mapping

ABI = 1
"""The version of the interface, as in `lowerdeck.h`."""

AFTER_TENSORS = (
    "weights",
    "weights_size",
    "workspace",
    "workspace_size",
    "pool",
    "allocator",
    "profile",
)
"""The fields after those of the tensors and of the state, in order."""

STATE = "state"
"""The field before them, of a model that remembers: a pointer to its `NAME_state`."""


def argument_fields(
    inputs: Mapping[str, int], outputs: Mapping[str, int], *, has_state: bool = False
) -> dict[str, int]:
    """
    The offset of each field, in 64-bit words, if pointers and sizes are that wide.

    Inputs and outputs are C names with ranks. An input has the fields `x.data` and `x.dims`, an
    output `y.data`, `y.capacity` and `y.dims`; a scalar has one dimension, which is not used. The
    last one, `profile`, exists only if the model was compiled with profiling.
    """
    fields: dict[str, int] = {}
    position = 0
    for ports, names in ((inputs, ("data",)), (outputs, ("data", "capacity"))):
        for port, rank in ports.items():
            for name in names:
                fields[f"{port}.{name}"] = position
                position += 1
            fields[f"{port}.dims"] = position
            position += max(rank, 1)
    rest = (STATE, *AFTER_TENSORS) if has_state else AFTER_TENSORS
    return {**fields, **{name: position + k for k, name in enumerate(rest)}}
