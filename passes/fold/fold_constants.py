"""`fold-constants`: evaluate ops whose operands are constants."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any, cast
from weakref import WeakKeyDictionary

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp, constant_array
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ChannelShuffleOp,
    ConcatOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import (
    Tensor,
    element_type,
    numpy_dtype,
    rank_of,
    static_shape,
    tensor,
)
from lowerdeck.dialects.interpret.core import evaluate, is_evaluable
from lowerdeck.dialects.interpret.errors import InterpretError
from lowerdeck.dialects.walking import all_ops, operands_of
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, is_ranked
from lowerdeck.passes.machinery.symbols import symbols_of

GROWTH_LIMIT = 1 << 16
"""The number of bytes by which the results of a folded op may exceed its operands."""

LARGEST = 1 << 31
"""The maximum size in bytes of a result."""

LARGEST_GROWTH = 1 << 26
"""The number of bytes by which weights may exceed 16 times the constants that they come from."""

MOST_PRODUCTS = 1 << 31
"""The maximum number of multiplications of a folded op: a few seconds."""

_READ_ONCE: tuple[type[CoreOp], ...] = (
    *ELEMENTWISE,
    BroadcastOp,
    ChannelShuffleOp,
    ConcatOp,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
)
"""Maps use each element of their operands at most a few times: it may be computed there."""

_REARRANGING = (BroadcastOp, ChannelShuffleOp, ReshapeOp, SliceOp, SplitOp, TransposeOp)
"""The numbers of the result are those of the operand."""


class FoldConstants(Pattern[list[NDArray[Any]]]):
    """f(constants) -> constants, if they are not much larger or are read as weights."""

    name = "fold-constants"
    roots = (CoreOp,)
    ranked = True

    def __init__(self, weights: AbstractSet[Operation] = frozenset(), total: int = 0) -> None:
        self._weights = weights
        self._sources = Sources(total)

    def match(self, op: CoreOp) -> Match[list[NDArray[Any]]] | None:
        # Asked first: it is quickly answered, and most ops read something else.
        for value in op.operands:
            if not isinstance(value.owner, ConstantOp):
                return None
        if isinstance(op, ConstantOp) or not _is_computable(op, self._sources.of(op)):
            return None
        if op not in self._weights and not _is_small(op):
            return None
        if isinstance(op, DequantizeOp) and stays_narrow(op):
            return None
        if (results := _evaluated(op)) is None:
            return None
        return Match((op,), "its operands are constants", results)

    def rewrite(self, match: Match[list[NDArray[Any]]], rewriter: Rewriter) -> None:
        root = match.root
        if isinstance(root, ReshapeOp) and isinstance(source := root.input.owner, ConstantOp):
            # The same bytes.
            constants = [rewriter.add(ConstantOp(source.value, cast(Tensor, root.result.type)))]
        else:
            constants = [rewriter.add(ConstantOp.of(array)) for array in match.data]
        for constant in constants:
            self._sources.note(constant, self._sources.of(root))
        rewriter.replace(root, [constant.result for constant in constants])


class Sources:
    """How many bytes of the module's own constants, `total` in all, ops come from at most."""

    def __init__(self, total: int) -> None:
        self._total = total
        # What is replaced goes with its bytes.
        self._known: WeakKeyDictionary[Operation | Block, int] = WeakKeyDictionary()

    def of(self, op: Operation) -> int:
        """The bytes that the operands of an op come from."""
        owners = dict.fromkeys(value.owner for value in op.operands)
        return min(self._total, sum(map(self._at, owners)))

    def note(self, op: Operation, size: int) -> None:
        """The results of an op come from `size` bytes."""
        self._known[op] = size

    def _at(self, owner: Operation | Block) -> int:
        known = self._known.get(owner)
        return known if known is not None else stored_bytes(owner)


def stays_narrow(op: DequantizeOp) -> bool:
    """
    True if kernels read numbers of four bits as they are: factors from the right in blocks along
    the sum, and tables; also those that are to be transposed first.
    """
    users = [use for use in op.result.uses]
    for use in users:
        user = use.operation
        if isinstance(user, TransposeOp):
            continue
        is_factor = isinstance(user, MatmulOp) and use.index == 1 and op.axis.data == 0
        is_table = isinstance(user, GatherOp) and use.index == 0 and user.axis.data == 0
        if not (rank_of(op.result) == 2 and (is_factor or (is_table and op.axis.data == 1))):
            return False
    return bool(users)


def weights_of(module: ModuleOp, total: int) -> set[Operation]:
    """
    The ops that compute, from constants alone, operands of convolutions, products and the like.

    The number of ops in between does not matter; what only repeats numbers stays out. `total` is
    the number of bytes of the module's constants.
    """
    computed: dict[Operation | Block, int] = {}
    sources = Sources(total)
    for op in all_ops(module):
        if not isinstance(op, CoreOp) or isinstance(op, ConstantOp):
            continue
        if not all(_is_constant(value, computed) for value in operands_of(op)):
            continue
        if is_ranked(op) and _is_computable(op, source := sources.of(op)):
            computed[op] = _different_numbers(op, computed)
            sources.note(op, source)
    weights: set[Operation] = set()
    for op in reversed(computed):
        assert isinstance(op, Operation)
        users = {use.operation for result in op.results for use in result.uses}
        repeats = _repeats(op, computed[op])
        if any(
            user in weights or (_is_small(user) and not _repeats(user, computed[user]))
            if user in computed
            else _reads_weights(user) and not repeats
            for user in users
        ):
            weights.add(op)
    return weights


