"""
Attention in which several heads of queries share the keys and values of one.

Values on the way are q [batch, heads, queries, size], k and v [batch, shared heads, keys, size].
"""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, defines, number
from lowerdeck.frontends.onnx.contrib.rotary import ANGLES, turned

_LEAST = -3.4028234e38
"""The score of a key that a query does not see; each sees one at least."""

_REFUSED = {
    "sliding_window_cache": (0, "past keys of a window only, expected those of all steps"),
    "qk_output": (0, "scores as an output, expected those of attention alone"),
}


@defines(
    """GroupQueryAttention <
      causal: int = 1, do_rotary: int = 0, k_quant_type: string = "NONE",
      kv_cache_bit_width: int = 0, kv_num_heads, local_window_size: int = -1, num_heads,
      qk_norm_epsilon: float = 1.0e-06, qk_output: int = 0, rotary_interleaved: int = 0,
      scale: float = 0.0, sliding_window_cache: int = 0, smooth_softmax: int = 0,
      softcap: float = 0.0, v_quant_type: string = "NONE"
    > (
      query, key, value, past_key, past_value, seqlens, total, cos_cache, sin_cache, position_ids,
      attention_bias, head_sink, k_scale, v_scale, q_norm, k_norm
    ) => (output, present_key, present_value)"""
)
def group_query_attention(call: Call) -> str:
    """
    The past is a buffer of keys that is full, or longer than what is in it. The first step of all,
    which has as many queries as there are keys, finds it empty; later ones find `seqlens` + 1 keys
    with their own. What is behind the last key is 0 in the present.
    """
    _require(call)
    heads, shared = call.int("num_heads"), call.int("kv_num_heads")
    parts = [_rows(call, heads, shared), _START if call.has("past_key") else _NO_START]
    q, new_k = "q_heads", "k_heads"
    if call.has("q_norm"):
        epsilon = number(call.float("qk_norm_epsilon"))
        for name in "qk":
            parts.append(
                f"""
                {name}_norm_rows = SimplifiedLayerNormalization <epsilon = {epsilon}> (
                  {name}_heads, {name}_norm
                )"""
            )
        q, new_k = "q_norm_rows", "k_norm_rows"
    if call.int("do_rotary"):
        interleaved = bool(call.int("rotary_interleaved"))
        parts.append(_GIVEN_POSITIONS if call.has("position_ids") else _POSITIONS)
        parts.append(ANGLES)
        parts.append(turned("q_turned", q, interleaved=interleaved))
        parts.append(turned("k_turned", new_k, interleaved=interleaved))
        q, new_k = "q_turned", "k_turned"
    parts.append(f"q = Identity ({q})")
    if call.has("past_key"):
        parts.append(_PRESENT_PLACES)
        parts.append(_present("k", "past_key", new_k))
        parts.append(_present("v", "past_value", "v_heads"))
    else:
        parts.append(f"k = Identity ({new_k})\n v = Identity (v_heads)")
    parts.append(_scores(call, heads, shared))
    parts.append(_seen(call))
    parts.append(_output(call, heads, shared))
    for name, source in (("present_key", "k"), ("present_value", "v")):
        if call.wants(name):
            parts.append(f"{name} = Identity ({source})")
    return "\n".join(parts)


def _require(call: Call) -> None:
    """ValueError for what has no meaning here."""
    heads, shared = call.int("num_heads"), call.int("kv_num_heads")
    if heads < 1 or shared < 1 or heads % shared:
        raise ValueError(f"found {heads} heads that share {shared}, expected a multiple of them")
    for name, (expected, found) in _REFUSED.items():
        if call.int(name) != expected:
            raise ValueError(f"found {name} = {call.int(name)}: {found}")
    for name in ("k_quant_type", "v_quant_type"):
        call.string(name, "NONE")
    if call.has("key") != call.has("value"):
        raise ValueError("found a key or a value, expected both or neither")
    if call.has("past_key") != call.has("past_value"):
        raise ValueError("found past keys or past values, expected both or neither")
    if call.has("q_norm") != call.has("k_norm"):
        raise ValueError("found weights of one norm, expected those of queries and of keys")
    if call.int("do_rotary") and not (call.has("cos_cache") and call.has("sin_cache")):
        raise ValueError("found do_rotary = 1 without cos_cache and sin_cache")
    if not call.int("causal") and call.int("local_window_size") > 0:
        raise ValueError("found a window of keys, expected causal = 1")


