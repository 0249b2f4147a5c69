"""
Model files of every format to damage: small models from the project's own tree, onnx's test cases,
and the corpus if it is there.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx import numpy_helper as arrays

from fuzz.file_parts import parts_of_mindir, parts_of_pir, parts_of_symbol
from fuzz.quantized_graphs import random_program
from fuzz.weight_files import WRITERS
from lowerdeck.build import build_library, find_compiler, library_name
from lowerdeck.compiler import CompileOptions, generate, import_and_lower
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.metadata import read_metadata
from lowerdeck.passes.fuse.layers import fingerprint, layers_of
from lowerdeck.passes.machinery.contracts import PHASES
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from models.corpus import corpus_folder
from models.onnx_suite import load_cases

FORMATS = (
    "onnx",
    "tf1",
    "saved-model",
    "checkpoint",
    "caffe",
    "darknet",
    "torchscript",
    "pt2",
    "mxnet",
    "paddle",
    "mindir",
    "tflite",
    "keras",
    "mlir",
    "compiled",
    "quantized",
    "ranges",
    "weights",
)

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
        "darknet": _darknet_seeds,
        "torchscript": _torchscript_seeds,
        "pt2": _pt2_seeds,
        "mxnet": _mxnet_seeds,
        "paddle": _paddle_seeds,
        "mindir": _mindir_seeds,
        "tflite": _tflite_seeds,
        "keras": _keras_seeds,
        "mlir": lambda: _mlir_seeds(quick=quick),
        "compiled": _compiled_seeds,
        "quantized": _quantized_seeds,
        "ranges": _ranges_seeds,
        "weights": _weights_seeds,
    }
    return [seed for name in formats for seed in makers[name]()]


def _onnx_seeds(*, quick: bool) -> Iterator[Seed]:
    for case in [] if quick else load_cases():
        for model in (case.model, _with_constants(case)):
            if model is not None and model.ByteSize() <= MAX_BYTES:
                files = {"model.onnx": model.SerializeToString()}
                yield Seed(case.name, "onnx", files, "model.onnx")
    for name, model in _onnx_models():
        # Models that nest and refer are damaged more often than those of single nodes.
        for _ in range(40):
            yield Seed(name, "onnx", {"model.onnx": model.SerializeToString()}, "model.onnx")
    yield from _external_seed() * 40


def _quantized_seeds() -> Iterator[Seed]:
    """Graphs of bytes between floats, and operators whose scales are operands or attributes."""
    graphs = ((str(number), random_program(number).model) for number in range(40))
    for name, model in (*graphs, *_with_scales()):
        if model.ByteSize() <= MAX_BYTES:
            files = {"model.onnx": model.SerializeToString()}
            yield Seed(f"quantized {name}", "quantized", files, "model.onnx")


def _with_scales() -> Iterator[tuple[str, onnx.ModelProto]]:
    texts = {
        "convolution": """<ir_version: 10, opset_import: ["" : 21]>
            g (uint8[1, 3, 6, 6] x, float s, uint8 z) => (uint8[1, 4, 6, 6] y) {
              y = QLinearConv <pads = [1, 1, 1, 1]> (x, s, z, k, ks, kz, s, z, b) }""",
        "product": """<ir_version: 10, opset_import: ["" : 21]>
            g (int8[2, T, 8] x, float s, int8 z) => (int8[2, T, 6] y) {
              y = QLinearMatMul (x, s, z, m, ms, mz, s, z) }""",
        "integers": """<ir_version: 10, opset_import: ["" : 21]>
            g (float[1, 3, 6, 6] x) => (float[1, 4, 4, 4] y, float[1, 3, 6, 5] t) {
              q, d, e = DynamicQuantizeLinear (x)  a = ConvInteger (q, k, e)
              f = Cast <to = 1> (a)  y = Mul (f, d)
              v = MatMulInteger (q, n, e)  t = Cast <to = 1> (v) }""",
        "blocks": """<ir_version: 10, opset_import: ["" : 21]>
            g (float[N, 16] x) => (float[N, 6] y) {
              w = DequantizeLinear <axis = 0, block_size = 8> (four, blocks, fours)
              y = MatMul (x, w) }""",
        "types": """<ir_version: 10, opset_import: ["" : 21]>
            g (float[N, 16] x) => (uint8[N, 16] y, int8[N, 16] t) {
              y = QuantizeLinear (x, s, z)
              t = QuantizeLinear <output_dtype = 3> (x, s)  }""",
        "bits": """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
            g (float[2, T, 32] x) => (float[2, T, 6] y) {
              y = com.microsoft.MatMulNBits <K = 32, N = 6, bits = 4, block_size = 16>
                (x, packed, scales) }""",
    }
    random_ = np.random.default_rng(0)
    found = {
        "k": random_.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
        "ks": random_.uniform(0.01, 0.1, 4).astype(np.float32),
        "kz": np.zeros(4, np.int8),
        "b": random_.integers(-500, 500, 4).astype(np.int32),
        "m": random_.integers(-128, 128, (8, 6)).astype(np.int8),
        "ms": random_.uniform(0.01, 0.1, 6).astype(np.float32),
        "mz": np.zeros(6, np.int8),
        "n": random_.integers(-128, 128, (6, 5)).astype(np.int8),
        "four": random_.integers(-8, 8, (16, 6)).astype(ml_dtypes.int4),
        "blocks": random_.uniform(0.01, 0.1, (2, 6)).astype(np.float32),
        "fours": np.zeros((2, 6), ml_dtypes.int4),
        "s": np.float32(0.05),
        "z": np.uint8(128),
        "packed": random_.integers(0, 256, (6, 2, 8)).astype(np.uint8),
        "scales": random_.uniform(0.01, 0.1, 12).astype(np.float32),
    }
    for name, text in texts.items():
        model = onnx.parser.parse_model(text)
        given = {port.name for port in model.graph.input}
        used = {each for node in model.graph.node for each in node.input} - given
        model.graph.initializer.extend(
            arrays.from_array(np.asarray(array), key) for key, array in found.items() if key in used
        )
        yield name, model


RANGES = "ranges.json"
"""The file with the ranges of a model of the format "ranges"."""


def _ranges_seeds() -> Iterator[Seed]:
    """Models that are computed from bytes, and ranges for their layers."""
    texts = {
        "image": """<ir_version: 8, opset_import: ["" : 17]>
            g (float[1, 3, 8, 8] x) => (float[1, 5] y) {
              a = Conv <pads = [1, 1, 1, 1]> (x, w0)  b = Relu (a)
              c = Conv <pads = [1, 1, 1, 1]> (b, w1)  d = GlobalAveragePool (c)
              e = Flatten (d)  y = MatMul (e, w2) }""",
        "tokens": """<ir_version: 8, opset_import: ["" : 17]>
            g (float[1, T, 8] x) => (float[1, T, 8] y) {
              a = MatMul (x, w3)  b = LayerNormalization (a, w4)  y = MatMul (b, w3) }""",
    }
    random_ = np.random.default_rng(0)
    shapes = ((4, 3, 3, 3), (4, 4, 3, 3), (4, 5), (8, 8), (8,))
    weights = [
        arrays.from_array(random_.normal(size=shape).astype(np.float32), f"w{k}")
        for k, shape in enumerate(shapes)
    ]
    for name, text in texts.items():
        model = onnx.parser.parse_model(text)
        used = {each for node in model.graph.node for each in node.input}
        model.graph.initializer.extend(each for each in weights if each.name in used)
        with tempfile.TemporaryDirectory() as folder:
            (path := Path(folder, "model.onnx")).write_bytes(model.SerializeToString())
            module, _ = import_and_lower(str(path), "optimized", CompileOptions())
        layers = layers_of(module)
        entries = [
            LayerRange(f"layer {k}", factors=(0.5,) * 8 if k else None)
            if layer.is_dynamic
            else LayerRange(f"layer {k}", -1.0, 2.0)
            for k, layer in enumerate(layers)
        ]
        text = Ranges(fingerprint(layers), tuple(entries), "mse", 3).text
        files = {"model.onnx": model.SerializeToString(), RANGES: text.encode()}
        yield Seed(name, "ranges", files, "model.onnx")


def _weights_seeds() -> Iterator[Seed]:
    """A model, and weights for it in each kind of file of weights alone."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 3, 8] x) => (float[N, 3, 2] y, double[6] t, int64[4] i) {
          a = MatMul (x, w)  y = Where (c, a, b)  t = Identity (d)  i = Identity (k) }""")
    random_ = np.random.default_rng(0)
    arrays_ = {
        "w": random_.normal(size=(8, 2)).astype(np.float32),
        "b": random_.normal(size=2).astype(np.float32),
        "c": np.array([True, False]),
        "d": random_.normal(size=6),
        "k": np.arange(4),
    }
    model.graph.initializer.extend(
        arrays.from_array(np.zeros_like(array), name) for name, array in arrays_.items()
    )
    for suffix, written in WRITERS.items():
        files = {"model.onnx": model.SerializeToString(), f"w{suffix}": written(arrays_)}
        yield Seed(suffix, "weights", files, "model.onnx")


def weights_of(seed: Seed) -> str | None:
    """The file of weights of a model of the format "weights"."""
    others = (name for name in seed.files if name != seed.entry)
    return next(others) if seed.format == "weights" else None


def _with_constants(case: Any) -> onnx.ModelProto | None:
    """The model of a case with integers and what follows its first input as weights, if any."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    values, given = case.model.graph.input, cast("list[Any]", case.data_sets[0][0])
    for position, (value, array) in enumerate(zip(values, given, strict=False)):
        kind = str(getattr(array, "dtype", ""))
        if kind and (position or kind == "int64"):
            model.graph.initializer.append(arrays.from_array(array, value.name))
            model.graph.input.remove(value)
    return model if model.graph.initializer else None


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
_SEVERAL = (
    (
        'type: "DetectionOutput" detection_output_param { num_classes: 2 keep_top_k: 3 '
        "code_type: CENTER_SIZE nms_param { nms_threshold: 0.45 top_k: 4 eta: 0.9 } }",
        ([1, 8], [1, 4], [1, 2, 8]),
    ),
    (
        'type: "Proposal" proposal_param { ratio: 0.5 ratio: 1 scale: 8 post_nms_topn: 3 }',
        ([1, 4, 2, 2], [1, 8, 2, 2], [1, 3]),
    ),
    (
        'type: "Python" python_param { module: "rpn.proposal_layer" layer: "ProposalLayer" '
        "param_str: \"'feat_stride': 16\" }",
        ([1, 18, 2, 2], [1, 36, 2, 2], [1, 3]),
    ),
    (
        'type: "ROIPooling" roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.5 }',
        ([1, 2, 4, 4], [2, 5]),
    ),
    (
        'type: "PSROIPooling" psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 1 }',
        ([1, 8, 4, 4], [2, 5]),
    ),
    ('type: "Upsample" upsample_param { scale: 2 pad_out_h: true }', ([1, 2, 3, 3], [1, 2, 3, 3])),
    ('type: "Interp" interp_param { zoom_factor: 2 pad_beg: -1 }', ([1, 2, 4, 4],)),
    ('type: "Axpy"', ([1, 2, 1, 1], [1, 2, 3, 3], [1, 2, 3, 3])),
    ('type: "Filter"', ([3, 2], [3, 1])),
    ('type: "Reorg" reorg_param { stride: 2 }', ([1, 4, 4, 4],)),
    ('type: "CReLU" crelu_param { concat_axis: -1 }', ([2, 3],)),
    ('type: "Reverse" reverse_param { axis: 1 }', ([2, 3],)),
    ('type: "ShuffleChannel" shuffle_channel_param { group: 2 }', ([1, 4, 2],)),
)
"""Layers, and the shapes of their bottoms."""


