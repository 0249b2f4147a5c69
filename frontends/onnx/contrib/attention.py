"""
Attention of several heads.

Values on the way are q [batch, heads, queries, size], k and v [batch, heads, keys, size].
"""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, defines, number, scales

_LEAST = -3.4028234e38
"""What is added for a key that comes after the query."""

_PROJECTED = """
sizes = Constant <value_ints = [0, 0, {heads}, -1]> ()
q_rows = Reshape (q_all, sizes)
k_rows = Reshape (k_all, sizes)
v_rows = Reshape (v_all, sizes)
q = Transpose <perm = [0, 2, 1, 3]> (q_rows)
new_k = Transpose <perm = [0, 2, 1, 3]> (k_rows)
new_v = Transpose <perm = [0, 2, 1, 3]> (v_rows)
"""

_PAST = """
index_k = Constant <value_int = 0> ()
index_v = Constant <value_int = 1> ()
past_k = Gather <axis = 0> (past, index_k)
past_v = Gather <axis = 0> (past, index_v)
"""

_PRESENT = """
at_front = Constant <value_ints = [0]> ()
k_part = Unsqueeze (k, at_front)
v_part = Unsqueeze (v, at_front)
present = Concat <axis = 0> (k_part, v_part)
"""


def _heads(call: Call) -> int:
    if (heads := call.int("num_heads")) < 1:
        raise ValueError(f"found {heads} heads, expected 1 at least")
    return heads


def _with_past(has_past: bool) -> str:
    """Keys and values after those of steps before."""
    if not has_past:
        return "k = Identity (new_k)\n v = Identity (new_v)"
    return """
      k = Concat <axis = 2> (past_k, new_k)
      v = Concat <axis = 2> (past_v, new_v)"""


def _mask(mask: str) -> str:
    """
    masked: 0 for keys that count, else a number to add. A vector has the ends of sequences, maybe
    followed by their starts; a matrix has 1 or 0 for all keys, or for all queries and keys.
    """
    return f"""
      mask_sizes = Shape ({mask})
      mask_rank = Size (mask_sizes)
      is_vector = Equal (mask_rank, by)
      is_kept = If (is_vector) <
        then_branch = from_ends () => (from_vector) {{
          batch = Shape <start = 0, end = 1> (q)
          ends = Slice ({mask}, first, batch)
          zeros = ConstantOfShape <value = int32[1] {{0}}> (batch)
          padded = Concat <axis = 0> ({mask}, zeros)
          twice = Add (batch, batch)
          starts = Slice (padded, batch, twice)
          place = Cast <to = 6> (places)
          end_column = Unsqueeze (ends, along)
          start_column = Unsqueeze (starts, along)
          is_before = Less (place, end_column)
          is_after = GreaterOrEqual (place, start_column)
          is_inside = And (is_before, is_after)
          middle = Constant <value_ints = [1, 2]> ()
          from_vector = Unsqueeze (is_inside, middle)
        }},
        else_branch = from_bits () => (from_matrix) {{
          head = Constant <value_ints = [0, 1, -1]> ()
          bit_sizes = Concat <axis = 0> (head, keys)
          bits = Reshape ({mask}, bit_sizes)
          none = Constant <value = int32 {{0}}> ()
          from_matrix = Greater (bits, none)
        }}
      >
      masked = Where (is_kept, nothing, filtered)"""


