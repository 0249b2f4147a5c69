"""`lowerdeck calibrate`: loops are measured, and native code is chosen by the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerdeck.lowering import targets
from lowerdeck.lowering.targets import machine_key, machine_origin, own_file, target_named
from lowerdeck.lowering.targets.machine import machine_named, read_machine, text_of
from lowerdeck.tools import calibrate, listings
from lowerdeck.tools.calibrate import Calibration, Measured
from lowerdeck.tools.lowerdeck import main

MEASURED = [
    *("multiply_adds_per_cycle", "latency_cycles", "division_cycles", "loop_cycles"),
    *("loads_per_cycle", "stores_per_cycle", "l2_line_cycles"),
    *("l2_copy_bytes_per_cycle", "l2_return_bytes_per_cycle", "shared_bytes_per_cycle"),
    *("memory_bytes_per_cycle", "wait_cycles", "l3_bytes", "jump_line_cycles", "walk_cycles"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWERDECK_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_native_uses_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short measurements of little memory: whether the numbers are good is not a test's matter."""
    monkeypatch.setattr(calibrate, "ROUNDS", 1)
    monkeypatch.setattr(calibrate, "SECONDS", 0.01)
    monkeypatch.setattr(calibrate, "_FAR_BYTES", 1 << 24)
    monkeypatch.setattr(calibrate, "_SHORTEST", 1e-5)
    before, key = target_named("native"), machine_key("native")
    assert "`lowerdeck calibrate` measures" in listings.targets()
    assert main(["calibrate"]) == 0
    path = own_file()
    assert path is not None
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == str(path)
    assert set(MEASURED) <= {line.split()[0] for line in lines}
    machine = target_named("native").machine
    for name in MEASURED:
        assert machine.facts[name].source.startswith("measured: "), name
        assert getattr(machine, name) > 0
    assert machine == read_machine(path) != before.machine
    assert machine_key("native") != key
    assert machine_origin("native") == f"numbers of this machine, {path}"
    assert str(path) in listings.targets()
    # An explicit target gives the same C on every machine.
    assert all(
        target.machine.facts == target_named(target.name).machine.facts
        for target in targets.TARGETS
    )


def test_a_file_of_another_version_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    path = own_file()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_text("[speed]\nvalue = 1\n")
    assert main(["compile", "examples/digits/digits.onnx", "-o", str(path.parent / "c")]) == 1
    error = capsys.readouterr().err
    assert f"{path}: 'speed' is no number of a machine" in error
    assert "next: lowerdeck calibrate, or remove the file" in error
    assert not (path.parent / "c").exists()
    stated = machine_named("x86-64-amx")  # which has all numbers, also those of tiles
    path.write_text(text_of(stated, "any"))
    assert target_named("native").machine == stated


def test_a_number_that_an_older_file_lacks_is_that_of_the_nearest_target() -> None:
    path, nearest = own_file(), target_named("native").machine
    assert path is not None
    path.parent.mkdir(parents=True)
    before, _, behind = text_of(machine_named("cortex-m"), "any").partition("[unit_bytes]")
    path.write_text(before + "[" + behind.partition("[")[2])
    machine = target_named("native").machine
    assert machine.unit_bytes == nearest.unit_bytes != machine_named("cortex-m").unit_bytes
    assert machine.l1_bytes == machine_named("cortex-m").l1_bytes


def test_numbers_that_spread_are_not_kept() -> None:
    told: list[str] = []
    own = Calibration(None, 64, machine_named("c99"), told.append)  # pyright: ignore[reportArgumentType]
    own.keep_measured("latency_cycles", Measured(5.0, 0.31))
    own.keep_measured("wait_cycles", Measured(0.123456, 0.29))
    assert "5 is not kept: its spread is 31%" in told[0]
    assert "spread 29.0%" in told[1]
    assert own.so_far.latency_cycles == machine_named("c99").latency_cycles
    assert own.so_far.wait_cycles == 0.12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "toy"], "--target: target 'toy' is not one of native, "),
        (["--target", "cortex-m4"], "--target: target cortex-m4 does not run on "),
        (["--target", "c99"], "--target c99: only native has numbers of its own; give -o"),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_without_a_cache_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWERDECK_CACHE", "/dev/null/cache")
    assert main(["calibrate"]) == 1
    assert "there is no cache folder; LOWERDECK_CACHE names one" in capsys.readouterr().err
