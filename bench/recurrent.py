"""
A recurrent network as a loop of TensorFlow 1, against the same network as one operator of ONNX.

    python -m bench.recurrent [--cell lstm|gru] [--steps N] [--hidden N] [--batch N] [--runs N]

The networks are those of `models/recurrent.py`. Printed are both medians and their quotient.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import lowerdeck
from bench.measuring import Plan, Summary, alternate, timed
from models.recurrent import Network, dynamic_rnn, operator, outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--cell", choices=("lstm", "gru"), default="lstm")
    for name, value in (("steps", 64), ("hidden", 256), ("batch", 1), ("runs", 500)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args(arguments)
    network = Network(
        options.cell, options.steps, options.batch, options.hidden, options.hidden, True
    )
    models = {
        "loop": lowerdeck.compile(dynamic_rnn(network), outputs=outputs(network), cache=False),
        "operator": lowerdeck.compile(operator(network), cache=False),
    }
    inputs = network.drawn(1)
    named = {"loop": {"x:0": inputs["x"]}, "operator": inputs}
    calls = {name: timed(model.prepare(named[name])) for name, model in models.items()}
    times = alternate(calls, Plan(max(options.runs // 5, 1), 5, 2, 5e-4))
    medians = {name: Summary.of(seconds).median for name, seconds in times.items()}
    for name, median in medians.items():
        print(f"{name:9}{median * 1e3:8.3f} ms")
    print(f"{'quotient':9}{medians['loop'] / medians['operator']:8.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
