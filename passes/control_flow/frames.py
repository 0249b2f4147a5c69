"""
The frames of a graph: which nodes belong to one loop.

Enter goes into a frame, named by its attribute and by the frame that it comes from; Exit leaves it.
Every other node is in the frame of all its inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.graph import Graph, Node, Problem, Value, refuse
from lowerdeck.passes.control_flow.kinds import Kind

_INSIDE: Mapping[type[Kind], str] = {kinds.Exit: "an Exit", kinds.NextIteration: "a NextIteration"}
"""What can only be in a loop."""


@dataclass(eq=False)
class Frame:
    """One loop, or all that is outside of loops; Enters and Exits are in the frame inside."""

    name: str
    parent: Frame | None = None
    children: dict[Hashable, Frame] = field(default_factory=dict[Hashable, "Frame"])
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

    def child(self, key: Hashable, name: str) -> Frame:
        """The frame of a key inside this one."""
        return self.children.setdefault(key, Frame(name, self))

    def __str__(self) -> str:
        if self.parent is None:
            return "no frame"
        return "frame " + " > ".join(f"'{name}'" for name in self.path)


def find_frames(graph: Graph) -> list[Frame]:
    """
    The frames of a graph, those inside of others first, the outermost one last.

    CompileError lists the nodes whose inputs are in different frames, with both paths.
    """
    root = Frame("")
    frames, problems = _assign(graph.nodes, root)
    for value, name in zip(graph.fetches, graph.names, strict=True):
        node = value.node
        if node in frames and (frame := _outside(node, frames[node])) not in (None, root):
            problems.append(
                Problem(
                    node,
                    f"found the fetch '{name}' in {frame}, expected it outside of all loops; "
                    "name what an Exit gives as --output",
                )
            )
    refuse(problems)
    for node in graph.nodes:
        frames[node].nodes.append(node)
    ordered = _below(root)
    replaced = {node for frame in ordered for node in _merge_enters(frame)}
    used = {
        n for frame in ordered for user in frame.nodes for n in (*_inputs(user), *user.controls)
    }
    for frame in ordered:
        frame.nodes = [node for node in frame.nodes if node not in replaced or node in used]
    return ordered


def _assign(nodes: Sequence[Node], root: Frame) -> tuple[dict[Node, Frame], list[Problem]]:
    """
    The frame of each node, found forward from the nodes without inputs.

    Nodes behind one that has no frame have none either, and are no problem of their own.
    """
    users: dict[Node, list[Node]] = defaultdict(list)
    missing: dict[Node, int] = {}
    for node in nodes:
        sources = _sources(node)
        missing[node] = len(sources)
        for source in sources:
            users[source].append(node)
    frames: dict[Node, Frame] = {}
    problems: list[Problem] = []
    ready = [node for node in nodes if not missing[node]]
    for node in ready:
        frame = _frame(node, frames, root, problems)
        if frame is not None:
            frames[node] = frame
        for user in users[node]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    for node in nodes:
        problems += _wrong_turns(node, frames)
    if len(ready) < len(nodes):
        cycle = _cycle([node for node in nodes if missing[node]], missing)
        problems += [
            Problem(node, "found it in a cycle without a NextIteration, expected none")
            for node in cycle
        ]
    return frames, problems


def _sources(node: Node) -> dict[Node, None]:
    """What a node takes, but for the way back to the next iteration."""
    data = (value.node for value in node.inputs if not _is_back(node, value.node))
    return dict.fromkeys([*data, *node.controls])


def _is_back(node: Node, source: Node) -> bool:
    return node.is_a(kinds.Merge) and source.is_a(kinds.NextIteration)


def _frame(
    node: Node, frames: dict[Node, Frame], root: Frame, problems: list[Problem]
) -> Frame | None:
    """The frame of a node whose sources have theirs, or None with a reason in `problems`."""
    sources = _sources(node)
    if not all(source in frames for source in sources):
        return None
    places: dict[Frame | None, Node] = {}
    for source in sources:
        places.setdefault(_outside(source, frames[source]), source)
    if len(places) > 1:
        listed = " and ".join(f"{frame} (from '{at.name}')" for frame, at in places.items())
        problems.append(
            Problem(
                node,
                f"found inputs in {listed}, expected all of them in one; "
                "values go into a frame by an Enter and leave it by an Exit",
            )
        )
        return None
    outside = next(iter(places), root)
    if isinstance(node.kind, kinds.Enter) and outside is not None:
        return outside.child(node.kind.key, node.kind.name)
    if type(node.kind) in _INSIDE and outside is root:
        text = f"found {_INSIDE[type(node.kind)]} in no frame, expected it inside of a loop"
        problems.append(Problem(node, text))
        return None
    return outside


def _wrong_turns(node: Node, frames: dict[Node, Frame]) -> list[Problem]:
    """The NextIterations that lead a Merge to another frame, or lead to anything else."""
    if node not in frames:
        return []
    return [
        Problem(
            node,
            f"found it in {frames[node]} and its input '{source.name}' in {frames[source]}, "
            "expected a NextIteration of one frame",
        )
        for source in (value.node for value in node.inputs)
        if _is_back(node, source) and frames.get(source, frames[node]) is not frames[node]
    ] + [
        Problem(
            node,
            f"found it in {frames[node]} waiting for '{source.name}' of the iteration before, "
            "expected only a Merge to read a NextIteration",
        )
        for source in _sources(node)
        if source.is_a(kinds.NextIteration)
    ]


def _cycle(nodes: Sequence[Node], missing: Mapping[Node, int]) -> list[Node]:
    """The nodes of one cycle among those that wait for each other."""
    path: dict[Node, None] = {}
    node = nodes[0]
    while node not in path:
        path[node] = None
        node = next(source for source in _sources(node) if missing[source])
    steps = list(path)
    return steps[steps.index(node) :]


def _outside(node: Node, frame: Frame) -> Frame | None:
    """The frame that the outputs of a node are in."""
    return frame.parent if node.is_a(kinds.Exit) else frame


def _below(root: Frame) -> list[Frame]:
    """All frames, the deepest first, in the order of their first nodes."""
    found = [root]
    for frame in found:
        found.extend(frame.children.values())
    first = {frame: frame.nodes[0].index if frame.nodes else 0 for frame in found}
    return sorted(found, key=lambda frame: (-frame.depth, first[frame]))


def _merge_enters(frame: Frame) -> list[Node]:
    """
    Let the Merge of each loop variable have one Enter and one NextIteration: several of them, of
    which one is alive, are a Merge outside of the loop or at the end of an iteration. Returns those
    that are replaced.
    """
    replaced: list[Node] = []
    for node in tuple(frame.nodes):
        if not is_loop_variable(node):
            continue
        enters = [value for value in node.inputs if value.node.is_a(kinds.Enter)]
        following = [value for value in node.inputs if value.node.is_a(kinds.NextIteration)]
        if len(enters) + len(following) < len(node.inputs):
            continue  # the loop refuses it
        if len(enters) > 1 and frame.parent is not None:
            enters = [_merged(node, enters, frame.parent, frame)]
        if len(following) > 1:
            following = [_merged(node, following, frame, frame)]
        if len(enters) + len(following) < len(node.inputs):
            replaced += _inputs(node)
            node.kind = kinds.Merge(joined=len(node.inputs))
            node.inputs = [*enters, *following]
    return replaced


def _inputs(node: Node) -> list[Node]:
    return [value.node for value in node.inputs]


def _merged(merge: Node, values: Sequence[Value], outer: Frame, inner: Frame) -> Value:
    """The node that takes the place of several of one kind, behind a Merge of their inputs."""
    first = values[0].node
    # What an input depends on may be dead where another one is alive.
    guarded = [
        Node(kinds.Forward(), v.node.op, list(v.node.inputs), list(v.node.controls), v.node.index)
        for v in values
    ]
    choice = Node(kinds.Merge(), merge.op, [Value(node, 0) for node in guarded], [], merge.index)
    single = Node(first.kind, first.op, [Value(choice, 0)], [], first.index)
    outer.nodes += [*guarded, choice]
    inner.nodes.append(single)
    return Value(single, 0)


def is_loop_variable(node: Node) -> bool:
    """True for a Merge that a NextIteration feeds."""
    return node.is_a(kinds.Merge) and any(v.node.is_a(kinds.NextIteration) for v in node.inputs)


def first_enter(variable: Node) -> Node:
    """The Enter that gives a loop variable its first value."""
    return next(value.node for value in variable.inputs if value.node.is_a(kinds.Enter))
