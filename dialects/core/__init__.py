"""
The `core` dialect: one op for what several frameworks spell differently.

Value semantics, numpy broadcasting, explicit windows, structured control flow. The docstring of an
op is its specification; `lowerdeck.dialects.interpret.core` executes it.
"""

from xdsl.ir import Dialect

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.constant import BindSymbolsOp, ConstantOp, FromDimsOp, IotaOp
from lowerdeck.dialects.core.control_flow import IfOp, KernelOp, LoopOp, YieldOp
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.dialects.core.defaults import DefaultAttr
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.enums import ENUMERATIONS
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.dialects.core.linear import LINEAR
from lowerdeck.dialects.core.quantize import DequantizeOp
from lowerdeck.dialects.core.reduce import REDUCE
from lowerdeck.dialects.core.schedule import ScheduleAttr
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.tensor import TENSOR
from lowerdeck.dialects.core.types import (
    DimsAttr,
    OptionalType,
    SequenceType,
    StringType,
    TensorEncoding,
)

Core = Dialect(
    "core",
    [
        ConstantOp,
        FromDimsOp,
        BindSymbolsOp,
        IotaOp,
        *ELEMENTWISE,
        DequantizeOp,
        *TENSOR,
        *LINEAR,
        AttentionOp,
        *REDUCE,
        SuppressOp,
        CustomOp,
        IfOp,
        LoopOp,
        KernelOp,
        YieldOp,
    ],
    [
        BlobAttr,
        DefaultAttr,
        DimsAttr,
        *ENUMERATIONS,
        LayoutAttr,
        ScheduleAttr,
        TensorEncoding,
        StringType,
        SequenceType,
        OptionalType,
    ],
)