def _different_numbers(op: CoreOp, computed: Mapping[Operation | Block, int]) -> int:
    """How many different elements the results of an op have at most, as far as one can see."""
    elements = _elements(op.results)
    if not isinstance(op, (*ELEMENTWISE, *_REARRANGING)):
        return elements
    operands = dict.fromkeys(op.operands)
    each = (computed.get(value.owner, _elements((value,))) for value in operands)
    return min(elements, prod(each))


def _repeats(op: Operation, different: int) -> bool:
    """True if most of the results are copies of others, and the copies are large."""
    copies = 1 - different / max(1, _elements(op.results))
    return copies * sum(_bytes(result.type) or 0 for result in op.results) > GROWTH_LIMIT


def _elements(values: Sequence[SSAValue]) -> int:
    shapes = (static_shape(value) for value in values)
    sizes: list[int] = [prod(shape) for shape in shapes if shape is not None]
    return sum(sizes)


def _is_constant(value: SSAValue, computed: Container[Operation | Block]) -> bool:
    return isinstance(value.owner, ConstantOp) or value.owner in computed


def _reads_weights(op: Operation) -> bool:
    """True if an op reads its operands so often that they have to be in memory."""
    return isinstance(op, CoreOp) and is_evaluable(op) and not isinstance(op, _READ_ONCE)


def stored_bytes(owner: Operation | Block) -> int:
    """The bytes of a constant, those of one element if it repeats it; zero for other ops."""
    if not isinstance(owner, ConstantOp):
        return 0
    blob = owner.value.data
    return blob.size if blob.element is None else len(blob.element)


def _is_computable(op: CoreOp, source: int) -> bool:
    """
    True if constant operands determine the results, in bounded time and memory: `source` is the
    number of bytes that they come from.
    """
    if not is_evaluable(op) or any(map(symbols_of, op.properties.values())):
        return False
    sizes = [_bytes(result.type) for result in op.results]
    if not sizes or any(size is None or size > LARGEST for size in sizes):
        return False
    growth = sum(size or 0 for size in sizes) - 16 * source
    return growth <= LARGEST_GROWTH and _products(op) <= MOST_PRODUCTS


def _products(op: CoreOp) -> int:
    """Multiplications of a product or convolution with static shapes; zero for other ops."""
    shapes = [static_shape(value) or (0,) for value in op.operands]
    match op:
        case MatmulOp():
            return prod(static_shape(op.result) or (0,)) * shapes[0][-1]
        case ConvOp():
            return prod(static_shape(op.result) or (0,)) * prod(shapes[1][1:])
        case ConvTransposeOp():
            return prod(shapes[0]) * prod(shapes[1][1:])
        case _:
            return 0


def _is_small(op: Operation) -> bool:
    """True if the results are not much larger than the operands."""
    budget = GROWTH_LIMIT + sum(_bytes(value.type) or 0 for value in dict.fromkeys(op.operands))
    return sum(_bytes(result.type) or 0 for result in op.results) <= budget


def _bytes(type_: Any) -> int | None:
    shape = static_shape(type_)
    if shape is None:
        return None
    return numpy_dtype(element_type(type_)).itemsize * prod(shape)


def _evaluated(op: CoreOp) -> list[NDArray[Any]] | None:
    """The results, or None if the op fails (then it fails at run time, if it is reached)."""
    try:
        args = [array for value in op.operands if (array := constant_array(value)) is not None]
        results = evaluate(op, args, {})
    except (InterpretError, ElidedBlobError, MemoryError):
        return None
    for array, result in zip(results, op.results, strict=True):
        if tensor(element_type(result), array.shape) != result.type:
            return None
        if array.dtype != numpy_dtype(element_type(result)):
            return None
    return results


class FoldConstantsPass(PatternPass):
    """
    Ops whose operands are constants are evaluated by the interpreter.

    - f(c1, c2, ...) -> c [results at most 64 KB larger than the operands, or read as weights]

    The operands of a convolution, product or reduction are weights, whatever their size and
    whatever is between them and the constants: they would need memory even if each run computed
    them, and could not be packed. Only what would be vastly larger than the constants that it comes
    from, as a range of a billion and its multiples are, stays. Operands of maps only may not grow
    as much; maps compute them where they read them. Nor may what repeats numbers, as a broadcast
    does, and maps of it, by more than 64 KB of copies: each run makes these faster than a file is
    read.

    Sums, products and transcendental functions are computed in float64, in a fixed order, without
    BLAS, and are rounded once, so that folding gives the same bits on every machine. An op that
    fails on its operands, such as a gather out of range, is left unchanged.
    """

    name = "fold-constants"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        total = sum(map(stored_bytes, all_ops(module)))
        return [FoldConstants(weights_of(module, total), total)]
