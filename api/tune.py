"""
Finds faster schedules than the best by estimate, by trying: `tune`.

Every variant of a model is compiled whole, with one rank of candidates (of any strategy) for all
its kernels, so that as many kernels are tried at once as there are, each on weights and inputs as
cold as in real use.
The variants run in turns; then each kernel gets the schedule that was best for it. What was found
can be written to a file (`write_schedules`) that goes wherever the model goes.

Campaigns over many models (`kernels_of`, `measure`) measure each kernel once, known by its
`kernel_key`, and keep all times in a `lowerdeck.schedules.Database`, from which `schedules_from`
takes those of a model.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck import cache as disk_cache
from lowerdeck.compiler import CompileOptions, Model, compile_with, import_and_lower, key_of
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.files import replacing
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.buffers.coding import UncodableError, encode_region
from lowerdeck.lowering.entry.compute_in_place import OVER
from lowerdeck.lowering.entry.divide_functions import REST
from lowerdeck.lowering.form.choose_strategies import ChooseStrategiesPass
from lowerdeck.lowering.strategies.base import Setting as LoweringSetting
from lowerdeck.lowering.strategies.registry import candidates, described
from lowerdeck.lowering.targets import NATIVE, machine_key
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.structure import nameless_key
from lowerdeck.schedules import GAIN, Database

MAX_VARIANTS = 12

_COMPILING = 0.6
"""The part of the time after which no more variants are compiled."""

_VERSION_KEY, _VERSION = "lowerdeck_schedules", 1

_MIN_ROUNDS = 5
_MIN_SAMPLES = 7
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
        if others[rank] < (1 - GAIN) * by_rule:
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


# Campaigns


@dataclass(frozen=True)
class Kernel:
    """A kernel of a model, before it has a schedule."""

    name: str
    """That of the first of equal kernels of the model."""
    key: str
    """Equal for equal kernels of all models; empty for one that only its own model has."""
    candidates: Sequence[str]
    """Its schedules, in the order in which they are tried: the best by estimate first."""
    ranks: Mapping[str, int]
    """Their places by estimate."""


def kernel_key(kernel: KernelOp) -> str:
    """
    What identifies a kernel, its layouts and which of its inputs are constants, in any model and
    process; empty if it holds constants itself, or operations from outside.
    """
    properties = {name: str(value) for name, value in kernel.properties.items()}
    properties |= {name: str(value) for name, value in kernel.attributes.items()}
    properties.pop("sym_name", None)
    constants = [kernel.is_constant(position) for position in range(len(kernel.inputs))]
    try:
        body = encode_region(kernel.body)
    except UncodableError:
        return ""
    facts = repr((sorted(properties.items()), constants)).encode()
    return hashlib.sha256(facts + body).hexdigest()


def kernels_of(model: str, options: CompileOptions) -> list[Kernel]:
    """The kernels of a model that have a choice of schedules, each of equal ones once."""
    found: list[Kernel] = []
    instead = {ChooseStrategiesPass.name: _Listing(found)}
    import_and_lower(model, "kernels", replace(options, rank=0, schedules={}), instead=instead)
    return found


class _Listing(ModulePass):
    """`choose-strategies`, which tells what there is to choose from."""

    name = ChooseStrategiesPass.name

    def __init__(self, found: list[Kernel]) -> None:
        self._found = found

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        setting = LoweringSetting.of(options_of(ctx))
        seen: set[Hashable] = set()
        for kernel in [k for k in all_ops(op) if isinstance(k, KernelOp)]:
            if (nameless := nameless_key(kernel)) in seen:
                continue
            seen.add(nameless)
            ways = sorted(candidates(kernel, setting), key=lambda way: way.cycles)
            texts = dict.fromkeys(described(kernel, way.schedule) for way in ways)
            if len(texts) > 1:
                ranks = {text: rank for rank, text in enumerate(texts)}
                name = kernel.sym_name.data
                self._found.append(Kernel(name, kernel_key(kernel), [*texts], ranks))
        ChooseStrategiesPass().apply(ctx, op)


@dataclass(frozen=True)
class Measured:
    """What a kernel took by one of its candidates."""

    candidate: str
    seconds: float
    spread: float


def measure(
    model: str,
    options: CompileOptions,
    inputs: Inputs,
    tried: Mapping[str, Sequence[str]],
    seconds: float,
) -> dict[str, list[Measured]]:
    """
    The times of kernels, by name, by the first of their candidates in `tried`; all others have the
    best by estimate.

    Variants of the whole model, each with one candidate of every kernel, run in turns, on a machine
    on which no other process measures meanwhile. They stop when the intervals of all that may be
    the fastest are small, or after `seconds`.
    """
    count = min(max(map(len, tried.values()), default=0), MAX_VARIANTS)
    models: list[Model] = []
    for place in range(count):
        schedules = {name: own[place] for name, own in tried.items() if place < len(own)}
        variant = replace(options, profile=True, schedules=schedules)
        models.append(compile_with(model, variant, cache=False))
    samples: dict[str, dict[int, list[float]]] = {name: {} for name in tried}
    with _alone():
        end, rounds, places = time.perf_counter() + seconds, 0, {*range(count)}
        while rounds < _MIN_SAMPLES or (time.perf_counter() < end and places):
            rounds += 1
            for place in sorted(places):
                for name, taken in _times(models[place], inputs, tried).items():
                    if place < len(tried[name]):
                        samples[name].setdefault(place, []).append(taken)
            if rounds >= _MIN_SAMPLES:
                places = {place for own in samples.values() for place in _undecided(own)}
    return {
        name: [
            Measured(tried[name][place], median(taken), spread_of(taken))
            for place, taken in sorted(own.items())
        ]
        for name, own in sorted(samples.items())
        if own
    }


@contextmanager
def _alone() -> Generator[None]:
    """One process after the other on a machine, however many nodes of a cluster are on it."""
    path = os.path.join(tempfile.gettempdir(), f"lowerdeck-tune-{os.getuid()}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _undecided(samples: Mapping[int, Sequence[float]]) -> list[int]:
    """The candidates of a kernel that may be the fastest, if one of them is not known well."""
    known = {place: (median(taken), spread_of(taken)) for place, taken in samples.items()}
    least = min((middle * (1 + spread) for middle, spread in known.values()), default=0.0)
    may_be = [p for p, (middle, spread) in known.items() if middle * (1 - spread) <= least]
    return [] if all(_is_narrow(samples[place]) for place in may_be) else may_be


def _times(model: Model, inputs: Inputs, names: Collection[str]) -> Times:
    """The least of some runs, by the names of kernels."""
    found: Times = {}
    for kernel in model.profile(inputs, seconds=0).kernels:
        name = kernel_of(kernel.kernel, names) if kernel.schedule else None
        if name is not None:
            found[name] = found.get(name, 0.0) + kernel.seconds
    return found


def spread_of(samples: Sequence[float]) -> float:
    """
    Half of the interval of 95 % of the median, as a part of it: between order statistics, whatever
    the distribution is (Conover, Practical Nonparametric Statistics, 3.2).
    """
    ordered, count = sorted(samples), len(samples)
    below = max(math.floor((count - 1.96 * math.sqrt(count)) / 2), 0)
    return (ordered[count - 1 - below] - ordered[below]) / 2 / max(median(ordered), 1e-12)


def _is_narrow(samples: Sequence[float]) -> bool:
    return spread_of(samples) < GAIN / 2


def schedules_from(database: Database, model: str, options: CompileOptions) -> dict[str, str]:
    """For `CompileOptions.schedules`, what a database knows to be faster for a model's kernels."""
    kernels = kernels_of(model, options)
    offered = {kernel.key: kernel.candidates for kernel in kernels if kernel.key}
    best = database.best(offered, options.target, machine_key(NATIVE))
    return {kernel.name: best[kernel.key] for kernel in kernels if kernel.key in best}


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
