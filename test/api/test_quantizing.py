"""Models that are computed from bytes: `quantize`, and `compile` with what it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck.budgets import Budget, BudgetError, switched
from lowerdeck.calibration import CalibrationError
from lowerdeck.compiler import CompileOptions, compile_with, generate, import_and_lower
from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.dialects.core.types import element_type, ui8
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporting import export_with
from lowerdeck.metadata import TensorInfo
from lowerdeck.observing import METHODS, Histogram, range_of
from lowerdeck.passes.linear.rounding import Moments, as_halves, as_halves_for
from lowerdeck.passes.machinery.options import OptionError
from lowerdeck.passes.machinery.ranges import Ranges
from lowerdeck.quantizing import quantize
from lowerdeck.rounding import weight_of
from lowerdeck.samples import samples_of
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.report.ranges import html_of_ranges, totals_of

Array = NDArray[Any]

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def weights(*shape: int) -> Array:
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return np.asarray(values / np.sqrt(np.prod(shape[1:])), np.float32)


def write(path: Path, nodes: list[Any], shape: list[Any], constants: Mapping[str, Array]) -> str:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return str(path)


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def convolutions(path: Path) -> str:
    """A pool, a residual connection, a depthwise convolution and a product with one row."""
    nodes = [
        node("Conv", "x w0 b0", "a", pads=[1] * 4),
        node("Relu", "a", "ar"),
        node("MaxPool", "ar", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p w1 b1", "c", pads=[1] * 4),
        node("Add", "c p", "e"),
        node("Conv", "e w2", "f", pads=[1] * 4, group=16),
        node("GlobalAveragePool", "f", "g"),
        node("Flatten", "g", "h"),
        node("MatMul", "h w3", "y"),
    ]
    constants = {
        "w0": weights(16, 3, 3, 3),
        "b0": weights(16),
        "w1": weights(16, 16, 3, 3),
        "b1": weights(16),
        "w2": weights(16, 1, 3, 3),
        "w3": weights(16, 10),
    }
    return write(path, nodes, [1, 3, 12, 12], constants)


def tokens(path: Path) -> str:
    """A block of a transformer without its attention."""
    nodes = [
        node("LayerNormalization", "x s", "n"),
        node("MatMul", "n w0", "a"),
        node("Relu", "a", "b"),
        node("MatMul", "b w1", "c"),
        node("Add", "c x", "y"),
    ]
    constants = {"s": weights(32) + 1, "w0": weights(32, 64), "w1": weights(64, 32)}
    return write(path, nodes, [1, "t", 32], constants)


def recurrent(path: Path) -> str:
    """A cell whose input is known for all steps, and a product of its states."""
    constants = {
        "w": weights(1, 4 * 24, 12),
        "r": weights(1, 4 * 24, 24),
        "v": weights(24, 5),
        "axes": np.array([1]),
    }
    nodes = [
        node("LSTM", "x w r", "h", hidden_size=24),
        node("Squeeze", "h axes", "s"),
        node("MatMul", "s v", "y"),
    ]
    return write(path, nodes, [7, 1, 12], constants)


def images(count: int, seed: int = 0) -> Iterator[Array]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield np.asarray(random.standard_normal((1, 3, 12, 12)), np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return convolutions(tmp_path_factory.mktemp("model") / "net.onnx")


@pytest.fixture(scope="module")
def ranges(model: str) -> Ranges:
    return quantize(model, images(8))


def test_the_c_computes_what_the_interpreter_does(model: str, ranges: Ranges) -> None:
    assert [layer.node for layer in ranges.layers] == ["a", "c", "f", "y, g"]
    assert all(layer.low is not None and layer.low <= 0 for layer in ranges.layers)
    options = CompileOptions(target="c99", precision="int8", ranges=ranges)
    module, _ = import_and_lower(model, "optimized", options)
    text = str(module)
    assert text.count(" in i32") == 4
    x = next(images(1, seed=1))
    expected = run_module(module, {"x": x})["y"]
    for target in ("native", "c99"):
        found = compile_with(model, replace(options, target=target), cache=False)({"x": x})["y"]
        np.testing.assert_allclose(found, np.asarray(expected), 0, 1e-6)
    exact = lowerdeck.compile(model, cache=False)({"x": x})["y"]
    assert 0 < np.linalg.norm(found - exact) < 0.05 * np.linalg.norm(exact)


def test_parts_are_put_together_in_bytes(tmp_path: Path) -> None:
    """Between convolutions no floats are left, though some are joined, also twice."""
    nodes = [
        node("Conv", "x w0", "a", pads=[1] * 4),
        node("Relu", "a", "r"),
        node("Conv", "r w1", "b", pads=[1] * 4),
        node("Conv", "r w2", "c"),
        node("Relu", "c", "d"),
        node("Concat", "b d", "e", axis=1),
        node("Concat", "e r", "f", axis=1),
        node("Conv", "f w3", "y", pads=[1] * 4),
    ]
    constants = {
        "w0": weights(8, 3, 3, 3),
        "w1": weights(8, 8, 3, 3),
        "w2": weights(8, 8, 1, 1),
        "w3": weights(4, 24, 3, 3),
    }
    model = write(tmp_path / "net.onnx", nodes, [1, 3, 12, 12], constants)
    options = CompileOptions(target="c99", precision="int8", ranges=quantize(model, images(8)))
    module, _ = import_and_lower(model, "optimized", options)
    joined = [op for op in module.walk() if isinstance(op, ConcatOp)]
    assert joined
    assert all(element_type(value) == ui8 for op in joined for value in op.operands)
    x = next(images(1, seed=1))
    expected = run_module(module, {"x": x})["y"]
    native = replace(options, target="native")
    result = compile_with(model, native, cache=False)({"x": x})["y"]
    np.testing.assert_allclose(result, np.asarray(expected), 0, 1e-6)
    exact = lowerdeck.compile(model, cache=False)({"x": x})["y"]
    assert 0 < np.linalg.norm(result - exact) < 0.02 * np.linalg.norm(exact)


def test_products_of_loops_go_by_rows(tmp_path: Path) -> None:
    """What a cell makes of its state is computed from bytes, by the range that it has in a step."""
    model = recurrent(tmp_path / "net.onnx")
    random = np.random.default_rng(0)
    samples = [np.asarray(random.standard_normal((7, 1, 12)), np.float32) for _ in range(9)]
    found = quantize(model, samples[1:])
    assert [layer.low is None for layer in found.layers].count(True) == 1
    searched = quantize(model, samples[1:], max_drop=("error", 0.05))
    assert all(layer.precision == "int8" for layer in searched.layers)
    options = CompileOptions(target="c99", precision="int8", ranges=found)
    module, _ = import_and_lower(model, "optimized", options)
    (loop,) = (op for op in module.walk() if isinstance(op, LoopOp))
    assert str(loop).count(" in i32") == 1
    expected = np.asarray(run_module(module, {"x": samples[0]})["y"])
    compiled = compile_with(model, replace(options, target="native"), cache=False)
    result = compiled({"x": samples[0]})["y"]
    # A number that lies between two bytes may become the other one.
    np.testing.assert_allclose(result, expected, 0, 1e-2)
    exact = lowerdeck.compile(model, cache=False)({"x": samples[0]})["y"]
    assert 0 < np.linalg.norm(result - exact) < 0.02 * np.linalg.norm(exact)


def test_transposed_convolutions_in_steps_are_layers(tmp_path: Path) -> None:
    """Each result is a sum of products of one position; those whose windows overlap stay in f32."""
    nodes = [
        node("Conv", "x w0", "a", pads=[1] * 4),
        node("ConvTranspose", "a w1 b1", "b", strides=[2, 2]),
        node("ConvTranspose", "b w2", "y", strides=[2, 2]),
    ]
    # One scale for all filters would lose most of the small ones.
    w1 = weights(16, 8, 2, 2) * np.logspace(-3, 0, 8, dtype=np.float32).reshape(-1, 1, 1)
    constants = {"w0": weights(16, 3, 3, 3), "w1": w1, "b1": weights(8), "w2": weights(8, 4, 3, 3)}
    model = write(tmp_path / "net.onnx", nodes, [1, 3, 12, 12], constants)
    found = quantize(model, images(8))
    assert [layer.node for layer in found.layers] == ["a", "b"]
    searched = quantize(model, images(8), max_drop=("error", 0.02))
    assert [layer.precision for layer in searched.layers] == ["int8", "int8"]
    options = CompileOptions(target="c99", precision="int8", ranges=found)
    module, _ = import_and_lower(model, "optimized", options)
    assert str(module).count(" in i32") == 2
    x = next(images(1, seed=1))
    expected = run_module(module, {"x": x})["y"]
    native = replace(options, target="native")
    result = compile_with(model, native, cache=False)({"x": x})["y"]
    np.testing.assert_allclose(result, np.asarray(expected), 0, 1e-6)
    exact = lowerdeck.compile(model, cache=False)({"x": x})["y"]
    assert 0 < np.linalg.norm(result - exact) < 0.01 * np.linalg.norm(exact)


@pytest.mark.parametrize("follows", [False, True])
def test_a_last_layer_takes_two_bytes_earlier(tmp_path: Path, *, follows: bool) -> None:
    """Where that costs next to nothing, and no other layer comes after it."""
    nodes = [
        node("Conv", "x w0", "a", pads=[1] * 4),
        node("GlobalAveragePool", "a", "p"),
        node("Flatten", "p", "h"),
        node("Mul", "h h", "s"),
        node("Mul", "s s", "q"),
        node("Mul", "q h", "t"),
        node("MatMul", "t w1", "m" if follows else "y"),
        *([node("Relu", "m", "r"), node("MatMul", "r w2", "y")] if follows else []),
    ]
    constants = {"w0": weights(16, 3, 3, 3), "w1": weights(16, 10), "w2": weights(10, 4)}
    path = write(tmp_path / "model.onnx", nodes, [1, 3, 12, 12], constants)
    found = quantize(path, images(8)).layers
    assert [layer.bytes for layer in found[:2]] == [1, 1 if follows else 2]


def test_numbers_far_from_others_take_two_bytes(model: str, ranges: Ranges) -> None:
    """The sum of two products of bytes, which is near that of floats."""
    random = np.random.default_rng(5)

    def heavy() -> Array:
        values = random.standard_normal((1, 3, 12, 12)) ** 9
        return np.asarray(values, np.float32)

    found = quantize(model, (heavy() for _ in range(4)))
    assert found.layers[0].bytes == 2
    only = (found.layers[0], *(replace(each, precision="f32") for each in found.layers[1:]))
    options = CompileOptions(target="c99", precision="auto", ranges=replace(found, layers=only))
    module, _ = import_and_lower(model, "optimized", options)
    assert str(module).count(" in i32") == 2
    exact, _ = import_and_lower(model, "optimized", CompileOptions(target="c99"))
    x = heavy()
    got, expected = (np.asarray(run_module(each, {"x": x})["y"]) for each in (module, exact))
    assert 0 < np.linalg.norm(got - expected) < 0.01 * np.linalg.norm(expected)
    assert [layer.bytes for layer in ranges.layers] == [1] * 4


@pytest.mark.parametrize("chosen", [(), (0,), (0, 1, 2, 3)])
def test_switches_give_what_a_choice_gives(
    model: str, ranges: Ranges, chosen: tuple[int, ...]
) -> None:
    layers = [
        replace(each, precision="int8" if k in chosen else "f32", bytes=1 + (k == 1))
        for k, each in enumerate(ranges.layers)
    ]
    own = replace(ranges, layers=tuple(layers))
    options = CompileOptions(target="c99", precision="auto", ranges=own)
    expected, _ = import_and_lower(model, "optimized", options)
    probe, _ = import_and_lower(model, "optimized", CompileOptions(target="c99", probe="switch"))
    x = next(images(1, seed=3))
    inputs = {"x": x, **switched(4, {k: layers[k] for k in chosen})}
    got, want = run_module(probe, inputs)["y"], run_module(expected, {"x": x})["y"]
    # Biases are multiples of the scale of sums in one of them.
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), 0, 2e-4 if chosen else 1e-6)


def test_a_bound_tells_of_other_samples() -> None:
    """Of decisions that none of the samples changes, and of losses that vary."""
    random = np.random.default_rng(0)
    expected = [{"y": random.standard_normal((1, 5))} for _ in range(200)]
    near = [{"y": each["y"] + 0.03 * random.standard_normal((1, 5))} for each in expected]
    top1 = Budget.of("top1", 0)
    few = slice(0, 40)
    assert top1.lost(expected[few], near[few]) == 0
    assert 0 < top1.bound(expected[few], near[few]) <= 0.01 == top1.lost(expected, near)
    assert top1.bound(expected, expected) == 0
    shares = [{"y": np.exp(each["y"]) / np.exp(each["y"]).sum()} for each in expected]
    same = [{"y": np.exp(each["y"]) / np.exp(each["y"]).sum()} for each in near]
    assert top1.bound(shares[few], same[few]) == top1.bound(expected[few], near[few])
    # Of a function, too: few decisions change, so what more of the same would change counts.
    own = Budget.of(lambda e, f: top1.metric(e, f), 1)
    assert own.lost(expected[few], near[few]) == 0
    assert 0.01 < own.bound(expected[few], near[few]) < 0.03
    error = Budget.of("error", 1)
    assert error.lost(expected, near) < error.bound(expected, near) < 2 * error.lost(expected, near)
    broken = [*near[:-1], {"y": np.full((1, 5), np.nan)}]
    assert error.bound(expected, broken) == np.inf


def test_rows_have_ranges_of_their_own(tmp_path: Path) -> None:
    """So no data is needed; a row of large numbers takes nothing from the others."""
    path = tokens(tmp_path / "tokens.onnx")
    found = quantize(path)
    assert [(layer.low, layer.high) for layer in found.layers] == [(None, None)] * 2
    x = np.asarray(np.random.default_rng(0).standard_normal((1, 5, 32)), np.float32)
    x[0, 2] *= 1e4
    exact = lowerdeck.compile(path, cache=False)({"x": x})["y"]
    options = CompileOptions(target="c99", precision="int8")
    module, _ = import_and_lower(path, "optimized", options)
    expected = np.asarray(run_module(module, {"x": x})["y"])
    got = lowerdeck.compile(path, precision="int8", cache=False)({"x": x})["y"]
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
    error = np.linalg.norm(got - exact, axis=-1) / np.linalg.norm(exact - x, axis=-1)
    assert (0 < error).all()
    assert (error < 0.03).all()


def behind_norm(path: Path, loud: Array) -> str:
    """Rows whose normalization makes some channels far larger than all others."""
    nodes = [node("LayerNormalization", "x s", "n"), node("MatMul", "n w", "y")]
    return write(path, nodes, [1, 6, 16], {"s": loud, "w": weights(16, 24)})


def side_by_side(path: Path, _: Array) -> str:
    """Two layers that read the same."""
    nodes = [
        node("Conv", "x w b", "a", pads=[1] * 4),
        node("Conv", "x v", "c"),
        node("Concat", "a c", "y", axis=1),
    ]
    constants = {"w": weights(8, 16, 3, 3), "v": 2 * weights(4, 16, 1, 1), "b": weights(8)}
    return write(path, nodes, [1, 16, 7, 7], constants)


@pytest.mark.parametrize("make", [behind_norm, side_by_side])
def test_factors_make_channels_alike(make: Callable[[Path, Array], str], tmp_path: Path) -> None:
    """So one byte is enough for small channels, too; layers that read the same have the same."""
    loud = np.ones(16, np.float32)
    loud[[3, 11]] = 300, 40
    path = make(tmp_path / "model.onnx", loud)
    is_image = make is side_by_side
    shape, scale = ((1, 16, 7, 7), loud.reshape(-1, 1, 1)) if is_image else ((1, 6, 16), 1)
    random = np.random.default_rng(9)

    def sample() -> Array:
        return np.asarray(random.standard_normal(shape) * scale, np.float32)

    samples = [sample() for _ in range(6)]
    plain = quantize(path, samples, method="min-max")
    smooth = quantize(path, iter(samples), method="min-max", smooth=0.5)
    assert Ranges.of(json.loads(smooth.text), "file") == smooth
    assert len({layer.factors for layer in smooth.layers}) == 1
    factors = smooth.layers[0].factors
    assert factors is not None
    assert np.argsort(factors)[-2:].tolist() == [11, 3]
    x = sample()
    exact = np.asarray(lowerdeck.compile(path, cache=False)({"x": x})["y"])
    errors: list[float] = []
    for each in (plain, smooth):
        # Two bytes would do without factors; with them one does.
        each = replace(each, layers=tuple(replace(layer, bytes=1) for layer in each.layers))
        options = CompileOptions(target="c99", precision="int8", ranges=each)
        module, _ = import_and_lower(path, "optimized", options)
        expected = np.asarray(run_module(module, {"x": x})["y"])
        got = compile_with(path, replace(options, target="native"), cache=False)({"x": x})["y"]
        np.testing.assert_allclose(got, expected, 1e-4, 1e-3)
        errors.append(float(np.linalg.norm(got - exact) / np.linalg.norm(exact)))
    assert errors[1] < 0.7 * errors[0]


def test_what_factors_are_not_for_is_refused(model: str) -> None:
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(OptionError, match="is not from 0 to 1"):
            quantize(model, images(4), smooth=wrong)
    with pytest.raises(OptionError, match="not for a budget"):
        quantize(model, images(4), smooth=0.5, max_drop=("error", 0.1))
    with pytest.raises(CalibrationError, match="needs samples"):
        quantize(model, smooth=0.5)
    found = quantize(model, images(4), smooth=0.5)
    depthwise = [layer.factors is None for layer in found.layers]
    assert depthwise == [False, False, True, False]
    factors = found.layers[0].factors
    assert factors is not None
    for number, text in ((0, "4 factors for 3 channels"), (2, "4 factors for groups of channels")):
        layers = list(found.layers)
        layers[number] = replace(layers[number], factors=(*factors, 1.0))
        other = replace(found, layers=tuple(layers))
        with pytest.raises(OptionError, match=text):
            lowerdeck.compile(model, precision="int8", ranges=other, cache=False)


def test_a_budget_is_met(tmp_path: Path) -> None:
    """By layers that stay in f32; the samples that verify it are others."""
    path = str(DIGITS / "digits.onnx")
    data = np.load(DIGITS / "held_back.npz")["images"]
    found = quantize(path, {"image": data[:40]}, max_drop=("error", 0.009))
    assert found.drop is not None
    assert found.drop <= 0.009
    assert {layer.precision for layer in found.layers} == {"f32", "int8"}
    assert all(layer.error is not None and layer.error > 0 for layer in found.layers)
    got = lowerdeck.compile(path, precision="auto", ranges=found)({"image": data[40:]})["logits"]
    exact = lowerdeck.compile(path)({"image": data[40:]})["logits"]
    assert np.linalg.norm(got - exact) < 0.015 * np.linalg.norm(exact)
    assert (got.argmax(1) == exact.argmax(1)).mean() >= 0.997
    with pytest.raises(
        BudgetError, match=r"error 1e-09: layer \d \(.*\), which loses least, alone"
    ):
        quantize(path, {"image": data[:8]}, max_drop=("error", 1e-9))


def test_a_function_may_say_what_is_lost(model: str) -> None:
    def drop(expected: Any, found: Any) -> float:
        assert len(expected) == len(found)
        assert found[0].keys() == {"y"}
        return 0.0

    found = quantize(model, images(5), max_drop=(drop, 0.0), skip_nodes="^c$")
    precisions = [layer.precision for layer in found.layers]
    assert precisions == ["int8", "f32", "int8", "int8"]
    assert found.metric == "drop"


@pytest.mark.filterwarnings("ignore:skip_nodes")
def test_nodes_to_skip_are_there(model: str) -> None:
    with pytest.raises(OptionError, match="skip_nodes: no node of the model has 'frist' in its"):
        quantize(model, images(5), skip_nodes=["^c$", "frist"])


def test_nothing_is_rounded_where_nodes_to_skip_are_not_there(
    model: str, ranges: Ranges, tmp_path: Path
) -> None:
    options = CompileOptions(target="c99", skip_nodes=["^c$|frist", "frist", "scond"])
    names = "'frist' in its name\nskip_nodes: no node of the model has 'scond' in its name$"
    for rounding in (
        replace(options, precision="int8", ranges=ranges),
        replace(options, weight_format="fp16"),
    ):
        with pytest.raises(OptionError, match=f"^skip_nodes: no node of the model has {names}"):
            generate(model, str(tmp_path / "out"), rounding)
        assert not list(tmp_path.iterdir())


def test_an_export_has_integer_operators(model: str, ranges: Ranges, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    options = CompileOptions(target="c99", precision="int8", ranges=ranges)
    path = str(tmp_path / "bytes.onnx")
    export_with(model, path, options)
    x = next(images(1, seed=2))
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    module, _ = import_and_lower(model, "optimized", options)
    expected = np.asarray(run_module(module, {"x": x})["y"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, 0, 1e-5)
    kinds = [each.op_type for each in ModelProto.FromString(Path(path).read_bytes()).graph.node]
    assert kinds.count("ConvInteger") == 3


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: [], "the data holds no samples"),
    "nan": (lambda: [np.full((1, 3, 12, 12), np.nan, np.float32)], "'x' has NaN or infinities"),
    "shape": (lambda: [np.zeros((1, 3, 12, 13), np.float32)], r"has the shape \[1, 3, 12, 13\]"),
    "text": (lambda: [np.full((1, 3, 12, 12), "1")], "'x' is of <U1, expected"),
    "complex": (lambda: [np.full((1, 3, 12, 12), 1j)], "'x' is of complex128, expected"),
    "name": (lambda: [{"z": np.zeros((1, 3, 12, 12), np.float32)}], "'z' is no input"),
    "number": (lambda: [[np.zeros(1), np.zeros(1)]], "sample 0: 2 arrays for 1 inputs"),
    "file": (lambda: "nowhere.npz", "nowhere.npz: cannot be read"),
    "none": (lambda: None, "needs samples"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_samples_are_named(model: str, name: str) -> None:
    data, text = BAD[name]
    with pytest.raises(CalibrationError, match=text):
        quantize(model, data())


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int32, np.int64(1 << 33)),
        (np.uint8, np.uint16(256)),
        (np.float32, 1e300),
        (np.float16, np.float32(1e6)),
        (ml_dtypes.bfloat16, 1e39),
    ],
)
def test_numbers_that_an_input_does_not_hold_are_named(dtype: Any, value: Any) -> None:
    """They would be others, or infinite, without a word."""
    info = [TensorInfo("x", np.dtype(dtype), (2,))]
    with pytest.raises(CalibrationError, match="'x' has numbers too large for x: "):
        list(samples_of([np.array([0, value], np.asarray(value).dtype)], info, info))
    (only,) = samples_of([np.array([0, 1], np.asarray(value).dtype)], info, info)
    assert only["x"].dtype == dtype


def test_floats_of_all_kinds_are_looked_at() -> None:
    info = [TensorInfo("x", np.dtype(ml_dtypes.bfloat16), (2,))]
    with pytest.raises(CalibrationError, match="'x' has NaN or infinities"):
        list(samples_of([np.array([0, np.nan], ml_dtypes.bfloat16)], info, info))
    with pytest.raises(CalibrationError, match=r"'x' is of \|V2"):
        list(samples_of([np.zeros(2, "V2")], info, info))


def test_samples_come_in_tables(tmp_path: Path) -> None:
    """Rows are read some at a time; a sample has as many as its input."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    array = np.arange(2 * 3 * 70, dtype=np.float32).reshape(-1, 3)
    column = pa.array(array.tolist(), pa.list_(pa.float32()))
    parquet.write_table(
        pa.table({"key": list(map(str, range(140))), "x": column}), tmp_path / "a.parquet"
    )
    for rows in (1, 2):
        info = [TensorInfo("x", np.dtype(np.float32), (rows, 3))]
        for data in (tmp_path / "a.parquet", tmp_path):
            found = [sample["x"] for sample in samples_of(data, info, info)]
            assert all(each.shape == (rows, 3) for each in found)
            np.testing.assert_array_equal(np.concatenate(found), array)
    bad: list[Any] = array.tolist()
    bad[100] = None
    parquet.write_table(
        pa.table({"x": pa.array(bad, pa.list_(pa.float32()))}), tmp_path / "b.parquet"
    )
    parquet.write_table(pa.table({"z": [1.0]}), tmp_path / "c.parquet")
    parquet.write_table(pa.table({"x": ["text"]}), tmp_path / "d.parquet")
    (tmp_path / "e.parquet").write_bytes(b"PAR1")
    for name, text in {
        "b": "row 100: column 'x' has missing values",
        "c": "input 'x' is missing",
        "d": "'x' is of|has the shape",
        "e": "cannot be read",
        "f": "No such file",
    }.items():
        with pytest.raises(CalibrationError, match=text):
            list(samples_of(tmp_path / f"{name}.parquet", info, info))


