"""
Modules as data for a picture: each op is a record, and each stage of a module a list of records.

An op keeps its number as long as it is the same op, so that stages can be compared; records that
stages share are stored once. Of two modules that were read from two files, ops get the same number
that have the same name, source nodes and result types, in turn.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.defaults import default_of
from lowerdeck.dialects.core.linear import BatchNormOp, ContractionOp, LayerNormOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, numpy_dtype
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.passes.machinery.provenance import source_names
from lowerdeck.passes.machinery.statistics import (
    bytes_moved,
    constant_blob,
    flops,
    is_constant,
    parameters,
)
from lowerdeck.tools.view.weights import weight_statistics

_WRAPPED = re.compile(
    r"#(?:core|builtin|tf1|onnx|buffer)\.(?:int|dims|dim|enum)<(?:\[(.*)\]|(.*))>"
)
_TEXT = 400
"""Characters of an attribute that are kept."""

Record = dict[str, Any]
"""
Of an op, by short names: `id`, `op` (its name), `title`, `names` (of source nodes), `parent` (the
number of the op around it, or -1), `in` (pairs of an op's or block's number and the result's
position), `roles` (what operands are called), `label` (of inputs: their names), `attrs`, `types`
(of results), `kind`, and where it has any `flops`, `bytes`, `weights` (a position in the list of
weights), `params`.
"""


class Graph:
    """The stages of a module, or of several."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.weights: list[dict[str, Any]] = []
        self._serials: dict[Any, int] = {}
        self._kept: list[object] = []
        """Whatever is known by its identity must live."""
        self._texts: dict[int, str] = {}
        self._known: dict[Any, int] = {}
        self._weights_of: dict[int, int] = {}
        self._is_imported = False
        """Whether ops are of a framework, which do not say what they compute."""

    def stage(self, module: ModuleOp) -> list[int]:
        """The positions of the records of a module, in the order of the program."""
        self._is_imported = any(isinstance(op, FrameworkOp) for op in module.walk())
        return [self._position(entry) for entry in self._entries(module)]

    def match(self, one: ModuleOp, other: ModuleOp) -> None:
        """Give the ops of the second module the numbers of those that they match in the first."""
        found: dict[Any, list[Operation]] = defaultdict(list)
        for op in one.walk():
            found[self._likeness(op)].append(op)
        for op in other.walk():
            if same := found.get(self._likeness(op)):
                twin = same.pop(0)
                self._serials[op] = self._serial(twin)
                for theirs, ours in zip(op.regions, twin.regions, strict=False):
                    for block, known in zip(theirs.blocks, ours.blocks, strict=False):
                        self._serials[block] = self._serial(known)
        self._kept += [one, other]

    def data(self) -> dict[str, Any]:
        """Records and weights as JSON."""
        return {"records": self.records, "weights": self.weights}

    def _likeness(self, op: Operation) -> Any:
        types = tuple(str(result.type) for result in op.results)
        return op.name, tuple(source_names(op)), types

    def _serial(self, entity: Operation | Block) -> int:
        if entity not in self._serials:
            self._kept.append(entity)
            self._serials[entity] = len(self._serials)
        return self._serials[entity]

    # What is a record

    def _entries(self, module: ModuleOp) -> Iterator[Operation | Block]:
        """The ops and the blocks with arguments, in the order of the program."""
        for op in module.walk():
            if op is not module:
                yield op
            for region in op.regions:
                yield from (block for block in region.blocks if block.args)

    def _position(self, entity: Operation | Block) -> int:
        """The position of the record of an op, or of the arguments of a block."""
        key = self._key(entity)
        if key not in self._known:
            record = self._of_op(entity) if isinstance(entity, Operation) else self._of(entity)
            self._known[key] = len(self.records)
            self.records.append(record)
        return self._known[key]

    def _key(self, entity: Operation | Block) -> Any:
        """What a record depends on, by identity: attributes and types never change."""
        if isinstance(entity, Block):
            return self._serial(entity), tuple(self._keep(arg.type) for arg in entity.args)
        attributes = (*entity.properties.items(), *entity.attributes.items())
        parent = entity.parent_op()
        return (
            self._serial(entity),
            -1 if parent is None else self._serial(parent),
            tuple(map(self._source, entity.operands)),
            tuple((name, self._keep(value)) for name, value in attributes),
            tuple(self._keep(result.type) for result in entity.results),
            self._keep(entity.location),
        )

    def _keep(self, value: object) -> int:
        if id(value) not in self._texts:
            self._kept.append(value)
            self._texts[id(value)] = ""
        return id(value)

    def _source(self, value: SSAValue) -> tuple[int, int]:
        # A value is the result of an op or the argument of a block; both have a position.
        return self._serial(value.owner), cast(int, cast(Any, value).index)

    def _text(self, value: Attribute) -> str:
        key = self._keep(value)
        if not self._texts[key]:
            self._texts[key] = _shortened(_readable(value))
        return self._texts[key]

    # Records

    def _of(self, block: Block) -> Record:
        parent = block.parent_op()
        names = [str(k) for k in range(len(block.args))]
        if isinstance(parent, func.FuncOp):
            names = value_names(parent.arg_attrs, len(block.args))
        return {
            "id": self._serial(block),
            "op": "arguments",
            "title": "inputs" if isinstance(parent, func.FuncOp) else "arguments",
            "names": [],
            "label": ", ".join(names) if isinstance(parent, func.FuncOp) else "",
            "parent": self._parent(parent),
            "in": [],
            "attrs": {
                name: self._text(arg.type) + _default_text(arg)
                for name, arg in zip(names, block.args, strict=True)
            },
            "types": [type_text(arg.type) for arg in block.args],
            "kind": "edge",
        }

    def _of_op(self, op: Operation) -> Record:
        attributes = {**op.properties, **op.attributes}
        shown = {
            name: self._text(value)
            for name, value in attributes.items()
            if not isinstance(value, BlobAttr)
        }
        record: Record = {
            "id": self._serial(op),
            "op": op.name,
            "title": _title(op),
            "names": source_names(op),
            "parent": self._parent(op.parent_op()),
            "in": [list(self._source(value)) for value in op.operands],
            "roles": _roles(op),
            "attrs": shown,
            "types": [type_text(result.type) for result in op.results],
            "kind": _kind(op),
        }
        if is_constant(op):
            record["params"] = parameters(op)
            if (weights := self._weights(op)) is not None:
                record["weights"] = weights
        for name, count in () if self._is_imported else (("flops", flops), ("bytes", bytes_moved)):
            try:
                amount = count(op)
            except (VerifyException, KeyError):
                continue
            if value := amount.evaluate(dict.fromkeys(amount.symbols, 1)):
                record[name] = value
        return record

    def _parent(self, op: Operation | None) -> int:
        return -1 if op is None or isinstance(op, ModuleOp) else self._serial(op)

    def _weights(self, op: Operation) -> int | None:
        """The position of the statistics of a constant's elements; None if it has none."""
        blob = constant_blob(op)
        if blob is None or blob.is_elided or not blob.size:
            return None
        key = self._keep(blob)
        if key not in self._weights_of:
            try:
                dtype = numpy_dtype(element_type(op.results[0]))
                array = np.frombuffer(blob.data, dtype)
            except (KeyError, ValueError, VerifyException):
                return None  # text, or a type of the framework alone
            if (found := weight_statistics(array)) is None:
                return None
            self._weights_of[key] = len(self.weights)
            self.weights.append(found.data())
        return self._weights_of[key]


