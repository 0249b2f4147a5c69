"""
Model files of every format, and damage to them: to bytes, fields of messages, tokens of text.

`find_seeds` takes small models from the project's own tree, onnx's test cases, and the corpus if it
is there; `mutant` damages one of them, always in the same way for the same number.
"""

from __future__ import annotations

import json
import math
import random
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from corpus import corpus_folder
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import helper
from onnx import numpy_helper as arrays

from lowerdeck.binding import read_metadata
from lowerdeck.build import build_library, find_compiler, library_name
from lowerdeck.compiler import CompileOptions, generate, import_and_lower
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.dialects.caffe.layers import layer_types
from lowerdeck.dialects.onnx.ops import op_classes
from lowerdeck.dialects.tf1.signatures import known_operators
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.frontends.tf1.saved_model_pb2 import MetaGraphDef, SavedModel
from lowerdeck.lowering.pipeline import PHASES

FORMATS = ("onnx", "tf1", "saved-model", "checkpoint", "caffe", "mlir", "compiled")

ROOT = Path(__file__).parents[1]
MAX_BYTES = 20_000
"""Of a file that is damaged: larger ones take longer and show nothing new."""

Files = dict[str, bytes]
"""The files of a model by their names in its folder."""


@dataclass(frozen=True)
class Seed:
    """A model that is whole."""

    name: str
    format: str
    files: Files
    entry: str
    """What is compiled: a file, or the folder itself (empty)."""
    phase: str = "imported"
    """How far the text of IR has come."""


@dataclass(frozen=True)
class Mutant:
    """A damaged model."""

    number: int
    seed: Seed
    files: Files
    damaged: str
    """The file that differs from the seed's."""
    changes: tuple[str, ...]


# Seeds


def find_seeds(formats: Sequence[str], *, quick: bool = False) -> list[Seed]:
    """
    Whole models of these formats, in the same order on every machine; with `quick` only those that
    are at hand at once.
    """
    makers: Mapping[str, Callable[[], Iterator[Seed]]] = {
        "onnx": lambda: _onnx_seeds(quick=quick),
        "tf1": _tf1_seeds,
        "saved-model": _saved_model_seeds,
        "checkpoint": _checkpoint_seeds,
        "caffe": _caffe_seeds,
        "mlir": lambda: _mlir_seeds(quick=quick),
        "compiled": _compiled_seeds,
    }
    return [seed for name in formats for seed in makers[name]()]


def _onnx_seeds(*, quick: bool) -> Iterator[Seed]:
    for case in [] if quick else _suite():
        data = case.model.SerializeToString()
        if len(data) <= MAX_BYTES:
            yield Seed(case.name, "onnx", {"model.onnx": data}, "model.onnx")
    for name, model in _onnx_models():
        # Models that nest and refer are damaged more often than those of single nodes.
        for _ in range(40):
            yield Seed(name, "onnx", {"model.onnx": model.SerializeToString()}, "model.onnx")
    yield from _external_seed() * 40


