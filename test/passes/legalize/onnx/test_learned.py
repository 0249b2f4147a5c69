"""The operators of ai.onnx.ml on numbers: ONNX Runtime, the interpreter and the C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.context import Context

import lowerdeck
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.passes.legalize.walk import LegalizationError

Array = NDArray[Any]
NAN = float("nan")
PROBABILITY_ULP = 2.0**-23
"""The distance of numbers from 1 on, of f32."""


def probability(x: Array) -> Array:
    """Of a normal distribution up to x: what PROBIT is the inverse of."""
    return np.vectorize(NormalDist().cdf, otypes=[np.float64])(x)


def model_of(
    op_type: str,
    inputs: Mapping[str, Array],
    outputs: Sequence[int] = (TensorProto.FLOAT,),
    version: int = 3,
    **attributes: Any,
) -> onnx.ModelProto:
    """A node; the first dimension of its inputs is open."""
    names = [f"y{k}" for k in range(len(outputs))]
    node = helper.make_node(op_type, list(inputs), names, domain="ai.onnx.ml", **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), ["N", *array.shape[1:]]
        )
        for name, array in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, element, None)
        for name, element in zip(names, outputs, strict=True)
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    graph = helper.make_graph([node], "g", infos, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def interpreted(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of the legalized model."""
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    return {name: np.asarray(value) for name, value in run_module(module, inputs).items()}


def check(
    op_type: str,
    inputs: Mapping[str, Array],
    outputs: Sequence[int] = (TensorProto.FLOAT,),
    version: int = 3,
    **attributes: Any,
) -> list[Array]:
    """The outputs: floats within rounding errors of ONNX Runtime, integers equal."""
    model = model_of(op_type, inputs, outputs, version, **attributes)
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, dict(inputs))
    found = interpreted(model, inputs)
    for k, want in enumerate(expected):
        got = found[f"y{k}"]
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    return expected


