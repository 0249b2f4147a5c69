"""
Ensembles of decision trees.

The nodes of all trees are rows of constant tables. Each sample stands at one node of each tree, at
first the root; a step takes them all one level down, and leaves lead to themselves. After as many
steps as the deepest tree has levels, the weights of the leaves are added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
from lowerdeck.passes.legalize.onnx.conversion import convert
from lowerdeck.passes.legalize.onnx.learned import (
    ML,
    TRANSFORMS,
    best_label,
    chosen,
    integer_labels,
    known,
    transformed,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import Array, TensorValue, concat

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = len(MODES)
LEAF = MEMBER + 1
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


_MOST_NUMBERS = 1 << 26
"""In the table of weights."""


@record
class _Forest:
    """The nodes of all trees; each array has one entry a node."""

    modes: Array
    """Indices into MODES, MEMBER or LEAF."""
    features: Array
    limits: Array
    yes: Array
    no: Array
    tracks_missing: Array
    """True where NaN goes the way of yes."""
    roots: Array
    sets: Array | None = None
    """The values that go the way of yes at a node of mode MEMBER, filled up with NaN."""

    @property
    def depth(self) -> int:
        """The edges of the longest way down; -1 if a way does not end."""
        inner = self.modes != LEAF
        at, steps = np.unique(self.roots), 0
        while (at := at[inner[at]]).size:
            at, steps = np.unique([self.yes[at], self.no[at]]), steps + 1
            if steps > self.modes.size:
                return -1
        return steps


def _forest(builder: OnnxLegalizer) -> tuple[_Forest, dict[tuple[int, int], int]]:
    """The nodes of versions 1 and 3, and the number of each (tree, node)."""
    attrs = builder.attrs
    attrs.ignore("nodes_hitrates", "nodes_hitrates_as_tensor")
    names = attrs.strings("nodes_modes")
    trees, ids = attrs.ints("nodes_treeids"), attrs.ints("nodes_nodeids")
    if unknown := sorted({*names} - {*MODES, "LEAF"}):
        builder.refuse(
            f"nodes of mode {', '.join(unknown)}", f"one of {', '.join((*MODES, 'LEAF'))}"
        )
    modes = np.array([LEAF if name == "LEAF" else MODES.index(name) for name in names], np.int64)
    count = len(names)
    limits = _numbers(builder, "nodes_values")
    features = attrs.ints("nodes_featureids")
    branches = [attrs.ints(f"nodes_{side}nodeids") for side in ("true", "false")]
    if {len(part) for part in (trees, ids, features, limits, *branches)} != {count} or not count:
        builder.refuse(
            "lists of nodes that differ in length, or are empty", "one entry for each node"
        )
    missing = attrs.ints("nodes_missing_value_tracks_true", default=[0] * count)
    numbers = {key: index for index, key in enumerate(zip(trees, ids, strict=True))}
    own = np.arange(count)
    try:
        yes, no = (
            np.array(
                [own[k] if modes[k] == LEAF else numbers[trees[k], part[k]] for k in range(count)],
                np.int64,
            )
            for part in branches
        )
    except KeyError as error:
        builder.refuse(f"a branch to a node (tree, node) {error} that is not there", "it to be")
    first: dict[int, int] = {}
    for index, tree in enumerate(trees):
        first.setdefault(tree, index)
    forest = _Forest(
        modes,
        np.array(features, np.int64),
        limits,
        yes,
        no,
        np.array(missing or [0] * count, bool),
        np.array(list(first.values()), np.int64),
    )
    return forest, numbers


def _numbers(builder: OnnxLegalizer, name: str) -> Array:
    """A list of numbers, or the tensor of doubles in its place."""
    builder.attrs.ignore(f"{name}_as_tensor")
    if builder.attrs.has(f"{name}_as_tensor"):
        tensor = builder.attrs.tensor(f"{name}_as_tensor")
        assert tensor is not None
        return tensor.reshape(-1)
    return np.array(builder.attrs.floats(name, default=[]), np.float32)


def _samples(builder: OnnxLegalizer, forest: _Forest) -> SSAValue:
    x = builder.operand("X")
    x = x if rank_of(x) == 2 else builder.unsqueeze(x, [0])
    if rank_of(x) != 2:
        builder.refuse(f"'X' of {rank_of(x)} dimensions", "1 or 2")
    size = dims_of(x)[1].value
    highest = int(forest.features[forest.modes != LEAF].max(initial=0))
    if size is not None and highest >= size:
        builder.refuse(f"a node that asks for feature {highest}", f"less than {size}")
    wide = forest.limits.dtype == np.float64 or element_type(x) == f64
    return convert(builder, x, f64 if wide else f32)


def _leaves(builder: OnnxLegalizer, forest: _Forest) -> TensorValue:
    """The node where each sample ends in each tree: [samples, trees]."""
    x, depth = _samples(builder, forest), forest.depth
    if depth < 0:
        builder.refuse("a tree with a cycle", "ways that end")
    samples = dims_of(x)[0]
    start = known(builder, forest.roots).broadcast([samples, forest.roots.size])
    if depth == 0:
        return start

    def step(inner: OnnxLegalizer, number: Expr, state: State) -> tuple[State, State]:
        del number
        (at,) = state
        value = TensorValue(inner, x)
        feature = _look_up(at, forest.features).broadcast(at.dims)
        value = TensorValue(inner, inner.add(GatherElementsOp(x, feature.value, 1)))
        goes = _decision(forest, at, value)
        return (goes.where(_look_up(at, forest.yes), _look_up(at, forest.no)),), ()

    states, _ = run_steps(builder, Expr.const(depth), [start.value], step)
    return TensorValue(builder, states[0])


def _look_up(at: TensorValue, table: Array) -> TensorValue:
    """The entries of a table of nodes."""
    builder = at.builder
    if (table == table[0]).all():
        return TensorValue(builder, np.asarray(table[0]))
    return TensorValue(builder, builder.add(GatherOp(builder.tensor(table), at.value, 0)))


def _decision(forest: _Forest, at: TensorValue, value: TensorValue) -> TensorValue:
    """True where a sample takes the way of yes."""
    limit = _look_up(at, forest.limits).cast(value.element)
    used = [mode for mode in range(LEAF) if (forest.modes == mode).any()]
    mode, goes = _look_up(at, forest.modes), None
    for number in used:
        if number == MEMBER:
            one = _is_member(forest, at, value)
        else:
            one = _compare(value, limit, MODES[number])
        goes = one if goes is None else mode.eq(number).where(one, goes)
    assert goes is not None
    if forest.tracks_missing.any():
        missing = _look_up(at, forest.tracks_missing.astype(np.int64)).ne(0)
        goes = goes | (missing & value.ne(value))
    return goes


def _is_member(forest: _Forest, at: TensorValue, value: TensorValue) -> TensorValue:
    assert forest.sets is not None
    builder = value.builder
    each = TensorValue(builder, builder.add(GatherOp(builder.tensor(forest.sets), at.value, 0)))
    equal = value.reshape([*value.dims, 1]).eq(each.cast(value.element))
    return equal.cast(i64).reduce("max", [len(value.dims)]).gt(0)


def _compare(value: TensorValue, limit: TensorValue, mode: str) -> TensorValue:
    match mode:
        case "BRANCH_LEQ":
            return value.le(limit)
        case "BRANCH_LT":
            return value.lt(limit)
        case "BRANCH_GTE":
            return value.ge(limit)
        case "BRANCH_GT":
            return value.gt(limit)
        case "BRANCH_EQ":
            return value.eq(limit)
        case _:
            return value.ne(limit)


def _weights(
    builder: OnnxLegalizer, prefix: str, count: int, size: int, numbers: dict[tuple[int, int], int]
) -> Array:
    """What each node adds to each of `count` scores: [nodes, scores]."""
    trees, ids = builder.attrs.ints(f"{prefix}_treeids"), builder.attrs.ints(f"{prefix}_nodeids")
    places, weights = builder.attrs.ints(f"{prefix}_ids"), _numbers(builder, f"{prefix}_weights")
    if len({len(trees), len(ids), len(places), len(weights)}) != 1:
        builder.refuse(f"lists {prefix}_... that differ in length", "one entry for each weight")
    if any(not 0 <= place < count for place in places):
        builder.refuse(f"{prefix}_ids from {min(places)} to {max(places)}", f"0 to {count - 1}")
    found = _table(builder, size, count, weights)
    keys = list(zip(trees, ids, strict=True))
    if lost := [key for key in keys if key not in numbers]:
        builder.refuse(f"a weight of node (tree, node) {lost[0]}", "a node that is there")
    np.add.at(found, ([numbers[key] for key in keys], places), weights)
    return found


def _table(builder: OnnxLegalizer, nodes: int, scores: int, like: Array) -> Array:
    """Zeros for the weights of all nodes."""
    if scores < 0 or nodes * scores > _MOST_NUMBERS:
        builder.refuse(f"{scores} scores of {nodes} nodes", f"up to {_MOST_NUMBERS} numbers")
    return np.zeros((nodes, scores), like.dtype)


def _scores(
    builder: OnnxLegalizer, leaves: TensorValue, weights: Array, how: str, base: Array
) -> TensorValue:
    """The weights of the leaves of all trees: [samples, scores]."""
    each = TensorValue(builder, builder.add(GatherOp(builder.tensor(weights), leaves.value, 0)))
    kind = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}[how]
    scores = each.reduce(kind, [1])
    if how == "AVERAGE":
        scores = scores / (leaves.dims[1].value or 1)
    if base.size:
        scores = scores + known(builder, base.astype(weights.dtype))
    return scores


@legalizes("TreeEnsembleRegressor", domain=ML)
def legalize_tree_regressor(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The sum, mean, least or largest of the weights of the leaves, for each target."""
    forest, numbers = _forest(builder)
    count = builder.attrs.int("n_targets")
    weights = _weights(builder, "target", count, forest.modes.size, numbers)
    how = builder.attrs.string("aggregate_function", among=("SUM", "AVERAGE", "MIN", "MAX"))
    if how in ("MIN", "MAX") and count > 1:
        builder.refuse(f"the {how} of {count} targets", "one target")
    base = _base(builder, (0, count))
    scores = _scores(builder, _leaves(builder, forest), weights, how, base).cast(f32)
    return [transformed(builder, scores, builder.attrs.string("post_transform")).value]


