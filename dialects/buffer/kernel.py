"""
The level of kernels: loops, and loads and stores at affine expressions of loop variables.

Scalar arithmetic is `arith` and `math` on signless values; a buffer of unsigned integers is loaded
as signless ones, and the op says how they are read. An expression refers to its op's index operands
as d0, d1, ... and to the function's dimension symbols as s0, s1, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    ArrayAttr,
    BoolAttr,
    Float32Type,
    IndexType,
    IntAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i1,
    i32,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
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
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from lowerdeck.dialects.buffer.enums import LoopMode, LoopModeAttr
from lowerdeck.dialects.buffer.making import make, segments
from lowerdeck.dialects.buffer.operands import Operand, meaning_of
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.buffer.vector import lanes_of, scalar_of, vector_type
from lowerdeck.dialects.core.base import Ints, int_array, ints, is_ranked, require
from lowerdeck.dialects.core.control_flow import (
    KernelBody,
    Symbols,
    require_yield,
    symbol_list,
    yielded,
)
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import ScheduleAttr
from lowerdeck.dialects.core.types import DimsAttr
from lowerdeck.dialects.dims import Expr, ExprLike

# Attributes are checked when they are made, and there are many loops.
_TRUTH = {truth: BoolAttr.from_bool(truth) for truth in (False, True)}
_MODES = {mode: LoopModeAttr(mode) for mode in LoopMode}

PART, PARTS = "part.number", "part.count"
"""The symbols of a part that threads take; no dimension's name has a dot."""

WORD_BYTES = 4
"""Bytes of a word."""

EXACT = "exact"
"""Arithmetic in f64 with this attribute is there for its digits: it is never done in f32."""

FITS = "fits"
"""The operand of a conversion to integers with this attribute is within their limits."""

AT_MOST_ZERO = "at_most_zero"
"""The operand of a function with this attribute is zero, less, or NaN."""

SHORT = "short"
"""A function with this attribute is the short polynomial of `core`."""


@lru_cache(maxsize=64)
def value_type(element: Attribute) -> Attribute:
    """The type of a loaded element: integers lose their sign."""
    return IntegerType(element.width.data) if isa(element, IntegerType) else element


def lane_type(element: Attribute) -> Attribute:
    """The type of a lane of loaded elements: a truth value is the byte that it is in memory."""
    return IntegerType(8) if element == i1 else value_type(element)


@irdl_op_definition
class BufferKernelOp(KernelBody):
    """
    A kernel that has no loops yet: what it computes of the tensors in some buffers, as ops of
    `core`. `lower-kernels` makes a `buffer.func` of it.

    A call gives it a buffer for each argument of the region, then one for each value that the
    region yields. `layouts` says how each of these tensors lies in its buffer; without it all are
    row-major. The arguments in `constants` are constants of the model. The argument `in_place` is
    changed where it lies, and is the result from there on: a call gives one buffer for both.
    `symbols` are the dimension symbols that the types and ops name, whose values a call gives.
    `schedule` says by which strategy the kernel runs, and how; without it in plain loops.

    Constraints:

    - (C1) the region's arguments are tensors of known rank.
    - (C2) the region ends with `core.yield`, which gives such tensors.
    - (C3) `layouts` has one layout of the right rank for each argument and each yielded value.
    - (C4) no op in the region has a region.
    - (C5) what `schedule` asks for ahead is an argument.
    - (C6) `constants` are numbers of arguments.
    - (C7) `in_place` is an argument of the type and the layout of the only value that is yielded.

    Example:

    ```mlir
    buffer.kernel @double {
    ^bb0(%x : tensor<?xf32, #core.tensor<dims = [n]>>):
      %y = core.add %x, %x
          : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<?xf32, #core.tensor<dims = [n]>>)
          -> tensor<?xf32, #core.tensor<dims = [n]>>
      core.yield %y : tensor<?xf32, #core.tensor<dims = [n]>>
    } {symbols = ["n"]}
    ```
    """

    name = "buffer.kernel"
    symbols = opt_prop_def(Symbols)
    constants = opt_prop_def(Ints)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    assembly_format = "$sym_name $body attr-dict"

    def __init__(
        self,
        sym_name: str,
        body: Region,
        *,
        layouts: ArrayAttr[LayoutAttr] | None = None,
        schedule: ScheduleAttr | None = None,
        symbols: Sequence[str] = (),
        constants: Sequence[int] = (),
        in_place: IntAttr | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "layouts": layouts,
                "schedule": schedule,
                "symbols": symbol_list(symbols),
                "constants": int_array(constants) if constants else None,
                "in_place": in_place,
            },
            regions=[body],
        )

    def is_constant(self, position: int) -> bool:
        return position in self.constant_positions

    @property
    def constant_positions(self) -> Sequence[int]:
        """The numbers of the arguments that are constants of the model."""
        return () if self.constants is None else ints(self.constants)

    def verify_(self) -> None:
        arguments = self.body.block.args
        for argument in arguments:
            require(is_ranked(argument), f"expected a tensor, got {argument.type}", "C1")
        require_yield(self.body, "C2")
        for value in yielded(self.body):
            require(is_ranked(value), f"a kernel cannot yield {value.type}", "C2")
        self._require_layouts("C3")
        self._require_straight_line("C4")
        self._require_prefetch("C5")
        for position in self.constant_positions:
            text = f"argument {position} of {len(arguments)} is said to be constant"
            require(0 <= position < len(arguments), text, "C6")
        self._require_in_place("C7")


