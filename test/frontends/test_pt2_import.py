"""Archives of torch.export: what is read, what is remembered, and what is broken."""

from __future__ import annotations

import struct
import zipfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.types import bf16, element_type, f16, f32, f64, i1, i8, i16, i64, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.pt2.strides import can_view, overlaps
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.pt2.archive import ArchiveError
from lowerdeck.frontends.pt2.sizes import size_of
from lowerdeck.frontends.symbols import Symbols
from lowerdeck.passes.legalize.common.promotion import promoted, promoted_elements
from lowerdeck.passes.legalize.pt2.framework import Pt2Walk
from lowerdeck.passes.legalize.walk import LegalizationError

from .pt2_archives import counter, meta, node, write  # noqa: TID251

X = np.array([[1, -2]], np.float32)

MODELS = Path(__file__).parent / "pt2_models"


def test_a_write_through_a_view_changes_the_buffer_which_lives_on(tmp_path: Path) -> None:
    module = load_model(counter(tmp_path / "m.pt2"))
    for call in (Calls(module), _legal(module)):
        found = [np.asarray(call({"x": X})["y"]).tolist() for _ in range(2)]
        assert found == [[[2, 1]], [[2, 0]]]


def _legal(module: ModuleOp) -> Calls:
    copy = module.clone()
    (main,) = copy.body.block.ops
    assert isinstance(main, func.FuncOp)
    Pt2Walk(main).run()
    return Calls(copy)


def test_the_number_of_rows_is_open(tmp_path: Path) -> None:
    found = Calls(load_model(counter(tmp_path / "m.pt2")))({"x": np.ones((3, 2), np.float32)})
    assert np.asarray(found["y"]).tolist() == [[2, 9]] * 3


def test_sizes_are_multiplied_and_rounded_as_floats() -> None:
    # interpolate(x.T, 1.5, recompute_scale_factor=True), x * n^2 and x / (n * 0.5) of n rows
    module = load_model(MODELS / "sizes.pt2")
    x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    for call in (Calls(module), _legal(module)):
        wide, times, quotient = (np.asarray(value) for value in call({"x": x}).values())
        assert wide.tolist() == [[[1, 1, 3, 5], [2, 2, 4, 6]]]
        assert times.tolist() == (x * 9).tolist()
        np.testing.assert_allclose(quotient, x / 1.5)


def test_sizes_are_powers_and_what_has_no_form_is_itself() -> None:
    symbols = Symbols()
    s, two = "Symbol('s0', positive=True, integer=True)", "Integer(2)"
    square = f"Pow({s}, {two})"
    up = f"TruncToInt(Mul(Float('1.5', precision=53), ToFloat({s})))"

    def found(text: str) -> Expr:
        return size_of({"as_expr": {"expr_str": text}}, symbols)

    assert found(square) == found(f"Mul({s}, {s})")
    assert found(f"Mul({two}, {up})") == found(up) * 2
    assert found(up) not in (found(s), found(f"FloorToInt({s})"))
    with pytest.raises(ArchiveError, match="not understood"):
        found(f"Evil({s})")


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ([3, 4], [4, 1], False),
        ([4, 3], [1, 4], False),
        ([3, 2], [1, 1], True),
        ([2, 2], [0, 1], True),
        ([1, 2], [0, 1], False),
        ([0, 2], [1, 1], False),
        ([2, 2], [2, 1], False),
    ],
)
def test_where_strides_show_elements_twice(
    sizes: list[int], strides: list[int], expected: bool
) -> None:
    assert overlaps(sizes, strides) == expected


@pytest.mark.parametrize(
    ("sizes", "strides", "shape", "expected"),
    [
        ([2, 3], [1, 2], [6], False),
        ([2, 3, 4], [24, 4, 1], [2, 12], True),
        ([2, 3, 4], [24, 4, 1], [6, 4], False),
        ([1, 4, 1], [9, 2, 7], [2, 2], True),
        ([2, 2], [0, 1], [4], False),
        ([3, 0], [5, 1], [0, 7], True),
        ([], [], [1, 1], True),
    ],
)
def test_what_is_a_view_of_strides(
    sizes: list[int], strides: list[int], shape: list[int], expected: bool
) -> None:
    assert can_view(sizes, strides, shape) == expected


def test_operands_along_a_dimension_broadcast_first(tmp_path: Path) -> None:
    shapes = {"a": [1, 3, 2], "b": [4, 1, 2], "v": [3], "w": [2, 3]}
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    dim = {"as_int": -2}
    nodes = [
        node("cosine_similarity.default", "c", x1="a", x2="b", dim=dim, eps={"as_float": 1e-8}),
        node("linalg_cross.default", "x", self="v", other="w", dim={"as_int": -1}),
    ]
    tensors = {name: meta("f4", shape) for name, shape in shapes.items()}
    tensors |= {"c": meta("f4", [4, 2]), "x": meta("f4", [2, 3])}
    path = write(tmp_path / "m.pt2", nodes, tensors, [*shapes], ["c", "x"], {})
    cosine, cross = (np.asarray(value) for value in _legal(load_model(path))(given).values())
    a, b = np.broadcast_arrays(given["a"], given["b"])
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(cosine, (a * b).sum(1) / sizes, rtol=1e-5)
    np.testing.assert_allclose(cross, np.cross(given["v"], given["w"]), rtol=1e-5)


def test_bags_of_half_precision_are_added_up_in_single_precision(tmp_path: Path) -> None:
    given = {"mode": {"as_int": 1}, "padding_idx": {"as_int": 1}}
    bag = node("_embedding_bag_forward_only.default", "", weight="w", indices="i", offsets="o")
    bag["inputs"] += [{"name": name, "arg": value} for name, value in given.items()]
    bag["outputs"] = [{"as_tensor": {"name": f"y{k}"}} for k in range(4)]
    half = {"dtype": 6}
    tensors = {"w": meta("f4", [2, 1]) | half, "i": meta("i8", [5000]), "o": meta("i8", [2])}
    tensors |= {"y0": meta("f4", [2, 1]) | half, "y1": meta("i8", [1])}
    tensors |= {"y2": meta("i8", [1]), "y3": meta("i8", [1])}
    path = write(tmp_path / "m.pt2", [bag], tensors, ["w", "i", "o"], ["y0"], {})
    rows, weight = np.zeros(5000, np.int64), np.array([[1], [7]], np.float16)
    rows[4000:] = 1
    call = _legal(load_model(path))
    (found,) = call({"w": weight, "i": rows, "o": np.array([0, 4500])}).values()
    assert np.asarray(found).tolist() == [[1], [0]]  # padding is none of the rows


