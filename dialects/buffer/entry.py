"""The entry function: it runs a model, and holds the facts about the model as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import IsolatedFromAbove, MemoryWriteEffect

from lowerdeck.dialects.buffer.entry_ops import MarkOp
from lowerdeck.dialects.buffer.kernel import ReturnOp
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.core.base import require
from lowerdeck.dialects.core.control_flow import names_in
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.states import states_in
from lowerdeck.dialects.core.types import DimsAttr, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.walking import all_ops

Names = ArrayAttr[StringAttr]


@irdl_op_definition
class EntryOp(IRDLOperation):
    """
    The function that runs the model: it calls kernels in order, with the branches and loops around
    them.

    The region's arguments are the buffers of the model's inputs, then those of its outputs; callers
    know them by the tensors' names, `inputs` and `outputs`. The model also has the inputs `unused`,
    which no output needs. A caller may leave out an input that has one of `defaults`; the weights
    hold its elements at the same one of `default_offsets`, which is 0 for an input without.

    `takes_pool` says that it takes a thread pool, and `parallel` that every thread runs it, because
    they share work. `workspace` is the size of planned memory in bytes, and `weights` that of the
    constants with their header. If all sizes are constants, two numbers measure the quality of the
    plan: `live`, the largest sum of bytes of buffers live at the same time, and `row_major`, the
    same for their values in C order, without the padding of layouts. With `profile`, it measures
    the time of calls and copies.

    What the model remembers is in `states`: for each the names of the input that holds it before a
    run and of the output that holds it after it, and what it begins with (`core.states`). Both are
    one place in memory: at the start the output's buffer holds what the input's does. After
    `update-states` nothing uses that of the input.

    Constraints:

    - (C1) the region's arguments are buffers, one for each of `inputs`, then of `outputs`.
    - (C2) the region ends with `buffer.return`.
    - (C3) it is the only entry function.
    - (C4) `workspace` is one expression of symbols that are dimensions of inputs.
    - (C5) `weights`, `live` and `row_major` are not negative.
    - (C6) a `parallel` entry function takes a pool.
    - (C7) the slots of the marks are 0, 1, ..., each once; without `profile` there are no marks.
    - (C8) the input of a state is one of `inputs` or `unused`, its output one of `outputs`, of the
      same type, and of no other state.
    - (C9) there is one of `defaults` and of `default_offsets` for each input, if there are any; a
      default has the element type and the rank of its input, and the sizes that are numbers.

    Example:

    ```mlir
    buffer.entry ["x"] -> ["y"] {
    ^bb0(%x : !buffer.ref<[n] x f32>, %y : !buffer.ref<[n] x f32>):
      buffer.call @double(%x, %y) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x f32>)
      buffer.return
    } {workspace = #core.dims<[0]>, weights = #builtin.int<64>}
    ```
    """

    name = "buffer.entry"
    inputs = prop_def(Names)
    outputs = prop_def(Names)
    unused = opt_prop_def(Names)
    states = opt_prop_def(ArrayAttr)
    classes = opt_prop_def(DictionaryAttr)
    defaults = opt_prop_def(ArrayAttr[DefaultAttr | UnitAttr])
    default_offsets = opt_prop_def(DimsAttr)
    takes_pool = opt_prop_def(UnitAttr)
    parallel = opt_prop_def(UnitAttr)
    workspace = opt_prop_def(DimsAttr)
    weights = opt_prop_def(IntAttr)
    live = opt_prop_def(IntAttr)
    row_major = opt_prop_def(IntAttr)
    profile = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove())
    assembly_format = "$inputs `->` $outputs $body attr-dict"

    def __init__(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        body: Region,
        *,
        unused: Sequence[str] = (),
        states: Attribute | None = None,
        classes: Attribute | None = None,
        defaults: Sequence[DefaultAttr | None] = (),
    ):
        super().__init__(
            properties={
                "inputs": _names(inputs),
                "outputs": _names(outputs),
                "unused": _names(unused) if unused else None,
                "states": states,
                "classes": classes,
                "defaults": ArrayAttr([default or UnitAttr() for default in defaults])
                if any(defaults)
                else None,
            },
            regions=[body],
        )

    @property
    def input_args(self) -> Sequence[BlockArgument]:
        """The buffers of the inputs."""
        return self.body.block.args[: len(self.inputs)]

    @property
    def output_args(self) -> Sequence[BlockArgument]:
        """The buffers of the outputs."""
        return self.body.block.args[len(self.inputs) :]

    @property
    def states_args(self) -> list[tuple[BlockArgument | None, BlockArgument]]:
        """
        The buffers of what is remembered, before and after a run; of what nothing reads there is no
        buffer before.
        """
        before = dict(zip(names_in(self.inputs), self.input_args, strict=True))
        after = dict(zip(names_in(self.outputs), self.output_args, strict=True))
        return [(before.get(one), after[other]) for one, other, _ in states_in(self.states)]

    @property
    def input_defaults(self) -> list[DefaultAttr | None]:
        """For each input what it is if the caller leaves it out; None if it has to be given."""
        if self.defaults is None:
            return [None] * len(self.inputs)
        return [each if isinstance(each, DefaultAttr) else None for each in self.defaults]

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that are defined at its start: the dimensions of inputs."""
        dims = (dim for argument in self.input_args for dim in ref_type(argument).dims.data)
        return frozenset(str(dim) for dim in dims if str(dim) in dim.symbols)

    @property
    def marks(self) -> list[MarkOp]:
        """The marks with a slot, in slot order."""
        marks = [op for op in all_ops(self) if isinstance(op, MarkOp) and op.slot is not None]
        return sorted(marks, key=lambda op: -1 if op.slot is None else op.slot.data)

    def verify_(self) -> None:
        arguments = self.body.block.args
        names = len(self.inputs) + len(self.outputs)
        require(len(arguments) == names, f"{names} names for {len(arguments)} buffers", "C1")
        for argument in arguments:
            found = argument.type
            require(isinstance(found, RefType), lambda: f"expected a buffer, got {found}", "C1")
        ends = isinstance(self.body.block.last_op, ReturnOp)
        require(ends, "the function does not end with buffer.return", "C2")
        beside = () if self.parent is None else self.parent.ops
        entries = sum(isinstance(op, EntryOp) for op in beside)
        require(entries <= 1, f"the module has {entries} entry functions", "C3")
        self._verify_plan()
        require(
            self.parallel is None or self.takes_pool is not None,
            "threads share it, but it takes no pool",
            "C6",
        )
        marks = [op for op in all_ops(self) if isinstance(op, MarkOp)]
        require(self.profile is not None or not marks, "there are marks without a profile", "C7")
        slots = [None if op.slot is None else op.slot.data for op in self.marks]
        numbered = slots == list(range(len(slots)))
        require(numbered, f"the slots are {slots}, not numbers from 0 in order", "C7")
        self._verify_states()
        self._verify_defaults()

    def _verify_states(self) -> None:
        names = [(before, after) for before, after, _ in states_in(self.states)]
        for known, found in (
            ({*names_in(self.inputs), *names_in(self.unused)}, [before for before, _ in names]),
            ({*names_in(self.outputs)}, [after for _, after in names]),
        ):
            fits = known.issuperset(found) and len({*found}) == len(found)
            require(fits, lambda names=names: f"{names} are no states", "C8")
        for before, after in self.states_args:
            fits = before is None or before.type == after.type
            require(fits, lambda t=after.type: f"a state does not remain a {t}", "C8")

    def _verify_defaults(self) -> None:
        counts = [len(each) for each in (self.defaults, self._offsets) if each is not None]
        for count in counts:
            require(count == len(self.inputs), f"{count} for {len(self.inputs)} inputs", "C9")
        for default, argument in zip(self.input_defaults, self.input_args, strict=True):
            type_ = ref_type(argument)
            fits = default is None or default.fits(tensor(type_.element, type_.dims.data))
            require(fits, lambda d=default, t=type_: f"a default {d} of an input {t}", "C9")

    @property
    def _offsets(self) -> Sequence[Expr] | None:
        return None if self.default_offsets is None else self.default_offsets.data

    def _verify_plan(self) -> None:
        if self.workspace is not None:
            known = all(expr.symbols <= self.symbols for expr in self.workspace.data)
            fits = len(self.workspace.data) == 1 and known
            require(fits, lambda: f"a workspace of {self.workspace} bytes", "C4")
        sizes = {"weights": self.weights, "live": self.live, "row_major": self.row_major}
        for name, size in sizes.items():
            require(size is None or size.data >= 0, f"{name} is negative", "C5")

    @property
    def late_outputs(self) -> list[BlockArgument]:
        """The outputs whose dimensions are not known when it begins, but depend on data."""
        return [
            argument
            for argument in self.output_args
            if any(not dim.symbols <= self.symbols for dim in ref_type(argument).dims.data)
        ]


