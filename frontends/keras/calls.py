"""How layers of a functional model are called: the nodes of its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lowerdeck.dialects.records import record
from lowerdeck.frontends.keras.layers import Layer

Call = tuple[list[Any], dict[str, Any]]
"""Positional arguments, and those by name, with a `Tensor` for each value."""


@record
class Tensor:
    """A result of a call of a layer."""

    layer: str
    node: int
    index: int


def nodes_of(layer: Layer, known: Mapping[str, Layer]) -> Iterator[Call]:
    """The calls of a layer."""
    for node in layer.nodes:
        if isinstance(node, dict):
            entry = cast("dict[str, Any]", node)
            yield list(_new(entry.get("args", []))), dict(_new(entry.get("kwargs", {})))
        else:
            yield _old(cast("list[Any]", node), known)


def _new(value: Any) -> Any:
    """Arguments as Keras 3 writes them."""
    match value:
        case {"class_name": "__keras_tensor__", "config": config}:
            name, node, index = config["keras_history"]
            return Tensor(str(name), int(node), int(index))
        case {"class_name": "__slice__", "config": config}:
            return {"slice": [config.get(name) for name in ("start", "stop", "step")]}
        case {"class_name": "__ellipsis__"}:
            return "..."
        case {"class_name": "__numpy__" | "__tensor__", "config": config}:
            return {"array": config["value"], "dtype": config["dtype"]}
        case {"class_name": "DTypePolicy", "config": config}:
            return config["name"]
        case dict():
            items = cast("dict[str, Any]", value)
            return {name: _new(item) for name, item in items.items()}
        case list():
            return [_new(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _old(node: list[Any], known: Mapping[str, Layer]) -> Call:
    """A call as Keras 2 writes it: `[layer, node, tensor, arguments by name]`, or a list."""
    entries = [node] if _is_entry(node) else [entry for entry in node if _is_entry(entry)]
    values = [_entry(entry) for entry in entries]
    keywords: dict[str, Any] = entries[0][3] if entries and len(entries[0]) > 3 else {}
    first = values[0] if len(values) == 1 else values
    return [first], {name: _keyword(value, known) for name, value in keywords.items()}


def _is_entry(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[Any]", value)
    return 3 <= len(items) <= 4 and isinstance(items[0], str) and isinstance(items[1], int)


def _entry(entry: list[Any]) -> Any:
    name, node, index = entry[:3]
    return index if name == "_CONSTANT_VALUE" else Tensor(name, node, index)


def _keyword(value: Any, known: Mapping[str, Layer]) -> Any:
    if _is_entry(value) and (value[0] in known or value[0] == "_CONSTANT_VALUE"):
        return _entry(value)
    if isinstance(value, list):
        return [_keyword(item, known) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        if set(items) == {"start", "stop", "step"}:
            return {"slice": [_keyword(items[k], known) for k in ("start", "stop", "step")]}
        return {name: _keyword(item, known) for name, item in items.items()}
    return value


def shifted(model: Layer, version: int) -> dict[str, int]:
    """Models inside whose calls Keras 2 counts from 1: their making is the first one."""
    if version > 2:
        return {}
    return {
        child.name: 1 for child in model.children.values() if child.is_model and _has_input(child)
    }


def _has_input(model: Layer) -> bool:
    first = next(iter(model.children.values()), None)
    return first is not None and (
        first.class_name == "InputLayer" or "batch_input_shape" in first.config
    )


def inputs_of(model: Layer) -> list[Layer]:
    """The input layers of a model, in the order of its inputs."""
    if model.class_name == "Sequential":
        return [_first(model)]
    refs = _listed(model.config["input_layers"])
    return [model.children[ref.layer] for ref in refs]


def _first(model: Layer) -> Layer:
    """The input of a sequence of layers, which need not be written."""
    first = next(iter(model.children.values()), None)
    if first is not None and first.class_name == "InputLayer":
        return first
    shape = model.config.get("build_input_shape")
    dtype = "float32"
    if first is not None:
        shape = first.config.get("batch_input_shape", first.config.get("batch_shape", shape))
        dtype = first.config.get("dtype", dtype)
        if first.is_model and shape is None:
            return inputs_of(first)[0]
    if shape is None:
        raise ValueError(f"the shape of the input of '{model.name}' is not known")
    name = f"{first.name}_input" if first is not None else "input"
    dtype = dtype if isinstance(dtype, str) else "float32"
    dtype = "float32" if dtype not in ("int32", "int64", "uint8", "float64", "bool") else dtype
    config = {"batch_shape": shape, "dtype": dtype}
    return Layer("InputLayer", name, config, "", "", [], "")


def outputs_of(model: Layer, version: int) -> list[Tensor]:
    """
    The outputs of a functional model. There, Keras 3 also counts the calls of functional models
    from 1.
    """
    refs = _listed(model.config["output_layers"])
    if version < 3:
        return refs
    return [
        Tensor(ref.layer, max(ref.node - 1, 0), ref.index)
        if model.children[ref.layer].class_name == "Functional"
        else ref
        for ref in refs
    ]


def _listed(value: Any) -> list[Tensor]:
    """The tensors in `[layer, node, tensor]`, or in lists and dicts of those."""
    if _is_entry(value):
        return [Tensor(str(value[0]), int(value[1]), int(value[2]))]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return [ref for name in sorted(items) for ref in _listed(items[name])]
    return [ref for item in cast("list[Any]", value) for ref in _listed(item)]
