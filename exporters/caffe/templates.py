"""
Layers that are many ops of core, recognized by what they become there.

A few ops give a guess of the parameters. The layer of the guess is legalized and simplified as the
model was, and only if the same ops come out of it is the guess right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter, PoolingParameter, RecurrentParameter
from lowerdeck.dialects.caffe.ops import op_class
from lowerdeck.dialects.caffe.shapes import Shape, ShapeError, layer_shapes
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from lowerdeck.dialects.core.types import f32, static_shape, tensor
from lowerdeck.exporters.caffe.net import Blob, Net, Weight, recognizes
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.driver import producer
from lowerdeck.passes.machinery.pipeline import PASSES, legalize, passes_before_export
from lowerdeck.passes.machinery.values import number

_MOST_OPS = 4096
"""The ops before one that are looked at for a guess."""


class Template(NamedTuple):
    """A layer in core: its arguments (bottoms, then blobs) and results, inside of a module."""

    module: ModuleOp
    arguments: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]


@lru_cache(maxsize=64)
def _template(serialized: bytes, bottoms: tuple[Shape, ...], tops: int) -> Template | None:
    layer = LayerParameter.FromString(serialized)
    try:
        blobs = layer_shapes(layer, bottoms, tops).blobs
    except ShapeError:
        return None
    block = Block(arg_types=[tensor(f32, shape) for shape in (*bottoms, *blobs)])
    cls = op_class(layer.type)
    assert cls is not None
    count = len(bottoms)
    op = cls(layer, list(block.args)[:count], list(block.args)[count:], tops)
    end = ReturnOp(*op.results)
    block.add_ops([op, end])
    types = [value.type for value in end.operands]
    function = FuncOp("main", (block.arg_types, types), Region(block))
    module = ModuleOp([function])
    context = LowerdeckContext()
    for name in (*legalize(), *passes_before_export()):
        PASSES[name]()().apply(context, module)
    last = function.body.block.last_op
    assert last is not None
    return Template(module, tuple(function.body.block.args), tuple(last.operands))


class _Bound(NamedTuple):
    """What an argument stands for: a value, or one that is transposed or reshaped before."""

    value: SSAValue
    is_transposed: bool = False


class _Matcher:
    """Compares ops with those of a template, whose arguments stand for any values."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.bound: dict[SSAValue, _Bound] = {}

    def matches(self, pattern: SSAValue, value: SSAValue) -> bool:
        """True if a value is computed as one of the template is."""
        pending, seen = [(pattern, value)], set[tuple[SSAValue, SSAValue]]()
        while pending:
            pair = pending.pop()
            if pair in seen:
                continue
            seen.add(pair)
            if (more := self._operands(*pair)) is None:
                return False
            pending += more
        return True

    def _operands(
        self, pattern: SSAValue, value: SSAValue
    ) -> list[tuple[SSAValue, SSAValue]] | None:
        """What has to match as well; None if nothing helps."""
        if pattern.type != value.type:
            return None
        if isinstance(pattern, BlockArgument):
            return [] if self._bind(pattern, _Bound(value)) else None
        ours, theirs = pattern.owner, value.owner
        assert isinstance(ours, Operation)
        if isinstance(ours, TransposeOp | ReshapeOp) and isinstance(ours.input, BlockArgument):
            moves = isinstance(ours, TransposeOp)
            if moves and isinstance(theirs, ConstantOp):
                return [] if self._bind(ours.input, _Bound(value, True)) else None
            is_same = isinstance(theirs, ReshapeOp) and theirs.input.type == ours.input.type
            if not moves and not is_same:
                return [] if self._bind(ours.input, _Bound(value)) else None
        if not isinstance(theirs, Operation) or not _is_same_op(ours, theirs):
            return None
        if ours.results.index(pattern) != theirs.results.index(value):
            return None
        return list(zip(ours.operands, theirs.operands, strict=True))

    def _bind(self, argument: SSAValue, bound: _Bound) -> bool:
        return self.bound.setdefault(argument, bound) == bound

    def blob(self, net: Net, index: int) -> Blob | None:
        """What a bottom stands for."""
        bound = self.bound.get(self.template.arguments[index])
        if bound is None or bound.is_transposed:
            return None
        shape = static_shape(self.template.arguments[index])
        return None if shape is None else net.reshaped(net.blob(bound.value), shape)

    def weight(self, net: Net, index: int) -> Weight | None:
        """The constant that a blob stands for."""
        bound = self.bound.get(self.template.arguments[index])
        array = None if bound is None else net.array(bound.value)
        if bound is None or array is None:
            return None
        if bound.is_transposed:
            return Weight.of(np.ascontiguousarray(array.T))
        return net.weight(bound.value, "a weight")


