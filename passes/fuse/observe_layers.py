"""`observe-layers`: what layers read is returned, too, for calibration."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.names import named, value_names
from lowerdeck.passes.fuse.layers import inputs, layers_of, matrices, observed
from lowerdeck.passes.machinery.context import options_of

OBSERVED = "lowerdeck.layer."
"""What names of such outputs begin with; the number of the layer follows."""


class ObserveLayersPass(ModulePass):
    """
    Return the input of each layer, which `lowerdeck quantize` asks for: the values that one range
    stands for. Layers whose rows have their own ranges are not observed, but where weights are
    rounded for samples, for which those of all matrices are, or where channels get factors. An
    input that several layers read is returned once, for the first of them.
    """

    name = "observe-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (probe := options_of(ctx).probe) is None:
            return
        layers = layers_of(op)
        functions: dict[FuncOp, dict[SSAValue, int]] = {}
        found = {"matrices": matrices, "inputs": inputs}.get(probe, observed)(layers)
        for number in dict.fromkeys(found.values()):
            function = layers[number].op.parent_op()
            assert isinstance(function, FuncOp)
            functions.setdefault(function, {})[layers[number].input] = number
        for function, values in functions.items():
            last = function.body.block.last_op
            assert isinstance(last, ReturnOp)
            names = value_names(function.res_attrs, len(last.operands))
            last.operands = [*last.operands, *values]
            names += [f"{OBSERVED}{number}" for number in values.values()]
            function.properties["res_attrs"] = named(names)
            function.update_function_type()
