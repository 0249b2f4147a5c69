"""Models compiled to C and called from Python."""

from __future__ import annotations

import copy
import pickle
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import lowerdeck
from lowerdeck import compiler
from lowerdeck.binding import RunError
from lowerdeck.build import BuildError
from lowerdeck.lowering import targets
from lowerdeck.metadata import Dimension

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
save_model = cast(Any, onnx).save
Port = tuple[str, int, Sequence[int | str]]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    def infos(ports: Sequence[Port]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(*port) for port in ports]

    graph = helper.make_graph(
        list(nodes), "g", infos(inputs), infos(outputs), initializer=list(initializers)
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def difference_and_sum() -> onnx.ModelProto:
    """Two inputs of which the order matters, with a symbolic dimension, and two outputs."""
    return model_of(
        [
            helper.make_node("Sub", ["a:0", "b"], ["out/d"], name="first"),
            helper.make_node("ReduceSum", ["out/d", "axes"], ["out/s"], name="second", keepdims=0),
        ],
        [("a:0", FLOAT, ["n", 3]), ("b", FLOAT, ["n", 3])],
        [("out/d", FLOAT, ["n", 3]), ("out/s", FLOAT, ["n"])],
        [helper.make_tensor("axes", INT64, [1], [1])],
    )


def nonzero() -> onnx.ModelProto:
    """One output whose size depends on data."""
    return model_of(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", FLOAT, ["n"])],
        [("y", INT64, [1, "count"])],
    )


@pytest.fixture(scope="module")
def model() -> lowerdeck.Model:
    return lowerdeck.compile(difference_and_sum())


def arrays(n: int = 4) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    a = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    return a, np.ones((n, 3), np.float32) * 2


def test_by_name(model: lowerdeck.Model) -> None:
    a, b = arrays()
    found = model({"b": b, "a:0": a})
    assert list(found) == ["out/d", "out/s"]
    np.testing.assert_array_equal(found["out/d"], a - b)
    np.testing.assert_array_equal(found["out/s"], (a - b).sum(1))


def test_in_order(model: lowerdeck.Model) -> None:
    for n in (4, 1, 7, 0, 4):
        a, b = arrays(n)
        difference, total = model(a, b)
        np.testing.assert_array_equal(difference, a - b)
        np.testing.assert_array_equal(total, (a - b).sum(1))


def test_results_are_independent(model: lowerdeck.Model) -> None:
    a, b = arrays()
    first, _ = model(a, b)
    kept = first.copy()
    model(b, a)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("n", [341, 342, 5000])
def test_large_outputs_begin_with_a_line_of_the_cache(model: lowerdeck.Model, n: int) -> None:
    a, b = arrays(n)
    for _ in range(3):
        difference, total = model(a, b)
        np.testing.assert_array_equal(difference, a - b)
        np.testing.assert_allclose(total, (a - b).sum(1), rtol=1e-5)
        for array in (difference, total):
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert array.nbytes < 4096 or array.ctypes.data % 64 == 0


def test_interface(model: lowerdeck.Model) -> None:
    assert [(i.name, i.dtype, i.shape) for i in model.inputs] == [
        ("a:0", np.dtype(np.float32), ("n", 3)),
        ("b", np.dtype(np.float32), ("n", 3)),
    ]
    assert [(o.name, o.shape) for o in model.outputs] == [("out/d", ("n", 3)), ("out/s", ("n",))]


def test_memory_of_results(model: lowerdeck.Model) -> None:
    """It is used again once nothing refers to it: not to the result, and not to a part of it."""
    a, b = arrays(5000)

    def difference(factor: int) -> Any:
        return model(a * np.float32(factor), b)[0]

    def place(array: Any) -> int:
        return array.__array_interface__["data"][0]

    first = place(difference(1))
    assert place(difference(2)) == first
    kept = [difference(factor) for factor in range(5)]
    part, view = difference(7)[1:3, ::2], memoryview(difference(8))
    for factor in range(20, 24):
        difference(factor)
    for factor, array in enumerate(kept):
        np.testing.assert_array_equal(array, a * np.float32(factor) - b)
    np.testing.assert_array_equal(part, (a * np.float32(7) - b)[1:3, ::2])
    np.testing.assert_array_equal(np.asarray(view), a * np.float32(8) - b)
    # Who replaces a result by the next one holds both during the call.
    result, places = None, set[int]()
    for factor in range(6):
        result = difference(factor)
        places.add(place(result))
    assert len(places) == 2
    # Another size takes other memory.
    np.testing.assert_array_equal(model(a[:3000], b[:3000])[0], a[:3000] - b[:3000])
    np.testing.assert_array_equal(result, a * np.float32(5) - b)


def test_strided_and_misaligned_inputs(model: lowerdeck.Model) -> None:
    a, b = arrays(5)
    fortran = np.asfortranarray(a)
    shifted = np.frombuffer(b"\0" + b.tobytes(), np.uint8)[1:].view(np.float32).reshape(b.shape)
    np.testing.assert_array_equal(model(fortran, shifted)[0], a - b)
    np.testing.assert_array_equal(model(a[::-1], b)[0], a[::-1] - b)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"a:0": np.zeros((2, 3), np.float32)}, r"no value for the inputs \['b'\]"),
        (
            {name: np.zeros((2, 3), np.float32) for name in ("a:0", "b", "c")},
            r"\['c'\] are not inputs",
        ),
        (
            {"a:0": np.zeros((2, 3)), "b": np.zeros((2, 3))},
            r"'a:0' has the dtype float64, .*array.astype\('float32'\) converts",
        ),
        ({"a:0": np.zeros((2, 4), "f4"), "b": np.zeros((2, 4), "f4")}, r"'a:0' .* \[2, 4\]"),
        ({"a:0": np.zeros(3, "f4"), "b": np.zeros((2, 3), "f4")}, r"'a:0' .* expected \[n, 3\]"),
        (
            {"a:0": np.zeros((2, 3), "f4"), "b": np.zeros((5, 3), "f4")},
            r"'b' has the shape \[5, 3\], expected \[n, 3\] = \[2, 3\]",
        ),
    ],
)
def test_wrong_inputs(model: lowerdeck.Model, inputs: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        model(inputs)


def test_wrong_number_of_inputs(model: lowerdeck.Model) -> None:
    with pytest.raises(ValueError, match="1 inputs for a model with 2"):
        model(np.zeros((2, 3), np.float32))


def sized_by(op: str, second: Sequence[int] | None) -> lowerdeck.Model:
    """An op of x: [n, c] or [n, c, h] and of y, which are ones of these dimensions or an input."""
    dims = ["n", "c", "h"] if op == "Conv" else ["n", "c"]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    weights: list[TensorProto] = []
    if second is None:
        values.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k", "m"]))
    else:
        weights.append(numpy_helper.from_array(np.ones(second, np.float32), "y"))
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", "y"], ["z"])], "g", values, [result], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return lowerdeck.compile(model)


@pytest.mark.filterwarnings("ignore:input .x.")
def test_sizes_that_weights_determine() -> None:
    """They are known when a model is compiled, and checked by the name of the input."""
    model = sized_by("Conv", [3, 4, 1])
    assert model.inputs[0].shape == ("n", 4, "h")
    np.testing.assert_array_equal(model(np.ones((2, 4, 5), np.float32))[0], np.full((2, 3, 5), 4))
    with pytest.raises(ValueError, match=r"'x' has the shape \[2, 3, 5\], expected \[n, 4, h\]"):
        model(np.ones((2, 3, 5), np.float32))


def test_sizes_that_other_inputs_determine() -> None:
    model = sized_by("MatMul", None)
    assert [each.shape for each in model.inputs] == [("n", "c"), ("c", "m")]
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(model(x, y)[0], np.full((2, 4), 3))
    with pytest.raises(ValueError, match=r"'y' has the shape .*\[c, m\] = \[3, 3\]"):
        model(x, y.T)


INTERLEAVED = """
import lowerdeck, numpy as np, sys
model = lowerdeck.compile(sys.argv[1], disable=["vectorize-lanes"], cache=False)
x = np.arange(84, dtype=np.float32).reshape(1, 3, 4, 7)
(y,) = model(x)
assert (y == x[:, :, 1:, 1:].transpose(0, 2, 3, 1)).all()
"""


def test_rows_that_scalars_copy_to_be_interleaved(tmp_path: Path) -> None:
    """In a process of its own: gcc made loads of it that need a better alignment, and fault."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Transpose", ["p"], ["y"], perm=[0, 2, 3, 1]),
    ]
    path = tmp_path / "rows.onnx"
    save_model(model_of(nodes, [("x", FLOAT, [1, 3, 4, 7])], [("y", FLOAT, [1, 3, 6, 3])]), path)
    subprocess.run([sys.executable, "-c", INTERLEAVED, str(path)], check=True)


def test_what_runs_a_model_imports_no_compiler() -> None:
    """No xDSL and no pass: programs that load compiled models start without them."""
    program = "import sys, lowerdeck.tools.run_c; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    imported = done.stdout.split()
    assert "lowerdeck.compiler" in imported
    assert {"xdsl.ir", "lowerdeck.dialects.core", "lowerdeck.plugins"}.isdisjoint(imported)


def test_concurrent_calls(model: lowerdeck.Model) -> None:
    def check(n: int) -> None:
        a, b = arrays(n)
        np.testing.assert_array_equal(model(a, b)[1], (a - b).sum(1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, [1, 2, 3, 500] * 50))


def test_output_whose_size_depends_on_data() -> None:
    model = lowerdeck.compile(nonzero())
    for n in (3, 5000, 10, 0, 20000):
        x = np.arange(n, dtype=np.float32) % 3
        np.testing.assert_array_equal(model(x)[0], np.array(np.nonzero(x)))


def test_prepared_call_reuses_its_arrays(model: lowerdeck.Model) -> None:
    a, b = arrays()
    call = model.prepare({"b": b, "a:0": a})
    difference, total = call.outputs
    np.testing.assert_array_equal(difference, a - b)
    a += 5
    call()
    np.testing.assert_array_equal(difference, a - b)
    np.testing.assert_array_equal(total, (a - b).sum(1))
    assert call.run(call.arguments) == 0
    model(b, a)
    np.testing.assert_array_equal(difference, a - b)


def test_prepared_call_copies_no_input(model: lowerdeck.Model) -> None:
    a, b = arrays()
    with pytest.raises(ValueError, match="'a:0' is not a contiguous"):
        model.prepare({"a:0": np.asfortranarray(a), "b": b})


def test_prepared_call_with_an_output_whose_size_depends_on_data() -> None:
    x = np.arange(5000, dtype=np.float32) % 3
    call = lowerdeck.compile(nonzero()).prepare({"x": x})
    np.testing.assert_array_equal(call.outputs[0], np.array(np.nonzero(x)))
    x[:4000] = 0
    call()
    np.testing.assert_array_equal(call.outputs[0], np.array(np.nonzero(x)))
    x[:] = 1
    with pytest.raises(RunError, match="output"):
        call()


def test_failing_run_raises() -> None:
    gather = model_of(
        [helper.make_node("Gather", ["x", "i"], ["y"])],
        [("x", FLOAT, [4]), ("i", INT64, [1])],
        [("y", FLOAT, [1])],
    )
    model = lowerdeck.compile(gather)
    x = np.arange(4, dtype=np.float32)
    assert model(x, np.array([-1]))[0] == [3]
    with pytest.raises(RunError, match="index"):
        model(x, np.array([4]))
    assert model(x, np.array([2]))[0] == [2]


def test_threads() -> None:
    model = lowerdeck.compile(difference_and_sum(), threads=2)
    a, b = arrays(1000)
    np.testing.assert_array_equal(model(a, b)[0], a - b)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": 0}, "threads"),
        ({"disable": ["fuze"]}, "fuze"),
        ({"disable_strategy": ["winnograd"]}, "did you mean winograd"),
        ({"skip_nodes": "("}, "skip_nodes"),
    ],
)
def test_wrong_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lowerdeck.compile(difference_and_sum(), **options)


def test_chosen_outputs_and_shapes() -> None:
    model = lowerdeck.compile(
        difference_and_sum(), outputs=["out/s"], input_shapes={"a:0": [2, 3], "b": [2, 3]}
    )
    assert [o.name for o in model.outputs] == ["out/s"]
    assert model.inputs[0].shape == (2, 3)
    assert isinstance(model.workspace_size, int)


def test_save_and_load(model: lowerdeck.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "saved")
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    expected = {"model.c", "model.h", "model.json", "CMakeLists.txt", "example.c", "libmodel.so"}
    assert expected <= names
    assert not any(name.startswith(".") for name in names)
    a, b = arrays()
    np.testing.assert_array_equal(lowerdeck.load(tmp_path / "saved")(a, b)[0], a - b)


def test_example_has_room_for_outputs_of_computed_size(tmp_path: Path) -> None:
    """All of its inputs' elements, which are zeros, are listed."""
    count = 1_100_000
    zeros = model_of(
        [helper.make_node("Not", ["x"], ["t"]), helper.make_node("NonZero", ["t"], ["y"])],
        [("x", TensorProto.BOOL, [count])],
        [("y", INT64, [1, "found"])],
    )
    compiler.generate(zeros, str(tmp_path), compiler.CompileOptions(target="c99"))
    sources = [str(path) for path in tmp_path.glob("*.c")]
    built = ["gcc", "-std=c99", "-O1", *sources, "-lm", "-o", str(tmp_path / "example")]
    subprocess.run(built, check=True)
    done = subprocess.run([tmp_path / "example"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def sizes_from_data(path: Path) -> Path:
    """A model that reshapes `x` into rows of ten, and adds `y` to them, and then looks up a row."""
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "t"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 10]),
        helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["r"], name="view"),
        helper.make_node("Add", ["r", "y"], ["s"], name="sum"),
        helper.make_node("Gather", ["s", "i"], ["z"], name="row"),
    ]
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    rows = numpy_helper.from_array(np.array([-1, 10]), "rows")
    model = helper.make_model(helper.make_graph(nodes, "g", ports, [result], [rows]))
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("x", "y", "i", "expected"),
    [
        ((2, 7), (2, 10), 0, r"a multiple of 10, .*: node .view. \(core.reshape\): .* size 14"),
        ((3, 10), (2, 10), 0, r"y: dims.0.*: node 'sum' \(core.add\): .*\(3,10\) \(2,10\)"),
        ((2, 10), (2, 10), 2, r"outside of its dimension: node 'row' \(core.gather\): .*2"),
    ],
)
def test_failed_runs_name_the_node(
    tmp_path: Path, x: tuple[int, ...], y: tuple[int, ...], i: int, expected: str
) -> None:
    model = lowerdeck.compile(sizes_from_data(tmp_path / "m.onnx"))
    arrays = np.ones(x, np.float32), np.ones(y, np.float32), np.array([i])
    with pytest.raises(RunError, match=expected):
        model(*arrays)
    # A model without its file, or whose file is another one by now, says what the C says.
    (tmp_path / "m.onnx").write_bytes(difference_and_sum().SerializeToString())
    with pytest.raises(RunError, match=r"(x: dims.1.|y: .*|dimension)$"):
        model(*arrays)
    model.save(tmp_path / "saved")
    with pytest.raises(RunError, match=r"(x: dims.1.|y: .*|dimension)$"):
        lowerdeck.load(tmp_path / "saved")(*arrays)


