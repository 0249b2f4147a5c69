"""Archives of TorchScript as `torch.jit.save` writes them, from code and arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.weight_files import tensor, text


def write(
    path: Path,
    code: str,
    attributes: Mapping[str, NDArray[Any] | bytes] | None = None,
    constants: tuple[NDArray[Any], ...] = (),
) -> Path:
    """
    An archive whose module is the class `M` of the code; attributes are arrays, or pickled data.
    """
    given = attributes or {}
    state, arrays = b"", list[NDArray[Any]]()
    for name, value in given.items():
        if isinstance(value, bytes):
            state += text(name) + value
        else:
            state += text(name) + tensor(len(arrays), value)
            arrays.append(np.ascontiguousarray(value).reshape(value.shape))
    data = b"\x80\x02c__torch__\nM\n)\x81}(" + state + b"ub."
    of_code = b"".join(tensor(k, array) for k, array in enumerate(constants))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/data.pkl", data)
        file.writestr("m/code/__torch__.py", code)
        file.writestr("m/constants.pkl", b"\x80\x02(" + of_code + b"t.")
        file.writestr("m/version", "3\n")
        file.writestr("m/byteorder", "little")
        for k, array in enumerate(arrays):
            file.writestr(f"m/data/{k}", array.tobytes())
        for k, array in enumerate(constants):
            file.writestr(f"m/constants/{k}", array.tobytes())
    return path


def method(body: str, parameters: str = "x: Tensor", fields: str = "w : Tensor") -> str:
    """The class `M` with a method `forward` of these lines."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return (
        f"class M(Module):\n  {fields}\n  def forward(self: __torch__.M,\n    {parameters})"
        f" -> Tensor:\n{lines}\n"
    )
