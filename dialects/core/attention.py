"""Attention: two matrix products and the softmax between them, as one op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, UnitAttr
from xdsl.dialects.builtin import f64 as builtin_f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from lowerdeck.dialects.core.base import (
    FORMAT,
    CoreOp,
    require,
    require_broadcast,
    require_same_element,
)
from lowerdeck.dialects.core.types import dims_of, element_type, f32, f64, i1, tensor
from lowerdeck.dialects.dims import Expr


@irdl_op_definition
class AttentionOp(CoreOp):
    """
    Softmax-weighted means of values: with query [B..., T, H, D], key [B..., S, H, D], value
    [B..., S, H, E], and factor, mask and keep, which broadcast to [B..., H, T, S],

        score[b, h, t, s] = sum_d(query[b, t, h, d] * key[b, s, h, d]) * scale
                            * factor[b, h, t, s] + mask[b, h, t, s]
                            where keep[b, h, t, s], else fill
        weight[b, h, t, :] = exp(score - m) / sum_s(exp(score - m)), m the maximum along s
                             or 0 instead of NaN with `zero_nan`,
                             and 0 where not keep[b, h, t, s] with `zero_hidden`
        result[b, t, h, e] = sum_s(weight[b, h, t, s] * value[b, s, h, e])

    Heads are the dimension before the last, as in the columns of a matrix product: splitting the
    heads and joining the results again are reshapes. What is not kept has no part in the result,
    whatever it is, if `fill` is so low that its weight is zero. The sum with a mask is rounded to
    the element type: a mask of -1e9 in all places of a row makes all of its scores equal. With
    `in_halves` the factors of both products, of which the query is scaled before, may be rounded to
    bf16; weights may be before they are divided by their sum. Without
    `zero_nan` a query whose scores are all -inf, or one of them inf or NaN, has weights that are
    NaN.

    Constraints:

    - (C1) query, key, value, factor and mask are all f32, or all f64: half precision would round
      between the steps. They are f32 with `in_halves`.
    - (C2) query, key and value have the same rank, at least 3, and agree in B..., H, and D or S;
      none of them broadcasts.
    - (C3) factor, mask and keep broadcast to [B..., H, T, S] and do not exceed it.
    - (C4) after the value there are at most a factor, a mask and a `keep`, which is i1, in this
      order; with `has_factor` the first of them is the factor. With `keep` there is a `fill`, and
      without it neither that nor `zero_hidden`.

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
    masks = var_operand_def()
    scale = prop_def(FloatAttr)
    fill = opt_prop_def(FloatAttr)
    has_factor = opt_prop_def(UnitAttr)
    zero_nan = opt_prop_def(UnitAttr)
    zero_hidden = opt_prop_def(UnitAttr)
    in_halves = opt_prop_def(UnitAttr)
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
        factor: SSAValue | None = None,
        keep: SSAValue | None = None,
        fill: float | None = None,
        scale: float = 1.0,
        zero_nan: bool = False,
        zero_hidden: bool = False,
    ):
        numbers = {"scale": scale, "fill": fill}
        properties: dict[str, Attribute] = {
            n: FloatAttr(x, builtin_f64) for n, x in numbers.items() if x is not None
        }
        flags = {
            "has_factor": factor is not None,
            "zero_nan": zero_nan,
            "zero_hidden": zero_hidden,
        }
        properties.update((name, UnitAttr()) for name, is_set in flags.items() if is_set)
        masks = [part for part in (factor, mask, keep) if part is not None]
        super().__init__([query, key, value, masks], properties)

    @property
    def factor(self) -> SSAValue | None:
        """What scores are multiplied by, besides the scale, if anything."""
        return None if self.has_factor is None else self.masks[0]

    @property
    def mask(self) -> SSAValue | None:
        """What is added to scores, if anything is."""
        rest = self.masks[0 if self.has_factor is None else 1 :]
        return next((part for part in rest if element_type(part) != i1), None)

    @property
    def keep(self) -> SSAValue | None:
        """Which scores are kept, if not all."""
        return next((part for part in self.masks if element_type(part) == i1), None)

    @property
    def score_dims(self) -> tuple[Expr, ...]:
        """[B..., H, T, S]: the shape that the mask broadcasts to."""
        *batch, queries, heads, _ = dims_of(self.query)
        return (*batch, heads, queries, dims_of(self.key)[-3])

    def infer(self) -> Sequence[Attribute]:
        added = list(self.masks)
        if is_kept := bool(added) and element_type(added[-1]) == i1:
            added.pop()
        most = 1 if self.has_factor is None else 2
        require(len(added) <= most, "expected a mask, then what is kept", "C4")
        require(len(added) >= most - 1, "expected a factor", "C4")
        require(is_kept == (self.fill is not None), "what is kept and fill go together", "C4")
        is_plain = self.zero_hidden is None
        require(is_kept or is_plain, "nothing is hidden, and that is to be zero", "C4")
        element = require_same_element([*self.operands[:3], *added], "C1")
        require(element in (f32, f64), lambda: f"expected f32 or f64, got {element}", "C1")
        require(self.in_halves is None or element == f32, f"halves of {element}", "C1")
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
        scores = self.score_dims
        for part in self.masks:
            mask = dims_of(part)
            whole = require_broadcast([scores, mask], "C3")
            require(whole == scores, f"a mask {_text(mask)} of {_text(scores)}", "C3")
        return [tensor(element, [*query[:-1], value[-1]])]


def _may_be_equal(found: Sequence[Expr], expected: Sequence[Expr]) -> bool:
    """False if two dimensions are different numbers."""
    return all(None in (a.value, b.value) or a == b for a, b in zip(found, expected, strict=True))


def _text(dims: Sequence[Expr]) -> str:
    return f"[{', '.join(map(str, dims))}]"
