"""bench/passes.py: a pass that changes results is told, and where passes fire is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from bench import passes
from lowerdeck.dialects.core.elementwise import MaxOp, MinOp
from lowerdeck.passes.linear.fuse_linear import FuseLinearPass

DIGITS = str(Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx")


def test_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    only = "fuse-linear,cse,fuse-quantized,tile,compute-in-place"
    assert passes.main([DIGITS, f"--only={only}"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    # Operations and parameters, before and after.
    assert rows["digits"][:2] == ["20", "14"]
    assert rows["digits"][4:6] == ["20,863", "20,571"]
    # Models and rewrites, with all passes and alone: then the average's quotient is no product.
    assert rows["fuse-linear"][:4] == ["1", "4", "1", "3"]
    assert rows["cse"][:2] == ["1", "3"]
    assert rows["fuse-quantized"] == ["0", "0", "0", "0", "-", "-"]
    assert "fires nowhere: fuse-quantized, compute-in-place\n" in out
    # Alone and all but, of the passes that fire; C with all passes and with none.
    assert "1 models, 0 refused; 8 comparisons, 0 wrong" in out


def test_groups_and_other_passes_are_not_tried() -> None:
    assert not {"fuse", "fold", "simplify", "infer-shapes", "bufferize"} & {*passes.ALL}
    assert {"fuse-linear", "fold-constants", "fuse-epilogue", "prefetch"} <= {*passes.ALL}
    with pytest.raises(SystemExit, match="no optional passes: fuse-everything"):
        passes.main([DIGITS, "--only=fuse-everything"])


def test_a_pass_that_changes_results_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = FuseLinearPass.apply

    def wrong(self: FuseLinearPass, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in [*op.walk()]:
            if isinstance(inner, MaxOp):
                _replace(inner, MinOp(inner.lhs, inner.rhs))

    monkeypatch.setattr(FuseLinearPass, "apply", wrong)
    assert passes.main([DIGITS, "--only=fuse-linear,cse", "--quick"]) == 1
    out = capsys.readouterr().out
    assert "wrong: digits: fuse-linear alone: " in out
    # It runs there, too; without it, nothing is wrong.
    assert "wrong: digits: all but cse: " in out
    assert "all but fuse-linear" not in out.partition("fires nowhere")[2]


def _replace(op: Operation, new: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()


def test_nothing_to_compare_is_no_success(tmp_path: Path) -> None:
    assert passes.main([str(tmp_path), "--quick"]) == 1
