"""
Nets of Caffe at full size beside OpenCV.

    python -m bench.caffe_peer FOLDER [NAME ...] [--threads N ...] [--time SECONDS] [--json F]

Writes each net of `caffe_detectors.NETWORKS` (or those named) to FOLDER with generated weights,
compiles and runs it on random inputs with each number of threads (1 and 2), and compares the
outputs with those of OpenCV's dnn module (`pip install 'opencv-python-headless<5'`). OpenCV reads
the same net where some layers are written with others that it knows. Differences are parts of the
largest value; what OpenCV says of a net that it cannot run is shown. The exit status is 1 if an
output differs or is not finite.

`--time` also times both, by turns, for so many seconds with each number of threads, and prints how
many times as long OpenCV takes for each net, and the geometric mean. Of nets marked with *, OpenCV
knows a part only, and both compute that part.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import lowerdeck
from bench.measuring import alternate, geometric_mean, plan_for, text_table, timed
from models.caffe_detectors import NETWORKS, build
from models.caffe_nets import NetBuilder

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"
Result: TypeAlias = "Mapping[str, Any]"
"""What became of a net: `times` are seconds by the number of threads and by who computes."""

MISSING = "OpenCV is not here: pip install 'opencv-python-headless<5'"

MOST = 1e-3
"""The largest difference that passes, as part of the largest value."""

INTERNAL = {
    "enet": ["conv3_8_2"],
    "faster_rcnn": ["rpn_bbox_pred", "rpn_cls_prob_reshape"],
}
"""Blobs that are compared instead of outputs, where OpenCV has no such layers behind, or others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the nets and print a line for each; 1 if one is wrong."""
    options = _parse(arguments)
    cv2 = _opencv()
    if cv2 is None:
        print(f"{MISSING}; nothing is compared", file=sys.stderr)
    options.folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for name in options.names or NETWORKS:
        results.append(_run(name, options.folder, cv2, options.threads, options.time))
        print(_line(results[-1]), flush=True)
    print(summary(results, options.threads))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return int(any(map(is_wrong, results)))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nets of Caffe beside OpenCV.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--time", "--seconds", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--json", metavar="F")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(NETWORKS):
        parser.error(f"there are no nets {', '.join(sorted(unknown))}: {', '.join(NETWORKS)}")
    return options


def _opencv() -> Any:
    """The module; None without it."""
    try:
        return import_module("cv2")
    except ImportError:
        return None


def _run(name: str, folder: Path, cv2: Any, threads: Sequence[int], seconds: float) -> Result:
    net = build(name)
    path = net.write(folder, name)
    compared = INTERNAL.get(name) or _scores(net)
    outputs = list(dict.fromkeys([*net.outputs, *compared]))
    inputs = _inputs(net.inputs)
    result: dict[str, Any] = {"net": name, "is_part": name in INTERNAL, "finite": True, "times": {}}
    peer: Callable[[], Arrays] | None = None
    expected: Arrays = {}
    if cv2 is not None:
        try:
            peer = _peer(name, folder, cv2, inputs, compared)
            expected = peer()
        except Exception as error:
            peer, result["opencv"] = None, " ".join(str(error).split())[:300]
    for number in threads:
        start = time.perf_counter()
        model = lowerdeck.compile(path, outputs=outputs, threads=number, cache=False)
        result.setdefault("compile", time.perf_counter() - start)
        found: Arrays = model(inputs)
        result["finite"] &= all(bool(np.isfinite(array).all()) for array in found.values())
        if peer is not None:
            apart = _apart(found, expected, compared)
            result["difference"] = max(apart, result.get("difference", 0.0))
        if not seconds:
            continue
        if name in INTERNAL:
            model = lowerdeck.compile(path, outputs=compared, threads=number, cache=False)
        contenders = {"ours": timed(partial(model, inputs))}
        if cv2 is not None and peer is not None:
            cv2.setNumThreads(number)
            contenders["OpenCV"] = timed(peer)
        estimates = [contender() for contender in contenders.values()]
        times = alternate(contenders, plan_for(estimates, seconds))
        result["times"][str(number)] = {key: float(np.median(all_)) for key, all_ in times.items()}
    return result


def _apart(found: Arrays, expected: Arrays, compared: Sequence[str]) -> float:
    """The largest difference of the outputs that are compared."""
    compare = {"detection_out": detections_apart}
    pairs = ((compare.get(name, difference), found[name], expected[name]) for name in compared)
    return max(function(*both) for function, *both in pairs)


def is_wrong(result: Result) -> bool:
    """True if an output differs from OpenCV's, or is not finite."""
    return not result["finite"] or not result.get("difference", 0.0) <= MOST


