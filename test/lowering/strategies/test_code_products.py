"""Products of a row with weights of four bits, in integers: as near as sums in f32."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import compile_with, generate, import_and_lower
from lowerdeck.lowering.targets import obstacle
from lowerdeck.passes.machinery.options import CompileOptions

Array = NDArray[Any]

RANDOM = np.random.default_rng(11)


def write_product(path: Path, depth: int, columns: int, block: int, kind: str) -> Array:
    """y = (2 x) @ w + bias with numbers of four bits in blocks along the sums; w in f64."""
    low = -8 if kind == "INT4" else 0
    blocks = depth // block
    codes = RANDOM.integers(low, low + 16, (depth, columns))
    zeros = RANDOM.integers(0, 16, (blocks, columns)) if kind == "UINT4" else None
    scale = np.asarray(RANDOM.uniform(0.01, 1, (blocks, columns)), np.float32)
    bias = RANDOM.standard_normal(columns).astype(np.float32)
    constants = [
        helper.make_tensor(
            name, getattr(TensorProto, kind), array.shape, array.reshape(-1).tolist()
        )
        for name, array in (("q", codes), ("z", zeros))
        if array is not None
    ]
    named = {"s": scale, "b": bias, "two": np.float32(2)}
    constants += [numpy_helper.from_array(np.asarray(a), name) for name, a in named.items()]
    parts = ["q", "s", *(["z"] if zeros is not None else [])]
    nodes = [
        helper.make_node("DequantizeLinear", parts, ["w"], axis=0, block_size=block),
        helper.make_node("Mul", ["x", "two"], ["twice"]),
        helper.make_node("MatMul", ["twice", "w"], ["sum"]),
        helper.make_node("Add", ["sum", "b"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (("x", depth), ("y", columns))
    ]
    graph = helper.make_graph(nodes, "product", ports[:1], ports[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    centered = codes - (0 if zeros is None else np.repeat(zeros, block, 0))
    return np.vstack([2.0 * centered * np.repeat(scale, block, 0), bias.astype(float)[None]])


def rows_of(depth: int, block: int) -> dict[str, Array]:
    """Rows whose blocks need other scales, and such as need the first and the last of them."""
    plain = RANDOM.standard_normal(depth)
    far = plain.copy()
    far[::block] *= 1e6
    largest = np.where(plain > 0, np.nextafter(2, 0, dtype=np.float32), -1.0)
    return {
        "plain": plain,
        "far": far,
        "apart": plain * np.logspace(-20, 20, depth),
        "tiny": plain * 1e-37,
        "huge": plain * 1e35,
        "largest": largest,
        "none": plain * 0,
    }


@pytest.mark.parametrize(
    ("target", "sizes", "kind", "threads"),
    [
        ("native", (128, 85, 32), "INT4", 1),
        ("native", (96, 1100, 48), "UINT4", 2),
        ("x86-64-v3", (512, 40, 256), "UINT4", 1),
        ("x86-64-v4", (64, 64, 16), "INT4", 1),
        ("x86-64-vnni", (64, 33, 64), "UINT4", 1),
    ],
)
def test_rows_lose_no_more_than_in_floats(
    target: str, sizes: tuple[int, int, int], kind: str, threads: int, tmp_path: Path
) -> None:
    path, (depth, columns, block) = tmp_path / "product.onnx", sizes
    parameters = write_product(path, depth, columns, block, kind)
    weight, bias = parameters[:-1], parameters[-1]
    if obstacle(target) is not None:
        pytest.skip(f"{target} does not run here")
    options = CompileOptions(target=target, threads=threads, strategy=("code_products",))
    module, _ = import_and_lower(str(path), "kernels", options)
    assert "code_products" in str(module)
    compiled = compile_with(str(path), options, cache=False)
    for name, row in rows_of(depth, block).items():
        x = row.astype(np.float32)[None]
        found = np.asarray(compiled({"x": x})["y"]).astype(float)
        blocks = np.abs(x.astype(float)).reshape(-1, block).max(1).repeat(block)
        limit = 2.0**-22 * (blocks @ np.abs(weight) + np.abs(bias)) + np.finfo(np.float32).tiny
        difference = np.abs(found[0] - (x.astype(float) @ weight + bias)[0])
        assert (difference <= limit).all(), name
    for value in (np.nan, np.inf):
        x = np.ones((1, depth), np.float32)
        x[0, depth // 2] = value
        assert np.isnan(np.asarray(compiled({"x": x})["y"])).all()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_multiply_four_bytes_at_a_time(compiler: str, tmp_path: Path) -> None:
    """Clang, which does not find the instruction, too; and neither has a warning."""
    if shutil.which(compiler) is None or obstacle("x86-64-v3") is not None:
        pytest.skip(f"{compiler} for x86-64 is not there")
    write_product(tmp_path / "product.onnx", 64, 64, 32, "INT4")
    generate(str(tmp_path / "product.onnx"), str(tmp_path), CompileOptions(target="x86-64-vnni"))
    flags = "-std=c99 -O2 -Werror -Wall -Wextra -march=x86-64-v4 -mavx512vnni -S".split()
    subprocess.run([compiler, *flags, "product.c"], cwd=tmp_path, check=True)
    text = (tmp_path / "product.s").read_text()
    assert text.count("vpdpbusd") >= 24
    assert "vpmulld" not in text
