"""
The models of `real_models.py`: which there are, and how each is made.

    python -m models.real_exports FOLDER [NAME ...]

It runs in a Python that has the packages of `real_models.py install` and needs nothing of this
project. For each model it writes NAME.onnx and its inputs, NAME.npz, NAME.1.npz and so on, arrays
"input:<tensor>"; what is there already stays. Models come out of packages as they are, from
scikit-learn, or from PyTorch with random weights. The exit status is 1 if one cannot be made.
"""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from models.exporting import SEED, Case, detector, from_torch, make_all, output, vision
from models.real_inputs import Inputs, fixed, normal, uniform, whole

CASES: dict[str, Case] = {}


# Models in packages


def package_file(package: str, path: str) -> Path:
    """A file that an installed package has, without importing the package."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise FileNotFoundError(f"the package {package} is not installed")
    return Path(next(iter(spec.submodule_search_locations)), path)


def shipped(name: str, package: str, path: str, *inputs: Inputs) -> None:
    """A model that is a file of a package."""
    CASES[name] = Case(
        lambda target: onnx.save(onnx.load(package_file(package, path)), target), inputs
    )


def _packages() -> None:
    ocr = "rapidocr_onnxruntime"
    shipped(
        "ppocr_v4_det",
        ocr,
        "models/ch_PP-OCRv4_det_infer.onnx",
        {"x": normal(1, 3, 192, 256)},
        {"x": normal(2, 3, 96, 160)},
    )
    shipped(
        "ppocr_v4_rec",
        ocr,
        "models/ch_PP-OCRv4_rec_infer.onnx",
        {"x": normal(1, 3, 48, 320)},
        {"x": normal(2, 3, 48, 160)},
    )
    shipped(
        "ppocr_v2_cls",
        ocr,
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": normal(1, 3, 48, 192)},
        {"x": normal(2, 3, 48, 48)},
    )
    for name, file in {
        "silero_vad": "silero_vad.onnx",
        "silero_vad_ifless": "silero_vad_op18_ifless.onnx",
    }.items():
        sets = [_speech(16000, 1), _speech(8000, 1), _speech(16000, 3)]
        shipped(name, "silero_vad", f"data/{file}", *sets)
    sets = [_speech(16000, 1), _speech(16000, 3)]
    shipped("silero_vad_16k_op15", "silero_vad", "data/silero_vad_16k_op15.onnx", *sets)
    sets = [{name: one[name] for name in ("input", "state")} for one in sets]
    shipped("silero_vad_half", "silero_vad", "data/silero_vad_half.onnx", *sets)
    shipped(
        "silero_vad_sequence",
        "silero_vad",
        "data/silero_vad_16k_sequence.onnx",
        {"input": normal(20, 576), "h": normal(1, 1, 128), "c": normal(1, 1, 128)},
        {"input": normal(7, 576), "h": normal(1, 1, 128), "c": normal(1, 1, 128)},
    )
    shipped("silero_vad_openvino", "silero_vad", "data/silero_vad_openvino_16k.onnx")
    shipped(
        "magika_v3_3",
        "magika",
        "models/standard_v3_3/model.onnx",
        {"bytes": whole(257, 1, 2048, dtype=np.int32)},
        {"bytes": whole(257, 3, 2048, dtype=np.int32)},
    )
    shipped(
        "ddddocr_det",
        "ddddocr",
        "common_det.onnx",
        {"images": normal(1, 3, 416, 416)},
    )
    for name in ("common", "common_old"):
        shipped(
            f"ddddocr_{name}",
            "ddddocr",
            f"{name}.onnx",
            {"input1": uniform(1, 1, 64, 160)},
            {"input1": uniform(1, 1, 64, 96)},
        )
    shipped(
        "nudenet_320n",
        "nudenet",
        "320n.onnx",
        {"images": uniform(1, 3, 320, 320)},
        {"images": uniform(1, 3, 256, 256)},
    )
    shipped(
        "basic_pitch",
        "basic_pitch",
        "saved_models/icassp_2022/nmp.onnx",
        {"serving_default_input_2:0": normal(1, 43844, 1)},
        {"serving_default_input_2:0": normal(2, 43844, 1)},
    )
    for name in (
        "bvlc_alexnet",
        "densenet121",
        "inception_v1",
        "inception_v2",
        "resnet50",
        "shufflenet",
        "squeezenet",
        "vgg19",
        "zfnet512",
    ):
        path = f"backend/test/data/light/light_{name}.onnx"
        shipped(f"light_{name}", "onnx", path)
    shipped("ort_mul_1", "onnxruntime", "datasets/mul_1.onnx")
    shipped("ort_sigmoid", "onnxruntime", "datasets/sigmoid.onnx")


def _speech(rate: int, batch: int) -> Inputs:
    """32 ms of sound with 4 ms of what was before."""
    return {
        "input": normal(batch, rate * 36 // 1000),
        "state": normal(2, batch, 128),
        "sr": fixed(rate, np.int64),
    }


# scikit-learn


def learned(name: str, fit: Callable[[Any, Any, Any], Any], *, target: str = "class") -> None:
    """A model of scikit-learn on 6 features, `fit` from features, targets and the package."""

    def make(path: Path) -> None:
        import sklearn
        from skl2onnx import to_onnx
        from sklearn import utils  # noqa: F401  (makes `sklearn` complete)

        rng = np.random.default_rng(SEED)
        x = rng.standard_normal((200, 6)).astype(np.float32)
        score = x @ rng.standard_normal(6) + 0.3 * x[:, 0] * x[:, 1]
        y = score if target == "value" else np.digitize(score, [-1, 1])
        model = fit(x, y, sklearn)
        options = {"zipmap": False} if hasattr(model, "predict_proba") else None
        onnx.save(to_onnx(model, x[:1], options=options, target_opset=18), path)

    CASES[name] = Case(make, [{"X": normal(1, 6)}, {"X": normal(64, 6)}])


def _pipeline(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*steps)


def _scikit_learn() -> None:
    def logistic(x: Any, y: Any, _: Any) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        return _pipeline(StandardScaler(), LogisticRegression()).fit(x, y)

    def normalized_sgd(x: Any, y: Any, _: Any) -> Any:
        from sklearn.linear_model import SGDClassifier
        from sklearn.preprocessing import Normalizer

        return _pipeline(Normalizer(), SGDClassifier(loss="log_loss", random_state=0)).fit(x, y)

    def support_vectors(x: Any, y: Any, _: Any) -> Any:
        from sklearn.svm import SVC

        return SVC(probability=True, random_state=0).fit(x, y)

    def support_regression(x: Any, y: Any, _: Any) -> Any:
        from sklearn.svm import SVR

        return SVR().fit(x, y)

    def forest(x: Any, y: Any, _: Any) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(30, max_depth=8, random_state=0).fit(x, y)

    def tree(x: Any, y: Any, _: Any) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(random_state=0).fit(x, y)

    def boosting(x: Any, y: Any, _: Any) -> Any:
        from sklearn.ensemble import GradientBoostingRegressor

        return GradientBoostingRegressor(random_state=0).fit(x, y)

    def boosting_classes(x: Any, y: Any, _: Any) -> Any:
        from sklearn.ensemble import GradientBoostingClassifier

        return GradientBoostingClassifier(n_estimators=20, random_state=0).fit(x, y)

    def extra_trees(x: Any, y: Any, _: Any) -> Any:
        from sklearn.ensemble import ExtraTreesRegressor

        return ExtraTreesRegressor(20, max_depth=7, random_state=0).fit(x, y)

    def neighbors(x: Any, y: Any, _: Any) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(5).fit(x, y)

    def perceptron(x: Any, y: Any, _: Any) -> Any:
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier((32, 16), max_iter=100, random_state=0).fit(x, y)

    def clusters(x: Any, y: Any, _: Any) -> Any:
        from sklearn.cluster import KMeans
        from sklearn.decomposition import PCA

        return _pipeline(PCA(4), KMeans(5, random_state=0, n_init=3)).fit(x)

    def gaussian(x: Any, y: Any, _: Any) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF

        return GaussianProcessRegressor(RBF(), alpha=0.1).fit(x[:80], y[:80])

    def imputed(x: Any, y: Any, _: Any) -> Any:
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures

        steps = SimpleImputer(), MinMaxScaler(), PolynomialFeatures(2), Ridge()
        return _pipeline(*steps).fit(x, y)

    def binarized(x: Any, y: Any, _: Any) -> Any:
        from sklearn.naive_bayes import BernoulliNB
        from sklearn.preprocessing import Binarizer

        return _pipeline(Binarizer(threshold=0.2), BernoulliNB()).fit(x, y)

    def binned(x: Any, y: Any, _: Any) -> Any:
        from sklearn.linear_model import LinearRegression
        from sklearn.preprocessing import KBinsDiscretizer

        return _pipeline(KBinsDiscretizer(4, encode="onehot-dense"), LinearRegression()).fit(x, y)

    for name, fit in {
        "skl_scaler_logreg": logistic,
        "skl_normalizer_sgd": normalized_sgd,
        "skl_svc": support_vectors,
        "skl_random_forest": forest,
        "skl_decision_tree": tree,
        "skl_boosting_classes": boosting_classes,
        "skl_knn": neighbors,
        "skl_mlp": perceptron,
        "skl_pca_kmeans": clusters,
        "skl_bernoulli_nb": binarized,
    }.items():
        learned(name, fit)
    for name, fit in {
        "skl_svr": support_regression,
        "skl_gradient_boosting": boosting,
        "skl_extra_trees": extra_trees,
        "skl_gaussian_process": gaussian,
        "skl_imputer_poly_ridge": imputed,
        "skl_kbins_linear": binned,
    }.items():
        learned(name, fit, target="value")


# PyTorch


def traced(name: str, build: Callable[[], Any], *inputs: Inputs, **options: Any) -> None:
    """A module of PyTorch, with the options of `from_torch`."""
    CASES[name] = from_torch(build, *inputs, **options)


def _torchvision() -> None:
    batch = {"input": {0: "batch"}}
    image = {"input": {0: "batch", 2: "height", 3: "width"}}
    for name in (
        "regnet_y_400mf",
        "resnext50_32x4d",
        "mnasnet1_0",
        "shufflenet_v2_x1_0",
        "mobilenet_v3_large",
        "efficientnet_v2_s",
        "convnext_tiny",
        "densenet121",
        "resnet18",
        "squeezenet1_1",
    ):
        traced(
            f"tv_{name}",
            vision(name=name),
            {"input": normal(1, 3, 128, 128)},
            {"input": normal(2, 3, 96, 160)},
            dynamic=image,
        )
    traced(
        "tv_googlenet",
        vision(name="googlenet", aux_logits=False, init_weights=False),
        {"input": normal(1, 3, 128, 128)},
        {"input": normal(2, 3, 96, 160)},
        dynamic=image,
    )
    for name, size in {
        "swin_t": 224,
        "swin_v2_t": 256,
        "maxvit_t": 224,
        "vit_b_32": 224,
    }.items():
        traced(
            f"tv_{name}",
            vision(name=name),
            {"input": normal(1, 3, size, size)},
            {"input": normal(2, 3, size, size)},
            dynamic=batch,
        )
    for name in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"):
        traced(
            f"tv_{name}",
            lambda name=name: output("out", vision("segmentation", name, weights_backbone=None)()),
            {"input": normal(1, 3, 128, 128)},
            {"input": normal(2, 3, 96, 160)},
            dynamic=image,
        )
    traced(
        "tv_r3d_18",
        vision("video", "r3d_18"),
        {"input": normal(1, 3, 8, 64, 64)},
        {"input": normal(2, 3, 8, 64, 64)},
        dynamic=batch,
    )
    traced(
        "tv_raft_small",
        lambda: output(-1, vision("optical_flow", "raft_small")(), num_flow_updates=3),
        {"first": uniform(1, 3, 128, 128), "second": uniform(1, 3, 128, 128)},
        {"first": uniform(2, 3, 128, 128), "second": uniform(2, 3, 128, 128)},
        dynamic={"first": {0: "batch"}, "second": {0: "batch"}},
    )
    traced(
        "tv_ssdlite320",
        lambda: detector("ssdlite320_mobilenet_v3_large"),
        {"input": uniform(3, 320, 320)},
        {"input": uniform(3, 320, 320)},
    )
    traced(
        "tv_maskrcnn_resnet50_fpn",
        lambda: detector("maskrcnn_resnet50_fpn", min_size=224, max_size=320),
        {"input": uniform(3, 224, 288)},
        {"input": uniform(3, 224, 288)},
    )
    traced(
        "tv_fasterrcnn_mobilenet",
        lambda: detector("fasterrcnn_mobilenet_v3_large_320_fpn"),
        {"input": uniform(3, 320, 320)},
        {"input": uniform(3, 320, 320)},
    )


def _networks() -> None:
    from models import real_networks as networks

    for name, network in networks.NETWORKS.items():
        traced(name, network.build, *network.inputs, dynamic=network.dynamic, dynamo=network.dynamo)


# Quantized


def _quantized() -> None:
    def dynamic(source: str) -> Callable[[Path], None]:
        def make(path: Path) -> None:
            from onnxruntime.quantization import quantize_dynamic

            quantize_dynamic(_made(source, path), path)

        return make

    def static(source: str, form: str) -> Callable[[Path], None]:
        def make(path: Path) -> None:
            from onnxruntime.quantization import QuantFormat, quantize_static

            model, rng = _made(source, path), np.random.default_rng(SEED)
            feeds = [
                {given: value(rng) for given, value in CASES[source].inputs[0].items()}
                for _ in range(2)
            ]
            reader: Any = _Reader(feeds)
            quantize_static(model, path, reader, quant_format=QuantFormat[form])

        return make

    for name, make, source in (
        ("q_dynamic_lstm", dynamic("lstm_ctc"), "lstm_ctc"),
        ("q_dynamic_whisper_encoder", dynamic("whisper_encoder"), "whisper_encoder"),
        ("q_dynamic_t5_encoder", dynamic("t5_encoder"), "t5_encoder"),
        ("q_qdq_nudenet", static("nudenet_320n", "QDQ"), "nudenet_320n"),
        ("q_qdq_ppocr_det", static("ppocr_v4_det", "QDQ"), "ppocr_v4_det"),
        ("q_qop_ppocr_cls", static("ppocr_v2_cls", "QOperator"), "ppocr_v2_cls"),
    ):
        CASES[name] = Case(make, CASES[source].inputs)


class _Reader:
    """What calibration asks for its inputs."""

    def __init__(self, feeds: Sequence[Mapping[str, Any]]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Any:
        """The next inputs, None at the end."""
        return next(self._feeds, None)


def _made(name: str, beside: Path) -> Path:
    path = beside.with_name(f"{name}.onnx")
    if not path.exists():
        CASES[name].make(path)
    return path


_packages()
_scikit_learn()
_torchvision()
_networks()
_quantized()

if __name__ == "__main__":
    sys.exit(make_all(CASES, __doc__))
