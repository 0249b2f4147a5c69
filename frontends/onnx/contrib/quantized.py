"""
Arithmetic on quantized tensors: that on the numbers they stand for, quantized again; and products
with quantized weights.
"""

from __future__ import annotations

import math

from onnx import TensorProto

from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines, number, scales

define(
    """
    QLinearAdd (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Add (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }
    """
)

define(
    """
    QLinearMul (A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Mul (a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }
    """
)

define(
    """
    QLinearSigmoid (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = Sigmoid (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }
    """
)

define(
    """
    QLinearLeakyRelu <alpha: float = 0.01> (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      y = LeakyRelu <alpha: float = @alpha> (x)
      Y = QuantizeLinear (y, y_scale, y_zero)
    }
    """
)

# Before opset 13 softmax is over all dimensions from the axis on.
define(
    """
    QLinearSoftmax <axis: int = -1, opset> (X, x_scale, x_zero, y_scale, y_zero) => (Y) {
      x = DequantizeLinear (X, x_scale, x_zero)
      version = Constant <value_int: int = @opset> ()
      limit = Constant <value_int = 13> ()
      is_old = Less (version, limit)
      y = If (is_old) <
        then_branch = flat () => (rows) {
          matrix = Flatten <axis: int = @axis> (x)
          parts = Softmax <axis = 1> (matrix)
          shape = Shape (x)
          rows = Reshape (parts, shape)
        },
        else_branch = along () => (same) {
          same = Softmax <axis: int = @axis> (x)
        }
      >
      Y = QuantizeLinear (y, y_scale, y_zero)
    }
    """
)

define(
    """
    QLinearWhere (test, A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero) => (C) {
      a = DequantizeLinear (A, a_scale, a_zero)
      b = DequantizeLinear (B, b_scale, b_zero)
      c = Where (test, a, b)
      C = QuantizeLinear (c, c_scale, c_zero)
    }
    """
)


@defines("QLinearConcat <axis> (Y_scale, Y_zero) => (Y)", is_variadic=True)
def qlinear_concat(call: Call) -> str:
    """Each part has a scale and a zero point of its own."""
    if call.rest < 3 or call.rest % 3:
        raise ValueError(f"found {call.rest} inputs of parts, expected 3 for each")
    starts = range(0, call.rest, 3)
    parts = [f"part_{k} = DequantizeLinear (rest_{k}, rest_{k + 1}, rest_{k + 2})" for k in starts]
    names = ", ".join(f"part_{k}" for k in starts)
    return "\n".join(
        [
            *parts,
            f"y = Concat <axis = {call.int('axis')}> ({names})",
            "Y = QuantizeLinear (y, Y_scale, Y_zero)",
        ]
    )


for _name in ("QuantizeLinear", "DequantizeLinear"):
    define(
        f"""
        {_name} <axis: int = 1> (X, scale, zero) => (Y) {{
          Y = {_name} <axis: int = @axis> (X, scale, zero)
        }}
        """
    )


@defines("MulInteger (A, a_zero, B, b_zero) => (C)")
def mul_integer(call: Call) -> str:
    """The products of numbers above their zero points, as i32."""
    parts: list[str] = []
    for name in "ab":
        parts.append(f"{name}_whole = Cast <to = 6> ({name.upper()})")
        if call.has(f"{name}_zero"):
            parts.append(f"{name}_start = Cast <to = 6> ({name}_zero)")
            parts.append(f"{name} = Sub ({name}_whole, {name}_start)")
        else:
            parts.append(f"{name} = Identity ({name}_whole)")
    return "\n".join([*parts, "C = Mul (a, b)"])


# Products


def _check_columns(call: Call, axis: int = -1) -> None:
    """ValueError for a vector of scales that has not one for each column of B, or one for all."""
    if not (call.is_weight("B") and call.is_weight("b_scale")):
        return
    columns, shape = call.dims("B")[axis], call.dims("b_scale")
    if len(shape) == 1 and shape[0] not in (1, columns):
        raise ValueError(
            f"found {shape[0]} scales of B, expected one for each of {columns} columns"
        )


def _scaled(call: Call, left: str) -> str:
    """Y: `sums` by the scales of both factors, that of the left one by name, and a bias."""
    _check_columns(call)
    text = f"""
      {scales("b_scale")}
      whole = Cast <to = 1> (sums)
      scale = Mul ({left}, b_scale_number)
      product = Mul (whole, scale)"""
    return text + ("\nY = Add (product, bias)" if call.has("bias") else "\nY = Identity (product)")


