"""The list of mutants is in step with the sources: every one applies, and is still a program."""

from pathlib import Path

import pytest

from fuzz.mutants import Mutant, MutantError, load_mutants

ROOT = Path(__file__).parents[1]
MUTANTS = load_mutants()


def problem_of(mutant: Mutant, source: str) -> str | None:
    """Why a mutant is none of a source, if it is none."""
    try:
        mutated = mutant.apply(source)
        if mutant.module:
            compile(mutated, mutant.file, "exec")
    except (MutantError, SyntaxError) as error:
        return str(error)
    return f"{mutant.name}: nothing changes" if mutated == source else None


def test_every_mutant_applies() -> None:
    sources = {mutant.file: (ROOT / mutant.file).read_text() for mutant in MUTANTS}
    problems = [problem_of(mutant, sources[mutant.file]) for mutant in MUTANTS]
    assert [problem for problem in problems if problem is not None] == []


def test_selected_tests_are_there() -> None:
    named = {test.partition("::")[0] for mutant in MUTANTS for test in mutant.tests}
    assert [file for file in sorted(named) if not (ROOT / "test" / file).is_file()] == []


def test_a_list_out_of_step_is_an_error() -> None:
    mutant = Mutant("m", "f.py", "a = 1", "a = 2", "a mistake", ("t",))
    assert mutant.apply("if b:\n    a = 1\n") == "if b:\n    a = 2\n"
    for source in ("a = 3\n", "a = 1\na = 1\n"):
        with pytest.raises(MutantError, match="up to date"):
            mutant.apply(source)
