"""`lowerdeck tune`: what every kernel of many models takes by every schedule, in one database."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.arguments import checking_options
from lowerdeck.tools.command import add_command, cluster_at, command_options, seconds
from lowerdeck.tools.common import ToolError, message_of, user_errors

if TYPE_CHECKING:
    from lowerdeck.engines import Machines
    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.schedules import Database, Setting
    from lowerdeck.tune import Kernel, Measured


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "tune",
        run,
        "measure the schedules of all kernels of models, each kernel once, into a database",
        example="lowerdeck tune a.onnx b.tflite --targets x86-64-v3 --database all.db",
        takes_several=True,
    )
    one.add_argument(
        "--database",
        metavar="DB",
        required=True,
        help="the file that is added to, or made; what it has is not measured again, and compile "
        "--schedules DB takes what is faster",
    )
    one.add_argument(
        "--targets",
        nargs="+",
        metavar="T",
        default=["native"],
        help="what is compiled for, on machines that it runs on (default: native)",
    )
    one.add_argument(
        "--seconds",
        type=seconds,
        default=60.0,
        metavar="S",
        help="most seconds for the runs of a model; less where intervals are small before "
        "(default: 60)",
    )
    one.add_argument(
        "--merge",
        nargs="+",
        metavar="DB",
        default=[],
        help="add what these databases have; of equal entries the one with the smaller interval",
    )
    one.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where it is measured: on this machine (default), or on all nodes of a cluster of "
        "Ray, one kernel at a time on each (pip install 'lowerdeck[ray]')",
    )
    one.add_argument(
        "--address",
        metavar="A",
        help="the cluster of --engine ray (default: $RAY_ADDRESS, else one on this machine alone)",
    )


def run(args: argparse.Namespace) -> int:
    """Merge, then measure what is not there yet; 1 if models could not be measured."""
    from lowerdeck.lowering.pipeline import check_options
    from lowerdeck.schedules import Database, DatabaseError
    from lowerdeck.tools.progress import progress

    if not args.models and not args.merge:
        raise ToolError("lowerdeck tune: give models to measure, or --merge")
    if args.address is not None and args.engine != "ray":
        raise ToolError("lowerdeck: --address: is for --engine ray")
    with progress() as shown:
        options = replace(command_options(args, shown), progress=_say_nothing, warn=_say_nothing)
    options = replace(options, finished=None, rewritten=None)  # of this process alone
    with checking_options("lowerdeck"):
        for target in args.targets:
            check_options(replace(options, target=target))
    try:
        others = [Database(path) for path in args.merge]
        database = Database(args.database, create=True)
        for other in others:
            print(f"{other.path}: {database.merge(other)} times")
        if not args.models:
            return 0
        campaign = Campaign(database, _engine(args), args.seconds)
        return campaign.run([os.path.abspath(m) for m in args.models], args.targets, options)
    except DatabaseError as error:
        raise ToolError(str(error)) from error


def _say_nothing(text: str) -> None:
    del text


def _engine(args: argparse.Namespace) -> Machines:
    if args.engine == "local":
        from lowerdeck.engines import Processes

        return Processes(1)
    return cluster_at(args.address, "--engine")


@dataclass(frozen=True)
class Job:
    """A model for a target, and the kernels of it that are to be measured."""

    model: str
    setting: Setting
    kernels: Sequence[Kernel] = ()


class Campaign:
    """Measures what a database does not have yet."""

    def __init__(self, database: Database, machines: Machines, seconds: float) -> None:
        self._database = database
        self._machines = machines
        self._seconds = seconds
        self._problems: list[str] = []

    def run(self, models: Sequence[str], targets: Sequence[str], options: CompileOptions) -> int:
        """Measure all kernels of models for targets; 1 if there were problems, which are told."""
        groups = self._groups(targets)
        kernels: dict[Setting, dict[str, Sequence[Kernel]]] = {}
        listed = {s: [Job(model, s) for model in models] for s in groups}
        for job, future in self._dealt(partial(_kernels, options), groups, listed):
            if (found := self._result(job, future)) is not None:
                kernels.setdefault(job.setting, {})[job.model] = found
        jobs = {s: self._jobs(s, models, found) for s, found in kernels.items()}
        work = partial(_measure, options, self._seconds)
        counts: Counter[str] = Counter()
        for job, future in self._dealt(work, groups, jobs):
            if (found := self._result(job, future)) is not None:
                self._keep(job, found)
                counts["kernels"] += len(found)
                name = os.path.basename(job.model)
                text = f"{name} for {job.setting.target}: {len(found)} kernels measured"
                print(text, file=sys.stderr, flush=True)
        faster = sum(self._count_faster(s, found) for s, found in kernels.items())
        print(f"{counts['kernels']} kernels measured, {faster} with a faster schedule than by rule")
        if self._problems:
            raise ToolError("\n".join(self._problems))
        return 0

    def _groups(self, targets: Sequence[str]) -> dict[Setting, list[str]]:
        """The machines by what they measure; ToolError for targets that none of them runs."""
        groups: dict[Setting, list[str]] = {}
        missing = dict.fromkeys(targets, "no machine")
        for machine, facts in self._machines.each(partial(_facts, [*targets])).items():
            for target, found in facts.items():
                if isinstance(found, str):
                    missing[target] = found
                else:
                    groups.setdefault(found, []).append(machine)
        absent = [t for t in targets if not any(setting.target == t for setting in groups)]
        if absent:
            lines = [
                f"lowerdeck tune: --targets {t}: nothing to measure it on: {missing[t]}"
                for t in absent
            ]
            raise ToolError("\n".join(lines))
        return groups

    def _dealt(
        self,
        work: Any,
        groups: Mapping[Setting, Sequence[str]],
        jobs: Mapping[Setting, Sequence[Job]],
    ) -> Iterator[tuple[Job, Any]]:
        """The jobs on their machines; those that serve several settings take one after another."""
        by_machine: dict[str, list[Setting]] = {}
        for setting, machines in groups.items():
            for machine in machines:
                by_machine.setdefault(machine, []).append(setting)
        # Machines with the same settings share their jobs.
        queues: dict[tuple[Setting, ...], Iterator[Job]] = {}
        for settings in by_machine.values():
            own = [job for setting in settings for job in jobs.get(setting, ())]
            queues.setdefault(tuple(settings), iter(own))
        given = {machine: queues[tuple(settings)] for machine, settings in by_machine.items()}
        return self._machines.deal_alone(work, given)

    def _result(self, job: Job, future: Any) -> Any:
        error = future.exception()
        if error is None:
            return future.result()
        from lowerdeck.binding import RunError
        from lowerdeck.engines import LostTask

        if not isinstance(error, (*user_errors(), RunError, LostTask, ValueError)):
            raise error
        self._problems.append(message_of(error, job.model))
        return None

    def _jobs(
        self, setting: Setting, models: Sequence[str], found: Mapping[str, Sequence[Kernel]]
    ) -> list[Job]:
        """Each kernel with the first model that has it; what is best elsewhere comes early."""
        known = self._database.measured(setting)
        best = self._best_anywhere(setting.target)
        jobs: list[Job] = []
        for model in models:
            wanted: list[Kernel] = []
            for kernel in found.get(model, ()):
                if not kernel.key or kernel.key in known:
                    continue
                known.add(kernel.key)
                first, *others = kernel.candidates
                others.sort(key=lambda one, key=kernel.key: one not in best.get(key, ()))
                wanted.append(replace(kernel, candidates=[first, *others]))
            if wanted:
                jobs.append(Job(model, setting, wanted))
        return jobs

    def _best_anywhere(self, target: str) -> dict[str, set[str]]:
        """By kernel, the schedules that were the fastest ones of a processor."""
        least: dict[tuple[str, ...], tuple[float, str]] = {}
        for time in self._database.times(target):
            place = time.kernel, time.processor, time.compiler, time.revision
            least[place] = min(least.get(place, (float("inf"), "")), (time.seconds, time.candidate))
        found: dict[str, set[str]] = {}
        for (kernel, *_), (_, candidate) in least.items():
            found.setdefault(kernel, set()).add(candidate)
        return found

    def _keep(self, job: Job, found: Mapping[str, Sequence[Measured]]) -> None:
        from lowerdeck.schedules import Time

        setting = job.setting
        kernels = {kernel.name: kernel for kernel in job.kernels}
        where = setting.target, setting.processor, setting.compiler, setting.revision
        self._database.add(
            Time(
                kernels[name].key,
                *where,
                one.candidate,
                kernels[name].ranks[one.candidate],
                one.seconds,
                one.spread,
            )
            for name, times in found.items()
            for one in times
        )

    def _count_faster(self, setting: Setting, found: Mapping[str, Sequence[Kernel]]) -> int:
        offered = {
            kernel.key: kernel.candidates
            for kernels in found.values()
            for kernel in kernels
            if kernel.key
        }
        return len(self._database.best(offered, setting.target, setting.processor))


# What machines do


def _facts(targets: Sequence[str]) -> dict[str, Setting | str]:
    """By target, what times of this machine are taken by; or why it takes none."""
    import lowerdeck
    from lowerdeck.build import compiler_version, require_compiler
    from lowerdeck.cache import compiler_identity
    from lowerdeck.lowering.targets import NATIVE, machine_key, obstacle
    from lowerdeck.schedules import Setting

    compiler = compiler_version(tuple(require_compiler())).partition("\n")[0]
    revision = f"{lowerdeck.__version__} {compiler_identity()[:16]}"
    found: dict[str, Setting | str] = {}
    for target in targets:
        problem = obstacle(target)
        found[target] = problem or Setting(target, machine_key(NATIVE), compiler, revision)
    return found


def _kernels(options: CompileOptions, job: Job) -> Sequence[Kernel]:
    from lowerdeck.tune import kernels_of

    return kernels_of(job.model, replace(options, target=job.setting.target))


def _measure(options: CompileOptions, seconds: float, job: Job) -> Mapping[str, Sequence[Measured]]:
    """The times of the kernels of a job, on one core, which this process stays on meanwhile."""
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.tools.command import uncopied
    from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs
    from lowerdeck.tune import measure

    options = replace(options, target=job.setting.target)
    module, _ = import_and_lower(job.model, "legal", options)
    inputs = uncopied(sample_inputs(inputs_of(module)))
    cores = os.sched_getaffinity(0)
    try:
        if options.threads == 1:
            os.sched_setaffinity(0, {max(cores)})
        tried = {kernel.name: kernel.candidates for kernel in job.kernels}
        return measure(job.model, options, inputs, tried, seconds)
    finally:
        os.sched_setaffinity(0, cores)
