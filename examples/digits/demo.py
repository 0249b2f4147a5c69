"""
Compile three networks for handwritten digits to C, one from each framework, run the held-back
images through them and compare with what the frameworks computed for those.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

import lowerdeck
from lowerdeck.compiler import TensorInfo

HERE = Path(__file__).parent
TOLERANCE = 1e-4  # the logits lie between -26 and 23
REPETITIONS = 20

Array = NDArray[Any]


@dataclass(frozen=True)
class Example:
    """A model file; beside it lies `STEM.npz`, the framework's outputs by tensor name."""

    file: str
    format: str
    network: str
    framework: str
    """What trained it and computed the outputs."""


EXAMPLES = (
    Example("digits.onnx", "ONNX", "convolutions", "PyTorch"),
    Example("digits_lstm.pb", "TensorFlow 1", "LSTM over rows", "TensorFlow"),
    Example("digits_lenet.prototxt", "Caffe", "LeNet", "PyTorch"),
)


@dataclass(frozen=True)
class Result:
    """What came of an example."""

    example: Example
    model: lowerdeck.Model
    folder: Path
    compile_seconds: float
    accuracy: float
    same: int
    images: int
    difference: float
    alone: float
    """Microseconds for an image by itself."""
    at_once: float | None
    """Microseconds for one of many; None if the model takes one image a call."""

    @property
    def agrees(self) -> bool:
        return self.same == self.images and self.difference <= TOLERANCE  # false for NaN


def run(model: lowerdeck.Model, images: Array) -> dict[str, Array]:
    """The outputs for all images, in as many calls as the batch of the model's input asks for."""
    (image,) = model.inputs
    batch = image.shape[0]
    size = batch if isinstance(batch, int) else len(images)
    calls = [model({image.name: images[i : i + size]}) for i in range(0, len(images), size)]
    return {name: np.concatenate([call[name] for call in calls]) for name in calls[0]}


def microseconds(model: lowerdeck.Model, images: Array) -> float:
    """The best time for one of `images` in one call; what Python takes for it is included."""
    (image,) = model.inputs
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        model({image.name: images})
        best = min(best, time.perf_counter() - start)
    return best / len(images) * 1e6


def evaluate(example: Example, images: Array, labels: Array, out: Path) -> Result:
    path = HERE / example.file
    expected: Mapping[str, Array] = np.load(path.with_suffix(".npz"))
    start = time.perf_counter()
    model = lowerdeck.compile(path, outputs=list(expected), cache=False)
    compile_seconds = time.perf_counter() - start
    folder = out / path.stem
    model.save(folder)

    (image,) = model.inputs
    pixels = [size for size in image.shape[1:] if isinstance(size, int)]
    images = images.reshape(len(images), *pixels)
    found = run(model, images)
    classes = found[next(iter(expected))].argmax(axis=1)
    expected_classes = next(iter(expected.values())).argmax(axis=1)
    differences = [np.abs(found[name] - expected[name]).max() for name in expected]
    return Result(
        example,
        model,
        folder,
        compile_seconds,
        accuracy=float((classes == labels).mean()),
        same=int((classes == expected_classes).sum()),
        images=len(images),
        difference=float(np.max(differences)),
        alone=microseconds(model, images[:1]),
        at_once=None if isinstance(image.shape[0], int) else microseconds(model, images),
    )


def tensors(infos: tuple[TensorInfo, ...]) -> str:
    return "\n".join(f"{t.name} {'x'.join(map(str, t.shape))}" for t in infos)


def side_by_side(results: list[Result]) -> Table:
    """A column for each model."""
    files = (result.example.file for result in results)
    table = Table("", *files, box=box.SIMPLE, collapse_padding=True, pad_edge=False)

    def row(title: str, *cells: str) -> None:
        table.add_row(title, *cells)

    row("format", *(r.example.format for r in results))
    row("network", *(r.example.network for r in results))
    row("inputs", *(tensors(r.model.inputs) for r in results))
    row("outputs", *(tensors(r.model.outputs) for r in results))
    row("compiled in", *(f"{r.compile_seconds:.2f} s" for r in results))
    row("accuracy", *(f"{r.accuracy:.2%}" for r in results))
    row("compared with", *(r.example.framework for r in results))
    row("same class", *(f"{r.same} of {r.images}" for r in results))
    row("max difference", *(f"{r.difference:.2e}" for r in results))
    row("an image alone", *(f"{r.alone:.2f} us" for r in results))
    at_once = (None if r.at_once is None else f"{r.at_once:.2f} us" for r in results)
    row(f"one of {results[0].images}", *(text or "-" for text in at_once))
    row("weights", *(f"{r.model.weights_size:,} bytes" for r in results))
    row("generated C", *(f"{r.folder}/" for r in results))
    return table


def main(out: Path) -> int:
    """
    The exit status: 1 if a network disagrees with its framework; the C is written to folders in
    `out`.
    """
    held_back = np.load(HERE / "held_back.npz")
    images, labels = held_back["images"], held_back["labels"]
    results = [evaluate(example, images, labels, out) for example in EXAMPLES]
    console = Console()
    console.print(side_by_side(results))
    console.print(
        f"{len(images)} held-back images, none seen in training; "
        f"outputs may differ by {TOLERANCE:.0e} from what the framework computed"
    )
    wrong = [result.example for result in results if not result.agrees]
    for example in wrong:
        print(f"error: {example.file}: the C and {example.framework} disagree", file=sys.stderr)
    return 1 if wrong else 0
