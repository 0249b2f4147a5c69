"""Programs of core that leave as nets of Caffe and come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from google.protobuf import text_format
from numpy.typing import NDArray
from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.caffe.caffe_pb2 import NetParameter
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import named
from lowerdeck.dialects.core.types import element_of
from lowerdeck.dialects.core.types import tensor as tensor_type
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporters.caffe import export_caffe

Array: TypeAlias = NDArray[Any]
Program: TypeAlias = "Callable[[Any], Any] | Callable[[Any, Any], Any]"

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    """Random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def constant(array: Array) -> SSAValue:
    """A constant of core."""
    return ConstantOp.of(array).result


def number(value: float) -> SSAValue:
    """A constant of core without dimensions."""
    return constant(np.array(value, np.float32))


def module_of(inputs: Mapping[str, Array], program: Program) -> ModuleOp:
    """A module whose function computes what a program makes of arguments like the inputs."""
    types = [tensor_type(element_of(array.dtype), array.shape) for array in inputs.values()]
    block = Block(arg_types=types)
    with ImplicitBuilder(block):
        found: Any = cast(Any, program)(*block.args)
    results: list[SSAValue] = (
        [found]
        if isinstance(found, SSAValue)
        else list(found.results if hasattr(found, "results") else found)
    )
    block.add_op(ReturnOp(*results))
    function = FuncOp(
        "main",
        (block.arg_types, [value.type for value in results]),
        Region(block),
        arg_attrs=named(inputs),
        res_attrs=named(f"y{k}" for k in range(len(results))),
    )
    module = ModuleOp([function])
    module.verify()
    return module


def read_back(path: Path) -> ModuleOp:
    """A net, in core."""
    return import_and_lower(str(path), "legal", CompileOptions())[0]


def net_of(path: Path) -> NetParameter:
    """The text of a net, as its message."""
    return text_format.Parse(path.read_text(), NetParameter())


def check(
    folder: Path, inputs: Mapping[str, Array], program: Program, dialect: str = "bvlc"
) -> list[str]:
    """
    The types of the layers, in order; inputs and outputs are the same in core and in the net, which
    has floats also where core has integers.
    """
    module = module_of(inputs, program)
    expected = run_module(module, inputs)
    path = folder / "net.prototxt"
    export_caffe(module, path, dialect=dialect)
    as_floats = {name: array.astype(np.float32) for name, array in inputs.items()}
    found = run_module(read_back(path), as_floats)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        got, wanted = np.asarray(found[name]), np.asarray(value)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-5)
    return [layer.type for layer in net_of(path).layer if layer.type != "Input"]
