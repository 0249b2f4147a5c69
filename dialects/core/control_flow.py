"""Structured control flow, and kernels: regions that become one C function each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
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
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.base import is_ranked, require
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.schedule import ScheduleAttr
from lowerdeck.dialects.core.symbols import MakesSymbols, symbols_made_within
from lowerdeck.dialects.core.tensor import ConcatOp, SliceOp
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, i1, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr, ExprLike

Symbols: TypeAlias = ArrayAttr[StringAttr]


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    The values that a region returns to its op.

    Example:

    ```mlir
    core.yield %c, %x : tensor<i1>, tensor<4xf32>
    ```
    """

    name = "core.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """The operands of the region's `core.yield`."""
    last = region.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException("the region does not end with core.yield")
    return tuple(last.values)


def require_yield(region: Region, label: str) -> None:
    """VerifyException unless the region ends with `core.yield`."""
    ends = isinstance(region.block.last_op, YieldOp)
    require(ends, "the region does not end with core.yield", label)


def names_in(symbols: Symbols | None) -> list[str]:
    """The names in a property that lists symbols."""
    return [] if symbols is None else [symbol.data for symbol in symbols]


def symbol_list(names: Sequence[str]) -> Symbols | None:
    """The property that lists symbols; None if there are none."""
    return ArrayAttr([StringAttr(name) for name in names]) if names else None


def made_dims(values: Sequence[SSAValue], names: Sequence[str]) -> list[dict[int, str]]:
    """For each value the dimensions that are one of the symbols, by axis."""
    if not names:
        return [{} for _ in values]
    dims = [dims_of(value) if is_ranked(value) else () for value in values]
    return [{axis: str(dim) for axis, dim in enumerate(d) if str(dim) in names} for d in dims]


def with_dims(type_: Attribute, dims: Mapping[int, ExprLike]) -> Attribute:
    """A tensor type with other dimensions at some axes."""
    if not dims or not isinstance(type_, TensorType):
        return type_
    old = dims_of(cast(Tensor, type_))
    new = [dims.get(axis, dim) for axis, dim in enumerate(old)]
    return tensor(element_type(cast(Tensor, type_)), new)


def with_own_dims(type_: Attribute, value: SSAValue, axes: Mapping[int, str]) -> Attribute:
    """A tensor type with the dimensions of `value` at some axes, as far as it has them."""
    dims = dims_of(value) if axes and is_ranked(value) else ()
    return with_dims(type_, {axis: dims[axis] for axis in axes if axis < len(dims)})


def unequal_dims(regions: Sequence[Region]) -> list[tuple[int, int]]:
    """
    The dimensions of yielded values, as (value, axis), for which a `core.if` has to define a
    symbol: the regions use different expressions, or a symbol that they define themselves.
    """
    inner = {name for region in regions for name in symbols_made_within(region)}
    found: list[tuple[int, int]] = []
    for index, values in enumerate(zip(*map(yielded, regions), strict=True)):
        if not all(map(is_ranked, values)) or len({rank_of(value) for value in values}) > 1:
            continue
        for axis, dims in enumerate(zip(*map(dims_of, values), strict=True)):
            if len(set(dims)) > 1 or dims[0].symbols & inner:
                found.append((index, axis))
    return found


