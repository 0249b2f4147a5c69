"""
Modules as TorchScript, with PyTorch's own answers: traced, scripted, or both.

    python -m models.script_exports FOLDER [--filter REGEX]

A case is a folder: the archive `model.pt`, samples `K.npz` with `input:NAME` and the results in
order as `output:K`, and `case.json` with what has to be said of the inputs. Of a module that
remembers, samples are calls in a row. It runs in a Python that has PyTorch.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from models import script_networks as nets
from models import script_quantized, script_values

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """A module and calls of it, each with arguments by name; `ways` are trace and script."""

    make: Callable[[], Any]
    calls: Sequence[Inputs]
    ways: tuple[str, ...] = ("trace", "script")
    open: Mapping[str, str] = field(default_factory=dict)
    """Types of inputs with open sizes, in which it is compiled once more."""
    training: bool = False


def r(*shape: int) -> torch.Tensor:
    """Random numbers."""
    return torch.randn(*shape)


def i(high: int, *shape: int) -> torch.Tensor:
    """Random indices."""
    return torch.randint(0, high, shape)


def examples() -> dict[str, Example]:
    """All of them by name."""
    boxes = torch.rand(6, 4) * 10
    boxes[:, 2:] += boxes[:, :2]
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    shorter = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] + [True] * 4])
    script, trace = ("script",), ("trace",)
    return {
        "convolutional": Example(
            nets.Convolutional, [{"input": r(2, 3, 16, 16)}], open={"input": "nx3x16x16xf32"}
        ),
        "residual": Example(nets.Residual, [{"x": r(1, 3, 32, 32)}], open={"x": "nx3xhx32xf32"}),
        "unet": Example(nets.UNet, [{"x": r(1, 1, 9, 11)}]),
        "squeezed": Example(nets.Squeezed, [{"x": r(2, 8, 5, 6)}], open={"x": "nx8xhxwxf32"}),
        "patches": Example(nets.Patches, [{"x": r(2, 3, 8, 8)}]),
        "recurrent": Example(nets.Recurrent, [{"ids": i(11, 2, 7)}]),
        "cells": Example(nets.Cells, [{"x": r(2, 4, 4)}]),
        "encoder": Example(nets.Encoder, [{"x": r(2, 5, 12), "padding": padding}]),
        "decoder": Example(nets.Decoder, [{"x": r(2, 6, 16)}], open={"x": "nx6x16xf32"}),
        "attended": Example(
            nets.Attended,
            [{"q": r(2, 3, 4, 8), "k": r(2, 3, 4, 8), "v": r(2, 3, 4, 8), "mask": r(4, 4)}],
        ),
        "bags": Example(nets.Bags, [{"ids": i(10, 9), "offsets": torch.tensor([0, 2, 2, 6])}]),
        "sound": Example(nets.Sound, [{"x": r(2, 4, 20)}], open={"x": "2x4xtxf32"}),
        "branches": Example(
            nets.Branches, [{"x": r(3, 4) + k} for k in (1, -3, 0)], script, {"x": "nx4xf32"}
        ),
        "flow": Example(nets.Flow, [{"x": r(3, 4) + k} for k in (1, -3)], trace),
        "lists": Example(
            script_values.Lists, [{"x": torch.tensor([1.0, 2, 3]) * k} for k in (1, 2, 3)], script
        ),
        "attributes": Example(
            script_values.Attributes,
            [{"x": torch.tensor([1.0, 2, 3]) * k} for k in (1, 2, 3, 4)],
            script,
        ),
        "objects": Example(
            script_values.Objects,
            [{"x": torch.tensor([1.0, 2, 3]) * k} for k in (1, 2, 3)],
            script,
        ),
        "settled": Example(
            script_values.Settled,
            [{"x": torch.tensor([1.0, 2, 3]) * k} for k in (1, 2)],
            script,
        ),
        "halting": Example(nets.Halting, [{"x": r(3, 4)}, {"x": r(3, 4) * 5}], script),
        "fibonacci": Example(nets.Fibonacci, [{"x": r(3, 4) + k} for k in (1, -3)], script),
        "structures": Example(
            nets.Structures, [{"xs": [r(3, 4), r(3, 4), r(3, 4)], "pair": (r(2), r(2))}], script
        ),
        "named": Example(nets.Named, [{"x": r(3, 6)}], script),
        "writes": Example(nets.Writes, [{"x": r(3, 4) * 3}]),
        "counter": Example(nets.Counter, [{"x": r(2, 3)} for _ in range(4)], script),
        "memory": Example(nets.Memory, [{"x": r(1, 4)} for _ in range(3)]),
        "training": Example(
            nets.Training, [{"x": r(4, 3)} for _ in range(2)], script, training=True
        ),
        "suppression": Example(
            nets.Suppression, [{"boxes": boxes, "scores": torch.rand(6)}], script
        ),
        "found": Example(nets.Found, [{"x": r(5, 3)}, {"x": -r(4, 3).abs()}][:1], script),
        "graph": Example(nets.Graph, [{"x": r(5, 4), "edges": i(5, 2, 9)}]),
        "types": Example(nets.Types, [{"x": r(4), "n": i(9, 4)}]),
        "calls": Example(nets.Calls, [{"x": r(3, 4)}], script),
        "mixed": Example(nets.Mixed, [{"x": r(1, 3, 16, 16)}], script),
        "beam": Example(nets.Beam, [{"h": r(1, 5)}, {"h": r(1, 5)}], script),
        "statistics": Example(nets.Statistics, [{"x": r(4, 5)}], script),
        "spectra": Example(nets.Spectra, [{"x": r(2, 16)}]),
        "formulas": Example(
            nets.Formulas, [{"x": r(4, 5), "n": torch.tensor([3, 1, 1, 6])}], script
        ),
        "edges": Example(nets.Edges, [{"x": r(4, 5), "n": i(4, 3)}], script),
        "packed": Example(
            nets.Packed,
            [{"x": r(5, 3, 3), "lengths": torch.tensor(k)} for k in ([5, 3, 1], [4, 4, 2])],
        ),
        "fast": Example(nets.Fast, [{"x": r(2, 3, 4)}], trace),
        "phases": Example(nets.Phases, [{"x": r(4, 2)}], trace),
        "rare": Example(
            nets.Rare,
            [{"x": r(4, 5), "image": r(1, 2, 5, 7), "ids": torch.tensor([[1, 2, 5], [5, 5, 5]])}],
            trace,
        ),
        "scores": Example(
            nets.Scores,
            [{"x": r(4, 5), "n": torch.tensor([3, 1, 2, 1])}],
            trace,
        ),
        "margins": Example(
            nets.Margins,
            [{"x": r(4, 5), "y": r(4, 5), "side": r(4).sign(), "n": torch.tensor([3, 1, 0, 4])}],
            trace,
        ),
        "fractions": Example(nets.Fractions, [{"x": r(2, 3, 7, 8)}], trace),
        "nested": Example(nets.Nested, [{"x": r(3, 5, 8), "padding": shorter}], trace),
        "frozen": Example(nets.Residual, [{"x": r(1, 3, 32, 32)}], ("freeze",)),
        "counter_traced": Example(nets.Memory, [{"x": r(1, 4)} for _ in range(2)], trace),
        "bytes": Example(
            script_quantized.static, [{"x": r(2, 4, 8, 8)}], ("trace", "script", "freeze")
        ),
        "dynamic_bytes": Example(script_quantized.dynamic, [{"input": r(3, 8)}]),
        "remembering": Example(
            script_quantized.remembering,
            [{"x": r(5, 3, 3), "lengths": torch.tensor([5, 3, 1])}],
            trace,
        ),
        "remembering_half": Example(
            script_quantized.half, [{"x": r(5, 3, 3), "lengths": torch.tensor([5, 3, 1])}], trace
        ),
    }


def written(example: Example, way: str, path: Path) -> Any:
    """The module as PyTorch reads it back."""
    module = example.make().train(example.training)
    first = example.calls[0]
    if way == "trace":
        made = torch.jit.trace(module, tuple(first.values()), check_trace=False)
    else:
        made = torch.jit.script(module)
        made = torch.jit.freeze(made) if way == "freeze" else made
    torch.jit.save(made, str(path))
    # A trace has changed what a module remembers.
    return torch.jit.load(str(path))


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers of nested lists, by name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(f"{name}_{key}", item)
    elif isinstance(value, list | tuple):
        for key, item in enumerate(value):
            yield from flat(f"{name}_{key}", item)
    elif value is not None:
        yield name, np.array(value.detach() if isinstance(value, torch.Tensor) else value)


def type_of(array: Any) -> str:
    """The type of an input as `--input-type` has it."""
    element = {"float32": "f32", "int64": "i64", "bool": "i1"}[array.dtype.name]
    return "x".join([*map(str, array.shape), element])


def export(name: str, example: Example, way: str, folder: Path) -> None:
    """Write one case."""
    torch.manual_seed(1)
    folder = folder / f"{name}_{way}"
    folder.mkdir(parents=True, exist_ok=True)
    module = written(example, way, folder / "model.pt")
    types: dict[str, str] = {}
    with torch.no_grad():
        for k, call in enumerate(example.calls):
            inputs = [pair for key, value in call.items() for pair in flat(key, value)]
            if way != "trace":
                types = {key: type_of(array) for key, array in inputs}
            outputs = [value for _, value in flat("", module(*call.values()))]
            np.savez(
                folder / f"{k}.npz",
                **{f"input:{key}": array for key, array in inputs},
                **{f"output:{j}": array for j, array in enumerate(outputs)},
            )
    case = {"types": types, "open": dict(example.open), "calls": len(example.calls)}
    (folder / "case.json").write_text(json.dumps(case))


def main() -> int:
    """The command line; the exit status is 1 if an example cannot be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    args = parser.parse_args()
    status = 0
    for name, example in examples().items():
        for way in example.ways:
            if re.search(args.filter, f"{name}_{way}"):
                try:
                    export(name, example, way, args.folder)
                except Exception as error:  # whatever PyTorch refuses, the others are written
                    status = 1
                    print(f"{name}_{way}: {type(error).__name__}: {str(error)[:300]}")
    return status


if __name__ == "__main__":
    sys.exit(main())
