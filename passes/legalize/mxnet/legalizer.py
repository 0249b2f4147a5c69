"""What a handler works with: the arguments of one op, and a builder before it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    bf16,
    element_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.mxnet.ops import MxnetOp
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.onnx.applied import applied
from lowerdeck.passes.legalize.pt2.applied import aten
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.walk import FunctionWalk

_FIRST = (None, "None", "NCW", "NCHW", "NCDHW")
_LAST = ("NWC", "NHWC", "NDHWC")
_TYPES = ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")


class MxnetLegalizer(ArgumentsLegalizer):
    """What a handler works with."""

    def __init__(self, op: MxnetOp, walk: FunctionWalk) -> None:
        super().__init__(op, walk.symbols)
        self.walk, self.operator = walk, op

    @property
    def name(self) -> str:
        """The operator."""
        return self.op.op_type

    @property
    def is_numpy(self) -> bool:
        """True for an operator of `mxnet.numpy`, whose results may be scalars."""
        return self.name.startswith(("_np_", "_npi_", "_npx_"))

    def element(self, index: int = 0) -> Attribute:
        """The element type of the first tensor, which is that of most results."""
        del index
        return element_type(self.op.operands[0]) if self.op.operands else f32

    def elements(self) -> list[Attribute]:
        return [self.element()]

    def require_element(self, index: int, value: SSAValue) -> None:
        """A file states no types of results."""
        del index, value

    def require_inputs(self) -> None:
        """Refuse lists without inputs."""
        for name in type(self.operator).declared.inputs:
            if self.has(name) and self.get(name) == []:
                self.refuse(f"no inputs as '{name}'", "one or more")

    # Other frameworks

    def torch(self, target: str, /, *elements: Attribute, **given: Any) -> SSAValue:
        """What PyTorch's operator of a name gives as its first result."""
        found = aten(self, target, elements or [self.element()], **given)[0]
        assert found is not None
        return found

    def onnx(self, op_type: str, *operands: SSAValue | None, **attributes: Any) -> SSAValue:
        """What ONNX's operator of a name gives."""
        return applied(self, op_type, *operands, **attributes)[0]

    # Arguments

    def sizes(self, name: str) -> list[int]:
        """A list of integers; none if it is left out."""
        found = cast("list[int | None]", self.get(name) or [])
        if any(size is None for size in found):
            self.refuse(f"'{name}' is {found}", "integers")
        return [size for size in found if size is not None]

    def spatial(self, name: str, rank: int, default: int) -> list[int]:
        """A number for each spatial dimension."""
        found = self.sizes(name)
        if len(found) not in (0, rank):
            self.refuse(f"'{name}' is {found}", f"{rank} numbers")
        return found or [default] * rank

    def positive(self, name: str, rank: int, default: int = 1) -> list[int]:
        """As `spatial`, of numbers from 1 on."""
        found = self.spatial(name, rank, default)
        if any(size < 1 for size in found):
            self.refuse(f"'{name}' is {found}", "numbers from 1 on")
        return found

    def dtype(self, name: str = "dtype", default: Attribute | None = None) -> Attribute:
        """The element type that an argument names; that of the first tensor without it."""
        found = self.get(name)
        if found is None:
            return self.element() if default is None else default
        if found == "bfloat16":
            return bf16
        if found not in _TYPES:
            self.refuse(f"'{name}' is {found}", "one of " + ", ".join(_TYPES))
        return element_of(np.dtype(found))

    def along(self, x: SSAValue, name: str = "axis", default: int | None = None) -> int:
        """An axis of `x` from the front."""
        return self.axis(self.integer(name, default), rank_of(x))

    def absent(self, *names: str) -> None:
        """Refuse arguments that are set."""
        for name in names:
            if self.get(name) not in (None, False, 0, "None"):
                self.refuse(f"'{name}' is {self.get(name)}", "it not to be set")

    # Layout

    @property
    def is_last(self) -> bool:
        """True if channels are the last dimension."""
        layout = self.get("layout") if self.has("layout") else None
        if layout not in (*_FIRST, *_LAST):
            self.refuse(f"the layout {layout}", "one of NCHW and NHWC")
        return layout in _LAST

    def least_vector(self, x: SSAValue) -> SSAValue:
        """A result, which has at least one dimension, but for those of numpy."""
        return x if rank_of(x) or self.is_numpy else self.reshape(x, [1])

    # Types

    def wide(self, x: SSAValue) -> TensorValue:
        """A tensor of floats in at least single precision; others as f32."""
        element = element_type(x)
        kept = element if element in (f32, f64) else f32
        return TensorValue.of(self, self.cast(x, kept))

    def narrow(self, x: TensorValue, like: SSAValue | None = None) -> SSAValue:
        """A value computed from the first tensor, in the type of that."""
        return self.cast(x.value, self.element() if like is None else element_type(like))

    def promoted(self, *values: SSAValue) -> list[TensorValue]:
        """Tensors of one type: floats before integers, wide before narrow, truth values last."""
        elements = [element_type(value) for value in values]
        element = max(elements, key=_order)
        return [TensorValue.of(self, self.cast(value, element)) for value in values]

    def index(self, x: SSAValue) -> TensorValue:
        """Indices, which may be floats, as i64."""
        return TensorValue.of(self, self.cast(x, i64))


def _order(element: Attribute) -> tuple[bool, bool, int]:
    return is_float(element), element != i1, 2 * numpy_dtype(element).itemsize + (element != f16)
