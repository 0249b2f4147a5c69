"""`lowerdeck view`: what is in the page, and what it does in a browser, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Generator, Mapping
from functools import partial
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from lowerdeck.compiler import import_and_lower
from lowerdeck.dialects.interpret import run_module
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.tools.lowerdeck import main
from lowerdeck.tools.view.errors import make_outputs
from lowerdeck.tools.view.page import page
from lowerdeck.tools.view.weights import weight_statistics

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed"
)

WEIGHTS = np.array([[-1.0, 0.0], [0.0, 3.0]], np.float32)


def write(path: Path, nodes: list[onnx.NodeProto], shape: list[Any] | None = None) -> Path:
    """A model of one input `x` and the output `y`, with the weights `w`."""
    dims: list[Any] = [2, 2] if shape is None else shape
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def cancelling(folder: Path) -> Path:
    """y = relu(-(-(x w))), whose negations cancel; `a` and `b` are scopes."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="/a/one/MatMul"),
        helper.make_node("Neg", ["p"], ["q"], name="/a/two/Neg"),
        helper.make_node("Neg", ["q"], ["r"], name="/a/two/Neg_1"),
        helper.make_node("Relu", ["r"], ["y"], name="/b/Relu </script>"),
    ]
    return write(folder / "m.onnx", nodes)


def composed(folder: Path) -> Path:
    """y = tanh(sin(exp(x))), whose last digits depend on how they are computed."""
    nodes = [
        helper.make_node("Exp", ["x"], ["p"], name="/a/Exp"),
        helper.make_node("Sin", ["p"], ["q"], name="/a/Sin"),
        helper.make_node("Tanh", ["q"], ["y"], name="/b/Tanh"),
    ]
    return write(folder / "f.onnx", nodes, [64, 16])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return cancelling(tmp_path)


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    return composed(tmp_path)


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def view(model: Path, *arguments: str) -> dict[str, Any]:
    out = model.with_suffix(".html")
    assert main(["view", str(model), "-o", str(out), *arguments]) == 0
    return data_of(out.read_text())


def ops_of(data: dict[str, Any], stage: int = -1) -> list[dict[str, Any]]:
    return [data["records"][position] for position in data["stages"][stage]["ops"]]


Look: TypeAlias = Generator[tuple[Path, str], Any, None]
"""Gives a model, whose page is written, and a script; then looks at what that returned in it."""


