"""Structural hashes of ops: ops with equal keys compute the same, whatever their values' names."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from xdsl.ir import Operation, Region, SSAValue

from lowerdeck.dialects.walking import operands_of


def details(op: Operation) -> Hashable:
    """The properties and attributes of an op."""
    return (_sorted(op.properties), _sorted(op.attributes))


Details: TypeAlias = Callable[[Operation], Hashable]
"""What a key says of an op besides its class, operands, result types and regions."""


def op_key(op: Operation, numbers: dict[SSAValue, int], details_of: Details = details) -> Hashable:
    """
    Name, operands, details (properties and attributes), result types and regions of an op.

    `numbers` names the values defined inside the region whose key is built; others are compared by
    identity.
    """
    operands = tuple(numbers.get(value, value) for value in operands_of(op))
    # The results' types are part of the key: they may be more precise than the inferred ones.
    key = (type(op), operands, tuple(op.result_types), details_of(op))
    if not op.regions:
        return key
    return (*key, tuple(region_key(region, numbers, details_of) for region in op.regions))


def nameless_key(op: Operation) -> Hashable:
    """The key of an op with regions and a symbol name, without that name and its operands."""
    entries = {**op.properties, **op.attributes, "sym_name": None}
    return (_sorted(entries), tuple(region_key(region, {}) for region in op.regions))


def region_key(
    region: Region, numbers: dict[SSAValue, int], details_of: Details = details
) -> Hashable:
    """The ops of all blocks of a region, in order, and the types of the blocks' arguments."""
    keys: list[Hashable] = []
    for block in region.blocks:
        keys.append(tuple(block.arg_types))
        for arg in block.args:
            numbers[arg] = len(numbers)
        for op in block.ops:
            keys.append(op_key(op, numbers, details_of))
            for result in op.results:
                numbers[result] = len(numbers)
    return tuple(keys)


def _sorted(attributes: dict[str, Any]) -> Hashable:
    if len(attributes) < 2:
        return tuple(attributes.items())
    return tuple(sorted(attributes.items(), key=lambda item: item[0]))
