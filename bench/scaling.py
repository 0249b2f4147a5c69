"""
How compile time and memory grow with the number of ops, and with that of equal layers.

    python -m bench.scaling [--convolutions N M] [--elementwise N M] [--layers N M L] [--repeats K]
                            [--json F]

Chains of two lengths are compiled, each in a process of its own that has compiled a small chain
before, so that what happens once is not counted. Times are CPU times per op, Python's and the C
compiler's, the least of the repeats; memory is anonymous memory of Python, over what there was
before. Work that is linear in the ops has the ratio 1.

The layers are those of a decoder, in floats and quantized. They share their functions, so the C
grows by calls alone: of the times and lengths of C, which are those of the whole, the ratios are to
be little more than 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.machine import description
from bench.measuring import MEGABYTE, PeakMemory, memory_status, text_table
from bench.processes import command_of, environment_for
from models.decoders import gpt2

_KINDS = ("convolutions", "elementwise")
_LAYERS = {"layers": False, "quantized layers": True}
"""Kinds of decoders, and whether they are quantized."""
_WARM_UP = 4
_CHANNELS, _SIZE = 4, 6


def chain(kind: str, length: int) -> onnx.ModelProto:
    """
    A chain of 3x3 convolutions with weights of their own, or of elementwise ops of which no two
    neighbors can become one.
    """
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for k in range(length):
        operands = [f"v{k}"]
        operator = "Conv" if kind == "convolutions" else ("Add", "Tanh", "Mul", "Sin")[k % 4]
        if operator in ("Conv", "Add", "Mul"):
            shape = (_CHANNELS, _CHANNELS, 3, 3) if operator == "Conv" else (_CHANNELS, 1, 1)
            values = rng.uniform(-0.3, 0.3, shape).astype(np.float32)
            constants.append(numpy_helper.from_array(values, f"w{k}"))
            operands.append(f"w{k}")
        node = helper.make_node(operator, operands, [f"v{k + 1}"], name=f"node{k}")
        if operator == "Conv":
            node.attribute.append(helper.make_attribute("pads", [1, 1, 1, 1]))
        nodes.append(node)
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, _CHANNELS, _SIZE, _SIZE])
        for name in ("v0", f"v{length}")
    ]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def model_of(kind: str, length: int) -> onnx.ModelProto:
    """A chain or a decoder."""
    if kind in _LAYERS:
        return gpt2(length, quantized=_LAYERS[kind])
    return chain(kind, length)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parse(arguments)
    if options.measure is not None:
        path, warm_up = options.measure
        json.dump(measure(path, warm_up, options.repeats), sys.stdout)
        return 0
    report: dict[str, Any] = {"machine": description(), "chains": [], "decoders": []}
    wanted = [(kind, length) for kind in _KINDS for length in getattr(options, kind)]
    wanted += [(kind, length) for kind in _LAYERS for length in options.layers]
    for kind, length in wanted:
        entry = _run(kind, length, options.repeats)
        report["decoders" if kind in _LAYERS else "chains"].append(entry)
        print(f"{kind}: {length} done", file=sys.stderr, flush=True)
    print(render(report["chains"]))
    print(render_decoders(report["decoders"]))
    if options.json is not None:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--convolutions", type=int, nargs="*", default=[200, 2000])
    parser.add_argument("--elementwise", type=int, nargs="*", default=[2000, 20000])
    parser.add_argument("--layers", type=int, nargs="*", default=[12, 24, 48])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="F")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _run(kind: str, length: int, repeats: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "chain.onnx")
        cast(Any, onnx).save(model_of(kind, length), path)
        cast(Any, onnx).save(model_of(kind, _WARM_UP), os.path.join(folder, "warm_up.onnx"))
        command = command_of("bench.scaling", "--repeats", str(repeats), "--measure")
        command += [path, os.path.join(folder, "warm_up.onnx")]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment_for()
        )
    if done.returncode:
        raise SystemExit(f"{kind}: {length}: the compilation failed:\n{done.stderr}")
    return {"kind": kind, "length": length, **json.loads(done.stdout)}


def measure(path: str, warm_up: str, repeats: int) -> dict[str, Any]:
    """The least CPU seconds of some compilations, the most that the first adds to memory, the C."""
    _compile(warm_up)
    before, memory = memory_status("RssAnon"), PeakMemory()
    first = _compile(path)
    peak = memory.stop() - before
    runs = [first, *(_compile(path) for _ in range(repeats - 1))]
    python_seconds, cc_seconds, lines, functions = map(min, zip(*runs, strict=True))
    return {
        "python_seconds": python_seconds,
        "cc_seconds": cc_seconds,
        "peak_bytes": peak,
        "lines": lines,
        "functions": functions,
    }


def _compile(path: str) -> tuple[float, float, int, int]:
    """CPU seconds of Python and of the C compiler; lines and kernels of the C."""
    from lowerdeck.build import build_library, library_name
    from lowerdeck.compiler import CompileOptions, generate
    from lowerdeck.metadata import read_metadata

    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        generate(path, folder, CompileOptions())
        python_seconds = time.process_time() - start
        data = read_metadata(folder)
        before = _children_seconds()
        build_library(folder, data, os.path.join(folder, library_name(data["name"])))
        cc_seconds = _children_seconds() - before
        text = Path(folder, f"{data['name']}.c").read_text()
        return python_seconds, cc_seconds, text.count("\n"), text.count("\nLOWERDECK_KERNEL ")


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def render(chains: Sequence[dict[str, Any]]) -> str:
    """Each chain, and after the last one of a kind its times per op by those of the first."""
    head = ("chain", "ops", "python ms/op", "ratio", "gcc ms/op", "ratio", "memory MB", "KB/op")
    rows: list[list[str]] = []
    for entry in chains:
        first = next(other for other in chains if other["kind"] == entry["kind"])
        cells = [entry["kind"], str(entry["length"])]
        for key in ("python_seconds", "cc_seconds"):
            cells.append(f"{per_op(entry, key) * 1e3:.3f}")
            cells.append("" if entry is first else f"{growth(first, entry, key):.2f}")
        cells.append(f"{entry['peak_bytes'] / MEGABYTE:.1f}")
        cells.append(f"{per_op(entry, 'peak_bytes') / 1e3:.1f}")
        rows.append(cells)
    return text_table(head, rows)


def render_decoders(decoders: Sequence[dict[str, Any]]) -> str:
    """Each decoder, with what its C and the time of the C compiler are to those of the first."""
    head = ("decoder", "layers", "kernels", "lines of C", "ratio", "gcc s", "ratio", "python s")
    rows: list[list[str]] = []
    for entry in decoders:
        first = next(other for other in decoders if other["kind"] == entry["kind"])
        cells = [entry["kind"], str(entry["length"]), str(entry["functions"])]
        for key, places in (("lines", 0), ("cc_seconds", 2)):
            cells.append(f"{entry[key]:.{places}f}")
            cells.append("" if entry is first else f"{entry[key] / first[key]:.2f}")
        rows.append([*cells, f"{entry['python_seconds']:.1f}"])
    return text_table(head, rows)


def per_op(entry: dict[str, Any], key: str) -> float:
    """A measurement, divided by the number of ops."""
    return entry[key] / entry["length"]


def growth(short: dict[str, Any], long: dict[str, Any], key: str) -> float:
    """How many times as much an op of the long chain takes; NaN if one of the short takes none."""
    return per_op(long, key) / per_op(short, key) if short[key] else math.nan


if __name__ == "__main__":
    sys.exit(main())
