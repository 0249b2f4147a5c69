"""
The best elements along a dimension, in order. Few of them are kept in registers or in a heap; many
are found by counting digits, and sorted digit by digit. In short slices each element is compared
with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log2

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.tensor import TopKOp
from lowerdeck.dialects.core.types import (
    bit_width,
    dims_of,
    element_type,
    f64,
    i1,
    is_float,
    is_unsigned,
)
from lowerdeck.dialects.dims import Expr, minimum, product
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.exact import Exact
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor
from lowerdeck.lowering.targets.base import BYTE_BITS

Item = Sequence[SSAValue]
"""The key of an element, or what is compared like it, and its place."""

MOST_IN_REGISTERS = 8
"""Elements that are kept in registers at most, however many there are."""

MOST_OF_FEW = 16
"""The same for slices side by side that have few elements each."""

SHORT = 32
"""So many elements are compared one after the other even if no vectors come of it."""

AT_ONCE = 16
"""Elements that are compared with the worst of the best at once."""

PLACES = 1 << (i32.width.data - 1)
"""That fit in i32."""

STACK_BYTES = 1 << 18
"""For what is sorted; more is in the workspace, which threads do not share."""

DIGIT_BITS, FIRST_DIGIT_BITS = 8, 11
"""Of digits by which keys are sorted, and at most of the first one, by which they are chosen."""


@anchor(TopKOp, alone=True)
def lower_top_k(k: KernelLowering, op: TopKOp) -> None:
    """Independent slices, each in the way that takes the fewest steps."""
    dims, axis = dims_of(op.input), op.axis.data
    outer, inner = dims[:axis], dims[axis + 1 :]
    size, count = op.k.data[0].value, dims[axis].value
    key = key_type(element_type(op.input))
    if _are_few(size, count, inner) or _are_few_side_by_side(size, count, inner, key):
        with k.builder.nest(outer, parallel=True) as first:
            # What is where the data says is fetched one by one, after all that is in vectors.
            for part in (_Few.lower, _Few.fetch):
                with k.builder.nest(inner, parallel=not outer) as last:
                    part(_Few(k, op, [*first, *last]))
        return
    memory: _Memory | None = None
    if size and count:
        of_heap, of_sort = _steps_of_heap(size, count), _steps_of_sort(size, count)
        if _steps_of_ranks(size, count, key) < min(of_heap, of_sort):
            with k.builder.nest([*outer, *inner], parallel=True) as at:
                _Ranked(k, op, at).lower()
            return
        if of_sort < of_heap:
            memory = _Memory(k, element_type(op.input), count)
    elif count is None and op.k.data[0] == dims[axis]:
        _lower_open(k, op)
        return
    is_parallel = memory is None or memory.is_on_stack
    with k.builder.nest([*outer, *inner], parallel=is_parallel) as at:
        if memory is not None:
            _Sorted(k, op, at, memory).lower()
        else:
            _lower_heap(k, op, at)


def _lower_open(k: KernelLowering, op: TopKOp) -> None:
    """
    All of an open number of elements, in order: few of them in a heap, and those for which there is
    no memory on the stack. (A workspace of open size would have to be there before a number that
    data decide is known.)
    """
    b, dims, axis = k.builder, dims_of(op.input), op.axis.data
    element, count, slices = element_type(op.input), dims[axis], [*dims[:axis], *dims[axis + 1 :]]
    most = STACK_BYTES // _Memory.bytes_of(element)
    memory = _Memory(k, element, most)
    many = 2
    while _steps_of_sort(many, many) >= _steps_of_heap(many, many):
        many *= 2
    with k.builder.nest(slices, parallel=True) as at:
        is_many = b.compare_index("sge", count, many)
        is_sorted = b.add(arith.AndIOp(is_many, b.compare_index("slt", count, most)))
        with b.when(is_sorted):
            _Sorted(k, op, at, memory).lower()
        with b.when(b.add(arith.XOrIOp(is_sorted, b.integer(1, i1)))):
            _Heap(k, op, at, is_short=is_narrow(count)).lower()


def _lower_heap(k: KernelLowering, op: TopKOp, at: Index) -> None:
    """One of numbers, also of an open number of elements where all of their places fit in these."""
    b, count = k.builder, dims_of(op.input)[op.axis.data]
    if count.value is not None or key_type(element_type(op.input)) != i32:
        _Heap(k, op, at, is_short=is_narrow(count)).lower()
        return
    for predicate, is_short in (("slt", True), ("sge", False)):
        with b.when(b.compare_index(predicate, count, PLACES)):
            _Heap(k, op, at, is_short=is_short).lower()


def _are_few(size: int | None, count: int | None, inner: Sequence[Expr]) -> bool:
    """True if the best fit in registers, and slices side by side or few elements are compared."""
    if size is None or not 1 <= size <= MOST_IN_REGISTERS:
        return False
    if product(inner) != 1:
        return True
    return count is not None and count <= SHORT and size <= MOST_IN_REGISTERS // 2


def _are_few_side_by_side(
    size: int | None, count: int | None, inner: Sequence[Expr], key: IntegerType
) -> bool:
    """True if slices that fill vectors are so short that heaps would change all the time."""
    slices = product(inner).value
    if not size or count is None or size > MOST_OF_FEW or slices is None or slices < AT_ONCE:
        return False
    steps = min(_steps_of_heap(size, count), _steps_of_ranks(size, count, key))
    # In vectors of eight, of which each element in registers takes part in five operations.
    return key == i32 and size * count * 2 < steps


def _steps_of_heap(size: int, count: int) -> float:
    """To look at all elements, at those that are near the best again, and to sort the heap."""
    levels = log2(size) + 1
    entering = size * (1 + log(count / size))
    looks = count / 4 + min(count, AT_ONCE * entering) * 2
    return looks + (entering + size) * levels * 12


def _steps_of_sort(size: int, count: int) -> float:
    """To count and choose digits, and to sort somewhat more than are asked for."""
    sorted_, choice = min(count, 1.5 * size), 3 * (1 << _first_digit_bits(count))
    return (0 if size == count else count * 6 + choice) + sorted_ * 24 + 3000


def _first_digit_bits(count: int) -> int:
    """Among few elements a search through many digits is not worth it."""
    return min(FIRST_DIGIT_BITS, max(DIGIT_BITS, count.bit_length()))


def _steps_of_ranks(size: int, count: int, key: IntegerType) -> float:
    """To compare all with all in vectors, and to put each element where it belongs."""
    vectors = -(-count * key.width.data // (32 * AT_ONCE))
    return count * (vectors * 3 + 8) + size * 6


class _Slice:
    """
    One slice of the input and its results. Elements are compared by keys, signed integers that are
    larger for better elements: zeros have the same one, and so have NaN.
    """

    def __init__(self, k: KernelLowering, op: TopKOp, at: Index) -> None:
        self._k, self._op, self._at, self._axis = k, op, at, op.axis.data
        self._element = element_type(op.input)
        self._size, self._count = op.k.data[0], dims_of(op.input)[self._axis]
        self._type = key_type(self._element)

    def _value(self, place: Expr) -> SSAValue:
        value = self._k.element(self._op.input, self._index(place))
        return scalars.widen(self._k.builder, value)

    def _key(self, value: SSAValue) -> SSAValue:
        b, element, width = self._k.builder, self._element, self._type
        if is_float(element):
            value = scalars.add(b, value, scalars.constant(b, 0, element))
            bits = b.add(arith.BitcastOp(value, width))
            most = b.integer(~(-1 << (width.width.data - 1)), width)
            negative = b.add(arith.CmpiOp(bits, b.integer(0, width), "slt"))
            turned = b.add(arith.SelectOp(negative, b.add(arith.XOrIOp(bits, most)), bits))
            is_nan = b.add(arith.CmpfOp(value, value, "uno"))
            key = b.add(arith.SelectOp(is_nan, most, turned))
        else:
            key = scalars.cast(b, value, element, width)
            if is_unsigned(element) and bit_width(element) == width.width.data:
                lowest = b.integer(-1 << (width.width.data - 1), width)
                key = b.add(arith.XOrIOp(key, lowest))
        if not self._op.largest.value.data:
            key = b.add(arith.XOrIOp(key, b.integer(-1, width)))
        return key

    def _give(self, rank: Expr, index: SSAValue) -> None:
        """Store an element of the input, and its place, i64, as result number `rank`."""
        b, (values, indices) = self._k.builder, self._k.outputs
        place = self._index(b.from_integer(index))
        b.store(self._k.element(self._op.input, place), values, self._index(rank))
        b.store(index, indices, self._index(rank))

    def _index(self, place: Expr) -> Index:
        return [*self._at[: self._axis], place, *self._at[self._axis :]]


def key_type(element: Attribute) -> IntegerType:
    """The type of keys: as wide as what elements are computed in, and at least 32 bits."""
    computed = scalars.compute_type(element)
    return i64 if computed == f64 or computed == i64 else i32


class _Few(_Slice):
    """The best so far are carried, in order; each element takes its place among them."""

    def lower(self) -> None:
        """Begin with the first elements, and put in one after the other."""
        b, size = self._k.builder, self._size.value
        assert size is not None
        best: list[Item] = []
        for place in range(size):
            best = self._inserted(best, self._item(Expr.const(place)), grows=True)

        def put_in(place: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            items = list(zip(values[::2], values[1::2], strict=True))
            found = self._inserted(items, self._item(place), grows=False)
            return [value for item in found for value in item]

        inits = [value for item in best for value in item]
        values = b.carry(self._count, inits, put_in, size)
        for rank, index in enumerate(values[1::2]):
            wide = index if index.type == i64 else b.add(arith.ExtUIOp(index, i64))
            b.store(wide, self._k.outputs[1], self._index(Expr.const(rank)))

    def fetch(self) -> None:
        """The elements at the places found."""
        b, (values, indices), size = self._k.builder, self._k.outputs, self._size.value
        assert size is not None
        for rank in map(self._index, map(Expr.const, range(size))):
            place = self._index(b.from_integer(b.load(indices, rank)))
            b.store(self._k.element(self._op.input, place), values, rank)

    def _item(self, place: Expr) -> Item:
        b, index = self._k.builder, self._k.builder.as_integer(place)
        if self._type == i32 and is_narrow(self._count):
            index = b.add(arith.TruncIOp(index, i32))
        return [self._key(self._value(place)), index]

    def _inserted(self, best: Sequence[Item], item: Item, *, grows: bool) -> list[Item]:
        """Of equal elements the earlier one stays in front; all behind the new one make room."""
        b, found, new = self._k.builder, list[Item](), item[0]
        for key, index in best:
            is_better = b.add(arith.CmpiOp(new, key, "sgt"))
            front = b.add(arith.SelectOp(is_better, item[1], index))
            back = b.add(arith.SelectOp(is_better, index, item[1]))
            found.append([b.add(arith.MaxSIOp(item[0], key)), front])
            item = [b.add(arith.MinSIOp(item[0], key)), back]
        return [*found, item] if grows else found


def is_narrow(count: Expr) -> bool:
    """True if all places in a dimension are i32."""
    return count.value is not None and count.value < PLACES


class _Heap(_Slice):
    """
    The best so far lie as a heap with the worst of them in front, which each better element
    replaces; sorting the heap brings the best to the front. Before the sort, no element comes
    behind its children.

    It lies in the results: one number for the key and the place where both fit in it, else the
    element and its place.
    """

    def __init__(self, k: KernelLowering, op: TopKOp, at: Index, *, is_short: bool) -> None:
        super().__init__(k, op, at)
        self._is_packed = self._type == i32 and is_short

    def lower(self) -> None:
        """Fill the heap, let every other element try to get in, and sort."""
        b, size = self._k.builder, self._size
        levels = self._levels()
        with b.loop(size) as place:
            self._put(place, self._item(place))
        with b.loop(size // 2) as number:
            place = size // 2 - 1 - number
            self._sift(self._get(place), place, size, levels)
        # A heap without a place has no worst element.
        count, done = self._count * minimum(size, 1), size
        if self._are_compared_at_once():
            blocks = (count - size) // AT_ONCE
            with b.loop(blocks) as block:
                self._try_block(size + block * AT_ONCE, levels)
            done = size + blocks * AT_ONCE
        with b.loop(count, done) as place:
            self._try(place, levels)
        with b.loop(size - minimum(size, 1)) as number:
            last = size - 1 - number
            item, worst = self._get(last), self._get(Expr.const(0))
            self._put(last, worst)
            self._sift(item, Expr.const(0), last, levels)
        if self._is_packed:
            with b.loop(size) as rank:
                self._give(rank, self._place_of(self._get(rank)))

    def _are_compared_at_once(self) -> bool:
        """True for elements side by side, of types that are compared in vectors."""
        inner = dims_of(self._op.input)[self._axis + 1 :]
        is_short = self._count.value is not None and self._count.value < 2 * AT_ONCE
        return product(inner) == 1 and self._element != f64 and not is_short

    def _worst(self) -> SSAValue:
        b, item = self._k.builder, self._get(Expr.const(0))
        return self._value(b.from_integer(self._place_of(item))) if self._is_packed else item[2]

    def _try_block(self, start: Expr, levels: Expr) -> None:
        """Elements side by side, if one of them is better than the worst."""
        b, worst = self._k.builder, self._worst()

        def is_one_better(place: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            better = self._is_better(self._value(start + place), worst)
            return [b.add(arith.OrIOp(values[0], better))]

        with b.when(b.carry(AT_ONCE, [b.integer(0, i1)], is_one_better)[0]):
            with b.loop(AT_ONCE) as place:
                self._try(start + place, levels)

    def _is_better(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """True if lhs comes strictly before rhs by value; NaN counts as largest."""
        b, element = self._k.builder, self._element
        largest = bool(self._op.largest.value.data)
        before = scalars.compare(b, "gt" if largest else "lt", lhs, rhs, element)
        if not is_float(element):
            return before
        nan, number = (lhs, rhs) if largest else (rhs, lhs)
        is_nan = b.add(arith.CmpfOp(nan, nan, "uno"))
        is_number = b.add(arith.CmpfOp(number, number, "ord"))
        return b.add(arith.OrIOp(before, b.add(arith.AndIOp(is_nan, is_number))))

    def _try(self, place: Expr, levels: Expr) -> None:
        """It is later than all in the heap: as good as the worst is not enough."""
        b = self._k.builder
        item, worst = self._item(place), self._get(Expr.const(0))
        with b.when(b.add(arith.CmpiOp(item[0], worst[0], "sgt"))):
            self._sift(item, Expr.const(0), self._size, levels)

    def _levels(self) -> Expr:
        """How often one can go from a place of the heap to a child of it."""
        if (size := self._size.value) is not None:
            return Expr.const(max(size, 1).bit_length() - 1)
        b = self._k.builder

        def halve(_: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            left = b.add(arith.ShRUIOp(values[0], b.integer(1, i64)))
            more = b.add(arith.CmpiOp(left, b.integer(0, i64), "ne"))
            return [left, scalars.add(b, values[1], b.add(arith.ExtUIOp(more, i64)))]

        start = [b.as_integer(self._size), b.integer(0, i64)]
        return b.from_integer(b.carry(i64.width.data - 1, start, halve)[1])

    def _sift(self, item: Item, place: Expr, size: Expr, levels: Expr) -> None:
        """Put an item in a place of a heap of `size` places, or, in turn with worse ones, below."""
        b = self._k.builder
        if levels == 0:
            self._put(place, item)
            return

        def go_down(_: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = b.from_integer(values[0])
            # Where there are no children, an item is compared with one of which it is no child.
            left, right = (minimum(here * 2 + n, size - 1) for n in (1, 2))
            first, second = self._get(left), self._get(right)
            is_left = self._is_before(second, first)
            child = [
                b.add(arith.SelectOp(is_left, one, other))
                for one, other in zip(
                    (*first, b.as_integer(left)), (*second, b.as_integer(right)), strict=True
                )
            ]
            inside = b.compare_index("slt", here * 2 + 1, size)
            moves = b.add(arith.AndIOp(inside, self._is_before(item, child)))
            # Where an item has come to rest it is put again.
            pairs = zip(child[:-1], item, strict=True)
            put = [b.add(arith.SelectOp(moves, one, other)) for one, other in pairs]
            self._put(here, put)
            return [b.add(arith.SelectOp(moves, child[-1], values[0]))]

        (end,) = b.carry(levels, [b.as_integer(place)], go_down)
        self._put(b.from_integer(end), item)

    def _item(self, place: Expr) -> Item:
        """A number for the key above the complement of the place; or key, place, and element."""
        b, value, index = self._k.builder, self._value(place), self._k.builder.as_integer(place)
        key = self._key(value)
        if not self._is_packed:
            return [key, index, value]
        high = b.add(arith.ShLIOp(b.add(arith.ExtSIOp(key, i64)), b.integer(i32.width.data, i64)))
        low = b.add(arith.XOrIOp(index, b.integer(_LOW, i64)))
        return [b.add(arith.OrIOp(high, low))]

    def _place_of(self, item: Item) -> SSAValue:
        if not self._is_packed:
            return item[1]
        b = self._k.builder
        low = b.add(arith.AndIOp(item[0], b.integer(_LOW, i64)))
        return b.add(arith.XOrIOp(low, b.integer(_LOW, i64)))

    def _get(self, place: Expr) -> Item:
        b, (values, indices) = self._k.builder, self._k.outputs
        at = self._index(place)
        number = b.load(indices, at)
        if self._is_packed:
            return [number]
        value = scalars.widen(b, b.load(values, at))
        return [self._key(value), number, value]

    def _put(self, place: Expr, item: Item) -> None:
        b, (values, indices) = self._k.builder, self._k.outputs
        at = self._index(place)
        if self._is_packed:
            b.store(item[0], indices, at)
            return
        b.store(scalars.narrow(b, item[2], self._element), values, at)
        b.store(item[1], indices, at)

    def _is_before(self, lhs: Item, rhs: Item) -> SSAValue:
        """True if lhs comes before rhs in the result: it is better, or as good and earlier."""
        b = self._k.builder
        better = b.add(arith.CmpiOp(lhs[0], rhs[0], "sgt"))
        if self._is_packed:
            return better
        tied = b.add(arith.CmpiOp(lhs[0], rhs[0], "eq"))
        earlier = b.add(arith.CmpiOp(lhs[1], rhs[1], "slt"))
        return b.add(arith.OrIOp(better, b.add(arith.AndIOp(tied, earlier))))


_LOW: Exact[int] = (1 << 32) - 1
"""The bits of a place."""


class _Ranked(_Slice):
    """
    How many elements are better than one is its rank; equal ones, which have the same, follow each
    other in the order of their places.
    """

    def lower(self) -> None:
        """Make keys, compare, put places in order, and fetch the elements."""
        b, size, count = self._k.builder, self._size, self._count.value
        assert count is not None
        # Behind the last key others fill a vector; nobody asks for their ranks.
        room = -(-count // AT_ONCE) * AT_ONCE if count > AT_ONCE else 1 << (count - 1).bit_length()
        keys, ranks = (b.scratch(type_, [room]) for type_ in (self._type, i32))
        taken, zero, one = b.scratch(i32, [count]), b.integer(0, i32), b.integer(1, i32)
        with b.loop(count) as place:
            b.store(self._key(self._value(place)), keys, [place])
        if room > count:
            with b.loop(room, count) as place:
                b.store(b.integer(0, self._type), keys, [place])
        with b.loop(room, parallel=True) as place:
            own = b.load(keys, [place])

            def compare(other: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                is_better = b.add(arith.CmpiOp(b.load(keys, [other]), own, "sgt"))
                return [b.add(arith.SubiOp(values[0], b.add(arith.ExtSIOp(is_better, i32))))]

            b.store(b.carry(count, [zero], compare)[0], ranks, [place])
        with b.loop(count) as rank:
            b.store(zero, taken, [rank])
        # What is not asked for goes behind the last place.
        places = None if size == count else b.scratch(i32, [size + 1])
        with b.loop(count) as place:
            rank = b.load(ranks, [place])
            first = b.from_integer(b.add(arith.ExtUIOp(rank, i64)))
            before = b.load(taken, [first])
            b.store(b.add(arith.AddiOp(before, one)), taken, [first])
            end = b.add(arith.AddiOp(rank, before))
            if places is not None:
                end = b.add(arith.MinSIOp(end, b.as_integer(size, i32)))
            end = b.from_integer(b.add(arith.ExtUIOp(end, i64)))
            if places is not None:
                b.store(b.as_integer(place, i32), places, [end])
            else:
                self._give(end, b.as_integer(place))
        if places is not None:
            with b.loop(size) as rank:
                self._give(rank, b.add(arith.ExtUIOp(b.load(places, [rank]), i64)))


class _Memory:
    """Twice the keys of a slice with their places."""

    def __init__(self, k: KernelLowering, element: Attribute, count: int) -> None:
        self._k, self._count, self._types = k, count, (key_type(element), i32) * 2
        self.is_on_stack = count * self.bytes_of(element) <= STACK_BYTES
        self._given = [] if self.is_on_stack else [k.scratch(t, [count]) for t in self._types]

    @staticmethod
    def bytes_of(element: Attribute) -> int:
        """Of one element."""
        return 2 * (key_type(element).width.data + i32.width.data) // BYTE_BITS

    def open(self) -> list[SSAValue]:
        """Keys, places, keys, places."""
        b = self._k.builder
        return self._given or [b.scratch(type_, [self._count]) for type_ in self._types]


class _Sorted(_Slice):
    """
    Of all elements with the first digits of their keys that hold enough, every digit is sorted by,
    the last one first: what is equal keeps its order.
    """

    def __init__(self, k: KernelLowering, op: TopKOp, at: Index, memory: _Memory) -> None:
        super().__init__(k, op, at)
        is_integer = not is_float(self._element)
        self._bits = bit_width(self._element) if is_integer else self._type.width.data
        *self._here, self._keys, self._places = memory.open()

    def lower(self) -> None:
        """Make keys, choose, sort, and fetch the elements."""
        b, (keys, _) = self._k.builder, self._here
        with b.loop(self._count) as place:
            b.store(self._ascending(self._key(self._value(place))), keys, [place])
        size, count = self._size, self._count
        if size != count:
            count = self._choose()
        else:
            size = count = self._without_last()
        for shift in range(0, self._bits, DIGIT_BITS):
            self._sort_by(shift, count)
        _, places = self._here
        with b.loop(size) as rank:
            self._give(rank, b.add(arith.ExtUIOp(b.load(places, [rank]), i64)))

    def _without_last(self) -> Expr:
        """
        Number the keys; how many there are to sort. Where most are those of minus infinity, which
        stands for what does not count, these are given at once, behind the others.
        """
        b, (keys, _), count = self._k.builder, self._here, self._count
        if not is_float(self._element) or not self._op.largest.value.data:
            self._number()
            return count
        last = self._ascending(self._key(scalars.lowest(b, self._element)))

        def add_up(place: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            is_last = b.add(arith.CmpiOp(b.load(keys, [place]), last, "eq"))
            return [scalars.add(b, values[0], b.add(arith.ExtUIOp(is_last, i32)))]

        (found,) = b.carry(count, [b.integer(0, i32)], add_up)
        whole, total = b.as_integer(count), b.add(arith.ExtUIOp(found, i64))
        others = b.add(arith.SubiOp(whole, total))
        are_most = b.add(arith.CmpiOp(total, others, "sgt"))
        size = b.from_integer(b.add(arith.SelectOp(are_most, others, whole)))
        with b.when(are_most):
            self._give_last(last, size)
        with b.when(b.add(arith.XOrIOp(are_most, b.integer(1, i1)))):
            self._number()
        return size

    def _number(self) -> None:
        b, (_, places) = self._k.builder, self._here
        with b.loop(self._count) as place:
            b.store(self._as_i32(b.as_integer(place)), places, [place])

    def _give_last(self, last: SSAValue, size: Expr) -> None:
        """Bring the keys that are another one to the front; the others come in their order."""
        b, (keys, places) = self._k.builder, self._here

        def take(place: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            key, index, end = b.load(keys, [place]), b.as_integer(place), b.from_integer(values[0])
            b.store(key, keys, [end])
            b.store(self._as_i32(index), places, [end])
            is_last = b.add(arith.CmpiOp(key, last, "eq"))
            with b.when(is_last):
                self._give(size + place - end, index)
            stays = b.add(arith.XOrIOp(is_last, b.integer(1, i1)))
            return [scalars.add(b, values[0], b.add(arith.ExtUIOp(stays, i64)))]

        b.carry(self._count, [b.integer(0, i64)], take)

    def _swap(self) -> None:
        here = self._here
        self._here = [self._keys, self._places]
        self._keys, self._places = here

    def _as_i32(self, value: SSAValue) -> SSAValue:
        return self._k.builder.add(arith.TruncIOp(value, i32))

    def _ascending(self, key: SSAValue) -> SSAValue:
        """A key as an unsigned number that is lower for better elements."""
        b = self._k.builder
        is_narrow = self._bits < self._type.width.data
        # Narrow keys without a sign are as they are; all others have the sign as their first bit.
        has_sign = not (is_narrow and is_unsigned(self._element))
        ones = (1 << (self._bits - has_sign)) - 1
        turned = b.add(arith.XOrIOp(key, b.integer(ones, self._type)))
        if not is_narrow:
            return turned
        return b.add(arith.AndIOp(turned, b.integer((1 << self._bits) - 1, self._type)))

    def _digit(self, key: SSAValue, shift: int, bits: int) -> SSAValue:
        """Some bits of a key, as i64."""
        b, width = self._k.builder, self._type
        part = b.add(arith.ShRUIOp(key, b.integer(shift, width))) if shift else key
        if shift + bits < self._bits:
            part = b.add(arith.AndIOp(part, b.integer((1 << bits) - 1, width)))
        return part if width == i64 else b.add(arith.ExtUIOp(part, i64))

    def _counts(self, keys: SSAValue, count: Expr, shift: int, bits: int) -> SSAValue:
        """How many keys have which digit."""
        b = self._k.builder
        counts = b.scratch(i32, [1 << bits])
        with b.loop(1 << bits) as digit:
            b.store(b.integer(0, i32), counts, [digit])
        with b.loop(count) as place:
            digit = b.from_integer(self._digit(b.load(keys, [place]), shift, bits))
            more = b.add(arith.AddiOp(b.load(counts, [digit]), b.integer(1, i32)))
            b.store(more, counts, [digit])
        return counts

    def _choose(self) -> Expr:
        """Go on with those whose first digit is at most the one at which there are enough."""
        b, (keys, _) = self._k.builder, self._here
        count = self._count.value
        assert count is not None
        bits = min(_first_digit_bits(count), self._bits)
        shift = self._bits - bits
        counts = self._counts(keys, self._count, shift, bits)
        size = b.as_integer(self._size)

        def find(digit: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            last, before = values
            too_few = b.add(arith.CmpiOp(before, size, "slt"))
            found = b.add(arith.SelectOp(too_few, b.as_integer(digit), last))
            own = b.add(arith.ExtUIOp(b.load(counts, [digit]), i64))
            return [found, scalars.add(b, before, own)]

        zero = b.integer(0, i64)
        last, _ = b.carry(1 << bits, [zero, zero], find)

        def keep(place: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            key, end = b.load(keys, [place]), b.from_integer(values[0])
            b.store(key, self._keys, [end])
            b.store(self._as_i32(b.as_integer(place)), self._places, [end])
            stays = b.add(arith.CmpiOp(self._digit(key, shift, bits), last, "sle"))
            return [scalars.add(b, values[0], b.add(arith.ExtUIOp(stays, i64)))]

        (count,) = b.carry(self._count, [zero], keep)
        self._swap()
        return b.from_integer(count)

    def _sort_by(self, shift: int, count: Expr) -> None:
        """Move all to the other memory, by one digit."""
        b, (keys, places) = self._k.builder, self._here
        bits = min(DIGIT_BITS, self._bits - shift)
        counts = self._counts(keys, count, shift, bits)

        def begin(digit: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            own = b.load(counts, [digit])
            b.store(values[0], counts, [digit])
            return [scalars.add(b, values[0], own)]

        b.carry(1 << bits, [b.integer(0, i32)], begin)
        with b.loop(count) as place:
            key = b.load(keys, [place])
            digit = b.from_integer(self._digit(key, shift, bits))
            target = b.load(counts, [digit])
            b.store(b.add(arith.AddiOp(target, b.integer(1, i32))), counts, [digit])
            end = b.from_integer(b.add(arith.ExtUIOp(target, i64)))
            if shift + bits < self._bits:
                b.store(key, self._keys, [end])
            b.store(b.load(places, [place]), self._places, [end])
        self._swap()
