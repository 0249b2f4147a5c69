"""Type inference for all values of a module, from the types of the arguments."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.control_flow import (
    IfOp,
    KernelOp,
    LoopOp,
    with_dims,
    with_own_dims,
    yielded,
)
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.frameworks import framework_of
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.provenance import describe


def infer_types(module: ModuleOp) -> None:
    """
    Set the type of every result of a core op to the inferred one, in program order.

    CompileError lists all ops whose operand types are invalid.
    """
    inference = _Inference()
    for region in module.regions:
        for block in region.blocks:
            inference.visit_block(block)
    if inference.errors:
        raise CompileError("\n".join(inference.errors))


class _Inference:
    """One sweep over a module; a loop's arguments are fixed before its body is visited."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def visit_block(self, block: Block) -> None:
        for op in tuple(block.ops):
            try:
                self._visit(op)
            except VerifyException as error:
                self.errors.append(f"{describe(op)}: {error}")

    def _visit(self, op: Operation) -> None:
        match op:
            case CoreOp():
                if not any(isinstance(v.type, UnrankedTensorType) for v in op.operands):
                    op.refine()
            case IfOp():
                self._visit_if(op)
            case LoopOp():
                self._visit_loop(op)
            case KernelOp():
                self._visit_kernel(op)
            case FuncOp():
                self._visit_function(op)
            case _:
                self._visit_regions(op)

    def _visit_regions(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.visit_block(block)

    def _visit_function(self, op: FuncOp) -> None:
        for framework in filter(None, map(framework_of, all_ops(op))):
            if framework.infer_types is not None:
                return framework.infer_types()(op)
        self._visit_regions(op)
        last = op.body.blocks.last.last_op if op.body.blocks.last is not None else None
        if isinstance(last, ReturnOp):
            type_ = FunctionType.from_lists(
                list(op.function_type.inputs), [value.type for value in last.operands]
            )
            op.function_type = type_

    def _visit_kernel(self, op: KernelOp) -> None:
        for arg, value in zip(tuple(op.body.block.args), op.inputs, strict=True):
            _set_type(arg, value.type)
        self._visit_regions(op)
        for result, value in zip(tuple(op.results), yielded(op.body), strict=True):
            _set_type(result, value.type)

    def _visit_if(self, op: IfOp) -> None:
        """If the branches' types differ, the result's type decides, if it has a rank."""
        self._visit_regions(op)
        made = op.made_dims
        for index, (result, axes) in enumerate(zip(tuple(op.results), made, strict=True)):
            # A size that is unconstrained in the branches has its own symbol in the result.
            types = {
                with_own_dims(yielded(region)[index].type, result, axes) for region in op.regions
            }
            if len(types) == 1:
                _set_type(result, types.pop())
        for region in op.regions:
            triples = zip(tuple(op.results), yielded(region), made, strict=True)
            _yield_types(region.block, [with_own_dims(r.type, v, axes) for r, v, axes in triples])

    def _visit_loop(self, op: LoopOp) -> None:
        """
        A carried value without a rank gets the type of its initial value; a ranked one keeps its
        own, and the initial and yielded values are converted to it, except for sizes that change.
        """
        for arg, init in zip(op.carried_args, tuple(op.inits), strict=True):
            if isinstance(arg.type, UnrankedTensorType):
                _set_type(arg, init.type)
        carried, made = [arg.type for arg in op.carried_args], op.made_dims
        start = len(op.operands) - len(op.inits)
        operands = list(op.operands)
        for index, init in enumerate(tuple(op.inits)):
            type_ = with_own_dims(carried[index], init, made[index])
            operands[start + index] = _with_type(init, type_, op)
        op.operands = operands
        self._visit_regions(op)
        conditions = [] if (c := op.yielded_condition) is None else [c.type]
        scans = [value.type for value in op.yielded_scans]
        triples = zip(carried, op.yielded_carried, made, strict=True)
        nexts = [with_own_dims(*triple) for triple in triples]
        _yield_types(op.body.block, [*conditions, *nexts, *scans])
        results = tuple(op.results)
        for result, type_, names in zip(results, carried, op.made_result_dims, strict=False):
            sizes = {axis: Expr.symbol(name) for axis, name in names.items()}
            _set_type(result, with_dims(type_, sizes))
        for result, value in zip(results[len(carried) :], op.yielded_scans, strict=True):
            _set_type(result, _scan_type(op, result, value))


def _scan_type(op: LoopOp, result: SSAValue, value: SSAValue) -> Attribute:
    """The type of a scan output: its own number of iterations if known, else the loop's count."""
    if isinstance(value.type, UnrankedTensorType):
        return result.type
    if isinstance(result.type, TensorType) and rank_of(result) > 0:
        count = dims_of(result)[0]
    elif op.count is not None:
        count = Expr.symbol(op.count.data)
    else:
        raise VerifyException("a loop with scan outputs needs a symbol for its count")
    return tensor(element_type(value), [count, *dims_of(value)])


def _yield_types(block: Block, types: Sequence[Attribute]) -> None:
    """Convert the values that a block yields to the given types."""
    last = block.last_op
    if last is None or len(last.operands) != len(types):
        raise VerifyException(f"expected a region that yields {len(types)} values")
    if [value.type for value in last.operands] == list(types):
        return
    last.operands = [
        _with_type(value, type_, last) for value, type_ in zip(last.operands, types, strict=True)
    ]


def _with_type(value: SSAValue, type_: Attribute, user: Operation) -> SSAValue:
    """
    `value` with another type for the same shape, by a reshape before `user`.

    VerifyException if the types cannot describe one shape: then a loop changes it.
    """
    if value.type == type_ or any(isinstance(t, UnrankedTensorType) for t in (value.type, type_)):
        return value
    if not _may_agree(value, type_):
        raise VerifyException(f"found a value of type {value.type} where {type_} is expected")
    reshape = ReshapeOp(value, dims_of(type_))
    reshape.location = user.location
    Rewriter.insert_op(reshape, InsertPoint.before(user))
    return reshape.result


def _may_agree(value: SSAValue, type_: Attribute) -> bool:
    found, expected = dims_of(value), dims_of(type_)
    if element_type(value) != element_type(type_) or len(found) != len(expected):
        return False
    pairs = zip(found, expected, strict=True)
    return not any(None not in (a.value, b.value) and a != b for a, b in pairs)


def _set_type(value: SSAValue, type_: Attribute) -> None:
    if value.type != type_ and not isinstance(type_, UnrankedTensorType):
        Rewriter.replace_value_with_new_type(value, type_)
