"""The layers that come nearest to ops without a form in Caffe."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from lowerdeck.dialects.core import control_flow, custom, reduce, tensor
from lowerdeck.dialects.core import elementwise as e

_STEP = "Threshold, which is 1 above a number, else 0"
_CHOICE = "Eltwise, whose MAX and PROD choose among elements"
_ROWS = "BatchReindex, which takes rows"

_NEAREST: Mapping[type[Operation], str] = {
    **dict.fromkeys((e.FloorOp, e.CeilOp, e.RoundOp, e.SignOp, e.CompareOp), _STEP),
    **dict.fromkeys((e.NotOp, e.AndOp, e.OrOp, e.XorOp), _STEP),
    **dict.fromkeys((e.ErfOp, e.AtanOp), "TanH, which has the same bounds or shape"),
    **dict.fromkeys((e.SinhOp, e.CoshOp), "Exp, of which it is a sum"),
    **dict.fromkeys((e.AsinhOp, e.AcoshOp, e.AtanhOp), "Log, of which it is a form"),
    **dict.fromkeys((e.SinOp, e.CosOp, e.TanOp), "Power, whose sums are polynomials"),
    **dict.fromkeys((e.AsinOp, e.AcosOp), "Power, whose sums are polynomials"),
    **dict.fromkeys((e.RemOp, e.ModOp), "Power, which scales"),
    e.SelectOp: _CHOICE,
    reduce.CumulativeOp: "Reduction, which gives the last of these results",
    **dict.fromkeys((tensor.GatherNdOp, tensor.GatherElementsOp), _ROWS),
    **dict.fromkeys((tensor.ScatterNdOp, tensor.ScatterElementsOp), "Concat, which joins parts"),
    tensor.NonzeroOp: "Filter, which keeps the items that a blob of 0 and 1 chooses",
    control_flow.IfOp: _CHOICE,
    control_flow.LoopOp: "LSTM and RNN, whose steps are those of their own cells",
    custom.CustomOp: "Python, which calls code that stands beside the net",
}


def nearest_layer(op: Operation) -> str | None:
    """The layer that does most of what an op does, and what that is; None if none is near."""
    return _NEAREST.get(type(op))
