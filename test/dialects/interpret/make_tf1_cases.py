"""
Writes TensorFlow's answers into `tf1_cases.json`.

    python test/dialects/interpret/make_tf1_cases.py

Every line of the file is a case: an operator, those attributes that do not follow from the inputs,
the inputs by element type and value, and as TensorFlow gives them the outputs.
"""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

CASES = Path(__file__).with_name("tf1_cases.json")


def main() -> None:
    """Run all cases."""
    tensorflow: Any = import_module("tensorflow")
    lines: list[str] = []
    for case in json.loads(CASES.read_text()):
        operator = getattr(tensorflow.raw_ops, case["op"])
        names = list(inspect.signature(operator).parameters)
        inputs = [tensorflow.constant(value, dtype) for dtype, value in case["inputs"]]
        found: Any = operator(**dict(zip(names, inputs, strict=False)), **case["attrs"])
        values: list[Any] = [*found] if isinstance(found, list | tuple) else [found]
        outputs: list[Any] = [np.asarray(value) for value in values]
        case["outputs"] = [[str(output.dtype), output.tolist()] for output in outputs]
        lines.append(json.dumps(case, separators=(",", ":")))
    CASES.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
