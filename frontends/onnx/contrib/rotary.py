"""Pairs of features that are turned by angles, which belong to positions."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, defines

_FAR = (1 << 31) - 1
"""Behind the last of any dimension."""


def turned(y: str, x: str, *, interleaved: bool, size: int | None = None) -> str:
    """
    The nodes that make y of x [batch, heads, steps, size]: with angles of `cos` and `sin`
    [batch, 1, steps, half], whose pairs are neighbors, or else in the two halves of the features.

    Of the features only `size` are turned, 0 for all; None for as many as the angles are for.
    """
    parts = [
        f"""
        {y}_first = Constant <value_ints = [0]> ()
        {y}_second = Constant <value_ints = [1]> ()
        {y}_last = Constant <value_ints = [-1]> ()
        {y}_far = Constant <value_ints = [{_FAR}]> ()"""
    ]
    if size is None:
        parts.append(
            f"""
            {y}_half = Shape <start = 3, end = 4> (cos)
            {y}_end = Add ({y}_half, {y}_half)"""
        )
    elif size:
        parts.append(f"{y}_end = Constant <value_ints = [{size}]> ()")
    if size == 0:
        parts.append(f"{y}_part = Identity ({x})")
    else:
        parts.append(
            f"""
            {y}_part = Slice ({x}, {y}_first, {y}_end, {y}_last)
            {y}_rest = Slice ({x}, {y}_end, {y}_far, {y}_last)"""
        )
    if interleaved:
        parts.append(
            f"""
            {y}_two = Constant <value_ints = [2]> ()
            {y}_a = Slice ({y}_part, {y}_first, {y}_far, {y}_last, {y}_two)
            {y}_b = Slice ({y}_part, {y}_second, {y}_far, {y}_last, {y}_two)"""
        )
    else:
        parts.append(f"{y}_a, {y}_b = Split <axis = -1, num_outputs = 2> ({y}_part)")
    parts.append(
        f"""
        {y}_a_cos = Mul ({y}_a, cos)
        {y}_b_sin = Mul ({y}_b, sin)
        {y}_b_cos = Mul ({y}_b, cos)
        {y}_a_sin = Mul ({y}_a, sin)
        {y}_c = Sub ({y}_a_cos, {y}_b_sin)
        {y}_d = Add ({y}_b_cos, {y}_a_sin)"""
    )
    if interleaved:
        parts.append(
            f"""
            {y}_c_column = Unsqueeze ({y}_c, {y}_last)
            {y}_d_column = Unsqueeze ({y}_d, {y}_last)
            {y}_pairs = Concat <axis = -1> ({y}_c_column, {y}_d_column)
            {y}_sizes = Shape ({y}_part)
            {y}_turned = Reshape ({y}_pairs, {y}_sizes)"""
        )
    else:
        parts.append(f"{y}_turned = Concat <axis = -1> ({y}_c, {y}_d)")
    whole = f"Identity ({y}_turned)" if size == 0 else f"Concat <axis = -1> ({y}_turned, {y}_rest)"
    return "\n".join([*parts, f"{y} = {whole}"])


ANGLES = """
cos_rows = Gather <axis = 0> (cos_cache, positions)
sin_rows = Gather <axis = 0> (sin_cache, positions)
heads_axis = Constant <value_ints = [1]> ()
cos = Unsqueeze (cos_rows, heads_axis)
sin = Unsqueeze (sin_rows, heads_axis)
"""
"""cos and sin, of `positions` [batch, steps] and the caches [positions, half]."""


@defines(
    """RotaryEmbedding <
      interleaved: int = 0, is_packed_batching: int = 0, num_heads: int = 0,
      rotary_embedding_dim: int = 0, scale: float = 1.0
    > (input, position_ids, cos_cache, sin_cache) => (output)"""
)
def rotary_embedding(call: Call) -> str:
    """
    One number in `position_ids` is the first of the positions. Heads are apart if the input has
    four dimensions. With `is_packed_batching` there may be more steps than angles, no more.
    """
    if call.float("scale") != 1:
        raise ValueError("found a scale, which ONNX Runtime does not read; expected none")
    heads, size = call.int("num_heads"), call.int("rotary_embedding_dim")
    if size and heads < 1:
        raise ValueError(f"found {size} of the features of a head, expected num_heads, too")
    # Without their number heads are as large as the caches are for.
    head_sizes = (
        f"head_sizes = Constant <value_ints = [0, 0, {heads}, -1]> ()"
        if heads
        else """
          half = Shape <start = 1, end = 2> (cos_cache)
          whole = Add (half, half)
          any_heads = Constant <value_ints = [0, 0, -1]> ()
          head_sizes = Concat <axis = 0> (any_heads, whole)"""
    )
    return f"""
      {head_sizes}
      first = Constant <value_ints = [0]> ()
      from = Constant <value_int = 0> ()
      by = Constant <value_int = 1> ()
      three = Constant <value_int = 3> ()
      sizes = Shape (input)
      rank = Size (sizes)
      is_joined = Equal (rank, three)
      x = If (is_joined) <
        then_branch = split () => (from_rows) {{
          rows = Reshape (input, head_sizes)
          from_rows = Transpose <perm = [0, 2, 1, 3]> (rows)
        }},
        else_branch = same () => (from_heads) {{ from_heads = Identity (input) }}
      >
      position_sizes = Shape (position_ids)
      position_rank = Size (position_sizes)
      is_start = Equal (position_rank, by)
      positions = If (is_start) <
        then_branch = counted () => (from_start) {{
          steps = Shape <start = 2, end = 3> (x)
          step_count = Squeeze (steps)
          places = Range (from, step_count, by)
          counted_places = Add (places, position_ids)
          from_start = Unsqueeze (counted_places, first)
        }},
        else_branch = given () => (from_ids) {{ from_ids = Identity (position_ids) }}
      >
      {ANGLES}
      {turned("y", "x", interleaved=bool(call.int("interleaved")), size=size)}
      output = If (is_joined) <
        then_branch = join () => (to_rows) {{
          y_rows = Transpose <perm = [0, 2, 1, 3]> (y)
          to_rows = Reshape (y_rows, sizes)
        }},
        else_branch = keep () => (to_heads) {{ to_heads = Identity (y) }}
      >"""
