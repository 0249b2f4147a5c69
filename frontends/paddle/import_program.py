"""
Import of a ProgramDesc: its variables, which operators write again and again, become values.

Blocks are walked in order; what a name stands for at a place is the value that was written last.
A `while` carries the names of the outside that its block writes. A `conditional_block` writes its
results only if it is taken: `select_input` chooses between those of two blocks, which become the
regions of one `core.if`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Attribute, Block, SSAValue

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i1, i64
from lowerdeck.dialects.paddle.ops import PaddleOp, known_class, op_class
from lowerdeck.dialects.paddle.schema import OldForm, old_forms
from lowerdeck.frontends.paddle.building import MOST_DEPTH, Building
from lowerdeck.frontends.paddle.elements import ProgramError, element_numbered
from lowerdeck.frontends.paddle.program import Call, Program, Section, Variable, read_program
from lowerdeck.frontends.paddle.weights import read_combined, read_single

CONTROL_FLOW = frozenset(
    "feed fetch while conditional_block conditional_block_infer select_input".split()
)
"""Operators that are no ops of the dialect."""

_DTYPES = frozenset({"dtype", "out_dtype"})
"""Attributes that number an element type."""

_AtLeastVectorOp = known_class("atleast_vector")

_ZERO_DIMENSIONS = 2005000
"""The version from which on there are tensors without dimensions."""


@dataclass(frozen=True, eq=False)
class _Branch:
    """What a name stands for that a conditional block writes: nothing yet."""

    number: int
    names: Mapping[str, _Held]
    """What names stood for before the block."""


_Held: TypeAlias = "SSAValue | _Branch"


def import_program(
    path: str,
    weights: str | None,
    outputs: Sequence[str] | None,
    shapes: Mapping[str, Sequence[int]],
) -> ModuleOp:
    """The module of the program in a file."""
    return _Importer(path, read_program(path), shapes).run(weights, outputs)


def weights_beside(path: str) -> str | None:
    """The file with the weights of a program, or the folder of a file for each, if it is there."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    candidates = [f"{stem}.pdiparams", "__params__", "params", "__weights__"]
    for candidate in candidates:
        if os.path.isfile(found := os.path.join(folder, candidate)):
            return found
    return None


