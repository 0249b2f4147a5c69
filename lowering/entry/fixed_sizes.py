"""Open sizes of inputs of which a run accepts one value only, or that and 1."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block

from lowerdeck.dialects.buffer.entry import EntryOp
from lowerdeck.dialects.buffer.entry_ops import RequireOp, SectionOp
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.fold.fix_input_sizes import text_of_fixed


def fixed_sizes(entry: EntryOp) -> list[str]:
    """What is said of each, once: exporters make constants of sizes that ought to stay open."""
    found: dict[str, tuple[int, bool]] = {}
    for op in _requirements(entry.body.block):
        left, right = op.left.data[0], op.right.data[0]
        predicate = op.predicate.data
        if predicate not in (Requirement.EQ, Requirement.BROADCAST):
            continue
        for dim, other in ((left, right), (right, left)):
            if other.value is not None and _is_symbol(dim):
                # left broadcast right: left may be 1.
                may_be_one = predicate is Requirement.BROADCAST and dim is left
                found.setdefault(str(dim), (other.value, may_be_one))
    texts: list[str] = []
    inputs = zip(names_in(entry.inputs), entry.input_args, strict=True)
    for name, argument in inputs:
        for axis, dim in enumerate(ref_type(argument).dims.data):
            if (fixed := found.pop(str(dim), None)) is not None:
                size, may_be_one = fixed
                sizes = f"{size} or 1" if may_be_one and size != 1 else str(size)
                texts.append(text_of_fixed(name, axis, str(dim), sizes))
    return texts


def _is_symbol(dim: Expr) -> bool:
    return dim.symbols == frozenset((str(dim),))


def _requirements(block: Block) -> Iterator[RequireOp]:
    """Those that every run meets: not in branches and loops."""
    for op in block.ops:
        if isinstance(op, RequireOp):
            yield op
        elif isinstance(op, SectionOp):
            yield from _requirements(op.body.block)
