"""
Constants of the same bytes in one model, which differ in shape, layout, type and role.

What is equal lies in memory once, so a mistake in what counts as equal shows only here: random
weights are never equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import mul
from pathlib import Path
from random import Random
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends import load_model
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import Program, Suite  # noqa: TID251  (these are tests, not the folder of sources)
from .targets import OTHER_TARGETS, SOME_TARGETS, suite_in_turn  # noqa: TID251  (as above)

Array = NDArray[Any]
Fill = Callable[[Sequence[int]], Array]
Form = Callable[["Graph"], None]


def uniform(value: float) -> Fill:
    """All elements of all constants are one number."""
    return lambda shape: np.full(shape, value, np.float32)


def periodic(shape: Sequence[int]) -> Array:
    """The first elements of one sequence, the period of which is no block of any layout."""
    return np.resize(np.array([1, -2, 3, 0.5, -1, 2, 1], np.float32) / 4, shape)


@dataclass
class Graph:
    """A model under construction: nothing connects what is added to it."""

    fill: Fill
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    outputs: list[str] = field(default_factory=list[str])
    _names: int = 0

    def name(self) -> str:
        """A new one."""
        self._names += 1
        return f"v{self._names}"

    def input(self, *shape: int, dtype: Any = np.float32, below: int = 0) -> str:
        """An input with random numbers; integers are less than `below`."""
        generator, name = np.random.default_rng(len(self.inputs)), self.name()
        random = generator.integers(0, below, shape) if below else generator.normal(size=shape)
        self.inputs[name] = random.astype(dtype)
        return name

    def constant(self, *shape: int, dtype: Any = np.float32) -> str:
        """A constant that is filled as all others are."""
        array = self.fill(shape)
        return self.given(array if dtype == np.float32 else np.ceil(8 * array).astype(dtype))

    def given(self, array: Array) -> str:
        """A constant."""
        name = self.name()
        self.constants[name] = array
        return name

    def add(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first result."""
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0]

    def returns(self, op_type: str, *inputs: str, **attributes: Any) -> None:
        """A node whose first result is an output of the model."""
        self.outputs.append(self.add(op_type, *inputs, **attributes))

    def model(self) -> ModelProto:
        """The model."""
        ports = [_info(name, array) for name, array in self.inputs.items()]
        results = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", ports, results, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def _info(name: str, array: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


# Forms: ops that read a constant of `count` elements


