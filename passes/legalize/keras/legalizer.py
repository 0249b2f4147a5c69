"""What a handler works with: the arguments, configuration and variables of one call."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import (
    bf16,
    element_named,
    element_of,
    element_type,
    f16,
    f32,
    f64,
    is_float,
    numpy_dtype,
    static_shape,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.keras.classes import LAYERS
from lowerdeck.dialects.keras.ops import KerasOp
from lowerdeck.dialects.keras.policies import Policy, policy_of
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue

_POLICIES = {
    "float32": f32,
    "float64": f64,
    "float16": f16,
    "bfloat16": bf16,
    "mixed_float16": f16,
    "mixed_bfloat16": bf16,
}

_MODES = {
    "Dense": ("int8", "int4"),
    "Embedding": ("int8", "int4"),
    "EinsumDense": ("int8",),
}
"""The layers that can be quantized, and how."""

_INERT = frozenset(
    """
    activity_regularizer autocast build_config debug dropout implementation input_dim input_length
    momentum name noise_shape quantization_config rate recurrent_dropout renorm_momentum seed
    synchronized trainable unit_forget_bias unroll units filters fused lora_rank lora_alpha
    sparse ragged virtual_batch_size adjustment renorm_clipping time_major
    """.split()
)
"""Parts of a configuration that shapes repeat, or that only training needs."""


class KerasLegalizer(Legalizer):
    """
    What a handler works with.

    Reading the configuration is recorded: what is set and never read is refused.
    """

    def __init__(self, op: KerasOp, symbols: SymbolicValues) -> None:
        super().__init__(op, symbols)
        self.op = op
        self.version = op.version
        self.weights = op.weights
        self._config = op.config
        self._args, self._kwargs = op.arguments
        self._read: set[str] = set()
        self.is_layer = op.op_type in LAYERS

    @property
    def op_type(self) -> str:
        """The class."""
        return self.op.op_type

    # Types

    @property
    def element(self) -> Attribute | None:
        """The type in which a layer computes; None for what is no layer."""
        policy = policy_of(self._config) if self.is_layer else None
        if policy is None:
            return None
        if not policy.is_known:
            self.refuse(f"the policy {policy.name}", "one of types")
        if policy.mode and policy.mode not in _MODES.get(self.op_type, ()):
            self.refuse(f"{self.op_type} in {policy.mode}", "Dense and Embedding in int8 or int4")
        found = _POLICIES.get(policy.name)
        if found is None and not policy.name.startswith(("int", "uint", "bool")):
            self.refuse(f"the policy {policy.name}", "one of " + ", ".join(_POLICIES))
        return found

    @property
    def policy(self) -> Policy:
        """The policy, with the quantization of the layer's variables."""
        return policy_of(self._config) or Policy("float32")

    def _computed(self, value: SSAValue) -> SSAValue:
        """A value in the type in which the layer computes."""
        element = self.element
        if element is None or not is_float(element_type(value)):
            return value
        return self.cast(value, element)

    # Arguments

    def has(self, index: int, name: str = "") -> bool:
        """True if an argument is given and not none."""
        return self._argument(index, name) is not None

    def _argument(self, index: int, name: str) -> Any:
        if index < len(self._args):
            return self._args[index]
        self._read.add(f"({name})")
        return self._kwargs.get(name)

    def argument(self, index: int, name: str = "", default: Any = None) -> Any:
        """An argument as it is: a value, a number, a list, ..."""
        found = self._argument(index, name)
        return default if found is None else found

    def keyword(self, name: str, default: Any = None) -> Any:
        """An argument that has a name."""
        return self.argument(len(self._args), name, default)

    def input(self, index: int = 0, name: str = "") -> SSAValue:
        """An argument that is a tensor."""
        found = self._argument(index, name)
        if not isinstance(found, SSAValue):
            self.refuse(f"{found} as argument {index}", "a tensor")
        return self._computed(cast("SSAValue", found))

    def x(self, index: int = 0, name: str = "") -> TensorValue:
        """An argument for arithmetic."""
        return TensorValue.of(self, self.input(index, name))

    def operands(self) -> list[SSAValue]:
        """The tensors of a call with a list of them, or with several."""
        first = self._args[0] if self._args else None
        values = cast("list[Any]", first) if isinstance(first, list) else self._args
        if not all(isinstance(value, SSAValue) for value in values):
            self.refuse("arguments that are no tensors", "tensors")
        return [self._computed(value) for value in values]

    def number_like(self, value: Any, like: SSAValue | None) -> SSAValue:
        """An argument that is a tensor, or a number for one of the type of another."""
        if isinstance(value, SSAValue):
            return cast("SSAValue", value)
        if isinstance(value, dict) and "array" in value:
            entry = cast("dict[str, Any]", value)
            if (element := element_named(entry["dtype"])) is None:
                self.refuse(f"an array of {str(entry['dtype'])[:40]}", "one of numbers")
            return self.tensor(np.array(entry["array"], numpy_dtype(element)))
        array = np.array(value)
        if array.dtype.kind not in "bif":
            self.refuse(f"{value} as an argument", "numbers or tensors")
        if like is not None:
            element = element_type(like)
            if array.dtype.kind == "f" and not is_float(element):
                element = f32
            if element == i1 and array.dtype.kind == "i":
                element = element_of(np.dtype(np.int32))
            return TensorValue(self, array.astype(np.float64)).cast(element).value
        return self.tensor(
            array.astype({"b": bool, "i": np.int32, "f": np.float32}[array.dtype.kind])
        )

    # Configuration and variables

    def config(self, name: str, default: Any = None) -> Any:
        """A part of the configuration."""
        self._read.add(name)
        return self._config.get(name, default)

    def integer(self, name: str, default: int | None = None) -> int:
        """A part of the configuration that is an integer."""
        value = self.config(name, default)
        if not isinstance(value, int):
            self.refuse(f"'{name}' is {value}", "an integer")
        return value

    def real(self, name: str, default: float | None = None) -> float:
        """A part of the configuration that is a number."""
        value = self.config(name, default)
        if not isinstance(value, int | float):
            self.refuse(f"'{name}' is {value}", "a number")
        return float(value)

    def ignore_configuration(self) -> None:
        """State that the configuration has no influence on the results."""
        self._read.update(self._config)

    def ignore(self, *names: str) -> None:
        """State that parts of the configuration have no influence."""
        self._read.update(names)

    def weight(self, name: str) -> SSAValue | None:
        """A variable in the type of the computation; None if the layer does without it."""
        value = self.weights.get(name)
        return None if value is None else self._computed(value)

    def require_weight(self, name: str) -> SSAValue:
        """A variable that has to be there."""
        value = self.weight(name)
        if value is None:
            self.refuse(f"no variable '{name}'", "it to be in the file")
        return value

    def require_shape(self, name: str, *dims: int | None) -> None:
        """Refuse a variable of another shape than its configuration says."""
        value = self.weights.get(name)
        if value is None:
            return
        shape = static_shape(value) or ()
        fits = len(shape) == len(dims) and all(
            b is None or a == b for a, b in zip(shape, dims, strict=True)
        )
        if not fits:
            self.refuse(f"'{name}' of shape {list(shape)}", str(list(dims)))

    def require_read(self) -> None:
        """Refuse what is configured and has not been read."""
        for name, value in self._config.items():
            if name in self._read or name in _INERT or name == "dtype":
                continue
            if value is not None and value is not False:
                self.refuse(f"'{name}' is {value}", "it not to be set")
        for name, value in self._kwargs.items():
            if f"({name})" in self._read or name in ("training", "name"):
                continue
            if value is not None and value is not False:
                self.refuse(f"the argument '{name}'", "it not to be given")

    # Axes and numbers

    def integers(self, value: Any, what: str) -> list[int]:
        """A number or a list of them, which are integers."""
        items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        if not all(isinstance(item, int) for item in items):
            self.refuse(f"{what} {value}", "integers")
        return items

    def axes_of(self, axis: Any, rank: int) -> list[int]:
        """One axis or several, from the front; all of them for None."""
        return list(range(rank)) if axis is None else self.axes(self.integers(axis, "axes"), rank)

    def one_axis(self, rank: int, default: int = -1) -> int:
        """The axis of the configuration, which is one."""
        axis = self.config("axis", default)
        if not isinstance(axis, int):
            self.refuse(f"the axis {axis}", "one")
        return self.axis(axis, rank)

    def along(self, x: TensorValue) -> tuple[TensorValue, int]:
        """A tensor, and the axis of the configuration; without one all elements in a row."""
        if self.config("axis") is None:
            return x.reshape([product(x.dims)]), 0
        return x, self.one_axis(len(x.dims))

    def limited(self, x: TensorValue, low: Any, high: Any) -> TensorValue:
        """At least one number, at most another."""
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            self.refuse("limits that are computed", "numbers")
        return x.clip(low, high)

    # Layout

    def image(self, count: int) -> tuple[SSAValue, bool]:
        """[N, C, spatial...] of `count` spatial dimensions, and whether the layer has it so."""
        value = self.input()
        self.require_rank(value, count + 2, "the input")
        return self.to_first(value, self.is_first()), self.is_first()

    def is_first(self) -> bool:
        """True if the channels come before the spatial dimensions."""
        return self.config("data_format") == "channels_first"

    def to_first(self, value: SSAValue, is_first: bool) -> SSAValue:
        """[N, C, spatial...] of an image."""
        return value if is_first else self.channels_first(value)

    def from_first(self, value: SSAValue, is_first: bool) -> SSAValue:
        """An image in the layout of the layer."""
        return value if is_first else self.channels_last(value)

    def numbers(self, name: str, count: int, default: int = 1) -> list[int]:
        """A part of the configuration with an entry a spatial dimension."""
        value = self.config(name)
        items = [default] if value is None else self.integers(value, f"'{name}' is")
        items = items if isinstance(value, list) else items * count
        if len(items) != count:
            self.refuse(f"'{name}' is {items}", f"{count} numbers")
        return items

    def sides(self, name: str, count: int, *, in_pairs: bool) -> list[tuple[int, int]]:
        """A number or a pair an axis, or one of them for all; two numbers may be a pair."""
        value = self.config(name)
        listed: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        if in_pairs and all(isinstance(side, int) for side in listed):
            listed = [listed]
        sides = [self.integers(side, f"'{name}' of") for side in listed]
        sides = sides * count if len(sides) == 1 else sides
        if len(sides) != count or not all(0 < len(side) < 3 for side in sides):
            self.refuse(f"'{name}' of {value}", f"numbers or pairs, {count}")
        return [(side[0], side[-1]) for side in sides]

    def positional(self) -> list[Any]:
        """The arguments without names."""
        return self._args
