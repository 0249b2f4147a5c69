"""
`torch.compile(model, backend="lowerdeck")`: the backend, for inference on the CPU.

A graph is compiled when it is first run, once for each set of shapes, with parameters and buffers
as constants; when one of these has been written since, it is compiled again (writes that PyTorch
does not count, to `.data` or through numpy, are not seen). Where gradients are asked for, where a
graph writes to its inputs or buffers, and where it cannot be compiled, PyTorch runs it itself.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowerdeck.compiler import Model, compile
from lowerdeck.dialects.errors import LowerdeckError
from lowerdeck.pytorch import write_program

Run: TypeAlias = Callable[..., Any]


def backend(graph: Any, example_inputs: Sequence[Any], **options: Any) -> Run:
    """
    What runs a `torch.fx.GraphModule` for inputs like the examples; `options` are those of
    `lowerdeck.compile`.
    """
    return _Graph(graph, example_inputs, options)


class _Graph:
    """A graph that is compiled for the shapes that it meets."""

    def __init__(self, graph: Any, examples: Sequence[Any], options: dict[str, Any]) -> None:
        self._torch = import_module("torch")
        self._graph = graph
        self._options = options
        self._static = [k for k, value in enumerate(examples) if self._is_static(value)]
        self._compiled: dict[tuple[Any, ...], Run | None] = {}

    def _is_static(self, value: Any) -> bool:
        """True for parameters and buffers, which are inputs of a graph, too."""
        is_parameter = isinstance(value, self._torch.nn.Parameter)
        return is_parameter or hasattr(value, "_dynamo_static_input_type")

    def __call__(self, *inputs: Any) -> Any:
        tensors = [value for value in inputs if isinstance(value, self._torch.Tensor)]
        needs_gradient = self._torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if needs_gradient or any(t.device.type != "cpu" for t in tensors):
            return self._graph(*inputs)
        key = tuple(self._key(k, value) for k, value in enumerate(inputs))
        if key not in self._compiled:
            self._compiled[key] = self._compile(inputs)
        run = self._compiled[key] or self._graph
        return run(*inputs)

    def _key(self, place: int, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor):
            return value
        if place in self._static:
            return (value.data_ptr(), value._version)
        return (tuple(value.shape), value.dtype)

    def _compile(self, inputs: Sequence[Any]) -> Run | None:
        """What runs the graph; None if PyTorch has to, which is told once."""
        torch = self._torch
        constants = {k: inputs[k] for k in self._static}
        free = [k for k in range(len(inputs)) if k not in constants]

        def forward(module: Any, *given: Any) -> Any:
            values = dict(zip(free, given, strict=True))
            for place in constants:
                values[place] = getattr(module, f"constant_{place}")
            return self._graph(*(values[place] for place in range(len(inputs))))

        bound = type("Bound", (torch.nn.Module,), {"forward": forward})()
        for place, value in constants.items():
            bound.register_buffer(f"constant_{place}", value.detach())
        try:
            with torch.no_grad(), tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
                given = tuple(_copied(torch, inputs[k]) for k in free)
                program = torch.export.export(bound.eval(), given)
                _check_writes(program)
                path = os.path.join(folder, "graph.pt2")
                write_program(program, None, path)
                model = compile(path, **self._options)
            return _runner(torch, program, model, free)
        except (LowerdeckError, _UnsupportedError) as error:
            reason = str(error)
        except Exception as error:  # what torch.export raises has no class of its own
            reason = f"torch.export: {type(error).__name__}: {error}"
        warnings.warn(f"a graph is run by PyTorch itself: {reason[:2000]}", stacklevel=2)
        return None


class _UnsupportedError(Exception):
    """A program that does what a call here does not."""


def _check_writes(program: Any) -> None:
    """A call here gives results, and writes to nothing: only the functional form says what does."""
    functional = program.run_decompositions({})
    kinds = {spec.kind.name for spec in functional.graph_signature.output_specs}
    if kinds - {"USER_OUTPUT"}:
        raise _UnsupportedError("it writes to its inputs or buffers")


def _copied(torch: Any, value: Any) -> Any:
    """An example for the export, which may write to it."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _runner(torch: Any, program: Any, model: Model, free: Sequence[int]) -> Run:
    """The call of a model, with tensors."""
    signature = program.graph_signature
    constants = [getattr(spec.arg, "value", None) for spec in signature.output_specs]
    is_tensor = [type(spec.arg).__name__ == "TensorArgument" for spec in signature.output_specs]
    count = len(model.inputs)

    def run(*inputs: Any) -> Any:
        given = [inputs[place] for place in free if isinstance(inputs[place], torch.Tensor)]
        if len(given) != count:
            raise ValueError(f"{len(given)} tensors for a model with {count} inputs")
        results = iter(model(*(_array(torch, value) for value in given)))
        return tuple(
            _tensor(torch, next(results)) if tensor else constant
            for tensor, constant in zip(is_tensor, constants, strict=True)
        )

    return run


def _array(torch: Any, value: Any) -> NDArray[Any]:
    """A tensor as an array; numpy has bfloat16 from a package, of which PyTorch does not know."""
    value = value.detach().contiguous()
    if value.dtype == torch.bfloat16:
        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def _tensor(torch: Any, array: NDArray[Any]) -> Any:
    """An array as a tensor of the same memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
