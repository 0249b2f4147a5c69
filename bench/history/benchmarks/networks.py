"""Three small networks of three frameworks: what a commit does to time, size and memory."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np

import lowerdeck

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits"
MODELS = ["digits.onnx", "digits_lstm.pb", "digits_lenet.prototxt"]
TARGETS = ["native", "c99"]


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for, such as the C compiler."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Networks:
    """What asv calls: `time_*` is timed, `track_*` returns what is recorded."""

    params = (MODELS, TARGETS)
    param_names = ("model", "target")
    timeout = 600

    def setup_cache(self) -> dict[str, float]:
        """Compile each model once, into folders of the working folder; CPU seconds by folder."""
        seconds: dict[str, float] = {}
        for target in TARGETS:
            for model in MODELS:
                start = _cpu_seconds()
                compiled = lowerdeck.compile(DIGITS / model, target=target, cache=False)
                seconds[_folder(model, target)] = _cpu_seconds() - start
                compiled.save(_folder(model, target))
        return seconds

    def setup(self, seconds: dict[str, float], model: str, target: str) -> None:
        self.model = lowerdeck.load(_folder(model, target))
        (image,) = self.model.inputs
        shape = [size if isinstance(size, int) else 1 for size in image.shape]
        self.call = self.model.prepare({image.name: np.zeros(shape, np.float32)})

    def time_run(self, seconds: dict[str, float], model: str, target: str) -> None:
        """One image."""
        self.call()

    def track_compile_time(self, seconds: dict[str, float], model: str, target: str) -> float:
        return seconds[_folder(model, target)]

    def track_workspace(self, seconds: dict[str, float], model: str, target: str) -> int:
        """For one image."""
        return self.model.workspace_for(
            {
                image.name: [size if isinstance(size, int) else 1 for size in image.shape]
                for image in self.model.inputs
            }
        )

    def track_weights(self, seconds: dict[str, float], model: str, target: str) -> int:
        return self.model.weights_size

    def track_source(self, seconds: dict[str, float], model: str, target: str) -> int:
        """The C of the model itself."""
        return os.path.getsize(Path(_folder(model, target)) / f"{self.model.name}.c")


def _folder(model: str, target: str) -> str:
    return f"{Path(model).stem}-{target}"


for _track, _unit in (
    (Networks.track_compile_time, "CPU seconds"),
    (Networks.track_workspace, "bytes"),
    (Networks.track_weights, "bytes"),
    (Networks.track_source, "bytes"),
):
    setattr(_track, "unit", _unit)
