"""
Networks of paddle.vision with random weights, with the answers that PaddlePaddle gave, as a corpus.

    python -m models.paddle_exports FOLDER [NAME ...]
    python -m models.corpus paddle --corpus FOLDER

The first runs in a Python that has PaddlePaddle (2.6 writes ProgramDesc, 3 writes PIR) and needs
nothing of this project.
"""

# PaddlePaddle is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

NETS = {
    "alexnet": {},
    "densenet121": {},
    "googlenet": {},
    "inception_v3": {},
    "mobilenet_v1": {"scale": 0.5},
    "mobilenet_v2": {"scale": 0.5},
    "mobilenet_v3_small": {},
    "resnet18": {},
    "resnext50_32x4d": {},
    "shufflenet_v2_x0_5": {},
    "squeezenet1_1": {},
    "vgg11": {},
    "wide_resnet50_2": {},
}
"""Functions of paddle.vision.models, and their arguments."""

_SIZES = {"alexnet": 224, "googlenet": 224, "inception_v3": 160}
"""Of images, where 96 are too few."""


def write_case(
    paddle: Any,
    executor: Any,
    folder: Path,
    what: Sequence[str],
    samples: Sequence[Mapping[str, Any]],
    expected: Sequence[Sequence[Any]],
) -> None:
    """Describe the program `model` in a folder, with inputs and what PaddlePaddle gave for them."""
    is_pir = (folder / "model.json").exists()
    model = "model.json" if is_pir else "model.pdmodel"
    if is_pir:
        names = [f"fetch_name_{index}" for index in range(len(expected[0]))]
    else:
        _, _, values = paddle.static.load_inference_model(str(folder / "model"), executor)
        names = [value.name for value in values]
    outputs = [
        {"name": n, "dtype": str(a.dtype), "shape": list(a.shape)}
        for n, a in zip(names, expected[0], strict=True)
    ]
    listed = []
    for number, (sample, arrays) in enumerate(zip(samples, expected, strict=True)):
        files = {key: f"{key}_{number}.npz" for key in ("inputs", "expected")}
        np.savez(folder / files["inputs"], **sample)
        np.savez(folder / files["expected"], **dict(zip(names, arrays, strict=True)))
        listed.append(files)
    numbers = [np.abs(a[np.isfinite(a)]) for a in expected[0] if a.dtype.kind == "f"]
    largest = max((float(n.max()) for n in numbers if n.size), default=1.0)
    case = {
        "name": folder.name,
        "framework": "paddle",
        "model": model,
        "exercises": " ".join(what),
        "outputs": outputs,
        "samples": listed,
        "tolerance": {"rtol": 1e-4, "atol": 1e-5 * max(largest, 1.0)},
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1))


def export(paddle: Any, folder: Path, name: str) -> None:
    """Write one network, with an open batch."""
    rng = np.random.default_rng(0)
    paddle.seed(0)
    model = getattr(paddle.vision.models, name)(pretrained=False, **NETS[name])
    model.eval()
    # Statistics that are not those of an untrained net.
    for key, value in model.state_dict().items():
        if key.endswith(("_mean", "_variance")):
            low, high = (0.5, 1.5) if key.endswith("variance") else (-0.2, 0.2)
            value.set_value(rng.uniform(low, high, value.shape).astype(np.float32))
    size = _SIZES.get(name, 96)
    samples = [
        {"x": rng.standard_normal((batch, 3, size, size)).astype(np.float32)} for batch in (1, 2)
    ]
    expected = []
    for sample in samples:
        found = model(paddle.to_tensor(sample["x"]))
        listed = found if isinstance(found, list | tuple) else [found]
        expected.append([one.numpy() for one in listed])
    folder.mkdir(parents=True, exist_ok=True)
    spec = [paddle.static.InputSpec([None, 3, size, size], "float32", "x")]
    paddle.jit.save(model, str(folder / "model"), input_spec=spec)
    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())
    write_case(paddle, executor, folder, [name], samples, expected)
    paddle.disable_static()


def main(arguments: Sequence[str]) -> int:
    """Write the networks."""
    import paddle

    folder, *names = arguments
    for name in names or NETS:
        export(paddle, Path(folder) / "paddle" / name, name)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
