"""
Import of a model: one keras op for each call of a layer.

Models in models are inlined, and layers that call others are taken apart. Masks that Keras passes
along with values become values of their own. What a stateful layer remembers is an input that
holds it before the call, and an output after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnitAttr,
    UnrankedTensorType,
)
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import STATES, named
from lowerdeck.dialects.core.types import element_named, element_of, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.keras.classes import INACTIVE
from lowerdeck.dialects.keras.ops import Operand, op_class
from lowerdeck.dialects.keras.options import problems_of
from lowerdeck.dialects.keras.policies import policy_of
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.keras.calls import Tensor, inputs_of, nodes_of, outputs_of, shifted
from lowerdeck.frontends.keras.layers import CELLS, WRAPPERS, Layer, leaves, root
from lowerdeck.frontends.keras.masks import Masks
from lowerdeck.frontends.keras.storage import Array, Stored, open_model
from lowerdeck.frontends.keras.variables import Variable, variables_of
from lowerdeck.frontends.symbols import Symbols

_UNSAFE = frozenset({"Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"})
_WITH_LAYERS = WRAPPERS | {"Bidirectional", "RNN", "InputLayer"}
_RECURRENT = frozenset("LSTM GRU SimpleRNN ConvLSTM1D ConvLSTM2D ConvLSTM3D RNN".split())
_MASKED = frozenset({"Softmax", "MultiHeadAttention", "GroupQueryAttention"})
"""Layers whose shares are zero, since Keras 3.10, where a mask leaves out everything."""

_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


def import_model(
    path: str,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module of a model: `func.func @main`.

    Arguments are the model's inputs, then its states; results its outputs, or the first results of
    the layers `outputs`, then its states. FrontendError lists everything that prevents the import.
    """
    stored, model = read_model(path)
    importer = _Importer(stored)
    return _reading(path, lambda: importer.run(model, outputs, input_shapes or {}))


def read_model(path: str) -> tuple[Stored, Layer]:
    """The contents of a file, and the layers of its model."""
    stored = open_model(path)
    return stored, _reading(path, lambda: root(stored))


T = TypeVar("T")


def _reading(path: str, read: Callable[[], T]) -> T:
    """What a function reads; FrontendError for what the configuration lacks or has otherwise."""
    try:
        return read()
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        message = f"its configuration cannot be read: {type(error).__name__}: {error}"
        raise FrontendError.of_file(path, message) from None


Values = Any
"""Lists and dicts of values, as calls give and take them."""


@dataclass
class _State:
    name: str
    before: SSAValue
    after: SSAValue


_MOST_RESULTS = 1 << 16
"""How many results an operation that splits has at most."""

_PAIRS = frozenset({"FFT", "FFT2", "IFFT2", "Moments", "RFFT", "STFT", "TopK"})
"""Operations with two results."""


