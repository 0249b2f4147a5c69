"""
Record what TensorFlow computes: run by a Python that has TensorFlow, with names of topics.

    python make_expected.py elementwise linear

Writes `expected/<topic>.npz`: a GraphDef, its inputs and results. Each result is a case of its own;
its name is that of a node.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

tf: Any = import_module("tensorflow")

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected")


class Recorder:
    """A graph under construction: what is fed and what is fetched."""

    def __init__(self) -> None:
        self.feeds: dict[str, NDArray[Any]] = {}
        self.fetches: list[str] = []

    def input(self, array: ArrayLike, shape: Sequence[int | None] | None = None) -> Any:
        """A placeholder for `array`; all of its dimensions are unknown unless `shape` is given."""
        array = np.asarray(array)
        shape = [None] * array.ndim if shape is None else shape
        name = f"x{len(self.feeds)}"
        placeholder = tf.compat.v1.placeholder(tf.as_dtype(array.dtype), shape, name=name)
        self.feeds[name] = array
        return placeholder

    def case(self, name: str, value: Any) -> None:
        """A result to record, in a scope of its own beside the operators."""
        name = f"case/{name}"
        tf.identity(value, name=name)
        assert name not in self.fetches, name
        self.fetches.append(name)

    def save(self, topic: str) -> None:
        config = tf.compat.v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        graph = tf.compat.v1.get_default_graph()
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            feeds = {f"{name}:0": array for name, array in self.feeds.items()}
            results = session.run([f"{name}:0" for name in self.fetches], feeds)
        arrays = {f"in:{name}": array for name, array in self.feeds.items()}
        arrays |= {f"out:{k}": v for k, v in zip(self.fetches, results, strict=True)}
        os.makedirs(FOLDER, exist_ok=True)
        graph_def = graph.as_graph_def().SerializeToString(deterministic=True)
        _write(os.path.join(FOLDER, f"{topic}.npz"), graph_def, arrays)


def _write(path: str, graph_def: bytes, arrays: dict[str, NDArray[Any]]) -> None:
    """One file with few entries: each would take more room than a small array."""
    index = [[name, array.dtype.name, array.shape] for name, array in arrays.items()]
    entries: dict[str, Any] = {
        "graph": np.frombuffer(graph_def, np.uint8),
        "index": np.frombuffer(json.dumps(index).encode(), np.uint8),
        "data": np.frombuffer(b"".join(array.tobytes() for array in arrays.values()), np.uint8),
    }
    np.savez_compressed(path, **entries)


def main(topics: Sequence[str]) -> None:
    tf.compat.v1.disable_eager_execution()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    for topic in topics:
        with tf.Graph().as_default():
            recorder = Recorder()
            import_module(f"cases.{topic}").build(recorder)
            recorder.save(topic)
            print(topic, len(recorder.fetches), "cases")


if __name__ == "__main__":
    main(sys.argv[1:])
