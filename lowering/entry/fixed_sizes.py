"""Open sizes of inputs of which a run accepts one value only, or that and 1."""

from __future__ import annotations

from lowerdeck.dialects.buffer.entry import EntryOp
from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.entry.conditions import (
    Ask,
    conditions_of,
    distinct,
    places_of,
    requirements,
)
from lowerdeck.passes.fold.fix_input_sizes import text_of_fixed


def fixed_sizes(entry: EntryOp) -> list[str]:
    """What is said of each, once: exporters make constants of sizes that ought to stay open."""
    found: dict[str, tuple[int, bool]] = {}
    for op in requirements(entry.body.block):
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


def required_sizes(entry: EntryOp) -> list[str]:
    """What else a run requires of a size of an input: a multiple, at least so many, all but one."""
    places = {
        symbol: f"input '{name}': dimension {axis} ('{symbol}')"
        for symbol, (name, axis) in places_of(entry).items()
    }
    asks: dict[object, Ask] = {}
    for each in distinct(conditions_of(entry).values()):
        ask = each.ask
        if ask is None or ask.kind not in ("multiple", "least", "not"):
            continue
        if ask.kind == "least":
            # The largest says what all of them do.
            least = max(ask, asks.get(ask.symbol, ask), key=lambda one: one.numbers)
            if least.numbers[0] > 1:
                asks[ask.symbol] = least
        else:
            asks[ask] = ask
    return [f"{ask.text(places)}, or a run fails{_instead(ask)}" for ask in asks.values()]


def _instead(ask: Ask) -> str:
    """What to do if the one size that does not fit is wanted."""
    if ask.kind != "not":
        return ""
    return f"; --dim {ask.symbol}={ask.numbers[0]} compiles the model for that size"
