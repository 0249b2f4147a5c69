"""
What may occur in the IR after each phase, and which pass should have removed what may not.

| phase       | dialects                       | and                                             |
| ----------- | ------------------------------ | ----------------------------------------------- |
| `imported`  | frameworks', core, func        | `ub.poison` for values that are never used      |
| `legal`     | core, func                     | types that have a C form                        |
| `optimized` | core, func                     | ranks, and dimensions with identity             |
| `kernels`   | core, func                     | what computes is inside of `core.kernel`        |
| `buffer`    | buffer, arith, math, scf       | kernels have loops; constants are packed        |
| `scheduled` | buffer, arith, math, scf       |                                                 |
| `onnx`      | onnx, func                     | a module for export                             |
| `caffe`     | caffe, func                    | a module for export; weights are core constants |

In every phase a value is defined before its uses (but for a `tf1.graph` or `tf1.function`). While
the module is in core, a dimension symbol is made (by an argument's type, `core.bind_symbols` or
control flow) before a type or property names it; those of a function's arguments are dimensions of
them as they are, so that sizes can be read off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, NoneType, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.traits import IsolatedFromAbove

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.names import STATES, value_names
from lowerdeck.dialects.core.states import states_in
from lowerdeck.dialects.core.symbols import region_symbols_made_by, symbols_made_by
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import COMPUTABLE, UNKNOWN, TensorEncoding, element_type
from lowerdeck.dialects.errors import CompileError
from lowerdeck.dialects.frameworks import FRAMEWORKS, exports, framework_of
from lowerdeck.dialects.graph_regions import HasGraphRegion
from lowerdeck.dialects.verification import used_before_made
from lowerdeck.dialects.walking import all_ops
from lowerdeck.passes.machinery.provenance import describe
from lowerdeck.passes.machinery.symbols import symbols_of

PHASES = ("imported", "legal", "optimized", "kernels", "buffer", "scheduled")
"""The phases of a module in order, as in `--compile-to`; `c`, which is text, follows them."""

_CORE = frozenset({"builtin", "func", "core"})
_EXPORTED = frozenset({"builtin", "func"})
"""What a module exported to a framework may contain besides the framework's dialect."""

_BUFFER = frozenset({"builtin", "buffer", "arith", "math", "scf", "vector"})
_DIALECTS: Mapping[str, frozenset[str]] = {
    "imported": _CORE | {"ub"},  # and those of all frameworks
    "legal": _CORE,
    "optimized": _CORE,
    "kernels": _CORE,
    "buffer": _BUFFER,
    "scheduled": _BUFFER,
}
_REMOVED_BY: Mapping[str, str] = {
    "ub": "legalize-tf1",
    "core": "bufferize",
    "func": "bufferize",
}
"""The pass that converts the ops of a dialect."""

_OUTSIDE_KERNELS = (ConstantOp, BindSymbolsOp, ReshapeOp)
"""Ops of `core` that need no kernel; control flow ops are not `CoreOp`s."""


