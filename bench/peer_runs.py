"""
The parts of `bench/peers.py` that run in processes of their own.

    python -m bench.peer_runs PART '{"model": "m.onnx", ...}'

Each prints its result as JSON. A process of its own keeps the memory and the threads of one
measurement out of the next.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bench.measuring import Contender, Summary, alternate, memory_status, plan_for, timed
from bench.reference import recorded_inputs, recorded_outputs, widened

Arrays: TypeAlias = "dict[str, NDArray[Any]]"

OURS, OURS_IN_C, ORT, OPENVINO = "lowerdeck", "lowerdeck in C", "onnxruntime", "openvino"
BEFORE = "lowerdeck before"
"""The code of another checkout of the sources."""

_FIRST_RUNS = 3


@dataclass(frozen=True)
class Loaded:
    """A model in one of the contenders: the call, and what the last call has written."""

    call: Callable[[], object]
    outputs: Callable[[], Arrays]


# Contenders


def load_ours(folder: str, inputs: Arrays, threads: int) -> tuple[Loaded, Any]:
    """Our compiled model; also the call, for C."""
    from lowerdeck.compiler import load

    model = load(folder, threads=threads)
    call = model.prepare({info.name: inputs[info.name] for info in model.inputs})
    names = [info.name for info in model.outputs]
    return Loaded(call, lambda: dict(zip(names, call.outputs, strict=True))), call


def load_onnxruntime(path: str, inputs: Arrays, threads: int) -> Loaded:
    """Inputs and outputs bound to arrays; a first run finds the sizes of outputs."""
    ort: Any = import_module("onnxruntime")
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 3
    session = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    feed = {value.name: inputs[value.name] for value in session.get_inputs()}
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    names: list[str] = [value.name for value in session.get_outputs()]
    values: dict[str, Any] = {}
    for name, first in zip(names, session.run(names, feed), strict=True):
        values[name] = ort.OrtValue.ortvalue_from_numpy(first)
        binding.bind_ortvalue_output(name, values[name])
    return Loaded(
        lambda: session.run_with_iobinding(binding),
        lambda: {name: value.numpy() for name, value in values.items()},
    )


def load_openvino(path: str, inputs: Arrays, threads: int) -> Loaded:
    """One stream, float32, inputs and outputs in arrays of ours."""
    openvino: Any = import_module("openvino")
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": threads,
    }
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        name = _name_among(port.get_names(), inputs)
        tensor = openvino.Tensor(inputs[name], shared_memory=True)
        request.set_tensor(port, tensor)
    request.infer()
    outputs: Arrays = {}
    for port in compiled.outputs:
        array = np.array(request.get_tensor(port).data)
        outputs.update(dict.fromkeys(port.get_names(), array))
        request.set_tensor(port, openvino.Tensor(array, shared_memory=True))

    def call() -> None:
        # Unlike `infer`, this makes no dictionary of the results.
        request.start_async()
        request.wait()

    return Loaded(call, lambda: outputs)


def _name_among(names: set[str], inputs: Arrays) -> str:
    return next(name for name in sorted(names) if name in inputs)


_PEERS = {ORT: load_onnxruntime, OPENVINO: load_openvino}


# Parts


def compile_model(
    model: str, folder: str, threads: int, strict_accuracy: bool, target: str = "native"
) -> dict[str, Any]:
    """Compile into a folder; the seconds of Python and of the C compiler."""
    start = time.perf_counter()
    from lowerdeck.compiler import CompileOptions, generate

    options = CompileOptions(threads=threads, strict_accuracy=strict_accuracy, target=target)
    generate(model, folder, options)
    python_seconds = time.perf_counter() - start
    from lowerdeck.build import build_library, library_name
    from lowerdeck.metadata import read_metadata

    metadata = read_metadata(folder)
    start = time.perf_counter()
    build_library(folder, metadata, str(Path(folder) / library_name(metadata["name"])))
    return {"python_seconds": python_seconds, "cc_seconds": time.perf_counter() - start}


def inspect(model: str, inputs: str) -> dict[str, Any]:
    """Multiply-adds."""
    from bench.workload import count_work
    from lowerdeck.compiler import CompileOptions, import_and_lower

    shapes = {name: array.shape for name, array in recorded_inputs(inputs).items()}
    module, _ = import_and_lower(model, "legal", CompileOptions())
    work = count_work(module, shapes)
    return {"multiply_adds": work.multiply_adds, "is_exact": work.is_exact}


def measure(
    model: str,
    inputs: str,
    folder: str,
    threads: int,
    seconds: float,
    reference: str | None,
    before: str | None = None,
    peers: Sequence[str] = (ORT, OPENVINO),
) -> dict[str, Any]:
    """Times of all contenders in turn, errors, and the machine's peak before and after."""
    from bench.machine import Native
    from lowerdeck.tools.peak import MultiplyAdds

    arrays = recorded_inputs(inputs)
    ours, call = load_ours(folder, arrays, threads)
    loaded, failures = {OURS: ours}, dict[str, str]()
    if before is not None:
        loaded[BEFORE], _ = load_ours(before, arrays, threads)
    for name in peers:
        try:
            loaded[name] = _PEERS[name](model, arrays, threads)
        except RuntimeError as error:  # so OpenVINO says that it does not run a model
            failures[name] = str(error)
    with tempfile.TemporaryDirectory() as scratch:
        native = Native(scratch)
    contenders = {name: timed(one.call) for name, one in loaded.items()}
    contenders[OURS_IN_C] = native.runner(call.run, call.arguments)
    machine = MultiplyAdds()
    peak = machine.peak_flops(threads)
    estimates = {name: _estimate(contender) for name, contender in contenders.items()}
    times = alternate(contenders, plan_for(estimates.values(), seconds))
    return {
        "times": {name: Summary.of(values).data() for name, values in times.items()},
        "failures": failures,
        "peak_flops": max(peak, machine.peak_flops(threads)),
        "errors": {} if reference is None else _errors(loaded, reference),
    }


