"""
TensorArrays that are used through an old flow.

The flow of an array stands for all writes so far, and orders the accesses to the array. Edges that
carry no flow order accesses, too: a node that runs after a write sees its result, whatever flow it
receives. Such a node gets the flow of the last write before it; if that write may not have run, or
ran in another iteration, the node is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.frames import Frame
from lowerdeck.passes.control_flow.graph import Node, Problem, Value, forwarded, sources


def _names(*stems: str) -> frozenset[str]:
    versions = ("", "V2", "V3")
    return frozenset(f"TensorArray{stem}{version}" for stem in stems for version in versions)


MAKERS = _names("")
"""The operators that make an array."""
READERS = _names("Close", "Concat", "Gather", "Pack", "Read", "Size")
"""Operators that do not change an array."""
WRITERS = _names("Scatter", "Split", "Unpack", "Write")
"""Operators that write elements."""


_PAUSES = (kinds.Merge, kinds.Enter, kinds.Exit, kinds.NextIteration)
"""Kinds of nodes that may run although not all of their sources have, in this iteration."""


def refresh_flows(nodes: Sequence[Node], frames: Mapping[Node, Frame]) -> list[Problem]:
    """
    Let each use of a TensorArray see all earlier writes; returns the uses that cannot.

    `frames` are those of the nodes.
    """
    uses = [node for node in nodes if _is(node, READERS | WRITERS) and len(node.inputs) > 1]
    if not any(_is(node, WRITERS) for node in uses):
        return []
    writes = _Writes(nodes, uses, frames)
    while stale := [node for node in uses if writes.missed(node)]:
        renewed = [node for node in stale if writes.renew(node)]
        if not renewed:
            return [writes.problem(node) for node in stale]
        writes.look()
    return []


class _Writes:
    """The writes that run before a node, and those that it sees; sets of writes are bit masks."""

    def __init__(
        self, nodes: Sequence[Node], uses: Sequence[Node], frames: Mapping[Node, Frame]
    ) -> None:
        self._nodes, self._frames = nodes, frames
        self._writes = [node for node in uses if _is(node, WRITERS)]
        self._bits = {node: 1 << number for number, node in enumerate(self._writes)}
        makers = [node for node in nodes if _is(node, MAKERS)]
        numbers = {node: 1 << number for number, node in enumerate(makers)}
        arrays = _reaching(nodes, numbers, _handle_sources)
        handed_on = _reaching(
            nodes, {n: 1 for n in nodes if n.is_a(kinds.NextIteration)}, _handle_sources
        )
        self._before = dict.fromkeys(uses, 0)
        for frame in dict.fromkeys(frames[maker] for maker in makers):
            made = sum(number for maker, number in numbers.items() if frames[maker] is frame)
            everywhere = _reaching(nodes, self._bits, sources)
            here = self._before_in_iteration(frame)
            for node in uses:
                is_own = frame in _around(frames[node]) and not handed_on[node]
                shared = arrays[node] & made
                before = (here if is_own else everywhere)[node]
                for write, bit in self._bits.items():
                    if before & bit and arrays[write] & shared:
                        self._before[node] |= bit
        self.look()

    def _before_in_iteration(self, frame: Frame) -> dict[Node, int]:
        """
        The writes before each node in one iteration of a frame: an array that is created there is a
        different one in the next iteration.
        """
        around = _around(frame)

        def before(node: Node) -> list[Node]:
            is_back = node.is_a(kinds.NextIteration) and self._frames[node] in around
            return [] if is_back else sources(node)

        back = {
            n: 0 for n in self._nodes if n.is_a(kinds.NextIteration) and self._frames[n] in around
        }
        return _reaching(self._nodes, {**self._bits, **back}, before)

    def look(self) -> None:
        """Find the writes that the flow of each node comes from."""
        self._seen = _reaching(self._nodes, self._bits, _flow_sources)

    def missed(self, node: Node) -> int:
        """The writes that run before a node and that its flow does not come from."""
        return self._before[node] & ~self._seen[node]

    def renew(self, node: Node) -> bool:
        """Give a node the flow of the last write before it; False if there is none."""
        for write in _surely_before(node):
            bit = self._bits.get(write, 0)
            if bit and not self._before[node] & ~(self._seen[write] | bit):
                node.inputs[-1] = Value(write, 0)
                return True
        return False

    def problem(self, node: Node) -> Problem:
        """The error for a node that does not see all writes before it."""
        missed = self.missed(node)
        names = ", ".join(f"'{w.name}'" for w in self._writes if self._bits[w] & missed)
        return Problem(
            node,
            f"found it in {self._frames[node]} after writes to its array ({names}) that its flow "
            "does not come from, "
            "expected the flow of the last write; use what that gives",
        )


def _around(frame: Frame) -> list[Frame]:
    """A frame and its enclosing frames."""
    frames = [frame]
    while (parent := frames[-1].parent) is not None:
        frames.append(parent)
    return frames


def _reaching(
    nodes: Sequence[Node], bits: Mapping[Node, int], sources: Callable[[Node], Sequence[Node]]
) -> dict[Node, int]:
    """For each node the bits of the nodes with a nonempty path to it."""
    found = dict.fromkeys(nodes, 0)
    # Nodes follow their operands, except in cycles: one sweep for each nesting level of those.
    changed = True
    while changed:
        changed = False
        for node in nodes:
            mask = found[node]
            for source in sources(node):
                mask |= found[source] | bits.get(source, 0)
            changed |= mask != found[node]
            found[node] = mask
    return found


def _surely_before(node: Node) -> list[Node]:
    """The nodes that have run whenever a node does, in the same iteration; the nearest first."""
    found: dict[Node, None] = {}
    queue = [node]
    for current in queue:
        if current.is_a(_PAUSES) or current.op_type == "ControlTrigger":
            continue
        for source in sources(current):
            if source not in found:
                found[source] = None
                queue.append(source)
    return list(found)


def _handle_sources(node: Node) -> list[Node]:
    """The sources of the handle of an array."""
    if _is(node, READERS | WRITERS):
        return [node.inputs[0].node]
    return forwarded(node)


def _flow_sources(node: Node) -> list[Node]:
    """The sources of the flow that a node receives."""
    if _is(node, READERS | WRITERS):
        return [node.inputs[-1].node]
    return forwarded(node)


def _is(node: Node, names: frozenset[str]) -> bool:
    return node.is_a(kinds.Operator) and isinstance(node.op, Tf1Op) and node.op.op_type in names
