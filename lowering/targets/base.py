"""What a target is: one kind of processor, as far as a compiler has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute

NAME_BYTES = 12
"""How long a name may be: the header of the weights has so much room for it."""


@dataclass(frozen=True)
class Costs:
    """
    About how long things take, in cycles of one core.

    Estimates are compared with one another only, so what matters are proportions. They were
    measured on x86 with vectors of 16 lanes; a family that differs has numbers of its own.
    """

    multiply_adds_per_cycle: float = 2.0
    """Vector multiply-adds that begin in a cycle."""
    loads_per_cycle: float = 2.0
    """Vector loads that begin in a cycle."""
    latency_cycles: float = 4.0
    """From one multiply-add to the next one of the same sum."""
    efficiency: float = 0.85
    """What long sums reach of the speed that they have in registers."""
    tile_cycles: float = 24.0
    """To begin and end a tile, beside its sums."""
    row_cycles: float = 12.0
    """To begin a row of outputs of a window: weights that are read again, and the loop."""
    variant_cycles: float = 60.0
    """What it is worth to have one nest fewer for what remains at the end of a dimension."""
    element_cycles: float = 1.5
    """To load and store one element by itself."""
    transform_cycles: float = 7.0
    """To transform one vector of values by Winograd's matrices."""
    band_cycles: float = 200.0
    """To begin a band of rows."""
    l2_line_cycles: float = 2.0
    """Between two lines that come from the L2 cache."""
    l2_copy_bytes_per_cycle: float = 32.0
    """Bytes a cycle that are moved within the L2 cache."""
    l2_return_bytes_per_cycle: float = 14.0
    """Bytes a cycle that leave the L2 cache and come back to it."""
    shared_bytes_per_cycle: float = 8.0
    """Bytes a cycle that come from the cache shared by the cores."""
    memory_bytes_per_cycle: float = 3.5
    """Bytes a cycle that come from memory."""
    other_order: float = 1.02
    """
    What the estimate is multiplied by for the order of loops that a rule turns down: the sums of
    tiles do not show what it costs to read memory in another order.
    """
    products_by_taps: float = 0.5
    """
    Part of the products of a window, below which it pays to leave out those with padding and to add
    to sums in memory.
    """
    products_by_dilated_taps: float = 0.8
    """The same of dilated windows, which Winograd's algorithm does not compute."""
    division_steps: int = 4
    """Other operations that a division takes as long as, in what threads share."""
    function_steps: int = 24
    """Operations that a function of the C library takes as long as."""
    shared_steps: int = 8192
    """
    Operations below which one thread runs a kernel alone: what others would save is less than they
    wait at barriers and for what lies in the caches of another core.
    """
    shared_steps_in_loops: float = 4.0
    """
    How many times more a kernel in a loop of the driver has to have: an iteration usually begins
    with what the one before has ended with, and threads wait there, too.
    """
    shared_steps_of_run: float = 16.0
    """
    How many times more all kernels of a run without loops have to have: it is over before a thread
    that waits for it is awake.
    """


@dataclass(frozen=True)
class Limits:
    """How far something is taken: sizes beyond which more saves nothing, or costs."""

    row_outputs: int = 16
    """Outputs of a window that stand side by side: more make the code long, and save nothing."""
    stream_vectors: int = 8
    """Vectors in a row of a tile of a product: what one stream of memory needs."""
    query_vectors: int = 2
    """Vectors of queries in a block of attention."""
    attention_bytes: int = 1 << 18
    """What a block of attention may take on the stack."""
    attention_keys: int = 128
    """How many keys' scores are kept, where those of all are too many or of unknown number."""
    band_blocks: int = 8
    """Blocks of channels of a band that are made at a time."""
    group_tiles: int = 256
    """Tiles that are transformed and multiplied at a time by Winograd's algorithm."""
    split_terms: int = 768
    """About how many terms of a long sum one part has."""
    split_vectors: int = 2
    """Vectors of columns of the narrowest panel that keeps the machine busy."""
    split_rows: int = 8
    """Fewer rows than these read the weights so seldom that it does not matter."""
    copied_body_ops: int = 150
    """Ops of the largest body that is copied for remainders in short vectors."""
    sum_vectors: int = 4
    """How many vectors of results are computed at once if each of them is a sum."""
    chains_by_ops: tuple[tuple[int, int], ...] = ((7, 4), (13, 2))
    """
    How many chains of sums a body of at most so many ops gets; larger ones get one. Its sums must
    not wait for each other.
    """


