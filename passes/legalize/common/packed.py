"""Packed sequences: the rows of all that go on at a step, one step after the other."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


@dataclass(frozen=True)
class Packed:
    """Which steps of which sequences there are."""

    mask: TensorValue
    """i1 [time, batch]"""

    @staticmethod
    def of(counts: TensorValue, batch: Expr) -> Packed:
        """By the number of sequences that go on at each step."""
        builder, counts = counts.builder, counts.cast(i64).column(2, 0)
        return Packed(TensorValue.iota(builder, batch).column(2, 1).lt(counts))

    @property
    def lengths(self) -> TensorValue:
        """i64 [batch]"""
        return self.mask.cast(i64).reduce("sum", [0])

    def padded(self, rows: SSAValue) -> TensorValue:
        """[time, batch, ...], anything where there is no step."""
        builder, flat = self.mask.builder, product(self.mask.dims)
        flags = self.mask.reshape([flat]).cast(i64)
        place = TensorValue(builder, builder.add(CumulativeOp("sum", flags.value, 0))) - 1
        found = TensorValue(builder, builder.add(GatherOp(rows, place.maximum(0).value, 0)))
        return found.reshape([*self.mask.dims, *dims_of(rows)[1:]])

    def packed(self, x: SSAValue, count: Expr | None) -> SSAValue:
        """The rows of [time, batch, ...] that are there, of which there are `count`."""
        builder = self.mask.builder
        assert isinstance(builder, Legalizer)
        flat = builder.reshape(x, [product(self.mask.dims), *dims_of(x)[2:]])
        mask = self.mask.reshape([dims_of(flat)[0]])
        places = nonzero_places(builder, mask.value)
        places = places if count is None else builder.slice_axis(places, 0, 0, count)
        return builder.add(GatherOp(flat, places, 0))
