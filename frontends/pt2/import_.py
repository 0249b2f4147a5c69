"""
One-to-one import of a program of torch.export: one pt2 op for each node.

What operators write in place becomes values (`aliases.py`). Graphs that control flow calls are
regions of `core.if` and `core.loop`. A buffer that the program changes is a state: an input holds
it before the call, an output after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp, scalar
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.core.types import MAX_RANK, dims_of, f64, i1, i64, tensor
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.dialects.pt2.ops import Pt2Op, op_class
from lowerdeck.dialects.pt2.schema import CONTROL_FLOW, functional
from lowerdeck.dialects.pt2.strides import can_view, overlaps
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.main import State, fresh, main_module
from lowerdeck.frontends.pt2.aliases import (
    SHOWING,
    VIEWS,
    Alias,
    AliasError,
    may_share,
    read_all,
    shown_by,
    unranked,
)
from lowerdeck.frontends.pt2.archive import Archive, ArchiveError, element, told
from lowerdeck.frontends.pt2.diagnosis import diagnosis
from lowerdeck.frontends.pt2.sizes import size_of
from lowerdeck.frontends.symbols import Symbols

_CHECKS = frozenset(
    {
        "aten._assert_scalar.default",
        "aten._assert_tensor_metadata.default",
        "aten._assert_async.msg",
        "aten._assert_async.default",
        "aten.promote_types.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
        "torchvision._cuda_version.default",
    }
)
"""Operators without results that matter: most of them state what holds."""

_MOVING = frozenset(
    {
        "aten.batch_norm.default",
        "aten.native_batch_norm.default",
        "aten._native_batch_norm_legit.default",
    }
)
"""Normalizations that write the moments that they move."""

_WITHOUT_MEANING = frozenset({"as_device", "as_layout", "as_memory_format"})
"""Arguments that decide where elements lie."""

_PLAIN = frozenset(
    "as_int as_float as_bool as_string as_ints as_floats as_bools as_strings".split()
)
_SYMBOLIC = {"as_sym_int": i64, "as_sym_bool": i1, "as_sym_float": f64}

_BROKEN = (
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    ValueError,
    OverflowError,
    StopIteration,
    RecursionError,
    VerifyException,
)
"""What is raised where a program lacks something, or has it in another form."""

_DEEPEST = 32
"""Graphs inside of one another."""


def import_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module for a program: `func.func @main`.

    Arguments are the program's inputs, then its states. Results are its outputs, or the tensors
    `outputs` of its own, then its states. `input_shapes` replaces the shapes of inputs.
    FrontendError lists everything that prevents the import.
    """
    file = os.fspath(path)
    try:
        archive = Archive(file)
        changed: set[str] = set()
        while True:
            importer = _Importer(archive, changed)
            module = importer.run(outputs, input_shapes or {})
            # A buffer that turns out to be changed is an argument the next time.
            if importer.changed <= changed:
                return module
            changed |= importer.changed
    except (ArchiveError, OSError) as error:
        text = diagnosis(file) or told(error)
        raise FrontendError.of_file(file, text) from None
    except FrontendError:
        raise
    except _BROKEN as error:
        text = f"the program is broken: {type(error).__name__} {error}"
        raise FrontendError.of_file(file, text[:500]) from None


def target_of(node: Mapping[str, Any]) -> str:
    """The operator of a node with its namespace and overload."""
    return str(node["target"]).removeprefix("torch.ops.")


