"""
What a module holds and what one run of it does: operations, FLOPs, parameters, bytes moved.

All counts follow from the definitions of the ops, not from the algorithms that lowering chooses:

- A multiply-add is two FLOPs, and every tap of a window counts, also on padding, as is usual.
- Any other arithmetic on one element is one FLOP, whatever the function: an addition, a comparison,
  a selection, an exponential. A reduction of n elements takes n. Casts, and ops that only move
  elements, take none. Formulas (normalization, softmax, attention) count their steps. Integers
  count as floats do.
- Bytes moved are those of the operands that an op reads and of the results that it writes; inside
  of a kernel, values stay in registers or caches and do not count. Reshapes move nothing.
- Parameters are the elements of constants. A repeated element that is stored once is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp
from lowerdeck.dialects.core.defaults import defaults_of
from lowerdeck.dialects.core.elementwise import BinaryOp, CompareOp, SelectOp, UnaryOp
from lowerdeck.dialects.core.enums import PoolKind, ScatterReduction
from lowerdeck.dialects.core.linear import (
    BatchNormOp,
    ContractionOp,
    ConvOp,
    ConvTransposeOp,
    LayerNormOp,
    MatmulOp,
    SparseProductOp,
)
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    CountNonzeroOp,
    ReshapeOp,
    ScatterElementsOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr, maximum, product
from lowerdeck.dialects.frameworks import framework_of
from lowerdeck.dialects.records import record
from lowerdeck.dialects.walking import all_ops

_NONE = Expr.const(0)


# One op


def multiply_adds(op: Operation) -> Expr:
    """The multiply-adds of a convolution, matrix product or attention; zero for other ops."""
    match op:
        case ConvOp():
            return product([*dims_of(op.result), *dims_of(op.weight)[1:]])
        case ConvTransposeOp():
            return product([*dims_of(op.input), *dims_of(op.weight)[1:]])
        case MatmulOp():
            return product([*dims_of(op.result), op.depth])
        case SparseProductOp():
            vectors = (d for k, d in enumerate(dims_of(op.input)) if k != op.axis.data)
            return product([*dims_of(op.blocks), *vectors])
        case AttentionOp():
            depth, keys = dims_of(op.query)[-1], op.score_dims[-1]
            return product(op.score_dims) * depth + product(dims_of(op.result)) * keys
        case _:
            return _NONE


def flops(op: Operation) -> Expr:
    """The arithmetic of an op, without that of its regions; VerifyException before it has ranks."""
    match op:
        case ContractionOp() | SparseProductOp():
            bias = getattr(op, "bias", None)
            return multiply_adds(op) * 2 + (_NONE if bias is None else _elements(op.results[0]))
        case AttentionOp():
            scores = product(op.score_dims)
            # Scale, masks, and the softmax of each score.
            steps = 1 + len(op.masks) + _SOFTMAX
            return multiply_adds(op) * 2 + scores * steps
        case UnaryOp() | BinaryOp() | CompareOp() | SelectOp() | CumulativeOp():
            return _elements(op.results[0])
        case ReduceOp() | ArgReduceOp() | CountNonzeroOp():
            return _elements(op.input)
        case PoolOp():
            divides = op.kind.data == PoolKind.AVERAGE
            return _elements(op.result) * (product(op.kernel.data) + int(divides))
        case SoftmaxOp():
            return _softmax_flops(op)
        case BatchNormOp():
            # Difference, quotient, scale and bias; of each channel variance + epsilon and its root.
            return _elements(op.input) * 4 + _elements(op.variance) * 2
        case LayerNormOp():
            return _layer_norm_flops(op)
        case ScatterElementsOp() | ScatterNdOp():
            is_sum = op.reduction.data != ScatterReduction.NONE
            return _elements(op.updates) if is_sum else _NONE
        case _:
            return _NONE


_SOFTMAX = 5
"""Of each element: maximum, difference, exponential, sum, quotient."""


def _softmax_flops(op: SoftmaxOp) -> Expr:
    elements = _elements(op.input)
    if not op.is_log:
        return elements * _SOFTMAX
    # Another difference in place of the quotient, and a logarithm for each row.
    dims = dims_of(op.input)
    return elements * _SOFTMAX + product(d for k, d in enumerate(dims) if k != op.axis.data)


def _layer_norm_flops(op: LayerNormOp) -> Expr:
    """
    Of each element: sum, difference, square, sum of squares, quotient, scale and, if there is one,
    bias; of each row: two quotients, variance + epsilon, root. Without a mean, neither sum and
    difference nor their quotient.
    """
    is_centered = op.uncentered is None
    steps = 4 + 2 * is_centered + (op.bias is not None)
    rows = product(dims_of(op.input)[: op.axis.data])
    return _elements(op.input) * steps + rows * (3 + is_centered)


def bytes_moved(op: Operation) -> Expr:
    """
    The bytes of the operands and results of an op that are tensors; of one with regions, other than
    a kernel, nothing: its ops count for themselves. VerifyException before it has ranks.
    """
    if isinstance(op, ReshapeOp | BindSymbolsOp | FromDimsOp) or is_constant(op):
        return _NONE
    if (op.regions and not isinstance(op, KernelOp)) or op.has_trait(IsTerminator):
        return _NONE
    if isinstance(op, KernelOp) and op.view is not None:
        return _NONE
    # An operand that is read twice is in a cache the second time.
    values = dict.fromkeys((*op.operands, *op.results))
    return sum((tensor_bytes(value.type) for value in values), _NONE)


def tensor_bytes(type_: Attribute) -> Expr:
    """The bytes of a tensor, without padding; zero for what is no tensor of numbers."""
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return _NONE
    type_ = cast(Tensor, type_)
    return product(dims_of(type_)) * _item_size(element_type(type_))


def _item_size(element: Attribute) -> int:
    dtype = numpy_dtype(element)
    return 0 if dtype.hasobject else dtype.itemsize


def _elements(value: SSAValue) -> Expr:
    return product(dims_of(value))


def is_constant(op: Operation) -> bool:
    """True for ops of all dialects that hold data and take none."""
    return not op.operands and constant_blob(op) is not None


def constant_blob(op: Operation) -> Blob | None:
    """The data that an op of any dialect holds."""
    if op.regions or not op.results:
        return None
    blobs = (value.data for value in op.properties.values() if isinstance(value, BlobAttr))
    return next(blobs, None)


def parameters(op: Operation) -> int:
    """The elements that a constant stores; zero for other ops."""
    if not is_constant(op) or (blob := constant_blob(op)) is None:
        return 0
    if blob.element is not None:
        return 1
    type_ = op.results[0].type
    try:
        element = type_.element if isinstance(type_, RefType) else element_type(type_)
        size = _item_size(element)
    except (KeyError, VerifyException):  # text, or a type of the framework alone
        return 0
    return blob.size // size if size else 0


def parameter_bytes(op: Operation) -> int:
    """The bytes that a constant stores; zero for other ops."""
    if not is_constant(op) or (blob := constant_blob(op)) is None:
        return 0
    return blob.size if blob.element is None else len(blob.element)


# A module


@record
class Statistics:
    """The counts of a module."""

    operations: int
    """All ops, those in regions included, but constants, terminators, functions and kernels."""
    kernels: int
    """Regions that become a C function each; none before they are formed."""
    parameters: int
    parameter_bytes: int
    multiply_adds: int | None
    """None, as for FLOPs and bytes, of a module that is not core alone."""
    flops: int | None
    bytes_moved: int | None
    inexact: frozenset[str]
    """
    Those of `multiply_adds`, `flops` and `bytes_moved` for which a size or a number of iterations
    was taken as 1, because it depends on data, or on an input's size that was not given. (Of the
    branches of an `if` the larger one counts.)
    """
    formulas: Mapping[str, Expr]
    """Those of them that depend on sizes which are not known, as formulas of these."""


def statistics_of(module: ModuleOp, sizes: Mapping[str, int] | None = None) -> Statistics:
    """The counts of a module; `sizes` gives the dimension symbols of inputs their values."""
    ops = [op for op in all_ops(module) if op is not module]
    known = {name: Expr.const(size) for name, size in (sizes or {}).items()}
    counter, work = _Counter(known), None
    if not any(map(_is_foreign, ops)):
        functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
        blocks = (block for op in functions for block in op.body.blocks)
        work = sum(map(counter.block, blocks), Work())
    amounts = {} if work is None else vars(work)
    return Statistics(
        operations=sum(map(_is_counted, ops)),
        kernels=sum(isinstance(op, KernelOp) for op in ops),
        parameters=sum(map(parameters, ops)),
        parameter_bytes=sum(map(parameter_bytes, ops)),
        multiply_adds=None if work is None else at_ones(work.multiply_adds),
        flops=None if work is None else at_ones(work.flops),
        bytes_moved=None if work is None else at_ones(work.bytes_moved),
        inexact=frozenset(counter.inexact),
        formulas={name: amount for name, amount in amounts.items() if amount.symbols},
    )


def at_ones(amount: Expr) -> int:
    """An amount where every size that is not known is 1."""
    return max(amount.evaluate(dict.fromkeys(amount.symbols, 1)), 0)


def _is_counted(op: Operation) -> bool:
    other = isinstance(op, func.FuncOp | KernelOp | ModuleOp) or op.has_trait(IsTerminator)
    return not other and not is_constant(op)


def _is_foreign(op: Operation) -> bool:
    return framework_of(op) is not None or op.dialect_name() == "buffer"


def symbol_sizes(module: ModuleOp, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The values that shapes of inputs, by tensor name, give the dimension symbols of `main`."""
    sizes: dict[str, int] = {}
    for op in module.body.block.ops:
        if not isinstance(op, func.FuncOp) or op.sym_name.data != "main":
            continue
        arguments, defaults = op.body.block.args, defaults_of(op)
        names = value_names(op.arg_attrs, len(arguments))
        for name, value, default in zip(names, arguments, defaults, strict=True):
            shape = () if default is None else default.shape
            shape = shapes.get(name, shape)
            for dim, size in zip(dims_of(value), shape, strict=name in shapes):
                if str(dim) in dim.symbols:
                    sizes.setdefault(str(dim), size)
    return sizes