class Browser:
    """Pages that one browser shows side by side: to start it takes longer than all they do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._frames: list[str] = []

    def show(self, model: Path, script: str) -> int:
        """Add the page of a model, and what is run in it once it is shown; returns its number."""
        number = len(self._frames)
        harness = (
            f"<script>parent.document.body.dataset.page{number} = JSON.stringify((() => {{"
            "try {" + script + "} catch (error) { return String(error.stack); }})());</script>"
        )
        page = model.with_suffix(".html").read_text().replace("</body>", f"{harness}</body>")
        self._frames.append(f'<iframe width="1400" height="900" srcdoc="{escape(page)}"></iframe>')
        return number

    def run(self) -> list[Any]:
        """What the function bodies return, by the numbers of their pages."""
        whole = self.folder / "test.html"
        frames = "".join(self._frames)
        whole.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}</body>")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
        user = f"--user-data-dir={self.folder / 'user'}"
        result = subprocess.run(
            [str(BROWSER), *flags, user, "--dump-dom", str(whole)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        found = dict(re.findall(r'data-page(\d+)="([^"]*)"', result.stdout))
        assert len(found) == len(self._frames), (sorted(found), result.stderr)
        return [json.loads(unescape(found[str(k)])) for k in range(len(found))]


# The data


def test_page_needs_nothing_else(model: Path) -> None:
    data = view(model)
    html = model.with_suffix(".html").read_text()
    assert not re.search(r'(src|href)="', html)
    assert "Permission is hereby granted" in html  # the license of dagre
    assert html.count("</script>") == 5  # a name with `</script>` does not end the data
    assert data["title"] == "m.onnx"


def test_records(model: Path) -> None:
    ops = ops_of(view(model))
    assert [op["title"] for op in ops] == [
        *("func main", "inputs", "initializer", "MatMul", "Neg", "Neg", "Relu", "return")
    ]
    by_title = {op["title"]: op for op in ops}
    product, inputs, weight = by_title["MatMul"], by_title["inputs"], by_title["initializer"]
    assert product["in"] == [[inputs["id"], 0], [weight["id"], 0]]
    assert product["names"] == ["/a/one/MatMul"]
    assert product["parent"] == by_title["func main"]["id"]
    assert inputs["types"] == ["f32 2×2"]
    assert weight["kind"] == "constant"
    assert weight["params"] == 4


def test_shapes_and_work(model: Path) -> None:
    product = next(
        op for op in ops_of(view(model, "--phase", "legal")) if op["op"] == "core.matmul"
    )
    assert product["types"] == ["f32 2×2"]
    assert product["flops"] == 16
    assert product["bytes"] == 48


def test_what_was_read_has_shapes_and_no_counts(model: Path) -> None:
    """Shapes that the file does not give are those of what nodes are compiled to."""
    ops = ops_of(view(model))
    assert [op["types"] for op in ops if op["title"] in ("MatMul", "Neg", "Relu")] == [
        ["f32 2×2"]
    ] * 4
    assert not any("flops" in op or "bytes" in op for op in ops)


def test_constants_of_nodes_are_weights(tmp_path: Path) -> None:
    value = numpy_helper.from_array(WEIGHTS)
    nodes = [
        helper.make_node("Constant", [], ["k"], value=value),
        helper.make_node("Add", ["x", "k"], ["y"]),
    ]
    kinds = {op["title"]: op["kind"] for op in ops_of(view(write(tmp_path / "k.onnx", nodes)))}
    assert kinds["Constant"] == "constant"
    assert kinds["Add"] == "map"


def test_weights_are_described(model: Path) -> None:
    data = view(model)
    (weight,) = data["weights"]
    histogram = weight.pop("histogram")
    assert sum(histogram) == 4
    assert histogram[0] == histogram[-1] == 1
    assert weight == {
        "count": 4,
        "minimum": -1,
        "maximum": 3,
        "mean": 0.5,
        "deviation": 1.5,
        "zeros": 2,
        "not_finite": 0,
        "first": [-1.0, 0.0, 0.0, 3.0],
        "sampled": 4,
    }


F32, F64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)
I64 = float(np.iinfo(np.int64).max)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([np.nan, np.inf, 2.0]), (3, 2.0, 2.0, 2.0, 0.0, 0, 2)),
        (np.array([-128, 127], np.int8), (2, -128, 127, -0.5, 127.5, 0, 0)),
        (np.full(1_000_000, 3, np.float16), (1_000_000, 3, 3, 3, 0, 0, 0)),
        (np.full(3, -np.finfo(np.float32).max), (3, -F32, -F32, -F32, 0, 0, 0)),
        (np.full(2, np.iinfo(np.int64).max), (2, I64, I64, I64, 0, 0, 0)),
        (np.array([-F64, F64]), (2, -F64, F64, 0.0, F64, 0, 0)),
        (np.array([], np.float32), None),
        (np.array([np.nan]), None),
        (np.array(["a"], object), None),
    ],
)
def test_weight_statistics(array: NDArray[Any], text: tuple[float, ...] | None) -> None:
    found = weight_statistics(array)
    if found is None:
        assert text is None
        return
    values = list(found.data().values())
    assert tuple(values[:7]) == text
    assert sum(found.histogram) == found.sampled <= 1 << 18


def test_stages_share_what_passes_leave(model: Path) -> None:
    data = view(model, "--passes")
    stages = data["stages"]
    assert stages[0]["title"] == "as read"
    assert all(one["ops"] != two["ops"] for one, two in pairwise(stages))
    (gone,) = [s for s in stages if "simplify-arithmetic/cancel-unary" in s["rewrites"]] or [None]
    legal = next(k for k, s in enumerate(stages) if s["title"] == "after legalize-onnx")
    before = [op for op in ops_of(data, legal) if op["op"] == "core.neg"]
    after = [op for op in ops_of(data) if op["op"] == "core.neg"]
    assert (len(before), len(after)) == (2, 0)
    assert gone is not None
    # The product is the same op all along.
    (one,) = (op["id"] for op in ops_of(data, legal) if op["op"] == "core.matmul")
    (two,) = (op["id"] for op in ops_of(data) if op["op"] == "core.matmul")
    assert one == two


def test_before_and_after_a_pass(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = view(model, "--after", "simplify")
    assert [stage["title"] for stage in data["stages"]] == ["before simplify", "after simplify"]
    data = view(model, "--before", "legalize-onnx", "--after", "bufferize")
    assert [stage["phase"] for stage in data["stages"]] == ["legal", "buffer"]
    assert any(op["op"] == "buffer.call" for op in ops_of(data))
    for arguments, text in (
        (["--after", "simplfy"], "no pass 'simplfy'; did you mean simplify"),
        (["--after", "bufferize", "--phase", "legal"], "do not both run on the way to legal"),
        (["--phase", "leagl"], "'leagl' is none of imported, legal"),
        (["--times", str(model)], "is no profile"),
        (["--compare", str(model), "--passes"], "not what passes do"),
    ):
        assert main(["view", str(model), *arguments]) == 1
        assert text in capsys.readouterr().err


def test_two_models_are_matched_by_their_nodes(model: Path, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="/a/one/MatMul"),
        helper.make_node("Neg", ["p"], ["r"], name="/a/two/Neg_1"),
        helper.make_node("Sigmoid", ["r"], ["y"], name="/b/Sigmoid"),
    ]
    other = write(tmp_path / "other.onnx", nodes)
    data = view(model, "--compare", str(other))
    one, two = ({op["id"]: op for op in ops_of(data, k)} for k in (0, 1))
    common = sorted(one[k]["title"] for k in one.keys() & two.keys())
    assert common == ["MatMul", "Neg", "func main", "initializer", "inputs", "return"]
    assert sorted(one[k]["title"] for k in one.keys() - two.keys()) == ["Neg", "Relu"]
    assert [two[k]["title"] for k in two.keys() - one.keys()] == ["Sigmoid"]


def test_ir_text_of_any_level(model: Path, tmp_path: Path) -> None:
    from lowerdeck.tools.opt_tool import main as opt_tool

    for phase in ("legal", "kernels", "buffer", "scheduled"):
        text = tmp_path / f"{phase}.mlir"
        assert opt_tool([str(model), f"--compile-to={phase}", "-o", str(text)]) == 0
        assert len(ops_of(view(text))) > 3


def test_times_of_a_profile(model: Path, tmp_path: Path) -> None:
    report = tmp_path / "profile.json"
    bench = ["bench", str(model), "--profile", "--seconds", "0", "--json", str(report)]
    assert main(bench) == 0
    kernels = view(model, "--times", str(report))["kernels"]
    assert any("/a/one/MatMul" in kernel["nodes"] for kernel in kernels)
    assert all(kernel["seconds"] > 0 for kernel in kernels)
    assert view(model, "--profile")["kernels"]


def test_errors_of_values(functions: Path) -> None:
    """Of every value with a node, in units of what is allowed."""
    errors = view(functions, "--errors")["errors"]
    assert {name for one in errors for name in one["nodes"]} == {"/a/Exp", "/a/Sin", "/b/Tanh"}
    assert all(0 <= one["error"] < 1 for one in errors)
    assert any(one["error"] > 0 for one in errors)


def test_errors_on_given_inputs(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = tmp_path / "in.npz"
    np.savez(arrays, nothing=np.zeros(3, np.float32))
    assert main(["view", str(model), "--errors", "--inputs", str(arrays)]) == 1
    assert "--errors: no value for the inputs" in capsys.readouterr().err


def test_outputs_are_all_values(tmp_path: Path) -> None:
    """The results of the function come first, by their names; no integers, no constants."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="add"),
        helper.make_node("Cast", ["a"], ["i"], name="to", to=TensorProto.INT32),
        helper.make_node("Cast", ["i"], ["b"], name="from", to=TensorProto.FLOAT),
        helper.make_node("Exp", ["b"], ["y"], name="exp"),
    ]
    path = str(write(tmp_path / "m.onnx", nodes))
    module, _ = import_and_lower(path, "legal", CompileOptions(target="c99"))
    assert make_outputs(module) == {"y": ["exp"], " 0": ["add"], " 1": ["from"]}
    module.verify()
    x = np.array([[0.5, 1.25], [2.5, 3]], np.float32)
    results = run_module(module, {"x": x})
    assert list(results) == ["y", " 0", " 1"]
    np.testing.assert_array_equal(np.asarray(results[" 0"]), x + WEIGHTS)
    np.testing.assert_array_equal(np.asarray(results[" 1"]), np.trunc(x + WEIGHTS))


