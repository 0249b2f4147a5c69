"""Orders of graphs that are too deep to recurse into."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def post_order(
    roots: Iterable[N],
    needs: Callable[[N], Iterable[N]],
    known: Container[N] = (),
    *,
    cycle: list[N] | None = None,
) -> list[N]:
    """
    The roots and all that they need, each node once and after what it needs.

    What is `known` is left out, with what only that needs. Along a cycle, one node comes before
    something that it needs. If a list is given for it, the order ends at the first `cycle`, and
    the list gets its nodes: each needs the one after it, the last one the first.
    """
    done: list[N] = []
    entered: set[N] = set()
    finished: set[N] = set()
    for root in roots:
        if root in entered or root in known:
            continue
        entered.add(root)
        path = [(root, iter(needs(root)))]
        while path:
            node, rest = path[-1]
            following = next((n for n in rest if n not in finished and n not in known), None)
            if following is None:
                path.pop()
                finished.add(node)
                done.append(node)
            elif following not in entered:
                entered.add(following)
                path.append((following, iter(needs(following))))
            elif cycle is not None:
                steps = [step for step, _ in path]
                cycle += steps[steps.index(following) :]
                return done
    return done
