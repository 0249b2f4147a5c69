"""Import of a program of PIR: one op for each operator; lists of tensors are taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.paddle.ops import op_class
from lowerdeck.frontends.paddle.building import MOST_DEPTH, Building
from lowerdeck.frontends.paddle.elements import ProgramError
from lowerdeck.frontends.paddle.import_program import weights_beside
from lowerdeck.frontends.paddle.pir import (
    Json,
    Node,
    blocks_of,
    element_of,
    is_vector,
    nodes_of,
    read_pir,
    sizes_of,
    types_of,
)
from lowerdeck.frontends.paddle.weights import read_combined

CONTROL_FLOW = frozenset(
    (
        "data",
        "feed",
        "fetch",
        "while",
        "if",
        "assert",
        "builtin:combine",
        "builtin:split",
        "builtin:slice",
        "builtin:shadow_output",
        "cf:yield",
    )
)
"""Operators that are no ops of the dialect."""

_Held: TypeAlias = "SSAValue | list[SSAValue] | None"


def import_pir(
    path: str,
    weights: str | None,
    outputs: Sequence[str] | None,
    shapes: Mapping[str, Sequence[int]],
) -> ModuleOp:
    """The module of the program in a file."""
    return _Importer(path, read_pir(path), shapes).run(weights, outputs)


class _Importer(Building):
    """The import of one program."""

    def __init__(self, path: str, main: Json, shapes: Mapping[str, Sequence[int]]) -> None:
        super().__init__(path, shapes)
        self.main = main
        self.values: dict[int, _Held] = {0: None}
        """By number; values that are one place in memory under the number of the first."""
        self.places: dict[int, int] = {}
        """The number of the value over which another one is written."""
        self.fetched: list[tuple[int, str, SSAValue]] = []
        self.named: dict[str, SSAValue] = {}

    def run(self, weights: str | None, outputs: Sequence[str] | None) -> ModuleOp:
        self._check()
        self._weights(weights)
        self._nodes(self.main, self.block, 0)
        found = [(name, value) for _, name, value in sorted(self.fetched, key=lambda e: e[0])]
        if outputs is not None:
            known = {**self.named, **dict(found)}
            for name in outputs:
                if name not in known:
                    some = ", ".join(f"'{name}'" for name, _ in found)
                    self.report("", "", f"no tensor is named '{name}'; the outputs are {some}")
            found = [(name, known[name]) for name in outputs if name in known]
        return self.module([name for name, _ in found], [value for _, value in found])

    def _check(self) -> None:
        """Report all operators that have no op, in all blocks."""
        for node in nodes_of(self.main):
            if node.is_parameter or node.op_type in CONTROL_FLOW:
                continue
            if op_class(node.base_type) is None:
                self.report(node.name, node.op_type, "the operator is not known")
        self.raise_problems()

    def _weights(self, path: str | None) -> None:
        """The parameters that are kept, in the order of their names."""
        nodes = [node for node in nodes_of(self.main) if node.is_parameter]
        kept = {node.parameter[0]: node for node in nodes if node.parameter[1]}
        self.values.update({node.results[0][0]: None for node in nodes})
        path = path or weights_beside(self.file)
        if kept and path is None:
            raise ProgramError("no weights are beside it; give them with --weights FILE")
        wanted = sorted(kept)
        found = {} if path is None else read_combined(path, wanted)
        for name, constant in found.items():
            number, type_ = kept[name].results[0]
            if type_ is None:
                raise ProgramError(f"weight '{name}': found no type of a tensor")
            sizes = [dim.value for dim in dims_of(constant.result)]
            is_same = element_type(constant.result) == element_of(type_)
            if sizes != sizes_of(type_) or not is_same:
                self.report(
                    "",
                    "",
                    f"weight '{name}': found {constant.result.type}, expected sizes "
                    f"{sizes_of(type_)}; the weights may be those of another model",
                )
            self.values[number] = self.named[name] = self.weight(name, constant)

    # Operators

    def _nodes(self, block: Json, into: Block, depth: int) -> list[SSAValue]:
        """Add the ops of a block; the values that it yields."""
        if depth > MOST_DEPTH:
            raise ProgramError("blocks too deep inside of one another")
        for data in block["ops"]:
            node = Node(data)
            match node.op_type:
                case _ if node.is_parameter:
                    pass
                case "data" | "feed":
                    self._input(node)
                case "fetch" | "builtin:shadow_output":
                    self._output(node)
                case "cf:yield":
                    return self._operands(node)
                case "assert":
                    pass
                case "if":
                    self._if(node, into, depth)
                case "while":
                    self._while(node, into, depth)
                case "builtin:combine":
                    self._bind(node, [self._operands(node)])
                case "builtin:split":
                    self._bind(node, self._operands(node))
                case "builtin:slice":
                    place = int(node.attributes["index"])
                    self._bind(node, [self._operands(node)[place]])
                case _:
                    self._call(node, into)
        return []

    def _input(self, node: Node) -> None:
        ((number, type_),) = node.results
        if type_ is None:
            raise ProgramError("an input without a type")
        name = str(node.attributes["name"])
        value = self.input(name, element_of(type_), sizes_of(type_))
        self.values[number] = self.named[name] = value

    def _output(self, node: Node) -> None:
        attributes = node.attributes
        name = str(attributes.get("name", attributes.get("output_name", "")))
        place = int(attributes.get("col", len(self.fetched)))
        (value,) = self._operands(node)
        self.fetched.append((place, name, value))

    def _held(self, node: Node, number: int) -> _Held:
        number = self.places.get(number, number)
        if number not in self.values:
            self.fail(node.name, node.op_type, f"no operator before computes value {number}")
        return self.values[number]

    def _operands(self, node: Node) -> list[SSAValue]:
        """All operands, with lists taken apart."""
        found: list[SSAValue] = []
        for number in node.operands:
            value = self._held(node, number)
            if value is None:
                self.fail(node.name, node.op_type, f"found value {number}, which has no elements")
            found += value if isinstance(value, list) else [value]
        return found

    def _bind(self, node: Node, values: Sequence[_Held]) -> None:
        for (number, _), value in zip(node.results, values, strict=True):
            self.values[number] = value

    def _call(self, node: Node, into: Block) -> None:
        cls = op_class(node.base_type)
        assert cls is not None
        schema = cls.declared
        attributes = node.attributes
        found: dict[str, Given] = {
            name: plain_attribute(value)
            for name, value in attributes.items()
            if name in schema.arguments and name not in ("place",)
        }
        formals = [name for name in schema.operands if name not in attributes]
        numbers = node.operands
        if len(numbers) > len(formals):
            self.fail(
                node.name, node.op_type, f"found {len(numbers)} operands, expected {len(formals)}"
            )
        for name, number in zip(formals, numbers, strict=False):
            value = self._held(node, number)
            if value is not None:
                found[name] = value
        results = node.results
        if len(results) > len(schema.results):
            self.fail(
                node.name,
                node.op_type,
                f"found {len(results)} results, expected {len(schema.results)}",
            )
        types = [types_of(type_) for _, type_ in results]
        counts = [len(listed) for listed in types]
        counts += [0] * (len(schema.results) - len(counts))
        op = cls(found, [one for listed in types for one in listed], counts)
        made = iter(self.insert(into, op, node.name))
        for (number, type_), listed in zip(results, types, strict=True):
            values = [next(made) for _ in listed]
            self.values[number] = values if is_vector(type_) else values[0]
        if results and (target := overwritten(node)) is not None:
            place = self.places.get(target, target)
            number = results[0][0]
            self.places[number] = place
            self.values[place] = self.values.pop(number)

    # Control flow

    def _written(self, blocks: Sequence[Json]) -> list[int]:
        """The places of values from outside over which operators of blocks write."""
        inner: dict[int, int | None] = {}
        found: dict[int, None] = {}
        for block in blocks:
            inner |= {int(entry["#"]): None for entry in block.get("args", ())}
            for node in nodes_of(block):
                target = overwritten(node)
                place = None
                if target is not None:
                    place = inner[target] if target in inner else self.places.get(target, target)
                inner |= {number: place for number, _ in node.results}
                for one in blocks_of(node.data):
                    inner |= {int(entry["#"]): None for entry in one.get("args", ())}
                if place is not None and isinstance(self.values.get(place), SSAValue):
                    found[place] = None
        return list(found)

    def _at(self, places: Sequence[int]) -> list[SSAValue]:
        """What is at places in memory."""
        return [value for place in places if isinstance(value := self.values[place], SSAValue)]

    def _if(self, node: Node, into: Block, depth: int) -> None:
        (condition,) = self._operands(node)
        blocks = Block(), Block()
        inner = list(blocks_of(node.data))
        if len(inner) != len(blocks):
            raise ProgramError(f"an if of {len(inner)} blocks")
        written = self._written(inner)
        before = dict(zip(written, self._at(written), strict=True))
        ends: list[list[SSAValue]] = []
        for one, block in zip(inner, blocks, strict=True):
            values = self._nodes(one, block, depth + 1)
            ends.append([*values, *self._at(written)])
            self.values.update(before)
        here, there = ends
        if len(here) != len(there):
            raise ProgramError("an if whose blocks yield unlike numbers of values")
        found = self.branch(into, node.name, condition, blocks, (here, there))
        kept = len(found) - len(written)
        self._bind(node, found[:kept])
        self.values.update(zip(written, found[kept:], strict=True))

    def _while(self, node: Node, into: Block, depth: int) -> None:
        condition, *inits = self._operands(node)
        (inner,) = blocks_of(node.data)
        written = self._written([inner])
        carried = [*inits, *self._at(written)]
        body = self.loop_block(carried)
        numbers = [int(entry["#"]) for entry in inner["args"]]
        hidden = {number: self.values.get(number) for number in numbers}
        self.values.update(zip([*numbers, *written], body.args[1:], strict=True))
        going, *after = self._nodes(inner, body, depth + 1)
        if len(after) != len(inits):
            raise ProgramError("a while that yields another number of values than it carries")
        after += self._at(written)
        self.values.update(hidden)
        found = self.loop(into, node.name, condition, carried, body, (going, after))
        self._bind(node, found[: len(inits)])
        self.values.update(zip(written, found[len(inits) :], strict=True))


def overwritten(node: Node) -> int | None:
    """
    The number of the operand over which an operator writes its only result, so that whoever reads
    that later reads the result.
    """
    cls = op_class(node.base_type)
    if not node.op_type.endswith("_") or cls is None or len(cls.declared.results) != 1:
        return None
    formals = [name for name in cls.declared.operands if name not in node.attributes]
    place = formals.index("output") if "output" in formals else 0
    return node.operands[place] if place < len(node.operands) and node.operands[place] else None


def operators_of(main: Json) -> Iterator[Node]:
    """The operators of a program that are more than its structure."""
    structure = ("builtin:combine", "builtin:split", "cf:yield", "fetch", "data", "feed")
    for node in nodes_of(main):
        if not node.is_parameter and node.op_type not in structure:
            yield node
