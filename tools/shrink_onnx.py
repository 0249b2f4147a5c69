"""Smaller variants of an ONNX model: fewer nodes, outputs, attributes, smaller tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    checker,
    numpy_helper,
    shape_inference,
)

from lowerdeck.tools.shrinking import chunks

Types: TypeAlias = "Mapping[str, ValueInfoProto]"

_LARGE = 1 << 20
"""Bytes of initializers that are not copied to infer shapes."""


def variants(model: ModelProto) -> Iterator[ModelProto]:
    """Well-formed models that are smaller by one step."""
    return filter(_is_well_formed, _variants(model))


def _is_well_formed(model: ModelProto) -> bool:
    try:
        checker.check_model(model)  # pyright: ignore[reportUnknownMemberType]
    except (checker.ValidationError, ValueError):
        return False
    return True


def _variants(model: ModelProto) -> Iterator[ModelProto]:
    graph = model.graph
    count = len(graph.output)
    for start, end in chunks(count) if count > 1 else ():
        kept = [value for k, value in enumerate(graph.output) if not start <= k < end]
        if kept:
            yield pruned(_changed(model, outputs=kept))
    types = value_types(model)
    for start, end in chunks(len(graph.node)):
        if (cut := _cut(model, start, end, types)) is not None:
            yield cut
    for at, node in enumerate(graph.node):
        yield from _bypassed(model, at, node, types)
    yield from simpler_nodes(model)
    yield from _smaller_sizes(model)
    yield from _simpler_constants(model)


def value_types(model: ModelProto) -> dict[str, ValueInfoProto]:
    """The types of values, by name, as far as they can be inferred."""
    light = ModelProto()
    light.CopyFrom(_changed(model, nodes=model.graph.node, initializers=()))
    for value in model.graph.initializer:
        if value.ByteSize() < _LARGE:
            light.graph.initializer.append(value)
        else:
            light.graph.input.append(_info(value.name, value.data_type, value.dims))
    try:
        inferred = shape_inference.infer_shapes(light, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        inferred = light
    values = [*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input]
    return {value.name: value for value in values if value.type.WhichOneof("value") is not None}


def _info(name: str, element: int, dims: Iterable[int]) -> ValueInfoProto:
    info = ValueInfoProto(name=name)
    info.type.tensor_type.elem_type = element
    for dim in dims:
        info.type.tensor_type.shape.dim.add().dim_value = dim
    return info


def names_read(node: NodeProto) -> set[str]:
    """The values that a node reads, those that its graphs read from outside included."""
    names = set(filter(None, node.input))
    for attribute in node.attribute:
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
            made = {value.name for value in (*graph.input, *graph.initializer)}
            made |= {name for inner in graph.node for name in inner.output}
            read = set[str]().union(*map(names_read, graph.node))
            read |= {value.name for value in graph.output}
            names |= read - made
    return names


def _changed(
    model: ModelProto,
    *,
    nodes: Iterable[NodeProto] | None = None,
    inputs: Iterable[ValueInfoProto] | None = None,
    outputs: Iterable[ValueInfoProto] | None = None,
    initializers: Iterable[TensorProto] | None = None,
) -> ModelProto:
    """A copy with other parts of its graph; weights that are replaced are not copied."""
    graph = model.graph
    copy = ModelProto(
        ir_version=model.ir_version,
        domain=model.domain,
        opset_import=model.opset_import,
        functions=model.functions,
    )
    copy.graph.name = graph.name
    copy.graph.node.extend(graph.node if nodes is None else nodes)
    copy.graph.input.extend(graph.input if inputs is None else inputs)
    copy.graph.output.extend(graph.output if outputs is None else outputs)
    copy.graph.initializer.extend(graph.initializer if initializers is None else initializers)
    copy.graph.sparse_initializer.extend(graph.sparse_initializer)
    return copy


def pruned(model: ModelProto) -> ModelProto:
    """The model without what its outputs do not need; without types of inner values, too."""
    graph = model.graph
    needed = {value.name for value in graph.output}
    kept: list[NodeProto] = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= names_read(node)
    return _changed(
        model,
        nodes=kept[::-1],
        inputs=[value for value in graph.input if value.name in needed],
        initializers=[value for value in graph.initializer if value.name in needed],
    )


def _cut(model: ModelProto, start: int, end: int, types: Types) -> ModelProto | None:
    """
    Take nodes away: what others need of them become inputs; where their results are outputs, what
    they need is an output instead. None if the type of such a value is not known.
    """
    graph = model.graph
    chunk, others = graph.node[start:end], [*graph.node[:start], *graph.node[end:]]
    made = {name for node in chunk for name in node.output if name}
    outputs = [value for value in graph.output if value.name not in made]
    if len(outputs) < len(graph.output):
        read = dict.fromkeys(name for node in chunk for name in sorted(names_read(node)))
        results = {name for node in others for name in node.output}
        names = {value.name for value in outputs}
        new = [name for name in read if name in results and name not in names]
        outputs += [types[name] for name in new if name in types]
    if not outputs:
        return None
    needed = made & set[str]().union(*map(names_read, others))
    if any(name not in types for name in needed):
        return None
    inputs = [*graph.input, *(types[name] for name in sorted(needed))]
    return pruned(_changed(model, nodes=others, inputs=inputs, outputs=outputs))


def _bypassed(model: ModelProto, at: int, node: NodeProto, types: Types) -> Iterator[ModelProto]:
    """The model in which an input of a node is used in place of its result."""
    results = [name for name in node.output if name]
    outputs = {value.name for value in model.graph.output}
    if len(results) != 1 or results[0] in outputs or results[0] not in types:
        return
    constants = {value.name: value for value in model.graph.initializer}
    for name in dict.fromkeys(filter(None, node.input)):
        if name in constants or name not in types or types[name].type != types[results[0]].type:
            continue
        nodes: list[NodeProto] = []
        for other in (*model.graph.node[:at], *model.graph.node[at + 1 :]):
            if any(a.HasField("g") or a.graphs for a in other.attribute):
                return  # graphs inside may read the value by its name
            copy = NodeProto()
            copy.CopyFrom(other)
            copy.ClearField("input")
            copy.input.extend(name if own == results[0] else own for own in other.input)
            nodes.append(copy)
        yield pruned(_changed(model, nodes=nodes))


def simpler_nodes(model: ModelProto) -> Iterator[ModelProto]:
    """Models without one of the attributes, or of the inputs of a node that may be left out."""
    for at, node in enumerate(model.graph.node):
        for k, attribute in enumerate(node.attribute):
            if not attribute.HasField("g") and not attribute.graphs:
                yield _with_node(model, at, attributes=_without(node.attribute, k))
        for k, name in enumerate(node.input):
            if name:
                names = [*node.input[:k], "", *node.input[k + 1 :]]
                while names and not names[-1]:
                    names.pop()
                yield pruned(_with_node(model, at, inputs=names))


def _without(values: Sequence[AttributeProto], at: int) -> list[AttributeProto]:
    return [value for k, value in enumerate(values) if k != at]


def _with_node(
    model: ModelProto,
    at: int,
    *,
    inputs: Sequence[str] | None = None,
    attributes: Sequence[AttributeProto] | None = None,
) -> ModelProto:
    node = NodeProto()
    node.CopyFrom(model.graph.node[at])
    if inputs is not None:
        node.ClearField("input")
        node.input.extend(inputs)
    if attributes is not None:
        node.ClearField("attribute")
        node.attribute.extend(attributes)
    return _changed(model, nodes=[*model.graph.node[:at], node, *model.graph.node[at + 1 :]])


def _smaller_sizes(model: ModelProto) -> Iterator[ModelProto]:
    """Every dimension of one size made another size, in inputs and constants."""
    graph = model.graph
    sizes = {d.dim_value for value in graph.input for d in value.type.tensor_type.shape.dim}
    sizes |= {dim for value in graph.initializer for dim in value.dims}
    for old in sorted((size for size in sizes if size > 1), reverse=True):
        for new in sorted({1, 2, old // 2}):
            if new < old:
                yield _resized(model, old, new)


def _resized(model: ModelProto, old: int, new: int) -> ModelProto:
    inputs: list[ValueInfoProto] = []
    for value in model.graph.input:
        inputs.append(copy := ValueInfoProto())
        copy.CopyFrom(value)
        for dim in copy.type.tensor_type.shape.dim:
            if dim.dim_value == old:
                dim.dim_value = new
    outputs: list[ValueInfoProto] = []
    for value in model.graph.output:
        outputs.append(copy := ValueInfoProto())
        copy.CopyFrom(value)
        for dim in copy.type.tensor_type.shape.dim:
            dim.Clear()  # whatever follows from the inputs
    constants = [_resized_constant(value, old, new) for value in model.graph.initializer]
    return _changed(model, inputs=inputs, outputs=outputs, initializers=constants)


def _resized_constant(value: TensorProto, old: int, new: int) -> TensorProto:
    is_shape = value.data_type == TensorProto.INT64 and len(value.dims) <= 1
    if old not in value.dims and not is_shape:
        return value
    array = numpy_helper.to_array(value)
    if is_shape:
        array = np.where(array == old, new, array).astype(array.dtype)
    part: Any = array[tuple(slice(new if size == old else size) for size in array.shape)]
    return numpy_helper.from_array(np.ascontiguousarray(part).reshape(part.shape), value.name)


def _simpler_constants(model: ModelProto) -> Iterator[ModelProto]:
    """The numbers of a constant made zero or one, or rounded."""
    for at, value in enumerate(model.graph.initializer):
        if value.data_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
            continue
        array = numpy_helper.to_array(value)
        with np.errstate(all="ignore"):
            rounded: Any = np.nan_to_num(array).round().clip(-4, 4)
        for simple in (np.zeros_like(array), np.ones_like(array), rounded):
            if not np.array_equal(simple, array):
                new = numpy_helper.from_array(simple.astype(array.dtype), value.name)
                constants = list(model.graph.initializer)
                constants[at] = new
                yield _changed(model, initializers=constants)


def nodes_of(graph: GraphProto) -> int:
    """How many nodes there are, those in graphs of nodes included."""
    inner = (
        nodes_of(graph)
        for node in graph.node
        for attribute in node.attribute
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
    )
    return len(graph.node) + sum(inner)
