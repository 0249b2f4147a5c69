"""What `--verify-diagnostics` refuses, and the places of ops that were read from text."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerdeck.tools.diagnostics import mismatches
from lowerdeck.tools.opt_tool import main

WRONG = "%y = core.exp %x : (tensor<2xf32>) -> tensor<3xf32>"


def run(tmp_path: Path, body: str, *options: str) -> tuple[int, str]:
    """Exit status of a function with a body of three lines from line 2 on, and the file's name."""
    source = tmp_path / "in.mlir"
    source.write_text(f"func.func @main(%x : tensor<2xf32>) {{\n{body}\nfunc.return\n}}\n")
    return main([str(source), "--verify-diagnostics", *options]), str(source)


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        # Nothing came where something is expected; right text, but of the wrong line.
        ("// expected-error@+1 {{result 0}}", ["2: expected-error@+1 {{result 0}} did not come"]),
        (
            f"// expected-error {{{{result 0}}}}\n{WRONG}",
            ["3: unexpected error: op 'core.exp'", "2: expected-error {{result 0}} did not come"],
        ),
        # One comment stands for one error.
        (
            f"{WRONG}\n// expected-error@* {{{{result 0}}}}\n{WRONG.replace('%y', '%z')}",
            ["4: unexpected error: op 'core.exp'"],
        ),
        # Braces are no regular expressions unless asked for; slips are no silence.
        (
            f"{WRONG} // expected-error {{{{result .}}}}",
            ["2: unexpected error", "2: expected-error {{result .}} did not come"],
        ),
        ("// expected-eror {{x}}", ["2: not understood: expected-eror {{x}}"]),
        ("// expected-error@next {{x}}", ["2: not understood: expected-error@next {{x}}"]),
        ("// expected-error-re {{a{{(}}b}}", ["2: no regular expression"]),
    ],
)
def test_differences_are_listed(
    body: str, listed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, source = run(tmp_path, body)
    assert status == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(listed)
    for line, expected in zip(lines, listed, strict=True):
        assert line.startswith(f"{source}:{expected}")


def test_lines_are_those_of_the_whole_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = f"func.func @b(%x : tensor<2xf32>) {{\n{WRONG}"
    body = f"// expected-error@* {{{{never}}}}\nfunc.return\n}}\n// -----\n{second}"
    status, source = run(tmp_path, body, "--split-input-file", "-o", str(tmp_path / "out.mlir"))
    assert status == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{source}:2: expected-error@* {{{{never}}}} did not come",
        f"{source}:7: unexpected error: op 'core.exp': result 0 has type tensor<3xf32>, but its "
        "operands give tensor<2xf32> (T1)",
    ]
    assert not (tmp_path / "out.mlir").exists()


def test_a_file_without_comments_has_its_errors_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, source = run(tmp_path, WRONG)
    assert status == 0
    assert capsys.readouterr().out.startswith(f"{source}:2:1: op 'core.exp': ")


def test_notes_belong_to_the_error_before_them() -> None:
    error = ValueError("f: a\nf: note: b\nf:3:1: c\nmore\nop 'x.y': d")
    found = mismatches("", "f", error)
    assert found == [
        "f: unexpected error: a\nnote: b",
        "f:3: unexpected error: c\nmore",
        "f: unexpected error: op 'x.y': d",
    ]


TEXT = """func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %a = core.transpose %x [0] : (tensor<4xf32>) -> tensor<4xf32>
    %b = core.transpose %a [0] : (tensor<4xf32>) -> tensor<4xf32>
  %c = core.exp %b : (tensor<4xf32>) -> tensor<4xf32> loc("named")
  %d = core.exp %c : (tensor<4xf32>) -> tensor<4xf32> loc(unknown)
  func.return %d : tensor<4xf32>
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """TEXT in a file."""
    path = tmp_path / "in.mlir"
    path.write_text(TEXT)
    return path


def test_ops_have_the_place_that_they_were_read_from(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(source), "--print-debuginfo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith(f'loc("{source}":2:3)')
    assert lines[3].endswith(f'loc("{source}":3:5)')
    assert lines[4].endswith('loc("named")')
    assert lines[5].endswith("loc(unknown)")
    assert lines[7] == f'  }} loc("{source}":1:1)'
    assert lines[8] == f'}} loc("{source}":0:0)'


def test_places_are_not_printed_by_default(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(source)]) == 0
    once = capsys.readouterr().out
    assert "in.mlir" not in once
    source.write_text(once)
    assert main([str(source)]) == 0
    assert capsys.readouterr().out == once


def test_rewrites_tell_places_and_can_be_skipped_by_them(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = [str(source), "-p", "cancel-transpose", "--rewrite-log", "--print-debuginfo"]
    assert main(pipeline) == 0
    found = capsys.readouterr()
    assert f"; from {source}:3:5, {source}:2:3\n" in found.err
    assert "core.transpose" not in found.out
    assert main([*pipeline, f"--skip-nodes={source}:[23]:.*"]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert found.out.count("core.transpose") == 2
    # The name of a file is no name of a node.
    assert main([*pipeline, "--skip-nodes=in.mlir"]) == 0
    found = capsys.readouterr()
    assert "no node of the model has 'in.mlir' in its name" in found.err
    assert "core.transpose" not in found.out


def test_a_refusal_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.mlir"
    path.write_text(TEXT)
    assert main([str(path), "-p", "bufferize"]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:2:3: op 'core.transpose': ")
