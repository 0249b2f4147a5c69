"""
The data that all three networks are trained on and judged by; as a program, writes
`held_back.npz` to examples/digits. Needs scikit-learn, which bundles the images.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

DIGITS = Path(__file__).parents[1] / "digits"
"""Where the networks and their data are."""
SEED = 20


class Split(NamedTuple):
    """Images f32[n, 1, 8, 8] between 0 and 1, and their classes i64[n]."""

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    held_images: NDArray[np.float32]
    held_labels: NDArray[np.int64]


def split() -> Split:
    """The same stratified fifth is held back in every run."""
    digits = load_digits()
    pixels = (digits.images / 16.0).astype(np.float32)[:, None]
    train_x, held_x, train_y, held_y = train_test_split(
        pixels, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    return Split(train_x, train_y.astype(np.int64), held_x, held_y.astype(np.int64))


def record(model: Path, outputs: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> None:
    """
    Write what a framework computes for the held-back images beside its model, by tensor name.

    The first output has the score of each class.
    """
    np.savez_compressed(model.with_suffix(".npz"), **outputs)
    scores = next(iter(outputs.values()))
    accuracy = (scores.argmax(axis=1) == labels).mean()
    print(f"{model.name}: {model.stat().st_size:,} bytes, held-back accuracy {accuracy:.2%}")


def main() -> None:
    data = split()
    np.savez_compressed(DIGITS / "held_back.npz", images=data.held_images, labels=data.held_labels)


if __name__ == "__main__":
    main()
