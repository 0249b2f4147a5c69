"""
Single operators beside onnxruntime: where is a form that nobody has made fast?

    python -m bench.operators [--only REGEX] [--threads 1] [--seconds 0.2] [--jobs 2] [--json F]
                              [--markdown F] [--chart F.svg] [--random COUNT --seed S] [--open]

`operator_forms.py` has the forms; with `--random`, `random_forms.py` draws others. With `--open`,
no dimension of an input is known, nor that any two are the same. All are compiled first, some at a
time, then each is measured in turns with onnxruntime, both called through Python on arrays that
stay where they are. The ratio is onnxruntime's median by ours: above 1, ours is
faster. Forms that one of the two cannot run are listed with the reason. Results are compared, too:
with those of onnxruntime, relative to the largest. Exits with 1 if a form fails here or differs by
more than 1e-3.

The chart shows every form: families side by side, the ratio from below to above.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bench.measuring import (
    Summary,
    alternate,
    geometric_mean,
    markdown_table,
    plan_for,
    text_table,
    timed,
)
from bench.peer_runs import Loaded, load_onnxruntime, load_ours
from lowerdeck.engines import Processes
from models.operator_forms import Form, forms, opened
from models.random_forms import random_forms

LARGEST_ERROR = 1e-3
SLOW = 0.9
"""Ratios below this are listed as slow; for calls below 20 us, where Python takes part, 0.75."""
_SLOW_CALL, _SHORT = 0.75, 20e-6


@dataclass(frozen=True)
class Measured:
    """A form in both."""

    name: str
    family: str
    ours: float
    onnxruntime: float
    """Medians in seconds."""
    error: float

    @property
    def ratio(self) -> float:
        """Above 1, ours is faster."""
        return self.onnxruntime / self.ours

    @property
    def is_slow(self) -> bool:
        """True if a user would notice."""
        return self.ratio < (_SLOW_CALL if self.onnxruntime < _SHORT else SLOW)


@dataclass(frozen=True)
class Failed:
    """A form that one of the two does not run."""

    name: str
    who: str
    reason: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something fails here or is wrong."""
    options = _parse(arguments)
    source = (options.random, options.seed)
    chosen = {n: f for n, f in _forms(*source).items() if re.search(options.only, n)}
    way = (options.threads, options.open)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.folder or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        jobs = [(str(folder), name, way, source) for name in chosen]
        done = Processes(options.jobs).deal(_compile, jobs)
        failures = {name: future.result() for (_, name, _, _), future in done}
        compiled = time.perf_counter() - start
        measured: list[Measured] = []
        failed = [Failed(n, "lowerdeck", reason) for n, reason in failures.items() if reason]
        for name, form in chosen.items():
            if failures[name]:
                continue
            one = _measure(folder, name, form.family, options.threads, options.seconds)
            if isinstance(one, Failed):
                failed.append(one)
            else:
                measured.append(one)
            print(f"\r{len(measured) + len(failed)} of {len(chosen)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    measured.sort(key=lambda one: one.ratio)
    print(render(measured, failed, options.threads, compiled))
    if options.json:
        data = {"measured": [asdict(m) for m in measured], "failed": [asdict(f) for f in failed]}
        Path(options.json).write_text(json.dumps(data, indent=1))
    if options.markdown:
        Path(options.markdown).write_text(_families(measured, markdown_table) + "\n")
    if options.chart:
        Path(options.chart).write_text(chart(measured))
    ours = [one for one in failed if one.who == "lowerdeck"]
    return int(bool(ours) or any(one.error > LARGEST_ERROR for one in measured))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="forms by name")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many other forms")
    parser.add_argument("--seed", type=int, default=0, help="of these")
    parser.add_argument("--open", action="store_true", help="inputs of unknown dimensions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each form")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="compilations at a time"
    )
    parser.add_argument("--folder", metavar="DIR", help="keep models and C there")
    parser.add_argument("--json", metavar="F")
    parser.add_argument("--markdown", metavar="F")
    parser.add_argument("--chart", metavar="F")
    return parser.parse_args(arguments)


@cache
def _forms(count: int, seed: int) -> Mapping[str, Form]:
    """The listed forms, or so many others."""
    return random_forms(count, seed) if count else forms()


def _compile(job: tuple[str, str, tuple[int, bool], tuple[int, int]]) -> str:
    """Write a form and compile it; what went wrong, or nothing."""
    folder, name, (threads, is_open), source = job
    model, inputs = _forms(*source)[name].build()
    model = opened(model) if is_open else model
    path = Path(folder, f"{name}.onnx")
    path.write_bytes(model.SerializeToString())
    np.savez(path.with_suffix(".npz"), **cast(Any, inputs))
    from bench.peer_runs import compile_model

    built = path.with_suffix("")
    built.mkdir(exist_ok=True)
    try:
        compile_model(str(path), str(built), threads, strict_accuracy=False)
    except Exception as error:  # the reason is what is reported
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return ""


