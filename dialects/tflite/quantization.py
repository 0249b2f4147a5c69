"""How the integers of a tensor stand for real numbers: scale * (integer - zero)."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from lowerdeck.dialects.records import record


@record
class Quantization:
    """Scales and zero points: one for the tensor, or one for each part along `axis`."""

    scales: tuple[float, ...]
    """Numbers that f32 holds."""
    zeros: tuple[int, ...]
    axis: int = 0

    @property
    def is_per_channel(self) -> bool:
        """True if parts of the tensor have scales of their own."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float:
        """The first scale, which is the tensor's if it has only one."""
        return self.scales[0]

    @property
    def zero(self) -> int:
        """The first zero point."""
        return self.zeros[0]


@irdl_attr_definition
class QuantizationAttr(Data[Quantization]):
    """`#tflite.q<0.5 : -3>`, or `#tflite.q<[0.5 : 0, 0.25 : 0] along 3>`."""

    name = "tflite.q"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Quantization:
        def pair() -> tuple[float, int]:
            scale = float(parser.parse_number())
            parser.parse_punctuation(":")
            return scale, parser.parse_integer(allow_boolean=False)

        with parser.in_angle_brackets():
            pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, pair)
            if pairs is None:
                scale, zero = pair()
                return Quantization((scale,), (zero,))
            parser.parse_keyword("along")
            axis = parser.parse_integer(allow_boolean=False)
            return Quantization(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), axis)

    def print_parameter(self, printer: Printer) -> None:
        q = self.data
        pairs = ", ".join(
            f"{_text(scale)} : {zero}" for scale, zero in zip(q.scales, q.zeros, strict=True)
        )
        text = f"[{pairs}] along {q.axis}" if q.is_per_channel else pairs
        printer.print_string(f"<{text}>")


def _text(scale: float) -> str:
    """The shortest number that f32 rounds to the scale, with a point."""
    text = str(np.float32(scale))
    mantissa, mark, exponent = text.partition("e")
    mantissa = mantissa if "." in mantissa else f"{mantissa}.0"
    return f"{mantissa}{mark}{exponent}"
