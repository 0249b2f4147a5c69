"""
Compile `digits.onnx` to C, run the held-back images through it and compare with what the
network's own framework computed for them. Exit status 1 when the two disagree.
"""

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lowerdeck

HERE = Path(__file__).parent
OUTPUT = Path("build") / "digits"
TOLERANCE = 1e-4  # the logits lie between -24 and 19
REPETITIONS = 20


def microseconds(model: lowerdeck.Model, images: NDArray[np.float32]) -> float:
    """The best time for one of `images` in a run over all; the call from Python is included."""
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        model({"image": images})
        best = min(best, time.perf_counter() - start)
    return best / len(images) * 1e6


def main() -> int:
    start = time.perf_counter()
    model = lowerdeck.compile(HERE / "digits.onnx")
    compile_seconds = time.perf_counter() - start
    model.save(OUTPUT)

    held_back = np.load(HERE / "held_back.npz")
    images, labels, expected = held_back["images"], held_back["labels"], held_back["logits"]
    logits = model({"image": images})["logits"]

    classes, expected_classes = logits.argmax(axis=1), expected.argmax(axis=1)
    same = int((classes == expected_classes).sum())
    difference = float(np.abs(logits - expected).max())
    agrees = same == len(labels) and difference <= TOLERANCE  # false for NaN

    for tensor in (*model.inputs, *model.outputs):
        print(f"{tensor.name:<18} {tensor.dtype} {tuple(tensor.shape)}")
    print(f"compiled in        {compile_seconds:.2f} s")
    print(f"held-back images   {len(labels)}, none seen in training")
    print(f"accuracy           {(classes == labels).mean():.2%}")
    print(f"same class         {same} of {len(labels)} as recorded from PyTorch")
    print(f"largest difference {difference:.2e} in a logit (allowed: {TOLERANCE:.0e})")
    print(f"time per image     {microseconds(model, images):.2f} us in a batch of {len(images)}")
    print(f"                   {microseconds(model, images[:1]):.2f} us alone")
    print(f"generated C        {OUTPUT}/")
    for path in sorted(OUTPUT.iterdir()):
        print(f"  {path.name:<20} {path.stat().st_size:>9,} bytes")
    if not agrees:
        print("error: the compiled model and its framework disagree", file=sys.stderr)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
