"""Models on Ray: `map_batches` over a data set, and a cluster as an engine of tasks."""

from __future__ import annotations

import importlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from lowerdeck.batching import BatchError, Rows, checked_rows
from lowerdeck.calibration import Array, by_name
from lowerdeck.compiler import Model, compile
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.engines import LostTask, limited, lost
from lowerdeck.reading import Source

__all__ = ["Cluster", "RayError", "Served", "deployment", "map_batches", "require_ray"]

T = TypeVar("T")
Result = TypeVar("Result")

_PATIENCE = 30.0
"""Seconds in which a cluster has to answer."""

_LONG_PATIENCE = 120.0
"""Seconds in which a node has to have started a worker, however busy it is."""

_RETRIES = 3
"""How often a task is tried again whose worker or node is lost."""


class RayError(LowerdeckError, RuntimeError):
    """No Ray, or no cluster at an address."""


def map_batches(
    dataset: Any,
    model: Source | Model,
    *,
    batch: int = 64,
    concurrency: int | tuple[int, int] | None = None,
    **options: Any,
) -> Any:
    """
    The outputs of a model for all rows of a `ray.data.Dataset`, as another one.

    The columns that are named as inputs of the model are its inputs, one row a sample; each output
    becomes a column, and columns that are no inputs stay. A call has up to `batch` rows where the
    first dimension of the model is open. Actors compute it, `concurrency` of them, by default one
    for each processor; those of a node share the library and the weights in the cache. `options`
    are those of `lowerdeck.compile`.

    RayError without Ray; BatchError, which ends the run of the data set, for rows that fail.
    """
    ray = _ray()
    compiled = model if isinstance(model, Model) else compile(model, **options)
    if compiled.state:
        raise BatchError(f"{compiled.name}: remembers: a row would depend on those before it")
    if concurrency is None:
        if not ray.is_initialized():
            ray.init()
        concurrency = max(int(ray.cluster_resources().get("CPU", 1)), 1)
    return dataset.map_batches(
        _Mapped,
        fn_constructor_args=(ray.put(compiled),),
        batch_size=batch,
        batch_format="numpy",
        concurrency=concurrency,
    )


