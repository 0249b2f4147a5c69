"""One file that shows a graph: the page with its scripts, its style and its data."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

SCRIPTS = ("dagre.min.js", "model.js", "layout.js", "view.js")
"""In the order in which they need one another; the last one needs a browser."""

_JAVASCRIPT = ("node", "nodejs")
"""Programs that run the layout without a browser."""


class NoJavaScriptError(Exception):
    """Nothing here runs the layout."""


def _static(name: str) -> str:
    return (files("lowerdeck.tools.view") / "static" / name).read_text(encoding="utf-8")


def page(data: Mapping[str, Any]) -> str:
    """The HTML of a page that needs nothing else."""
    license_ = _static("dagre.LICENSE")
    scripts = "\n".join(f"<script>\n{_static(name)}\n</script>" for name in SCRIPTS)
    # Inside of a script element, only `</` and `<!` mean anything.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "TITLE": _escaped(str(data["title"])),
        "STYLE": _static("view.css"),
        "DATA": f'<script type="application/json" id="data">{text}</script>',
        "SCRIPTS": f"<!-- dagre:\n{license_}-->\n{scripts}",
    }
    html = _static("page.html")
    head, *rest = html.split("@@")
    # Alternately a name and the text after it.
    return head + "".join(
        parts[part] if position % 2 == 0 else part for position, part in enumerate(rest)
    )


def svg(data: Mapping[str, Any]) -> str:
    """The picture of the last stage as SVG; NoJavaScriptError where there is no node."""
    program = next(filter(None, map(shutil.which, _JAVASCRIPT)), None)
    if program is None:
        raise NoJavaScriptError(
            f"needs {' or '.join(_JAVASCRIPT)} to lay the graph out; the page has a button for it"
        )
    scripts = "\n".join(map(_static, SCRIPTS[:-1]))
    source = (
        f"{scripts}\n"
        "const data = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        f"process.stdout.write(standaloneSvg(data, {json.dumps(_static('view.css'))}));\n"
    )
    result = subprocess.run(
        [program, "-e", source], input=json.dumps(data), capture_output=True, text=True, check=True
    )
    return result.stdout


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
