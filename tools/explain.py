"""
`lowerdeck explain`: what each pass makes of a model.

Operations, FLOPs, parameters and bytes moved are those of `passes/machinery/statistics.py`;
rewrites are those that passes record.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from lowerdeck.tools.command import add_command, command_options, write_json
from lowerdeck.tools.common import about
from lowerdeck.tools.text_table import table_lines

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.dialects.dims import Expr
    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.passes.machinery.statistics import Statistics

COUNTS = (
    "operations",
    "kernels",
    "multiply_adds",
    "flops",
    "parameters",
    "parameter_bytes",
    "bytes_moved",
)
"""What is counted; the names are those of the JSON, too."""

_SHOWN = {
    "operations": "ops",
    "flops": "FLOPs",
    "parameters": "parameters",
    "parameter_bytes": "their bytes",
    "bytes_moved": "bytes moved",
}
"""The columns of the table."""


@dataclass(frozen=True)
class Effect:
    """What one pass has done."""

    phase: str
    pass_name: str
    before: Statistics
    after: Statistics
    rewrites: Mapping[str, int]
    """By "pass/pattern": a group names its members."""

    @property
    def change(self) -> dict[str, Count | None]:
        """By what is counted; None where one of both counts is not known."""
        return {name: _difference(self.before, self.after, name) for name in COUNTS}

    @property
    def is_idle(self) -> bool:
        """True if it has made no rewrite and changed no count."""
        return not self.rewrites and not any(self.change.values())


Count: TypeAlias = "int | Expr"
"""A number, or a formula of sizes that are open."""


def count_in(statistics: Statistics, name: str) -> Count | None:
    """One of the counts, as a formula where it depends on sizes that are open."""
    formula = statistics.formulas.get(name)
    return getattr(statistics, name) if formula is None else formula


def _difference(before: Statistics, after: Statistics, name: str) -> Count | None:
    old, new = count_in(before, name), count_in(after, name)
    if old is None or new is None:
        return None
    change = new - old
    number = change if isinstance(change, int) else change.value
    return change if number is None else number


@dataclass(frozen=True)
class Explanation:
    """All passes of one compilation, in order."""

    model: str
    effects: Sequence[Effect]

    def data(self) -> dict[str, Any]:
        """As JSON; a count is null where it is not known: before legalization, and on loops."""
        return {
            "model": self.model,
            "passes": [
                {
                    "phase": effect.phase,
                    "pass": effect.pass_name,
                    "change": {name: _plain(change) for name, change in effect.change.items()},
                    "after": counts_data(effect.after),
                    "rewrites": dict(effect.rewrites),
                }
                for effect in self.effects
            ],
        }

    def text(self, *, all_passes: bool = False) -> str:
        """As a table for a person, without passes that did nothing."""
        rows: list[list[str]] = []
        phase = ""
        for effect in self.effects:
            if effect.phase != phase:
                phase = effect.phase
                last = [other for other in self.effects if other.phase == phase][-1]
                counts = [_number(last.after, name) for name in _SHOWN]
                rows.append([f"{phase}:", *counts, ""])
            if effect.is_idle and not all_passes:
                continue
            changes = [_signed(effect.change[name]) for name in _SHOWN]
            total = sum(effect.rewrites.values())
            rows.append([f"  {effect.pass_name}", *changes, str(total) if total else ""])
            for name, count in sorted(
                effect.rewrites.items(), key=lambda item: (-item[1], item[0])
            ):
                rows.append([f"    {name}", *[""] * len(_SHOWN), str(count)])
        head = ["phase, pass, pattern", *_SHOWN.values(), "rewrites"]
        lines = table_lines(head, rows)
        if any(effect.after.inexact for effect in self.effects):
            lines += ["", _NOTE]
        return "\n".join(lines)


def counts_data(statistics: Statistics, names: Sequence[str] = COUNTS) -> dict[str, Any]:
    """Counts as JSON, and which of them take sizes that are not known for 1."""
    counts = {name: _plain(count_in(statistics, name)) for name in names}
    return {**counts, "inexact": sorted(statistics.inexact)}


def _plain(value: Count | None) -> int | str | None:
    return value if value is None or isinstance(value, int) else str(value)


_WIDTH = 24
"""Characters of a formula in the table."""

_NOTE = (
    "~ sizes are open, or loops end by a condition and count once; --dim NAME=N or --input-shape "
    "gives numbers, --json whole formulas"
)


def _number(statistics: Statistics, name: str) -> str:
    value = count_in(statistics, name)
    mark = "~" if name in statistics.inexact else ""
    return "" if value is None else f"{mark}{_written(value)}"


def _written(value: Count, sign: str = "") -> str:
    if isinstance(value, int):
        return f"{value:{sign},}"
    text = str(value)
    return text if len(text) <= _WIDTH else "..."


def _signed(value: Count | None) -> str:
    return "" if value is None or value == 0 else _written(value, "+")


def explain(
    path: str,
    options: CompileOptions,
    watch: Callable[[str, ModuleOp], None] = lambda pass_name, module: None,
) -> Explanation:
    """
    Compile a model up to C, and count after each pass; `watch` gets each pass's name and the module
    as it is then, first that of the import, by the name "".
    """
    from xdsl.passes import ModulePass

    from lowerdeck.compiler import import_and_lower
    from lowerdeck.dialects.recursion import working_on_modules
    from lowerdeck.lowering.pipeline import Observer, run_to_phase
    from lowerdeck.passes.machinery.statistics import statistics_of

    module, context = import_and_lower(path, "imported", options)
    watch("", module)
    effects: list[Effect] = []

    class Counting(Observer):
        def __init__(self) -> None:
            self.counts = statistics_of(module)
            self.rewrites: Counter[tuple[str, str]] = Counter()

        def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
            options.progress(pass_.name)

        def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
            before, self.counts = self.counts, statistics_of(module)
            now = context.recorder.statistics
            made = {f"{own}/{pattern}": n for (own, pattern), n in (now - self.rewrites).items()}
            self.rewrites = Counter(now)
            effects.append(Effect(phase, pass_.name, before, self.counts, made))
            watch(pass_.name, module)

    with working_on_modules():
        run_to_phase(context, module, "scheduled", Counting())
    return Explanation(path, effects)


def add_explain(commands: Any) -> None:
    """The command and its arguments."""
    text = "say what each pass changes: operations, FLOPs, parameters, bytes moved, rewrites"
    one = add_command(commands, "explain", _explain, text)
    one.epilog = (
        "a line of a phase has the counts at its end, one of a pass what it has changed; two FLOPs "
        "are a multiply-add; bytes moved are read and written by ops, or by kernels once there are "
        "any"
    )
    one.add_argument("--json", metavar="F", dest="report", help="also write the counts to F")
    one.add_argument("--all", action="store_true", help="list passes that change nothing, too")
    one.add_argument(
        "--cycles",
        action="store_true",
        help="instead, say what each kernel takes: the cycles that are computed from its loops and "
        "the numbers of the machine, term by term, beside those measured here on random inputs",
    )


def _explain(args: argparse.Namespace) -> int:
    from lowerdeck.tools.progress import progress

    if args.cycles:
        return _explain_cycles(args)

    with about(args.model), progress() as shown:
        found = explain(args.model, command_options(args, shown))
    print(found.text(all_passes=args.all))
    if args.report:
        write_json(args.report, found.data())
    return 0


def _explain_cycles(args: argparse.Namespace) -> int:
    from lowerdeck.lowering.targets import machine_origin, obstacle
    from lowerdeck.tools.command import random_inputs
    from lowerdeck.tools.kernel_costs import kernel_costs, text_of
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        runs = obstacle(options.target) is None and options.threads == 1
        inputs = random_inputs(args, options) if runs else None
        found = kernel_costs(args.model, replace(options, profile=runs), inputs)
    print(text_of(found, machine_origin(options.target)))
    if args.report:
        write_json(args.report, [each.data() for each in found])
    return 0
