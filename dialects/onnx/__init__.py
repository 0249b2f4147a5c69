"""
The onnx dialect, generated from the operator schemas of onnx.defs.

Importing this package loads nothing; `onnx_dialect` builds the dialect.
"""

from xdsl.ir import Dialect


def onnx_dialect() -> Dialect:
    """The dialect with an op for every operator version that the installed onnx knows."""
    from lowerdeck.dialects.onnx.ops import InitializerOp, NoneOp, YieldOp, op_classes
    from lowerdeck.dialects.onnx.tensors import SparseTensorAttr, TensorAttr

    return Dialect(
        "onnx",
        [NoneOp, InitializerOp, YieldOp, *op_classes()],
        [TensorAttr, SparseTensorAttr],
    )