def pairs(count: int) -> list[tuple[int, int]]:
    """All (a, b) with a * b == count."""
    return [(a, count // a) for a in range(1, count + 1) if count % a == 0]


def products(count: int) -> Iterator[Form]:
    """Matrices on the right, transposed or not, on the left, and with a batch."""
    for a, b in pairs(count):
        yield lambda g, a=a, b=b: g.returns("MatMul", g.input(3, a), g.constant(a, b))
        yield lambda g, a=a, b=b: g.returns("MatMul", g.constant(a, b), g.input(b, 5))
        yield lambda g, a=a, b=b: g.returns("MatMul", g.input(2, 1, a), g.constant(a, b))
        for transposed in (0, 1):
            yield lambda g, a=a, b=b, t=transposed: g.returns(
                "Gemm",
                g.input(3, b if t else a),
                g.constant(a, b),
                g.constant(a if t else b),
                transB=t,
            )
        if a % 2 == 0:
            yield lambda g, a=a, b=b: g.returns(
                "MatMul", g.input(2, 3, a // 2), g.constant(2, a // 2, b)
            )


def convolutions(count: int) -> Iterator[Form]:
    """Of one to three dimensions, plain, grouped, depthwise and transposed, with a bias."""
    kernels = [(1,), (3,), (1, 1), (3, 3), (2, 2), (1, 3), (1, 3, 3), (2, 1, 2), (3, 3, 3)]
    for kernel in kernels:
        taps = reduce(mul, kernel)
        if count % taps:
            continue
        pads = [k // 2 for k in kernel] * 2
        for a, b in pairs(count // taps):
            for groups in sorted({1, 2 if a % 2 == 0 else 1, a if b == 1 else 1}):
                yield lambda g, a=a, b=b, k=kernel, p=pads, n=groups: g.returns(
                    "Conv",
                    g.input(1, b * n, *_image(k)),
                    g.constant(a, b, *k),
                    g.constant(a),
                    pads=p,
                    group=n,
                )
            yield lambda g, a=a, b=b, k=kernel: g.returns(
                "ConvTranspose", g.input(1, a, *[4] * len(k)), g.constant(a, b, *k), strides=list(k)
            )


def _image(kernel: Sequence[int]) -> list[int]:
    """The sizes of an image; large enough for Winograd's tiles where the kernel is."""
    return [9, 18] if tuple(kernel) == (3, 3) else [5] * len(kernel)


def recurrent(count: int) -> Iterator[Form]:
    """W and R have as many elements each, where there is such a number of hidden units."""
    for op_type, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for hidden in range(1, count + 1):
            for size in {hidden, count // (gates * hidden)}:
                if gates * hidden * size == count:
                    yield lambda g, o=op_type, n=gates, h=hidden, s=size: g.returns(
                        o,
                        g.input(3, 2, s),
                        g.constant(1, n * h, s),
                        g.constant(1, n * h, h),
                        g.constant(1, 2 * n * h),
                        hidden_size=h,
                    )


def attention(count: int) -> Iterator[Form]:
    """Keys and values that are known."""
    for a, b in pairs(count):

        def form(g: Graph, a: int = a, b: int = b) -> None:
            scores = g.add("MatMul", g.input(1, 4, a), g.constant(1, a, b))
            g.returns("MatMul", g.add("Softmax", scores, axis=-1), g.constant(1, b, a))

        yield form


def vectors(count: int) -> Iterator[Form]:
    """Scales, biases, slopes, statistics and tables."""
    yield lambda g: g.returns("Add", g.input(2, count), g.constant(count))
    yield lambda g: g.returns("Mul", g.input(2, count), g.constant(1, count))
    yield lambda g: g.returns("PRelu", g.input(1, count, 3), g.constant(count, 1))
    yield lambda g: g.returns(
        "BatchNormalization",
        g.input(1, count, 2, 2),
        *(g.constant(count) for _ in range(3)),
        g.given(np.abs(g.fill([count])) + 1),
    )
    yield lambda g: g.returns(
        "LayerNormalization", g.input(2, count), g.constant(count), g.constant(count), axis=-1
    )
    for a, b in pairs(count):
        yield lambda g, a=a, b=b: g.returns(
            "Gather", g.constant(a, b), g.input(4, dtype=np.int64, below=a)
        )
        yield lambda g, a=a, b=b: g.returns("Concat", g.input(2, b), g.constant(a, b), axis=0)
        yield lambda g, a=a, b=b: g.returns("Add", g.input(2, a, b), g.constant(a, b))


def quantized(count: int) -> Iterator[Form]:
    """Weights of eight bits, as they are multiplied and as they are widened."""
    one, zero = np.float32(0.5), np.int8(0)
    for a, b in pairs(count):

        def product(g: Graph, a: int = a, b: int = b) -> None:
            scale, point = g.given(np.array(one)), g.given(np.array(zero))
            x = g.input(3, a, dtype=np.int8, below=9)
            weight = g.constant(a, b, dtype=np.int8)
            g.returns("QLinearMatMul", x, scale, point, weight, scale, point, scale, point)

        def integers(g: Graph, a: int = a, b: int = b) -> None:
            x = g.input(3, a, dtype=np.int8, below=9)
            g.returns("MatMulInteger", x, g.constant(a, b, dtype=np.int8))

        def widened(g: Graph, a: int = a, b: int = b) -> None:
            scale = g.given(np.array(one))
            weight = g.add("DequantizeLinear", g.constant(a, b, dtype=np.int8), scale)
            g.returns("MatMul", g.input(2, a), weight)

        def convolved(g: Graph, a: int = a, b: int = b) -> None:
            scale, point = g.given(np.array(one)), g.given(np.array(zero))
            x = g.input(1, b, 4, 4, dtype=np.int8, below=9)
            weight = g.constant(a, b, 1, 1, dtype=np.int8)
            g.returns("QLinearConv", x, scale, point, weight, scale, point, scale, point)

        yield from (product, integers, widened, convolved)


def branches(count: int) -> Iterator[Form]:
    """Constants of the branches of an If."""

    def branch(g: Graph, x: str, name: str, a: int, b: int) -> Any:
        inner = Graph(g.fill, _names=1000 * len(name) + 10 * len(g.nodes) + 500_000)
        first = inner.add("MatMul", x, inner.constant(a, b))
        result = inner.add("ReduceSumSquare", first, keepdims=0)
        weights = [numpy_helper.from_array(v, n) for n, v in inner.constants.items()]
        outputs = [helper.make_empty_tensor_value_info(result)]
        return helper.make_graph(inner.nodes, name, [], outputs, weights)

    for a, b in pairs(count):
        for c, d in pairs(count):
            if a != c:

                def form(g: Graph, sizes: Sequence[int] = (a, b, c, d)) -> None:
                    a, b, c, d = sizes
                    yes, no = g.input(2, a), g.input(2, c)
                    then, other = branch(g, yes, "then", a, b), branch(g, no, "otherwise", c, d)
                    which = g.input(dtype=np.bool_, below=2)
                    g.returns("If", which, then_branch=then, else_branch=other)

                yield form


KINDS = (products, convolutions, recurrent, attention, vectors, quantized, branches)


def forms(count: int, most: int, seed: int) -> list[Form]:
    """Some of the forms with constants of so many elements: at most `most` of each kind."""
    rng = Random(seed)
    chosen: list[Form] = []
    for kind in KINDS:
        all_ = list(kind(count))
        chosen += rng.sample(all_, min(most, len(all_)))
    rng.shuffle(chosen)
    return chosen


def typed_alike(g: Graph) -> None:
    """The same bytes as numbers of several types, in tables and in products."""
    for dtype in (np.float32, np.int32, np.uint32):
        array = np.full((4, 4), 0x3F800000, np.uint32).view(dtype)
        g.returns("Gather", g.given(array), g.input(2, dtype=np.int64, below=4))
    for dtype in (np.float16, ml_dtypes.bfloat16, np.int16):
        array = np.full((8, 4), 0x3C00, np.uint16).view(dtype)
        table = g.add("Gather", g.given(array), g.input(2, dtype=np.int64, below=8))
        g.returns("Cast", table, to=TensorProto.FLOAT)
    for dtype in (np.float64, np.int64, np.uint64):
        array = np.full((4, 2), 0x3FF0000000000000, np.uint64).view(dtype)
        g.returns("Gather", g.given(array), g.input(2, dtype=np.int64, below=4))
    for shape in ((4, 9), (9, 4), (6, 6)):
        for dtype in (np.float32, np.float16):
            weight = g.given(np.full(shape, 0x3C003C00, np.uint32).view(dtype)[:, : shape[1]])
            g.returns("MatMul", g.input(3, shape[0], dtype=dtype), weight)
    for value in (0.0, -0.0, np.nan, -np.nan, np.inf):
        g.returns("Add", g.input(6), g.given(np.full(6, value, np.float32)))
        g.returns("Div", g.given(np.ones(1, np.float32)), g.given(np.full(6, value, np.float32)))
        g.returns("Mul", g.input(6), g.given(np.full((), value, np.float32)))


@dataclass(eq=False)
class ModelProgram(Program):
    """A program that takes the compiler's own way from an imported model."""

    arrays: dict[str, Array] = field(default_factory=dict[str, Array])
    target: str = "c99"

    @property
    def named_inputs(self) -> dict[str, Array]:
        """The inputs under the names that the model has for them."""
        return self.arrays

    def expect(self) -> None:
        """As `Program` has it."""
        results = run_module(self.module, self.arrays)
        self.expected = [cast(Array, value) for value in results.values()]

    def lower(self, runs: Sequence[Program]) -> tuple[CArtifact, list[str]]:
        """As `Program` has it."""
        context = LowerdeckContext(options=CompileOptions(target=self.target))
        run_to_phase(context, self.module, "scheduled")
        problems = self.check_scheduled(runs)
        return emit_c(self.module, self.name, self.target), problems


def add(suite: Suite, target: str, graph: Graph, folder: Path) -> None:
    """One more program."""
    name = f"p{len(suite.programs)}"
    path = folder / f"{name}.onnx"
    path.write_bytes(graph.model().SerializeToString())
    inputs = list(graph.inputs.values())
    module = load_model(str(path))
    suite.programs.append(
        ModelProgram(name, module, inputs, ulps=64, scale=1, arrays=graph.inputs, target=target)
    )


CASES: list[tuple[int, Fill]] = [
    (36, uniform(0.1)),
    (192, periodic),
    (2304, uniform(1)),
]
"""How many elements the constants have, and which."""


@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_equal_constants(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, OTHER_TARGETS)
    for seed, (count, fill) in enumerate(CASES):
        graph = Graph(fill)
        for form in forms(count, 2, seed):
            form(graph)
        add(suite, target, graph, tmp_path)
    suite.check()


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("target", SOME_TARGETS)
def test_equal_bytes_of_other_types(tmp_path: Path, target: str) -> None:
    suite = suite_in_turn(target, tmp_path, SOME_TARGETS)
    graph = Graph(uniform(0))
    typed_alike(graph)
    add(suite, target, graph, tmp_path)
    suite.check()
