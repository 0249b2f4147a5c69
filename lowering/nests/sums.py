"""Long sums: over channels and taps, and in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.builder import KernelBuilder

Products = Callable[[Expr, Sequence[Expr], Sequence[SSAValue]], Sequence[SSAValue]]
"""The sums with the product of a channel and taps added to them."""


def sum_over_channels(
    b: KernelBuilder,
    sizes: tuple[int, int, int],
    bounds: Sequence[tuple[Expr, Expr]],
    start: SSAValue,
    add_product: Products,
    part: tuple[Expr, int] | None = None,
) -> SSAValue:
    """
    The sum over channel blocks, taps within `bounds`, and channels of a block; channels that do not
    fill a block come last. `sizes`: the number of channels, channels of a block, and taps. With
    `part` only so many blocks from the first one on.
    """
    channels, block, taps = sizes
    whole, rest = channels // block, channels % block

    def add_blocks(first: Expr, count: int, value: SSAValue) -> SSAValue:
        """Add the products of `count` more input channel blocks."""
        return b.carry_nest(
            [(Expr.const(0), Expr.const(count)), *bounds, (Expr.const(0), Expr.const(block))],
            [value],
            lambda i, values: add_product((first + i[0]) * block + i[-1], i[1:-1], values),
        )[0]

    if part is not None:
        return add_blocks(*part, start)
    total = sum_in_parts(b, whole, terms_of_part(taps * block), start, add_blocks)
    if rest:
        total = b.carry_nest(
            [*bounds, (Expr.const(0), Expr.const(rest))],
            [total],
            lambda i, values: add_product(i[-1] + whole * block, i[:-1], values),
        )[0]
    return total


PART = 192
"""The number of products added one by one before their sum is added to the total."""


def terms_of_part(products: int) -> int:
    """Terms of so many products each that are one part of a sum."""
    return max(1, PART // products)


def is_in_parts(count: int, part: int) -> bool:
    """True for sums of so many terms that have a total besides the sum of a part."""
    return count >= 2 * part


def sum_in_parts(
    b: KernelBuilder,
    count: int,
    part: int,
    start: SSAValue,
    add: Callable[[Expr, int, SSAValue], SSAValue],
) -> SSAValue:
    """
    A sum of `count` terms, accumulated from zero in parts of `part` terms: rounding errors grow
    with the length of a sum, and those of the parts cancel. `add` adds a number of terms from the
    first one on to a value.
    """
    if not is_in_parts(count, part):
        return add(Expr.const(0), count, start) if count else start
    zero = scalars.constant(b, 0, start.type)
    total = b.carry(
        count // part,
        [start],
        lambda i, values: [scalars.add(b, values[0], add(i * part, part, zero))],
    )[0]
    if rest := count % part:
        total = scalars.add(b, total, add(Expr.const(count - rest), rest, zero))
    return total
