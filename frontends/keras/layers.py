"""The layers of a model as a tree, each with where its variables are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lowerdeck.frontends.keras.storage import Stored

MODELS = frozenset({"Functional", "Model", "Sequential"})
CELLS = {"LSTMCell": "LSTM", "GRUCell": "GRU", "SimpleRNNCell": "SimpleRNN"}

_PACKAGES = frozenset({"keras", "tf_keras"})

_MADE_AS = {"Model": "Functional", "GroupQueryAttention": "GroupedQueryAttention"}
"""Classes whose folders are named after another name than the configuration's."""

_CALLED = {"GroupedQueryAttention": "GroupQueryAttention"}
"""Other names of classes."""

_DEEPEST = 50


@dataclass(eq=False)
class Layer:
    """A layer, or a model that is one."""

    class_name: str
    name: str
    config: Mapping[str, Any]
    module: str
    registered: str
    nodes: list[Any]
    path: str
    """Its folder in a `.keras` file."""
    children: dict[str, Layer] = field(default_factory=dict[str, "Layer"])
    """The layers inside, by name or by what they are to this one."""
    object_id: Any = None

    @property
    def is_model(self) -> bool:
        """True for a model."""
        return self.class_name in MODELS

    @property
    def is_operation(self) -> bool:
        """True for a function of `keras.ops`."""
        return _is_operation(self.module)

    @property
    def is_foreign(self) -> bool:
        """True for a class that is not Keras' own."""
        is_known = not self.module or self.module.split(".")[0] in _PACKAGES
        return not is_known or ">" in self.registered or ">" in self.class_name

    @property
    def op_type(self) -> str:
        """The class, with the package that registered it if it is not Keras."""
        return self.registered if ">" in self.registered else self.class_name


WRAPPERS = frozenset({"SpectralNormalization", "TimeDistributed"})
"""Layers that have one other layer."""


def _is_operation(module: str) -> bool:
    """True for the module of a function of `keras.ops`."""
    return module.split(".")[:3] == ["keras", "src", "ops"]


def root(stored: Stored) -> Layer:
    """The model that a file holds."""
    return _layer(stored.config, "", 0)


def _layer(entry: Mapping[str, Any], path: str, depth: int) -> Layer:
    if depth > _DEEPEST:
        raise ValueError(f"layers in layers, more than {_DEEPEST} deep")
    config = entry.get("config")
    class_name = _CALLED.get(str(entry["class_name"]), str(entry["class_name"]))
    inner = cast("list[Any]", config) if isinstance(config, list) else None
    settings: dict[str, Any] = {"layers": inner}
    if inner is None:
        settings = dict(cast("dict[str, Any]", config or {}))
    layer = Layer(
        class_name,
        str(entry.get("name") or settings.get("name") or class_name.lower()),
        settings,
        str(entry.get("module") or ""),
        str(entry.get("registered_name") or ""),
        list(entry.get("inbound_nodes") or []),
        path,
        object_id=entry.get("shared_object_id"),
    )
    if layer.is_model:
        _add_layers(layer, settings.get("layers") or [], f"{path}/layers", depth)
    elif class_name in WRAPPERS and "layer" in settings:
        layer.children["layer"] = _layer(settings["layer"], f"{path}/layer", depth + 1)
    elif class_name == "Bidirectional" and "layer" in settings:
        _add_directions(layer, depth)
    elif class_name == "RNN" and isinstance(settings.get("cell"), dict):
        layer.children["cell"] = _layer(settings["cell"], f"{path}/cell", depth + 1)
    elif class_name == "StackedRNNCells":
        _add_layers(layer, settings.get("cells") or [], f"{path}/cells", depth)
    return layer


def _add_layers(layer: Layer, entries: list[Any], path: str, depth: int) -> None:
    """The layers of a model; folders are named after classes, and counted."""
    counts: Counter[str] = Counter()
    for entry in entries:
        class_name = str(entry["class_name"])
        folder = ""
        is_input = layer.class_name == "Sequential" and class_name == "InputLayer"
        if not _is_operation(str(entry.get("module"))) and not is_input:
            base = _snake(_MADE_AS.get(class_name, class_name))
            number, counts[base] = counts[base], counts[base] + 1
            folder = f"{path}/{base}" if number == 0 else f"{path}/{base}_{number}"
        child = _layer(entry, folder.lstrip("/"), depth + 1)
        if child.name in layer.children:
            raise ValueError(f"two layers '{child.name}' in '{layer.name}'")
        layer.children[child.name] = child


def _add_directions(layer: Layer, depth: int) -> None:
    """A layer for each direction; without a backward one, it is the forward one turned around."""
    forward = layer.config["layer"]
    backward = layer.config.get("backward_layer")
    if backward is None:
        settings = dict(forward["config"])
        settings["go_backwards"] = not settings.get("go_backwards", False)
        backward = {**forward, "config": settings}
    for name, entry in (("forward_layer", forward), ("backward_layer", backward)):
        child = _layer(entry, f"{layer.path}/{name}", depth + 1)
        # A direction does not repeat its last output where a mask does not hold.
        zeros = {"zero_output_for_mask": bool(child.config.get("return_sequences"))}
        child.config = {**child.config, **zeros}
        layer.children[name] = child


def _snake(name: str) -> str:
    """The folder of a class: `conv2d`, `p_re_lu`, `multi_head_attention`."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def leaves(layer: Layer) -> Iterator[Layer]:
    """All layers that have variables of their own."""
    if not layer.children:
        if not layer.is_model:
            yield layer
        return
    for child in layer.children.values():
        yield from leaves(child)
    if layer.class_name == "SpectralNormalization":
        yield layer
