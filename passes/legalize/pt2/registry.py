"""Which function legalizes which operator of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer

Handler: TypeAlias = "Callable[[Pt2Legalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.pt2")
"""
By the operator: without `aten.` or `prims.` and, where all overloads are one, without the overload.
"""


def handler_of(target: str) -> Handler | None:
    """The function for an overload, or for its operator."""
    name = target.removeprefix("aten.").removeprefix("prims.")
    base = name.rpartition(".")[0]
    return legalizes.get(name) or legalizes.get(base) or legalizes.get(plain_name(base))


def plain_name(name: str) -> str:
    """The name of an operator that has one more in a namespace of functions or matrices."""
    for prefix in ("special_", "linalg_"):
        if legalizes.get(name) is None and name.startswith(prefix):
            rest = name.removeprefix(prefix)
            return _RENAMED.get(rest, rest)
    if name.endswith("_copy") and legalizes.get(name) is None:  # of a view
        return name.removesuffix("_copy")
    return _RENAMED.get(name, name)


_RENAMED = {
    "absolute": "abs",
    "adjoint": "mH",
    "concatenate": "cat",
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
    "log_sigmoid_forward": "log_sigmoid",
    "_aminmax": "aminmax",
    "_stack": "stack",
    "_reshape_alias": "view",
    "_unsafe_index_put": "index_put",
    "conv_depthwise3d": "conv3d",
    "_conv_depthwise2d": "conv2d",
    "_cdist_forward": "cdist",
    "native_channel_shuffle": "channel_shuffle",
}
"""Names that mean what another one does."""