def _suite() -> list[Any]:
    """The cases of onnx for single operators."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind="node"), key=lambda case: case.name)


def _onnx_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Small models in the text form of onnx: control flow, functions, recurrent layers."""
    texts = {
        "branches": """<ir_version: 8, opset_import: ["" : 17]>
            g (bool c, float[2, N] x) => (float[M, N] y) {
              y = If (c) <then_branch = t () => (float[2, N] a) { a = Relu (x) },
                          else_branch = e () => (float[1, N] b) { s = Constant <value_ints = [1]> ()
                            z = Constant <value_ints = [0]> ()  b = Slice (x, z, s) }> }""",
        "loop": """<ir_version: 8, opset_import: ["" : 17]>
            g (int64 n, bool c, float[2, 3] x) => (float[2, 3] y, float[K, 2, 3] rows) {
              y, rows = Loop (n, c, x) <body = b (int64 i, bool k, float[2, 3] v)
                => (bool k2, float[2, 3] w, float[2, 3] row) {
                f = Cast <to = 1> (i)  w = Add (v, f)  row = Neg (w)
                s = ReduceSum <keepdims = 0> (w)
                h = Constant <value_float = 100.0> ()  k2 = Less (s, h) }> }""",
        "scan": """<ir_version: 8, opset_import: ["" : 17]>
            g (float[2] start, float[5, 2] xs) => (float[2] last, float[5, 2] ys) {
              last, ys = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] x)
                => (float[2] t, float[2] y) { t = Add (s, x)  y = Mul (t, x) }> (start, xs) }""",
        "sequences": """<ir_version: 8, opset_import: ["" : 17]>
            g (float[2, 3] x, float[1, 3] z) => (float[3, 3] y) {
              s = SequenceConstruct (x, z)  p = Constant <value_int = 0> ()
              a = SequenceAt (s, p)  e = SequenceErase (s, p)  i = SequenceInsert (e, a, p)
              y = ConcatFromSequence <axis = 0> (i) }""",
        "functions": """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
            g (float[2, 3] x) => (float[2, 3] y) {
              t = local.twice <alpha = 0.5> (x)  y = local.leaky <alpha = 2.0> (t) }
            <domain: "local", opset_import: ["" : 17, "local" : 1]>
            twice <alpha> (x) => (y) { a = local.leaky <alpha: float = @alpha> (x)  y = Add (a, a) }
            <domain: "local", opset_import: ["" : 17]>
            leaky <alpha> (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }""",
    }
    for name, text in texts.items():
        yield name, onnx.parser.parse_model(text)
    random_ = np.random.default_rng(0)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        shapes = {"w": (2, gates * 3, 2), "r": (2, gates * 3, 3), "b": (2, gates * 6)}
        names = ["x", "w", "r", "b", "len", "h"]
        node = helper.make_node(op, names, ["y", "yh"], hidden_size=3, direction="bidirectional")
        weights = [
            arrays.from_array(random_.normal(size=shape).astype(np.float32), weight)
            for weight, shape in shapes.items()
        ]
        inputs = [
            helper.make_tensor_value_info("x", 1, ["T", 1, 2]),
            helper.make_tensor_value_info("len", 6, [1]),
            helper.make_tensor_value_info("h", 1, [2, 1, 3]),
        ]
        outputs = [helper.make_tensor_value_info(name, 1, None) for name in ("y", "yh")]
        graph = helper.make_graph([node], "g", inputs, outputs, weights)
        opsets = [helper.make_opsetid("", 17)]
        yield op, helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _external_seed() -> list[Seed]:
    """A model whose weights are in a file of their own."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    tensor = arrays.from_array(weights, "w")
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", str(len(data)))):
        tensor.external_data.add(key=key, value=value)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 3, 8, 8])]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    files = {"model.onnx": model.SerializeToString(), "w.bin": data}
    return [Seed("external", "onnx", files, "model.onnx")]


def _tf1_seeds() -> Iterator[Seed]:
    for path in sorted((ROOT / "test/end_to_end").rglob("*.pb*")):
        data = path.read_bytes()
        yield Seed(path.stem, "tf1", {f"model{path.suffix}": data}, f"model{path.suffix}")
    for path in sorted((ROOT / "test/passes/legalize/tf1/expected").glob("*.npz")):
        with np.load(path) as entries:
            graph = GraphDef.FromString(entries["graph"].tobytes())
        yield from _parts(path.stem, graph)
    if (corpus := corpus_folder()) is not None:
        for path in sorted((corpus / "tf1").glob("*/model.pb*")):
            if path.stat().st_size <= MAX_BYTES:
                entry = f"model{path.suffix}"
                yield Seed(path.parent.name, "tf1", {entry: path.read_bytes()}, entry)


def _parts(topic: str, graph: GraphDef) -> Iterator[Seed]:
    """The single results of a graph of many, each with what it needs."""
    nodes = {node.name: node for node in graph.node}
    sources = {
        node.name: [ref.removeprefix("^").partition(":")[0] for ref in node.input]
        for node in graph.node
    }
    used = {name for names in sources.values() for name in names}
    for result in (name for name in nodes if name not in used):
        needed, pending = set[str](), [result]
        while pending:
            if (name := pending.pop()) not in needed:
                needed.add(name)
                pending += sources.get(name, [])
        part = GraphDef(versions=graph.versions)
        part.node.extend(node for name, node in nodes.items() if name in needed)
        called = part.SerializeToString()
        part.library.function.extend(
            f for f in graph.library.function if f.signature.name.encode() in called
        )
        data = part.SerializeToString()
        if 1 < len(part.node) and len(data) <= MAX_BYTES // 4:
            yield Seed(f"{topic}/{result}", "tf1", {"model.pb": data}, "model.pb")


def _files_below(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _saved_model_seeds() -> Iterator[Seed]:
    for folder in sorted((ROOT / "test/frontends/saved_models").glob("*/model")):
        yield Seed(folder.parent.name, "saved-model", _files_below(folder), "")


def _checkpoint_seeds() -> Iterator[Seed]:
    files = _files_below(ROOT / "test/frontends/saved_models/sharded")
    files.pop("samples.npz")
    yield Seed("sharded", "checkpoint", files, "model.ckpt.meta")


_LAYERS = (
    'type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }',
    'type: "Deconvolution" convolution_param { num_output: 2 kernel_size: 2 stride: 2 group: 2 }',
    'type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 }',
    'type: "Pooling" pooling_param { pool: AVE global_pooling: true }',
    'type: "InnerProduct" inner_product_param { num_output: 5 axis: 1 }',
    'type: "LRN" lrn_param { local_size: 3 alpha: 0.1 norm_region: WITHIN_CHANNEL }',
    'type: "BatchNorm" batch_norm_param { use_global_stats: true }',
    'type: "Scale" scale_param { bias_term: true axis: 1 }',
    'type: "Bias" bias_param { axis: 1 }',
    'type: "Reshape" reshape_param { shape { dim: 0 dim: -1 dim: 4 } }',
    'type: "Flatten" flatten_param { axis: 1 end_axis: 2 }',
    'type: "Slice" slice_param { axis: 2 slice_point: 2 }',
    'type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }',
    'type: "Softmax" softmax_param { axis: 1 }',
    'type: "Reduction" reduction_param { operation: MEAN axis: 1 }',
    'type: "ArgMax" argmax_param { top_k: 2 out_max_val: true }',
    'type: "MVN" mvn_param { across_channels: true }',
    'type: "Power" power_param { power: 2 scale: 0.5 shift: 1 }',
    'type: "Tile" tile_param { axis: 1 tiles: 2 }',
    'type: "Im2col" convolution_param { kernel_size: 3 }',
    'type: "SPP" spp_param { pyramid_height: 2 pool: MAX }',
    'type: "PReLU" prelu_param { channel_shared: false }',
    'type: "Embed" embed_param { num_output: 3 input_dim: 9 }',
)
_NET = """name: "net"
layer {{ name: "in" type: "Input" top: "x"
  input_param {{ shape {{ dim: 1 dim: 2 dim: 4 dim: 4 }} }} }}
