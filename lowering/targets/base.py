"""What a target is: a kind of processor, as far as the compiler has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from lowerdeck.dialects.records import record
from lowerdeck.lowering.targets.isa import Isa
from lowerdeck.lowering.targets.machine import Machine

if TYPE_CHECKING:
    from xdsl.ir import Attribute

BYTE_BITS, F32_BYTES = 8, 4

NAME_BYTES = 12
"""The maximum length of a name: the space in the header of the weights."""


@record
class Costs:
    """
    Approximate costs, in cycles of one core: what the numbers of a machine do not say.

    Estimates are only compared with one another, so only ratios matter. They were fitted on x86
    with vectors of 16 lanes; a family that differs has its own numbers.
    """

    efficiency: float = 0.85
    """The share of their in-register speed that long sums reach."""
    tile_cycles: float = 24.0
    """To begin and end a tile, in addition to its sums."""
    row_cycles: float = 12.0
    """To begin a row of outputs of a window: reloaded weights, and the loop."""
    folded_loads: int = 4
    """
    Of a tile of so many filters and less, whose sums have totals besides, each multiply-add loads
    its input by itself: gcc makes it an operand in memory rather than keep it in a register.
    """
    variant_cycles: float = 60.0
    """The benefit of one remainder nest fewer at the end of a dimension."""
    element_cycles: float = 1.5
    """To load and store one element by itself."""
    transform_cycles: float = 7.0
    """To transform one vector of values by Winograd's matrices."""
    band_cycles: float = 200.0
    """To begin a band of rows."""
    page_cycles: float = 7.0
    """
    To find a page that is not among the `pages` of the machine, and what else reading far apart
    takes: loads that wait for nothing find pages in less.
    """
    apart_line_cycles: float = 0.0
    """
    What else a line from the L2 cache takes that lies so far from the last one that such lines have
    few places in the L1 cache; 0 where `page_cycles` say it.
    """
    kept_line_cycles: float = 0.0
    more_kept_line_cycles: float = 0.0
    hidden_share: float = 0.0
    """
    For a line that is one of those kept for a band, and how much more if these fill the L2 cache;
    it takes nothing within such a share of the multiply-adds. 0 where it was not measured.
    """
    window_share: float = 1.0
    """
    What of its estimate a convolution in blocks takes whose windows have several taps, against that
    of rows.
    """
    other_order: float = 1.02
    """
    Factor on the estimate for a loop order that a rule advises against: the sums of tiles do not
    include the cost of reading memory in another order.
    """
    products_by_taps: float = 0.5
    """
    The share of the products of a window below which it pays to skip those with padding and to
    accumulate in memory.
    """
    products_by_dilated_taps: float = 0.8
    """The same for dilated windows, which Winograd's algorithm does not support."""
    division_steps: int = 4
    """Operations as slow as one division, in kernels that threads share."""
    function_steps: int = 24
    """Operations as slow as one call of a C library function."""
    scalar_steps: float = 0.5
    """Vector operations as slow as one of scalars, more of which run at once."""
    rare_branch: int = 16
    """How often a branch without an alternative is reached for each time that it is taken."""
    shared_steps: int = 8192
    """
    Operations below which one thread runs a kernel alone: the time that others would save is less
    than the waits at barriers and the transfers from the caches of another core.
    """
    shared_steps_in_loops: float = 4.0
    """
    Factor on this threshold for a kernel in a loop of the entry function: an iteration usually
    begins with the data that the previous one ended with, and threads wait there, too.
    """
    shared_steps_of_run: float = 2.0
    """
    Factor on this threshold for all kernels of a run without loops: it is over before a waiting
    thread is awake. Where threads wait for that, before a branch, the factor above applies, too.
    """


