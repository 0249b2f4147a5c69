"""The report as one HTML file, which needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from lowerdeck.tools.explain import count_in
from lowerdeck.tools.report.layers import by_operator, shape_text, written
from lowerdeck.tools.report.memory import MemoryPlan
from lowerdeck.tools.report.report import Report, rewrites_of
from lowerdeck.tools.report.roofline import Roofline

_FORMULA_WIDTH = 60
"""Characters of a formula in the table of passes."""

_WIDTH, _HEIGHT = 1100, 320
"""Of the picture of the arena, in pixels."""


def html(report: Report) -> str:
    """The text of the file."""
    data = report.data()
    memory = report.memory
    return Template(static_text("report.html")).substitute(
        title=escape(report.model),
        style=static_text("report.css"),
        summary="<br>".join(map(escape, report.summary())),
        arena="<p>There is no plan.</p>" if memory is None else _arena(memory),
        steps="" if memory is None else _steps(memory),
        roofline="" if report.roofline is None else _roofline(report.roofline),
        operators=table(
            ("operator", "layers", "parameters", "FLOPs", "bytes moved"),
            (
                (row["operator"], *(written(row[name]) for name in _COUNTS))
                for row in by_operator(report.layers)
            ),
            left=1,
        ),
        layers=table(
            ("layer", "operator", "result", "parameters", "FLOPs", "bytes moved"),
            (
                (
                    layer.name,
                    layer.operator,
                    shape_text(layer.shape, "×"),
                    f"{layer.parameters:,}",
                    written(layer.flops),
                    written(layer.bytes_moved),
                )
                for layer in report.layers
            ),
            left=3,
        ),
        passes=_passes(report),
        rewrites=table(
            ("pattern", "rewrites"),
            ((name, str(count)) for name, count in rewrites_of(data["passes"])),
            left=1,
        ),
    )


_COUNTS = ("count", "parameters", "flops", "bytes_moved")


def static_text(name: str) -> str:
    """A file beside this one."""
    return (files("lowerdeck.tools.report") / "static" / name).read_text(encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """The first columns are text, the others numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        texts = (
            f"<{tag}{'' if k < left else ' class=number'}>{escape(cell)}</{tag}>"
            for k, cell in enumerate(cells)
        )
        return f"<tr>{''.join(texts)}</tr>"

    return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def _passes(report: Report) -> str:
    shown = ("operations", "flops", "parameters", "bytes_moved")
    rows: list[Sequence[str]] = []
    for effect in report.explanation.effects:
        if effect.is_idle:
            continue
        cells: list[str] = []
        for name in shown:
            before, after = count_in(effect.before, name), count_in(effect.after, name)
            if after is None or before == after:
                cells.append("")
                continue
            start = "?" if before is None else written(before, _FORMULA_WIDTH)
            cells.append(f"{start} → {written(after, _FORMULA_WIDTH)}")
        rows.append((effect.phase, effect.pass_name, *cells, str(sum(effect.rewrites.values()))))
    head = ("phase", "pass", "ops", "FLOPs", "parameters", "bytes moved", "rewrites")
    return table(head, rows, left=2)


def _steps(memory: MemoryPlan) -> str:
    if memory.steps is None or memory.peak is None:
        return ""
    top = max(memory.peak, 1)
    rows = "".join(
        f"<tr><td class=number>{k}</td><td>{escape(step.kernel)}</td>"
        f'<td class=number>{step.live:,}</td><td><span class="bar" style="width:'
        f'{200 * step.live / top:.0f}px"></span></td><td class=number>{step.weights:,}</td>'
        f"<td>{escape(', '.join(step.nodes))}</td></tr>"
        for k, step in enumerate(memory.steps)
    )
    head = "<tr><th>step<th>kernel<th class=number>live bytes<th><th class=number>weights<th>nodes"
    return f"<table>{head}{rows}</table>"


def _roofline(roofline: Roofline) -> str:
    sentences = "<br>".join(map(escape, roofline.summary()))
    return f"<h2>Roofline</h2><p>{sentences}</p>{roofline.picture()}"


def _arena(memory: MemoryPlan) -> str:
    """Time to the right, addresses upward."""
    if memory.steps is None or memory.buffers is None or memory.peak is None:
        return f"<p>Arena: {escape(written(memory.arena))}</p>"
    arena = memory.arena if isinstance(memory.arena, int) else 0
    wide = _WIDTH / max(len(memory.steps), 1)
    high = _HEIGHT / max(arena, memory.peak, 1)
    boxes = "".join(
        f'<rect class="buffer" x="{one.start * wide:.2f}" '
        f'y="{_HEIGHT - (one.offset + one.size) * high:.2f}" '
        f'width="{(one.end - one.start + 1) * wide:.2f}" height="{one.size * high:.2f}">'
        f"<title>{escape(', '.join(one.nodes) or 'buffer')}: {one.size:,} bytes at "
        f"{one.offset:,}, steps {one.start} to {one.end}</title></rect>"
        for one in memory.buffers
    )
    line = " ".join(
        f"{x * wide:.2f},{_HEIGHT - step.live * high:.2f}"
        for k, step in enumerate(memory.steps)
        for x in (k, k + 1)
    )
    return (
        f'<svg class="arena" width="{_WIDTH}" height="{_HEIGHT + 18}">{boxes}'
        f'<polyline points="{line}"/><text x="4" y="{_HEIGHT + 13}">'
        f"{len(memory.steps)} steps; arena {arena:,} bytes, at most {memory.peak:,} live"
        "</text></svg>"
    )