class ContractError(CompileError):
    """All violations of a phase's contract, one per line."""

    def __init__(self, phase: str, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.phase = phase
        self.problems = tuple(problems)


def check_contract(module: ModuleOp, phase: str) -> None:
    """Raise ContractError listing everything in `module` that may not occur after `phase`."""
    if problems := list(violations(module, phase)):
        raise ContractError(phase, problems)


def violations(module: ModuleOp, phase: str) -> Iterator[str]:
    """The violations of the contract of `phase` in `module`; KeyError for an unknown phase."""
    export = exports().get(phase)
    own = _DIALECTS[phase] if export is None else _EXPORTED | {phase}
    weights = () if export is None or export.weights is None else export.weights()
    allowed = own | FRAMEWORKS.keys() if phase == "imported" else own
    dialects: dict[type[Operation], str] = {}
    types: dict[Attribute, str | None] = {}
    for op in _ops_outside_kernels(module) if own is _BUFFER else all_ops(module):
        if (dialect := dialects.get(type(op))) is None:
            dialect = dialects[type(op)] = op.dialect_name()
        if dialect not in allowed and not isinstance(op, weights):
            yield f"{describe(op)}: {_unexpected(op, dialect, phase)}"
        elif own is _CORE:
            for problem in _problems(op, phase, types):
                yield f"{describe(op)}: {problem}"
        elif type(op) is kernel.BufferKernelOp:
            text = "has no loops; lower-kernels should have made them"
            yield f"{describe(op)}: the kernel @{op.sym_name.data} {text}"
        elif type(op) is entry_ops.WeightOp and (problem := _weight_problem(op)) is not None:
            yield f"{describe(op)}: {problem}"
    yield from (f"{describe(op)}: {problem}" for op, problem in used_before_made(module))
    if own is _CORE:  # models may name dimensions freely; legalization checks the names
        yield from _Symbols().visit(module)
    if phase == "optimized":
        yield from _changed_states(module)


def _changed_states(module: ModuleOp) -> Iterator[str]:
    """What is remembered has to be what the next run takes."""
    for op in module.body.block.ops:
        if not isinstance(op, FuncOp):
            continue
        type_ = op.function_type
        inputs = dict(zip(value_names(op.arg_attrs, len(type_.inputs)), type_.inputs.data))
        outputs = dict(zip(value_names(op.res_attrs, len(type_.outputs)), type_.outputs.data))
        for before, after, _ in states_in(op.attributes.get(STATES)):
            found, expected = outputs[after], inputs.get(before, outputs[after])
            if found != expected:
                yield (
                    f"{describe(op)}: the state '{before}' is {expected} before a run and "
                    f"'{after}' {found} after it, which the next run does not take; "
                    f"{_step_for_state(expected, found)}"
                )


def _step_for_state(before: Attribute, after: Attribute) -> str:
    if element_type(before) != element_type(after):
        return "an input and an output of different types are no state"
    return (
        "export the model with a cache of a fixed size, or keep the two apart and let the caller "
        "pass on what grows"
    )


def _ops_outside_kernels(module: ModuleOp) -> Iterator[Operation]:
    """All ops except those in kernels without loops, which count as one violation each."""
    for op in module.body.block.ops:
        if isinstance(op, kernel.BufferKernelOp):
            yield op
        else:
            yield from all_ops(op)


def _unexpected(op: Operation, dialect: str, phase: str) -> str:
    name = f"found '{op.name}', which may not occur once the module is {phase}"
    framework = framework_of(op)
    if (export := exports().get(phase)) is not None:
        remover = ", ".join(export.passes)
    else:
        own = _REMOVED_BY.get(dialect)
        remover = own if framework is None else ", ".join(framework.legalization)
    return f"{name}; {remover} should have converted it" if remover else name


def _problems(op: Operation, phase: str, known: dict[Attribute, str | None]) -> list[str]:
    """The violations of one op of core; `known` are those of types, which many ops share."""
    needs_rank = phase != "legal"
    types = [*op.result_types]
    for region in op.regions:
        for block in region.blocks:
            types += block.arg_types
    found: list[str] = []
    for type_ in types:
        if type_ not in known:
            known[type_] = _type_problem(type_, needs_rank)
        if (text := known[type_]) is not None:
            found.append(text)
    if phase == "kernels" and isinstance(op, CustomOp) and (step := _step_to_c(op)) is not None:
        found.append(f"the operator {op.operator.data} has no C; {step}")
    if phase == "kernels" and _should_be_in_kernel(op):
        found.append(f"'{op.name}' is not in a kernel; form-kernels should have put it into one")
    return found


def _step_to_c(op: CustomOp) -> str | None:
    """What has to be done for an operator from outside to be compiled, if anything."""
    if (operator := op.definition) is None:
        return "load the plugin that defines it"
    return operator.next_step or None


def _weight_problem(op: entry_ops.WeightOp) -> str | None:
    """The violation of a weight, if any: kernels read all bytes of their buffers."""
    if op.layout is not None:
        return "a constant is not in its layout; pack-weights should have packed it"
    problem = op.problem()
    return None if problem is None else f"{problem}; pack-weights should have given it these"


def _type_problem(type_: Attribute, needs_rank: bool) -> str | None:
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return f"type {type_} has no C form; expected a tensor of numbers"
    tensor = cast("TensorType[Attribute]", type_)
    element = tensor.element_type
    if element == UNKNOWN or isinstance(element, NoneType):
        return "the element type of a result is not known; infer-shapes should have found it"
    if element not in COMPUTABLE:
        return f"element type {element} has no C form; expected f16, bf16, f32, f64, i1 or integers"
    if not needs_rank:
        return None
    if isinstance(type_, UnrankedTensorType):
        return (
            f"type {type_} has no rank; infer-shapes should have found it: "
            "give the shapes of the model's inputs"
        )
    if DYNAMIC_INDEX in tensor.get_shape() and not isinstance(tensor.encoding, TensorEncoding):
        return f"type {type_} has a dimension without a symbol"
    return None


def _should_be_in_kernel(op: Operation) -> bool:
    if not isinstance(op, CoreOp) or isinstance(op, _OUTSIDE_KERNELS):
        return False
    return not isinstance(op.parent_op(), KernelOp)


class _Symbols:
    """Are symbols made before they are used? One sweep with scopes."""

    def __init__(self) -> None:
        self._made: set[str] = set()

    def visit(self, root: Operation) -> Iterator[str]:
        """The problems inside `root`."""
        for region in root.regions:
            yield from self._visit_region(region, root)

    def _visit_region(self, region: Region, owner: Operation) -> Iterator[str]:
        if owner.has_trait(HasGraphRegion):
            return
        made = self._made
        if _is_function(owner):
            self._made = _argument_symbols(region)  # their types declare symbols
        else:
            self._made = {*made, *region_symbols_made_by(owner)}
        for block in region.blocks:
            yield from self._visit_block(block, owner)
        self._made = made

    def _visit_block(self, block: Block, owner: Operation) -> Iterator[str]:
        if _is_function(owner):
            yield from _unreadable_symbols(owner, block)
        for arg in block.args:
            yield from self._unknown_symbols(owner, arg.type, "an argument of its region")
        for op in block.ops:
            yield from self._visit_op(op)

    def _visit_op(self, op: Operation) -> Iterator[str]:
        for name, attribute in op.properties.items():
            if not self._made.issuperset(symbols_of(attribute)):
                yield from self._unknown_symbols(op, attribute, f"property '{name}'")
        if op.regions:
            yield from self.visit(op)
        for symbol in symbols_made_by(op):
            if symbol in self._made:
                yield f"{describe(op)}: symbol '{symbol}' is made a second time"
            self._made.add(symbol)
        for index, type_ in enumerate(op.result_types):
            if not self._made.issuperset(symbols_of(type_)):
                yield from self._unknown_symbols(op, type_, f"result {index}")

    def _unknown_symbols(self, op: Operation, attribute: Attribute, where: str) -> Iterator[str]:
        if _is_function(op):
            return
        if unknown := sorted(symbols_of(attribute) - self._made):
            names = ", ".join(f"'{name}'" for name in unknown)
            yield f"{describe(op)}: {where} uses the symbol {names} before it is made"


def _is_function(op: Operation) -> bool:
    return op.has_trait(IsolatedFromAbove) and not isinstance(op, KernelOp)


def _argument_symbols(region: Region) -> set[str]:
    """The symbols in the types of the arguments of a function."""
    first = region.blocks.first
    if first is None:
        return set()
    return set[str]().union(*(symbols_of(type_) for type_ in first.arg_types))


def _unreadable_symbols(function: Operation, block: Block) -> Iterator[str]:
    """The symbols in the types of a function's arguments that no dimension is by itself."""
    types = [arg.type for arg in block.args]
    encodings = [type_.encoding for type_ in types if isinstance(type_, TensorType)]
    dims = [dim for one in encodings if isinstance(one, TensorEncoding) for dim in one.data]
    whole = {str(dim) for dim in dims}
    for number, type_ in enumerate(types):
        if unknown := sorted(symbols_of(type_) - whole):
            names = ", ".join(f"'{name}'" for name in unknown)
            yield (
                f"{describe(function)}: argument {number} uses the symbol {names}, expected one "
                "that is a dimension of an argument by itself; name the dimension of the argument"
            )
