"""The C interface: every status code, hostile names, the header in C++, equal bytes each time."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import tensor as t
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp
from lowerdeck.dialects.core.linear import ConvOp, MatmulOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.reduce import ArgReduceOp, PoolOp, ReduceOp, SoftmaxOp
from lowerdeck.dialects.dims import maximum
from lowerdeck.dialects.interpret import find_function
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.pipeline import ALL_PASSES
from lowerdeck.passes.machinery.context import LowerdeckContext

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLAGS,
    Allocator,
    Array,
    Call,
    compile_all,
    module_of,
    symbol,
    typed,
    write_artifact,
)

OK, NULL, INPUT_DIMS, CAPACITY, OVERLAP, WORKSPACE = 0, 1, 2, 3, 4, 5
WEIGHTS_SIZE, MAGIC, VERSION, MODEL, ALIGNMENT = 6, 7, 8, 9, 10
NO_ALLOCATOR, OUT_OF_MEMORY, SHAPE, INDEX = 11, 12, 13, 14

N = symbol("n")
X: Array = np.arange(6, dtype=np.float32).reshape(2, 3)


def with_names(module: ModuleOp, inputs: Sequence[str], outputs: Sequence[str]) -> ModuleOp:
    """Give the tensors names."""
    function = find_function(module, "main")
    function.properties["arg_attrs"] = named(inputs)
    function.properties["res_attrs"] = named(outputs)
    return module


def lowered(module: ModuleOp, name: str, threads: int = 1) -> CArtifact:
    """The C of a module of core."""
    passes = [
        "form-kernels",
        "fuse-epilogue",
        "view-parts",
        "bufferize",
        "lower-kernels",
        *(["parallelize"] if threads > 1 else []),
        "plan-memory",
        "open-outputs",
    ]
    for pass_name in passes:
        ALL_PASSES[pass_name]()().apply(LowerdeckContext(), module)
    return emit_c(module, name, "native")


def dense(scale: float = 1.0) -> ModuleOp:
    """[n, 3] by weights [3, 4], then softmax: a workspace, weights, a dynamic dimension."""
    weights = np.full((3, 4), scale, np.float32)

    def body(x: Any) -> Any:
        product = MatmulOp(x, ConstantOp.of(weights).result)
        return [SoftmaxOp(product.result, 1), e.NegOp(x)]

    return with_names(module_of([typed(np.float32, N, 3)], body), ["x"], ["y", "z"])


def found() -> ModuleOp:
    """The positions of what is not zero, twice: sizes from data."""

    def body(x: Any) -> Any:
        BindSymbolsOp(t.CountNonzeroOp(x).result, ["count"])
        positions = t.NonzeroOp(x, symbol("count"))
        return e.AddOp(
            t.TransposeOp(positions.result, [1, 0]).result, ConstantOp.of(np.array(1)).result
        )

    return with_names(module_of([typed(np.float32, N, 3)], body), ["x"], ["y"])


def picked() -> ModuleOp:
    """x[i], and the first k elements of x for k from data."""

    def body(x: Any, i: Any, k: Any) -> Any:
        BindSymbolsOp(k, ["k"])
        return [t.GatherOp(x, i, 0), t.SliceOp(x, [0], [symbol("k")])]

    types = [typed(np.float32, 4), typed(np.int64, 2), typed(np.int64)]
    return with_names(module_of(types, body), ["x", "i", "k"], ["y", "head"])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, dict[str, CArtifact]]:
    artifacts = [
        lowered(dense(), "dense"),
        lowered(dense(2.0), "other"),
        lowered(found(), "found"),
        lowered(picked(), "picked"),
    ]
    library = compile_all(artifacts, tmp_path_factory.mktemp("models"))
    return library, {artifact.name: artifact for artifact in artifacts}


Models = tuple[ctypes.CDLL, dict[str, CArtifact]]


def call(models: Models, name: str, *inputs: Array, capacities: Sequence[int] = ()) -> Call:
    library, artifacts = models
    return Call(library, artifacts[name]).prepare(inputs, capacities)


@pytest.fixture
def good(models: Models) -> Call:
    """A call that works; tests spoil it."""
    prepared = call(models, "dense", X, capacities=[8, 6])
    assert prepared.run() == OK
    return prepared


def test_good_call(good: Call) -> None:
    assert good.dims("y", 2) == [2, 4]
    assert good.dims("z", 2) == [2, 3]
    np.testing.assert_array_equal(good.results()[0], np.full((2, 4), 0.25, np.float32))


@pytest.mark.parametrize("name", ["x.data", "y.data", "z.data", "weights", "workspace"])
def test_null(good: Call, name: str) -> None:
    good[name] = 0
    assert good.run() == NULL


def test_null_arguments(good: Call) -> None:
    assert good.library.dense_run(None) == NULL
    good.library.dense_workspace_size.restype = ctypes.c_int64
    assert good.library.dense_workspace_size(None) == -1


@pytest.mark.parametrize(("axis", "size"), [(0, -1), (1, 2), (1, 4), (1, -3), (0, -(2**63))])
def test_input_dims(good: Call, axis: int, size: int) -> None:
    good.words[good.fields["x.dims"] + axis] = size
    assert good.run() == INPUT_DIMS
    assert good.workspace_size() == -1


def test_capacity_with_dims_written_back(good: Call) -> None:
    """The caller may ask with a capacity of zero."""
    for name, size, dims in (("y", 8, [2, 4]), ("z", 6, [2, 3])):
        good[f"{name}.dims"] = 99
        good[f"{name}.capacity"] = size - 1
        assert good.run() == CAPACITY
        assert good.dims(name, 2) == dims
        good[f"{name}.capacity"] = size
    good["y.capacity"] = -1
    assert good.run() == CAPACITY


def test_overlap(good: Call) -> None:
    pointers = {name: good[name] for name in ("x.data", "y.data", "z.data", "workspace")}
    for name, other, offset in (
        ("y.data", "x.data", 0),
        ("y.data", "x.data", 20),
        ("z.data", "y.data", 28),
        ("y.data", "workspace", 4),
        ("z.data", "weights", 64),
        ("x.data", "workspace", 0),
    ):
        good[name] = good[other] + offset
        assert good.run() == OVERLAP, (name, other)
        good[name] = pointers[name]
    assert good.run() == OK


def test_neighbors_do_not_overlap(good: Call) -> None:
    """Memory that only touches is allowed."""
    room = np.zeros(64, np.float32)
    good["y.data"] = room.ctypes.data
    good["z.data"] = room.ctypes.data + 8 * 4
    assert good.run() == OK


def test_workspace(good: Call) -> None:
    good["workspace_size"] -= 1
    assert good.run() == WORKSPACE
    good["workspace_size"] = 0
    assert good.run() == WORKSPACE


def test_workspace_of_any_alignment(good: Call) -> None:
    size = good.workspace_size()
    memory = np.full(size + 8, 0x7F, np.uint8)
    for offset in range(8):
        good["workspace"], good["workspace_size"] = memory.ctypes.data + offset, size
        assert good.run() == OK
        np.testing.assert_array_equal(good.results()[0], np.full((2, 4), 0.25, np.float32))


def test_weights(models: Models, good: Call) -> None:
    weights = bytearray(ctypes.string_at(good["weights"], good["weights_size"]))
    good["weights_size"] -= 1
    assert good.run() == WEIGHTS_SIZE
    good["weights_size"] = 0
    assert good.run() == WEIGHTS_SIZE
    good["weights_size"] = len(weights)

    def use(data: bytes | bytearray) -> int:
        memory = np.frombuffer(bytes(data) + bytes(8), np.uint8).copy()
        good.words[good.fields["weights"]] = memory.ctypes.data
        good.keep.append(_Kept(memory))
        return good.run()

    assert use(weights) == OK
    assert use(bytes(len(weights))) == MAGIC
    assert use(b"L" * len(weights)) == MAGIC
    assert use(weights[:8] + b"\x09" + weights[9:]) == VERSION
    assert use(weights[:12] + b"arm\0" + weights[16:]) == MODEL
    assert use(weights[:40] + bytes([weights[40] ^ 1]) + weights[41:]) == MODEL
    other = call(models, "other", X, capacities=[8, 6])
    assert use(ctypes.string_at(other["weights"], other["weights_size"])) == MODEL


class _Kept:
    """An array that lives as long as a call."""

    is_intact = True

    def __init__(self, array: Array) -> None:
        self.array = array


@pytest.mark.parametrize("name", ["x.data", "y.data", "z.data", "weights"])
def test_alignment(good: Call, name: str) -> None:
    good[name] += 2
    assert good.run() == ALIGNMENT


def test_allocator(models: Models) -> None:
    prepared = call(models, "found", X, capacities=[10])
    assert prepared.run() == OK
    np.testing.assert_array_equal(prepared.results()[0], np.argwhere(X) + 1)
    calls = prepared.allocator.calls
    assert calls > 0
    assert not prepared.allocator.live
    prepared["allocator"] = 0
    assert prepared.run() == NO_ALLOCATOR
    for fail_at in range(1, calls + 1):
        allocator = Allocator(fail_at)
        prepared["allocator"] = allocator.address
        assert prepared.run() == OUT_OF_MEMORY
        assert not allocator.live, "memory is leaked"


def test_late_capacity(models: Models) -> None:
    """Sizes from data: the dimensions are known when the run ends."""
    prepared = call(models, "found", X, capacities=[9])
    assert prepared.run() == CAPACITY
    assert prepared.dims("y", 2) == [5, 2]
    assert not prepared.allocator.live
    prepared["y.data"] = 0
    prepared["y.capacity"] = 10
    assert prepared.run() == NULL


def test_empty_input(models: Models) -> None:
    """Nothing may be read of an input without elements, so NULL will do."""
    prepared = call(models, "found", np.zeros((0, 3), np.float32), capacities=[0])
    prepared["x.data"] = prepared["y.data"] = 0
    assert prepared.run() == OK
    assert prepared.dims("y", 2) == [0, 2]


def test_index_and_shape_from_data(models: Models) -> None:
    def run(indices: Sequence[int], k: int) -> tuple[int, Call]:
        inputs = (np.arange(4, dtype=np.float32), np.array(indices), np.array(k))
        prepared = call(models, "picked", *inputs, capacities=[2, 4])
        return prepared.run(), prepared

    status, prepared = run([-4, 3], 3)
    assert status == OK
    np.testing.assert_array_equal(prepared.results()[0], np.array([0, 3], np.float32))
    np.testing.assert_array_equal(prepared.results()[1], np.array([0, 1, 2], np.float32))
    for index in (4, -5, 2**63 - 1, -(2**63)):
        assert run([0, index], 3)[0] == INDEX
    for k in (5, -1, 2**63 - 1, -(2**63)):
        assert run([0, 1], k)[0] == SHAPE
    assert run([0, 1], 0)[0] == OK


@pytest.mark.parametrize("rows", [2**61, 2**55, 2**63 - 1])
def test_dimensions_beyond_all_memory(good: Call, rows: int) -> None:
    """Sizes in bytes do not fit into 64 bits: they must not wrap around to small ones."""
    good["x.dims"] = rows
    assert good.run() == INPUT_DIMS


def test_size_from_data_beyond_all_memory(tmp_path: Path) -> None:
    """4 * 2^62 bytes are 0 modulo 2^64."""

    def body(x: Any, size: Any) -> Any:
        BindSymbolsOp(size, ["u"])
        wide = t.BroadcastOp(x, [symbol("u"), 1])
        return [e.NegOp(t.SliceOp(e.AbsOp(wide.result).result, [0, 0], [1, 1]).result)]

    types = [typed(np.float32, 1, 1), typed(np.int64)]
    artifact = lowered(module_of(types, body), "huge")
    library = compile_all([artifact], tmp_path)
    for size, status in ((3, OK), (2**62, SHAPE), (2**63 - 1, SHAPE), (-1, SHAPE)):
        inputs = [np.ones((1, 1), np.float32), np.array(size)]
        assert Call(library, artifact).prepare(inputs, [1]).run() == status


def test_sizes_from_data_do_not_wrap(tmp_path: Path) -> None:
    """The product, and sums, of what may be any numbers: compared, and never small by overflow."""

    def body(x: Any, sizes: Any) -> Any:
        BindSymbolsOp(sizes, ["u", "v"])
        u, v = symbol("u"), symbol("v")
        wide = t.BroadcastOp(x, [u, v])
        flat = t.ReshapeOp(e.AbsOp(wide.result).result, [u * v]).result
        padded = t.PadOp(flat, [u - v], [v - u + 1], x)
        return [e.NegOp(t.SliceOp(padded.result, [0], [1]).result)]

    types = [typed(np.float32), typed(np.int64, 2)]
    artifact = lowered(module_of(types, body), "products")
    library = compile_all([artifact], tmp_path, [*FLAGS, "-ftrapv"])
    least = -(2**63)
    for u, v in ((2**32, 2**32), (2**62, 4), (3, least), (least, least), (least, 1), (0, least)):
        prepared = Call(library, artifact).prepare([np.array(2, np.float32), np.array([u, v])], [1])
        assert prepared.run() == SHAPE
    for size in (1, 2):
        prepared = Call(library, artifact).prepare(
            [np.array(2, np.float32), np.array([size, size])], [1]
        )
        assert prepared.run() == OK
        assert prepared.results()[0] == -2


def test_products_of_dimensions_do_not_wrap(tmp_path: Path) -> None:
    """Inputs without elements may be as wide as they like; what is computed from them may not."""

    def body(x: Any, y: Any, z: Any) -> Any:
        product = MatmulOp(MatmulOp(x, y).result, z)
        return ReduceOp("sum", product.result, [0, 1])

    m, k = symbol("m"), symbol("k")
    types = [typed(np.float32, N, k), typed(np.float32, k, m), typed(np.float32, m, k)]
    module = with_names(module_of(types, body), ["x", "y", "z"], ["sum"])
    artifact = lowered(module, "outer")
    library = compile_all([artifact], tmp_path, [*FLAGS, "-ftrapv"])
    inputs = [np.zeros(shape, np.float32) for shape in ((2, 0), (0, 2), (2, 0))]
    prepared = Call(library, artifact).prepare(inputs, [1])
    assert prepared.run() == OK
    for rows, columns in ((2**31, 2**31), (2**32, 2**32), (2**52, 2**12), (2**40, 2**40)):
        prepared["x.dims"] = rows
        prepared.words[prepared.fields["y.dims"] + 1] = prepared["z.dims"] = columns
        assert prepared.workspace_size() < 0 or prepared.workspace_size() > 2**32
        assert prepared.run() == WORKSPACE
    prepared["x.dims"] = 2**63 - 1
    assert prepared.run() == INPUT_DIMS


def test_dimension_that_gives_no_window(tmp_path: Path) -> None:
    """An input that is smaller than what the model takes away from it."""

    def body(x: Any) -> Any:
        inner = t.SliceOp(e.NegOp(x).result, [2, 0], [N - 5, 3])
        return [e.AbsOp(e.AddOp(inner.result, inner.result).result), e.NegOp(inner.result)]

    artifact = lowered(module_of([typed(np.float32, N, 3)], body), "cropped")
    library = compile_all([artifact], tmp_path)
    for size in (0, 3, 4):
        x = np.ones((size, 3), np.float32)
        prepared = Call(library, artifact).prepare([x], [64, 64])
        assert prepared.workspace_size() == -1
        assert prepared.run() == INPUT_DIMS
    prepared = Call(library, artifact).prepare([np.ones((6, 3), np.float32)], [3, 3])
    assert prepared.run() == OK


def test_input_smaller_than_window(tmp_path: Path) -> None:
    """Convolutions and pools with fewer elements than their windows are wide, on the way."""

    def body(x: Any) -> Any:
        weight = ConstantOp.of(np.ones((2, 2, 5), np.float32)).result
        rule: dict[str, Any] = {"dilations": [1], "pads_begin": [0], "pads_end": [0]}
        many = t.ConcatOp([e.NegOp(x).result] * 3, 0)
        narrow = ConvOp(many.result, weight, strides=[1], **rule)
        pooled = PoolOp("max", narrow.result, kernel=[2], strides=[2], **rule)
        return [e.AbsOp(pooled.result), e.AddOp(many.result, many.result)]

    artifact = lowered(module_of([typed(np.float32, 1, 2, N)], body), "narrow")
    library = compile_all([artifact], tmp_path)
    for size in (0, 1, 2, 3, 6, 9):
        prepared = Call(library, artifact).prepare([np.ones((1, 2, size), np.float32)], [64, 64])
        assert prepared.run() == (OK if size >= 4 else INPUT_DIMS)


def test_best_of_none(tmp_path: Path) -> None:
    """The largest element of a dimension without elements does not exist."""
    artifact = lowered(
        module_of([typed(np.float32, 2, N)], lambda x: ArgReduceOp("max", x, 1)), "best"
    )
    library = compile_all([artifact], tmp_path)
    for size, status in ((0, INPUT_DIMS), (1, OK)):
        prepared = Call(library, artifact).prepare([np.ones((2, size), np.float32)], [2])
        assert prepared.run() == status


def test_status_texts(models: Models, tmp_path: Path) -> None:
    """Every status has a text of its own."""
    (tmp_path / "texts.c").write_text(
        '#include <stdio.h>\n#include "lowerdeck.h"\n'
        "int main(void) { for (int k = -1; k < 17; k++) puts(lowerdeck_status_text(k)); }\n"
    )
    (tmp_path / "lowerdeck.h").write_text(models[1]["dense"].files["lowerdeck.h"])
    subprocess.run(["gcc", "-o", "texts", "texts.c"], cwd=tmp_path, check=True)
    output = subprocess.run([tmp_path / "texts"], capture_output=True, text=True, check=True)
    lines = output.stdout.splitlines()
    assert len(set(lines[1:16])) == 15
    assert {lines[0], lines[16], lines[17]} == {"unknown status"}


OWN_NAMES = (
    *(
        f"hostile_{stem}"
        for stem in ("run", "args", "workspace_size", "check", "driver", "weights")
    ),
    *(f"HOSTILE_{stem}" for stem in ("H", "WORKSPACE_SIZE", "WEIGHTS_SIZE")),
    *("hostile", "LOWERDECK_H", "LOWERDECK_OK", "lowerdeck_args", "EXIT_FAILURE", "SEEK_END"),
    *(
        "spans",
        "weights_header",
        "M_PI",
        "FP_NAN",
        "NDEBUG",
        "RAND_MAX",
        "read_file",
        "path",
        "k",
        "restrict",
    ),
)
"""What the C of the model `hostile` calls something else."""

HOSTILE = (
    "*/ int evil; /*",
    "line\nbreak\r\ttab",
    'quote"s \\ back',
    "trigraph ??/ ??' ??",
    "%s%n",
    "int",
    "class",
    "a b",
    "a-b",
    "a_b",
    "a.b",
    "",
    "7",
    "7x",
    "é中文\u202e",
    "x" * 5000,
    "__reserved",
    "_Upper",
    "NULL",
    "NAN",
    "linux",
    "errno",
    "INT64_MAX",
    "stdin",
    "memcpy",
    "int64_t",
    "size_t",
    "lowerdeck_copy",
    "weights",
    "args",
    "status",
    "dims",
    "data",
)

SYMBOLS = (
    "int64_t",
    "uint8_t",
    "expf",
    "exp",
    "memcmp",
    "memcpy",
    "NAN",
    "INT64_C",
    "INFINITY",
    "isunordered",
    "uintptr_t",
    "size_t",
    "x0",
    "y0",
    "i",
    "status",
    "args",
    "workspace",
    "weights",
    "memory",
    "bool",
    "true",
    "float",
    "lowerdeck_min",
    "batch.size",
    "unk__1",
)


def hostile() -> ModuleOp:
    """An input and an output for each bad name, and bad names for dimensions."""
    dims = [symbol(name) for name in SYMBOLS]
    count = len(HOSTILE)
    types = [typed(np.float32, dims[k % len(dims)], 2) for k in range(count)]

    def body(*args: Any) -> Any:
        kernels = [SoftmaxOp(e.AddOp(x, x).result, 0) for x in args]
        # Their names become comments, too.
        return [
            t.PadOp(k.result, [symbol(SYMBOLS[n % len(dims)]), 0], [0, 1], mode="wrap")
            for n, k in enumerate(kernels)
        ]

    return with_names(module_of(types, body), HOSTILE, [f"{name}*/" for name in HOSTILE])


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
def test_hostile_names(tmp_path: Path, c_compiler: str) -> None:
    artifact = lowered(hostile(), "hostile")
    library = compile_all([artifact], tmp_path)
    inputs = [np.full((3, 2), k, np.float32) for k in range(len(HOSTILE))]
    prepared = Call(library, artifact).prepare(inputs, [6 * 3] * len(HOSTILE))
    assert prepared.run() == OK
    np.testing.assert_allclose(prepared.results()[0][:, 0], 1 / 3, rtol=1e-6)
    for dialect in ("c99", "gnu99", "c11", "gnu17"):
        command = [c_compiler, f"-std={dialect}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        subprocess.run([*command, "hostile.c", "example.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
def test_own_names(tmp_path: Path, c_compiler: str) -> None:
    """Inputs, outputs and dimensions are called like what the C defines itself."""
    types = [typed(np.float32, symbol(name), 2) for name in OWN_NAMES]
    module = module_of(types, lambda *args: [e.NegOp(x).result for x in args])
    names = with_names(module, OWN_NAMES, [f"{name}_out" for name in OWN_NAMES])
    write_artifact(lowered(names, "hostile"), tmp_path)
    command = [c_compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, "hostile.c", "example.c"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("c_compiler", ["g++", "clang++"], indirect=True)
@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f8", "?", "u1", "i8"])
def test_header_is_cpp(tmp_path: Path, dtype: str, c_compiler: str) -> None:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    artifact = lowered(module_of([typed(kind, N, 3)], lambda x: t.TransposeOp(x, [1, 0])), "cpp")
    write_artifact(artifact, tmp_path)
    (tmp_path / "use.cc").write_text(
        '#include "cpp.h"\nint main() { cpp_args args = {}; return cpp_run(&args); }\n'
    )
    for standard in ("c++98", "c++11", "c++20"):
        # C++98 has no <cstdint>, but compilers give it what stdint.h declares.
        extra = ["-Wno-long-long"] if standard == "c++98" else ["-pedantic"]
        command = [c_compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        subprocess.run([*command, *extra, "use.cc"], cwd=tmp_path, check=True)


def test_example_runs(tmp_path: Path) -> None:
    """The example program compiles without warnings and runs clean."""
    for module, name in ((dense(), "dense"), (found(), "found"), (hostile(), "hostile")):
        folder = tmp_path / name
        write_artifact(lowered(module, name), folder)
        command = ["gcc", *FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover"]
        sources = ["example.c", f"{name}.c", "-o", "example", "-lm"]
        subprocess.run([*command, *sources], cwd=folder, check=True)
        done = subprocess.run(
            ["./example"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) >= 1


def test_example_of_computed_dimensions(tmp_path: Path) -> None:
    """Sizes of inputs and outputs may be any expressions."""
    types = [typed(np.float32, dim) for dim in (N, N // 2, maximum(N, 3), N % 2)]

    def body(*values: Any) -> Any:
        return [e.NegOp(value).result for value in values]

    write_artifact(lowered(module_of(types, body), "computed"), tmp_path)
    command = ["gcc", *FLAGS, "example.c", "computed.c", "-o", "example", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./example", "5"], cwd=tmp_path, capture_output=True, check=True)
    assert [len(line.split()) - 1 for line in done.stdout.splitlines()] == [5, 2, 5, 1]


def test_example_takes_dimensions(tmp_path: Path) -> None:
    write_artifact(lowered(dense(), "dense"), tmp_path)
    command = ["gcc", *FLAGS, "example.c", "dense.c", "-o", "example", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    for rows, printed in (([], [4, 3]), (["2"], [8, 6]), (["3"], [8, 8])):
        command = ["./example", "dense.weights", *rows]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert [len(line.split()) - 1 for line in done.stdout.splitlines()] == printed


SCRIPT = """
import hashlib, sys
sys.path.insert(0, {tests!r})
from lowering.test_interface import dense, found, hostile, lowered
from lowering.programs import weights_of
for build, threads in ((dense, 1), (found, 1), (hostile, 1), (dense, 4)):
    artifact = lowered(build(), "same", threads)
    digest = hashlib.sha256(weights_of(artifact))
    for name, text in artifact.files.items():
        digest.update(name.encode() + text.encode())
    digest.update(repr(artifact.metadata).encode())
    print(digest.hexdigest())
"""


def test_equal_bytes_in_every_process() -> None:
    script = SCRIPT.format(tests=str(Path(__file__).parent.parent))
    outputs: set[str] = set()
    for seed in ("0", "4242"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": seed[:1],
            "OPENBLAS_NUM_THREADS": "2",
            "OPENBLAS_CORETYPE": "Prescott" if seed == "0" else "Haswell",
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1
