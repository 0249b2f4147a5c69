"""A network as cases of the corpus are made of it, and what calls of it consist of."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

Call = tuple[tuple[Any, ...], dict[str, Any]]
STATIC = "training", "core", "trace"
ALL = *STATIC, "open"


@dataclass(frozen=True)
class Network:
    """A module and calls of it, positional arguments and others; `open` as torch.export has it."""

    name: str
    build: Callable[[], nn.Module]
    calls: Callable[[], Sequence[Call]]
    open: Any = None
    forms: tuple[str, ...] = STATIC
    settle: Callable[[nn.Module], object] | None = None
    """What is done to the module with its random parameters."""


def plain(*makers: Callable[[], Any]) -> Callable[[], Sequence[Call]]:
    """One call of positional arguments."""
    return lambda: [(tuple(make() for make in makers), {})]


def keywords(**makers: Callable[[], Any]) -> Callable[[], Sequence[Call]]:
    """One call of arguments by name."""
    return lambda: [((), {name: make() for name, make in makers.items()})]


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    """Random numbers."""
    return lambda: torch.randn(*shape)


def ids(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    """Random indices."""
    return lambda: torch.randint(0, high, shape)


def ones(*shape: int) -> Callable[[], torch.Tensor]:
    """A mask that lets everything through."""
    return lambda: torch.ones(*shape, dtype=torch.int64)


def varied(network: Network) -> Network:
    """The network with `scattered` parameters."""

    def build() -> nn.Module:
        model = scattered(network.build())
        if network.settle is not None:
            network.settle(model)
        return model

    return replace(network, build=build)


def scattered(model: nn.Module) -> nn.Module:
    """
    A model whose statistics of normalization are random, and its parameters that begin as one
    number, such as zeros that would hide what a branch or all of it computes.
    """
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            nn.init.uniform_(layer.running_var, 0.5, 2)
            nn.init.normal_(layer.running_mean, std=0.1)
    with torch.no_grad():
        for values in model.parameters():
            if values.numel() and values.is_floating_point() and values.min() == values.max():
                values.add_(torch.randn_like(values), alpha=NOISE)
    return model


NOISE = 0.1
