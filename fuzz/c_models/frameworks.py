"""Models of other frameworks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fuzz.c_harness import Limits
from fuzz.c_models.registry import MODELS, TREE, Made, random_weights
from fuzz.tf1_graphs import random_program
from lowerdeck.compiler import CompileOptions
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter


def _file(name: str, path: str) -> None:
    """Register a model of the project's own tree."""
    MODELS[name] = lambda folder: Made(TREE / path)


def _functions(name: str) -> None:
    """Register a graph of TensorFlow with functions, with loops and arrays; `n` counts steps."""

    def make(folder: Path) -> Made:
        base = TREE / "test" / "end_to_end" / "functions" / name
        with np.load(base.with_suffix(".npz")) as file:
            outputs = [key.removeprefix("out/0/") for key in file.files if key.startswith("out/0/")]
        limits = Limits({"n:0": (0, 6), "k:0": (-2, 5)})
        return Made(base.with_suffix(".pb"), limits, CompileOptions(outputs=outputs))

    MODELS[f"tf_{name}"] = make


def _caffe(name: str, text: str, weights: Mapping[str, Sequence[Sequence[int]]]) -> None:
    """Register a net by its layers, each from its name on, and the shapes of their weights."""

    def make(folder: Path) -> Made:
        path = folder / f"{name}.prototxt"
        layers = re.split(r"\n\s*(?=name:)", text.strip())
        path.write_text("".join(f"layer {{ {layer} }}\n" for layer in layers))
        net, rng = NetParameter(), np.random.default_rng(len(name))
        for layer, shapes in weights.items():
            message = net.layer.add(name=layer)
            for shape in shapes:
                blob = message.blobs.add(data=random_weights(rng, shape).ravel().tolist())
                blob.shape.dim.extend(shape)
        path.with_suffix(".caffemodel").write_bytes(net.SerializeToString())
        return Made(path)

    MODELS[name] = make


def _graph(name: str) -> None:
    """Register a graph of TensorFlow's nodes whose loops end for all numbers that it is run on."""

    def make(folder: Path) -> Made:
        base = TREE / "test" / "end_to_end" / "raw_graphs" / name
        case = json.loads(base.with_suffix(".json").read_text())
        values = {key: (0, 40) for key in case["runs"][0]["inputs"]}
        options = CompileOptions(outputs=case["outputs"])
        return Made(base.with_suffix(".pbtxt"), Limits(values), options)

    MODELS[name] = make


def _random_graph(seed: int) -> None:
    """Register a graph with loops and branches as the fuzzer of TensorFlow's graphs draws it."""

    def make(folder: Path) -> Made:
        program = random_program(seed)
        path = folder / f"graph_{seed}.pb"
        path.write_bytes(program.graph.SerializeToString())
        values: dict[str, tuple[int, int]] = {}
        for name, value in program.feeds[0].items():
            values[name] = (int(np.min(value, initial=0)), int(np.max(value, initial=1)))
        options = CompileOptions(outputs=program.fetches)
        return Made(path, Limits(values), options)

    MODELS[f"graph_{seed}"] = make


_file("digits_cnn", "examples/digits/digits.onnx")
_file("digits_lenet", "examples/digits/digits_lenet.prototxt")
_file("digits_lstm", "examples/digits/digits_lstm.pb")
for _name in ("arrays_by_handle", "cases", "conditions", "frozen", "growing", "loops"):
    _functions(_name)
for _name in (
    "four_loops_deep",
    "search_with_two_ends",
    "three_ways_in_a_circle",
    "loop_with_break",
):
    _graph(_name)
for _seed in (3, 7, 12):
    _random_graph(_seed)
_caffe(
    "caffe_segmentation",
    """
    name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 13 dim: 11 } }
    name: "c1" type: "Convolution" bottom: "x" top: "c1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 2 }
    name: "r1" type: "ReLU" bottom: "c1" top: "c1" relu_param { negative_slope: 0.1 }
    name: "n1" type: "LRN" bottom: "c1" top: "n1"
        lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }
    name: "p1" type: "Pooling" bottom: "n1" top: "p1"
        pooling_param { kernel_size: 3 stride: 2 pool: AVE pad: 1 }
    name: "d1" type: "Deconvolution" bottom: "p1" top: "d1"
        convolution_param { num_output: 4 kernel_size: 4 stride: 2 group: 2 bias_term: false }
    name: "k1" type: "Crop" bottom: "d1" bottom: "c1" top: "k1" crop_param { axis: 2 offset: 1 }
    name: "m1" type: "MVN" bottom: "k1" top: "m1"
    name: "s1" type: "Softmax" bottom: "m1" top: "s1"
    name: "a1" type: "ArgMax" bottom: "s1" top: "a1" argmax_param { axis: 1 top_k: 2 }
    name: "b1" type: "SPP" bottom: "c1" top: "b1" spp_param { pyramid_height: 2 }
    """,
    {"c1": [(8, 3, 3, 3), (8,)], "d1": [(8, 2, 4, 4)]},
)
_caffe(
    "caffe_boxes",
    """
    name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 12 dim: 12 } }
    name: "c1" type: "Convolution" bottom: "x" top: "c1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 }
    name: "n1" type: "Normalize" bottom: "c1" top: "n1"
        norm_param { across_spatial: false channel_shared: true }
    name: "p1" type: "Pooling" bottom: "n1" top: "p1" top: "k1"
        pooling_param { kernel_size: 2 stride: 2 }
    name: "t1" type: "Permute" bottom: "p1" top: "t1"
        permute_param { order: 0 order: 2 order: 3 order: 1 }
    name: "f1" type: "Flatten" bottom: "t1" top: "f1"
    name: "b1" type: "PriorBox" bottom: "p1" bottom: "x" top: "b1"
        prior_box_param { min_size: 3 max_size: 6 aspect_ratio: 2 }
    name: "e1" type: "Eltwise" bottom: "c1" bottom: "n1" top: "e1" eltwise_param { operation: MAX }
    name: "g1" type: "Reduction" bottom: "e1" top: "g1" reduction_param { operation: ASUM axis: 1 }
    """,
    {"c1": [(8, 3, 3, 3), (8,)], "n1": [()]},
)
_caffe(
    "caffe_sequence",
    """
    name: "in" type: "Input" top: "i" top: "cont"
        input_param { shape { dim: 4 dim: 2 } shape { dim: 4 dim: 2 } }
    name: "e1" type: "Embed" bottom: "i" top: "e1" embed_param { num_output: 5 input_dim: 7 }
    name: "l1" type: "LSTM" bottom: "e1" bottom: "cont" top: "l1" recurrent_param { num_output: 6 }
    name: "q1" type: "InnerProduct" bottom: "l1" top: "q1"
        inner_product_param { num_output: 3 axis: 2 }
    name: "s1" type: "Slice" bottom: "q1" top: "s1" top: "s2" slice_param { axis: 0 }
    name: "t1" type: "Tile" bottom: "s2" top: "t1" tile_param { axis: 1 tiles: 3 }
    """,
    {
        "e1": [(7, 5), (5,)],
        "l1": [(24, 5), (24,), (24, 6)],
        "q1": [(3, 6), (3,)],
    },
)
