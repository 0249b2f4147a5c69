"""Operators that stand for a few others: what ONNX Runtime's optimizers write."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.activation import Activation, activated, activation
from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines, number

define("Gelu (X) => (Y) { Y = Gelu (X) }")
define("BiasGelu (A, B) => (C) { x = Add (A, B) \n C = Gelu (x) }")


@defines("FastGelu (X, bias) => (Y)")
def fast_gelu(call: Call) -> str:
    """By the hyperbolic tangent."""
    total = "Add (X, bias)" if call.has("bias") else "Identity (X)"
    return f"""x = {total}
      Y = Gelu <approximate = "tanh"> (x)"""


define(
    """
    QuickGelu <alpha: float = 1.702> (X) => (Y) {
      constant = Constant <value_float: float = @alpha> ()
      alpha = CastLike (constant, X)
      x = Mul (X, alpha)
      part = Sigmoid (x)
      Y = Mul (X, part)
    }
    """
)


# Products


def _product(call: Call, y: str) -> str:
    """
    y: alpha * A * B with either transposed; or the rows before all other dimensions, which then are
    those of products side by side.
    """
    left, right = ("ji" if call.int("transA") else "ij"), ("kj" if call.int("transB") else "jk")
    if (left, right) == ("ij", "jk") and not call.int("transBatchA") + call.int("transBatchB"):
        product = "MatMul (A, B)"
    else:
        terms = [
            f"{term[0]}...{term[1]}" if call.int(f"transBatch{name}") else f"...{term}"
            for term, name in ((left, "A"), (right, "B"))
        ]
        product = f'Einsum <equation = "{",".join(terms)}->...ik"> (A, B)'
    return f"""product = {product}
      constant = Constant <value_float = {number(call.float("alpha"))}> ()
      alpha = CastLike (constant, product)
      {y} = Mul (product, alpha)"""


@defines(
    """FusedMatMul <
      alpha: float = 1.0, transA: int = 0, transB: int = 0,
      transBatchA: int = 0, transBatchB: int = 0
    > (A, B) => (Y)"""
)
def fused_matmul(call: Call) -> str:
    """A product by a number, of matrices that may be transposed."""
    return _product(call, "Y")


@defines(
    """TransposeMatMul <
      alpha: float = 1.0, transA: int = 0, transB: int = 0,
      transBatchA: int = 0, transBatchB: int = 0
    > (A, B) => (Y)"""
)
def transpose_matmul(call: Call) -> str:
    """The older name of FusedMatMul."""
    return _product(call, "Y")


def _function(call: Call) -> Activation:
    """The activation function of a product."""
    sources = [
        iter([call.float(name)] if call.gives(name) else [])
        for name in ("activation_alpha", "activation_beta")
    ]
    return activation(call.string("activation"), *sources)


@defines(
    """FusedMatMulActivation <
      activation, activation_alpha: float = 0.0, activation_axis: int = -1,
      activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0,
      transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0
    > (A, B) => (Y)"""
)
def fused_matmul_activation(call: Call) -> str:
    """An activation function, which has no axis, of FusedMatMul's result."""
    return _product(call, "total") + "\n" + _function(call).nodes("Y", "total")


@defines(
    """FusedGemm <
      activation: string = "", activation_alpha: float = 0.0, activation_beta: float = 0.0,
      activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
      transB: int = 0
    > (A, B, C) => (Y)"""
)
def fused_gemm(call: Call) -> str:
    """An activation function of Gemm's result."""
    kinds = {"alpha": "float", "beta": "float", "transA": "int", "transB": "int"}
    attributes = ", ".join(f"{name}: {kind} = @{name}" for name, kind in kinds.items())
    return f"y = Gemm <{attributes}> (A, B, C)\n {_function(call).nodes('Y', 'y')}"


@defines(
    """FusedConv <
      activation: string = "", activation_params: floats = [], auto_pad: string = "NOTSET",
      dilations: ints = [], group: int = 1, kernel_shape: ints = [], pads: ints = [],
      strides: ints = []
    > (X, W, B, Z) => (Y)"""
)
def fused_conv(call: Call) -> str:
    """An activation function of Conv's result, to which Z has been added."""
    names = ("dilations", "kernel_shape", "pads", "strides")
    kinds = {"auto_pad": "string", "group": "int"} | {n: "ints" for n in names if call.gives(n)}
    attributes = ", ".join(f"{name}: {kind} = @{name}" for name, kind in kinds.items())
    total = "Add (x, Z)" if call.has("Z") else "Identity (x)"
    return f"x = Conv <{attributes}> (X, W, B)\n y = {total}\n {activated(call, 'Y', 'y')}"


# Normalization


def _sum(call: Call) -> str:
    """x: an input and what skips a layer, and a bias."""
    if not call.has("bias"):
        return "x = Add (input, skip)"
    return "both = Add (input, skip)\n x = Add (both, bias)"


def _outputs(call: Call) -> str:
    return "total = Identity (x)" if call.wants("total") else ""


