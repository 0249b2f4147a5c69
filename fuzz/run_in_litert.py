"""
Model files in LiteRT's reference kernels, and in its optimized ones.

    python -m fuzz.run_in_litert FOLDER

It runs in a Python that has ai-edge-litert and needs nothing of this project. For each `N.tflite`
of the folder with inputs in `N.npz` (`CALL/NAME`), `N.out.npz` holds the outputs by the same keys
and `N.quick.npz` those of the optimized kernels, or `N.no` what the runtime says against it. A
file that ends the process has an empty `N.no`, and the next start goes on behind it.
"""

# LiteRT is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np


def outputs(litert: Any, path: Path, kind: Any) -> dict[str, Any]:
    """What the calls give."""
    # What is kept apart no kernel overwrites by mistake.
    is_kept = kind == litert.OpResolverType.BUILTIN_REF
    interpreter = litert.Interpreter(
        str(path),
        experimental_op_resolver_type=kind,
        num_threads=1,
        experimental_preserve_all_tensors=is_kept,
    )
    interpreter.allocate_tensors()
    with np.load(path.with_suffix(".npz")) as file:
        given = {name: file[name] for name in file.files}
    found: dict[str, Any] = {}
    places = {item["name"]: item["index"] for item in interpreter.get_input_details()}
    for call in sorted({name.partition("/")[0] for name in given} or {"0"}):
        for name, place in places.items():
            interpreter.set_tensor(place, given[f"{call}/{name}"])
        interpreter.invoke()
        for item in interpreter.get_output_details():
            found[f"{call}/{item['name']}"] = interpreter.get_tensor(item["index"]).copy()
    return found


def main(folder: str) -> int:
    """Run the files that have not been run."""
    from ai_edge_litert import interpreter as litert

    for path in sorted(Path(folder).glob("*.tflite")):
        refused, done = path.with_suffix(".no"), path.with_suffix(".out.npz")
        if refused.exists() or done.exists():
            continue
        refused.touch()
        try:
            found = outputs(litert, path, litert.OpResolverType.BUILTIN_REF)
        except (RuntimeError, ValueError) as error:
            refused.write_text(str(error) or "refused")
            continue
        np.savez(done, **found)
        refused.unlink()
    for path in sorted(Path(folder).glob("*.out.npz")):
        name = path.name.partition(".")[0]
        done = path.with_name(f"{name}.quick.npz")
        if not done.exists():
            np.savez(done)  # what ends the process stays empty
            kind = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            with suppress(RuntimeError, ValueError):
                np.savez(done, **outputs(litert, path.with_name(f"{name}.tflite"), kind))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