@record
class Limits:
    """Upper limits on sizes beyond which more saves nothing, or costs."""

    row_outputs: int = 16
    """Adjacent outputs of a window: more make the code long, and save nothing."""
    stream_vectors: int = 8
    """Vectors in a row of a tile of a product: enough for one memory stream."""
    query_vectors: int = 2
    """Vectors of queries in a block of attention."""
    stack_bytes: int = 1 << 18
    """Of what a kernel keeps on the stack: a block of attention, inputs of a row of results."""
    attention_keys: int = 128
    """The number of keys whose scores are kept if all keys are too many or of unknown number."""
    band_blocks: int = 8
    """Channel blocks of a band that are computed at a time."""
    position_bytes: int = 0
    """Of inputs of adjacent positions that all output channels of a convolution with one tap take,
    one after the other, before the next positions; 0 where the whole image is as good."""
    group_tiles: int = 256
    """Tiles that are transformed and multiplied at a time by Winograd's algorithm."""
    tile_maps: int = 320
    """Maps that are computed for a tile of a product of integers, those of all its sums."""
    copied_body_ops: int = 150
    """Ops of the largest body that is copied for remainders in short vectors."""
    sum_vectors: int = 4
    """Vectors of results that are computed at once if each of them is a sum."""
    chains_by_ops: tuple[tuple[int, int], ...] = ((7, 4), (13, 2))
    """
    The number of independent chains of sums for a body of at most so many ops; larger bodies have
    one. The sums of small bodies would otherwise wait for each other.
    """


MOST_STATEMENTS = 2000
"""Of a C function: the compile time more than doubles when the length of a function doubles."""

FEWEST_LANES = 4
"""
Lanes of the shortest vectors, used for blocks of few channels and for remainder loops. Fewer
elements are computed one by one.
"""

FEW_PARTS = 8
"""Parts of work for each thread: of fewer, one that is left over is much of the work."""


def are_even(parts: int, threads: int) -> bool:
    """True if all threads that share so many equal parts have work until the end, or nearly."""
    return parts % threads == 0 or parts >= FEW_PARTS * threads


@record
class Target:
    """
    One kind of processor.

    ValueError if its name is too long.
    """

    name: str
    machine: Machine
    """Its registers, caches and units: how many, how large and how fast."""
    lanes_by_element: Mapping[str, int] = field(default_factory=dict[str, int])
    """Elements in a vector register, by their type; none for a type without vectors."""
    flags: tuple[str, ...] = ()
    """C compiler flags, in addition to those for every target."""
    architectures: tuple[str, ...] = ()
    """The system's names of the machines that its code runs on; empty for all machines."""
    features: frozenset[str] = frozenset()
    """The system's names of the CPU features that its code uses."""
    processors: frozenset[tuple[str, int]] = frozenset()
    """The vendors and families of the CPUs that `native` takes it for; empty for all."""
    costs: Costs = field(default_factory=Costs)
    limits: Limits = field(default_factory=Limits)
    isa: Isa = field(default_factory=Isa)
    """What compilers have to be told of its instructions."""
    index_bits: int = 64
    """Of the numbers that indices into tensors are: 32 where it computes with no longer ones."""
    has_scalar_sums: bool = False
    """True if convolutions of integers add up one result at a time, in a register: rows of sums in
    memory are faster where compilers make vectors of them, but take four times the memory."""

    def __post_init__(self) -> None:
        if len(self.name.encode()) > NAME_BYTES:
            raise ValueError(
                f"target '{self.name}': its name takes {len(self.name.encode())} bytes; "
                f"the header of the weights has {NAME_BYTES}"
            )

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def lanes(self) -> int:
        """f32 values in a vector register; 1 if there are no vectors."""
        return self.lanes_by_element.get("f32", 1)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register; those of an f32 if there are no vectors."""
        return F32_BYTES * self.lanes

    @property
    def vector_bits(self) -> int:
        """Bits of a vector register; those of an f32 if there are no vectors."""
        return BYTE_BITS * self.vector_bytes

    def lanes_of(self, element: Attribute) -> int:
        """Elements of a type in a vector register; 1 if there are no vectors of them."""
        return self.lanes_by_element.get(str(element), 1)


def lanes_for(vector_bytes: int) -> dict[str, int]:
    """By element, of vectors of so many bytes that hold f32, f64 and integers of up to 32 bits."""
    integers = {f"{sign}{bits}": vector_bytes * 8 // bits for sign in ("i", "ui") for bits in _BITS}
    return {"f32": vector_bytes // 4, "f64": vector_bytes // 8, **integers}


_BITS = (8, 16, 32)