@defines(
    """SkipLayerNormalization <epsilon: float = 1.0e-12> (
      input, skip, gamma, beta, bias
    ) => (output, mean, deviation, total)"""
)
def skip_layer_normalization(call: Call) -> str:
    """The layer normalization of a sum."""
    return f"""{_sum(call)}
      output, mean, deviation = LayerNormalization <axis = -1, epsilon: float = @epsilon> (
        x, gamma, beta
      )
      {_outputs(call)}"""


@defines(
    """SkipSimplifiedLayerNormalization <epsilon: float = 1.0e-12> (
      input, skip, gamma, bias
    ) => (output, mean, deviation, total)"""
)
def skip_simplified_layer_normalization(call: Call) -> str:
    """A sum by the root of its mean square."""
    if call.wants("mean") or call.wants("deviation"):
        raise ValueError("found statistics as outputs, expected the normalized sum")
    return f"""{_sum(call)}
      constant = Constant <value_float: float = @epsilon> ()
      epsilon = CastLike (constant, x)
      axes = Constant <value_ints = [-1]> ()
      squares = Mul (x, x)
      square = ReduceMean <keepdims = 1> (squares, axes)
      above = Add (square, epsilon)
      root = Sqrt (above)
      normal = Div (x, root)
      output = Mul (normal, gamma)
      {_outputs(call)}"""


@defines(
    """SimplifiedLayerNormalization <
      axis: int = -1, epsilon: float = 1.0e-05, stash_type: int = 1
    > (X, gamma) => (Y, deviation)""",
    domain="",
)
def simplified_layer_normalization(call: Call) -> str:
    """Rows by the roots of their mean squares, which are computed in f32."""
    if call.int("axis") != -1 or call.int("stash_type") != 1:
        raise ValueError("found another axis or precision, expected -1 and f32")
    return f"""
      x = Cast <to = 1> (X)
      epsilon = Constant <value_float = {number(call.float("epsilon"))}> ()
      axes = Constant <value_ints = [-1]> ()
      squares = Mul (x, x)
      square = ReduceMean <keepdims = 1> (squares, axes)
      above = Add (square, epsilon)
      root = Sqrt (above)
      normal = Div (x, root)
      rounded = CastLike (normal, X)
      Y = Mul (rounded, gamma)
      {"deviation = Reciprocal (root)" if call.wants("deviation") else ""}"""


@defines(
    """EmbedLayerNormalization <epsilon: float = 1.0e-12, mask_index_type: int = 0> (
      input_ids, segment_ids, words, positions, segments, gamma, beta, mask, position_ids
    ) => (output, mask_index, embedding_sum)"""
)
def embed_layer_normalization(call: Call) -> str:
    """
    The layer normalization of the sum of what tables have for words, positions and segments; and
    how many positions of each sequence the mask has.
    """
    parts = ["word = Gather <axis = 0> (words, input_ids)"]
    if not call.has("position_ids"):
        parts.append(
            """
            from = Constant <value_int = 0> ()
            by = Constant <value_int = 1> ()
            count = Shape <start = 1, end = 2> (input_ids)
            length = Squeeze (count)
            position_ids_ = Range (from, length, by)"""
        )
    index = "position_ids" if call.has("position_ids") else "position_ids_"
    parts.append(f"position = Gather <axis = 0> (positions, {index})")
    parts.append("x = Add (word, position)")
    total = "x"
    if call.has("segment_ids"):
        parts.append("segment = Gather <axis = 0> (segments, segment_ids)")
        parts.append("with_segment = Add (x, segment)")
        total = "with_segment"
    parts.append(
        f"output = LayerNormalization <axis = -1, epsilon: float = @epsilon> ({total}, gamma, beta)"
    )
    if call.wants("embedding_sum"):
        parts.append(f"embedding_sum = Identity ({total})")
    if call.wants("mask_index") and call.has("mask"):
        parts.append(
            "along = Constant <value_ints = [1]> ()\n"
            "mask_index = ReduceSum <keepdims = 0> (mask, along)"
        )
    elif call.wants("mask_index"):
        parts.append(
            "batch = Shape <start = 0, end = 1> (input_ids)\n"
            "mask_index = ConstantOfShape <value = int32[1] {0}> (batch)"
        )
    return "\n".join(parts)


@defines(
    """QEmbedLayerNormalization <epsilon: float = 1.0e-12> (
      input_ids, segment_ids, q_words, q_positions, q_segments, q_gamma, q_beta, mask,
      words_scale, positions_scale, segments_scale, gamma_scale, beta_scale,
      words_zero, positions_zero, segments_zero, gamma_zero, beta_zero
    ) => (output, mask_index)"""
)
def quantized_embed_layer_normalization(call: Call) -> str:
    """EmbedLayerNormalization of quantized tables and weights."""
    names = ("words", "positions", "segments", "gamma", "beta")
    parts = [
        f"{name} = DequantizeLinear (q_{name}, {name}_scale, {name}_zero)"
        for name in names
        if call.has(f"q_{name}")
    ]
    return "\n".join([*parts, embed_layer_normalization(call)])
