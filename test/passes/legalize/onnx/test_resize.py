"""Where new elements lie among the old ones: by sizes exactly, by scales as the witnesses agree."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.context import Context

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass

Array = NDArray[Any]
HALF = Fraction(1, 2)
PLACES: Mapping[str, Callable[[int, int, int], Fraction]] = {
    "asymmetric": lambda x, n, m: Fraction(x * n, m),
    "half_pixel": lambda x, n, m: (x + HALF) * n / m - HALF,
    "half_pixel_symmetric": lambda x, n, m: (x + HALF) * n / m - HALF,
    "pytorch_half_pixel": lambda x, n, m: (x + HALF) * n / m - HALF if m > 1 else Fraction(0),
    "align_corners": lambda x, n, m: Fraction(x * (n - 1), m - 1) if m > 1 else Fraction(0),
    "tf_half_pixel_for_nn": lambda x, n, m: (x + HALF) * n / m,
}
"""The place of element x of m among n, as the specification defines it."""
ROUNDINGS: Mapping[str, Callable[[Fraction], int]] = {
    "round_prefer_floor": lambda place: math.ceil(place - HALF),
    "round_prefer_ceil": lambda place: math.floor(place + HALF),
    "floor": math.floor,
    "ceil": math.ceil,
}
SCALES = (0.25, 0.3, 2 / 3, 0.8, 1.25, 4 / 3, 2.0, 2.6)


def _model(
    olds: Sequence[int], news: Sequence[Array], *, by_data: bool, opset: int = 18, **attributes: Any
) -> tuple[ModelProto, dict[str, Array]]:
    """One Resize of a row for each length; sizes or scales are constants, or inputs."""
    nodes: list[NodeProto] = []
    infos: list[ValueInfoProto] = []
    # Before version 13 what is absent has no elements.
    absent = "" if opset >= 13 else "none"
    constants = [numpy_helper.from_array(np.zeros(0, np.float32), "none")] if absent else []
    inputs: dict[str, Array] = {}
    for k, (old, new) in enumerate(zip(olds, news, strict=True)):
        names = [f"x{k}", absent, *[absent] * (new.dtype == np.int64), f"n{k}"]
        nodes.append(helper.make_node("Resize", names, [f"y{k}"], **attributes))
        given = {f"x{k}": np.arange(old, dtype=np.float32).reshape(1, old)}
        if by_data:
            given[f"n{k}"] = new
        else:
            constants.append(numpy_helper.from_array(new, f"n{k}"))
        for name, array in given.items():
            shape = [1, f"d{k}"] if by_data and name[0] == "x" else array.shape
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(name, element, shape))
        inputs.update(given)
    results = [helper.make_empty_tensor_value_info(f"y{k}") for k in range(len(nodes))]
    graph = helper.make_graph(nodes, "resize", infos, results, constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), inputs


def _interpreted(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    return [np.asarray(array) for array in run_module(module, inputs).values()]


@pytest.mark.parametrize("by_data", [False, True])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", PLACES)
def test_nearest_by_sizes(coordinates: str, rounding: str, by_data: bool) -> None:
    pairs = [(1, 3), (2, 5), (3, 1), (4, 4), (5, 3), (6, 9), (7, 8), (10, 6), (13, 7), (7, 19)]
    model, inputs = _model(
        [n for n, _ in pairs],
        [np.array([1, m], np.int64) for _, m in pairs],
        by_data=by_data,
        opset=11 if coordinates == "tf_half_pixel_for_nn" else 18,
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
    )
    for (n, m), found in zip(pairs, _interpreted(model, inputs), strict=True):
        places = [ROUNDINGS[rounding](PLACES[coordinates](x, n, m)) for x in range(m)]
        # Without a change of size nothing is moved.
        expected = range(n) if n == m else [min(max(place, 0), n - 1) for place in places]
        assert found[0].tolist() == list(expected), (n, m)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", list(PLACES)[:5])
def test_scales_as_the_witnesses_agree(coordinates: str, mode: str) -> None:
    """Scales that are constants, and those that are inputs: the witnesses take both alike."""
    for turn, rounding in enumerate(ROUNDINGS if mode == "nearest" else ["floor"]):
        pairs = [*itertools.product((10,), SCALES), (2, 1.5), (5, 1.5), (7, 0.8), (9, 2.6)]
        pairs = [(n, s) for n, s in pairs if int(n * np.float32(s))]
        if mode == "nearest":  # each scale with half of the roundings
            pairs = pairs[(turn + turn // 2) % 2 :: 2]
        (constant, known), (model, inputs) = (
            _model(
                [n for n, _ in pairs],
                [np.array([1, s], np.float32) for _, s in pairs],
                by_data=by_data,
                mode=mode,
                coordinate_transformation_mode=coordinates,
                nearest_mode=rounding,
            )
            for by_data in (False, True)
        )
        evaluator: Any = ReferenceEvaluator(model)
        session: Any = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        witnesses = zip(evaluator.run(None, inputs), session.run(None, inputs), strict=True)
        found = zip(_interpreted(constant, known), _interpreted(model, inputs), strict=True)
        for pair, results, (first, second) in zip(pairs, found, witnesses, strict=True):
            assert {result.shape for result in results} == {second.shape}
            if first.shape != second.shape:
                continue  # 5 x 2.6 is 13 in f32, and less than that in f64
            agreed = np.abs(first - second) < 1e-4
            for result in results:
                np.testing.assert_allclose(
                    result[agreed], first[agreed], 1e-4, 1e-4, err_msg=str(pair)
                )


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("coordinates", list(PLACES)[:5])
def test_common_scale(coordinates: str, policy: str) -> None:
    """One scale for all axes: the fraction of one of them."""
    x = np.arange(3 * 4, dtype=np.float32).reshape(3, 4)
    # Each size with half of the roundings.
    pairs = [
        (sizes, rounding)
        for k, sizes in enumerate([(2, 4), (5, 3), (7, 9)])
        for rounding in list(ROUNDINGS)[k % 2 :: 2]
    ]
    for sizes, rounding in pairs:
        attributes = {
            "mode": "nearest",
            "coordinate_transformation_mode": coordinates,
            "nearest_mode": rounding,
            "keep_aspect_ratio_policy": policy,
        }
        node = helper.make_node("Resize", ["x", "", "", "n"], ["y"], **attributes)
        result = [helper.make_empty_tensor_value_info("y")]
        expected: Array | None = None
        for dims in ([3, 4], ["h", "w"]):
            infos = [
                helper.make_tensor_value_info("x", 1, dims),
                helper.make_tensor_value_info("n", 7, [2]),
            ]
            graph = helper.make_graph([node], "resize", infos, result)
            opsets = [helper.make_opsetid("", 18)]
            model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
            inputs = {"x": x, "n": np.array(sizes, np.int64)}
            if expected is None:
                evaluator: Any = ReferenceEvaluator(model)
                expected = np.asarray(evaluator.run(None, inputs)[0])
            (found,) = _interpreted(model, inputs)
            np.testing.assert_array_equal(found, expected, err_msg=f"{sizes} {rounding}")


def _doubles(size: int, x: Array, **attributes: Any) -> tuple[ModelProto, Array]:
    model, _ = _model([x.size], [np.array([1, size], np.int64)], by_data=False, **attributes)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    return model, _interpreted(model, {"x0": x})[0]


@pytest.mark.parametrize("size", [3, 5, 11])
def test_doubles_have_weights_in_double(size: int) -> None:
    """The official evaluator has those of cubic interpolation in f32."""
    x = np.random.default_rng(0).standard_normal((1, 7))
    model, found = _doubles(size, x, mode="linear", antialias=1)
    evaluator: Any = ReferenceEvaluator(model)
    np.testing.assert_allclose(found, evaluator.run(None, {"x0": x})[0], 1e-12, 1e-13)

    places = (np.arange(size) + 0.5) * 7 / size - 0.5
    index = np.floor(places).astype(int)[:, None] + np.arange(-1, 3)
    far, a = np.abs(places[:, None] - index), -0.75
    near = ((a + 2) * far - (a + 3)) * far * far + 1
    weights = np.where(far <= 1, near, ((a * far - 5 * a) * far + 8 * a) * far - 4 * a)
    inside = np.where((index < 0) | (index > 6), 0, weights)
    for outside, used in ((0, weights), (1, inside / inside.sum(1, keepdims=True))):
        _, found = _doubles(size, x, mode="cubic", cubic_coeff_a=a, exclude_outside=outside)
        expected = (used * x[0, np.clip(index, 0, 6)]).sum(1)
        np.testing.assert_allclose(found[0], expected, 1e-12, 1e-13)