def _default_text(argument: SSAValue) -> str:
    """What is said of an input that may be left out."""
    default = default_of(argument)
    return "" if default is None else f"; default {_shortened(str(default.array().tolist()))}"


def _roles(op: Operation) -> list[str]:
    """What the definition of an op calls its operands; of a list of them `name 0`, `name 1`."""
    if not isinstance(op, IRDLOperation):
        return []
    roles: list[str] = []
    for name, _ in op.get_irdl_definition().operands:
        match getattr(op, name):
            case SSAValue():
                roles.append(name)
            case None:
                pass
            case several:
                roles += [f"{name} {k}" for k in range(len(several))]
    return roles


def _title(op: Operation) -> str:
    if isinstance(op, FrameworkOp):
        return op.op_type
    symbol = op.properties.get("sym_name")
    name = _without_dialect(op.name)
    return f"{name} {symbol.data}" if isinstance(symbol, StringAttr) else name


def _without_dialect(name: str) -> str:
    return name.partition(".")[2] or name


_CLASSES: Mapping[type[Operation], str] = {
    **dict.fromkeys((ContractionOp, AttentionOp), "product"),
    **dict.fromkeys((BatchNormOp, LayerNormOp, SoftmaxOp), "norm"),
    **dict.fromkeys((PoolOp, ReduceOp, ArgReduceOp, CumulativeOp), "reduce"),
    **dict.fromkeys((ReshapeOp, TransposeOp, SliceOp, ConcatOp, PadOp, GatherOp), "move"),
    BroadcastOp: "move",
}
_OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(("conv", "convtranspose", "matmul", "gemm", "convolution"), "product"),
    **dict.fromkeys(("conv2d", "depthwiseconv2dnative", "deconvolution"), "product"),
    **dict.fromkeys(("innerproduct", "attention", "lstm", "gru", "einsum"), "product"),
    "batchmatmulv2": "product",
    **dict.fromkeys(("batchnormalization", "layernormalization", "softmax", "batchnorm"), "norm"),
    **dict.fromkeys(("fusedbatchnormv3", "scale", "lrn"), "norm"),
    **dict.fromkeys(("maxpool", "averagepool", "avgpool", "pooling"), "reduce"),
    **dict.fromkeys(("globalaveragepool", "reducemean", "reducesum", "mean", "sum"), "reduce"),
    **dict.fromkeys(("reshape", "transpose", "slice", "concat", "concatv2", "pad"), "move"),
    **dict.fromkeys(("flatten", "squeeze", "unsqueeze", "split", "expand", "gather"), "move"),
}
"""What ops are colored by: by class, or by what their framework calls them; others are maps."""
_CONSTANTS = ("Constant", "Const")
"""Operators of frameworks that are numbers."""


