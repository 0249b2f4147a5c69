"""MXNet: symbols and their weights, as the register of frameworks knows them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lowerdeck.dialects.frameworks import OptionValue
from lowerdeck.frontends.frontend import FileFormat, Frontend, Request, Use

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _load(request: Request) -> ModuleOp:
    import numpy as np

    from lowerdeck.frontends.mxnet.import_ import import_model

    shapes = {name: np.shape(value) for name, value in request.fixed.items() if np.ndim(value)}
    return import_model(
        request.path,
        weights=request.options.get("weights"),
        outputs=request.outputs,
        input_shapes={**shapes, **(request.input_shapes or {})},
    )


def _inventory(request: Request) -> Iterator[Use]:
    from lowerdeck.frontends.mxnet.import_ import operators

    for op_type, name in operators(request.path):
        yield Use(op_type, name)


def _weights(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    from lowerdeck.frontends.mxnet.weights import weights_beside

    if not path.endswith(".json"):
        return []
    given = options.get("weights")
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    return weights_beside(path)


def _advice(path: str) -> str | None:
    """The symbol that belongs to weights; TVM calls its files of parameters the same."""
    from lowerdeck.frontends.mxnet.weights import is_weights

    stem, suffix = os.path.splitext(path)
    if suffix != ".params" or (os.path.isfile(path) and not is_weights(path)):
        return None
    name, _, epoch = stem.rpartition("-")
    symbol = f"{name if epoch.isdigit() else stem}-symbol.json"
    if os.path.isfile(symbol):
        return f"is a file with weights; give the symbol: {symbol}"
    return "is a file with weights; give the symbol, NAME-symbol.json, beside it"


def _facts(path: str) -> dict[str, str]:
    from lowerdeck.frontends.mxnet.symbol import SymbolError, read_symbol

    try:
        version = read_symbol(path).version
    except (SymbolError, OSError):
        return {}
    return {"MXNet": f"{version // 10000}.{version // 100 % 100}.{version % 100}"}


FRONTEND = Frontend(
    files="MXNet (-symbol.json)",
    formats=(
        FileFormat(
            "mxnet",
            first_keys=frozenset({"nodes", "arg_nodes", "heads", "node_row_ptr"}),
        ),
    ),
    load=_load,
    inventory=_inventory,
    other_files=_weights,
    advice=_advice,
    facts=_facts,
)
