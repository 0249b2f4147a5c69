"""A program of PIR in JSON: what its pieces are, checked where they are read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.records import record
from lowerdeck.frontends.paddle.elements import ProgramError, element_named, element_typed

Json: TypeAlias = "Mapping[str, Any]"

_VERSION = 4
"""The newest version of the format that is known."""

_MOST_BYTES = 1 << 28

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "pd_dist"}


def read_pir(path: str) -> Json:
    """The main block of the program in a file; ProgramError or OSError."""
    if os.path.getsize(path) > _MOST_BYTES:
        raise ProgramError("the program is too large")
    with open(path, "rb") as file:
        data = file.read()
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"it is no JSON: {error}") from None
    base: Any = cast("Json", whole).get("base_code") if isinstance(whole, dict) else None
    if not isinstance(base, dict) or cast("Json", base).get("magic") != "pir":
        raise ProgramError("it is no program of PIR")
    version = cast("Json", base).get("version")
    if not isinstance(version, int) or version > _VERSION:
        raise ProgramError(f"it is of version {version} of PIR, of which {_VERSION} is known")
    (block,) = blocks_of(cast("Json", whole)["program"])
    return block


def blocks_of(holder: Json) -> Iterator[Json]:
    """The blocks of the regions of a program or an operator, one a region."""
    for region in holder.get("regions", ()):
        (block,) = region["blocks"]
        yield block


@record
class Node:
    """An operator."""

    data: Json

    @property
    def is_parameter(self) -> bool:
        """True for a parameter in the short form."""
        return self.data["#"] == "p"

    @property
    def op_type(self) -> str:
        """The operator without `pd_op`, with the names of other dialects."""
        dialect, _, name = str(self.data["#"]).partition(".")
        dialect = _DIALECTS.get(dialect, dialect)
        return name if dialect == "pd_op" else f"{dialect}:{name}"

    @property
    def base_type(self) -> str:
        """The operator without the underscore of those that work in place."""
        return self.op_type.rstrip("_")

    @property
    def name(self) -> str:
        """How messages call it: by its layer, its operator and the number of its first result."""
        layer = str(self.attributes.get("struct_name") or "").strip("/")
        results = self.results
        number = f"_{results[0][0]}" if results else ""
        text = f"{layer}/{self.op_type}{number}" if layer else f"{self.op_type}{number}"
        return text if text.isprintable() else self.op_type

    @property
    def attributes(self) -> dict[str, Any]:
        """Plain values by name."""
        if self.is_parameter:
            return {}
        return {str(entry["N"]): _plain(entry["AT"]) for entry in self.data.get("A", ())}

    @property
    def operands(self) -> list[int]:
        """The numbers of values; 0 is none."""
        return [_number(entry["%"]) for entry in self.data.get("I", ())]

    @property
    def results(self) -> list[tuple[int, Json | None]]:
        """The numbers of the results, and their types."""
        found: Any = self.data.get("O", ())
        listed = cast("Sequence[Json]", found if isinstance(found, list) else [found])
        return [(_number(entry["%"]), _type(entry)) for entry in listed]

    @property
    def parameter(self) -> tuple[str, bool]:
        """The name of a parameter, and whether it is among the weights."""
        return str(self.data["A"][3]), bool(self.data["OA"][0])


def nodes_of(block: Json, depth: int = 0) -> Iterator[Node]:
    """The operators of a block and of those in it."""
    if depth > 64:
        raise ProgramError("blocks too deep inside of one another")
    for data in block["ops"]:
        yield Node(data)
        for inner in blocks_of(data):
            yield from nodes_of(inner, depth + 1)


def _type(entry: Json) -> Json | None:
    """The type of a result, or None for one that is not computed."""
    found: Json | None = entry.get("TT")
    return None if found is None or found["#"] == "NULL" else found


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ProgramError(f"a value {value}")
    return value


def is_vector(type_: Json | None) -> bool:
    """True for the type of a list of tensors."""
    return type_ is not None and str(type_["#"]).endswith(".t_vec")


def types_of(type_: Json | None) -> list[Attribute]:
    """The types of the tensors that a value is, of any shape."""
    if type_ is None:
        return [UnrankedTensorType(f32)]
    if is_vector(type_):
        return [found for inner in type_["D"] for found in types_of(inner)]
    return [UnrankedTensorType(element_of(type_))]


def element_of(type_: Json) -> Attribute:
    """The element type of a tensor."""
    return element_typed(str(type_["D"][0]["#"]).partition(".")[2])


def sizes_of(type_: Json) -> list[int]:
    """The sizes of a tensor, -1 for open ones."""
    return [_number(size) for size in type_["D"][1]]


def _plain(attribute: Json) -> Any:
    """The value of an attribute; None for those that say how to run an operator."""
    kind = str(attribute["#"]).partition(".")[2]
    if kind == "a_place":
        return None
    if "D" not in attribute:
        return _special(attribute.get("VD"))
    data = attribute["D"]
    match kind:
        case "a_array":
            return [_plain(inner) for inner in data]
        case "a_dtype":
            return None if str(data).lower().startswith("undefined") else element_named(str(data))
        case "a_intarray":
            return [_number(size) for size in data]
        case "a_bool":
            return bool(data)
        case "a_i32" | "a_i64" | "a_index":
            return _number(data)
        case "a_f32" | "a_f64" | "a_f16" | "a_bf16":
            return float(data)
        case "a_scalar":
            return cast("list[Any]", data)[-1] if isinstance(data, list) else data
        case _:
            return str(data)


_SPECIAL = {"INF": math.inf, "-INF": -math.inf, "NAN": math.nan, "-NAN": math.nan}


def _special(text: object) -> float:
    """A number that JSON does not have."""
    found = _SPECIAL.get(str(text).upper())
    if found is None:
        raise ProgramError(f"a number '{text}'")
    return found
