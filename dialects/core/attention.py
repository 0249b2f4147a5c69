"""Attention: two matrix products and the softmax between them, as one op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    FORMAT,
    CoreOp,
    require,
    require_broadcast,
    require_same_element,
)
from lowerdeck.dialects.core.types import dims_of, f32, f64, tensor
from lowerdeck.dialects.dims import Expr


@irdl_op_definition
class AttentionOp(CoreOp):
    """
    Softmax-weighted means of values: with query [B..., T, H, D], key [B..., S, H, D], value
    [B..., S, H, E] and mask, which broadcasts to [B..., H, T, S],

        score[b, h, t, s] = sum_d(query[b, t, h, d] * key[b, s, h, d]) * scale + mask[b, h, t, s]
        weight[b, h, t, :] = exp(score - m) / sum_s(exp(score - m)), m the maximum along s
        result[b, t, h, e] = sum_s(weight[b, h, t, s] * value[b, s, h, e])

    Heads are the dimension before the last, as in the columns of a matrix product: splitting the
    heads and joining the results again are reshapes.

    Constraints:

    - (C1) all operands are f32, or all are f64: half precision would round between the steps.
    - (C2) query, key and value have the same rank, at least 3, and agree in B..., H, and D or S;
      none of them broadcasts.
    - (C3) the mask broadcasts to [B..., H, T, S] and does not exceed it.

    Example:

    ```mlir
    %y = core.attention %q, %k, %v {scale = 0.125 : f64}
        : (tensor<1x8x2x64xf32>, tensor<1x9x2x64xf32>, tensor<1x9x2x32xf32>) -> tensor<1x8x2x32xf32>
    ```
    """

    name = "core.attention"
    query = operand_def()
    key = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    scale = prop_def(FloatAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = FORMAT

    def __init__(
        self,
        query: SSAValue,
        key: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        *,
        scale: float = 1.0,
    ):
        super().__init__(
            [query, key, value, mask],
            {"scale": FloatAttr(scale, builtin_f64)},
        )

    @property
    def score_dims(self) -> tuple[Expr, ...]:
        """[B..., H, T, S]: the shape that the mask broadcasts to."""
        *batch, queries, heads, _ = dims_of(self.query)
        return (*batch, heads, queries, dims_of(self.key)[-3])

    def infer(self) -> Sequence[Attribute]:
        element = require_same_element(self.operands, "C1")
        require(element in (f32, f64), lambda: f"expected f32 or f64, got {element}", "C1")
        query, key, value = (dims_of(operand) for operand in self.operands[:3])
        ranks = {len(query), len(key), len(value)}
        require(
            len(ranks) == 1 and min(ranks) >= 3,
            "query, key and value need the same rank, at least 3",
            "C2",
        )
        for found, expected in (
            (key[:-3], query[:-3]),
            (key[-2:], query[-2:]),
            (value[:-1], key[:-1]),
        ):
            require(
                _may_be_equal(found, expected), f"{_text(found)} instead of {_text(expected)}", "C2"
            )
        if self.mask is not None:
            scores = self.score_dims
            mask = dims_of(self.mask)
            whole = require_broadcast([scores, mask], "C3")
            require(whole == scores, f"a mask {_text(mask)} of {_text(scores)}", "C3")
        return [tensor(element, [*query[:-1], value[-1]])]


def _may_be_equal(found: Sequence[Expr], expected: Sequence[Expr]) -> bool:
    """False if two dimensions are different numbers."""
    return all(None in (a.value, b.value) or a == b for a, b in zip(found, expected, strict=True))


def _text(dims: Sequence[Expr]) -> str:
    return f"[{', '.join(map(str, dims))}]"
