"""
Random graphs of TensorFlow Lite: values with quantization, and the file that they become.

What operators do with them is in `tflite_nodes`. A value is exact if nothing was rounded in floats
on the way to it; where a small difference of floats would become another integer or another
choice, only exact values are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.tflite_writer import flatbuffer, nibbles, operator_code, quantization
from lowerdeck.dialects.tflite.schema import schema

Array = NDArray[Any]

DTYPES: Mapping[str, type[np.generic]] = {
    "FLOAT32": np.float32,
    "INT4": np.int8,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}
RANGES = {"INT4": (-8, 7), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
QUANTIZED = ("INT8", "UINT8", "INT16")

_CALLS = 2
"""Runs in a row of a model that remembers."""


@dataclass(frozen=True)
class Scale:
    """How integers stand for real numbers."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> float:
        """The first scale."""
        return self.scales[0]


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    index: int
    shape: tuple[int, ...]
    type: str
    q: Scale | None = None
    exact: bool = True

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Program:
    """A model file, and inputs for calls in a row."""

    data: bytes
    feeds: tuple[Mapping[str, Array], ...]
    maker: Mapping[str, str]
    """The operator that computes a tensor."""
    graph: Graph
    """What the file was written from."""

    @property
    def requantizes(self) -> bool:
        """True if floats that are rounded become integers inside, so that a bit becomes a step."""
        return self.graph.requantizes

    def wide(self) -> Program:
        """The same with all results as outputs."""
        given = [value.index for value in self.graph.inputs]
        return replace(self, data=self.graph.file(self.graph.nodes, given))

    def parts(self, results: Sequence[Mapping[str, Array]]) -> list[Program]:
        """A program of each operator alone, on the values that a run of the wide one gives."""
        given = [{**feed, **values} for feed, values in zip(self.feeds, results, strict=True)]
        found: list[Program] = []
        for node in self.graph.nodes:
            read = self.graph.read_by(node)
            feeds = tuple({f"t{k}": call[f"t{k}"] for k in read} for call in given)
            found.append(replace(self, data=self.graph.file([node], read), feeds=feeds))
        return found


