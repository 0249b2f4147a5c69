"""
Where the nodes of a frame go: the tree of regions that `core.if` ops make.

A plan computes some values of a frame in a context, a predicate that is known to hold there.

- Choices with one context and one condition become one `core.if`, if none depends on another.
- A node goes into the innermost region that holds all its uses, so what only one branch uses is
  not computed for the other. Where it may be dead there, it is computed in several branches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from lowerdeck.dialects.records import record
from lowerdeck.passes.control_flow import kinds
from lowerdeck.passes.control_flow.flow import Flow
from lowerdeck.passes.control_flow.frames import is_loop_variable
from lowerdeck.passes.control_flow.graph import Node, Problem, Value
from lowerdeck.passes.control_flow.places import Place
from lowerdeck.passes.control_flow.predicates import Predicates
from lowerdeck.passes.machinery.order import post_order

_DEPTH = 24
"""Regions inside of each other beyond which nodes stay outside of branches where they can."""

_LEAVES = (kinds.Enter, kinds.Argument)


@dataclass(eq=False)
class Region:
    """The ops of a branch, or of the whole plan, and what is known where they run."""

    context: int
    parent: Region | None = None
    depth: int = 0
    steps: list[Step] = field(default_factory=list["Step"])


@dataclass(eq=False)
class Make:
    """Compute a node from the values that its inputs stand for."""

    node: Node
    inputs: list[Value]


@dataclass(eq=False)
class Forward:
    """A choice that is decided where it is made: `phi` is `value`."""

    phi: Node
    value: Value


@dataclass(eq=False)
class Choose:
    """A `core.if` whose results are `phis`, with what each branch gives for them."""

    condition: Value
    phis: list[Node]
    yes: Region
    no: Region
    yes_values: list[Value]
    no_values: list[Value]
    place: Place


Step = Make | Forward | Choose


@record
class Plan:
    """How to compute `outputs` of a frame from `leaves`: loop variables, Enters, Placeholders."""

    region: Region
    outputs: tuple[Value, ...]
    leaves: tuple[Value, ...]


def unmerged(flow: Flow, values: Sequence[Value]) -> list[Problem]:
    """The Merges that values need and that cannot become choices."""
    order = _post_order(flow, map(flow.stands_for, values))
    return [
        Problem(node, why) for node in order if (why := flow.choices.unmerged(node)) is not None
    ]


def plan(flow: Flow, values: Sequence[Value], context: int) -> Plan:
    """The plan for values that are alive in a context and need no unmerged Merge."""
    outputs = tuple(map(flow.stands_for, values))
    units = _units(flow, _post_order(flow, outputs), outputs)
    return _Planner(flow, context).place(units, outputs)


def needs_of(flow: Flow, node: Node) -> list[Value]:
    """The values that a node is computed from, behind all that forwards them."""
    if is_leaf(node):
        return []
    return [flow.stands_for(value) for value in node.inputs]


def is_leaf(node: Node) -> bool:
    """True for what a plan is given: loop variables, values from outside, arguments."""
    return node.is_a(_LEAVES) or is_loop_variable(node)


def _post_order(flow: Flow, outputs: Iterable[Value]) -> list[Node]:
    """The nodes that values need, each after what it needs."""
    roots = (output.node for output in outputs)
    return post_order(roots, lambda node: [value.node for value in needs_of(flow, node)])


def _units(flow: Flow, order: Sequence[Node], outputs: Sequence[Value]) -> list[list[Node]]:
    """The nodes, with choices that are made together, each unit after what it needs."""
    groups = _grouped(flow, order)
    unit_of = {node: unit for unit in groups for node in unit}

    def needs(first: Node) -> list[Node]:
        """The first node stands for its unit."""
        return [unit_of[node][0] for node in _unit_needs(flow, unit_of[first])]

    firsts = post_order((unit_of[output.node][0] for output in outputs), needs)
    return [unit_of[first] for first in firsts]


def _unit_needs(flow: Flow, unit: Sequence[Node]) -> list[Node]:
    return [value.node for node in unit for value in needs_of(flow, node)]


def _grouped(flow: Flow, order: Sequence[Node]) -> list[list[Node]]:
    """
    Units such that no two depend on each other in turn.

    This makes everything that it can before it makes a choice, and prefers choices of which no
    other with the same condition and context has to wait.
    """
    place = {node: position for position, node in enumerate(order)}
    users: dict[Node, list[Node]] = defaultdict(list)
    missing: dict[Node, int] = {}
    waiting: dict[tuple[int, Value], int] = defaultdict(int)
    for node in order:
        sources = {value.node for value in needs_of(flow, node)}
        missing[node] = len(sources)
        for source in sources:
            users[source].append(node)
        if node.is_a(kinds.Phi):
            waiting[_key(flow, node)] += 1
    ready: dict[tuple[int, Value], list[Node]] = defaultdict(list)
    simple: list[int] = []
    complete: list[tuple[int, tuple[int, Value]]] = []
    partial: list[tuple[int, tuple[int, Value]]] = []
    units: list[list[Node]] = []

    def release(node: Node) -> None:
        if not node.is_a(kinds.Phi):
            heappush(simple, place[node])
            return
        key = _key(flow, node)
        ready[key].append(node)
        is_complete = len(ready[key]) == waiting[key]
        heappush(complete if is_complete else partial, (place[node], key))

    def finish(unit: list[Node]) -> None:
        units.append(unit)
        for user in (user for node in unit for user in users[node]):
            missing[user] -= 1
            if not missing[user]:
                release(user)

    for node in order:
        if not missing[node]:
            release(node)
    while simple or complete or partial:
        if simple:
            finish([order[heappop(simple)]])
            continue
        _, key = heappop(complete if complete else partial)
        if group := ready.pop(key, []):
            waiting[key] -= len(group)
            finish(sorted(group, key=place.__getitem__))
    return units


def _key(flow: Flow, phi: Node) -> tuple[int, Value]:
    return flow.node_alive(phi), flow.stands_for(phi.inputs[0])


class _Planner:
    """Places units from the last to the first, when the regions of all uses are known."""

    def __init__(self, flow: Flow, context: int) -> None:
        self._flow = flow
        self._predicates: Predicates = flow.predicates
        self._root = Region(context)
        self._uses: dict[Node, dict[Region, None]] = defaultdict(dict)
        self._leaves: dict[Value, None] = {}

    def place(self, units: Sequence[list[Node]], outputs: tuple[Value, ...]) -> Plan:
        """The plan that computes `outputs`."""
        for output in outputs:
            self._use(output, self._root)
        for unit in reversed(units):
            self._place_unit(unit)
        for region in self._regions():
            region.steps.reverse()
        return Plan(self._root, outputs, tuple(self._leaves))

    def _use(self, value: Value, region: Region) -> None:
        if is_leaf(value.node):
            self._leaves[value] = None
        else:
            self._uses[value.node][region] = None

    def _place_unit(self, unit: list[Node]) -> None:
        regions = list(dict.fromkeys(region for node in unit for region in self._uses[node]))
        if not regions:
            return
        alive = self._flow.node_alive(unit[0])
        for region in self._homes(regions, alive):
            if unit[0].is_a(kinds.Phi):
                used = [phi for phi in unit if self._is_used_in(phi, region)]
                self._make_choice(used, region)
                continue
            inputs = needs_of(self._flow, unit[0])
            region.steps.append(Make(unit[0], inputs))
            for value in inputs:
                self._use(value, region)

    def _homes(self, regions: Sequence[Region], alive: int) -> list[Region]:
        """The innermost regions which hold all of `regions` and where a node is alive."""
        homes: list[Region] = []
        stack = [list(regions)]
        while stack:
            group = stack.pop()
            home = _common(group)
            if self._predicates.implies(home.context, alive):
                homes.append(home)
                continue
            below: dict[Region, list[Region]] = defaultdict(list)
            for region in group:
                below[_step_towards(region, home)].append(region)
            stack.extend(reversed(below.values()))
        if all(home.depth <= _DEPTH for home in homes):
            return homes
        raised = dict.fromkeys(self._raised(home, alive) for home in homes)
        return [home for home in raised if not any(_holds(other, home) for other in raised)]

    def _raised(self, home: Region, alive: int) -> Region:
        """`home`, or a region around it where regions are too deep to be walked through."""
        while home.depth > _DEPTH and home.parent is not None:
            if not self._predicates.implies(home.parent.context, alive):
                break
            home = home.parent
        return home

    def _is_used_in(self, phi: Node, home: Region) -> bool:
        return any(_contains(home, region) for region in self._uses[phi])

    def _make_choice(self, phis: list[Node], region: Region) -> None:
        condition = self._flow.stands_for(phis[0].inputs[0])
        truth = self._flow.truths.of(condition)
        negated = self._predicates.negate(truth)
        for known, branch in ((truth, 1), (negated, 2)):
            if self._predicates.implies(region.context, known):
                for phi in phis:
                    value = self._flow.stands_for(phi.inputs[branch])
                    region.steps.append(Forward(phi, value))
                    self._use(value, region)
                return
        yes, no = (
            Region(self._predicates.both(region.context, known), region, region.depth + 1)
            for known in (truth, negated)
        )
        values = [[self._flow.stands_for(phi.inputs[k]) for phi in phis] for k in (1, 2)]
        describe, names = self._predicates.describe, tuple(phi.name for phi in phis)
        inside = (describe(yes.context), describe(no.context))
        place = Place(str(self._flow.frame), describe(truth), inside, names)
        region.steps.append(Choose(condition, phis, yes, no, *values, place=place))
        self._use(condition, region)
        for side, side_values in zip((yes, no), values, strict=True):
            for value in side_values:
                self._use(value, side)

    def _regions(self) -> list[Region]:
        found = [self._root]
        for region in found:
            for step in region.steps:
                if isinstance(step, Choose):
                    found += (step.yes, step.no)
        return found


def _common(regions: Sequence[Region]) -> Region:
    """The innermost region around all of `regions`."""
    common = regions[0]
    for region in regions[1:]:
        while common is not region:
            if common.depth >= region.depth and common.parent is not None:
                common = common.parent
            elif region.parent is not None:
                region = region.parent
    return common


def _step_towards(region: Region, home: Region) -> Region:
    """The region directly inside of `home` that holds `region`."""
    while region.parent is not home:
        assert region.parent is not None, "a value is used where it may be dead"
        region = region.parent
    return region


def _holds(home: Region, region: Region) -> bool:
    """True if `region` is somewhere inside of `home`, and not the same."""
    return home is not region and _contains(home, region)


def _contains(home: Region, region: Region | None) -> bool:
    while region is not None and region.depth > home.depth:
        region = region.parent
    return region is home