def _scores(net: NetBuilder) -> list[str]:
    """The outputs, but what Softmax is computed from in place of its tops, which may saturate."""
    sources = {
        layer.top[0]: layer.bottom[0]
        for layer in net.parameter.layer
        if layer.type == "Softmax" and layer.top[0] in net.outputs
    }
    return [sources.get(output, output) for output in net.outputs]


def _inputs(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(0)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    if "im_info" in inputs:
        inputs["im_info"] = np.array([[*shapes["data"][2:], 1]], np.float32)
    return inputs


def _peer(
    name: str, folder: Path, cv2: Any, inputs: Arrays, outputs: Sequence[str]
) -> Callable[[], Arrays]:
    """OpenCV's run of the plain net."""
    path = build(name, plain=True).write(folder, f"{name}_plain")
    net: Any = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))

    def run() -> Arrays:
        for key, array in inputs.items():
            net.setInput(array, key)
        return dict(zip(outputs, net.forward(list(outputs)), strict=True))

    return run


def difference(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference as part of the largest value; infinite for other shapes and NaN."""
    if found.size != expected.size:
        return float("inf")
    a, b = (array.astype(np.float64).reshape(-1) for array in (found, expected))
    apart = float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
    return apart if np.isfinite(apart) else float("inf")


def detections_apart(found: NDArray[Any], expected: NDArray[Any]) -> float:
    """
    How far a detection is from the closest one of the other's at most; infinite for another number.

    Equal scores may be in another order, and OpenCV fills up with zeros.
    """
    a, b = (rows[rows[:, 2] > 0] for rows in (found.reshape(-1, 7), expected.reshape(-1, 7)))
    if len(a) != len(b):
        return float("inf")
    apart = np.abs(a[:, None].astype(np.float64) - b).max(2)
    return float(max(apart.min(0).max(), apart.min(1).max())) if len(a) else 0.0


def _line(result: Result) -> str:
    said = result.get("opencv", "")
    wrong = "" if result["finite"] else " not finite"
    return f"{result['net']}: {result.get('difference', '')}{wrong} {said}".rstrip()


def summary(results: Sequence[Result], threads: Sequence[int]) -> str:
    """
    A table with a row for each net, and how many times as long OpenCV takes: the geometric mean
    and the least, for each number of threads.
    """
    head, lines = ["net", "difference", "compile s"], list[str]()
    is_timed = any(result["times"] for result in results)
    for number in threads if is_timed else ():
        head += [f"{number}: ours ms", "OpenCV ms", "ratio"]
        ratios = [ratio for each in results if (ratio := _ratio(each, number)) is not None]
        if ratios:
            lines.append(
                f"{number} thread{'s' * (number > 1)}: {len(ratios)} nets, OpenCV takes "
                f"{geometric_mean(ratios):.2f} times as long, {min(ratios):.2f} times at least"
            )
    rows = [_row(result, threads if is_timed else ()) for result in results]
    return "\n".join([text_table(head, rows), *lines])


def _ratio(result: Result, threads: int) -> float | None:
    times = result["times"].get(str(threads), {})
    return times["OpenCV"] / times["ours"] if "OpenCV" in times else None


def _row(result: Result, threads: Sequence[int]) -> list[str]:
    name = f"{result['net']}{'*' * result['is_part']}"
    found = f"{result['difference']:.1e}" if "difference" in result else "-"
    row = [name, found, f"{result['compile']:.1f}"]
    for number in threads:
        times = result["times"].get(str(number), {})
        row += [f"{1e3 * times[key]:.1f}" if key in times else "-" for key in ("ours", "OpenCV")]
        ratio = _ratio(result, number)
        row.append("-" if ratio is None else f"{ratio:.2f}")
    return row


if __name__ == "__main__":
    sys.exit(main())
