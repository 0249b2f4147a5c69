"""`drop-zero-channels` in numbers: what is left of networks, and their results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.dialects.interpret import run_module

Array = NDArray[Any]
Shapes = list[tuple[int, ...]]


class Net:
    """An ONNX graph, built node by node; channels of its convolutions are zero."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array: Any, kind: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, kind)
        return name

    def conv(
        self, x: str, shape: tuple[int, ...], zeros: list[int], *, bias: bool = True, **more: Any
    ) -> str:
        weight, shift = self.random.standard_normal(shape), self.random.standard_normal(shape[0])
        weight[zeros], shift[zeros] = 0, 0
        own = [self.constant(weight), *([self.constant(shift)] if bias else [])]
        pads = [size // 2 for size in shape[2:]] * 2
        return self.add("Conv", x, *own, pads=pads, **more)

    def write(self, path: Path, outputs: list[str]) -> str:
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        path.write_bytes(model.SerializeToString())
        return str(path)


def chain(net: Net) -> str:
    """An activation, a pool and a bias of numbers; a channel that nothing reads goes, too."""
    a = net.conv("x", (8, 4, 3, 3), [1, 2])
    p = net.add("MaxPool", net.add("Relu", a), kernel_shape=[2, 2], strides=[2, 2])
    weight = net.random.standard_normal((3, 8, 1, 1))
    weight[:, 7] = 0
    return net.add("Conv", p, net.constant(weight))


def residual(net: Net) -> str:
    """Channels 1 and 5 are zero in both arms, 2 in one of them."""
    a = net.add("Relu", net.conv("x", (8, 4, 1, 1), [1, 2, 5]))
    b = net.conv(a, (8, 8, 3, 3), [1, 5])
    return net.conv(net.add("Add", a, b), (2, 8, 1, 1), [])


def depthwise(net: Net) -> str:
    a = net.add("Relu", net.conv("x", (6, 4, 1, 1), [0, 3]))
    b = net.conv(a, (6, 1, 3, 3), [0, 3, 4], group=6)
    return net.conv(b, (2, 6, 1, 1), [])


def joined(net: Net) -> str:
    """A slice of two parts: what it leaves out is not read."""
    a, b = net.conv("x", (4, 4, 1, 1), [1]), net.conv("x", (4, 4, 3, 3), [0, 2])
    c = net.add("Concat", a, b, axis=1)
    part = [net.constant([number], np.int64) for number in (1, 7, 1)]
    return net.conv(net.add("Slice", c, *part), (2, 6, 1, 1), [])


def flattened(net: Net) -> str:
    """Each channel is nine columns of what follows."""
    a = net.conv("x", (5, 4, 1, 1), [2, 3], bias=False)
    p = net.add("AveragePool", a, kernel_shape=[2, 2], strides=[2, 2])
    weight = net.random.standard_normal((45, 7))
    return net.add("MatMul", net.add("Flatten", p), net.constant(weight))


def gated(net: Net) -> str:
    """A factor from the mean of each channel: that of a channel that is zero is not."""
    a = net.add("Relu", net.conv("x", (6, 4, 1, 1), [0, 5]))
    gate = net.add("Sigmoid", net.conv(net.add("GlobalAveragePool", a), (6, 6, 1, 1), []))
    return net.conv(net.add("Mul", a, gate), (2, 6, 1, 1), [])


def shifted(net: Net) -> str:
    """Sigmoid makes 1 / 2 of zero."""
    a = net.add("Sigmoid", net.conv("x", (6, 4, 1, 1), [0, 5]))
    return net.conv(a, (2, 6, 3, 3), [])


def all_zero(net: Net) -> str:
    """One channel stays."""
    a = net.conv("x", (6, 4, 1, 1), [0, 1, 2, 3, 4, 5])
    return net.conv(a, (2, 6, 3, 3), [])


def grouped(net: Net) -> str:
    """Groups of two channels keep them all."""
    a = net.conv("x", (6, 4, 1, 1), [0, 5])
    return net.conv(a, (6, 2, 3, 3), [], group=3)


def returned(net: Net) -> str:
    """An output has all channels."""
    return net.conv("x", (6, 4, 1, 1), [0, 5])


FORMS: dict[str, tuple[Callable[[Net], str], Shapes]] = {
    # What is built, and the weights that are left, in order.
    "chain": (chain, [(5, 4, 3, 3), (3, 5, 1, 1)]),
    "residual": (residual, [(6, 4, 1, 1), (6, 6, 3, 3), (2, 6, 1, 1)]),
    "depthwise": (depthwise, [(3, 4, 1, 1), (3, 1, 3, 3), (2, 3, 1, 1)]),
    "joined": (joined, [(2, 4, 1, 1), (1, 4, 3, 3), (2, 3, 1, 1)]),
    "flattened": (flattened, [(3, 4, 1, 1), (27, 7)]),
    "gated": (gated, [(4, 4, 1, 1), (4, 4, 1, 1), (2, 4, 1, 1)]),
    "shifted": (shifted, [(6, 4, 1, 1), (2, 6, 3, 3)]),
    "all_zero": (all_zero, [(1, 4, 1, 1), (2, 1, 3, 3)]),
    "grouped": (grouped, [(6, 4, 1, 1), (6, 2, 3, 3)]),
    "returned": (returned, [(6, 4, 1, 1)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_gives_the_same(form: str, tmp_path: Path) -> None:
    build, left = FORMS[form]
    net = Net()
    path = net.write(tmp_path / "net.onnx", [build(net)])
    options = CompileOptions(target="c99", disable=["merge-duplicates", "separate-conv"])
    after, _ = import_and_lower(path, "optimized", options)
    off = CompileOptions(target="c99", disable=[*options.disable, "drop-zero-channels"])
    before, _ = import_and_lower(path, "optimized", off)
    found = [op for op in after.walk() if isinstance(op, ConvOp | MatmulOp)]
    assert [static_shape(op.operands[1]) for op in found] == left
    x = np.asarray(np.random.default_rng(1).standard_normal((1, 4, 6, 6)), np.float32)
    for got, want in zip(
        run_module(after, {"x": x}).values(), run_module(before, {"x": x}).values(), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), 1e-5, 1e-5)
