"""
Exports a module of `core` as an ONNX model.

Control flow becomes If and Loop whose bodies capture outer values; tensor names of inputs and
outputs are kept; dimension symbols become `dim_param`s, and expressions of them nodes where a value
needs one. Weights are in the file, or from `_INLINE_LIMIT` on in a file beside it.
"""

from __future__ import annotations

import os
import tempfile
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowerdeck.dialects.core import (
    attention,
    constant,
    control_flow,
    elementwise,
    linear,
    tensor,
)
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    DimsAttr,
    Tensor,
    dims_of,
    element_type,
    i1,
    i32,
    i64,
    is_float,
    is_unsigned,
    numpy_dtype,
    rank_of,
    ui64,
)
from lowerdeck.dialects.dims import Atom, Expr, ExprLike, constants
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.onnx.types import element_to_proto
from lowerdeck.passes.provenance import describe

OPSET = 21
_IR_VERSION = 10

_INLINE_LIMIT = 1 << 30
"""Weights of at least this many bytes go to a file of their own: protobuf ends at 2 GB."""

_INT64_MIN = -(1 << 63)

Emitter: TypeAlias = Callable[["_Graph", Any], None]
_EMITTERS: dict[type[Operation], Emitter] = {}


class ExportError(Exception):
    """A module that has no ONNX form; the message lists every op at fault."""


def export_onnx(module: ModuleOp, path: str | os.PathLike[str], *, function: str = "main") -> None:
    """
    Write `module` as an ONNX model to `path`, whole or not at all.

    Weights of 1 GB and more go to `<path>.data`. ExportError if an op has no ONNX form.
    """
    target = os.fspath(path)
    exporter = _Exporter(find_function(module, function))
    data = f"{os.path.basename(target)}.data" if exporter.weight_bytes >= _INLINE_LIMIT else None
    folder = os.path.dirname(os.path.abspath(target))
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as scratch:
        model = exporter.model(os.path.join(scratch, data) if data else None)
        whole = os.path.join(scratch, "model")
        with open(whole, "wb") as file:
            file.write(model.SerializeToString())
        if data:
            os.replace(os.path.join(scratch, data), os.path.join(folder, data))
        os.replace(whole, target)


def to_model(module: ModuleOp, *, function: str = "main") -> onnx.ModelProto:
    """`module` as an ONNX model with its weights inside. ExportError if an op has no ONNX form."""
    return _Exporter(find_function(module, function)).model(None)