def nodes_of(graph: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The nodes of a graph and of those in it."""
    if depth > _DEEPEST:
        raise ArchiveError("graphs too deep inside of one another")
    for node in graph["nodes"]:
        yield node
        for given in node["inputs"]:
            if (inner := given["arg"].get("as_graph")) is not None:
                yield from nodes_of(inner["graph"], depth + 1)


def node_name(node: Mapping[str, Any]) -> str:
    """How messages call a node: by the module of the model, and by its own name."""
    name = str(node.get("name") or target_of(node))
    metadata: Any = node.get("metadata") or {}
    stack = str(metadata.get("nn_module_stack") or "")
    parts = stack.split(";")[-1].split(",")
    return (
        f"{parts[1]}/{name}"
        if len(parts) > 2 and parts[1].isprintable() and parts[1] and parts[1][0] != "_"
        else name
    )


@dataclass
class _Scope:
    """Where ops go, and the tensors that are there."""

    graph: Mapping[str, Any]
    block: Block
    names: dict[str, Alias] = field(default_factory=dict[str, Alias])
    depth: int = 0

    def read(self, name: str) -> SSAValue:
        """The value of a tensor now."""
        if name not in self.names:
            raise ArchiveError(f"no operator before computes '{name}'")
        return self.names[name].read(self.block)


class _Importer:
    """The import of one program."""

    def __init__(self, archive: Archive, changed: set[str]) -> None:
        self.archive = archive
        self.file = archive.path
        self.location = FileLineColLoc(StringAttr(self.file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.symbols = Symbols()
        self.sources: dict[Expr, tuple[SSAValue, int]] = {}
        """Where each size of an input is."""
        self.changed = set(changed)
        module = archive.program["graph_module"]
        self.graph: Mapping[str, Any] = module["graph"]
        self.signature: Mapping[str, Any] = module["signature"]

    def run(self, outputs: Sequence[str] | None, shapes: Mapping[str, Sequence[int]]) -> ModuleOp:
        self._check()
        self.changed |= self._mutations().keys()
        block = Block()
        scope = _Scope(self.graph, block)
        inputs = self._inputs(scope, shapes)
        states = self._states(scope, {*inputs})
        self._raise_problems()
        befores = {name: alias.storage for name, alias in scope.names.items()}
        try:
            for node in self.graph["nodes"]:
                self._node(node, scope)
        finally:
            # What is missing then may be the result of an operator that is refused.
            self._raise_problems()
        self._find_changed(scope, befores)
        arguments = {key: arg for key, (_, arg, _) in states.items()}
        names, values = self._outputs(scope, outputs, befores, arguments)
        self._raise_problems()
        return self._module(block, inputs, states, names, values, scope)

    def _module(
        self,
        block: Block,
        inputs: Sequence[str],
        states: Mapping[str, tuple[str, str, ConstantOp]],
        names: Sequence[str],
        values: Sequence[SSAValue],
        scope: _Scope,
    ) -> ModuleOp:
        taken = {*inputs, *names, *(before for before, _, _ in states.values())}
        mutated = self._mutations()
        kept: list[State] = []
        for key, (before, arg, constant) in states.items():
            after = self._written_back(arg, mutated.get(key, arg), scope)
            kept.append(State(before, fresh(f"{before}_next", taken), after, constant.value))
        results = list(zip(names, values, strict=True))
        return main_module(block, inputs, results, kept, self.location)

    def _mutations(self) -> dict[str, str]:
        """The buffers and parameters that are written, and the values that they become."""
        found: dict[str, str] = {}
        for spec in self.signature["output_specs"]:
            for kind in ("buffer", "parameter"):
                if (data := spec.get(f"{kind}_mutation")) is not None:
                    found[data[f"{kind}_name"]] = data["arg"]["name"]
        return found

    # Problems

    def _report(self, node: str, op_type: str, message: str) -> None:
        self.problems.append(Problem(self.file, node, op_type, message))

    def _raise_problems(self) -> None:
        if self.problems:
            raise FrontendError(self.problems)

    def _check(self) -> None:
        """Report all operators that have no op, in all graphs."""
        for node in nodes_of(self.graph):
            target = target_of(node)
            if target in CONTROL_FLOW or target in _CHECKS:
                continue
            if op_class(functional(target)) is None:
                self._report(node_name(node), target, "the operator is not known")
        for spec in self.signature["output_specs"]:
            kind = next(iter(spec))
            if kind not in _OUTPUTS:
                self._report("", "", f"found an output of kind {kind}, expected one of inference")
        self._raise_problems()

    # Inputs and outputs

    def _inputs(self, scope: _Scope, shapes: Mapping[str, Sequence[int]]) -> list[str]:
        """Add arguments for the inputs, and constants for the weights; the inputs' names."""
        names: list[str] = []
        for spec in self.signature["input_specs"]:
            ((kind, data),) = spec.items()
            match kind:
                case "user_input":
                    if next(iter(data["arg"])) in ("as_tensor", "as_sym_int"):
                        names.append(self._input(scope, data["arg"], shapes))
                case "parameter" | "buffer" | "tensor_constant":
                    key = data[f"{kind}_name"]
                    if key not in self.changed:
                        op = self.archive.constant(key)
                        op.location = NameLoc(StringAttr(key), self.location)
                        scope.block.add_op(op)
                        scope.names[data["arg"]["name"]] = Alias.of(op.result)
                case "constant_input":
                    pass
                case _:
                    self._report("", "", f"found an input of kind {kind}, expected tensors")
        for name in shapes.keys() - set(names):
            known = ", ".join(f"'{known}'" for known in names)
            self._report("", "", f"a shape is given for '{name}', but the inputs are {known}")
        return names

    def _input(
        self, scope: _Scope, arg: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]
    ) -> str:
        if "as_sym_int" in arg:
            name = arg["as_sym_int"]["as_name"]
            type_ = tensor(i64, [])
        else:
            name = arg["as_tensor"]["name"]
            meta = scope.graph["tensor_values"][name]
            dims: list[ExprLike] = [size_of(size, self.symbols) for size in meta["sizes"]]
            if len(dims) > MAX_RANK:
                raise ArchiveError(f"'{name}' of {len(dims)} dimensions")
            if name in shapes:
                given = list(shapes[name])
                if len(given) != len(dims) or any(size < 0 for size in given):
                    self._report("", "", f"shape {given} for '{name}' of rank {len(dims)}")
                dims = [*given]
            type_ = tensor(element(meta["dtype"]), dims)
        argument = scope.block.insert_arg(type_, len(scope.block.args))
        for axis, dim in enumerate(dims_of(argument)):
            self.sources.setdefault(dim, (argument, axis))
        argument.location = NameLoc(StringAttr(name), self.location)
        argument.name_hint = name if name.isidentifier() else None
        scope.names[name] = Alias.of(argument)
        return name

    def _states(self, scope: _Scope, taken: set[str]) -> dict[str, tuple[str, str, ConstantOp]]:
        """Add arguments for buffers that the program changes: names, and what they begin with."""
        states: dict[str, tuple[str, str, ConstantOp]] = {}
        for spec in self.signature["input_specs"]:
            ((kind, data),) = spec.items()
            key = data.get(f"{kind}_name")
            if kind in ("user_input", "constant_input") or key not in self.changed:
                continue
            constant = self.archive.constant(key)
            argument = scope.block.insert_arg(constant.result.type, len(scope.block.args))
            scope.names[data["arg"]["name"]] = Alias.of(argument)
            states[key] = (fresh(key, taken), data["arg"]["name"], constant)
        return states

    def _find_changed(self, scope: _Scope, befores: Mapping[str, Any]) -> None:
        for spec in self.signature["input_specs"]:
            ((kind, data),) = spec.items()
            if kind in ("user_input", "constant_input"):
                continue
            if befores[data["arg"]["name"]].version:
                self.changed.add(data[f"{kind}_name"])

    def _outputs(
        self,
        scope: _Scope,
        wanted: Sequence[str] | None,
        befores: Mapping[str, Any],
        arguments: Mapping[str, str],
    ) -> tuple[list[str], list[SSAValue]]:
        """
        The names and values that are returned, and inputs that are written; `arguments` are those
        of the states.
        """
        found: list[str] = []
        written: dict[str, str] = {}
        # An output that is also written back is what the tensor holds then.
        held = {value: arguments[key] for key, value in self._mutations().items()}
        for spec in self.signature["output_specs"]:
            ((kind, data),) = spec.items()
            arg = data["arg"]
            if kind == "user_input_mutation":
                written[data["user_input_name"]] = arg["name"]
                held[arg["name"]] = data["user_input_name"]
            elif kind == "user_output":
                if "as_tensor" in arg:
                    found.append(arg["as_tensor"]["name"])
                elif (symbol := next(iter(arg))) in _SYMBOLIC and "as_name" in arg[symbol]:
                    found.append(arg[symbol]["as_name"])
        for spec in self.signature["input_specs"]:
            arg = spec.get("user_input", {}).get("arg", {})
            if "as_tensor" in arg and befores[arg["as_tensor"]["name"]].version:
                written[arg["as_tensor"]["name"]] = arg["as_tensor"]["name"]
        for name in wanted or ():
            if name not in scope.names:
                some = ", ".join(f"'{name}'" for name in found)
                self._report("", "", f"no tensor is named '{name}'; the outputs are {some}")
        found = found if wanted is None else [name for name in wanted if name in scope.names]
        taken: set[str] = set()
        names = [fresh(name, taken) for name in found]
        values = [
            self._written_back(held[name], name, scope) if name in held else scope.read(name)
            for name in found
        ]
        for name, after in written.items():
            names.append(fresh(f"{name}_next", taken))
            values.append(self._written_back(name, after, scope))
        return names, values

    def _written_back(self, target: str, name: str, scope: _Scope) -> SSAValue:
        """What a tensor holds that a value is copied to, which may have another type and shape."""
        old, new = (scope.graph["tensor_values"][key] for key in (target, name))
        sizes = [[size_of(size, self.symbols) for size in meta["sizes"]] for meta in (old, new)]
        if old["dtype"] == new["dtype"] and sizes[0] == sizes[1]:
            return scope.read(name)
        cls = op_class("aten.copy.default")
        assert cls is not None
        self_ = scope.read(target)
        op = cls({"self": self_, "src": scope.read(name)}, [unranked(self_)])
        op.location = self.location
        scope.block.add_op(op)
        return op.results[0]

    # Nodes

    def _add(self, scope: _Scope, op: Operation, node: Mapping[str, Any]) -> None:
        op.location = self._locate(node)
        scope.block.add_op(op)

    def _locate(self, node: Mapping[str, Any]) -> LocationAttr:
        return NameLoc(StringAttr(node_name(node)), self.location)

    def _node(self, node: Mapping[str, Any], scope: _Scope) -> None:
        target = target_of(node)
        if target in _CHECKS:
            return
        if target in CONTROL_FLOW:
            self._control_flow(node, scope)
            return
        cls = op_class(functional(target))
        assert cls is not None
        formals = list(cls.schema.arguments)
        given: dict[str, Given] = {}
        for position, entry in enumerate(node["inputs"]):
            name = entry["name"]
            if name not in cls.schema.arguments:
                # One without a name, or the operand of an operator in place.
                if name not in ("", "self"):
                    self._report(node_name(node), target, f"found an argument '{name}'")
                    self._raise_problems()
                name = formals[position]
            value = self._argument(entry["arg"], scope)
            if value is not None:
                given[name] = value
        source = self._source(node, scope)
        if target.startswith("aten.as_strided") and source is not None:
            given_order, source = source, self._in_storage_order(node, source, scope)
            is_moved = source is not given_order and target.startswith("aten.as_strided_scatter")
            if source is None or is_moved:
                text = "found other strides of a tensor whose elements lie apart"
                self._report(node_name(node), target, text)
                return
            given["self"] = source.value
        in_place = functional(target) != target
        names = [*_output_names(node)]
        types = [self._type(kind, name, scope) for kind, name in names]
        if target in _MOVING and self._is_of_batch(node):
            self._batch_norm(node, given, types, scope)
            return
        writes = in_place and target.split(".")[1].rstrip("_") not in VIEWS
        op = cls(given, types, writes)
        self._add(scope, op, node)
        try:
            self._bind(node, op, [name for _, name in names], in_place, source, scope)
        except AliasError as error:
            self._report(node_name(node), target, f"found {error}")
            for (_, name), result in zip(names, op.results, strict=True):
                scope.names[name] = Alias.of(result)

    def _is_of_batch(self, node: Mapping[str, Any]) -> bool:
        """True if the moments of a batch move those that are kept."""
        given = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        return given["training"] == {"as_bool": True} and "as_tensor" in given["running_mean"]

    def _batch_norm(
        self,
        node: Mapping[str, Any],
        given: Mapping[str, Given],
        types: Sequence[Attribute],
        scope: _Scope,
    ) -> None:
        """A normalization by the moments of a batch, which are written where some are kept."""
        kept = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        cls = op_class("aten._native_batch_norm_legit_functional.default")
        assert cls is not None
        given = {name: given[name] for name in cls.schema.arguments if name in given}
        places = [kept[name]["as_tensor"]["name"] for name in ("running_mean", "running_var")]
        moments = [self._type("as_tensor", name, scope) for name in places]
        op = cls(given, [types[0], *moments, *moments])
        self._add(scope, op, node)
        for (_, name), result in zip(_output_names(node), op.results, strict=False):
            scope.names[name] = Alias.of(result)
        for name, result in zip(places, op.results[3:], strict=True):
            scope.names[name].write(scope.block, result)

    def _bind(
        self,
        node: Mapping[str, Any],
        op: Pt2Op,
        names: list[str],
        in_place: bool,
        source: Alias | None,
        scope: _Scope,
    ) -> None:
        """Let names stand for the results of an op that looks at a source or writes to it."""
        base = op.op_type.split(".")[1] if op.op_type.startswith("aten.") else ""
        for index, name in enumerate(names):
            result = op.results[index]
            result.name_hint = name if name.isidentifier() else None
            if source is not None and in_place and base not in VIEWS:
                if index:
                    raise AliasError(f"result {index} of an operator in place")
                if self._shows_twice(scope.graph["tensor_values"][_first_name(node)]):
                    raise AliasError("a write to elements that the tensor shows several times")
                source.write(scope.block, result)
                scope.names[name] = source
            elif source is not None and base in VIEWS and self._is_view(node, op, base, scope):
                scope.names[name] = source.view(op, index)
                if in_place:  # the tensor itself, by any name, has become the view
                    for key in [key for key, alias in scope.names.items() if alias is source]:
                        scope.names[key] = scope.names[name]
            elif source is None and base in SHOWING:
                alias = scope.names[_tensor_names(node)[index]]
                for view in shown_by(op, index, alias.read(scope.block)):
                    self._add(scope, view, node)
                    alias = alias.view(view, 0)
                scope.names[name] = alias
            else:
                scope.names[name] = Alias.of(result)
                if source is not None and base in VIEWS:
                    scope.names[name].storage.unclear = source.storage.unclear
                elif may_share(base, len(shown := _tensor_names(node))):
                    for alias in (scope.names[name], *(scope.names[one] for one in shown)):
                        alias.storage.unclear = True

    def _source(self, node: Mapping[str, Any], scope: _Scope) -> Alias | None:
        """The tensor that an operator looks at or writes to, if it is one."""
        name = _first_name(node)
        return scope.names.get(name) if name else None

    def _is_view(self, node: Mapping[str, Any], op: Pt2Op, base: str, scope: _Scope) -> bool:
        """Whether a result shows the elements of the operand, as PyTorch decides it."""
        metas = scope.graph["tensor_values"]
        meta = metas[_first_name(node)]
        result = metas[_output_names(node)[0][1]]
        if base in ("to", "type_as", "contiguous"):  # a copy where it has to lie otherwise
            same = result["dtype"] == meta["dtype"] and self._lie_alike(meta, result)
            return same and (base != "to" or op.argument("copy") is not True)
        if base in ("reshape", "reshape_as", "flatten", "ravel", "unflatten"):
            if self._lies_in_order(meta):
                return True
            sizes, strides = (self._numbers(meta[key]) for key in ("sizes", "strides"))
            new = self._numbers(result["sizes"])
            if sizes is None or strides is None or new is None:
                scope.names[_first_name(node)].storage.unclear = True
                return False
            return base != "ravel" and can_view(sizes, strides, new)
        if base.endswith("dropout"):
            return not op.argument("train")
        return True

    def _numbers(self, sizes: Sequence[Any]) -> list[int] | None:
        """Sizes or strides, if all of them are known."""
        found = [size_of(size, self.symbols).value for size in sizes]
        known = [number for number in found if number is not None]
        return known if len(known) == len(found) else None

    def _lie_alike(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """True if two tensors of the same sizes have the same strides, as far as these matter."""
        pairs = zip(one["sizes"], one["strides"], other["strides"], strict=True)
        return all(
            size_of(a, self.symbols) == size_of(b, self.symbols)
            for size, a, b in pairs
            if size_of(size, self.symbols) != 1
        )

    def _shows_twice(self, meta: Mapping[str, Any]) -> bool:
        """True if a tensor shows the same elements again and again, as far as it is known."""
        sizes, strides = (self._numbers(meta[key]) for key in ("sizes", "strides"))
        if sizes is not None and strides is not None:
            return overlaps(sizes, strides)
        pairs = zip(meta["sizes"], meta["strides"], strict=True)
        return any(
            size_of(stride, self.symbols) == 0 and size_of(size, self.symbols) not in (0, 1)
            for size, stride in pairs
        )

    def _lies_in_order(self, meta: Mapping[str, Any]) -> bool:
        """True if the elements of a tensor lie in the order of their indices."""
        expected = Expr.const(1)
        for size, stride in zip(meta["sizes"][::-1], meta["strides"][::-1], strict=True):
            length = size_of(size, self.symbols)
            if length != 1 and size_of(stride, self.symbols) != expected:
                return False
            expected = expected * length
        return True

    def _in_storage_order(
        self, node: Mapping[str, Any], source: Alias, scope: _Scope
    ) -> Alias | None:
        """A permutation of a tensor whose elements lie in order; None if there is none."""
        metas = scope.graph["tensor_values"]
        meta, result = metas[_first_name(node)], metas[_output_names(node)[0][1]]
        if 0 in (size_of(size, self.symbols).value for size in result["sizes"]):
            return source
        if meta["storage_offset"] != {"as_int": 0}:
            return None
        if self._lies_in_order(meta):
            return source
        sizes, strides = (self._numbers(meta[key]) for key in ("sizes", "strides"))
        if sizes is None or strides is None:
            return None
        order = sorted(range(len(sizes)), key=lambda k: (-strides[k], -sizes[k]))
        step = 1
        for axis in reversed(order):
            if sizes[axis] not in (1, 0) and strides[axis] != step:
                return None
            step *= sizes[axis]
        cls = op_class("aten.permute.default")
        assert cls is not None
        given: dict[str, Given] = {"self": source.value, "dims": plain_attribute(order)}
        op = cls(given, [unranked(source.value)])
        self._add(scope, op, node)
        return source.view(op, 0)

    def _type(self, kind: str, name: str, scope: _Scope) -> Attribute:
        if kind in _SYMBOLIC:
            return UnrankedTensorType(_SYMBOLIC[kind])
        if name not in scope.graph["tensor_values"]:
            return UnrankedTensorType(i64)  # a result that is never there
        return UnrankedTensorType(element(scope.graph["tensor_values"][name]["dtype"]))

    def _argument(self, arg: Mapping[str, Any], scope: _Scope) -> Given | None:
        """What an argument is; None for one without meaning."""
        ((kind, data),) = arg.items()
        if kind in _WITHOUT_MEANING:
            return None
        if kind in _PLAIN:
            return plain_attribute(float(data) if kind == "as_float" else data)
        match kind:
            case "as_none":
                return plain_attribute(None)
            case "as_complex":
                return self._complex(data, scope)
            case "as_scalar_type":
                return element(data)
            case "as_tensor":
                return scope.read(data["name"])
            case "as_tensors":
                return [scope.read(one["name"]) for one in data]
            case "as_optional_tensor":
                return self._argument(data, scope)
            case "as_optional_tensors":
                return [
                    scope.read(one["as_tensor"]["name"]) if "as_tensor" in one else None
                    for one in data
                ]
            case "as_sym_int" | "as_sym_bool" | "as_sym_float":
                return self._symbolic(kind, data, scope)
            case "as_sym_ints" | "as_sym_bools" | "as_sym_floats":
                return [self._symbolic(kind[:-1], one, scope) for one in data]
            case _:
                raise ArchiveError(f"an argument of kind {kind}")

    def _complex(self, data: Mapping[str, float], scope: _Scope) -> SSAValue:
        op = ConstantOp.of(np.array(complex(data["real"], data["imag"])))
        scope.block.add_op(op)
        return op.result

    def _symbolic(self, kind: str, data: Mapping[str, Any], scope: _Scope) -> SSAValue:
        if "as_name" in data:
            return scope.read(data["as_name"])
        ((_, number),) = data.items()
        op = scalar(number, _SYMBOLIC[kind])
        scope.block.add_op(op)
        return op.result

    # Control flow

    def _control_flow(self, node: Mapping[str, Any], scope: _Scope) -> None:
        if scope.depth > _DEEPEST:
            raise ArchiveError("graphs too deep inside of one another")
        args = [entry["arg"] for entry in node["inputs"]]
        match target_of(node).removeprefix("higher_order."):
            case "cond":
                values = self._if(node, args, scope)
            case "while_loop":
                values = self._while(node, args, scope)
            case "scan":
                inits, xs, rest = (self._operands(arg, scope) for arg in args[1:4])
                values = self._over_rows(node, args[0], inits, xs, rest, scope)
            case "map_impl":
                xs, rest = (self._operands(arg, scope) for arg in args[1:3])
                values = self._over_rows(node, args[0], [], xs, rest, scope)
            case "wrap_with_set_grad_enabled":
                values = self._inline(args[1], self._flat(args[2:], scope), scope)
            case _:
                values = self._inline(args[4], self._flat(args[5:], scope), scope)
        for (_, name), value in zip(_output_names(node), values, strict=True):
            scope.names[name] = value if isinstance(value, Alias) else Alias.of(value)

    def _operands(self, arg: Mapping[str, Any], scope: _Scope) -> list[SSAValue]:
        return read_all(self._flat([arg], scope), scope.block)

    def _flat(self, args: Sequence[Mapping[str, Any]], scope: _Scope) -> list[Alias]:
        """The tensors and symbols in a list of arguments."""
        found: list[Alias] = []
        for arg in args:
            ((kind, data),) = arg.items()
            if kind == "as_tensor":
                found.append(scope.names[data["name"]])
            elif kind == "as_tensors":
                found += [scope.names[one["name"]] for one in data]
            else:
                given = self._argument(arg, scope)
                if isinstance(given, Attribute) and isinstance(data, list):
                    numbers = cast("list[object]", data)
                    found += [self._number(number, scope) for number in numbers]
                elif isinstance(given, Attribute):
                    found.append(self._number(data, scope))
                elif isinstance(given, SSAValue):
                    found.append(Alias.of(given))
                else:
                    found += [Alias.of(one) for one in given or () if one is not None]
        return found

    def _number(self, number: object, scope: _Scope) -> Alias:
        if not isinstance(number, int):
            raise ArchiveError(f"an operand {number} of control flow")
        op = scalar(number, i1 if isinstance(number, bool) else i64)
        scope.block.add_op(op)
        return Alias.of(op.result)

    def _inline(
        self,
        arg: Mapping[str, Any],
        given: Sequence[Alias],
        scope: _Scope,
        block: Block | None = None,
    ) -> list[Alias]:
        """Add the ops of a graph to a block; the values of its outputs."""
        graph = arg["as_graph"]["graph"]
        inner = _Scope(graph, block or scope.block, depth=scope.depth + 1)
        for entry, alias in zip(graph["inputs"], given, strict=True):
            ((_, data),) = entry.items()
            inner.names[data.get("name", data.get("as_name"))] = alias
        for node in graph["nodes"]:
            self._node(node, inner)
        return self._flat(graph["outputs"], inner)

    def _if(
        self, node: Mapping[str, Any], args: Sequence[Mapping[str, Any]], scope: _Scope
    ) -> list[SSAValue]:
        condition = self._operands(args[0], scope)[0]
        given = [value for arg in args[3:] for value in self._operands(arg, scope)]
        regions: list[Region] = []
        types: list[Attribute] = []
        for arg in args[1:3]:
            block = Block()
            results = self._inline(arg, [Alias.of(value) for value in given], scope, block)
            values = read_all(results, block)
            block.add_op(YieldOp(values))
            regions.append(Region(block))
            if len(regions) > 1 and len(types) != len(values):
                raise ArchiveError(f"branches of {len(types)} and {len(values)} results")
            types = [unranked(value) for value in values]
        op = IfOp(condition, regions[0], regions[1], result_types=types)
        self._add(scope, op, node)
        return list(op.results)

    def _while(
        self, node: Mapping[str, Any], args: Sequence[Mapping[str, Any]], scope: _Scope
    ) -> list[SSAValue]:
        decide, repeat = args[:2]
        inits, rest = (self._operands(arg, scope) for arg in args[2:4])
        given = [Alias.of(value) for value in (*inits, *rest)]
        (condition,) = read_all(self._inline(decide, given, scope), scope.block)
        block = Block(arg_types=[tensor(i64, []), *map(unranked, inits)])
        others = [Alias.of(value) for value in rest]
        inside = [Alias.of(value) for value in block.args[1:]]
        after = read_all(self._inline(repeat, [*inside, *others], scope, block), block)
        again = [Alias.of(value) for value in (*after, *rest)]
        (going,) = read_all(self._inline(decide, again, scope, block), block)
        block.add_op(YieldOp([going, *after]))
        op = LoopOp(None, condition, inits, Region(block))
        self._add(scope, op, node)
        return list(op.results)

    def _over_rows(
        self,
        node: Mapping[str, Any],
        body: Mapping[str, Any],
        inits: Sequence[SSAValue],
        xs: Sequence[SSAValue],
        rest: Sequence[SSAValue],
        scope: _Scope,
    ) -> list[SSAValue]:
        """A loop over the first axis of `xs`, whose later results become rows of new tensors."""
        if not xs:
            raise ArchiveError("a loop over nothing")
        zero = plain_attribute(0)
        outer = scope.block
        count = self._call("aten.sym_size.int", {"self": xs[0], "dim": zero}, i64, node, outer)
        names = [name for _, name in _output_names(node)][len(inits) :]
        carried = [*inits, *(self._zeros(name, node, scope) for name in names)]
        is_some = self._call("_operator.gt", {"a": count, "b": zero}, i1, node, outer)
        block = Block(arg_types=[tensor(i64, []), *map(unranked, carried)])
        number, *before = block.args
        rows = [
            self._call("aten.select.int", {"self": x, "dim": zero, "index": number}, x, node, block)
            for x in xs
        ]
        given = [Alias.of(value) for value in (*before[: len(inits)], *rows, *rest)]
        after = read_all(self._inline(body, given, scope, block), block)
        stacked = [
            self._call(
                "aten.select_scatter.default",
                {"self": into, "src": row, "dim": zero, "index": number},
                into,
                node,
                block,
            )
            for into, row in zip(before[len(inits) :], after[len(inits) :], strict=True)
        ]
        one = plain_attribute(1)
        following = self._call("_operator.add", {"a": number, "b": one}, i64, node, block)
        going = self._call("_operator.lt", {"a": following, "b": count}, i1, node, block)
        block.add_op(YieldOp([going, *after[: len(inits)], *stacked]))
        op = LoopOp(None, is_some, carried, Region(block))
        self._add(scope, op, node)
        return list(op.results)

    def _zeros(self, name: str, node: Mapping[str, Any], scope: _Scope) -> SSAValue:
        """A tensor of the type that the file states for a result."""
        meta = scope.graph["tensor_values"][name]
        sizes: list[SSAValue | None] = []
        for size in (size_of(size, self.symbols) for size in meta["sizes"]):
            source = self.sources.get(size)
            if size.value is not None:
                sizes.append(self._number(size.value, scope).value)
            elif source is not None:
                axis = plain_attribute(source[1])
                given: dict[str, Given] = {"self": source[0], "dim": axis}
                sizes.append(self._call("aten.sym_size.int", given, i64, node, scope.block))
            else:
                text = f"found a result '{name}' whose size {size} is that of no input"
                self._report(node_name(node), target_of(node), text)
        given = {"size": sizes}
        return self._call("aten.zeros.default", given, element(meta["dtype"]), node, scope.block)

    def _call(
        self,
        target: str,
        given: Mapping[str, Given],
        like: SSAValue | Attribute,
        node: Mapping[str, Any],
        block: Block,
    ) -> SSAValue:
        cls = op_class(target)
        assert cls is not None
        type_ = unranked(like) if isinstance(like, SSAValue) else UnrankedTensorType(like)
        op = cls(given, [type_])
        op.location = self._locate(node)
        block.add_op(op)
        return op.results[0]


def _first_name(node: Mapping[str, Any]) -> str:
    """The name of the first argument, if it is a tensor."""
    first: Any = node["inputs"][0]["arg"] if node["inputs"] else {}
    return first.get("as_tensor", {}).get("name", "")


_OUTPUTS = ("user_output", "buffer_mutation", "parameter_mutation", "user_input_mutation")
"""Kinds of outputs, but those of training."""


def _tensor_names(node: Mapping[str, Any]) -> list[str]:
    """The names of all tensors among the arguments, also of those in lists."""
    found: list[str] = []
    for entry in node["inputs"]:
        arg: Any = entry["arg"]
        single = [arg["as_tensor"]] if "as_tensor" in arg else []
        found += [one["name"] for one in (*single, *arg.get("as_tensors", ()))]
    return found


def _output_names(node: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Kind and name of each result; lists are taken apart."""
    found: list[tuple[str, str]] = []
    for output in node["outputs"]:
        ((kind, data),) = output.items()
        if kind == "as_tensors":
            found += [("as_tensor", one["name"]) for one in data]
        elif kind == "as_none":
            found.append(("as_none", ""))
        elif kind in _SYMBOLIC:
            found.append((kind, data["as_name"]))
        else:
            found.append((kind, data["name"]))
    return found
