"""Files of other programs are named, with what to do; legitimate ones are not taken for them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerdeck.frontends import load_model
from lowerdeck.frontends.detect import detect_format
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.foreign import BY_NAME, KINDS
from lowerdeck.frontends.wire import bytes_field, number_field, text_field


def _pickled(module: str, name: str) -> bytes:
    """A pickle that names a class of a module that need not be there."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b")\x81."


def _zip(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return file.getvalue()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model"))
    return file.getvalue()


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(2))
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, w=np.zeros(2))
    return file.getvalue()


_TENSOR = number_field(1, 2) + number_field(2, 1) + text_field(8, "x") + bytes_field(9, bytes(8))
_HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
_SAFE = len(_HEADER).to_bytes(8, "little") + _HEADER + bytes(4)
_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
_CHECKPOINT = bytes_field(
    1,
    text_field(1, "w")
    + bytes_field(2, number_field(1, 4) + text_field(2, "Float32") + bytes_field(3, bytes(16))),
)
_OPERATOR = text_field(1, "x") + text_field(2, "y") + text_field(4, "Conv")
_CAFFE2 = text_field(1, "net") + bytes_field(2, _OPERATOR)
_CNTK = number_field(1, 1) + bytes_field(2, text_field(1, "primitive_functions"))
_CORE_ML = number_field(1, 4) + bytes_field(2, text_field(1, "x")) + bytes_field(500, b"")
_KERAS = json.dumps({"class_name": "Functional", "config": {"name": "m"}}).encode()
_TFJS = json.dumps({"format": "layers-model", "modelTopology": {}}).encode()
_TABLE = bytes(40) + (0xDB4775248B80FB57).to_bytes(8, "little")