def _estimate(contender: Contender) -> float:
    return min(contender() for _ in range(_FIRST_RUNS))


def _errors(loaded: Mapping[str, Loaded], reference: str) -> dict[str, float]:
    """The largest difference from the reference of each contender, and its largest value."""
    expected = recorded_outputs(reference)
    errors = {name: largest_difference(one.outputs(), expected) for name, one in loaded.items()}
    sizes = [float(np.abs(value).max(initial=0)) for value in expected.values()]
    return {**errors, "largest value": max(sizes, default=0.0)}


def largest_difference(found: Arrays, expected: Arrays) -> float:
    """The largest |found - expected| of all outputs; infinite where shapes differ."""
    worst = 0.0
    for name, want in expected.items():
        got = widened(found[name])
        if got.shape != want.shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            difference = np.abs(got.astype(np.float64) - want)
        # Where both are the same infinity or no number, there is no difference; where one is not,
        # nothing is as bad.
        same = (got == want) | ((got != got) & (want != want))
        difference = np.nan_to_num(np.where(same, 0.0, difference), nan=np.inf, posinf=np.inf)
        worst = max(worst, float(difference.max(initial=0)))
    return worst


def resident(model: str, inputs: str, peer: str) -> dict[str, Any]:
    """What a peer adds to a process that has imported it, after some runs and at most."""
    arrays = recorded_inputs(inputs)
    import_module(peer)
    before = memory_status("VmRSS")
    loaded = _PEERS[peer](model, arrays, 1)
    for _ in range(_FIRST_RUNS):
        loaded.call()
    return {
        "resident": memory_status("VmRSS") - before,
        "peak": memory_status("VmHWM") - before,
    }


_PARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "compile": compile_model,
    "inspect": inspect,
    "measure": measure,
    "resident": resident,
}


def main(arguments: Sequence[str]) -> None:
    """Run one part and print its result."""
    part, options = arguments
    result = _PARTS[part](**cast("dict[str, Any]", json.loads(options)))
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
