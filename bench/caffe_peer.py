"""
Nets of Caffe at full size beside OpenCV.

    python bench/caffe_peer.py FOLDER [NAME ...] [--time SECONDS] [--json F]

Writes each net of `caffe_detectors.NETWORKS` (or those named) to FOLDER with generated weights,
compiles and runs it on random inputs, and compares the outputs with those of OpenCV's dnn module
(`pip install 'opencv-python-headless<5'`). OpenCV reads the same net where some layers are written
with others that it knows. Differences are parts of the largest value; what OpenCV says of a net
that it cannot run is shown. `--time` also times both, on one thread, by turns, for so many seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from caffe_detectors import NETWORKS, build
from caffe_nets import NetBuilder
from measuring import alternate, plan_for, text_table, timed
from numpy.typing import NDArray

import lowerdeck

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"

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
    results: list[dict[str, Any]] = []
    for name in options.names or NETWORKS:
        results.append(_run(name, options.folder, cv2, options.time))
        print(_line(results[-1]), flush=True)
    print(
        text_table(["net", "compile s", "ours ms", "OpenCV ms", "difference"], map(_row, results))
    )
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return int(any(result.get("difference", 0) > MOST for result in results))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nets of Caffe beside OpenCV.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--time", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--json", metavar="F")
    return parser.parse_args(arguments)


def _opencv() -> Any:
    """The module, on one thread; None without it."""
    try:
        cv2: Any = import_module("cv2")
    except ImportError:
        return None
    cv2.setNumThreads(1)
    return cv2


def _run(name: str, folder: Path, cv2: Any, seconds: float) -> dict[str, Any]:
    net = build(name)
    path = net.write(folder, name)
    compared = INTERNAL.get(name) or _scores(net)
    start = time.perf_counter()
    outputs = list(dict.fromkeys([*net.outputs, *compared]))
    model = lowerdeck.compile(path, outputs=outputs, cache=False)
    result: dict[str, Any] = {"net": name, "compile": time.perf_counter() - start}
    inputs = _inputs(net.inputs)
    found: Arrays = model(inputs)
    result["finite"] = all(bool(np.isfinite(array).all()) for array in found.values())
    contenders: dict[str, Callable[[], float]] = {"ours": timed(lambda: model(inputs))}
    if cv2 is not None:
        try:
            peer = _peer(name, folder, cv2, inputs, compared)
            expected = peer()
        except Exception as error:
            result["opencv"] = " ".join(str(error).split())[:300]
        else:
            compare = {"detection_out": detections_apart}
            result["difference"] = max(
                compare.get(output, difference)(found[output], expected[output])
                for output in compared
            )
            if name not in INTERNAL:  # there, OpenCV runs a part of the net only
                contenders["OpenCV"] = timed(peer)
    if seconds:
        estimates = [contender() for contender in contenders.values()]
        times = alternate(contenders, plan_for(estimates, seconds))
        result |= {f"{key} time": float(np.median(values)) for key, values in times.items()}
    return result


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
    """The largest difference as part of the largest value; infinite for other shapes."""
    if found.size != expected.size:
        return float("inf")
    a, b = (array.astype(np.float64).reshape(-1) for array in (found, expected))
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))


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


def _line(result: Mapping[str, Any]) -> str:
    said = result.get("opencv", "")
    wrong = "" if result["finite"] else " not finite"
    return f"{result['net']}: {result.get('difference', '')}{wrong} {said}".rstrip()


def _row(result: Mapping[str, Any]) -> list[str]:
    def milliseconds(key: str) -> str:
        return f"{1e3 * result[key]:.1f}" if key in result else "-"

    found = f"{result['difference']:.1e}" if "difference" in result else "-"
    times = [milliseconds("ours time"), milliseconds("OpenCV time")]
    return [str(result["net"]), f"{result['compile']:.1f}", *times, found]


if __name__ == "__main__":
    sys.exit(main())
