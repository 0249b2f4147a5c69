"""
What a processor does in a cycle, as numbers with units and sources, read from files.

The files are TOML. A table is a number: its `value`, its `unit`, and as `source` a manual, or on
what it was measured, when, and with what spread. `like` names the file that has the numbers which
this one lacks; they are borrowed, and say so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from lowerdeck.dialects.records import record

SOURCES = ("manual", "measured", "set", "ratio")
"""
What a source begins with: read in a manual; measured by a program; set by hand, to what was timed;
a ratio, that of another processor for lack of anything better.
"""


class MachineError(ValueError):
    """A file that describes no machine; the message names the file and all that is wrong."""


@record
class Fact:
    """A number of a machine as its file has it."""

    value: float
    unit: str
    source: str


def _number(unit: str) -> Any:
    return field(metadata={"unit": unit})


def _of_tiles(unit: str) -> Any:
    return field(default=0.0, metadata={"unit": unit})


@record
class Machine:
    """One core of a processor, and what it shares."""

    registers: int = _number("vector registers")
    """Those that code can name."""
    unit_bytes: int = _number("bytes")
    """The width of the units: shorter vectors take as long, longer ones pass in several steps."""
    instructions_per_cycle: float = _number("instructions per cycle")
    """Of all kinds, as they come from the decoders."""
    instructions_ahead: int = _number("instructions")
    """Those under way at a time: how far the processor looks ahead of what waits."""
    operations_per_cycle: float = _number("vectors per cycle")
    """Simple operations on whole vectors, on all units that have them."""
    multiply_adds_per_cycle: float = _number("vectors per cycle")
    """Multiplications and multiply-adds of whole vectors."""
    shuffles_per_cycle: float = _number("vectors per cycle")
    """Whole vectors whose elements change places."""
    loads_per_cycle: float = _number("vectors per cycle")
    """Loads of whole vectors, from the L1 cache."""
    stores_per_cycle: float = _number("vectors per cycle")
    """Stores of whole vectors, to the L1 cache."""
    latency_cycles: float = _number("cycles")
    """From one multiply-add to the next one of the same sum."""
    division_cycles: float = _number("cycles per vector")
    """Between two divisions of vectors of f32 that do not wait for each other."""
    l1_bytes: int = _number("bytes")
    """Of the L1 data cache."""
    l1_ways: int = _number("lines")
    """Of one set of the L1 cache."""
    l2_bytes: int = _number("bytes")
    """Of the L2 cache, of one core."""
    l2_ways: int = _number("lines")
    """Of one set of the L2 cache."""
    l3_bytes: int = _number("bytes")
    """Of the cache that cores share, as far as one of them may count on it; 0 if there is none."""
    line_bytes: int = _number("bytes")
    """Of a cache line."""
    page_bytes: int = _number("bytes")
    """Of a page, and between addresses that map to the same set of the L1 cache."""
    pages: int = _number("pages")
    """Those that loads find without delay: the entries of the first level of the TLB."""
    split_load_cycles: float = _number("cycles")
    """A load of a vector that lies in two lines."""
    l2_line_cycles: float = _number("cycles per line")
    """Between two lines that come from the L2 cache."""
    l2_copy_bytes_per_cycle: float = _number("bytes per cycle")
    """Moved within the L2 cache."""
    l2_return_bytes_per_cycle: float = _number("bytes per cycle")
    """That leave the L2 cache and come back to it."""
    shared_bytes_per_cycle: float = _number("bytes per cycle")
    """From the cache shared by the cores."""
    memory_bytes_per_cycle: float = _number("bytes per cycle")
    """From memory."""
    jump_line_cycles: float = _number("cycles per line")
    """Between two lines from memory of short runs, for which no stream is there yet."""
    far_pages: int = _number("pages")
    """Those that are found without a walk through tables: the entries of the whole TLB."""
    walk_cycles: float = _number("cycles per page")
    """Between two pages that are not among these."""
    wait_cycles: float = _number("cycles per operation")
    """
    Between two lines from far that nothing has asked for ahead, for each operation from one to the
    other: the latency of memory divided by the operations that a core has in flight.
    """
    loop_cycles: float = _number("cycles")
    """To enter a loop and to leave it, besides its steps."""
    barrier_cycles: float = _number("cycles")
    """From the last thread that comes to a barrier to the first one that goes on."""

    tile_product_cycles: float = _of_tiles("cycles")
    """To multiply two tiles of matrices, on processors that have them; 0 on others."""
    tile_load_cycles: float = _of_tiles("cycles")
    """To load one of them."""
    tile_shape_cycles: float = _of_tiles("cycles")
    """To say how large they are, where that changes."""
    tile_store_cycles: float = _of_tiles("cycles")
    """To store the sums of a block and to read them again."""
    tile_start_cycles: float = _of_tiles("cycles")
    """To begin to use tiles: the unit rests while there are none."""

    facts: Mapping[str, Fact] = field(
        default_factory=dict[str, Fact], compare=False, repr=False, kw_only=True
    )
    """The numbers by name, with their units and sources."""

    def but(self, source: str, **numbers: float) -> Machine:
        """Another machine: numbers that differ, and where they are from."""
        units = {each.name: _unit(each) for each in _numbers()}
        changed = {name: Fact(value, units[name], source) for name, value in numbers.items()}
        values: dict[str, Any] = {**numbers}
        return replace(self, **values, facts={**self.facts, **changed})


def _numbers() -> list[Field[Any]]:
    return [each for each in fields(Machine) if "unit" in each.metadata]


def _unit(number: Field[Any]) -> str:
    return number.metadata["unit"]


FOLDER = Path(__file__).parent


@cache
def machine_named(name: str) -> Machine:
    """The machine of a file in this folder; MachineError if it is malformed."""
    return read_machine(FOLDER / f"{name}.toml")


def read_machine(path: Path, otherwise: Machine | None = None) -> Machine:
    """
    The machine of a file, which may borrow from those in this folder; numbers that it lacks then
    are those of another one, if there is one.

    MachineError lists what is wrong with it.
    """
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MachineError(f"{path}: {error}") from error
    facts: dict[str, Fact] = {} if otherwise is None else dict(otherwise.facts)
    if (like := data.pop("like", None)) is not None:
        if not isinstance(like, str) or not (FOLDER / f"{like}.toml").is_file():
            raise MachineError(f"{path}: like: {like!r} is no machine; {_known()} are")
        facts = dict(_borrowed(machine_named(like).facts, like))
    data.pop("processor", None)
    faults = list(_faults(data, facts))
    if faults:
        raise MachineError("\n".join(f"{path}: {fault}" for fault in faults))
    facts |= {name: Fact(**table) for name, table in data.items()}
    values: dict[str, Any] = {
        each.name: _value(facts[each.name], each) for each in _numbers() if each.name in facts
    }
    return Machine(**values, facts=facts)


def _known() -> str:
    return ", ".join(sorted(path.stem for path in FOLDER.glob("*.toml")))


def _borrowed(facts: Mapping[str, Fact], owner: str) -> Iterator[tuple[str, Fact]]:
    for name, fact in facts.items():
        kept = fact.source.startswith("ratio:")
        source = fact.source if kept else f"ratio: that of {owner} ({fact.source})"
        yield name, replace(fact, source=source)


def _value(fact: Fact, number: Field[Any]) -> float | int:
    return int(fact.value) if number.type == "int" else float(fact.value)


def _faults(data: Mapping[str, Any], borrowed: Iterable[str]) -> Iterator[str]:
    """What is wrong with the tables of a file."""
    numbers = {each.name: each for each in _numbers()}
    for name, table in data.items():
        if name not in numbers:
            yield f"'{name}' is no number of a machine"
        elif not isinstance(table, dict) or set(table := _table(table)) != _PARTS:
            yield f"'{name}' is no table of 'value', 'unit' and 'source'"
        else:
            yield from _faults_of(numbers[name], table)
    for name, number in numbers.items():
        if number.default is MISSING and name not in data and name not in borrowed:
            yield f"'{name}' is missing"


_PARTS = {"value", "unit", "source"}


def _table(table: Any) -> Mapping[str, Any]:
    return table


def _faults_of(number: Field[Any], table: Mapping[str, Any]) -> Iterator[str]:
    value, unit, source = table["value"], table["unit"], table["source"]
    kinds = int if number.type == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 1e15:
        wanted = "an integer" if kinds is int else "a number of at least 0"
        yield f"'{number.name}': {value!r} is not {wanted}"
    elif not value and number.name not in _MAY_BE_NONE:
        yield f"'{number.name}': it is 0"
    if unit != _unit(number):
        yield f"'{number.name}': its unit is '{_unit(number)}', not {unit!r}"
    if not isinstance(source, str) or not re.match(rf"({'|'.join(SOURCES)}): \S", source):
        yield f"'{number.name}': a source begins with one of {', '.join(SOURCES)} and a colon"


_MAY_BE_NONE = {
    *("l3_bytes", "split_load_cycles"),
    *("tile_product_cycles", "tile_load_cycles", "tile_shape_cycles"),
    *("tile_store_cycles", "tile_start_cycles"),
}


def text_of(machine: Machine, processor: str) -> str:
    """The file of a machine, all of it: what `read_machine` reads."""
    lines = [f"processor = {_string(processor)}", ""]
    for name, fact in machine.facts.items():
        value = int(fact.value) if fact.value == int(fact.value) else fact.value
        lines += [
            f"[{name}]",
            f"value = {value}",
            f"unit = {_string(fact.unit)}",
            f"source = {_string(fact.source)}",
            "",
        ]
    return "\n".join(lines)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(c if c.isprintable() else " " for c in escaped)}"'
