"""
The `buffer` dialect: memory is explicit. Kernels are loop nests over buffers, and the entry
function calls them in order. This level decides everything that is printed as C.
"""

from xdsl.ir import Dialect

from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp
from lowerdeck.dialects.buffer.entry_ops import (
    AllocOp,
    BarrierOp,
    BindOp,
    CallOp,
    CheckStatusOp,
    CopyOp,
    IfOp,
    LoopOp,
    MarkOp,
    OnceOp,
    RequireOp,
    SectionOp,
    ShareOp,
    ViewOp,
    WeightOp,
)
from lowerdeck.dialects.buffer.enums import ENUMERATIONS
from lowerdeck.dialects.buffer.kernel import (
    ApplyOp,
    BufferKernelOp,
    CheckIndexOp,
    ForOp,
    FuncOp,
    LoadOp,
    RemfOp,
    ReturnOp,
    ScratchOp,
    SigmoidOp,
    StoreOp,
    YieldOp,
)
from lowerdeck.dialects.buffer.tiles import DotTilesOp, ReleaseTilesOp
from lowerdeck.dialects.buffer.types import RefType
from lowerdeck.dialects.buffer.vector import (
    AnyOp,
    CompareOp,
    ConvertOp,
    DivideByPowerOp,
    DotPairsOp,
    DotQuadsOp,
    FromLanesOp,
    LaneNumbersOp,
    MaxfOp,
    MinfOp,
    MultiplyHighOp,
    PrefetchOp,
    ReduceOp,
    SelectOp,
    TransposeOp,
)

Buffer = Dialect(
    "buffer",
    [
        BufferKernelOp,
        FuncOp,
        ReturnOp,
        ForOp,
        YieldOp,
        LoadOp,
        StoreOp,
        ApplyOp,
        CheckIndexOp,
        ScratchOp,
        RemfOp,
        SigmoidOp,
        InvokeOp,
        CompareOp,
        AnyOp,
        SelectOp,
        MaxfOp,
        MinfOp,
        ConvertOp,
        DotPairsOp,
        DotQuadsOp,
        MultiplyHighOp,
        DivideByPowerOp,
        DotTilesOp,
        ReleaseTilesOp,
        ReduceOp,
        FromLanesOp,
        LaneNumbersOp,
        TransposeOp,
        PrefetchOp,
        EntryOp,
        OpenOutputOp,
        WeightOp,
        AllocOp,
        ViewOp,
        CopyOp,
        CallOp,
        BindOp,
        RequireOp,
        BarrierOp,
        CheckStatusOp,
        MarkOp,
        OnceOp,
        ShareOp,
        SectionOp,
        IfOp,
        LoopOp,
    ],
    [RefType, *ENUMERATIONS],
)
