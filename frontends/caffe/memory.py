"""Blobs that have their elements in the same memory, where a layer in place changes them all."""

from __future__ import annotations

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter

_VIEWS = frozenset({"Flatten", "Reshape", "Split"})
"""The layers whose tops are the memory of their bottom in another shape."""


def is_in_place(layer: LayerParameter, top: int) -> bool:
    """True if a layer writes a top over the bottom of the same number."""
    return top < len(layer.bottom) and layer.bottom[top] == layer.top[top]


class SharedMemory:
    """Which blobs of a net share their memory, layer after layer."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = {}
        self._changed: dict[str, str] = {}

    def add(self, layer: LayerParameter) -> None:
        """Note what the next layer shares and changes."""
        is_view = layer.type in _VIEWS or (
            layer.type in ("Concat", "Slice") and len(layer.bottom) == len(layer.top) == 1
        )
        for index, name in enumerate(layer.top):
            if is_in_place(layer, index):
                for other in self._groups.get(name, ()):
                    if other != name:
                        self._changed[other] = name
            elif is_view and layer.bottom:
                group = self._groups.setdefault(layer.bottom[0], [layer.bottom[0]])
                group.append(name)
                self._groups[name] = group

    def changed_with(self, name: str) -> str | None:
        """The blob that has the elements of another one since a layer changed both, told once."""
        return self._changed.pop(name, None)
