"""
The mxnet dialect: one op for each operator of MXNet.

Importing this package loads nothing; `mxnet_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def mxnet_dialect() -> Dialect:
    """The dialect with an op for every operator that the table has."""
    from lowerdeck.dialects.mxnet.ops import op_classes

    return Dialect("mxnet", list(op_classes()), [])
