"""One step of the optimizers of ai.onnx.preview.training, each tensor by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowerdeck.dialects.core.elementwise import PowOp, SqrtOp
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue

TRAINING = "ai.onnx.preview.training"

Step = Callable[..., Sequence[TensorValue]]
"""From a tensor, its gradient and what is kept of it to their new values."""


def _stepped(builder: OnnxLegalizer, parts: int, step: Step) -> Results:
    """
    The results of a step for each of the tensors, of which each has `parts` operands: those of one
    kind lie side by side.
    """
    values = [TensorValue.of(builder, value) for value in builder.inputs[2:]]
    count, rest = divmod(len(values), parts)
    if rest:
        builder.refuse(f"{len(values)} tensors", f"{parts} for each one that is optimized")
    found = [step(*values[k::count]) for k in range(count)]
    return [value.value for kind in zip(*found, strict=True) for value in kind]


def _regularized(builder: OnnxLegalizer, x: TensorValue, gradient: TensorValue) -> TensorValue:
    return x * builder.attrs.float("norm_coefficient") + gradient


def _rates(builder: OnnxLegalizer) -> tuple[TensorValue, TensorValue]:
    """The learning rate, and the number of steps before in its type."""
    rate = TensorValue.of(builder, builder.operand("R"))
    return rate, TensorValue.of(builder, builder.operand("T")).cast(rate.element)


@legalizes("Adagrad", domain=TRAINING)
def legalize_adagrad(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Steps that are shorter where gradients were large."""
    rate, count = _rates(builder)
    rate = rate / (count * builder.attrs.float("decay_factor") + 1)
    epsilon = builder.attrs.float("epsilon")

    def step(x: TensorValue, gradient: TensorValue, squares: TensorValue) -> Sequence[TensorValue]:
        gradient = _regularized(builder, x, gradient)
        squares = squares + gradient * gradient
        return x - rate * gradient / (apply(SqrtOp, squares) + epsilon), squares

    return _stepped(builder, 3, step)


@legalizes("Adam", domain=TRAINING)
def legalize_adam(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Steps along the mean gradient, by the root of the mean square."""
    rate, count = _rates(builder)
    alpha, beta, epsilon, after = (
        builder.attrs.float(name) for name in ("alpha", "beta", "epsilon", "norm_coefficient_post")
    )
    far, near = (
        TensorValue(builder, builder.add(PowOp(builder.scalar(base, count.value), count.value)))
        for base in (beta, alpha)
    )
    rate = count.gt(0).where(rate * apply(SqrtOp, 1 - far) / (1 - near), rate)

    def step(
        x: TensorValue, gradient: TensorValue, mean: TensorValue, squares: TensorValue
    ) -> Sequence[TensorValue]:
        gradient = _regularized(builder, x, gradient)
        mean = mean * alpha + gradient * (1 - alpha)
        squares = squares * beta + gradient * gradient * (1 - beta)
        x = x - rate * mean / (apply(SqrtOp, squares) + epsilon)
        return x * (1 - after), mean, squares

    return _stepped(builder, 4, step)


@legalizes("Momentum", domain=TRAINING)
def legalize_momentum(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Steps along what remains of earlier ones."""
    rate, count = _rates(builder)
    alpha, beta = (builder.attrs.float(name) for name in ("alpha", "beta"))
    mode = builder.attrs.string("mode", among=("standard", "nesterov"))
    scale = count.gt(0).where(TensorValue.number(builder, beta, rate.element), 1)

    def step(x: TensorValue, gradient: TensorValue, speed: TensorValue) -> Sequence[TensorValue]:
        gradient = _regularized(builder, x, gradient)
        speed = speed * alpha + gradient * scale.cast(x.element)
        along = gradient + speed * alpha if mode == "nesterov" else speed
        return x - rate * along, speed

    return _stepped(builder, 3, step)
