"""
Cases of MXNet: forms of single operators by topic, and nets of Gluon's model zoo with random
weights, with the answers of MXNet itself.

    python -m models.mxnet_cases FOLDER [REGEX]

It runs in an environment with MXNet 1.9.1 and numpy below 1.24, and needs nothing else of this
project. Each case is a folder below FOLDER/mxnet, as `models.corpus` reads it.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from models.mxnet_forms import (
    Array,
    Arrays,
    Form,
    activation,
    common,
    elementwise,
    indexing,
    linear,
    movement,
    mx,
    normalization,
    reduction,
)
from models.mxnet_images import boxes, detection, numpy_forms, pooling, recurrent, sequence


def _save(folder: Path, symbol: Any, inputs: Arrays, expected: list[Array], atol: float) -> None:
    """A case of a symbol without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    data = json.loads(symbol.tojson())
    (folder / "model-symbol.json").write_text(json.dumps(data, separators=(",", ":")))
    _save_answers(folder, symbol.list_outputs(), inputs, expected, atol)


def _save_answers(
    folder: Path, names: list[str], inputs: Arrays, expected: list[Array], atol: float
) -> None:
    answers: Any = dict(zip(names, expected))
    given: Any = inputs
    np.savez_compressed(folder / "inputs.npz", **given)
    np.savez_compressed(folder / "expected.npz", **answers)
    case = {
        "name": folder.name,
        "framework": "mxnet",
        "model": "model-symbol.json",
        "input_shapes": {name: list(array.shape) for name, array in inputs.items()},
        "outputs": [{"name": n, "dtype": str(array.dtype)} for n, array in answers.items()],
        "samples": [{"inputs": "inputs.npz", "expected": "expected.npz"}],
        "tolerance": {"rtol": 1e-4, "atol": atol},
        "expected_from": f"mxnet {mx.__version__} on the CPU",
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1))


def pack(folder: Path) -> None:
    """The case of a folder as one small file beside it, which the tests read."""
    case = json.loads((folder / "case.json").read_text())
    expected, inputs = (np.load(folder / f"{name}.npz") for name in ("expected", "inputs"))
    outputs = [(n, str(expected[n].dtype), list(expected[n].shape)) for n in expected.files]
    arrays: dict[str, Any] = {f"input {name}": inputs[name] for name in inputs.files}
    for dtype in sorted({dtype for _, dtype, _ in outputs}):
        flat = [expected[name].reshape(-1) for name, own, _ in outputs if own == dtype]
        arrays[f"answers {dtype}"] = np.concatenate(flat)
    facts = {"outputs": outputs, "tolerance": case["tolerance"]}
    texts = {"symbol": (folder / "model-symbol.json").read_text(), "facts": json.dumps(facts)}
    arrays.update({k: np.frombuffer(text.encode(), np.uint8) for k, text in texts.items()})
    np.savez_compressed(folder.with_suffix(".npz"), **arrays)


def _answers(symbol: Any, arrays: Arrays) -> list[Array]:
    """What MXNet computes."""
    make = mx.np.array if mx.util.is_np_array() else mx.nd.array
    values = {name: make(array, dtype=array.dtype) for name, array in arrays.items()}
    states = {name: values[name] for name in symbol.list_auxiliary_states()}
    given = {name: values[name] for name in symbol.list_arguments()}
    executor = symbol.bind(mx.cpu(), given, grad_req="null", aux_states=states)
    return [each.asnumpy() for each in executor.forward(is_train=False)]


class _Variables:
    """Symbols of variables by name."""

    def __init__(self, arrays: Arrays) -> None:
        self.used: dict[str, Any] = {}
        self._arrays = arrays

    def __getattr__(self, name: str) -> Any:
        if name not in self.used:
            array = self._arrays[name]
            symbol = mx.sym.var(name, shape=array.shape, dtype=array.dtype)
            self.used[name] = symbol.as_np_ndarray() if mx.util.is_np_array() else symbol
        return self.used[name]


def _parts(made: Any) -> list[Any]:
    """The results of a form, each a symbol."""
    if isinstance(made, (list, tuple)):
        return [part for each in cast("list[Any]", made) for part in _parts(each)]
    return list(made.as_nd_ndarray())


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:160]