def _several(layer: str, shapes: Sequence[Sequence[int]]) -> str:
    """A net of one layer with inputs of these shapes."""
    text, bottoms = "", ""
    for number, shape in enumerate(shapes):
        dims = " ".join(f"dim: {size}" for size in shape)
        text += f'layer {{ name: "i{number}" type: "Input" top: "x{number}" '
        text += f"input_param {{ shape {{ {dims} }} }} }}\n"
        bottoms += f'bottom: "x{number}" '
    return f'{text}layer {{ name: "l" {bottoms} top: "y" {layer} }}\n'


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
    for layer, shapes in _SEVERAL:
        text = _several(layer, shapes)
        yield Seed(layer.split('"')[1], "caffe", {"net.prototxt": text.encode()}, "net.prototxt")
    if (corpus := corpus_folder()) is not None:
        for folder in sorted((corpus / "caffe").iterdir()):
            found = {p.suffix: p for p in sorted(folder.glob("*.[pc]*[to]*[xd]*[tl]"))}
            text, model = found.get(".prototxt"), found.get(".caffemodel")
            if text is None or model is None or model.stat().st_size > MAX_BYTES:
                continue
            files = {"net.prototxt": text.read_bytes(), "net.caffemodel": model.read_bytes()}
            yield Seed(folder.name, "caffe", files, "net.prototxt")


