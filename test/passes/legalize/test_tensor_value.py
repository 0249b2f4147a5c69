"""Values for arithmetic while a node is legalized."""

from __future__ import annotations

import pytest
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue


def test_dimensions_are_of_64_bits() -> None:
    builder = CoreBuilder(InsertPoint.at_end(Block()), SymbolicValues([]))
    largest = (1 << 63) - 1
    assert TensorValue.dim(builder, largest).is_all(largest)
    with pytest.raises(VerifyException, match=f"{1 << 120}, in 64 bits"):
        TensorValue.dim(builder, 1 << 120)
