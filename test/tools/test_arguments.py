"""Values of options that need parsing, and warnings of what they name."""

from __future__ import annotations

from pathlib import Path

import pytest

import lowerdeck
from lowerdeck.tools.arguments import split_regexes
from lowerdeck.tools.opt_tool import main


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("conv", ["conv"]),
        ("conv,norm", ["conv", "norm"]),
        (",conv,,norm,", ["conv", "norm"]),
        ("conv{1,2}x,norm", ["conv{1,2}x", "norm"]),
        ("(a,b|c(d,e)),f", ["(a,b|c(d,e))", "f"]),
        ("[,(],b", ["[,(]", "b"]),
        ("[],],b", ["[],]", "b"]),
        ("[^],],b", ["[^],]", "b"]),
        (r"a\,b,c\\,d\(,e", [r"a\,b", r"c\\", r"d\(", "e"]),
    ],
)
def test_regular_expressions_in_one_text(text: str, parts: list[str]) -> None:
    assert split_regexes(text) == parts


IR = """
func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %z = core.constant dense<1.0> : tensor<f32>
  %a = core.mul %x, %z : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("first")
  %b = core.exp %a : (tensor<4xf32>) -> tensor<4xf32> loc("between")
  %c = core.mul %b, %z : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("second")
  %d = core.neg %c : (tensor<4xf32>) -> tensor<4xf32> loc("end")
  %e = core.mul %d, %z : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("third")
  func.return %e : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ([], 0),
        (["--skip-nodes=first"], 1),
        (["--skip-nodes=first,third"], 2),
        (["--skip-nodes=first", "--skip-nodes=third"], 2),
        (["--skip-nodes=first,sec", "--skip-nodes=^third$"], 3),
    ],
)
def test_several_kinds_of_nodes_are_left_alone(
    options: list[str], left: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "products.mlir"
    path.write_text(IR)
    assert main([str(path), "-p", "simplify", *options]) == 0
    assert capsys.readouterr().out.count("core.mul") == left


def test_a_name_that_matches_nothing_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "products.mlir"
    path.write_text(IR)
    arguments = [str(path), "-p", "cse", "--skip-nodes=first,frist", "--skip-nodes=^con"]
    assert main(arguments) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"warning: skip_nodes: no node of the model has '{name}' in its name"
        for name in ("frist", "^con")
    ]
    with pytest.warns(UserWarning, match="'frist'"):
        lowerdeck.compile(path, skip_nodes=["first", "frist"], cache=False)
    assert main([str(path), "--skip-nodes=first,("]) == 1
    assert "opt-tool: --skip-nodes: '(': missing )" in capsys.readouterr().err
