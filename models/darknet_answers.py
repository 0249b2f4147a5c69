"""
What OpenCV's DNN gives for the nets of `models.darknet_networks`, as cases of a corpus.

    python -m models.darknet_answers FOLDER

It runs in a Python that has OpenCV, and needs nothing of this project. Nets that OpenCV does not
read are told and left out.
"""

# OpenCV is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def write_answers(cfg: Path) -> None:
    """A random image beside a net, with what OpenCV gives for it."""
    import cv2

    net = cv2.dnn.readNetFromDarknet(str(cfg), str(cfg.with_suffix(".weights")))
    sizes = [int(size) for size in re.findall(r"(?:channels|height|width)=(\d+)", cfg.read_text())]
    image = np.random.default_rng(5).random((1, *sizes[:3]), np.float32)
    net.setInput(image)
    layers = net.getUnconnectedOutLayersNames()
    sections = re.findall(r"^\[(\w+)\]", cfg.read_text(), re.MULTILINE)[1:]
    heads = [f"{s}_{k}" for k, s in enumerate(sections) if s in ("yolo", "region")]
    arrays = [array[None] for array in net.forward(layers)]
    np.savez(cfg.with_name("inputs.npz"), input=image)
    np.savez(cfg.with_name("expected.npz"), **dict(zip(heads, arrays, strict=True)))
    case = {
        "name": cfg.stem,
        "framework": "darknet",
        "model": cfg.name,
        "outputs": [{"name": n, "dtype": "float32"} for n in heads],
        "samples": [{"inputs": "inputs.npz", "expected": "expected.npz"}],
        "tolerance": {"rtol": 1e-4, "atol": 1e-4},
        "expected_from": f"OpenCV {cv2.__version__}",
    }
    cfg.with_name("case.json").write_text(json.dumps(case, indent=1))


def main(arguments: Sequence[str]) -> int:
    """Write the answers for all nets."""
    import cv2

    for cfg in sorted((Path(arguments[0]) / "darknet").glob("*/*.cfg")):
        try:
            write_answers(cfg)
            print(cfg.stem, flush=True)
        except cv2.error as error:
            print(f"{cfg.stem}: {str(error).splitlines()[0][:160]}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