def samples(count: int = 20, size: int = 4, dtype: Any = np.float32) -> Array:
    return (np.random.default_rng(count).normal(size=(count, size)) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_scaler(dtype: Any) -> None:
    inputs = {"x": samples(dtype=dtype)}
    check("Scaler", inputs, offset=[0.5, 1.0, -2.0, 0.1], scale=[2.0, 0.5, 3.0, 1.0])
    check("Scaler", inputs, offset=[0.5], scale=[2.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = samples()
    x[3] = 0
    check("Normalizer", {"x": np.abs(x)}, norm=norm)
    check("Normalizer", {"x": x}, norm=norm)


def test_imputer() -> None:
    x = samples()
    x[::3, 1], x[5] = NAN, NAN
    check("Imputer", {"x": x}, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=NAN)
    x[:, 2] = 7
    check("Imputer", {"x": x}, imputed_value_floats=[-1.0], replaced_value_float=7.0)
    whole = samples(dtype=np.int64)
    kinds = (TensorProto.INT64,)
    values: dict[str, Any] = {"imputed_value_int64s": [5], "replaced_value_int64": 0}
    check("Imputer", {"x": whole}, kinds, **values)


def test_binarizer_and_vectorizer() -> None:
    check("Binarizer", {"x": samples()}, threshold=0.25)
    inputs = {"a": samples(6, 3), "b": samples(6, 2)}
    check("FeatureVectorizer", inputs, inputdimensions=[3, 2])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_one_hot_encoder(dtype: Any) -> None:
    x = np.array([[1, 2], [5, -3], [2, 9]], dtype)
    check("OneHotEncoder", {"x": x}, cats_int64s=[2, -3, 5, 1])


def test_label_encoder() -> None:
    keys = np.array([[3], [-1], [4], [8], [3]], np.int64)
    real: dict[str, Any] = {
        "keys_int64s": [3, 4, -1],
        "values_floats": [0.5, 1.5, 2.5],
        "default_float": -7.0,
    }
    check("LabelEncoder", {"x": keys}, **real)
    whole: dict[str, Any] = {"keys_int64s": [3, 4], "values_int64s": [10, 20], "default_int64": 99}
    check("LabelEncoder", {"x": keys}, (TensorProto.INT64,), **whole)
    x = np.array([[0.5], [NAN], [2.0]], np.float32)
    tables: dict[str, Any] = {
        "keys_floats": [0.5, NAN],
        "values_int64s": [1, 2],
        "default_int64": 0,
    }
    for version in (3, 4):
        check("LabelEncoder", {"x": x}, (TensorProto.INT64,), version, **tables)


def test_strings_are_refused() -> None:
    keys = np.array([[3]], np.int64)
    names: dict[str, Any] = {"keys_int64s": [3], "values_strings": ["a"]}
    model = model_of("LabelEncoder", {"x": keys}, (TensorProto.STRING,), **names)
    with pytest.raises(LegalizationError, match="strings"):
        lowerdeck.compile(model, cache=False)


CLASSES = (TensorProto.INT64, TensorProto.FLOAT)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
def test_linear(transform: str) -> None:
    rng = np.random.default_rng(1)
    weights, shift = rng.normal(size=12).tolist(), rng.normal(size=3).tolist()
    common: dict[str, Any] = {
        "coefficients": weights,
        "intercepts": shift,
        "post_transform": transform,
    }
    labels: dict[str, Any] = {"classlabels_ints": [4, -2, 9]}
    for dtype in (np.float32, np.int64):
        check("LinearClassifier", {"x": samples(dtype=dtype)}, CLASSES, **common, **labels)
    if transform == "NONE":
        check("LinearRegressor", {"x": samples()}, targets=3, **common)
        check("LinearRegressor", {"x": samples()}, targets=3, coefficients=weights)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_linear_of_two_classes(transform: str) -> None:
    common: dict[str, Any] = {"classlabels_ints": [5, 8], "post_transform": transform}
    weights = [0.3, -0.5, 0.2, 0.9]
    both = [*weights, *(-w for w in weights)]
    inputs = {"x": samples()}
    check("LinearClassifier", inputs, CLASSES, coefficients=both, intercepts=[0.1, -0.1], **common)
    check("LinearClassifier", inputs, CLASSES, coefficients=weights, intercepts=[0.1], **common)


# Support vectors

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def normal(seed: int, size: int) -> list[float]:
    return np.random.default_rng(seed).normal(size=size).astype(np.float32).tolist()


@pytest.mark.parametrize("kernel", KERNELS)
def test_regression(kernel: str) -> None:
    common: dict[str, Any] = {"coefficients": normal(2, 7), "rho": [0.3], "n_supports": 7}
    common |= {"kernel_type": kernel, "kernel_params": [0.2, 0.5, 3.0]}
    common["support_vectors"] = normal(3, 28)
    check("SVMRegressor", {"x": samples() / 3}, **common)
    if kernel == "RBF":
        (found,) = check("SVMRegressor", {"x": samples() / 3}, one_class=1, **common)
        assert set(found.reshape(-1)) == {-1, 1}


def classifier(
    kernel: str = "RBF",
    counts: Sequence[int] = (),
    classes: int | None = None,
    *,
    has_probabilities: bool = False,
    **attributes: Any,
) -> dict[str, Any]:
    """The attributes of a random model on four features, with `counts` vectors of the classes."""
    total, classes = sum(counts), classes or len(counts)
    pairs = classes * (classes - 1) // 2
    found: dict[str, Any] = {
        "classlabels_ints": [7, -2, 9, 4, 5][:classes],
        "kernel_type": kernel,
        "kernel_params": [0.2, 0.5, 3.0],
        "coefficients": normal(classes, (classes - 1) * total or 4 * classes),
        "rho": [number / 4 for number in normal(pairs, pairs or 1)],
    }
    if total:
        found |= {"vectors_per_class": list(counts), "support_vectors": normal(total, 4 * total)}
    if has_probabilities:
        found |= {"prob_a": [-1 - abs(number) for number in normal(8, pairs)]}
        found |= {"prob_b": normal(9, pairs)}
    return found | attributes


def check_classifiers(
    models: Sequence[dict[str, Any]], x: Array, *, in_c: bool = False
) -> onnx.ModelProto:
    """All models on one input, as nodes of one graph, which is returned."""
    model = model_of("SVMClassifier", {"x": x}, CLASSES, **models[0])
    graph = model.graph
    graph.ClearField("node")
    graph.ClearField("output")
    for k, attributes in enumerate(models):
        names = [f"label{k}", f"scores{k}"]
        graph.node.append(
            helper.make_node("SVMClassifier", ["x"], names, domain="ai.onnx.ml", **attributes)
        )
        for name, element in zip(names, CLASSES, strict=True):
            graph.output.append(helper.make_tensor_value_info(name, element, None))
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {"x": x})
    found = (
        lowerdeck.compile(model, cache=False)({"x": x}) if in_c else interpreted(model, {"x": x})
    )
    for k, value in enumerate(graph.output):
        got, want = found[value.name], cast(Array, expected[k])
        assert (got.dtype, got.shape) == (want.dtype, want.shape), value.name
        if models[k // 2].get("post_transform") == "PROBIT" and k % 2:
            # At either end, a digit of the probability is many of the result, and the formula has
            # one of 2 p - 1 at least.
            near = np.abs(probability(got) - probability(want)) < PROBABILITY_ULP
            # Its formula ends with the root of a difference, which loses digits around 0.
            got, want = (
                np.where(near, want, got * np.abs(got)),
                np.where(near, want, want * np.abs(want)),
            )
        np.testing.assert_allclose(got, want, rtol=5e-5, atol=5e-6, err_msg=value.name)
    return model


def test_support_vectors_of_classes() -> None:
    """
    A class may have no vectors at all. onnx.reference has the same, but for the probabilities of
    more than two classes, where it takes one number for all of a row.
    """
    x = samples(40) / 2
    models = [
        classifier("LINEAR", (3, 0, 5, 2)),
        classifier("POLY", (4, 1, 3)),
        classifier("RBF", (2, 3, 2)),
        classifier("SIGMOID", (2, 4), has_probabilities=True),
        classifier("POLY", (4, 1, 3), has_probabilities=True),
        classifier("RBF", (3, 1, 2, 4, 2), has_probabilities=True),
    ]
    model = check_classifiers(models, x)
    by_session = cast(Any, onnxruntime).InferenceSession(model.SerializeToString()).run
    expected = by_session(None, {"x": x})
    by_reference = cast(Any, ReferenceEvaluator(model)).run(None, {"x": x})
    for want, other in zip(expected[:8], by_reference[:8], strict=True):
        np.testing.assert_allclose(want, other, rtol=5e-5, atol=5e-6)
    assert all(len(set(label.tolist())) > 1 for label in expected[::2])


def test_transforms_of_support_vectors() -> None:
    models = [classifier("LINEAR", (3, 2, 2), post_transform=kind) for kind in TRANSFORMS]
    for kind in ("LOGISTIC", "PROBIT"):
        models.append(classifier("LINEAR", (3, 2, 2), post_transform=kind, has_probabilities=True))
    check_classifiers(models, samples(40) / 2)


def test_support_vectors_in_c() -> None:
    models = [classifier("RBF", (2, 4), has_probabilities=True)]
    check_classifiers(models, samples(40) / 2, in_c=True)


def test_support_vectors_of_two_classes() -> None:
    """One score; without vectors two, which may both be large or small."""
    models = [classifier("LINEAR", (3, 4), post_transform=kind) for kind in TRANSFORMS[:4]]
    positive = [abs(number) / 4 for number in normal(1, 8)]
    for kind in ("NONE", "SOFTMAX"):
        models.append(classifier(classes=2, post_transform=kind))
        models.append(classifier(classes=2, post_transform=kind, coefficients=positive))
        models.append(classifier(classes=2, post_transform=kind, has_probabilities=True))
    check_classifiers(models, samples(40) / 2)


def test_linear_classes_of_support_vectors() -> None:
    models = [
        classifier(classes=classes, post_transform=kind)
        for kind in TRANSFORMS
        for classes in (1, 3)
    ]
    check_classifiers(models, samples(40) / 2)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_support_vectors_on_other_numbers(dtype: Any) -> None:
    check_classifiers([classifier("LINEAR", (3, 2, 2))], samples(dtype=dtype))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (classifier(counts=(3, 2), post_transform="PROBIT"), "PROBIT"),
        (classifier(counts=(3, 2), prob_a=[1.0, 2.0], prob_b=[1.0]), "2 numbers prob_a"),
        (classifier(counts=(3, 2), vectors_per_class=[5]), "vectors of 1"),
        (classifier(counts=(3, 2), rho=[1.0, 2.0]), "2 numbers rho"),
        (classifier(counts=(3, 2), support_vectors=[1.0] * 7), "7 numbers"),
        (classifier(classes=3, coefficients=[1.0] * 7), "7 coefficients"),
        (classifier(counts=(3, 2), classlabels_strings=["a", "b"]), "strings"),
    ],
)
def test_support_vectors_that_are_refused(attributes: dict[str, Any], message: str) -> None:
    model = model_of("SVMClassifier", {"x": samples()}, CLASSES, **attributes)
    with pytest.raises(LegalizationError, match=message):
        lowerdeck.compile(model, cache=False)


# Trees


def tree_nodes(modes: Sequence[str], *, missing: Sequence[int] | None = None) -> dict[str, Any]:
    """Two trees on four features: one of depth 2 whose inner nodes have `modes`, and a leaf."""
    nodes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0],
        "nodes_modes": [modes[0], "LEAF", modes[1], "LEAF", "LEAF", "LEAF"],
        "nodes_featureids": [2, 0, 0, 0, 0, 0],
        "nodes_values": [0.5, 0.0, -1.0, 0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 3, 0, 0, 0],
        "nodes_falsenodeids": [2, 0, 4, 0, 0, 0],
    }
    if missing is not None:
        nodes["nodes_missing_value_tracks_true"] = list(missing)
    return nodes


