"""`infer-shapes`: the types of all values, from those of the arguments."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.driver import is_enabled
from lowerdeck.passes.machinery.type_inference import infer_types


class InferShapesPass(ModulePass):
    """
    Infer the result types of all core ops in program order, through branches and loops.

    - A result gets the type that its op infers; an op with an operand of unknown rank waits.
    - core.if: the type that both branches yield. Where they name one shape differently, the
      result's own type stays and a reshape brings each branch to it. A dimension that is a symbol
      of the op may be any in the branches.
    - core.loop: a carried value of unknown rank has the type of its initial value; what the body
      yields has to agree, but for dimensions that are symbols of the loop.
    - A function returns the types of the values that it returns.
    - An op of a framework has the types of what it is legalized to, if the symbols of the
      function's arguments can express them.
    """

    name = "infer-shapes"
    optional = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if is_enabled(self, options_of(ctx)):
            infer_types(op)
