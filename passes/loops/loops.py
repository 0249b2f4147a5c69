"""Loops as passes see them: what lies outside, what an iteration is, and how often there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp, FromDimsOp
from lowerdeck.dialects.core.control_flow import LoopOp, names_in
from lowerdeck.dialects.core.elementwise import AddOp, CastOp, MaxOp, MinOp, SelectOp, SubOp
from lowerdeck.dialects.core.symbols import region_symbols_made_by, symbols_made_by
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type, is_integer, numpy_dtype, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.driver import Rewriter
from lowerdeck.passes.machinery.symbols import symbols_used_by
from lowerdeck.passes.machinery.values import uniform_value


class FreshSymbols:
    """Names for dimension symbols that a module does not have yet."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._taken: set[str] | None = None
        self._counter = 0

    def next(self) -> str:
        """A new name. The module is searched for the names it has once, by the first call."""
        if self._taken is None:
            self._taken = set(_symbols_in(self._module))
        while (name := f"u{self._counter}") in self._taken:
            self._counter += 1
        self._taken.add(name)
        return name


def _symbols_in(module: ModuleOp) -> Iterator[str]:
    for op in all_ops(module):
        yield from symbols_made_by(op)
        yield from region_symbols_made_by(op)
        yield from symbols_used_by(op)


def is_outside(value: SSAValue, loop: LoopOp) -> bool:
    """True if a value that the loop's body may use is defined before the loop."""
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        if block is loop.body.block:
            return False
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return True


