"""Operators of PyTorch at the edges of types, shapes and numbers, with what PyTorch answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lowerdeck
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.passes.legalize.walk import LegalizationError

from .pt2_archives import meta, node, size, write  # noqa: TID251

_CODES = {"u1": 1, "i4": 4, "i8": 5, "f2": 6, "f4": 7, "b1": 12}

INF, NAN = np.inf, np.nan


def _meta(dtype: np.dtype[Any], sizes: tuple[int | str, ...]) -> dict[str, Any]:
    return meta("f4", sizes) | {"dtype": _CODES[dtype.str[1:]]}


def _answer(
    path: Path,
    target: str,
    inputs: dict[str, NDArray[Any]],
    like: NDArray[Any],
    arguments: dict[str, dict[str, Any]],
) -> NDArray[Any]:
    """What one operator gives, of the type and shape of `like`."""
    names = {f"{name}_": array for name, array in inputs.items()}
    tensors = {name: _meta(array.dtype, array.shape) for name, array in names.items()}
    tensors["y"] = _meta(like.dtype, like.shape)
    one = node(target, "y", **{name: f"{name}_" for name in inputs}, **arguments)
    file = write(path / "m.pt2", [one], tensors, list(names), ["y"], {})
    module, _ = import_and_lower(str(file), "legal", CompileOptions())
    (found,) = Calls(module)(names).values()
    return np.asarray(found)


def _array(dtype: str, values: Any) -> NDArray[Any]:
    return np.array(values, dtype)


@pytest.mark.parametrize(
    ("target", "inputs", "arguments", "expected"),
    [
        # The root of -0 is -0, and that of -infinity none: other than powers.
        (
            "pow.Tensor_Scalar",
            {"self": _array("f4", [-0.0, -INF, 4])},
            {"exponent": {"as_float": -0.5}},
            _array("f4", [-INF, NAN, 0.5]),
        ),
        # Powers of half precision do not overflow.
        (
            "linalg_vector_norm.default",
            {"self": _array("f2", [100, 0, 100, 100])},
            {"ord": {"as_float": 3.0}},
            _array("f2", 144.25),
        ),
        (
            "linalg_vecdot.default",
            {"x": _array("f2", [300, 300]), "y": _array("f2", [300, -300])},
            {},
            _array("f2", 0),
        ),
        # A tensor is rounded before it meets a scalar.
        (
            "mul.Tensor",
            {"self": _array("i4", [100000, 2]), "other": _array("f2", 0.5)},
            {},
            _array("f2", [INF, 1]),
        ),
        # Numbers are added up before they become those of half precision.
        (
            "mean.default",
            {"self": _array("f4", [100000, -100000, 6])},
            {"dtype": {"as_scalar_type": 6}},
            _array("f2", 2),
        ),
        # The differences of integers are integers, and so are the sums of trapezoids.
        (
            "pairwise_distance.default",
            {"x1": _array("u1", [1, 3]), "x2": _array("u1", [2, 3])},
            {"p": {"as_float": 1.0}, "eps": {"as_float": 0.0}},
            _array("f4", 255),
        ),
        (
            "pairwise_distance.default",
            {"x1": _array("f4", 1), "x2": _array("f4", 3)},
            {"p": {"as_float": 2.0}, "eps": {"as_float": 0.0}},
            _array("f4", 2),
        ),
        (
            "cumulative_trapezoid.dx",
            {"y": _array("u1", [200, 100, 2])},
            {},
            _array("f4", [22, 73]),
        ),
        # What one neighbor is has nothing to do with the other one.
        (
            "quantile.scalar",
            {"self": _array("f4", [-INF, 5, 6])},
            {"q": {"as_float": 0.4}, "interpolation": {"as_string": "lower"}},
            _array("f4", -INF),
        ),
        ("median.default", {"self": _array("f4", [])}, {}, _array("f4", NAN)),
        (
            "linalg_matrix_norm.default",
            {"self": np.zeros((2, 0), np.float32)},
            {"ord": {"as_float": 1.0}},
            _array("f4", 0),
        ),
        # No dimension is none, for other reductions it is all of them.
        (
            "any.dims",
            {"self": _array("f4", [0, 2])},
            {"dim": {"as_ints": []}},
            _array("b1", [False, True]),
        ),
        (
            "scatter_reduce.two",
            {
                "self": _array("b1", [False, False]),
                "index": _array("i8", [0, 0]),
                "src": _array("b1", [True, True]),
            },
            {
                "dim": {"as_int": 0},
                "reduce": {"as_string": "amin"},
                "include_self": {"as_bool": False},
            },
            _array("b1", [True, False]),
        ),
        (
            "roll.default",
            {"self": _array("i4", [1, 2, 3, 4])},
            {"shifts": {"as_ints": [1, 1]}, "dims": {"as_ints": [0, 0]}},
            _array("i4", [3, 4, 1, 2]),
        ),
        (
            "unfold.default",
            {"self": _array("f4", 3)},
            {"dimension": {"as_int": 0}, "size": {"as_int": 1}, "step": {"as_int": 1}},
            _array("f4", [3]),
        ),
        (
            "nonzero_static.default",
            {"self": _array("f4", [[0, 2], [3, 0]])},
            {"size": size(3)},
            _array("i8", [[0, 1], [1, 0], [-1, -1]]),
        ),
        (
            "nonzero_static.default",
            {"self": _array("f4", [[4, 2], [3, 0]])},
            {"size": size(2)},
            _array("i8", [[0, 0], [0, 1]]),
        ),
        # Bits of other widths: the lowest ones come first, and signs are bits like others.
        (
            "view.dtype",
            {"self": _array("f4", [[1, -0.0], [NAN, -INF]])},
            {"dtype": {"as_scalar_type": 1}},
            np.array([[1, -0.0], [NAN, -INF]], np.float32).view(np.uint8),
        ),
        (
            "view.dtype",
            {"self": _array("u1", [[0, 0, 192, 127, 0, 0, 128, 191]])},
            {"dtype": {"as_scalar_type": 7}},
            _array("f4", [[NAN, -1]]),
        ),
        (
            "view.dtype",
            {"self": _array("i4", [-2, 65536 * 3 + 40000])},
            {"dtype": {"as_scalar_type": 5}},
            np.array([-2, 65536 * 3 + 40000], np.int32).view(np.int64),
        ),
        (
            "view.dtype",
            {"self": _array("i8", [-(2**63) + 5, -1])},
            {"dtype": {"as_scalar_type": 4}},
            _array("i4", [5, -(2**31), -1, -1]),
        ),
    ],
)  # fmt: skip
def test_an_operator(
    tmp_path: Path,
    target: str,
    inputs: dict[str, NDArray[Any]],
    arguments: dict[str, dict[str, Any]],
    expected: NDArray[Any],
) -> None:
    found = _answer(tmp_path, target, inputs, expected, arguments)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_a_determinant_with_its_factors(tmp_path: Path) -> None:
    """These are refused; that nothing reads them is the form that decompositions leave."""
    one = node("_linalg_slogdet.default", "sign", A="x")
    others = "size", "factors", "pivots"
    one["outputs"] += [{"as_tensor": {"name": name}} for name in others]
    tensors = {"x": meta("f4", [2, 2]), "factors": meta("f4", [2, 2])}
    tensors |= {name: meta("f4", []) for name in ("sign", "size")} | {"pivots": meta("i4", [2])}
    for outputs in (["sign", "size"], ["sign", "pivots"]):
        path = write(tmp_path / "m.pt2", [one], tensors, ["x"], outputs, {})
        if "pivots" in outputs:
            with pytest.raises(LegalizationError, match="found the factors of a matrix"):
                import_and_lower(str(path), "legal", CompileOptions())
            continue
        module, _ = import_and_lower(str(path), "legal", CompileOptions())
        found = Calls(module)({"x": np.array([[0, 2], [3, 1]], np.float32)})
        sign, extent = (np.asarray(each) for each in found.values())
        np.testing.assert_allclose([sign, extent], [-1, np.log(6)], rtol=1e-6)


@pytest.mark.parametrize(("number", "name"), [(9, "complex numbers of half"), (30, "eight bits")])
def test_other_types_are_not_said_to_be_broken(tmp_path: Path, number: int, name: str) -> None:
    tensors = {name: meta("f4", [2]) | {"dtype": number} for name in "xy"}
    path = write(
        tmp_path / "m.pt2", [node("alias.default", "y", self="x")], tensors, ["x"], ["y"], {}
    )
    with pytest.raises(FrontendError, match=f": found .*{name}"):
        import_and_lower(str(path), "legal", CompileOptions())


def test_a_remainder_of_zero_has_the_sign_of_the_dividend(tmp_path: Path) -> None:
    """Others have that of the divisor."""
    inputs = {
        "self": _array("f4", [0, -0.0, 6, -6, 5, -5, -1]),
        "other": _array("f4", [-7, 7, -3, 3, -3, 3, INF]),
    }
    expected = _array("f4", [0, -0.0, 0, -0.0, -1, 1, INF])
    found = _answer(tmp_path, "remainder.Tensor", inputs, expected, {})
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_writes_at_strides_of_what_lies_in_another_order_are_refused(tmp_path: Path) -> None:
    """The result would lie in the order of the memory."""
    turned = meta("f4", [2, 3]) | {"strides": [size(1), size(2)]}
    given = {
        "size": {"as_ints": [1]},
        "stride": {"as_ints": [1]},
        "storage_offset": {"as_int": 0},
    }
    one = node("as_strided_scatter.default", "y", self="x", src="s", **given)
    tensors = {"x": turned, "s": meta("f4", [1]), "y": meta("f4", [2, 3])}
    path = write(tmp_path / "m.pt2", [one], tensors, ["x", "s"], ["y"], {})
    with pytest.raises(FrontendError, match="found other strides"):
        import_and_lower(str(path), "legal", CompileOptions())


@pytest.mark.parametrize("target", ["scatter_add.default", "index_add.default"])
def test_many_numbers_of_half_precision_are_added_up_in_single_precision(
    tmp_path: Path, target: str
) -> None:
    """3000 ones are more than half precision can count one by one, also in C."""
    source = "src" if target.startswith("scatter") else "source"
    names = {"self": "x", "index": "i", source: "s"}
    half = {"dtype": 6}
    tensors = {"x": meta("f4", [2]) | half, "i": meta("i8", [3000]), "s": meta("f4", [3000]) | half}
    tensors["y"] = tensors["x"]
    one = node(target, "y", **names, dim={"as_int": 0})
    path = write(tmp_path / "m.pt2", [one], tensors, [*"xis"], ["y"], {})
    model = lowerdeck.compile(path, target="c99", cache=False)
    x, s = np.zeros(2, np.float16), np.ones(3000, np.float16)
    (found,) = model(x, np.zeros(3000, np.int64), s)
    assert np.asarray(found).tolist() == [3000, 0]
