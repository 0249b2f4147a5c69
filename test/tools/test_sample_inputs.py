"""Random inputs are such as a module takes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.interpret import InterpretError
from lowerdeck.frontends.text import default_context
from lowerdeck.tools.sample_inputs import Choice, inputs_of, sample_inputs

OPEN = """
func.func @main(
  %x : tensor<?x?x?xf64, #core.tensor<dims = [n, m, n]>> {core.name = "x"},
  %b : tensor<?xi1, #core.tensor<dims = [k]>>
) { func.return }
"""

INDEXED = """
func.func @main(%i : tensor<50xi64>, %j : tensor<50xi64>, %t : tensor<9x2xf32>) -> tensor<9x50xf32> {
  %k = core.reshape %i [5, 10] : (tensor<50xi64>) -> tensor<5x10xi64>
  %a = core.gather %t, %k axis 0 : (tensor<9x2xf32>, tensor<5x10xi64>) -> tensor<5x10x2xf32>
  %b = core.gather %t, %i axis 1 : (tensor<9x2xf32>, tensor<50xi64>) -> tensor<9x50xf32>
  func.return %b : tensor<9x50xf32>
}
"""  # noqa: E501

TENSORFLOW = """
tf1.graph @main attributes {producer = 2000 : i64} {
  %t = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F0000004000004040">} : () -> tensor<1x3xf32>
  %r = tf1.Identity %t {T = #tf1.dtype<float>} : (tensor<1x3xf32>) -> tensor<*xf32>
  %i = tf1.Placeholder {dtype = #tf1.dtype<int32>, shape = #tf1.shape<[?]>} : () -> tensor<?xi32, #core.tensor<dims = [d0]>>
  %j = tf1.Placeholder {dtype = #tf1.dtype<int32>, shape = #tf1.shape<[99]>} : () -> tensor<99xi32>
  %a = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %b = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %x = tf1.GatherV2 %r, %i, %a {Taxis = #tf1.dtype<int32>, Tindices = #tf1.dtype<int32>, Tparams = #tf1.dtype<float>} : (tensor<*xf32>, tensor<?xi32, #core.tensor<dims = [d0]>>, tensor<i32>) -> tensor<*xf32>
  %y = tf1.GatherV2 %r, %j, %b {Taxis = #tf1.dtype<int32>, Tindices = #tf1.dtype<int32>, Tparams = #tf1.dtype<float>} : (tensor<*xf32>, tensor<99xi32>, tensor<i32>) -> tensor<*xf32>
  tf1.fetch %x, %y : tensor<*xf32>, tensor<*xf32> {names = ["x", "y"]}
}
"""  # noqa: E501


def samples(text: str, choice: Choice | None = None) -> list[np.ndarray]:
    inputs = inputs_of(Parser(default_context(), text).parse_module())
    return list(
        (sample_inputs(inputs, choice=choice) if choice else sample_inputs(inputs)).values()
    )


def test_sizes_that_are_open() -> None:
    x, b = samples(OPEN)
    assert (x.dtype, b.dtype) == (np.float64, np.bool_)
    assert x.shape[0] == x.shape[2]
    assert len({*x.shape, *b.shape}) == 3
    x, b = samples(OPEN, Choice((7,), 1))
    assert (x.shape, b.shape) == ((7, 7, 7), (7,))


def test_indices_stay_within_what_they_address() -> None:
    i, j, _ = samples(INDEXED)
    assert (i.min(), i.max()) == (0, 1)  # the smaller of the two dimensions
    assert (j.min(), j.max()) == (0, 3)  # nobody asks


def test_placeholders_of_a_graph() -> None:
    i, j = samples(TENSORFLOW)
    assert (i.dtype, i.shape, i.max()) == (np.int32, (2,), 0)
    assert (j.shape, j.min(), j.max()) == ((99,), 0, 2)


def test_what_has_no_shape_is_named() -> None:
    text = 'func.func @main(%x : tensor<*xf32> {core.name = "img"}) { func.return }'
    with pytest.raises(VerifyException, match=r"input 'img' of type tensor<\*xf32>"):
        samples(text)
    with pytest.raises(InterpretError, match="no function @main"):
        samples("func.func private @other() { func.return }")
