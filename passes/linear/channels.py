"""Which channels of values belong together, which are zero, and which nothing reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE, MulOp
from lowerdeck.dialects.core.enums import PoolKind, ReduceKind
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, constants, product
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import is_ranked
from lowerdeck.passes.machinery.values import Array


@record
class Channels:
    """What is known of the elements along one axis of a value."""

    axis: int
    ids: Array
    """Which channel of a product each is: those that belong together have one number."""
    is_zero: Array
    """True for those that are zero in every run."""


class _Numbers:
    """Numbers of channels; some are one, and some are needed."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._needed: set[int] = set()

    def new(self, count: int) -> Array:
        """So many channels of a product."""
        first = len(self._parent)
        self._parent += range(first, first + count)
        return np.arange(first, first + count)

    def find(self, number: int) -> int:
        """The one that stands for a channel."""
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def unite(self, one: Array, other: Array) -> None:
        """Channels that meet each other are there, or not, together."""
        for left, right in zip(one.tolist(), other.tolist(), strict=True):
            self._parent[self.find(left)] = self.find(right)

    def need(self, ids: Array) -> None:
        """These are read."""
        self._needed.update(ids.tolist())

    def settle(self) -> None:
        """What is united with something that is needed is needed."""
        self._needed = {self.find(number) for number in self._needed}

    def kept(self, channels: Channels) -> Array:
        """Which of the channels stay."""
        return np.array([self.find(k) in self._needed for k in channels.ids.tolist()], bool)


