"""Structured control flow, and kernels: the regions that become one C function each."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint
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
from lowerdeck.dialects.core.types import dims_of, element_type, i1, i64, rank_of, tensor
from lowerdeck.dialects.dims import Expr


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The values that a region gives to its op."""

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


@irdl_op_definition
class IfOp(IRDLOperation):
    """
    The values of one of two regions, chosen by an i1 tensor of one element; the other is not run.

    Constraints:

    - (C1) both regions yield values of the result types.
    """

    name = "core.if"
    condition = operand_def()
    results_ = var_result_def()
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = (
        "$condition `:` type($condition) (`->` type($results_)^)? $then_region `else` "
        "$else_region attr-dict"
    )

    def __init__(self, condition: SSAValue, then_region: Region, else_region: Region):
        super().__init__(
            operands=[condition],
            regions=[then_region, else_region],
            result_types=[[value.type for value in yielded(then_region)]],
        )

    def verify_(self) -> None:
        require(element_type(self.condition) == i1, "the condition is not i1")
        expected = [result.type for result in self.results]
        for region in self.regions:
            types = [value.type for value in yielded(region)]
            require(
                types == expected, f"a region yields {_list(types)}, not {_list(expected)}"
            )  # C1


@irdl_op_definition
class LoopOp(IRDLOperation):
    """
    Run the region while the condition holds and fewer than `trip_count` iterations were made.

    The region's arguments are the iteration number (an i64 scalar) and the carried values. It
    yields the next condition (i1; only if the loop has a `condition` operand), the next carried
    values, and one value a scan output. The results are the final carried values and the scan
    outputs: the yielded values of all iterations, stacked along a new first dimension. Without
    iterations the results are the initial values and empty scans.

    `iteration` names the symbol that stands for the iteration number in the region; `count` the one
    that stands for the number of iterations made in the types of the scan outputs.

    Constraints:

    - (C1) trip_count is an i64, the condition an i1 tensor of one element.
    - (C2) initial, argument, yielded and result type of a carried value are the same.
    - (C3) a scan output has its yielded type with `count` in front.

    Example:

    ```mlir
    %r, %s = core.loop trip %n cond %c carry %x {count = "t"} : ... {
    ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
      ...
      core.yield %next, %w, %w : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    }
    ```
    """

    name = "core.loop"
    trip_count = opt_operand_def()
    condition = opt_operand_def()
    inits = var_operand_def()
    iteration = opt_prop_def(StringAttr)
    count = opt_prop_def(StringAttr)
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
    ):
        values = yielded(body)[condition is not None :]
        carried = [value.type for value in inits]
        scans = [self._stacked(value, count) for value in values[len(inits) :]]
        super().__init__(
            operands=[trip_count, condition, inits],
            properties={
                "iteration": None if iteration is None else StringAttr(iteration),
                "count": None if count is None else StringAttr(count),
            },
            regions=[body],
            result_types=[[*carried, *scans]],
        )

    @staticmethod
    def _stacked(value: SSAValue, count: str | None) -> Attribute:
        require(count is not None, "a loop with scan outputs needs a symbol for its count")
        return tensor(element_type(value), [Expr.symbol(count or ""), *dims_of(value)])

    @property
    def symbols(self) -> list[str]:
        """The symbols that this op makes for the ops after it."""
        return [] if self.count is None else [self.count.data]

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
        if self.trip_count is not None:  # C1
            require(element_type(self.trip_count) == i64, "the trip count is not i64")
        if self.condition is not None:  # C1
            require(element_type(self.condition) == i1, "the condition is not i1")
            require(self.yielded_condition is not None, "the region yields no condition")
        arguments = list(self.body.block.arg_types)
        require(
            bool(arguments) and arguments[0] == tensor(i64, []),
            "the region's first argument is not tensor<i64>",
        )
        carried = [value.type for value in self.inits]
        for name, types in (  # C2
            ("arguments", arguments[1:]),
            ("yielded values", [value.type for value in self.yielded_carried]),
            ("results", [r.type for r in self.results[: len(carried)]]),
        ):
            require(types == carried, f"{name} {_list(types)} differ from {_list(carried)}")
        scans = self.results[len(carried) :]
        require(len(scans) == len(self.yielded_scans), "scan outputs and yielded values differ")
        for result, value in zip(scans, self.yielded_scans, strict=True):  # C3
            if not (is_ranked(result) and is_ranked(value)):
                continue  # before infer-shapes
            expected = self._stacked(value, self.count.data if self.count else None)
            known = rank_of(result) > 0 and dims_of(result)[1:] == dims_of(value)
            require(result.type == expected or known, f"scan output {result.type}, not {expected}")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    Straight-line ops that become one C function. Arguments are all it uses; no control flow inside.

    ```mlir
    %y = core.kernel @conv1 (%x, %w) : (...) -> ... {
    ^bb0(%a : ..., %b : ...):
      ...
      core.yield %r : ...
    }
    ```
    """

    name = "core.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    inputs = var_operand_def()
    results_ = var_result_def()
    body = region_def("single_block")
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

    def verify_(self) -> None:
        arguments = list(self.body.block.arg_types)
        types = [value.type for value in self.inputs]
        require(arguments == types, f"arguments {_list(arguments)} differ from {_list(types)}")
        types = [value.type for value in yielded(self.body)]
        results = [result.type for result in self.results]
        require(types == results, f"yields {_list(types)}, not {_list(results)}")
        for op in self.body.block.ops:
            require(not op.regions, f"{op.name} has a region; a kernel is straight-line")


def _list(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def symbols_made_by(op: object) -> Sequence[str]:
    """The dimension symbols that an op introduces for the ops after it."""
    from lowerdeck.dialects.core.constant import BindSymbolsOp

    if isinstance(op, BindSymbolsOp):
        return op.names
    return op.symbols if isinstance(op, LoopOp) else []
