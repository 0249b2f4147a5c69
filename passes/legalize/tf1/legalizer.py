"""What a handler works with: the operands and attributes of one node, and a builder before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.tf1.attributes import ELEMENTS
from lowerdeck.dialects.tf1.ops import Tf1Op, attribute_value
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse
from lowerdeck.passes.legalize.symbolic import SymbolicValues

_STRUCTURAL = ("type", "list(type)", "shape", "list(shape)")
"""Kinds of attributes that the types of operands and results repeat."""

_WITHOUT_EFFECT = frozenset(
    {
        "use_cudnn_on_gpu",
        "parallel_iterations",
        "swap_memory",
        "validate_indices",
        "_output_shapes",
        "message",
        "shared_name",
        "container",
        "tensor_array_name",
    }
)
"""Attributes that change no result, whatever the operator."""


class Attributes:
    """
    Typed access to the attributes of one node, with the defaults of its signature.

    Reading is recorded: an attribute that is not at its default and never read is refused.
    """

    def __init__(self, op: Tf1Op) -> None:
        self._op = op
        self._signature = op.signature
        self._read: set[str] = set()

    def int(self, name: str) -> int:
        return int(self._get(name))

    def float(self, name: str) -> float:
        return float(self._get(name))

    def flag(self, name: str) -> bool:
        return bool(self._get(name))

    def string(self, name: str, among: Sequence[str] | None = None) -> str:
        """A text; refused unless it is one of `among`."""
        text = str(self._get(name))
        if among is not None and text not in among:
            refuse(f"attribute '{name}' is '{text}'", f"one of {', '.join(among)}")
        return text

    def ints(self, name: str) -> list[Any]:
        return list(self._get(name))

    def floats(self, name: str) -> list[Any]:
        return list(self._get(name))

    def strings(self, name: str) -> list[str]:
        return [str(text) for text in self._get(name)]

    def element(self, name: str) -> Attribute:
        """An element type."""
        dtype = str(self._get(name)).removesuffix("_ref")
        if (element := ELEMENTS.get(dtype)) is None:
            refuse(f"attribute '{name}' is {dtype}", "an element type of tensors")
        return element

    def shape(self, name: str) -> tuple[Any, ...] | None:
        """A partial shape with -1 for unknown dimensions; None without a rank."""
        found = self._get(name)
        return None if found is None else tuple(found)

    def has(self, name: str) -> bool:
        """True if the operator has the attribute; this does not count as reading it."""
        return name in self._signature.attrs

    def ignore(self, *names: str) -> None:
        """State that attributes do not influence the results."""
        self._read.update(names)

    def require_read(self) -> None:
        """Refuse attributes that have not been read, unless they are at their defaults."""
        unread = [name for name in self._op.properties if self._matters(name)]
        if unread:
            refuse(
                f"attributes without effect: {', '.join(sorted(unread))}",
                "none that is not understood",
            )

    def _matters(self, name: str) -> bool:
        definition = self._signature.attrs.get(name)
        if name in self._read or name in _WITHOUT_EFFECT or definition is None:
            return False
        if definition.kind in _STRUCTURAL or self._is_count(name):
            return False
        return not definition.has_default or self._op.attr(name) != attribute_value(
            self._signature, {}, name
        )

    def _is_count(self, name: str) -> bool:
        arguments = (*self._signature.inputs, *self._signature.outputs)
        return any(argument.number_attr == name for argument in arguments)

    def _get(self, name: str) -> Any:
        self._read.add(name)
        try:
            return self._op.attr(name)
        except KeyError:
            return refuse(f"no attribute '{name}'", "it to be given")


class Tf1Legalizer(Legalizer):
    """What a handler works with: the node's operands and attributes, and a builder before it."""

    def __init__(
        self, op: Tf1Op, symbols: SymbolicValues, companions: dict[SSAValue, SSAValue]
    ) -> None:
        super().__init__(op, symbols, companions)
        self.op = op
        self.attrs = Attributes(op)

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.op.op_type

    def operand(self, name: str | int) -> SSAValue:
        """The operand for a formal input that stands for one value (by name or position)."""
        if isinstance(name, int):
            return self.op.inputs[name]
        return self.op.input_list(name)[0]

    def operands(self, name: str) -> Sequence[SSAValue]:
        """The operands for a formal input that stands for several values."""
        return self.op.input_list(name)

    def wants(self, index: int) -> bool:
        """True if result `index` of the node is used."""
        return index < len(self.op.outputs) and self.op.outputs[index].first_use is not None

    def result_element(self, index: int = 0) -> Attribute:
        """The element type that the node states for a result."""
        return element_type(self.op.outputs[index])
