"""
The pt2 dialect: one op for each overload of an operator of PyTorch.

Importing this package loads nothing; `pt2_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def pt2_dialect() -> Dialect:
    """The dialect with an op for every overload that the table has."""
    from lowerdeck.dialects.pt2.ops import op_classes

    return Dialect("pt2", list(op_classes()), [])
