"""Operators on whole tensors, most of which are older forms of standard ones."""

from __future__ import annotations

from lowerdeck.frontends.onnx.contrib.definition import Call, define, defines

define("GatherND (data, indices) => (output) { output = GatherND (data, indices) }")
define("Trilu <upper: int = 1> (X, k) => (Y) { Y = Trilu <upper: int = @upper> (X, k) }")

define(
    """
    ExpandDims (X, axis) => (Y) {
      one = Constant <value_ints = [1]> ()
      axis_row = Reshape (axis, one)
      axes = Cast <to = 7> (axis_row)
      Y = Unsqueeze (X, axes)
    }
    """
)

define(
    """
    Pad <mode: string = "constant"> (data, pads, value) => (output) {
      flat = Constant <value_ints = [-1]> ()
      ends = Reshape (pads, flat)
      output = Pad <mode: string = @mode> (data, ends, value)
    }
    """
)


@defines("Range (start, limit, delta) => (Y)")
def range_(call: Call) -> str:
    """Numbers of equal distance, which is 1 by default; what is given may have one dimension."""
    names = ("start", "limit", "delta")
    parts = [f"{name}_ = Squeeze ({name})" for name in names if call.has(name)]
    if not call.has("delta"):
        parts.append("one = Constant <value_int = 1> ()\n delta_ = CastLike (one, start)")
    return "\n".join([*parts, "Y = Range (start_, limit_, delta_)"])


@defines('CDist <metric: string = "sqeuclidean"> (A, B) => (C)')
def c_dist(call: Call) -> str:
    """The distances, or their squares, of all rows of two matrices."""
    root = (
        "Sqrt" if call.string("metric", "euclidean", "sqeuclidean") == "euclidean" else "Identity"
    )
    return f"""
      first = Constant <value_ints = [0]> ()
      along = Constant <value_ints = [1]> ()
      last = Constant <value_ints = [2]> ()
      a = Unsqueeze (A, along)
      b = Unsqueeze (B, first)
      difference = Sub (a, b)
      squares = Mul (difference, difference)
      total = ReduceSum <keepdims = 0> (squares, last)
      C = {root} (total)"""


define("Unique (x) => (y, idx, counts) { y, first, idx, counts = Unique <sorted = 0> (x) }")


@defines("IsAllFinite <isinf_only: int = 0, isnan_only: int = 0> () => (output)", is_variadic=True)
def is_all_finite(call: Call) -> str:
    """False if there is an infinite number, or none, in any tensor."""
    if call.int("isinf_only") and call.int("isnan_only"):
        raise ValueError("found isinf_only and isnan_only, expected one of them")
    kinds = [
        kind
        for kind, other in (("IsInf", "isnan_only"), ("IsNaN", "isinf_only"))
        if not call.int(other)
    ]
    parts: list[str] = []
    for name in (f"rest_{k}" for k in range(call.rest)):
        for kind in kinds:
            parts.append(
                f"""
                {name}_{kind} = {kind} ({name})
                {name}_{kind}_i64 = Cast <to = 7> ({name}_{kind})
                {name}_{kind}_count = ReduceSum <keepdims = 0> ({name}_{kind}_i64)"""
            )
    names = ", ".join(f"rest_{k}_{kind}_count" for k in range(call.rest) for kind in kinds)
    return "\n".join(
        [
            *parts,
            f"most = Max ({names})",
            "none = Constant <value_int = 0> ()\n output = Equal (most, none)",
        ]
    )


@defines("UnfoldTensor <dim: int = -1, size, step: int = 1> (input) => (output)")
def unfold_tensor(call: Call) -> str:
    """Windows along a dimension, whose places are a new last dimension."""
    size, step = call.int("size"), call.int("step")
    if size < 1 or step < 1:
        raise ValueError(f"found windows of {size} with a step of {step}, expected 1 at least")
    parts = [
        f"""
        dim = Constant <value_ints = [{call.int("dim")}]> ()
        step = Constant <value_ints = [{step}]> ()
        last = Constant <value_ints = [-1]> ()"""
    ]
    for k in range(size):
        end = k + 1 - size or (1 << 63) - 1
        parts.append(
            f"""
            start_{k} = Constant <value_ints = [{k}]> ()
            end_{k} = Constant <value_ints = [{end}]> ()
            slice_{k} = Slice (input, start_{k}, end_{k}, dim, step)
            column_{k} = Unsqueeze (slice_{k}, last)"""
        )
    columns = ", ".join(f"column_{k}" for k in range(size))
    return "\n".join([*parts, f"output = Concat <axis = -1> ({columns})"])


@defines("NGramRepeatBlock <ngram_size> (input_ids, scores) => (scores_out)")
def n_gram_repeat_block(call: Call) -> str:
    """The scores, but minus infinity for words that would repeat as many words as were there."""
    if (size := call.int("ngram_size")) < 1:
        raise ValueError(f"found ngram_size = {size}, expected 1 at least")
    parts = [
        f"""
        along = Constant <value_ints = [1]> ()
        end_0 = Constant <value_ints = [{(1 << 63) - 1}]> ()
        place_0 = Constant <value_ints = [{size - 1}]> ()
        words = Slice (input_ids, place_0, end_0, along)
        match_0 = Equal (words, words)"""
    ]
    for k in range(1, size):
        parts.append(
            f"""
            place_{k} = Constant <value_ints = [{size - 1 - k}]> ()
            end_{k} = Constant <value_ints = [{-k}]> ()
            past_{k} = Slice (input_ids, place_{k}, end_{k}, along)
            last_{k} = Slice (input_ids, end_{k}, end_{k - 1}, along)
            same_{k} = Equal (past_{k}, last_{k})
            match_{k} = And (match_{k - 1}, same_{k})"""
        )
    parts.append(
        f"""
        found = Cast <to = 6> (match_{size - 1})
        sizes = Shape (scores)
        nowhere = ConstantOfShape <value = int32[1] {{0}}> (sizes)
        count = ScatterElements <axis = 1, reduction = "max"> (nowhere, words, found)
        would_repeat = Cast <to = 9> (count)
        least = Constant <value_float = -inf> ()
        scores_out = Where (would_repeat, least, scores)"""
    )
    return "\n".join(parts)


def _complex_product(signs: str) -> str:
    return f"""
      real, imaginary = Split <axis = -1, num_outputs = 2> (B)
      pair = Constant <value_ints = [1, 0]> ()
      turned = Gather <axis = -1> (A, pair)
      signs_32 = Constant <value_floats = [{signs}]> ()
      signs = CastLike (signs_32, A)
      crossed = Mul (turned, signs)
      first = Mul (A, real)
      second = Mul (crossed, imaginary)
      C = Add (first, second)"""


# Numbers are pairs in the last dimension: (a + bi) (c + di) is (a, b) c + (-b, a) d.
define(f"ComplexMul (A, B) => (C) {{ {_complex_product('-1.0, 1.0')} }}")
define(f"ComplexMulConj (A, B) => (C) {{ {_complex_product('1.0, -1.0')} }}")


@defines("Rfft <normalized: int = 0, onesided: int = 1, signal_ndim: int = 1> (X) => (Y)")
def rfft(call: Call) -> str:
    """The discrete Fourier transform of rows, without what is the conjugate of another part."""
    expected = {"normalized": 0, "onesided": 1, "signal_ndim": 1}
    for name, value in expected.items():
        if call.int(name) != value:
            raise ValueError(f"found {name} = {call.int(name)}, expected {value}")
    return """
      last = Constant <value_ints = [-1]> ()
      x = Unsqueeze (X, last)
      Y = DFT <onesided = 1> (x)"""
