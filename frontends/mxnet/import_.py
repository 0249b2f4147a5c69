"""
One-to-one import of a symbol: one mxnet op for each node that is an operator.

A file has neither sizes nor element types of inputs unless the model's author stated them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import YieldOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import (
    MAX_RANK,
    UNKNOWN,
    element_type,
    f32,
    is_float,
    tensor,
)
from lowerdeck.dialects.dims import ExprLike
from lowerdeck.dialects.mxnet.ops import op_class
from lowerdeck.dialects.mxnet.schema import Operator, parse_argument, schemas
from lowerdeck.frontends.errors import FrontendError, Problem
from lowerdeck.frontends.mxnet.symbol import (
    Entry,
    Node,
    Symbol,
    SymbolError,
    read_symbol,
    walk_nodes,
)
from lowerdeck.frontends.mxnet.weights import (
    element_numbered,
    read_weights,
    weights_beside,
)
from lowerdeck.frontends.symbols import Symbols

_UNTYPED = UnrankedTensorType(UNKNOWN)
_LABELS = ("label",)
"""Inputs that only training reads."""

_RESULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        """
        BilinearSampler Correlation Dropout GridGenerator InstanceNorm L2Normalization LRN LeakyReLU
        Pooling ROIPooling SpatialTransformer
        """.split(),
        ("output",),
    ),
    **dict.fromkeys(("BatchNorm", "BatchNorm_v1"), ("output", "mean", "var")),
    **dict.fromkeys(("GroupNorm", "LayerNorm"), ("output", "mean", "std")),
    **dict.fromkeys(("_npi_concatenate", "_npi_dstack", "_npi_hstack", "_npi_matmul"), ("out",)),
    **dict.fromkeys(("_contrib_MultiProposal", "_contrib_Proposal"), ("output", "score")),
    "_npi_std": ("std",),
    "_npi_var": ("var",),
    "RNN": ("output", "state_output", "statecell_output"),
}
"""Operators whose results have names; those of others have numbers, if there are several."""

_WEIGHTS = frozenset(
    "weight bias gamma beta moving_mean moving_var running_mean running_var parameters".split()
)
"""What variables are called that are no inputs, behind the last `_`."""


def import_model(
    path: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModuleOp:
    """
    The module for a symbol: `func.func @main`.

    Arguments are the variables that are no weights, results the outputs, or the tensors `outputs`
    instead. `input_shapes` has the shapes of inputs, above all of those that the file does not
    state; `weights` is a file if there is none, or more than one, beside the symbol. FrontendError
    lists everything that prevents the import.
    """
    file = os.fspath(path)
    try:
        symbol = read_symbol(file)
        importer = _Importer(file, symbol, input_shapes or {})
        return importer.run(None if weights is None else os.fspath(weights), outputs)
    except (SymbolError, OSError, VerifyException) as error:
        raise FrontendError.of_file(file, f"the model is broken: {error}"[:500]) from None


def operators(path: str) -> Iterator[tuple[str, str]]:
    """The operators of a symbol, and the names of their nodes."""
    try:
        for node in walk_nodes(read_symbol(path).nodes):
            if not node.is_variable:
                yield node.op_type, node.name
    except (SymbolError, OSError) as error:
        raise FrontendError.of_file(path, f"the model is broken: {error}"[:500]) from None


class _Importer:
    """The import of one model."""

    def __init__(self, file: str, symbol: Symbol, shapes: Mapping[str, Sequence[int]]) -> None:
        self.file = file
        self.symbol = symbol
        self.location = FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0))
        self.problems: list[Problem] = []
        self.block = Block()
        self.inputs: list[str] = []
        self._shapes = shapes
        self._symbols = Symbols()
        self._weights: Mapping[str, ConstantOp] = {}
        self._file_of_weights = ""

    def run(self, weights: str | None, outputs: Sequence[str] | None) -> ModuleOp:
        """The module; FrontendError lists everything that is wrong."""
        results = self._results(outputs)
        counts = _counts(self.symbol, [entry for _, entry in results])
        self._check(counts)
        self._find_weights(weights)
        values = self._variables(counts)
        self._raise()
        self._nodes(self.symbol, self.block, values, counts)
        self._raise()
        return self._module([(name, values[entry]) for name, entry in results])

    def _module(self, results: Sequence[tuple[str, SSAValue]]) -> ModuleOp:
        last = func.ReturnOp(*(value for _, value in results))
        self.block.add_op(last)
        main = func.FuncOp(
            "main",
            (self.block.arg_types, last.arguments.types),
            Region(self.block),
            arg_attrs=named(self.inputs),
            res_attrs=named([name for name, _ in results]),
        )
        main.location = last.location = self.location
        return ModuleOp([main])

    # Problems

    def _report(self, node: str, op_type: str, message: str) -> None:
        self.problems.append(Problem(self.file, node, op_type, message))

    def _raise(self) -> None:
        if self.problems:
            raise FrontendError(self.problems)

    def _check(self, counts: Counter[int]) -> None:
        """Report all operators that have no op, among those that are needed and in subgraphs."""
        needed = [node for number, node in enumerate(self.symbol.nodes) if counts[number]]
        for node in (each for node in needed for each in walk_nodes([node])):
            if not node.is_variable and node.op_type not in schemas():
                text = "the operator is not known; write it with operators of MXNet 1.9"
                self._report(node.name, node.op_type, text)
        self._raise()

    def _locate(self, name: str) -> LocationAttr:
        return NameLoc(StringAttr(name), self.location)

    # Weights

    def _find_weights(self, given: str | None) -> None:
        beside = weights_beside(self.file)
        if given is None and len(beside) > 1:
            some = ", ".join(map(os.path.basename, beside[:8]))
            self._report("", "", f"found several files of weights ({some}); choose: --weights FILE")
            self._raise()
        self._file_of_weights = given or next(iter(beside), "")
        if self._file_of_weights:
            self._weights = read_weights(self._file_of_weights)

    def _weight(self, name: str) -> SSAValue:
        constant = self._weights[name]
        if constant.parent is None:
            constant.location = self._locate(name)
            self.block.add_op(constant)
        return constant.result

    # Variables

    def _variables(self, counts: Counter[int]) -> dict[Entry, SSAValue]:
        """The values of weights and inputs; what only training reads has none."""
        values: dict[Entry, SSAValue] = {}
        taken: Counter[str] = Counter()
        for number in self.symbol.arguments:
            node = self.symbol.nodes[number]
            if not counts[number]:
                continue
            if node.name in self._weights:
                values[number, 0] = self._weight(node.name)
                continue
            taken[node.name] += 1
            if taken[node.name] > 1:
                self._report(node.name, "null", "found several inputs of this name")
                continue
            if (argument := self._input(node)) is not None:
                values[number, 0] = argument
        for name in self._shapes.keys() - set(self.inputs):
            known = ", ".join(f"'{known}'" for known in self.inputs) or "none"
            self._report("", "", f"a shape is given for '{name}', but the inputs are {known}")
        return values

    def _input(self, node: Node) -> SSAValue | None:
        stated = self._stated_shape(node)
        given = self._shapes.get(node.name)
        if given is not None:
            is_same = stated is None or len(stated) == len(given)
            if not is_same or any(size < 0 for size in given):
                rank = "" if stated is None else f" of {len(stated)} dimensions"
                self._report("", "", f"shape {list(given)} for '{node.name}'{rank}")
                return None
        sizes = stated if given is None else list(given)
        if sizes is None or len(sizes) > MAX_RANK:
            self._report("", "", self._unknown(node))
            return None
        dims: list[ExprLike] = [self._symbols.unnamed() if n is None else n for n in sizes]
        element = self._element(node)
        argument = self.block.insert_arg(tensor(element, dims), len(self.block.args))
        argument.location = self._locate(node.name)
        argument.name_hint = node.name if node.name.isidentifier() else None
        self.inputs.append(node.name)
        return argument

    def _unknown(self, node: Node) -> str:
        """What is said of a variable whose shape the file does not state."""
        if node.name.rpartition("_")[2] in _WEIGHTS:
            missing = "found no file with weights"
            if self._file_of_weights:
                missing = f"not found in {self._file_of_weights}"
            return f"weight '{node.name}': {missing}; give the right one with --weights FILE"
        return (
            f"input '{node.name}': its shape is not in the file; "
            f"give it with --input-shape {node.name}=SIZES, such as 1,3,224,224"
        )

    def _stated_shape(self, node: Node) -> list[int | None] | None:
        """Sizes that a variable states, None for each that is open; or None."""
        text = node.attributes.get("__shape__")
        if text is None:
            return None
        try:
            sizes = parse_argument("shape", text)
        except ValueError as error:
            self._report(node.name, "null", f"'__shape__' is {error}")
            return None
        if not sizes:
            return [] if sizes is not None and self.symbol.is_numpy else None
        is_open = (None, -1) if self.symbol.is_numpy else (None, 0, -1)
        return [None if size in is_open else size for size in sizes]

    def _element(self, node: Node) -> Attribute:
        """The element type that a variable states; else that of all weights, as MXNet infers it."""
        text = node.attributes.get("__dtype__", "-1")
        if text not in ("-1", "None"):
            try:
                return element_numbered(parse_argument("int", text))
            except (SymbolError, ValueError) as error:
                self._report(node.name, "null", f"'__dtype__' is '{text}': {error}")
        elements = {element_type(constant.result) for constant in self._weights.values()}
        floats = {element for element in elements if is_float(element)}
        return floats.pop() if len(floats) == 1 else f32

    # Nodes

    def _nodes(
        self, symbol: Symbol, block: Block, values: dict[Entry, SSAValue], counts: Counter[int]
    ) -> None:
        """Add the ops of a graph to a block."""
        for number, node in enumerate(symbol.nodes):
            if node.is_variable or not counts[number]:
                continue
            op = self._op(node, values, counts[number])
            if op is None:
                continue
            block.add_op(op)
            for index, result in enumerate(op.results):
                values[number, index] = result

    def _op(self, node: Node, values: Mapping[Entry, SSAValue], count: int):
        cls = op_class(node.op_type)
        assert cls is not None
        given = self._inputs(node, cls.declared, values)
        given |= self._arguments(node, cls.declared)
        if self.problems:
            return None
        op = cls(given, [_UNTYPED] * count)
        op.location = self._locate(node.name)
        for inner in node.subgraphs:
            op.add_region(self._region(inner))
        return op

    def _inputs(
        self, node: Node, schema: Operator, values: Mapping[Entry, SSAValue]
    ) -> dict[str, Given]:
        """The inputs by the names of the operator's; the last one may be a list."""
        names = schema.inputs
        is_list = bool(names) and schema.arguments[names[-1]].is_list
        if len(node.inputs) > len(names) and not is_list:
            text = f"found {len(node.inputs)} inputs, expected at most {len(names)}"
            self._report(node.name, node.op_type, text)
            return {}
        found: dict[str, Given] = {}
        entries = [values.get(entry) for entry in node.inputs]
        single = names[:-1] if is_list else names
        for name, value in zip(single, entries, strict=False):
            if value is not None:
                found[name] = value
        if is_list:
            found[names[-1]] = entries[len(single) :]
        return found

    def _arguments(self, node: Node, schema: Operator) -> dict[str, Given]:
        found: dict[str, Given] = {}
        if set(schema.arguments) == set(schema.inputs):
            return found  # MXNet reads no arguments where there are none
        for name, text in node.attributes.items():
            argument = schema.arguments.get(name)
            if argument is None or name in schema.inputs:
                self._report(node.name, node.op_type, f"found the argument '{name}', expected none")
                continue
            try:
                found[name] = plain_attribute(parse_argument(argument.type, text))
            except (ValueError, VerifyException) as error:
                text = f"'{name}' is {str(error)[:200]}"
                self._report(node.name, node.op_type, text)
        return found

    def _region(self, graph: Symbol) -> Region:
        """A subgraph, whose variables are its arguments."""
        block = Block(arg_types=[_UNTYPED] * len(graph.arguments))
        values: dict[Entry, SSAValue] = {
            (number, 0): argument
            for number, argument in zip(graph.arguments, block.args, strict=True)
        }
        self._nodes(graph, block, values, _counts(graph, graph.heads))
        heads = [values.get(entry) for entry in graph.heads]
        found = [head for head in heads if head is not None]
        if len(found) != len(heads) and not self.problems:
            self._report("", "", "a subgraph whose results are not computed")
        block.add_op(YieldOp(found))
        return Region(block)

    # Results

    def _results(self, wanted: Sequence[str] | None) -> list[tuple[str, Entry]]:
        """Names, as MXNet gives them, and entries of the results."""
        found = _distinct(self._named(self.symbol.heads))
        if wanted is None:
            return found
        known = self._all_names() | dict(found)
        for name in wanted:
            if name not in known:
                some = ", ".join(f"'{name}'" for name, _ in found)
                self._report("", "", f"no tensor is named '{name}'; the outputs are {some}")
        self._raise()
        return [(name, known[name]) for name in wanted]

    def _named(self, entries: Sequence[Entry]) -> Iterator[tuple[str, Entry]]:
        most: Counter[int] = Counter(dict(enumerate(self.symbol.counts)))
        for number, index in entries:
            most[number] = max(most[number], index + 1)
        for number, index in entries:
            node = self.symbol.nodes[number]
            if node.is_variable:
                yield node.name, (number, index)
                continue
            names = _RESULTS.get(node.op_type, ("output",) if most[number] == 1 else ())
            suffix = names[index] if index < len(names) else f"output{index}"
            yield f"{node.name}_{suffix}", (number, index)

    def _all_names(self) -> dict[str, Entry]:
        """The first result of each node by its name, and by that of its output."""
        found: dict[str, Entry] = {}
        for number, node in enumerate(self.symbol.nodes):
            if not node.is_variable:
                found[node.name] = found[f"{node.name}_output"] = (number, 0)
        return found


def _counts(symbol: Symbol, heads: Sequence[Entry]) -> Counter[int]:
    """How many results of each node `heads` need; labels are not needed."""
    counts: Counter[int] = Counter()
    for number, index in heads:
        counts[number] = max(counts[number], index + 1)
    for number in reversed(range(len(symbol.nodes))):
        node = symbol.nodes[number]
        schema = schemas().get(node.op_type)
        names = () if schema is None else schema.inputs
        for position, (source, index) in enumerate(node.inputs if counts[number] else ()):
            if names[position : position + 1] != _LABELS:
                counts[source] = max(counts[source], index + 1)
    return counts


def _distinct(results: Iterator[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
    taken: set[str] = set()
    found: list[tuple[str, Entry]] = []
    for base, entry in results:
        name, count = base, 1
        while name in taken:
            name, count = f"{base}_{count}", count + 1
        taken.add(name)
        found.append((name, entry))
    return found
