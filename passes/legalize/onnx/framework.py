"""
The frame of `legalize-onnx`: the walk over a function, and what a handler works with.

A handler sees one node whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("Gelu", since=20)
    def legalize_gelu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
        x = builder.operand("X")
        approximate = builder.attrs.string("approximate")
        ...
        return [builder.add(MulOp(x, cdf))]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.onnx.types import is_tensor_of_unknown
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import RefusalError, refuse
from lowerdeck.passes.legalize.onnx.class_names import note_class_names
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.walk import FunctionWalk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lowerdeck.dialects.onnx.ops import OnnxOp


class OnnxWalk(FunctionWalk):
    """The legalization of one function of onnx ops."""

    def converts(self, op: Operation) -> bool:
        from lowerdeck.dialects.onnx.ops import InitializerOp, OnnxOp

        return isinstance(op, InitializerOp | OnnxOp)

    def is_transient(self, op: Operation) -> bool:
        from lowerdeck.dialects.onnx.ops import NoneOp
        from lowerdeck.passes.legalize.onnx.sequences import ListOp

        return isinstance(op, NoneOp | ListOp)

    def convert(self, op: Any) -> None:
        from lowerdeck.dialects.onnx.ops import InitializerOp

        self._initializer(op) if isinstance(op, InitializerOp) else self._node(op)

    def _initializer(self, op: Any) -> None:
        if not isinstance(op.value, BlobAttr):
            refuse("a constant of strings", "numbers", "remove text processing from the model")
        constant = ConstantOp(op.value, op.output.type)
        constant.location = op.location
        Rewriter.replace_op(op, constant)

    def _node(self, op: OnnxOp) -> None:
        from lowerdeck.passes.legalize.onnx.handlers import handler_of
        from lowerdeck.passes.legalize.onnx.ranks import require_ranks

        handler = handler_of(op)
        if handler is None:
            return self._expand(op)
        builder = OnnxLegalizer(op, self)
        for position, value in enumerate(op.operands):
            if is_tensor_of_unknown(value):
                refuse(f"input {position} of unknown element type", "a type that the file states")

        def results() -> Sequence[SSAValue | None]:
            require_ranks(builder)
            values = handler(op, builder)
            builder.attrs.require_read()
            return values

        return self.handle(op, builder, results)

    def _expand(self, op: OnnxOp) -> None:
        """Legalize the function that the schema gives for an operator without a handler."""
        from lowerdeck.dialects.onnx.convert import ConversionError
        from lowerdeck.dialects.onnx.functions import expand_function, function_body
        from lowerdeck.passes.legalize.onnx.widening import is_widened, widen

        if is_widened(op):
            return self.substitute(op, *widen(op))
        body = function_body(op)
        if body is None:
            domain = f" of domain {op.domain}" if op.domain else ""
            raise RefusalError(
                f"no legalization for {op.op_type} (opset {op.since_version}){domain}"
            )
        try:
            expansion = expand_function(op, body)
        except ConversionError as error:
            raise RefusalError(f"the function that defines {op.op_type} has {error}") from None
        self.substitute(op, *expansion)


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of onnx ops, as far as they can be found."""
    annotate(function, OnnxWalk)


class LegalizeOnnxPass(ModulePass):
    """
    Convert every onnx op to `core` ops with exact types.

    Operators without a legalization of their own are replaced by the function that their schema
    defines. All nodes that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-onnx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        from lowerdeck.dialects.onnx.ops import OPSET

        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                note_class_names(function)
                OnnxWalk(function).run()
                function.attributes.pop(OPSET, None)