def targets(prefix: str, ids: Sequence[int], weights: Sequence[float]) -> dict[str, Any]:
    return {
        f"{prefix}_treeids": [0, 0, 0, 1],
        f"{prefix}_nodeids": [1, 3, 4, 0],
        f"{prefix}_ids": list(ids),
        f"{prefix}_weights": list(weights),
    }


def tree_samples() -> Array:
    """Also on the limits, and not a number."""
    x = samples(30)
    x[:5, 2], x[5:15, 2], x[5:10, 0], x[20:25, 2], x[22:27, 0] = 0.5, 4, -1, NAN, NAN
    return x


MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")


@pytest.mark.parametrize("first", MODES)
def test_tree_modes(first: str) -> None:
    nodes = tree_nodes([f"BRANCH_{first}"] * 2)
    weights = targets("target", [0, 0, 1, 1], [1.0, 2.0, 4.0, 8.0])
    x = {"x": tree_samples()}
    check("TreeEnsembleRegressor", x, n_targets=2, **nodes, **weights)
    mixed = tree_nodes([f"BRANCH_{first}", "BRANCH_LT"], missing=[1, 0, 1, 0, 0, 0])
    check("TreeEnsembleRegressor", x, n_targets=2, **mixed, **weights)


def test_a_tree_of_one_feature() -> None:
    """What is the same at all nodes is not looked up."""
    nodes = tree_nodes(["BRANCH_LT", "BRANCH_LT"])
    nodes |= {"nodes_featureids": [0] * 6, "nodes_values": [0.5] * 6}
    weights = targets("target", [0] * 4, [1.0, 2.0, 4.0, 8.0])
    check("TreeEnsembleRegressor", {"x": tree_samples()}, n_targets=1, **nodes, **weights)


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_aggregates(how: str) -> None:
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    weights = targets("target", [0] * 4, [1.0, -2.0, 4.0, 0.5])
    x = {"x": tree_samples()}
    nodes["n_targets"] = 1
    check("TreeEnsembleRegressor", x, aggregate_function=how, **nodes, **weights)
    check("TreeEnsembleRegressor", x, base_values=[0.75], **nodes, **weights)


