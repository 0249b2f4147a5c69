"""Activation functions that are named by attributes."""

from __future__ import annotations

from collections.abc import Iterator

from lowerdeck.dialects.records import record
from lowerdeck.frontends.onnx.contrib.definition import Call, number

_FUNCTIONS: dict[str, tuple[str, tuple[float, ...]]] = {
    "affine": (
        """
        {y}_a = Constant <value_float = {0}> ()
        {y}_b = Constant <value_float = {1}> ()
        {y}_c = Mul ({x}, {y}_a)
        {y} = Add ({y}_c, {y}_b)""",
        (0.0, 0.0),
    ),
    "elu": ("{y} = Elu <alpha = {0}> ({x})", (1.0,)),
    "hardsigmoid": ("{y} = HardSigmoid <alpha = {0}, beta = {1}> ({x})", (0.2, 0.5)),
    "leakyrelu": ("{y} = LeakyRelu <alpha = {0}> ({x})", (0.01,)),
    "relu": ("{y} = Relu ({x})", ()),
    "scaledtanh": (
        """
        {y}_a = Constant <value_float = {0}> ()
        {y}_b = Constant <value_float = {1}> ()
        {y}_c = Mul ({x}, {y}_b)
        {y}_d = Tanh ({y}_c)
        {y} = Mul ({y}_d, {y}_a)""",
        (0.0, 0.0),
    ),
    "sigmoid": ("{y} = Sigmoid ({x})", ()),
    "softplus": ("{y} = Softplus ({x})", ()),
    "softsign": ("{y} = Softsign ({x})", ()),
    "tanh": ("{y} = Tanh ({x})", ()),
    "thresholdedrelu": ("{y} = ThresholdedRelu <alpha = {0}> ({x})", (0.0,)),
}
"""In lower case; the nodes that make y of x, and the values of parameters that are not given."""


@record
class Activation:
    """An activation function with its parameters."""

    text: str
    parameters: tuple[float, ...]

    def nodes(self, y: str, x: str) -> str:
        """The nodes that compute `y` of `x`."""
        return self.text.format(*map(number, self.parameters), x=x, y=y)


def activation(name: str, *sources: Iterator[float]) -> Activation:
    """A function by its name; what it has of parameters it takes from alphas, betas, in order."""
    if name.lower() not in _FUNCTIONS:
        expected = ", ".join(sorted(_FUNCTIONS))
        raise ValueError(f"found activation '{name}', expected one of {expected}")
    text, defaults = _FUNCTIONS[name.lower()]
    pairs = zip(sources, defaults, strict=False)
    return Activation(text, tuple(next(source, default) for source, default in pairs))


def activated(call: Call, y: str, x: str) -> str:
    """The nodes for the attributes activation and activation_params of a convolution."""
    name, parameters = call.string("activation"), iter(call.floats("activation_params"))
    if not name:
        return f"{y} = Identity ({x})"
    if name != "Clip":
        return activation(name, parameters, parameters).nodes(y, x)
    least, most = next(parameters, None), next(parameters, None)
    if least is None or most is None:
        raise ValueError("found activation 'Clip' without its limits")
    return f"""{y}_least = Constant <value_float = {number(least)}> ()
      {y}_most = Constant <value_float = {number(most)}> ()
      {y} = Clip ({x}, {y}_least, {y}_most)"""