class _Exporter:
    """The model under construction: names, initializers and problems of all graphs."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self.initializers: dict[str, constant.ConstantOp | NDArray[Any]] = {}
        self.problems: list[str] = []
        self._literals: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._taken: set[str] = set()
        self._graph = self._main_graph()
        if self.problems:
            raise ExportError("\n".join(self.problems))

    @property
    def weight_bytes(self) -> int:
        """The size of all initializers."""
        return sum(
            value.value.data.size if isinstance(value, constant.ConstantOp) else value.nbytes
            for value in self.initializers.values()
        )

    def fresh(self, hint: str) -> str:
        """A name that no other value has."""
        name, count = hint, 0
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._taken.add(name)
        return name

    def literal(self, values: Any, dtype: Any = np.int64) -> str:
        """The name of a small constant of our own."""
        array = np.asarray(values, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._literals:
            name = self._literals[key] = self.fresh("constant")
            self.initializers[name] = array
        return self._literals[key]

    def _main_graph(self) -> onnx.GraphProto:
        block = self._function.body.block
        names = value_names(self._function.arg_attrs, len(block.args))
        last = block.last_op
        results = tuple(last.operands) if isinstance(last, ReturnOp) else ()
        result_names = value_names(self._function.res_attrs, len(results))
        self._taken.update((*names, *result_names))
        graph = _Graph(self, ChainMap(), ChainMap())
        for name, argument in zip(names, block.args, strict=True):
            graph.names[argument] = name
            graph.proto.input.append(_value_info(name, argument.type))
            graph.define_symbols_of(argument)
        graph.add_block(block)
        for name, value in zip(result_names, results, strict=True):
            if graph.name(value) != name:  # an output may be an input
                graph.node("Identity", [graph.name(value)], outputs=[name])
            graph.proto.output.append(_value_info(name, value.type))
        graph.proto.name = self._function.sym_name.data
        return graph.proto

    def model(self, data_path: str | None) -> onnx.ModelProto:
        """The model; with `data_path` its large initializers are written there."""
        graph = onnx.GraphProto()
        graph.CopyFrom(self._graph)
        if data_path is None:
            for name, value in self.initializers.items():
                graph.initializer.append(_tensor(name, value))
        else:
            self._store_externally(graph, data_path)
        return onnx.ModelProto(
            ir_version=_IR_VERSION,
            producer_name="lowerdeck",
            graph=graph,
            opset_import=[helper.make_opsetid("", OPSET)],
        )

    def _store_externally(self, graph: onnx.GraphProto, data_path: str) -> None:
        with open(data_path, "wb") as file:
            for name, value in self.initializers.items():
                if not isinstance(value, constant.ConstantOp) or not _is_raw(value):
                    graph.initializer.append(_tensor(name, value))
                    continue
                file.write(bytes(-file.tell() % 4096))
                proto = _tensor_header(name, value)
                size = value.value.data.size
                proto.raw_data = b""
                set_external_data(proto, os.path.basename(data_path), file.tell(), size)
                proto.ClearField("raw_data")
                proto.data_location = onnx.TensorProto.EXTERNAL
                file.write(value.value.data.data)
                graph.initializer.append(proto)


def _is_raw(op: constant.ConstantOp) -> bool:
    """True if ONNX stores these elements as we do; those below a byte are packed there."""
    return element_type(op.result) in COMPUTABLE


def _tensor_header(name: str, op: constant.ConstantOp) -> onnx.TensorProto:
    dims = constants(dims_of(op.result)) or ()
    return onnx.TensorProto(
        name=name, data_type=element_to_proto(element_type(op.result)), dims=dims
    )


def _tensor(name: str, value: constant.ConstantOp | NDArray[Any]) -> onnx.TensorProto:
    if not isinstance(value, constant.ConstantOp):
        return numpy_helper.from_array(value, name)
    if not _is_raw(value):
        return numpy_helper.from_array(value.array, name)
    proto = _tensor_header(name, value)
    proto.raw_data = value.value.data.data.tobytes()
    return proto


def _value_info(name: str, type_: Attribute) -> onnx.ValueInfoProto:
    if not isinstance(type_, TensorType):
        raise ExportError(f"'{name}' has the type {type_}, which is not exported")
    kind = cast(Tensor, type_)
    shape = [str(dim) if dim.value is None else dim.value for dim in dims_of(kind)]
    return helper.make_tensor_value_info(name, element_to_proto(element_type(kind)), shape)


class _Graph:
    """One graph: the main one, or the body of an If or Loop, which sees the names around it."""

    def __init__(
        self,
        exporter: _Exporter,
        names: ChainMap[SSAValue, str],
        symbols: ChainMap[str, Callable[[_Graph], str] | str],
    ) -> None:
        self.exporter = exporter
        self.names = names
        self.proto = onnx.GraphProto()
        self._symbols = symbols
        self._expressions: ChainMap[Expr, str] = ChainMap()
        self._op: Operation | None = None

    def nested(self) -> _Graph:
        """An empty graph inside of this one."""
        graph = _Graph(self.exporter, self.names.new_child(), self._symbols.new_child())
        graph._expressions = self._expressions.new_child()
        return graph

    # Names

    def name(self, value: SSAValue) -> str:
        """The ONNX name of a value."""
        return self.names[value]

    def node(
        self,
        op_type: str,
        inputs: Sequence[str],
        *,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node and return the name of its (first) output."""
        outputs = [self.exporter.fresh("v")] if outputs is None else outputs
        node = helper.make_node(op_type, list(inputs), list(outputs), **attributes)
        node.name = self.exporter.fresh(f"{op_type}_node")
        self.proto.node.append(node)
        return outputs[0]

    def set(self, op: Operation, *names: str) -> None:
        """The ONNX names of the results of `op`."""
        self.names.update(zip(op.results, names, strict=True))

    def literal(self, values: Any, dtype: Any = np.int64) -> str:
        """The name of a small constant."""
        return self.exporter.literal(values, dtype)

    def like(self, value: SSAValue, number: float) -> str:
        """The scalar `number` in the element type of `value`."""
        return self.literal(number, numpy_dtype(element_type(value)))

    def cast(self, name: str, element: Attribute) -> str:
        """The value in another element type."""
        return self.node("Cast", [name], to=element_to_proto(element))

    def fail(self, op: Operation, why: str) -> None:
        """Note that `op` cannot be exported; the rest goes on so that all are listed."""
        self.exporter.problems.append(f"{describe(op)}: {why}")
        self.set(op, *(self.exporter.fresh("missing") for _ in op.results))

    # Dimensions

    def define_symbols_of(self, value: SSAValue) -> None:
        """Symbols that are a dimension of `value` and not known yet are read from its shape."""
        if not isinstance(value.type, TensorType):
            return
        for axis, dim in enumerate(dims_of(value)):
            if str(dim) in dim.symbols and str(dim) not in self._symbols:
                source = self.name(value)
                self._symbols[str(dim)] = lambda graph, axis=axis, source=source: graph.node(
                    "Shape", [source], start=axis, end=axis + 1
                )

    def define_symbol(self, symbol: str, name: str) -> None:
        """`name` holds the value of a symbol as an i64 tensor of shape [1]."""
        self._symbols[symbol] = name

    def dims(self, values: Iterable[ExprLike] | DimsAttr) -> str:
        """The name of a vector with the values of expressions."""
        exprs = [Expr.of(v) for v in (values.data if isinstance(values, DimsAttr) else values)]
        if (numbers := constants(exprs)) is not None:
            return self.literal(list(numbers))
        parts = [self.expression(expr) for expr in exprs]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)

    def expression(self, expr: Expr) -> str:
        """The name of an i64 tensor of shape [1] with the value of an expression."""
        if expr.value is not None:
            return self.literal([expr.value])
        if expr not in self._expressions:
            terms = [self._term(monomial, factor) for monomial, factor in expr.terms]
            self._expressions[expr] = reduce(lambda a, b: self.node("Add", [a, b]), terms)
        return self._expressions[expr]

    def _term(self, monomial: Sequence[Atom], factor: int) -> str:
        factors = [self._atom(atom) for atom in monomial]
        if factor != 1 or not factors:
            factors.append(self.literal([factor]))
        return reduce(lambda a, b: self.node("Mul", [a, b]), factors)

    def _atom(self, atom: Atom) -> str:
        if atom.kind == "symbol":
            source = self._symbols[atom.name]
            if not isinstance(source, str):
                # Read here, and not where the symbol is defined: many are never needed.
                source = self._symbols[atom.name] = source(self)
            return source
        args = [self.expression(arg) for arg in atom.args]
        match atom.kind:
            case "min" | "max":
                return self.node(atom.kind.capitalize(), args)
            case "mod":
                return self.node("Mod", args)
            case _:
                # Div rounds toward zero; without the remainder it has nothing to round.
                rest = self.node("Mod", args)
                return self.node("Div", [self.node("Sub", [args[0], rest]), args[1]])

    # Ops

    def add_block(self, block: Block) -> None:
        """Add all ops but the terminator."""
        for op in block.ops:
            if op is block.last_op and isinstance(op, ReturnOp | control_flow.YieldOp):
                return
            emitter = _EMITTERS.get(type(op))
            if emitter is None:
                self.fail(op, "has no ONNX form; export core ops, legalize before")
            else:
                emitter(self, op)

    def add_outputs(self, values: Sequence[SSAValue]) -> None:
        """Make `values` the outputs; one that comes from outside or occurs twice gets a node."""
        for value in values:
            self.add_output(self.node("Identity", [self.name(value)]), value.type)

    def add_output(self, name: str, type_: Attribute) -> None:
        """Make `name` the next output."""
        self.proto.output.append(_value_info(name, type_))

    def subgraph(self, name: str) -> onnx.GraphProto:
        """The finished graph as an attribute."""
        self.proto.name = self.exporter.fresh(name)
        return self.proto


