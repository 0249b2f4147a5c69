"""
The level of the entry function: which kernels run on which buffers, in which order.

Expressions here are over the model's own dimension symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    FlatSymbolRefAttrConstr,
    IntAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Region, SSAValue
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
from xdsl.traits import (
    IsolatedFromAbove,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.buffer.enums import Requirement, RequirementAttr
from lowerdeck.dialects.buffer.kernel import PART, PARTS, YieldOp
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.base import require
from lowerdeck.dialects.core.control_flow import Symbols, names_in, symbol_list
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.symbols import MakesSymbols
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr, ExprLike, product


@irdl_op_definition
class WeightOp(IRDLOperation):
    """
    A constant buffer; `offset` is its byte offset in the weights, after these are laid out.

    With a `layout`, `value` is the tensor of dimensions `dims` in C order, and is not packed yet.

    Constraints:

    - (C1) `layout` and `dims` occur together, and the buffer has the shape of the tensor's storage.
    - (C2) the blob has exactly the bytes of the tensor or, packed, of the buffer; or it is elided.

    Example:

    ```mlir
    %w = buffer.weight {value = #core.blob<"0x0000803F00000040">} : !buffer.ref<[2] x f32>
    ```
    """

    name = "buffer.weight"
    value = prop_def(BlobAttr)
    layout = opt_prop_def(LayoutAttr)
    dims = opt_prop_def(DimsAttr)
    offset = opt_prop_def(DimsAttr)
    result = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(
        self,
        value: BlobAttr,
        type: RefType,
        packing: tuple[LayoutAttr, Sequence[ExprLike]] | None = None,
    ):
        properties: dict[str, Attribute] = {"value": value}
        if packing is not None:
            properties |= {"layout": packing[0], "dims": DimsAttr.of(packing[1])}
        super().__init__(properties=properties, result_types=[type])

    def verify_(self) -> None:
        if (problem := self.problem()) is not None:
            raise VerifyException(problem)

    def problem(self) -> str | None:
        """The label of the violated constraint, and the reason."""
        type_ = ref_type(self.result)
        elements = type_.elements
        if self.layout is not None and self.dims is not None:
            elements = product(self.dims.data)
            if tuple(self.layout.dims(self.dims.data)) != type_.dims.data:
                return f"{self.layout} makes no {type_} of the dimensions {self.dims} (C1)"
        elif self.layout is not None or self.dims is not None:
            return "a constant to be packed needs a layout and dimensions (C1)"
        blob, size = self.value.data, elements * type_.item_size
        if blob.is_elided or size == blob.size:
            return None
        return f"the blob has {blob.size} bytes, but {size} are expected (C2)"


@irdl_op_definition
class AllocOp(IRDLOperation):
    """
    A buffer for intermediate values. `offset` is its byte offset in the workspace, after memory is
    planned. A buffer whose size depends on data is `dynamic`: it comes from the caller's allocator
    and is released at the end of the enclosing block.

    If the buffer has more elements than the value in it, because a layout pads some axes,
    `unpadded` is the number of elements of the value.

    Example:

    ```mlir
    %a = buffer.alloc {dynamic = false, unpadded = #core.dims<[n * 12]>}
        : !buffer.ref<[n, 16] x f32>
    ```
    """

    name = "buffer.alloc"
    offset = opt_prop_def(DimsAttr)
    unpadded = opt_prop_def(DimsAttr)
    dynamic = prop_def(BoolAttr)
    result = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: RefType, *, dynamic: bool = False, unpadded: ExprLike | None = None):
        padded = unpadded is not None and Expr.of(unpadded) != type.elements
        super().__init__(
            properties={
                "dynamic": BoolAttr.from_bool(dynamic),
                "unpadded": DimsAttr.of([unpadded]) if unpadded is not None and padded else None,
            },
            result_types=[type],
        )

    @property
    def unpadded_bytes(self) -> Expr:
        """The size in bytes of the value in C order."""
        type_ = ref_type(self.result)
        return type_.bytes if self.unpadded is None else self.unpadded.data[0] * type_.item_size


@irdl_op_definition
class ViewOp(IRDLOperation):
    """
    The same memory from `offset` elements on, as a dense buffer of another shape.

    Constraints:

    - (C1) source and result have the same element type.

    Example:

    ```mlir
    %v = buffer.view %a {offset = #core.dims<[64]>}
        : !buffer.ref<[4, 64] x f32> -> !buffer.ref<[128] x f32>
    ```
    """

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
        fits = ref_type(self.source).element == ref_type(self.result).element
        require(fits, "a view keeps the element type", "C1")


@irdl_op_definition
class CopyOp(IRDLOperation):
    """
    Copy a dense buffer to another one of the same size; they do not overlap.

    Example:

    ```mlir
    buffer.copy %x, %y : !buffer.ref<[4, 64] x f32>, !buffer.ref<[256] x f32>
    ```
    """

    name = "buffer.copy"
    source = operand_def(RefType)
    target = operand_def(RefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$source `,` $target attr-dict `:` type($source) `,` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])


@irdl_op_definition
class CallOp(IRDLOperation):
    """
    Run a kernel on buffers; `symbols` are the values of its dimension symbols, and `multiply_adds`
    is the number of multiply-adds of its convolutions and matrix products. `moved` are the bytes
    that it reads and writes, where they are not those of all its buffers: of an update in place.

    Constraints:

    - (C1) `multiply_adds` and `moved` are one expression each.

    Example:

    ```mlir
    buffer.call @double(%x, %y) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x f32>)
    ```
    """

    name = "buffer.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def(RefType)
    symbols = prop_def(DimsAttr)
    multiply_adds = opt_prop_def(DimsAttr)
    moved = opt_prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$callee `(` $arguments `)` $symbols `:` `(` type($arguments) `)` attr-dict"

    def __init__(
        self,
        callee: str,
        arguments: Sequence[SSAValue],
        symbols: Sequence[ExprLike],
        multiply_adds: DimsAttr | None = None,
        moved: DimsAttr | None = None,
    ):
        super().__init__(
            operands=[arguments],
            properties={
                "callee": SymbolRefAttr(callee),
                "symbols": DimsAttr.of(symbols),
                "multiply_adds": multiply_adds,
                "moved": moved,
            },
        )

    def verify_(self) -> None:
        _require_one(self.multiply_adds, "multiply_adds", "C1")
        _require_one(self.moved, "moved", "C1")


@irdl_op_definition
class BindOp(IRDLOperation, MakesSymbols):
    """
    Bind symbols to the integers of a buffer, to the end of the enclosing block.

    Example:

    ```mlir
    buffer.bind %x {symbols = ["u0", "u1"]} : !buffer.ref<[2] x i64>
    ```
    """

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
    def made_symbols(self) -> list[str]:
        """The symbols, one per element."""
        return [name.data for name in self.symbols]


@irdl_op_definition
class RequireOp(IRDLOperation):
    """
    End the run with status SHAPE_MISMATCH unless `left predicate right`, where the predicate is eq,
    le, or broadcast: left equals right or is 1. The predicate index is le for elements that are
    selected by index, and ends the run with INDEX_OUT_OF_RANGE.

    Example:

    ```mlir
    buffer.require <[n * 2]> eq <[m]>
    ```
    """

    name = "buffer.require"
    predicate = prop_def(RequirementAttr)
    left = prop_def(DimsAttr)
    right = prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$left $predicate $right attr-dict"

    def __init__(self, left: ExprLike, predicate: Requirement | str, right: ExprLike):
        super().__init__(
            properties={
                "predicate": RequirementAttr(Requirement(predicate)),
                "left": DimsAttr.of([left]),
                "right": DimsAttr.of([right]),
            }
        )


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """
    Every thread waits here for all others.

    Example:

    ```mlir
    buffer.barrier
    ```
    """

    name = "buffer.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class CheckStatusOp(IRDLOperation):
    """
    End the run if an earlier kernel has set its status; threads agree on the status first.

    Example:

    ```mlir
    buffer.check_status
    ```
    """

    name = "buffer.check_status"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class MarkOp(IRDLOperation):
    """
    Read the clock. The time since the last mark is added to that of `slot`, if given.

    A slot is described for people: by the `kernel` that was called, or `copy`, the model's `nodes`
    that it originates from, the `shapes` of its buffers and the sum of their `bytes`; for a call
    also by the kernel's `schedule`, the `lanes` of its widest vectors (1 for scalars alone) and its
    `multiply_adds`, if there are any.

    Constraints:

    - (C1) `slot`, `kernel`, `nodes`, `shapes` and `bytes` occur together, the others with these.
    - (C2) `bytes` and `multiply_adds` are one expression each, and `slot` is not negative.

    Example:

    ```mlir
    buffer.mark {slot = #builtin.int<3>, kernel = "double", nodes = ["add"], shapes = "n -> n",
                 bytes = #core.dims<[n * 8]>, schedule = "", lanes = #builtin.int<16>}
    ```
    """

    name = "buffer.mark"
    slot = opt_prop_def(IntAttr)
    kernel = opt_prop_def(StringAttr)
    nodes = opt_prop_def(ArrayAttr[StringAttr])
    shapes = opt_prop_def(StringAttr)
    bytes = opt_prop_def(DimsAttr)
    schedule = opt_prop_def(StringAttr)
    lanes = opt_prop_def(IntAttr)
    multiply_adds = opt_prop_def(DimsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self, slot: Mapping[str, Attribute] | None = None) -> None:
        """A mark with the properties of a slot, or without one."""
        super().__init__(properties={} if slot is None else slot)

    def verify_(self) -> None:
        needed = (self.slot, self.kernel, self.nodes, self.shapes, self.bytes)
        missing = sum(value is None for value in needed)
        fits = not missing or not self.properties
        require(fits, f"{missing} of 5 properties of a slot are missing", "C1")
        _require_one(self.bytes, "bytes", "C2")
        _require_one(self.multiply_adds, "multiply_adds", "C2")
        require(self.slot is None or self.slot.data >= 0, "a negative slot", "C2")


@irdl_op_definition
class OnceOp(IRDLOperation):
    """
    Only the first thread runs the region.

    Example:

    ```mlir
    buffer.once {
      buffer.call @double(%x, %y) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
      buffer.yield
    }
    ```
    """

    name = "buffer.once"
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$body attr-dict"

    def __init__(self, body: Region):
        super().__init__(regions=[body])


@irdl_op_definition
class ShareOp(IRDLOperation, MakesSymbols):
    """
    Run the region for every part of a loop: in it, the symbols `part.number` and `part.count` are
    the number of the part, from 0, and the number of parts. Threads take parts until none is left,
    so a part must not touch data that another one writes.

    Example:

    ```mlir
    buffer.share {
      buffer.call @double(%x, %y) <[part.number, part.count]>
          : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
      buffer.yield
    }
    ```
    """

    name = "buffer.share"
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$body attr-dict"

    def __init__(self, body: Region):
        super().__init__(regions=[body])

    @property
    def inner_symbols(self) -> list[str]:
        return [PART, PARTS]


@irdl_op_definition
class SectionOp(IRDLOperation, MakesSymbols):
    """
    Consecutive ops of the entry function that form a separate function, so that none is too long.

    The region's arguments are the buffers in `arguments`, and `symbols` the dimension symbols from
    outside that it uses. The results are the buffers that the region yields, and `result_symbols`
    symbols that it defines, to the end of the enclosing block. Dynamic buffers allocated in the
    region belong to the enclosing block. An error that ends the run in a section ends the run of
    the model.

    Constraints:

    - (C1) the region's arguments have the types of `arguments`.
    - (C2) the region ends with `buffer.yield` of buffers of the result types, each once.

    Example:

    ```mlir
    %b = buffer.section(%a : !buffer.ref<[n] x f32>) -> !buffer.ref<[n] x f32> {
    ^bb0(%x : !buffer.ref<[n] x f32>):
      %y = buffer.alloc {dynamic = true} : !buffer.ref<[n] x f32>
      buffer.call @double(%x, %y) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x f32>)
      buffer.yield %y : !buffer.ref<[n] x f32>
    } {symbols = ["n"]}
    ```
    """

    name = "buffer.section"
    arguments = var_operand_def(RefType)
    symbols = opt_prop_def(Symbols)
    result_symbols = opt_prop_def(Symbols)
    results_ = var_result_def(RefType)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())
    assembly_format = (
        "(`(` $arguments^ `:` type($arguments) `)`)? (`->` type($results_)^)? $body attr-dict"
    )

    def __init__(
        self,
        arguments: Sequence[SSAValue],
        body: Region,
        *,
        result_types: Sequence[RefType] = (),
        symbols: Sequence[str] = (),
        result_symbols: Sequence[str] = (),
    ):
        super().__init__(
            operands=[arguments],
            properties={
                "symbols": symbol_list(symbols),
                "result_symbols": symbol_list(result_symbols),
            },
            regions=[body],
            result_types=[result_types],
        )

    @property
    def made_symbols(self) -> list[str]:
        return names_in(self.result_symbols)

    def verify_(self) -> None:
        fits = list(self.body.block.arg_types) == [value.type for value in self.arguments]
        require(fits, "the region has other arguments than the section", "C1")
        _require_yields(self.body, self.results, set(), "C2")


@irdl_op_definition
class IfOp(IRDLOperation, MakesSymbols):
    """
    Run one of two regions, selected by the i1 in a buffer of one element.

    The results are the buffers that the region yields: dynamic ones that it owns (its own, or
    results of control flow in it), each once, which are not released at its end but with the
    enclosing block. `result_symbols` are dimensions of the results, bound to those of the yielded
    buffers.

    Constraints:

    - (C1) both regions end with `buffer.yield` of buffers of the result types, except for
      dimensions that are one of `result_symbols`, each buffer once.

    Example:

    ```mlir
    %r = buffer.if %c : !buffer.ref<[] x i1> -> !buffer.ref<[p] x f32> {
      %a = buffer.alloc {dynamic = true} : !buffer.ref<[2] x f32>
      buffer.yield %a : !buffer.ref<[2] x f32>
    } else {
      %b = buffer.alloc {dynamic = true} : !buffer.ref<[n] x f32>
      buffer.yield %b : !buffer.ref<[n] x f32>
    } {result_symbols = ["p"]}
    ```
    """

    name = "buffer.if"
    condition = operand_def(RefType)
    result_symbols = opt_prop_def(Symbols)
    results_ = var_result_def(RefType)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "$condition `:` type($condition) (`->` type($results_)^)? $then_region `else` "
        "$else_region attr-dict"
    )

    def __init__(
        self,
        condition: SSAValue,
        then_region: Region,
        else_region: Region,
        *,
        result_types: Sequence[RefType] = (),
        result_symbols: Sequence[str] = (),
    ):
        super().__init__(
            operands=[condition],
            properties={"result_symbols": symbol_list(result_symbols)},
            regions=[then_region, else_region],
            result_types=[result_types],
        )

    @property
    def made_symbols(self) -> list[str]:
        return names_in(self.result_symbols)

    def verify_(self) -> None:
        made = set(self.made_symbols)
        for region in self.regions:
            _require_yields(region, self.results, made, "C1")


@irdl_op_definition
class LoopOp(IRDLOperation, MakesSymbols):
    """
    Run the body while the i1 in `condition` holds and fewer iterations than the i64 in `trip_count`
    have run.

    `iteration` names the symbol for the iteration number in the body, `count` the one for the
    number of iterations that ran, to the end of the enclosing block. The region's arguments are,
    for each pair of buffers in `slots`, the current and the next value; after each iteration the
    two are swapped. The results are the current ones after the loop.

    Values that change their size follow the pairs: `owned` are dynamic buffers of the enclosing
    block, of which the loop takes ownership. The body yields the next ones, which are dynamic
    buffers that it owns, each once; after each iteration they replace the current ones, which are
    released. `carried_symbols` are dimensions of the arguments in the body, `result_symbols` the
    same dimensions of the results.

    Constraints:

    - (C1) `slots` are pairs of buffers of the same type.
    - (C2) the region's first arguments have the types of `slots`.
    - (C3) `carried_symbols` and `result_symbols` have the same length.
    - (C4) the other arguments have the types of `owned`, except for dimensions that are one of
      `carried_symbols`.
    - (C5) the region ends with `buffer.yield` of buffers of the types of these arguments, except
      for dimensions that are one of `carried_symbols`, each buffer once.
    - (C6) the results for owned buffers have the types of these arguments, with `result_symbols`
      in place of `carried_symbols`.

    Example:

    ```mlir
    %r, %s = buffer.loop trip %t : !buffer.ref<[] x i64>
        swap %a, %b : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
        own %c : !buffer.ref<[4] x f32> -> !buffer.ref<[4] x f32>, !buffer.ref<[q] x f32> {
    ^bb0(%x : !buffer.ref<[4] x f32>, %y : !buffer.ref<[4] x f32>, %d : !buffer.ref<[k] x f32>):
      buffer.copy %x, %y : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
      %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
      buffer.yield %e : !buffer.ref<[k + 1] x f32>
    } {carried_symbols = ["k"], result_symbols = ["q"]}
    ```
    """

    name = "buffer.loop"
    trip_count = opt_operand_def(RefType)
    condition = opt_operand_def(RefType)
    slots = var_operand_def(RefType)
    owned = var_operand_def(RefType)
    iteration = opt_prop_def(StringAttr)
    count = opt_prop_def(StringAttr)
    carried_symbols = opt_prop_def(Symbols)
    result_symbols = opt_prop_def(Symbols)
    results_ = var_result_def(RefType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "(`trip` $trip_count^ `:` type($trip_count))? (`cond` $condition^ `:` type($condition))? "
        "(`swap` $slots^ `:` type($slots))? (`own` $owned^ `:` type($owned))? "
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
        owned: Sequence[SSAValue] = (),
        carried_symbols: Sequence[str] = (),
        result_symbols: Sequence[str] = (),
    ):
        partners = dict(zip(carried_symbols, map(Expr.symbol, result_symbols), strict=True))
        final = [_substituted(arg, partners) for arg in body.block.args[len(slots) :]]
        super().__init__(
            operands=[trip_count, condition, slots, owned],
            properties={
                "iteration": None if iteration is None else StringAttr(iteration),
                "count": None if count is None else StringAttr(count),
                "carried_symbols": symbol_list(carried_symbols),
                "result_symbols": symbol_list(result_symbols),
            },
            regions=[body],
            result_types=[[*(slot.type for slot in slots[::2]), *final]],
        )

    @property
    def made_symbols(self) -> list[str]:
        count = [] if self.count is None else [self.count.data]
        return [*names_in(self.result_symbols), *count]

    @property
    def inner_symbols(self) -> list[str]:
        iteration = [] if self.iteration is None else [self.iteration.data]
        return [*names_in(self.carried_symbols), *iteration]

    @property
    def owned_args(self) -> Sequence[SSAValue]:
        """The region's arguments for values that change their size."""
        return self.body.block.args[len(self.slots) :]

    @property
    def owned_results(self) -> Sequence[SSAValue]:
        """The final values of those that change their size."""
        return self.results[len(self.slots) // 2 :]

    def verify_(self) -> None:
        types = [slot.type for slot in self.slots]
        paired = len(types) % 2 == 0 and types[::2] == types[1::2]
        require(paired, "slots are pairs of buffers of one type", "C1")
        fits = list(self.body.block.arg_types)[: len(types)] == types
        require(fits, "the region has other arguments than slots", "C2")
        names = names_in(self.carried_symbols), names_in(self.result_symbols)
        paired = len(names[0]) == len(names[1])
        require(paired, "carried symbols and result symbols are pairs", "C3")
        _require_same(self.owned, self.owned_args, set(names[0]), "the region's arguments", "C4")
        _require_yields(self.body, self.owned_args, set(names[0]), "C5")
        partners = dict(zip(names[0], map(Expr.symbol, names[1]), strict=True))
        final = [_substituted(arg, partners) for arg in self.owned_args]
        fits = [result.type for result in self.owned_results] == final
        require(fits, "the results are not the arguments with the result symbols", "C6")


def _substituted(value: SSAValue, values: Mapping[str, Expr]) -> RefType:
    type_ = ref_type(value)
    return RefType.of(type_.element, [dim.substitute(values) for dim in type_.dims.data])


def made_dims(values: Sequence[SSAValue], names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """The buffer dimensions that are one of the symbols: number of the value, axis, symbol."""
    for number, value in enumerate(values):
        for axis, dim in enumerate(ref_type(value).dims.data):
            if str(dim) in names:
                yield number, axis, str(dim)


def _require_one(exprs: DimsAttr | None, what: str, label: str) -> None:
    """A property, if present, is one expression."""
    fits = exprs is None or len(exprs.data) == 1
    require(fits, lambda: f"{what} is {exprs}, not one expression", label)


def _require_yields(region: Region, values: Sequence[SSAValue], made: set[str], label: str) -> None:
    last = region.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"the region does not end with buffer.yield ({label})")
    require(len(set(last.values)) == len(last.values), "a buffer is yielded twice", label)
    _require_same(last.values, values, made, "what the region yields", label)


def _require_same(
    found: Sequence[SSAValue], expected: Sequence[SSAValue], made: set[str], what: str, label: str
) -> None:
    """The types are equal, except for dimensions that are one of `made` in `expected`."""
    counts = f"{what}: found {len(found)} buffers, expected {len(expected)}"
    require(len(found) == len(expected), counts, label)
    for value, other in zip(found, expected, strict=True):
        own, type_ = ref_type(value), ref_type(other)
        pairs = zip(own.dims.data, type_.dims.data, strict=False)
        same = all(a == b or str(b) in made for a, b in pairs)
        same = same and own.element == type_.element and len(own.dims.data) == len(type_.dims.data)
        require(same, lambda: f"{what}: found {own}, expected {type_}", label)