class ChannelAnalysis:
    """The channels of the values of one block, first to last."""

    def __init__(self) -> None:
        self.numbers = _Numbers()
        self.channels: dict[SSAValue, Channels] = {}
        self.whole: set[int] = set()
        """Channels that something else than products reads."""
        self.products: list[ConvOp | MatmulOp] = []
        """What computes channels, with constant weights."""

    def follow(self, block: Block) -> None:
        """Follow all channels."""
        for op in block.ops:
            self._follow(op)
        for op in block.ops:
            # What is inside of other ops reads all.
            if op.regions:
                for inner in op.walk():
                    self._need_all(inner.operands)

    def settle(self) -> bool:
        """Decide which channels stay; False if all do."""
        self.numbers.settle()
        for channels in self.channels.values():
            if not self.numbers.kept(channels).any():
                self.numbers.need(channels.ids[:1])
        self.numbers.settle()
        return not all(self.numbers.kept(each).all() for each in self.channels.values())

    def kept(self, value: SSAValue) -> Array | None:
        """Which channels of a value stay; None if all do."""
        channels = self.channels.get(value)
        kept = None if channels is None else self.numbers.kept(channels)
        return None if kept is None or kept.all() else kept

    def _need_all(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            if (channels := self.channels.get(value)) is not None:
                self.numbers.need(channels.ids)
                self.whole.update(channels.ids.tolist())

    def _follow(self, op: Operation) -> None:
        found: Channels | None = None
        if isinstance(op, CoreOp) and is_ranked(op):
            match op:
                case ConvOp():
                    found = self._conv(op)
                case MatmulOp():
                    found = self._matmul(op)
                case ConcatOp():
                    found = self._concat(op)
                case PoolOp() | ReduceOp() | TransposeOp() | ReshapeOp() | SliceOp():
                    found = self._moved(op)
                case _ if isinstance(op, ELEMENTWISE):
                    found = self._elementwise(op)
                case _:
                    pass
        if found is None:
            self._need_all(op.operands)
        else:
            self.channels[op.results[0]] = found
            if isinstance(op, ConvOp | MatmulOp):
                self.products.append(op)

    def _conv(self, op: ConvOp) -> Channels | None:
        weight, source = _weights(op.weight), self.channels.get(op.input)
        bias = _bias(op)
        if weight is None or bias is None or op.zero_points or not op.is_uniform:
            return None
        if source is not None and source.axis != 1:
            return None
        flat: Array = np.asarray(weight.reshape(*weight.shape[:2], -1).any(-1))
        if op.groups.data == 1:
            if source is not None:
                self.numbers.need(source.ids[~source.is_zero & flat.any(0)])
                flat = flat[:, ~source.is_zero]
            ids = self.numbers.new(len(weight))
            return Channels(1, ids, np.asarray(~flat.any(1) & (bias == 0)))
        if source is None or weight.shape[1] != 1 or len(source.ids) != op.groups.data:
            return None
        # One channel a group: a result is there if what it is made of is.
        copies = len(weight) // len(source.ids)
        is_zero = ~flat.any(1) | np.repeat(source.is_zero, copies)
        return Channels(1, np.repeat(source.ids, copies), np.asarray(is_zero & (bias == 0)))

    def _matmul(self, op: MatmulOp) -> Channels | None:
        weight, source = _weights(op.rhs), self.channels.get(op.lhs)
        if weight is None or weight.ndim != 2 or op.zero_points or not op.is_uniform:
            return None
        if source is not None:
            if source.axis != rank_of(op.lhs) - 1:
                return None
            self.numbers.need(source.ids[~source.is_zero & weight.any(1)])
            weight = weight[~source.is_zero]
        ids = self.numbers.new(weight.shape[1])
        return Channels(rank_of(op.result) - 1, ids, np.asarray(~weight.any(0)))

    def _concat(self, op: ConcatOp) -> Channels | None:
        parts = [self.channels.get(value) for value in op.inputs]
        known = [part for part in parts if part is not None]
        axis = op.axis.data
        if len(known) != len(parts) or any(part.axis != axis for part in known):
            return None
        ids, is_zero = (
            np.concatenate([getattr(part, name) for part in known]) for name in ("ids", "is_zero")
        )
        return Channels(axis, ids, is_zero)

    def _moved(self, op: CoreOp) -> Channels | None:
        source = self.channels.get(op.operands[0])
        if source is None:
            return None
        match op:
            case PoolOp():
                return source if _keeps_zeros(op, source) else None
            case ReduceOp():
                return self._reduced(op, source)
            case TransposeOp():
                return replace(source, axis=list(ints(op.permutation)).index(source.axis))
            case SliceOp():
                return _sliced(op, source)
            case ReshapeOp():
                return _reshaped(op, source)
            case _:
                return None

    def _reduced(self, op: ReduceOp, source: Channels) -> Channels | None:
        axes = ints(op.axes)
        if source.axis in axes or op.kind.data not in (
            ReduceKind.SUM,
            ReduceKind.MAX,
            ReduceKind.MIN,
        ):
            return None
        if any(dims_of(op.input)[axis].value in (None, 0) for axis in axes):
            return None
        before = 0 if op.keep_dims.value.data else sum(axis < source.axis for axis in axes)
        return replace(source, axis=source.axis - before)

    def _elementwise(self, op: CoreOp) -> Channels | None:
        rank = rank_of(op.results[0])
        known = {value: self.channels[value] for value in op.operands if value in self.channels}
        if not known or not is_float(element_type(op.results[0])):
            return None
        places = {each.axis - rank_of(value) + rank for value, each in known.items()}
        if len(places) != 1:
            return None
        (axis,) = places
        first = next(iter(known.values()))
        count = len(first.ids)
        if dims_of(op.results[0])[axis] != count:
            return None
        for value in op.operands:
            if value in known:
                if len(known[value].ids) != count:
                    return None
            elif not isinstance(value.owner, ConstantOp) and not _is_one_along(value, axis, rank):
                return None
        for each in known.values():
            self.numbers.unite(first.ids, each.ids)
        return Channels(axis, first.ids, _zeros(op, known, axis, count))


def _weights(value: SSAValue) -> Array | None:
    """Constant weights, all finite; None for others."""
    owner = value.owner
    if not isinstance(owner, ConstantOp) or not is_float(element_type(value)):
        return None
    try:
        array: Array = owner.array
    except ElidedBlobError:
        return None
    return array if np.isfinite(array).all() else None


def _bias(op: ConvOp) -> Array | None:
    if op.bias is None:
        return np.zeros(dims_of(op.weight)[0].value or 0)
    return _weights(op.bias)


def _keeps_zeros(op: PoolOp, source: Channels) -> bool:
    """True if each window of zeros gives zero, and channels stay apart."""
    kernel = constants(op.kernel.data)
    if kernel is None or source.axis >= rank_of(op.input) - len(kernel):
        return False
    if op.kind.data is not PoolKind.MAX:
        return True
    # A window of padding alone has no largest element.
    sides = (op.pads_begin.data, op.pads_end.data, op.overhang.data)
    beyond = [sum(dim.value or 0 for dim in each) for each in zip(*sides, strict=True)]
    is_known = all(dim.value is not None for side in sides for dim in side)
    is_inside = all(extra < size for extra, size in zip(beyond, kernel, strict=True))
    return is_known and is_inside and all(step == 1 for step in ints(op.dilations))


def _sliced(op: SliceOp, source: Channels) -> Channels | None:
    axis = source.axis
    lists = (op.starts.data, op.sizes.data, op.steps.data)
    start, size, step = (each[axis].value for each in lists)
    if start is None or size is None or step != 1:
        return None
    places = slice(start, start + size)
    return Channels(axis, source.ids[places], source.is_zero[places])


def _reshaped(op: ReshapeOp, source: Channels) -> Channels | None:
    """A channel stays a dimension, or is one with what follows it."""
    before, after = dims_of(op.input), dims_of(op.result)
    count = len(source.ids)
    ahead = product(before[: source.axis])
    for axis in range(len(after)):
        if product(after[:axis]) != ahead:
            continue
        inside = _ratio(after[axis], count)
        if inside is None or after[axis] == 1 != count:
            continue
        rest = product(before[source.axis + 1 :])
        if inside == 1 or product(after[axis + 1 :]) * inside == rest:
            return Channels(axis, np.repeat(source.ids, inside), np.repeat(source.is_zero, inside))
    return None


def _ratio(dim: Expr, count: int) -> int | None:
    return dim.value // count if dim.value and dim.value % count == 0 else None


def _is_one_along(value: SSAValue, axis: int, rank: int) -> bool:
    own = axis - rank + rank_of(value)
    return own < 0 or dims_of(value)[own] == 1


def _zeros(op: CoreOp, known: dict[SSAValue, Channels], axis: int, count: int) -> Array:
    """Where a result is zero: a product with zero, or what zeros and constants give."""
    masks = [each.is_zero for each in known.values()]
    if isinstance(op, MulOp):
        return reduce(np.logical_or, masks)
    both = reduce(np.logical_and, masks)
    none = np.zeros(count, bool)
    if not both.any() or not is_evaluable(op):
        return none
    rank = rank_of(op.results[0])
    args: list[Array] = []
    for value in op.operands:
        if value in known:
            shape = [1] * rank
            shape[axis] = count
            args.append(np.zeros(shape, numpy_dtype(element_type(value))))
        elif isinstance(value.owner, ConstantOp):
            try:
                args.append(value.owner.array)
            except ElidedBlobError:
                return none
        else:
            return none
    try:
        (result,) = evaluate(op, args, {})
    except InterpretError:
        return none
    result = result.reshape(*[1] * (rank - result.ndim), *result.shape)
    others = tuple(k for k in range(rank) if k != axis)
    return both & (result == 0).all(axis=others)
