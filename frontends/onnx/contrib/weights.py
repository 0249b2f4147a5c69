"""What a model says by its weights, and by which of its tensors have channels in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, helper

NCHWC = "com.microsoft.nchwc"
"""The domain of operators on channels in blocks."""

CHANNEL_BLOCK = "nchwc_block_size"
"""The key of the metadata that says how large the blocks are."""

_SIZES = (8, 16)
"""Those of processors with 256 bits in a vector, and of those with 512 or NEON."""


class ModelWeights:
    """The weights of a model, in its main graph and in those inside."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model

    @cached_property
    def _dims(self) -> Mapping[str, Sequence[int]]:
        return {
            tensor.name: tuple(tensor.dims)
            for graph in _graphs(self._model.graph)
            for tensor in graph.initializer
        }

    def dims(self, name: str) -> Sequence[int] | None:
        """The shape of a weight; None if there is none of this name."""
        return self._dims.get(name)

    @cached_property
    def _types(self) -> Mapping[str, int]:
        graphs = list(_graphs(self._model.graph))
        inputs = [value for graph in graphs for value in graph.input]
        tensors = [tensor for graph in graphs for tensor in graph.initializer]
        found = {value.name: value.type.tensor_type.elem_type for value in inputs}
        return found | {tensor.name: tensor.data_type for tensor in tensors}

    def element_type(self, name: str) -> int | None:
        """The element type, as in onnx, of a weight or an input of the model; None of others."""
        return self._types.get(name)

    @cached_property
    def channel_block(self) -> int:
        """
        How many channels are side by side in weights. ONNX Runtime takes what suits its processor,
        and leaves no note: counts of channels tell, or the model's metadata; else ValueError.
        """
        given = {entry.key: entry.value for entry in self._model.metadata_props}
        found = [
            size
            for size in _SIZES
            if given.get(CHANNEL_BLOCK, str(size)) == str(size)
            and all(self._fits(graph, size) for graph in _graphs(self._model.graph))
        ]
        if not found:
            raise ValueError("found weights in blocks of channels, expected blocks of 8 or 16")
        if len(found) > 1:
            raise ValueError(
                "found weights in blocks of 8 or of 16 channels, and nothing that says which: save "
                "the model with ORT_ENABLE_EXTENDED, which knows no blocks, or add the metadata "
                f"'{CHANNEL_BLOCK}': '16' if the processor that it was optimized on has AVX-512 "
                "or is an ARM, '8' otherwise"
            )
        return found[0]

    def _fits(self, graph: GraphProto, size: int) -> bool:
        """True if ONNX Runtime would have written all nodes of a graph for blocks of this size."""
        channels: dict[str, int] = {}  # of tensors in blocks, 0 for an unknown number
        for node in graph.node:
            known = [channels[name] for name in node.input if name in channels]
            if node.domain == NCHWC and node.op_type == "Conv":
                dims = self.dims(node.input[1])
                if dims is not None and not _fits_filter(node, dims, node.input[0], channels, size):
                    return False
                channels[node.output[0]] = 0 if dims is None else dims[0]
            elif node.domain == NCHWC and node.op_type == "ReorderOutput":
                count = _int(node, "channels", 0)
                if known and known[0] and known[0] != -(-count // size) * size:
                    return False
            elif node.domain == NCHWC and node.op_type == "ReorderInput":
                channels[node.output[0]] = 0
            elif known:  # pools, arithmetic, concatenations of whole blocks
                total = sum(known) if node.op_type == "Concat" else max(known)
                channels |= dict.fromkeys(node.output, total if all(known) else 0)
        return True


def _fits_filter(
    node: NodeProto, dims: Sequence[int], x: str, channels: Mapping[str, int], size: int
) -> bool:
    """True if a filter [outputs, inputs, ...] is one of whole blocks, or reads what has none."""
    outputs, inputs, groups = dims[0], dims[1], _int(node, "group", 1)
    if outputs % size:
        return False
    if is_in_blocks(inputs, groups, size):
        is_whole = inputs % size == 0 and (groups == 1 or outputs // groups % size == 0)
        return is_whole and x in channels
    return (x in channels) == (groups > 1)


def is_in_blocks(inputs: int, groups: int, size: int) -> bool:
    """True if the inputs of a filter are in blocks, too; others have few, or one for each group."""
    return inputs >= size if groups == 1 else inputs > 1


def _int(node: NodeProto, name: str, default: int) -> int:
    found = [helper.get_attribute_value(one) for one in node.attribute if one.name == name]
    return found[0] if found and isinstance(found[0], int) else default


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and those inside."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _graphs(inner)