def test_errors_need_source_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        """
        func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
          %y = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        """
    )
    assert main(["view", str(path), "--errors"]) == 1
    assert "--errors: no value of floats has a source node" in capsys.readouterr().err


def test_default_name(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model.parent)
    assert main(["view", str(model)]) == 0
    assert capsys.readouterr().out == "wrote m.html\n"
    assert (model.parent / "m.html").exists()


def test_svg(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from xml.etree import ElementTree

    out = model.with_suffix(".svg")
    command = ["view", str(model), "--svg", str(out)]
    if shutil.which("node") or shutil.which("nodejs"):
        assert main(command) == 0
        texts = [one.text for one in ElementTree.parse(out).iter() if one.tag.endswith("text")]
        assert {"MatMul", "Relu", "script>"} <= set(texts)
        assert not model.with_suffix(".html").exists()
        plain = out.read_text()
        assert main([*command, "--errors"]) == 0
        assert "rgb(255," in out.read_text()
        assert "rgb(255," not in plain
        out.unlink()
    monkeypatch.setenv("PATH", str(model.parent))
    assert main(command) == 1
    assert "--svg: needs node or nodejs" in capsys.readouterr().err
    assert not out.exists()


# In a browser


def picture(folder: Path) -> Look:
    model = cancelling(folder)
    view(model)
    found = yield (
        model,
        "return [[...document.querySelectorAll('.node .title')].map((one) => one.textContent),"
        "[...document.querySelectorAll('.group .title')].map((one) => one.textContent),"
        "document.querySelectorAll('.edge').length, document.body.dataset.ready,"
        "document.getElementById('details').textContent,"
        "[...document.querySelectorAll('.node .names')].map((one) => one.textContent),"
        "(() => { state.zoom = 9; fit();"
        " const outer = document.getElementById('picture').getBoundingClientRect();"
        " const inner = document.getElementById('view').getBoundingClientRect();"
        " return [state.zoom < 9, inner.top >= outer.top, inner.bottom <= outer.bottom,"
        " inner.left >= outer.left, inner.right <= outer.right]; })()];",
    )
    nodes, groups, edges, ready, overview, lines, fits = found
    assert "opsetsai.onnx" in overview
    assert "x" in lines  # the name of the input
    assert fits == [True] * 5
    assert ready == "yes"
    assert sorted(nodes) == ["MatMul", "Neg", "Neg", "Relu", "inputs", "return"]
    assert sorted(groups) == ["a", "func main", "two"]
    assert edges == 5


def errors_are_colors(folder: Path) -> Look:
    """A box has the largest error in it, and the largest of all is the reddest."""
    functions = composed(folder)
    view(functions, "--errors")
    color, largest, parts, fills = yield (
        functions,
        "const leaves = layout.leaves.map(({ node }) => node);"
        "return [document.getElementById('color').value, tree.root.error,"
        "leaves.map((node) => node.error),"
        "leaves.map((node) => fillOf(node, coloringOf(layout, 'error', found)))];",
    )
    assert color == "error"
    assert largest == max(parts) > 0
    assert fills[parts.index(largest)] == "rgb(255,80,40)"
    assert len(set(fills)) > 1


def boxes_close_and_open(folder: Path) -> Look:
    model = cancelling(folder)
    view(model)
    found = yield (
        model,
        "const titles = () => [...document.querySelectorAll('.node .title')]"
        ".map((one) => one.textContent).sort();"
        "const box = [...document.querySelectorAll('.group')]"
        ".find((one) => one.querySelector('.title').textContent === 'a');"
        "const click = (one) => one.dispatchEvent(new MouseEvent('click', { bubbles: true }));"
        "click(box.querySelector('.toggle')); const closed = titles();"
        "const edges = document.querySelectorAll('.edge').length;"
        "click([...document.querySelectorAll('.node')]"
        ".find((one) => one.querySelector('.title').textContent === 'a').querySelector('.toggle'));"
        "return [closed, edges, titles()];",
    )
    assert found[0] == ["Relu", "a", "inputs", "return"]
    assert found[1] == 3
    assert found[2] == ["MatMul", "Neg", "Neg", "Relu", "inputs", "return"]


def search_and_details(folder: Path) -> Look:
    model = cancelling(folder)
    view(model)
    text = yield (
        model,
        "const box = document.getElementById('search'); box.value = 'one/matmul';"
        "box.dispatchEvent(new Event('input'));"
        "const hits = document.querySelectorAll('.hit a'); hits[0].click();"
        "return [hits.length, document.getElementById('details').textContent,"
        "document.querySelectorAll('.histogram rect').length,"
        "document.querySelector('.selected .title').textContent];",
    )
    hits, details, bars, selected = text
    assert (hits, bars, selected) == (1, 32, "MatMul")
    assert "/a/one/MatMul" in details
    assert "-1 to 3" in details
    assert "0.5, deviation 1.5" in details


def differences(folder: Path) -> Look:
    model = cancelling(folder)
    view(model, "--after", "simplify", "--before", "legalize-onnx")
    found = yield (
        model,
        "const colors = (id) => Object.fromEntries([...document.querySelectorAll(`#${id} .node`)]"
        ".map((one) => [one.querySelector('.title').textContent,"
        " one.querySelector('rect').getAttribute('fill')]));"
        "return [colors('view-beside'), colors('view'),"
        "[...found.values()].filter((one) => one.status === 'added').map((one) =>"
        " [one.record.op, one.from.map((gone) => gone.op)])];",
    )
    before, after, origins = found
    assert before["Neg"] == before["MatMul"] == "#ffb3ad"  # removed
    assert after["matmul"] == "#9be7a5"  # added
    assert after["inputs"] == "#f4f4f4"  # as before
    assert ["core.matmul", ["onnx.MatMul_13"]] in origins


def slider(folder: Path) -> Look:
    model = cancelling(folder)
    data = view(model, "--passes")
    found = yield (
        model,
        "const names = [document.getElementById('stage-name').textContent];"
        "setStage(0); names.push(document.getElementById('stage-name').textContent);"
        "names.push(document.querySelectorAll('.node').length); return names;",
    )
    last = len(data["stages"])
    assert found[0].startswith(f"{last} of {last}: after ")
    assert found[1] == f"1 of {last}: as read"
    assert found[2] == 6


def regions_are_boxes(folder: Path) -> Look:
    text = folder / "t.mlir"
    text.write_text(
        "func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %r = core.if %c : tensor<i1> -> tensor<2xf32> {\n"
        "    %a = core.neg %x : (tensor<2xf32>) -> tensor<2xf32>\n"
        "    core.yield %a : tensor<2xf32>\n"
        "  } else {\n"
        "    %b = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>\n"
        "    core.yield %b : tensor<2xf32>\n"
        "  }\n"
        "  func.return %r : tensor<2xf32>\n}\n"
    )
    view(text)
    found = yield (
        text,
        "const open = [document.querySelectorAll('.group.none, .group').length,"
        "document.querySelectorAll('.edge').length];"
        "state.open = new Set(['', tree.root.children[0].key]); draw();"
        "return [...open, document.querySelectorAll('.edge').length,"
        "[...document.querySelectorAll('.node .title')].map((one) => one.textContent).sort()];",
    )
    # inputs -> if, neg, exp; neg -> yield, exp -> yield, and both yields -> return.
    assert found[:2] == [2, 7]
    assert found[2:] == [2, ["if", "inputs", "return"]]


def many_nodes_open_at_once(folder: Path, scoped: bool = True, count: int = 800) -> Look:
    """Of all that is there, few nodes are ever placed and drawn: what is shown does not grow."""
    nodes = [
        helper.make_node(
            ("Relu", "Neg")[k % 2],
            [f"v{k - 1}" if k else "x"],
            [f"v{k}" if k < count - 1 else "y"],
            name=f"/s{5 * k // count}/b{k // 40 % 50}/n{k}" if scoped else f"n{k}",
        )
        for k in range(count)
    ]
    model = write(folder / "m.onnx", nodes)
    view(model)
    sought = count - 124
    found = yield (
        model,
        "const placed = []; const place = layoutOf;"
        "layoutOf = (...shown) => { const found = place(...shown);"
        " placed.push(found.boxes.length + found.leaves.length); return found; };"
        "const first = document.querySelectorAll('.node').length; expandAll();"
        "const wide = document.querySelectorAll('.node').length;"
        f"const box = document.getElementById('search'); box.value = 'v{sought}';"
        f"go(tree.list.find((one) => one.names.some((name) => name.endsWith('n{sought}'))).id);"
        "return [tree.root.ops, first, wide, placed,"
        "document.querySelector('.selected .title').textContent];",
    )
    ops, first, wide, placed, title = found
    assert ops == count + 3
    assert 0 < first <= 300
    assert 60 < wide <= 300
    assert len(placed) == 2
    assert max(placed) <= 400
    assert title == "Relu"


LOOKS: Mapping[str, Callable[[Path], Look]] = {
    "picture": picture,
    "errors": errors_are_colors,
    "boxes": boxes_close_and_open,
    "search": search_and_details,
    "differences": differences,
    "slider": slider,
    "regions": regions_are_boxes,
    "scopes": many_nodes_open_at_once,
    "no scopes": partial(many_nodes_open_at_once, scoped=False),
}


def look_at(looks: Mapping[str, Callable[[Path], Look]], folder: Path) -> None:
    """Show all pages at once, and look at what each gave."""
    browser = Browser(folder)
    begun: list[Look] = []
    for number, make in enumerate(looks.values()):
        own = folder / str(number)
        own.mkdir()
        begun.append(look := make(own))
        browser.show(*next(look))
    for name, look, found in zip(looks, begun, browser.run(), strict=True):
        try:
            look.send(found)
        except StopIteration:
            continue
        except Exception as error:
            error.add_note(f"of the page '{name}', which gave {found}")
            raise
        raise AssertionError(f"'{name}' shows several pages")


@needs_browser
def test_pages(tmp_path: Path) -> None:
    look_at(LOOKS, tmp_path)


@needs_browser
def test_a_script_that_fails_is_told(tmp_path: Path) -> None:
    def wrong(folder: Path) -> Look:
        model = cancelling(folder)
        view(model)
        found = yield model, "return nothing.at.all;"
        assert found == "fine"

    with pytest.raises(AssertionError, match="ReferenceError"):
        look_at({"wrong": wrong}, tmp_path)


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("scoped", [True, False])
def test_very_many_nodes(tmp_path: Path, scoped: bool) -> None:
    look_at({"many": partial(many_nodes_open_at_once, scoped=scoped, count=10_000)}, tmp_path)


def test_text_in_pages_is_escaped() -> None:
    html = page({"title": "<b>&", "records": [], "stages": [], "weights": []})
    assert "<title>&lt;b&gt;&amp;</title>" in html
    assert data_of(html)["title"] == "<b>&"
