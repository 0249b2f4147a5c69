"""The loop keeps the boxes that the op keeps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from lowerdeck.dialects.core.control_flow import LoopOp
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.types import element_of, i1, i32, tensor
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.interpret import Interpreter, find_function
from lowerdeck.passes.loops.expand_suppression import ExpandSuppressionPass

FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"most": 3},
    {"strict": True},
    {"strict": True, "decay": 0.875},
    {"decay": 0.875, "border": 0.5},
    {"strict": True, "border": 1, "must_meet": True, "most": 6},
)


def program(dtype: Any, **form: Any) -> ModuleOp:
    g, n = Expr.symbol("g"), Expr.symbol("n")
    element = element_of(np.dtype(dtype))
    types = [
        tensor(i1, [g, n]),
        tensor(element, [g, n, 4]),
        tensor(element, []),
        tensor(i32, [g, n]),
    ]
    block = Block(arg_types=types)
    with ImplicitBuilder(block):
        plain = SuppressOp(*block.args[:3], **form)
        labeled = SuppressOp(*block.args[:3], labels=block.args[3], **form)
        func.ReturnOp(plain.result, labeled.result)
    results = [plain.result.type, labeled.result.type]
    return ModuleOp([func.FuncOp("main", (types, results), Region(block))])


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_loop(dtype: Any, form: dict[str, Any]) -> None:
    """Also of no boxes, corners in any order, and what is no number."""
    module = program(dtype, **form)
    expanded = module.clone()
    ExpandSuppressionPass().apply(Context(), expanded)
    expanded.verify()
    assert sum(isinstance(op, LoopOp) for op in expanded.walk()) == 2
    assert not any(isinstance(op, SuppressOp) for op in expanded.walk())
    rng = np.random.default_rng(7)
    kept = 0
    for count in (0, 1, 18):
        boxes = (rng.integers(0, 17, (3, count, 4)) / 8).astype(dtype)
        if count > 1:
            boxes[1, 3, 1], boxes[1, 5, 2], boxes[2, 4], boxes[2, 7, 3] = (
                np.nan,
                np.inf,
                np.inf,
                -np.inf,
            )
        for limit in (-1, 0, 0.25, 0.75):
            values = [
                rng.random((3, count)) < 0.9,
                boxes,
                np.array(limit, dtype),
                rng.integers(0, 2, (3, count)).astype(np.int32),
            ]
            wanted, found = (
                Interpreter().call(find_function(each, "main"), list(values))
                for each in (module, expanded)
            )
            for one, other in zip(wanted, found, strict=True):
                np.testing.assert_array_equal(one, other)
                kept += int(np.sum(np.asarray(one)))
    assert kept > 0