@pytest.mark.parametrize(
    ("mode", "rank", "told"),
    [(5, 2, "'mode' is 5, expected one of 0, 1, 2"), (0, 3, r"of ranks \(3, 1, 1\), expected 2")],
)
def test_bags_of_another_kind_or_rank_are_refused(
    tmp_path: Path, mode: int, rank: int, told: str
) -> None:
    bag = node("_embedding_bag_forward_only.default", "", weight="w", indices="i", offsets="o")
    bag["inputs"].append({"name": "mode", "arg": {"as_int": mode}})
    bag["outputs"] = [{"as_tensor": {"name": f"y{k}"}} for k in range(4)]
    tensors = {"w": meta("f4", [2] * rank), "i": meta("i8", [3]), "o": meta("i8", [2])}
    tensors |= {f"y{k}": meta("f4", [2, 2]) for k in range(4)}
    path = write(tmp_path / "m.pt2", [bag], tensors, ["w", "i", "o"], ["y0"], {})
    with pytest.raises(LegalizationError, match=told):
        _legal(load_model(path))


def test_sums_of_products_of_half_precision_are_rounded_once(tmp_path: Path) -> None:
    """2048 + 1 is 2048 in half precision, 2048 + 2 is not."""
    half = {"dtype": 6}
    nodes = [
        node("linear.default", "a", input="x", weight="w", bias="b"),
        node("addmm.default", "c", self="b", mat1="x", mat2="w", beta={"as_int": 1}),
    ]
    tensors = {name: meta("f4", [2, 2]) | half for name in "xwac"} | {"b": meta("f4", [2]) | half}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x", "w", "b"], ["a", "c"], {})
    x, w, b = np.array([[2048, 1], [0, 1]]), np.array([[1, 1], [1, 1]]), np.ones(2)
    given = {"x": x.astype(np.float16), "w": w.astype(np.float16), "b": b.astype(np.float16)}
    for found in _legal(load_model(path))(given).values():
        assert np.asarray(found).tolist() == [[2050, 2050], [2, 2]]