@dataclass(frozen=True)
class Builtin:
    """A function of the C compiler, where it has one."""

    macro: str
    """What is defined where there is that function."""
    call: str
    """The call, with `{0}` for what differs between functions of one kind, then its arguments."""


GNU_EXTREMA = {
    16: Builtin("__AVX512F__", "__builtin_ia32_{0}{1}512_mask(a, b, a, -1, 4)"),
    8: Builtin("__AVX__", "__builtin_ia32_{0}{1}256(a, b)"),
    4: Builtin("__SSE2__", "__builtin_ia32_{0}{1}(a, b)"),
}
"""
By lanes of f32, of which f64 has half as many: gcc does not find the instruction for
`a > b ? a : b`. A machine without it has not the macro.
"""

GNU_WIDENING = {
    16: Builtin("__AVX512F__", "__builtin_ia32_pmov{0}512_mask({1}, ({2}){{0}}, -1)"),
    8: Builtin("__AVX2__", "__builtin_ia32_pmov{0}256({1})"),
    4: Builtin("__SSE4_1__", "__builtin_ia32_pmov{0}128({1})"),
}
"""
By lanes of i32, from the vector {1} of narrow integers to the type {2}: gcc takes such vectors
apart into elements.
"""

FEWEST_LANES = 4
"""
Of the shortest vectors: of blocks of few channels, and of what remains of a loop. Fewer elements
are done one by one.
"""


@dataclass(frozen=True)
class Target:
    """
    One kind of processor.

    ValueError if its name is too long.
    """

    name: str
    registers: int
    """Vector registers."""
    l2_bytes: int
    """Bytes of the L2 cache, of one core."""
    lanes_by_element: Mapping[str, int] = field(default_factory=dict[str, int])
    """Elements in a vector register, by their type; none for what it has no vectors of."""
    flags: tuple[str, ...] = ()
    """The C compiler's, beside those for every target."""
    architectures: tuple[str, ...] = ()
    """What the system calls the machines that its code runs on; all if there are none."""
    features: frozenset[str] = frozenset()
    """What the system calls the features of a CPU that its code uses."""
    l1_bytes: int = 32 << 10
    """Bytes of the first data cache."""
    l1_ways: int = 8
    """Lines of one set of the L1 cache."""
    line_bytes: int = 64
    """Bytes of a line of the caches."""
    page_bytes: int = 4096
    """Bytes between places that meet in one set of the L1 cache."""
    costs: Costs = field(default_factory=Costs)
    limits: Limits = field(default_factory=Limits)
    extrema: Mapping[int, Builtin] = field(default_factory=lambda: GNU_EXTREMA)
    """`max` and `min` of vectors of f32 by their lanes, where an operator gives no good code."""
    widening: Mapping[int, Builtin] = field(default_factory=lambda: GNU_WIDENING)
    """Vectors of i32 of narrow integers by their lanes, the same."""

    def __post_init__(self) -> None:
        if len(self.name.encode()) > NAME_BYTES:
            raise ValueError(
                f"target '{self.name}': its name takes {len(self.name.encode())} bytes; "
                f"the header of the weights has {NAME_BYTES}"
            )

    @property
    def lanes(self) -> int:
        """f32 values in a vector register; 1 if there are no vectors."""
        return self.lanes_by_element.get("f32", 1)

    def lanes_of(self, element: Attribute) -> int:
        """Elements of a type in a vector register; 1 if there are no vectors of them."""
        return self.lanes_by_element.get(str(element), 1)


def lanes_for(vector_bytes: int) -> dict[str, int]:
    """By element, of vectors of so many bytes that hold f32, f64 and integers of up to 32 bits."""
    integers = {f"{sign}{bits}": vector_bytes * 8 // bits for sign in ("i", "ui") for bits in _BITS}
    return {"f32": vector_bytes // 4, "f64": vector_bytes // 8, **integers}


_BITS = (8, 16, 32)