class _Importer:
    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.model: Layer
        self.location = FileLineColLoc(StringAttr(stored.path), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.block = Block()
        self.masks = Masks(self.add, stored.version, stored.minor)
        self.states: dict[Layer, list[_State]] = {}
        self._weights: dict[Layer, dict[str, SSAValue]] = {}
        self._arrays: dict[Layer, list[Array]] = {}
        self._scope: list[str] = []
        self._layer_values: dict[str, SSAValue] = {}

    def run(
        self, model: Layer, wanted: Sequence[str] | None, shapes: Mapping[str, Sequence[int]]
    ) -> ModuleOp:
        self.model = model
        self._check(model)
        self._raise()
        self._place(model)
        inputs = inputs_of(model)
        names = [layer.name for layer in inputs]
        self._add_arguments(inputs, names, shapes)
        values: dict[Layer, SSAValue] = dict(zip(inputs, self.block.args, strict=True))
        found = self._model(model, list(values.values()))
        self._raise()
        results = found if wanted is None else self._wanted(found, wanted)
        self._raise()
        return self._finish(names, results)

    def _finish(self, names: list[str], results: list[tuple[str, SSAValue]]) -> ModuleOp:
        states = [state for group in self.states.values() for state in group]
        taken = {*names, *(name for name, _ in results)}
        befores = [_fresh(state.name, taken) for state in states]
        afters = [_fresh(f"{name}_next", taken) for name in befores]
        last = func.ReturnOp(*(value for _, value in results), *(s.after for s in states))
        self.block.add_op(last)
        main = func.FuncOp(
            "main",
            (self.block.arg_types, last.arguments.types),
            Region(self.block),
            arg_attrs=named([*names, *befores]),
            res_attrs=named([*(name for name, _ in results), *afters]),
        )
        main.location = last.location = self.location
        if states:
            main.attributes[STATES] = ArrayAttr(
                ArrayAttr([StringAttr(before), StringAttr(after), UnitAttr()])
                for before, after in zip(befores, afters, strict=True)
            )
        return ModuleOp([main])

    # Problems

    def _report(self, layer: Layer, message: str) -> None:
        self.problems.append(Problem(self.stored.path, layer.name, layer.op_type, message))

    def _raise(self) -> None:
        if self.problems:
            raise FrontendError(self.problems)

    def _check(self, layer: Layer) -> None:
        """Report all layers that are not known, or would run code of the file."""
        for child in layer.children.values():
            self._check(child)
        if layer.is_operation and layer.class_name in INACTIVE:
            self._report(layer, "the function is not known; compute it outside of the model")
        elif layer.class_name in _UNSAFE:
            self._report(layer, "it holds code, which is never run; write it as layers of Keras")
        elif layer.is_foreign:
            self._report(layer, "found a class that is not Keras' own, expected layers of Keras")
        elif layer.children or layer.is_model:
            return
        elif layer.class_name not in {*_WITH_LAYERS, *CELLS} and not op_class(layer.class_name):
            self._report(layer, "the layer is not known; compute it outside of the model")
        else:
            for problem in problems_of(layer.config):
                self._report(layer, problem)

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr("/".join([*self._scope, name])), self.location)

    # Inputs and outputs

    def _add_arguments(
        self, inputs: Sequence[Layer], names: Sequence[str], shapes: Mapping[str, Sequence[int]]
    ) -> None:
        symbols = Symbols()
        for name in shapes.keys() - set(names):
            known = ", ".join(f"'{known}'" for known in names)
            message = f"a shape is given for '{name}', but the inputs are {known}"
            self.problems.append(Problem(self.stored.path, "", "", message))
        for layer in inputs:
            if layer.config.get("sparse") or layer.config.get("ragged"):
                self._report(layer, "found a sparse or ragged input, expected a dense one")
            config = layer.config
            shape = config.get("batch_shape", config.get("batch_input_shape"))
            dims: list[ExprLike] = [symbols.unnamed() if size is None else size for size in shape]
            given = shapes.get(layer.name)
            if given is not None and len(given) != len(dims):
                self._report(layer, f"the shape {list(given)} is given for rank {len(dims)}")
            dims = dims if given is None else [*given]
            dtype = str(config.get("dtype") or "float32")
            if dtype == "string":
                self._report(layer, "found an input of strings, expected numbers")
                continue
            element = element_named(dtype)
            if element is None:
                self._report(layer, f"found an input of {dtype[:40]}, expected numbers")
                continue
            argument = self.block.insert_arg(tensor(element, dims), len(self.block.args))
            argument.location = self._locate(layer.name)
        self._raise()

    def _wanted(
        self, found: list[tuple[str, SSAValue]], wanted: Sequence[str]
    ) -> list[tuple[str, SSAValue]]:
        known = {**self._layer_values, **dict(found)}
        if len(found) == 1:
            known.setdefault("output", found[0][1])
        for name in wanted:
            if name not in known:
                some = ", ".join(f"'{name}'" for name, _ in found)
                message = f"no layer is named '{name}'; the outputs are {some}"
                self.problems.append(Problem(self.stored.path, "", "", message))
        return [(name, known[name]) for name in wanted if name in known]

    # Variables

    def _place(self, model: Layer) -> None:
        """Find the variables of all layers of an `.h5` file, which has them in one row a layer."""
        if self.stored.names is None:
            return
        for child in model.children.values():
            rows = self.stored.groups.get(child.name, [])
            owners = list(leaves(child))
            slots = [
                (owner, k, variable.is_trained and _is_trained(owner))
                for owner in owners
                for k, variable in enumerate(variables_of(owner.class_name, owner.config))
            ]
            slots.sort(key=lambda slot: not slot[2])
            if len(slots) != len(rows):
                self._report(child, f"found {len(rows)} variables, expected {len(slots)}")
                continue
            for (owner, k, _), row in zip(slots, rows, strict=True):
                arrays = self._arrays.setdefault(owner, [])
                arrays.extend([row] * (k + 1 - len(arrays)))
                arrays[k] = row
        self._raise()

    def _variables(self, layer: Layer) -> dict[str, SSAValue]:
        """The variables of a layer as constants, by name."""
        if layer not in self._weights:
            self._weights[layer] = {}
            variables = variables_of(layer.class_name, layer.config)
            arrays = self._arrays.get(layer, [])
            if self.stored.names is None:
                counts: Counter[str] = Counter()
                path = self._folder_of(layer, variables)
                for variable in variables:
                    folder = "/".join(filter(None, [path, variable.folder, "vars"]))
                    rows = self.stored.groups.get(folder, [])
                    if counts[folder] >= len(rows):
                        self._report(layer, f"the file has no variable '{variable.name}'")
                        return {}
                    arrays = [*arrays, rows[counts[folder]]]
                    counts[folder] += 1
            for variable, array in zip(variables, arrays, strict=True):
                op = ConstantOp.of(np.ascontiguousarray(array))
                op.location = self._locate(f"{layer.name}/{variable.name}")
                self.block.add_op(op)
                self._weights[layer][variable.name.removeprefix("cell/")] = op.result
        return self._weights[layer]

    def _folder_of(self, layer: Layer, variables: Sequence[Variable]) -> str:
        """
        The folder of a layer in a `.keras` file. One that several models share is written once,
        where it is found first; then there is one layer of its name and configuration.
        """

        def has(path: str) -> bool:
            folders = {"/".join(filter(None, [path, v.folder, "vars"])) for v in variables}
            return folders <= self.stored.groups.keys()

        if has(layer.path):
            return layer.path
        same = [
            other.path
            for other in leaves(self.model)
            if other.class_name == layer.class_name
            and _identity(other) == _identity(layer)
            and has(other.path)
        ]
        return same[0] if len(same) == 1 else layer.path

    # Calls

    def add(
        self,
        class_name: str,
        name: str,
        positional: Sequence[Any],
        keywords: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        weights: Mapping[str, SSAValue] | None = None,
        results: int = 1,
    ) -> list[SSAValue]:
        """The results of a new op."""
        tensors: list[SSAValue] = []
        arguments = _numbered([list(positional), dict(keywords or {})], tensors)
        cls = op_class(class_name)
        assert cls is not None
        op = cls(
            (arguments[0], arguments[1]),
            tensors,
            weights or {},
            config or {},
            self.stored.version,
            [UnrankedTensorType(_ANY)] * results,
        )
        op.location = self._locate(name)
        self.block.add_op(op)
        return list(op.results)

    def call(self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        """What a layer gives for arguments."""
        if kwargs.get("training") is True and self.stored.version < 3:
            self._report(layer, "found a call as in training, expected one as in inference")
            return args[0]
        kwargs = {name: value for name, value in kwargs.items() if name != "training"}
        match layer.class_name:
            case _ if layer.is_model:
                kwargs.pop("mask", None)
                return self._nested(layer, args)
            case "TimeDistributed":
                return self._time_distributed(layer, args, kwargs)
            case "SpectralNormalization":
                return self._normalized(layer, args, kwargs)
            case "Bidirectional":
                return self._bidirectional(layer, args, kwargs)
            case "RNN":
                return self._cells(layer, args, kwargs)
            case name if name in _RECURRENT:
                return self._recurrent(layer, layer.class_name, layer.config, args, kwargs)
            case _:
                kwargs = self.masks.arguments(layer, args, kwargs)
                results = self._number_of_results(layer, kwargs)
                values = self.add(
                    layer.class_name,
                    layer.name,
                    args,
                    kwargs,
                    {**_settings(layer.config), **self._meaning(layer)},
                    self._variables(layer),
                    results,
                )
                self.masks.after(layer, args, values[0])
                return values[0] if results == 1 else values

    def _meaning(self, layer: Layer) -> Mapping[str, Any]:
        """What the version that wrote the file means, beside the configuration."""
        is_late = (self.stored.version, self.stored.minor) >= (3, 10)
        return {"zero_masked": True} if is_late and layer.class_name in _MASKED else {}

    def _number_of_results(self, layer: Layer, kwargs: Mapping[str, Any]) -> int:
        if kwargs.get("return_attention_scores") or layer.class_name in _PAIRS:
            return 2
        results: Any = 1
        if layer.class_name == "Unstack":
            results = layer.config.get("num") or _used(self.stored.config, layer.name)
        elif layer.class_name == "Split":
            sections = layer.config.get("indices_or_sections", 1)
            results = sections if isinstance(sections, int) else len(sections) + 1
        if not (isinstance(results, int) and 0 < results <= _MOST_RESULTS):
            raise ValueError(f"{results} results of '{layer.name}'")
        return results

    def _nested(self, layer: Layer, args: Sequence[Any]) -> Values:
        given = _flat(args)
        self._scope.append(layer.name)
        found = self._model(layer, given)
        self._scope.pop()
        values = [value for _, value in found]
        return values[0] if len(values) == 1 else values

    # Models

    def _model(self, model: Layer, given: Sequence[SSAValue]) -> list[tuple[str, SSAValue]]:
        """The outputs of a model and their names."""
        results: dict[tuple[str, int], Values] = {}
        inputs = inputs_of(model)
        if len(inputs) != len(given):
            raise ValueError(f"model '{model.name}' has {len(inputs)} inputs, given {len(given)}")
        for layer, value in zip(inputs, given, strict=True):
            results[layer.name, 0] = value
        if model.class_name == "Sequential":
            value: Values = given[0]
            last = inputs[0]
            for layer in model.children.values():
                if layer.class_name != "InputLayer":
                    value = self.call(layer, [value], {})
                    results[layer.name, 0] = value
                    last = layer
            self._keep(results)
            outputs = [(last.name, item) for item in _flat([value])]
            return _unique(outputs)
        self._functional(model, results)
        self._keep(results)
        if self.problems:
            return []
        return _unique(
            [
                (ref.layer, self._value(ref, results))
                for ref in outputs_of(model, self.stored.version)
            ]
        )

    def _keep(self, results: Mapping[tuple[str, int], Values]) -> None:
        """Remember what the layers of the outermost model give."""
        if not self._scope:
            self._layer_values = {
                name: _flat([value])[0] for (name, node), value in results.items() if node == 0
            }

    def _functional(self, model: Layer, results: dict[tuple[str, int], Values]) -> None:
        pending = [
            (layer, node, arguments)
            for layer in model.children.values()
            for node, arguments in enumerate(nodes_of(layer, model.children))
            if (layer.name, node) not in results and layer.class_name != "InputLayer"
        ]
        shift = shifted(model, self.stored.version)
        while pending:
            left: list[Any] = []
            for layer, node, (args, kwargs) in pending:
                refs = [
                    Tensor(ref.layer, ref.node - shift.get(ref.layer, 0), ref.index)
                    for ref in _refs([args, kwargs])
                ]
                if any((ref.layer, ref.node) not in results for ref in refs):
                    left.append((layer, node, (args, kwargs)))
                    continue

                def value(ref: Tensor) -> SSAValue:
                    return self._value(
                        Tensor(ref.layer, ref.node - shift.get(ref.layer, 0), ref.index), results
                    )

                results[layer.name, node] = self.call(
                    layer, _replaced(args, value), _replaced(kwargs, value)
                )
                if self.problems:
                    return
            if len(left) == len(pending):
                # What no input leads to is part of other models that use the same layers.
                break
            pending = left
        for (name, node), found in list(results.items()):
            if name in shift:
                results[name, node + shift[name]] = found

    def _value(self, ref: Tensor, results: Mapping[tuple[str, int], Values]) -> SSAValue:
        return _flat([results[ref.layer, ref.node]])[ref.index]

    # Layers that call others

    def _time_distributed(
        self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Values:
        inner = layer.children["layer"]
        policy = policy_of(inner.config)
        if policy is not None and policy.mode:
            self._report(
                inner, "quantized inside of TimeDistributed, where Keras leaves scales out"
            )
        (x,) = self.add("FoldTime", layer.name, [args[0]])
        self._scope.append(layer.name)
        value = self.call(inner, [x], {})
        self._scope.pop()
        (result,) = self.add("UnfoldTime", layer.name, [value, args[0]])
        self.masks.set(result, kwargs.get("mask") or self.masks.of(args[0]))
        return result

    def _normalized(self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        """The layer inside with the kernel that training has left, in the type of the input."""
        inner = layer.children["layer"]
        if inner.class_name == "Embedding" or policy_of(inner.config) != policy_of(layer.config):
            self._report(inner, "normalized in the type of its input, which is another one")
        self._scope.append(layer.name)
        value = self.call(inner, args, kwargs)
        self._scope.pop()
        return value

    def _bidirectional(
        self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Values:
        both: list[list[SSAValue]] = []
        forward, backward = layer.children["forward_layer"], layer.children["backward_layer"]
        initial = kwargs.get("initial_state")
        states = _flat([initial]) if initial is not None else []
        rest = {name: value for name, value in kwargs.items() if name != "initial_state"}
        half = len(states) // 2
        for inner, part in ((forward, states[:half]), (backward, states[half:])):
            more = {**rest, "initial_state": part} if part else rest
            both.append(_flat([self.call(inner, args, more)]))
        (first, *ahead), (second, *behind) = both
        mode = layer.config.get("merge_mode", "concat")
        sequences = bool(forward.config.get("return_sequences"))
        config = {"merge_mode": mode, "return_sequences": sequences}
        merged = self.add(
            "MergeDirections", layer.name, [first, second], {}, config, None, 1 if mode else 2
        )
        if sequences:
            self.masks.set(merged[0], kwargs.get("mask") or self.masks.of(args[0]))
        if not (ahead or len(merged) > 1):
            return merged[0]
        return [*merged, *ahead, *behind]

    def _cells(self, layer: Layer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        """Cells on top of one another are layers one after the other."""
        cell = layer.children["cell"]
        cells = list(cell.children.values()) if cell.class_name == "StackedRNNCells" else [cell]
        if any(each.class_name not in CELLS for each in cells):
            self._report(layer, "found cells that are not known, expected LSTM, GRU or simple ones")
            return args[0]
        if cell.children and (layer.config.get("stateful") or kwargs.get("initial_state")):
            self._report(layer, "found cells on top of one another that are given states")
            return args[0]
        mask = now = kwargs.get("mask") or self.masks.of(args[0])
        value: Values = args[0]
        states: list[SSAValue] = []
        for number, each in enumerate(cells):
            config = {**layer.config, **each.config, "name": layer.name}
            config.pop("cell", None)
            config["return_state"] = True
            if number == 1 and layer.config.get("go_backwards") and mask is not None:
                # What the first cell gives is in the order of its steps, from the last one on.
                (now,) = self.add("Flip", f"{layer.name}/mask", [mask], {}, {"axis": 1})
            if number:
                config["go_backwards"] = False
            if number + 1 < len(cells):
                config["return_sequences"] = True
            more = dict(kwargs) | ({} if now is None else {"mask": now})
            found = self._recurrent(each, CELLS[each.class_name], config, [value], more)
            value, *after = _flat([found])
            states += after
        if layer.config.get("return_sequences"):
            self.masks.set(value, mask)
        return [value, *states] if layer.config.get("return_state") else value

    def _recurrent(
        self,
        layer: Layer,
        class_name: str,
        config: Mapping[str, Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Values:
        x, *initial = _flat(args)
        keywords = dict(kwargs)
        given = keywords.pop("initial_state", None)
        initial = [*initial, *(_flat([given]) if given is not None else [])]
        keywords.pop("constants", None)
        mask = keywords.pop("mask", None)
        mask = self.masks.of(x) if mask is None else mask
        keywords = {} if mask is None else {"mask": mask}
        if config.get("time_major"):
            self._report(layer, "found time before the batch (time_major), expected it after")
            return x
        count = _STATES.get(class_name, 2)
        stateful = bool(config.get("stateful"))
        if stateful and not initial:
            initial = self._remembered(layer, class_name, config, x)
            if self.problems:
                return x
        settings = _settings(config)
        settings.setdefault("return_state", False)
        returned = bool(settings["return_state"])
        settings["return_state"] = returned or stateful
        if self.stored.is_old and class_name == "GRU":
            settings.setdefault("reset_after", False)
        total = 1 + count * settings["return_state"]
        values = self.add(
            class_name,
            layer.name,
            [x, *initial],
            keywords,
            settings,
            self._variables(layer),
            total,
        )
        if config.get("return_sequences"):
            self.masks.set(values[0], mask)
        if stateful and layer in self.states:
            for state, after in zip(self.states[layer], values[1:], strict=True):
                state.after = after
        return values if returned else values[0]

    def _remembered(
        self, layer: Layer, class_name: str, config: Mapping[str, Any], x: SSAValue
    ) -> list[SSAValue]:
        """The states of a layer before the call."""
        if layer in self.states:
            return [state.after for state in self.states[layer]]
        batch = self._batch_size()
        policy = config.get("dtype", "float32")
        name = policy if isinstance(policy, str) else policy["config"]["name"]
        if class_name not in _STATES or batch is None or name != "float32":
            self._report(layer, "found a state that is not known, expected floats of a fixed batch")
            return []
        states: list[_State] = []
        for number in range(_STATES[class_name]):
            type_ = tensor(element_of(np.dtype(np.float32)), [batch, int(config["units"])])
            value = self.block.insert_arg(type_, len(self.block.args))
            name = "/".join([*self._scope, layer.name, f"state_{number}"])
            value.location = self._locate(f"{layer.name}/state_{number}")
            states.append(_State(name, value, value))
        self.states[layer] = states
        return [state.before for state in states]

    def _batch_size(self) -> int | None:
        from lowerdeck.dialects.core.types import dims_of

        return dims_of(self.block.args[0])[0].value


_ANY = element_of(np.dtype(np.float32))


def _identity(layer: Layer) -> tuple[str, dict[str, Any]]:
    """The name and the configuration of a layer, without its policy, in which there are numbers."""
    settings = _settings(layer.config)
    settings.pop("dtype", None)
    return layer.name, settings


def _is_trained(layer: Layer) -> bool:
    return bool(layer.config.get("trainable", True))


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without what only training, or the making of the layer, needs."""
    endings = ("_initializer", "_regularizer", "_constraint")
    inert = {"name", "trainable", "batch_input_shape", "batch_shape", "input_shape", "layer"}
    return {
        name: value
        for name, value in config.items()
        if name not in inert and not name.endswith(endings)
    }


def _numbered(value: Any, tensors: list[SSAValue]) -> Any:
    """Arguments in which each value is an `Operand`."""
    match value:
        case SSAValue():
            tensors.append(cast("SSAValue", value))
            return Operand(len(tensors) - 1)
        case list() | tuple():
            return [_numbered(item, tensors) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value)
            return {name: _numbered(item, tensors) for name, item in items.items()}
        case _:
            return value


def _replaced(value: Any, function: Callable[[Tensor], SSAValue]) -> Any:
    match value:
        case Tensor():
            return function(value)
        case list():
            return [_replaced(item, function) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value)
            return {name: _replaced(item, function) for name, item in items.items()}
        case _:
            return value


def _refs(value: Any) -> list[Tensor]:
    match value:
        case Tensor():
            return [value]
        case list():
            return [ref for item in cast("list[Any]", value) for ref in _refs(item)]
        case dict():
            return [ref for item in cast("dict[str, Any]", value).values() for ref in _refs(item)]
        case _:
            return []


def _flat(value: Any) -> list[SSAValue]:
    """The values in lists and dicts, in order; those of a dict by their names."""
    match value:
        case SSAValue():
            return [cast("SSAValue", value)]
        case list() | tuple():
            return [leaf for item in cast("list[Any]", value) for leaf in _flat(item)]
        case dict():
            items = cast("dict[str, Any]", value)
            return [leaf for name in sorted(items) for leaf in _flat(items[name])]
        case _:
            return []


def _unique(outputs: list[tuple[str, SSAValue]]) -> list[tuple[str, SSAValue]]:
    """Outputs by the names of their layers, or by number where these repeat."""
    counts = Counter(name for name, _ in outputs)
    return [
        (name if counts[name] == 1 else f"output_{number}", value)
        for number, (name, value) in enumerate(outputs)
    ]


def _fresh(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def _used(config: Any, name: str) -> int:
    """How many results of a layer a configuration reads, by the places where it names them."""
    match config:
        case {"keras_history": [str(layer), _, int(index)]} if layer == name:
            return index + 1
        case [str(layer), int(_), int(index)] if layer == name:
            return index + 1
        case dict():
            values = cast("dict[str, Any]", config).values()
            return max((_used(value, name) for value in values), default=1)
        case list():
            return max((_used(value, name) for value in cast("list[Any]", config)), default=1)
        case _:
            return 1
