"""
Where independent tasks run: in this process, or in several of this machine; `lowerdeck.ray.Cluster`
is the same for a cluster.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from lowerdeck.dialects.errors import LowerdeckError

__all__ = ["Engine", "InProcess", "LostTask", "Machines", "Processes", "limited", "lost"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class LostTask(LowerdeckError, RuntimeError):
    """The process that ran a task has ended: it crashed, or had used up the time it was given."""


class Engine(Protocol):
    """Runs tasks that do not depend on each other."""

    def deal(
        self,
        work: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        seconds: float | None = None,
    ) -> Iterator[tuple[Task, Future[Result]]]:
        """
        Each task with what `work` gives or raises for it, in the order in which they end.

        Tasks are drawn one by one as there is room for them, so that they can depend on what has
        become of earlier ones. A process that is still at a task after `seconds` is ended; the
        result is LostTask then, as after any other end of a process. Other processes import what
        `work` and `tasks` refer to by name.
        """
        ...


HERE = "this machine"
"""The name of the only machine of engines without a cluster."""


class Machines(Protocol):
    """An engine that knows on which machine a task runs."""

    def each(self, look: Callable[[], Result]) -> dict[str, Result]:
        """What `look` gives on each machine, by the name of the machine."""
        ...

    def deal_alone(
        self, work: Callable[[Task], Result], queues: Mapping[str, Iterator[Task]]
    ) -> Iterator[tuple[Task, Future[Result]]]:
        """
        As `Engine.deal`, with one task at a time on each machine and nothing else beside it. By
        machine, what its tasks are drawn from; machines may share a queue. A task whose machine is
        lost runs on another one of the same queue; it is LostTask if there is none.
        """
        ...


class InProcess:
    """This process, one task after the other; there is no limit of time."""

    def deal(
        self,
        work: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        seconds: float | None = None,
    ) -> Iterator[tuple[Task, Future[Result]]]:
        """See `Engine.deal`."""
        del seconds
        for task in tasks:
            future: Future[Result] = Future()
            try:
                future.set_result(work(task))
            except Exception as error:
                future.set_exception(error)
            yield task, future


class Processes:
    """`jobs` processes of this machine, forked from this one."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def deal(
        self,
        work: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        seconds: float | None = None,
    ) -> Iterator[tuple[Task, Future[Result]]]:
        """See `Engine.deal`."""
        waiting = iter(tasks)
        call = partial(limited, work, seconds)
        # Each process has an executor of its own, so that its end loses one task.
        idle = [_process() for _ in range(self.jobs)]
        running: dict[Future[Result], tuple[Task, ProcessPoolExecutor]] = {}
        try:
            while True:
                for task in islice(waiting, len(idle)):
                    process = idle.pop()
                    running[process.submit(call, task)] = task, process
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, process = running.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        process.shutdown()
                        process = _process()
                        future = lost("the process has ended")
                    idle.append(process)
                    yield task, future
        finally:
            for _, process in running.values():
                process.shutdown(wait=False, cancel_futures=True)
            # Without a wait, an executor that is just closing its pipes may be woken at exit.
            for process in idle:
                process.shutdown()

    def each(self, look: Callable[[], Result]) -> dict[str, Result]:
        """See `Machines.each`."""
        return {HERE: look()}

    def deal_alone(
        self, work: Callable[[Task], Result], queues: Mapping[str, Iterator[Task]]
    ) -> Iterator[tuple[Task, Future[Result]]]:
        """See `Machines.deal_alone`."""
        return Processes(1).deal(work, queues[HERE])


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("fork"))


def lost(text: str) -> Future[Any]:
    """What becomes of a task whose process has ended."""
    future: Future[Any] = Future()
    future.set_exception(LostTask(text))
    return future


def limited(work: Callable[[Task], Result], seconds: float | None, task: Task) -> Result:
    """`work` of a task; the process ends if it takes longer, whatever it is in the middle of."""
    if seconds is None:
        return work(task)
    # The alarm has the action that it has in every new process, which needs no interpreter.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work(task)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