def test_scalars_beside_half_precision_are_rounded_where_pytorch_does(tmp_path: Path) -> None:
    """
    Those that tensors are multiplied with or divided by are not, and the result is rounded once;
    for sums and shrinking they are. 0.1, 0.3 and 2049 are no numbers of half precision.
    """
    number = {"as_float": 0.1}
    nodes = [
        node("mul.Tensor", "a", self="x", other=number),
        node("mul.Tensor", "b", self="x", other="s"),
        node("mul.Tensor", "c", self="s", other="x"),
        node("div.Tensor", "d", self="x", other=number),
        node("div.Tensor_mode", "e", self="x", other="s", rounding_mode={"as_string": "floor"}),
        node("add.Tensor", "f", self="x", other="x", alpha=number),
        node("lerp.Scalar", "g", self="x", end="z", weight={"as_float": 0.3}),
        node("softshrink.default", "h", self="x", lambd=number),
        node("round.decimals", "i", self="x", decimals={"as_int": 1}),
    ]
    half, names = {"dtype": 6}, "abcdefghi"
    tensors = {name: meta("f4", [200]) | half for name in f"xz{names}"} | {"s": meta("i8", [])}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x", "z", "s"], [*names], {})
    rng = np.random.default_rng(0)
    small, other = rng.normal(size=(2, 200)).astype(np.float16)
    found = _legal(load_model(path))({"x": small, "z": other, "s": np.array(2049)}).values()
    x, z = small.astype(np.float32), other.astype(np.float32)
    tenth, share = np.float32(0.1), np.float32(0.3)
    rounded, large = np.float32(np.float16(0.1)), np.float32(2049)
    expected = [x * tenth, x * large, x * np.float32(2048), x / tenth, np.floor(x / large)]
    expected += [x + rounded * x, x + share * (z - x)]
    expected += [np.where(np.abs(x) <= rounded, 0, x - np.sign(x) * rounded), np.round(x * 10) / 10]
    for name, value, wanted in zip(names, found, expected, strict=True):
        assert np.array_equal(np.asarray(value), wanted.astype(np.float16)), name


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("padding", [1, 2])
def test_places_that_are_no_numbers_are_held_at_a_border(
    tmp_path: Path, rank: int, padding: int
) -> None:
    """At the first of an image and at the last of a volume; of cubic functions they remain NaN."""
    image, places = (1, 1, *range(2, 2 + rank)), (1, *[1] * (rank - 1), 3, rank)
    tensors = {"x": meta("f4", [*image]), "g": meta("f4", [*places])}
    tensors["y"] = meta("f4", [1, 1, *[1] * (rank - 1), 3])
    rng = np.random.default_rng(0)
    x, grid = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in (image, places))
    holed = grid.copy()
    holed[..., [0, 1, 2], [0, 1, rank - 1]] = np.nan
    held = np.where(np.isnan(holed), np.float32(-1 if rank == 2 else 1), holed)
    for mode, is_aligned in product(range(3 if rank == 2 else 2), (False, True)):
        sampled = node(
            f"grid_sampler_{rank}d.default",
            "y",
            input="x",
            grid="g",
            interpolation_mode={"as_int": mode},
            padding_mode={"as_int": padding},
            align_corners={"as_bool": is_aligned},
        )
        legal = _legal(
            load_model(write(tmp_path / "m.pt2", [sampled], tensors, ["x", "g"], ["y"], {}))
        )
        (found,) = legal({"x": x, "g": holed}).values()
        (expected,) = legal({"x": x, "g": held}).values()
        if mode == 2:
            assert np.isnan(np.asarray(found)).all()
        else:
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_moments_and_shares_of_half_precision_are_those_of_single_precision(
    tmp_path: Path,
) -> None:
    """The square of 300 is none of half precision."""
    half = {"dtype": 6}
    flags = {"use_input_stats": {"as_bool": True}, "cudnn_enabled": {"as_bool": False}}
    numbers = {"eps": {"as_float": 1e-5}, "momentum": {"as_float": 0.0}}
    nodes = [
        node("instance_norm.default", "y", input="x", **flags, **numbers),
        node("softmax.int", "z", self="y", dim={"as_int": 2}),
    ]
    tensors = {name: meta("f4", [1, 1, 4]) | half for name in "xyz"}
    call = _legal(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y", "z"], {})))
    found = call({"x": np.array([[[300, -300, 1000, -1000]]], np.float16)})
    y, z = (np.asarray(value) for value in found.values())
    expected = np.array([300, -300, 1000, -1000]) / np.sqrt(545000)
    assert y.ravel().tolist() == expected.astype(np.float16).tolist()
    shares = np.exp(y.astype(np.float64)) / np.exp(y.astype(np.float64)).sum()
    assert z.tolist() == shares.astype(np.float16).tolist()


@pytest.mark.parametrize("averages", [True, False])
def test_weights_of_attention_are_nan_where_all_is_hidden(tmp_path: Path, averages: bool) -> None:
    names = ("qkv_weight", "qkv_bias", "proj_weight", "proj_bias")
    shapes = zip(names, ([6, 2], [6], [2, 2], [2]), strict=True)
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {k: rng.normal(size=n).astype(np.float32) for k, n in shapes}
    numbers = {"embed_dim": 2, "num_head": 2, "mask_type": 1}
    given: dict[str, Any] = {key: {"as_int": number} for key, number in numbers.items()}
    flags = {"need_weights": {"as_bool": True}, "average_attn_weights": {"as_bool": averages}}
    same = {"query": "x", "key": "x", "value": "x", "mask": "m"} | {k: k for k in values}
    one = node("_native_multi_head_attention.default", "", **same, **given, **flags)
    one["outputs"] = [{"as_tensor": {"name": name}} for name in "yw"]
    tensors = {k: meta("f4", value.shape) for k, value in values.items()}
    tensors |= {"x": meta("f4", [2, 3, 2]), "m": meta("f4", [2, 3]) | {"dtype": 12}}
    tensors |= {
        "y": meta("f4", [2, 3, 2]),
        "w": meta("f4", [2, 3, 3] if averages else [2, 2, 3, 3]),
    }
    path = write(tmp_path / "m.pt2", [one], tensors, ["x", "m"], ["y", "w"], values)
    x = rng.normal(size=(2, 3, 2)).astype(np.float32)
    mask = np.array([[False, False, True], [True, True, True]])
    found = _legal(load_model(path))({"x": x, "m": mask})
    y, shares = np.asarray(found["y"]), np.asarray(found["w"])
    assert np.isnan(y[1]).all()
    assert np.isnan(shares[1]).all()
    q, k, v = np.split(x[0] @ values["qkv_weight"].T + values["qkv_bias"], 3, axis=1)
    powers = np.exp(q.T[:, :, None] * k.T[:, None, :2])  # a head of one number each
    expected = powers / powers.sum(2, keepdims=True)
    assert not shares[0][..., 2].any()
    np.testing.assert_allclose(
        shares[0][..., :2], expected.mean(0) if averages else expected, rtol=1e-5
    )
    heads = np.einsum("hqk,kh->qh", expected, v[:2])
    np.testing.assert_allclose(
        y[0], heads @ values["proj_weight"].T + values["proj_bias"], rtol=1e-4, atol=1e-5
    )


def test_scales_are_chosen_by_the_extrema(tmp_path: Path) -> None:
    def one(name: str, kind: str) -> dict[str, Any]:
        limits = {"quant_min": {"as_int": -128}, "quant_max": {"as_int": 127}}
        rest = {"eps": {"as_float": 1e-9}, "dtype": {"as_scalar_type": 2}}
        found = node(name, "", input="x", **limits, **rest)
        target = f"torch.ops.quantized_decomposed.choose_qparams{kind}.tensor"
        outputs = [{"as_tensor": {"name": f"{name}_{k}"}} for k in range(2)]
        return found | {"target": target, "outputs": outputs}

    double = meta("f4", [1]) | {"dtype": 8}
    tensors = {"x": meta("f4", [3])}
    for name in "ab":
        tensors |= {f"{name}_0": double, f"{name}_1": meta("i8", [1])}
    nodes = [one("a", ""), one("b", "_symmetric")]
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["a_0", "a_1", "b_0", "b_1"], {})
    call = _legal(load_model(path))
    scale, zero, even, none = call({"x": np.array([-1, 0, 3], np.float32)}).values()
    assert np.asarray(scale).item() == pytest.approx(4 / 255)
    assert np.asarray(even).item() == pytest.approx(3 / 127.5)
    assert (np.asarray(zero).item(), np.asarray(none).item()) == (-64, 0)


def test_a_product_of_quantized_tensors_is_one_of_bytes(tmp_path: Path) -> None:
    def real(name: str, x: str, scale: float, zero: int) -> dict[str, Any]:
        numbers = {"zero_point": zero, "quant_min": -128, "quant_max": 127}
        given = {key: {"as_int": number} for key, number in numbers.items()}
        given |= {"scale": {"as_float": scale}, "dtype": {"as_scalar_type": 2}}
        target = "torch.ops.quantized_decomposed.dequantize_per_tensor.default"
        return node("", name, input=x, **given) | {"target": target}

    nodes = [
        real("a", "x", 0.5, 3),
        real("b", "w", 0.25, 0),
        node("conv2d.default", "y", input="a", weight="b"),
    ]
    tensors = {"a": meta("f4", [1, 2, 3, 3]), "b": meta("f4", [1, 2, 2, 2])}
    tensors |= {name: tensors[real] | {"dtype": 2} for name, real in (("x", "a"), ("w", "b"))}
    tensors["y"] = meta("f4", [1, 1, 2, 2])
    weight = np.arange(-4, 4, dtype=np.int8).reshape(1, 2, 2, 2)
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {"w": weight})
    module, _ = import_and_lower(str(path), "optimized", CompileOptions())
    (conv,) = (op for op in module.walk() if isinstance(op, ConvOp))
    assert [element_type(factor) for factor in conv.factors] == [i8, i8]
    found = Calls(module)({"x": np.full((1, 2, 3, 3), 11, np.int8)})
    assert np.asarray(found["y"]).tolist() == [[[[8 * 0.5 * -4 * 0.25] * 2] * 2]]


