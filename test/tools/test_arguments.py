"""Values of options that need parsing, and warnings of what they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lowerdeck
from lowerdeck.tools.arguments import inputs_among, split_regexes
from lowerdeck.tools.lowerdeck import main as lowerdeck_main
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


@pytest.mark.parametrize(
    ("arrays", "inputs", "taken"),
    [
        (["x", "y"], ["x"], ["x", "y"]),  # what is no input is refused later
        (["input:x", "output:y", "z"], ["x"], ["x"]),
        (["input:0", "h0:0"], ["input:0", "h0:0"], ["input:0", "h0:0"]),
        (["input:input:0", "output:y:0"], ["input:0"], ["input:0"]),
        (["input:0", "input:h0:0", "y"], ["input:0", "h0:0"], ["h0:0", "input:0"]),
        (["input", "output"], ["input"], ["input", "output"]),
    ],
)
def test_names_that_begin_with_a_sign_of_inputs(
    arrays: list[str], inputs: list[str], taken: list[str]
) -> None:
    given = {name: np.array(name) for name in arrays}
    found = inputs_among(given, inputs)
    assert list(found) == taken
    assert all(str(array).endswith(name) for name, array in found.items())


PLACEHOLDER = """
node { name: "input" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "h0" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
node { name: "y" op: "AddV2" input: "input" input: "h0"
       attr { key: "T" value { type: DT_FLOAT } } }
versions { producer: 2000 }
"""


def test_a_placeholder_called_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, file, out = (str(tmp_path / name) for name in ("g.pbtxt", "in.npz", "out.npz"))
    Path(graph).write_text(PLACEHOLDER)
    arrays = {"input:0": np.ones((3, 2), np.float32), "h0:0": np.full((1, 2), 2, np.float32)}
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
    command = ["run", graph, "--inputs", file, "--save", out]
    assert lowerdeck_main([*command, "--interpret"]) == 0
    np.testing.assert_array_equal(np.load(out)["y:0"], np.full((3, 2), 3, np.float32))
    # A size for its open dimension, which has a name of the compiler's.
    assert lowerdeck_main([*command, "--interpret", "--dim", "d0=2"]) == 1
    assert "input 'input:0' has the shape [3, 2]" in capsys.readouterr().err
    assert lowerdeck_main(["explain", graph, "--dim", "batch=2", "--dim", "d0=2"]) == 1
    error = "--dim: there is no open dimension 'batch'; those of the inputs are 'd0'\n"
    assert capsys.readouterr().err == f"{graph}: {error}"
    with pytest.raises(lowerdeck.OptionError, match="there is no open dimension 'n'"):
        lowerdeck.compile(graph, dims={"n": 1}, cache=False)


def test_an_option_with_a_list_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    model = Path(__file__).parents[1] / "frontends" / "script_models" / "types_script" / "model.pt"
    assert main([str(model), "--input-type", "x=4xf32", "--input-type", "n=4xi64"]) == 0
    assert "%x: tensor<4xf32>" in (text := capsys.readouterr().out)
    assert "%n: tensor<4xi64>" in text
