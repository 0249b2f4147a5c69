"""
Other weights for a model: the tensors of a file take the place of those of the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, NameLoc, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.names import STATES, value_names
from lowerdeck.dialects.core.types import dims_of, element_type, is_float, is_integer, rank_of
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.weights import Weights, read_weights


@dataclass
class _Place:
    """A weight of a model: an op that holds it, or a state that begins with it."""

    value: SSAValue
    """What is of its type."""
    holder: Operation
    key: str
    """The property that holds the bytes; empty for a state."""


def import_weights(
    module: ModuleOp, file: str, path: str, known: Collection[str] | None = None
) -> None:
    """
    Replace the weights of a model by those of a file.

    Names are those that the model's own file has; MindSpore's without what is before the colon.
    `known` are the names of its weights, where it has other constants with names. FrontendError
    lists all weights that the file does not have, all that the model does not have (but for
    counters, which are integers without dimensions), and those of another shape or type.
    """
    weights = read_weights(path)
    places: dict[str, list[_Place]] = {}
    for name, place in _places(module):
        places.setdefault(name, []).append(place)
    short = {name.rpartition(":")[2]: name for name in places if ":" in name}
    chosen = {name if name in places else short.get(name, name): w for name, w in weights.items()}
    problems: list[str] = []
    for name in chosen.keys() - places.keys():
        if rank_of(chosen[name].result) or not is_integer(element_type(chosen[name].result)):
            problems.append(f"tensor '{name}': the model has no weight of this name")
    for name, found in places.items():
        if name not in chosen:
            if _is_needed(found[0], name, known):
                problems.append(f"weight '{name}': the file of weights does not have it")
            continue
        for place in found:
            if place.value.type != chosen[name].result.type:
                problems.append(
                    f"tensor '{name}': {_text(chosen[name].result)}, expected {_text(place.value)}"
                )
    if problems:
        raise FrontendError(Problem(path, "", "", text) for text in sorted(problems))
    for name, found in places.items():
        for place in found if name in chosen else ():
            _put(place, name, chosen)


def _places(module: ModuleOp) -> Iterator[tuple[str, _Place]]:
    """The constants of a model that have names, and what its states begin with."""
    for op in module.walk():
        location = op.location
        held = [key for key, one in op.properties.items() if isinstance(one, BlobAttr)]
        if isinstance(location, NameLoc) and len(held) == 1 and len(op.results) == 1:
            if isinstance(op.results[0].type, TensorType):
                yield location.desc.data, _Place(op.results[0], op, held[0])
        if isinstance(op, func.FuncOp) and STATES in op.attributes:
            names = value_names(op.arg_attrs, len(op.body.block.args))
            arguments = dict(zip(names, op.body.block.args, strict=True))
            for state in cast("ArrayAttr[Any]", op.attributes[STATES]):
                name = cast(StringAttr, state.data[0]).data
                yield name, _Place(arguments[name], op, "")


def _is_needed(place: _Place, name: str, known: Collection[str] | None) -> bool:
    """True for a weight that a file of weights has to have."""
    if known is not None:
        return name in known
    return is_float(element_type(place.value)) and rank_of(place.value) > 0 and " " not in name


def _put(place: _Place, name: str, weights: Weights) -> None:
    value = weights[name].value
    if place.key:
        place.holder.properties[place.key] = value
        return
    states = cast("ArrayAttr[Any]", place.holder.attributes[STATES])
    place.holder.attributes[STATES] = ArrayAttr(
        ArrayAttr([*state.data[:2], value]) if state.data[0].data == name else state
        for state in states
    )


def _text(value: SSAValue) -> str:
    """The type of a tensor, in short."""
    element: Attribute = element_type(value)
    return f"{element}[{', '.join(map(str, dims_of(value)))}]"
