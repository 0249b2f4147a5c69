"""
Finds faster schedules than the best by estimate, by trying: `tune`.

Every variant of a model is compiled whole, with one rank of candidates (of any strategy) for all
its kernels, so that as many kernels are tried at once as there are, each on weights and inputs as
cold as in real use.
The variants run in turns; then each kernel gets the schedule that was best for it. What was found
can be written to a file (`write_schedules`) that goes wherever the model goes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, cast

from numpy.typing import NDArray

from lowerdeck import cache as disk_cache
from lowerdeck.compiler import CompileOptions, Model, compile_with, import_and_lower, key_of
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.files import replacing
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.compute_in_place import OVER
from lowerdeck.lowering.entry.divide_functions import REST
from lowerdeck.lowering.strategies.registry import described

MAX_VARIANTS = 12

_COMPILING = 0.6
"""The part of the time after which no more variants are compiled."""

_GAIN = 0.02
"""What a kernel must save to leave the best by rule: less is within the noise."""

_VERSION_KEY, _VERSION = "lowerdeck_schedules", 1

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
    The options with the schedules that make the model fastest on these inputs.

    What was found is kept on disk, so that asking for the same model again takes no time. It takes
    longer than `seconds` if compiling two variants does. ValueError if the inputs are not those of
    the model, BuildError if there is no C compiler.
    """
    path = _path(model, options)
    if path is not None and os.path.exists(path):
        try:
            known = read_schedules(path)
        except ValueError:
            pass  # damaged: it is written anew
        else:
            tell(f"{len(known)} kernels as tuned before")
            return replace(options, schedules=known)
    end = time.perf_counter() + seconds
    variants = _variants(model, options, inputs, seconds, tell)
    _measure(variants, inputs, end, tell)
    ranks = best_ranks({variant.rank: variant.times for variant in variants})
    tuned = replace(options, schedules=_schedules(model, options, ranks))
    if tuned.schedules and not _is_faster(model, options, tuned, inputs, tell):
        tuned = replace(options, schedules={})
    if path is not None:
        with suppress(OSError):  # a cache that cannot be written to is none
            write_schedules(path, tuned.schedules)
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


def _schedules(model: str, options: CompileOptions, ranks: Mapping[str, int]) -> dict[str, str]:
    """By kernel, the schedule of a rank, for ranks by function."""
    found: dict[str, str] = {}
    for rank in sorted(set(ranks.values())):
        module, _ = import_and_lower(model, "kernels", replace(options, rank=rank))
        kernels = {op.sym_name.data: op for op in all_ops(module) if isinstance(op, KernelOp)}
        for function in (name for name, own in ranks.items() if own == rank):
            name = kernel_of(function, kernels)
            if name is not None and (schedule := kernels[name].schedule) is not None:
                found[name] = described(kernels[name], schedule.data)
    return found


def kernel_of(function: str, kernels: Collection[str]) -> str | None:
    """The kernel whose loops a function has: its own name, or one that it was made from."""
    while function not in kernels:
        function = max((function.rpartition(mark)[0] for mark in (OVER, REST)), key=len)
        if not function:
            return None
    return function


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


def write_schedules(path: str, schedules: Mapping[str, str]) -> None:
    """Write what was found to a file; OSError if that is not possible."""
    with replacing(path) as file:
        json.dump({_VERSION_KEY: _VERSION, "schedules": dict(schedules)}, file, indent=1)
        file.write("\n")


def read_schedules(path: str) -> dict[str, str]:
    """
    What a file holds, for `CompileOptions.schedules`.

    OSError if it cannot be read, ValueError if it is no such file. Whether it fits a model shows
    when that is compiled: schedules for other shapes, or that are no longer offered, are refused.
    """
    with open(path, encoding="utf-8") as file:
        try:
            data: object = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None
    known = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    if known.get(_VERSION_KEY) != _VERSION:
        raise ValueError(f"{path}: holds no schedules of this version ({_VERSION})")
    schedules = known.get("schedules")
    found = cast("dict[str, object]", schedules) if isinstance(schedules, dict) else {"": None}
    whole = {name: text for name, text in found.items() if isinstance(text, str)}
    if len(whole) != len(found):
        raise ValueError(f"{path}: damaged: its schedules are no texts by name")
    return whole