def _torchscript_seeds() -> Iterator[Seed]:
    """Traced programs, which say the types of their inputs: one has control flow, one a state."""
    for path in sorted((ROOT / "test/frontends/script_models").glob("*_trace/model.pt")):
        yield Seed(path.parent.name, "torchscript", {"model.pt": path.read_bytes()}, "model.pt")


def _pt2_seeds() -> Iterator[Seed]:
    """Programs of torch.export: states, open sizes, and with a corpus all the others."""
    paths = sorted((ROOT / "test/frontends/pt2_models").glob("*.pt2"))
    if (corpus := corpus_folder()) is not None:
        paths += sorted((corpus / "pt2").glob("*/model.pt2"))
    for path in paths:
        if path.stat().st_size <= 4 * MAX_BYTES:
            name = path.stem if path.stem != "model" else path.parent.name
            yield Seed(name, "pt2", {"model.pt2": path.read_bytes()}, "model.pt2")


def _darknet_seeds() -> Iterator[Seed]:
    """Nets with heads, branches and states."""
    from models.darknet_nets import conv, head, net, write_net

    texts = {
        "heads": net(conv(8, 3, 2, "mish"), *head("0,1", 2), "route layers=-3,0", *head("2", 1)),
        "parts": net(
            conv(4, 3),
            "maxpool size=2 stride=1",
            "shortcut from=-2,0 weights_type=per_channel weights_normalization=softmax",
            "route layers=-1,0 groups=2 group_id=1",
            "avgpool",
            "scale_channels from=-2 activation=logistic",
            "upsample stride=2",
            "reorg stride=2",
            "local filters=2 size=3 stride=2 pad=1",
            "connected output=14 batch_normalize=1",
            "detection classes=4 coords=4 num=2 side=1 softmax=1",
            "cost",
        ),
        "states": net(
            "lstm output=3 batch_normalize=1",
            "gru output=2",
            "rnn output=3 hidden=2",
            "softmax groups=3 temperature=2.",
            inputs=4,
        ),
        "signs": net(
            conv(4, 3, 1, "leaky", "xnor=1 bin_output=1"),
            "convolutional filters=16 size=1 binary=1",
            "region classes=3 num=2 tree=words.tree",
        ),
        "cells": net("crnn output=2 hidden=2 pad=1", "conv_lstm output=2 pad=1 peephole=1"),
    }
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "words.tree")
        tree.write_bytes(b"a -1\nb 0\nc 0\n")
        for name, text in texts.items():
            path = write_net(Path(folder), name, text)
            files = {
                "net.cfg": path.read_bytes(),
                "net.weights": path.with_suffix(".weights").read_bytes(),
            }
            if "tree=" in text:
                files[tree.name] = tree.read_bytes()
            for _ in range(40):
                yield Seed(name, "darknet", files, "net.cfg")


