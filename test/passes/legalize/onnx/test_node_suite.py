"""
The official node suite by the interpreter: nothing is wrong, and little is refused. The slow tier
has all of it through C, with what functions expand to.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

from lowerdeck.dialects.errors import InternalError
from models.onnx_suite import load_cases, main, run_case

TOPICS = "conv|pool|lstm|gru|rnn|softmax|norm|reduce|einsum|gemm|matmul|quantize|cast|clip|elu"


def test_cases_of_the_main_topics_pass(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        ["--interpret", "--jobs", "1", "--filter", f"^test_(?!.*expanded)[a-z_]*({TOPICS})"]
    )
    printed = capsys.readouterr().out
    assert status == 0, printed
    total = next(line for line in printed.splitlines() if line.startswith("all "))
    passed, refused, *rest = map(int, total.split()[1:])
    assert not any(rest), printed
    assert passed > 480, printed
    assert refused < 30, printed


def test_a_fault_is_an_error_of_its_case() -> None:
    def run(model: object, values: object) -> NoReturn:
        raise InternalError("m: KeyError: k")

    case = next(case for case in load_cases() if case.name == "test_relu")
    assert run_case(case, run=run) == ("error", "InternalError: m: KeyError: k")
