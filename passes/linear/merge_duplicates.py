"""`merge-duplicates`: convolutions and products that read the same values are one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import AddOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp, ReshapeOp, SplitOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.linear.number_maps import map_kind, mapped
from lowerdeck.passes.machinery.driver import (
    Match,
    Op,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    only_user,
)


@dataclass
class Sibling:
    """A convolution or product, and what follows it and nothing else."""

    root: ConvOp | MatmulOp
    row: AddOp | None
    """A sum with a constant row."""
    maps: list[CoreOp] = field(default_factory=list[CoreOp])

    @property
    def last(self) -> CoreOp:
        """The op whose result others read."""
        return self.maps[-1] if self.maps else self.row or self.root

    @property
    def ops(self) -> list[CoreOp]:
        """From the root down."""
        return [self.root, *([] if self.row is None else [self.row]), *self.maps]


def _kind(op: ConvOp | MatmulOp) -> Hashable | None:
    """What ops with the same input have in common that can be one; None if this one cannot."""
    parameters = op.operands[1:]
    if op.zero_points or not all(isinstance(value.owner, ConstantOp) for value in parameters):
        return None
    properties = tuple(sorted(op.properties.items()))
    elements = tuple(map(element_type, parameters))
    if isinstance(op, MatmulOp):
        return (MatmulOp, properties, elements) if rank_of(op.rhs) == 2 else None
    kernel = dims_of(op.weight)[2:]
    return (ConvOp, properties, elements, kernel) if op.groups.data == 1 else None


def _siblings(roots: Sequence[ConvOp | MatmulOp]) -> list[Sibling]:
    """The ops with what all of them have behind them."""
    rows = [_row(root) for root in roots]
    siblings = [
        Sibling(root, row if None not in rows else None)
        for root, row in zip(roots, rows, strict=True)
    ]
    while True:
        users = [only_user(sibling.last.results[0]) for sibling in siblings]
        maps = [user for user in users if isinstance(user, CoreOp) and mapped(user) is not None]
        if len(maps) < len(users) or len({map_kind(op) for op in maps}) > 1:
            return siblings
        for sibling, op in zip(siblings, maps, strict=True):
            sibling.maps.append(op)


def _joined_runs(groups: Sequence[list[ConvOp | MatmulOp]]) -> list[list[ConvOp | MatmulOp]]:
    """Those of groups whose results, after equal maps, are side by side in one concatenation."""
    runs: list[list[ConvOp | MatmulOp]] = []
    for roots in groups:
        places: dict[Hashable, dict[int, ConvOp | MatmulOp]] = {}
        for root in roots:
            (found,) = _siblings([root])
            use = found.last.results[0].first_use
            if use is None or not isinstance(concat := use.operation, ConcatOp):
                continue
            is_last = found.last.results[0].has_one_use() and found.last.parent is concat.parent
            if is_last and is_ranked(concat) and concat.axis.data == _axis(root):
                kinds = tuple(map_kind(op) for op in found.maps)
                key = (concat, kinds, found.row is None)
                places.setdefault(key, {})[use.index] = root
        for found_at in places.values():
            for index in sorted(found_at):
                if index - 1 not in found_at:
                    runs.append([])
                runs[-1].append(found_at[index])
    return [run for run in runs if len(run) > 1]


def _axis(root: ConvOp | MatmulOp) -> int:
    """The dimension of the channels, or columns, of a result."""
    return 1 if isinstance(root, ConvOp) else rank_of(root.result) - 1


Groups: TypeAlias = Mapping[Operation, list[ConvOp | MatmulOp]]
"""Convolutions and products that are to be one, by the first of them."""


def sibling_groups(module: ModuleOp, *, everywhere: bool) -> Groups:
    """Those that can be one, either all or those that are joined."""
    found: dict[Hashable, list[ConvOp | MatmulOp]] = {}
    for op in all_ops(module):
        if isinstance(op, ConvOp | MatmulOp) and is_ranked(op) and (kind := _kind(op)) is not None:
            found.setdefault((op.parent, op.operands[0], kind), []).append(op)
    groups = [ops for ops in found.values() if len(ops) > 1]
    return {ops[0]: ops for ops in (groups if everywhere else _joined_runs(groups))}


def _row(root: ConvOp | MatmulOp) -> AddOp | None:
    """The sum of a product with a constant that has one number a column."""
    add = only_user(root.result)
    if not isinstance(root, MatmulOp) or not isinstance(add, AddOp) or not is_ranked(add):
        return None
    if not isinstance(add.rhs.owner, ConstantOp) or dims_of(add.result) != dims_of(root.result):
        return None
    *others, columns = (1, *dims_of(add.rhs))
    is_row = columns == dims_of(root.result)[-1] and all(dim == 1 for dim in others)
    return add if is_row and add.lhs is root.result else None


class MergeSiblings(Pattern[list[Sibling]]):
    """conv(x, v), conv(x, w) -> parts of conv(x, [v, w]); x @ v, x @ w -> parts of x @ [v, w]"""

    name = "merge-siblings"
    roots = (ConvOp, MatmulOp)
    ranked = True

    def __init__(self, groups: Groups) -> None:
        # Searched for once: many ops may read one value. No rewrite makes or breaks a group.
        self._groups = groups

    def match(self, op: ConvOp | MatmulOp) -> Match[list[Sibling]] | None:
        if (roots := self._groups.get(op)) is None:
            return None
        siblings = _siblings(roots)
        ops = [part for sibling in siblings for part in sibling.ops]
        return Match(tuple(ops), "of the same input", siblings)

    def rewrite(self, match: Match[list[Sibling]], rewriter: Rewriter) -> None:
        siblings = match.data
        first = siblings[0].root
        source = first.operands[0]
        anchor = _first_place(source, first)
        is_conv = isinstance(first, ConvOp)
        axis = _axis(first)

        def add(op: Op) -> Op:
            return rewriter.insert_before(anchor, op)

        def here(value: SSAValue) -> SSAValue:
            """A constant, which may stand behind this place."""
            assert isinstance(value.owner, ConstantOp)
            return add(value.owner.clone()).result

        def joined(values: Sequence[SSAValue], axis: int) -> SSAValue:
            return add(ConcatOp([here(value) for value in values], axis)).result

        lists = zip(*(each.root.operands[1:] for each in siblings), strict=True)
        parameters = [joined(values, 0 if is_conv else 1) for values in lists]
        value = add(first.with_operands([source, *parameters])).result
        if rows := [each.row for each in siblings if each.row is not None]:
            flat = [add(ReshapeOp(here(row.rhs), dims_of(row.result)[-1:])).result for row in rows]
            value = add(AddOp(value, add(ConcatOp(flat, 0)).result)).result
        for op in siblings[0].maps:
            before = mapped(op)
            operands = [value if each is before else here(each) for each in op.operands]
            value = add(op.with_operands(operands)).results[0]
        split = add(SplitOp(value, axis, [dims_of(each.root.result)[axis] for each in siblings]))
        for sibling, part in zip(siblings, split.parts, strict=True):
            rewriter.replace(sibling.last, part)


def _first_place(value: SSAValue, user: Operation) -> Operation:
    """The first op of the block of `user` that may use a value."""
    block = user.parent
    assert block is not None
    owner = value.owner
    inside = isinstance(owner, Operation) and owner.parent is block
    place = owner.next_op if isinstance(owner, Operation) and inside else block.first_op
    assert place is not None
    return place


@dataclass(frozen=True)
class MergeDuplicatesPass(PatternPass):
    """
    Convolutions and products of the same input as one, whose results are joined.

    - concat(y, conv(x, v, b), conv(x, w, c), z) -> concat(y, parts of conv(x, [v, w], [b, c]), z)
      along channels [one group; the same windows; all have a bias, or none]
    - concat(x @ v + b, x @ w + c) -> the parts of x @ [v, w] + [b, c] along columns [v, w one
      matrix each; the sums with one number a column are merged if all have one]
    - concat(f(x @ v), f(x @ w)) -> the parts of f(x @ [v, w]) [f a map with numbers; all products
      have the same, and no other use]

    [all weights constant; no zero points; one block; side by side in the concatenation, which
    `simplify` then removes]. The input is read once, narrow results fill vectors together, and
    nothing is joined. With the option `everywhere`, the same of results that are not joined:
    they are computed where the ops after them read them, with borders of padding or as parts of
    another concatenation, and parts of one result have to be copied there. `merge-products` merges
    those that attention reads in place.
    """

    name = "merge-duplicates"
    everywhere: bool = False

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [MergeSiblings(sibling_groups(module, everywhere=self.everywhere))]
