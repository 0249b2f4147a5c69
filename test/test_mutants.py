"""The list of mutants is in step with the sources: every one applies, and is still a program."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BENCH = runpy.run_path(str(ROOT / "bench" / "mutants.py"))
MUTANTS: list[Any] = BENCH["load_mutants"]()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_mutant_applies(mutant: Any) -> None:
    source = (ROOT / mutant.file).read_text()
    mutated = mutant.apply(source)
    assert mutated != source
    if mutant.module:
        compile(mutated, mutant.file, "exec")


def test_selected_tests_are_there() -> None:
    named = {test.partition("::")[0] for mutant in MUTANTS for test in mutant.tests}
    assert [file for file in sorted(named) if not (ROOT / "test" / file).is_file()] == []


def test_a_list_out_of_step_is_an_error() -> None:
    mutant = BENCH["Mutant"]("m", "f.py", "a = 1", "a = 2", "a mistake", ("t",))
    assert mutant.apply("if b:\n    a = 1\n") == "if b:\n    a = 2\n"
    for source in ("a = 3\n", "a = 1\na = 1\n"):
        with pytest.raises(BENCH["MutantError"], match="up to date"):
            mutant.apply(source)
