"""Forms of PaddlePaddle's operators, with the answers of versions 2.6.2 and 3.3.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret.calls import Calls

with np.load(Path(__file__).parent / "paddle_models" / "forms.npz") as file:
    HELD = {name: file[name] for name in file.files}
NAMES = sorted({name.partition(" ")[0] for name in HELD})


@pytest.mark.parametrize("name", NAMES)
def test_forms_give_what_paddle_gives(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(HELD[f"{name} model"].tobytes())
    inputs, outputs = (
        {key.removeprefix(start): value for key, value in HELD.items() if key.startswith(start)}
        for start in (f"{name} input ", f"{name} output ")
    )
    module, _ = import_and_lower(str(path), "legal", CompileOptions())
    found = Calls(module)(inputs)
    for key, expected in outputs.items():
        value = np.asarray(found[key])
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape), key
        np.testing.assert_allclose(value, expected, 1e-4, 1e-5, err_msg=key)