@irdl_op_definition
class IfOp(IRDLOperation, MakesSymbols):
    """
    The values of one of two regions, selected by an i1 tensor of one element; the other is not run.

    The regions may yield tensors of different sizes. Such a dimension of a result is a symbol of
    `result_symbols`, which the op defines for the ops after it: it denotes the dimension of the
    yielded value.

    Constraints:

    - (C1) both regions yield values of the result types, except for the dimensions that are one of
      `result_symbols`; before infer-shapes a type may be unranked where another has a rank.
    - (C2) each of `result_symbols` is one dimension of one result, by itself.
    - (C3) the condition is i1.
    - (C4) both regions end with `core.yield`.

    Example:

    ```mlir
    %y = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
      core.yield %a : tensor<2xf32>
    } else {
      core.yield %b : tensor<?xf32, #core.tensor<dims = [n]>>
    } {result_symbols = ["r"]}
    ```
    """

    name = "core.if"
    condition = operand_def()
    result_symbols = opt_prop_def(Symbols)
    results_ = var_result_def()
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
        result_symbols: Sequence[str] = (),
        result_types: Sequence[Attribute] | None = None,
    ):
        """
        Without `result_types` they are those of `then_region`, with a symbol of `result_symbols`
        for each of `unequal_dims`, in order.
        """
        if result_types is None:
            result_types = _joined_types([then_region, else_region], result_symbols)
        super().__init__(
            operands=[condition],
            properties={"result_symbols": symbol_list(result_symbols)},
            regions=[then_region, else_region],
            result_types=[result_types],
        )

    @property
    def made_symbols(self) -> list[str]:
        return names_in(self.result_symbols)

    @property
    def made_dims(self) -> list[dict[int, str]]:
        """For each result the symbols that this op defines for its dimensions, by axis."""
        return made_dims(self.results, self.made_symbols)

    def verify_(self) -> None:
        require(element_type(self.condition) == i1, "the condition is not i1", "C3")
        made = self.made_dims
        for region in self.regions:
            require_yield(region, "C4")
            values = yielded(region)
            types = [value.type for value in values]
            expected = _but_for([result.type for result in self.results], values, made)
            fits = _agree(types, expected)
            require(fits, lambda: f"a region yields {_list(types)}, not {_list(expected)}", "C1")
        _require_one_each(self.made_symbols, made, "result", "C2")