def _tflite_seeds() -> Iterator[Seed]:
    """A model that remembers, and random graphs."""
    from fuzz.tflite_graphs import random_program
    from fuzz.tflite_nodes import RECIPES

    counter = ROOT / "test/frontends/tflite_models/counter.tflite"
    yield Seed("counter", "tflite", {"model.tflite": counter.read_bytes()}, "model.tflite")
    for seed in range(60):
        data = random_program(seed, RECIPES).data
        if len(data) <= MAX_BYTES:
            yield Seed(f"random_{seed}", "tflite", {"model.tflite": data}, "model.tflite")


def _keras_seeds() -> Iterator[Seed]:
    """Models of the corpus, of both kinds of files."""
    corpus = corpus_folder()
    for path in [] if corpus is None else sorted((corpus / "keras").glob("*/model.*")):
        if path.suffix in (".keras", ".h5") and path.stat().st_size <= 2 * MAX_BYTES:
            yield Seed(path.parent.name, "keras", {path.name: path.read_bytes()}, path.name)


def _mxnet_seeds() -> Iterator[Seed]:
    """A net with weights, and the single results of symbols of many."""
    folder = ROOT / "test/frontends/mxnet_models"
    entry = "net-symbol.json"
    net = json.loads((folder / entry).read_text())
    net["nodes"][0]["attrs"] = {"__shape__": "(1, 3, 8, 8)"}
    weights = (folder / "net-0000.params").read_bytes()
    files = {entry: json.dumps(net).encode(), "net-0000.params": weights}
    for _ in range(40):
        yield Seed("net", "mxnet", files, entry)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            symbol = json.loads(held["symbol"].tobytes())
        for number, data in enumerate(parts_of_symbol(symbol)):
            yield Seed(f"{path.stem}/{number}", "mxnet", {entry: data}, entry)


