"""`lowerdeck batch`: a model over files of rows."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.command import (
    add_cache_option,
    add_command,
    cluster_at,
    command_options,
    compiled,
)
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    from lowerdeck.batching import Done
    from lowerdeck.ray import Cluster


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "batch",
        run,
        "run a model on all rows of files, and go on where a run was killed",
        example="lowerdeck batch model.onnx --inputs rows/ --output results/",
    )
    one.add_argument(
        "--inputs",
        metavar="DATA",
        required=True,
        help="an .npz file with an array for each input, one row after the other, an .npy file for "
        "the only one, a .parquet, .arrow or .feather file with a column for each (needs pyarrow), "
        "a .tar file with samples, as WebDataset has them, or a folder of such files or of images "
        "(needs Pillow)",
    )
    one.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        dest="folder",
        required=True,
        help="folder to write to: an .npz file for each 8,192 rows of a file, and errors.jsonl; "
        "what is there is not computed again",
    )
    one.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="what computes: this process (default), or Ray on all nodes of a cluster "
        "(pip install 'lowerdeck[ray]')",
    )
    one.add_argument(
        "--address",
        metavar="A",
        help="the cluster of --engine ray (default: $RAY_ADDRESS, else one on this machine alone)",
    )
    one.add_argument(
        "--max-errors",
        type=int,
        default=0,
        metavar="N",
        help="rows that may fail, each with its key and the reason in errors.jsonl (default: 0)",
    )
    one.add_argument(
        "--batch",
        type=int,
        metavar="N",
        help="most rows of a call where the batch dimension of the model is open (default: as many "
        "as make rows fastest); results do not depend on it",
    )
    one.add_argument(
        "--refuse-nan",
        action="store_true",
        help="rows with NaN or infinities fail, instead of being computed",
    )
    add_cache_option(one)


def run(args: argparse.Namespace) -> int:
    """Compute what is not there yet, and say how many rows there are."""
    from lowerdeck.batching import BatchError, Settings, batch
    from lowerdeck.calibration import CalibrationError
    from lowerdeck.tools.progress import progress

    engine = None
    if args.engine == "ray":
        from lowerdeck.ray import RayError, require_ray

        try:
            require_ray()
        except RayError as error:
            raise ToolError(f"lowerdeck: --engine ray: {error}") from error
        engine = OnRay(args.address)
    elif args.address is not None:
        raise ToolError("lowerdeck: --address: is for --engine ray")
    with about(args.model), progress() as shown:
        model = compiled(args, command_options(args, shown))
    settings = Settings(args.batch, args.max_errors, allow_nan=not args.refuse_nan)
    try:
        rows, failed = batch(
            model, args.inputs, args.folder, settings, engine=engine, progress=Told()
        )
    except (BatchError, CalibrationError) as error:
        raise ToolError(str(error)) from error
    print(f"{rows} rows, {failed} failed; wrote {args.folder}")
    return 0


class OnRay:
    """
    A cluster, of which the start, which takes seconds, goes on while the model is compiled and rows
    are looked at.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._found: Future[Cluster] = Future()
        self._ended = Event()
        Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        try:
            cluster = cluster_at(self._address, "--engine")
            cluster.warm_up("lowerdeck.batching")
            self._found.set_result(cluster)
        except BaseException as error:
            self._found.set_exception(error)
        self._ended.wait()  # what Ray starts ends with the thread that has started it

    def deal(
        self,
        work: Callable[[Any], Any],
        tasks: Iterable[Any],
        *,
        seconds: float | None = None,
    ) -> Iterator[tuple[Any, Future[Any]]]:
        """See `lowerdeck.engines.Engine`."""
        return self._found.result().deal(work, tasks, seconds=seconds)


class Told:
    """Says on stderr how far it is, at most once a second."""

    def __init__(self) -> None:
        self._begin = self._last = time.perf_counter()
        self._before: int | None = None

    def __call__(self, done: Done | None, rows: int, total: int) -> None:
        """A task has ended; or None has, where so many rows are there, or computed."""
        now = time.perf_counter()
        if self._before is None:
            self._before = rows
            print(f"lowerdeck: {rows} of {total} rows are there", file=sys.stderr)
            return
        if done is not None and done.one_by_one:
            print(
                f"lowerdeck: {done.task.output}: computed row by row: in batches, rows of this "
                "model have other results than alone",
                file=sys.stderr,
            )
        if now - self._last >= 1 or (done is not None and rows == total):
            self._last = now
            speed = (rows - self._before) / (now - self._begin)
            print(f"lowerdeck: {rows} of {total} rows, {speed:.0f} a second", file=sys.stderr)
