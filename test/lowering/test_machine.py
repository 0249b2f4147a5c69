"""Machines: numbers with units and sources, from files."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from lowerdeck.lowering.targets import TARGETS
from lowerdeck.lowering.targets.machine import (
    FOLDER,
    SOURCES,
    Machine,
    MachineError,
    machine_named,
    read_machine,
    text_of,
)

NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source(name: str) -> None:
    machine = machine_named(name)
    numbers = {each.name: each for each in fields(Machine) if each.name != "facts"}
    # Those of tiles are for processors that have them.
    wanted = {name for name in numbers if not name.startswith("tile_")}
    assert wanted <= machine.facts.keys() <= numbers.keys()
    for number, fact in machine.facts.items():
        assert getattr(machine, number) == fact.value
        assert fact.source.partition(":")[0] in SOURCES
        if fact.source.startswith("measured:"):
            assert "spread" in fact.source


def test_targets_have_the_machines_of_files() -> None:
    shipped = [machine_named(name) for name in NAMES]
    assert all(target.machine in shipped for target in TARGETS)
    assert all(
        (target.isa.tiles is None) or target.machine.tile_product_cycles for target in TARGETS
    )


def test_borrowed_numbers_say_so() -> None:
    own, other = machine_named("aarch64"), machine_named("x86-64-v4")
    assert own.wait_cycles == other.wait_cycles
    source = other.facts["wait_cycles"].source
    assert own.facts["wait_cycles"].source == f"ratio: that of x86-64-v4 ({source})"
    assert own.facts["registers"].source.startswith("manual:")


def test_changed_numbers_have_their_source() -> None:
    machine = machine_named("c99").but("set: a test", registers=9, wait_cycles=0.5)
    assert (machine.registers, machine.wait_cycles) == (9, 0.5)
    assert machine.facts["registers"].source == machine.facts["wait_cycles"].source == "set: a test"
    assert machine.facts["registers"].unit == "vector registers"
    assert machine.facts["l1_bytes"] == machine_named("c99").facts["l1_bytes"]


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    machine = machine_named("x86-64-amx").but('measured: a "quoted" \\ name, spread 1 %', pages=7)
    path.write_text(text_of(machine, 'a "processor"'))
    again = read_machine(path)
    assert again == machine
    assert again.facts == machine.facts


def test_a_wrong_file_is_told_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    table = """
        [{0}]
        value = {1}
        unit = "{2}"
        source = "{3}"
    """
    path.write_text(
        'like = "c99"\n[speed]\nvalue = 1\n[pages]\nvalue = 64\n'
        + table.format("registers", "16.5", "vector registers", "manual: x")
        + table.format("loop_cycles", "-1", "cycles", "manual: x")
        + table.format("l1_bytes", "true", "bytes", "manual: x")
        + table.format("l2_ways", "0", "lines", "manual: x")
        + table.format("l2_bytes", "64", "KiB", "a guess")
    )
    with pytest.raises(MachineError) as raised:
        read_machine(path)
    assert str(raised.value).replace(f"{path}: ", "").splitlines() == [
        "'speed' is no number of a machine",
        "'pages' is no table of 'value', 'unit' and 'source'",
        "'registers': 16.5 is not an integer",
        "'loop_cycles': -1 is not a number of at least 0",
        "'l1_bytes': True is not an integer",
        "'l2_ways': it is 0",
        "'l2_bytes': its unit is 'bytes', not 'KiB'",
        "'l2_bytes': a source begins with one of manual, measured, set, ratio and a colon",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("like = 'toy'", "like: 'toy' is no machine; aarch64, c99, cortex-m, x86-64, "),
        ("like = 1", "like: 1 is no machine"),
        ("registers = ", "Invalid value"),
        ("", "'registers' is missing"),
    ],
)
def test_a_file_that_says_too_little(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "little.toml"
    path.write_text(text)
    with pytest.raises(MachineError, match=message):
        read_machine(path)
    with pytest.raises(MachineError, match="No such file"):
        read_machine(tmp_path / "none.toml")
