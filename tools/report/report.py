"""The report of a model: gathered in one compilation, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.explain import COUNTS, Explanation, count_in, counts_data, explain
from lowerdeck.tools.report.layers import (
    Layer,
    by_operator,
    layers_of,
    operators_of,
    plain,
    shape_text,
    written,
)
from lowerdeck.tools.report.memory import MemoryPlan, memory_plan, with_stack
from lowerdeck.tools.text_table import table_lines

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.passes.machinery.statistics import Statistics
    from lowerdeck.tools.report.roofline import Roofline

_LEGAL = "infer-shapes"
"""The pass after which every op is of `core`, and has its shapes, for the first time."""

_COUNTS = tuple(name for name in COUNTS if name != "kernels")
"""What is counted of ops that are in no kernels yet."""

_SHOWN_OF_OPERATORS = ("parameters", "flops", "bytes_moved")

_FORMULA_WIDTH = 200
"""Characters of a formula in a sentence."""

_NAME_WIDTH = 60
"""Characters of a name in a table."""


@dataclass(frozen=True)
class Report:
    """What is said of a model."""

    model: str
    read: Statistics
    """Of the model file: its parameters."""
    total: Statistics
    """Of the ops that it means, before any optimization."""
    optimized: Statistics
    layers: Sequence[Layer]
    explanation: Explanation
    memory: MemoryPlan | None
    roofline: Roofline | None = None
    """Of a run on this machine, if there was one."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.model,
            "parameters": self.read.parameters,
            "parameter_bytes": self.read.parameter_bytes,
            "total": counts_data(self.total, _COUNTS),
            "optimized": counts_data(self.optimized, _COUNTS),
            "layers": [layer.data() for layer in self.layers],
            "operators": [
                {name: one if isinstance(one, str) else plain(one) for name, one in row.items()}
                for row in by_operator(self.layers)
            ],
            "passes": self.explanation.data()["passes"],
            "memory": None if self.memory is None else self.memory.data(),
            "roofline": None if self.roofline is None else self.roofline.data(),
        }

    def text(self, *, wide: bool = False) -> str:
        """As tables for a terminal; names are cut short unless they are to be `wide`."""
        width = None if wide else _NAME_WIDTH
        parts = [
            [self.model, *self.summary()],
            ["Layers", *_layer_lines(self.layers, width)],
            ["Operators", *_operator_lines(self.layers, width)],
            ["Passes", *self.explanation.text().splitlines()],
        ]
        if self.memory is not None:
            parts.append(["Memory", *_memory_lines(self.memory, width)])
        if self.roofline is not None:
            parts.append(["Roofline", *self.roofline.lines(width)])
        return "\n\n".join("\n".join(lines) for lines in parts)

    def summary(self) -> list[str]:
        """The totals as sentences."""
        total, optimized = self.total, self.optimized
        lines = [
            f"{len(self.layers)} layers, {self.read.parameters:,} parameters in "
            f"{self.read.parameter_bytes:,} bytes",
            f"{_amount(total, 'multiply_adds')} multiply-adds, {_amount(total, 'flops')} FLOPs, "
            f"{_amount(total, 'bytes_moved')} bytes moved",
            f"optimized: {optimized.operations} ops, {optimized.parameters:,} parameters, "
            f"{_amount(optimized, 'flops')} FLOPs, {_amount(optimized, 'bytes_moved')} bytes moved",
        ]
        if total.formulas:
            lines.append("sizes are open: --dim NAME=N or --input-shape gives numbers")
        if total.inexact - total.formulas.keys():
            lines.append("loops that end by a condition count as one iteration")
        if self.memory is not None:
            lines.append(memory_sentence(self.memory))
            if (read := self.read.parameter_bytes) and self.memory.weights > 1.05 * read:
                lines.append(
                    f"weights are {self.memory.weights / read:.2f} times those of the model: "
                    "algorithms transform or pad them; --small-weights leaves that out"
                )
        return lines


def amount(value: int | None) -> str:
    """A number in few digits: 4.09 G."""
    if value is None:
        return "?"
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return str(value)