def _quantization(name: str, x: str, *, to_real: bool, channels: str = "") -> dict[str, Any]:
    """A node between bytes and real numbers, by one scale or by one of each channel."""
    limits = {"quant_min": -127 if channels else -128, "quant_max": 127}
    given: dict[str, Any] = {key: {"as_int": number} for key, number in limits.items()}
    given["dtype"] = {"as_scalar_type": 2}
    if channels:
        given |= {"scales": f"{channels}_s", "zero_points": f"{channels}_z", "axis": {"as_int": 0}}
    else:
        given |= {"scale": {"as_float": 6 / 255}, "zero_point": {"as_int": -128}}
    kind = "channel" if channels else "tensor"
    target = f"{'de' if to_real else ''}quantize_per_{kind}.default"
    made = node("", name, input=x, **given)
    return made | {"target": f"torch.ops.quantized_decomposed.{target}"}


def test_layers_between_quantized_tensors_multiply_bytes(tmp_path: Path) -> None:
    """As in MobileNets: a pointwise convolution, one of each channel, both bounded, a product."""
    rng = np.random.default_rng(1)
    shapes = {"p": [8, 4, 1, 1], "d": [8, 1, 3, 3], "f": [5, 8]}
    values: dict[str, Any] = {}
    tensors = {"x": meta("f4", [1, 4, 6, 6]), "y": meta("f4", [1, 5])}
    for name, shape in shapes.items():
        values[name] = rng.integers(-127, 128, shape).astype(np.int8)
        values[f"{name}_s"] = rng.uniform(1e-3, 9e-3, shape[0])
        values[f"{name}_z"] = np.zeros(shape[0], np.int64)
        values[f"{name}_b"] = rng.uniform(-1, 1, shape[0]).astype(np.float32)
        tensors |= {name: meta("f4", shape) | {"dtype": 2}, f"{name}_r": meta("f4", shape)}
        tensors[f"{name}_b"] = meta("f4", shape[:1])
        tensors[f"{name}_s"] = meta("f4", shape[:1]) | {"dtype": 8}
        tensors[f"{name}_z"] = meta("i8", shape[:1])
    nodes = [_quantization(f"{w}_r", w, to_real=True, channels=w) for w in shapes]
    last = "x"
    for k, (weight, shape) in enumerate([("p", [1, 8, 6, 6]), ("d", [1, 8, 4, 4])]):
        groups = {"groups": {"as_int": 8}} if weight == "d" else {}
        given = {"input": f"r{k}", "weight": f"{weight}_r", "bias": f"{weight}_b"}
        limits = {"min_val": {"as_float": 0.0}, "max_val": {"as_float": 6.0}}
        nodes += [
            _quantization(f"q{k}", last, to_real=False),
            _quantization(f"r{k}", f"q{k}", to_real=True),
            node("conv2d.default", f"c{k}", **given, **groups),
            node("hardtanh.default", f"h{k}", self=f"c{k}", **limits),
        ]
        before = tensors[last]
        tensors |= {f"q{k}": before | {"dtype": 2}, f"r{k}": before}
        tensors |= {f"c{k}": meta("f4", shape), f"h{k}": meta("f4", shape)}
        last = f"h{k}"
    sizes = {"dim": {"as_ints": [-1, -2]}, "keepdim": {"as_bool": False}}
    nodes += [
        node("mean.dim", "m", self=last, **sizes),
        _quantization("q2", "m", to_real=False),
        _quantization("r2", "q2", to_real=True),
        node("linear.default", "y", input="r2", weight="f_r", bias="f_b"),
    ]
    tensors |= {"m": meta("f4", [1, 8]), "r2": meta("f4", [1, 8])}
    tensors["q2"] = tensors["m"] | {"dtype": 2}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y", "q1", "q2"], values)
    module, _ = import_and_lower(str(path), "optimized", CompileOptions())
    factors = [
        factor for op in module.walk() if isinstance(op, ConvOp | MatmulOp) for factor in op.factors
    ]
    assert [element_type(factor) for factor in factors] == [i8] * 6
    given = {"x": rng.uniform(-1, 7, (1, 4, 6, 6)).astype(np.float32)}
    found, expected = Calls(module)(given), _legal(load_model(path))(given)
    for name in ("q1", "q2"):
        steps = np.asarray(found[name], np.int64) - np.asarray(expected[name], np.int64)
        assert np.abs(steps).max() <= 1
    assert len(np.unique(np.asarray(expected["q1"]))) > 10
    np.testing.assert_allclose(np.asarray(found["y"]), np.asarray(expected["y"]), atol=0.05)