@irdl_op_definition
class FuncOp(IRDLOperation):
    """
    A C function that computes: buffers in, `outputs` buffers (the last arguments) out. Outputs that
    are never read are workspace of the function.

    `symbols` names its integer parameters; in expressions they are s0, s1, ... in order, and the
    names are those of the model, for people. `schedule` says how the labeled loops are to run. One
    that is `parallel` runs one part of its loops, which its last two symbols say.

    Constraints:

    - (C1) the region's arguments are buffers, and at least `outputs`, which is not negative.
    - (C2) the region ends with `buffer.return`.
    - (C3) the buffer that `schedule` asks for ahead is one of the arguments.
    - (C4) the last symbols of a `parallel` function are `part.number` and `part.count`.

    Example:

    ```mlir
    buffer.func @double {
    ^bb0(%x : !buffer.ref<[s0] x f32>, %y : !buffer.ref<[s0] x f32>):
      buffer.for <[0, s0, 1]> {
      ^bb1(%i : index):
        %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x f32> -> f32
        %b = arith.addf %a, %a : f32
        buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[s0] x f32>
        buffer.yield
      } {parallel = true}
      buffer.return
    } {symbols = ["n"], outputs = #builtin.int<1>}
    ```
    """

    name = "buffer.func"
    sym_name = prop_def(SymbolNameConstraint())
    symbols = prop_def(ArrayAttr[StringAttr])
    outputs = prop_def(IntAttr)
    schedule = opt_prop_def(ScheduleAttr)
    parallel = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    assembly_format = "$sym_name $body attr-dict"

    def __init__(self, sym_name: str, symbols: Sequence[str], outputs: int, body: Region):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "symbols": ArrayAttr([StringAttr(name) for name in symbols]),
                "outputs": IntAttr(outputs),
            },
            regions=[body],
        )

    def verify_(self) -> None:
        arguments = self.body.block.args
        outputs = self.outputs.data
        fits = 0 <= outputs <= len(arguments)
        require(fits, f"{outputs} outputs of {len(arguments)} buffers", "C1")
        for argument in arguments:
            found = argument.type
            require(isinstance(found, RefType), lambda: f"expected a buffer, got {found}", "C1")
        ends = isinstance(self.body.block.last_op, ReturnOp)
        require(ends, "the function does not end with buffer.return", "C2")
        if self.schedule is not None and (ahead := self.schedule.data.prefetch) is not None:
            text = f"buffer {ahead} of {len(arguments)} is to be asked for ahead"
            require(ahead < len(arguments), text, "C3")
        last = [name.data for name in self.symbols][-2:]
        text = f"a part is not told by {', '.join(last) or 'no symbols'}"
        require(self.parallel is None or last == [PART, PARTS], text, "C4")


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """The kernels of a module by name, in order."""
    functions = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return {function.sym_name.data: function for function in functions}


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """
    The end of a function.

    Example:

    ```mlir
    buffer.return
    ```
    """

    name = "buffer.return"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    The values that a loop carries to its next iteration (all are read before any is assigned), or
    that control flow of the entry function gives.

    Example:

    ```mlir
    buffer.yield %a, %b : f32, f32
    ```
    """

    name = "buffer.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue] = ()):
        make(self, values)


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    Run the body for the index from `range[0]` up to, not including, `range[1]` in steps of
    `range[2]` > 0, carrying values from iteration to iteration.

    A `parallel` loop has independent iterations, so they may be split over threads. Schedules know
    a loop by its `label`. By its mode it is to disappear: into the lanes of vectors (`lanes`), or
    into copies of its body side by side (`unroll`); until then it is a loop like any other.

    Constraints:

    - (C1) the range is three expressions: lower, upper, step.
    - (C2) these name operands dK that there are and symbols sK, nothing else.
    - (C3) the region ends with `buffer.yield`; results, arguments after the first, and yielded
      values have the types of the initial values.
    - (C4) a parallel loop carries no values.

    Example:

    ```mlir
    %s = buffer.for(%i) <[0, d0 + 1, 1]> carry %zero : f32 -> f32 {
    ^bb0(%j : index, %sum : f32):
      %a = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[4, 4] x f32> -> f32
      %next = arith.addf %sum, %a : f32
      buffer.yield %next : f32
    } {parallel = false, label = "j"}
    ```
    """

    name = "buffer.for"
    indices = var_operand_def(IndexType())
    inits = var_operand_def()
    range = prop_def(DimsAttr)
    parallel = prop_def(BoolAttr)
    label = opt_prop_def(StringAttr)
    mode = opt_prop_def(LoopModeAttr)
    results_ = var_result_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "(`(` $indices^ `)`)? $range (`carry` $inits^ `:` type($inits))? "
        "(`->` type($results_)^)? $body (`by` $mode^)? attr-dict"
    )

    def __init__(
        self,
        bounds: tuple[ExprLike, ExprLike, ExprLike],
        indices: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        body: Region,
        *,
        parallel: bool = False,
        label: str | None = None,
        mode: LoopMode | str | None = None,
    ):
        make(
            self,
            [*indices, *inits],
            {
                "range": DimsAttr.of(bounds),
                "parallel": _TRUTH[parallel],
                "label": None if label is None else StringAttr(label),
                "mode": None if mode is None else _MODES[LoopMode(mode)],
                "operandSegmentSizes": segments(len(indices), len(inits)),
            },
            [value.type for value in inits],
            [body],
        )

    def verify_(self) -> None:
        require_operands(self.range.data, self.indices, "C2")
        require(len(self.range.data) == 3, "the range is [lower, upper, step]", "C1")
        carried = [value.type for value in self.inits]
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("the body does not end with buffer.yield (C3)")
        for types in (
            [result.type for result in self.results],
            list(self.body.block.arg_types[1:]),
            [value.type for value in last.values],
        ):
            require(types == carried, "carried values change their types", "C3")
        is_parallel = bool(self.parallel.value.data)
        require(not (is_parallel and carried), "a parallel loop carries no values", "C4")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """
    The element of a buffer at `map(indices)`, one expression a dimension; or, as a vector, that and
    the elements after it in the last dimension, or along `axis`: all of them, with a `stride` every
    so many-th, or with `repeat` each so many times. Nothing beyond the last one is read.

    Or four bytes as a `word`: an i32 of the element and the three after it, the first one lowest.
    Of a vector of words each lane begins where a lane of a vector of elements would be: words whose
    lanes lie less than four bytes apart have bytes in common.

    A `volatile` load is made as it stands, by itself, whatever the C compiler would make of it.

    Constraints:

    - (C1) there is one expression a dimension of the buffer.
    - (C2) these name operands dK that there are and symbols sK, nothing else.
    - (C3) the elements of a vector lie side by side along the last dimension; those of a vector
      along `axis`, a constant number of elements apart.
    - (C4) the result, or a lane of it, has the buffer's element type, without a sign; a lane of
      truth values is a byte.
    - (C5) only a vector has a stride, which is at least 2, or an axis.
    - (C6) only a vector repeats elements, of which it has 2 at least, side by side.
    - (C7) a `word` is an i32 of bytes that lie side by side along the last dimension; it is not
      repeated.

    Example:

    ```mlir
    %a = buffer.load %x(%i, %j) <[d0, d1 * 8]> : !buffer.ref<[4, 64] x f32> -> f32
    %v = buffer.load %x(%i, %j) <[d0, d1 * 8]> : !buffer.ref<[4, 64] x f32> -> vector<8xf32>
    %c = buffer.load %x(%j) <[0, d0]> : !buffer.ref<[4, 64] x f32> -> vector<4xf32> {
      axis = #builtin.int<0>
    }
    %w = buffer.load %b(%j) <[0, d0 * 4]> word : !buffer.ref<[4, 64] x i8> -> i32
    %o = buffer.load %b(%j) <[0, d0]> word : !buffer.ref<[4, 64] x i8> -> vector<8xi32>
    ```
    """

    name = "buffer.load"
    ref = operand_def(RefType)
    indices = var_operand_def(IndexType())
    map = prop_def(DimsAttr)
    volatile = opt_prop_def(UnitAttr)
    stride = opt_prop_def(IntAttr)
    axis = opt_prop_def(IntAttr)
    repeat = opt_prop_def(IntAttr)
    word = opt_prop_def(UnitAttr)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$ref (`(` $indices^ `)`)? $map (`word` $word^)? `:` type($ref) `->` type($result) "
        "attr-dict"
    )

    def __init__(
        self,
        ref: SSAValue,
        map: Sequence[ExprLike],
        indices: Sequence[SSAValue],
        lanes: int = 0,
        stride: int = 1,
        axis: int | None = None,
        repeat: int = 1,
        *,
        word: bool = False,
    ):
        element = i32 if word else ref_type(ref).element
        type_ = vector_type(lane_type(element), lanes) if lanes else value_type(element)
        make(
            self,
            [ref, *indices],
            {
                "map": DimsAttr.of(map),
                "stride": IntAttr(stride) if stride > 1 else None,
                "axis": None if axis is None else IntAttr(axis),
                "repeat": IntAttr(repeat) if repeat > 1 else None,
                "word": UnitAttr() if word else None,
            },
            [type_],
        )

    def verify_(self) -> None:
        _require_access(self.ref, self.map.data, self.indices)
        _require_lanes(self, self.result.type, "C3")
        _require_step(self, self.result.type, "C5")
        if self.word is not None:
            self._require_word("C7")
            return
        fits = _fits(self.result.type, ref_type(self.ref).element)
        require(fits, lambda: f"a load from {self.ref.type} does not give {self.result.type}", "C4")
        if self.repeat is not None:
            lanes, times = lanes_of(self.result.type), self.repeat.data
            fits = times >= 2 and lanes % times == 0 and lanes >= 2 * times
            is_plain = self.stride is None and self.axis is None
            text = f"{lanes} lanes do not repeat elements {times} times"
            require(fits and is_plain, text, "C6")

    def _require_word(self, label: str) -> None:
        buffer = ref_type(self.ref)
        is_of_bytes = buffer.element != i1 and value_type(buffer.element) == IntegerType(8)
        type_ = self.result.type
        is_of_words = (scalar_of(type_) if lanes_of(type_) else type_) == i32
        fits = self.repeat is None and is_of_bytes and is_of_words
        require(fits, lambda: f"{self.result.type} as a word of {buffer.element}", label)
        is_beside = bool(buffer.dims.data) and buffer.strides.data[buffer.innermost] == 1
        require(is_beside, "the bytes of a word do not lie side by side", label)

    @property
    def step(self) -> int:
        """How far apart two lanes lie along their dimension."""
        return 1 if self.stride is None else self.stride.data

    @property
    def lane_axis(self) -> int:
        """The dimension along which the lanes lie."""
        return ref_type(self.ref).innermost if self.axis is None else self.axis.data

    @property
    def distance(self) -> int:
        """How far apart two lanes lie in memory, in elements."""
        return _distance(self)

    @property
    def extents(self) -> Mapping[int, int]:
        """
        Elements along each dimension of which several are read, from the first of them to the last.
        """
        times = 1 if self.repeat is None else self.repeat.data
        lanes = lanes_of(self.result.type) // times
        found = {self.lane_axis: (lanes - 1) * self.step + 1} if lanes > 1 else {}
        if self.word is not None:
            innermost = ref_type(self.ref).innermost
            found[innermost] = found.get(innermost, 1) + WORD_BYTES - 1
        return found


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Set the element of a buffer at `map(indices)`; or, to a vector, that and those after it, along
    the last dimension or along `axis`, with a `stride` every so many-th.

    With `border` it lies around the elements that the buffer is there for, and nothing else in the
    function touches it.

    Constraints:

    - (C1) there is one expression a dimension of the buffer.
    - (C2) these name operands dK that there are and symbols sK, nothing else.
    - (C3) the elements of a vector lie side by side along the last dimension; those of a vector
      along `axis`, a constant number of elements apart.
    - (C4) the value, or a lane of it, has the buffer's element type, without a sign; a lane of
      truth values is a byte, 0 or 1.
    - (C5) only a vector has a stride, which is at least 2, or an axis.

    Example:

    ```mlir
    buffer.store %a, %x(%i) <[d0, 0]> : f32, !buffer.ref<[4, 64] x f32>
    ```
    """

    name = "buffer.store"
    value = operand_def()
    ref = operand_def(RefType)
    indices = var_operand_def(IndexType())
    map = prop_def(DimsAttr)
    border = opt_prop_def(UnitAttr)
    stride = opt_prop_def(IntAttr)
    axis = opt_prop_def(IntAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $ref (`(` $indices^ `)`)? $map `:` type($value) `,` type($ref) attr-dict"
    )

    def __init__(
        self,
        value: SSAValue,
        ref: SSAValue,
        map: Sequence[ExprLike],
        indices: Sequence[SSAValue],
        *,
        border: bool = False,
        stride: int = 1,
        axis: int | None = None,
    ):
        make(
            self,
            [value, ref, *indices],
            {
                "map": DimsAttr.of(map),
                "border": UnitAttr() if border else None,
                "stride": IntAttr(stride) if stride > 1 else None,
                "axis": None if axis is None else IntAttr(axis),
            },
        )

    def verify_(self) -> None:
        _require_access(self.ref, self.map.data, self.indices)
        _require_lanes(self, self.value.type, "C3")
        fits = _fits(self.value.type, ref_type(self.ref).element)
        require(fits, lambda: f"cannot store {self.value.type} to {self.ref.type}", "C4")
        _require_step(self, self.value.type, "C5")

    @property
    def step(self) -> int:
        """How far apart two lanes lie along their dimension."""
        return 1 if self.stride is None else self.stride.data

    @property
    def lane_axis(self) -> int:
        """The dimension along which the lanes lie."""
        return ref_type(self.ref).innermost if self.axis is None else self.axis.data

    @property
    def distance(self) -> int:
        """How far apart two lanes lie in memory, in elements."""
        return _distance(self)

    @property
    def extents(self) -> Mapping[int, int]:
        """
        Elements along the dimension of several lanes, from the first that is written to the last.
        """
        lanes = lanes_of(self.value.type)
        return {self.lane_axis: (lanes - 1) * self.step + 1} if lanes > 1 else {}


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """
    The value of an expression of loop variables and dimensions, as an index.

    Constraints:

    - (C1) `map` is one expression.
    - (C2) it names operands dK that there are and symbols sK, nothing else.

    Example:

    ```mlir
    %k = buffer.apply(%i, %j) <[d0 * 8 + d1 mod s0]>
    ```
    """

    name = "buffer.apply"
    indices = var_operand_def(IndexType())
    map = prop_def(DimsAttr)
    result = result_def(IndexType())
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "(`(` $indices^ `)`)? $map attr-dict"

    def __init__(self, expr: ExprLike, indices: Sequence[SSAValue]):
        super().__init__(
            operands=[indices],
            properties={"map": DimsAttr.of([expr])},
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        require_operands(self.map.data, self.indices, "C2")
        require(len(self.map.data) == 1, "one expression is expected", "C1")


@irdl_op_definition
class CheckIndexOp(IRDLOperation):
    """
    An i64 that comes from data, as an index into a dimension of `bound[0]` elements.

    A negative one counts from the end. If it is outside of -bound .. bound - 1, the run ends with
    the status INDEX_OUT_OF_RANGE; the result is then 0, which the entry function has made sure
    exists.

    Constraints:

    - (C1) `bound` is one expression.
    - (C2) it names operands dK that there are and symbols sK, nothing else.

    Example:

    ```mlir
    %i = buffer.check_index %k <[s0]>
    ```
    """

    name = "buffer.check_index"
    value = operand_def(IntegerType(64))
    indices = var_operand_def(IndexType())
    bound = prop_def(DimsAttr)
    result = result_def(IndexType())
    irdl_options = (ParsePropInAttrDict(),)
    # It writes the status of the run, so it must stay where it is.
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value (`(` $indices^ `)`)? $bound attr-dict"

    def __init__(self, value: SSAValue, bound: ExprLike, indices: Sequence[SSAValue]):
        super().__init__(
            operands=[value, indices],
            properties={"bound": DimsAttr.of([bound])},
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        require_operands(self.bound.data, self.indices, "C2")
        require(len(self.bound.data) == 1, "one expression is expected", "C1")


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """
    A small buffer of static size that only the block it stands in knows, aligned for any vector.
    Its elements may have any value at first. No more than the first `used` rows are read and
    written: a size by the function's symbols.

    Constraints:

    - (C1) its size is a number, and it is dense.
    - (C2) `used` is one expression.

    Example:

    ```mlir
    %t = buffer.scratch {used = #core.dims<[min(8, s0)]>} : !buffer.ref<[8, 8] x f32>
    ```
    """

    name = "buffer.scratch"
    used = opt_prop_def(DimsAttr)
    ref = result_def(RefType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($ref)"

    def __init__(self, type_: RefType, used: Expr | None = None):
        rows = None if used is None else DimsAttr.of([used])
        super().__init__(result_types=[type_], properties={"used": rows})

    def verify_(self) -> None:
        type_ = ref_type(self.ref)
        fits = type_.elements.value is not None and type_.is_dense
        require(fits, "its size is not a number, or it is not dense", "C1")
        require(self.used is None or len(self.used.data) == 1, "'used' is one expression", "C2")


@irdl_op_definition
class RemfOp(IRDLOperation):
    """
    The floating-point remainder with the sign of the first operand, as C's fmod.

    Example:

    ```mlir
    %r = buffer.remf %x, %y : f32
    ```
    """

    name = "buffer.remf"
    T: ClassVar = VarConstraint("T", AnyFloatConstr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])


@irdl_op_definition
class SigmoidOp(IRDLOperation):
    """
    1 / (1 + exp(-x)) of f32.

    Example:

    ```mlir
    %s = buffer.sigmoid %x : f32
    ```
    """

    name = "buffer.sigmoid"
    input = operand_def(Float32Type)
    result = result_def(Float32Type)
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, x: SSAValue):
        super().__init__(operands=[x], result_types=[x.type])


def _fits(type_: Attribute, element: Attribute) -> bool:
    """True if a value of a type is an element of a buffer, or some of them."""
    return scalar_of(type_) == (lane_type if lanes_of(type_) else value_type)(element)


def _require_access(ref: SSAValue, map: Sequence[Expr], indices: Sequence[SSAValue]) -> None:
    """C1 and C2 of loads and stores."""
    rank = len(ref_type(ref).dims.data)
    require(len(map) == rank, f"{len(map)} indices for a buffer of rank {rank}", "C1")
    require_operands(map, indices, "C2")


def _require_lanes(op: LoadOp | StoreOp, type_: Attribute, label: str) -> None:
    if not lanes_of(type_):
        return
    buffer = ref_type(op.ref)
    if op.axis is not None:
        rank = len(buffer.dims.data)
        fits = 0 <= op.axis.data < rank and (buffer.strides.data[op.axis.data].value or 0) > 0
        require(fits, "the lanes do not lie a constant number of elements apart", label)
        return
    fits = bool(buffer.dims.data) and buffer.strides.data[buffer.innermost] == 1
    require(fits, "the elements of the last dimension do not lie side by side", label)


def _require_step(op: LoadOp | StoreOp, type_: Attribute, label: str) -> None:
    if op.stride is not None or op.axis is not None:
        require(lanes_of(type_) > 0, "a scalar has neither stride nor axis", label)
    require(op.stride is None or op.stride.data > 1, "a stride is at least 2", label)


def _distance(op: LoadOp | StoreOp) -> int:
    if op.axis is None:
        return op.step
    stride = ref_type(op.ref).strides.data[op.axis.data].value
    assert stride is not None
    return stride * op.step


def require_operands(exprs: Sequence[Expr], indices: Sequence[SSAValue], label: str) -> None:
    """Every dK in the expressions has an operand, and every other name is an sK."""
    for expr in exprs:
        for name in expr.symbols:
            match meaning_of(name):
                case None:
                    raise VerifyException(
                        f"'{name}' is neither an operand dK nor a symbol sK ({label})"
                    )
                case Operand(number) if number >= len(indices):
                    raise VerifyException(f"'{name}' has no operand ({label})")
                case _:
                    pass