def _amount(statistics: Statistics, name: str) -> str:
    value = count_in(statistics, name)
    if value is None or isinstance(value, int):
        return amount(value)
    return written(value, _FORMULA_WIDTH)


def memory_sentence(memory: MemoryPlan) -> str:
    """What the compiled model needs for a target."""
    total = f"{memory.total:,} bytes" if isinstance(memory.total, int) else "bytes by sizes"
    arena, inputs, outputs, state = (
        written(size, _FORMULA_WIDTH)
        for size in (memory.arena, memory.inputs, memory.outputs, memory.state)
    )
    remembered = f", state {state}" if memory.state else ""
    text = (
        f"memory for {memory.target}: {total} (weights {memory.weights:,}, arena {arena}, "
        f"inputs {inputs}, outputs {outputs}{remembered}), and code "
        f"and at most {memory.stack:,} of stack"
    )
    return (
        f"{text}; buffers of sizes that depend on data besides" if memory.uses_allocator else text
    )


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


def _layer_lines(layers: Sequence[Layer], width: int | None) -> list[str]:
    rows = [
        [
            _cut(layer.name, width),
            layer.operator,
            shape_text(layer.shape, "×"),
            f"{layer.parameters:,}",
            written(layer.flops, width),
            written(layer.bytes_moved, width),
        ]
        for layer in layers
    ]
    head = ("layer", "operator", "result", "parameters", "FLOPs", "bytes moved")
    return table_lines(head, rows, left=(0, 1, 2))


def _operator_lines(layers: Sequence[Layer], width: int | None) -> list[str]:
    rows = [
        [
            str(row["operator"]),
            *(written(row[name], width) for name in ("count", *_SHOWN_OF_OPERATORS)),
        ]
        for row in by_operator(layers)
    ]
    return table_lines(("operator", "layers", "parameters", "FLOPs", "bytes moved"), rows)


def _memory_lines(memory: MemoryPlan, width: int | None) -> list[str]:
    if memory.steps is None or memory.peak is None:
        return [memory_sentence(memory), "where it lies depends on sizes that are open"]
    top = max(memory.peak, 1)
    rows = [
        [
            step.kernel,
            f"{step.live:,}",
            "#" * round(30 * step.live / top),
            f"{step.weights:,}",
            _cut(", ".join(step.nodes), width),
        ]
        for step in memory.steps
    ]
    return [
        memory_sentence(memory),
        f"at most {memory.peak:,} bytes of the arena are live at once",
        "",
        *table_lines(("kernel", "live", "", "weights", "nodes"), rows, left=(0, 2, 4)),
    ]


def report(path: str, options: CompileOptions) -> Report:
    """Compile a model, and gather what is to be said of it."""
    from lowerdeck.lowering.targets import target_named
    from lowerdeck.passes.machinery.statistics import statistics_of

    operators: dict[str, str] = {}
    layers: list[Layer] = []
    counts: dict[str, Statistics] = {}
    plan: list[MemoryPlan | None] = []

    def watch(pass_name: str, module: ModuleOp) -> None:
        if not pass_name:
            operators.update(operators_of(module))
            counts["read"] = statistics_of(module)
        elif pass_name == _LEGAL and "legal" not in counts:
            layers.extend(layers_of(module, operators))
            counts["legal"] = statistics_of(module)
        elif pass_name == "plan-memory":
            plan.append(memory_plan(module, target_named(options.target).name))
        elif pass_name == "split-entry" and plan and plan[0] is not None:
            plan[0] = with_stack(plan[0], module)

    explanation = explain(path, options, watch)
    optimized = [effect.after for effect in explanation.effects if effect.phase == "optimized"]
    return Report(
        path,
        counts["read"],
        counts["legal"],
        optimized[-1] if optimized else counts["legal"],
        layers,
        explanation,
        plan[0] if plan else None,
    )


def rewrites_of(passes: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The rewrites of all passes by pattern, the most first."""
    found: dict[str, int] = {}
    for one in passes:
        for name, count in one["rewrites"].items():
            found[name] = found.get(name, 0) + count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
