"""Weights of files of their own in the place of a model's; files of PyTorch without programs."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model, model_files
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.wire import bytes_field, number_field

from .pt2_archives import counter  # noqa: TID251
from .script_archives import method, number, tensor, text, write  # noqa: TID251

Arrays = Mapping[str, NDArray[Any]]

W = np.array([[1, 2], [3, 4]], np.float32)
X = np.array([[1, -2], [3, 4]], np.float32)


def _state(arrays: Arrays) -> bytes:
    items = b"".join(text(name) + tensor(k, one) for k, (name, one) in enumerate(arrays.items()))
    return b"\x80\x02}(" + items + b"u."


def _zip(path: Path, arrays: Arrays) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/data.pkl", _state(arrays))
        for k, array in enumerate(arrays.values()):
            file.writestr(f"m/data/{k}", array.tobytes())


def _legacy(path: Path, arrays: Arrays) -> None:
    data = _state(arrays).replace(text("cpu"), text("cpu"))
    heads = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    parts = [pickle.dumps(head, 2) for head in heads]
    parts += [data, pickle.dumps([str(k) for k in range(len(arrays))], 2)]
    for array in arrays.values():
        parts.append(struct.pack("<q", array.size) + array.tobytes())
    path.write_bytes(b"".join(parts))


def _safetensors(path: Path, arrays: Arrays) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        kind = {"float32": "F32", "int64": "I64"}[array.dtype.name]
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": offsets}
        data += array.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def _npz(path: Path, arrays: Arrays) -> None:
    np.savez(path, allow_pickle=False, **arrays)


def _pdparams(path: Path, arrays: Arrays) -> None:
    """By structured names, with the names of parameters beside them."""
    named: dict[str, Any] = {f"layer.{name}": array for name, array in arrays.items()}
    named["StructuredToParameterName@@"] = {f"layer.{name}": name for name in arrays}
    path.write_bytes(pickle.dumps(named, 2))


def _checkpoint(path: Path, arrays: Arrays) -> None:
    parts: list[bytes] = []
    for name, array in arrays.items():
        kind = {"float32": b"Float32", "int64": b"Int64"}[array.dtype.name]
        dims = b"".join(number_field(1, size) for size in array.shape)
        held = dims + bytes_field(2, kind) + bytes_field(3, array.tobytes())
        value = bytes_field(1, name.encode()) + bytes_field(2, held)
        parts.append(bytes_field(1, value))
    path.write_bytes(b"".join(parts))


WRITERS: dict[str, Callable[[Path, Arrays], None]] = {
    ".pth": _zip,
    "_old.pth": _legacy,
    ".safetensors": _safetensors,
    ".npz": _npz,
    ".pdparams": _pdparams,
    ".ckpt": _checkpoint,
}


def _model(tmp_path: Path) -> Path:
    code = method("return torch.matmul(x, self.w)")
    return write(tmp_path / "m.pt", code, {"w": np.zeros((2, 2), np.float32)})


@pytest.mark.parametrize("suffix", WRITERS)
def test_weights_are_taken_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    WRITERS[suffix](path, {"w": W, "num_batches_tracked": np.array(3)})
    module = load_model(_model(tmp_path), input_shapes={"x": [2, 2]}, import_weights=path)
    assert (np.asarray(Calls(module)({"x": X})["output"]) == X @ W).all()


@pytest.mark.parametrize("suffix", WRITERS)
def test_all_that_does_not_fit_is_listed(tmp_path: Path, suffix: str) -> None:
    code = method("return torch.matmul(x, self.w)", fields="w : Tensor\n  b : Tensor")
    zeros = np.zeros((2, 2), np.float32)
    model = write(tmp_path / "m.pt", code, {"w": zeros, "b": zeros})
    path = tmp_path / f"w{suffix}"
    WRITERS[suffix](path, {"w": W[:1], "more": W})
    with pytest.raises(FrontendError) as error:
        load_model(model, input_shapes={"x": [2, 2]}, import_weights=path)
    assert str(error.value).replace(f"{path}: ", "").splitlines() == [
        "tensor 'more': the model has no weight of this name",
        "tensor 'w': f32[1, 2], expected f32[2, 2]",
        "weight 'b': the file of weights does not have it",
    ]


def test_a_state_begins_with_what_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez(path, total=np.array([5, 7], np.float32))
    model = counter(tmp_path / "m.pt2")
    found = Calls(load_model(model, import_weights=path))({"x": np.zeros((1, 2), np.float32)})
    assert np.asarray(found["y"]).tolist() == [[5, 7]]


def test_the_file_of_weights_is_one_of_the_model(tmp_path: Path) -> None:
    model = _model(tmp_path)
    assert model_files(model, import_weights="w.npz") == [str(model), "w.npz"]


@pytest.mark.parametrize("suffix", WRITERS)
def test_damaged_weights_end_in_a_message(tmp_path: Path, suffix: str) -> None:
    path, model = tmp_path / f"w{suffix}", _model(tmp_path)
    WRITERS[suffix](path, {"w": W})
    data = path.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 40)):
        for damaged in (data[:place], data[:place] + b"\xff\x7f\xff\xff" + data[place + 4 :]):
            path.write_bytes(damaged)
            with suppress(FrontendError):
                load_model(model, input_shapes={"x": [2, 2]}, import_weights=path)


def test_pickles_name_what_they_would_call_and_call_nothing(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    call = b"cos\nsystem\n(" + text(f"touch {tmp_path / 'called'}") + b"tR"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/data.pkl", b"\x80\x02}(" + text("w") + call + b"u.")
    with pytest.raises(FrontendError, match="no tensors"):
        load_model(_model(tmp_path), input_shapes={"x": [2, 2]}, import_weights=path)
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("pickled", "expected"),
    [
        (_state({"w": W}), "weights alone"),
        (b"\x80\x02}(" + text("state") + b"}" + text("param_groups") + b"]u.", "an optimizer"),
        (b"\x80\x02cnet\nNet\n)\x81}b.", "a pickled object of net.Net"),
        (b"\x80\x02" + number(3) + b".", "weights alone"),
    ],
)
@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.pt2"])
def test_what_torch_save_writes_is_told(
    tmp_path: Path, name: str, pickled: bytes, expected: str
) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as file:
        file.writestr("m/data.pkl", pickled)
        file.writestr("m/byteorder", "little")
    with pytest.raises(FrontendError, match=rf"(?s){expected}.*torch.export.save"):
        load_model(tmp_path / name)


def test_compiled_packages_are_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt2", "w") as file:
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/data/aotinductor/model/m.so", b"")
    with pytest.raises(FrontendError, match=r"AOTInductor.*torch\.export\.save"):
        load_model(tmp_path / "m.pt2")
