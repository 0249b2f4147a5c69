"""
The paddle dialect: one op for each operator of PaddlePaddle.

Importing this package loads nothing; `paddle_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def paddle_dialect() -> Dialect:
    """The dialect with an op for every operator that the table has."""
    from lowerdeck.dialects.paddle.ops import op_classes

    return Dialect("paddle", list(op_classes()), [])