def _rows(call: Call, heads: int, shared: int) -> str:
    """q_heads, k_heads and v_heads, which one input may have side by side."""
    if call.has("key"):
        counts = {"query": ("q", heads), "key": ("k", shared), "value": ("v", shared)}
        text = "\n".join(
            f"""
            {name}_row_sizes = Constant <value_ints = [0, 0, {count}, -1]> ()
            {name}_rows = Reshape ({source}, {name}_row_sizes)"""
            for source, (name, count) in counts.items()
        )
    else:
        text = f"""
          all_sizes = Constant <value_ints = [0, 0, {heads + 2 * shared}, -1]> ()
          all_rows = Reshape (query, all_sizes)
          counts = Constant <value_ints = [{heads}, {shared}, {shared}]> ()
          q_rows, k_rows, v_rows = Split <axis = 2> (all_rows, counts)"""
    return text + "".join(
        f"\n{name}_heads = Transpose <perm = [0, 2, 1, 3]> ({name}_rows)" for name in "qkv"
    )


# start: how many keys come before those of this step, in each sequence [batch].

_COUNTS = """
first = Constant <value_ints = [0]> ()
along = Constant <value_ints = [1]> ()
from = Constant <value_int = 0> ()
by = Constant <value_int = 1> ()
batch = Shape <start = 0, end = 1> (query)
queries = Shape <start = 1, end = 2> (query)
query_count = Squeeze (queries)
steps = Range (from, query_count, by)
lengths_32 = Reshape (seqlens, batch)
before_last = Cast <to = 7> (lengths_32)
lengths = Add (before_last, by)
"""

_NO_START = f"""
{_COUNTS}
is_first = Equal (from, from)
start = Expand (from, batch)
"""

_START = f"""
{_COUNTS}
one_size = Constant <value_ints = [1]> ()
total_row = Reshape (total, one_size)
all_keys = Cast <to = 7> (total_row)
is_first = Equal (queries, all_keys)
later = Sub (lengths, queries)
start = Where (is_first, first, later)
"""

_POSITIONS = """
start_column = Unsqueeze (start, along)
positions = Add (start_column, steps)
"""

# The first step reads only where it begins.
_GIVEN_POSITIONS = """
one_place = Constant <value_ints = [1]> ()
flat = Constant <value_ints = [-1]> ()
all_ids = Reshape (position_ids, flat)
first_id = Slice (all_ids, first, one_place)
counted = Add (first_id, steps)
positions = Where (is_first, counted, position_ids)
"""

_PRESENT_PLACES = """
capacity = Shape <start = 2, end = 3> (past_key)
present_size = Max (capacity, all_keys)
missing = Sub (present_size, capacity)
zeros_before = Constant <value_ints = [0, 0, 0, 0, 0, 0]> ()
pads = Concat <axis = 0> (zeros_before, missing, first)
ends = Add (start, queries)
end_axes = Constant <value_ints = [1, 2, 3]> ()
end_column = Unsqueeze (ends, end_axes)
present_count = Squeeze (present_size)
present_rows = Range (from, present_count, by)
present_column = Unsqueeze (present_rows, along)
is_present = Less (present_column, end_column)
"""


def _present(name: str, past: str, new: str) -> str:
    """The past, longer if need be, with what is new behind what was there."""
    return f"""
      {name}_buffer = Pad ({past}, pads)
      {name}_written = TensorScatter <axis = -2> ({name}_buffer, {new}, start)
      {name}_none_32 = Constant <value_float = 0.0> ()
      {name}_none = CastLike ({name}_none_32, {past})
      {name} = Where (is_present, {name}_written, {name}_none)"""