@pytest.mark.parametrize("amounts", [(-4, 5), (-4, 1), (2, -4), (-1, 2), (-3, 3), (2, 0)])
def test_borders_are_repeated_before_elements_are_taken_away(
    tmp_path: Path, amounts: tuple[int, int]
) -> None:
    """Also where more is taken away than there was."""
    begin, end = amounts
    padding = {"as_ints": list(amounts)}
    nodes = [node("replication_pad1d.default", "y", self="x", padding=padding)]
    tensors = {"x": meta("f4", [1, 3]), "y": meta("f4", [1, 3 + begin + end])}
    call = _legal(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    places = [max(0, min(k - begin, 2)) for k in range(3 + begin + end)]
    x = np.array([[1, 2, 4]], np.float32)
    assert np.asarray(call({"x": x})["y"]).tolist() == x[:, places].tolist()


@pytest.mark.parametrize(
    ("amounts", "places"),
    [((-4, 3), [4, 5, 4, 3, 2]), ((3, -4), [3, 2, 1, 0, 1]), ((2, 1), [2, 1, 0, 1, 2, 3, 4, 5, 4])],
)
def test_elements_are_mirrored_before_some_are_taken_away(
    tmp_path: Path, amounts: tuple[int, int], places: list[int]
) -> None:
    padding = {"as_ints": list(amounts)}
    nodes = [node("reflection_pad1d.default", "y", self="x", padding=padding)]
    tensors = {"x": meta("f4", [1, 6]), "y": meta("f4", [1, len(places)])}
    call = _legal(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    found = call({"x": np.arange(6, dtype=np.float32)[None]})
    assert np.asarray(found["y"]).tolist() == [places]


def test_the_middle_of_an_element_may_lie_behind_the_image(tmp_path: Path) -> None:
    """From corner to corner there are 4 steps of the first to the second of two elements."""
    size = {"output_size": {"as_ints": [2, 3]}, "align_corners": {"as_bool": True}}
    nodes = [node("_upsample_bilinear2d_aa.default", "y", self="x", **size)]
    tensors = {"x": meta("f4", [1, 1, 5, 3]), "y": meta("f4", [1, 1, 2, 3])}
    call = _legal(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    rows = np.arange(5, dtype=np.float32).repeat(3).reshape(1, 1, 5, 3)
    found = np.asarray(call({"x": rows})["y"])
    np.testing.assert_allclose(found.ravel(), np.repeat([16 / 9, 31 / 9], 3), rtol=1e-6)


@pytest.mark.parametrize(
    ("decimals", "expected"),
    [(1, [0.2, -12.3]), (-1, [0.0, -10.0]), (10**9, [np.nan, np.nan]), (-400, [np.nan, np.nan])],
)
def test_numbers_are_rounded_to_decimals(
    tmp_path: Path, decimals: int, expected: list[float]
) -> None:
    """As PyTorch has it with a power of ten that is infinite: infinity / infinity, and 0 * it."""
    nodes = [node("round.decimals", "y", self="x", decimals={"as_int": decimals})]
    tensors = {"x": meta("f4", [2]), "y": meta("f4", [2])}
    call = _legal(load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {})))
    found = call({"x": np.array([0.25, -12.345], np.float32)})
    np.testing.assert_allclose(np.asarray(found["y"]), expected, rtol=1e-6)


def test_an_adaptive_pool_of_very_many_windows_is_refused(tmp_path: Path) -> None:
    nodes = [node("adaptive_avg_pool1d.default", "y", self="x", output_size={"as_ints": [3000]})]
    tensors = {"x": meta("f4", [1, 1, 4096]), "y": meta("f4", [1, 1, 3000])}
    module = load_model(write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], {}))
    with pytest.raises(LegalizationError, match="3000 windows in an adaptive pool"):
        _legal(module)


def test_adaptive_pools_of_no_windows(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"self": "x", "output_size": {"as_ints": [2, 0]}}
    nodes = [
        node("adaptive_avg_pool2d.default", "y", **sizes),
        node("adaptive_max_pool2d.default", "z", **sizes),
    ]
    nodes[1]["outputs"].append({"as_tensor": {"name": "i"}})
    tensors = {"x": meta("f4", [1, 3, 5, 4])} | {name: meta("f4", [1, 3, 2, 0]) for name in "yz"}
    tensors["i"] = meta("i8", [1, 3, 2, 0])
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y", "z", "i"], {})
    found = _legal(load_model(path))({"x": np.ones((1, 3, 5, 4), np.float32)})
    assert {np.asarray(array).shape for array in found.values()} == {(1, 3, 2, 0)}


def test_max_pools_find_nan_and_the_last_one(tmp_path: Path) -> None:
    window: dict[str, Any] = {"self": "x", "kernel_size": {"as_ints": [3]}}
    nodes = [
        node("max_pool1d.default", "p", **window, stride={"as_ints": [2]}),
        node("max_pool1d_with_indices.default", "q", **window, stride={"as_ints": [2]}),
        node("adaptive_max_pool1d.default", "r", self="x", output_size={"as_ints": [2]}),
    ]
    for one, name in zip(nodes[1:], "ij", strict=True):
        one["outputs"].append({"as_tensor": {"name": name}})
    tensors = {"x": meta("f4", [1, 1, 7])} | {name: meta("f4", [1, 1, 3]) for name in "pq"}
    tensors |= {"r": meta("f4", [1, 1, 2]), "i": meta("i8", [1, 1, 3]), "j": meta("i8", [1, 1, 2])}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["p", "q", "i", "r", "j"], {})
    inf, nan = np.inf, np.nan
    x = np.array([[[3, nan, nan, 1, inf, 1, 1]]], np.float32)
    found = [np.asarray(each)[0, 0] for each in _legal(load_model(path))({"x": x}).values()]
    for each, expected in zip(
        found, ([nan, nan, inf], [nan, nan, inf], [2, 2, 4], [nan, inf], [2, 4]), strict=True
    ):
        np.testing.assert_array_equal(each, expected)


def test_a_nan_is_the_first_extremum_also_behind_infinities(tmp_path: Path) -> None:
    nodes = [
        node(f"arg{kind}.default", kind, self="x", dim={"as_int": 1}) for kind in ("max", "min")
    ]
    tensors = {"x": meta("f4", [3, 3])} | {name: meta("i8", [3]) for name in ("max", "min")}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["max", "min"], {})
    inf, nan = np.inf, np.nan
    x = np.array([[inf, -inf, nan], [-inf, 2, inf], [nan, nan, inf]], np.float32)
    found = _legal(load_model(path))({"x": x})
    assert np.asarray(found["max"]).tolist() == [2, 2, 0]
    assert np.asarray(found["min"]).tolist() == [2, 0, 0]


def test_moments_of_a_batch_move_those_that_are_kept(tmp_path: Path) -> None:
    given = {
        "input": "x",
        "weight": {"as_none": True},
        "bias": {"as_none": True},
        "running_mean": "mean",
        "running_var": "variance",
        "training": {"as_bool": True},
        "momentum": {"as_float": 0.25},
        "eps": {"as_float": 0.0},
    }
    nodes = [
        node("batch_norm.default", "y", **given),
        node("add.Tensor", "z", self="mean", other="variance"),
    ]
    tensors = {"x": meta("f4", [2, 1]), "y": meta("f4", [2, 1])}
    tensors |= {name: meta("f4", [1]) for name in ("mean", "variance", "z")}
    buffers = {"mean": np.array([4], np.float32), "variance": np.array([2], np.float32)}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y", "z"], buffers)
    call = _legal(load_model(path))
    y, z, *_ = call({"x": np.array([[1], [3]], np.float32)}).values()
    assert np.asarray(y).tolist() == [[-1], [1]]
    assert np.asarray(z).tolist() == [4 - 0.5 + 2]


