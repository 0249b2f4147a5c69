"""
The darknet dialect: one op for each section of a cfg that is a layer.

Importing this package loads nothing; `darknet_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def darknet_dialect() -> Dialect:
    """The dialect with an op for every section that is known."""
    from lowerdeck.dialects.darknet.ops import op_classes

    return Dialect("darknet", list(op_classes()), [])