@irdl_op_definition
class LoopOp(IRDLOperation, MakesSymbols):
    """
    Run the region while the condition holds and fewer than `trip_count` iterations have run.

    The region's arguments are the iteration number (an i64 scalar) and the carried values. It
    yields the next condition (i1; only if the loop has a `condition` operand), the next carried
    values, and one value per scan output. The results are the final carried values and the scan
    outputs: the yielded values of all iterations, stacked along a new first dimension. Without
    iterations the results are the initial values and empty scans.

    `iteration` names the symbol for the iteration number in the region; `count` the symbol for the
    number of iterations that ran, in the types of the scan outputs.

    A carried value may change its size. In the region, a dimension that changes is a symbol of
    `carried_symbols`, which is defined again at the start of each iteration: the dimension of the
    value that the iteration receives. After the loop it is the symbol at the same position of
    `result_symbols`: the dimension of the final value, which is the initial one if there was no
    iteration. The initial and the yielded value may have any dimension there.

    Constraints:

    - (C1) trip_count is an i64, the condition an i1 tensor of one element.
    - (C2) initial, argument, yielded and result type of a carried value are the same, except for
      the dimensions that are one of `carried_symbols` in the argument; before infer-shapes a type
      may be unranked where another has a rank.
    - (C3) a scan output has its yielded type with `count` in front.
    - (C4) each of `carried_symbols` is one dimension of one carried argument, by itself, and the
      same dimension of the result is the corresponding symbol of `result_symbols`.
    - (C5) the region's first argument is `tensor<i64>`.
    - (C6) the region ends with `core.yield` of the condition, the carried values and one value per
      scan output.

    Example:

    ```mlir
    %r, %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<4xf32>
        -> tensor<4xf32>, tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
    ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
      %w = core.add %v, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      core.yield %c, %w, %w : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    } {count = "t"}
    %g = core.loop trip %n : tensor<i64> carry %x : tensor<4xf32>
        -> tensor<?xf32, #core.tensor<dims = [r]>> {
    ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [p]>>):
      %w = core.concat %v, %x axis 0
          : (tensor<?xf32, #core.tensor<dims = [p]>>, tensor<4xf32>)
          -> tensor<?xf32, #core.tensor<dims = [p + 4]>>
      core.yield %w : tensor<?xf32, #core.tensor<dims = [p + 4]>>
    } {carried_symbols = ["p"], result_symbols = ["r"]}
    ```
    """

    name = "core.loop"
    trip_count = opt_operand_def()
    condition = opt_operand_def()
    inits = var_operand_def()
    iteration = opt_prop_def(StringAttr)
    count = opt_prop_def(StringAttr)
    carried_symbols = opt_prop_def(Symbols)
    result_symbols = opt_prop_def(Symbols)
    results_ = var_result_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "(`trip` $trip_count^ `:` type($trip_count))? (`cond` $condition^ `:` type($condition))? "
        "(`carry` $inits^ `:` type($inits))? (`->` type($results_)^)? $body attr-dict"
    )

    def __init__(
        self,
        trip_count: SSAValue | None,
        condition: SSAValue | None,
        inits: Sequence[SSAValue],
        body: Region,
        *,
        iteration: str | None = None,
        count: str | None = None,
        carried_symbols: Sequence[str] = (),
        result_symbols: Sequence[str] = (),
    ):
        _require_pairs(carried_symbols, result_symbols, "C4")
        values = yielded(body)[condition is not None :]
        partners = dict(zip(carried_symbols, result_symbols, strict=True))
        made = made_dims(body.block.args[1 : 1 + len(inits)], carried_symbols)
        carried = [
            with_dims(value.type, {a: Expr.symbol(partners[name]) for a, name in names.items()})
            for value, names in zip(inits, made, strict=True)
        ]
        scans = [self._stacked(value, count) for value in values[len(inits) :]]
        super().__init__(
            operands=[trip_count, condition, inits],
            properties={
                "iteration": None if iteration is None else StringAttr(iteration),
                "count": None if count is None else StringAttr(count),
                "carried_symbols": symbol_list(carried_symbols),
                "result_symbols": symbol_list(result_symbols),
            },
            regions=[body],
            result_types=[[*carried, *scans]],
        )

    @staticmethod
    def _stacked(value: SSAValue, count: str | None) -> Attribute:
        require(count is not None, "a loop with scan outputs needs a symbol for its count", "C3")
        return tensor(element_type(value), [Expr.symbol(count or ""), *dims_of(value)])

    @property
    def made_symbols(self) -> list[str]:
        count = [] if self.count is None else [self.count.data]
        return [*count, *names_in(self.result_symbols)]

    @property
    def inner_symbols(self) -> list[str]:
        iteration = [] if self.iteration is None else [self.iteration.data]
        return [*iteration, *names_in(self.carried_symbols)]

    @property
    def made_dims(self) -> list[dict[int, str]]:
        """For each carried value the symbols for its dimensions in the region, by axis."""
        return made_dims(self.carried_args, names_in(self.carried_symbols))

    @property
    def made_result_dims(self) -> list[dict[int, str]]:
        """For each carried value the symbols for its dimensions after the loop, by axis."""
        names = names_in(self.carried_symbols), names_in(self.result_symbols)
        partners = dict(zip(*names, strict=True))
        return [{axis: partners[name] for axis, name in d.items()} for d in self.made_dims]

    @property
    def carried_args(self) -> tuple[SSAValue, ...]:
        """The region's arguments for the carried values."""
        return tuple(self.body.block.args[1:])

    @property
    def yielded_condition(self) -> SSAValue | None:
        """The next condition, if the loop has one."""
        return None if self.condition is None else yielded(self.body)[0]

    @property
    def yielded_carried(self) -> tuple[SSAValue, ...]:
        """The next carried values."""
        start = int(self.condition is not None)
        return yielded(self.body)[start : start + len(self.inits)]

    @property
    def yielded_scans(self) -> tuple[SSAValue, ...]:
        """This iteration's part of the scan outputs."""
        return yielded(self.body)[int(self.condition is not None) + len(self.inits) :]

    def verify_(self) -> None:
        if self.trip_count is not None:
            require(element_type(self.trip_count) == i64, "the trip count is not i64", "C1")
        if self.condition is not None:
            require(element_type(self.condition) == i1, "the condition is not i1", "C1")
        arguments = list(self.body.block.arg_types)
        require(
            bool(arguments) and arguments[0] == tensor(i64, []),
            "the region's first argument is not tensor<i64>",
            "C5",
        )
        require_yield(self.body, "C6")
        if self.condition is not None:
            require(len(yielded(self.body)) > 0, "the region yields no condition", "C6")
        self._verify_carried()
        scans, values = self.results[len(self.inits) :], self.yielded_scans
        require(
            len(scans) == len(values), f"{len(values)} values for {len(scans)} scan outputs", "C6"
        )
        for result, value in zip(scans, values, strict=True):
            if not (is_ranked(result) and is_ranked(value)):
                continue  # before infer-shapes
            expected = self._stacked(value, self.count.data if self.count else None)
            known = rank_of(result) > 0 and dims_of(result)[1:] == dims_of(value)
            fits = result.type == expected or known
            require(fits, lambda: f"scan output {result.type}, not {expected}", "C3")

    def _verify_carried(self) -> None:
        carried, made = [value.type for value in self.inits], self.made_dims
        results = self.results[: len(carried)]
        for name, values in (
            ("arguments", self.carried_args),
            ("yielded values", self.yielded_carried),
            ("results", results),
        ):
            types = [value.type for value in values]
            expected = _but_for(carried, values, made)
            fits = _agree(types, expected)
            require(fits, lambda: f"{name} {_list(types)} differ from {_list(expected)}", "C2")
        names, partners = names_in(self.carried_symbols), names_in(self.result_symbols)
        _require_pairs(names, partners, "C4")
        _require_one_each(names, made, "carried argument", "C4")
        require(
            made_dims(results, partners) == self.made_result_dims,
            f"the results' dimensions are not {partners}, where the arguments' are {names}",
            "C4",
        )