def test_a_number_and_a_buffer_are_complex(tmp_path: Path) -> None:
    def product(name: str, other: Any) -> dict[str, Any]:
        return node("mul.Tensor", name, self="z", other=other)

    nodes = [
        node("view_as_complex.default", "z", self="x"),
        product("once", {"as_complex": {"real": 2.0, "imag": 1.0}}),
        node("mul.Tensor", "twice", self="once", other="turn"),
        node("view_as_real.default", "y", self="twice"),
    ]
    pairs = meta("f4", [1]) | {"dtype": 10}
    tensors = {"x": meta("f4", [1, 2]), "y": meta("f4", [1, 2])}
    tensors |= dict.fromkeys(("z", "once", "twice", "turn"), pairs)
    buffers = {"turn": np.array([1j], np.complex64)}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], buffers)
    found = _legal(load_model(path))({"x": np.array([[1, 3]], np.float32)})
    assert np.asarray(found["y"]).tolist() == [[-7, -1]]


def test_a_transposed_weight_of_a_shared_storage(tmp_path: Path) -> None:
    weight = meta("f4", [2, 3]) | {
        "strides": [{"as_int": 1}, {"as_int": 2}],
        "storage_offset": {"as_int": 1},
    }
    tensors = {"w": weight, "x": meta("f4", [2, 3]), "y": meta("f4", [2, 3])}
    storage = np.arange(8, dtype=np.float32)
    path = write(
        tmp_path / "m.pt2",
        [node("mul.Tensor", "y", self="x", other="w")],
        tensors,
        ["x"],
        ["y"],
        {"w": storage},
    )
    found = Calls(load_model(path))({"x": np.ones((2, 3), np.float32)})
    assert np.asarray(found["y"]).tolist() == [[1, 3, 5], [2, 4, 6]]


def test_all_unknown_operators_are_named(tmp_path: Path) -> None:
    nodes = [node("no_such.default", "a", self="x"), node("other.Tensor", "b", self="x")]
    tensors = {name: meta("f4", [2]) for name in "xab"}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["b"], {})
    with pytest.raises(FrontendError) as error:
        load_model(path)
    assert "aten.no_such.default" in str(error.value)
    assert "aten.other.Tensor" in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(ui8, i8, i16), (i1, ui8, ui8), (f16, bf16, f32), (i64, f16, f16), (f32, f64, f64)],
)
def test_promotion_of_elements(one: Attribute, other: Attribute, expected: Attribute) -> None:
    assert promoted_elements(one, other) == promoted_elements(other, one) == expected


def test_numbers_count_by_their_category() -> None:
    assert promoted([True, 2]) == i64
    assert promoted([1, 2.0]) == f32


def test_damaged_archives_end_in_a_message(tmp_path: Path) -> None:
    data = counter(tmp_path / "good.pt2").read_bytes()
    path = tmp_path / "m.pt2"
    words = [(place, word) for place in range(4, len(data) - 4, 211) for word in (0, 0x7FFFFFF0)]
    texts = [data[:size] for size in range(1, len(data), 401)]
    texts += [data[:p] + struct.pack("<I", w) + data[p + 4 :] for p, w in words]
    texts.append(data.replace(b'"as_int": 1}', b'"as_int":-9}'))
    texts.append(data.replace(b'"sizes"', b'"sises"'))
    disks = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 2)
    texts.append(data[:-22] + disks + data[-22:])
    messages: set[str] = set()
    for text in texts:
        path.write_bytes(text)
        try:
            load_model(path)
        except FrontendError as error:
            messages.add(str(error))
    assert all(str(path) in message for message in messages)


def test_as_many_strides_as_sizes(tmp_path: Path) -> None:
    sizes = {"size": {"as_ints": [2, 2]}, "stride": {"as_ints": [1]}}
    tensors = {"x": meta("f4", [4]), "y": meta("f4", [2, 2])}
    path = write(
        tmp_path / "m.pt2",
        [node("as_strided.default", "y", self="x", **sizes)],
        tensors,
        ["x"],
        ["y"],
        {},
    )
    with pytest.raises(LegalizationError, match="1 strides"):
        _legal(load_model(path))


def test_other_strides_are_those_of_the_storage(tmp_path: Path) -> None:
    """Of a transposed tensor, what is written through them as well."""
    transposed = meta("f4", [2, 3]) | {"strides": [{"as_int": 1}, {"as_int": 2}]}
    places = {"size": {"as_ints": [2, 2]}, "stride": {"as_ints": [1, 4]}}
    nodes = [
        node("clone.default", "c", self="x"),
        node("permute.default", "t", self="c", dims={"as_ints": [1, 0]}),
        node("as_strided.default", "s", self="t", **places),
        node("mul_.Scalar", "m", self="s", other={"as_int": 10}),
    ]
    tensors = {"x": meta("f4", [3, 2]), "c": meta("f4", [3, 2]), "t": transposed}
    tensors |= {
        name: meta("f4", [2, 2]) | {"strides": [{"as_int": 1}, {"as_int": 4}]} for name in "sm"
    }
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["t", "m"], {})
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    t, m = (np.asarray(value).tolist() for value in Calls(load_model(path))({"x": x}).values())
    assert t == [[0, 2, 40], [10, 3, 50]]
    assert m == [[0, 40], [10, 50]]


@pytest.mark.parametrize("word", ["amean", None])
def test_words_that_no_operator_knows(tmp_path: Path, word: str | None) -> None:
    given = {} if word is None else {"reduce": {"as_string": word}}
    scattered = node("scatter_reduce.two", "y", self="x", index="i", src="x", **given)
    tensors = {"x": meta("f4", [2]), "i": meta("i8", [2]), "y": meta("f4", [2])}
    turned = node("gelu.default", "z", self="x", approximate={"as_string": "erf"})
    path = write(
        tmp_path / "m.pt2", [scattered, turned], tensors | {"z": meta("f4", [2])}, "xi", "z", {}
    )
    with pytest.raises(LegalizationError) as raised:
        _legal(load_model(path))
    assert f"'reduce' is {word}, expected one of sum, prod, mean" in str(raised.value)
    assert "'approximate' is erf, expected one of none, tanh" in str(raised.value)


