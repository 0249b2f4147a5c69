"""Legalized operators give the numbers of onnx.reference, for every way their sizes are known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.context import Context

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass

Array = NDArray[Any]
OPSET = 20


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _floats(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def _info(name: str, array: Array, symbolic: bool) -> onnx.ValueInfoProto:
    """Vectors of integers keep their length: it decides ranks."""
    known = not symbolic or (array.ndim == 1 and array.dtype == np.int64)
    shape = [size if known else f"{name}{k}" for k, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def _model(
    node: onnx.NodeProto,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    symbolic: bool,
    opset: int = OPSET,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "case",
        [_info(name, array, symbolic) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def _check(
    op_type: str,
    data: Sequence[Array],
    integers: Sequence[Array] = (),
    outputs: int = 1,
    inputs: str | None = None,
    **attributes: Any,
) -> None:
    """With dimensions static and symbolic, and integer operands constant and from data."""
    values = {f"x{k}": array for k, array in enumerate(data)}
    numbers = {f"i{k}": array for k, array in enumerate(integers)}
    names = [*values, *numbers] if inputs is None else inputs.split(",")
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    everything = {**values, **numbers}
    static = _model(node, everything, {}, symbolic=False)
    evaluator: Any = ReferenceEvaluator(static)
    expected = evaluator.run(None, everything)
    for symbolic, constant in itertools.product((False, True), repeat=2):
        given = values if constant else everything
        model = _model(node, given, numbers if constant else {}, symbolic)
        module = import_model(model)
        LegalizeOnnxPass().apply(Context(), module)
        module.verify()
        found = list(run_module(module, given).values())
        for array, reference in zip(found, expected, strict=True):
            assert isinstance(array, np.ndarray)
            np.testing.assert_allclose(array, reference, rtol=1e-4, atol=1e-5)
            assert array.dtype == reference.dtype


END, BEGIN = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(1, END, 1), (-3, -1, 1), (-9, 9, 2), (4, BEGIN, -1), (-1, -9, -2), (5, 2, 1), (9, 1, -3)],
)
def test_slice(start: int, end: int, step: int) -> None:
    operands = [_ints(start, 0), _ints(end, 2), _ints(0, -1), _ints(step, 1)]
    _check("Slice", [_floats(5, 3)], operands)


@pytest.mark.parametrize(("start", "end"), [(-3, -1), (-9, 4), (1, -1), (-2, END), (4, 2), (0, -9)])
def test_slice_without_steps(start: int, end: int) -> None:
    """Bounds from data of which the direction is known: indices from the end by symbols."""
    _check("Slice", [_floats(5, 3)], [_ints(start, -2), _ints(end, 9)])


@pytest.mark.parametrize("shape", [(0, -1), (-1, 2, 0), (6, 4), (2, 0, 2, 2)])
def test_reshape(shape: tuple[int, ...]) -> None:
    _check("Reshape", [_floats(2, 3, 4)], [_ints(*shape)])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    operands = [_ints(1, 2, 0, 1), _ints(2, 0)]
    _check("Pad", [_floats(3, 2, 4)], operands, inputs="x0,i0,,i1", mode=mode)


@pytest.mark.parametrize("axes", [(0,), (-1, 1), (3, 0)])
def test_unsqueeze_and_squeeze(axes: tuple[int, ...]) -> None:
    _check("Unsqueeze", [_floats(2, 3)], [_ints(*axes)])
    shape = list(np.expand_dims(_floats(2, 3), axes).shape)
    _check("Squeeze", [_floats(*shape)], [_ints(*axes)])


@pytest.mark.parametrize("size", [(5, 2), (2, 7), (4, 4)])
def test_center_crop_pad(size: tuple[int, int]) -> None:
    _check("CenterCropPad", [_floats(4, 5)], [_ints(*size)])


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(largest: int) -> None:
    x = np.array([[3, 1, 3, 2], [0, 5, 5, 1]], np.float32)
    _check("TopK", [x], [_ints(3)], outputs=2, largest=largest)


def test_nonzero_compress_and_unique() -> None:
    x = np.array([[2, 0, 2], [0, 7, 2]], np.float32)
    _check("NonZero", [x])
    _check("Compress", [x, np.array([False, True])], axis=1)
    _check("Unique", [x], outputs=4)
    _check("Unique", [x[:, [0, 2, 1, 0]]], outputs=4, axis=1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
)
def test_resize(mode: str, coordinates: str) -> None:
    _check(
        "Resize",
        [_floats(1, 1, 3, 4)],
        [_ints(1, 1, 5, 2)],
        inputs="x0,,,i0",
        mode=mode,
        coordinate_transformation_mode=coordinates,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding: str) -> None:
    _check(
        "GridSample", [_floats(1, 2, 3, 4), _floats(1, 2, 3, 2)], mode=mode, padding_mode=padding
    )


def test_grid_sample_without_channels() -> None:
    node = helper.make_node("GridSample", ["x", "grid"], ["z"])
    inputs = {"x": _floats(2, 0, 3, 4), "grid": _floats(2, 5, 6, 2)}
    module = import_model(_model(node, inputs, {}, symbolic=False, opset=20))
    LegalizeOnnxPass().apply(Context(), module)
    assert np.asarray(run_module(module, inputs)["z"]).shape == (2, 0, 5, 6)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_signed_shift(dtype: type[np.integer[Any]], direction: str) -> None:
    """A signed number keeps its sign to the right, as in numpy."""
    x, y = np.array([-128, -1, 5, 127], dtype), np.array([3, 1, 2, 6], dtype)
    node = helper.make_node("BitShift", ["x", "y"], ["z"], direction=direction)
    module = import_model(_model(node, {"x": x, "y": y}, {}, symbolic=False, opset=28))
    LegalizeOnnxPass().apply(Context(), module)
    found = run_module(module, {"x": x, "y": y})["z"]
    np.testing.assert_array_equal(np.asarray(found), x << y if direction == "LEFT" else x >> y)


def test_reshape_to_zero() -> None:
    """With `allowzero` a zero is a dimension of none, and copies nothing."""
    _check("Reshape", [_floats(0, 2)], [_ints(3, 0)], allowzero=1)


@pytest.mark.parametrize("size", [2, 4])
def test_lrn_of_even_size(size: int) -> None:
    """One more channel after than before; ONNX Runtime refuses even sizes."""
    # The evaluator takes the length of the batch for the number of channels.
    _check("LRN", [_floats(5, 5, 2, 2)], size=size, alpha=0.5, bias=1.5)


def test_unique_with_nan() -> None:
    """NaN is one element, and none of the numbers."""
    x = np.array([np.nan, 1, np.nan, -np.inf, 1, np.inf], np.float32)
    _check("Unique", [x], outputs=4)


def test_squeeze_of_everything() -> None:
    """The axes are all that the tensor has, and not known: the shape of the result is empty."""
    _check("Squeeze", [_floats(1, 1)], [_ints(0, 1)])
    _check("Squeeze", [_floats(1)], [_ints(-1)])


def test_gemm_reads_nothing_that_counts_nothing() -> None:
    """With `beta` 0, C may be infinite."""
    c = np.array([np.inf, np.nan, 1], np.float32)
    _check("Gemm", [_floats(2, 4), _floats(4, 3), c], beta=0.0)
    _check("Gemm", [_floats(2, 4), _floats(4, 3), c], beta=0.0, alpha=0.5)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_shrink_of_integers_is_rounded_in_the_end(dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 100] if limits.min == 0 else [-4, -2, -1, 0, 1, 2, 4]
    x = np.array(numbers, dtype)
    for bias in (0.0, 1.0, 1.5):
        _check("Shrink", [x], bias=bias, lambd=1.5)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose_of_half_precision_is_rounded_once(groups: int) -> None:
    x, w = _floats(1, 4, 3, 3), _floats(4, 2, 2, 2)
    half = [array.astype(np.float16) for array in (x, w)]
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=groups, strides=[2, 1])
    found = dict[str, Array]()
    for name, arrays in {"half": half, "wide": [a.astype(np.float32) for a in half]}.items():
        inputs = dict(zip("xw", arrays, strict=True))
        module = import_model(_model(node, inputs, {}, symbolic=False))
        LegalizeOnnxPass().apply(Context(), module)
        result = run_module(module, inputs)["y"]
        assert isinstance(result, np.ndarray)
        found[name] = result
    np.testing.assert_array_equal(found["half"], found["wide"].astype(np.float16))


def test_losses_of_bfloat16() -> None:
    """The functions that define them do not take it; they are computed in f32."""
    x = _floats(2, 3, 4).astype(ml_dtypes.bfloat16)
    target = np.array([[0, 1, 2, 0], [2, 2, 1, 0]])
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["x", "t"], ["y", "p"], reduction="sum")
    inputs = {"x": x, "t": target}
    module = import_model(_model(node, inputs, {}, symbolic=False))
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    found = run_module(module, inputs)
    wide = x.astype(np.float64)
    logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    loss = -np.take_along_axis(logs, target[:, None], 1).sum()
    for name, expected in {"y": loss, "p": logs}.items():
        result = found[name]
        assert isinstance(result, np.ndarray)
        assert result.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2**-7)


def test_hard_swish_of_doubles_has_the_alpha_of_its_function() -> None:
    inputs = {"x": np.array([-2.0, 1.0, 2.5])}
    model = _model(helper.make_node("HardSwish", ["x"], ["y"]), inputs, {}, symbolic=False)
    evaluator: Any = ReferenceEvaluator(model)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    found = run_module(module, inputs)["y"]
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, evaluator.run(None, inputs)[0], rtol=1e-15)


@pytest.mark.parametrize("op_type", ["InstanceNormalization", "LayerNormalization"])
def test_normalization_whose_parameters_know_the_size(op_type: str) -> None:
    """Of the input nothing is known, of scale and bias everything."""
    inputs = {"x": _floats(2, 3, 3)}
    parameters = {"s": _floats(3), "b": _floats(3)}
    node = helper.make_node(op_type, ["x", "s", "b"], ["y"])
    model = _model(node, inputs, parameters, symbolic=True)
    evaluator: Any = ReferenceEvaluator(model)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    found = run_module(module, inputs)["y"]
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, evaluator.run(None, inputs)[0], rtol=1e-5, atol=1e-6)


def test_regions_pass_over_what_is_not_a_number() -> None:
    x = _floats(1, 2, 6, 6)
    x[0, 0, ::2, ::3], x[0, 1, :3, :3] = np.nan, np.nan
    rois = np.array([[0, 0, 0, 5, 5]], np.float32)
    node = helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[2, 2])
    bins = x.reshape(2, 2, 3, 2, 3)
    best = np.where(np.isnan(bins), -np.inf, bins).max((2, 4))
    for symbolic in (False, True):
        module = import_model(_model(node, {"x": x, "rois": rois}, {}, symbolic))
        LegalizeOnnxPass().apply(Context(), module)
        found = run_module(module, {"x": x, "rois": rois})["y"]
        np.testing.assert_array_equal(found, best[None])


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("open_input", ["w", "b"])
def test_a_bias_has_an_element_a_channel_if_sizes_are_open(op_type: str, open_input: str) -> None:
    arrays = {"x": _floats(1, 2, 4, 4), "w": _floats(2, 2, 3, 3), "b": _floats(2)}
    node = helper.make_node(op_type, list(arrays), ["y"])
    model = _model(node, arrays, {}, False)
    for value in model.graph.input:
        if value.name == open_input:
            value.CopyFrom(_info(value.name, arrays[value.name], True))
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    (expected,) = cast(Any, ReferenceEvaluator(model)).run(None, arrays)
    found: Any = run_module(module, arrays)["y"]
    np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_erf_of_integers(dtype: type[np.generic]) -> None:
    numbers = [0, 1, 3, 4, 100] + ([] if dtype is np.uint16 else [-1, -3, -4, -100])
    x = np.array(numbers).astype(dtype)
    model = _model(helper.make_node("Erf", ["x"], ["y"]), {"x": x}, {}, False, opset=9)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    (expected,) = cast(Any, ReferenceEvaluator(model)).run(None, {"x": x})
    found: Any = run_module(module, {"x": x})["y"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))
    assert found[:5].tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("large", [np.inf, np.nan])
def test_col2im_adds_to_no_other_place(large: float) -> None:
    x = _floats(1, 6, 16)
    x[0, 4, 7] = large
    image = {"i": _ints(4, 5), "b": _ints(2, 3)}
    node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], pads=[0, 1, 1, 0])
    model = _model(node, {"x": x}, image, False, opset=18)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    (expected,) = cast(Any, ReferenceEvaluator(model)).run(None, {"x": x})
    found: Any = run_module(module, {"x": x})["y"]
    assert np.isfinite(found).sum() == found.size - 1
    np.testing.assert_allclose(found, expected, 1e-6, 1e-6)


@pytest.mark.parametrize("length", [2, 6, 7, 12])
def test_spectra_of_real_signals(length: int) -> None:
    """The first element, and of even lengths the middle one, is real without any rounding."""
    x = _floats(3, length, 1)
    node = helper.make_node("DFT", ["x", "", "a"], ["y"])
    model = _model(node, {"x": x}, {"a": np.array(1)}, False, opset=20)
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    found: Any = run_module(module, {"x": x})["y"]
    expected = np.fft.fft(x[:, :, 0].astype(np.float64))
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, 1e-5, 1e-6)
    assert (found[:, 0, 1] == 0).all()
    assert length % 2 or (found[:, length // 2, 1] == 0).all()
