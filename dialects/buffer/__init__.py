"""
The `buffer` dialect: memory is explicit. Kernels are loop nests over buffers, and the driver calls
them in order. What is printed as C is decided here.
"""

from xdsl.ir import Dialect

from lowerdeck.dialects.buffer.driver import (
    AllocOp,
    BarrierOp,
    BindOp,
    CallOp,
    CheckStatusOp,
    CopyOp,
    IfOp,
    LoopOp,
    OnceOp,
    RequireOp,
    ViewOp,
    WeightOp,
)
from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    CheckIndexOp,
    ForOp,
    FuncOp,
    LoadOp,
    RemfOp,
    ReturnOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.types import RefType

Buffer = Dialect(
    "buffer",
    [
        FuncOp,
        ReturnOp,
        ForOp,
        YieldOp,
        LoadOp,
        StoreOp,
        ApplyOp,
        CheckIndexOp,
        RemfOp,
        WeightOp,
        AllocOp,
        ViewOp,
        CopyOp,
        CallOp,
        BindOp,
        RequireOp,
        BarrierOp,
        CheckStatusOp,
        OnceOp,
        IfOp,
        LoopOp,
    ],
    [RefType],
)