def _kind(op: Operation) -> str:
    if is_constant(op) or (isinstance(op, FrameworkOp) and op.op_type in _CONSTANTS):
        return "constant"
    if op.regions:
        return "region"
    if op.has_trait(IsTerminator):
        return "edge"
    if isinstance(op, FrameworkOp):
        return _OPERATORS.get(op.op_type.lower(), "map")
    return next((kind for cls, kind in _CLASSES.items() if isinstance(op, cls)), "map")


def shape_text(dims: Sequence[Expr]) -> str:
    """Sizes, joined by a sign that no name contains; sums and the like in parentheses."""
    texts = [str(dim) for dim in dims]
    return "×".join(f"({text})" if " " in text and len(texts) > 1 else text for text in texts)


def type_text(type_: Attribute) -> str:
    """A type for an edge: `f32 1×3×224×224`, without a shape where it is not known."""
    if not isinstance(type_, TensorType | UnrankedTensorType):
        return _shortened(str(type_).removeprefix("!"))
    type_ = cast(Tensor, type_)
    try:
        return f"{element_type(type_)} {shape_text(dims_of(type_))}".strip()
    except VerifyException:
        return str(type_.get_element_type())


def _readable(value: Attribute) -> str:
    """An attribute as a person writes it: numbers and lists without their types."""
    if isinstance(value, StringAttr):
        return value.data
    if isinstance(value, IntegerAttr):
        number = value.value.data
        return str(bool(number)) if str(cast(Any, value).type) == "i1" else str(number)
    if isinstance(value, DenseArrayBase):
        values: Sequence[object] = cast(Any, value).get_values()
        return ", ".join(map(str, values))
    text = str(value)
    is_wrapped = _WRAPPED.fullmatch(text)
    return "".join(filter(None, is_wrapped.groups())) if is_wrapped else text


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}..."