def _scores(call: Call, heads: int, shared: int) -> str:
    """scores [batch, heads, queries, keys], without those that are not seen."""
    parts = [
        f"""
        size = Shape <start = 3, end = 4> (q)
        shared_front = Constant <value_ints = [0, {shared}, -1]> ()
        shared_sizes = Concat <axis = 0> (shared_front, size)
        grouped = Reshape (q, shared_sizes)
        turned_k = Transpose <perm = [0, 1, 3, 2]> (k)
        products = MatMul (grouped, turned_k)
        keys = Shape <start = 2, end = 3> (k)
        head_front = Constant <value_ints = [0, {heads}]> ()
        head_sizes = Concat <axis = 0> (head_front, queries, keys)
        head_products = Reshape (products, head_sizes)"""
    ]
    if call.float("scale"):
        parts.append(f"factor = Constant <value_float = {number(call.float('scale'))}> ()")
    else:
        parts.append(
            """
            size_32 = Cast <to = 1> (size)
            root = Sqrt (size_32)
            factor = Reciprocal (root)"""
        )
    parts.append("scale = CastLike (factor, q)\n scaled = Mul (head_products, scale)")
    total = "scaled"
    if call.float("softcap") > 0:
        parts.append(
            f"""
            cap_32 = Constant <value_float = {number(call.float("softcap"))}> ()
            cap = CastLike (cap_32, q)
            part_of_cap = Div (scaled, cap)
            bent = Tanh (part_of_cap)
            capped = Mul (bent, cap)"""
        )
        total = "capped"
    if call.has("attention_bias"):
        parts.append(
            f"""
            bias_keys = Shape <start = 3, end = 4> (attention_bias)
            bias_missing = Sub (keys, bias_keys)
            bias_zeros = Constant <value_ints = [0, 0, 0, 0, 0, 0, 0]> ()
            bias_pads = Concat <axis = 0> (bias_zeros, bias_missing)
            padded_bias = Pad (attention_bias, bias_pads)
            biased = Add ({total}, padded_bias)"""
        )
        total = "biased"
    return "\n".join([*parts, f"scores = Identity ({total})"])


def _seen(call: Call) -> str:
    """seen: the scores, and the least number for keys that a query does not see."""
    parts = [
        f"""
        key_count = Squeeze (keys)
        places = Range (from, key_count, by)
        row_axes = Constant <value_ints = [1, 2, 3]> ()
        least_32 = Constant <value_float = {number(_LEAST)}> ()
        least = CastLike (least_32, q)"""
    ]
    if call.int("causal"):
        parts.append(
            """
            first_row = Unsqueeze (start, row_axes)
            step_column = Unsqueeze (steps, along)
            any_row = Add (first_row, step_column)
            last_row = Unsqueeze (before_last, row_axes)
            row = Min (any_row, last_row)
            is_seen = LessOrEqual (places, row)"""
        )
        seen = "is_seen"
        if (window := call.int("local_window_size")) > 0:
            parts.append(
                f"""
                window = Constant <value_int = {window}> ()
                hidden = Sub (row, window)
                is_near = Greater (places, hidden)
                is_in_window = And (is_seen, is_near)"""
            )
            seen = "is_in_window"
    else:
        parts.append("length = Unsqueeze (lengths, row_axes)\n is_there = Less (places, length)")
        seen = "is_there"
    return "\n".join([*parts, f"seen = Where ({seen}, scores, least)"])


def _output(call: Call, heads: int, shared: int) -> str:
    """output, by the softmax of what is seen; with a sink this is a key without a value."""
    if call.has("head_sink") or call.int("smooth_softmax"):
        sink = (
            f"""
            sink_sizes = Constant <value_ints = [1, {heads}, 1, 1]> ()
            sink = Reshape (head_sink, sink_sizes)"""
            if call.has("head_sink")
            else "sink_32 = Constant <value_float = 0.0> ()\n sink = CastLike (sink_32, q)"
        )
        softmax = f"""
          {sink}
          one = Constant <value_ints = [1]> ()
          head_count = Constant <value_ints = [{heads}]> ()
          column_sizes = Concat <axis = 0> (batch, head_count, queries, one)
          sink_column = Expand (sink, column_sizes)
          with_sink = Concat <axis = -1> (seen, sink_column)
          with_sink_weights = Softmax <axis = -1> (with_sink)
          last = Constant <value_ints = [-1]> ()
          weights = Slice (with_sink_weights, first, keys, last)"""
    else:
        softmax = "weights = Softmax <axis = -1> (seen)"
    return f"""
      {softmax}
      weight_front = Constant <value_ints = [0, {shared}, -1]> ()
      weight_sizes = Concat <axis = 0> (weight_front, keys)
      grouped_weights = Reshape (weights, weight_sizes)
      found = MatMul (grouped_weights, v)
      found_sizes = Concat <axis = 0> (head_front, queries, size)
      found_heads = Reshape (found, found_sizes)
      found_rows = Transpose <perm = [0, 2, 1, 3]> (found_heads)
      output_sizes = Constant <value_ints = [0, 0, -1]> ()
      output = Reshape (found_rows, output_sizes)"""
