"""
The caffe dialect: one op for each layer type.

Importing this package loads nothing; `caffe_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def caffe_dialect() -> Dialect:
    """The dialect with an op for every layer type that is known."""
    from lowerdeck.dialects.caffe.ops import op_classes

    return Dialect("caffe", list(op_classes()), [])
