"""Forms of MXNet's operators, with the answers of MXNet 1.9.1 (`models/mxnet_cases.py`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lowerdeck
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret.calls import Calls

CASES = sorted((Path(__file__).parent / "mxnet_models").glob("*.npz"))
Arrays = dict[str, NDArray[Any]]


class _Case:
    """The file of a case: a symbol, its inputs, and the answers one after the other."""

    def __init__(self, path: Path, folder: Path) -> None:
        with np.load(path) as file:
            self._held = {name: file[name] for name in file.files}
        self.facts = json.loads(self._held["facts"].tobytes())
        self.path = folder / f"{path.stem}-symbol.json"
        self.path.write_bytes(self._held["symbol"].tobytes())
        weights = self._held.get("weights")
        if weights is not None:
            (folder / f"{path.stem}-0000.params").write_bytes(weights.tobytes())
        prefix = "input "
        self.inputs = {
            name.removeprefix(prefix): array
            for name, array in self._held.items()
            if name.startswith(prefix)
        }

    def answers(self) -> Iterator[tuple[str, NDArray[Any]]]:
        places: dict[str, int] = {}
        for name, dtype, shape in self.facts["outputs"]:
            first = places.get(dtype, 0)
            places[dtype] = first + math.prod(shape)
            flat = self._held[f"answers {dtype}"][first : places[dtype]]
            yield name, flat.reshape(shape)

    def check(self, found: Any) -> None:
        rtol, atol = (self.facts["tolerance"][key] for key in ("rtol", "atol"))
        for name, expected in self.answers():
            value = np.asarray(found[name])
            assert (value.dtype, value.shape) == (expected.dtype, expected.shape), name
            np.testing.assert_allclose(
                value.astype(np.float64), expected.astype(np.float64), rtol, atol, err_msg=name
            )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_forms_give_what_mxnet_gives(path: Path, tmp_path: Path) -> None:
    case = _Case(path, tmp_path)
    module, _ = import_and_lower(str(case.path), "legal", CompileOptions())
    case.check(Calls(module)(case.inputs))


def test_forms_give_what_mxnet_gives_in_c(tmp_path: Path) -> None:
    path = next(path for path in CASES if path.stem == "forms_normalization")
    case = _Case(path, tmp_path)
    case.check(lowerdeck.compile(case.path, target="c99", cache=False)(case.inputs))
