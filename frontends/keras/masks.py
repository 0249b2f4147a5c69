"""Masks: which steps of a sequence count, as values beside those that Keras hands on with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from lowerdeck.dialects.keras.classes import INACTIVE
from lowerdeck.frontends.keras.layers import Layer

_PASS = frozenset(
    """
    Activation Add Average BatchNormalization Dense ELU GroupNormalization LayerNormalization
    LeakyReLU Maximum Minimum Multiply Normalization PReLU ReLU Rescaling Softmax Subtract
    ThresholdedReLU UnitNormalization MultiHeadAttention GroupQueryAttention Attention
    AdditiveAttention Concatenate Masking
    """.split()
)
"""Layers whose result has the mask of their input."""

_MASKED = frozenset({"GlobalAveragePooling1D", "Softmax"})
"""Layers that take a mask, beside the recurrent ones."""

_WITHIN = frozenset({"Maximum", "Minimum", "Multiply"})
"""Layers that leave out what a mask excludes; `Add` and the like do not (Keras pull 19685)."""

_ATTENTION = dict.fromkeys(["MultiHeadAttention", "GroupQueryAttention"], ("query", "value", "key"))


class Masks:
    """The masks of values."""

    def __init__(self, add: Callable[..., list[SSAValue]], version: int, minor: int) -> None:
        self.add, self.version = add, version
        self._merge_within = (version, minor) >= (3, 4)
        self._masks: dict[SSAValue, SSAValue] = {}

    def of(self, value: Any) -> SSAValue | None:
        """The mask of a value, or of the first of several."""
        while isinstance(value, list) and value:
            value = cast("list[Any]", value)[0]
        return self._masks.get(cast("SSAValue", value)) if isinstance(value, SSAValue) else None

    def set(self, value: SSAValue, mask: SSAValue | None) -> None:
        """Let a value have a mask."""
        if mask is not None:
            self._masks[value] = mask

    def arguments(
        self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments of a call by name, with the masks that come along with values."""
        given = {
            name: value
            for name, value in kwargs.items()
            if not (name.endswith("mask") and value is None)
        }
        if (
            layer.class_name not in _MASKED
            and layer.class_name in _PASS
            and (layer.class_name not in ("Attention", "AdditiveAttention", *_ATTENTION))
        ):
            given.pop("mask", None)
        if layer.is_operation:
            return given
        if layer.class_name in _MASKED and "mask" not in given:
            if (mask := self.of(args[0])) is not None:
                given["mask"] = mask
        for place, name in enumerate(_ATTENTION.get(layer.class_name, ())):
            value = args[place] if place < len(args) else kwargs.get(name)
            if f"{name}_mask" not in given and (mask := self.of(value)) is not None:
                given[f"{name}_mask"] = mask
        if layer.class_name in ("Attention", "AdditiveAttention") and "mask" not in given:
            masks = [self.of(value) for value in args[0]]
            if any(mask is not None for mask in masks):
                given["mask"] = masks
        if layer.class_name in _WITHIN and self._merge_within:
            # Files of rows call `keras.ops.add` of two arguments a layer Add.
            parts = cast("Sequence[Any]", args[0] if isinstance(args[0], list) else args)
            masks = [self.of(value) for value in parts]
            if any(mask is not None for mask in masks):
                given["mask"] = masks
        return given

    def after(self, layer: Layer, args: Sequence[Any], result: SSAValue) -> None:
        """Give the result of a layer its mask."""
        match layer.class_name:
            case "Embedding" if layer.config.get("mask_zero"):
                self.set(result, self.add("NotEqual", f"{layer.name}/mask", [args[0], 0])[0])
            case "Masking":
                value = layer.config.get("mask_value", 0.0)
                (differs,) = self.add("NotEqual", f"{layer.name}/mask", [args[0], float(value)])
                config = {"axis": -1, "keepdims": False}
                self.set(result, self.add("Any", f"{layer.name}/mask", [differs], {}, config)[0])
            case name if name in _PASS | INACTIVE and not layer.is_operation:
                self.set(result, self._joined(layer, args[0] if args else None))
            case _:
                pass

    def _joined(self, layer: Layer, value: Any) -> SSAValue | None:
        """The mask of one value, or of several that a layer merges."""
        if not isinstance(value, list):
            return self.of(value)
        items = cast("list[Any]", value)
        if layer.class_name in ("Attention", "AdditiveAttention"):
            return self.of(items[0])
        if layer.class_name == "Concatenate" and any(self.of(item) for item in items):
            return self._concatenated(layer, items)
        found = [self.of(item) for item in items]
        if self.version > 2 and None in found:
            return None
        masks = list(dict.fromkeys(mask for mask in found if mask is not None))
        return self._all(layer, masks)

    def _concatenated(self, layer: Layer, items: list[Any]) -> SSAValue | None:
        """
        The mask of concatenated values: along time, their masks one after the other; else, in Keras
        2, where all hold, and in Keras 3 where one does. A value without a mask counts everywhere.
        """
        masks = [self.of(item) for item in items]
        known = list(dict.fromkeys(mask for mask in masks if mask is not None))
        if layer.config.get("axis", -1) == 1:
            whole = [self.of(item) or self._everywhere(layer, item) for item in items]
            return self.add("Concatenate", f"{layer.name}/mask", [whole], {}, {"axis": 1})[0]
        if self.version > 2 and None in masks:
            return None
        return self._all(layer, known)

    def _everywhere(self, layer: Layer, value: SSAValue) -> SSAValue:
        """The mask of a value that has none."""
        name = f"{layer.name}/mask"
        (zeros,) = self.add("ZerosLike", name, [value])
        (holds,) = self.add("Equal", name, [zeros, 0])
        return self.add("Any", name, [holds], {}, {"axis": -1, "keepdims": False})[0]

    def _all(self, layer: Layer, masks: list[SSAValue]) -> SSAValue | None:
        """Where all masks hold; in Keras 3, where one of them does."""
        name = "LogicalAnd" if self.version < 3 else "LogicalOr"
        total = masks[0] if masks else None
        for mask in masks[1:]:
            (total,) = self.add(name, f"{layer.name}/mask", [total, mask])
        return total
