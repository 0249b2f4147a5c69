"""`lowerdeck bench --trace`: a run as a timeline, for Perfetto or chrome://tracing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowerdeck.compiler import KernelEvent, KernelTimes, Profile

_PROCESS, _RUN, _KERNELS = 1, 0, 1
"""Numbers of the process and of its rows."""


def trace_data(model: str, events: Sequence[KernelEvent], profile: Profile | None) -> Any:
    """
    The timeline as JSON: a row with the run as a whole, one with its kernels, and one for each
    thread with the parts of kernels that it has computed.

    Times of kernels are those of the first thread, which waits for the others after each.
    """
    kernels: Sequence[KernelTimes] = () if profile is None else profile.kernels
    parts = [part for event in events for part in event.parts]
    threads = sorted({part.thread for part in parts})
    end = max((one.end for one in (*events, *parts)), default=0.0)
    return {
        "displayTimeUnit": "ms",
        "traceEvents": [
            _named("process_name", 0, model),
            _named("thread_name", _RUN, "run"),
            _named("thread_name", _KERNELS, "kernels (first thread, until all are done)"),
            _event(model, _RUN, 0.0, end, {}),
            *(
                _event(
                    event.kernel,
                    _KERNELS,
                    event.start,
                    event.end,
                    _facts(kernels[event.position], event) if kernels else {},
                )
                for event in events
            ),
            *(_named("thread_name", _KERNELS + 1 + k, f"thread {k}") for k in threads),
            *(
                _event(event.kernel, _KERNELS + 1 + part.thread, part.start, part.end, {})
                for event in events
                for part in event.parts
            ),
        ],
    }


def _named(what: str, row: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": row, "args": {"name": name}}


def _event(name: str, row: int, start: float, end: float, facts: Any) -> dict[str, Any]:
    return {
        "name": name,
        "cat": "kernel",
        "ph": "X",
        "ts": start * 1e6,
        "dur": (end - start) * 1e6,
        "pid": _PROCESS,
        "tid": row,
        "args": facts,
    }


def _facts(times: KernelTimes, event: KernelEvent) -> dict[str, Any]:
    """What a click on an event shows."""
    facts: dict[str, Any] = {
        "nodes": ", ".join(times.nodes),
        "shapes": times.shapes,
        "schedule": times.schedule,
        "lanes": times.lanes,
        "best us": times.seconds / max(times.calls, 1) * 1e6,
    }
    length = event.end - event.start
    if times.multiply_adds and times.calls and length > 0:
        facts["GFLOP/s"] = 2 * times.multiply_adds / times.calls / length / 1e9
    if times.bytes and times.calls and length > 0:
        facts["GB/s"] = times.bytes / times.calls / length / 1e9
    return facts
