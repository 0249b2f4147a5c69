"""One-to-one import of Caffe nets: nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter, Phase
from lowerdeck.dialects.caffe.layers import (
    INPUT_TYPES,
    PROPOSALS,
    TRAINING_LAYERS,
    TRAINING_TYPES,
    count_problem,
    python_layer,
)
from lowerdeck.dialects.caffe.ops import op_class
from lowerdeck.dialects.caffe.shapes import Shape, ShapeError, check_shape, layer_shapes
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import f32, tensor
from lowerdeck.frontends.caffe.memory import SharedMemory, is_in_place
from lowerdeck.frontends.caffe.parse import parse_prototxt
from lowerdeck.frontends.caffe.transform import with_transformations
from lowerdeck.frontends.caffe.upgrade import Upgrade, is_included, state_for_tests
from lowerdeck.frontends.caffe.weights import Slot, Weights, find_weights
from lowerdeck.frontends.errors import FrontendError, Problem


def import_net(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    stages: Sequence[str] = (),
    transform: Sequence[str] = (),
) -> ModuleOp:
    """
    The module for a net in its test phase: `func.func @main` with one caffe op for each layer.

    The tops of Input layers are arguments, and so are those of layers that read data if
    `input_shapes` gives their shapes; data arrive there as they leave the layer, after its
    transformations. `input_shapes` replaces other inputs' shapes. Results are the blobs that no
    layer reads in alphabetical order, or `outputs`: any blobs, by their last values; layers that
    these do not need are left out. `weights` is the caffemodel; without it, the one beside the net
    is used. `stages` are those of the net's state beside its own. The inputs `transform` are data
    before the transformations that the net says of them, which become layers. FrontendError lists
    everything that prevents the import.
    """
    file = os.fspath(path)
    shapes = {name: tuple(shape) for name, shape in (input_shapes or {}).items()}
    importer = _Importer(file, None if weights is None else os.fspath(weights), shapes)
    return importer.run(outputs, stages, transform)


@dataclass
class _Blob:
    """One value of a blob: a layer that works in place makes a new one."""

    name: str
    shape: Shape | None = None
    """None if it is not known, because something was wrong before."""
    is_read: bool = False
    value: SSAValue | None = None


@dataclass
class _Layer:
    """A layer of the net, with the values that it reads and makes."""

    parameter: LayerParameter
    is_input: bool
    bottoms: list[_Blob] = field(default_factory=list[_Blob])
    tops: list[_Blob] = field(default_factory=list[_Blob])
    slots: list[Slot] = field(default_factory=list[Slot])
    old: _Blob | None = None
    """The blob whose shape a Reshape gives its top, that no file has: it changed in place."""


class _Importer:
    """The import of one net."""

    def __init__(self, file: str, weights: str | None, shapes: dict[str, Shape]) -> None:
        self.file = file
        self.weights_file = weights
        self.shapes = shapes
        self.file_location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.last: dict[str, _Blob] = {}
        self.memory = SharedMemory()
        self.layers: list[_Layer] = []

    def run(
        self, outputs: Sequence[str] | None, stages: Sequence[str], transform: Sequence[str]
    ) -> ModuleOp:
        parameters = with_transformations(
            self._parameters(stages), transform, self.file, self.shapes, self.problems
        )
        self._raise_problems()
        for parameter in parameters:
            self._connect(parameter)
        results = self._results(self.layers, outputs)
        layers = _needed(self.layers, results if outputs is not None else None)
        self._check_inputs(layers)
        weights = Weights(self.file)
        for layer in layers:
            self._infer(layer, weights)
        if not results and not self.problems:
            self._report(None, "the net has no output: every blob is read by a layer")
        self._raise_problems()
        self._load(weights)
        self._raise_problems()
        return self._module(layers, results, weights)

    def _report(self, layer: LayerParameter | None, message: str) -> None:
        name, type_ = ("", "") if layer is None else (layer.name, layer.type)
        self.problems.append(Problem(self.file, name, type_, message))

    def _raise_problems(self) -> None:
        if self.problems:
            raise FrontendError(self.problems)

    # Layers and the blobs between them

    def _parameters(self, stages: Sequence[str]) -> list[LayerParameter]:
        """The layers that are part of the net in its test phase."""
        net = parse_prototxt(self.file)
        upgrade = Upgrade(self.file)
        layers = upgrade.layers(net)
        self.problems += upgrade.problems
        self._raise_problems()
        for layer in layers:
            if layer.include and layer.exclude:
                self._report(layer, "has rules to include and to exclude it, expected one kind")
        state = state_for_tests(net)
        state.stage.extend(stages)
        included = [layer for layer in layers if is_included(layer, state)]
        if not included:
            self._report(None, "the net has no layer in its test phase")
        self._raise_problems()
        return included

    def _connect(self, parameter: LayerParameter) -> None:
        """Add the layer with the values that its bottoms have now, and new ones for its tops."""
        layer = _Layer(parameter, self._is_input(parameter))
        for name in parameter.bottom:
            if name not in self.last:
                self._report(parameter, f"no layer before it makes its bottom '{name}'")
                self.last[name] = _Blob(name)
            layer.bottoms.append(self._current(name))
            layer.bottoms[-1].is_read = True
        for index, name in enumerate(parameter.top):
            if name in self.last and not is_in_place(parameter, index):
                self._report(parameter, f"its top '{name}' is the top of another layer already")
            self.last[name] = _Blob(name)
            layer.tops.append(self.last[name])
        self.memory.add(parameter)
        self.layers.append(layer)

    def _current(self, name: str) -> _Blob:
        """The value that a blob has now, also if a layer changed another one in its memory."""
        old = self.last[name]
        if (changed := self.memory.changed_with(name)) is not None:
            parameter = LayerParameter(name=name, type="Reshape", bottom=[changed], top=[name])
            self.last[name] = _Blob(name, is_read=old.is_read)
            tops = [self.last[name]]
            self.layers.append(_Layer(parameter, False, [self.last[changed]], tops, old=old))
        return self.last[name]

    def _is_input(self, layer: LayerParameter) -> bool:
        """True for layers that bring data in, and for others without bottoms on request."""
        if layer.type in INPUT_TYPES:
            return True
        is_given = all(name in self.shapes for name in layer.top)
        return not layer.bottom and bool(layer.top) and is_given

    def _results(self, layers: Sequence[_Layer], outputs: Sequence[str] | None) -> list[_Blob]:
        if outputs is None:
            blobs = [self._current(name) for name, blob in self.last.items() if not blob.is_read]
            unread_data = {id(top) for layer in layers for top in self._left_out(layer)}
            results = [blob for blob in blobs if id(blob) not in unread_data]
            return sorted(results, key=lambda blob: blob.name)
        for name in outputs:
            if name not in self.last:
                known = ", ".join(f"'{blob}'" for blob in list(self.last)[-10:])
                self._report(None, f"no blob is named '{name}'; the last blobs are {known}")
        return [self._current(name) for name in outputs if name in self.last]

    def _left_out(self, layer: _Layer) -> list[_Blob]:
        """The data, as labels, that a layer brings in but that is neither read nor asked for."""
        if not layer.is_input or layer.parameter.type == "Input":
            return []
        return [
            blob
            for blob in layer.tops
            if self.last[blob.name] is blob and not blob.is_read and blob.name not in self.shapes
        ]

    # Shapes

    def _check_inputs(self, layers: Sequence[_Layer]) -> None:
        names = [blob.name for layer in layers if layer.is_input for blob in layer.tops]
        for name, shape in self.shapes.items():
            if name not in names:
                known = ", ".join(f"'{name}'" for name in names[:10]) or "none"
                self._report(None, f"a shape is given for '{name}', but the inputs are {known}")
            elif any(size < 0 for size in shape):
                self._report(None, f"the shape given for '{name}' is negative")

    def _infer(self, layer: _Layer, weights: Weights) -> None:
        """Give the tops their shapes, announce the layer's weights, report what is wrong."""
        if layer.is_input:
            self._infer_input(layer)
            return
        parameter = layer.parameter
        if op_class(parameter.type) is None:
            is_known = parameter.type in TRAINING_TYPES
            what = (
                "the layer is for training only" if is_known else "the layer type is not supported"
            )
            self._report(parameter, what)
            return
        if parameter.type == "Python" and python_layer(parameter) != PROPOSALS:
            found = python_layer(parameter)
            what = "for training only" if found in TRAINING_LAYERS else "not supported"
            self._report(parameter, f"the Python layer '{'.'.join(found)}' is {what}")
            return
        if problem := count_problem(parameter, len(layer.bottoms), len(layer.tops)):
            self._report(parameter, problem)
            return
        if parameter.phase == Phase.TRAIN and parameter.HasField("phase"):
            self._report(parameter, "the layer is fixed to the phase TRAIN, expected TEST")
        fillers = parameter.dummy_data_param.data_filler
        if parameter.type == "DummyData" and any(each.type != "constant" for each in fillers):
            tops = " ".join(f"--input-shape {blob.name}=..." for blob in layer.tops)
            self._report(parameter, f"its data are random; make them inputs with {tops}")
        if layer.old is not None and layer.old.shape is not None:
            parameter.reshape_param.shape.dim[:] = layer.old.shape
        bottoms = [blob.shape for blob in layer.bottoms if blob.shape is not None]
        if len(bottoms) != len(layer.bottoms):
            return  # what was wrong before is reported already
        try:
            shapes = layer_shapes(parameter, bottoms, len(layer.tops))
        except ShapeError as error:
            self._report(parameter, str(error))
            return
        for blob, shape in zip(layer.tops, shapes.tops, strict=True):
            blob.shape = shape
        layer.slots = weights.add_layer(parameter, shapes.blobs)

    def _infer_input(self, layer: _Layer) -> None:
        parameter = layer.parameter
        left_out = {id(blob) for blob in self._left_out(layer)}
        layer.tops = [blob for blob in layer.tops if id(blob) not in left_out]
        if parameter.bottom:
            self._report(parameter, f"found {len(parameter.bottom)} bottoms, expected 0")
        known = self._known_shapes(parameter)
        for blob in layer.tops:
            shape = self.shapes.get(blob.name, known.get(blob.name))
            if shape is None:
                self._report(
                    parameter,
                    f"nothing says the shape of '{blob.name}'; "
                    f"give it with --input-shape {blob.name}=...",
                )
                continue
            try:
                check_shape(shape)
            except ShapeError as error:
                self._report(parameter, str(error))
                continue
            blob.shape = shape

    def _known_shapes(self, layer: LayerParameter) -> dict[str, Shape]:
        """The shapes of the tops that the parameters of an input layer say."""
        if layer.type == "Input":
            shapes = [tuple(shape.dim) for shape in layer.input_param.shape]
            if len(shapes) not in (0, 1, len(layer.top)):
                expected = f"1 or {len(layer.top)}"
                self._report(layer, f"found {len(shapes)} shapes, expected {expected}")
            elif len(shapes) == 1:
                shapes *= len(layer.top)
            return dict(zip(layer.top, shapes, strict=False))
        if layer.type == "MemoryData":
            p = layer.memory_data_param
            shapes = [(p.batch_size, p.channels, p.height, p.width), (p.batch_size,)]
            return dict(zip(layer.top, shapes, strict=False))
        return {}

    # Weights

    def _load(self, weights: Weights) -> None:
        path = self.weights_file
        if path is None and weights.is_needed:
            path = find_weights(self.file)
        if path is not None:
            weights.load(path)
        self.problems += weights.problems
        known = len(weights.problems)
        weights.report_missing(path)
        self.problems += weights.problems[known:]

    # The module

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(name), self.file_location)

    def _module(
        self, layers: Sequence[_Layer], results: Sequence[_Blob], weights: Weights
    ) -> ModuleOp:
        block = Block()
        inputs = [blob for layer in layers if layer.is_input for blob in layer.tops]
        for blob in inputs:
            assert blob.shape is not None
            argument = block.insert_arg(tensor(f32, blob.shape), len(block.args))
            argument.location = self._locate(blob.name)
            blob.value = argument
        for layer in layers:
            if not layer.is_input:
                block.add_ops(self._ops(layer, weights))
        values = [blob.value for blob in results if blob.value is not None]
        last = func.ReturnOp(*values)
        block.add_op(last)
        main = func.FuncOp(
            "main",
            (block.arg_types, last.arguments.types),
            Region(block),
            arg_attrs=named(blob.name for blob in inputs),
            res_attrs=named(blob.name for blob in results),
        )
        main.location = last.location = self.file_location
        return ModuleOp([main])

    def _ops(self, layer: _Layer, weights: Weights) -> list[Operation]:
        """The op of a layer, after the constants that are its weights."""
        parameter = layer.parameter
        constants: list[ConstantOp] = []
        for slot in layer.slots:
            value = weights.value(slot)
            assert value is not None
            constants.append(ConstantOp(value, tensor(f32, slot.shape)))
        cls = op_class(parameter.type)
        assert cls is not None
        bottoms = [blob.value for blob in layer.bottoms if blob.value is not None]
        blobs = [constant.result for constant in constants]
        op = cls(parameter, bottoms, blobs, len(layer.tops))
        for blob, result in zip(layer.tops, op.results, strict=True):
            blob.value = result
        ops: list[Operation] = [*constants, op]
        for each in ops:
            each.location = self._locate(parameter.name)
        return ops


def _needed(layers: Sequence[_Layer], results: Sequence[_Blob] | None) -> list[_Layer]:
    """The layers that the results depend on and all input layers; all layers without results."""
    if results is None:
        return list(layers)
    needed = {id(blob) for blob in results}
    kept: list[_Layer] = []
    for layer in reversed(layers):
        if layer.is_input or not needed.isdisjoint(map(id, layer.tops)):
            needed.update(map(id, layer.bottoms))
            if layer.old is not None:
                needed.add(id(layer.old))
            kept.append(layer)
    return kept[::-1]