class _Mapped:
    """What an actor of `map_batches` does."""

    def __init__(self, model: Any) -> None:
        self._model: Model = model if isinstance(model, Model) else _ray().get(model)
        self._takes_batches: bool | None = None

    def __call__(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        names = {info.name for info in self._model.inputs}
        arrays = {n: _dense(n, array) for n, array in columns.items() if n in names}
        arrays = by_name("the data set", arrays, self._model.inputs)
        count = checked_rows(self._model, "the data set", arrays)
        rows = Rows(self._model, arrays)
        blocks = rows.run(0, count)
        if self._takes_batches is None and len(blocks) == 1 and count > 1:
            self._takes_batches = rows.is_same(blocks[0])
        if self._takes_batches is False:
            blocks = [rows.alone(number) for number in range(count)]
        if failed := [block for block in blocks if block.problem is not None]:
            texts = [f"row {block.rows.start} of a batch: {block.problem}" for block in failed]
            raise BatchError("\n".join(texts))
        outputs = rows.together(blocks, "the data set")
        others = {name: array for name, array in columns.items() if name not in names}
        if both := sorted(others.keys() & outputs.keys()):
            raise BatchError(f"the data set: columns {both} have names of outputs; rename them")
        return {**others, **outputs}


def _dense(name: str, array: Array) -> Array:
    """Rows of lists as one array; BatchError if they have several shapes."""
    if array.dtype != object:
        return array
    try:
        return np.stack([np.asarray(row) for row in array])
    except ValueError as error:
        raise BatchError(f"the data set: column '{name}': {error}") from None


class Served:
    """Answers requests of Ray Serve: JSON with lists of numbers by input gives such by output."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def answer(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for inputs; ValueError or RunError for what the model does not take."""
        types = {info.name: info.dtype for info in self._model.inputs}
        inputs = {name: np.asarray(value, types.get(name)) for name, value in given.items()}
        return {name: array.tolist() for name, array in self._model(inputs).items()}

    async def __call__(self, request: Any) -> dict[str, Any]:
        """What Serve calls."""
        return self.answer(await request.json())


def deployment(model: Source | Model, **options: Any) -> Any:
    """
    A model as an application of Ray Serve, for `ray.serve.run`; each replica is `Served`. `options`
    are those of `lowerdeck.compile`. RayError without Ray.
    """
    _ray()
    compiled = model if isinstance(model, Model) else compile(model, **options)
    return importlib.import_module("ray.serve").deployment(Served).bind(compiled)


class Cluster:
    """
    The cluster at `address`, or that of `RAY_ADDRESS`, or one that is started on this machine: an
    engine (`lowerdeck.engines.Engine`). Files that tasks name lie where all nodes see them, and
    nodes have the same packages.

    RayError without Ray, or if the cluster does not answer within 30 s.
    """

    def __init__(self, address: str | None = None) -> None:
        # Else Ray tries a task that needs more memory than there is again and again.
        os.environ.setdefault("RAY_task_oom_retries", str(_RETRIES))
        self._ray = _ray()
        if not self._ray.is_initialized():
            _connect(self._ray, address or os.environ.get("RAY_ADDRESS"))
        self._warming: list[Any] = []

    def deal(
        self,
        work: Callable[[T], Result],
        tasks: Iterable[T],
        *,
        seconds: float | None = None,
    ) -> Iterator[tuple[T, Future[Result]]]:
        """
        See `Engine.deal`. No more tasks are under way than twice the processors. Those of a lost
        worker or node run again, three times at most; once if they may take `seconds` each time.
        """
        ray = self._ray
        shared = ray.put(work)
        retries = _RETRIES if seconds is None else 1
        remote = ray.remote(num_cpus=1, max_retries=retries)(_run)
        waiting = iter(tasks)
        running: dict[Any, T] = {}
        while True:
            most = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
            # When a node is lost, more are under way than there is room for.
            for task in islice(waiting, max(most - len(running), 0)):
                running[remote.remote([shared], seconds, task)] = task
            if not running:
                return
            ready, _ = ray.wait([*running], num_returns=1)
            for reference in ready:
                yield running.pop(reference), _result(ray, reference)

    def warm_up(self, module: str) -> None:
        """Let as many workers as there are processors import a module, and do not wait for it."""
        remote = self._ray.remote(num_cpus=1, max_retries=0)(_import)
        count = int(self._ray.cluster_resources().get("CPU", 1))
        self._warming = [remote.remote(module) for _ in range(count)]

    def each(self, look: Callable[[], Result]) -> dict[str, Result]:
        """See `Machines.each`; machines are nodes, by their ids."""
        remote = self._ray.remote(num_cpus=0, max_retries=0)(_look)
        nodes = [node["NodeID"] for node in self._alive()]
        calls = {node: remote.options(scheduling_strategy=_on(node)).remote(look) for node in nodes}
        found: dict[str, Result] = {}
        for node, reference in calls.items():
            with suppress(self._ray.exceptions.RayError):  # lost meanwhile: then it is none of them
                found[node] = self._ray.get(reference, timeout=_LONG_PATIENCE)
        return found

    def deal_alone(
        self, work: Callable[[T], Result], queues: Mapping[str, Iterator[T]]
    ) -> Iterator[tuple[T, Future[Result]]]:
        """See `Machines.deal_alone`: a task takes all processors of its node."""
        ray = self._ray
        shared = ray.put(work)
        again: defaultdict[int, list[T]] = defaultdict(list)
        running: dict[Any, tuple[T, str]] = {}
        idle = [*queues]
        while True:
            sizes = {node["NodeID"]: node["Resources"].get("CPU", 1) for node in self._alive()}
            for machine in [machine for machine in idle if machine in sizes]:
                queue = queues[machine]
                for task in islice(chain(again[id(queue)], queue), 1):
                    with suppress(ValueError):
                        again[id(queue)].remove(task)
                    idle.remove(machine)
                    options = {"num_cpus": sizes[machine], "scheduling_strategy": _on(machine)}
                    remote = ray.remote(max_retries=0, **options)(_run)
                    running[remote.remote([shared], None, task)] = task, machine
            if not running:
                break
            (reference,), _ = ray.wait([*running], num_returns=1)
            task, machine = running.pop(reference)
            future = _result(ray, reference)
            if not isinstance(future.exception(), LostTask):
                idle.append(machine)
                yield task, future
            elif any(node["NodeID"] == machine for node in self._alive()):
                idle.append(machine)  # the task has ended its process, not the node
                yield task, future
            else:
                again[id(queues[machine])].append(task)
        for queue in {id(queue): queue for queue in queues.values()}.values():
            for task in chain(again[id(queue)], queue):
                yield task, lost("no machine is left that it could run on")

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]


def _on(node: str) -> Any:
    """That a task runs on a node, and nowhere else."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def require_ray() -> None:
    """RayError if Ray is not installed; it is not imported yet, which takes a second."""
    if find_spec("ray") is None:
        raise RayError("Ray is not installed: pip install 'lowerdeck[ray]'")


def _ray() -> Any:
    require_ray()
    return importlib.import_module("ray")


def _connect(ray: Any, address: str | None) -> None:
    """Connect to a cluster in a given time, or start one on this machine."""
    options = {"log_to_driver": False, "logging_level": "error"}
    if address is None:
        # In this thread: what Ray starts ends with the thread that has started it.
        try:
            ray.init(address="local", include_dashboard=False, **options)
        except Exception as error:
            raise RayError(f"Ray does not start on this machine: {_first_line(error)}") from error
        return
    problems: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, **options)
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if thread.is_alive():
        raise RayError(f"no cluster at {address}: no answer in {_PATIENCE:.0f} s")
    if problems:
        text = f"no cluster at {address}: {_first_line(problems[0])}"
        raise RayError(text) from problems[0]


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _result(ray: Any, reference: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        future.set_exception(error.cause if isinstance(error.cause, Exception) else error)
    except ray.exceptions.RayError as error:
        return lost(_first_line(error))
    return future


def _import(module: str) -> None:
    importlib.import_module(module)


def _look(look: Callable[[], Any]) -> Any:
    return look()


def _run(shared: Sequence[Any], seconds: float | None, task: Any) -> Any:
    """What a worker does."""
    return limited(_work_at(shared[0]), seconds, task)


@lru_cache(maxsize=1)
def _work_at(reference: Any) -> Callable[[Any], Any]:
    """The work of a campaign, with what belongs to it, such as a model: once in each worker."""
    return _ray().get(reference)