@record
class Work:
    """What some ops do in one run."""

    multiply_adds: Expr = _NONE
    flops: Expr = _NONE
    bytes_moved: Expr = _NONE

    def __add__(self, other: Work) -> Work:
        return Work(
            self.multiply_adds + other.multiply_adds,
            self.flops + other.flops,
            self.bytes_moved + other.bytes_moved,
        )

    def times(self, count: Expr) -> Work:
        """That of so many runs."""
        return Work(self.multiply_adds * count, self.flops * count, self.bytes_moved * count)


@dataclass
class _Counter:
    """The work of blocks, with the symbols that are known so far."""

    symbols: dict[str, Expr]
    inexact: set[str] = field(default_factory=set[str])

    def block(self, block: Block) -> Work:
        return sum(map(self._op, block.ops), Work())

    def _op(self, op: Operation) -> Work:
        match op:
            case IfOp():
                branches = [self.block(region.block) for region in op.regions]
                return Work(
                    maximum(*(branch.multiply_adds for branch in branches)),
                    maximum(*(branch.flops for branch in branches)),
                    maximum(*(branch.bytes_moved for branch in branches)),
                )
            case LoopOp():
                return self._loop(op)
            case KernelOp():
                return replace(self.block(op.body.block), bytes_moved=self._bytes(op))
            case _:
                blocks = (block for region in op.regions for block in region.blocks)
                return self._own(op) + sum(map(self.block, blocks), Work())

    def _own(self, op: Operation) -> Work:
        return Work(
            self._size("multiply_adds", multiply_adds, op),
            self._size("flops", flops, op),
            # What is inside of a kernel moves nothing.
            _NONE if isinstance(op.parent_op(), KernelOp) else self._bytes(op),
        )

    def _bytes(self, op: Operation) -> Expr:
        return self._size("bytes_moved", bytes_moved, op)

    def _size(self, what: str, count: Callable[[Operation], Expr], op: Operation) -> Expr:
        try:
            amount = count(op).substitute(self.symbols)
        except VerifyException:  # infer-shapes has yet to run
            self.inexact.add(what)
            return _NONE
        if amount.symbols:
            self.inexact.add(what)
        return amount if amount.value is None or amount.value > 0 else _NONE

    def _loop(self, op: LoopOp) -> Work:
        trips = None if op.condition is not None else self._value(op.trip_count)
        if trips is not None and op.count is not None:
            self.symbols[op.count.data] = trips
        body = self.block(op.body.block)
        if trips is None or trips.symbols:
            self.inexact |= {name for name, amount in vars(body).items() if amount != _NONE}
        if trips is None:
            return body
        return body.times(trips if trips.value is None or trips.value > 0 else _NONE)

    def _value(self, value: SSAValue | None) -> Expr | None:
        """An integer that follows from constants and the shapes of inputs."""
        owner = None if value is None else value.owner
        if isinstance(owner, ConstantOp):
            return Expr.const(int(owner.array.reshape(-1)[0]))
        if not isinstance(owner, FromDimsOp):
            return None
        return owner.values.data[0].substitute(self.symbols)