def make_forms(folder: Path, arrays: Arrays, forms: Mapping[str, Form], tolerance: float) -> None:
    """One case of all forms; those that MXNet refuses are told and left out."""
    kept: list[Any] = []
    expected: list[Array] = []
    variables = _Variables(arrays)
    for name, form in forms.items():
        own = _Variables(arrays)
        try:
            with mx.name.Prefix(f"{name}_"):
                parts = _parts(form(mx.sym, own))
            used = {key: arrays[key] for key in own.used}
            answers = [a for part in parts for a in _answers(part, used)]
        except Exception as error:  # whatever MXNet refuses, the other forms are written
            print(f"{folder.name}: {name}: {_reason(error)}", file=sys.stderr)
            continue
        with mx.name.Prefix(f"{name}_"):
            kept += _parts(form(mx.sym, variables))
        expected += answers
    symbol = mx.sym.Group(kept)
    # A label is no input: only training reads it.
    used = {key: arrays[key] for key in variables.used if not key.startswith("label")}
    _save(folder, symbol, used, expected, tolerance)


TOPICS: dict[str, tuple[Callable[[], dict[str, Form]], float]] = {
    "activation": (activation, 1e-5),
    "detection": (detection, 2e-5),
    "elementwise": (elementwise, 1e-5),
    "indexing": (indexing, 1e-6),
    "linear": (linear, 2e-5),
    "movement": (movement, 1e-6),
    "normalization": (normalization, 1e-5),
    "pooling": (pooling, 1e-5),
    "numpy": (numpy_forms, 1e-5),
    "recurrent": (recurrent, 1e-5),
    "reduction": (reduction, 1e-5),
}


# Nets

ZOO: dict[str, int] = {
    "alexnet": 224,
    "densenet121": 224,
    "densenet161": 224,
    "densenet169": 224,
    "densenet201": 224,
    "inceptionv3": 299,
    "mobilenet0.25": 64,
    "mobilenet0.5": 64,
    "mobilenet0.75": 64,
    "mobilenet1.0": 64,
    "mobilenetv2_0.25": 64,
    "mobilenetv2_0.5": 64,
    "mobilenetv2_0.75": 64,
    "mobilenetv2_1.0": 64,
    "resnet18_v1": 64,
    "resnet18_v2": 64,
    "resnet34_v1": 64,
    "resnet34_v2": 64,
    "resnet50_v1": 64,
    "resnet50_v2": 64,
    "resnet101_v2": 64,
    "squeezenet1.0": 224,
    "squeezenet1.1": 224,
    "vgg11": 64,
    "vgg13_bn": 64,
    "vgg16": 64,
}
"""Nets of Gluon's model zoo, and the height and width of their images here."""


def make_net(folder: Path, name: str, size: int) -> None:
    """A net with random weights, as `export` writes it."""
    mx.random.seed(1)
    mx.random.seed(1, ctx=mx.cpu())
    net = mx.gluon.model_zoo.vision.get_model(name)
    net.initialize(mx.init.Xavier(magnitude=2.5))
    net.hybridize()
    data = np.random.default_rng(2).normal(size=(1, 3, size, size)).astype(np.float32)
    expected = net(mx.nd.array(data)).asnumpy()
    folder.mkdir(parents=True, exist_ok=True)
    net.export(str(folder / "model"))
    symbol = mx.sym.load(str(folder / "model-symbol.json"))
    largest = float(np.abs(expected).max())
    _save_answers(folder, symbol.list_outputs(), {"data": data}, [expected], 1e-4 * largest)


def main() -> None:
    """Write the cases whose names match."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) / "mxnet"
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for name, (forms, tolerance) in TOPICS.items():
        if wanted.search(f"forms_{name}"):
            if name == "numpy":
                mx.npx.set_np()
            arrays = {"detection": boxes, "recurrent": sequence}.get(name, common)()
            make_forms(folder / f"forms_{name}", arrays, forms(), tolerance)
            pack(folder / f"forms_{name}")
            mx.npx.reset_np()
    for name, size in ZOO.items():
        if wanted.search(f"net_{name}"):
            make_net(folder / f"net_{name.replace('.', '_')}", name, size)


if __name__ == "__main__":
    main()
