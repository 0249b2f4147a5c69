"""Operations of the `buffer` dialect on tiles of matrices, which are larger than any vector."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, UnitAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from lowerdeck.dialects.buffer.kernel import require_operands
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.base import Ints, int_array, ints, require
from lowerdeck.dialects.core.enums import Packing, PackingAttr
from lowerdeck.dialects.core.types import DimsAttr, f32
from lowerdeck.dialects.dims import Expr, ExprLike, constants
from lowerdeck.dialects.records import record

TILE = 16
"""Rows of a tile, and words in each of them."""

MOST_ROWS = 2 * TILE
"""Rows and columns of the product of two tiles by two."""


@record
class Windows:
    """Where the parts of a right matrix are in an image, from its first element on."""

    axis: int
    """The dimension along which rows of the matrix follow each other."""
    taps: Sequence[Sequence[int]]
    """For each part, indices along the dimensions behind it."""
    across: Sequence[int] = ()
    """Likewise for the second half of the columns; nothing if they lie side by side."""


def words_of(depth: int) -> int:
    """How many words of a row lie in each tile: as many in all of them."""
    return next(words for words in range(TILE, 0, -1) if depth % words == 0)


def words_in_tiles(depth: int) -> int:
    """How many words a row has if zeros follow so many until all tiles of it are equal."""
    tiles = -(-depth // TILE)
    return depth if tiles == 1 else tiles * -(-depth // tiles)


@irdl_op_definition
class DotTilesOp(IRDLOperation):
    """
    The product of some rows of one matrix of words and some columns of another one, into the upper
    left corner of a small buffer, or `adds` it to what is there: total[r, c] = sum of
    dot(lhs[r, k], rhs[k, c]) for k < depth, modulo 2^32. A word holds four bytes, and their
    products are added up, as `packing` says: those of lhs or those of rhs have no signs. Or it
    holds two numbers of bf16, whose products are added up in f32, as `buffer.dot_halves` does.

    `map` has the index of the first element in lhs, that in rhs, then the numbers of rows, of
    columns and of words of a row. Rows of a matrix run along its last dimension, and follow each
    other along the one before it. A rhs of `taps` has them along the dimension `axis`: its words
    are in as many equal parts as there are taps, each of which begins at a place of its own,
    so many indices from the first element along the dimensions behind `axis`. With `across`, the
    columns are in two halves, of which the second begins so far from the first. A lhs that is
    `tiled` has the words of a tile in the last
    dimension, and the tiles of a row follow each other along the third one from the end.

    Constraints:

    - (C1) elements of factors are i32, and so are the sums of bytes; those of bf16 are f32.
    - (C2) `map` has one expression for each dimension of lhs and of rhs, at least two each, and
      three more.
    - (C3) these name operands dK that there are and symbols sK, nothing else.
    - (C4) elements of a row lie side by side.
    - (C5) total is dense, and has two dimensions of 32 at most.
    - (C6) the words of a row, or of a part, are a number that has a divisor from 9 to 16, or less
      than 16.
    - (C7) rows of a tiled lhs are as long as those of a tile, and it has three dimensions at least.
    - (C8) `axis` has a dimension behind it, with an entry in `across` and in each tap; the parts
      are equal, and so are the halves, of 16 columns at most.

    Examples:

    ```mlir
    buffer.dot_tiles %x, %w, %t(%i) <[d0 * 32, 0, 0, 32, 32, 32, 64]>
        packed unsigned_left
        : !buffer.ref<[64, 64] x i32>, !buffer.ref<[64, 128] x i32>, !buffer.ref<[32, 32] x i32>
    buffer.dot_tiles %v, %image, %t(%i) <[0, 0, 0, d0 * 2, 0, 32, 28, 64]>
        packed unsigned_right {axis = 0, taps = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>,
                               across = array<i64: 1, 0>}
        : !buffer.ref<[32, 64] x i32>, !buffer.ref<[16, 15, 15] x i32>, !buffer.ref<[32, 32] x i32>
    ```
    """

    name = "buffer.dot_tiles"
    lhs = operand_def(RefType)
    rhs = operand_def(RefType)
    total = operand_def(RefType)
    indices = var_operand_def(IndexType())
    map = prop_def(DimsAttr)
    packing = prop_def(PackingAttr)
    adds = opt_prop_def(UnitAttr)
    tiled = opt_prop_def(UnitAttr)
    axis = opt_prop_def(IntegerAttr[I64])
    taps = opt_prop_def(Ints)
    across = opt_prop_def(Ints)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$lhs `,` $rhs `,` $total (`(` $indices^ `)`)? $map (`adds` $adds^)? (`tiled` $tiled^)? "
        "`packed` $packing attr-dict `:` type($lhs) `,` type($rhs) `,` type($total)"
    )

    def __init__(
        self,
        factors: tuple[SSAValue, SSAValue],
        total: SSAValue,
        map: Sequence[ExprLike],
        indices: Sequence[SSAValue],
        packing: Packing,
        *,
        adds: bool = False,
        tiled: bool = False,
        windows: Windows | None = None,
    ):
        flags = {"adds": UnitAttr() if adds else None, "tiled": UnitAttr() if tiled else None}
        places = {}
        if windows is not None:
            places = {
                "axis": IntegerAttr(windows.axis, 64),
                "taps": int_array([offset for tap in windows.taps for offset in tap]),
                "across": int_array(windows.across) if windows.across else None,
            }
        super().__init__(
            operands=[*factors, total, indices],
            properties={
                "map": DimsAttr.of(map),
                "packing": PackingAttr(packing),
                **flags,
                **places,
            },
        )

    @property
    def windows(self) -> Windows | None:
        """Where the parts of rhs are, if there are several."""
        if self.axis is None or self.taps is None:
            return None
        axis, numbers = self.axis.value.data, ints(self.taps)
        count = len(ref_type(self.rhs).dims.data) - 1 - axis
        taps = [tuple(numbers[k : k + count]) for k in range(0, len(numbers), max(count, 1))]
        return Windows(axis, taps, tuple(ints(self.across)) if self.across is not None else ())

    @property
    def words(self) -> int:
        """How many words of a row each tile has."""
        windows = self.windows
        return words_of(self.sizes[2] // (1 if windows is None else len(windows.taps)))

    @property
    def starts(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The indices of the first elements of both factors."""
        rank = len(ref_type(self.lhs).dims.data)
        return tuple(self.map.data[:rank]), tuple(self.map.data[rank:-3])

    @property
    def sizes(self) -> tuple[Expr, Expr, int]:
        """Rows, columns, and words of a row."""
        rows, columns, depth = self.map.data[-3:]
        return rows, columns, depth.value or 0

    @property
    def next_words(self) -> Expr:
        """How far from the words of one tile of lhs those of the next one in its rows are."""
        words = Expr.const(self.words)
        return words if self.tiled is None else ref_type(self.lhs).strides.data[-3]

    def verify_(self) -> None:
        types = [ref_type(value) for value in (self.lhs, self.rhs, self.total)]
        packing = self.packing.data
        sums = f32 if packing is Packing.HALVES else i32
        are_words = [type_.element for type_ in types] == [i32, i32, sums]
        require(
            are_words and packing not in (Packing.PAIRS, Packing.SPLIT_LEFT),
            "factors are no such words",
            "C1",
        )
        ranks = [len(type_.dims.data) for type_ in types]
        fits = min(ranks[:2]) >= 2 and len(self.map.data) == ranks[0] + ranks[1] + 3
        require(fits, f"{len(self.map.data)} numbers for matrices of ranks {ranks[:2]}", "C2")
        require_operands(self.map.data, self.indices, "C3")
        is_along = all(type_.strides.data[-1] == 1 for type_ in types[:2])
        require(is_along, "elements of a row lie apart", "C4")
        sizes = constants(types[2].dims.data)
        is_small = sizes is not None and len(sizes) == 2 and max(sizes) <= MOST_ROWS
        require(is_small and types[2].is_dense, lambda: f"{types[2]} is no such buffer", "C5")
        windows, depth = self.windows, self.sizes[2]
        if windows is not None:
            self._verify(windows)
            depth //= len(windows.taps)
        is_even = depth < TILE or words_of(depth) > TILE // 2
        require(depth > 0 and is_even, f"{depth} words", "C6")
        if self.tiled is not None:
            dims = types[0].dims.data
            is_tile = len(dims) > 2 and dims[-1] == words_of(depth)
            require(is_tile, lambda: f"{types[0]} is not in tiles", "C7")

    def _verify(self, windows: Windows) -> None:
        count = len(ref_type(self.rhs).dims.data) - 1 - windows.axis
        lists = [*windows.taps, *([windows.across] if windows.across else [])]
        fits = count > 0 and bool(windows.taps) and all(len(each) == count for each in lists)
        require(fits, f"places along {count} dimensions", "C8")
        _, columns, depth = self.sizes
        has_halves = not windows.across or (
            columns.value is not None and columns.value % 2 == 0 and columns.value <= MOST_ROWS
        )
        require(depth % len(windows.taps) == 0 and has_halves, "parts are not equal", "C8")


@irdl_op_definition
class ReleaseTilesOp(IRDLOperation):
    """
    Say that no tile is in use: a processor that keeps them in registers can rest, and a system that
    changes threads need not save them.

    Example:

    ```mlir
    buffer.release_tiles
    ```
    """

    name = "buffer.release_tiles"
    # Both effects, so that no pass moves or drops it.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()