@defines("DynamicQuantizeMatMul (A, B, b_scale, b_zero, bias) => (Y)")
def dynamic_quantize_matmul(call: Call) -> str:
    """The left factor is quantized before."""
    return f"""
      a, a_scale, a_zero = DynamicQuantizeLinear (A)
      sums = MatMulInteger (a, B, a_zero, b_zero)
      {_scaled(call, "a_scale")}"""


@defines("MatMulIntegerToFloat (A, B, a_scale, b_scale, a_zero, b_zero, bias) => (Y)")
def matmul_integer_to_float(call: Call) -> str:
    """The product of the numbers that two quantized matrices stand for."""
    return f"""
      {scales("a_scale")}
      sums = MatMulInteger (A, B, a_zero, b_zero)
      {_scaled(call, "a_scale_number")}"""


@defines(
    """QGemm <alpha: float = 1.0, transA: int = 0, transB: int = 0> (
      A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero
    ) => (Y)"""
)
def qgemm(call: Call) -> str:
    """A bias is of integers that have the scale of the product; the result may stay a float."""
    _check_columns(call, 0 if call.int("transB") else -1)
    parts: list[str] = []
    for name in "AB":
        how = "Transpose <perm = [1, 0]>" if call.int(f"trans{name}") else "Identity"
        parts.append(f"{name.lower()} = {how} ({name})")
    parts.append("sums = MatMulInteger (a, b, a_zero, b_zero)")
    parts.append("total = Add (sums, C)" if call.has("C") else "total = Identity (sums)")
    parts.append(
        f"""
        whole = Cast <to = 1> (total)
        alpha = Constant <value_float = {number(call.float("alpha"))}> ()
        {scales("a_scale", "b_scale")}
        factor = Mul (a_scale_number, b_scale_number)
        scale = Mul (factor, alpha)
        y = Mul (whole, scale)"""
    )
    is_quantized = call.has("y_scale")
    parts.append(f"Y = {'QuantizeLinear (y, y_scale, y_zero)' if is_quantized else 'Identity (y)'}")
    return "\n".join(parts)


