"""
What it is worth to fold batch normalization into convolutions.

    python -m bench.conv_bn [MODEL.onnx] [--runs N] [--threads N] [--json F]

Arms: as compiled by default; with the passes that fold linear ops into convolutions disabled; with
those and the fusion of epilogues disabled, so that normalization is a kernel of its own. They take
turns, on a network of one convolution and on MODEL (a MobileNetV2 to compare with the published
figure); inputs are in MODEL.npz or random. Printed are medians with 95 % intervals, and the part of
the time that the default saves of each other arm.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from bench.machine import description
from bench.measuring import Plan, alternate, gain, median_interval, text_table, timed
from bench.reference import recorded_inputs
from lowerdeck.lowering.pipeline import ALL_PASSES

COPIES = 5
"""
How often each arm is compiled and loaded: where its pages happen to lie in memory, and so what they
push out of the caches, changes times by some percent, as long as a process lives.
"""

_BLOCK = 5
"""Runs of one copy in a row, after some that do not count: they find its memory in the caches."""

_PAUSE = 0.5e-3
"""Seconds before them, in which threads of the one before go to sleep."""

LINEAR = ("fuse-linear",)
"""Passes that make the weights of a convolution take over what follows it."""

EPILOGUE = ("fuse-epilogue",)
"""Passes that put elementwise ops into the kernel of what they follow."""

DEFAULT, UNFOLDED, APART = "default", "no folding", "no folding, no epilogues"

PUBLISHED = {"one convolution": 0.085, "mobilenet_v2": 0.117}
"""The part of the time that others report to have saved."""


@dataclass(frozen=True)
class Arm:
    """One way to compile; `disable` is None if the compiler has no such switch."""

    name: str
    disable: tuple[str, ...] | None


def arms(passes: Sequence[str]) -> list[Arm]:
    """The arms for a compiler with these passes."""
    linear = tuple(name for name in LINEAR if name in passes)
    epilogue = tuple(name for name in EPILOGUE if name in passes)
    return [
        Arm(DEFAULT, ()),
        Arm(UNFOLDED, linear or None),
        Arm(APART, linear + epilogue if linear and epilogue else None),
    ]


def one_convolution(channels: int = 64, size: int = 56) -> onnx.ModelProto:
    """3x3 convolution, batch normalization, ReLU."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((channels, channels, 3, 3), np.float32) / (3 * channels**0.5)
    parameters = {
        "weight": weight.astype(np.float32),
        "scale": rng.uniform(0.5, 1.5, channels).astype(np.float32),
        "shift": rng.standard_normal(channels, np.float32),
        "mean": rng.standard_normal(channels, np.float32),
        "variance": rng.uniform(0.5, 1.5, channels).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["input", "weight"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization",
            ["c", "scale", "shift", "mean", "variance"],
            ["n"],
            name="normalization",
        ),
        helper.make_node("Relu", ["n"], ["output"], name="activation"),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, size, size])
        for name in ("input", "output")
    ]
    graph = helper.make_graph(
        nodes,
        "one_convolution",
        ports[:1],
        ports[1:],
        [numpy_helper.from_array(array, name) for name, array in parameters.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parse(arguments)
    report: dict[str, Any] = {"machine": description(), "threads": options.threads, "models": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "one_convolution.onnx")
        cast(Any, onnx).save(one_convolution(), path)
        for model in [path, *([] if options.model is None else [options.model])]:
            name = Path(model).stem.replace("one_convolution", "one convolution")
            report["models"][name] = _measure(model, options.runs, options.threads)
            print(_text(name, report["models"][name], options), end="\n\n", flush=True)
    if options.json is not None:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="F")
    return parser.parse_args(arguments)


def _measure(path: str, runs: int, threads: int) -> dict[str, Any]:
    """For each arm its median and what the default saves of it; None if it is unavailable."""
    found = arms(tuple(ALL_PASSES))
    copies = {
        f"{arm.name} {copy}": lowerdeck.compile(
            path, threads=threads, disable=arm.disable, cache=False
        )
        for copy in range(COPIES)
        for arm in found
        if arm.disable is not None
    }
    inputs = _inputs(path, next(iter(copies.values())))
    calls = {name: model.prepare(inputs) for name, model in copies.items()}
    contenders = {name: timed(call) for name, call in calls.items()}
    rounds = max(runs // (COPIES * _BLOCK), 1)
    measured = alternate(contenders, Plan(rounds, _BLOCK, uncounted=2, pause=_PAUSE))
    times: dict[str, list[float]] = {}
    for name, seconds in measured.items():
        times.setdefault(name.rpartition(" ")[0], []).extend(seconds)
    return {arm.name: _summary(arm.name, times) for arm in found}


def _inputs(path: str, model: lowerdeck.Model) -> dict[str, NDArray[Any]]:
    recorded = Path(path).with_suffix(".npz")
    if recorded.exists():
        return recorded_inputs(str(recorded))
    rng, arrays = np.random.default_rng(1), dict[str, NDArray[Any]]()
    for info in model.inputs:
        shape = [size if isinstance(size, int) else 1 for size in info.shape]
        arrays[info.name] = rng.standard_normal(shape).astype(info.dtype)
    return arrays


def _summary(name: str, times: Mapping[str, list[float]]) -> dict[str, Any] | None:
    if name not in times:
        return None
    found = times[name]
    return {
        "median": float(np.median(found)),
        "interval": median_interval(found),
        "saved": None if name == DEFAULT else asdict(gain(times[DEFAULT], found)),
    }


def _text(name: str, results: Mapping[str, Any], options: argparse.Namespace) -> str:
    rows = [[arm, *_cells(result)] for arm, result in results.items()]
    lines = [
        f"{name}: {options.runs} runs of each arm, {options.threads} threads",
        text_table(("", "median ms", "95 % interval", "default saves", "95 % interval"), rows),
    ]
    if (published := PUBLISHED.get(name)) is not None:
        lines.append(f"published: {published:.1%}")
    return "\n".join(lines)


def _cells(result: Mapping[str, Any] | None) -> list[str]:
    if result is None:
        return ["unavailable", "", "", ""]
    low, high = result["interval"]
    cells = [f"{result['median'] * 1e3:.4f}", f"{low * 1e3:.4f} to {high * 1e3:.4f}"]
    if (saved := result["saved"]) is None:
        return [*cells, "", ""]
    return [*cells, f"{saved['saved']:.1%}", f"{saved['low']:.1%} to {saved['high']:.1%}"]


if __name__ == "__main__":
    sys.exit(main())
