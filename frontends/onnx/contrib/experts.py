"""Mixtures of experts: small networks, of which a router chooses some for each token."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, defines, number

_FUNCTIONS = {
    "relu": "Relu ({x})",
    "gelu": 'Gelu <approximate = "tanh"> ({x})',
    "silu": "Swish ({x})",
    "identity": "Identity ({x})",
}


@defines(
    """MoE <
      activation_alpha: float = 1.0, activation_beta: float = 0.0,
      activation_type: string = "relu", k: int = 1, normalize_routing_weights: int = 0,
      swiglu_fusion: int = 0, swiglu_limit: float = 0.0, use_sparse_mixer: int = 0
    > (
      input, router_probs, fc1_weights, fc1_bias, fc2_weights, fc2_bias, fc3_weights, fc3_bias
    ) => (output)"""
)
def moe(call: Call) -> str:
    """
    All experts compute all tokens, and those that are not chosen do not count: the time is that of
    all experts, whatever k is.
    """
    k = call.int("k")
    if call.int("use_sparse_mixer") or k < 1:
        raise ValueError("found a sparse mixer or no experts, expected the best k of them")
    return "\n".join(
        [
            _shares(k, normalized=bool(call.int("normalize_routing_weights"))),
            _hidden(call),
            _layer(call, "fc2", "hidden", "results"),
            """
            share_columns = Transpose <perm = [1, 0]> (shares)
            share = Unsqueeze (share_columns, last)
            counts = Greater (share, none)
            weighted = Mul (results, share)
            kept = Where (counts, weighted, none)
            total = ReduceSum <keepdims = 0> (kept, first)
            sizes = Shape (input)
            output_32 = Reshape (total, sizes)
            output = CastLike (output_32, input)""",
        ]
    )


def _shares(k: int, *, normalized: bool) -> str:
    """shares [tokens, experts]: 0 for experts that are not chosen; tokens [1, tokens, size]."""
    divided = "best_sum = ReduceSum (best, last)\n best_shares = Div (best, best_sum)"
    return f"""
      first = Constant <value_ints = [0]> ()
      last = Constant <value_ints = [-1]> ()
      none = Constant <value_float = 0.0> ()
      scores = Cast <to = 1> (router_probs)
      parts = Softmax <axis = -1> (scores)
      k = Constant <value_ints = [{k}]> ()
      best, places = TopK <axis = -1> (parts, k)
      {divided if normalized else "best_shares = Identity (best)"}
      nothing = Mul (parts, none)
      shares = ScatterElements <axis = 1> (nothing, places, best_shares)
      whole = Cast <to = 1> (input)
      size = Shape <start = -1> (input)
      row_front = Constant <value_ints = [1, -1]> ()
      row_sizes = Concat <axis = 0> (row_front, size)
      tokens = Reshape (whole, row_sizes)"""


def _layer(call: Call, name: str, x: str, y: str) -> str:
    """y [experts, tokens, outputs] of weights [experts, outputs, inputs]."""
    parts = [
        f"""
        {name}_32 = Cast <to = 1> ({name}_weights)
        {name}_columns = Transpose <perm = [0, 2, 1]> ({name}_32)
        {name}_product = MatMul ({x}, {name}_columns)"""
    ]
    if call.has(f"{name}_bias"):
        parts.append(
            f"""
            {name}_bias_32 = Cast <to = 1> ({name}_bias)
            {name}_axis = Constant <value_ints = [1]> ()
            {name}_row = Unsqueeze ({name}_bias_32, {name}_axis)
            {y} = Add ({name}_product, {name}_row)"""
        )
    else:
        parts.append(f"{y} = Identity ({name}_product)")
    return "\n".join(parts)


def _hidden(call: Call) -> str:
    """hidden: the activation function of the first layer, with a gate or without."""
    kind, fusion = call.string("activation_type", *_FUNCTIONS, "swiglu"), call.int("swiglu_fusion")
    if fusion not in (0, 1, 2) or (kind != "swiglu" and fusion):
        raise ValueError(f"found swiglu_fusion = {fusion} with the activation '{kind}'")
    parts = [_layer(call, "fc1", "tokens", "fc1")]
    if kind != "swiglu":
        if call.has("fc3_weights"):
            raise ValueError(f"found fc3 with the activation '{kind}', expected swiglu")
        return "\n".join([*parts, f"hidden = {_FUNCTIONS[kind].format(x='fc1')}"])
    if fusion == 0:
        if not call.has("fc3_weights"):
            raise ValueError("found swiglu without fc3, expected swiglu_fusion = 1 or 2")
        parts.append(_layer(call, "fc3", "tokens", "linear"))
        parts.append("gate = Identity (fc1)")
    elif call.has("fc3_weights"):
        raise ValueError("found fc3 with swiglu_fusion, expected both parts in fc1")
    elif fusion == 1:
        parts.append(
            """
            pair_sizes = Constant <value_ints = [0, 0, -1, 2]> ()
            pairs = Reshape (fc1, pair_sizes)
            gate_part, linear_part = Split <axis = 3, num_outputs = 2> (pairs)
            gate = Squeeze (gate_part, last)
            linear = Squeeze (linear_part, last)"""
        )
    else:
        parts.append("gate, linear = Split <axis = 2, num_outputs = 2> (fc1)")
    gate, linear = "gate", "linear"
    if call.gives("swiglu_limit"):
        limit = call.float("swiglu_limit")
        parts.append(
            f"""
            most = Constant <value_float = {number(limit)}> ()
            least = Constant <value_float = {number(-limit)}> ()
            low_gate = Min (gate, most)
            near_linear = Clip (linear, least, most)"""
        )
        gate, linear = "low_gate", "near_linear"
    parts.append(
        f"""
        beta = Constant <value_float = {number(call.float("activation_beta"))}> ()
        swish = Swish <alpha = {number(call.float("activation_alpha"))}> ({gate})
        moved = Add ({linear}, beta)
        hidden = Mul (swish, moved)"""
    )
    return "\n".join(parts)