def test_operators_in_c() -> None:
    """One graph of what the interpreter is asked about above."""
    x = {"x": tree_samples()}
    mixed = tree_nodes(["BRANCH_GTE", "BRANCH_LT"], missing=[1, 0, 1, 0, 0, 0])
    mixed |= {"n_targets": 2} | targets("target", [0, 0, 1, 1], [1.0, 2.0, 4.0, 8.0])
    linear: dict[str, Any] = {"coefficients": normal(1, 12), "intercepts": normal(2, 3)}
    linear |= {"classlabels_ints": [4, -2, 9], "post_transform": "SOFTMAX"}
    table: dict[str, Any] = {"keys_int64s": [4, 9], "values_floats": [0.5, 1.5]}
    known: dict[str, Any] = {"imputed_value_floats": [0.5], "replaced_value_float": NAN}
    entries: list[tuple[str, str, list[str], dict[str, Any]]] = [
        ("TreeEnsembleRegressor", "x", ["trees"], mixed),
        ("Imputer", "x", ["known"], known),
        ("LinearClassifier", "known", ["label", "scores"], linear),
        ("LabelEncoder", "label", ["named"], table | {"default_float": -7.0}),
        ("Normalizer", "known", ["unit"], {"norm": "L2"}),
    ]
    model = model_of("Imputer", x, **known)
    graph = model.graph
    graph.ClearField("node")
    graph.ClearField("output")
    for op_type, name, results, attributes in entries:
        node = helper.make_node(op_type, [name], results, domain="ai.onnx.ml", **attributes)
        graph.node.append(node)
        graph.output.extend(map(helper.make_empty_tensor_value_info, results))
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = lowerdeck.compile(model, cache=False)(x)
    for value, want in zip(graph.output, session.run(None, x), strict=True):
        np.testing.assert_allclose(found[value.name], want, 2e-5, 1e-6, err_msg=value.name)


