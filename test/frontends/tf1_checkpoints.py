"""Small checkpoints and SavedModels that the tests of the tf1 frontend write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.frontends.tf1.graph_pb2 import AttrValue, DataType, NodeDef, TensorProto
from lowerdeck.frontends.tf1.saved_model_pb2 import (
    BundleEntryProto,
    BundleHeaderProto,
    MetaGraphDef,
    SavedModel,
    SaverDef,
    SignatureDef,
    TensorInfo,
)
from lowerdeck.frontends.tf1.table import masked_checksum

from .tf1_graphs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    Shape,
    Type,
    graph,
    node,
    shape_proto,
)

STRING = Type("string")

_TYPES = {
    np.dtype(np.float32): DataType.DT_FLOAT,
    np.dtype(np.int32): DataType.DT_INT32,
    np.dtype(np.float16): DataType.DT_HALF,
}


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _block(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A block without common prefixes."""
    parts = [
        b"\0" + _varint(len(key)) + _varint(len(value)) + key + value for key, value in entries
    ]
    return b"".join(parts) + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def literal(data: bytes) -> bytes:
    """A Snappy stream that repeats nothing."""
    return _varint(len(data)) + b"".join(
        bytes([len(data[k : k + 60]) - 1 << 2]) + data[k : k + 60] for k in range(0, len(data), 60)
    )


def table(entries: Mapping[bytes, bytes], *, is_compressed: bool = False) -> bytes:
    """A table with one block of entries."""
    out = b""
    places: list[bytes] = []
    blocks = [_block(sorted(entries.items())), None, None]
    for number in range(3):
        index = [(max(entries), places[0])] if number == 2 else []
        contents = blocks[number] or _block(index)
        contents = literal(contents) if is_compressed else contents
        places.append(_varint(len(out)) + _varint(len(contents)))
        body = contents + bytes([is_compressed])
        out += body + masked_checksum(body).to_bytes(4, "little")
    footer = (places[1] + places[2]).ljust(40, b"\0")
    return out + footer + (0xDB4775248B80FB57).to_bytes(8, "little")


def write_checkpoint(
    prefix: Path,
    tensors: Mapping[str, NDArray[Any]] | Mapping[bytes, NDArray[Any]],
    *,
    is_compressed: bool = False,
    others: Mapping[bytes, bytes] | None = None,
    header: BundleHeaderProto | None = None,
    changes: Mapping[str, int] | None = None,
) -> None:
    """
    Write tensors to a checkpoint; `changes` are other values for fields of each entry, and `others`
    more entries of the index.
    """
    entries = {b"": (header or BundleHeaderProto(num_shards=1)).SerializeToString()}
    data = b""
    for name, array in tensors.items():
        content = array.tobytes()
        entry = BundleEntryProto(
            dtype=_TYPES[array.dtype],
            shape=shape_proto(array.shape),
            offset=len(data),
            size=len(content),
            crc32c=masked_checksum(content),
        )
        for field, value in (changes or {}).items():
            setattr(entry, field, value)
        entries[name.encode() if isinstance(name, str) else name] = entry.SerializeToString()
        data += content
    entries.update(others or {})
    prefix.parent.mkdir(parents=True, exist_ok=True)
    index = table(entries, is_compressed=is_compressed)
    Path(f"{prefix}.index").write_bytes(index)
    Path(f"{prefix}.data-00000-of-00001").write_bytes(data)


def slice_key(name: str, *extents: tuple[int, int]) -> bytes:
    """The key of a slice whose numbers are below 64."""
    numbers = bytes(0x80 | number for extent in extents for number in extent)
    return b"\0" + name.encode() + b"\0\1\1" + bytes([len(extents)]) + numbers


def variable(name: str, shape: tuple[int, ...] = (2,), dtype: Type = FLOAT) -> NodeDef:
    """A handle of a variable."""
    return node(name, "VarHandleOp", dtype=dtype, shape=Shape(shape))


def texts(name: str, *values: str) -> NodeDef:
    """A constant of strings."""
    value = TensorProto(
        dtype=DataType.DT_STRING,
        tensor_shape=shape_proto((len(values),)),
        string_val=[value.encode() for value in values],
    )
    return node(name, "Const", value=AttrValue(tensor=value), dtype=STRING)


def restoring(**parts: str) -> list[NodeDef]:
    """The nodes with which a saver restores variables: of each the name in the checkpoint."""
    types = [FLOAT] * len(parts)
    nodes = [
        texts("save/file", "somewhere"),
        texts("save/names", *parts.values()),
        texts("save/slices", *[""] * len(parts)),
        node("save/all", "RestoreV2", "save/file", "save/names", "save/slices", dtypes=types),
    ]
    for number, name in enumerate(parts):
        nodes.append(
            node(f"save/{name}", "AssignVariableOp", name, f"save/all:{number}", dtype=FLOAT)
        )
    done = node("save/restore", "NoOp", *[f"^save/{name}" for name in parts])
    return [*nodes, done]


def meta_graph(
    *nodes: NodeDef,
    tags: Sequence[str] = ("serve",),
    restore: str = "save/restore",
    main_op: str | None = None,
    signatures: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] | None = None,
) -> MetaGraphDef:
    """A graph with its tags and signatures, each with the tensors of its inputs and outputs."""

    def tensors(named: Mapping[str, str]) -> dict[str, TensorInfo]:
        return {key: TensorInfo(name=name) for key, name in named.items()}

    found = MetaGraphDef(
        meta_info_def=MetaGraphDef.MetaInfoDef(tags=tags),
        graph_def=graph(*nodes),
        saver_def=SaverDef(restore_op_name=restore),
        signature_def={
            name: SignatureDef(inputs=tensors(inputs), outputs=tensors(outputs))
            for name, (inputs, outputs) in (signatures or {}).items()
        },
    )
    if main_op is not None:
        found.collection_def["saved_model_main_op"].node_list.value.append(main_op)
    return found


def write_saved_model(
    folder: Path, *graphs: MetaGraphDef, tensors: Mapping[str, NDArray[Any]] | None = None
) -> Path:
    """A SavedModel with a checkpoint of tensors; returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    saved = SavedModel(saved_model_schema_version=1, meta_graphs=graphs)
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    if tensors is not None:
        write_checkpoint(folder / "variables" / "variables", tensors)
    return folder
