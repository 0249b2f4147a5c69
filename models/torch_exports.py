"""
Networks of PyTorch's world as cases of the corpus: programs of torch.export, and traces.

    python -m models.torch_exports FOLDER [--filter REGEX] [--forms training,core,open,trace]
    python -m models.corpus pt2 --corpus FOLDER

The first runs in a Python that has PyTorch, torchvision, transformers and timm, and needs nothing
of this project. A case is written once for each form: the program as `export` leaves it, that of
`run_decompositions()`, one with open sizes, and a trace of TorchScript. The exit status is 1 if
one cannot be written, which is told; the others are.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from models.torch_networks import Network, networks

FORMS = "training", "core", "open", "trace"
SEED = 20240101
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def arrays(tensors: Any) -> list[np.ndarray]:
    """Leaves as numpy has them."""
    found = [leaf for leaf in pytree.tree_leaves(tensors) if leaf is not None]
    return [np.array(one.detach() if isinstance(one, torch.Tensor) else one) for one in found]


def named(kind: str, spec: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The name of a user's input or output, if it is no constant."""
    arg = getattr(spec, "arg", None)
    name = getattr(arg, "name", None)
    if spec.kind.name == kind and name is not None and value is not None:
        if not hasattr(arg, "value"):
            yield name, value


def tensors_of(kind: str, specs: Sequence[Any], values: Sequence[Any]) -> list[tuple[str, Any]]:
    """User's inputs or outputs by name, without constants."""
    users = [spec for spec in specs if spec.kind.name == kind]
    assert len(users) == len(values), (len(users), len(values))
    pairs = zip(users, values, strict=True)
    return [pair for spec, value in pairs for pair in named(kind, spec, value)]


class Case:
    """A case in the making."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.data: dict[str, Any] = {
            "name": folder.name,
            "framework": "pt2",
            "model": model,
            "samples": [],
            "tolerance": TOLERANCE,
        }

    @property
    def model(self) -> Path:
        """The file of the model."""
        return self.folder / self.data["model"]

    def sample(
        self,
        inputs: Sequence[tuple[str, Any]],
        outputs: Sequence[tuple[str, Any]],
        state: Sequence[tuple[str, Any]],
        after: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Add a call; `after` is what it has made of inputs."""
        self.data["outputs"] = [
            {"name": name, "dtype": array.dtype.name}
            for name, array in zip([n for n, _ in outputs], arrays([v for _, v in outputs]))
        ]
        self.data["mutated_inputs"] = [name for name, _ in after]
        parts = {"inputs": inputs, "expected": outputs}
        parts |= {"state": state} if state else {}
        parts |= {"inputs_after": after} if after else {}
        number = len(self.data["samples"])
        entry = {}
        for key, pairs in parts.items():
            entry[key] = f"{key}_{number}.npz"
            values = zip([n for n, _ in pairs], arrays([v for _, v in pairs]), strict=True)
            kept: Any = dict(values)
            np.savez(self.folder / entry[key], **kept)
        self.data["samples"].append(entry)
        self.data["state"] = [name for name, _ in state]

    def finish(self) -> None:
        """Write what is said of it."""
        (self.folder / "case.json").write_text(json.dumps(self.data))


def exported(network: Network, form: str, folder: Path) -> None:
    """Write a program of torch.export, and its own answers."""
    module = network.build().eval()
    calls = network.calls()
    shapes = network.open if form == "open" else None
    case = Case(folder, "model.pt2")
    with torch.no_grad():
        program = torch.export.export(module, *calls[0], dynamic_shapes=shapes, strict=False)
        if form == "core":
            program = program.run_decompositions()
        torch.export.save(program, case.model)
        runner = program.module()
        signature = program.graph_signature
        changed = sorted(buffers_that_change(program))
        for args, kwargs in calls:
            leaves = [
                leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
                for leaf in pytree.tree_leaves((args, kwargs))
            ]
            inputs = tensors_of("USER_INPUT", signature.input_specs, leaves)
            found = pytree.tree_leaves(runner(*args, **kwargs))
            outputs = tensors_of("USER_OUTPUT", signature.output_specs, found)
            state = [(name, runner.get_buffer(name).clone()) for name in changed]
            case.sample(inputs, outputs, state)
    case.finish()


def buffers_that_change(program: Any) -> set[str]:
    """The buffers that a functional copy of the program writes."""
    return set(program.run_decompositions({}).graph_signature.buffers_to_mutate.values())


def traced(network: Network, folder: Path) -> None:
    """Write a trace of TorchScript, and its own answers."""
    module = network.build().eval()
    calls = network.calls()
    args, kwargs = calls[0]
    case = Case(folder, "model.pt")
    with torch.no_grad():
        given = {"example_kwarg_inputs": dict(kwargs)} if kwargs else {"example_inputs": args}
        made = torch.jit.trace(module, strict=False, check_trace=False, **given)
        torch.jit.save(made, str(case.model))
        runner = torch.jit.load(str(case.model))
        names = [i.debugName() for i in runner.graph.inputs()][1:]
        for args, kwargs in calls:
            values = [
                *args,
                *(kwargs[name.rpartition(".")[0] or name] for name in names[len(args) :]),
            ]
            inputs = [
                pair
                for name, value in zip(names, values, strict=True)
                for pair in flat(name.partition(".")[0], value)
            ]
            outputs = list(flat("output", runner(*args, **kwargs)))
            case.sample(inputs, outputs, [])
    case.finish()


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Tensors of nested lists and dictionaries by name."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(key if name == "output" else f"{name}_{key}", item)
    elif isinstance(value, list | tuple):
        for key, item in enumerate(value):
            yield from flat(f"{name}_{key}", item)
    elif value is not None:
        yield name, value


def write(network: Network, form: str, folder: Path) -> None:
    """One case; what is there already stays."""
    torch.manual_seed(SEED)
    path = folder / "pt2" / f"{network.name}_{form}"
    if (path / "case.json").exists():
        return
    try:
        if form == "trace":
            traced(network, path)
        else:
            exported(network, form, path)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--forms", default=",".join(FORMS))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    status = 0
    for network in networks():
        for form in options.forms.split(","):
            name = f"{network.name}_{form}"
            if not re.search(options.filter, name) or form not in network.forms:
                continue
            try:
                write(network, form, options.folder)
                print(f"{name}: made", flush=True)
            except Exception as error:  # whatever PyTorch refuses, the others are written
                text = str(error).strip().splitlines() or [""]
                print(f"{name}: {type(error).__name__}: {text[0][:300]}", flush=True)
                if len(options.filter) > 4:
                    traceback.print_exc(limit=-3)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
