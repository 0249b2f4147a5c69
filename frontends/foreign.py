"""
Files that are not models that are read: what they are, why not, and what makes a file that is.

The kinds are told by their first bytes, by the outline of their message or by their suffix. Nothing
is opened that executes: pickles are looked through opcode by opcode.
"""

from __future__ import annotations

import os
import pickletools
import re
import zipfile
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from lowerdeck.dialects.records import record
from lowerdeck.frontends.wire import LENGTH, Outline, outline

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
"""The bytes that text has none of."""

VARINT = 0
_PICKLE_BYTES = 1 << 20
"""The bytes of a pickle that are looked through."""
_PICKLE_OPCODES = 20_000


@record
class File:
    """What is looked at: the path, and the first bytes of a file."""

    path: str
    head: bytes

    @cached_property
    def suffix(self) -> str:
        """In lower case, with the dot."""
        return os.path.splitext(self.path)[1].lower()

    @cached_property
    def text(self) -> str:
        """The head as text without the space before it, empty if it is none."""
        if CONTROL.search(self.head) is not None:
            return ""
        return self.head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")

    @cached_property
    def size(self) -> int:
        """The bytes of the file."""
        return os.path.getsize(self.path)

    @cached_property
    def fields(self) -> Outline:
        """The outline of a message."""
        return outline(self.path)

    @cached_property
    def members(self) -> list[str]:
        """The names in a zip archive; none if it is not one."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return []

    @cached_property
    def globals(self) -> str:
        """The modules and texts that a pickle names, one a line; empty if it is no pickle."""
        if len(self.head) < 2 or self.head[0] != 0x80 or not 2 <= self.head[1] <= 5:
            return ""
        with open(self.path, "rb") as file:
            data = file.read(_PICKLE_BYTES)
        names: list[str] = ["pickle"]
        try:
            for number, (_, argument, _) in enumerate(pickletools.genops(data)):
                if number > _PICKLE_OPCODES:
                    break
                if isinstance(argument, str):
                    names.append(argument)
        except (ValueError, IndexError, OverflowError, MemoryError, UnicodeError):
            pass
        return "\n".join(names)


_Test: TypeAlias = "Callable[[File], bool]"


@record
class Kind:
    """A kind of file."""

    what: str
    why: str
    step: str
    is_it: _Test

    @property
    def message(self) -> str:
        """The line that is said of a file."""
        return f"is {self.what}: {self.why}; {self.step}"


def _at(offset: int, *marks: bytes) -> _Test:
    return lambda file: any(file.head[offset : offset + len(mark)] == mark for mark in marks)


def _begins(*marks: bytes) -> _Test:
    return _at(0, *marks)


def _named(*suffixes: str) -> _Test:
    return lambda file: file.suffix in suffixes


def _says(*patterns: str) -> _Test:
    """True for text in whose head all patterns are found."""
    return lambda file: all(re.search(pattern, file.text) for pattern in patterns)


def _opens(*words: str) -> _Test:
    return lambda file: file.text[:40].lower().startswith(words)


def _json(*keys: str) -> _Test:
    """True for JSON in whose head all keys are found."""
    return lambda file: file.text.startswith("{") and all(f'"{key}"' in file.text for key in keys)


def _pickle(*patterns: str) -> _Test:
    """True for a pickle that names something that each pattern matches at its beginning."""
    return lambda file: all(
        re.search(f"^(?:{pattern})", file.globals, re.MULTILINE) for pattern in patterns
    )


# Formats of which bytes alone do not decide


def _is_safetensors(file: File) -> bool:
    size = int.from_bytes(file.head[:8], "little")
    return file.head[8:9] == b"{" and 2 <= size <= file.size - 8


def _is_core_ml(file: File) -> bool:
    """A Model: the version of the specification, a description, and one of the kinds of models."""
    fields = file.fields
    if fields.first(1) != VARINT or fields.first(2) != LENGTH:
        return False
    return any(200 <= field.number <= 3000 and field.wire == LENGTH for field in fields.fields)


def _is_onnx_tensor(file: File) -> bool:
    """A TensorProto: dimensions, an element type, and bytes of numbers."""
    fields = file.fields
    kinds = {(field.number, field.wire) for field in fields.fields}
    return {(2, VARINT), (9, LENGTH)} <= kinds <= {(1, VARINT), (1, LENGTH), *_OF_TENSORS}


_OF_TENSORS = ((2, VARINT), (8, LENGTH), (9, LENGTH), (12, LENGTH))


def _is_caffe2(file: File) -> bool:
    """A NetDef: operators whose type is a word and whose arguments are messages."""
    fields = file.fields
    if fields.first(1) not in (None, LENGTH) or fields.first(2) != LENGTH:
        return False
    operator = fields.inside(2)
    types = [field for field in operator.fields if (field.number, field.wire) == (4, LENGTH)]
    if not types or operator.first(5) not in (None, LENGTH):
        return False
    word = bytes(operator.data[types[0].body : types[0].end][:100])
    return re.fullmatch(rb"[A-Za-z][A-Za-z0-9_]+", word) is not None


def _is_cntk(file: File) -> bool:
    """A Dictionary with the parts of a function."""
    fields = file.fields
    if {field.number for field in fields.fields} != {1, 2} or fields.first(1) != VARINT:
        return False
    with open(file.path, "rb") as opened:
        data = opened.read(_PICKLE_BYTES)
    return b"CompositeFunction" in data or b"primitive_functions" in data


def _is_mindspore_checkpoint(file: File) -> bool:
    """A Checkpoint: values with a tag and a tensor of a named type."""
    fields = file.fields
    value = fields.inside(1)
    tensor = value.inside(2)
    is_named = value.first(1) == LENGTH and tensor.first(2) == LENGTH and tensor.first(3) == LENGTH
    return is_named and all(field.number == 1 for field in fields.fields)


def _is_table(file: File) -> bool:
    """A table of LevelDB, of which checkpoints of TensorFlow are made, by its last bytes."""
    with open(file.path, "rb") as opened:
        opened.seek(max(file.size - 8, 0))
        return opened.read() == (0xDB4775248B80FB57).to_bytes(8, "little")


def _is_darknet_weights(file: File) -> bool:
    words = [int.from_bytes(file.head[k : k + 4], "little") for k in (0, 4, 8)]
    return file.suffix == ".weights" and len(file.head) >= 16 and max(words) < 2_000


def _is_zip(file: File) -> bool:
    return file.head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


_OF_READERS = (".keras", ".pt2", ".pt", ".pth", ".ptl", ".bin", ".params")
"""Suffixes of zip archives that frontends read, or say more of."""


def _is_numpy_archive(file: File) -> bool:
    return _is_zip(file) and bool(file.members) and all(n.endswith(".npy") for n in file.members)


def _is_other_zip(file: File) -> bool:
    if not _is_zip(file) or file.suffix in _OF_READERS:
        return False
    inner = ("data.pkl", "models/model.json", "config.json", "serialized_exported_program.json")
    return not any(name.endswith(inner) for name in file.members)


# What to do

_TORCH = (
    "torch.export.save(torch.export.export(model.eval(), (x,)), 'model.pt2') writes a file that is "
    "read"
)
_KERAS = "model.save('model.keras') writes a file that is read"
_PADDLE = (
    "paddle.jit.save(model, 'model', input_spec=[paddle.static.InputSpec([1, 3, 224, 224])]) "
    "writes files that are read"
)
_MINDSPORE = (
    "mindspore.load_checkpoint('model.ckpt', net); mindspore.export(net, x, file_name='model', "
    "file_format='MINDIR') write a file that is read"
)
_ORIGINAL = "give the model that it was made of, as ONNX, .pt2, .keras or a SavedModel"
_AGAIN = "get the file itself"
_WEIGHTS = "has tensors by name and no graph"
_CODE = "loading it runs code, and it has no graph"
_DEVICE = "holds code for a device, not a graph"

_TREES = "is a model of decision trees, not a graph of tensors"

KINDS: Sequence[Kind] = (
    # What was downloaded instead of a model
    Kind(
        "a pointer of Git LFS",
        "the file was not downloaded",
        "git lfs pull fetches it",
        _opens("version https://git-lfs"),
    ),
    Kind(
        "a page in HTML",
        "what was downloaded is no file of a model, but a page about one, or an error",
        "download the file itself, as with curl -L",
        _opens("<!doctype html", "<html", "<head"),
    ),
    # Weights
    Kind("a file of safetensors", _WEIGHTS, f"load it into the model; {_TORCH}", _is_safetensors),
    Kind(
        "an archive of arrays (.npz)",
        _WEIGHTS,
        f"load them into the model and save that: {_ORIGINAL}",
        _is_numpy_archive,
    ),
    Kind(
        "an array of numpy (.npy)",
        "has numbers and no graph",
        f"it may be an input (--inputs); {_ORIGINAL}",
        _begins(b"\x93NUMPY"),
    ),
    Kind(
        "a model of llama.cpp (GGUF)",
        "has weights of a language model and no graph",
        f"take the weights that it was made of; {_TORCH}",
        _begins(b"GGUF", b"FUGG"),
    ),
    Kind(
        "a model of ggml",
        "has weights and no graph",
        f"take the weights that it was made of; {_TORCH}",
        _begins(b"lmgg", b"fmgg", b"tjgg", b"algg"),
    ),
    Kind(
        "weights of DarkNet",
        "they say nothing of the layers",
        "give the .cfg as the model, and this file with --weights",
        _is_darknet_weights,
    ),
    Kind(
        "a checkpoint of MindSpore (.ckpt)",
        "has parameters by name and no graph",
        _MINDSPORE,
        _is_mindspore_checkpoint,
    ),
    Kind(
        "a checkpoint of TensorFlow",
        "has variables by name and no graph",
        "give the .meta beside it, or write a SavedModel: tf.saved_model.save(model, 'folder')",
        _is_table,
    ),
    # Pickles
    Kind(
        "a pickle of PyTorch (.pth, .pt) in the form before 1.6",
        _CODE,
        f"model.load_state_dict(torch.load('model.pth')) with the model's code, then {_TORCH}",
        _begins(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"),
    ),
    Kind(
        "the state of an optimizer of PaddlePaddle (.pdopt)",
        "only training needs it",
        f"take the model: {_PADDLE}",
        lambda file: bool(file.globals) and file.suffix == ".pdopt",
    ),
    Kind(
        "a file of parameters of PaddlePaddle (.pdparams)",
        "has tensors by name and no program",
        f"model.set_state_dict(paddle.load('model.pdparams')), then {_PADDLE}",
        lambda file: (
            bool(file.globals)
            and (file.suffix == ".pdparams" or "StructuredToParameterName@@" in file.globals)
        ),
    ),
    Kind(
        "a pickled model of XGBoost",
        f"{_CODE}; it {_TREES}",
        "onnxmltools.convert_xgboost(model, ...) makes an ONNX model of it",
        _pickle(r"xgboost"),
    ),
    Kind(
        "a pickled model of LightGBM",
        f"{_CODE}; it {_TREES}",
        "onnxmltools.convert_lightgbm(model, ...) makes an ONNX model of it",
        _pickle(r"lightgbm"),
    ),
    Kind(
        "a pickled model of scikit-learn",
        _CODE,
        "skl2onnx.to_onnx(model, x).SerializeToString() makes an ONNX model of it",
        _pickle(r"sklearn"),
    ),
    Kind(
        "a pickled module of PyTorch",
        _CODE,
        f"load it in PyTorch; {_TORCH}",
        _pickle(r"torch"),
    ),
    Kind(
        "a file of joblib",
        _CODE,
        "save the model itself: skl2onnx.to_onnx(model, x) makes an ONNX model of one of "
        "scikit-learn",
        _pickle(r"joblib"),
    ),
    Kind("a pickle", _CODE, f"load it where it was made; {_ORIGINAL}", _pickle(r"pickle")),
    # Graphs that are not read
    Kind(
        "a model of CNTK 1",
        "its format is that of the program alone",
        "CNTK 2 reads it: cntk.load_model('model.dnn').save('model.onnx', "
        "format=cntk.ModelFormat.ONNX)",
        _begins(b"B\x00C\x00N\x00\x00\x00"),
    ),
    Kind(
        "a model of CNTK 2",
        "its graph is not read",
        "cntk.load_model('model.model').save('model.onnx', format=cntk.ModelFormat.ONNX) writes a "
        "file that is",
        _is_cntk,
    ),
    Kind(
        "a model of Core ML (.mlmodel)",
        "its graph is not read",
        _ORIGINAL,
        _is_core_ml,
    ),
    Kind(
        "a net of Caffe2",
        "its operators are not read",
        "caffe2.python.onnx.frontend.caffe2_net_to_onnx_model(predict_net, init_net, shapes) makes "
        "an ONNX model of both nets",
        lambda file: (
            (file.suffix in (".pb", "") and _is_caffe2(file))
            or _says(r"(?m)^op \{", r"(?m)^\s+type: \"")(file)
        ),
    ),
    Kind(
        "a model of OpenVINO (IR)",
        "its graph is not read",
        _ORIGINAL,
        _says(r"<net\b", r"<layers>|version=\"1\d\""),
    ),
    Kind(
        "a model in PMML",
        _TREES,
        "skl2onnx.to_onnx(model, x) makes an ONNX model of one of scikit-learn",
        _says(r"<PMML\b"),
    ),
    Kind(
        "a model of TensorFlow.js",
        "its graph is in JSON, with weights in other files",
        "tensorflowjs_converter --input_format=tfjs_layers_model --output_format=keras model.json "
        "model.h5 writes a file that is read",
        _json("modelTopology"),
    ),
    Kind(
        "a manifest of the weights of TensorFlow.js",
        _WEIGHTS,
        "give the model: tensorflowjs_converter makes a .h5 of model.json",
        _says(r'^\[\s*\{\s*"(paths|weights)"'),
    ),
    Kind(
        "the configuration of a model of Keras in JSON",
        "has layers and no weights",
        f"keras.models.model_from_json(text), load_weights(...), then {_KERAS}",
        lambda file: (
            _json("class_name", "config")(file)
            and bool(re.search(r'"(Functional|Sequential|Model)"', file.text))
        ),
    ),
    Kind(
        "the configuration of a model of transformers",
        "has sizes, not a graph",
        f"AutoModel.from_pretrained(folder); {_TORCH}",
        lambda file: _json("model_type")(file) or _json("architectures")(file),
    ),
    Kind(
        "the graph of a module of TVM",
        "its nodes are functions that are compiled already",
        _ORIGINAL,
        _says(r'^\{\s*"nodes"', r'"tvm_op"'),
    ),
    Kind(
        "a file of parameters of TVM",
        _WEIGHTS,
        _ORIGINAL,
        _begins(0xF7E58D4F05049CB7.to_bytes(8, "little")),
    ),
    Kind(
        "a model of ncnn (.param)",
        "its layers are not read",
        _ORIGINAL,
        lambda file: file.text.startswith("7767517") or file.head[:4] == b"\xdd\x85\x76\x00",
    ),
    Kind("a model of RKNN", _DEVICE, _ORIGINAL, _begins(b"RKNN")),
    Kind(
        "a model of ONNX Runtime (.ort)",
        "its graph is not that of ONNX any more",
        "give the .onnx that it was made of",
        _at(4, b"ORTM"),
    ),
    Kind("a program of ExecuTorch (.pte)", _DEVICE, _TORCH, _at(4, b"ET12", b"ET13")),
    Kind(
        "a model of MindSpore Lite (.ms)",
        "its graph is not read",
        "mindspore.export(net, x, file_name='model', file_format='MINDIR') writes a file that is",
        _at(4, b"MSL0", b"MSL1", b"MSL2"),
    ),
    Kind("a compiled model of Ascend (.om)", _DEVICE, _ORIGINAL, _begins(b"IMOD")),
    Kind(
        "an engine of TensorRT",
        "holds code for one kind of GPU and one version, not a graph",
        _ORIGINAL,
        _begins(b"ptrt", b"ftrt"),
    ),
    Kind(
        "a model that OpenVINO has compiled (.blob)",
        "holds what one version of it made for a device, not a graph",
        _ORIGINAL,
        _begins(b"RR_UPCVO"),
    ),
    Kind(
        "a tensor of ONNX (.pb)",
        "has numbers and no graph; it may be an input of the model beside it",
        "give that model, a .onnx file",
        _is_onnx_tensor,
    ),
    Kind(
        "a model of fastText",
        "is a table of the vectors of words and n-grams, not a graph of tensors",
        "keep the words in Python, and export what computes on their vectors",
        _begins(b"\xba\x16\x4f\x2f"),
    ),
    Kind(
        "a program of JavaScript",
        "runs code; weights that are in it have no graph",
        _ORIGINAL,
        lambda file: file.suffix in (".js", ".mjs", ".cjs", ".ts"),
    ),
    # Trees
    Kind(
        "a model of CatBoost",
        _TREES,
        "model.save_model('model.onnx', format='onnx') writes an ONNX model",
        _begins(b"CBM1"),
    ),
    Kind(
        "a model of LightGBM",
        _TREES,
        "onnxmltools.convert_lightgbm(lightgbm.Booster(model_file='model.txt'), ...) makes an ONNX "
        "model of it",
        _says(r"^tree\n", r"(?m)^num_class="),
    ),
    Kind(
        "a model of XGBoost",
        _TREES,
        "onnxmltools.convert_xgboost(model, ...) makes an ONNX model of it",
        lambda file: (
            _json("learner")(file)
            or file.head[:4] == b"binf"
            or (file.head[:2] == b"{L" and b"learner" in file.head[:40])
        ),
    ),
    # Anything
    Kind(
        "an image",
        "what is asked for is a model",
        "give the model; images are inputs of it",
        lambda file: (
            _begins(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")(file)
            or (file.head[:4] == b"RIFF" and file.head[8:12] == b"WEBP")
        ),
    ),
    Kind("a document (PDF)", "what is asked for is a model", _AGAIN, _begins(b"%PDF")),
    Kind(
        "a file that is compressed",
        "it has to be unpacked first",
        "gunzip, xz -d, bzip2 -d or zstd -d unpack it",
        _begins(b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!"),
    ),
    Kind(
        "an archive (tar)",
        "it has to be unpacked first",
        "tar xf unpacks it; give the model in it",
        _at(257, b"ustar"),
    ),
    Kind(
        "an archive (zip)",
        "it has to be unpacked first",
        "unzip unpacks it; give the model in it",
        _is_other_zip,
    ),
    Kind(
        "a library or program",
        "has code and no graph",
        _ORIGINAL,
        _begins(b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
    ),
)
"""The kinds that their content tells, in the order in which a file is compared with them."""

BY_NAME: Sequence[Kind] = (
    Kind("a model of MNN", "its graph is not read", _ORIGINAL, _named(".mnn")),
    Kind(
        "a model of Ascend (.air)",
        "its graph is not read",
        "mindspore.export(net, x, file_name='model', file_format='MINDIR') writes a file that is",
        _named(".air"),
    ),
    Kind(
        "an engine of TensorRT",
        "holds code for one kind of GPU and one version, not a graph",
        _ORIGINAL,
        _named(".engine", ".plan", ".trt"),
    ),
    Kind(
        "a part of a checkpoint of TensorFlow",
        "has variables and no graph",
        "write a SavedModel: tf.saved_model.save(model, 'folder')",
        lambda file: re.search(r"\.(data-\d+-of-\d+|index)$", file.path) is not None,
    ),
    Kind(
        "a program in Python",
        "runs, and has no graph as such",
        f"lowerdeck.compile(module, (x,)) takes a module of PyTorch in it; {_TORCH}",
        lambda file: file.suffix == ".py" and bool(file.text),
    ),
    Kind(
        "a file of numbers without a header (.bin)",
        "weights of OpenVINO, ncnn or TensorFlow.js have no graph",
        _ORIGINAL,
        lambda file: file.suffix == ".bin" and not file.text and not _is_zip(file),
    ),
    Kind(
        "a text",
        "it is none of a model that is read",
        _ORIGINAL,
        lambda file: bool(file.text),
    ),
)
"""The kinds that names tell where content tells nothing."""


def describe(path: str, head: bytes, kinds: Sequence[Kind] = KINDS) -> str | None:
    """What a file is that is no model that is read, and what to do; None if it is not known."""
    file = File(path, head)
    found = next((kind for kind in kinds if kind.is_it(file)), None)
    return None if found is None else found.message


_FOLDERS: Sequence[tuple[tuple[str, ...], str]] = (
    (
        ("Manifest.json", "Data"),
        f"is a package of Core ML (.mlpackage): its graph is not read; {_ORIGINAL}",
    ),
    (
        ("coremldata.bin",),
        f"is a compiled model of Core ML (.mlmodelc): {_DEVICE}; {_ORIGINAL}",
    ),
    (
        ("variables",),
        "is a SavedModel without its saved_model.pb: variables have no graph; copy the whole "
        "folder, or write it again: tf.saved_model.save(model, 'folder')",
    ),
    (
        ("keras_metadata.pb",),
        "is a SavedModel without its saved_model.pb; copy the whole folder, or write it again: "
        "model.save('model.keras')",
    ),
    (
        ("config.json", "model.safetensors"),
        f"is a model of transformers: {_WEIGHTS}; AutoModel.from_pretrained(folder); {_TORCH}",
    ),
    (
        ("config.json", "pytorch_model.bin"),
        f"is a model of transformers: {_WEIGHTS}; AutoModel.from_pretrained(folder); {_TORCH}",
    ),
)
"""The files that tell a folder, and what is said of it."""


def describe_folder(path: str) -> str | None:
    """What a folder is that is no model that is read, and what to do; None if it is not known."""
    names = set(os.listdir(path))
    return next((text for needed, text in _FOLDERS if names.issuperset(needed)), None)
