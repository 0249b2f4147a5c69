"""
How models are written for comparisons: a table of cases, and modules of PyTorch as ONNX files.

It runs in a Python that has the packages of `real_models.py install` and needs nothing of this
project. What PyTorch builds has random weights from one seed.
"""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from models.real_inputs import Inputs, normal

SEED = 20240101


@dataclass(frozen=True)
class Case:
    """A model: `make` writes the file; each element of `inputs` is one set of inputs."""

    make: Callable[[Path], None]
    inputs: Sequence[Inputs]


# PyTorch


def from_torch(
    build: Callable[[], Any],
    *inputs: Inputs,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    dynamo: bool = False,
    opset: int = 17,
) -> Case:
    """A module of PyTorch; its dimensions that are `dynamic` have names."""

    def make(path: Path) -> None:
        import torch

        torch.manual_seed(SEED)
        torch.set_num_threads(1)
        torch.backends.mha.set_fastpath_enabled(False)  # the exporter does not know it
        model = build().eval()
        rng = np.random.default_rng(SEED)
        args = tuple(torch.from_numpy(np.asarray(value(rng))) for value in inputs[0].values())
        names = list(inputs[0])
        with torch.no_grad():
            if dynamo:
                shapes = None
                if dynamic is not None:
                    sizes = {
                        symbol: torch.export.Dim(symbol, min=1, max=4096)
                        for axes in dynamic.values()
                        for symbol in axes.values()
                    }
                    shapes = [
                        {axis: sizes[s] for axis, s in dynamic.get(given, {}).items()}
                        for given in names
                    ]
                program = torch.onnx.export(
                    model,
                    args,
                    input_names=names,
                    dynamic_shapes=shapes,
                    opset_version=max(opset, 18),
                    dynamo=True,
                    verbose=False,
                )
                program.save(str(path), external_data=False)
            else:
                torch.onnx.export(
                    model,
                    args,
                    str(path),
                    input_names=names,
                    dynamic_axes={given: dict(axes) for given, axes in (dynamic or {}).items()},
                    opset_version=opset,
                    dynamo=False,
                )
                onnx.save(onnx.load(path), path)

    return Case(make, inputs)


def vision(kind: str = "", name: str = "", **options: Any) -> Callable[[], Any]:
    """A model of torchvision with random weights; statistics of normalization are random, too."""

    def build() -> Any:
        import torch

        _without_compiled_operators()
        import torchvision

        module = getattr(torchvision.models, kind) if kind else torchvision.models
        model = getattr(module, name)(weights=None, **options)
        for layer in model.modules():
            if isinstance(layer, torch.nn.BatchNorm2d | torch.nn.BatchNorm3d):
                torch.nn.init.uniform_(layer.running_var, 0.5, 2)
                torch.nn.init.normal_(layer.running_mean, std=0.1)
        return model

    return build


def _without_compiled_operators() -> None:
    """
    The operators that torchvision has compiled for CUDA only, in Python: the exporter knows them.
    """
    import torch

    if hasattr(_without_compiled_operators, "library"):
        return
    library = torch.library.Library("torchvision", "DEF")
    _without_compiled_operators.library = library
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    from torchvision import extension
    from torchvision.ops import _register_onnx_ops, box_iou

    module: Any = sys.modules["torchvision.ops.roi_align"]

    def nms(dets: Any, scores: Any, threshold: float) -> Any:
        meets = (box_iou(dets, dets) > threshold).numpy()
        removed, kept = np.zeros(len(meets), bool), list[int]()
        for index in scores.argsort(descending=True, stable=True).tolist():
            if not removed[index]:
                kept.append(index)
                removed |= meets[index]
        return torch.tensor(kept, dtype=torch.int64)

    def roi_align(x: Any, rois: Any, scale: float, h: int, w: int, ratio: int, aligned: Any) -> Any:
        return module._roi_align(x, rois, scale, h, w, ratio, aligned)

    library.impl("nms", nms, "CPU")
    library.impl("roi_align", roi_align, "CPU")
    for one in (extension, module):
        setattr(one, "_has_ops", _has_operators)
    _register_onnx_ops._register_custom_op()


def _has_operators() -> bool:
    """What torchvision asks; the exporter compiles it, and that it cannot with a lambda."""
    return True


def output(key: Any, model: Any, **options: Any) -> Any:
    """A model with one of its results only."""
    import torch

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs, **options)[key]

    return Wrapper()


def detector(name: str, **options: Any) -> Any:
    """A detector with tensors in place of lists and dictionaries."""
    import torch

    model = vision("detection", name, weights_backbone=None, **options)()

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, image: Any) -> Any:
            return tuple(self.model([image])[0].values())

    return Wrapper()


# Making them


def random_inputs(path: Path) -> list[Inputs]:
    """Two sets for inputs whose types say all, f32 of known shapes."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {one.name for one in graph.initializer}
    found = {}
    for value in graph.input:
        if value.name not in weights:
            dims = value.type.tensor_type.shape.dim
            found[value.name] = normal(*(dim.dim_value or 1 for dim in dims))
    return [found, found]


def make(name: str, case: Case, folder: Path) -> None:
    """Write a model and its inputs, the inputs last."""
    path = folder / f"{name}.onnx"
    first = folder / f"{name}.npz"
    if path.exists() and first.exists():
        return
    case.make(path)
    sets = case.inputs or random_inputs(path)
    for index, values in reversed(list(enumerate(sets))):
        rng = np.random.default_rng([SEED, index])
        arrays = {f"input:{given}": value(rng) for given, value in values.items()}
        file = first if index == 0 else folder / f"{name}.{index}.npz"
        np.savez(file, **arrays)


def make_all(
    cases: Mapping[str, Case], description: str | None, arguments: Sequence[str] | None = None
) -> int:
    """The command of a script: make all cases, or those that are named; the exit status."""
    parser = argparse.ArgumentParser(description=(description or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in options.names or cases:
        try:
            make(name, cases[name], options.folder)
            print(f"{name}: made", flush=True)
        except Exception as error:  # whatever an exporter raises, the others are made
            (options.folder / f"{name}.onnx").unlink(missing_ok=True)
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            traceback.print_exc(limit=-3)
            status = 1
    return status