layer {{ name: "l" bottom: "x" top: "y" {layer} }}
layer {{ name: "r" type: "ReLU" bottom: "y" top: "y" }}
layer {{ name: "s" type: "Eltwise" bottom: "y" bottom: "y" top: "z"
  eltwise_param {{ operation: SUM coeff: 1 coeff: 2 }} }}
layer {{ name: "c" type: "Concat" bottom: "z" bottom: "y" top: "o" concat_param {{ axis: 1 }} }}
"""


def _caffe_seeds() -> Iterator[Seed]:
    net = NetParameter()
    blobs = net.layer.add(name="l", type="Convolution").blobs
    for shape in ((4, 2, 3, 3), (4,)):
        blob = blobs.add(data=[0.5] * math.prod(shape))
        blob.shape.dim.extend(shape)
    weights = net.SerializeToString()
    for layer in _LAYERS:
        files = {"net.prototxt": _NET.format(layer=layer).encode()}
        if "Convolution" in layer:
            files["net.caffemodel"] = weights
        name = layer.split('"')[1]
        yield Seed(name, "caffe", files, "net.prototxt")
    if (corpus := corpus_folder()) is not None:
        for folder in sorted((corpus / "caffe").iterdir()):
            found = {p.suffix: p for p in sorted(folder.glob("*.[pc]*[to]*[xd]*[tl]"))}
            text, model = found.get(".prototxt"), found.get(".caffemodel")
            if text is None or model is None or model.stat().st_size > MAX_BYTES:
                continue
            files = {"net.prototxt": text.read_bytes(), "net.caffemodel": model.read_bytes()}
            yield Seed(folder.name, "caffe", files, "net.prototxt")


def _mlir_seeds(*, quick: bool) -> Iterator[Seed]:
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        for position, chunk in enumerate(path.read_text().split("// -----")):
            lines = [line for line in chunk.splitlines() if not line.lstrip().startswith("//")]
            if not any(lines):
                continue
            data = "\n".join(lines).strip().encode() + b"\n"
            phase = "kernels" if b"core.kernel" in data else "imported"
            phase = "buffer" if b"buffer." in data else phase
            yield Seed(f"{path.stem}/{position}", "mlir", {"m.mlir": data}, "m.mlir", phase)
    with tempfile.TemporaryDirectory(prefix="fuzz-files-") as folder:
        for name, model in () if quick else _onnx_models():
            path = Path(folder) / f"{name}.onnx"
            path.write_bytes(model.SerializeToString())
            for phase in PHASES:
                module, _ = import_and_lower(str(path), phase, CompileOptions(target="c99"))
                data = str(module).encode()
                if len(data) <= 2 * MAX_BYTES:
                    for _ in range(4):
                        yield Seed(f"{name}/{phase}", "mlir", {"m.mlir": data}, "m.mlir", phase)


def _compiled_seeds() -> Iterator[Seed]:
    """The folder of a compiled model; none without a C compiler."""
    if find_compiler() is None:
        return
    name, model = next(_onnx_models())
    with tempfile.TemporaryDirectory(prefix="fuzz-files-") as folder:
        out = Path(folder) / "out"
        out.mkdir()
        (path := Path(folder) / f"{name}.onnx").write_bytes(model.SerializeToString())
        generate(str(path), str(out), CompileOptions(target="c99"))
        metadata = read_metadata(str(out))
        build_library(str(out), metadata, str(out / library_name(metadata["name"])))
        yield Seed(name, "compiled", _files_below(out), "")


# Mutants


def mutant(seeds: Sequence[Seed], seed: int, number: int) -> Mutant:
    """The mutant of this number among those of `seed`."""
    rng = random.Random(f"{seed}/{number}")
    formats = sorted({candidate.format for candidate in seeds})
    weights = [_SHARES.get(name, 1) for name in formats]
    (format_,) = rng.choices(formats, weights)
    chosen = rng.choice([candidate for candidate in seeds if candidate.format == format_])
    donor = rng.choice([candidate for candidate in seeds if candidate.format == format_])
    damaged = _damaged_file(chosen, rng)
    data, changes = chosen.files[damaged], list[str]()
    kind = message_kind(chosen, damaged)
    message = None if kind is None or rng.random() < 0.15 else parsed(kind, damaged, data)
    if message is not None and kind is not None:
        other = donor.files.get(damaged)
        given = None if other is None else parsed(kind, damaged, other)
        edits = _Edits(rng, given)
        for _ in range(_few(rng)):
            changes.append(edits.damage(message))
        data = serialized(damaged, message)
    elif _is_text(damaged):
        data = _damaged_text(rng, data, donor.files.get(damaged, b""), changes)
    else:
        for _ in range(_few(rng)):
            data = _damaged_bytes(rng, data, donor.files.get(damaged, b""), changes)
    return Mutant(number, chosen, {**chosen.files, damaged: data}, damaged, tuple(changes))


_SHARES = {"onnx": 6, "tf1": 6, "caffe": 3, "mlir": 5}
"""How often a format is damaged; the others once."""


def _few(rng: random.Random) -> int:
    """1 mostly, at times up to 6."""
    return min(6, 1 + int(rng.expovariate(1.2)))


def _damaged_file(seed: Seed, rng: random.Random) -> str:
    if seed.format == "compiled":
        # Damage to a library is what checksums are for: it is code.
        return rng.choice([name for name in seed.files if name.endswith(".json")])
    names = [name for name, data in seed.files.items() if len(data) <= 4 * MAX_BYTES]
    main = [name for name in names if name == seed.entry or "saved_model" in name]
    return rng.choice(main if main and rng.random() < 0.6 else names)


def message_kind(seed: Seed, file: str) -> type[Message] | None:
    """The message in a file; None if it is none."""
    if file.endswith(".onnx"):
        return onnx.ModelProto
    if file.endswith(".meta"):
        return MetaGraphDef
    if "saved_model.pb" in file:
        return SavedModel
    if file.endswith((".pb", ".pbtxt")) and seed.format == "tf1":
        return GraphDef
    return NetParameter if file.endswith((".prototxt", ".caffemodel")) else None


def _is_text(file: str) -> bool:
    return file.endswith((".pbtxt", ".prototxt", ".mlir", ".json"))


def parsed(kind: type[Message], file: str, data: bytes) -> Any:
    """The message of a file, or None if it is not read."""
    message = kind()
    try:
        if _is_text(file):
            text_format.Parse(data.decode("utf-8", "replace"), message)
        else:
            message.ParseFromString(data)
    except (DecodeError, text_format.ParseError, ValueError, RecursionError):
        return None
    return message


def serialized(file: str, message: Any) -> bytes:
    """The file of a message."""
    if _is_text(file):
        return text_format.MessageToString(message).encode("utf-8", "replace")
    return cast(bytes, message.SerializePartialToString())


# Bytes and text

_NUMBERS = (0, 1, -1, 2, -2, 3, 5, 7, 63, 64, 127, 128, 255, 256, 1000, 65536, 2**31 - 1, -(2**31))
_LARGE = (2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 10**9, 10**6)


def _damaged_bytes(rng: random.Random, data: bytes, donor: bytes, changes: list[str]) -> bytes:
    out = bytearray(data or b"\0")
    at = rng.randrange(len(out))
    size = min(len(out) - at, 1 + int(rng.expovariate(0.1)))
    match rng.randrange(7):
        case 0:
            out[at] ^= 1 << rng.randrange(8)
        case 1:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        case 2:
            del out[at:]
        case 3:
            del out[at : at + size]
        case 4:
            out[at:at] = out[at : at + size]
        case 5:
            start = rng.randrange(len(donor) + 1)
            out[at : at + size] = donor[start : start + size]
        case _:
            out[at : at + size] = rng.randbytes(size)
    changes.append(f"bytes from {at}")
    return bytes(out)


_TOKEN = re.compile(r"[\w.%$@]+|\s+|->|.", re.DOTALL)
_HUGE_TEXTS = ("9" * 5000, "-" + "9" * 30, "1e400", "0x" + "F" * 40, "nan", "inf", "-0.0", '""')


def _damaged_text(rng: random.Random, data: bytes, donor: bytes, changes: list[str]) -> bytes:
    text = data.decode("utf-8", "replace")
    tokens: list[str] = _TOKEN.findall(text)
    others: list[str] = _TOKEN.findall(donor.decode("utf-8", "replace"))
    for _ in range(_few(rng)):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        match rng.randrange(10):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[at])
            case 2:
                tokens[at] = rng.choice(tokens)
            case 3:
                tokens[at] = rng.choice(others or tokens)
            case 4:
                numbers = [k for k, token in enumerate(tokens) if token.isdigit()]
                at = rng.choice(numbers or [at])
                tokens[at] = _number_text(rng, tokens[at])
            case 5:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 6:
                tokens[at] = rng.choice((_number_text(rng, "1"), *_HUGE_TEXTS))
            case 7:
                words = [
                    k for k, token in enumerate(tokens) if token[0].isalpha() or token[0] in "%@"
                ]
                if words:
                    at, other = rng.choice(words), rng.choice(words)
                    tokens[at] = tokens[other]
            case 8:
                lines = "".join(tokens).splitlines(keepends=True)
                line = rng.randrange(len(lines) or 1)
                lines[line : line + 1] = rng.choice(([], lines[line : line + 1] * 2))
                tokens = _TOKEN.findall("".join(lines))
            case _:
                if rng.random() < 0.2:
                    bracket = rng.choice("([{<")
                    tokens[at] = bracket * rng.choice((2, 60, 3000))
                elif rng.random() < 0.2:
                    del tokens[at:]
                else:
                    tokens[at] = tokens[at] + rng.choice(tokens)
        changes.append(f"tokens at {at}")
    return "".join(tokens).encode("utf-8", "replace")


def _number_text(rng: random.Random, old: str) -> str:
    near = int(old[:9]) if old[:9].isdigit() else 1
    return str(rng.choice((near + 1, near - 1, -near, 2 * near, *_NUMBERS, *_LARGE)))


# Messages

Site = tuple[Any, FieldDescriptor]


class _Edits:
    """Changes to the fields of messages."""

    def __init__(self, rng: random.Random, donor: Any) -> None:
        self.rng = rng
        self.donor = donor

    def damage(self, message: Any) -> str:
        """Change one field anywhere in a message; where that was."""
        rng = self.rng
        sites = list(_sites(message, absent=rng.random() < 0.12)) or [
            (message, _first_field(message))
        ]
        owner, field = rng.choice(sites)
        if rng.random() < 0.25:  # fields of which there are few in a file of many weights
            fields = sorted({f.full_name for _, f in sites})
            name = rng.choice(fields)
            owner, field = rng.choice([site for site in sites if site[1].full_name == name])
        try:
            self._change(message, owner, field)
        except (TypeError, ValueError, AttributeError, UnicodeError, KeyError):
            owner.ClearField(field.name)  # what cannot be there goes
        return f"{field.full_name}"

    def _change(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        if _is_map(field):
            self._change_map(owner, field)
        elif field.is_repeated:
            self._change_list(root, owner, field)
        elif field.message_type is not None:
            self._change_message(root, owner, field)
        else:
            setattr(owner, field.name, self._value(root, field, getattr(owner, field.name)))

    def _change_map(self, owner: Any, field: FieldDescriptor) -> None:
        entries = getattr(owner, field.name)
        keys = sorted(entries)
        key = self.rng.choice(keys) if keys else ""
        match self.rng.randrange(4):
            case 0:
                del entries[key]
            case 1:
                entries[f"{key}_"].CopyFrom(entries[key])
            case 2:
                entries[key].Clear()
            case _:
                entries[key].CopyFrom(entries[self.rng.choice(keys)])

    def _change_list(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        items = getattr(owner, field.name)
        rng, count = self.rng, len(items)
        at = rng.randrange(count) if count else 0
        is_message = field.message_type is not None
        what = rng.randrange(9)
        if count == 0 or what == 0:
            if is_message:
                given = self._given(root, field)
                items.add() if given is None else items.add().CopyFrom(given)
            else:
                items.append(self._value(root, field, items[0] if count else None))
        elif what == 1:
            del items[at]
        elif what == 2:
            items.add().CopyFrom(items[at]) if is_message else items.append(items[at])
        elif what == 3:
            del items[at:]
        elif what == 4:
            order = [_copied(item) for item in items]
            rng.shuffle(order)
            del items[:]
            items.extend(order)
        elif is_message:
            given = self._given(root, field)
            items[at].Clear() if given is None or what == 5 else items[at].CopyFrom(given)
        else:
            items[at] = self._value(root, field, items[at])

    def _change_message(self, root: Any, owner: Any, field: FieldDescriptor) -> None:
        given = self._given(root, field)
        if given is None or self.rng.random() < 0.4:
            owner.ClearField(field.name)
        else:
            getattr(owner, field.name).CopyFrom(given)

    def _given(self, root: Any, field: FieldDescriptor) -> Any:
        """A message of the field's type from elsewhere, this file or another one."""
        source = self.donor if self.donor is not None and self.rng.random() < 0.4 else root
        found = [m for m in _messages(source) if m.DESCRIPTOR is field.message_type]
        return _copied(self.rng.choice(found)) if found else None

    def _value(self, root: Any, field: FieldDescriptor, old: Any) -> Any:
        rng = self.rng
        kind = field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return not old
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            numbers = [value.number for value in cast(Any, field.enum_type).values]
            return rng.choice([*numbers, 0, rng.randrange(-2, 200)])
        if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
            return rng.choice((0.0, -0.0, -1.0, 1e38, 1e-45, math.nan, math.inf, -math.inf, 0.5))
        if kind != FieldDescriptor.CPPTYPE_STRING:
            near = old if isinstance(old, int) else 1
            return rng.choice((near + 1, near - 1, -near, 2 * near, *_NUMBERS, *_LARGE))
        if field.type == FieldDescriptor.TYPE_BYTES:
            data = old if isinstance(old, bytes) else b""
            return _damaged_bytes(rng, data, data, [])
        return self._name(root, field, old if isinstance(old, str) else "")

    def _name(self, root: Any, field: FieldDescriptor, old: str) -> str:
        rng = self.rng
        if field.full_name in _OPERATORS and rng.random() < 0.8:
            return rng.choice(_OPERATORS[field.full_name]())
        if rng.random() < 0.6:
            same = [name for name, kind in _strings(root) if kind == field.full_name]
            every = [name for name, _ in _strings(root)]
            return rng.choice(same if same and rng.random() < 0.5 else every or [""])
        odd = (
            "",
            "\0",
            "a" * 3000,
            "é",
            "x:0",
            "^x",
            "x:99",
            "9" * 5000,
            " ",
            "/",
            "..",
            f"{old}_",
        )
        return rng.choice((*odd, old[:-1], *map(str, _NUMBERS)))


