"""`fix-input-sizes`: open sizes of inputs that the ops of every run determine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.enums import Requirement
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.defaults import drop_unfit_defaults
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.symbols import region_symbols_made_by, symbols_made_by
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.fold.known_symbols import Values, guarded_ops, substitute_symbols, suits
from lowerdeck.passes.machinery.assumptions import assumptions
from lowerdeck.passes.machinery.context import options_of, recorder_of
from lowerdeck.passes.machinery.driver import is_enabled, is_ranked
from lowerdeck.passes.machinery.recorder import Recorder

Place = tuple[str, int]
"""The name of an input, and an axis."""


def text_of_fixed(given: str, axis: int, name: str, sizes: str) -> str:
    """What is told of a dimension of an input that can only have these sizes."""
    return (
        f"input '{given}': dimension {axis} ('{name}') can only be {sizes}, or a run fails: "
        "the model has that size in its nodes"
    )


class FixInputSizesPass(ModulePass):
    """
    A dimension of an input that has one value in every run that does not fail becomes that value:
    the channels that a convolution has weights for, or the size of another input.

    Only ops outside of branches and loops count: each run meets what they require. The entry
    function then checks the inputs for it. What becomes a number is told, for exporters make
    constants of sizes that ought to stay open. Where an op in a branch or a loop cannot have the
    size, that branch never runs: then the dimension stays open.
    """

    name = "fix-input-sizes"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not is_enabled(self, options_of(ctx)):
            return
        functions = [each for each in op.body.block.ops if isinstance(each, FuncOp)]
        places = [_open_dims(function) for function in functions]
        # A name that several scopes define would need the bounds of each.
        count = Counter([*_made_symbols(op), *(name for each in places for name in each)])
        sizes = _Sizes(op, recorder_of(ctx))
        for function, each in zip(functions, places, strict=True):
            fixed = [name for name in each if count[name] == 1]
            sizes.settle(function, fixed)
        if not sizes.values:
            return
        substitute_symbols(op, sizes.values)
        for function in functions:
            drop_unfit_defaults(function)
        for each in places:
            for name, (given, axis) in each.items():
                if (size := sizes.values.get(name, Expr.symbol(name)).value) is not None:
                    options_of(ctx).warn(text_of_fixed(given, axis, name, str(size)))


def _made_symbols(module: ModuleOp) -> Iterator[str]:
    for op in all_ops(module):
        yield from symbols_made_by(op)
        yield from region_symbols_made_by(op)


def _open_dims(function: FuncOp) -> dict[str, Place]:
    """The symbols that are dimensions of inputs, with the first such dimension."""
    found: dict[str, Place] = {}
    if function.is_declaration:
        return found
    args = function.body.block.args
    for given, arg in zip(value_names(function.arg_attrs, len(args)), args, strict=True):
        for axis, dim in enumerate(dims_of(arg)):
            if dim.symbols == frozenset((str(dim),)):
                found.setdefault(str(dim), (given, axis))
    return found


class _Sizes:
    """What symbols of inputs have been found to be."""

    def __init__(self, module: ModuleOp, recorder: Recorder) -> None:
        self.values: Values = {}
        self._guarded = guarded_ops(module)
        self._recorder = recorder

    def settle(self, function: FuncOp, names: Sequence[str]) -> None:
        """Find what the ops of a function require of symbols of its inputs, in their order."""
        ops = function.body.block.ops if names else ()
        for op in ops:
            if isinstance(op, CoreOp) and is_ranked(op):
                for name, size in self._required(op, names):
                    self._take(op, name, size)

    def _take(self, op: CoreOp, name: str, size: Expr) -> None:
        new = {known: value.substitute({name: size}) for known, value in self.values.items()}
        new[name] = size
        changed = [known for known, value in new.items() if self.values.get(known) != value]
        if all(suits(user, new) for each in changed for user in self._guarded.get(each, ())):
            reason = f"{name} is {size}"
            if self._recorder.decide(FixInputSizesPass.name, "fix-input-size", (op,), reason):
                self.values = new

    def _required(self, op: CoreOp, names: Sequence[str]) -> Iterator[tuple[str, Expr]]:
        for left, predicate, right in assumptions(op):
            if predicate == Requirement.EQ or (predicate == Requirement.BROADCAST and right == 1):
                difference = (left - right).substitute(self.values)
                if (solved := _solved(difference, names)) is not None:
                    yield solved


def _solved(difference: Expr, names: Sequence[str]) -> tuple[str, Expr] | None:
    """Which of the symbols has to be what, for a multiple of it, or of two of them, to be zero."""
    found = [name for name in names if name in difference.symbols]
    if len(found) not in (1, 2) or len(found) < len(difference.symbols):
        return None
    # Of two inputs of one size the later takes the symbol of the other.
    *others, name = found
    zero = dict.fromkeys(found, 0)
    first = difference.evaluate(zero)
    factor = difference.evaluate({**zero, name: 1}) - first
    if factor == 0:
        return None
    size = Expr.of(-first // factor if not others else Expr.symbol(others[0]))
    is_linear = difference == (Expr.symbol(name) - size) * factor
    is_size = size.value is None or size.value >= 0
    return (name, size) if is_linear and is_size else None