def _base(builder: OnnxLegalizer, sizes: Sequence[int]) -> Array:
    base = _numbers(builder, "base_values")
    if base.size not in sizes:
        builder.refuse(f"{base.size} base_values", " or ".join(map(str, sizes)))
    return base


@legalizes("TreeEnsembleClassifier", domain=ML)
def legalize_tree_classifier(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    The class with the largest sum of weights, and all sums. If all weights have the first of two
    class ids, their sum is the score of the second class and decides: probabilities by 0.5, sums
    that may be negative by 0. So do exporters write it.
    """
    forest, numbers = _forest(builder)
    labels = integer_labels(builder, "classlabels_int64s")
    ids = set(builder.attrs.ints("class_ids"))
    kind = builder.attrs.string("post_transform")
    if len(labels) == 2 and len(ids) == 1:
        if ids != {0}:
            builder.refuse(f"weights of class {ids.pop()} alone, of two", "of class 0, or of both")
        return _of_two(builder, forest, numbers, labels, kind)
    weights = _weights(builder, "class", labels.size, forest.modes.size, numbers)
    base = _base(builder, (0, labels.size))
    scores = _scores(builder, _leaves(builder, forest), weights, "SUM", base).cast(f32)
    return [best_label(builder, scores, labels), transformed(builder, scores, kind).value]


def _of_two(
    builder: OnnxLegalizer,
    forest: _Forest,
    numbers: dict[tuple[int, int], int],
    labels: Array,
    kind: str,
) -> Results:
    weights = _weights(builder, "class", 1, forest.modes.size, numbers)
    is_probability = bool((_numbers(builder, "class_weights") >= 0).all())
    base = _base(builder, (0, 1))
    score = _scores(builder, _leaves(builder, forest), weights, "SUM", base).cast(f32)
    wins = score.gt(0.5 if is_probability else 0.0)
    label = builder.reshape(chosen(builder, wins, labels.tolist()), [score.dims[0]])
    if kind not in ("NONE", "LOGISTIC"):
        builder.refuse(f"post_transform '{kind}' of one score", "NONE or LOGISTIC")
    first = 1 - score if is_probability and kind == "NONE" else -score
    return [label, transformed(builder, concat([first, score], 1), kind).value]


# Version 5


@legalizes("TreeEnsemble", domain=ML)
def legalize_tree_ensemble(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The sum, mean, least or largest of the weights of the leaves, for each target."""
    attrs = builder.attrs
    count, targets = attrs.int("n_targets"), attrs.ints("leaf_targetids")
    values = _tensor(builder, "leaf_weights")
    if len(targets) != values.size or any(not 0 <= target < count for target in targets):
        builder.refuse(f"{values.size} leaves of targets {targets}", f"as many, below {count}")
    forest = _forest_of_tensors(builder, values.size)
    weights = _table(builder, forest.modes.size, count, values)
    weights[np.arange(values.size) + forest.modes.size - values.size, targets] = values
    how = _among(builder, "aggregate_function", AGGREGATES)
    if how in ("MIN", "MAX") and count > 1:
        builder.refuse(f"the {how} of {count} targets", "one target")
    scores = _scores(builder, _leaves(builder, forest), weights, how, np.zeros(0))
    kind = _among(builder, "post_transform", TRANSFORMS)
    return [transformed(builder, scores, kind).cast(element_type(builder.operand("X"))).value]


def _among(builder: OnnxLegalizer, name: str, values: Sequence[str]) -> str:
    """The value whose number an attribute gives."""
    number = builder.attrs.int(name)
    if not 0 <= number < len(values):
        builder.refuse(f"attribute '{name}' is {number}", f"0 to {len(values) - 1}")
    return values[number]


def _tensor(builder: OnnxLegalizer, name: str) -> Array:
    found = builder.attrs.tensor(name)
    return builder.refuse(f"no attribute '{name}'", "it") if found is None else found.reshape(-1)


def _forest_of_tensors(builder: OnnxLegalizer, leaves: int) -> _Forest:
    """The inner nodes, and after them the leaves."""
    attrs = builder.attrs
    attrs.ignore("nodes_hitrates")
    modes, limits = (
        _tensor(builder, "nodes_modes").astype(np.int64),
        _tensor(builder, "nodes_splits"),
    )
    count, features = modes.size, attrs.ints("nodes_featureids")
    ways: list[Array] = []
    for side in ("true", "false"):
        ids = np.array(attrs.ints(f"nodes_{side}nodeids"), np.int64)
        is_leaf = np.array(attrs.ints(f"nodes_{side}leafs"), bool)
        if ids.size != count or is_leaf.size != count:
            builder.refuse("lists of nodes that differ in length", "an entry each")
        if (ids < 0).any() or (ids >= np.where(is_leaf, leaves, count)).any():
            builder.refuse("a branch to a node or leaf that is not there", "one that is")
        ways.append(np.concatenate([ids + is_leaf * count, count + np.arange(leaves)]))
    roots = np.array(attrs.ints("tree_roots"), np.int64)
    missing = attrs.ints("nodes_missing_value_tracks_true", default=[]) or [0] * count
    if {limits.size, len(features), len(missing)} != {count} or not count or not roots.size:
        builder.refuse("lists of nodes that differ in length, or are empty", "an entry each")
    if (modes > MEMBER).any() or (roots < 0).any() or (roots >= count).any():
        builder.refuse("modes above 6, or roots that are not there", "nodes of a known mode")
    rest = np.zeros(leaves, np.int64)
    return _Forest(
        np.concatenate([modes, rest + LEAF]),
        np.concatenate([np.array(features, np.int64), rest]),
        np.concatenate([limits, rest.astype(limits.dtype)]),
        ways[0],
        ways[1],
        np.concatenate([np.array(missing, bool), rest.astype(bool)]),
        roots,
        _sets(builder, modes, leaves),
    )


def _sets(builder: OnnxLegalizer, modes: Array, leaves: int) -> Array | None:
    """A row for each node; in the file the sets stand one after the other, each before a NaN."""
    places = np.flatnonzero(modes == MEMBER)
    if not builder.attrs.has("membership_values"):
        builder.attrs.ignore("membership_values")
        return None if not places.size else builder.refuse("no membership_values", "them")
    values = _tensor(builder, "membership_values")
    ends = np.flatnonzero(np.isnan(values))
    if ends.size != places.size:
        builder.refuse(f"{ends.size} sets", f"{places.size}, as there are nodes that ask for one")
    members = np.split(values, ends + 1)[: ends.size]
    longest = max((one.size for one in members), default=1)
    table = np.full((modes.size + leaves, longest), np.nan, values.dtype)
    for place, one in zip(places, members, strict=True):
        table[place, : one.size] = one
    return table
