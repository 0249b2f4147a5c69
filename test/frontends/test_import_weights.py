"""Weights of files of their own in the place of a model's; files of PyTorch without programs."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fuzz.weight_files import WRITERS, number, state_dict, text
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model, model_files
from lowerdeck.frontends.errors import FrontendError

from .pt2_archives import counter  # noqa: TID251
from .script_archives import method, write  # noqa: TID251

W = np.array([[1, 2], [3, 4]], np.float32)
X = np.array([[1, -2], [3, 4]], np.float32)


def _model(tmp_path: Path) -> Path:
    code = method("return torch.matmul(x, self.w)")
    return write(tmp_path / "m.pt", code, {"w": np.zeros((2, 2), np.float32)})


@pytest.mark.parametrize("suffix", WRITERS)
def test_weights_are_taken_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(WRITERS[suffix]({"w": W, "num_batches_tracked": np.array(3)}))
    module = load_model(_model(tmp_path), input_shapes={"x": [2, 2]}, import_weights=path)
    assert (np.asarray(Calls(module)({"x": X})["output"]) == X @ W).all()


@pytest.mark.parametrize("suffix", WRITERS)
def test_all_that_does_not_fit_is_listed(tmp_path: Path, suffix: str) -> None:
    code = method("return torch.matmul(x, self.w)", fields="w : Tensor\n  b : Tensor")
    zeros = np.zeros((2, 2), np.float32)
    model = write(tmp_path / "m.pt", code, {"w": zeros, "b": zeros})
    path = tmp_path / f"w{suffix}"
    path.write_bytes(WRITERS[suffix]({"w": W[:1], "more": W}))
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
    path.write_bytes(WRITERS[suffix]({"w": W}))
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
        (state_dict({"w": W}), "weights alone"),
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
