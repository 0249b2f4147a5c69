"""
The interface of `onnx.backend.base` on the compiler, so that ONNX's own suite runs through the C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from lowerdeck.compiler import CompileOptions, Model, compile, import_and_lower
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.metadata import TensorInfo
from lowerdeck.reading import model_file

__all__ = [
    "LowerdeckBackend",
    "PreparedModel",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class PreparedModel(BackendRep):
    """A compiled model that takes inputs in order, or by name."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in order; also accessible by name where the names are identifiers."""
        if isinstance(inputs, Mapping):
            named = cast(Mapping[str, Any], inputs)
            given = [named[info.name] for info in self._model.inputs]
        else:
            given = list(cast(Sequence[Any], inputs))
        arrays = [_as_array(v, info) for v, info in zip(given, self._model.inputs, strict=True)]
        outputs = self._model(*arrays)
        names = [info.name for info in self._model.outputs]
        return cast(Any, namedtupledict)("Outputs", names)(*outputs)


class LowerdeckBackend(Backend):
    """Compiles every model to C for the CPU."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """
        Compile `model`; options are those of `lowerdeck.compile`.

        FrontendError or CompileError if it cannot be compiled, ValueError for a device other
        than the CPU.
        """
        if not cls.supports_device(device):
            raise ValueError(f"there is no device '{device}', only CPU")
        super().prepare(model, device)
        return PreparedModel(compile(model, **kwargs))

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True if all of the model can be compiled; options are those of `lowerdeck.compile`."""
        if not cls.supports_device(device):
            return False
        try:
            with model_file(model) as path:
                import_and_lower(path, "legal", CompileOptions(**kwargs))
        except LowerdeckError:
            return False
        return True

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile `model` and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """
        Compile a model of one node, in the newest opset, and run it once.

        `outputs_info` gives the dtype and shape of each output; without it they are inferred.
        """
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        given = [
            _value_info(name, array.dtype, array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        if outputs_info is None:
            results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        else:
            results = [
                _value_info(name, np.dtype(dtype), shape)
                for name, (dtype, shape) in zip(node.output, outputs_info, strict=True)
            ]
        graph = helper.make_graph([node], "node", given, results)
        opset = helper.make_opsetid(node.domain, onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[opset])
        if outputs_info is None:
            model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for the CPU."""
        return device.split(":")[0] == "CPU"


def _value_info(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), list(shape))


def _as_array(value: Any, info: TensorInfo) -> NDArray[Any]:
    """The suite gives values of types that numpy lacks as TensorProto."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    array = np.asarray(value)
    if info.dtype.name == "bfloat16" and array.dtype == np.uint16:
        return array.view(info.dtype)  # older cases give its bits
    return array


is_compatible = LowerdeckBackend.is_compatible
prepare = LowerdeckBackend.prepare
run_model = LowerdeckBackend.run_model
run_node = LowerdeckBackend.run_node
supports_device = LowerdeckBackend.supports_device