def test_trees_on_integers() -> None:
    """ONNX Runtime has them for classes only."""
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    weights = targets("class", [0, 1, 2, 0], [0.75, 0.5, 0.6, 0.25])
    x = {"x": samples(dtype=np.int64)}
    check("TreeEnsembleClassifier", x, CLASSES, classlabels_int64s=[7, 3, 5], **nodes, **weights)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier(transform: str) -> None:
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    weights = targets("class", [0, 1, 2, 0], [0.75, 0.5, 0.6, 0.25])
    common: dict[str, Any] = {"classlabels_int64s": [7, 3, 5], "post_transform": transform}
    x = {"x": tree_samples()}
    check("TreeEnsembleClassifier", x, CLASSES, **common, **nodes, **weights)


def test_tree_classifier_of_two_classes_takes_the_first() -> None:
    """That with the larger sum, as specified: ONNX Runtime looks at one of them."""
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    weights = targets("class", [0, 1, 1, 0], [0.75, 0.5, 0.6, 0.25])
    x = {"x": tree_samples()}
    model = model_of(
        "TreeEnsembleClassifier", x, CLASSES, classlabels_int64s=[7, 3], **nodes, **weights
    )
    label, scores = interpreted(model, x).values()
    rows = sorted({tuple(row) for row in scores.tolist()})
    np.testing.assert_allclose(rows, [(0.25, 0.5), (0.25, 0.6), (1, 0)], rtol=1e-6)
    np.testing.assert_array_equal(label, np.where(scores[:, 0] >= scores[:, 1], 7, 3))


@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.6, 0.05], [-0.2, 0.5, -0.6, 0.1]])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_tree_of_one_of_two_classes(weights: Sequence[float], transform: str) -> None:
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    common: dict[str, Any] = {"classlabels_int64s": [0, 1], "post_transform": transform}
    x = {"x": tree_samples()}
    check(
        "TreeEnsembleClassifier",
        x,
        CLASSES,
        **common,
        **nodes,
        **targets("class", [0] * 4, weights),
    )


