"""Running the graphs of frameworks whose graphs are no functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.frameworks import framework_of
from lowerdeck.dialects.records import record


@record
class GraphRunner:
    """How a framework's graph is run as a whole."""

    kind: type[Operation]
    """The op that is a graph."""
    run: Callable[[Any, Mapping[str, Any], int | None], Mapping[str, Any]]
    """From the graph, its inputs by name and the steps that it may take to its outputs by name."""
    inputs: Callable[[Any], Mapping[str, SSAValue]]
    """The inputs of a graph by name."""


def graph_runner(op: Operation) -> GraphRunner | None:
    """How an op is run that is the graph of a framework; None if it is none."""
    framework = framework_of(op)
    if framework is None or framework.graphs is None:
        return None
    runner: GraphRunner = framework.graphs()
    return runner if isinstance(op, runner.kind) else None