def _measure(
    folder: Path, name: str, family: str, threads: int, seconds: float
) -> Measured | Failed:
    path = folder / f"{name}.onnx"
    inputs: dict[str, NDArray[Any]] = dict(np.load(path.with_suffix(".npz")))
    try:
        peer = load_onnxruntime(str(path), inputs, threads)
        peer.call()
    except Exception as error:  # onnxruntime's own classes share no base
        return Failed(name, "onnxruntime", str(error).splitlines()[0][:120])
    try:
        ours, _ = load_ours(str(path.with_suffix("")), inputs, threads)
        contenders = {"ours": timed(ours.call), "peer": timed(peer.call)}
        first = {key: min(run() for _ in range(3)) for key, run in contenders.items()}
        times = alternate(contenders, plan_for(first.values(), seconds))
    except RuntimeError as error:
        return Failed(name, "lowerdeck", str(error).splitlines()[0][:200])
    medians = {key: Summary.of(values).median for key, values in times.items()}
    return Measured(name, family, medians["ours"], medians["peer"], _error(ours, peer))


def _error(ours: Loaded, peer: Loaded) -> float:
    """The largest difference of all outputs, each relative to the largest value in it."""
    worst = 0.0
    for name, expected in peer.outputs().items():
        found, expected = ours.outputs()[name].astype("f8"), expected.astype("f8")
        if found.shape != expected.shape:
            return np.inf
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        with np.errstate(invalid="ignore"):
            difference = np.where(same, 0, np.abs(found - expected))
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        worst = max(worst, float(difference.max(initial=0) / max(size, 1e-30)))
    return worst if worst == worst else np.inf


# The report


def render(
    measured: Sequence[Measured], failed: Sequence[Failed], threads: int, compiled: float
) -> str:
    """All forms, the slowest first, then families, then what was not run."""
    rows = [
        (
            m.name,
            f"{m.ratio:.3f}",
            f"{m.ours * 1e6:.1f}",
            f"{m.onnxruntime * 1e6:.1f}",
            f"{m.error:.0e}",
        )
        for m in measured
    ]
    ratios = [m.ratio for m in measured]
    slow = sum(m.is_slow for m in measured)
    summary = (
        f"{len(measured)} forms, {threads} thread{'s' if threads != 1 else ''}: geometric mean "
        f"{geometric_mean(ratios):.3f} times as fast as onnxruntime, {slow} slow, "
        f"{sum(r < 1 for r in ratios)} under 1, {sum(r < 0.5 for r in ratios)} under 0.5; "
        f"{sum(m.error > LARGEST_ERROR for m in measured)} differ; compiled in {compiled:.0f} s"
    )
    parts = [
        text_table(("form", "ratio", "us", "onnxruntime us", "error"), rows),
        _families(measured, text_table),
        *(f"{f.name}: {f.who}: {f.reason}" for f in failed),
        summary,
    ]
    return "\n\n".join(parts)


def _by_family(measured: Sequence[Measured]) -> Mapping[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for one in sorted(measured, key=lambda m: m.family):
        found.setdefault(one.family, []).append(one)
    return found


def _families(measured: Sequence[Measured], table: Any) -> str:
    head = ("family", "forms", "geometric mean", "lowest", "slow", "the slowest form")
    rows: list[tuple[str, ...]] = []
    for family, own in _by_family(measured).items():
        worst = min(own, key=lambda m: m.ratio)
        mean = geometric_mean(m.ratio for m in own)
        slow = sum(m.is_slow for m in own)
        counts = (str(len(own)), f"{mean:.2f}", f"{worst.ratio:.2f}", str(slow))
        rows.append((family, *counts, worst.name))
    return table(head, rows)


_HEIGHT, _COLUMN, _LEFT, _BOTTOM = 420, 34, 60, 130
_LOWEST, _HIGHEST = 0.125, 16.0


def chart(measured: Sequence[Measured]) -> str:
    """An SVG: a column a family, a dot a form, by its ratio on a logarithmic scale."""
    families = _by_family(measured)
    width = _LEFT + _COLUMN * len(families) + 10

    def height(ratio: float) -> float:
        share = np.log(np.clip(ratio, _LOWEST, _HIGHEST) / _LOWEST) / np.log(_HIGHEST / _LOWEST)
        return 10 + float(1 - share) * (_HEIGHT - 20)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT + _BOTTOM}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{_HEIGHT + _BOTTOM}" fill="white"/>',
    ]
    for ratio in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16):
        y, color = height(ratio), "black" if ratio == 1 else "#ddd"
        lines += [
            f'<line x1="{_LEFT}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>',
        ]
    for column, (family, own) in enumerate(families.items()):
        x = _LEFT + _COLUMN * (column + 0.5)
        for one in own:
            color = "#c33" if one.is_slow else "#269"
            lines.append(
                f'<circle cx="{x:.1f}" cy="{height(one.ratio):.1f}" r="3" fill="{color}"'
                f' fill-opacity="0.6"><title>{one.name}: {one.ratio:.2f}</title></circle>'
            )
        y = _HEIGHT + 8
        lines.append(
            f'<text x="{x:.1f}" y="{y}" text-anchor="end" transform="rotate(-60 {x:.1f} {y})">'
            f"{family}</text>"
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(main())