def test_a_likelihood_needs_classes_at_times(tmp_path: Path) -> None:
    given = {name: {"as_ints": [1]} for name in ("input_lengths", "target_lengths")}
    nodes = [node("ctc_loss.IntList", "y", log_probs="x", targets="t", **given)]
    tensors = {"x": meta("f4", [3]), "t": meta("i8", [1, 1]), "y": meta("f4", [])}
    path = write(tmp_path / "m.pt2", nodes, tensors, "xt", "y", {})
    with pytest.raises(LegalizationError, match="'log_probs' of 1 dimensions, expected 2 to 3"):
        _legal(load_model(path))


@pytest.mark.parametrize(
    "scales",
    [{"as_floats": [2.0, 2.0]}, {"as_tensors": [{"name": "x"}] * 3}],
    ids=["few", "tensors"],
)
def test_scales_that_are_no_numbers(tmp_path: Path, scales: dict[str, Any]) -> None:
    nodes = [node("upsample_nearest3d.vec", "y", input="x", scale_factors=scales)]
    tensors = {name: meta("f4", [1, 1, 2, 2, 2]) for name in "xy"}
    path = write(tmp_path / "m.pt2", nodes, tensors, "x", "y", {})
    with pytest.raises(LegalizationError, match="expected 3 numbers"):
        _legal(load_model(path))


@pytest.mark.parametrize(("rank", "count"), [(3, 2), (4, 3), (5, 2)])
def test_as_many_sizes_as_are_resized(tmp_path: Path, rank: int, count: int) -> None:
    given = {"output_size": {"as_ints": [4] * count}, "align_corners": {"as_bool": False}}
    nodes = [
        node("upsample_bilinear2d.vec", "y", input="x", **given),
        node("_upsample_bilinear2d_aa.default", "z", self="x", **given),
    ]
    tensors = {"x": meta("f4", [2] * rank)} | {one: meta("f4", [4] * 4) for one in "yz"}
    path = write(tmp_path / "m.pt2", nodes, tensors, "x", "yz", {})
    with pytest.raises(LegalizationError) as raised:
        _legal(load_model(path))
    text = f"found {rank - 2} dimensions to {count} sizes, expected 2"
    assert str(raised.value).count(text) == 2


def test_what_has_no_dimensions_has_no_parts(tmp_path: Path) -> None:
    at = {"dim": {"as_int": 0}}
    nodes = [
        node("slice.Tensor", "a", self="x", **at),
        node("select.int", "b", self="x", **at, index={"as_int": 0}),
        node("narrow.default", "c", self="x", **at, start={"as_int": 0}, length={"as_int": 1}),
        node("index.Tensor", "d", self="x", indices={"as_tensors": [{"name": "i"}]}),
        node("index.Tensor", "e", self="i", indices={"as_optional_tensors": []}),
    ]
    tensors = {name: meta("f4", []) for name in "xabcd"}
    tensors |= {"i": meta("i8", [1]), "e": meta("i8", [1])}
    path = write(tmp_path / "m.pt2", nodes, tensors, "xi", "abcde", {})
    with pytest.raises(LegalizationError) as raised:
        _legal(load_model(path))
    assert str(raised.value).count("found a scalar") == 3
    assert str(raised.value).count("indices of a tensor") == 2


def test_a_scalar_is_scattered_to(tmp_path: Path) -> None:
    nodes = [node("scatter_add.default", "y", self="x", dim={"as_int": -1}, index="i", src="v")]
    tensors = {name: meta("f4", []) for name in "xvy"} | {"i": meta("i8", [])}
    path = write(tmp_path / "m.pt2", nodes, tensors, "xiv", "y", {})
    feed = {"x": np.array(3, np.float32), "i": np.array(0), "v": np.array(7, np.float32)}
    found = np.asarray(_legal(load_model(path))(feed)["y"])
    assert (found.shape, found.item()) == ((), 10)


def test_any_strides_of_what_is_empty(tmp_path: Path) -> None:
    """No matter how the tensor lies; and a refused operator is told, not that its result lacks."""
    part = meta("f4", [2, 2]) | {"strides": [{"as_int": 3}, {"as_int": 1}]}

    def read(length: int) -> dict[str, Any]:
        places = {"size": {"as_ints": [length]}, "stride": {"as_ints": [2]}}
        nodes = [
            node("slice.Tensor", "t", self="x", **{"dim": {"as_int": 1}, "end": {"as_int": 2}}),
            node("as_strided.default", "s", self="t", **places),
            node("neg.default", "n", self="s"),
        ]
        tensors = {"x": meta("f4", [2, 3]), "t": part}
        tensors |= {name: meta("f4", [length]) | {"strides": [{"as_int": 2}]} for name in "sn"}
        path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["n"], {})
        return Calls(load_model(path))({"x": np.zeros((2, 3), np.float32)})

    assert np.asarray(read(0)["n"]).shape == (0,)
    with pytest.raises(FrontendError, match=r"'s' .*found other strides"):
        read(1)


def test_what_is_written_back_is_like_what_it_is_written_to(tmp_path: Path) -> None:
    """Also where it is returned as well."""
    tensors = {"x": meta("i4", []), "b": meta("i8", [2]), "y": meta("i4", [])}
    weights = {"b": np.array([5, 6], np.int64)}
    path = write(
        tmp_path / "m.pt2",
        [node("neg.default", "y", self="x")],
        tensors,
        ["x"],
        ["x", "y"],
        weights,
        {"b": "y"},
    )
    calls = Calls(load_model(path))
    found = calls({"x": np.array(7, np.int32)})
    assert np.asarray(found["x"]).dtype == np.int32
    for value in (found["y"], calls.states["b"]):
        assert (np.asarray(value).dtype, np.asarray(value).tolist()) == (np.int64, [-7, -7])


def test_other_archives_are_told_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/constants.pkl", b"")
    with pytest.raises(FrontendError, match="TorchScript"):
        load_model(path)


