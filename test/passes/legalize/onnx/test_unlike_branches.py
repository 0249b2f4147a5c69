"""If with results of two ranks: what follows goes into the branches. Against ONNX Runtime."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import lowerdeck
from lowerdeck.compiler import RunError
from lowerdeck.dialects.core.control_flow import IfOp
from lowerdeck.dialects.core.elementwise import AbsOp, SinOp
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.passes.legalize.walk import LegalizationError

Array = NDArray[Any]

SQUEEZE = """
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  first = Constant <value = int64[1] {0}> ()
  shape = Shape (x)
  size = Gather (shape, zero)
  is_one = Equal (size, one)
  s = If (is_one) <
    then_branch = yes () => (float[p] t) { t = Squeeze (x, first) },
    else_branch = no () => (float[q, r] e) { e = Identity (x) }
  >
"""
"""x of [n, 3] as [3] if n is 1."""

RESTORED = f"""
g (float[n, 3] x, float[1] y) => (float[k] all, float[m] sines) {{
  {SQUEEZE}
  other = Abs (y)
  flat = Constant <value = int64[1] {{-1}}> ()
  doubled = Add (s, other)
  all = Reshape (doubled, flat)
  sines = Sin (all)
}}
"""

WANTS_VECTOR = f"""
g (float[n, 3] x, float[4] y) => (float[a, b] out) {{
  {SQUEEZE}
  negated = Neg (y)
  row = Unsqueeze (s, first)
  more = Unsqueeze (negated, first)
  out = Concat <axis = 1> (row, more)
}}
"""

WANTS_MATRIX = f"""
g (float[n, 3] x) => (float[a, b] out) {{
  {SQUEEZE}
  out = Transpose <perm = [1, 0]> (s)
}}
"""

NESTED = f"""
g (float[n, 3] x, bool flag) => (float[k] out) {{
  out = If (flag) <
    then_branch = inner () => (float[a] u) {{
      {SQUEEZE}
      flat = Constant <value = int64[1] {{-1}}> ()
      u = Reshape (s, flat)
    }},
    else_branch = plain () => (float[b] v) {{
      all = Constant <value = int64[1] {{-1}}> ()
      v = Reshape (x, all)
    }}
  >
}}
"""

CAPTURED = f"""
g (float[n, 3] x, bool flag) => (float[a, b] out) {{
  {SQUEEZE}
  r = Relu (s)
  out = If (flag) <
    then_branch = inner () => (float[a, b] u) {{ u = Unsqueeze (r, first) }},
    else_branch = other () => (float[c, d] v) {{ v = Unsqueeze (s, first) }}
  >
}}
"""

UNRESOLVED = f"g (float[n, 3] x) => (float[k] s) {{ {SQUEEZE} }}"


def model_of(text: str) -> onnx.ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 17]>'
    return cast(Any, parser).parse_model(header + text)


def legalized(text: str) -> ModuleOp:
    module = import_model(model_of(text))
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    return module


def count(module: ModuleOp, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def check(text: str, **inputs: Array) -> None:
    model = model_of(text)
    options = cast(Any, onnxruntime).SessionOptions()
    options.log_severity_level = 4
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    expected = session.run(None, inputs)
    compiled = lowerdeck.compile(model, cache=False)
    names = [value.name for value in session.get_inputs()]
    for found, wanted in zip(compiled(*(inputs[n] for n in names)), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def rows(n: int) -> Array:
    return np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 4])
def test_a_rank_that_a_later_node_restores(n: int) -> None:
    """Only as much as it takes is in the branches: the sines of what is of one rank are not."""
    module = legalized(RESTORED)
    assert (count(module, IfOp), count(module, AbsOp), count(module, SinOp)) == (1, 1, 1)
    check(RESTORED, x=rows(n), y=np.array([0.5], np.float32))


def test_only_one_rank_makes_sense() -> None:
    """The other is an error at run time, as in ONNX Runtime."""
    y = np.arange(4, dtype=np.float32)
    assert count(legalized(WANTS_VECTOR), IfOp) == 0
    check(WANTS_VECTOR, x=rows(1), y=y)
    with pytest.raises(ValueError, match=r"has the shape \[2, 3\], expected \[1, 3\]"):
        lowerdeck.compile(model_of(WANTS_VECTOR), cache=False)(rows(2), y)
    assert count(legalized(WANTS_MATRIX), IfOp) == 0
    check(WANTS_MATRIX, x=rows(2))
    with pytest.raises(RunError):
        lowerdeck.compile(model_of(WANTS_MATRIX), cache=False)(rows(1))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("flag", [True, False])
def test_in_branches(n: int, flag: bool) -> None:
    check(NESTED, x=rows(n), flag=np.array(flag))


@pytest.mark.parametrize("flag", [True, False])
def test_used_in_branches(flag: bool) -> None:
    with pytest.raises(LegalizationError, match="of one rank"):
        legalized(CAPTURED)
    fixed = CAPTURED.replace("g (float[n, 3] x", "g (float[1, 3] x")
    check(fixed, x=rows(1), flag=np.array(flag))


def test_outputs_of_two_ranks_are_refused() -> None:
    with pytest.raises(LegalizationError, match="--input-shape"):
        legalized(UNRESOLVED)
    check(UNRESOLVED.replace("[n, 3]", "[1, 3]"), x=rows(1))
    four = model_of(UNRESOLVED.replace("[n, 3]", "[4, 3]"))  # ONNX Runtime refuses the other branch
    (found,) = lowerdeck.compile(four, cache=False)(rows(4))
    np.testing.assert_array_equal(found, rows(4))
