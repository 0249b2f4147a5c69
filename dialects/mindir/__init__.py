"""
The mindir dialect: one op for each primitive of MindSpore.

Importing this package loads nothing; `mindir_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def mindir_dialect() -> Dialect:
    """The dialect with an op for every primitive that the table has."""
    from lowerdeck.dialects.mindir.ops import op_classes

    return Dialect("mindir", list(op_classes()), [])