def _is_same_op(ours: Operation, theirs: Operation) -> bool:
    return (
        type(ours) is type(theirs)
        and ours.properties == theirs.properties
        and ours.result_types == theirs.result_types
        and len(ours.operands) == len(theirs.operands)
        and not ours.regions
    )


def _before(value: SSAValue) -> Iterator[Operation]:
    """The ops that a value depends on, nearest first, up to a number of them."""
    pending, seen = [value], set[Operation]()
    for current in pending:
        op = current.owner
        if not isinstance(op, Operation) or op in seen or len(seen) == _MOST_OPS:
            continue
        seen.add(op)
        yield op
        pending.extend(op.operands)


def _matched(
    layer: LayerParameter, bottoms: Sequence[Shape], tops: int, top: int, value: SSAValue
) -> _Matcher | None:
    """What the arguments of a layer stand for, if a value is one of its tops."""
    serialized = layer.SerializeToString(deterministic=True)
    template = _template(serialized, tuple(bottoms), tops)
    if template is None:
        return None
    matcher = _Matcher(template)
    return matcher if matcher.matches(template.results[top], value) else None


# Recurrent layers


@recognizes(ConcatOp)
def _recurrent(net: Net, op: ConcatOp) -> Blob | None:
    """An LSTM or RNN layer whose loop is unrolled"""
    rows = [producer(part, ReshapeOp) for part in op.inputs]
    shape = net.shape(op.result)
    if op.axis.data != 0 or None in rows or len(shape) != 3 or len(rows) != shape[0]:
        return None
    time, batch, size = shape
    for found in _before(op.result):
        if not isinstance(found, MatmulOp) or net.shape(found.lhs)[0] != time * batch:
            continue
        gates = net.shape(found.result)[-1]
        if gates not in (4 * size, size):
            return None
        parameter = RecurrentParameter(num_output=size)
        type_ = "LSTM" if gates == 4 * size else "RNN"
        layer = LayerParameter(type=type_, recurrent_param=parameter)
        bottoms = [(time, batch, net.shape(found.lhs)[-1]), (time, batch)]
        matcher = _matched(layer, bottoms, 1, 0, op.result)
        return None if matcher is None else _layer(net, layer, matcher, 2)
    return None


def _layer(net: Net, layer: LayerParameter, matcher: _Matcher, bottoms: int) -> Blob | None:
    count = len(matcher.template.arguments)
    blobs = [matcher.blob(net, index) for index in range(bottoms)]
    weights = [matcher.weight(net, index) for index in range(bottoms, count)]
    known = [blob for blob in blobs if blob is not None]
    constants = [weight for weight in weights if weight is not None]
    if len(known) < len(blobs) or len(constants) < len(weights):
        return None
    size = layer.recurrent_param.num_output
    return net.layer(layer.type, known, constants, num_output=size)


# Places of maxima


@recognizes(e.SelectOp)
def _mask(net: Net, op: e.SelectOp) -> Blob | None:
    """The second top of a Pooling layer: where in its plane the maximum of each window is, or -1"""
    if number(op.on_false) != -1 or producer(op.on_true, e.CastOp) is None:
        return None
    slices = [each for each in _before(op.result) if isinstance(each, SliceOp)]
    if not slices or len({each.input for each in slices}) != 1:
        return None
    source, pad = slices[0].input, (0, 0)
    steps = slices[0].steps.data[2:]
    reach = [[each.starts.data[axis].value or 0 for each in slices] for axis in (2, 3)]
    if len(net.shape(source)) != 4 or len({each.steps for each in slices}) != 1:
        return None
    if (padding := producer(source, PadOp)) is not None:
        low = [dim.value or 0 for dim in padding.begin.data]
        source, pad = padding.input, (low[2], low[3])
    parameter = PoolingParameter(
        kernel_h=max(reach[0]) + 1,
        kernel_w=max(reach[1]) + 1,
        stride_h=steps[0].value or 1,
        stride_w=steps[1].value or 1,
        pad_h=pad[0],
        pad_w=pad[1],
    )
    layer = LayerParameter(type="Pooling", pooling_param=parameter)
    if _matched(layer, [net.shape(source)], 2, 1, op.result) is None:
        return None
    fields = {field.name: value for field, value in parameter.ListFields()}
    return net.layers("Pooling", [net.blob(source)], tops=2, pool=PoolingParameter.MAX, **fields)[1]