class KernelBody(IRDLOperation, ABC):
    """
    A kernel, on every level: straight-line ops, the memory layouts of the arguments and the yielded
    values, and the strategy that computes them.
    """

    sym_name = prop_def(SymbolNameConstraint())
    layouts = opt_prop_def(ArrayAttr[LayoutAttr])
    schedule = opt_prop_def(ScheduleAttr)
    in_place = opt_prop_def(IntAttr)
    body = region_def("single_block")

    @abstractmethod
    def is_constant(self, position: int) -> bool:
        """True if an argument is a constant of the model."""

    def layout(self, value: SSAValue) -> LayoutAttr:
        """The memory layout of an argument of the body, or of a yielded value."""
        return self.layout_at(next(k for k, other in enumerate(self._stored()) if other is value))

    def layout_at(self, position: int) -> LayoutAttr:
        """The layout of an argument or, counted after these, of a yielded value."""
        if self.layouts is not None:
            return self.layouts.data[position]
        return LayoutAttr.row_major(rank_of(self._stored()[position]))

    def _stored(self) -> list[SSAValue]:
        """The values that are in memory."""
        return [*self.body.block.args, *yielded(self.body)]

    def _require_layouts(self, label: str) -> None:
        if self.layouts is not None:
            ranks = [rank_of(value) for value in self._stored()]
            found = [layout.rank for layout in self.layouts]
            require(found == ranks, f"layouts of ranks {found} for values of ranks {ranks}", label)

    def _require_straight_line(self, label: str) -> None:
        for op in self.body.block.ops:
            require(not op.regions, f"{op.name} has a region; a kernel is straight-line", label)

    def _require_in_place(self, label: str) -> None:
        if self.in_place is None:
            return
        position, types = self.in_place.data, list(self.body.block.arg_types)
        results = [value.type for value in yielded(self.body)]
        fits = position >= 0 and results == types[position : position + 1] != []
        require(fits, f"input {position} has not the type of the only result", label)
        old, new = self.layout_at(position), self.layout_at(len(types))
        require(old == new, f"{new} cannot take the place of {old}", label)

    def _require_prefetch(self, label: str) -> None:
        if self.schedule is not None and (ahead := self.schedule.data.prefetch) is not None:
            count = len(self.body.block.args)
            text = f"input {ahead} of {count} is to be asked for ahead"
            require(ahead < count, text, label)


