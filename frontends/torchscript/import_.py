"""
Import of a TorchScript file: its `forward` for inputs of stated types.

A buffer that the program writes is a state, as in a program of torch.export.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import MAX_RANK, f32, f64, i1, i64, tensor
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.pt2.strides import is_contiguous
from lowerdeck.dialects.records import record
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.fixed import fixed_array, unknown_input
from lowerdeck.frontends.main import State, fresh, main_module
from lowerdeck.frontends.pickles import Made, Name
from lowerdeck.frontends.pt2.archive import ArchiveError, Strided, told
from lowerdeck.frontends.pt2.diagnosis import diagnosis
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.frontends.torchscript.archive import (
    ELEMENTS,
    QUANTIZED,
    Reader,
    ScriptArchive,
    storage_key,
    strided_tensor,
)
from lowerdeck.frontends.torchscript.code import Definition, dotted
from lowerdeck.frontends.torchscript.operators import describe
from lowerdeck.frontends.torchscript.quantized import packed, weight
from lowerdeck.frontends.torchscript.states import Remembered, Remembering
from lowerdeck.frontends.torchscript.values import (
    Device,
    Instance,
    Named,
    Number,
    RaisedError,
    Rows,
    ScriptError,
    Tensor,
    Unknown,
    UnknownError,
    leaves,
)

_BROKEN = (
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    ValueError,
    OverflowError,
    RecursionError,
    StopIteration,
    VerifyException,
    MemoryError,
)
"""What is raised where a program lacks something, or has it in another form."""

_MOST_OUTPUTS = 4096

_TRIALS = 24
"""Attempts at the states: each time a further one turns up."""

_TYPES = {"int": i64, "float": f64, "bool": i1}

_ELEMENTS = {str(element).replace("ui", "u"): element for element in ELEMENTS.values()} | {
    str(element): element for element in ELEMENTS.values()
}


def import_script(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    input_types: Sequence[str] = (),
    fixed: Mapping[str, Any] | None = None,
) -> ModuleOp:
    """
    The module for a program: `func.func @main`, of ops of the pt2 dialect.

    The types of inputs are those of a traced program's own examples, unless `input_shapes` or
    `input_types` (`x=1x3xnxf32`) say others; `fixed` has the values of inputs that are constants.
    FrontendError lists everything that prevents the import.
    """
    file = os.fspath(path)
    try:
        archive = ScriptArchive(file)
        asked = _Asked(outputs, input_shapes or {}, _parsed_types(file, input_types), fixed or {})
        remembered = Remembered()
        for _ in range(_TRIALS):
            importer = _Importer(archive, asked, remembered)
            module = importer.run()
            if module is not None:
                return module
            remembered = importer.found
            settled = remembered.settled()
            if settled.later and (module := _alike(archive, asked, settled)) is not None:
                return module
        raise ScriptError(f"states that still change after {_TRIALS} attempts")
    except (ArchiveError, OSError) as error:
        text = diagnosis(file) or told(error)
        raise FrontendError.of_file(file, text) from None
    except FrontendError:
        raise
    except RaisedError as error:
        text = f"the program raises an error for every input: {str(error)[:300]}"
        raise FrontendError.of_file(file, text) from None
    except (*_BROKEN, UnknownError) as error:
        text = f"the program is broken: {type(error).__name__} {error}"
        raise FrontendError.of_file(file, text[:500]) from None


def _alike(archive: ScriptArchive, asked: _Asked, remembered: Remembered) -> ModuleOp | None:
    """
    The module of a program whose calls compute the same with what the file says as with what the
    first one leaves behind, as if that made anchors; None if they do not.
    """
    found: list[ModuleOp] = []
    for form in (replace(remembered, free=True), replace(remembered, begins=True)):
        try:
            module = _Importer(archive, asked, form).run()
        except (*_BROKEN, FrontendError, RaisedError, UnknownError):
            module = None
        if module is None:
            return None
        found.append(module)
        for op in module.walk(reverse=True):
            if op.results and not op.regions and all(one.first_use is None for one in op.results):
                op.detach()
    one, other = found
    return one if one.is_structurally_equivalent(other) else None


@record
class _Asked:
    """What the user wants of a model."""

    outputs: Sequence[str] | None
    shapes: Mapping[str, Sequence[int]]
    types: Mapping[str, tuple[list[int | str] | None, Attribute]]
    fixed: Mapping[str, Any]


def _parsed_types(
    file: str, texts: Sequence[str]
) -> dict[str, tuple[list[int | str] | None, Attribute]]:
    """Sizes and element type by the name of the input; no sizes for an element type alone."""
    found: dict[str, tuple[list[int | str] | None, Attribute]] = {}
    problems: list[Problem] = []
    for text in texts:
        name, _, type_ = text.partition("=")
        *sizes, element = type_.split("x")
        if not name or element not in _ELEMENTS or not all(map(_is_size, sizes)):
            known = ", ".join(sorted(str(e) for e in _ELEMENTS if "complex" not in e))
            message = f"input type '{text}', expected NAME=1x3xnxf32 with one of {known}"
            problems.append(Problem(file, "", "", message))
            continue
        dims = [int(size) if size.isdecimal() else size for size in sizes]
        found[name] = (dims if sizes or "x" in type_ else None, _ELEMENTS[element])
    if problems:
        raise FrontendError(problems)
    return found


def _is_size(text: str) -> bool:
    return text == "?" or re.fullmatch(r"\d{1,18}|[A-Za-wyz_]\w*", text, re.ASCII) is not None


class _Importer(Remembering):
    """The import of one program."""

    def __init__(self, archive: ScriptArchive, asked: _Asked, remembered: Remembered) -> None:
        super().__init__(archive, remembered)
        self.asked = asked
        self.symbols = Symbols()
        self.names: list[str] = []
        self._tensors: dict[Any, Tensor] = {}
        self._storages: dict[str, list[Tensor]] = {}
        self._reader = Reader(self._object)
        self._constants = Reader(self._constant)
        self._used: set[str] = set()

    def run(self) -> ModuleOp | None:
        """The module, or None if there are other states than was known."""
        constants = self._constants.read(self.archive.pickled("constants.pkl"))
        values = cast("tuple[Any, ...]", constants if isinstance(constants, tuple) else ())
        self.constants = {f"c{k}": value for k, value in enumerate(values)}
        made = self.archive.pickled("data.pkl")
        if not isinstance(made, Made) or not made.name.startswith("__torch__"):
            raise ArchiveError("'data.pkl' holds no module")
        forward = self.code.method(made.name, "forward")
        if forward is None:
            raise ArchiveError(f"{made.name} has no method 'forward'")
        arguments = self._inputs(forward)
        self.raise_problems()
        model = self._reader.read(made)
        self.begin(model)
        result = self.result(forward, [model, *arguments])
        self._line = forward.node.lineno
        self.raise_problems()
        self.find_changed()
        self.raise_problems()
        if self.found != self.remembered or (self.remembered.begins and not self.drop_unread()):
            return None
        return self._module(result, forward)

    # Objects of the archive

    def _constant(self, made: Made, path: str) -> Any:
        if made.name == "torch.device":
            return Device()
        if _is_object(made):
            state = self._constants.read(made.state, path)
            return self._restored(Instance(made.name, {}, path), state)
        op = self.archive.constant("constants", made, f"constant {path.strip('.')}")
        self.add(op)
        found = self.tensor(op.result, in_order=True)
        if op.array.ndim == 0 and op.array.dtype.kind != "c":
            found.number = op.array.item()
        return self._real(found, made, self._constants)

    def _object(self, made: Made, path: str) -> Any:
        """A module, a tensor, or another object of the model."""
        if made.name == "torch.device":
            return Device()
        if _is_object(made):
            return self._instance(made, path)
        return self._real(self._weight(made, path), made, self._reader)

    def _real(self, stored: Tensor, made: Made, reader: Reader) -> Any:
        """A tensor, or what it stands for if it is quantized."""
        if made.name != QUANTIZED:
            return stored
        scheme, *rest = made.args[4]
        numbers = [reader.read(one, f"scheme.{k}") for k, one in enumerate(rest)]
        try:
            return weight(self, stored, str(scheme).removeprefix("torch."), numbers)
        except ScriptError as error:
            self.problem(str(error))
            return Unknown()

    def _instance(self, made: Made, path: str) -> Instance:
        found = Instance(made.name, {}, path)
        state: Any = made.state
        if not isinstance(state, dict):
            return self._restored(found, self._reader.read(state, path))
        for key, value in cast("dict[str, Any]", state).items():
            place = f"{path}.{key}" if path else str(key)
            found.attributes[key] = self._reader.read(value, place)
        return found

    def _restored(self, instance: Instance, state: Any) -> Instance:
        """An object that a method of its class, or a class of PyTorch's own, makes of a state."""
        space, _, name = instance.type.rpartition(".")
        if space.startswith("__torch__.torch.classes."):
            return packed(self, name, state)
        restore = self.code.method(instance.type, "__setstate__")
        if restore is None:
            text = f"an object '{instance.path}' of {instance.type} without attributes"
            raise ArchiveError(text)
        self.call_function(restore, [instance, state], {})
        return instance

    def _weight(self, made: Made, path: str) -> Tensor:
        """A parameter or buffer, which may be in several places."""
        stored, form, is_parameter = strided_tensor(made)
        storage = storage_key(stored)
        if (storage, form) in self._tensors:
            return self._tensors[storage, form]
        op = self.archive.constant("data", made, path)
        self.where = NameLoc(StringAttr(path), self.location)
        self.add(op)
        found = self.tensor(op.result, in_order=is_contiguous(form.sizes, form.strides))
        found.requires_grad = is_parameter
        self._tensors[storage, form] = found
        self.stored[id(found)] = (found, op)
        sharing = self._storages.setdefault(storage, [])
        sharing.append(found)
        if len(sharing) > 1:
            for one in sharing:
                one.storage.unclear = True
        return found

    # Inputs

    def _inputs(self, forward: Definition) -> list[Any]:
        """Add arguments for the inputs; what `forward` is called with."""
        examples = self._examples()
        found: list[Any] = []
        for position, (name, kind, default) in enumerate(forward.parameters[1:]):
            example = examples[position] if position < len(examples) else None
            found.append(self._input(name, kind, default, example))
        names = [*self.names, *self._used]
        for name in {*self.asked.shapes, *self.asked.types} - {*names}:
            known = ", ".join(f"'{one}'" for one in self.names) or "none"
            self.problem(f"a shape or type is given for '{name}', but the inputs are {known}")
        for name in self.asked.fixed.keys() - {*names}:
            self.problem(unknown_input(name, names))
        return found

    def _examples(self) -> list[Any]:
        """The inputs of a traced program: the types of tensors, and other things as they are."""
        if not self.archive.has("traced_inputs.pkl"):
            return []
        try:
            found = Reader(lambda made, _: strided_tensor(made)[1]).read(
                self.archive.pickled("traced_inputs.pkl")
            )
            return list(found["forward"])
        except (ArchiveError, KeyError, TypeError):
            return []

    def _input(
        self, name: str, kind: ast.expr | None, default: ast.expr | None, example: Any
    ) -> Any:
        base, items = _of_type(kind)
        if base == "Optional":
            if not self._is_given(name, items[0]) and example is None:
                return None if default is None else self.expression(default, {})
            return self._input(name, items[0], default, example)
        if base in ("Tensor", *_TYPES):
            if default is not None and not self._is_given(name, kind):
                return self.expression(default, {})
            return (
                self._tensor_input(name, example)
                if base == "Tensor"
                else self._number_input(name, base)
            )
        parts = cast("list[Any]", example) if isinstance(example, list | tuple) else []
        match base:
            case "Tuple":
                padded = [*parts, *[None] * len(items)][: len(items)]
                pairs = enumerate(zip(items, padded, strict=True))
                return tuple(
                    self._input(f"{name}_{k}", one, None, part) for k, (one, part) in pairs
                )
            case "List":
                count = self._count_given(name, items[0], len(parts))
                padded = [*parts, *[None] * count][:count]
                return [self._input(f"{name}_{k}", items[0], None, padded[k]) for k in range(count)]
            case "Dict":
                return self._mapping(name, items[1], example)
            case _ if default is not None:
                return self.expression(default, {})
            case _:
                self.problem(
                    f"input '{name}' of type {ast.unparse(kind) if kind else 'unknown'}, expected "
                    "tensors and numbers; write a module whose forward takes these, and script it"
                )
                return Unknown()

    def _is_given(self, name: str, kind: ast.expr | None) -> bool:
        """True if the user says something of an input, or of a part of it."""
        given = {*self.asked.shapes, *self.asked.types, *self.asked.fixed}
        base, _ = _of_type(kind)
        if base in ("Tensor", *_TYPES):
            return name in given
        return any(one.startswith(f"{name}_") for one in given)

    def _count_given(self, name: str, kind: ast.expr, count: int) -> int:
        """How many tensors a list has: as many as the user or the example says."""
        given = 0
        while self._is_given(f"{name}_{given}", kind):
            given += 1
        if not given and not count:
            self.problem(
                f"the file does not say how many tensors the list '{name}' has; give their shapes: "
                f"--input-shape {name}_0=1,3,224,224 --input-shape {name}_1=..."
            )
        return given or count

    def _mapping(self, name: str, kind: ast.expr, example: Any) -> Any:
        given = {*self.asked.shapes, *self.asked.types, *self.asked.fixed}
        keys = [one.removeprefix(f"{name}_") for one in given if one.startswith(f"{name}_")]
        examples = cast("dict[Any, Any]", example) if isinstance(example, dict) else {}
        keys = list(examples) or sorted(keys)
        if not keys:
            self.problem(
                f"the file does not say which keys the dictionary '{name}' has; give the shapes of "
                f"its tensors: --input-shape {name}_KEY=1,3,224,224"
            )
        return {key: self._input(f"{name}_{key}", kind, None, examples.get(key)) for key in keys}

    def _tensor_input(self, name: str, example: Any) -> Any:
        known = isinstance(example, Strided)
        sizes: Sequence[int | str] | None = example.sizes if known else None
        element: Attribute = example.element if known else f32
        if name in self.asked.types:
            given, element = self.asked.types[name]
            sizes = sizes if given is None else given
        sizes = self.asked.shapes.get(name, sizes)
        if sizes is None and name in self.asked.fixed:
            sizes = np.shape(self.asked.fixed[name])
        if sizes is None:
            self.names.append(name)
            self.problem(
                f"the file does not say the shape of input '{name}'; give it: --input-shape "
                f"{name}=1,3,224,224, or with open sizes and the element type: --input-type "
                f"{name}=nx3x224x224xf32"
            )
            return Unknown()
        if len(sizes) > MAX_RANK or any(isinstance(size, int) and size < 0 for size in sizes):
            self.problem(f"input '{name}' of shape {list(sizes)}")
            return Unknown()
        dims: list[ExprLike] = [self._dim(size) for size in sizes]
        if name in self.asked.fixed:
            return self._fixed_tensor(name, element, dims)
        self.names.append(name)
        return self.tensor(self.argument(name, tensor(element, dims)), in_order=True)

    def _dim(self, size: int | str) -> ExprLike:
        if isinstance(size, int):
            return size
        return self.symbols.unnamed() if size == "?" else self.symbols.named(size)

    def _fixed_tensor(self, name: str, element: Attribute, dims: Sequence[ExprLike]) -> Any:
        self._used.add(name)
        try:
            sizes = [size if isinstance(size, int) else None for size in dims]
            array = fixed_array(self.asked.fixed[name], element, sizes)
        except ValueError as error:
            self.problem(f"input '{name}' {error}")
            return Unknown()
        op = ConstantOp.of(array)
        self.where = NameLoc(StringAttr(name), self.location)
        self.add(op)
        return self.tensor(op.result, in_order=True)

    def _number_input(self, name: str, base: str) -> Any:
        """A number: plain if the user fixes it, else an input."""
        kind = {"int": int, "float": float, "bool": bool}[base]
        if name in self.asked.fixed:
            self._used.add(name)
            try:
                return kind(fixed_array(self.asked.fixed[name], _TYPES[base], []).item())
            except ValueError as error:
                self.problem(f"input '{name}' {error}")
                return Unknown()
        self.names.append(name)
        return Number(self.argument(name, tensor(_TYPES[base], [])), kind)

    # Outputs

    def _module(self, result: Any, forward: Definition) -> ModuleOp:
        if sum(1 for _ in leaves(result)) > _MOST_OUTPUTS:
            raise ScriptError(f"more than {_MOST_OUTPUTS} outputs")
        found = list(self._outputs("", result))
        names = [name for name, _ in found]
        for name in self.asked.outputs or ():
            if name not in names:
                known = ", ".join(f"'{one}'" for one in names)
                self.problem(f"no output is named '{name}'; the outputs are {known}")
        if not found:
            self.problem("the model returns no tensor")
        self.raise_problems()
        if self.asked.outputs is not None:
            values = dict(found)
            found = [(name, values[name]) for name in self.asked.outputs]
        taken = {*self.names, *(name for name, _ in found)}
        self._line = forward.node.lineno
        kept: list[State] = []
        for name, one in self.states.items():
            before = fresh(name, taken)
            after = fresh(f"{before}_next", taken)
            kept.append(State(before, after, self.value_of(one.now()), one.first))
        return main_module(self.blocks[0], self.names, found, kept, self.location)

    def _outputs(self, name: str, value: Any) -> Iterator[tuple[str, SSAValue]]:
        """Names and values of the tensors and numbers that are returned."""
        parts: list[tuple[Any, Any]] = []
        match value:
            case Tensor() | Number():
                yield name or "output", self.value_of(value)
            case Named():
                parts = list(zip(value.names, value, strict=True))
            case dict():
                parts = list(cast("dict[Any, Any]", value).items())
            case list() | tuple():
                items = list(enumerate(cast("Sequence[Any]", value)))
                parts = [(f"{'' if name else 'output_'}{key}", item) for key, item in items]
            case Unknown() | Instance() | Rows():
                self.problem(f"found an output '{name or 'output'}' that is {describe(value)}")
            case _:
                pass  # what is no tensor is the same for every input
        for key, item in parts:
            yield from self._outputs(f"{name}_{key}" if name else str(key), item)


def _is_object(made: Made) -> bool:
    """True for an object of a class of the program, or of PyTorch's own."""
    return isinstance(made.what, Name) and made.what.module.startswith("__torch__")


def _of_type(kind: ast.expr | None) -> tuple[str, list[ast.expr]]:
    """A type and its arguments."""
    if isinstance(kind, ast.Subscript):
        inner = kind.slice
        items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        return dotted(kind.value) or "", list(items)
    return ("Tensor" if kind is None else dotted(kind) or ""), []
