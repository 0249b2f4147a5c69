"""
Networks of PyTorch's world as cases of the corpus: programs of torch.export, and traces.

    python -m models.torch_exports FOLDER [--filter REGEX] [--forms training,core,open,trace]
                                   [--list] [--check PYTHON [--through interpret|compile]]
    python -m models.corpus pt2 --corpus FOLDER

The first runs in a Python that has PyTorch, torchvision, transformers and timm, and needs nothing
of this project. A case is written once for each form: the program as `export` leaves it, that of
`run_decompositions()`, one with open sizes, and a trace of TorchScript. The exit status is 1 if
one cannot be written, which is told; the others are.

With `--check`, PYTHON, which has this project, runs the cases of each network when they are
written. What became of them is kept in `FOLDER/outcomes.json`, and files are kept only of those
that did not pass, so that a campaign that is called again goes on where it stopped.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from models.torch_networks import Network, networks
from models.torch_networks.base import Call

FORMS = "training", "core", "open", "trace"
SEED = 20240101
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}
LIMIT = 1800
"""Seconds for the cases of one network."""


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
        runner = program.module(check_guards=False)
        signature = program.graph_signature
        changed = sorted(buffers_that_change(program, calls[0]))
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


def buffers_that_change(program: Any, call: Call) -> list[str]:
    """The buffers that a call writes; afterwards they are as before."""
    runner = program.module(check_guards=False)
    before = {name: buffer.clone() for name, buffer in runner.named_buffers()}
    runner(*call[0], **call[1])
    found: list[str] = []
    for name, buffer in runner.named_buffers():
        if not buffer.equal(before[name]):
            found.append(name)
            buffer.copy_(before[name])  # the program has the same tensors
    return found


class Positional(torch.nn.Module):
    """A module whose last arguments, which have names, are given by their places."""

    def __init__(self, module: torch.nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.module, self.names = module, list(names)
        self.train(module.training)  # exports put all modules back into the mode of the outer one

    def forward(self, *values: Any) -> Any:
        count = len(values) - len(self.names)
        return self.module(*values[:count], **dict(zip(self.names, values[count:], strict=True)))


def traced(network: Network, folder: Path) -> None:
    """Write a trace of TorchScript, and its own answers."""
    module = network.build().eval()
    calls = network.calls()
    args, keywords = calls[0]
    if keywords:
        module = Positional(module, list(keywords))
    case = Case(folder, "model.pt")
    with torch.no_grad():
        given = (*args, *keywords.values())
        made = torch.jit.trace(module, given, strict=False, check_trace=False)
        torch.jit.save(made, str(case.model))
        runner = torch.jit.load(str(case.model))
        names = [value.debugName().partition(".")[0] for value in runner.graph.inputs()][1:]
        for args, keywords in calls:
            values = [*args, *keywords.values()]
            inputs = [
                pair
                for name, value in zip(names, values, strict=True)
                for pair in flat(name, value)
            ]
            case.sample(inputs, list(flat("output", runner(*values))), [])
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


@dataclass
class Campaign:
    """Cases that are written, and what became of them, by name."""

    folder: Path
    python: str | None
    through: str
    outcomes: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> Path:
        """The file of the outcomes."""
        return self.folder / "outcomes.json"

    def run(self, network: Network, forms: Sequence[str]) -> None:
        """Write the cases of a network that have not passed, and check them."""
        names: list[str] = []
        for form in forms:
            name = f"{network.name}_{form}"
            if self.outcomes.get(name) == "pass":
                continue
            try:
                write(network, form, self.folder)
                self.outcomes[name] = "made"
                names.append(name)
            except Exception as error:  # whatever PyTorch refuses, the others are written
                text = str(error).strip().splitlines() or [""]
                self.outcomes[name] = f"unwritten: {type(error).__name__}: {text[0][:300]}"
        if self.python and names:
            self.check(names)
        for name in (f"{network.name}_{form}" for form in forms):
            print(f"{name}: {self.outcomes[name]}", flush=True)
        if self.python:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.kept.write_text(json.dumps(self.outcomes, indent=1))

    def check(self, names: Sequence[str]) -> None:
        """Run cases in the other Python, and remove those that pass."""
        command = [str(self.python), "-m", "models.corpus", "pt2", "--corpus", str(self.folder)]
        command += ["--filter", f"^({'|'.join(names)})$", "--jobs", "1"]
        command += ["--interpret"] if self.through == "interpret" else []
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
            printed = made.stdout
        except subprocess.TimeoutExpired as error:
            printed = bytes(error.stdout or b"").decode()
        lines = [line.split(maxsplit=2) for line in printed.splitlines() if line[:1].strip()]
        found = {words[1]: " ".join(words[:1] + words[2:]) for words in lines if len(words) > 1}
        for name in names:
            self.outcomes[name] = found.get(name, f"error: no answer within {LIMIT} s")
            if self.outcomes[name].split()[0] == "pass":
                self.outcomes[name] = "pass"
                shutil.rmtree(self.folder / "pt2" / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--list", action="store_true", help="only print the names of the cases")
    parser.add_argument("--check", metavar="PYTHON", help="run the cases in it")
    parser.add_argument("--through", choices=("interpret", "compile"), default="interpret")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    campaign = Campaign(options.folder, options.check, options.through)
    if campaign.python and campaign.kept.exists():
        campaign.outcomes = json.loads(campaign.kept.read_text())
    for network in networks():
        forms = [
            form
            for form in options.forms.split(",")
            if form in network.forms and re.search(options.filter, f"{network.name}_{form}")
        ]
        if options.list:
            print("\n".join(f"{network.name}_{form}" for form in forms), end="\n" * bool(forms))
        elif forms:
            campaign.run(network, forms)
    counts = Counter(outcome.split()[0].strip(":") for outcome in campaign.outcomes.values())
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return int(any(kind not in ("pass", "made") for kind in counts))


if __name__ == "__main__":
    sys.exit(main())