def _paddle_seeds() -> Iterator[Seed]:
    """A program with a loop, forms of single operators, and small cases of the corpus."""
    folder = ROOT / "test/frontends/paddle_models"
    loop = {path.name: path.read_bytes() for path in folder.glob("loop.*")}
    yield Seed("loop", "paddle", loop, "loop.json")
    with np.load(folder / "forms.npz") as held:
        for key in (key for key in held.files if key.endswith(" model")):
            entry = key.removesuffix(" model")
            yield Seed(entry, "paddle", {entry: held[key].tobytes()}, entry)
    yield from _corpus_seeds("paddle", ("model.json", "model.pdmodel"), "model.pdiparams")


def _mindir_seeds() -> Iterator[Seed]:
    """A program with a state, and small cases of the corpus."""
    counter = ROOT / "test/frontends/mindir_models/counter.mindir"
    yield Seed("counter", "mindir", {"model.mindir": counter.read_bytes()}, "model.mindir")
    yield from _corpus_seeds("mindir", ("model.mindir",))


_PARTS = {".mindir": parts_of_mindir, ".json": parts_of_pir}


def _corpus_seeds(kind: str, entries: Sequence[str], weights: str = "") -> Iterator[Seed]:
    """Small cases of the corpus, or single results of them, with their weights."""
    corpus = corpus_folder()
    for path in [] if corpus is None else sorted((corpus / kind).glob("*/model.*")):
        if path.name not in entries:
            continue
        others = path.parent / weights
        beside = {weights: others.read_bytes()} if others.is_file() else {}
        whole = path.read_bytes()
        parts = [*_PARTS[path.suffix](whole)] if path.suffix in _PARTS else []
        for number, data in enumerate(parts or [whole]):
            if len(data) <= MAX_BYTES:
                name = f"{path.parent.name}/{number}"
                yield Seed(name, kind, {path.name: data, **beside}, path.name)


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