def enclosing_loops(op: Operation) -> Iterator[LoopOp]:
    """The loops around an op, from the innermost one."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, LoopOp):
            yield parent
        parent = parent.parent_op()


def constant_int(value: SSAValue) -> int | None:
    """The value of an integer constant without dimensions."""
    if rank_of(value) or not is_integer(element_type(value)):
        return None
    found = uniform_value(value)
    return None if found is None else int(found)


def iteration_index(value: SSAValue) -> Expr | None:
    """The only element of an integer tensor as an expression, if it is known."""
    match value.owner:
        case FromDimsOp() as op if len(op.values.data) == 1:
            return op.values.data[0]
        case ReshapeOp() as op:
            return iteration_index(op.input)
        case CastOp() as op if _widens(op):
            return iteration_index(op.input)
        case ConstantOp():
            if any(dim != 1 for dim in dims_of(value)) or not is_integer(element_type(value)):
                return None
            found = uniform_value(value)
            return None if found is None else Expr.const(int(found))
        case _:
            return None


def _widens(op: CastOp) -> bool:
    before, after = element_type(op.input), op.to
    if not (is_integer(before) and is_integer(after)):
        return False
    return limits(before)[0] >= limits(after)[0] and limits(before)[1] <= limits(after)[1]


def limits(element: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    dtype = numpy_dtype(element)
    bits = dtype.itemsize * 8
    return (0, 2**bits - 1) if dtype.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def trip_limits(loop: LoopOp) -> list[Expr]:
    """Expressions that the number of iterations never exceeds if there is one; for a trip count."""
    return [] if loop.trip_count is None else _upper_bounds(loop.trip_count, 1)


def known_trips(loop: LoopOp) -> Expr | None:
    """The number of iterations of a loop without condition, if it is a number or a dimension."""
    if loop.condition is not None or loop.trip_count is None:
        return None
    trips = iteration_index(loop.trip_count)
    return None if trips is None or (trips.value or 0) < 0 else trips


def most_trips(loop: LoopOp) -> int | None:
    """A number that the number of iterations never exceeds."""
    numbers = [limit.value for limit in trip_limits(loop) if limit.value is not None]
    return max(min(numbers), 0) if numbers else None


def _upper_bounds(value: SSAValue, least: int) -> list[Expr]:
    """Expressions that an integer does not exceed wherever it is not below `least`."""
    if (known := iteration_index(value)) is not None:
        return [known]
    match value.owner:
        case MinOp() as op:
            return [*_upper_bounds(op.lhs, least), *_upper_bounds(op.rhs, least)]
        case MaxOp() as op:
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                if (floor := constant_int(other)) is not None and floor < least:
                    return _upper_bounds(one, least)
            return _both(op.lhs, op.rhs, least)
        case SelectOp() as op:
            return _both(op.on_true, op.on_false, least)
        case AddOp() as op if (amount := constant_int(op.rhs)) is not None and amount >= 0:
            # Where it wraps around, the sum is smaller still.
            return [bound + amount for bound in _upper_bounds(op.lhs, least - amount)]
        case SubOp() as op if (amount := constant_int(op.rhs)) is not None and _has(op, amount):
            return [bound - amount for bound in _upper_bounds(op.lhs, least + amount)]
        case ReshapeOp() as op:
            return _upper_bounds(op.input, least)
        case CastOp() as op if _widens(op):
            greatest = Expr.const(limits(element_type(op.input))[1])
            return [greatest, *_upper_bounds(op.input, least)]
        case CastOp() as op if is_integer(op.to) and _is_symbol(iteration_index(op.input)):
            # A dimension that does not fit is less than it is modulo 2^width.
            return _upper_bounds(op.input, least)
        case _:
            return []


def _is_symbol(value: Expr | None) -> bool:
    """True for a symbol alone; where it is compared with dimensions, it is one."""
    return value is not None and value in map(Expr.symbol, value.symbols)


def _has(op: SubOp, amount: int) -> bool:
    """True if the left side is never so small that the difference wraps around."""
    if not isinstance(op.lhs.owner, MaxOp):
        return False
    numbers = [constant_int(value) for value in op.lhs.owner.operands]
    least = max((number for number in numbers if number is not None), default=None)
    return least is not None and least - amount >= limits(element_type(op.lhs))[0]


def _both(lhs: SSAValue, rhs: SSAValue, least: int) -> list[Expr]:
    """The bounds of both values, and the larger one of two numbers."""
    sides = [_upper_bounds(lhs, least), _upper_bounds(rhs, least)]
    common = [bound for bound in sides[0] if bound in sides[1]]
    ends = [min((b.value for b in side if b.value is not None), default=None) for side in sides]
    numbers = [number for number in ends if number is not None]
    return [*common, Expr.const(max(numbers))] if len(numbers) == 2 else common


def iteration_symbol(loop: LoopOp, fresh: FreshSymbols) -> Expr:
    """The symbol for the number of the iteration, which the loop gets if it has none."""
    if loop.iteration is None:
        loop.properties["iteration"] = StringAttr(fresh.next())
    assert loop.iteration is not None
    return Expr.symbol(loop.iteration.data)


def replace_loop(
    op: LoopOp,
    rewriter: Rewriter,
    *,
    trip_count: SSAValue | None,
    condition: SSAValue | None,
    collected: Sequence[int] = (),
    count: str | None = None,
) -> LoopOp:
    """
    Put a loop with the same body, but another trip count and condition, in the place of `op`.

    The carried values at the positions `collected` have become the last scan outputs, in this
    order; nothing uses their arguments any more, and the yield has been changed already. `count`
    is for a loop that has had no scan output. Results keep their types.
    """
    for index in sorted(collected, reverse=True):
        op.body.block.erase_arg(op.body.block.args[index + 1])
    new = LoopOp(
        trip_count,
        condition,
        [value for index, value in enumerate(op.inits) if index not in collected],
        op.detach_region(op.body),
        iteration=op.iteration.data if op.iteration else None,
        count=op.count.data if op.count else count,
        carried_symbols=names_in(op.carried_symbols),
        result_symbols=names_in(op.result_symbols),
    )
    new.location = op.location
    new.attributes.update(op.attributes)
    rewriter.insert_before(op, new)
    left = [result for result in op.results if result.index not in collected]
    olds = [*left, *(op.results[index] for index in collected)]
    for old, result in zip(olds, tuple(new.results), strict=True):
        value: SSAValue = result
        if result.type != old.type:
            value = rewriter.set_type(result, old.type)
        rewriter.replace_value(old, value)
    rewriter.erase(op)
    return new


def yield_values(op: LoopOp, values: Sequence[SSAValue], rewriter: Rewriter) -> None:
    """Let the body of a loop yield these values."""
    last = op.body.block.last_op
    assert last is not None
    rewriter.set_operands(last, values)