@pytest.mark.parametrize("c_compiler", ["gcc", "clang"], indirect=True)
@pytest.mark.parametrize("target", ["x86-64", "aarch64", "c99"])
def test_no_warnings_of_vectors(tmp_path: Path, c_compiler: str, target: str) -> None:
    """Clang warns of a function that nothing calls; softmax calls some of those there are."""
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [40, 40]) for name in ("x", "y")
    ]
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["y"])], "g", ports[:1], ports[1:]
    )
    options = compiler.CompileOptions(target=target)
    compiler.generate(helper.make_model(graph), str(tmp_path), options)
    text = (tmp_path / "model.c").read_text()
    assert ("_reduce_max(" in text, "_reduce_mul(" in text) == (target != "c99", False)
    warnings = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([c_compiler, "-std=c99", *warnings, "model.c"], cwd=tmp_path, check=True)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_saved_model_builds_with_cmake(model: lowerdeck.Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    for options in (["-S", ".", "-B", "build"], ["--build", "build", "--verbose"]):
        done = subprocess.run(["cmake", *options], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    # The flags of the target, which come after CMake's own.
    (line,) = (line for line in done.stdout.splitlines() if "-c" in line and "/model.c" in line)
    assert line.index("-O3") < line.index("-O2 -ffp-contract=fast") < line.index("-march=native")
    done = subprocess.run(["build/model_example"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


USER = """\
cmake_minimum_required(VERSION 3.14)
project(user C)
find_package(model REQUIRED)
add_executable(user user.c)
target_link_libraries(user lowerdeck::model)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("threads", [1, 2])
def test_installed_model_is_a_package_of_cmake(tmp_path: Path, threads: int) -> None:
    """Headers, library, weights and what `find_package` reads are installed."""
    lowerdeck.compile(difference_and_sum(), threads=threads).save(tmp_path / "model")
    user, prefix = tmp_path / "user", tmp_path / "prefix"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(USER)
    pool = '#include "lowerdeck_pool.h"\n' if threads > 1 else ""
    (user / "user.c").write_text(
        f'#include "model.h"\n{pool}int main(void) {{ return model_run(0) != 1; }}\n'
    )
    for command in (
        ["cmake", "-S", "model", "-B", "built"],
        ["cmake", "--build", "built"],
        ["cmake", "--install", "built", "--prefix", str(prefix)],
        ["cmake", "-S", "user", "-B", "used", f"-DCMAKE_PREFIX_PATH={prefix}"],
        ["cmake", "--build", "used"],
        ["used/user"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_library_of_another_machine_is_made_anew(model: lowerdeck.Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    (tmp_path / "libmodel.so").write_bytes(b"\x7fELF, not really")
    a, b = arrays()
    np.testing.assert_array_equal(lowerdeck.load(tmp_path)(a, b)[0], a - b)


def test_saving_another_model_over_a_loaded_one(model: lowerdeck.Model, tmp_path: Path) -> None:
    other = difference_and_sum()
    other.graph.node[0].op_type = "Add"
    a, b = arrays()
    model.save(tmp_path)
    first = lowerdeck.load(tmp_path)
    lowerdeck.compile(other).save(tmp_path)
    np.testing.assert_array_equal(lowerdeck.load(tmp_path)(a, b)[0], a + b)
    np.testing.assert_array_equal(first(a, b)[0], a - b)


def test_library_for_other_cpu_features_is_made_anew(
    model: lowerdeck.Model, tmp_path: Path
) -> None:
    model.save(tmp_path)
    machine = next(tmp_path.glob("*.machine"))
    machine.write_text("a machine with more features")
    library = next(tmp_path.glob("*.so"))
    library.write_bytes(b"must not be loaded")
    a, b = arrays()
    np.testing.assert_array_equal(lowerdeck.load(tmp_path)(a, b)[0], a - b)


def test_target_that_does_not_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(BuildError, match="x86-64-v3 does not run on riscv64; build it there"):
        lowerdeck.compile(difference_and_sum(), target="x86-64-v3", cache=False)


def test_target_with_features_that_this_cpu_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(targets, "_cpu_lines", lambda: ["flags : fpu sse2"])
    assert "avx512f" in str(targets.obstacle("x86-64-v4"))
    assert targets.obstacle("x86-64") is None


@pytest.mark.parametrize(
    ("vendor", "family", "per_cycle"),
    [("AuthenticAMD", 25, 1.0), ("AuthenticAMD", 26, 2.0), ("GenuineIntel", 25, 2.0)],
)
def test_native_is_described_by_the_processor(
    monkeypatch: pytest.MonkeyPatch, vendor: str, family: int, per_cycle: float
) -> None:
    """Zen 4 has the features of others and units of half the width."""
    flags = " ".join(sorted(targets.target_named("x86-64-zen4").features))
    lines = [f"flags\t\t: {flags}", f"vendor_id\t: {vendor}", f"cpu family\t: {family}"]
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(targets, "_cpu_lines", lambda: lines)
    assert targets.target_named("native").machine.multiply_adds_per_cycle == per_cycle
    assert targets.obstacle("x86-64-zen4") is None
    assert targets.machine_key("native") != targets.machine_key("x86-64-zen4")


def test_flags_of_the_environment_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLAGS", "--no-such-flag")
    with pytest.raises(BuildError, match="--no-such-flag"):
        lowerdeck.compile(difference_and_sum(), cache=False)


@pytest.mark.usefixtures("optimized_c")
def test_padding_of_pairs_at_full_optimization() -> None:
    """gcc 12 vectorizes conditional loads of pairs with a wrong mask, unless it is kept from it."""
    x = np.arange(162, dtype=np.float32).reshape(9, 9, 2)
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "pads"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [9, 9, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [14, 14, 2])],
        [helper.make_tensor("pads", TensorProto.INT64, [6], [2, 2, 0, 3, 3, 0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    (y,) = lowerdeck.compile(model, cache=False)(x)
    np.testing.assert_array_equal(y, np.pad(x, [(2, 3), (2, 3), (0, 0)]))


def weighted() -> onnx.ModelProto:
    """Two constants whose sizes are no multiples of what weights are padded to."""
    values = np.arange(13, dtype=np.uint8) * 7
    more = np.linspace(-1, 1, 5, dtype=np.float32)
    nodes = [helper.make_node("Add", ["a", "k"], ["c"]), helper.make_node("Mul", ["b", "m"], ["d"])]
    weights = [onnx.numpy_helper.from_array(values, "k"), onnx.numpy_helper.from_array(more, "m")]
    uint8 = TensorProto.UINT8
    return model_of(
        nodes,
        [("a", uint8, [13]), ("b", FLOAT, [5])],
        [("c", uint8, [13]), ("d", FLOAT, [5])],
        weights,
    )


def test_embedded_weights(tmp_path: Path) -> None:
    lowerdeck.compile(weighted(), embed_weights=True).save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert "model_weights.c" in names
    assert "model.weights" not in names
    a, b = np.arange(13, dtype=np.uint8), np.arange(5, dtype=np.float32)
    c, d = lowerdeck.load(tmp_path)(a, b)
    np.testing.assert_array_equal(c, a * np.uint8(8))
    np.testing.assert_array_equal(d, b * np.linspace(-1, 1, 5, dtype=np.float32))
    command = ["cc", "-I.", "example.c", "model.c", "model_weights.c", "-lm", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./example"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


def test_load_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no compiled model"):
        lowerdeck.load(tmp_path)


def test_single_threaded_model_refuses_threads(model: lowerdeck.Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    with pytest.raises(ValueError, match="compiled for one thread"):
        lowerdeck.load(tmp_path, threads=2)


def test_without_a_c_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(BuildError, match="no C compiler found"):
        lowerdeck.compile(difference_and_sum(), cache=False)


def test_failing_c_compiler_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cc = tmp_path / "cc"
    cc.write_text("#!/bin/sh\necho 'it is tired' >&2\nexit 1\n")
    cc.chmod(0o755)
    monkeypatch.setenv("CC", str(cc))
    with pytest.raises(BuildError, match="it is tired"):
        lowerdeck.compile(difference_and_sum(), cache=False)


@pytest.mark.parametrize(
    "name", ["a b", "3d", "lowerdeck", "example", "int", "größe", "math", "m", "NULL"]
)
def test_file_names_become_identifiers(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    save_model(difference_and_sum(), path)
    a, b = arrays()
    np.testing.assert_array_equal(lowerdeck.compile(path, cache=False)(a, b)[0], a - b)


def test_dimension_expressions() -> None:
    values = {"n": 7, "a.b": 3}
    assert Dimension("n floordiv 2 + 1").evaluate(values) == 4
    assert Dimension("(n * -1 + 3) floordiv a.b").evaluate(values) == -2
    assert Dimension("max(n mod 4, 5) * 2 - min(n, a.b)").evaluate(values) == 7
    assert Dimension("-n floordiv 2").evaluate({"n": 7}) == -3
    assert Dimension("max(-(n + 1) mod 3, -n mod 4) - 1").evaluate({"n": 7}) == -3
    assert Dimension("n").is_symbol
    assert not Dimension("n + 1").is_symbol
    with pytest.raises(ValueError, match="no dimension expression"):
        Dimension("n; exit()")


@pytest.mark.usefixtures("optimized_c")
@pytest.mark.parametrize("rows", [1, 5])
def test_columns_of_equal_weights_have_equal_sums(rows: int) -> None:
    """Those of a whole vector and the rest: where numbers are large, softmax shows one last bit."""
    constants = [
        numpy_helper.from_array(np.full((1000, 1001), 0.02, np.float32), "w"),
        numpy_helper.from_array(np.full(1001, 0.02, np.float32), "b"),
    ]
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 1000])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 1001])
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], constants))
    numbers = np.random.default_rng(0).uniform(0, 1e6, (rows, 1000)).astype(np.float32)
    sums = lowerdeck.compile(model)({"x": numbers})["y"]
    assert np.array_equal(sums, np.broadcast_to(sums[:, :1], sums.shape))


def test_a_copy_and_a_pickled_model_are_the_model(tmp_path: Path) -> None:
    model = lowerdeck.compile(weighted())
    inputs = np.arange(13, dtype=np.uint8), np.arange(5, dtype=np.float32)
    expected = model(*inputs)
    for other in (copy.copy(model), copy.deepcopy([model])[0], pickle.loads(pickle.dumps(model))):
        assert other is not model
        assert repr(other) == repr(model)
        for found, right in zip(other(*inputs), expected, strict=True):
            np.testing.assert_array_equal(found, right)
    # In another process, which has none of this one's folders.
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    text = "import pickle; m = pickle.load(open('model.pickle', 'rb')); print(m.name)"
    result = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == model.name


def test_notebooks_show_a_table() -> None:
    show = "_repr_html_"  # as IPython finds it
    page = getattr(lowerdeck.compile(difference_and_sum()), show)()
    assert "<tr><td>input</td><td>a:0</td><td>float32</td><td>[n, 3]</td></tr>" in page
    assert "<td>out/s</td>" in page


def test_objects_of_frameworks() -> None:
    class Program:
        """As what torch.onnx.export returns."""

        model_proto = difference_and_sum()

    assert len(lowerdeck.compile(cast(Any, Program())).outputs) == 2
    module = type("Net", (type("Module", (), {"__module__": "torch.nn.modules.module"}),), {})
    with pytest.raises(TypeError, match=r"Net is a module: give arguments"):
        lowerdeck.compile(cast(Any, module()))
    with pytest.raises(TypeError, match=r"onnx\.load_from_string"):
        lowerdeck.compile(cast(Any, b"bytes"))


def test_what_tools_say_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = ModuleType("__main__")  # which a process of multiprocessing would run again
    script.__file__ = str(tmp_path / "script.py")
    monkeypatch.setitem(sys.modules, "__main__", script)
    path = tmp_path / "m.onnx"
    save_model(difference_and_sum(), path)
    model = lowerdeck.compile(path)
    assert [op.name for op in model.ops()] == ["ReduceSum", "Sub"]
    assert model.report().data()["model"] == str(path)
    assert model.check().status == 0
    page = model.view("optimized")
    assert repr(page) == "Picture()"
    page.save(tmp_path / "m.html")
    assert "core.sub" in (tmp_path / "m.html").read_text()
    assert getattr(page, "_repr_html_")().startswith("<iframe srcdoc=")
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="no longer the file"):
        model.ops()
    with pytest.raises(ValueError, match="compiled from a file here"):
        lowerdeck.compile(difference_and_sum()).report()


def test_inputs_may_be_left_out(tmp_path: Path) -> None:
    """By name, at the end, or as None; an empty array is given; saved and exported models, too."""
    table = np.array([[5, 6], [7, 8]], np.float32)
    scale = np.array(2, np.float32)
    model = model_of(
        [
            helper.make_node("Concat", ["x", "table"], ["all"], axis=0),
            helper.make_node("Mul", ["all", "scale"], ["y"]),
        ],
        [("x", FLOAT, ["n", 2]), ("table", FLOAT, ["k", 2]), ("scale", FLOAT, [])],
        [("y", FLOAT, ["m", 2])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(scale, "scale")],
    )
    path = tmp_path / "m.onnx"
    save_model(model, str(path))
    compiled = lowerdeck.compile(path, target="c99")
    assert [info.default for info in compiled.inputs] == [None, (2, 2), ()]
    assert "scale: float32[] (optional)" in str(compiled)
    x, other, empty = np.ones((1, 2), np.float32), table[:1] + 1, table[:0]
    compiled.save(tmp_path / "saved")
    lowerdeck.export(path, tmp_path / "e.onnx")
    exported = lowerdeck.compile(tmp_path / "e.onnx", target="c99")
    for one in (compiled, lowerdeck.load(tmp_path / "saved"), exported):
        np.testing.assert_array_equal(one(x)[0], 2 * np.concatenate([x, table]))
        np.testing.assert_array_equal(one(x, other)[0], 2 * np.concatenate([x, other]))
        np.testing.assert_array_equal(one(x, None, 3 * scale)[0], 6 * np.concatenate([x, table]))
        np.testing.assert_array_equal(one({"x": x, "table": empty})["y"], 2 * x)
        call = one.prepare({"x": x, "table": empty})
        np.testing.assert_array_equal(call.outputs[0], 2 * x)
        np.testing.assert_array_equal(one.prepare({"x": x}).outputs[0], one(x)[0])
        assert one.workspace_for({"x": (1, 2)}) == one.workspace_for({"x": (1, 2), "table": (2, 2)})
        with pytest.raises(ValueError, match="no value for the inputs"):
            one({"table": table})
        with pytest.raises(ValueError, match="are not inputs"):
            one({"x": x, "tabel": table})
        with pytest.raises(ValueError, match="0 inputs for a model with 3"):
            one()
        with pytest.raises(ValueError, match="4 inputs for a model with 3"):
            one(x, table, scale, scale)
    constant = lowerdeck.compile(path, target="c99", optional=[])
    assert [info.name for info in constant.inputs] == ["x"]