@irdl_op_definition
class KernelOp(KernelBody):
    """
    Straight-line ops that become one C function, isolated from above; no control flow inside.

    `layouts` gives the memory layout of each input, then of each result; without it all are
    row-major. `schedule` gives the strategy of the kernel and its parameters; without it, the
    kernel runs in plain loops. A `view` needs no code: its result is part of the memory of its
    input, or the other way around. The input `in_place` is updated in its own memory, and is the
    result from there on.

    Constraints:

    - (C1) the region's arguments have the types of the inputs.
    - (C2) the region ends with `core.yield` of values of the result types.
    - (C3) `layouts` has one layout of the right rank for each input and result.
    - (C4) no op in the region has a region.
    - (C5) the operand that `schedule` prefetches is an input.
    - (C6) a `view` slices its input, or concatenates its inputs, and does nothing else.
    - (C7) `in_place` is an input of the type and the layout of the only result.

    Example:

    ```mlir
    %z = core.kernel @add (%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a : tensor<4xf32>, %b : tensor<4xf32>):
      %c = core.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      core.yield %c : tensor<4xf32>
    }
    ```
    """

    name = "core.kernel"
    view = opt_prop_def(UnitAttr)
    inputs = var_operand_def()
    results_ = var_result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), Pure())
    assembly_format = (
        "$sym_name `(` $inputs `)` `:` functional-type($inputs, $results_) $body attr-dict"
    )

    def __init__(self, sym_name: str, inputs: Sequence[SSAValue], body: Region):
        super().__init__(
            operands=[inputs],
            properties={"sym_name": StringAttr(sym_name)},
            regions=[body],
            result_types=[[value.type for value in yielded(body)]],
        )

    @property
    def moved(self) -> SliceOp | ConcatOp | None:
        """The slice or concatenation of its inputs that is the kernel's only op."""
        op, *rest = self.body.block.ops
        if not isinstance(op, SliceOp | ConcatOp) or len(rest) != 1:
            return None
        is_plain = list(op.operands) == list(self.body.block.args)
        return op if is_plain and rest[0].operands[0] is op.result else None

    def is_constant(self, position: int) -> bool:
        return isinstance(self.inputs[position].owner, ConstantOp)

    def verify_(self) -> None:
        arguments = list(self.body.block.arg_types)
        types = [value.type for value in self.inputs]
        fits = arguments == types
        require(fits, lambda: f"arguments {_list(arguments)} differ from {_list(types)}", "C1")
        require_yield(self.body, "C2")
        types = [value.type for value in yielded(self.body)]
        results = [result.type for result in self.results]
        require(types == results, lambda: f"yields {_list(types)}, not {_list(results)}", "C2")
        self._require_layouts("C3")
        self._require_prefetch("C5")
        self._require_straight_line("C4")
        fits = self.view is None or self.moved is not None
        require(fits, "a view is a slice or a concatenation of its inputs alone", "C6")
        self._require_in_place("C7")


def _joined_types(regions: Sequence[Region], symbols: Sequence[str]) -> list[Attribute]:
    types = [value.type for value in yielded(regions[0])]
    if not symbols:
        return types
    places = unequal_dims(regions)
    require(
        len(places) == len(symbols),
        f"{len(places)} dimensions of results differ, but there are {len(symbols)} symbols",
        "C2",
    )
    for (index, axis), name in zip(places, symbols, strict=True):
        types[index] = with_dims(types[index], {axis: Expr.symbol(name)})
    return types


def _but_for(
    types: Sequence[Attribute], values: Sequence[SSAValue], made: Sequence[Mapping[int, str]]
) -> list[Attribute]:
    """The expected types of values, if dimensions that the op defines may have any value."""
    if not any(made) or not len(types) == len(values) == len(made):
        return list(types)
    return [with_own_dims(*triple) for triple in zip(types, values, made, strict=True)]


def _agree(types: Sequence[Attribute], expected: Sequence[Attribute]) -> bool:
    """True if types are equal, ignoring tensors whose rank infer-shapes has yet to find."""
    return len(types) == len(expected) and all(map(_may_be_equal, types, expected))


def _may_be_equal(one: Attribute, other: Attribute) -> bool:
    if not any(isinstance(type_, UnrankedTensorType) for type_ in (one, other)):
        return one == other
    if not all(isinstance(type_, TensorType | UnrankedTensorType) for type_ in (one, other)):
        return False
    return element_type(one) == element_type(other)


def _require_pairs(names: Sequence[str], partners: Sequence[str], label: str) -> None:
    require(
        len({*names, *partners}) == 2 * len(names) == 2 * len(partners),
        f"carried symbols {list(names)} and result symbols {list(partners)} are not pairs",
        label,
    )


def _require_one_each(
    names: Sequence[str], made: Sequence[Mapping[int, str]], what: str, label: str
) -> None:
    found = sorted(name for axes in made for name in axes.values())
    require(
        found == sorted(names),
        f"symbols {list(names)} are not one dimension of one {what} each",
        label,
    )


def _list(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"
