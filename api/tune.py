"""
Finds faster schedules than the best by estimate, by trying: `tune`.

Every variant of a model is compiled whole, with one rank of candidates (of any strategy) for all
its kernels, so that as many kernels are tried at once as there are, each on weights and inputs as
cold as in real use.
The variants run in turns; then each kernel gets the rank that was best for it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, cast

from numpy.typing import NDArray

from lowerdeck import cache as disk_cache
from lowerdeck.compiler import CompileOptions, Model, compile_with, key_of

MAX_VARIANTS = 12

_COMPILING = 0.6
"""The part of the time after which no more variants are compiled."""

_GAIN = 0.02
"""What a kernel must save to leave the best by rule: less is within the noise."""

_MIN_ROUNDS = 5
_RUNS = 3
"""Of a variant in a round; the first one finds another's data in the caches."""

Inputs = Mapping[str, NDArray[Any]]
Times = dict[str, float]
"""Seconds of all calls of a kernel in a run, by its name."""


@dataclass
class Variant:
    """A model with one rank of schedules, and the least time of each kernel so far."""

    rank: int
    model: Model
    schedules: list[str]
    times: Times


def tune(
    model: str,
    options: CompileOptions,
    inputs: Inputs,
    seconds: float,
    tell: Callable[[str], None] = lambda text: None,
) -> CompileOptions:
    """
    The options with the ranks that make the model fastest on these inputs.

    What was found is kept on disk, so that asking for the same model again takes no time. It takes
    longer than `seconds` if compiling two variants does. ValueError if the inputs are not those of
    the model, BuildError if there is no C compiler.
    """
    path = _path(model, options)
    if (known := _read(path)) is not None:
        tell(f"{len(known)} kernels as tuned before")
        return replace(options, ranks=known)
    end = time.perf_counter() + seconds
    variants = _variants(model, options, inputs, seconds, tell)
    _measure(variants, inputs, end, tell)
    ranks = best_ranks({variant.rank: variant.times for variant in variants})
    tuned = replace(options, ranks=ranks)
    if ranks and not _is_faster(model, options, tuned, inputs, tell):
        tuned = replace(options, ranks={})
    _write(path, tuned.ranks)
    return tuned


def best_ranks(times: Mapping[int, Times]) -> dict[str, int]:
    """By kernel the rank that is faster than the best by rule, 0; only where there is one."""
    found: dict[str, int] = {}
    for name, by_rule in times[0].items():
        others = {rank: known[name] for rank, known in times.items() if name in known}
        rank = min(others, key=lambda rank: others[rank])
        if others[rank] < (1 - _GAIN) * by_rule:
            found[name] = rank
    return found


def _variants(
    model: str,
    options: CompileOptions,
    inputs: Inputs,
    seconds: float,
    tell: Callable[[str], None],
) -> list[Variant]:
    """As many as there are different ones, and time for; two at least."""
    start = time.perf_counter()
    variants: list[Variant] = []
    for rank in range(MAX_VARIANTS):
        if len(variants) >= 2 and time.perf_counter() - start > _COMPILING * seconds:
            break
        tell(f"variant {rank + 1}")
        compiled = compile_with(model, replace(options, profile=True, rank=rank), cache=False)
        kernels = compiled.profile(inputs, seconds=0).kernels
        schedules = [kernel.schedule for kernel in kernels]
        if rank and schedules == variants[0].schedules:
            break  # no kernel has so many candidates
        variants.append(Variant(rank, compiled, schedules, {}))
    return variants


def _measure(
    variants: Sequence[Variant], inputs: Inputs, end: float, tell: Callable[[str], None]
) -> None:
    """The variants in turns until the time is over."""
    rounds = 0
    while rounds < _MIN_ROUNDS or time.perf_counter() < end:
        rounds += 1
        tell(f"{len(variants)} variants, round {rounds}")
        for variant in variants:
            times: Times = {}
            for kernel in variant.model.profile(inputs, seconds=0).kernels:
                if kernel.schedule:
                    times[kernel.kernel] = times.get(kernel.kernel, 0.0) + kernel.seconds
            for name, seconds in times.items():
                variant.times[name] = min(seconds, variant.times.get(name, seconds))


def _is_faster(
    model: str,
    options: CompileOptions,
    tuned: CompileOptions,
    inputs: Inputs,
    tell: Callable[[str], None],
) -> bool:
    """True if whole runs are, by the median of pairs."""
    tell("tuned beside untuned")
    calls = [compile_with(model, o, cache=False).prepare(inputs) for o in (options, tuned)]
    ratios: list[float] = []
    for _ in range(_MIN_ROUNDS):
        least = [min(_timed(call) for _ in range(_RUNS)) for call in calls]
        ratios.append(least[1] / least[0])
    tell(f"the tuned model takes {median(ratios):.1%} of the time")
    return median(ratios) < 1


def _timed(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# What is kept


def _path(model: str, options: CompileOptions) -> str | None:
    from lowerdeck.frontends import model_files

    key = key_of(model, model_files(model)[0], options, str(options.threads))
    folder = disk_cache.usable_folder()
    return None if folder is None else os.path.join(folder, f"{key}.tuned.json")


def _read(path: str | None) -> dict[str, int] | None:
    """What was found before; None if there is nothing, or it is damaged."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            ranks: object = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(ranks, dict):
        return None
    found = cast("dict[str, object]", ranks)
    whole = {name: rank for name, rank in found.items() if type(rank) is int}
    return whole if len(whole) == len(found) else None


def _write(path: str | None, ranks: Mapping[str, int]) -> None:
    """Keep what was found; a cache that cannot be written to is none."""
    if path is None:
        return
    scratch = f"{path}.{os.getpid()}"
    try:
        with open(scratch, "w", encoding="utf-8") as file:
            json.dump(dict(ranks), file)
        os.replace(scratch, path)
    except OSError:
        return
