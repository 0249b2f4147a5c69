"""The stack that the header states is no less than what a compiler takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.lowering.emit_c.module import emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import module_of, typed, write_artifact  # noqa: TID251  (tests, not sources)


def test_stack_of_a_sort(tmp_path: Path) -> None:
    """The keys of 10,000 elements are workspace; the counts of digits are on the stack."""

    def body(x: Any) -> Any:
        return TopKOp(x, 10000, 0, True).results

    module = module_of([typed(np.float32, 10000)], body)
    for name in ("form-kernels", "bufferize", "lower-kernels", "move-scratch", "plan-memory"):
        ALL_PASSES[name]()().apply(LowerdeckContext(), module)
    artifact = emit_c(module, "m", "c99")
    write_artifact(artifact, tmp_path)
    command = ["gcc", "-std=c99", "-O2", "-fstack-usage", "-c", "m.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    frames = [int(line.split("\t")[1]) for line in (tmp_path / "m.su").read_text().splitlines()]
    memory: Any = artifact.metadata["memory"]
    assert 1024 <= sum(frames) <= memory["stack"] < 8192
    assert memory["arena"] >= 2 * 4 * 10000
    assert f"#define M_STACK_SIZE {memory['stack']} " in artifact.files["m.h"]
