"""
What it is worth to skip blocks of zeros in weights.

    python -m bench.sparse [--zeros SHARE ...] [--width N] [--target T] [--seconds S] [--json F]

The convolutions of one tap that ResNet-50 has, in a network of their own with its residual
connections, so that nothing else takes time. Blocks of one input channel by N filters are zero at
random, or none; each is compiled with and without `skip-zeros`, and they take turns, in one thread.
Printed are medians, and how many times faster than the whole weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from bench.machine import description
from bench.measuring import alternate, plan_for, text_table, timed

STAGES = ((64, 56, 3), (128, 28, 4), (256, 14, 6), (512, 7, 3))
"""Of ResNet-50: channels of a bottleneck, rows and columns of its images, and repetitions."""

_EXPANSION = 4
"""How many times as many channels come out of a bottleneck."""


def network(zeros: float, width: int) -> onnx.ModelProto:
    """The convolutions, of whose blocks of so many filters so many are zero."""
    rng = np.random.default_rng(0)
    nodes: list[Any] = []
    weights: list[Any] = []

    def convolution(x: str, sizes: tuple[int, int], stride: int = 1) -> str:
        number, (channels, filters) = len(weights), sizes
        weight = rng.standard_normal((filters, channels), np.float32)
        weight *= np.float32((channels * (1 - zeros)) ** -0.5)
        score = rng.random((filters // width, channels))
        if filters > channels:
            # Channels that nothing else reads would be dropped if they met zeros alone.
            score[rng.integers(filters // width, size=channels), np.arange(channels)] = 1.0
        kept = score > np.quantile(score, zeros) if zeros else score >= 0
        weight *= np.repeat(kept, width, axis=0)
        weights.append(numpy_helper.from_array(weight[:, :, None, None], f"w{number}"))
        weights.append(numpy_helper.from_array(np.zeros(filters, np.float32), f"b{number}"))
        inputs, strides = [x, f"w{number}", f"b{number}"], [stride, stride]
        nodes.append(helper.make_node("Conv", inputs, [f"y{number}"], strides=strides))
        return f"y{number}"

    def added(kind: str, *inputs: str) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"z{len(nodes)}"]))
        return f"z{len(nodes) - 1}"

    x, channels = added("Relu", convolution("x", (64, 64))), 64
    for narrow, _, count in STAGES:
        wide = narrow * _EXPANSION
        x = convolution(x, (channels, wide), 1 if channels == narrow else 2)
        for _ in range(count):
            inner = added("Relu", convolution(x, (wide, narrow)))
            x = added("Relu", added("Add", x, convolution(inner, (narrow, wide))))
        channels = wide
    size = STAGES[0][1]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 64, size, size]), (x, None))
    ]
    graph = helper.make_graph(nodes, "one_tap", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parse(arguments)
    x = np.random.default_rng(1).standard_normal((1, 64, 56, 56), np.float32)
    calls: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for zeros in (0.0, *options.zeros):
            path = str(Path(folder, f"one_tap_{zeros}.onnx"))
            cast(Any, onnx).save(network(zeros, options.width), path)
            for name, disable in (("skipped", ()), ("whole", ("skip-zeros",))):
                if zeros or disable:
                    model = lowerdeck.compile(path, target=options.target, disable=disable)
                    calls[f"{zeros:.0%} {name}"] = model.prepare({"x": x})
    contenders = {name: timed(call) for name, call in calls.items()}
    times = alternate(contenders, plan_for([run() for run in contenders.values()], options.seconds))
    medians = {name: float(np.median(found)) for name, found in times.items()}
    whole = next(iter(medians.values()))
    rows = [
        [name, f"{median * 1e3:.3f}", f"{whole / median:.2f}"] for name, median in medians.items()
    ]
    print(text_table(("zeros", "median ms", "times faster"), rows))
    if options.json is not None:
        report = {"machine": description(), "width": options.width, "seconds": medians}
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--zeros", type=float, nargs="+", default=[0.5, 0.7, 0.9])
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--target", default="native")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", metavar="F")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