def _emits(*classes: type[Operation]) -> Callable[[Emitter], Emitter]:
    def register(emitter: Emitter) -> Emitter:
        for cls in classes:
            _EMITTERS[cls] = emitter
        return emitter

    return register


# Constants and symbols


@_emits(constant.ConstantOp)
def _constant(graph: _Graph, op: constant.ConstantOp) -> None:
    name = graph.exporter.fresh(op.result.name_hint or "weight")
    graph.exporter.initializers[name] = op
    graph.set(op, name)


@_emits(constant.FromDimsOp)
def _from_dims(graph: _Graph, op: constant.FromDimsOp) -> None:
    shape = [dim.value or 0 for dim in dims_of(op.result)]
    flat = graph.dims(op.values)
    graph.set(op, graph.node("Reshape", [flat, graph.literal(shape)], allowzero=1))


@_emits(constant.BindSymbolsOp)
def _bind_symbols(graph: _Graph, op: constant.BindSymbolsOp) -> None:
    wide = graph.cast(graph.name(op.input), i64)
    flat = graph.node("Reshape", [wide, graph.literal([-1])])
    for position, symbol in enumerate(op.made_symbols):
        taken = graph.node("Gather", [flat, graph.literal([position])], axis=0)
        graph.define_symbol(symbol, taken)


@_emits(constant.IotaOp)
def _iota(graph: _Graph, op: constant.IotaOp) -> None:
    dims, axis = op.dims.data, op.axis.data
    size = graph.node("Squeeze", [graph.expression(dims[axis]), graph.literal([0])])
    line = graph.node("Range", [graph.literal(0), size, graph.literal(1)])
    if len(dims) > 1:
        column = graph.literal([-1, *[1] * (len(dims) - axis - 1)])
        line = graph.node("Expand", [graph.node("Reshape", [line, column]), graph.dims(dims)])
    graph.set(op, line)


# Elementwise

_UNARY: Mapping[type[Operation], str] = {
    elementwise.AbsOp: "Abs",
    elementwise.SignOp: "Sign",
    elementwise.ExpOp: "Exp",
    elementwise.LogOp: "Log",
    elementwise.SqrtOp: "Sqrt",
    elementwise.FloorOp: "Floor",
    elementwise.CeilOp: "Ceil",
    elementwise.RoundOp: "Round",
    elementwise.ErfOp: "Erf",
    elementwise.SinOp: "Sin",
    elementwise.CosOp: "Cos",
    elementwise.TanOp: "Tan",
    elementwise.AsinOp: "Asin",
    elementwise.AcosOp: "Acos",
    elementwise.AtanOp: "Atan",
    elementwise.SinhOp: "Sinh",
    elementwise.CoshOp: "Cosh",
    elementwise.TanhOp: "Tanh",
    elementwise.AsinhOp: "Asinh",
    elementwise.AcoshOp: "Acosh",
    elementwise.AtanhOp: "Atanh",
    elementwise.SigmoidOp: "Sigmoid",
}


@_emits(*_UNARY)
def _unary(graph: _Graph, op: elementwise.UnaryOp) -> None:
    graph.set(op, graph.node(_UNARY[type(op)], [graph.name(op.input)]))


@_emits(elementwise.NegOp)
def _neg(graph: _Graph, op: elementwise.NegOp) -> None:
    x = graph.name(op.input)
    if is_unsigned(element_type(op.input)):
        graph.set(op, graph.node("Sub", [graph.like(op.input, 0), x]))
    else:
        graph.set(op, graph.node("Neg", [x]))


@_emits(elementwise.NotOp)
def _not(graph: _Graph, op: elementwise.NotOp) -> None:
    op_type = "Not" if element_type(op.input) == i1 else "BitwiseNot"
    graph.set(op, graph.node(op_type, [graph.name(op.input)]))