@dataclass
class Graph:
    """A graph that grows."""

    rng: Random
    numbers: np.random.Generator
    tensors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    buffers: list[dict[str, Any]] = field(default_factory=lambda: [dict[str, Any]()])
    nodes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    codes: dict[str, int] = field(default_factory=dict[str, int])
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Subgraphs that operators call for each element."""
    inputs: list[Value] = field(default_factory=list[Value])
    values: list[Value] = field(default_factory=list[Value])
    remembers: bool = False
    requantizes: bool = False

    # Values

    def constant(self, array: Array, type_: str, q: Scale | None = None) -> Value:
        """A constant of the file."""
        data = nibbles(array) if type_ == "INT4" else np.ascontiguousarray(array).tobytes()
        self.buffers.append({"data": data})
        return self._tensor(array.shape, type_, q, len(self.buffers) - 1)

    def integers(self, values: Any, type_: str = "INT32") -> Value:
        """A constant of plain integers: axes, sizes, indices."""
        return self.constant(np.array(values, DTYPES[type_]), type_)

    def input(self, shape: Sequence[int], type_: str, q: Scale | None = None) -> Value:
        """A new input."""
        value = self._tensor(tuple(shape), type_, q)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def state(self, shape: Sequence[int], type_: str, q: Scale | None = None) -> Value:
        """A variable of operators that remember."""
        value = self._tensor(tuple(shape), type_, q)
        self.tensors[value.index]["is_variable"] = True
        self.remembers = True
        return value

    def op(
        self,
        builtin: str,
        inputs: Sequence[Value | None],
        *results: tuple[Sequence[int], str, Scale | None],
        options: tuple[str, Mapping[str, Any]] | None = None,
        exact: bool | None = None,
        intermediates: Sequence[Value] = (),
    ) -> list[Value]:
        """An operator; its results are exact if all inputs are, unless that is said."""
        if exact is None:
            exact = all(value is None or value.exact for value in inputs)
        found = [self._tensor(tuple(s), t, q, exact=exact or t != "FLOAT32") for s, t, q in results]
        self.codes.setdefault(builtin, len(self.codes))
        self.nodes.append(
            {
                "opcode_index": self.codes[builtin],
                "inputs": [-1 if value is None else value.index for value in inputs],
                "outputs": [value.index for value in found],
                _union_of(options): options,
                "intermediates": [value.index for value in intermediates] or None,
            }
        )
        self.values += found
        return found

    def body(self, builtin: str | None, type_: str) -> int:
        """A subgraph of one operator of two scalars, or of none, which gives the second one."""
        table = {"shape": (), "type": type_, "buffer": 0, "has_rank": True}
        nodes: list[dict[str, Any]] = []
        if builtin is not None:
            self.codes.setdefault(builtin, len(self.codes))
            code = self.codes[builtin]
            nodes = [{"opcode_index": code, "inputs": [0, 1], "outputs": [2]}]
        names = ("a", "b", "c") if nodes else ("a", "b")
        graph = {
            "tensors": [{"name": name, **table} for name in names],
            "inputs": [0, 1],
            "outputs": [2 if nodes else 1],
            "operators": nodes,
            "name": f"body{len(self.bodies)}",
        }
        self.bodies.append(graph)
        return len(self.bodies)

    def inner(self, type_: str, q: Scale) -> Value:
        """A tensor that only says how something inside an operator is quantized."""
        return self._tensor((0,), type_, q)

    def _tensor(
        self,
        shape: tuple[int, ...],
        type_: str,
        q: Scale | None,
        buffer: int = 0,
        exact: bool = True,
    ) -> Value:
        index = len(self.tensors)
        scales = None if q is None else quantization(q.scales, q.zeros, q.axis)
        table = {"name": f"t{index}", "shape": shape, "type": type_, "buffer": buffer}
        self.tensors.append({**table, "has_rank": True, "quantization": scales})
        return Value(index, shape, type_, q, exact)

    # Choices

    def chance(self, share: float) -> bool:
        """True for a share of all calls."""
        return self.rng.random() < share

    def shape(self, rank: int, largest: int = 6) -> tuple[int, ...]:
        """Small dimensions, at times longer ones."""
        return tuple(self.size(largest) for _ in range(rank))

    def size(self, largest: int = 6) -> int:
        """A dimension."""
        return self.rng.choice([17, 33]) if self.chance(0.03) else self.rng.randint(1, largest)

    def scale(self, type_: str, low: int = -8, high: int = -2) -> Scale:
        """A scale between powers of two, and a zero point that the type has."""
        least, most = RANGES[type_]
        if type_ == "INT16":
            zero, low, high = 0, low - 7, high - 7
        elif self.chance(0.2):
            zero = self.rng.choice([least, most, (least + most + 1) // 2])
        else:
            zero = self.rng.randint(least, most)
        return Scale((float(np.float32(2.0 ** self.rng.uniform(low, high))),), (zero,))

    def near(self, scale: float, type_: str) -> Scale:
        """A result's scale that is about the given one."""
        q = self.scale(type_)
        return Scale((float(np.float32(scale * 2.0 ** self.rng.uniform(-1, 1))),), q.zeros)

    def new(self, type_: str, shape: Sequence[int]) -> Value:
        """A new input of a type, quantized if the type is."""
        return self.input(shape, type_, self.scale(type_) if type_ in QUANTIZED else None)

    def pick(
        self,
        *types: str,
        rank: int | None = None,
        ranks: Sequence[int] = (1, 2, 3, 4),
        where: Callable[[Value], bool] = lambda value: True,
        exact: bool = False,
    ) -> Value:
        """A value of one of the types, preferably one that is there; else a new input."""
        ranks = ranks if rank is None else (rank,)
        found = [
            value
            for value in self.values
            if value.type in types
            and value.rank in ranks
            and value.size < 5000
            and (value.exact or not exact)
            and (value.type not in QUANTIZED or value.q is not None)
            and where(value)
        ]
        if found and self.chance(0.8):
            return found[-1] if self.chance(0.6) else self.rng.choice(found)
        return self.new(self.rng.choice(types), self.shape(self.rng.choice(ranks)))

    def weights(self, shape: Sequence[int], type_: str) -> Array:
        """Numbers of a type over all of its range, or floats about zero."""
        if type_ == "FLOAT32":
            return self.numbers.normal(size=tuple(shape)).astype(np.float32)
        low, high = RANGES[type_]
        return self.numbers.integers(low, high + 1, tuple(shape)).astype(DTYPES[type_])

    def hybrid_weights(self, shape: Sequence[int]) -> Array:
        """Bytes for floats; LiteRT's vector code of such products wants no -128."""
        return np.maximum(self.weights(shape, "INT8"), np.int8(-127))

    # The file

    def program(self) -> Program:
        """The file, and inputs."""
        kinds = list(self.codes)
        maker: dict[str, str] = {}
        for node in self.nodes:
            maker |= {f"t{k}": kinds[node["opcode_index"]] for k in node["outputs"]}
        read = [k for node in self.nodes for k in node["inputs"]]
        calls = _CALLS if self.remembers else 1
        feeds = [{f"t{v.index}": self._fed(v) for v in self.inputs} for _ in range(calls)]
        data = self.file(self.nodes, [value.index for value in self.inputs], read)
        return Program(data, tuple(feeds), maker, self)

    def read_by(self, node: Mapping[str, Any]) -> list[int]:
        """The tensors that an operator reads, without constants and states."""
        given: Sequence[int] = node["inputs"]
        kept = {k for k, t in enumerate(self.tensors) if t["buffer"] or t.get("is_variable")}
        return [k for k in dict.fromkeys(given) if k >= 0 and k not in kept]

    def file(
        self,
        nodes: Sequence[Mapping[str, Any]],
        inputs: Sequence[int],
        inner: Sequence[int] = (),
    ) -> bytes:
        """Operators as a model; those of their results that are not inner are its outputs."""
        graph = {
            "tensors": self.tensors,
            "inputs": inputs,
            "outputs": [k for node in nodes for k in node["outputs"] if k not in inner],
            "operators": nodes,
            "name": "main",
        }
        model = {
            "version": 3,
            "operator_codes": [operator_code(name) for name in self.codes],
            "subgraphs": [graph, *self.bodies],
            "buffers": self.buffers,
        }
        return flatbuffer("Model", model)

    def _fed(self, value: Value) -> Array:
        match value.type:
            case "FLOAT32":
                found = self.numbers.normal(scale=2.0, size=value.shape)
                return found.astype(np.float32)
            case "BOOL":
                return self.numbers.integers(0, 2, value.shape).astype(np.bool_)
            case "INT32" | "INT64":
                return self.numbers.integers(-9, 10, value.shape).astype(DTYPES[value.type])
            case type_:
                found = self.weights(value.shape, type_)
                low, high = RANGES[type_]
                odd = self.numbers.random(value.shape) < 0.1
                return np.where(odd, self.numbers.choice([low, high], value.shape), found).astype(
                    found.dtype
                )


def _union_of(options: tuple[str, Mapping[str, Any]] | None) -> str:
    """The field for options."""
    is_late = options is not None and options[0] in schema().unions["BuiltinOptions2"]
    return "builtin_options_2" if is_late else "builtin_options"


def random_program(seed: int, recipes: Sequence[Callable[[Graph], object]]) -> Program:
    """A graph of a few of the recipes."""
    rng = Random(seed)
    graph = Graph(rng, np.random.default_rng(seed))
    for _ in range(rng.choice([1, 1, 2, 3, 5, 8])):
        rng.choice(recipes)(graph)
    while not graph.nodes:
        rng.choice(recipes)(graph)
    return graph.program()