def _attended(call: Call, mask: str, past: str | None) -> str:
    """output, of q, k and v."""
    filtered = call.float("mask_filter_value") if call.gives("mask_filter_value") else -10000.0
    parts = [
        f"""
        first = Constant <value_ints = [0]> ()
        along = Constant <value_ints = [1]> ()
        from = Constant <value_int = 0> ()
        by = Constant <value_int = 1> ()
        nothing_32 = Constant <value_float = 0.0> ()
        nothing = CastLike (nothing_32, q)
        filtered_32 = Constant <value_float = {number(filtered)}> ()
        filtered = CastLike (filtered_32, q)
        keys = Shape <start = 2, end = 3> (k)
        key_count = Squeeze (keys)
        places = Range (from, key_count, by)
        turned = Transpose <perm = [0, 1, 3, 2]> (k)
        products = MatMul (q, turned)"""
    ]
    if call.float("scale"):
        parts.append(f"factor = Constant <value_float = {number(call.float('scale'))}> ()")
    else:
        parts.append(
            """
            size = Shape <start = 3, end = 4> (q)
            size_32 = Cast <to = 1> (size)
            root = Sqrt (size_32)
            factor = Reciprocal (root)"""
        )
    parts.append("scale = CastLike (factor, q)\n scores = Mul (products, scale)")
    total, added = "scores", "nothing"
    if call.has(mask):
        parts.append(_mask(mask))
        added = "masked"
    if call.int("unidirectional"):
        before = "first" if past is None else "past_keys"
        if past is not None:
            parts.append(f"past_keys = Shape <start = 2, end = 3> ({past})")
        parts.append(
            f"""
            queries = Shape <start = 2, end = 3> (q)
            query_count = Squeeze (queries)
            steps = Range (from, query_count, by)
            rows = Add (steps, {before})
            row_column = Unsqueeze (rows, along)
            is_past = LessOrEqual (places, row_column)
            least_32 = Constant <value_float = {number(_LEAST)}> ()
            least = CastLike (least_32, q)
            causal = Where (is_past, {added}, least)"""
        )
        added = "causal"
    for name in (added, "attention_bias"):
        if name != "nothing" and (name == added or call.has(name)):
            parts.append(f"{total}_{name} = Add ({total}, {name})")
            total = f"{total}_{name}"
    parts.append(
        f"""
        weights_of_keys = Softmax <axis = -1> ({total})
        found = MatMul (weights_of_keys, v)
        found_rows = Transpose <perm = [0, 2, 1, 3]> (found)
        row_sizes = Constant <value_ints = [0, 0, -1]> ()
        output = Reshape (found_rows, row_sizes)"""
    )
    return "\n".join(parts)


@defines(
    """Attention <
      do_rotary: int = 0, mask_filter_value: float = 0.0, num_heads,
      past_present_share_buffer: int = 0, qkv_hidden_sizes: ints = [],
      rotary_embedding_dim: int = 0, scale: float = 0.0, unidirectional: int = 0
    > (input, weights, bias, mask_index, past, attention_bias) => (output, present)"""
)
def attention(call: Call) -> str:
    """Queries, keys and values are three products with the input."""
    parts = ["projected = MatMul (input, weights)"]
    rows = "projected"
    if call.has("bias"):
        parts.append("biased = Add (projected, bias)")
        rows = "biased"
    return "\n".join([*parts, _of_one_input(call, rows)])


def _of_one_input(call: Call, rows: str) -> str:
    """output and present, of queries, keys and values side by side."""
    for name in ("do_rotary", "past_present_share_buffer"):
        if call.int(name):
            raise ValueError(f"found {name} = 1, expected 0")
    heads = _heads(call)
    sizes = call.ints("qkv_hidden_sizes") if call.gives("qkv_hidden_sizes") else []
    if sizes:
        parts = [
            f"parts = Constant <value_ints = [{', '.join(map(str, sizes))}]> ()",
            f"q_all, k_all, v_all = Split <axis = 2> ({rows}, parts)",
        ]
    else:
        parts = [f"q_all, k_all, v_all = Split <axis = 2, num_outputs = 3> ({rows})"]
    has_past = call.has("past")
    parts.append(_PROJECTED.format(heads=heads))
    parts.append(_PAST if has_past else "")
    parts.append(_with_past(has_past))
    parts.append(_attended(call, "mask_index", "past_k" if has_past else None))
    parts.append(_PRESENT if call.wants("present") else "")
    return "\n".join(parts)


@defines(
    """QAttention <
      do_rotary: int = 0, mask_filter_value: float = 0.0, num_heads,
      past_present_share_buffer: int = 0, scale: float = 0.0, unidirectional: int = 0
    > (
      input, weights, bias, input_scale, weight_scale, mask_index, input_zero, weight_zero, past
    ) => (output, present)"""
)
def quantized_attention(call: Call) -> str:
    """Attention of a quantized input and quantized weights."""
    return f"""
      sums = MatMulInteger (input, weights, input_zero, weight_zero)
      whole = Cast <to = 1> (sums)
      {scales("input_scale", "weight_scale")}
      factors = Mul (input_scale_number, weight_scale_number)
      projected = Mul (whole, factors)
      biased = Add (projected, bias)
      {_of_one_input(call, "biased")}"""


