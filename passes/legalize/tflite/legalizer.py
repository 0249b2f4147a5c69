"""What a handler works with: the inputs and options of one op, and a builder before it."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import SigmoidOp, TanhOp
from lowerdeck.dialects.core.types import element_type, i1, i8, i16, is_float, is_integer, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.tflite.ops import TfliteOp, option_defaults
from lowerdeck.dialects.tflite.quantization import Quantization
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.walk import Results, listed
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

_COMPLEX = frozenset({"RFFT2D", "REAL", "IMAG", "COMPLEX_ABS", "CAST"})
"""The operators that know complex numbers, which are a last dimension of two."""

_MOVES_PARTS = frozenset(
    """
    RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE SLICE STRIDED_SLICE GATHER GATHER_ND TILE REVERSE_V2
    BROADCAST_TO
    """.split()
)
"""Those that move numbers of any kind: of complex ones the real and imaginary parts alike."""

_WITHOUT_EFFECT = frozenset(
    {
        "quantized_bias_type",
        "validate_indices",
        "custom_code",
        "values_count",
        "num_splits",
        "in_data_type",
        "out_data_type",
        "depth_multiplier",
        "weights_format",
        "num",
        "num_columns_per_channel",
    }
)
"""Options that types and shapes repeat."""


class TfliteLegalizer(Legalizer):
    """
    What a handler works with.

    Reading options is recorded: one that is set and never read is refused.
    """

    def __init__(
        self, op: TfliteOp, symbols: SymbolicValues, pairs: Container[SSAValue] = ()
    ) -> None:
        super().__init__(op, symbols)
        self.op = op
        self.inputs = list(op.inputs)
        self.pairs = pairs
        """Values that are complex numbers, as a last dimension of two."""
        self._read: set[str] = set()

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.op.op_type

    # Inputs and results

    def input(self, index: int) -> SSAValue:
        """An input that has to be there."""
        value = self.optional(index)
        if value is None:
            self.refuse(f"no input {index}", "it to be given")
        return value

    def optional(self, index: int) -> SSAValue | None:
        """An input, or None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int) -> TensorValue:
        """An input for arithmetic, known if it is a constant."""
        return TensorValue.of(self, self.input(index))

    def sizes(self, index: int, count: int, name: str) -> list[Expr]:
        """An input that is `count` numbers."""
        found = self.require_exprs(self.input(index), name)
        if len(found) != count:
            self.refuse(f"{len(found)} numbers as {name}", str(count))
        return found

    def element(self, index: int = 0) -> Attribute:
        """The element type that the file states for a result."""
        if index >= len(self.op.results):
            self.refuse(f"{len(self.op.results)} results", f"{index + 1} or more")
        return element_type(self.op.results[index])

    # Quantization

    def quantization(self, index: int) -> Quantization:
        """How an input stands for real numbers."""
        found = self.op.input_quantization(index)
        if found is None or not is_integer(element_type(self.input(index))):
            self.refuse(f"input {index} that is not quantized", "integers with a scale")
        if min(found.scales) < 0:
            self.refuse(f"input {index} with scale {min(found.scales)}", "a positive one")
        return found

    def result_quantization(self, index: int = 0) -> Quantization:
        """How a result stands for real numbers."""
        found = self.op.result_quantization(index)
        if found is None or not is_integer(self.element(index)):
            self.refuse(f"result {index} that is not quantized", "integers with a scale")
        if found.scale <= 0:
            self.refuse(f"result {index} with scale {found.scale}", "a positive one")
        return found

    def is_quantized(self, index: int = 0) -> bool:
        """True if an input is of integers for real numbers; then all such are of one type."""
        given = [k for k in range(len(self.inputs)) if self.op.input_quantization(k)]
        if index not in given or not is_integer(own := element_type(self.input(index))):
            return False
        for k in given:
            if (other := element_type(self.input(k))) != own and other in (i8, ui8, i16):
                self.refuse(f"input {k} of {other}", str(own))
        if self.element() not in (i8, ui8, i16, i1):
            self.refuse(f"a result of {self.element()}", str(own))
        return True

    def require_equal_scales(self, *indices: int) -> None:
        """Refuse inputs that have another scale than the first result."""
        own = self.op.result_quantization(0)
        for index in indices:
            other = self.op.input_quantization(index)
            if own and other and (own.scales, own.zeros) != (other.scales, other.zeros):
                self.refuse(
                    f"input {index} with scale {other.scale} and zero point {other.zero}, a result "
                    f"with {own.scale} and {own.zero}",
                    "one of each",
                )

    def require_float(self, index: int = 0) -> None:
        """Refuse an input that is not of floats."""
        element = element_type(self.input(index))
        if not is_float(element):
            self.refuse(f"input {index} of {element}", "floats")

    # Options

    def option(self, name: str) -> Any:
        """An option: its value, or the default of the schema, 0 or empty where that has none."""
        self._read.add(name)
        found = self.op.option(name)
        return option_defaults().get(name, 0) if found is None else found

    def numbers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An option that is a list of integers; `default` if it is empty or not set."""
        found: list[int] = self.option(name) or []
        return list(found or default)

    def axes_option(self, name: str, rank: int) -> list[int]:
        """An option that is a list of dimensions, each at most once."""
        found = self.numbers(name)
        if len(set(found)) != len(found) or not all(0 <= k < rank for k in found):
            self.refuse(f"'{name}' is {found}", f"dimensions below {rank}, each once")
        return found

    def counted(
        self, name: str, count: int, default: int = 0, least: int | None = None
    ) -> list[int]:
        """An option that is a list of so many integers, all `default` if it is not set."""
        found = self.numbers(name, [default] * count)
        if len(found) != count or (least is not None and min(found, default=least) < least):
            wanted = "" if least is None else f" from {least} on"
            self.refuse(f"'{name}' is {found}", f"{count} numbers{wanted}")
        return found

    def flag(self, name: str) -> bool:
        """An option that is a truth value."""
        return bool(self.option(name))

    def ignore(self, *names: str) -> None:
        """State that options have no influence on the results."""
        self._read.update(names)

    def activation(self) -> str:
        """The fused activation."""
        found = self.option("fused_activation_function")
        return str(found) if found else "NONE"

    def require_read(self) -> None:
        """Refuse options that are set and have not been read, unless they are at their defaults."""
        for name in self.op.option_names():
            if name in self._read or name in _WITHOUT_EFFECT:
                continue
            found = self.op.option(name)
            if found not in (option_defaults().get(name, 0), "NONE", [], 0, False, ""):
                self.refuse(f"the option '{name}' is {found}", "it not to be set")

    def moves_complex_numbers(self) -> bool:
        """True for movement of complex numbers that operators here have made."""
        return self.op_type in _MOVES_PARTS and self.input(0) in self.pairs

    def by_parts(self, handler: Callable[[TfliteLegalizer], Results]) -> list[SSAValue]:
        """The result of a movement of the real parts and of the imaginary ones."""
        whole = self.value(0)
        found: list[TensorValue] = []
        for part in (0, 1):
            self.inputs[0] = whole.pick(len(whole.dims) - 1, part).value
            (result,) = listed(handler(self))
            assert result is not None
            found.append(TensorValue(self, result))
        return [stack(found, len(found[0].dims)).value]

    def require_real(self, op_type: str) -> None:
        """Refuse complex numbers but for the few operators that know them."""
        if op_type in _COMPLEX or self.moves_complex_numbers():
            return
        for value in (*self.op.operands, *self.op.results):
            if value in self.pairs or isinstance(element_type(value), ComplexType):
                self.refuse("complex numbers", "real ones")

    # Arithmetic

    def activated(self, x: SSAValue) -> SSAValue:
        """The fused activation of floats, or of plain integers that have none."""
        return self.by_name(TensorValue(self, x), self.activation()).value

    def by_name(self, x: TensorValue, kind: str) -> TensorValue:
        """An activation by its name in the schema; of plain integers the limits."""
        match kind:
            case "NONE":
                return x
            case "RELU":
                return x.maximum(0)
            case "RELU6":
                return x.clip(0, 6)
            case "RELU_N1_TO_1":
                return x.clip(-1, 1)
            case "TANH" if is_float(x.element):
                return apply(TanhOp, x)
            case "SIGMOID" if is_float(x.element):
                return apply(SigmoidOp, x)
            case _:
                self.refuse(f"the activation {kind} of {x.element}", "RELU, RELU6, RELU_N1_TO_1")
