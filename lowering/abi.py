"""
How the generated C is called: the version of that, and where the fields of `NAME_args` lie.

The C of the struct is printed by `emit_c/interface.py`; bindings and the description of a model
(NAME.json) have the places of its fields from here.
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
"""The fields behind those of the tensors, in order."""


def argument_fields(inputs: Mapping[str, int], outputs: Mapping[str, int]) -> dict[str, int]:
    """
    Where each field lies, in words of 64 bits, if pointers and sizes are that wide.

    Inputs and outputs are C names with ranks. An input has the fields `x.data` and `x.dims`, an
    output `y.data`, `y.capacity` and `y.dims`; a scalar has one dimension, which is not used. The
    last one, `profile`, is there only if the model was compiled to take times.
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
    return {**fields, **{name: position + k for k, name in enumerate(AFTER_TENSORS)}}
