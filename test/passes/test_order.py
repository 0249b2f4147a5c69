"""Orders of graphs, with and without cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from lowerdeck.passes.machinery.order import post_order

Needs = Mapping[int, Sequence[int]]

graphs: st.SearchStrategy[Needs] = st.integers(1, 8).flatmap(
    lambda count: st.fixed_dictionaries(
        {node: st.lists(st.integers(0, count - 1), max_size=3) for node in range(count)}
    )
)


def reachable(needs: Needs, roots: Sequence[int]) -> set[int]:
    """The roots and all that they need, found by repetition."""
    found = set(roots)
    while not (more := {n for node in found for n in needs[node]}) <= found:
        found |= more
    return found


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_each_node_comes_once_and_after_what_it_needs(needs: Needs) -> None:
    roots = [0, len(needs) - 1]
    order = post_order(roots, needs.__getitem__)
    assert len(order) == len(set(order))
    assert set(order) == reachable(needs, roots)
    place = {node: position for position, node in enumerate(order)}
    for node in order:
        for needed in needs[node]:
            in_cycle = node in reachable(needs, [needed])
            assert place[needed] < place[node] or in_cycle


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_a_cycle_is_told_by_its_nodes(needs: Needs) -> None:
    cycle: list[int] = []
    post_order(needs, needs.__getitem__, cycle=cycle)
    assert bool(cycle) == any(node in reachable(needs, needs[node]) for node in needs)
    for node, following in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True):
        assert following in needs[node]


def test_what_is_known_is_left_out_with_what_only_that_needs() -> None:
    needs = {0: [1, 2], 1: [3], 2: [4], 3: [], 4: []}
    assert post_order([0], needs.__getitem__, known={1}) == [4, 2, 0]
    assert post_order([0], needs.__getitem__) == [3, 1, 4, 2, 0]


def test_long_chains_do_not_recurse() -> None:
    count = 100_000
    order = post_order([0], lambda node: [node + 1] if node + 1 < count else [])
    assert order == list(range(count))[::-1]