def _onnx_operators() -> list[str]:
    return sorted({cls.schema.name for cls in op_classes()})


_OPERATORS: Mapping[str, Callable[[], Sequence[str]]] = {
    "onnx.NodeProto.op_type": _onnx_operators,
    "lowerdeck.tf1.NodeDef.op": known_operators,
    "caffe.LayerParameter.type": lambda: sorted(layer_types()),
}
"""The names that fields choose among."""


def _is_map(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def _messages(message: Any) -> Iterator[Any]:
    """The message and all in it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            nested = (value[key] for key in sorted(value))
            nested = (item for item in nested if isinstance(item, Message))
        else:
            nested = value if field.is_repeated else [value]
        for item in nested:
            yield from _messages(item)


_REMARKS = frozenset({"doc_string", "metadata_props", "denotation", "device", "debug_info"})
"""Fields that nobody reads."""


def _sites(message: Any, *, absent: bool) -> Iterator[Site]:
    """The fields that are there, or those that are not."""
    for owner in _messages(message):
        present = [field for field, _ in owner.ListFields()]
        others = [field for field in owner.DESCRIPTOR.fields if field not in present]
        fields = others if absent else present
        yield from ((owner, field) for field in fields if field.name not in _REMARKS)


def _first_field(message: Any) -> FieldDescriptor:
    return message.DESCRIPTOR.fields[0]


def _strings(message: Any) -> Iterator[tuple[str, str]]:
    """All names in a message with the field of each."""
    for owner in _messages(message):
        for field, value in owner.ListFields():
            if field.type == FieldDescriptor.TYPE_STRING and not _is_map(field):
                names = value if field.is_repeated else [value]
                yield from ((name, field.full_name) for name in names if isinstance(name, str))


def _copied(item: Any) -> Any:
    if not isinstance(item, Message):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


# Smaller ones


def smaller(one: Mutant) -> Iterator[Files]:
    """The files with one part less, large parts first."""
    data, kind = one.files[one.damaged], message_kind(one.seed, one.damaged)
    message = None if kind is None else parsed(kind, one.damaged, data)
    if message is not None and kind is not None:
        for data in _without_fields(kind, message, one.damaged):
            yield {**one.files, one.damaged: data}
    elif _is_text(one.damaged):
        lines = data.splitlines(keepends=True)
        for size in (len(lines) // 2, len(lines) // 4, 4, 1):
            for start in range(0, len(lines), size or 1):
                yield {**one.files, one.damaged: b"".join(lines[:start] + lines[start + size :])}


def _without_fields(kind: type[Message], message: Any, file: str) -> Iterator[bytes]:
    data = message.SerializePartialToString()
    count = len(list(_removable(message)))
    for index in range(count):
        copy = cast(Any, kind())
        copy.ParseFromString(data)
        owner, field, at = list(_removable(copy))[index]
        if at is None:
            owner.ClearField(field.name)
        else:
            del getattr(owner, field.name)[at]
        yield serialized(file, copy)


def _removable(message: Any) -> Iterator[tuple[Any, FieldDescriptor, Any]]:
    for owner in _messages(message):
        for field, value in owner.ListFields():
            if _is_map(field):
                yield from ((owner, field, key) for key in sorted(value))
            elif field.is_repeated:
                yield from ((owner, field, at) for at in reversed(range(min(len(value), 20))))
            else:
                yield owner, field, None


def as_json(one: Mutant, what: str, where: str, text: str) -> str:
    """What is written beside the files of a finding."""
    about = {"mutant": one.number, "seed": one.seed.name, "format": one.seed.format}
    about |= {"phase": one.seed.phase, "entry": one.seed.entry, "damaged": one.damaged}
    about |= {"what": what, "where": where, "changes": list(one.changes), "text": text.split("\n")}
    return json.dumps(about, indent=1)