FILES: list[tuple[str, bytes, str]] = [
    ("m.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "pointer of Git LFS"),
    ("m.onnx", b"\n<!DOCTYPE html>\n<html><head></head>", "a page in HTML"),
    ("m.tflite", b"<html lang='en'>", "a page in HTML"),
    ("m.safetensors", _SAFE, "a file of safetensors"),
    ("m.npz", _npz(), "an archive of arrays"),
    ("m.npy", _npy(), "an array of numpy"),
    ("m.gguf", b"GGUF\x03\0\0\0", "a model of llama.cpp"),
    ("m.bin", b"lmgg\0\0\0\0", "a model of ggml"),
    ("m.bin", b"tjgg\0\0\0\0", "a model of ggml"),
    ("yolo.weights", b"\0\0\0\0\2\0\0\0\5\0\0\0" + bytes(12), "weights of DarkNet"),
    ("m.ckpt", _CHECKPOINT, "a checkpoint of MindSpore"),
    ("m.ckpt", _TABLE, "a checkpoint of TensorFlow"),
    ("v.index", _TABLE, "a checkpoint of TensorFlow"),
    ("v.data-00000-of-00001", bytes(range(32)), "a part of a checkpoint of TensorFlow"),
    ("m.pth", _LEGACY, "a pickle of PyTorch"),
    ("m.pdopt", pickle.dumps({"StructuredToParameterName@@": {}}), "an optimizer of PaddlePaddle"),
    ("m.blob", b"RR_UPCVO\x01\0\0\0", "a model that OpenVINO has compiled"),
    ("input_0.pb", _TENSOR, "a tensor of ONNX"),
    ("m.pdparams", pickle.dumps({"StructuredToParameterName@@": {}}), "parameters of PaddlePaddle"),
    ("m.bin", pickle.dumps({"StructuredToParameterName@@": {}}), "parameters of PaddlePaddle"),
    ("m.pdopt", pickle.dumps({"lr": 1}), "the state of an optimizer of PaddlePaddle"),
    ("m.pkl", _pickled("xgboost.sklearn", "XGBClassifier"), "a pickled model of XGBoost"),
    ("m.pkl", _pickled("lightgbm.basic", "Booster"), "a pickled model of LightGBM"),
    ("m.pkl", _pickled("sklearn.svm._classes", "SVC"), "a pickled model of scikit-learn"),
    ("m.joblib", _pickled("joblib.numpy_pickle", "NumpyArrayWrapper"), "a file of joblib"),
    ("m.pkl", _pickled("torch.nn.modules.linear", "Linear"), "a pickled module of PyTorch"),
    ("m.onnx", pickle.dumps(OrderedDict(a=1), 4), "is a pickle: loading it runs code"),
    ("m.dnn", b"B\0C\0N\0\0\0B\0V\0", "a model of CNTK 1"),
    ("m.model", _CNTK, "a model of CNTK 2"),
    ("m.mlmodel", _CORE_ML, "a model of Core ML"),
    ("predict_net.pb", _CAFFE2, "a net of Caffe2"),
    (
        "predict_net.pbtxt",
        b'name: "net"\nop {\n  input: "x"\n  type: "Conv"\n}\n',
        "a net of Caffe2",
    ),
    ("m.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">\n<layers>', "OpenVINO"),
    ("m.pmml", b'<?xml version="1.0"?>\n<PMML version="4.4">', "a model in PMML"),
    ("model.json", _TFJS, "a model of TensorFlow.js"),
    (
        "weights_manifest.json",
        b'[{"paths": ["a.bin"], "weights": []}]',
        "a manifest of the weights",
    ),
    ("m.json", _KERAS, "the configuration of a model of Keras"),
    ("config.json", b'{"architectures": ["BertModel"]}', "a model of transformers"),
    ("m.json", b'{"nodes": [{"op": "tvm_op"}]}', "the graph of a module of TVM"),
    ("m.params", b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7", "a file of parameters of TVM"),
    ("m.param", b"7767517\n3 3\nInput data 0 1 data\n", "a model of ncnn"),
    ("m.param.bin", b"\xdd\x85\x76\0\3\0\0\0", "a model of ncnn"),
    ("m.mnn", bytes(range(16)), "a model of MNN"),
    ("m.rknn", b"RKNN\0\0\0\0", "a model of RKNN"),
    ("m.ort", b"\x10\0\0\0ORTM\0\0", "a model of ONNX Runtime"),
    ("m.pte", b"\x10\0\0\0ET12\0\0", "a program of ExecuTorch"),
    ("m.ms", b"\x10\0\0\0MSL2\0\0", "a model of MindSpore Lite"),
    ("m.air", bytes(range(16)), "a model of Ascend"),
    ("m.om", b"IMOD\0\0\0\0", "a compiled model of Ascend"),
    ("m.engine", b"ptrt\0\0\0\0", "an engine of TensorRT"),
    ("m.plan", bytes(range(16)), "an engine of TensorRT"),
    ("m.ftz", b"\xba\x16\x4f\x2f\x0c\0\0\0", "a model of fastText"),
    ("m.js", b"!function(e){}()", "a program of JavaScript"),
    ("m.cbm", b"CBM1\0\0\0\0", "a model of CatBoost"),
    ("m.txt", b"tree\nversion=v3\nnum_class=1\n", "a model of LightGBM"),
    ("m.json", b'{"learner":{"attributes":{}},"version":[1,7]}', "a model of XGBoost"),
    ("m.ubj", b"{L\0\0\0\0\0\0\0\x07learner", "a model of XGBoost"),
    ("m.onnx", b"\x89PNG\r\n\x1a\n", "an image"),
    ("m.tflite", b"\xff\xd8\xff\xe0\0\x10JFIF", "an image"),
    ("m.webp", b"RIFF\0\0\0\0WEBPVP8 ", "an image"),
    ("m.pb", b"%PDF-1.4", "a document"),
    ("m.pb.gz", b"\x1f\x8b\x08\0", "a file that is compressed"),
    ("m.7z", b"7z\xbc\xaf\x27\x1c", "a file that is compressed"),
    ("m.tar", _tar(), "an archive (tar)"),
    ("m.zip", _zip("model.onnx"), "an archive (zip)"),
    ("m.so", b"\x7fELF\x02\x01", "a library or program"),
    ("model.py", b"import torch\n", "a program in Python"),
    ("m.bin", bytes(range(16)), "numbers without a header"),
    ("README.md", b"# A model\n", "is a text"),
]


@pytest.mark.parametrize(("name", "data", "what"), FILES, ids=[f"{f[2]}-{f[0]}" for f in FILES])
def test_files_of_other_programs_are_named(
    name: str, data: bytes, what: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FrontendError) as caught:
        detect_format(str(path))
    message = str(caught.value)
    assert what in message
    assert "\n" not in message
    assert re.fullmatch(r".*: (is|the) .+: .+; .+", message), message


def test_every_kind_has_a_file() -> None:
    texts = " ".join(what for _, _, what in FILES)
    for kind in (*KINDS, *BY_NAME):
        words = re.sub(r" *\(.*?\)", "", kind.what).split()[1:]
        assert any(" ".join(words[:count]) in texts for count in (len(words), 3, 2)), kind.what


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["Manifest.json", "Data/m.mlmodel"], "is a package of Core ML"),
        (["coremldata.bin"], "is a compiled model of Core ML"),
        (["variables/variables.index"], "is a SavedModel without its saved_model.pb"),
        (["keras_metadata.pb"], "is a SavedModel without its saved_model.pb"),
        (["config.json", "model.safetensors"], "is a model of transformers"),
        (["config.json", "pytorch_model.bin"], "is a model of transformers"),
        ([], "is a folder, expected a file"),
    ],
)
def test_folders_of_other_programs_are_named(names: list[str], what: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(FrontendError, match=what):
        detect_format(str(tmp_path))


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("trap",)


def test_pickles_are_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(_Trap()))
    with pytest.raises(FrontendError, match="is a pickle: loading it runs code"):
        detect_format("m.pkl")
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("cut", [2, 3, 9, 20])
def test_what_is_cut_off_is_no_surprise(cut: int, tmp_path: Path) -> None:
    for name, data, _ in FILES:
        path = tmp_path / name
        path.write_bytes(data[:cut])
        with contextlib.suppress(FrontendError):
            assert detect_format(str(path))


def test_models_that_are_read_are_none_of_them() -> None:
    root = Path(__file__).parent
    for pattern in ("**/*.onnx", "**/*.mindir", "**/*.pdmodel", "**/*.pt2", "**/*.tflite"):
        for path in root.glob(pattern):
            assert detect_format(str(path))


_TEXTS = {
    "net.prototxt": "input: 'data' input_shape { dim: 1 dim: 3 }\n"
    "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'r' }\n",
    "graph.pbtxt": 'node { name: "x" op: "Placeholder"'
    ' attr { key: "dtype" value { type: DT_FLOAT } }'
    ' attr { key: "shape" value { shape { dim { size: 3 } } } } }\n'
    'node { name: "y" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }\n',
    "net-symbol.json": '{"nodes": '
    '[{"op": "null", "name": "x", "attrs": {"__shape__": "(2, 3)"}, "inputs": []}, '
    '{"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0]]}], '
    '"arg_nodes": [0], "heads": [[1, 0, 0]]}\n',
    "net.cfg": "[net]\nwidth=4\nheight=4\nchannels=1\n[softmax]\n",
    "text.mlir": "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
    "  return %x : tensor<3xf32>\n}\n",
}


@pytest.mark.parametrize("name", _TEXTS)
def test_texts_may_begin_with_a_mark_and_have_ends_of_windows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = _TEXTS[name].replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert list(load_model(str(path)).ops)
