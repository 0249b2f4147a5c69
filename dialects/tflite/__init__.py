"""
The tflite dialect: one op for each builtin operator.

Importing this package loads nothing; `tflite_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def tflite_dialect() -> Dialect:
    """The dialect with an op for every builtin that the schema knows."""
    from lowerdeck.dialects.tflite.ops import op_classes
    from lowerdeck.dialects.tflite.quantization import QuantizationAttr

    return Dialect("tflite", list(op_classes()), [QuantizationAttr])
