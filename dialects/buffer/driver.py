"""
The level of the driver, `buffer.func @run`: which kernels run on which buffers, in which order.

Expressions here are over the model's own dimension symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    FlatSymbolRefAttrConstr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import ExprLike


@irdl_op_definition
class WeightOp(IRDLOperation):
    """A constant buffer; `offset` is its byte offset in the weights once they are laid out."""

    name = "buffer.weight"
    value = prop_def(BlobAttr)
    offset = opt_prop_def(DimsAttr)
    result = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, value: BlobAttr, type: RefType):
        super().__init__(properties={"value": value}, result_types=[type])


@irdl_op_definition
class AllocOp(IRDLOperation):
    """
    A buffer for intermediate values. `offset` is its byte offset in the workspace once memory is
    planned. One whose size depends on data is `dynamic`: it comes from the caller's allocator and
    is given back at the end of the enclosing block.
    """

    name = "buffer.alloc"
    offset = opt_prop_def(DimsAttr)
    dynamic = prop_def(BoolAttr)
    result = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: RefType, *, dynamic: bool = False):
        super().__init__(properties={"dynamic": BoolAttr.from_bool(dynamic)}, result_types=[type])


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The same memory from `offset` elements on, as a dense buffer of another shape."""

    name = "buffer.view"
    source = operand_def(RefType)
    offset = prop_def(DimsAttr)
    result = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, type: RefType, offset: ExprLike = 0):
        super().__init__(
            operands=[source],
            properties={"offset": DimsAttr.of([offset])},
            result_types=[type],
        )

    def verify_(self) -> None:
        if ref_type(self.source).element != ref_type(self.result).element:
            raise VerifyException("a view keeps the element type")


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copy a dense buffer to another one of the same size; they do not overlap."""

    name = "buffer.copy"
    source = operand_def(RefType)
    target = operand_def(RefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$source `,` $target attr-dict `:` type($source) `,` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])


@irdl_op_definition
class CallOp(IRDLOperation):
    """Run a kernel on buffers; `symbols` are the values of its dimension symbols."""

    name = "buffer.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def(RefType)
    symbols = prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$callee `(` $arguments `)` $symbols `:` `(` type($arguments) `)` attr-dict"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], symbols: Sequence[ExprLike]):
        super().__init__(
            operands=[arguments],
            properties={"callee": SymbolRefAttr(callee), "symbols": DimsAttr.of(symbols)},
        )


@irdl_op_definition
class BindOp(IRDLOperation):
    """The integers of a buffer become the values of symbols, to the end of the enclosing block."""

    name = "buffer.bind"
    source = operand_def(RefType)
    symbols = prop_def(ArrayAttr[StringAttr])
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$source attr-dict `:` type($source)"

    def __init__(self, source: SSAValue, symbols: Sequence[str]):
        super().__init__(
            operands=[source],
            properties={"symbols": ArrayAttr([StringAttr(name) for name in symbols])},
        )

    @property
    def names(self) -> list[str]:
        """The symbols, one an element."""
        return [name.data for name in self.symbols]


@irdl_op_definition
class RequireOp(IRDLOperation):
    """
    End the run with status SHAPE_MISMATCH unless `left predicate right`, where the predicate is eq,
    le, or broadcast: left equals right or is 1.
    """

    name = "buffer.require"
    predicate = prop_def(StringAttr)
    left = prop_def(DimsAttr)
    right = prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$left $predicate $right attr-dict"

    def __init__(self, left: ExprLike, predicate: str, right: ExprLike):
        super().__init__(
            properties={
                "predicate": StringAttr(predicate),
                "left": DimsAttr.of([left]),
                "right": DimsAttr.of([right]),
            }
        )


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Every thread waits here for all the others."""

    name = "buffer.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class CheckStatusOp(IRDLOperation):
    """End the run if a kernel before this set its status; threads agree on it first."""

    name = "buffer.check_status"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class OnceOp(IRDLOperation):
    """Only the first thread runs the region."""

    name = "buffer.once"
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$body attr-dict"

    def __init__(self, body: Region):
        super().__init__(regions=[body])


@irdl_op_definition
class IfOp(IRDLOperation):
    """Run one of two regions, chosen by the i1 in a buffer of one element."""

    name = "buffer.if"
    condition = operand_def(RefType)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$condition `:` type($condition) $then_region `else` $else_region attr-dict"

    def __init__(self, condition: SSAValue, then_region: Region, else_region: Region):
        super().__init__(operands=[condition], regions=[then_region, else_region])


@irdl_op_definition
class LoopOp(IRDLOperation):
    """
    Run the body while the i1 in `condition` holds and fewer than the i64 in `trip_count` iterations
    were made.

    `iteration` names the symbol for the iteration number in the body, `count` the one for the
    number of iterations made, to the end of the enclosing block. The region's arguments are, for
    each pair of buffers in `slots`, the current and the next value; after each iteration the two
    swap roles. The results are the current ones after the loop.
    """

    name = "buffer.loop"
    trip_count = opt_operand_def(RefType)
    condition = opt_operand_def(RefType)
    slots = var_operand_def(RefType)
    iteration = opt_prop_def(StringAttr)
    count = opt_prop_def(StringAttr)
    results_ = var_result_def(RefType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "(`trip` $trip_count^ `:` type($trip_count))? (`cond` $condition^ `:` type($condition))? "
        "(`swap` $slots^ `:` type($slots))? "
        "(`->` type($results_)^)? $body attr-dict"
    )

    def __init__(
        self,
        trip_count: SSAValue | None,
        condition: SSAValue | None,
        slots: Sequence[SSAValue],
        body: Region,
        *,
        iteration: str | None = None,
        count: str | None = None,
    ):
        super().__init__(
            operands=[trip_count, condition, slots],
            properties={
                "iteration": None if iteration is None else StringAttr(iteration),
                "count": None if count is None else StringAttr(count),
            },
            regions=[body],
            result_types=[[slot.type for slot in slots[::2]]],
        )

    def verify_(self) -> None:
        types = [slot.type for slot in self.slots]
        if len(types) % 2 or types[::2] != types[1::2]:
            raise VerifyException("slots are pairs of buffers of one type")
        if list(self.body.block.arg_types) != types:
            raise VerifyException("the region has other arguments than slots")
