"""The picture of a model for Python: a page that can be saved, and that notebooks show."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.files import replacing
from lowerdeck.dialects.recursion import working_on_modules
from lowerdeck.frontends import facts_of
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.type_inference import infer_types
from lowerdeck.reading import read_model
from lowerdeck.tools.view.graph import Graph
from lowerdeck.tools.view.page import page
from lowerdeck.tools.view.stages import Stage

_HEIGHT = 600
"""Pixels in a notebook."""


@dataclass(frozen=True)
class Picture:
    """The graph of a model as one page of HTML that needs nothing else."""

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page."""
        with replacing(os.fspath(path)) as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {_HEIGHT}px; border: 1px solid #ccc"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


def picture(path: str, options: CompileOptions, phase: str | None = None) -> Picture:
    """The model file as it was read, or at the end of a phase."""
    graph = Graph()
    with working_on_modules():
        if phase is None:
            module, _ = read_model(path, options)
            infer_types(module)
        else:
            module, _ = import_and_lower(path, phase, options)
        stage = Stage(phase or "as read", phase or "imported", graph.stage(module))
    title = os.path.basename(os.path.normpath(path))
    data = {**graph.data(), "title": title, "stages": [stage.data()], "facts": facts_of(path)}
    return Picture(page(data))
