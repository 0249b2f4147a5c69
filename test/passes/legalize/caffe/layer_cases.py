"""One layer of Caffe legalized, and interpreted before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from google.protobuf import text_format
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter
from lowerdeck.dialects.caffe.ops import op_class
from lowerdeck.dialects.caffe.shapes import Shape, layer_shapes
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import f32, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.legalize.caffe import LegalizeCaffePass
from lowerdeck.passes.machinery.contracts import check_contract

Array = NDArray[Any]


def random(shape: Shape, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def parse(text: str) -> LayerParameter:
    layer = LayerParameter()
    text_format.Parse(text, layer)
    return layer


class Case:
    """One layer, its bottoms, its parameter blobs (random unless given) and its number of tops."""

    def __init__(
        self,
        text: str,
        *bottoms: Shape | Array,
        blobs: Sequence[Array] | None = None,
        tops: int = 1,
    ) -> None:
        self.layer = parse(text)
        self.bottoms = [
            bottom if isinstance(bottom, np.ndarray) else random(bottom, k)
            for k, bottom in enumerate(bottoms)
        ]
        shapes = layer_shapes(self.layer, [bottom.shape for bottom in self.bottoms], tops)
        self.blobs = (
            [random(shape, 10 + k) for k, shape in enumerate(shapes.blobs)]
            if blobs is None
            else list(blobs)
        )
        self.tops = tops

    def module(self, *, constant: bool, open_batch: bool = False) -> ModuleOp:
        """@main is the layer; its weights are constants or arguments."""
        arrays = self.bottoms if constant else [*self.bottoms, *self.blobs]
        shapes: list[list[Any]] = [list(array.shape) for array in arrays]
        if open_batch:
            for shape in shapes:
                shape[0] = Expr.symbol("n")
        block = Block(arg_types=[tensor(f32, shape) for shape in shapes])
        constants = [ConstantOp.of(blob) for blob in self.blobs] if constant else []
        values = [*block.args, *(op.result for op in constants)]
        cls = op_class(self.layer.type)
        assert cls is not None
        count = len(self.bottoms)
        op = cls(self.layer, values[:count], values[count:], self.tops)
        block.add_ops([*constants, op, last := func.ReturnOp(*op.results)])
        main = func.FuncOp("main", (block.arg_types, last.arguments.types), Region(block))
        return ModuleOp([main])

    def inputs(self, *, constant: bool) -> dict[str, Array]:
        arrays = self.bottoms if constant else [*self.bottoms, *self.blobs]
        return {str(k): array for k, array in enumerate(arrays)}

    def expected(self) -> list[Array]:
        """What the reference interpreter makes of the layer."""
        return results(self.module(constant=True), self.inputs(constant=True))

    def same_as(self, other: Case) -> bool:
        """True if another layer gives the same tops."""
        pairs = zip(self.expected(), other.expected(), strict=True)
        return all(np.array_equal(mine, its) for mine, its in pairs)

    def check(self, *, open_batch: bool = False) -> None:
        for constant in (True, False):
            module = self.module(constant=constant, open_batch=open_batch and constant)
            inputs = self.inputs(constant=constant)
            reference = self.module(constant=constant)
            expected = results(reference, inputs)
            found = results(legalized(module), inputs)
            assert [array.shape for array in found] == [array.shape for array in expected]
            for got, want in zip(found, expected, strict=True):
                assert got.dtype == np.float32
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def results(module: ModuleOp, inputs: dict[str, Array]) -> list[Array]:
    return [cast(Array, value) for value in run_module(module, inputs).values()]


def legalized(module: ModuleOp) -> ModuleOp:
    module.verify()
    LegalizeCaffePass().apply(Context(), module)
    module.verify()
    check_contract(module, "legal")
    return module
