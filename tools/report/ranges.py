"""How layers are quantized, as one HTML file with a picture, which needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from string import Template

from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from lowerdeck.tools.report.html import static_text, table

_WIDTH, _HEIGHT = 1100, 280
"""Of the picture, in pixels."""

_WIDEST = 40
"""Pixels of the bar of a layer."""

_LEAST_ERROR = 1e-7
"""Errors that are smaller have no bar."""

_COLORS = {"int8": "#3b7dd8", "int8, inputs of 2 bytes": "#8a5fc7", "f32": "#c9c9c9"}

HEAD = ("layer", "precision", "range", "clipped", "products", "error alone")
"""What `rows_of` says of a layer."""


def rows_of(ranges: Ranges) -> list[tuple[str, ...]]:
    """The layers, in the order of the model."""
    return [_row(layer) for layer in ranges.layers]


def totals_of(ranges: Ranges) -> list[str]:
    """Sentences on the whole."""
    found = [
        f"{sum(layer.precision == 'int8' for layer in ranges.layers)} of {len(ranges.layers)} "
        f"layers are computed from bytes, "
        f"{sum(layer.share for layer in ranges.layers if layer.precision == 'int8'):.1%} of "
        "multiplications"
    ]
    errors = {k: layer.error_of_byte or 0.0 for k, layer in enumerate(ranges.layers)}
    worst = max(errors, key=errors.__getitem__, default=0)
    if errors.get(worst):
        found.append(
            f"with inputs of one byte, layer {worst} ({ranges.layers[worst].node}) alone would "
            f"lose most: {errors[worst]:.2e}"
        )
    if ranges.drop is not None:
        bound = "" if ranges.bound is None else f"; on others at most about {ranges.bound:.4g}"
        found.append(f"{ranges.metric} on samples held back: {ranges.drop:.4g}{bound}")
    return found


def html_of_ranges(ranges: Ranges, model: str) -> str:
    """The text of the file."""
    has_errors = any(layer.error for layer in ranges.layers)
    what = (
        "The height of a bar is the error of the outputs by norm if the layer alone is quantized, "
        "on a logarithmic scale"
        if has_errors
        else "The height of a bar is the layer's share of multiplications; with --max-drop it is "
        "the error that the layer makes alone"
    )
    how = f"{ranges.samples} samples, ranges by {ranges.method}" if ranges.samples else ""
    return Template(static_text("ranges.html")).substitute(
        title=escape(f"Precision of {model}"),
        style=static_text("report.css"),
        summary="<br>".join(map(escape, filter(None, [how, *totals_of(ranges)]))),
        legend=f"{what}. {_legend(ranges)}",
        picture=_picture(ranges.layers, has_errors=has_errors),
        layers=table(HEAD, rows_of(ranges), left=2),
    )


def _row(layer: LayerRange) -> tuple[str, ...]:
    is_of_rows = layer.low is None
    return (
        layer.node,
        _precision(layer),
        "each row" if is_of_rows else f"{layer.low:.4g} to {layer.high:.4g}",
        "" if is_of_rows else f"{layer.clipped:.3%}",
        f"{layer.share:.1%}",
        "" if layer.error is None else f"{layer.error:.2e}",
    )


def _precision(layer: LayerRange) -> str:
    is_wide = layer.bytes > 1 and layer.precision == "int8"
    return f"{layer.precision}, inputs of 2 bytes" if is_wide else layer.precision


def _legend(ranges: Ranges) -> str:
    used = dict.fromkeys(map(_precision, ranges.layers))
    return " ".join(
        f'<svg width="12" height="12"><rect width="12" height="12" fill="{_COLORS[name]}"/></svg> '
        f"{escape(name)}"
        for name in used
    )


def _picture(layers: Sequence[LayerRange], *, has_errors: bool) -> str:
    """A bar for each layer, with its numbers where a pointer rests."""
    wide = min(_WIDTH / max(len(layers), 1), _WIDEST)
    heights = [_height(layer, has_errors) for layer in layers]
    most = max(heights, default=0.0) or 1.0
    bars = "".join(
        f'<rect x="{k * wide:.2f}" y="{_HEIGHT * (1 - height / most):.2f}" '
        f'width="{0.85 * wide:.2f}" height="{max(_HEIGHT * height / most, 1):.2f}" '
        f'fill="{_COLORS[_precision(layer)]}"><title>{escape(_told(layer))}</title></rect>'
        for k, (layer, height) in enumerate(zip(layers, heights, strict=True))
    )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT + 1}">{bars}</svg>'


def _height(layer: LayerRange, has_errors: bool) -> float:
    if not has_errors:
        return layer.share
    return max(math.log10((layer.error or 0.0) / _LEAST_ERROR), 0.0) if layer.error else 0.0


def _told(layer: LayerRange) -> str:
    named = zip(HEAD[1:], _row(layer)[1:], strict=True)
    return "\n".join([layer.node, *(f"{name}: {text}" for name, text in named if text)])
