"""The official node suite by the interpreter: nothing is wrong, and little is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from onnx_suite import load_cases, run_case

from lowerdeck.dialects.errors import InternalError

ROOT = Path(__file__).parents[4]
TOPICS = "conv|pool|lstm|gru|rnn|softmax|norm|reduce|einsum|gemm|matmul|quantize|cast|clip|elu"


def test_cases_of_the_main_topics_pass() -> None:
    script = [str(ROOT / "bench" / "onnx_suite.py"), "--interpret", "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, *script, "--filter", f"^test_[a-z_]*({TOPICS})"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    total = next(line for line in done.stdout.splitlines() if line.startswith("all "))
    passed, refused, *rest = map(int, total.split()[1:])
    assert not any(rest), done.stdout
    assert passed > 650, done.stdout
    assert refused < 30, done.stdout


def test_a_fault_is_an_error_of_its_case() -> None:
    def run(model: object, values: object) -> NoReturn:
        raise InternalError("m: KeyError: k")

    case = next(case for case in load_cases() if case.name == "test_relu")
    assert run_case(case, run=run) == ("error", "InternalError: m: KeyError: k")
