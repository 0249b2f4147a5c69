"""How the elements of a tensor lie in memory: dimensions cut into pieces, in any order, padded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from lowerdeck.dialects.core.winograd import (
    exact_taps,
    restored_exact_taps,
    restored_taps,
    transformed_taps,
    window_axes,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record

_WIDE, _BYTES = np.dtype("<i2"), 2
"""How transformed bytes are stored, and their size."""


@record
class Piece:
    """
    One dimension of the storage: `index // stride % size` of an axis; without a size, the quotient
    is not reduced.
    """

    axis: int
    stride: int = 1
    size: int | None = None

    def __str__(self) -> str:
        stride = "" if self.stride == 1 else f"/{self.stride}"
        return f"{self.axis}{stride}" + ("" if self.size is None else f" mod {self.size}")


@record
class Layout:
    """The pieces from the outermost to the innermost dimension, and the padding of each axis."""

    pieces: tuple[Piece, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    winograd: int = 0
    """m, if what is stored are weights of r x r taps as F(m x m, r x r) multiplies by them."""
    exact: bool = False
    """True if these are weights of 8 bits and are stored in 16, as two bytes, lowest first."""


@irdl_attr_definition
class LayoutAttr(Data[Layout]):
    """
    `#core.layout<0, 1/16, 2, 3, 1 mod 16>` is NCHW with the channels in blocks of 16, innermost.
    With a border of one element around the last two axes it is
    `#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>`.

    An axis is padded up to a multiple of its blocks; what lies there may be any value. The elements
    of the border are zero.

    `winograd 4` at the end says that the axes of `window_axes`, the last two of weights, hold r + 3
    transformed values in place of the r taps. Those of bytes are `exact`: integers of 16 bits (of
    `exact_matrices`), whose two bytes, the lowest first, lie side by side in the last dimension.
    """

    name = "core.layout"

    @staticmethod
    def of(
        pieces: Sequence[Piece],
        begin: Sequence[int] | None = None,
        end: Sequence[int] | None = None,
        winograd: int = 0,
        *,
        exact: bool = False,
    ) -> LayoutAttr:
        """A layout; ValueError if the pieces do not make up the axes 0, 1, ..."""
        rank = len({piece.axis for piece in pieces})
        zeros = (0,) * rank
        layout = Layout(tuple(pieces), tuple(begin or zeros), tuple(end or zeros), winograd, exact)
        for axis in range(rank):
            own = sorted((p for p in pieces if p.axis == axis), key=lambda p: p.stride)
            stride = 1
            for number, piece in enumerate(own):
                if piece.stride != stride or (piece.size is None) != (number == len(own) - 1):
                    raise ValueError(f"the pieces of axis {axis} do not make it up")
                stride *= piece.size or 1
        if any(piece.axis >= rank for piece in pieces):
            raise ValueError("an axis has no piece")
        return LayoutAttr(layout)

    @staticmethod
    def row_major(
        rank: int, begin: Sequence[int] | None = None, end: Sequence[int] | None = None
    ) -> LayoutAttr:
        """C order, with a border or without."""
        if begin is None and end is None:
            return _row_major(rank)
        return LayoutAttr.of([Piece(axis) for axis in range(rank)], begin, end)

    @staticmethod
    def blocked(
        rank: int,
        axis: int,
        block: int,
        begin: Sequence[int] | None = None,
        end: Sequence[int] | None = None,
    ) -> LayoutAttr:
        """C order with an axis in blocks, innermost: NCHWc for axis 1."""
        pieces = [Piece(k, block if k == axis else 1) for k in range(rank)]
        return LayoutAttr.of([*pieces, Piece(axis, 1, block)], begin, end)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        with parser.in_angle_brackets():
            pieces = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _parse_piece(parser)
            )
            begin: list[int] | None = None
            end: list[int] | None = None
            if parser.parse_optional_keyword("pad") is not None:
                square = parser.Delimiter.SQUARE
                begin = parser.parse_comma_separated_list(square, parser.parse_integer)
                end = parser.parse_comma_separated_list(square, parser.parse_integer)
            winograd, exact = 0, False
            if parser.parse_optional_keyword("winograd") is not None:
                winograd = parser.parse_integer(allow_boolean=False, allow_negative=False)
                exact = parser.parse_optional_keyword("exact") is not None
            try:
                return cls.of(pieces, begin, end, winograd, exact=exact).data
            except ValueError as error:
                parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        pad = f" pad {list(self.data.begin)} {list(self.data.end)}" if self.is_padded else ""
        winograd = f" winograd {self.data.winograd}" if self.data.winograd else ""
        winograd += " exact" if self.data.exact else ""
        printer.print_string(f"<{', '.join(map(str, self.data.pieces))}{pad}{winograd}>")

    @property
    def rank(self) -> int:
        """The number of axes of the tensor."""
        return len(self.data.begin)

    @property
    def is_padded(self) -> bool:
        """True if there is a border of zeros."""
        return any(self.data.begin) or any(self.data.end)

    @property
    def is_row_major(self) -> bool:
        """True for C order without a border."""
        plain = not self.is_padded and not self.data.winograd
        return plain and self.data.pieces == tuple(map(Piece, range(self.rank)))

    def block(self, axis: int) -> int:
        """The product of all blocks of an axis: what its size is padded up to a multiple of."""
        return prod(p.size or 1 for p in self.data.pieces if p.axis == axis)

    def inner(self, axis: int) -> int:
        """The block of an axis that lies innermost, at unit stride; 1 if another axis does."""
        last = self.data.pieces[-1]
        return last.size or 1 if last.axis == axis and last.stride == 1 else 1

    def padded(self, begin: Sequence[int], end: Sequence[int]) -> LayoutAttr:
        """The same pieces with another border."""
        own = self.data
        return LayoutAttr.of(own.pieces, begin, end, own.winograd, exact=own.exact)

    def dims(self, dims: Sequence[Expr]) -> list[Expr]:
        """The dimensions of the storage of a tensor with these dimensions."""
        sizes: list[Expr] = []
        more = self.data.winograd - 1 if self.data.winograd else 0
        for piece in self.data.pieces:
            whole = dims[piece.axis] + self.data.begin[piece.axis] + self.data.end[piece.axis]
            whole = whole + more if piece.axis in window_axes(len(dims)) else whole
            size = whole.ceildiv(piece.stride) if piece.size is None else Expr.const(piece.size)
            sizes.append(size)
        return [*sizes[:-1], sizes[-1] * _BYTES] if self.data.exact else sizes

    def index(self, at: Sequence[Expr]) -> list[Expr]:
        """Where in the storage the element at an index of the tensor lies."""
        indices: list[Expr] = []
        for piece in self.data.pieces:
            index = (at[piece.axis] + self.data.begin[piece.axis]) // piece.stride
            indices.append(index if piece.size is None else index % piece.size)
        return [*indices[:-1], indices[-1] * _BYTES] if self.data.exact else indices

    def tensor_index(self, place: Sequence[Expr]) -> list[Expr]:
        """The index of the tensor whose element lies at a place of the storage."""
        at = [Expr.const(-begin) for begin in self.data.begin]
        for piece, index in zip(self.data.pieces, place, strict=True):
            at[piece.axis] = at[piece.axis] + index * piece.stride
        return at

    def pack(self, array: NDArray[Any]) -> NDArray[Any]:
        """The storage of a tensor, dense; what is padded is zero."""
        dtype = array.dtype
        if self.data.exact:
            array = exact_taps(array, self.data.winograd).astype(_WIDE)
        elif self.data.winograd:
            array = transformed_taps(array, self.data.winograd)
        pads, split, order = self._cut(array.shape)
        padded = np.pad(array, pads) if any(map(any, pads)) else array
        packed = np.ascontiguousarray(padded.reshape(split).transpose(order))
        return packed.view(dtype) if self.data.exact else packed

    def unpack(self, storage: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
        """
        The tensor of a shape that lies in a storage, dense; of transformed weights the taps that
        they come from, by least squares.
        """
        more = self.data.winograd - 1 if self.data.winograd else 0
        transformed = window_axes(len(shape))
        sizes = [size + more if axis in transformed else size for axis, size in enumerate(shape)]
        pads, split, order = self._cut(sizes)
        dtype = storage.dtype
        if self.data.exact:
            storage = np.ascontiguousarray(storage).reshape(-1).view(_WIDE)
        pieces = storage.reshape([split[k] for k in order]).transpose(np.argsort(order))
        pairs = list(zip(sizes, pads, strict=True))
        padded = pieces.reshape([begin + size + end for size, (begin, end) in pairs])
        array = padded[tuple(slice(begin, begin + size) for size, (begin, _) in pairs)]
        if self.data.exact:
            return restored_exact_taps(array, self.data.winograd).astype(dtype)
        return restored_taps(array, self.data.winograd) if self.data.winograd else array

    def _cut(self, shape: Sequence[int]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """What is padded, the sizes of the pieces axis by axis, and the order in which they lie."""
        pads: list[tuple[int, int]] = []
        split: list[int] = []
        place: dict[Piece, int] = {}
        for axis, size in enumerate(shape):
            begin, end = self.data.begin[axis], self.data.end[axis]
            own = sorted((p for p in self.data.pieces if p.axis == axis), key=lambda p: -p.stride)
            whole = -(-(begin + size + end) // self.block(axis)) * self.block(axis)
            pads.append((begin, whole - begin - size))
            for piece in own:
                place[piece] = len(split)
                split.append(whole // own[0].stride if piece.size is None else piece.size)
        return pads, split, [place[piece] for piece in self.data.pieces]


@cache
def _row_major(rank: int) -> LayoutAttr:
    return LayoutAttr.of([Piece(axis) for axis in range(rank)])


def _parse_piece(parser: AttrParser) -> Piece:
    axis = parser.parse_integer(allow_boolean=False, allow_negative=False)
    stride, size = 1, None
    if parser.parse_optional_punctuation("/") is not None:
        stride = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if parser.parse_optional_keyword("mod") is not None:
        size = parser.parse_integer(allow_boolean=False, allow_negative=False)
    return Piece(axis, stride, size)
