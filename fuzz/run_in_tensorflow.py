"""
Graphs that `fuzz_tf1.py --record FOLDER` wrote, in TensorFlow itself.

    python -m fuzz.run_in_tensorflow FOLDER

It runs in a Python that has TensorFlow and needs nothing of this project. Each graph runs in a
session, as it is, without any optimization; all results have to be equal. The exit status is 1 if
one is not.
"""

# TensorFlow is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def difference(tf: Any, path: Path) -> str:
    """What TensorFlow gives differently, or what it says; empty if nothing."""
    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.import_graph_def(graph_def, name="")
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
    )
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with np.load(path.with_suffix(".npz")) as file:
        arrays = {name: file[name] for name in file.files}
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        for run in sorted({name.partition("/")[0] for name in arrays}):
            given, wanted = (_under(f"{run}/{side}/", arrays) for side in ("in", "out"))
            try:
                options = tf.compat.v1.RunOptions(timeout_in_ms=20_000)
                found = session.run(list(wanted), given, options=options)
            except tf.errors.OpError as error:
                return f"run {run}: {error.message}"
            for (name, want), got in zip(wanted.items(), found, strict=True):
                if got.dtype != want.dtype or not np.array_equal(got, want):
                    return f"run {run}: {name} is {got}, expected {want}"
    return ""


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def main(folder: str) -> int:
    """Run all graphs of a folder."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import tensorflow as tf  # pyright: ignore[reportMissingModuleSource]

    tf.compat.v1.disable_eager_execution()
    paths = sorted(Path(folder).glob("*.pb"))
    wrong = 0
    for path in paths:
        if text := difference(tf, path):
            wrong += 1
            print(f"{path.stem}: {text}", flush=True)
    print(f"{len(paths) - wrong} of {len(paths)} graphs are as in TensorFlow")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
