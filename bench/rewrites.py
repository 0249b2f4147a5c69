"""What `passes.py` and `gains.py` have in common: models, optional passes, and rewrites by pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from bench.reference import recorded_inputs
from lowerdeck.compiler import CompileOptions
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.lowering.pipeline import ALL_PASSES, Observer, passes_of_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.driver import PassGroup, PatternPass
from models.corpus import corpus_folder, load_cases
from models.operator_forms import forms

REFUSALS = (FrontendError, LoweringError, PassFailedException)

FORMS = "forms="
RARE = f"{FORMS}quantized_(?!qdq)|f16|control|resize|softmax_by|matmul_128x3072x768$"
"""
Operators for passes that models of floats do not need; not such whose results are rounded to bytes,
where an error in the last place is one of a whole unit.
"""


def leaves(names: Iterable[str]) -> Iterator[str]:
    """The optional passes among these, and among the members of groups; each once."""
    seen: set[str] = set()
    for name in names:
        class_ = ALL_PASSES[name]()
        members = class_.members if issubclass(class_, PassGroup) else (class_,)
        for member in members:
            if getattr(member, "optional", False) and member.name not in seen:
                seen.add(member.name)
                yield member.name


def optional_passes(phases: Sequence[str]) -> list[str]:
    """The optional passes of the compiler's way through these phases, without groups."""
    options = CompileOptions(target="c99")
    return list(leaves(name for phase in phases for name in passes_of_phase(phase, options)))


CORE = optional_passes(["optimized"])
FORM = [name for name in optional_passes(["kernels"]) if name not in CORE]
LOOPS = optional_passes(["buffer", "scheduled"])
ALL = [*CORE, *FORM, *LOOPS]


@dataclass(frozen=True)
class Subject:
    """A model, and what of it is asked for."""

    name: str
    path: str
    outputs: Sequence[str] | None = None
    inputs: Mapping[str, NDArray[Any]] | None = None

    def options(self, disable: Iterable[str] = ()) -> CompileOptions:
        """The options of a compilation without some passes."""
        return CompileOptions(outputs=self.outputs, disable=frozenset(disable))


def default_models() -> list[str]:
    """The models that stand beside the project, the corpora, and operators."""
    return [str(Path(__file__).parents[2] / "models"), "tf1", "caffe", RARE]


def subjects(given: Sequence[str], corpus: str | None, scratch: Path) -> Iterator[Subject]:
    """The models that the arguments stand for; operators are written to `scratch`."""
    for name in given:
        if name in ("tf1", "caffe"):
            folder = corpus_folder(corpus)
            if folder is None:
                raise SystemExit("no corpus: give --corpus or set LOWERDECK_CORPUS")
            for case in load_cases(folder, name):
                inputs, _ = next(case.samples())
                yield Subject(f"{name}/{case.name}", str(case.model), case.outputs, inputs)
            continue
        if name.startswith(FORMS):
            yield from _forms(name.removeprefix(FORMS), scratch)
            continue
        path = Path(name)
        for file in sorted(path.glob("*.onnx")) if path.is_dir() else [path]:
            arrays = file.with_suffix(".npz")
            known = recorded_inputs(str(arrays)) if arrays.exists() else {}
            yield Subject(file.stem, str(file), inputs=known or None)


def _forms(pattern: str, folder: Path) -> Iterator[Subject]:
    for name, form in forms().items():
        if re.search(pattern, name):
            model, inputs = form.build()
            path = folder / f"{name}.onnx"
            path.write_bytes(model.SerializeToString())
            yield Subject(name, str(path), inputs=inputs)


class RewriteCounter(Observer):
    """Counts rewrites by pass; of passes that record none, each change of the module's text."""

    def __init__(self, context: LowerdeckContext) -> None:
        self._context = context
        self._text: str | None = None
        self.changes: Counter[str] = Counter()

    @property
    def rewrites(self) -> Counter[str]:
        """By pass."""
        found = Counter(self.changes)
        for (name, _), count in self._context.recorder.statistics.items():
            found[name] += count
        return found

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        self._text = str(module) if self._is_silent(pass_) else None

    def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        if self._text is None or any(n == pass_.name for n, _ in self._context.recorder.statistics):
            return
        self.changes[pass_.name] += str(module) != self._text

    def _is_silent(self, pass_: ModulePass) -> bool:
        return pass_.name in ALL and not isinstance(pass_, PatternPass)