class _Importer(Building):
    """The import of one program."""

    def __init__(self, path: str, program: Program, shapes: Mapping[str, Sequence[int]]) -> None:
        super().__init__(path, shapes)
        self.program = program
        self.variables: dict[str, Variable] = {}
        self._written: dict[int, list[str]] = {}
        self.fetched: list[tuple[int, str, _Held | None]] = []

    def run(self, weights: str | None, outputs: Sequence[str] | None) -> ModuleOp:
        for section in reversed(self.program.sections):
            self.variables |= section.variables
        self._check()
        main = self.program.sections[0]
        names: dict[str, _Held] = dict(self._weights(main, weights))
        feeds = [call for call in main.calls if call.op_type == "feed"]
        for call in sorted(feeds, key=lambda call: int(call.attributes.get("col", 0))):
            self._feed(call, names)
        self.raise_problems()
        self._section(0, names, self.block, 0)
        self.raise_problems()
        module = self._finished(names, outputs)
        for op in list(module.walk()):
            # What no operator reads needs no dimension, such as the moments of a normalization.
            if isinstance(op, _AtLeastVectorOp) and op.results[0].first_use is None:
                op.detach()
                op.erase()
        return module

    def _finished(self, names: Mapping[str, _Held], outputs: Sequence[str] | None) -> ModuleOp:
        fetched = sorted(self.fetched, key=lambda entry: entry[0])
        found = [(name, value) for _, name, value in fetched]
        if outputs is not None:
            for name in outputs:
                if name not in names:
                    some = ", ".join(f"'{name}'" for name, _ in found)
                    self.report("", "", f"no tensor is named '{name}'; the outputs are {some}")
            found = [(name, names.get(name)) for name in outputs]
        values: list[SSAValue] = []
        for name, value in found:
            if isinstance(value, SSAValue):
                values.append(value)
            elif value is not None:
                self.report(name, "fetch", "found what a branch writes that may not be taken")
        return self.module([name for name, _ in found], values)

    def _check(self) -> None:
        """Report all operators that have no op, in all blocks."""
        for section in self.program.sections:
            for call in section.calls:
                if call.op_type not in CONTROL_FLOW and call.op_type not in old_forms():
                    self.report(call.name, call.op_type, "the operator is not known")
        self.raise_problems()

    # What is there before

    def _weights(self, main: Section, path: str | None) -> Iterator[tuple[str, SSAValue]]:
        """The persistable variables, in the order of their names."""
        wanted = sorted(
            variable.name
            for variable in main.variables.values()
            if variable.is_persistable and variable.is_tensor
        )
        for name, constant in self._constants(wanted, path).items():
            declared = self.variables[name]
            sizes = tuple(dim.value for dim in dims_of(constant.result))
            if sizes != declared.dims or element_type(constant.result) != element_numbered(
                declared.element
            ):
                self.report(
                    "",
                    "",
                    f"weight '{name}': found {constant.result.type}, expected sizes "
                    f"{list(declared.dims)}; the weights may be those of another model",
                )
            yield name, self.weight(name, constant)

    def _constants(self, wanted: Sequence[str], path: str | None) -> Mapping[str, ConstantOp]:
        path = path or weights_beside(self.file)
        if not wanted and path is None:
            return {}
        if path is not None and not os.path.isdir(path):
            return read_combined(path, wanted)
        folder = path or os.path.dirname(self.file)
        found: dict[str, ConstantOp] = {}
        for name in wanted:
            place = os.path.join(folder, name)
            if os.path.basename(name) != name or not os.path.isfile(place):
                raise ProgramError(
                    f"no weights are beside it, neither in one file nor '{name}'; give them with "
                    "--weights FILE"
                )
            found[name] = read_single(place)
        return found

    def _feed(self, call: Call, names: dict[str, _Held]) -> None:
        name = call.output("Out")
        variable = self.variables.get(name)
        if variable is None or not variable.is_tensor:
            self.report(name, "feed", "found no tensor of this name")
            return
        names[name] = self.input(name, element_numbered(variable.element), variable.dims)

    # Operators

    def _section(self, number: int, names: dict[str, _Held], block: Block, depth: int) -> None:
        """Add what a section of the program does to a block; `names` changes."""
        if depth > MOST_DEPTH or not 0 <= number < len(self.program.sections):
            raise ProgramError(f"block {number} at depth {depth}")
        calls = self.program.sections[number].calls
        self._arrays(number, names, block)
        position = 0
        while position < len(calls):
            call = calls[position]
            position += 1
            match call.op_type:
                case "feed":
                    pass
                case "fetch":
                    name = call.input("X")
                    place = int(call.attributes.get("col", 0))
                    self.fetched.append((place, name, self._read(call, name, names)))
                case "while":
                    self._while(call, names, block, depth)
                case "conditional_block" | "conditional_block_infer":
                    self._conditional(call, names, block, depth)
                case "select_input":
                    group = [call]
                    while position < len(calls) and _continues(group[0], calls[position], names):
                        group.append(calls[position])
                        position += 1
                    self._select(group, names, block, depth)
                case _:
                    self._call(call, names, block)

    def _arrays(self, number: int, names: dict[str, _Held], block: Block) -> None:
        """The arrays of tensors that a section declares have no elements at first."""
        for variable in self.program.sections[number].variables.values():
            if variable.is_array and variable.name not in names:
                element = self._type(variable.name)
                names[variable.name] = self.create_array(block, variable.name, element)

    def _read(self, call: Call, name: str, names: Mapping[str, _Held]) -> SSAValue:
        value = names.get(name)
        if value is None:
            self.fail(call.name, call.op_type, f"no operator before computes '{name}'")
        if isinstance(value, _Branch):
            self.fail(
                call.name, call.op_type, f"found '{name}', which a branch that is not taken lacks"
            )
        return value

    def _call(self, call: Call, names: dict[str, _Held], block: Block) -> None:
        form = old_forms()[call.op_type]
        cls = op_class(form.name)
        assert cls is not None
        given = {name: plain_attribute(value) for name, value in form.defaults.items()}
        found: dict[str, Given] = {**given, **self._attributes(call, form, cls)}
        found |= self._operands(call, form, cls, names)
        if form.name == "array_write":
            found = {"array": self._read(call, call.output("Out"), names), **found}
        counts = [0] * len(cls.declared.results)
        targets: list[str] = []
        slots = {result: slot for slot, result in form.results.items()}
        for index, result in enumerate(cls.declared.results):
            written = call.outputs.get(slots.get(result, ""), ())
            counts[index] = len(written)
            targets += written
        types = [self._type(name) for name in targets]
        op = cls(found, types, counts, call.op_type)
        for name, result in zip(targets, self.insert(block, op, call.name), strict=True):
            result.name_hint = name if name.isidentifier() else None
            names[name] = self._shaped(call, name, result, block)

    def _shaped(self, call: Call, name: str, value: SSAValue, block: Block) -> SSAValue:
        """In versions without tensors of no dimensions, these have one."""
        variable = self.variables.get(name)
        is_old = self.program.version < _ZERO_DIMENSIONS
        if not is_old or variable is None or variable.dims != (1,):
            return value
        return self.call(block, call.name, "atleast_vector", element_type(value), x=value)

    def _type(self, name: str) -> Attribute:
        variable = self.variables.get(name)
        if variable is None or variable.element < 0:
            return UnrankedTensorType(f32)
        return UnrankedTensorType(element_numbered(variable.element))

    def _attributes(self, call: Call, form: OldForm, cls: type[PaddleOp]) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        for attribute, value in call.attributes.items():
            name = form.attributes.get(attribute, attribute)
            if name not in cls.schema.arguments:
                continue  # how to run it, or who wrote it
            if name in _DTYPES and isinstance(value, int) and not isinstance(value, bool):
                value = None if value < 0 else element_numbered(value)
            found[name] = plain_attribute(value)
        return found

    def _operands(
        self, call: Call, form: OldForm, cls: type[PaddleOp], names: Mapping[str, _Held]
    ) -> dict[str, Given]:
        found: dict[str, Given] = {}
        for slot, variables in call.inputs.items():
            if not variables:
                continue
            name = form.operands.get(slot)
            if name is None:
                self.fail(call.name, call.op_type, f"found an input '{slot}'")
            if name in found:
                continue  # a tensor goes before a list of its elements
            values = [self._read(call, variable, names) for variable in variables]
            found[name] = values if cls.schema.arguments[name].is_list or values[1:] else values[0]
        return found

    # Control flow

    def _writes(self, number: int, depth: int = 0) -> list[str]:
        """The names of the outside that a section writes."""
        if number not in self._written:
            if depth > MOST_DEPTH or not 0 <= number < len(self.program.sections):
                raise ProgramError(f"block {number} at depth {depth}")
            section = self.program.sections[number]
            found: dict[str, None] = {}
            for call in section.calls:
                found |= dict.fromkeys(name for names in call.outputs.values() for name in names)
                if (inner := call.attributes.get("sub_block")) is not None:
                    found |= dict.fromkeys(self._writes(int(inner), depth + 1))
            self._written[number] = [name for name in found if name not in section.variables]
        return self._written[number]

    def _while(self, call: Call, names: dict[str, _Held], block: Block, depth: int) -> None:
        number = int(call.attributes.get("sub_block", -1))
        condition = call.input("Condition")
        carried = [name for name in self._writes(number) if isinstance(names.get(name), SSAValue)]
        inits = [self._read(call, name, names) for name in carried]
        body = self.loop_block(inits)
        inner = {**names, **dict(zip(carried, body.args[1:], strict=True))}
        self._section(number, inner, body, depth + 1)
        after = [self._read(call, name, inner) for name in carried]
        going = self._read(call, condition, inner)
        before = self._read(call, condition, names)
        results = self.loop(block, call.name, before, inits, body, (going, after))
        names.update(zip(carried, results, strict=True))

    def _conditional(self, call: Call, names: dict[str, _Held], block: Block, depth: int) -> None:
        number = int(call.attributes.get("sub_block", -1))
        written = self._writes(number)
        known = [name for name in written if isinstance(names.get(name), SSAValue)]
        before = dict(names)
        if known:
            blocks = Block(), Block()
            inner = dict(names)
            self._section(number, inner, blocks[0], depth + 1)
            values = (
                [self._read(call, name, inner) for name in known],
                [self._read(call, name, names) for name in known],
            )
            condition = self._read(call, call.input("Cond"), names)
            results = self.branch(block, call.name, condition, blocks, values)
            names.update(zip(known, results, strict=True))
        branch = _Branch(number, before)
        names.update({name: branch for name in written if name not in known})

    def _select(
        self, calls: Sequence[Call], names: dict[str, _Held], block: Block, depth: int
    ) -> None:
        """The values of one of several branches, by number."""
        first = calls[0]
        mask = self._read(first, first.input("Mask"), names)
        columns = [[names.get(name) for name in call.inputs.get("X", ())] for call in calls]
        rows = [[call.inputs["X"][k] for call in calls] for k in range(len(columns[0]))]
        if len(rows) < 2:
            self.fail(first.name, first.op_type, f"found {len(rows)} inputs, expected two")
        results = self._chosen(first, mask, rows, names, block, depth)
        for call, value in zip(calls, results, strict=True):
            names[call.output("Out")] = value

    def _chosen(
        self,
        call: Call,
        mask: SSAValue,
        rows: Sequence[Sequence[str]],
        names: Mapping[str, _Held],
        block: Block,
        depth: int,
        number: int = 0,
    ) -> Sequence[SSAValue]:
        """Those of the first row if the mask is its number, else of another one."""
        if len(rows) == 1:
            return self._taken(call, rows[0], names, block, depth)
        index = self.call(block, call.name, "cast", i64, x=mask, dtype=i64)
        place = self.integer(block, call.name, number)
        is_here = self.call(block, call.name, "equal", i1, x=index, y=place)
        blocks = Block(), Block()
        here = self._taken(call, rows[0], names, blocks[0], depth)
        there = self._chosen(call, mask, rows[1:], names, blocks[1], depth, number + 1)
        return self.branch(block, call.name, is_here, blocks, (here, there))

    def _taken(
        self, call: Call, row: Sequence[str], names: Mapping[str, _Held], block: Block, depth: int
    ) -> list[SSAValue]:
        """The values that names stand for, after the branches that write them."""
        made: dict[int, dict[str, _Held]] = {}
        values: list[SSAValue] = []
        for name in row:
            held = names.get(name)
            if isinstance(held, _Branch):
                if id(held) not in made:
                    inner = dict(held.names)
                    self._section(held.number, inner, block, depth + 1)
                    made[id(held)] = inner
                values.append(self._read(call, name, made[id(held)]))
            else:
                values.append(self._read(call, name, names))
        return values


def _continues(first: Call, call: Call, names: Mapping[str, Any]) -> bool:
    """True for another choice between the same branches."""
    if call.op_type != "select_input" or call.inputs.get("Mask") != first.inputs.get("Mask"):
        return False
    rows = [[names.get(name) for name in c.inputs.get("X", ())] for c in (first, call)]
    return len(rows[0]) == len(rows[1]) and all(
        isinstance(a, _Branch) == isinstance(b, _Branch) and (not isinstance(a, _Branch) or a is b)
        for a, b in zip(*rows, strict=True)
    )
