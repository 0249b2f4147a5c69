"""
The frames of a graph: which nodes belong to one loop.

Enter goes into a frame, named by its attribute and by the frame that it comes from; Exit leaves it.
Every other node is in the frame of all its inputs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lowerdeck.dialects.tf1.ops import Tf1Op
from lowerdeck.passes.control_flow.graph import Graph, Kind, Node, Problem, Value, refuse


@dataclass(eq=False)
class Frame:
    """One loop, or all that is outside of loops; Enters and Exits are in the frame inside."""

    name: str
    parent: Frame | None = None
    children: dict[str, Frame] = field(default_factory=dict[str, "Frame"])
    nodes: list[Node] = field(default_factory=list[Node])

    @property
    def depth(self) -> int:
        """The number of frames around this one."""
        return len(self.path)

    @property
    def path(self) -> list[str]:
        """The names of the frames from the outside to this one."""
        names: list[str] = []
        frame = self
        while frame.parent is not None:
            names.append(frame.name)
            frame = frame.parent
        return names[::-1]

    def child(self, name: str) -> Frame:
        """The frame of a name inside this one."""
        return self.children.setdefault(name, Frame(name, self))

    def __str__(self) -> str:
        if self.parent is None:
            return "no frame"
        return "frame " + " > ".join(f"'{name}'" for name in self.path)


def find_frames(graph: Graph) -> list[Frame]:
    """
    The frames of a graph, those inside of others first, the outermost one last.

    PassFailedException lists the nodes whose inputs are in different frames, with both paths.
    """
    root = Frame("")
    frames, problems = _assign(graph.nodes, root)
    for node in graph.nodes:
        if node not in frames and not problems:
            problems.append(
                Problem(node, "found no input from outside of the cycle, expected an Enter")
            )
    for value, name in zip(graph.fetches, graph.names, strict=True):
        frame = _outside(value.node, frames.get(value.node, root))
        if frame is not None and frame is not root:
            problems.append(
                Problem(
                    value.node,
                    f"found the fetch '{name}' in {frame}, expected it outside of all loops; "
                    "fetch what an Exit gives",
                )
            )
    refuse(problems)
    for node in graph.nodes:
        frames[node].nodes.append(node)
    ordered = _below(root)
    for frame in ordered:
        _merge_enters(frame)
    return ordered


def _assign(nodes: Sequence[Node], root: Frame) -> tuple[dict[Node, Frame], list[Problem]]:
    """The frame of each node, found forward from the nodes without inputs."""
    users: dict[Node, list[Node]] = defaultdict(list)
    for node in nodes:
        for source in _sources(node):
            users[source].append(node)
    frames: dict[Node, Frame] = {}
    # Of each node: the producer that decided, and where its value is.
    decided: dict[Node, tuple[Node | None, Frame]] = {}
    problems: list[Problem] = []
    queue: deque[Node] = deque()

    def reach(node: Node, source: Node | None, outside: Frame) -> None:
        if node in decided:
            if decided[node][1] is not outside:
                problems.append(_two_frames(node, decided[node], (source, outside)))
            return
        decided[node] = (source, outside)
        frames[node] = outside.child(_frame_name(node)) if node.kind is Kind.ENTER else outside
        queue.append(node)

    for node in nodes:
        if not node.inputs and not node.controls:
            reach(node, None, root)
    while queue:
        node = queue.popleft()
        frame = _outside(node, frames[node])
        if frame is None:
            problems.append(Problem(node, "found an Exit in no frame, expected it inside a loop"))
            continue
        for user in users[node]:
            reach(user, node, frame)
    return frames, problems


def _sources(node: Node) -> Iterable[Node]:
    return dict.fromkeys([*(value.node for value in node.inputs), *node.controls])


def _outside(node: Node, frame: Frame) -> Frame | None:
    """The frame that the outputs of a node are in."""
    return frame.parent if node.kind is Kind.EXIT else frame


def _frame_name(node: Node) -> str:
    assert isinstance(node.op, Tf1Op)
    return node.op.attr("frame_name")


def _two_frames(
    node: Node, one: tuple[Node | None, Frame], other: tuple[Node | None, Frame]
) -> Problem:
    places = " and ".join(
        f"{frame} (from '{'' if source is None else source.name}')"
        for source, frame in (one, other)
    )
    return Problem(
        node, f"found inputs in {places}, expected all of them in one; values go in by an Enter"
    )


def _below(root: Frame) -> list[Frame]:
    """All frames, the deepest first, in the order of their first nodes."""
    found = [root]
    for frame in found:
        found.extend(frame.children.values())
    first = {frame: frame.nodes[0].index if frame.nodes else 0 for frame in found}
    return sorted(found, key=lambda frame: (-frame.depth, first[frame]))


def _merge_enters(frame: Frame) -> None:
    """
    Let the Merge of each loop variable have one Enter and one NextIteration: several of them, of
    which one is alive, are a Merge outside of the loop or at the end of an iteration.
    """
    for node in tuple(frame.nodes):
        if not is_loop_variable(node):
            continue
        enters = [value for value in node.inputs if value.node.kind is Kind.ENTER]
        following = [value for value in node.inputs if value.node.kind is Kind.NEXT]
        if len(enters) + len(following) < len(node.inputs):
            continue  # the loop refuses it
        if len(enters) > 1 and frame.parent is not None:
            enters = [_merged(node, enters, frame.parent, frame)]
        if len(following) > 1:
            following = [_merged(node, following, frame, frame)]
        if len(enters) + len(following) < len(node.inputs):
            node.number = len(node.inputs)
            node.inputs = [*enters, *following]


def _merged(merge: Node, values: Sequence[Value], outer: Frame, inner: Frame) -> Value:
    """The node that takes the place of several of one kind, behind a Merge of their inputs."""
    first = values[0].node
    # What an input depends on may be dead where another one is alive.
    guarded = [
        Node(Kind.FORWARD, v.node.op, list(v.node.inputs), list(v.node.controls), v.node.index)
        for v in values
    ]
    choice = Node(Kind.MERGE, merge.op, [Value(node, 0) for node in guarded], [], merge.index)
    single = Node(first.kind, first.op, [Value(choice, 0)], [], first.index)
    outer.nodes += [*guarded, choice]
    inner.nodes.append(single)
    return Value(single, 0)


def is_loop_variable(node: Node) -> bool:
    """True for a Merge that a NextIteration feeds."""
    return node.kind is Kind.MERGE and any(v.node.kind is Kind.NEXT for v in node.inputs)
