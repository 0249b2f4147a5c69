"""TensorFlow's placeholders with a default: which of them a caller may give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.defaults import default_arrays
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret import find_function, run_module
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import NodeDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.fixed_dims import fix_dims
from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs

from .tf1_graphs import (  # noqa: TID251  (tests, not the folder of sources)
    FLOAT,
    INT,
    Shape,
    Type,
    const,
    graph,
    node,
    placeholder,
)

BOOL = Type("bool")
X = np.array([1, 2, 3], np.float32)


def optional(name: str, shape: Shape | None = None, dtype: Type = FLOAT) -> NodeDef:
    """A placeholder whose default is the constant `NAME_default`."""
    attributes: dict[str, Any] = {} if shape is None else {"shape": shape}
    return node(name, "PlaceholderWithDefault", f"{name}_default", dtype=dtype, **attributes)


SCALED = [
    placeholder("x", (3,)),
    const("k_default", [1, 2, 4]),
    optional("k", Shape((-1,))),
    node("y", "Mul", "x", "k", T=FLOAT),
]


def inputs(nodes: Sequence[NodeDef], **options: Any) -> tuple[list[str], list[str]]:
    """The names of all inputs once the graph is a function, and of those that may be left out."""
    module = import_graph(graph(*nodes), **options)
    run_to_phase(LowerdeckContext(), module, "legal")
    return _inputs(module)


def _inputs(module: ModuleOp) -> tuple[list[str], list[str]]:
    main = find_function(module, "main")
    return value_names(main.arg_attrs, len(main.body.block.args)), [*default_arrays(main)]


def test_floats_may_be_left_out() -> None:
    module = import_graph(graph(*SCALED))
    other = np.array([3], np.float32)
    for _ in ("imported", "optimized"):
        np.testing.assert_array_equal(run_module(module, {"x:0": X})["y:0"], [1, 4, 12])
        np.testing.assert_array_equal(run_module(module, {"x:0": X, "k:0": other})["y:0"], 3 * X)
        np.testing.assert_array_equal(sample_inputs(inputs_of(module))["k:0"], [1, 2, 4])
        run_to_phase(LowerdeckContext(), module, "optimized")


def test_a_size_that_is_fixed_takes_the_default_away() -> None:
    for size, names in ((3, ["k:0"]), (1, [])):
        module = import_graph(graph(*SCALED))
        (symbol,) = {s for v in inputs_of(module).values() for s in _symbols(v)}
        fix_dims(module, {symbol: size})
        run_to_phase(LowerdeckContext(), module, "legal")
        assert _inputs(module) == (["k:0", "x:0"], names)


def _symbols(value: Any) -> set[str]:
    encoding = value.type.encoding
    return {str(dim) for dim in getattr(encoding, "data", ()) if dim.symbols}


def test_the_user_decides() -> None:
    assert inputs(SCALED, optional=[]) == (["x:0"], [])
    assert inputs(SCALED, fixed={"k": [2, 2, 2]}) == (["x:0"], [])
    assert inputs(SCALED, input_shapes={"k": [3]}) == (["k:0", "x:0"], ["k:0"])
    assert inputs(SCALED, input_shapes={"k": [1]}) == (["k:0", "x:0"], [])
    with pytest.raises(FrontendError) as caught:
        inputs(SCALED, optional=["x"])
    expected = "'x' is called optional, but the placeholders with a default are 'k:0'"
    assert expected in str(caught.value)


def test_integers_and_booleans_are_constants_unless_they_are_named() -> None:
    nodes = [
        placeholder("x", (3,)),
        const("n_default", [3], dtype=np.int32),
        optional("n", Shape((1,)), INT),
        node("y", "Reshape", "x", "n", T=FLOAT, Tshape=INT),
    ]
    assert inputs(nodes) == (["x:0"], [])
    assert inputs(nodes, optional=["n:0"]) == (["n:0", "x:0"], ["n:0"])


@pytest.mark.parametrize(
    "nodes",
    [
        [
            const("zero", 0),
            node("p", "Greater", "k", "zero", T=FLOAT),
            node("s", "Switch", "x", "p", T=FLOAT),
            node("a", "Neg", "s:1", T=FLOAT),
            node("y", "Merge", "s", "a", T=FLOAT, N=2),
        ],
        [
            const("shape", [3], dtype=np.int32),
            node("r", "RandomUniform", "shape", T=INT, dtype=FLOAT),
            node("s", "Mul", "r", "k", T=FLOAT),
            node("y", "Add", "s", "x", T=FLOAT),
        ],
    ],
    ids=["predicate", "random"],
)
def test_what_decides_more_is_a_constant(nodes: Sequence[NodeDef]) -> None:
    common = [placeholder("x", (3,)), const("k_default", 1), optional("k", Shape(()))]
    module = import_graph(graph(*common, *nodes), outputs=["y"])
    assert list(inputs_of(module)) == ["x:0"]
    module = import_graph(graph(*common, *nodes), outputs=["y"], optional=["k"])
    assert sorted(inputs_of(module)) == ["k:0", "x:0"]


def test_a_weight_is_a_constant_and_a_computed_default_no_input() -> None:
    nodes = [
        placeholder("x", (2, 2)),
        const("k_default", [[1, 2], [3, 4]]),
        optional("k", Shape((2, 2))),
        node("w", "Neg", "k", T=FLOAT),
        node("y", "MatMul", "x", "w", T=FLOAT),
    ]
    assert inputs(nodes) == (["x:0"], [])
    nodes[1] = node("k_default", "Relu", "x", T=FLOAT)
    assert inputs(nodes) == (["x:0"], [])
    assert inputs(nodes, optional=["k"]) == (["k:0", "x:0"], [])


def test_an_unknown_rank_is_that_of_the_default() -> None:
    nodes = [*SCALED]
    nodes[2] = optional("k")
    nodes[2].attr["shape"].shape.unknown_rank = True
    assert inputs(nodes) == (["k:0", "x:0"], ["k:0"])
