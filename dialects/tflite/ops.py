"""
The ops of the `tflite` dialect: one class for each builtin operator of `schema.txt`.

Operands are the inputs that are there, results the outputs. The options that a file sets are
properties, an enumeration by the name of its member; what is not set has the schema's default.
A variable, an operand that the operator changes, has a result more: what it holds afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.dialects.builtin import i64 as builtin_i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.frameworks import FrameworkOp
from lowerdeck.dialects.plain import attribute_of, value_of
from lowerdeck.dialects.tflite.quantization import Quantization, QuantizationAttr
from lowerdeck.dialects.tflite.schema import builtins, schema

CUSTOM = "CUSTOM"

_SLOTS, _QUANTIZATION, _INTERMEDIATES = "slots", "quantization", "intermediates"
_CODE = "custom_code"
_STRUCTURE = frozenset({_SLOTS, _QUANTIZATION, _INTERMEDIATES})


class TfliteOp(Operation, FrameworkOp):
    """
    An operator; the classes below it are made from the schema.

    Properties besides the options: `slots` has for each input its operand, or -1 where it is left
    out (without it, no input is); `quantization` is that of the operands and then of the results,
    none where a tensor holds plain numbers; `intermediates` is that of tensors inside.

    Constraints:

    - (C1) `slots` names each operand once.
    - (C2) `quantization` has an entry for each operand and each result.

    Example:

    ```mlir
    %y = "tflite.SOFTMAX"(%x) <{beta = 1.0 : f64}> : (tensor<2x3xf32>) -> tensor<*xf32>
    ```
    """

    def __init__(
        self,
        inputs: Sequence[SSAValue | None],
        result_types: Sequence[Attribute],
        options: Mapping[str, Any],
        quantization: Sequence[Quantization | None] = (),
        intermediates: Sequence[Quantization | None] = (),
    ) -> None:
        """`quantization` is that of the inputs that are there, and of the results."""
        properties = {name: option_attribute(value) for name, value in options.items()}
        operands = [value for value in inputs if value is not None]
        if len(operands) < len(inputs):
            places = iter(range(len(operands)))
            slots = [-1 if value is None else next(places) for value in inputs]
            properties[_SLOTS] = DenseArrayBase.from_list(builtin_i64, slots)
        for name, values in ((_QUANTIZATION, quantization), (_INTERMEDIATES, intermediates)):
            if any(value is not None for value in values):
                properties[name] = ArrayAttr(map(_quantization_attribute, values))
        super().__init__(operands=operands, result_types=result_types, properties=properties)

    @property
    def builtin(self) -> str:
        """The name of the builtin operator."""
        return Dialect.split_name(self.name)[1]

    @property
    def op_type(self) -> str:
        """The builtin, or the code of a custom operator."""
        code = self.properties.get(_CODE)
        return code.data if isinstance(code, StringAttr) else self.builtin

    @property
    def inputs(self) -> list[SSAValue | None]:
        """All inputs; None for one that is left out."""
        return [None if place < 0 else self.operands[place] for place in self._slots]

    @property
    def _slots(self) -> Sequence[int]:
        slots = self.properties.get(_SLOTS)
        if slots is None:
            return range(len(self.operands))
        return cast(Any, slots).get_values()

    def input_quantization(self, index: int) -> Quantization | None:
        """How an input stands for real numbers, if it is there and does."""
        slots = self._slots
        place = slots[index] if index < len(slots) else -1
        return None if place < 0 else self._quantization(_QUANTIZATION, place)

    def result_quantization(self, index: int) -> Quantization | None:
        """How a result stands for real numbers, if it does."""
        return self._quantization(_QUANTIZATION, len(self.operands) + index)

    def intermediate(self, index: int) -> Quantization | None:
        """How a tensor inside stands for real numbers."""
        return self._quantization(_INTERMEDIATES, index)

    def _quantization(self, name: str, index: int) -> Quantization | None:
        entries = _entries(self.properties.get(name))
        if entries is None or index >= len(entries):
            return None
        entry = entries[index]
        return entry.data if isinstance(entry, QuantizationAttr) else None

    def option(self, name: str) -> Any:
        """An option that is set, in its plain form; None for one that is not."""
        found = self.properties.get(name)
        return None if found is None else _plain(found)

    def option_names(self) -> list[str]:
        """The options that are set."""
        return [name for name in self.properties if name not in _STRUCTURE]

    def verify_(self) -> None:
        places = [place for place in self._slots if place >= 0]
        if places != list(range(len(self.operands))):
            raise VerifyException(f"slots {places} for {len(self.operands)} operands (C1)")
        entries = _entries(self.properties.get(_QUANTIZATION))
        expected = len(self.operands) + len(self.results)
        if entries is not None and len(entries) != expected:
            raise VerifyException(f"{len(entries)} entries of quantization for {expected} (C2)")


def _entries(found: Attribute | None) -> Sequence[Attribute] | None:
    """The items of a list; None for anything else."""
    if not isinstance(found, ArrayAttr):
        return None
    return cast("ArrayAttr[Attribute]", found).data


def option_attribute(value: Any) -> Attribute:
    """The attribute of an option: a bool, a number, a text, or a list of numbers."""
    match value:
        case bool() | int() | float() | str():
            return attribute_of(value)
        case _:
            items = list(value)
            is_real = any(isinstance(item, float) for item in items)
            element = builtin_f64 if is_real else builtin_i64
            return cast(Attribute, DenseArrayBase.from_list(element, items))


def _plain(attribute: Attribute) -> Any:
    match attribute:
        case DenseArrayBase():
            return list(cast(Any, attribute).get_values())
        case _:
            return value_of(attribute)


def _quantization_attribute(value: Quantization | None) -> Attribute:
    return UnitAttr() if value is None else QuantizationAttr(value)


@cache
def op_class(builtin: str) -> type[TfliteOp] | None:
    """The class of a builtin operator, or None if it is not known."""
    if builtin not in schema().enums["BuiltinOperator"].values():
        return None
    members: dict[str, object] = {
        "name": f"tflite.{builtin}",
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"TensorFlow Lite's operator {builtin}.",
    }
    return type(f"{builtin}Op", (TfliteOp,), members)


def op_classes() -> Iterator[type[TfliteOp]]:
    """The classes of all builtin operators."""
    for builtin in builtins().values():
        cls = op_class(builtin)
        assert cls is not None
        yield cls


@cache
def option_defaults() -> Mapping[str, Any]:
    """Options whose default is neither 0, false nor empty, by name."""
    return {
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "dilation_d_factor": 1,
        "pot_scale_int16": True,
    }
