"""
The outputs of a model in double precision: what an error is measured against.

    python -m bench.reference MODEL INPUTS.npz OUTPUTS.npz

The legalized module is changed to f64 wherever it says f32, weights included, and the interpreter
runs it, with matrix products of BLAS: in double precision the order of a sum is far below what is
measured, and the interpreter's own order takes minutes where this takes seconds. INPUTS.npz holds
arrays "input:<tensor>" in the model's own types, OUTPUTS.npz gets arrays "output:<tensor>".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.blob import Blob, BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.types import Tensor, dims_of, element_type, f32, f64, tensor
from lowerdeck.dialects.interpret import core_linear


def widen(module: ModuleOp) -> None:
    """Make every f32 of a legal module f64, in place; values of constants stay what they are."""
    for op in list(module.walk()):
        if isinstance(op, ConstantOp) and element_type(op.result) == f32:
            op.properties["value"] = BlobAttr(Blob.of(op.array.astype(np.float64)))
        if isinstance(op, CastOp) and op.to == f32:
            op.properties["to"] = f64
        for value in list(_values(op)):
            if (wide := _wide(value.type)) != value.type:
                Rewriter.replace_value_with_new_type(value, wide)
        if isinstance(op, FuncOp):
            inputs, outputs = op.function_type.inputs, op.function_type.outputs
            op.function_type = FunctionType.from_lists(
                [_wide(type_) for type_ in inputs], [_wide(type_) for type_ in outputs]
            )


def _values(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _wide(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    type_ = cast(Tensor, type_)
    return tensor(f64, dims_of(type_)) if element_type(type_) == f32 else type_


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """An input or output of the widened module."""
    return array.astype(np.float64) if array.dtype == np.float32 else array


def evaluate(model: str, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The outputs in double precision."""
    from lowerdeck.compiler import CompileOptions, import_and_lower
    from lowerdeck.dialects.interpret import run_module

    module, _ = import_and_lower(model, "legal", CompileOptions())
    widen(module)
    module.verify()
    # Convolutions go through it, too.
    with patch.object(core_linear, "matrix_product", np.matmul):
        results = run_module(module, {name: widened(array) for name, array in inputs.items()})
    return {name: cast("NDArray[Any]", value) for name, value in results.items()}


def recorded_inputs(path: str) -> dict[str, NDArray[Any]]:
    """The arrays "input:<tensor>" of a file, by tensor."""
    return _arrays(path, "input:")


def recorded_outputs(path: str) -> dict[str, NDArray[Any]]:
    """The arrays "output:<tensor>" of a file, by tensor."""
    return _arrays(path, "output:")


def _arrays(path: str, prefix: str) -> dict[str, NDArray[Any]]:
    with np.load(path) as file:
        names = [name for name in file.files if name.startswith(prefix)]
        return {name.removeprefix(prefix): file[name] for name in names}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the outputs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    for name in ("model", "inputs", "outputs"):
        parser.add_argument(name)
    options = parser.parse_args(arguments)
    results = evaluate(options.model, recorded_inputs(options.inputs))
    arrays: dict[str, Any] = {f"output:{name}": array for name, array in results.items()}
    np.savez(options.outputs, **arrays)


if __name__ == "__main__":
    main()
