"""Matrix products: transposed operands, batches that broadcast, integers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

EQUATIONS = {
    "ij,jk->ki": ((2, 3), (3, 4)),
    "bhid,bhjd->bhij": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "...ij,jk->...ik": ((2, 2, 3), (3, 4)),
    "ii->i": ((3, 3),),
    "abc->ca": ((2, 3, 4),),
    "i,j->ij": ((2,), (3,)),
}


def build(record: Recorder) -> None:
    random = np.random.default_rng(2)

    def reals(*shape: int) -> Any:
        # Quarters: their sums of products are exact, in any order.
        return record.input((random.integers(-8, 9, shape) / 4).astype(np.float32))

    tall, wide = random.standard_normal((3, 5)), random.standard_normal((5, 4))
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        name = np.dtype(dtype).name
        a = record.input((tall * 10).astype(dtype))
        b = record.input((wide * 10).astype(dtype))
        record.case(f"MatMul_{name}", raw.MatMul(a=a, b=b))
        record.case(f"MatMul_ta_{name}", raw.MatMul(a=tf.transpose(a), b=b, transpose_a=True))
        record.case(f"MatMul_tb_{name}", raw.MatMul(a=a, b=tf.transpose(b), transpose_b=True))
        value = raw.MatMul(a=tf.transpose(a), b=tf.transpose(b), transpose_a=True, transpose_b=True)
        record.case(f"MatMul_tab_{name}", value)
    x, y = reals(2, 1, 3, 4), reals(5, 4, 2)
    record.case("BatchMatMulV2", raw.BatchMatMulV2(x=x, y=y))
    value = raw.BatchMatMulV2(x=tf.transpose(x, [0, 1, 3, 2]), y=y, adj_x=True)
    record.case("BatchMatMulV2_adj_x", value)
    turned = tf.transpose(y, [0, 2, 1])
    record.case("BatchMatMulV2_adj_y", raw.BatchMatMulV2(x=x, y=turned, adj_y=True))
    record.case("BatchMatMul", raw.BatchMatMul(x=reals(2, 3, 4), y=reals(2, 4, 5)))
    bytes_ = record.input(random.integers(-128, 128, (2, 3, 4)).astype(np.int8))
    value = raw.BatchMatMulV3(x=bytes_, y=bytes_, Tout="int32", adj_y=True)
    record.case("BatchMatMulV3_int8", value)
    for number, (equation, shapes) in enumerate(EQUATIONS.items()):
        operands = [reals(*shape) for shape in shapes]
        record.case(f"Einsum_{number}", raw.Einsum(inputs=operands, equation=equation))
    image, bias = reals(2, 3, 4, 5), reals(5)
    record.case("BiasAdd", raw.BiasAdd(value=image, bias=bias))
    record.case("BiasAdd_matrix", raw.BiasAdd(value=image[0, 0], bias=bias))
    record.case("BiasAddV1", raw.BiasAddV1(value=image, bias=bias))
    value = raw.BiasAdd(value=image, bias=reals(3), data_format="NCHW")
    record.case("BiasAdd_first", value)
    _softmax(record, reals(3, 4))


def _softmax(record: Recorder, x: Any) -> None:
    for scale in (1.0, 300.0):
        record.case(f"Softmax_{scale:.0f}", raw.Softmax(logits=x * scale))
        record.case(f"LogSoftmax_{scale:.0f}", raw.LogSoftmax(logits=x * scale))
    record.case("Softmax_vector", raw.Softmax(logits=x[0]))