def test_trees_in_double_precision() -> None:
    """Limits that f32 cannot tell from the features."""
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"]) | {"n_targets": 1}
    limits = np.array(nodes.pop("nodes_values"), np.float64)
    limits[0] += 1e-12
    nodes["nodes_values_as_tensor"] = numpy_helper.from_array(limits, "v")
    weights = targets("target", [0] * 4, [])
    del weights["target_weights"]
    numbers = np.array([1.0, -2.0, 4.0, 0.5])
    weights["target_weights_as_tensor"] = numpy_helper.from_array(numbers, "w")
    x = samples(dtype=np.float64)
    x[:4, 2], x[4:8, 2] = 0.5 + 5e-13, 0.5 + 2e-12
    check("TreeEnsembleRegressor", {"x": x}, **nodes, **weights)


ENSEMBLE: dict[str, Any] = {
    "n_targets": 2,
    "tree_roots": [0, 2],
    "nodes_featureids": [1, 0, 2],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falseleafs": [1, 1, 1],
    "nodes_truenodeids": [1, 1, 3],
    "nodes_falsenodeids": [0, 2, 0],
    "leaf_targetids": [0, 1, 0, 1],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("modes", [(0, 1, 2), (3, 4, 5), (0, 6, 6)])
def test_ensemble_of_tensors(dtype: Any, modes: Sequence[int]) -> None:
    """Two trees; a mode 6 is a set."""
    attributes = dict(ENSEMBLE)
    numbers: dict[str, Any] = {
        "nodes_modes": np.array(modes, np.uint8),
        "nodes_splits": np.array([0.5, -1, 2], dtype),
        "leaf_weights": np.array([1, 2, 4, 8], dtype),
    }
    if 6 in modes:
        numbers["membership_values"] = np.array([1, 3, NAN, 2, 7, 9, NAN], dtype)
    for name, array in numbers.items():
        attributes[name] = numpy_helper.from_array(array, name)
    x = np.round(samples(40)).astype(dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    check("TreeEnsemble", {"x": x}, (element,), 5, **attributes)


def test_trees_with_cycles_are_refused() -> None:
    nodes = tree_nodes(["BRANCH_LEQ", "BRANCH_LEQ"])
    nodes |= {"nodes_falsenodeids": [2, 0, 0, 0, 0, 0], "n_targets": 1}
    weights = targets("target", [0] * 4, [1.0] * 4)
    model = model_of("TreeEnsembleRegressor", {"x": samples()}, **nodes, **weights)
    with pytest.raises(LegalizationError, match="cycle"):
        lowerdeck.compile(model, cache=False)


def test_classes_that_are_strings_are_numbered(tmp_path: Path) -> None:
    """The names stand in the header, and in Python beside the output."""
    x = np.array([[1, 2], [-3, 0.5], [0, 4]], np.float32)
    texts = ["b", 'a "1"??/', "ç"]
    model = model_of(
        "LinearClassifier",
        {"x": x},
        (TensorProto.STRING, TensorProto.FLOAT),
        classlabels_strings=texts,
        coefficients=[1.0, 2, -1, 0, 0.5, 1],
        intercepts=[0.0, 1, -1],
    )
    evaluator: Any = ReferenceEvaluator(model)
    names, scores = evaluator.run(None, {"x": x})
    model.graph.node.append(helper.make_node("ZipMap", ["y1"], ["z"], domain="ai.onnx.ml"))
    model.graph.output[1].name = "z"
    model.graph.node.append(helper.make_node("Identity", ["y0"], ["label"]))
    model.graph.output[0].name = "label"
    compiled = lowerdeck.compile(model, cache=False, name="demo")
    found, (label, scored) = compiled({"x": x}), compiled.outputs
    assert (label.classes, scored.classes) == (tuple(texts), ())
    assert [label.classes[number] for number in found["label"]] == list(names)
    compiled.save(tmp_path / "saved")
    header = next((tmp_path / "saved").rglob("demo.h")).read_text()
    assert "extern const char *const demo_label_classes[3];" in header
    assert lowerdeck.load(tmp_path / "saved").outputs == compiled.outputs
    np.testing.assert_allclose(found["z"], scores, rtol=1e-6)
