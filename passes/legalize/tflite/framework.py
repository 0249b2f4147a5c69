"""
`legalize-tflite`: the walk over a function.

A handler sees one op whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("ABS")
    def legalize_abs(builder: TfliteLegalizer) -> Results:
        return [builder.value(0).abs().value]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ComplexType, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.elementwise import BitcastOp
from lowerdeck.dialects.core.types import element_type, i8, is_float, ui8
from lowerdeck.dialects.tflite.ops import TfliteOp
from lowerdeck.passes.legalize.common.walk import HandlerWalk, Results
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import legalizes
from lowerdeck.passes.legalize.tflite.support import next_step

_SIGNED = ("CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED", "LSTM", "RNN", "SVDF")
"""How those end whose integer weights for floats are signed, also where old files say UINT8."""


class TfliteWalk(HandlerWalk):
    """The legalization of one function of tflite ops."""

    kind = TfliteOp
    table = legalizes
    next_step = next_step

    def __init__(self, function: func.FuncOp) -> None:
        super().__init__(function)
        self._pairs: set[SSAValue] = set()
        """Complex numbers: the real and the imaginary part are the last dimension."""

    def adopt(self, value: SSAValue, type_: Attribute) -> None:
        if isinstance(element_type(type_), ComplexType):
            self._pairs.add(value)

    def builder(self, op: TfliteOp) -> TfliteLegalizer:
        return TfliteLegalizer(op, self.symbols, self._pairs)

    def before(self, op: TfliteOp, builder: TfliteLegalizer) -> None:
        builder.require_real(op.op_type)
        if op.op_type.endswith(_SIGNED) and is_float(element_type(op.results[0])):
            for k, value in enumerate(builder.inputs):
                if value is not None and element_type(value) == ui8:
                    builder.inputs[k] = builder.add(BitcastOp(value, i8))

    def call(self, handler: Callable[[Any], Results], builder: TfliteLegalizer) -> Results:
        is_complex = builder.moves_complex_numbers()
        return builder.by_parts(handler) if is_complex else handler(builder)

    def after(
        self, op: TfliteOp, builder: TfliteLegalizer, values: Sequence[SSAValue | None]
    ) -> None:
        builder.require_read()
        for value, stated in zip(values, map(element_type, op.results), strict=False):
            if value is not None and isinstance(stated, ComplexType):
                self._pairs.add(value)
            elif value is not None and element_type(value) != stated:
                builder.refuse(f"a result of {stated}", str(element_type(value)))


infer_types = TfliteWalk.infer


class LegalizeTflitePass(ModulePass):
    """
    Convert every tflite op to `core` ops with exact types.

    Quantized operators become the integer arithmetic of TensorFlow Lite's reference kernels, with
    `core.requantize` where a sum gets the scale of the result. What is carried by loops and yielded
    by branches gets the types that the bodies give. All ops that cannot be converted are listed in
    one LegalizationError.
    """

    name = "legalize-tflite"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        TfliteWalk.run_on(op)
