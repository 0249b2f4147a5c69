"""Which operators of PaddlePaddle are compiled."""

from __future__ import annotations

from lowerdeck.dialects.paddle.schema import old_forms, schemas
from lowerdeck.passes.legalize.paddle.registry import legalizes
from lowerdeck.passes.legalize.support import Support

_RANDOM = frozenset(
    "bernoulli gaussian uniform randint randperm multinomial poisson exponential sampling_id "
    "truncated_gaussian_random gumbel_softmax rrelu".split()
)
_STRUCTURE = frozenset(
    "feed fetch data while if conditional_block conditional_block_infer select_input assert "
    "builtin:combine builtin:split builtin:slice builtin:shadow_output cf:yield".split()
)


def next_step(name: str) -> str:
    """What helps where an operator is not compiled."""
    if name in _RANDOM:
        return "make the random numbers an input, or export after model.eval()"
    return "compute it outside of the model"


def support(domain: str, op_type: str, opset: int | None) -> Support:
    """How an operator is compiled, and what helps where it is not."""
    if op_type in _STRUCTURE:
        return Support("at import")
    form = old_forms().get(op_type)
    for name in (op_type.rstrip("_"), "" if form is None else form.name):
        if name in schemas() and legalizes.get(name) is not None:
            return Support("legalized")
    return Support(None, next_step=next_step(op_type))
