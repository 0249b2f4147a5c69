"""
Linear ops by constants that convolutions and matrix products have not taken over.

    python -m bench.linear_ops [tf1|caffe|MODEL ...] [--corpus FOLDER] [--all]

For every model the batch normalizations, products and sums by constants that touch a convolution or
product, directly or past ops that only move elements, along its channels: without the passes that
fuse linear ops, and after the group `fuse`. Of those that are left, the reason why: `shared` if
something else uses what would be scaled, `padded` for a sum before padding, `other` if only a part
of a concatenation is made by a convolution, or one user of several is none. The row of numbers that
is added to a product is its bias and does not count. The exit status is 1 if an op is left without
such a reason. `--all` also lists models without such ops.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from bench.measuring import text_table
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import ContractionOp, ConvOp, MatmulOp
from lowerdeck.dialects.core.tensor import ConcatOp
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.passes.linear.affine import Affine, linear_of
from lowerdeck.passes.linear.factors import MOVERS, Move, after, before
from lowerdeck.passes.machinery.provenance import describe
from models.corpus import corpus_folder, load_cases

FREE = "none"
"""The reason of an op that should not be left."""

_MOST_OPS = 64


@dataclass
class _Walk:
    """Looks for convolutions and products that a linear op meets in one direction."""

    reasons: set[str] = field(default_factory=set[str])
    found: list[Operation] = field(default_factory=list[Operation])
    seen: set[Operation] = field(default_factory=set[Operation])

    def back(self, value: SSAValue, affine: Affine) -> bool:
        """True if `value` is made by a convolution or product, along whose channels `affine` is."""
        op = value.owner
        if affine.is_identity:
            return True
        if not isinstance(value, OpResult) or not isinstance(op, Operation):
            return False
        if op in self.seen or len(self.seen) > _MOST_OPS:
            return False
        self.seen.add(op)
        if not value.has_one_use():
            self.reasons.add("shared")
        if isinstance(op, ContractionOp):
            return self._meets(op, affine, True)
        if not isinstance(op, MOVERS):
            return False
        moved = _moved(partial(before, op, value.index), affine)
        operands = op.operands if isinstance(op, ConcatOp) else op.operands[:1]
        return moved is not None and self._some(
            [self.back(operand, part) for operand, part in zip(operands, moved, strict=True)]
        )

    def ahead(self, value: SSAValue, affine: Affine) -> bool:
        """True if a convolution or product uses `value`, along whose channels `affine` is."""
        if affine.is_identity:
            return True
        return self._some([self._used(use.operation, use.index, affine) for use in value.uses])

    def _used(self, op: Operation, index: int, affine: Affine) -> bool:
        if op in self.seen or len(self.seen) > _MOST_OPS:
            return False
        self.seen.add(op)
        if isinstance(op, ContractionOp):
            if isinstance(op, ConvOp) and affine.shift is not None and _is_padded(op):
                self.reasons.add("padded")
            return index < 2 and self._meets(op, affine, False, index)
        if not isinstance(op, MOVERS):
            return False
        moved = _moved(partial(after, op, [index]), affine)
        return moved is not None and self._some(
            [self.ahead(result, part) for result, part in zip(op.results, moved, strict=True)]
        )

    def _some(self, found: Sequence[bool]) -> bool:
        if any(found) and not all(found):
            self.reasons.add("other")
        return any(found)

    def _meets(self, op: ContractionOp, affine: Affine, result: bool, index: int = 0) -> bool:
        """True if a constant factor has a number for each one of `affine`."""
        if not op.is_uniform:
            return False
        if not isinstance(op, MatmulOp):
            axes = {1: 1}
        elif result and affine.shift is not None:
            return False  # its bias
        else:
            axes = {0: -2, 1: -1} if result else {0: -2} if index == 1 else {1: -1}
        for place, axis in axes.items():
            fits = all(p is None or p.size in (1, p.shape[axis]) for p in affine.parts)
            if fits and isinstance(op.operands[place].owner, ConstantOp):
                self.found.append(op)
                return True
        return False


def _is_padded(op: ConvOp) -> bool:
    return any(pad != 0 for pad in (*op.pads_begin.data, *op.pads_end.data))


def _moved(move: Move, affine: Affine) -> list[Affine] | None:
    parts = [
        None if part is None else move(part, fill)
        for part, fill in ((affine.scale, 1.0), (affine.shift, 0.0))
    ]
    if any(own is not None and part is None for own, part in zip(affine.parts, parts, strict=True)):
        return None
    count = max(len(part) for part in parts if part is not None)
    scales, shifts = (part or [None] * count for part in parts)
    return [
        Affine(
            None if scale is None or (scale == 1).all() else scale,
            None if shift is None or (shift == 0).all() else shift,
        )
        for scale, shift in zip(scales, shifts, strict=True)
    ]


def linear_ops(module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """The linear ops that touch a convolution or product, and why they are left."""
    for op in module.walk():
        if (chain := linear_of(op)) is None:
            continue
        walks = (_Walk(), _Walk())
        touches = [
            walks[0].back(chain.input, chain.affine) and bool(walks[0].found),
            walks[1].ahead(op.results[0], chain.affine) and bool(walks[1].found),
        ]
        reasons = [
            " and ".join(sorted(walk.reasons)) or FREE
            for walk, touched in zip(walks, touches, strict=True)
            if touched
        ]
        if reasons:
            yield op, FREE if FREE in reasons else reasons[0]


class _Counter(Observer):
    """Counts after the group `fuse`."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if pass_.name == "fuse":
            self.found = [(describe(op), reason) for op, reason in linear_ops(module)]


LINEAR = ("fuse-linear", "merge-linear")


def count(path: str, options: CompileOptions) -> list[tuple[str, str]]:
    """The linear ops of a model after `fuse`, described, and the reasons why they are left."""
    module, context = import_and_lower(path, "legal", options)
    counter = _Counter()
    run_to_phase(context, module, "optimized", counter, after="legal")
    return counter.found


def _models(
    given: Sequence[str], corpus: str | None
) -> Iterator[tuple[str, str, list[str] | None]]:
    for name in given:
        if name not in ("tf1", "caffe"):
            yield Path(name).stem, name, None
            continue
        folder = corpus_folder(corpus)
        if folder is None:
            raise SystemExit("no corpus: give --corpus or set LOWERDECK_CORPUS")
        for case in load_cases(folder, name):
            yield f"{name}/{case.name}", str(case.model), case.outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each model; 1 if something is left without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("models", nargs="*", default=["tf1", "caffe"])
    parser.add_argument("--corpus", help="the folder with the cases")
    parser.add_argument("--all", action="store_true", help="list models without such ops, too")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    totals: Counter[str] = Counter()
    for name, path, outputs in _models(options.models, options.corpus):
        try:
            without = count(path, CompileOptions(outputs=outputs, disable=LINEAR))
            left = count(path, CompileOptions(outputs=outputs))
        except (FrontendError, PassFailedException) as error:
            rows.append([name, "refused", str(error).splitlines()[0][:60], ""])
            continue
        reasons = Counter(reason for _, reason in left)
        totals.update(models=1, without=len(without), left=len(left), free=reasons[FREE])
        if without or left or options.all:
            rows.append([name, str(len(without)), str(len(left)), _text(reasons)])
        for text, reason in left:
            print(f"{name}: {text}: {reason}", file=sys.stderr)
    print(text_table(("model", "without", "after", "why"), rows))
    print(
        f"{totals['models']} models: {totals['without']} without the passes, "
        f"{totals['left']} left, {totals['free']} of them for no reason"
    )
    return int(totals["free"] > 0)


def _text(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(main())
