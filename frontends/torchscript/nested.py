"""
Nested tensors, which a traced encoder makes of sequences of different lengths: rows that are padded
with zeros, and which of them there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowerdeck.frontends.torchscript.functions import Call, Caller
from lowerdeck.frontends.torchscript.values import Instance

_KIND = "nested tensor"


def _from_mask(caller: Caller, x: Any, mask: Any, mask_check: bool = True) -> Instance:
    """The first rows of each sequence, as many as its mask has true elements."""
    del mask_check
    caller.located("_nested_tensor_from_mask")
    number = caller.call("aten.arange", [caller.size(x, 1)], {})
    lengths = caller.call("aten.sum", [mask, [1], True], {})
    beyond = caller.call("aten.ge", [number, lengths], {})
    return Instance(_KIND, {"rows": _filled(caller, x, beyond, 0.0), "beyond": beyond})


def _filled(caller: Caller, x: Any, beyond: Any, value: float) -> Any:
    wide = caller.call("aten.unsqueeze", [beyond, 2], {})
    return caller.call("aten.masked_fill", [x, wide, value], {})


def _encoded(caller: Caller, x: Any, *args: Any) -> Any:
    """A layer of an encoder, in which the rows that are there see each other."""
    caller.located("_transformer_encoder_layer_fwd")
    target = "aten._transformer_encoder_layer_fwd"
    if not isinstance(x, Instance):
        return caller.call(target, [x, *args], {})
    beyond = x.attributes["beyond"]
    rows = caller.call(target, [x.attributes["rows"], *args[:17], beyond, 1], {})
    return Instance(_KIND, {"rows": rows, "beyond": beyond})


def _padded(caller: Caller, x: Any, padding: float, sizes: Sequence[Any] | None = None) -> Any:
    """A number behind the rows that are there: up to the longest, or to given sizes."""
    caller.located("to_padded_tensor")
    rows, beyond = x.attributes["rows"], x.attributes["beyond"]
    found = _filled(caller, rows, beyond, padding)
    if sizes is None:
        there = caller.call("aten.logical_not", [beyond], {})
        lengths = caller.call("aten.sum", [there, [1]], {})
        longest = caller.item(caller.call("aten.amax", [lengths], {}))
        return caller.call("aten.slice", [found, 1, 0, longest], {})
    more: list[Any] = []
    for axis in reversed(range(len(sizes))):
        size = caller.size(rows, axis)
        more += [0, caller.builtin("torch.sub", [sizes[axis], size], {})]
    return caller.call("aten.constant_pad_nd", [found, more, padding], {}) if any(more) else found


NESTED: Mapping[str, Call] = {
    "_nested_tensor_from_mask": _from_mask,
    "_transformer_encoder_layer_fwd": _encoded,
    "to_padded_tensor": _padded,
    "nested_to_padded_tensor": _padded,
}
"""What makes, takes or gives them."""
