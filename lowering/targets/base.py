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

    multiply_adds: float = 2.0
    """Vector multiply-adds that begin in a cycle."""
    loads: float = 2.0
    """Vector loads that begin in a cycle."""
    latency: float = 4.0
    """From one multiply-add to the next one of the same sum."""
    efficiency: float = 0.85
    """What long sums reach of the speed that they have in registers."""
    tile: float = 24.0
    """To begin and end a tile, beside its sums."""
    row: float = 12.0
    """To begin a row of outputs of a window: weights that are read again, and the loop."""
    variant: float = 60.0
    """What it is worth to have one nest fewer for what remains at the end of a dimension."""
    element: float = 1.5
    """To load and store one element by itself."""
    transform: float = 7.0
    """To transform one vector of values by Winograd's matrices."""
    band: float = 200.0
    """To begin a band of rows."""
    l2_line: float = 2.0
    """Between two lines that come from the L2 cache."""
    l2_copy_bytes: float = 32.0
    """Bytes a cycle that are moved within the L2 cache."""
    l2_return_bytes: float = 14.0
    """Bytes a cycle that leave the L2 cache and come back to it."""
    shared_bytes: float = 8.0
    """Bytes a cycle that come from the cache shared by the cores."""
    memory_bytes: float = 3.5
    """Bytes a cycle that come from memory."""


@dataclass(frozen=True)
class Target:
    """
    One kind of processor.

    ValueError if its name is too long.
    """

    name: str
    registers: int
    """Vector registers."""
    l2: int
    """Bytes of the L2 cache, of one core."""
    lanes_by_element: Mapping[str, int] = field(default_factory=dict[str, int])
    """Elements in a vector register, by their type; none for what it has no vectors of."""
    flags: tuple[str, ...] = ()
    """The C compiler's, beside those for every target."""
    architectures: tuple[str, ...] = ()
    """What the system calls the machines that its code runs on; all if there are none."""
    features: frozenset[str] = frozenset()
    """What the system calls the features of a CPU that its code uses."""
    l1: int = 32 << 10
    """Bytes of the first data cache."""
    l1_ways: int = 8
    """Lines of one set of the L1 cache."""
    line: int = 64
    """Bytes of a line of the caches."""
    page: int = 4096
    """Bytes between places that meet in one set of the L1 cache."""
    costs: Costs = field(default_factory=Costs)

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
    """By element, of vectors of so many bytes that hold f32, f64 and i32."""
    return {"f32": vector_bytes // 4, "f64": vector_bytes // 8, "i32": vector_bytes // 4}
