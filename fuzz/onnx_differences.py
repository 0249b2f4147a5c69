"""
Where onnx.reference or onnxruntime does something else than the specification of ONNX says.

An entry names an operator and a condition on its version, attributes and inputs. Under it that
witness is not heard; a node in a body counts for the node that has the body. Of what nobody says
(`NOBODY`) it is checked only that the interpreter and C give the same, and not even that of what
the compiler does not promise (`UNPROMISED`). What is not described here, and of which witnesses
differ, stays undecided and is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, helper

Array = NDArray[Any]
Env = Mapping[str, Any]

NOBODY = "nobody"
"""The witness of what the specification leaves open."""
UNPROMISED = "unpromised"
"""The witness of what docs/architecture.md does not promise: C may differ from the interpreter."""


def is_array(value: object) -> TypeGuard[Array]:
    """True for a tensor, of any type."""
    return isinstance(value, np.ndarray)


@dataclass(frozen=True)
class Call:
    """A node with its attributes and what it reads."""

    node: NodeProto
    opset: int
    attributes: Mapping[str, Any]
    inputs: Sequence[Any]
    """Arrays; None where an input is absent, or not known because the node is in a body."""

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    @property
    def first(self) -> Any:
        """The first input; an array of nothing if it is not known."""
        found = self.inputs[0] if self.inputs else None
        return found if is_array(found) else np.zeros(0, np.float32)


@dataclass(frozen=True)
class Difference:
    """What a witness does not do."""

    witness: str
    """reference, onnxruntime, NOBODY or UNPROMISED."""
    ops: tuple[str, ...]
    cause: str
    when: Callable[[Call], bool] = lambda call: True


def _chooses_beyond(call: Call) -> bool:
    """A condition of Compress is longer than what it chooses of; False if either is not known."""
    values, condition = call.inputs
    if not (is_array(values) and is_array(condition)):
        return False
    axis = call.get("axis")
    return condition.size > (values.size if axis is None else values.shape[axis])


def _is_flattened(call: Call) -> bool:
    return call.opset < 13 and call.get("axis", 1) not in (-1, call.first.ndim - 1)


def _holds_nan(call: Call) -> bool:
    return any(is_array(x) and bool(np.isnan(_numbers(x)).any()) for x in call.inputs)


def _compares_nan(call: Call) -> bool:
    """The greatest or least is scattered, and there are NaNs."""
    return call.get("reduction") in (b"max", b"min") and _holds_nan(call)


def _holds_no_number(call: Call) -> bool:
    return not all(_is_finite(x) for x in call.inputs)


def _is_finite(x: Any) -> bool:
    return not is_array(x) or bool(np.isfinite(_numbers(x)).all())


def _is_padded(call: Call) -> bool:
    return any(call.get("pads", ())) or call.get("auto_pad", b"").startswith(b"SAME")


def _is_too_large(call: Call) -> bool:
    """Whether the window of a pool is larger than what it moves over, padding included."""
    kernel = call.get("kernel_shape", ())
    count = len(kernel)
    dilations = call.get("dilations") or [1] * count
    pads = call.get("pads") or [0] * (2 * count)
    return not call.get("auto_pad", b"").startswith(b"SAME") and any(
        size + pads[k] + pads[k + count] < (kernel[k] - 1) * dilations[k] + 1
        for k, size in enumerate(call.first.shape[2:])
    )


def _has_no_integer_mean(call: Call) -> bool:
    x = call.first
    if x.dtype.kind not in "iu":
        return False
    most = float(np.abs(_numbers(x)).sum())
    return x.size == 0 or most >= float(np.iinfo(x.dtype).max)


def _numbers(array: Array) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def _wraps(call: Call) -> bool:
    """Whether sums or products of integers may be too large for their type."""
    if call.first.dtype.kind not in "iu":
        return False
    sizes = np.abs(_numbers(call.first))
    match call.node.op_type:
        case "ReduceProd":
            largest = np.maximum(sizes, 1).prod()
        case "ReduceL2" | "ReduceSumSquare":
            largest = np.square(sizes).sum()
        case _:
            largest = sizes.sum()
    return bool(largest > np.iinfo(call.first.dtype).max)


def _overflows(call: Call) -> bool:
    """Whether part of what is reduced may be too large, or too small for a product."""
    dtype = call.first.dtype
    if dtype.kind in "iub":
        return False
    limits = cast(Any, ml_dtypes).finfo(dtype)
    sizes = np.abs(_numbers(call.first))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    powers = np.log2(sizes)
    if call.node.op_type == "ReduceProd":
        largest, smallest = powers[powers > 0].sum(), powers[powers < 0].sum()
        return bool(largest >= np.log2(float(limits.max)) or smallest <= limits.minexp)
    squares = 2 if call.node.op_type in ("ReduceL2", "ReduceSumSquare") else 1
    largest = squares * powers.max(initial=0) + np.log2(sizes.size + 1)
    return bool(largest >= np.log2(float(limits.max)))


def _has_constant_parts(call: Call) -> bool:
    x = _numbers(call.first)
    axes = tuple(call.get("axes", (0, 2, 3)))
    if x.size == 0 or any(not -x.ndim <= axis < x.ndim for axis in axes):
        return False
    with np.errstate(all="ignore"):
        return bool((np.ptp(x, axes) <= 1e-3 * np.abs(x).max(axes)).any())


def _spatial(call: Call) -> tuple[int, ...]:
    return tuple(range(2, call.first.ndim))


def _divides_badly(call: Call) -> bool:
    x, y = ((*call.inputs, None, None)[k] for k in range(2))
    if not is_array(x) or not is_array(y) or y.dtype.kind not in "iu":
        return False
    lowest = np.iinfo(cast(Any, y.dtype)).min
    return bool((y == 0).any() or (lowest and (y == -1).any() and (x == lowest).any()))


def _has_input(place: int) -> Callable[[Call], bool]:
    return lambda call: len(call.node.input) > place and bool(call.node.input[place])


KNOWN: tuple[Difference, ...] = (
    Difference(
        "reference",
        ("Softmax", "LogSoftmax", "Hardmax"),
        "before opset 13 all dimensions from the axis on are one",
        _is_flattened,
    ),
    Difference(
        "reference",
        ("MaxPool",),
        "indices count from the first element of the tensor, not of the channel",
        lambda call: len(call.node.output) > 1,
    ),
    Difference(
        "reference",
        ("RoiAlign",),
        "before opset 16 regions are not shifted by half a pixel",
        lambda call: call.opset < 16,
    ),
    Difference(
        "reference",
        ("LpNormalization",),
        "the norm of p 1 is a sum of absolute values",
        lambda call: call.get("p", 2) == 1,
    ),
    Difference(
        "reference",
        ("BatchNormalization",),
        "without training mode the given mean and variance are used",
        lambda call: 9 <= call.opset < 14,
    ),
    Difference(
        "reference",
        ("BatchNormalization",),
        "a variance of f32 is computed with in the type of the input",
        lambda call: len({x.dtype for x in call.inputs if is_array(x)}) > 1,
    ),
    Difference("reference", ("LRN",), "the window ends after its last channel"),
    Difference("onnxruntime", ("LRN",), "a window has no part of what left it", _holds_no_number),
    Difference(
        "onnxruntime",
        ("MeanVarianceNormalization",),
        "what is constant has the variance 0, not less, and epsilon is added",
    ),
    Difference(
        NOBODY,
        ("MeanVarianceNormalization",),
        "what is constant has a variance that rounding makes, which may be negative",
        _has_constant_parts,
    ),
    Difference(
        NOBODY,
        ("Gelu",),
        "doubles: onnx.reference has them in single precision, onnxruntime not at all",
        lambda call: call.first.dtype == np.float64,
    ),
    Difference(
        "onnxruntime",
        ("InstanceNormalization",),
        "the mean of what is constant is taken away before it is scaled",
        lambda call: bool((np.ptp(_numbers(call.first), _spatial(call)) < 1e-6).any()),
    ),
    Difference(
        "reference",
        ("RNN", "GRU", "LSTM"),
        "sequence_lens ends sequences",
        _has_input(4),
    ),
    Difference(
        "onnxruntime",
        ("RNN", "GRU", "LSTM"),
        "sigmoid and tanh are precise, also of infinities and NaN",
        lambda call: not _has_input(4)(call) or _holds_no_number(call),
    ),
    Difference(
        "onnxruntime",
        ("ReduceMean", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
        "the mean of nothing is 0 / 0",
        lambda call: not call.first.size,
    ),
    Difference(
        "onnxruntime",
        ("MatMulInteger",),
        "a sum of nothing is 0",
        lambda call: not call.first.size,
    ),
    Difference(
        "reference",
        ("Resize",),
        "with pytorch_half_pixel one element is the first, whatever fraction the scale leaves",
        lambda call: call.get("coordinate_transformation_mode") == b"pytorch_half_pixel",
    ),
    Difference(
        "reference",
        ("Loop",),
        "without a condition it runs as often as the trip count says",
        lambda call: not _has_input(1)(call),
    ),
    Difference(
        "onnxruntime",
        ("Mod",),
        "the remainder of integers is computed of integers",
        lambda call: call.get("fmod", 0) == 1 and call.first.dtype.kind in "iu",
    ),
    Difference(
        "reference",
        ("OneHot",),
        "values are copied, not multiplied by 1 and 0",
        lambda call: (
            not all(
                bool((np.abs(_numbers(x)) < 1e30).all()) for x in call.inputs[2:] if is_array(x)
            )
        ),
    ),
    Difference(
        "reference",
        ("PRelu",),
        "the slope is that of numbers below zero only",
        _holds_no_number,
    ),
    Difference(
        "onnxruntime",
        ("DFT",),
        "the inverse of f64 is computed in f64",
        lambda call: call.get("inverse", 0) == 1 and call.first.dtype == np.float64,
    ),
    Difference(
        "reference",
        ("Conv",),
        "what lies between the elements of a dilated window is not read",
        lambda call: any(d != 1 for d in call.get("dilations", ())) and _holds_no_number(call),
    ),
    Difference(
        "onnxruntime",
        ("BatchNormalization",),
        "the mean is taken away before it is scaled",
        _holds_no_number,
    ),
    Difference("reference", ("LpPool",), "a window with NaN is NaN", _holds_nan),
    Difference(
        "reference",
        ("LpPool",),
        "what a window has beyond the end is no part of the sum",
        lambda call: bool(call.get("ceil_mode", 0)),
    ),
    Difference(
        NOBODY,
        ("MaxPool", "GlobalMaxPool"),
        "which of a number and NaN is larger: the first, the last or the number",
        _holds_nan,
    ),
    Difference(
        NOBODY,
        ("MaxPool",),
        "where windows lie that SAME takes apart",
        lambda call: (
            call.get("auto_pad", b"").startswith(b"SAME")
            and any(s > k for s, k in zip(call.get("strides", ()), call.get("kernel_shape")))
        ),
    ),
    Difference(
        "reference",
        ("MaxPool",),
        "SAME_LOWER pads as much as the size of the result needs",
        lambda call: call.get("auto_pad") == b"SAME_LOWER",
    ),
    Difference(
        NOBODY,
        ("MaxPool", "AveragePool", "LpPool"),
        "how often a window fits in what is smaller than it",
        _is_too_large,
    ),
    Difference(
        NOBODY,
        ("ReduceMean",),
        "the mean of no integers, or of some whose sum no integer holds",
        _has_no_integer_mean,
    ),
    Difference(
        UNPROMISED,
        ("ReduceL2",),
        "the norm of integers whose squares no integer holds",
        lambda call: (
            call.first.dtype.kind in "iu"
            and float(np.square(_numbers(call.first)).sum())
            >= float(np.iinfo(call.first.dtype).max)
        ),
    ),
    Difference(
        "reference",
        ("GridSample",),
        "behind a border each place that a cubic kernel reads is moved, not its center",
        lambda call: (
            call.get("mode") in (b"cubic", b"bicubic") and call.get("padding_mode") == b"border"
        ),
    ),
    Difference(
        "reference",
        ("Erf",),
        "doubles are computed in doubles; nobody knows the types in a body",
        lambda call: not is_array(call.inputs[0]) or call.first.dtype == np.float64,
    ),
    Difference(
        "reference",
        ("QLinearConv", "QLinearMatMul"),
        "halves are rounded before the zero point is added",
        lambda call: not is_array(call.inputs[7]) or bool((call.inputs[7] % 2).any()),
    ),
    Difference(
        "reference",
        ("RNN", "GRU", "LSTM"),
        "infinity times 0 is NaN, also in a product of matrices",
        _holds_no_number,
    ),
    Difference(
        "reference",
        ("GridSample",),
        "volumes of doubles are sampled in doubles",
        lambda call: call.first.ndim == 5 and call.first.dtype == np.float64,
    ),
    Difference(
        "onnxruntime",
        ("ReduceMax", "ReduceMin", "Max", "Min"),
        "what is compared with NaN is NaN",
        _holds_nan,
    ),
    Difference(
        "onnxruntime",
        tuple(f"Reduce{name}" for name in ("L1", "L2", "Prod", "Sum", "SumSquare")),
        "sums and products of integers wrap",
        _wraps,
    ),
    Difference("onnxruntime", ("ScatterND",), "what is compared with NaN is NaN", _compares_nan),
    Difference(
        NOBODY, ("ScatterElements",), "whether what is compared with NaN is NaN", _compares_nan
    ),
    Difference(
        "onnxruntime",
        ("AffineGrid", "Attention", "GridSample", "Shrink"),
        "f64 is computed in f64",
        lambda call: call.first.dtype == np.float64,
    ),
    Difference(
        "reference",
        ("Attention",),
        "the root of the scale is a number of f32, as in the function body",
        lambda call: call.first.dtype == np.float64,
    ),
    Difference(
        "reference",
        ("AveragePool",),
        "only padding is left out of a mean, infinities and NaN are not",
        _holds_no_number,
    ),
    Difference(
        "reference",
        ("ConvTranspose",),
        "each channel of each group has its own bias",
        lambda call: call.get("group", 1) > 1,
    ),
    *(
        Difference(
            who,
            ("Div", "Mod"),
            "integers are not divided by 0, nor the lowest one by -1",
            _divides_badly,
        )
        for who in ("onnxruntime", NOBODY)
    ),
    Difference(
        NOBODY, ("ArgMax", "ArgMin", "Hardmax", "TopK", "Unique"), "the order of NaN", _holds_nan
    ),
    Difference(
        UNPROMISED,
        ("Conv",),
        "weights that are no numbers have no effect on padding, or make it NaN",
        lambda call: _is_padded(call) and not _is_finite(call.inputs[1]),
    ),
    Difference(
        UNPROMISED,
        ("ConvTranspose",),
        "weights that are no numbers have no effect beside the input, or make it NaN",
        lambda call: not _is_finite(call.inputs[1]),
    ),
    Difference(
        UNPROMISED,
        tuple(
            f"Reduce{name}" for name in ("L1", "L2", "LogSum", "Mean", "Prod", "Sum", "SumSquare")
        ),
        "the order of a sum or product decides whether it overflows",
        _overflows,
    ),
    Difference(
        UNPROMISED,
        ("ReduceLogSum", "ReduceLogSumExp"),
        "which integer the logarithm of what is not positive is",
        lambda call: call.first.dtype.kind in "iu" and bool((call.first <= 0).any()),
    ),
    Difference(NOBODY, ("MaxRoiPool",), "whether NaN is passed over", _holds_nan),
    Difference(
        NOBODY,
        ("Compress",),
        "what is chosen beyond the end",
        _chooses_beyond,
    ),
    Difference(
        NOBODY,
        ("RoiAlign",),
        "whether the largest sample passes over NaN",
        lambda call: call.get("mode") == b"max" and _holds_no_number(call),
    ),
    Difference(
        NOBODY,
        ("Resize", "Upsample", "GridSample", "DFT", "STFT"),
        "what infinities and NaN are times 0",
        _holds_no_number,
    ),
    Difference(
        NOBODY,
        ("Resize", "Upsample", "GridSample"),
        "how a value between two integers is rounded",
        lambda call: call.first.dtype.kind in "iu" and call.get("mode") not in (None, b"nearest"),
    ),
    Difference(
        UNPROMISED,
        ("Resize", "Upsample", "GridSample"),
        "an integer of which a cubic function makes more than its type holds",
        lambda call: call.first.dtype.kind in "iu" and call.get("mode") in (b"cubic", b"bicubic"),
    ),
    Difference(
        NOBODY,
        ("HannWindow", "BlackmanWindow"),
        "whether a window ends with 0 or with what rounding leaves of it",
        lambda call: call.node.op_type == "BlackmanWindow" or not call.get("periodic", 1),
    ),
    Difference(
        NOBODY,
        ("AffineGrid", "Resize"),
        "no witness computes f64 in f64",
        lambda call: call.first.dtype == np.float64,
    ),
    Difference(
        NOBODY,
        ("ReduceLogSum", "ReduceLogSumExp", "Erf"),
        "how the value of an integer is rounded",
        lambda call: call.first.dtype.kind in "iu",
    ),
    Difference(
        NOBODY,
        ("DynamicQuantizeLinear",),
        "the scale of zeros, and of what is no number",
        lambda call: not call.first.any() or _holds_no_number(call),
    ),
    Difference(
        "reference",
        ("Unique",),
        "what is not to be sorted stands in the order of its first occurrence",
        lambda call: call.get("sorted", 1) == 0,
    ),
)
"""All that is known; what an entry says is what the specification asks for."""


def doubt(witness: str, node: NodeProto, opset: int, env: Env) -> str:
    """Why a witness is not heard of a node; empty if it is."""
    for call in calls(node, opset, env):
        for entry in KNOWN:
            if entry.witness == witness and call.node.op_type in entry.ops and entry.when(call):
                return f"{witness}, {call.node.op_type}: {entry.cause}"
    return ""


def calls(node: NodeProto, opset: int, env: Env) -> Iterator[Call]:
    """A node and those in its bodies."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    inputs = [env.get(name) if name else None for name in node.input]
    yield Call(node, opset, attributes, inputs)
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            for inner in attribute.g.node:
                yield from calls(inner, opset, env)