@irdl_op_definition
class OpenOutputOp(IRDLOperation):
    """
    Tell the caller the dimensions of an output that depend on data, and end the run unless there is
    room for it. Every thread does, because all have to see whether the run goes on.

    Constraints:

    - (C1) the buffer is an output of the entry function in whose own block the op stands.

    Example:

    ```mlir
    buffer.entry ["x"] -> ["y"] {
    ^bb0(%x : !buffer.ref<[] x i64>, %y : !buffer.ref<[m] x f32>):
      buffer.bind %x {symbols = ["m"]} : !buffer.ref<[] x i64>
      buffer.open_output %y : !buffer.ref<[m] x f32>
      buffer.return
    }
    ```
    """

    name = "buffer.open_output"
    output = operand_def(RefType)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$output attr-dict `:` type($output)"

    def __init__(self, output: SSAValue):
        super().__init__(operands=[output])

    def verify_(self) -> None:
        entry = self.parent_op()
        fits = isinstance(entry, EntryOp) and self.output in entry.output_args
        require(fits, "the buffer is no output of the entry function around the op", "C1")


def _names(names: Sequence[str]) -> Names:
    return ArrayAttr([StringAttr(name) for name in names])


def find_entry(module: ModuleOp) -> EntryOp | None:
    """The entry function of a module, or None if it is not lowered to `buffer`."""
    return next((op for op in module.body.block.ops if isinstance(op, EntryOp)), None)