_BINARY: Mapping[type[Operation], str] = {
    elementwise.AddOp: "Add",
    elementwise.SubOp: "Sub",
    elementwise.MulOp: "Mul",
    elementwise.PowOp: "Pow",
    elementwise.MaxOp: "Max",
    elementwise.MinOp: "Min",
}


@_emits(*_BINARY)
def _binary(graph: _Graph, op: elementwise.BinaryOp) -> None:
    graph.set(op, graph.node(_BINARY[type(op)], [graph.name(op.lhs), graph.name(op.rhs)]))


@_emits(elementwise.DivOp)
def _div(graph: _Graph, op: elementwise.DivOp) -> None:
    graph.set(op, _divided(graph, op, lambda x, y: graph.node("Div", [x, y])))


@_emits(elementwise.RemOp)
def _rem(graph: _Graph, op: elementwise.RemOp) -> None:
    graph.set(op, _divided(graph, op, lambda x, y: graph.node("Mod", [x, y], fmod=1)))


@_emits(elementwise.ModOp)
def _mod(graph: _Graph, op: elementwise.ModOp) -> None:
    if not is_float(element_type(op.lhs)):
        graph.set(op, _divided(graph, op, lambda x, y: graph.node("Mod", [x, y])))
        return
    # The remainder has the sign of x: move it by one y where that is the wrong one.
    x, y, zero = graph.name(op.lhs), graph.name(op.rhs), graph.like(op.lhs, 0)
    rest = graph.node("Mod", [x, y], fmod=1)
    signs = graph.node("Xor", [graph.node("Less", [rest, zero]), graph.node("Less", [y, zero])])
    nonzero = graph.node("Not", [graph.node("Equal", [rest, zero])])
    moves = graph.node("And", [signs, nonzero])
    graph.set(op, graph.node("Where", [moves, graph.node("Add", [rest, y]), rest]))


def _divided(graph: _Graph, op: elementwise.BinaryOp, divide: Callable[[str, str], str]) -> str:
    """Integer division by zero gives zero; ONNX leaves it open, and runtimes crash."""
    x, y = graph.name(op.lhs), graph.name(op.rhs)
    divisor = constant.constant_array(op.rhs)
    if is_float(element_type(op.lhs)) or (divisor is not None and divisor.all()):
        return divide(x, y)
    zero, one = graph.like(op.lhs, 0), graph.like(op.lhs, 1)
    by_zero = graph.node("Equal", [y, zero])
    quotient = divide(x, graph.node("Where", [by_zero, one, y]))
    return graph.node("Where", [by_zero, zero, quotient])


@_emits(elementwise.AndOp, elementwise.OrOp, elementwise.XorOp)
def _bitwise(graph: _Graph, op: elementwise.BitwiseOp) -> None:
    name = op.name.removeprefix("core.").capitalize()
    name = name if element_type(op.lhs) == i1 else f"Bitwise{name}"
    graph.set(op, graph.node(name, [graph.name(op.lhs), graph.name(op.rhs)]))


@_emits(elementwise.ShlOp, elementwise.ShrOp)
def _shift(graph: _Graph, op: elementwise.BitwiseOp) -> None:
    """In 64 unsigned bits, where only shifts by 64 or more are left open by BitShift."""
    element = element_type(op.lhs)
    if element == i1:
        graph.fail(op, "shifts of i1 are not exported")
        return
    width = 8 * numpy_dtype(element).itemsize
    # Bits, not values: a signed number must not be extended by its sign.
    same_width = IntegerType(width, Signedness.UNSIGNED)
    x, y = (graph.cast(graph.cast(graph.name(v), same_width), ui64) for v in (op.lhs, op.rhs))
    amount = graph.node("Min", [y, graph.literal(63, np.uint64)])
    direction = "LEFT" if isinstance(op, elementwise.ShlOp) else "RIGHT"
    shifted = graph.node("BitShift", [x, amount], direction=direction)
    if width == 64:
        fits = graph.node("Equal", [graph.cast(y, i64), graph.cast(amount, i64)])
        shifted = graph.node("Where", [fits, graph.cast(shifted, i64), graph.literal(0)])
        shifted = graph.cast(shifted, ui64)
    graph.set(op, graph.cast(graph.cast(shifted, same_width), element))


_PREDICATES = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}


@_emits(elementwise.CompareOp)
def _compare(graph: _Graph, op: elementwise.CompareOp) -> None:
    operands, predicate = [graph.name(op.lhs), graph.name(op.rhs)], op.predicate.data
    if predicate in ("eq", "ne"):
        equal = graph.node("Equal", operands)
        graph.set(op, equal if predicate == "eq" else graph.node("Not", [equal]))
        return
    if element_type(op.lhs) == i1:
        operands = [graph.cast(name, i32) for name in operands]
    graph.set(op, graph.node(_PREDICATES[predicate], operands))


@_emits(elementwise.SelectOp)
def _select(graph: _Graph, op: elementwise.SelectOp) -> None:
    graph.set(op, graph.node("Where", [graph.name(operand) for operand in op.operands]))


@_emits(elementwise.CastOp)
def _cast(graph: _Graph, op: elementwise.CastOp) -> None:
    graph.set(op, graph.cast(graph.name(op.input), op.to))


# Data movement


@_emits(tensor.ReshapeOp)
def _reshape(graph: _Graph, op: tensor.ReshapeOp) -> None:
    shape = graph.dims(op.dims)
    # Without allowzero a zero means "as before".
    empty = any(dim.value in (0, None) for dim in op.dims.data)
    graph.set(op, graph.node("Reshape", [graph.name(op.input), shape], allowzero=int(empty)))


