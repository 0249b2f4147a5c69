"""NAME_fault of the header says which argument the status of a run is about."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.names import DEFAULT
from lowerdeck.dialects.core.types import element_of, tensor
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.verification import problems_of
from lowerdeck.lowering.emit_c.module import CArtifact

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLAGS,
    Array,
    Call,
    compile_all,
    module_of,
    symbol,
    typed,
    write_artifact,
)
from .test_interface import dense, found, lowered, with_names  # noqa: TID251

N, M = symbol("n"), symbol("m")
X: Array = np.arange(6, dtype=np.float32).reshape(2, 3)
NAMES = ['first "one"\\', "second", "half"]


def tied() -> CArtifact:
    """Inputs whose sizes are one another's, the last one's computed from them."""
    types = [typed(np.float32, N, 3), typed(np.float32, M, N), typed(np.float32, N // 2)]
    module = module_of(types, lambda *values: [e.NegOp(value).result for value in values])
    return lowered(with_names(module, NAMES, ["a", "b", "c"]), "tied")


def default_attr(array: Array) -> DefaultAttr:
    """The default of an input that has the values of an array."""
    return DefaultAttr(tensor(element_of(array.dtype), array.shape), BlobAttr(Blob.of(array)))


class Asked(Call):
    """A call, and what the header says of its status."""

    def __init__(self, library: ctypes.CDLL, artifact: CArtifact, folder: Path) -> None:
        super().__init__(library, artifact)
        name = artifact.name
        write_artifact(artifact, folder)
        (folder / "ask.c").write_text(
            f'#include "{name}.h"\n'
            f"const char *ask(const {name}_args *args, int status);\n"
            f"const char *ask(const {name}_args *args, int status) "
            f"{{ return {name}_fault(args, status); }}\n"
        )
        command = ["gcc", *FLAGS, "-shared", "-fPIC", "-o", "ask.so", "ask.c"]
        subprocess.run(command, cwd=folder, check=True)
        self._ask = ctypes.CDLL(str(folder / "ask.so")).ask
        self._ask.restype = ctypes.c_char_p

    def fault(self, status: int | None = None) -> str:
        """What is said of the status that a run has."""
        found: bytes = self._ask(ctypes.byref(self.words), self.run() if status is None else status)
        return found.decode()


Make = Callable[..., Asked]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(artifact: CArtifact, inputs: list[Array], capacities: list[int]) -> Asked:
        library = compile_all([artifact], tmp_path)
        asked = Asked(library, artifact, tmp_path)
        asked.prepare(inputs, capacities)
        assert asked.run() == 0
        return asked

    return made


def test_each_argument_is_named(make: Make) -> None:
    asked = make(lowered(dense(), "dense"), [X], [8, 6])
    assert asked.fault() == ""

    def fault(name: str, value: int, axis: int = 0) -> str:
        place = asked.fields[name] + axis
        before = asked.words[place]
        asked.words[place] = value
        said = asked.fault()
        asked.words[place] = before
        return said

    for name in ("x", "y", "z"):
        assert fault(f"{name}.data", 0) == f"{name}: data"
        assert fault(f"{name}.data", asked[f"{name}.data"] + 2) == f"{name}: data"
    assert fault("x.dims", -1) == "x: dims[0] is negative"
    assert fault("x.dims", 4, axis=1) == "x: dims[1] is not 3"
    assert fault("y.capacity", 7) == "y: capacity"
    assert fault("z.capacity", 5) == "z: capacity"
    assert fault("z.data", asked["x.data"]) == "z: data"
    assert fault("y.data", asked["z.data"]) == "y: data"
    assert fault("x.data", asked["workspace"]) == "workspace"
    assert fault("weights", 0) == "weights"
    assert fault("weights", asked["x.data"]) == "weights"
    assert fault("weights_size", 3) == "weights_size"
    assert fault("workspace", 0) == "workspace"
    assert fault("workspace_size", 3) == "workspace_size"
    assert asked.fault() == ""


def test_dimensions_of_other_inputs(make: Make) -> None:
    inputs = [X, np.ones((5, 2), np.float32), np.ones(1, np.float32)]
    asked = make(tied(), inputs, [6, 10, 1])
    fields = [str(port["field"]) for port in asked.ports("inputs")]
    for field, axis, said in (
        (1, 1, f"second: dims[1] is not dims[0] of {NAMES[0]}"),
        (1, 0, "second: dims[0] is negative"),
        (0, 1, f"{NAMES[0]}: dims[1] is not 3"),
        (2, 0, "half: dims[0] is not n floordiv 2"),
    ):
        place = asked.fields[f"{fields[field]}.dims"] + axis
        before, asked.words[place] = asked.words[place], -7
        assert asked.fault() == said
        assert asked.workspace_size() == -1
        asked.words[place] = before


def test_what_is_required_of_sizes(make: Make) -> None:
    """It is checked before anything runs, and outputs are told their sizes first."""

    def body(x: Any, y: Any) -> Any:
        halves = t.ReshapeOp(t.SliceOp(e.NegOp(x).result, [0], [N // 4 * 4]).result, [N]).result
        return [halves, e.AbsOp(t.SliceOp(y, [2], [M - 5]).result).result]

    module = module_of([typed(np.float32, N), typed(np.float32, M)], body)
    artifact = lowered(with_names(module, ["x", "y"], ["a", "b"]), "asks")
    asked = make(artifact, [np.ones(8, np.float32), np.ones(9, np.float32)], [8, 4])
    for name, size, said in (
        ("x", 9, "x: dims[0] must be a multiple of 4"),
        ("y", 4, "y: dims[0] must be at least 5"),
    ):
        asked[f"{name}.dims"], before = size, asked[f"{name}.dims"]
        assert (asked.run(), asked.workspace_size()) == (2, -1)
        assert asked.fault() == said
        asked[f"{name}.dims"] = before
    asked["x.dims"] = 12
    asked["y.dims"] = 7
    assert asked.fault() == "a: capacity"
    assert (asked.dims("a", 1), asked.dims("b", 1)) == ([12], [2])
    asked["x.dims"] = 8
    output_dims = getattr(asked.library, "asks_output_dims")
    assert output_dims(ctypes.byref(asked.words)) == 0
    assert (asked.dims("a", 1), asked.dims("b", 1)) == ([8], [2])
    asked["x.dims"] = 6
    assert output_dims(ctypes.byref(asked.words)) == 2


def test_sizes_from_data(make: Make) -> None:
    """What the output needs is known when the run has found it."""
    asked = make(lowered(found(), "found"), [X], [10])
    asked["y.capacity"] = 9
    assert asked.fault() == "y: capacity"
    asked["y.capacity"], asked["allocator"] = 10, 0
    assert asked.fault() == "allocator"
    assert "lowerdeck run" in asked.fault(13)


def test_nothing_of_it_is_in_a_program_that_does_not_ask(tmp_path: Path) -> None:
    artifact: Any = lowered(dense(), "dense")
    write_artifact(artifact, tmp_path)
    command = ["gcc", *FLAGS, "-O2", "-c", "dense.c", "-o", "dense.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    symbols = subprocess.run(
        ["nm", "dense.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert "dense_run" in symbols
    assert "dense_fault" not in symbols


def test_an_input_that_is_left_out(make: Make) -> None:
    """Without data it is the default, and its sizes those or 0; an empty one has a pointer."""

    def body(x: Any, k: Any, open_: Any) -> Any:
        return [e.MulOp(x, k).result, e.NegOp(open_).result]

    types = [typed(np.float32, 2, 3), typed(np.float32, 1, 3), typed(np.float32, N)]
    module = with_names(module_of(types, body), ["x", "k", "tail"], ["y", "z"])
    k, tail = np.array([[1, 2, 4]], np.float32), np.array([5, 6], np.float32)
    function = find_function(module, "main")
    names = function.arg_attrs
    assert names is not None
    defaults = [
        DictionaryAttr({**entry.data, DEFAULT: default_attr(array)})
        for entry, array in zip(list(names)[1:], (k, tail), strict=True)
    ]
    function.properties["arg_attrs"] = ArrayAttr([next(iter(names)), *defaults])
    assert not problems_of(module)
    artifact = lowered(module, "optional")
    assert "k: [1, 3]; may be NULL: the default" in artifact.files["optional.h"]
    asked = make(artifact, [X, 2 * k, np.arange(3, dtype=np.float32)], [6, 3])
    np.testing.assert_array_equal(asked.results()[0], X * 2 * k)

    place = asked.fields["tail.dims"]
    pointers = {name: asked[f"{name}.data"] for name in ("k", "tail")}
    asked["tail.data"] = 0
    assert asked.fault() == "tail: data is NULL, and dims[0] is not 2"
    asked.words[place] = 2
    asked["k.data"] = 0
    for dims in ((1, 3, 2), (0, 0, 0), (1, 0, 0)):
        asked.words[asked.fields["k.dims"]], asked.words[asked.fields["k.dims"] + 1] = dims[:2]
        asked.words[place] = dims[2]
        assert asked.fault() == ""
        np.testing.assert_array_equal(asked.results()[0], X * k)
        np.testing.assert_array_equal(asked.results()[1], -tail)
    asked.words[asked.fields["k.dims"]] = 2
    assert asked.fault() == "k: dims[0] is not 1"
    asked.words[asked.fields["k.dims"]] = 0
    asked["tail.data"] = pointers["tail"]
    assert asked.fault() == ""
    assert asked.results()[1].shape == (0,)
    asked["tail.data"] += 2
    assert asked.fault() == "tail: data"
    asked["tail.data"], asked["k.data"] = pointers["tail"], pointers["k"]
    assert asked.fault() == "k: dims[0] is not 1"
