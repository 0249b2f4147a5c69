"""
The keras dialect: one op for each class of layer or of `keras.ops`.

Importing this package loads nothing; `keras_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def keras_dialect() -> Dialect:
    """The dialect with an op for every class that is known."""
    from lowerdeck.dialects.keras.ops import op_classes

    return Dialect("keras", list(op_classes()), [])
