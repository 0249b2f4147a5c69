"""
Writes `ops.txt`: the signatures of TensorFlow's operators, from the registry of an installed
TensorFlow.

    python -m lowerdeck.dialects.tf1.make_signatures > dialects/tf1/ops.txt

TensorFlow is needed for this alone. Left out are operators that cannot occur in a frozen graph that
is run for inference: data sets, devices, debugging and test operators. What feeds a model in
training, and what trains it, is in: a graph may hold it where it never runs, and gradients are
formulas.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from typing import Any

_LEFT_OUT = re.compile(
    r"Dataset|MultiDevice|AnonymousIterator|Iterator(From|To|GetDevice|GetModel)|(Ser|Deser)ialize"
    r"Iter|DeleteIter|TPU|Xla|Collective|BoostedTrees|^Risc|Mkl|Nccl|Summary|Experimental"
    r"|^Retrieve|^Load|^Debug|^DTensor|^Rpc|Sdca|Infeed|Outfeed|Mesh"
    r"|Accumulator|SparseCore|Minibatch|Cudnn|^Save|^Restore|Checkpoint|Rendezvous|^Attr|Send$|Recv"
    r"|Mutex|Barrier|Session|SeedGenerator|Copy|MemoryCache|MapDefun"
    r"|KMC2|Kmeans|CSR|SparseMatrix"
    r"|^(Foo\d|A|B|Attr|Binary|Unary|Simple|TypeList.*|N(In|Polymorphic).*|Int.*(In|Out)put.*)$"
    r"|^NInts|^(Out|In)(Type|Polymorphic|put)|Float(In|Out)put|^(Two|Five)[A-Z]|^Ref(In|Out|Input)"
    r"|>|Struct$|^Func.*Attr|^String.*Attr|^KernelLabel|Dedup|Polymorphic|^Old|^FakeQueue"
)
_KEPT_INTERNAL = frozenset(
    "_Arg _Retval _SwitchN _If _While _ListToArray _ArrayToList _FusedConv2D _FusedMatMul "
    "_FusedBatchNormEx _FusedDepthwiseConv2dNative".split()
)


_KEPT_TO_LOAD = frozenset({"RestoreV2"})
"""What tells where a SavedModel has the values of its variables."""


def _is_kept(name: str) -> bool:
    if name.startswith("_"):
        return name in _KEPT_INTERNAL
    return name in _KEPT_TO_LOAD or _LEFT_OUT.search(name) is None


def _type_name(number: int, types: Any) -> str:
    return str(types.DataType.Name(number)).removeprefix("DT_").lower()


def _argument(arg: Any, types: Any) -> str:
    """`name:T`, `name:=float`, `name:N*T` or `name:@Tlist`; `&` marks a reference."""
    if arg.type_list_attr:
        kind = f"@{arg.type_list_attr}"
    else:
        kind = arg.type_attr or f"={_type_name(arg.type, types)}"
        kind = f"{arg.number_attr}*{kind}" if arg.number_attr else kind
    return f"{arg.name}:{kind}{'&' if arg.is_ref else ''}"


def _default(value: Any, types: Any) -> Any:
    match value.WhichOneof("value"):
        case "s":
            return value.s.decode("latin-1")
        case "type":
            return _type_name(value.type, types)
        case "shape":
            return _shape(value.shape)
        case "tensor":
            return value.tensor.SerializeToString().hex()
        case "func":
            return value.func.name
        case "list":
            return _list_default(value.list, types)
        case None:
            return None
        case kind:
            return getattr(value, str(kind))


def _shape(shape: Any) -> list[int] | None:
    return None if shape.unknown_rank else [dim.size for dim in shape.dim]


def _list_default(values: Any, types: Any) -> list[Any]:
    if values.type:
        return [_type_name(number, types) for number in values.type]
    if values.shape:
        return [_shape(shape) for shape in values.shape]
    texts = [text.decode("latin-1") for text in values.s]
    return [*texts, *values.i, *values.f, *values.b]


def _signature(op: Any, types: Any) -> dict[str, Any]:
    attrs: dict[str, list[Any]] = {}
    for attr in op.attr:
        has_default = attr.HasField("default_value")
        attrs[attr.name] = [attr.type, _default(attr.default_value, types)][: 1 + has_default]
    return {
        "inputs": [_argument(arg, types) for arg in op.input_arg],
        "outputs": [_argument(arg, types) for arg in op.output_arg],
        "attrs": attrs,
        **({"stateful": True} if op.is_stateful else {}),
    }


def main() -> int:
    """Print one line an operator: its name, and its signature as JSON."""
    session: Any = import_module("tensorflow.python.client.pywrap_tf_session")
    op_defs: Any = import_module("tensorflow.core.framework.op_def_pb2")
    types: Any = import_module("tensorflow.core.framework.types_pb2")
    registry = op_defs.OpList()
    registry.ParseFromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    for op in sorted(registry.op, key=lambda op: op.name):
        if _is_kept(op.name):
            text = json.dumps(_signature(op, types), separators=(",", ":"))
            sys.stdout.write(f"{op.name} {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
