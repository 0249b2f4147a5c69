"""
The tf1 dialect: TensorFlow's operators as a GraphDef holds them, one op a node.

Importing this package loads nothing; `tf1_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def tf1_dialect() -> Dialect:
    """The dialect with an op for every operator in `ops.txt`."""
    from lowerdeck.dialects.tf1.attributes import (
        ControlType,
        DTypeAttr,
        ResourceType,
        ShapeAttr,
        VariantType,
    )
    from lowerdeck.dialects.tf1.functions import FunctionOp, ReturnOp
    from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, op_classes

    return Dialect(
        "tf1",
        [GraphOp, FetchOp, FunctionOp, ReturnOp, *op_classes()],
        [ControlType, ResourceType, VariantType, DTypeAttr, ShapeAttr],
    )
