"""Functions of one, two or three elements, and what quantizes and dequantizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fuzz.tflite_graphs import DTYPES, QUANTIZED, RANGES, Graph, Scale, Value
from fuzz.tflite_nodes.products import ACTIVATIONS

_ARITHMETIC = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32")

_FLOAT_FUNCTIONS = (
    "ABS NEG FLOOR CEIL ROUND SIN COS EXP LOG SQRT RSQRT SQUARE SIGN LOGISTIC TANH RELU RELU6 ELU "
    "RELU_N1_TO_1 RELU_0_TO_1 GELU HARD_SWISH LEAKY_RELU LOG_SOFTMAX SOFTMAX L2_NORMALIZATION "
    "ZEROS_LIKE".split()
)
_INTEGER_FUNCTIONS = (
    "ABS NEG LOGISTIC TANH RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 ELU GELU HARD_SWISH LEAKY_RELU EXP "
    "LOG SQRT RSQRT SIN SOFTMAX LOG_SOFTMAX L2_NORMALIZATION SIGN SQUARE ROUND FLOOR CEIL".split()
)
_STEPS = frozenset({"FLOOR", "CEIL", "ROUND", "SIGN"})
_POLES = frozenset({"LOG", "SQRT", "RSQRT"})
"""What a last bit decides the results of, whether a number is zero or below it."""
_PICKS = frozenset({"ABS", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ZEROS_LIKE"})
"""Functions of floats that round nothing."""

_FIXED = {
    ("LOGISTIC", "INT8"): Scale((1 / 256,), (-128,)),
    ("LOGISTIC", "UINT8"): Scale((1 / 256,), (0,)),
    ("LOGISTIC", "INT16"): Scale((1 / 32768,), (0,)),
    ("TANH", "INT8"): Scale((1 / 128,), (0,)),
    ("TANH", "UINT8"): Scale((1 / 128,), (128,)),
    ("TANH", "INT16"): Scale((1 / 32768,), (0,)),
    ("SOFTMAX", "INT8"): Scale((1 / 256,), (-128,)),
    ("SOFTMAX", "UINT8"): Scale((1 / 256,), (0,)),
    ("SOFTMAX", "INT16"): Scale((1 / 32768,), (0,)),
    ("LOG_SOFTMAX", "INT8"): Scale((16 / 256,), (127,)),
    ("LOG_SOFTMAX", "UINT8"): Scale((16 / 256,), (255,)),
    ("L2_NORMALIZATION", "INT8"): Scale((1 / 128,), (0,)),
    ("L2_NORMALIZATION", "UINT8"): Scale((1 / 128,), (128,)),
}
"""The scales that kernels require of results."""

_OPTIONS = {
    "LEAKY_RELU": "LeakyReluOptions",
    "SOFTMAX": "SoftmaxOptions",
    "GELU": "GeluOptions",
    "L2_NORMALIZATION": "L2NormOptions",
}


def _options(g: Graph, kind: str) -> tuple[str, dict[str, object]] | None:
    choices: dict[str, dict[str, object]] = {
        "LEAKY_RELU": {"alpha": g.rng.choice([0.1, 0.25, 1.5, -0.5])},
        "SOFTMAX": {"beta": g.rng.choice([1.0, 0.5, 2.0])},
        "GELU": {"approximate": g.chance(0.5)},
        "L2_NORMALIZATION": {},
    }
    return (_OPTIONS[kind], choices[kind]) if kind in choices else None


def of_floats(g: Graph) -> object:
    """Functions of a float."""
    kind = g.rng.choice(_FLOAT_FUNCTIONS)
    x = g.pick("FLOAT32", exact=kind in _STEPS | _POLES)
    exact = x.exact and kind in _STEPS | _PICKS
    return g.op(kind, [x], (x.shape, "FLOAT32", None), options=_options(g, kind), exact=exact)


def of_integers(g: Graph) -> object:
    """Functions of integers that stand for real numbers."""
    kind = g.rng.choice(_INTEGER_FUNCTIONS)
    x = g.pick(*QUANTIZED)
    assert x.q is not None
    q = _FIXED.get((kind, x.type)) or g.near(x.q.scale, x.type)
    return g.op(kind, [x], (x.shape, x.type, q), options=_options(g, kind))


def root(g: Graph) -> object:
    """SQRT and LOG of integers of which none is negative, and other functions of those."""
    kind = g.rng.choice(["SQRT", "SQRT", "RSQRT", "LOG", "EXP"])
    type_ = g.rng.choice(["INT8", "INT16"]) if kind == "SQRT" else "INT16"
    shape = g.shape(g.rng.randint(1, 3))
    q = g.scale(type_, -6, 2)
    if type_ == "INT8":
        x = g.input(shape, type_, Scale(q.scales, (-128,)))
    else:
        low = 0 if kind == "SQRT" else -32768
        numbers = g.numbers.integers(low, 32768, shape).astype(np.int16)
        x = g.constant(numbers, type_, q)
    result = g.near(q.scale, type_)
    return g.op(kind, [x], (shape, type_, result))


def prelu(g: Graph) -> object:
    """PRELU with slopes for channels."""
    x = g.pick("FLOAT32", "INT8", "UINT8", ranks=(2, 3, 4))
    shape = [*([1] * (x.rank - 2)), x.shape[-1]]
    slopes = g.constant(
        g.weights(shape, x.type), x.type, None if x.q is None else g.scale(x.type, -8, -6)
    )
    q = None if x.q is None else g.near(x.q.scale, x.type)
    return g.op("PRELU", [x, slopes], (x.shape, x.type, q), exact=False)


def smaller(g: Graph, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    if g.chance(0.5):
        return tuple(shape)
    found = [1 if g.chance(0.3) else size for size in shape]
    return tuple(found[g.rng.randint(0, len(found)) if g.chance(0.4) else 0 :])


def other_of(g: Graph, x: Value, *, same_scale: bool = False, odd: bool = False) -> Value:
    """A second operand: another value of the shape, a new input or a constant."""
    found = [v for v in g.values if v.type == x.type and v.shape == x.shape and v.q == x.q]
    if found and not odd and g.chance(0.4):
        return g.rng.choice(found)
    shape = smaller(g, x.shape)
    q = x.q if same_scale or x.q is None else g.scale(x.type)
    if not odd and g.chance(0.5):
        return g.input(shape, x.type, q)
    return g.constant(_nonzero(g, shape, x.type, q), x.type, q)


def _nonzero(g: Graph, shape: Sequence[int], type_: str, q: Scale | None) -> np.ndarray:
    """Numbers of which none stands for zero, nor is -1, by which the least has no quotient."""
    if type_ == "FLOAT32":
        found = g.numbers.uniform(0.5, 3, tuple(shape)) * g.numbers.choice([-1, 1], tuple(shape))
        return found.astype(np.float32)
    if q is None:
        found = g.numbers.integers(1, 9, tuple(shape)) * g.numbers.choice([-1, 1], tuple(shape))
        return found.astype(DTYPES[type_])
    found = np.where(np.isin(found := g.weights(shape, type_), (0, -1)), np.ones_like(found), found)
    other = q.zeros[0] + (1 if q.zeros[0] < RANGES[type_][1] else -1)
    return np.where(found == q.zeros[0], np.array(other, found.dtype), found)


_SUMS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}


def arithmetic(g: Graph) -> object:
    """Sums, differences, products and quotients with fused activations."""
    kind = g.rng.choice(list(_SUMS))
    # Quotients of bytes shift by more bits than there are, which means nothing.
    x = g.pick(*(("FLOAT32", "INT32") if kind == "DIV" else _ARITHMETIC))
    y = other_of(g, x, odd=kind == "DIV")
    pair = [y, x] if g.chance(0.3) and kind != "DIV" else [x, y]
    q = None
    if x.q is not None and y.q is not None:
        most = RANGES[x.type][1] - RANGES[x.type][0]
        scale = {"MUL": x.q.scale * y.q.scale * most / 4, "DIV": x.q.scale / y.q.scale / 16}
        q = g.near(scale.get(kind, 2 * max(x.q.scale, y.q.scale)), x.type)
    is_plain = x.type in ("INT32", "INT64")
    options: dict[str, object] = {
        "fused_activation_function": "NONE" if is_plain else g.rng.choice(ACTIVATIONS)
    }
    if kind in ("ADD", "SUB"):
        options["pot_scale_int16"] = False
    shape = np.broadcast_shapes(x.shape, y.shape)
    exact = x.type != "FLOAT32"
    return g.op(kind, pair, (shape, x.type, q), options=(_SUMS[kind], options), exact=exact)


_OTHERS = {
    "MAXIMUM": ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64"),
    "MINIMUM": ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64"),
    "SQUARED_DIFFERENCE": ("FLOAT32", "INT8", "INT32"),
    "FLOOR_DIV": ("FLOAT32", "INT32", "INT8", "INT16"),
    "FLOOR_MOD": ("FLOAT32", "INT32", "INT64", "INT8"),
    "POW": ("FLOAT32",),
    "BITWISE_XOR": ("INT32", "UINT8", "INT8"),
}


def two_operands(g: Graph) -> object:
    """Functions of two operands without an activation."""
    kind = g.rng.choice(list(_OTHERS))
    # The power of a number below zero is none, that of a zero may be.
    x = g.pick(*_OTHERS[kind], exact=kind.startswith(("FLOOR", "POW")))
    y = other_of(g, x, same_scale=kind in ("MAXIMUM", "MINIMUM"), odd=kind.startswith("FLOOR"))
    q = x.q
    if kind == "SQUARED_DIFFERENCE" and q is not None and y.q is not None:
        q = g.near(max(q.scale, y.q.scale) ** 2 * 64, x.type)
    shape = np.broadcast_shapes(x.shape, y.shape)
    exact = x.type != "FLOAT32" or (kind in ("MAXIMUM", "MINIMUM") and x.exact and y.exact)
    found = g.op(kind, [x, y], (shape, x.type, q), exact=exact)
    if kind != "POW":
        return found
    # An infinity times a weight of zero in an interpolation is left to the kernels.
    g.values.remove(found[0])
    limit = g.constant(np.array(1e9, np.float32), "FLOAT32")
    return g.op("MINIMUM", [found[0], limit], (shape, "FLOAT32", None), exact=False)


def comparison(g: Graph) -> object:
    """Comparisons of equal types, whose scales may differ."""
    kind = g.rng.choice("EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL".split())
    x = g.pick("FLOAT32", "INT8", "UINT8", "INT32", "INT64", exact=True)
    y = other_of(g, x, odd=True)
    if any(value.q is not None and value.q.scale >= 1 for value in (x, y)):
        return None  # what the kernels compute then is not defined
    shape = np.broadcast_shapes(x.shape, y.shape)
    return g.op(kind, [x, y], (shape, "BOOL", None))


def logical(g: Graph) -> object:
    """Functions of truth values."""
    x = g.pick("BOOL")
    if g.chance(0.3):
        return g.op("LOGICAL_NOT", [x], (x.shape, "BOOL", None))
    kind = g.rng.choice(["LOGICAL_AND", "LOGICAL_OR"])
    y = g.new("BOOL", smaller(g, x.shape))
    return g.op(kind, [x, y], (x.shape, "BOOL", None))


def select(g: Graph) -> object:
    """SELECT_V2, and SELECT of one shape or by rows."""
    x = g.pick("FLOAT32", "INT8", "UINT8", "INT16", "INT32")
    if g.chance(0.5):
        y = other_of(g, x, same_scale=True)
        condition = g.pick("BOOL", where=lambda value: value.shape == x.shape)
        if condition.shape != x.shape:
            condition = g.new("BOOL", smaller(g, x.shape))
        return g.op("SELECT_V2", [condition, x, y], (x.shape, x.type, x.q))
    y = g.input(x.shape, x.type, x.q)
    condition = g.new("BOOL", x.shape[:1] if g.chance(0.4) else x.shape)
    return g.op("SELECT", [condition, x, y], (x.shape, x.type, x.q))


def quantize(g: Graph) -> object:
    """QUANTIZE of floats, and of integers to another scale or type."""
    x = g.pick("FLOAT32", *QUANTIZED, exact=True)
    type_ = g.rng.choice(QUANTIZED)
    q = g.scale(type_, -7, -4) if x.q is None else g.near(x.q.scale, type_)
    return g.op("QUANTIZE", [x], (x.shape, type_, q))


def dequantize(g: Graph) -> object:
    """DEQUANTIZE, which rounds once."""
    x = g.pick(*QUANTIZED)
    return g.op("DEQUANTIZE", [x], (x.shape, "FLOAT32", None), exact=True)


def cast(g: Graph) -> object:
    """CAST between plain types."""
    x = g.pick("FLOAT32", "INT32", "INT64", "BOOL", exact=True)
    type_ = g.rng.choice(["FLOAT32", "INT32", "INT64", "BOOL"])
    return g.op("CAST", [x], (x.shape, type_, None))


RECIPES: tuple[Callable[[Graph], object], ...] = (
    of_floats, of_floats, of_integers, of_integers, of_integers, root, prelu, arithmetic,
    arithmetic, arithmetic, two_operands, two_operands, comparison, logical, select, quantize,
    quantize, dequantize, cast,
)  # fmt: skip