@defines(
    """MatMulNBits <
      K, N, accuracy_level: int = 0, bits: int = 4, block_size, weight_prepacked: int = 0
    > (A, B, scales, zeros, g_idx, bias) => (Y)"""
)
def matmul_n_bits(call: Call) -> str:
    """
    The product with the transpose of B [N, K], whose numbers of few bits have a scale and a zero
    point a block of a row. The bytes hold the lowest bits first; zero points may be floats instead.
    """
    rows, columns = call.int("N"), call.int("K")
    bits, block = call.int("bits"), call.int("block_size")
    if bits not in (2, 4, 8) or block < 16 or block % 16 or rows < 1 or columns < 1:
        raise ValueError(
            f"found {rows} rows of {columns} numbers of {bits} bits in blocks of {block}"
        )
    if call.has("g_idx") or call.int("weight_prepacked"):
        raise ValueError("found weights in an order of their own, expected rows of blocks")
    blocks = -(-columns // block)
    size = rows * blocks * block * bits // 8
    if call.is_weight("B") and (found := math.prod(call.dims("B"))) != size:
        raise ValueError(f"found weights of {found} bytes, expected {size}")
    if bits == 4 and call.is_weight("B") and not (call.has("zeros") and call.is_float("zeros")):
        return _matmul_4_bits(call, (rows, columns, block))
    parts = [_unpacked("B", "weights", bits, (rows, blocks, block), (rows, blocks, block))]
    if call.has("zeros") and call.is_float("zeros"):
        parts.append("zero_row = Cast <to = 1> (zeros)")
        parts.append("zero_column = Reshape (zero_row, per_block)")
    elif call.has("zeros"):
        size = -(-blocks * bits // 8) * 8 // bits
        parts.append(_unpacked("zeros", "zero", bits, (rows, size), (rows, blocks)))
        parts.append("zero_column = Reshape (zero, per_block)")
    else:
        parts.append(f"zero_column = Constant <value_float = {number(1 << bits - 1)}> ()")
    parts.append(
        f"""
        scale_row = Cast <to = 1> (scales)
        scale_column = Reshape (scale_row, per_block)
        centered = Sub (weights, zero_column)
        numbers = Mul (centered, scale_column)
        row_shape = Constant <value_ints = [{rows}, {blocks * block}]> ()
        padded_rows = Reshape (numbers, row_shape)
        row_start = Constant <value_ints = [0]> ()
        row_end = Constant <value_ints = [{columns}]> ()
        row_axis = Constant <value_ints = [1]> ()
        rows = Slice (padded_rows, row_start, row_end, row_axis)
        columns = Transpose <perm = [1, 0]> (rows)
        like = CastLike (columns, A)
        product = MatMul (A, like)"""
    )
    parts.insert(0, f"per_block = Constant <value_ints = [{rows}, {blocks}, 1]> ()")
    parts.append("Y = Add (product, bias)" if call.has("bias") else "Y = Identity (product)")
    return "\n".join(parts)


def _matmul_4_bits(call: Call, sizes: tuple[int, int, int]) -> str:
    """The same of weights of four bits, which stay such."""
    rows, columns, block = sizes
    blocks = -(-columns // block)
    shape = (rows, blocks * block)
    parts = [_unpacked("B", "weights", 4, shape, (rows, columns))]
    if call.has("zeros"):
        parts.append(_unpacked("zeros", "zero", 4, (rows, -(-blocks // 2) * 2), (rows, blocks)))
    else:
        parts.append("middle = Constant <value_ints = [8]> ()")
        parts.append(f"zero_shape = Constant <value_ints = [{rows}, {blocks}]> ()")
        parts.append("zero = Expand (middle, zero_shape)")
    parts.append(
        f"""
        codes = Cast <to = {TensorProto.UINT4}> (weights)
        zero_codes = Cast <to = {TensorProto.UINT4}> (zero)
        scale_32 = Cast <to = 1> (scales)
        scale_shape = Constant <value_ints = [{rows}, {blocks}]> ()
        scale = Reshape (scale_32, scale_shape)
        rows = DequantizeLinear <axis = 1, block_size = {block}> (codes, scale, zero_codes)
        columns = Transpose <perm = [1, 0]> (rows)
        like = CastLike (columns, A)
        product = MatMul (A, like)"""
    )
    parts.append("Y = Add (product, bias)" if call.has("bias") else "Y = Identity (product)")
    return "\n".join(parts)


_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
_CODES = (_FP4 + tuple(-one for one in _FP4), _NF4)
"""What numbers of 4 bits stand for, in bitsandbytes' types FP4 and NF4."""


@defines(
    """MatMulBnb4 <K, N, block_size, quant_type, training_mode: int = 0, transB: int = 1> (
      A, B, absmax
    ) => (Y)"""
)
def matmul_bnb4(call: Call) -> str:
    """
    The product with a matrix [N, K], or its transpose, of codes of 4 bits, the first of a byte in
    its upper half. Blocks go on from row to row, and the last one may be short.
    """
    rows, columns, block = call.int("N"), call.int("K"), call.int("block_size")
    kind, size = call.int("quant_type"), call.int("N") * call.int("K")
    if kind not in (0, 1) or block < 16 or block & block - 1 or rows < 1 or columns < 1:
        raise ValueError(
            f"found {rows} rows of {columns} numbers of type {kind} in blocks of {block}"
        )
    blocks = -(-size // block)
    missing = blocks * block // 2 - (size + 1) // 2
    order = "[1, 0]" if call.int("transB") else "[0, 1]"
    return f"""
      ends = Constant <value_ints = [0, {missing}]> ()
      bytes = Pad (B, ends)
      half = Constant <value = uint8 {{4}}> ()
      mask = Constant <value = uint8 {{15}}> ()
      last = Constant <value_ints = [-1]> ()
      upper = BitShift <direction = "RIGHT"> (bytes, half)
      lower = BitwiseAnd (bytes, mask)
      upper_column = Unsqueeze (upper, last)
      lower_column = Unsqueeze (lower, last)
      pairs = Concat <axis = -1> (upper_column, lower_column)
      block_shape = Constant <value_ints = [{blocks}, {block}]> ()
      in_blocks = Reshape (pairs, block_shape)
      places = Cast <to = 7> (in_blocks)
      codes = Constant <value_floats = [{", ".join(map(number, _CODES[kind]))}]> ()
      parts = Gather (codes, places)
      most = Cast <to = 1> (absmax)
      most_column = Unsqueeze (most, last)
      numbers = Mul (parts, most_column)
      flat = Reshape (numbers, last)
      first = Constant <value_ints = [0]> ()
      size = Constant <value_ints = [{size}]> ()
      those = Slice (flat, first, size)
      shape = Constant <value_ints = [{rows}, {columns}]> ()
      matrix = Reshape (those, shape)
      factor = Transpose <perm = {order}> (matrix)
      like = CastLike (factor, A)
      Y = MatMul (A, like)"""


# Tables

_ALL = (1 << 63) - 1
"""An end that no slice reaches."""


@defines(
    """GatherBlockQuantized <
      bits: int = 4, block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1
    > (data, indices, scales, zeros) => (output)"""
)
def gather_block_quantized(call: Call) -> str:
    """
    Slices of a table of bytes, whose numbers have a scale and a zero point a block along the last
    axis; zeros for indices out of range.
    """
    if call.element_type("data") != TensorProto.UINT8:
        raise ValueError("found a table of another type, expected u8")
    dims, bits, block = call.dims("data"), call.int("bits"), call.int("block_size")
    last, axes = len(dims) - 1, (call.int("gather_axis"), call.int("quantize_axis"))
    if last < 1 or axes[0] not in (0, -1 - last) or axes[1] not in (last, -1):
        raise ValueError(f"found axes {axes} of {last + 1}, expected the first and the last")
    if bits not in (2, 4, 8) or block < 16 or block & block - 1:
        raise ValueError(f"found numbers of {bits} bits in blocks of {block}")
    count, inside, columns = dims[0], dims[1:-1], dims[-1] * 8 // bits
    rows, blocks = math.prod(inside), -(-columns // block)
    parts = [
        f"""
        one = Constant <value_int = 1> ()
        none = Constant <value_int = 0> ()
        count = Constant <value_int = {count}> ()
        least = Neg (count)
        all_indices = Cast <to = 7> (indices)
        is_below = Less (all_indices, count)
        is_above = GreaterOrEqual (all_indices, least)
        is_there = And (is_below, is_above)
        index = Where (is_there, all_indices, none)
        bytes = Gather <axis = 0> (data, index)
        scale_bytes = Gather <axis = 0> (scales, index)
        scale_32 = Cast <to = 1> (scale_bytes)
        scale_shape = Constant <value_ints = [-1, {rows}, {blocks}]> ()
        scale = Reshape (scale_32, scale_shape)
        columns = Constant <value_int = {columns}> ()
        block = Constant <value_int = {block}> ()
        places = Range (none, columns, one)
        block_of = Div (places, block)
        factor = Gather <axis = 2> (scale, block_of)""",
        _unpacked("bytes", "numbers", bits, (-1, rows, columns), (_ALL, rows, columns)),
    ]
    if call.has("zeros"):
        size = -(-blocks * bits // 8) * 8 // bits
        parts.append("zero_bytes = Gather <axis = 0> (zeros, index)")
        parts.append(_unpacked("zero_bytes", "zero", bits, (-1, rows, size), (_ALL, rows, blocks)))
        parts.append("start = Gather <axis = 2> (zero, block_of)")
    else:
        parts.append(f"start = Constant <value_float = {number(1 << bits - 1)}> ()")
    sizes = ", ".join(map(str, (*inside, columns)))
    parts.append(
        f"""
        centered = Sub (numbers, start)
        scaled = Mul (centered, factor)
        flat_shape = Constant <value_ints = [-1, 1, 1]> ()
        is_known = Reshape (is_there, flat_shape)
        zero_number = Constant <value_float = 0.0> ()
        kept = Where (is_known, scaled, zero_number)
        front = Shape (indices)
        back = Constant <value_ints = [{sizes}]> ()
        shape = Concat <axis = 0> (front, back)
        shaped = Reshape (kept, shape)
        output = CastLike (shaped, scales)"""
    )
    return "\n".join(parts)


def _unpacked(
    source: str, name: str, bits: int, packed: tuple[int, ...], shape: tuple[int, ...]
) -> str:
    """Numbers of `bits` as floats; rows of bytes may be longer than those of the `shape`."""
    count, mask = 8 // bits, (1 << bits) - 1
    pieces: list[str] = []
    for k in range(count):
        pieces.append(
            f"""
            {name}_by{k} = Constant <value = uint8 {{{bits * k}}}> ()
            {name}_shifted{k} = BitShift <direction = "RIGHT"> ({source}, {name}_by{k})
            {name}_low{k} = BitwiseAnd ({name}_shifted{k}, {name}_mask)
            {name}_piece{k} = Unsqueeze ({name}_low{k}, {name}_last)"""
        )
    names = ", ".join(f"{name}_piece{k}" for k in range(count))
    ends = ", ".join(map(str, shape))
    axes = ", ".join(map(str, range(len(shape))))
    starts = ", ".join("0" for _ in shape)
    return "\n".join(
        [
            f"{name}_mask = Constant <value = uint8 {{{mask}}}> ()",
            f"{name}_last = Constant <value_ints = [-1]> ()",
            *pieces,
            f"""
            {name}_pieces = Concat <axis = -1> ({names})
            {name}_packed = Constant <value_ints = [{", ".join(map(str, packed))}]> ()
            {name}_all = Reshape ({name}_pieces, {name}_packed)
            {name}_starts = Constant <value_ints = [{starts}]> ()
            {name}_ends = Constant <value_ints = [{ends}]> ()
            {name}_axes = Constant <value_ints = [{axes}]> ()
            {name}_whole = Slice ({name}_all, {name}_starts, {name}_ends, {name}_axes)
            {name} = Cast <to = 1> ({name}_whole)""",
        ]
    )