@_emits(tensor.TransposeOp)
def _transpose(graph: _Graph, op: tensor.TransposeOp) -> None:
    order = tensor.ints(op.permutation)
    graph.set(op, graph.node("Transpose", [graph.name(op.input)], perm=order))


@_emits(tensor.ChannelShuffleOp)
def _channel_shuffle(graph: _Graph, op: tensor.ChannelShuffleOp) -> None:
    dims, groups = dims_of(op.input), op.groups.data
    apart = graph.dims([dims[0], groups, dims[1] // groups, *dims[2:]])
    split = graph.node("Reshape", [graph.name(op.input), apart], allowzero=1)
    dealt = graph.node("Transpose", [split], perm=[0, 2, 1, *range(3, len(dims) + 1)])
    graph.set(op, graph.node("Reshape", [dealt, graph.dims(dims)], allowzero=1))


@_emits(tensor.BroadcastOp)
def _broadcast(graph: _Graph, op: tensor.BroadcastOp) -> None:
    graph.set(op, graph.node("Expand", [graph.name(op.input), graph.dims(op.dims)]))


@_emits(tensor.SliceOp)
def _slice(graph: _Graph, op: tensor.SliceOp) -> None:
    starts, sizes, steps = op.starts.data, op.sizes.data, op.steps.data
    ends = [
        _slice_end(graph, start, size, step)
        for start, size, step in zip(starts, sizes, steps, strict=True)
    ]
    result = graph.name(op.input)
    if ends:
        axes = graph.literal(list(range(len(ends))))
        end = graph.node("Concat", ends, axis=0)
        result = graph.node("Slice", [result, graph.dims(starts), end, axes, graph.dims(steps)])
    graph.set(op, graph.node("Identity", [result]))


def _slice_end(graph: _Graph, start: Expr, size: Expr, step: Expr) -> str:
    """Going down, an end before the first element must not count from the end of the dimension."""
    end = start + size * step
    if (step.value or 0) > 0 or size.value == 0:
        return graph.expression(end)
    lowest = graph.literal([_INT64_MIN])
    if end.value is not None and size.value is not None:
        return lowest if end.value < 0 else graph.expression(end)
    name, zero = graph.expression(end), graph.literal([0])
    reached = graph.node("Where", [graph.node("Less", [name, zero]), lowest, name])
    if size.value is not None:
        return reached
    nothing = graph.node("Equal", [graph.expression(size), zero])
    return graph.node("Where", [nothing, name, reached])


@_emits(tensor.PadOp)
def _pad(graph: _Graph, op: tensor.PadOp) -> None:
    inputs = [graph.name(op.input), graph.dims([*op.begin.data, *op.end.data])]
    if op.value is not None:
        inputs.append(graph.name(op.value))
    graph.set(op, graph.node("Pad", inputs, mode=op.mode.data))


@_emits(tensor.ConcatOp)
def _concat(graph: _Graph, op: tensor.ConcatOp) -> None:
    inputs = [graph.name(value) for value in op.inputs]
    graph.set(op, graph.node("Concat", inputs, axis=op.axis.data))


@_emits(tensor.SplitOp)
def _split(graph: _Graph, op: tensor.SplitOp) -> None:
    inputs = [graph.name(op.input), graph.dims(op.sizes)]
    outputs = [graph.exporter.fresh("part") for _ in op.results]
    graph.node("Split", inputs, outputs=outputs, axis=op.axis.data)
    graph.set(op, *outputs)


def _indices(graph: _Graph, value: SSAValue) -> str:
    """ONNX takes i32 and i64 only."""
    name = graph.name(value)
    return name if element_type(value) in (i32, i64) else graph.cast(name, i64)


@_emits(tensor.GatherOp, tensor.GatherElementsOp)
def _gather(graph: _Graph, op: tensor.GatherOp | tensor.GatherElementsOp) -> None:
    op_type = "Gather" if isinstance(op, tensor.GatherOp) else "GatherElements"
    inputs = [graph.name(op.input), _indices(graph, op.indices)]
    graph.set(op, graph.node(op_type, inputs, axis=op.axis.data))


@_emits(tensor.GatherNdOp)
def _gather_nd(graph: _Graph, op: tensor.GatherNdOp) -> None:
    inputs = [graph.name(op.input), graph.cast(graph.name(op.indices), i64)]
    graph.set(op, graph.node("GatherND", inputs, batch_dims=op.batch_dims.data))


@_emits(tensor.ScatterElementsOp)
def _scatter_elements(graph: _Graph, op: tensor.ScatterElementsOp) -> None:
    inputs = [graph.name(op.input), _indices(graph, op.indices), graph.name(op.updates)]
    attributes: dict[str, Any] = {"axis": op.axis.data, "reduction": op.reduction.data}
    graph.set(op, graph.node("ScatterElements", inputs, **attributes))


@_emits(tensor.ScatterNdOp)
def _scatter_nd(graph: _Graph, op: tensor.ScatterNdOp) -> None:
    indices = graph.cast(graph.name(op.indices), i64)
    inputs = [graph.name(op.input), indices, graph.name(op.updates)]
    graph.set(op, graph.node("ScatterND", inputs, reduction=op.reduction.data))


@_emits(tensor.TopKOp)
def _top_k(graph: _Graph, op: tensor.TopKOp) -> None:
    outputs = [graph.exporter.fresh("values"), graph.exporter.fresh("indices")]
    graph.node(
        "TopK",
        [graph.name(op.input), graph.dims(op.k)],
        outputs=outputs,
        axis=op.axis.data,
        largest=int(bool(op.largest.value.data)),
        sorted=1,
    )
    graph.set(op, *outputs)


@_emits(tensor.CountNonzeroOp)
def _count_nonzero(graph: _Graph, op: tensor.CountNonzeroOp) -> None:
    ones = graph.cast(graph.cast(graph.name(op.input), i1), i64)
    graph.set(op, graph.node("ReduceSum", [ones], keepdims=0))


@_emits(tensor.NonzeroOp)
def _nonzero(graph: _Graph, op: tensor.NonzeroOp) -> None:
    if rank_of(op.input) == 0:
        zero = helper.make_tensor("", onnx.TensorProto.INT64, [1], [0])
        shape = graph.dims([0, *op.count.data])
        graph.set(op, graph.node("ConstantOfShape", [shape], value=zero))
        return
    graph.set(op, graph.node("NonZero", [graph.cast(graph.name(op.input), i1)]))


# Contractions and normalizations


def _static(*lists: DimsAttr) -> list[list[int]] | None:
    """Numbers that none of which is negative, or None."""
    found = [constants(dims.data) for dims in lists]
    numbers = [list(values) for values in found if values is not None]
    if len(numbers) < len(lists) or any(value < 0 for values in numbers for value in values):
        return None
    return numbers


def _padded_input(
    graph: _Graph, op: Any, value: float = 0.0, *, explicit: bool = False
) -> tuple[str, list[int]]:
    """The input of a window op and its `pads`; those that are not numbers become a Pad."""
    x, begin, end = graph.name(op.input), op.pads_begin, op.pads_end
    pads = _static(begin, end)
    if pads is not None and not explicit:
        return x, [*pads[0], *pads[1]]
    amounts = [0, 0, *begin.data, 0, 0, *end.data]
    padded = graph.node("Pad", [x, graph.dims(amounts), graph.like(op.input, value)])
    return padded, [0] * (2 * len(begin.data))


@_emits(linear.ConvOp)
def _conv(graph: _Graph, op: linear.ConvOp) -> None:
    if not is_float(element_type(op.input)):
        graph.fail(op, "convolutions of integers are not exported")
        return
    x, pads = _padded_input(graph, op)
    inputs = [x, *(graph.name(value) for value in op.operands[1:])]
    result = graph.node(
        "Conv",
        inputs,
        strides=tensor.ints(op.strides),
        dilations=tensor.ints(op.dilations),
        pads=pads,
        group=op.groups.data,
    )
    graph.set(op, result)


@_emits(linear.ConvTransposeOp)
def _conv_transpose(graph: _Graph, op: linear.ConvTransposeOp) -> None:
    if not is_float(element_type(op.input)):
        graph.fail(op, "convolutions of integers are not exported")
        return
    spatial = len(op.pads_begin.data)
    pads = _static(op.pads_begin, op.pads_end)
    result = graph.node(
        "ConvTranspose",
        [graph.name(value) for value in op.operands],
        strides=tensor.ints(op.strides),
        dilations=tensor.ints(op.dilations),
        output_padding=tensor.ints(op.output_padding),
        pads=[*pads[0], *pads[1]] if pads else [0] * (2 * spatial),
        group=op.groups.data,
    )
    if pads is None:
        crops = [0, 0, *(-b for b in op.pads_begin.data), 0, 0, *(-e for e in op.pads_end.data)]
        result = graph.node("Pad", [result, graph.dims(crops)])
    graph.set(op, result)


@_emits(linear.MatmulOp)
def _matmul(graph: _Graph, op: linear.MatmulOp) -> None:
    graph.set(op, graph.node("MatMul", [graph.name(op.lhs), graph.name(op.rhs)]))


@_emits(linear.BatchNormOp)
def _batch_norm(graph: _Graph, op: linear.BatchNormOp) -> None:
    epsilon, axis, rank = op.epsilon.value.data, op.axis.data, rank_of(op.input)
    names = [graph.name(operand) for operand in op.operands]
    if axis == 1:
        graph.set(op, graph.node("BatchNormalization", names, epsilon=epsilon))
        return
    shape = graph.literal([-1, *[1] * (rank - axis - 1)])
    x, *parameters = names
    scale, bias, mean, variance = (graph.node("Reshape", [p, shape]) for p in parameters)
    centered = graph.node("Sub", [x, mean])
    normal = _normalized(graph, op.input, centered, variance, epsilon)
    graph.set(op, graph.node("Add", [graph.node("Mul", [normal, scale]), bias]))


def _normalized(
    graph: _Graph, value: SSAValue, centered: str, variance: str, epsilon: float
) -> str:
    shifted = graph.node("Add", [variance, graph.like(value, epsilon)])
    return graph.node("Div", [centered, graph.node("Sqrt", [shifted])])


@_emits(linear.LayerNormOp)
def _layer_norm(graph: _Graph, op: linear.LayerNormOp) -> None:
    epsilon, axis, dims = op.epsilon.value.data, op.axis.data, dims_of(op.input)
    names = [graph.name(operand) for operand in op.operands]
    if all(dims_of(parameter) == dims[axis:] for parameter in op.operands[1:]):
        graph.set(op, graph.node("LayerNormalization", names, axis=axis, epsilon=epsilon))
        return
    axes = graph.literal(list(range(axis, len(dims))))
    centered = graph.node("Sub", [names[0], graph.node("ReduceMean", [names[0], axes])])
    variance = graph.node("ReduceMean", [graph.node("Mul", [centered, centered]), axes])
    normal = _normalized(graph, op.input, centered, variance, epsilon)
    result = graph.node("Mul", [normal, names[1]])
    graph.set(op, graph.node("Add", [result, names[2]]) if len(names) > 2 else result)


@_emits(attention.AttentionOp)
def _attention(graph: _Graph, op: attention.AttentionOp) -> None:
    rank = rank_of(op.query)
    batch = list(range(rank - 3))
    rows, columns = [*batch, rank - 2, rank - 3, rank - 1], [*batch, rank - 2, rank - 1, rank - 3]

    def laid_out(value: SSAValue, permutation: Sequence[int]) -> str:
        return graph.node("Transpose", [graph.name(value)], perm=permutation)

    scores = graph.node("MatMul", [laid_out(op.query, rows), laid_out(op.key, columns)])
    scores = graph.node("Mul", [scores, graph.like(op.query, op.scale.value.data)])
    if op.mask is not None:
        scores = graph.node("Add", [scores, graph.name(op.mask)])
    weights = graph.node("Softmax", [scores], axis=-1)
    result = graph.node("MatMul", [weights, laid_out(op.value, rows)])
    graph.set(op, graph.node("Transpose", [result], perm=rows))


# Reductions


@_emits(reductions.ReduceOp)
def _reduce(graph: _Graph, op: reductions.ReduceOp) -> None:
    element, axes = element_type(op.input), tensor.ints(op.axes)
    x = graph.name(op.input)
    if not axes:
        graph.set(op, graph.node("Identity", [x]))
        return
    # The narrow integers are not among ONNX's types; modulo their width the result is the same.
    narrow = not is_float(element) and element not in (i32, i64, ui64)
    x = graph.cast(x, i64) if narrow else x
    inputs = [x, graph.literal(axes)]
    name = f"Reduce{op.kind.data.capitalize()}"
    result = graph.node(name, inputs, keepdims=int(bool(op.keep_dims.value.data)))
    graph.set(op, graph.cast(result, element) if narrow else result)


@_emits(reductions.ArgReduceOp)
def _arg_reduce(graph: _Graph, op: reductions.ArgReduceOp) -> None:
    result = graph.node(
        f"Arg{op.kind.data.capitalize()}",
        [graph.name(op.input)],
        axis=op.axis.data,
        keepdims=int(bool(op.keep_dims.value.data)),
        select_last_index=int(bool(op.last_index.value.data)),
    )
    graph.set(op, result)


@_emits(reductions.SoftmaxOp)
def _softmax(graph: _Graph, op: reductions.SoftmaxOp) -> None:
    graph.set(op, graph.node("Softmax", [graph.name(op.input)], axis=op.axis.data))


@_emits(reductions.CumulativeOp)
def _cumulative(graph: _Graph, op: reductions.CumulativeOp) -> None:
    exclusive, reverse = (bool(flag.value.data) for flag in (op.exclusive, op.reverse))
    x, axis = graph.name(op.input), op.axis.data
    if op.kind.data == "sum":
        flags: dict[str, Any] = {"exclusive": int(exclusive), "reverse": int(reverse)}
        graph.set(op, graph.node("CumSum", [x, graph.literal(axis)], **flags))
        return
    # A product over those of a row of all elements that are not behind the one in question.
    dims = dims_of(op.input)
    size = graph.expression(dims[axis])
    line = graph.node(
        "Range",
        [graph.literal(0), graph.node("Squeeze", [size]), graph.literal(1)],
    )
    here = graph.node("Unsqueeze", [line, graph.literal([1])])
    other = graph.node("Unsqueeze", [line, graph.literal([0])])
    relation = ("Greater" if reverse else "Less") + ("" if exclusive else "OrEqual")
    taken = graph.node(relation, [other, here])
    behind = graph.literal(list(range(2, 2 + len(dims) - axis - 1)))
    taken = graph.node("Unsqueeze", [taken, behind]) if len(dims) - axis > 1 else taken
    rows = graph.node("Unsqueeze", [x, graph.literal([axis])])
    factors = graph.node("Where", [taken, rows, graph.like(op.input, 1)])
    graph.set(op, graph.node("ReduceProd", [factors, graph.literal([axis + 1])], keepdims=0))


@_emits(reductions.PoolOp)
def _pool(graph: _Graph, op: reductions.PoolOp) -> None:
    if _is_global(op):
        axes = graph.literal(list(range(2, rank_of(op.input))))
        name = {"max": "ReduceMax", "sum": "ReduceSum", "average": "ReduceMean"}[op.kind.data]
        graph.set(op, graph.node(name, [graph.name(op.input), axes], keepdims=1))
        return
    kernel = _static(op.kernel)
    if kernel is None or not is_float(element_type(op.input)):
        graph.fail(op, "windows of symbolic size and pools of integers are not exported")
        return
    graph.set(op, _window_pool(graph, op, kernel[0]))


def _is_global(op: reductions.PoolOp) -> bool:
    """True if the one window is the whole input."""
    pads = _static(op.pads_begin, op.pads_end)
    unpadded = pads is not None and not any(pads[0]) and not any(pads[1])
    dense = set(tensor.ints(op.dilations)) <= {1}
    return unpadded and dense and tuple(op.kernel.data) == dims_of(op.input)[2:]


def _window_pool(graph: _Graph, op: reductions.PoolOp, kernel: Sequence[int]) -> str:
    window: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": tensor.ints(op.strides),
        "dilations": tensor.ints(op.dilations),
    }
    if op.kind.data == "max":
        # Padding as wide as the window is refused by runtimes.
        pads = _static(op.pads_begin, op.pads_end)
        too_wide = pads is not None and any(
            p >= k for values in pads for p, k in zip(values, kernel, strict=True)
        )
        x, amounts = _padded_input(graph, op, -np.inf, explicit=too_wide)
        return graph.node("MaxPool", [x], pads=amounts, **window)
    x, _ = _padded_input(graph, op, explicit=True)
    volume = graph.like(op.input, float(np.prod(kernel)))
    total = graph.node("Mul", [graph.node("AveragePool", [x], **window), volume])
    if op.kind.data == "sum":
        return total
    counted = graph.node("AveragePool", [_counted(graph, op)], **window)
    return graph.node("Div", [total, graph.node("Mul", [counted, volume])])


def _counted(graph: _Graph, op: reductions.PoolOp) -> str:
    """Ones where an element takes part in the count of an average, padded like the input."""
    spatial = dims_of(op.input)[2:]
    begin, end, overhang = op.pads_begin.data, op.pads_end.data, op.overhang.data
    zero, one = graph.like(op.input, 0), graph.like(op.input, 1)
    if op.count_pads.value.data:
        inner = [e - o for e, o in zip(end, overhang, strict=True)]
        sizes = [d + b + e for d, b, e in zip(spatial, begin, inner, strict=True)]
        ones = graph.node("Expand", [one, graph.dims([1, 1, *sizes])])
        amounts = [0, 0, *[0] * len(begin), 0, 0, *overhang]
    else:
        ones = graph.node("Expand", [one, graph.dims([1, 1, *spatial])])
        amounts = [0, 0, *begin, 0, 0, *end]
    return graph.node("Pad", [ones, graph.dims(amounts), zero])


# Control flow


@_emits(control_flow.IfOp)
def _if(graph: _Graph, op: control_flow.IfOp) -> None:
    bodies: list[onnx.GraphProto] = []
    for name, region in (("then", op.then_region), ("else", op.else_region)):
        body = graph.nested()
        body.add_block(region.block)
        body.add_outputs(control_flow.yielded(region))
        bodies.append(body.subgraph(name))
    names = [graph.exporter.fresh("v") for _ in op.results]
    graph.node(
        "If",
        [graph.name(op.condition)],
        outputs=names,
        then_branch=bodies[0],
        else_branch=bodies[1],
    )
    graph.set(op, *names)
    for result in op.results:
        graph.define_symbols_of(result)


@_emits(control_flow.LoopOp)
def _loop(graph: _Graph, op: control_flow.LoopOp) -> None:
    count = None if op.count is None else graph.exporter.fresh("iterations")
    body = _loop_body(graph, op, count is not None)
    limit = "" if op.trip_count is None else graph.name(op.trip_count)
    condition = "" if op.condition is None else graph.name(op.condition)
    inits = [graph.name(value) for value in op.inits]
    names = [graph.exporter.fresh("v") for _ in op.results]
    outputs = names if count is None else [*names, count]
    graph.node("Loop", [limit, condition, *inits], outputs=outputs, body=body)
    graph.set(op, *names)
    for result in op.results[: len(op.inits)]:
        graph.define_symbols_of(result)
    if op.count is not None and count is not None:
        graph.define_symbol(op.count.data, graph.node("Shape", [count]))


def _loop_body(graph: _Graph, op: control_flow.LoopOp, counted: bool) -> onnx.GraphProto:
    """With `counted`, a last scan output has one element an iteration."""
    body = graph.nested()
    number, *carried = op.body.block.args
    going = body.exporter.fresh("going")
    names = [body.exporter.fresh("v") for _ in op.body.block.args]
    body.names.update(zip(op.body.block.args, names, strict=True))
    condition = helper.make_tensor_value_info(going, onnx.TensorProto.BOOL, [])
    body.proto.input.extend([_value_info(names[0], number.type), condition])
    for name, value in zip(names[1:], carried, strict=True):
        body.proto.input.append(_value_info(name, value.type))
    if op.iteration is not None:
        first = body.node("Unsqueeze", [names[0], body.literal([0])])
        body.define_symbol(op.iteration.data, first)
    for value in carried:
        body.define_symbols_of(value)
    body.add_block(op.body.block)
    if op.yielded_condition is None:
        again = body.node("Identity", [going])
    else:
        again = body.node("Reshape", [body.name(op.yielded_condition), body.literal([])])
    body.proto.output.append(helper.make_tensor_value_info(again, onnx.TensorProto.BOOL, []))
    body.add_outputs((*op.yielded_carried, *op.yielded_scans))
    if counted:
        body.add_output(body.node("Identity", [names[0]]), number.type)
    return body.subgraph("body")


@_emits(control_flow.KernelOp)
def _kernel(graph: _Graph, op: control_flow.KernelOp) -> None:
    block = op.body.block
    for argument, value in zip(block.args, op.inputs, strict=True):
        graph.names[argument] = graph.name(value)
    graph.add_block(block)
    graph.set(op, *(graph.name(value) for value in control_flow.yielded(op.body)))
