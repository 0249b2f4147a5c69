"""
Networks of PyTorch beside Inductor and onnxruntime.

    python -m bench.torch_peer [--filter REGEX] [--threads N ...] [--time SECONDS] [--json F]

Runs in a Python that has this project, PyTorch, torchvision, transformers and timm; onnxruntime and
onnx too where its times are to be taken. Each network of `models.torch_networks` is exported and
compiled for this machine with each number of threads (1 and 2), and runs by turns with
`torch.compile` of the module, whose weights are frozen, and with onnxruntime on the file that
`torch.onnx.export` writes. What a network remembers begins anew before each call, which is not
counted. Prints the milliseconds of each, how many times as long the better peer takes as
lowerdeck, and how far our results are from PyTorch's, as a part of their largest value.
Peers that cannot run a network say so. The exit status is 1 if a result is further off than a
thousandth.
"""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_FREEZING", "1")

import numpy as np
import torch
from torch.utils import _pytree as pytree

import lowerdeck
from bench.measuring import (
    Contender,
    Plan,
    alternate,
    geometric_mean,
    plan_for,
    text_table,
    timed,
)
from models.torch_exports import Positional, buffers_that_change
from models.torch_networks import Network, networks

MOST = 1e-3
"""The largest difference that passes, as a part of the largest value."""
SEED = 20240101
PAUSE = 0.25
"""Seconds until threads of another contender no longer spin."""
OPSET = 18


@dataclass
class Result:
    """What became of a network: seconds by number of threads and by who computes."""

    network: str
    apart: float = 0.0
    failed: list[str] = field(default_factory=list)
    times: dict[str, dict[str, float]] = field(default_factory=dict)

    def ratio(self, threads: int) -> float | None:
        """How many times as long the better peer takes."""
        times = self.times.get(str(threads), {})
        peers = [seconds for who, seconds in times.items() if who != "ours"]
        return min(peers) / times["ours"] if peers else None


def tensors(values: Any) -> list[torch.Tensor]:
    """Those among nested values."""
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def run(network: Network, threads: Sequence[int], seconds: float) -> Result:
    """Compare a network with the peers."""
    result = Result(network.name)
    torch.manual_seed(SEED)
    module, (args, keywords) = network.build().eval(), network.calls()[0]
    if keywords:
        module = Positional(module, list(keywords))
    args = (*args, *keywords.values())
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        program = torch.export.export(module, args, strict=False)
        states = {
            module.get_buffer(name): module.get_buffer(name).clone()
            for name in buffers_that_change(program, (args, {}))
        }

        def forget() -> None:
            for buffer, before in states.items():
                buffer.copy_(before)

        wanted = [tensor.clone() for tensor in tensors(module(*args))]
        for number in threads:
            torch.set_num_threads(number)
            forget()
            model = lowerdeck.compile(program, threads=number, cache=False)
            arrays = [tensor.numpy() for tensor in tensors(args)]
            result.apart = max(result.apart, distance(model(*arrays), wanted))
            if states:
                contenders = {"ours": timed_anew(lambda m=model, a=arrays: m(*a), model.reset)}
            else:
                names = [info.name for info in model.inputs]
                contenders = {"ours": timed(model.prepare(dict(zip(names, arrays, strict=True))))}
            for name, maker in PEERS.items():
                forget()
                try:
                    contenders[name] = timed_anew(maker(module, args, number, Path(folder)), forget)
                except Exception as error:  # whatever it refuses, the others are compared
                    result.failed.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            estimates = [min(one() for _ in range(3)) for one in contenders.values()]
            plan = plan_for(estimates, seconds)
            if number > 1:
                plan = Plan(max(plan.rounds // 4, 5), plan.block, plan.uncounted, PAUSE)
            times = alternate(contenders, plan)
            result.times[str(number)] = {key: float(np.median(all_)) for key, all_ in times.items()}
    return result


def timed_anew(call: Callable[[], object], forget: Callable[[], None]) -> Contender:
    """A call with the seconds that it took, those of `forget` before it not counted."""
    counted = timed(call)

    def run() -> float:
        forget()
        return counted()

    return run


def distance(found: Sequence[Any], wanted: Sequence[torch.Tensor]) -> float:
    """How far results are from PyTorch's, as a part of the largest value of each."""
    if len(found) < len(wanted):
        return float("inf")
    most = 0.0
    for ours, theirs in zip(found, wanted, strict=False):  # states come behind the results
        a, b = np.asarray(ours).astype(np.float64), theirs.numpy().astype(np.float64)
        if a.shape != b.shape:
            return float("inf")
        most = max(most, float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)))
    return most


def inductor(module: torch.nn.Module, args: Any, threads: int, folder: Path) -> Callable[[], Any]:
    """What `torch.compile` makes of it."""
    torch.compiler.reset()
    compiled = torch.compile(module)
    compiled(*args)
    return lambda: compiled(*args)


def onnxruntime(
    module: torch.nn.Module, args: Any, threads: int, folder: Path
) -> Callable[[], Any]:
    """onnxruntime with the network's ONNX file."""
    import onnxruntime as ort

    path = folder / "model.onnx"
    if not path.exists():
        torch.onnx.export(module, args, path, dynamo=False, opset_version=OPSET)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]
    feed = dict(zip(names, [tensor.numpy() for tensor in tensors(args)], strict=True))
    session.run(None, feed)
    return lambda: session.run(None, feed)


PEERS = {"Inductor": inductor, "onnxruntime": onnxruntime}


def summary(results: Sequence[Result], threads: Sequence[int]) -> str:
    """A row for each network, and the geometric mean for each number of threads."""
    head, lines = ["network", "apart"], list[str]()
    for number in threads:
        head.append(f"{number} thread{'s' * (number > 1)}")
        ratios = [ratio for each in results if (ratio := each.ratio(number)) is not None]
        if ratios:
            lines.append(f"{head[-1]}: {geometric_mean(ratios):.2f}, at least {min(ratios):.2f}")
    rows = [
        [each.network, f"{each.apart:.1e}"]
        + [f"{each.ratio(number) or 0:.2f}" for number in threads]
        for each in results
    ]
    return "\n".join([text_table(head, rows), *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the networks and print a table; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description="Networks of PyTorch beside its compiler.")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--time", type=float, default=2, metavar="SECONDS")
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    results: list[Result] = []
    for network in networks():
        if re.search(options.filter, network.name):
            results.append(result := run(network, options.threads, options.time))
            for who, times in result.times.items():
                shown = ", ".join(f"{k} {1e3 * v:.2f} ms" for k, v in times.items())
                print(f"{result.network}, threads {who}: {shown}", flush=True)
            for line in dict.fromkeys(result.failed):
                print(f"{result.network}: {line}", flush=True)
    print(summary(results, options.threads))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return int(any(not result.apart <= MOST for result in results))


if __name__ == "__main__":
    sys.exit(main())
