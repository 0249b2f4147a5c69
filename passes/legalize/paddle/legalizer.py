"""What a handler works with: the arguments of one op, and a builder before it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.promotion import promoted_elements
from lowerdeck.passes.legalize.common.special import toward_zero
from lowerdeck.passes.legalize.pt2.applied import aten
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue

_LAST = ("NHWC", "NDHWC", "NLC", "NWC")


class PaddleLegalizer(ArgumentsLegalizer):
    """What a handler works with."""

    def __init__(
        self, op: PaddleOp, symbols: SymbolicValues, companions: dict[SSAValue, SSAValue]
    ) -> None:
        super().__init__(op, symbols, companions)
        self.operator = op

    @property
    def name(self) -> str:
        """The operator as PIR names it."""
        return self.operator.schema.target

    @property
    def is_old(self) -> bool:
        """True for an operator of a ProgramDesc."""
        return self.operator.is_old

    # Results

    def has_result(self, name: str) -> bool:
        """True if a result is used."""
        return any(self.op.results[k].first_use is not None for k in self.places(name))

    def places(self, name: str) -> range:
        """The results of the op that a result of the operator is."""
        index, counts = self.operator.declared.results.index(name), self.operator.counts
        return range(sum(counts[:index]), sum(counts[: index + 1]))

    def results(self, **values: SSAValue | Sequence[SSAValue] | None) -> list[SSAValue | None]:
        """The values of results by name; others must not be used."""
        found: list[SSAValue | None] = [None] * len(self.op.results)
        for name, value in values.items():
            listed = [value] if isinstance(value, SSAValue) or value is None else list(value)
            for place, one in zip(self.places(name), listed, strict=False):
                found[place] = one
        return found

    def require_element(self, index: int, value: SSAValue) -> None:
        """
        Refuse a result of another type than the file states, which says f32 where nobody found the
        type, i64 of the scores of `viterbi_decode`, and so of what keeps a type in a ProgramDesc.
        """
        found, stated = element_type(value), self.element(index)
        is_kept = self.is_old and self.op.operands and found == element_type(self.op.operands[0])
        if (stated == f32 and not is_float(found)) or is_kept or self.name == "viterbi_decode":
            return
        if found != stated and self.op.results[index].first_use:
            self.refuse(f"result {index} of {element_type(value)}", f"{self.element(index)}")

    # Arguments

    def dtype(self, name: str = "dtype") -> Attribute:
        """The element type of an argument, or that of the result."""
        found = self.get(name)
        return found if isinstance(found, Attribute) else self.element()

    def numbers(self, name: str, group: int = 1) -> list[float]:
        """A list of plain numbers, so many at a time; none if it is left out."""
        found = self.get(name)
        listed = [] if found is None else cast("list[Any]", found)
        if not isinstance(found, list | None) or any(type(n) not in (int, float) for n in listed):
            self.refuse(f"'{name}' is {found}", "numbers")
        if len(listed) % group:
            self.refuse(f"{len(listed)} numbers as '{name}'", f"{group} at a time")
        return listed

    def along(self, x: SSAValue, name: str = "axis") -> int:
        """An axis of `x` from the front."""
        found = self.expr(name).value
        if found is None:
            self.refuse(f"'{name}' that depends on data", "a number")
        return self.axis(found, max(rank_of(x), 1))

    def reduced(self, x: SSAValue, name: str = "axis") -> list[int]:
        """Axes from the front; all of them for an empty or absent list, or for `reduce_all`."""
        rank = rank_of(x)
        found = self.get(name)
        is_all = self.has("reduce_all") and self.flag("reduce_all")
        if found is None or found == [] or is_all or not rank:
            return list(range(rank))
        axes = self.ints_of(name)
        return sorted(self.axes(axes, rank)) if axes else list(range(rank))

    def vector(self, name: str) -> SSAValue:
        """A list of tensors of one element, or one tensor, as a vector."""
        found = self.get(name)
        if isinstance(found, list):
            values = [cast("SSAValue", one) for one in cast("list[Any]", found)]
            return concat(self, [self.reshape(one, [1]) for one in values], 0)
        return self.reshape(self.input(name), [product(dims_of(self.input(name)))])

    # Types

    def scalar_of(self, name: str, element: Attribute) -> TensorValue:
        """A number, plain or a tensor of one element, as a scalar of an element type."""
        found = self.optional(name)
        if found is not None:
            return TensorValue.of(self, self.cast(self.reshape(found, []), element))
        number = self.number(name)
        if not is_float(element) and isinstance(number, float):
            number = int(number) if abs(number) < float(1 << 63) else 0
        return TensorValue.of(self, self.scalar(number, element))

    def pair(self, *names: str) -> list[TensorValue]:
        """Tensors in the type to which they are promoted."""
        values = [self.input(name) for name in names]
        element = element_type(values[0])
        for value in values[1:]:
            element = promoted_elements(element, element_type(value))
        return [TensorValue.of(self, self.cast(value, element)) for value in values]

    @property
    def only(self) -> str:
        """The name of the first operand."""
        return self.operator.declared.operands[0]

    def wide(self, name: str = "") -> TensorValue:
        """A tensor, by default the first one, of floats in at least single precision."""
        x = self.value(name or self.only)
        if x.element in (f16, bf16):
            return x.cast(f32)
        return x if is_float(x.element) else x.cast(self.element())

    def kept(self, *values: SSAValue) -> Attribute:
        """
        The element type of a result that has that of the operands, unless the file states another
        one: a ProgramDesc states floats also where nobody has found the type.
        """
        if not values:
            self.refuse("no operands", "one or more")
        stated = self.element()
        own = reduce(promoted_elements, map(element_type, values))
        return (
            own if self.is_old and stated != f64 and is_float(own) != is_float(stated) else stated
        )

    def narrow(self, x: TensorValue) -> SSAValue:
        """A value computed from the first operand, in the type of the result."""
        return self.rounded(x.value, self.kept(self.input(self.only)))

    def rounded(self, x: SSAValue, element: Attribute) -> SSAValue:
        """A cast; on the way to half precision numbers are cut off, as PaddlePaddle's CPU does."""
        if element_type(x) not in (f32, f64) or element != f16:
            return self.cast(x, element)
        return toward_zero(TensorValue.of(self, x)).value

    # Layouts

    @property
    def is_last(self) -> bool:
        """True if channels are the last dimension."""
        return self.text("data_format", "NCHW") in _LAST

    # Operators of others

    def torch(self, target: str, /, *elements: Attribute, **given: Any) -> list[SSAValue]:
        """What an operator of PyTorch gives that computes the same; all of its results are used."""
        found = aten(self, target, elements or [self.element()], **given)
        return cast("list[SSAValue]", found)
