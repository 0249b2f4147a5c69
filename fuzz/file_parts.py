"""Models of one result each, with what it needs of a model of many results: seeds of mutants."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from lowerdeck.frontends.mindir.mind_ir_pb2 import ModelProto, NodeProto

Key = TypeVar("Key", bound=Hashable)


def _needed(wanted: Iterable[Key], sources: Callable[[Key], Iterable[Key]]) -> set[Key]:
    """All that some things need, themselves among them."""
    found, pending = set[Key](), list(wanted)
    while pending:
        if (one := pending.pop()) not in found:
            found.add(one)
            pending += sources(one)
    return found


def parts_of_symbol(symbol: dict[str, Any]) -> Iterator[bytes]:
    """Symbols of MXNet."""
    nodes: list[dict[str, Any]] = symbol["nodes"]

    def sources(number: int) -> list[int]:
        return [entry[0] for entry in nodes[number]["inputs"]]

    for head in symbol["heads"]:
        needed = sorted(_needed([int(head[0])], sources))
        places = {number: place for place, number in enumerate(needed)}
        kept = [_moved(nodes[number], places) for number in places]
        heads = [[places[head[0]], head[1], 0]]
        yield json.dumps({"nodes": kept, "heads": heads, "attrs": symbol["attrs"]}).encode()


def _moved(node: dict[str, Any], places: Mapping[int, int]) -> dict[str, Any]:
    entries: list[Sequence[int]] = node["inputs"]
    return {**node, "inputs": [[places[source], index, 0] for source, index, *_ in entries]}


def parts_of_mindir(data: bytes) -> Iterator[bytes]:
    """Programs of MindSpore whose result was a tuple; none where it was not."""
    model = ModelProto()
    model.ParseFromString(data)
    makers = {node.output[0]: node for node in model.graph.node}
    last = makers.get(model.graph.output[0].name)
    effects = list[str]()
    if last is not None and _operator(last) == "Depend":
        effects = [last.output[0], *last.input[1:]]
        last = makers.get(last.input[0])
    if last is None or _operator(last) != "MakeTuple":
        return

    def sources(name: str) -> Sequence[str]:
        # The tuple itself is taken apart.
        return makers[name].input if name in makers and name != last.output[0] else ()

    for number, item in enumerate(last.input):
        needed = _needed([item, last.output[0], *effects], sources)
        part = copy.deepcopy(model)
        kept = [node for node in part.graph.node if node.output[0] in needed]
        (tuple_,) = (node for node in kept if node.output[0] == last.output[0])
        del tuple_.input[:]
        tuple_.input.append(item)
        del part.graph.node[:]
        part.graph.node.extend(kept)
        values = part.graph.output[0].attr_info.values
        if number < len(values):
            own = copy.deepcopy(values[number])
            del values[:]
            values.append(own)
        yield part.SerializeToString()


def _operator(node: NodeProto) -> str:
    return node.op_type.removeprefix("REF::").partition(":")[0]


def parts_of_pir(data: bytes) -> Iterator[bytes]:
    """Programs of PaddlePaddle in PIR; none where operators have regions."""
    model = json.loads(data)
    block = model["program"]["regions"][0]["blocks"][0]
    ops: list[dict[str, Any]] = block["ops"]
    makers = {result["%"]: op for op in ops for result in _listed(op, "O")}
    if any("regions" in op for op in ops):
        return

    def sources(value: int) -> list[int]:
        return [given["%"] for given in _listed(makers[value], "I")] if value in makers else []

    for fetch in (op for op in ops if op["#"].endswith(".fetch")):
        needed = _needed([result["%"] for result in _listed(fetch, "O")], sources)
        # All parameters stay: their file has the numbers of all of them.
        block["ops"] = [
            op
            for op in ops
            if op["#"] == "p" or any(result["%"] in needed for result in _listed(op, "O"))
        ]
        yield json.dumps(model).encode()


def _listed(op: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The operands or results of an op; a parameter has one result, by itself."""
    found: Any = op.get(key, [])
    return cast("list[Any]", found) if isinstance(found, list) else [found]
