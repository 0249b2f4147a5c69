"""`fuse-attention`: two matrix products and the softmax between them become one op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.elementwise import (
    AddOp,
    AndOp,
    CompareOp,
    DivOp,
    MulOp,
    NotOp,
    SelectOp,
    SubOp,
)
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import ReshapeOp, TransposeOp, ints
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    f32,
    f64,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import (
    Match,
    Pattern,
    PatternPass,
    Rewriter,
    is_ranked,
    producer,
)
from lowerdeck.passes.machinery.values import uniform_value

_MOST_STEPS = 8
"""The maximum number of factors and masks between a product and its softmax."""


@record
class Chain:
    """A value, the scale removed from it, and the movement ops to apply to it again."""

    value: SSAValue
    scale: float = 1.0
    moves: tuple[Operation, ...] = ()
    """Transposes and reshapes that were between the value and its use, the last one first."""
    consumed: tuple[Operation, ...] = ()


@record
class Mask:
    """What is added to scores, times a factor."""

    value: SSAValue
    factor: float


@record
class Choice:
    """What is kept, and what stands for the rest."""

    conditions: tuple[tuple[SSAValue, bool], ...]
    """A score is kept where each of these is as the second says."""
    fill: np.floating[Any]


@record
class Scores:
    """product * scale * the factor + the sum of the masks, chosen from."""

    product: MatmulOp
    scale: float = 1.0
    masks: tuple[Mask, ...] = ()
    """The first one is added first."""
    factor: SSAValue | None = None
    choice: Choice | None = None
    consumed: tuple[Operation, ...] = ()


@record
class Attention:
    """The operands of the two products."""

    query: Chain
    key: Chain
    """[..., D, S], as the product has it."""
    value: SSAValue
    masks: tuple[Mask, ...]
    factor: SSAValue | None
    choice: Choice | None
    zero_nan: bool
    zero_hidden: bool
    scale: float
    consumed: tuple[Operation, ...] = field(default=())


def _scaled(op: Operation) -> tuple[SSAValue, float] | None:
    """x and c if `op` is x * c or x / c with one finite constant c, and of the shape of x."""
    if not isinstance(op, MulOp | DivOp):
        return None
    pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)] if isinstance(op, MulOp) else [(op.lhs, op.rhs)]
    for value, constant in pairs:
        number = uniform_value(constant)
        if number is None or not np.isfinite(number) or number == 0:
            continue
        if value.type == op.result.type:
            scale = float(number)
            return value, scale if isinstance(op, MulOp) else 1.0 / scale
    return None


def _unscale(value: SSAValue) -> Chain:
    """Remove factors from a value that is used once, also through transposes and reshapes."""
    found = Chain(value)
    moves: list[Operation] = []
    consumed: list[Operation] = []
    scale, current = 1.0, value
    while current.has_one_use() and isinstance(op := current.owner, Operation):
        consumed.append(op)
        if isinstance(op, TransposeOp | ReshapeOp):
            moves.append(op)
            current = op.input
        elif (step := _scaled(op)) is not None:
            current, factor = step
            scale *= factor
            found = Chain(current, scale, tuple(moves), tuple(consumed))
        else:
            break
    return found


def _scores(value: SSAValue, steps: int = _MOST_STEPS) -> Scores | None:
    """The product that a value is, up to factors and masks, if nothing between has another use."""
    if not value.has_one_use():
        return None
    if (product := producer(value, MatmulOp)) is not None:
        return Scores(product, consumed=(product,))
    op = value.owner
    if not isinstance(op, AddOp | SubOp | MulOp | DivOp | SelectOp) or not is_ranked(op):
        return None
    if not steps:
        return None
    if isinstance(op, SelectOp):
        return _chosen(op, steps)
    if (scaled := _scaled(op)) is not None:
        part, factor = scaled
        found = _scores(part, steps - 1)
        if found is None:
            return None
        masks = tuple(Mask(mask.value, mask.factor * factor) for mask in found.masks)
        choice = found.choice
        if choice is not None:
            assert isinstance(op, MulOp | DivOp)
            choice = replace(choice, fill=_of_number(op, part, choice.fill))
        return replace(
            found,
            scale=found.scale * factor,
            masks=masks,
            choice=choice,
            consumed=(op, *found.consumed),
        )
    if isinstance(op, MulOp):
        return _multiplied(op, steps)
    if isinstance(op, DivOp):
        return None
    pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)] if isinstance(op, AddOp) else [(op.lhs, op.rhs)]
    for part, mask in pairs:
        found = _scores(part, steps - 1) if part.type == value.type else None
        # What stands for scores would get the mask, too, and be no number any more.
        if found is not None and found.choice is None:
            masks = (*found.masks, Mask(mask, 1.0 if isinstance(op, AddOp) else -1.0))
            return replace(found, masks=masks, consumed=(op, *found.consumed))
    return None


def _multiplied(op: MulOp, steps: int) -> Scores | None:
    """Scores times a tensor, before all that is added to them."""
    for part, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if part.type != op.result.type or (found := _scores(part, steps - 1)) is None:
            continue
        if found.masks or found.choice is not None or found.factor is not None:
            return None
        return replace(found, factor=factor, consumed=(op, *found.consumed))
    return None


def _chosen(op: SelectOp, steps: int) -> Scores | None:
    """Scores where a condition holds, or does not, and one number elsewhere."""
    for part, other, holds in ((op.on_true, op.on_false, True), (op.on_false, op.on_true, False)):
        fill = uniform_value(other)
        if fill is None or np.isnan(fill) or part.type != op.result.type:
            continue
        if (found := _scores(part, steps - 1)) is None:
            continue
        conditions, number = ((op.condition, holds),), numpy_dtype(element_type(part)).type(fill)
        if found.choice is not None:
            if found.choice.fill != number:
                return None
            conditions = (*found.choice.conditions, *conditions)
        consumed = (op, *found.consumed)
        return replace(found, choice=Choice(conditions, number), consumed=consumed)
    return None


def _of_number(op: MulOp | DivOp, part: SSAValue, number: np.floating[Any]) -> np.floating[Any]:
    """What a product or quotient with a constant makes of a number, as it rounds."""
    constant = op.rhs if op.lhs is part else op.lhs
    factor = number.dtype.type(uniform_value(constant))
    with np.errstate(all="ignore"):
        return number * factor if isinstance(op, MulOp) else number / factor


def _unguarded(weights: SSAValue) -> tuple[SSAValue, tuple[Operation, ...]]:
    """The weights of select(weights != weights, 0, weights) that are used nowhere else."""
    guard = producer(weights, SelectOp)
    test = None if guard is None else producer(guard.condition, CompareOp)
    if guard is None or test is None or test.lhs is not test.rhs:
        return weights, ()
    pairs = {Predicate.NE: (guard.on_false, guard.on_true)}
    pairs[Predicate.EQ] = (guard.on_true, guard.on_false)
    inner, other = pairs.get(test.predicate.data, (None, None))
    if inner is None or other is None or test.lhs is not inner or inner.type != weights.type:
        return weights, ()
    users = {use.operation for use in inner.uses}
    if uniform_value(other) != 0 or users != {guard, test} or not test.result.has_one_use():
        return weights, ()
    return inner, (guard, test)


def _shown(weights: SSAValue) -> tuple[SSAValue, tuple[SSAValue, bool], SelectOp] | None:
    """The weights of select(condition, weights, 0), or of its opposite."""
    if (choice := producer(weights, SelectOp)) is None:
        return None
    pairs = ((choice.on_true, choice.on_false, True), (choice.on_false, choice.on_true, False))
    for inner, other, holds in pairs:
        if uniform_value(other) == 0 and inner.type == weights.type and inner.has_one_use():
            return inner, (choice.condition, holds), choice
    return None


def _attention(weighted: MatmulOp) -> Attention | None:
    weights, guards = _unguarded(weighted.lhs)
    shown = None if guards else _shown(weights)
    if shown is not None:
        weights, _, choice = shown
        guards = (choice,)
    softmax = producer(weights, SoftmaxOp)
    if softmax is None or softmax.is_log or not weighted.lhs.has_one_use():
        return None
    if not guards and not weights.has_one_use():
        return None
    if softmax.axis.data != rank_of(softmax.input) - 1:
        return None
    element = element_type(weighted.result)
    if element not in (f32, f64) or (scores := _scores(softmax.input)) is None:
        return None
    product = scores.product
    conditions = () if scores.choice is None else scores.choice.conditions
    if shown is not None and conditions != (shown[1],):
        return None
    masks = [*(mask.value for mask in scores.masks), *(value for value, _ in conditions)]
    if scores.factor is not None:
        masks.append(scores.factor)
    if not _fits(product, weighted, masks) or (scores.choice and np.isnan(scores.choice.fill)):
        return None
    if not (product.is_uniform and weighted.is_uniform):
        return None
    query, key = _unscale(product.lhs), _unscale(product.rhs)
    scale = scores.scale * query.scale * key.scale
    factors = [scale, *(mask.factor for mask in scores.masks)]
    if not all(_is_representable(factor, element) for factor in factors):
        return None
    return Attention(
        query,
        key,
        weighted.rhs,
        scores.masks,
        scores.factor,
        scores.choice,
        bool(guards) and shown is None,
        shown is not None,
        scale,
        (weighted, *guards, softmax, *scores.consumed, *query.consumed, *key.consumed),
    )


def _fits(product: MatmulOp, weighted: MatmulOp, masks: Sequence[SSAValue]) -> bool:
    """True if only masks broadcast, and all dimensions are known to match."""
    query, key, value = (dims_of(v) for v in (product.lhs, product.rhs, weighted.rhs))
    if not query[:-2] == key[:-2] == value[:-2]:
        return False
    if query[-1] != key[-2] or key[-1] != value[-2]:
        return False
    scores = dims_of(product.result)
    return all(broadcast([scores, dims_of(mask)]) == scores for mask in masks)


def _is_representable(scale: float, element: Attribute) -> bool:
    with np.errstate(all="ignore"):
        rounded = numpy_dtype(element).type(scale)
    return bool(np.isfinite(rounded)) and rounded != 0


def _swapped(rank: int, first: int, second: int) -> list[int]:
    permutation = list(range(rank))
    permutation[first], permutation[second] = permutation[second], permutation[first]
    return permutation


def _heads_last(rank: int) -> tuple[list[int], list[int]]:
    """Permutations [..., H, T, D] -> [..., T, H, D] and [..., H, D, S] -> [..., S, H, D]."""
    batch = list(range(rank - 3))
    return _swapped(rank, rank - 3, rank - 2), [*batch, rank - 1, rank - 3, rank - 2]


def _cancels(value: SSAValue, permutation: Sequence[int]) -> bool:
    """True if a transpose of `value` would move nothing, because `value` is its inverse."""
    if isinstance(value.owner, ConstantOp):
        return True
    source, moved = value, list(permutation)
    if isinstance(value.owner, TransposeOp):
        first = ints(value.owner.permutation)
        source, moved = value.owner.input, [first[axis] for axis in moved]
    dims = dims_of(source)
    kept = [axis for axis in moved if dims[axis] != 1]
    return kept == sorted(kept)


def _is_transposed(value: SSAValue) -> bool:
    return isinstance(value.owner, TransposeOp)


def _next_transpose(value: SSAValue) -> TransposeOp | None:
    """The only user of a value if it is a transpose."""
    if not value.has_one_use() or (use := value.first_use) is None:
        return None
    return use.operation if isinstance(use.operation, TransposeOp) else None


def _pays(op: MatmulOp, attention: Attention) -> bool:
    """True if fewer transposes remain with heads last than with the operands unchanged."""
    rank = rank_of(op.result)
    if rank < 3:
        return False
    rows, columns = _heads_last(rank)
    key = attention.key.moves[0].results[0] if attention.key.moves else attention.key.value
    query = attention.query.moves[0].results[0] if attention.query.moves else attention.query.value
    following = _next_transpose(op.result)
    joins = following is not None and _permutes_back(op.result, following, rows)
    heads_last = [
        not _cancels(query, rows),
        not _cancels(key, columns),
        not _cancels(attention.value, rows),
        not joins,
    ]
    as_they_are = [
        _is_transposed(query),
        not _cancels(key, _swapped(rank, rank - 2, rank - 1)),
        _is_transposed(attention.value),
        following is not None,
    ]
    return sum(heads_last) <= sum(as_they_are)


def _permutes_back(value: SSAValue, op: TransposeOp, rows: Sequence[int]) -> bool:
    """True if `op`, after a transpose by `rows` (its own inverse), moves nothing."""
    dims = dims_of(value)
    source = [dims[axis] for axis in rows]
    moved = [rows[axis] for axis in ints(op.permutation)]
    kept = [axis for axis in moved if source[axis] != 1]
    return kept == sorted(kept)


class FuseAttention(Pattern[Attention]):
    """softmax(select(keep, q @ k * c + mask, fill)) @ v -> attention(q, k, v, mask, keep)"""

    name = "fuse-attention"
    roots = (MatmulOp,)
    ranked = True

    def match(self, op: MatmulOp) -> Match[Attention] | None:
        attention = _attention(op)
        if attention is None:
            return None
        return Match(attention.consumed, "a softmax between two products", attention)

    def rewrite(self, match: Match[Attention], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, MatmulOp)
        if _pays(op, match.data):
            self._with_heads_last(op, match.data, rewriter)
        else:
            self._with_one_head(op, match.data, rewriter)

    @staticmethod
    def _with_heads_last(op: MatmulOp, attention: Attention, rewriter: Rewriter) -> None:
        """[..., H, T, D]: with transposes that adjacent ones cancel."""
        rows, columns = _heads_last(rank_of(op.result))

        def turned(value: SSAValue, permutation: Sequence[int]) -> SSAValue:
            return rewriter.add(TransposeOp(value, permutation)).result

        query = turned(_restored(attention.query, rewriter), rows)
        key = turned(_restored(attention.key, rewriter), columns)
        value = turned(attention.value, rows)
        new = AttentionOp(
            query,
            key,
            value,
            _mask(attention, rewriter),
            factor=attention.factor,
            keep=_keep(attention, rewriter),
            fill=_fill(attention),
            scale=attention.scale,
            zero_nan=attention.zero_nan,
            zero_hidden=attention.zero_hidden,
        )
        rewriter.replace(op, turned(rewriter.add(new).result, rows))

    @staticmethod
    def _with_one_head(op: MatmulOp, attention: Attention, rewriter: Rewriter) -> None:
        """[..., T, D] as [..., T, 1, D]: a view, and the leading dimensions are the batch."""

        def with_one(value: SSAValue, before: int) -> SSAValue:
            dims = list(dims_of(value))
            dims.insert(len(dims) - before, Expr.const(1))
            return rewriter.add(ReshapeOp(value, dims)).result

        key = _restored(attention.key, rewriter)
        rank = rank_of(key)
        key = rewriter.add(TransposeOp(key, _swapped(rank, rank - 2, rank - 1))).result
        parts = (attention.factor, _mask(attention, rewriter), _keep(attention, rewriter))
        factor, mask, keep = (
            with_one(part, 2) if part is not None and rank_of(part) > 2 else part for part in parts
        )
        new = AttentionOp(
            with_one(_restored(attention.query, rewriter), 1),
            with_one(key, 1),
            with_one(attention.value, 1),
            mask,
            factor=factor,
            keep=keep,
            fill=_fill(attention),
            scale=attention.scale,
            zero_nan=attention.zero_nan,
            zero_hidden=attention.zero_hidden,
        )
        rewriter.replace(op, ReshapeOp(rewriter.add(new).result, dims_of(op.result)))


def _mask(attention: Attention, rewriter: Rewriter) -> SSAValue | None:
    """The sum of the masks, each times its factor; None without any."""
    total: SSAValue | None = None
    for mask in attention.masks:
        value = mask.value
        if mask.factor != 1.0:
            factor = rewriter.add(scalar(mask.factor, element_type(value))).result
            value = rewriter.add(MulOp(value, factor)).result
        total = value if total is None else rewriter.add(AddOp(total, value)).result
    return total


def _keep(attention: Attention, rewriter: Rewriter) -> SSAValue | None:
    """Where all conditions are as they have to be; None without any."""
    total: SSAValue | None = None
    for value, holds in attention.choice.conditions if attention.choice else ():
        value = value if holds else rewriter.add(NotOp(value)).result
        total = value if total is None else rewriter.add(AndOp(total, value)).result
    return total


def _fill(attention: Attention) -> float | None:
    return None if attention.choice is None else float(attention.choice.fill)


def _restored(chain: Chain, rewriter: Rewriter) -> SSAValue:
    """The value without its factors, moved as before."""
    value = chain.value
    for move in reversed(chain.moves):
        properties = dict(move.properties)
        types = list(move.result_types)
        new = type(move).create(operands=[value], properties=properties, result_types=types)
        value = rewriter.add(new).results[0]
    return value


class FuseAttentionPass(PatternPass):
    """
    Attention as one op, so that the scores need no memory and heads no copies.

    - softmax(q @ k * c + mask, last axis) @ v -> attention(q, k, v, mask) {scale = c}
    - softmax((q @ k + m) * c - n, last axis) @ v -> attention(q, k, v, m * c + n * -1) {scale = c}
    - softmax(q @ k * t + mask, last axis) @ v -> attention(q, k, v, factor t, mask)
    - select(w != w, 0, w) @ v, w = softmax(q @ k, last axis) -> attention(q, k, v) {zero_nan}
    - select(b, w, 0) @ v, w = softmax(select(b, q @ k, f), last axis)
      -> attention(q, k, v, keep b) {fill = f, zero_hidden}
    - softmax(select(b, q @ k, f) * c, last axis) @ v
      -> attention(q, k, v, keep b) {scale = c, fill = f * c}
      [f32 or f64; batch dimensions equal; no mask exceeds the scores; up to 8 factors and masks;
      c and f are one number; t multiplies scores before any mask, and once; of several selections
      all have the same f; no mask is added behind them]

    Factors on q, on k (also before transposes and reshapes) and on the scores are combined to one
    scale; a division counts as a factor, and the scale has the precision of f64. Masks that come
    before a factor are multiplied by it, and several are added up: together they are no larger than
    the scores, which need no memory any more. Each value between the products, and each one that
    loses a factor, has no other use.

    Transposes move the heads of q, k and v to the dimension before the last, if at most as many
    transposes as before remain after composing them with adjacent ones (`simplify`). Otherwise each
    head is separate: its dimension of size one is a view. A mask is kept even if it is a constant
    that hides keys: hidden NaN and infinities propagate, and those that are not kept do not.
    """

    name = "fuse-attention"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [FuseAttention()]
