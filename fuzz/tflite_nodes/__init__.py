"""Random operators of TensorFlow Lite, by topic."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.tflite_graphs import Graph
from fuzz.tflite_nodes import (
    elementwise,
    movement,
    products,
    recurrent,
    reductions,
    stablehlo,
    windows,
)

RECIPES: tuple[Callable[[Graph], object], ...] = (
    *products.RECIPES,
    *windows.RECIPES,
    *elementwise.RECIPES,
    *movement.RECIPES,
    *reductions.RECIPES,
    *recurrent.RECIPES,
    *stablehlo.RECIPES,
)
"""Each adds an operator to a graph, or nothing where none fits."""
