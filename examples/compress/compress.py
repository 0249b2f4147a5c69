"""
Make a trained network small: half its channels, taught by the whole one, computed from bytes.

    python examples/compress/compress.py [-o FOLDER] [--keep PART] [--epochs N]

The convolutional network of `examples/digits` loses half its channels, learns from the outputs of
the whole one to do without them, by numpy on one core, and is quantized. What each step costs in
accuracy is shown for images that none of the steps has seen. The exit status is 1 if the small
network is more than half a point below the whole one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from network import Array, Network  # pyright: ignore[reportImplicitRelativeImport]

import lowerdeck
from lowerdeck.tools.lowerdeck import main as tool

HERE = Path(__file__).parent
DIGITS = HERE.parent / "digits"
TEACHER = DIGITS / "digits.onnx"

TEMPERATURE = 4.0
"""Of the outputs that are learned from: the higher, the more the unlikely classes count."""
BATCH = 64
RATE, RISE, DECAY = 8e-3, 0.2, 3e-3
"""The highest rate, the part of the training in which it rises, and what weights lose of it."""
MOST = 0.005
"""Of accuracy that the small network may lose."""
SEED = 4


class Data(NamedTuple):
    """Images f32[n, 1, 8, 8] between 0 and 1, and their classes i64[n]."""

    images: Array
    labels: Array


def training_data() -> Data:
    """What the whole network was trained with, too: none of it is held back."""
    with np.load(HERE / "training.npz") as file:
        return Data(file["images"].astype(np.float32)[:, None] / 16, file["labels"].astype(int))


def held_back() -> Data:
    """What accuracy is measured with, and nothing else."""
    with np.load(DIGITS / "held_back.npz") as file:
        return Data(file["images"], file["labels"])


def accuracy(logits: Array, data: Data) -> float:
    """The share of images that are put into their class."""
    return float((logits.argmax(1) == data.labels).mean())


# Distillation


def softmax(logits: Array) -> Array:
    exponents = np.exp(logits - logits.max(1, keepdims=True))
    return exponents / exponents.sum(1, keepdims=True)


def loss_gradient(logits: Array, taught: Array) -> Array:
    """
    The gradient, by the logits, of the mean over images of T^2 KL(softmax(taught / T),
    softmax(logits / T)) and the cross entropy of softmax(taught)
    (https://arxiv.org/abs/1503.02531, section 2).
    """
    soft = TEMPERATURE * (softmax(logits / TEMPERATURE) - softmax(taught / TEMPERATURE))
    return np.asarray((soft + softmax(logits) - softmax(taught)) / len(logits), np.float32)


def mixed(images: Array, random: np.random.Generator) -> Array:
    """
    Half of the images with a part of another one, all with a little noise: the teacher knows what
    they are to be taken for (https://arxiv.org/abs/2106.05237).
    """
    part = np.where(random.random(len(images)) < 0.5, 0, random.uniform(0, 0.5, len(images)))
    part = part[:, None, None, None]
    both = (1 - part) * images + part * images[random.permutation(len(images))]
    return np.asarray(np.clip(both + random.normal(0, 0.08, both.shape), 0, 1), np.float32)


def rate_at(done: float) -> float:
    """The rate when a part of the training is done: up at first, then down as a cosine does."""
    if done < RISE:
        return RATE * done / RISE
    return float(RATE * (1 + np.cos(np.pi * (done - RISE) / (1 - RISE))) / 2)


def distill(student: Network, teacher: lowerdeck.Model, images: Array, epochs: int) -> None:
    """AdamW (https://arxiv.org/abs/1711.05101) on the weights of the student."""
    random, weights = np.random.default_rng(SEED), student.weights
    first = {name: np.zeros_like(weight) for name, weight in weights.items()}
    second = {name: np.zeros_like(weight) for name, weight in weights.items()}
    steps = epochs * (len(images) // BATCH)
    order = np.concatenate([random.permutation(len(images)) for _ in range(epochs + 1)])
    for step in range(steps):
        batch = mixed(images[order[step * BATCH :][:BATCH]], random)
        logits, gradients = student.run(batch)
        taught = teacher({"image": batch})["logits"]
        rate = rate_at(step / steps)
        for name, gradient in gradients(loss_gradient(logits, taught)).items():
            first[name] += 0.1 * (gradient - first[name])
            second[name] += 0.001 * (gradient**2 - second[name])
            mean = first[name] / (1 - 0.9 ** (step + 1))
            square = second[name] / (1 - 0.999 ** (step + 1))
            change = mean / (np.sqrt(square) + 1e-8) + DECAY * weights[name]
            weights[name] -= np.asarray(rate * change, np.float32)


# The whole way


def compress(folder: Path, keep: float, epochs: int) -> bool:
    """Write `small.onnx` and `ranges.json`; True if little is lost."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    data, judges = training_data(), held_back()
    teacher = lowerdeck.compile(TEACHER)
    whole = accuracy(teacher({"image": judges.images})["logits"], judges)
    print(f"the whole network:   {whole:.2%}")

    small, ranges = folder / "small.onnx", folder / "ranges.json"
    if tool(["prune", str(TEACHER), "--keep", str(keep), "-o", str(small), "--force"]):
        return False
    student = Network(small)
    print(f"with {keep:.0%} of channels: {accuracy(student.run(judges.images)[0], judges):.2%}")
    distill(student, teacher, data.images, epochs)
    student.write(small)
    print(f"taught by the whole: {accuracy(student.run(judges.images)[0], judges):.2%}")

    found = lowerdeck.quantize(small, {"image": data.images[:256]})
    found.write(ranges)
    quantized = lowerdeck.compile(small, precision="int8", ranges=found)
    last = accuracy(quantized({"image": judges.images})["logits"], judges)
    print(f"in int8:             {last:.2%}   ({time.perf_counter() - start:.0f} s)")
    print(f"wrote {small} and {ranges}: lowerdeck compile --precision int8 --ranges")
    return last >= whole - MOST


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("-o", dest="folder", type=Path, default=Path("build/compress"))
    parser.add_argument("--keep", type=float, default=0.5, metavar="PART", help="of channels")
    parser.add_argument("--epochs", type=int, default=100, metavar="N", help="of training")
    args = parser.parse_args()
    if compress(args.folder, args.keep, args.epochs):
        return 0
    print("more than half a point of accuracy is lost", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