@defines(
    """MultiHeadAttention <
      mask_filter_value: float = 0.0, num_heads, scale: float = 0.0, unidirectional: int = 0
    > (
      query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value
    ) => (output, present_key, present_value)"""
)
def multi_head_attention(call: Call) -> str:
    """Keys and values of four dimensions have their heads apart already."""
    if not (call.has("key") and call.has("value")):
        raise ValueError("found no key or value, expected queries, keys and values apart")
    parts = [
        f"""
        head_sizes = Constant <value_ints = [0, 0, {_heads(call)}, -1]> ()
        three = Constant <value_int = 3> ()
        at_start = Constant <value_ints = [0]> ()
        width = Shape <start = 2, end = 3> (query)
        double = Add (width, width)"""
    ]
    rows = {"q": "query", "k": "key", "v": "value"}
    if call.has("bias"):
        parts.append(
            """
            all = Shape (bias)
            q_bias = Slice (bias, at_start, width)
            k_bias = Slice (bias, width, double)
            v_bias = Slice (bias, double, all)"""
        )
        for name, source in rows.items():
            parts.append(f"{name}_biased = Add ({source}, {name}_bias)")
            rows[name] = f"{name}_biased"
    for name, source in rows.items():
        result = name if name == "q" else f"new_{name}"
        parts.append(
            f"""
            {name}_sizes = Shape ({source})
            {name}_rank = Size ({name}_sizes)
            {name}_is_joined = Equal ({name}_rank, three)
            {result} = If ({name}_is_joined) <
              then_branch = {name}_split () => ({name}_from_rows) {{
                {name}_rows = Reshape ({source}, head_sizes)
                {name}_from_rows = Transpose <perm = [0, 2, 1, 3]> ({name}_rows)
              }},
              else_branch = {name}_same () => ({name}_from_heads) {{
                {name}_from_heads = Identity ({source})
              }}
            >"""
        )
    has_past = call.has("past_key")
    if has_past:
        parts.append("past_k = Identity (past_key)\n past_v = Identity (past_value)")
    parts.append(_with_past(has_past))
    parts.append(_attended(call, "key_padding_mask", "past_k" if has_past else None))
    for name, source in (("present_key", "k"), ("present_value", "v")):
        if call.wants(name):
            parts.append(f"{name} = Identity ({source})")
    return "\n".join(parts)


@defines(
    """GatedRelativePositionBias <num_heads> (
      query_layer, query_bias, rel_pos, weight, bias, eco_a, token_offset
    ) => (output)"""
)
def gated_relative_position_bias(call: Call) -> str:
    """A bias of positions by a gate for each query of each head."""
    if call.has("token_offset"):
        raise ValueError("found tokens without padding, expected sequences of one length")
    return f"""
      query = Add (query_layer, query_bias)
      head_sizes = Constant <value_ints = [0, 0, {call.int("num_heads")}, -1]> ()
      rows = Reshape (query, head_sizes)
      heads = Transpose <perm = [0, 2, 1, 3]> (rows)
      product = MatMul (heads, weight)
      layer = Add (product, bias)
      half_sizes = Constant <value_ints = [0, 0, 0, 2, -1]> ()
      halves = Reshape (layer, half_sizes)
      last = Constant <value_ints = [-1]> ()
      sums = ReduceSum <keepdims = 0> (halves, last)
      gates = Sigmoid (sums)
      u, r = Split <axis = 3, num_outputs = 2> (gates)
      one_32 = Constant <value_float = 1.0> ()
      two_32 = Constant <value_float = 2.0> ()
      one = CastLike (one_32, query_layer)
      two = CastLike (two_32, query_layer)
      scaled = Mul (r, eco_a)
      less = Sub (scaled, one)
      product_of_gates = Mul (u, less)
      gate = Add (product_of_gates, two)
      output = Mul (gate, rel_pos)"""
