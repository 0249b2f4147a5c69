"""Graphs with functions give the answers that TensorFlow gave: as they are, through C and ONNX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model
from models.corpus import PlainCase, compiled, exported, interpreted, run_case

FOLDER = Path(__file__).parent / "functions"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Recorded(PlainCase):
    """One graph with what TensorFlow computed."""

    name: str

    @property
    def model(self) -> Path:
        """The file to compile."""
        return FOLDER / f"{self.name}.pb"

    @property
    def outputs(self) -> list[str]:
        """The names of the tensors that are compared."""
        return sorted(next(self.samples())[1])

    def samples(self) -> Iterator[tuple[Arrays, Arrays]]:
        """Inputs and expected outputs by name."""
        found: defaultdict[tuple[str, str], Arrays] = defaultdict(dict)
        with np.load(FOLDER / f"{self.name}.npz") as file:
            for key in file.files:
                kind, number, name = key.split("/")
                found[number, kind][name] = file[key]
        for number in sorted({number for number, _ in found}):
            yield found[number, "in"], found[number, "out"]

    def difference(self, found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
        """How outputs differ from the expected ones; empty if they do not."""
        for name, value in expected.items():
            array = np.asarray(found[name])
            if (array.shape, array.dtype) != (value.shape, value.dtype):
                return f"{name}: found {array.dtype} {array.shape}, expected {value.shape}"
            if not np.allclose(array, value, 1e-5, 1e-6, equal_nan=True):
                return f"{name}: found {array}, expected {value}"
        return ""


CASES = [Recorded(path.stem) for path in sorted(FOLDER.glob("*.pb"))]

recorded = pytest.mark.parametrize("case", CASES, ids=lambda case: cast(Recorded, case).name)


@recorded
def test_the_imported_graph(case: Recorded) -> None:
    module = load_model(case.model, outputs=case.outputs)
    module.verify()
    for inputs, expected in case.samples():
        assert case.difference(run_module(module, inputs), expected) == ""


@recorded
@pytest.mark.parametrize("prepare", [interpreted, compiled, exported])
def test_the_compiled_graph(case: Recorded, prepare: Any) -> None:
    outcome = run_case(cast(Any, case), prepare)
    assert outcome.status == "pass", outcome.message
