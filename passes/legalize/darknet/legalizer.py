"""What a handler works with: the keys, weights and states of one layer, and a builder before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import BatchNormOp, ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import PadOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, static_shape
from lowerdeck.dialects.darknet.ops import DarknetOp
from lowerdeck.dialects.darknet.shapes import Convolution, Layer, Shape, layer_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.darknet.activation import activated
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue

EPSILON = 1e-5
"""What is added to variances."""


def _signs(x: TensorValue) -> TensorValue:
    """1 where a number is positive, -1 where it is not."""
    return x.gt(0).where(TensorValue.number(x.builder, 1, f32), -1)


class DarknetLegalizer(ArgumentsLegalizer):
    """What a handler works with."""

    def __init__(self, op: DarknetOp, symbols: SymbolicValues) -> None:
        super().__init__(op, symbols)
        self.keys = op.keys
        self._left = list(self.inputs("weights"))

    def check(self) -> None:
        """Refuse operands of other sizes than the layer has."""
        for value in self.op.operands:
            if element_type(value) != f32 and value is not self.optional("parents"):
                self.refuse(f"an operand of type {value.type}", "f32")
        layer = self.layer
        weights = [self._shape(value) for value in self._left]
        expected = [shape for _, shape in layer.weights]
        if weights != expected:
            self.refuse(f"weights of shapes {weights}", f"{expected}")
        states = [self._shape(value)[1:] for value in self.inputs("states")]
        if states != list(layer.states) or len(self.op.results) != 1 + len(states):
            self.refuse(f"states of shapes {states}", f"{list(layer.states)}, each as a result")

    @property
    def layer(self) -> Layer:
        """The sizes of the layer."""
        transposed = self.flag("transposed")
        return layer_of(self.op.op_type, self.keys, self.shapes, transposed=transposed)

    @property
    def sources(self) -> list[SSAValue]:
        """The result of the layer before this one, as far as it is read, and those of others."""
        first = self.optional("input")
        return [*([] if first is None else [first]), *self.inputs("others")]

    @property
    def shapes(self) -> list[Shape]:
        """The sizes of one item of each of the sources."""
        shapes = [self._shape(value)[1:] for value in self.sources]
        if not shapes and self.op.op_type != "implicit":
            self.refuse("no input", "one")
        return shapes

    def shape_of_item(self, value: SSAValue) -> Shape:
        """The sizes of one item of a value."""
        return self._shape(value)[1:]

    def _shape(self, value: SSAValue) -> Shape:
        shape = static_shape(value)
        if not shape:
            self.refuse(f"a value of type {value.type}", "a tensor of known sizes")
        return tuple(shape)

    @property
    def batch(self) -> Expr:
        """The number of items."""
        return dims_of(self.sources[0])[0]

    @property
    def x(self) -> TensorValue:
        """The result of the layer before this one, for arithmetic."""
        return TensorValue(self, self.input())

    @property
    def states(self) -> list[TensorValue]:
        """What the layer remembers."""
        return [TensorValue(self, value) for value in self.inputs("states")]

    def row(self, value: SSAValue) -> SSAValue:
        """A value with the numbers of an item in one dimension."""
        return self.flatten(value, 1)

    def parents(self, classes: int) -> list[int]:
        """The class above each of the classes of a tree, which comes before it, or -1."""
        found = self.require_ints(self.input("parents"), "'parents'")
        if len(found) != classes or any(not -1 <= one < k for k, one in enumerate(found)):
            self.refuse(f"a tree of {len(found)} classes", f"{classes}, each behind its parent")
        return found

    # Parts of layers, which take the next weights

    def take(self) -> SSAValue:
        """The next list of weights."""
        return self._left.pop(0)

    def taken(self) -> TensorValue:
        """The next list of weights, for arithmetic."""
        return TensorValue(self, self.take())

    def with_weights(self, weights: list[SSAValue], part: Callable[[], TensorValue]) -> TensorValue:
        """A part of the layer whose weights were taken before."""
        self._left = [*weights, *self._left]
        return part()

    def convolved(self, x: SSAValue, convolution: Convolution) -> TensorValue:
        """A convolution with its batch normalization or its biases."""
        bias, *moments = [self.take() for _ in convolution.weights[:-1]]
        weight = self.take()
        if convolution.is_flipped:
            weight = self.reshape(self.transpose(weight, [1, 0]), convolution.kernel)
        if convolution.has_signs:
            result = self._of_signs(x, weight, convolution)
            result = result if moments else result + TensorValue(self, bias).column(4, 1)
            return self.normalized(result.value, bias, moments) if moments else result
        result = self.correlated(x, weight, convolution, None if moments else bias)
        return self.normalized(result, bias, moments) if moments else TensorValue(self, result)

    def _of_signs(self, x: SSAValue, weight: SSAValue, convolution: Convolution) -> TensorValue:
        """The sums of a filter's signs, times the mean of its absolute values."""
        numbers = TensorValue(self, weight)
        means = numbers.abs().reduce("sum", [1, 2, 3]) / float(prod(convolution.kernel[1:]))
        if convolution.takes_signs:
            pads = [0, 0, convolution.padding, convolution.padding]
            outside = self.scalar(-1, f32)
            x = self.add(PadOp(_signs(TensorValue(self, x)).value, pads, pads, outside))
            convolution = replace(convolution, padding=0)
        sums = self.correlated(x, _signs(numbers).value, convolution)
        return TensorValue(self, sums) * means.column(4, 1)

    def correlated(
        self, x: SSAValue, weight: SSAValue, convolution: Convolution, bias: SSAValue | None = None
    ) -> SSAValue:
        """The sums of a convolution."""
        padding = convolution.padding * convolution.dilation
        op = ConvOp(
            x,
            weight,
            bias,
            strides=convolution.strides,
            dilations=[convolution.dilation] * 2,
            pads_begin=[padding] * 2,
            pads_end=[padding] * 2,
            groups=convolution.groups,
        )
        return self.add(op)

    def normalized(self, x: SSAValue, bias: SSAValue, moments: list[SSAValue]) -> TensorValue:
        """(x - mean) / sqrt(variance + epsilon) * scale + bias"""
        scale, mean, variance = moments
        op = BatchNormOp(x, scale, bias, mean, variance, EPSILON)
        return TensorValue(self, self.add(op))

    def connected(self, x: SSAValue) -> TensorValue:
        """The product of [N, inputs] with weights, with batch normalization or biases."""
        bias, weight = self.take(), self.take()
        weight = weight if self.flag("transposed") else self.transpose(weight, [1, 0])
        result = self.add(MatmulOp(x, weight))
        if self.flag("batch_normalize"):
            return self.normalized(result, bias, [self.take() for _ in range(3)])
        return TensorValue(self, result) + TensorValue(self, bias)

    def activated(
        self, x: TensorValue, name: str = "", *, among_channels: bool = False
    ) -> TensorValue:
        """A function of the key `activation`, or of a name."""
        return activated(self, x, name or self.text("activation"), among_channels=among_channels)
