"""
What C compilers do not find of a processor's instructions: tables, by what is to be computed.

Whatever is not in a table is plain C, which is right on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from lowerdeck.dialects.records import record


@record
class Builtin:
    """A function of the C compiler or an instruction, where the compiler says that it is there."""

    macro: str
    """The macro that is defined then; several with spaces between them."""
    call: str
    """Its use in C, of the parameters that the table names."""

    @property
    def condition(self) -> str:
        """For `#if`."""
        return " && ".join(f"defined({macro})" for macro in self.macro.split())


@record
class TileUnit:
    """What multiplies tiles of matrices, 16 rows of 64 bytes: four bytes a lane, or two of bf16."""

    guard: str
    """The condition for `#if` under which compiler and system have it."""
    guard_of_halves: str
    """The further condition under which there are products of bf16, too."""
    set_up: str
    """C at the top of the file: sets `lowerdeck_has_tiles` when the code is loaded."""
    release: str
    """The statement that ends the use of tiles."""
    product: Callable[[str], Sequence[str]]
    """
    By the name of a packing, statements that multiply matrices of words: `rows` of `depth` at `a`,
    `a_step` words apart, and `depth` of `columns` at `b`, `b_step` apart, in `count` parts of
    `size` that begin at `parts`; and store the products at `total`, `step` apart, or add them if
    `adds`. Tiles in the rows of `a` are `a_next` words apart. The first tile of columns has
    `width`, and the other one begins `next` words behind it. The tiles have the shape that `shaped`
    points to, which they may change.
    """


@record
class Isa:
    """
    Instructions that gcc has to be told; clang finds them by itself.

    Elements are named by their types, `f32` or `i8`. A table that lacks an entry has no instruction
    for it.
    """

    functions: Mapping[tuple[str, str, int], Builtin] = field(
        default_factory=dict[tuple[str, str, int], Builtin]
    )
    """
    By function, element and lanes: `max` and `min` of `a` and `b`, `max_or_nan` and `min_or_nan`,
    which are NaN if one of them is, `maxs` and `mins` of integers with signs, `maxu` and `minu` of
    those without; `sqrt`, `rint`, `floor` and `ceil` of `x`; `any` of `mask`, whose lanes are all
    ones or zero: not 0 if one of them is not.
    """
    conversions: Mapping[tuple[str, str, bool, int], Builtin] = field(
        default_factory=dict[tuple[str, str, bool, int], Builtin]
    )
    """
    By the elements before and after, whether integers are unsigned, and lanes: statements that make
    `r` of `x`.
    """
    long_integers: Mapping[int, str] = field(default_factory=dict[int, str])
    """
    By lanes: statements that return integers of 64 bits, of the type `{target}`, of the floats `x`
    if these are small enough for a shorter way, and nothing else.
    """
    widening_of_f16: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """By lanes, from the vector {0} of bits of f16 to the type {1} of f32."""
    narrowing_to_f16: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """
    The same from f32 to the bits of f16, a vector of the type {2}; to nearest, halves to even.
    """
    pairs: Mapping[int, Sequence[Builtin]] = field(default_factory=dict[int, Sequence[Builtin]])
    """
    By lanes of i32, the sums of products of two halves of vectors {0} and {1}, on top of `c`; the
    first that the machine has. Where there are any, they make twice as many products as the
    instruction for i32.
    """
    scalar_pairs: Builtin | None = None
    """The same of scalars: statements that make `r` of `a`, `b` and `c`."""
    byte_additions: Mapping[tuple[bool, bool], Builtin] = field(
        default_factory=dict[tuple[bool, bool], Builtin]
    )
    """
    By whether bytes are odd ones and without signs, statements that make `r` of `base` with bytes
    of the scalar `word` added to its halves. Where there are any, sums of products of bytes go over
    words, as `scalar_pairs`.
    """
    wide_products: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """By lanes of i32, the products in 64 bits of every second lane of vectors {0} and {1}."""
    quads: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """The same for four bytes, of `a` without signs and of `b` with signs."""
    quads_without_function: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """The same for compilers that lack the functions: statements that add to `r`."""
    overlapping_words: Mapping[tuple[int, int], Builtin] = field(
        default_factory=dict[tuple[int, int], Builtin]
    )
    """
    By lanes of i32 and the bytes from one lane to the next, statements that make `r` words of the
    memory at `x` that have bytes in common.
    """
    lookups: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """
    By lanes of bytes, statements that make the entries of a table of `low` and `high`, which are
    numbers of 7 bits: of its first and of its last half. The quarters of the table are `t0` to
    `t3`, vectors of 64 bytes.
    """
    small_quads: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """
    By lanes of i32, statements that make `r` the sums of products of four bytes, of `a` without
    signs and of `b` with signs, where sums of two have 16 bits; every half of `ones` is one. Where
    there are no `quads`, they make more products than `pairs`.
    """
    halves: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """
    By lanes of f32, statements that add to the vector `c` the products of the two numbers of bf16
    in each lane of `a` and `b`.
    """
    pairs_of_halves: Mapping[int, Builtin] = field(default_factory=dict[int, Builtin])
    """
    By lanes of f32, statements that make `r` of `low` and `high`, rounded to bf16: in the lower and
    the upper half of each lane of i32.
    """
    tiles: TileUnit | None = None
    """What multiplies tiles of matrices; None if nothing does."""
    merged_bytes: int = 16
    """Of the longest vectors whose lanes one instruction merges in turn."""