def test_samples_come_in_many_forms(tmp_path: Path) -> None:
    info = [TensorInfo("x", np.dtype(np.float32), (1, 3))]
    batch = [TensorInfo("x", np.dtype(np.float32), ("n", 3))]
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", x=array.reshape(4, 1, 3))
    forms: list[tuple[Any, list[TensorInfo]]] = [
        (array, info),
        (array, batch),
        ({"x": array}, info),
        ([row[None] for row in array], info),
        (({"x": row[None]} for row in array), batch),
        (tmp_path / "a.npy", info),
        (str(tmp_path / "b.npz"), batch),
    ]
    for data, inputs in forms:
        found = [sample["x"] for sample in samples_of(data, inputs, inputs)]
        np.testing.assert_array_equal(np.concatenate(found), array)
        assert all(each.shape == (1, 3) for each in found)
    assert len(list(samples_of(tmp_path, info, info))) == 8
    scalar = [TensorInfo("r", np.dtype(np.int64), ())]
    (only,) = samples_of([{"r": np.array(3)}], scalar, scalar)
    assert only["r"].shape == ()


def test_what_is_wrong_with_ranges_is_named(model: str, ranges: Ranges, tmp_path: Path) -> None:
    content = json.loads(ranges.text)
    layer = content["layers"][0]
    wrong: dict[str, tuple[Any, str]] = {
        "low": (1.0, "expected one that holds 0"),
        "high": (layer["low"], "expected one that holds 0"),
        "node": (3, "'node' is no text"),
        "precision": ("int4", "precision 'int4', expected one of f32, int8"),
        "clipped": ("", "'clipped' is ''"),
        "bytes": ([], "'bytes' is \\[\\], expected 1 or 2"),
        "factors": ([1.0, 0.0], "'factors' is no list of numbers"),
    }
    for name, (value, text) in wrong.items():
        other = {**content, "layers": [{**layer, name: value}, *content["layers"][1:]]}
        with pytest.raises(lowerdeck.OptionError, match=text):
            Ranges.of(other, "file")
    for low, high, text in (
        (0, 0, "scale is 0"),
        (0, float("nan"), "finite"),
        (0, 1e39, "no scale"),
        (0, 1e308, "no scale"),
        (0, 10**308, "no scale"),
        (0, 10**400, "finite"),
    ):
        other = {**content, "layers": [{**layer, "low": low, "high": high}]}
        with pytest.raises(lowerdeck.OptionError, match=text):
            Ranges.of(other, "file")
    broken: list[Any] = [[], {}, {"version": 1}]
    broken += [{**content, "layers": [[]]}, {**content, "version": 2}]
    for bad in broken:
        with pytest.raises(lowerdeck.OptionError):
            Ranges.of(bad, "file")
    others: dict[str, Any] = {
        "samples": -1,
        "method": 3,
        "metric": [],
        "drop": "much",
        "bound": float("nan"),
    }
    for name, value in others.items():
        with pytest.raises(lowerdeck.OptionError, match=f"'{name}' is "):
            Ranges.of({**content, name: value}, "file")
    with pytest.raises(lowerdeck.OptionError, match="version True, expected 1"):
        Ranges.of({**content, "version": True}, "file")
    with pytest.raises(lowerdeck.OptionError, match="'mehtod' is no entry of such files"):
        Ranges.of({**content, "mehtod": "mse"}, "file")
    typo = {**content, "layers": [{**layer, "presicion": "f32"}]}
    with pytest.raises(lowerdeck.OptionError, match="'presicion' is no entry of a layer"):
        Ranges.of(typo, "file")
    (deep := tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(lowerdeck.OptionError, match="cannot be read"):
        Ranges.read(deep)
    assert Ranges.of(content, "file") == ranges
    path = tokens(tmp_path / "other.onnx")
    with pytest.raises(lowerdeck.OptionError, match=r"those of another model.*it has 2 layers"):
        lowerdeck.compile(path, precision="int8", ranges=ranges, cache=False)
    with pytest.raises(lowerdeck.OptionError, match="auto goes by ranges"):
        lowerdeck.compile(model, precision="auto", cache=False)


def test_the_command_writes_what_others_read(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "data.npz", x=np.concatenate(list(images(4))))
    out = str(tmp_path / "ranges.json")
    data = str(tmp_path / "data.npz")
    page = tmp_path / "ranges.html"
    command = ["quantize", model, "--calibration", data, "-o", out, "--html", str(page)]
    assert main(command) == 0
    assert "c      int8" in capsys.readouterr().out
    text = page.read_text()
    assert "4 of 4 layers are computed from bytes, 100.0% of multiplications" in text
    assert text.count("<title>") == 5
    assert "<td>y, g</td><td>int8</td>" in text
    assert main(["check", model, "--precision", "int8", "--ranges", out]) == 0
    assert "the C agree" in capsys.readouterr().out
    other = str(tmp_path / "not.json")
    for page, problem in (
        ("nowhere/a.html", "there is no folder"),
        (".", "is a folder, expected a file"),
        ("not.json", "two files of this name"),
    ):
        command = ["quantize", model, "--calibration", data, "-o", other]
        assert main([*command, "--html", str(tmp_path / page)]) == 1
        assert problem in capsys.readouterr().err
        assert not Path(other).exists()
    command = ["quantize", model, "--calibration", data, "-o", other, "--max-drop", "error=0"]
    assert main(command) == 1
    assert "no layer can be quantized within error 0" in capsys.readouterr().err
    assert not Path(other).exists()


def test_the_report_names_the_worst_layer(ranges: Ranges) -> None:
    """By what it would lose in one byte, whatever it is computed from."""
    layers = [
        replace(layer, error=0.01 * k, error_of_byte=(0.02, 0.5, 0.03, 0.04)[k], bytes=1 + (k == 1))
        for k, layer in enumerate(ranges.layers)
    ]
    lines = totals_of(replace(ranges, layers=tuple(layers)))
    node = ranges.layers[1].node
    assert lines[1] == (
        f"with inputs of one byte, layer 1 ({node}) alone would lose most: 5.00e-01"
    )
    assert len(totals_of(ranges)) == 1


def test_the_page_shows_errors_of_layers(ranges: Ranges) -> None:
    errors = (0.1, None, 1e-9, 0.001)
    layers = [replace(each, error=e) for each, e in zip(ranges.layers, errors, strict=True)]
    layers[1] = replace(layers[1], precision="f32", node="<b> & c")
    layers[3] = replace(layers[3], bytes=2)
    text = html_of_ranges(replace(ranges, layers=tuple(layers)), "a <net>")
    heights = [float(one) for one in re.findall(r'height="([0-9.]+)" fill="[^"]*"><title>', text)]
    assert heights == [280.0, 1.0, 1.0, pytest.approx(280 * 4 / 6, abs=0.01)]
    assert "&lt;b&gt; &amp; c" in text
    assert "<b>" not in text
    assert "<net>" not in text
    for precision in ("int8", "f32", "int8, inputs of 2 bytes"):
        assert f"</svg> {precision}" in text


@pytest.mark.parametrize("method", METHODS)
def test_a_method_keeps_most_of_a_long_tail(method: str) -> None:
    random = np.random.default_rng(3)
    values = np.maximum(
        random.standard_normal(100_000) * np.where(random.random(100_000) < 1e-4, 40, 1), -2
    )
    whole, parts = Histogram(), Histogram()
    whole.add(values)
    for part in np.array_split(values, 7):
        parts.add(part)
    np.testing.assert_array_equal(whole.bins, parts.bins)
    low, high = range_of(whole, method)
    assert -2 <= low < -1.5
    assert high == np.float32(values.max()) if method == "min-max" else 2.5 < high
    assert method not in ("mse", "percentile") or high < 0.9 * values.max()
    assert whole.clipped(low, high) < 0.01


def test_weights_are_rounded_for_samples(tmp_path: Path) -> None:
    """Less is lost than by rounding to nearest, on other samples; the matrices stay small."""
    model, out = tokens(tmp_path / "tokens.onnx"), tmp_path / "small.onnx"
    random = np.random.default_rng(3)
    mixed = random.standard_normal((8, 32))

    def rows(count: int) -> Array:
        # Fewer directions than dimensions: then weights can make good what others miss.
        return np.asarray(random.standard_normal((1, count, 8)) @ mixed, np.float32)

    lowerdeck.quantize_weights(model, {"x": rows(200)}, out, weight_format="int4:16")
    module, _ = import_and_lower(str(out), "optimized", CompileOptions(target="c99"))
    assert str(module).count("core.dequantize") == 2
    x = rows(50)
    nearest = CompileOptions(target="c99", weight_format="int4:16")
    losses: list[float] = []
    for path, options in ((str(out), CompileOptions(target="c99")), (model, nearest)):
        modules = [
            import_and_lower(p, "optimized", o)[0]
            for p, o in ((path, options), (model, CompileOptions()))
        ]
        found, exact = (np.asarray(run_module(each, {"x": x})["y"]) for each in modules)
        losses.append(float(np.linalg.norm(found - exact) / np.linalg.norm(exact)))
    assert losses[0] < 0.75 * losses[1]


def test_rounding_makes_good_what_it_misses() -> None:
    """GPTQ on its own: blocks that do not divide the rows, and rows that samples never reach."""
    random = np.random.default_rng(4)
    array = np.asarray(random.standard_normal((70, 12)), np.float32)
    x = random.standard_normal((300, 20)) @ random.standard_normal((20, 70))
    x[:, 5] = 0
    losses: list[float] = []
    for halves in (as_halves(array, 0, 32), as_halves_for(array, x.T @ x, 32)):
        losses.append(float(np.linalg.norm(x @ (of_halves(*halves, rows=70) - array))))
    # Row after row alone leaves 0.39.
    assert losses[1] < 0.35 * losses[0]
    # Nothing is known: then each is rounded to nearest.
    *halves, zeros = as_halves_for(array, np.zeros((70, 70)), 32)
    for found, expected in zip(halves, as_halves(array, 0, 32), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert (zeros == 8).all()


def of_halves(codes: Array, scales: Array, zeros: Array | None = None, *, rows: int) -> Array:
    """The numbers that those of four bits stand for, in blocks of 32 rows."""
    zeros = np.full(scales.shape, 8) if zeros is None else zeros
    scale, zero = (np.repeat(each.astype(float), 32, 0)[:rows] for each in (scales, zeros))
    return (codes.astype(float) - zero) * scale


def test_blocks_have_zero_points_of_their_own() -> None:
    """Numbers that lie on one side of zero use all codes."""
    random = np.random.default_rng(6)
    sides = np.repeat([1, -1, 0.2], 32)[:, None]
    array = np.asarray(random.random((96, 16)) * sides, np.float32)
    array[64:] -= 0.1
    halves = as_halves_for(array, np.eye(96), 32)
    assert (halves[2][0] == 0).all()
    assert (halves[2][1] == 15).all()
    assert ((4 < halves[2][2]) & (halves[2][2] < 11)).all()
    losses = [
        np.linalg.norm(of_halves(*h, rows=96) - array) for h in (as_halves(array, 0, 32), halves)
    ]
    assert losses[1] < 0.6 * losses[0]


def test_close_decisions_count_more() -> None:
    sure, open_ = np.array([[1, 0, 0, 0]]), np.full((1, 4), 0.25)
    assert weight_of(sure) == pytest.approx(0.1)
    assert weight_of(open_) == pytest.approx(0.85)
    assert weight_of(np.concatenate([sure, open_])) == pytest.approx(0.475)
    for scores in (
        np.ones((2, 4)),
        np.array([[2.0, -1]]),
        np.ones((3, 1)),
        np.float32(1),
        np.ones((0, 4)),
    ):
        assert weight_of(np.asarray(scores)) == 1


def test_few_samples_do_not_say_all() -> None:
    """What they happen to have in common counts little: other samples lose less than by nearest."""
    random = np.random.default_rng(11)
    mixing, array = random.standard_normal((96, 96)), weights(96, 24)
    spread = np.linspace(0.3, 2, 96)

    def rows(count: int) -> Array:
        return (random.standard_normal((count, 96)) * spread) @ mixing

    few, others = rows(40), rows(2000)
    moments = Moments(96)
    for part in (few[:15], few[15:]):
        moments.add(part)
    plain = few.T @ few / 40
    level = np.trace(moments.mean) / 96
    assert level == pytest.approx(np.trace(plain) / 96)
    part = 1 - moments.mean[0, 1] / plain[0, 1]
    assert 0.1 < part < 0.9
    np.testing.assert_allclose(moments.mean, (1 - part) * plain + part * level * np.eye(96))
    losses: list[float] = []
    for halves in (as_halves(array, 0, 32), as_halves_for(array, moments.mean, 32)):
        losses.append(float(np.linalg.norm(others @ (of_halves(*halves, rows=96) - array))))
    assert losses[1] < 0.9 * losses[0]
    # Many say nearly all, one says nothing.
    many = Moments(96)
    for row in others:
        many.add(row[None])
    exact = others.T @ others / len(others)
    assert 1 - many.mean[0, 1] / exact[0, 1] < 0.5 * part
    one = Moments(96)
    one.add(few[:1])
    np.testing.assert_allclose(one.mean, np.eye(96) * np.square(few[0]).mean())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--gptq"], "--gptq needs samples"),
        (["--gptq", "int8", "--calibration", "samples.npz"], "'int8' is not one of int4"),
        (["--gptq", "--calibration", "empty.npz"], "holds no samples"),
        (["--gptq", "--calibration", "nan.npz"], "NaN or infinities"),
        # Before samples are looked at.
        (
            ["--gptq", "--calibration", "nan.npz", "--skip-nodes", "frist"],
            "no node of the model has 'frist' in its name",
        ),
    ],
)
def test_what_cannot_be_rounded_is_named(
    options: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    tokens(tmp_path / "tokens.onnx")
    np.savez("samples.npz", x=np.zeros((3, 1, 4, 32), np.float32))
    np.savez("empty.npz", x=np.zeros((0, 1, 4, 32), np.float32))
    np.savez("nan.npz", x=np.full((1, 1, 4, 32), np.nan, np.float32))
    assert main(["quantize", "tokens.onnx", "-o", "out.onnx", *options]) == 1
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out.onnx").exists()


def test_bytes_without_ranges_are_refused_or_told_of(model: str, tmp_path: Path) -> None:
    with pytest.raises(lowerdeck.OptionError, match="4 layers need ranges, which `lowerdeck quant"):
        lowerdeck.compile(model, precision="int8", cache=False)
    nodes = [
        node("Conv", "x w0", "a", pads=[1] * 4),
        node("Reshape", "a s", "b"),
        node("LayerNormalization", "b g", "c"),
        node("MatMul", "c w1", "y"),
    ]
    constants = {
        "w0": weights(4, 4, 3, 3),
        "s": np.array([1, 4, 64], np.int64),
        "g": weights(64),
        "w1": weights(64, 32),
    }
    path = write(tmp_path / "both.onnx", nodes, [1, 4, 8, 8], constants)
    told: list[str] = []
    options = CompileOptions(target="c99", precision="int8", warn=told.append)
    module, _ = import_and_lower(path, "optimized", options)
    assert str(module).count(" in i32") == 1
    assert any("1 layer needs ranges" in text for text in told)
