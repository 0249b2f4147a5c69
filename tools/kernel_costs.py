"""`lowerdeck explain --cycles`: what a kernel takes, term by term, beside the measured time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.text_table import table_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.lowering.cost.cycles import Cost
    from lowerdeck.passes.machinery.options import CompileOptions

TERMS = ("units", "L2", "shared", "memory", "jumps", "starts")
"""As `lowering/cost` names them."""

_NOTE = (
    "cycles of one core: those of the slowest of units and caches, and of starts; sizes that are "
    "open are assumed"
)


@dataclass(frozen=True)
class KernelCost:
    """A kernel with its computed cost, and what it took."""

    kernel: str
    schedule: str
    cost: Cost
    measured: float | None
    """Cycles of one call; None if it was not measured."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        own = {"kernel": self.kernel, "schedule": self.schedule, "total": self.cost.total}
        return {**own, "terms": self.cost.terms(), "measured": self.measured}


def kernel_costs(
    path: str, options: CompileOptions, inputs: Mapping[str, NDArray[Any]] | None
) -> list[KernelCost]:
    """
    The kernels of a model in order; with inputs, compiled and run. `options` has `profile` then.

    BuildError if there is no C compiler.
    """
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.compiler import import_and_lower, load
    from lowerdeck.dialects.buffer.kernel import functions_of
    from lowerdeck.dialects.recursion import working_on_modules
    from lowerdeck.lowering import emit
    from lowerdeck.lowering.cost.cycles import cycles
    from lowerdeck.lowering.pipeline import Observer, run_to_phase
    from lowerdeck.lowering.targets import target_named
    from lowerdeck.model_folders import build_artifact
    from lowerdeck.reading import model_name

    target = target_named(options.target)
    costs: dict[str, tuple[str, Cost]] = {}

    class Computing(Observer):
        def after_phase(self, phase: str, module: ModuleOp) -> None:
            for name, function in functions_of(module).items() if phase == "scheduled" else ():
                schedule = "" if function.schedule is None else str(function.schedule.data)
                costs[name] = (schedule, cycles(function, target))

    with working_on_modules():
        module, context = import_and_lower(path, "imported", options)
        # Whole kernels, and not the parts of them that threads share.
        undivided = {"parallelize": None}
        run_to_phase(context, module, "scheduled", Computing(), after="imported", instead=undivided)
        taken: dict[str, float] = {}
        if inputs is not None:
            with TemporaryDirectory(prefix="lowerdeck-") as folder:
                build_artifact(emit(context, module, model_name(path)), folder)
                taken = _measured(load(folder), inputs, list(costs))
    return [KernelCost(name, *own, taken.get(name)) for name, own in costs.items()]


def _measured(
    model: Any, inputs: Mapping[str, NDArray[Any]], kernels: Sequence[str]
) -> dict[str, float]:
    """Cycles of one call, by kernel; those of its parts are its own."""
    from lowerdeck.tools.peak import MultiplyAdds
    from lowerdeck.tune import kernel_of

    per_second = MultiplyAdds().cycles_per_second()
    found: dict[str, float] = {}
    for entry in model.profile(inputs, seconds=0.5).kernels:
        if (name := kernel_of(entry.kernel, kernels)) is not None and entry.calls:
            found[name] = found.get(name, 0.0) + entry.seconds / entry.calls * per_second
    return found


def text_of(found: Sequence[KernelCost], origin: str) -> str:
    """As a table for a person."""
    is_measured = any(each.measured is not None for each in found)
    head = [
        "kernel",
        *TERMS,
        "computed",
        *(["measured", "ratio"] if is_measured else []),
        "schedule",
    ]
    rows: list[list[str]] = []
    for each in found:
        terms, row = each.cost.terms(), [each.kernel]
        row += [f"{terms[name]:,.0f}" for name in TERMS] + [f"{each.cost.total:,.0f}"]
        if is_measured:
            ratio = (
                "" if each.measured is None else f"{each.measured / max(each.cost.total, 1):.2f}"
            )
            row += ["" if each.measured is None else f"{each.measured:,.0f}", ratio]
        rows.append([*row, each.schedule])
    return "\n".join([*table_lines(head, rows), "", _NOTE, origin])
