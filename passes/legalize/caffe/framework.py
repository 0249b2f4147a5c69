"""
`legalize-caffe`: the walk over a function, and what a handler works with.

A handler sees one layer whose operands are `core` values with exact types already, builds `core`
ops before it, and returns a value for each of its tops:

    @legalizes("AbsVal")
    def legalize_abs_val(builder: CaffeLegalizer) -> Results:
        return [builder.bottom.abs().value]
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.caffe.ops import CaffeOp
from lowerdeck.dialects.caffe.shapes import ShapeError, layer_shapes
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.walk import FunctionWalk
from lowerdeck.passes.machinery.driver import is_trivially_dead


class _CaffeWalk(FunctionWalk):
    """The legalization of one function of caffe ops."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, CaffeOp)

    def convert(self, op: Operation) -> None:
        assert isinstance(op, CaffeOp)
        builder = CaffeLegalizer(op, self.symbols)
        handler = legalizes.get(builder.layer.type)
        if handler is None:
            raise RefusalError(f"no legalization for {builder.layer.type}")

        def results() -> Results:
            try:
                _check_shapes(builder)
                return handler(builder)
            except ShapeError as error:
                raise RefusalError(str(error)) from None

        self.handle(op, builder, results)
        for absorbed in builder.absorbed:
            _erase(absorbed)


def _erase(op: Operation) -> None:
    """Erase an unused op, and the producers of its operands if it was their only user."""
    producers = [value.owner for value in op.operands]
    op.detach()
    op.erase()
    for producer in dict.fromkeys(producers):
        if isinstance(producer, Operation) and is_trivially_dead(producer):
            _erase(producer)


def _check_shapes(builder: CaffeLegalizer) -> None:
    """Refuse what Caffe's layer refuses, if the shapes of the bottoms are numbers."""
    shapes = [static_shape(bottom) for bottom in builder.bottoms]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return
    expected = layer_shapes(builder.layer, known, len(builder.op.results)).blobs
    for number, (blob, shape) in enumerate(zip(builder.blobs, expected, strict=True)):
        if static_shape(blob) != shape:
            builder.refuse(f"blob {number} of type {blob.type}", f"the shape {list(shape)}")


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of caffe ops, as far as they can be found."""
    annotate(function, _CaffeWalk)


class LegalizeCaffePass(ModulePass):
    """
    Convert every caffe op to `core` ops with exact types.

    A BatchNorm layer and a Scale layer that is its only user become one `core.batch_norm`. All
    layers that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-caffe"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                _CaffeWalk(function).run()
