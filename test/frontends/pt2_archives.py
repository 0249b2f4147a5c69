"""Archives of torch.export that tests write."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS = {"f4": 7, "i4": 4, "i8": 5, "b1": 12}


def size(value: int | str) -> dict[str, Any]:
    """A size: a number, or a symbol."""
    if isinstance(value, int):
        return {"as_int": value}
    text = f"Symbol('{value}', positive=True, integer=True)"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": 2}}}


def meta(dtype: str, sizes: Sequence[int | str]) -> dict[str, Any]:
    """The type of a tensor that lies in order; sizes behind a symbol are numbers."""
    strides = [1]
    for one in reversed([1 if isinstance(s, str) else s for s in sizes[1:]]):
        strides.insert(0, strides[0] * one)
    return {
        "dtype": _NUMBERS[dtype],
        "sizes": [size(one) for one in sizes],
        "strides": [size(one) for one in strides[: len(sizes)]],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def node(target: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A node with one result; texts are names of tensors."""
    return {
        "target": f"torch.ops.aten.{target}",
        "inputs": [
            {
                "name": key,
                "arg": value if isinstance(value, dict) else {"as_tensor": {"name": value}},
            }
            for key, value in arguments.items()
        ],
        "outputs": [{"as_tensor": {"name": name}}],
        "metadata": {},
        "name": name,
    }


def write(
    path: Path,
    nodes: Sequence[Mapping[str, Any]],
    tensors: Mapping[str, Mapping[str, Any]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    buffers: Mapping[str, NDArray[Any]],
    mutations: Mapping[str, str] | None = None,
    kind: str = "buffer",
) -> Path:
    """An archive; `mutations` are buffers, or parameters, and what they hold afterwards."""
    graph = {
        "inputs": [{"as_tensor": {"name": name}} for name in (*buffers, *inputs)],
        "outputs": [{"as_tensor": {"name": name}} for name in outputs],
        "nodes": nodes,
        "tensor_values": tensors,
    }
    signature = {
        "input_specs": [
            *(
                {kind: {"arg": {"name": name}, f"{kind}_name": name, "persistent": True}}
                for name in buffers
            ),
            *({"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in inputs),
        ],
        "output_specs": [
            *(
                {f"{kind}_mutation": {"arg": {"name": value}, f"{kind}_name": name}}
                for name, value in (mutations or {}).items()
            ),
            *({"user_output": {"arg": {"as_tensor": {"name": name}}}} for name in outputs),
        ],
    }
    program = {
        "graph_module": {"graph": graph, "signature": signature},
        "schema_version": {"major": 8, "minor": 20},
    }
    config = {
        name: {"path_name": f"weight_{k}", "use_pickle": False, "tensor_meta": dict(tensors[name])}
        for k, name in enumerate(buffers)
    }
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/byteorder", "little")
        file.writestr("m/models/model.json", json.dumps(program))
        for k, array in enumerate(buffers.values()):
            file.writestr(f"m/data/weights/weight_{k}", array.tobytes())
        file.writestr("m/data/weights/model_weights_config.json", json.dumps({"config": config}))
    return path


def counter(path: Path) -> Path:
    """
    A buffer `total` to whose second row the sum of `x` is added in place, through a view; the
    result is relu(x) of an open number of rows, plus the buffer.
    """
    nodes = [
        node("sum.default", "s", self="x"),
        node("select.int", "row", self="total", dim={"as_int": 0}, index={"as_int": 1}),
        node("add_.Tensor", "added", self="row", other="s"),
        node("relu.default", "r", self="x"),
        node("add.Tensor", "y", self="r", other="total", alpha={"as_int": 1}),
    ]
    tensors = {
        "x": meta("f4", ["s0", 2]),
        "total": meta("f4", [2]),
        "s": meta("f4", []),
        "row": meta("f4", []),
        "added": meta("f4", []),
        "r": meta("f4", ["s0", 2]),
        "y": meta("f4", ["s0", 2]),
    }
    return write(path, nodes, tensors, ["x"], ["y"], {"total": np.array([1, 2], np.float32)})