def test_what_grows_without_measure_is_refused(tmp_path: Path) -> None:
    """A program that is small only while it is compressed, and one number seen as a billion."""
    good = counter(tmp_path / "m.pt2")
    bomb = tmp_path / "bomb.pt2"
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            padding = b" " * (1 << 24) if name.endswith("model.json") else b""
            new.writestr(name, old.read(name) + padding)
    with pytest.raises(FrontendError, match="at most 16777216 are read"):
        load_model(bomb)
    huge = meta("f4", [1 << 30]) | {"strides": [{"as_int": 0}]}
    tensors = {"w": huge, "x": meta("f4", [1]), "y": huge}
    nodes = [node("mul.Tensor", "y", self="x", other="w")]
    path = write(tmp_path / "h.pt2", nodes, tensors, ["x"], ["y"], {"w": np.ones(1, np.float32)})
    with pytest.raises(FrontendError, match="'w' of 1073741824 elements in 4 bytes"):
        load_model(path)


@pytest.mark.parametrize("kind", ["buffer", "parameter"])
def test_what_a_program_writes_is_a_state(tmp_path: Path, kind: str) -> None:
    nodes = [node("add.Tensor", "y", self="x", other="w", alpha={"as_int": 1})]
    tensors = {name: meta("f4", [2]) for name in ("x", "w", "y")}
    held = {"w": np.array([1, 2], np.float32)}
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x"], ["y"], held, {"w": "y"}, kind)
    calls = Calls(load_model(path))
    x = np.array([10, 20], np.float32)
    found = [np.asarray(calls({"x": x})["y"]).tolist() for _ in range(2)]
    assert found == [[11, 22], [21, 42]]


def test_branches_give_as_many_results(tmp_path: Path) -> None:
    def branch(count: int) -> dict[str, Any]:
        ends = [{"as_tensor": {"name": "a"}}]
        values = {"a": meta("f4", [2])}
        graph = {"inputs": ends, "outputs": ends * count, "nodes": [], "tensor_values": values}
        return {"as_graph": {"name": "g", "graph": graph}}

    args = [{"as_tensor": {"name": "p"}}, branch(1), branch(2), {"as_tensors": [{"name": "x"}]}]
    cond: dict[str, Any] = {
        "target": "torch.ops.higher_order.cond",
        "inputs": [{"name": "", "arg": arg} for arg in args],
        "outputs": [{"as_tensors": [{"name": "y"}]}],
        "metadata": {},
        "name": "cond",
    }
    tensors = {"x": meta("f4", [2]), "y": meta("f4", [2]), "p": meta("b1", [])}
    path = write(tmp_path / "m.pt2", [cond], tensors, ["p", "x"], ["y"], {})
    with pytest.raises(FrontendError, match="branches of 1 and 2 results"):
        load_model(path)


def test_arguments_of_other_types(tmp_path: Path) -> None:
    """Every argument whose value is none that its operator takes is named, all at once."""
    nodes = [
        node("expand.default", "a", self="x", size={"as_int": 2}),
        node("expand.default", "e", self="x", size={"as_ints": []}),
        node("linalg_vector_norm.default", "b", self="x", ord={"as_string": "one"}),
        node("index.Tensor", "c", self="x"),
        node("cat.default", "d", tensors={"as_tensors": []}),
        node("constant_pad_nd.default", "g", self="x", pad={"as_ints": [1, 1, 1, 1]}),
        node("pad.default", "h", self="x", pad={"as_ints": [1]}),
        node(
            "_fft_r2c.default",
            "k",
            self="x",
            dim={"as_ints": [0]},
            normalization={"as_int": 3},
            onesided={"as_bool": True},
        ),
        node(
            "upsample_bicubic2d.vec",
            "f",
            input="x",
            output_size={"as_none": True},
            align_corners={"as_bool": False},
            scale_factors={"as_float": 2.0},
        ),
    ]
    for layers, name in ((0, "l"), (3, "m")):
        flags = {key: {"as_bool": False} for key in ("train", "bidirectional", "batch_first")}
        more = {"has_biases": {"as_bool": True}, "dropout": {"as_float": 0.0}}
        params = {"as_tensors": [{"name": "x"}] * 4}
        given = {"num_layers": {"as_int": layers}, "hx": "x", "params": params}
        nodes.append(node("gru.input", name, input="cube", **given, **flags, **more))
    names = "abcdefghklm"
    tensors = {name: meta("f4", [2]) for name in ["x", *names]}
    tensors["k"] |= {"dtype": 10}
    tensors["cube"] = meta("f4", [1, 1, 1])
    path = write(tmp_path / "m.pt2", nodes, tensors, ["x", "cube"], names, {})
    with pytest.raises(LegalizationError) as raised:
        _legal(load_model(path))
    for text in (
        "'size' is 2, expected a list, each an integer",
        "'self' of 1 dimensions, expected 0",
        "'ord' is one, expected a number",
        "'indices' is None, expected a list",
        "'tensors' is [], expected a list, each a tensor",
        "'scale_factors' is 2.0, expected a list, each a number",
        "4 amounts for 1 dimensions",
        "1 amounts for 1 dimensions",
        "the normalization 3",
        "4 weights for 0 layers",
        "4 weights for 3 layers",
    ):
        assert text in str(raised.value)


def test_boxes_are_suppressed_as_torchvision_does_it(tmp_path: Path) -> None:
    """
    Scores that are no numbers come first; corners stay as they are, so that what is inside out has
    a negative area and shares nothing; and 0.3 lies between two floats.
    """
    boxes = np.array(
        [
            [0, 0, 4, 4],
            [4, 0, 0, 4],  # the first one inside out
            [0, 0, 4, 4],
            [10, 10, 20, 11],
            [10, 10, 13, 11],  # 0.3 of the one before, in f32 a little more
            [np.nan, 0, 4, 4],
            [0, 0, 4, 4.25],
        ],
        np.float32,
    )
    scores = np.array([0.5, 0.4, np.nan, 0.9, 0.8, 0.3, 0.5], np.float32)
    suppression = node("x", "y", dets="b", scores="s", iou_threshold={"as_float": 0.3})
    suppression["target"] = "torch.ops.torchvision.nms.default"
    tensors = {"b": meta("f4", [7, 4]), "s": meta("f4", [7]), "y": meta("i8", ["u0"])}
    path = write(tmp_path / "m.pt2", [suppression], tensors, ["b", "s"], ["y"], {})
    (found,) = _legal(load_model(path))({"b": boxes, "s": scores}).values()
    assert np.asarray(found).tolist() == [2, 3, 1, 5]
