"""`convert-to-caffe`: core becomes the caffe dialect, for the exporter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter
from lowerdeck.dialects.caffe.ops import CaffeOp, op_class
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.defaults import take_defaults
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.names import NAME, given_name, value_names
from lowerdeck.dialects.core.types import element_type, f32, tensor
from lowerdeck.exporters.caffe.elements import held_as_floats
from lowerdeck.exporters.caffe.nearest import nearest_layer
from lowerdeck.exporters.caffe.net import (
    CONVERTERS,
    DIALECTS,
    FORMULAS,
    Blob,
    Layer,
    Net,
    Weight,
    layers_of,
)
from lowerdeck.exporters.errors import ExportError
from lowerdeck.passes.legalize.legalizer import RefusalError, refuse
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.provenance import describe, source_file, source_names

_TOPICS = (
    "elementwise",
    "linear",
    "movement",
    "normalization",
    "places",
    "pooling",
    "products",
    "recurrent",
    "reductions",
    "softmax",
    "templates",
)
"""The modules that register converters and formulas."""


@dataclass(frozen=True)
class ConvertToCaffePass(ModulePass):
    """
    Turn core into layers of Caffe, by one sweep back that plans them and one forward that adds
    them.

    - batch_norm(x) -> Scale(BatchNorm(x)) [constant parameters; without Scale if it is 1 and 0]
    - conv(x, w) + b -> Convolution, conv_transpose -> Deconvolution, x @ w + b -> InnerProduct
      [constant weights]; what their windows have beyond the same padding on both sides is cut
    - w @ x -> Convolution, with groups if there are several w [constant]; x @ y -> Scale or Eltwise
      of both, repeated by Convolution with ones, for all terms, whose sums are Convolution or
      InnerProduct with ones [up to 2^26 terms]; a transposed x or y is read as it is
    - pool -> Pooling with its windows rounded up; those that core does not have are cut, and what
      averages are divided by is corrected; of volumes, one of planes and one of columns
    - pool [dilations] -> Reshape, Pooling of every so-many-th element, Reshape; where a window that
      begins with NaN is NaN, Eltwise of a Slice for each element of a window [up to 64]
    - x * s + t, (x + t) * s -> Power or Scale, x + y -> Eltwise or Bias, and so on, by what
      broadcasts
    - split, slice -> Slice, and Silence for the parts that nothing reads; broadcast -> Tile
    - pad(x) -> Concat of numbers and x, or [other modes, few parts] of x and parts of a Slice of it
    - softmax(x, log) -> x - m - log(sum(exp(x - m))), m by Pooling, sums by Convolution with ones
    - arg_reduce, top_k -> ArgMax, or the second top of Pooling, whose first place of equal elements
      is core's; gather -> Embed, BatchReindex, or Slice and Concat of constant places
    - transpose -> Permute [dialect ssd], or Slice, Reshape and Concat [of few parts]
    - formulas that a layer computes as a whole: ReLU, PReLU, ELU, BNLL, LRN, ...
    - LSTM, RNN, and the second top of Pooling, if what such a layer becomes in core is just what is
      there; the unrolled steps of another LSTM -> LSTM with a `cont` of its own, and its states
      [expose_hidden] if they are no zeros before the first step, or the last cell is read

    A result that is also read in the net is copied by a Power: outputs are blobs that no layer
    reads; so is the only one if a Silence would be behind it, so that the net ends with the result.
    Places, constants and inputs of other elements than f32 are f32 if that changes no number
    (`exporters/caffe/elements.py`), which a warning tells of inputs and outputs. ExportError lists
    every node without a form in Caffe, or in the `dialect` (bvlc or ssd), and the layer that is
    nearest to it.
    """

    name = "convert-to-caffe"

    has_floats_only: ClassVar[bool] = True
    """All inputs and outputs are f32 afterwards, also those that hold other numbers before."""

    dialect: str = "bvlc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.dialect not in DIALECTS:
            known = ", ".join(DIALECTS)
            raise ExportError(f"{self.name}: found dialect '{self.dialect}', expected {known}")
        for topic in _TOPICS:
            import_module(f"lowerdeck.exporters.caffe.{topic}")
        functions = [each for each in op.body.block.ops if isinstance(each, FuncOp)]
        plans = [
            _Plan(function, Net(self.dialect, held_as_floats(function.body.block)))
            for function in functions
        ]
        if problems := [problem for plan in plans for problem in plan.problems]:
            raise ExportError("\n".join(problems))
        for plan in plans:
            if others := list(plan.other_elements()):
                listed = ", ".join(others)
                options_of(ctx).warn(
                    f"the net has f32, which is all that Caffe's blobs hold, for {listed}"
                )
            if optional := take_defaults(plan.function):
                options_of(ctx).warn(
                    f"inputs of a net have no defaults, so {', '.join(optional)} must be given; "
                    "--set makes a constant of an input"
                )
            plan.replace()


class _Plan:
    """The layers of one function."""

    def __init__(self, function: FuncOp, net: Net) -> None:
        self.function, self.net = function, net
        self.problems: list[str] = []
        self._plans: dict[Operation, Sequence[Blob]] = {}
        self._needed = net.needed
        self._refused: set[object] = set()
        self._results: list[Blob] = []
        block = function.body.block
        last = block.last_op
        assert isinstance(last, ReturnOp)
        self._outputs(last)
        for op in reversed(list(block.ops)):
            if isinstance(op, ReturnOp | ConstantOp) or self._needed.isdisjoint(op.results):
                continue
            self._visit(op)
        self.problems += self._inputs(block)
        self.problems.reverse()

    # Planning

    def _inputs(self, block: Block) -> Iterable[str]:
        """What is wrong with the arguments, which blobs of known shape hold."""
        names = value_names(self.function.arg_attrs, len(block.args))
        for name, argument in zip(names, block.args, strict=True):
            try:
                self.net.blob(argument)
            except RefusalError as error:
                yield f"{_file(self.function)}input '{name}': {error}"

    def _outputs(self, last: ReturnOp) -> None:
        names = value_names(self.function.res_attrs, len(last.operands))
        for name, value in zip(names, last.operands, strict=True):
            try:
                blob = self.net.blob(value)
            except RefusalError as error:
                # What another op makes is listed with that op.
                if isinstance(value.owner, ConstantOp):
                    self.problems.append(f"{_file(self.function)}output '{name}': {error}")
                self._needed.add(value)
                continue
            self._results.append(blob)
            self._need([blob])

    def _visit(self, op: Operation) -> None:
        self.net.op = op
        try:
            plan = self._planned(op)
            # A formula gives something for other results, but no layer makes them.
            for result in self._needed.intersection(op.results):
                self.net.require_floats(result)
        except RefusalError as error:
            self._refuse(op, str(error))
            return
        blobs = [plan] if isinstance(plan, Blob) else plan
        shapes = [self.net.shape(result) for result in op.results]
        assert [blob.shape for blob in blobs] == shapes, f"{op.name}: {blobs}, expected {shapes}"
        self._plans[op] = blobs
        self._need(
            blob for blob, result in zip(blobs, op.results, strict=True) if result in self._needed
        )

    def _refuse(self, op: Operation, problem: str) -> None:
        """List an op, unless a later one of its node is listed; what is before it is visited."""
        if (node := tuple(source_names(op)) or op) not in self._refused:
            self.problems.append(f"{describe(op)}: {problem}")
        self._refused.add(node)
        self._needed.update(op.operands)

    def _planned(self, op: Operation) -> Blob | Sequence[Blob]:
        for result in op.results:
            self.net.shape(result)
        for formula in FORMULAS.get(type(op), ()):
            if (plan := formula(self.net, op)) is not None:
                return plan
        if (converter := CONVERTERS.get(type(op))) is None:
            nearest = nearest_layer(op)
            aside = "" if nearest is None else f" (the nearest is {nearest})"
            refuse(
                f"an op that no layer of Caffe computes{aside}",
                next_step="end the model before it with --output, or export ONNX",
            )
        for value in (*op.operands, *op.results):
            self.net.require_floats(value)
        return converter(self.net, op)

    def _need(self, blobs: Iterable[Blob]) -> None:
        """The values of core that blobs are computed from."""
        blobs = list(blobs)
        read = [*blobs, *(bottom for layer in layers_of(blobs) for bottom in layer.bottoms)]
        self._needed.update(blob.value for blob in read if blob.value is not None)

    # Replacing

    def other_elements(self) -> Iterable[str]:
        """The inputs and outputs that are not f32 in core."""
        block = self.function.body.block
        last = block.last_op
        assert isinstance(last, ReturnOp)
        for kind, attributes, values in (
            ("input", self.function.arg_attrs, block.args),
            ("output", self.function.res_attrs, last.operands),
        ):
            names = value_names(attributes, len(values))
            for name, value in zip(names, values, strict=True):
                if (element := element_type(value)) != f32:
                    yield f"{kind} '{name}' ({element})"

    def replace(self) -> None:
        """Give the function the planned body."""
        old = self.function.body.block
        block = Block(arg_types=[tensor(f32, self.net.shape(value)) for value in old.args])
        names = value_names(self.function.arg_attrs, len(old.args))
        emitter = _Emitter(
            block, dict(zip(block.args, names, strict=True)), _computing(self._plans)
        )
        for argument, new in zip(old.args, block.args, strict=True):
            new.name_hint, new.location = argument.name_hint, argument.location
            emitter.values[argument] = new
        for op in old.ops:
            if (blobs := self._plans.get(op)) is not None:
                emitter.add(op, blobs)
        last = old.last_op
        assert isinstance(last, ReturnOp)
        results = emitter.results(last, self._results)
        end = ReturnOp(*results)
        end.location = last.location
        block.add_op(end)
        emitter.finish(end)
        types = [value.type for value in end.operands]
        self.function.function_type = FunctionType.from_lists(block.arg_types, types)
        region = self.function.body
        region.add_block(block)
        region.detach_block(old)
        old.erase(safe_erase=False)


class _Emitter:
    """Adds planned layers to a block."""

    def __init__(
        self, block: Block, inputs: Mapping[SSAValue, str], computing: Collection[str]
    ) -> None:
        self.block = block
        self._inputs = inputs
        self._computing = computing
        self.values: dict[SSAValue, SSAValue] = {}
        self._layers: dict[Layer, CaffeOp] = {}
        self._names = set(inputs.values())

    def add(self, op: Operation, blobs: Sequence[Blob]) -> None:
        """The layers of an op, and what stands for its results."""
        needed = [blob for blob in blobs if blob.value is None or blob.value in self.values]
        for layer in layers_of(needed):
            if layer not in self._layers:
                self._add(layer, op)
        for result, blob in zip(op.results, blobs, strict=True):
            if blob in needed:
                value = self.values[result] = self._value(blob)
                if value.name_hint is None:
                    value.name_hint = result.name_hint

    def _add(self, layer: Layer, op: Operation) -> None:
        origin = op if layer.origin is None else layer.origin
        name = self._fresh(self._layer_name(layer, origin))
        constants = [_constant(weight) for weight in layer.weights]
        cls = op_class(layer.type)
        assert cls is not None, layer.type
        bottoms = [self._value(bottom) for bottom in layer.bottoms]
        new = cls(layer.parameter, bottoms, [each.result for each in constants], len(layer.tops))
        for result, shape in zip(list(new.results), layer.tops, strict=True):
            Rewriter.replace_value_with_new_type(result, tensor(f32, shape))
        new.attributes[NAME] = StringAttr(name)
        for each in (*constants, new):
            each.location = origin.location
            self.block.add_op(each)
        self._layers[layer] = new

    def _value(self, blob: Blob) -> SSAValue:
        if blob.layer is None:
            assert blob.value is not None
            return self.values[blob.value]
        return self._layers[blob.layer].results[blob.index]

    def _layer_name(self, layer: Layer, origin: Operation) -> str:
        """The name of the node that a layer is part of, and what tells it from others of it."""
        if layer.name is not None and layer.name not in self._computing:
            return layer.name
        kind = layer.type.lower()
        name = next(iter(source_names(origin, 1)), kind)
        is_aside = isinstance(origin, MovesElements) and name in self._computing
        suffix = layer.suffix or (kind if is_aside else "")
        return f"{name}/{suffix}" if suffix else name

    def _fresh(self, name: str) -> str:
        """The name, with a number if it is taken."""
        found, count = name, 1
        while found in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found

    def results(self, last: ReturnOp, blobs: Sequence[Blob]) -> list[SSAValue]:
        """The results; constants among them get their layers."""
        for layer in layers_of(blobs):
            if layer not in self._layers:
                self._add(layer, last)
        return [self._value(blob) for blob in blobs]

    def finish(self, end: ReturnOp) -> None:
        """
        Results that are read elsewhere are copies; what nothing reads is silenced.

        The net ends with the result if there is one, because some readers of nets take what the
        last layer makes: if that is a Silence, there is a copy of the result behind it.
        """
        for index, value in enumerate(end.operands):
            if isinstance(value, BlockArgument) or not value.has_one_use():
                # No Split: readers of nets that count the tops which are read take it for one top.
                end.operands[index] = self._insert(value, "Power", 1, "copy").results[0]
        unread = [value for value in self.block.args if value.first_use is None]
        for op in list(self.block.ops):
            if isinstance(op, CaffeOp):
                unread += [value for value in op.results if value.first_use is None]
        for value in unread:
            self._insert(value, "Silence", 0, "silence")
        last = end.prev_op
        if last is not None and not last.results and len(end.operands) == 1:
            copy = self._insert(end.operands[0], "Power", 1, "copy")
            copy.detach()
            self.block.insert_op_before(copy, end)
            end.operands[0] = copy.results[0]

    def _insert(self, value: SSAValue, type_: str, tops: int, suffix: str) -> CaffeOp:
        """A layer without parameters, right behind what makes a value."""
        cls = op_class(type_)
        assert cls is not None
        new = cls(LayerParameter(type=type_), [value], (), tops)
        for result in list(new.results):
            Rewriter.replace_value_with_new_type(result, value.type)
        owner = value.owner
        if isinstance(owner, Operation):
            new.location, name = owner.location, given_name(owner, type_.lower())
            self.block.insert_op_after(new, owner)
        else:
            assert isinstance(value, BlockArgument)
            new.location, name = value.location, self._inputs[value]
            first = self.block.first_op
            assert first is not None
            self.block.insert_op_before(new, first)
        new.attributes[NAME] = StringAttr(self._fresh(f"{name}/{suffix}"))
        return new


def _computing(ops: Iterable[Operation]) -> set[str]:
    """The names of nodes that compute: what only moves elements for them is not called so."""
    return {name for op in ops if not isinstance(op, MovesElements) for name in source_names(op, 1)}


def _constant(weight: Weight) -> ConstantOp:
    return ConstantOp(weight.value, tensor(f32, weight.shape))


def _file(function: FuncOp) -> str:
    file = source_file(function)
    return "" if file is None else f"{file}: "
