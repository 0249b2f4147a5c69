"""A short run of the fuzzer of generated C: every build, and the ways it can find something."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.c_harness import SANITIZERS, Limits, build, missing, run, write_harness
from fuzz.c_models import MODELS
from fuzz.fuzz_c import Variant, compiled, main, variants


def require(compiler: str) -> None:
    """Skip, and say why, where there are no sanitizers."""
    for sanitizer in SANITIZERS:
        if (reason := missing(compiler, sanitizer)) is not None:
            pytest.skip(reason)


def test_nothing_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Loops, allocated memory, convolutions: all of it clean."""
    require("gcc")
    names = "^(conv_grouped|loop_growing)$"
    arguments = ["--only", names, "--runs", "30", "--compilers", "gcc"]
    assert main(arguments) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith("2 models, 120 runs, ")


def test_every_target_gets_its_turn() -> None:
    """Over the models and compilers, every combination of target and threads is built."""
    names = ("gcc", "clang")
    every = {variant for number in range(4) for variant in variants(number, 0, names, every=False)}
    assert every == {variant for variant in variants(0, 0, names, every=True)}
    assert Variant("gcc", "tsan", "c99", 1) not in every


def test_faults_are_found(tmp_path: Path) -> None:
    """A load behind the end, an overflow of integers, a status that nobody knows."""
    require("gcc")
    made = MODELS["products_of_doubles"](tmp_path)
    artifact = compiled(made, "products_of_doubles", "c99", 1)
    run_ = "int products_of_doubles_run(products_of_doubles_args *args) {\n"
    text = artifact.files["products_of_doubles.c"]
    for kind, statement in {
        "asan": "if (args->a.dims[0] == 7 && args->a.data[7 * args->a.dims[1]] == 0.5) return 1;",
        "ubsan": "if (args->a.dims[0] + INT64_MAX == 5) return 1;",
        "status": "if (args->weights_size == 0) return 99;",
    }.items():
        assert run_ in text
        head = "  if (args == NULL) return LOWERDECK_ERROR_NULL;\n"
        artifact.files["products_of_doubles.c"] = text.replace(run_, f"{run_}{head}  {statement}\n")
        folder = tmp_path / kind
        write_harness(artifact, folder, Limits({}, {"n": (7,), "k": (3,)}))
        assert build(artifact, folder, "gcc", SANITIZERS["asan"]) is None
        found = run(artifact, folder, 0, 12).findings
        assert kind in {finding.kind for finding in found}, found
