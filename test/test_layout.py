"""
What holds for all sources: folders, pyproject.toml and typings/ name the same packages, and no op
is told by its name.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowerdeck.dialects.registry import dialects

ROOT = Path(__file__).parents[1]
FOLDERS = ("dialects", "exporters", "frontends", "lowering", "passes", "tools")
SOURCES = sorted(path for folder in (*FOLDERS, "api") for path in (ROOT / folder).rglob("*.py"))

DIALECTS = ("builtin", "func", "ub", "arith", "math", "scf", "vector", *dialects())
OP_NAME = re.compile(rf"({'|'.join(DIALECTS)})\.\w*")

NAMES_OF_OPS = {
    "dialects/core/names.py": {
        "core.default",
        "core.name",
        "core.states",
        "core.classes",
        "core.unused_inputs",
    },  # attributes, not ops
    "dialects/onnx/ops.py": {"onnx.opset"},
    "frontends/detect.py": {"builtin.module", "func.func"},  # how the text of IR begins
    # What PyTorch calls functions of Python that compute sizes.
    "passes/legalize/pt2/elementwise.py": {"math.ceil", "math.floor", "math.trunc"},
}
"""
Where strings like those of `OP_NAME` may stand, besides the definitions of ops: `name = "core.add"`
in a class, and `"name": f"tf1.{op_type}"` where classes are made from a table.
"""

OPS = {
    *("op", "operation", "owner", "parent", "user", "producer", "consumer", "maker", "anchor"),
    *("inner", "nested", "outer", "function", "loop", "kernel"),
}
"""What variables and attributes are called that hold ops."""

SUSPECT = re.compile(
    rf"\b(?:{'|'.join(sorted(OPS))})\s*\.name\b|type\(.*\)\s*\.name\b"
    rf"|[\"'}}](?:{'|'.join(DIALECTS)})\.\w*[\"'{{]"
)
"""Sources without it, which are most, need not be taken apart."""

ASKING = {"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix"}


def test_every_folder_of_sources_is_a_listed_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(settings["tool"]["setuptools"]["packages"])
    found = {"lowerdeck", "lowerdeck.digits"}
    for folder in FOLDERS:
        for source in (ROOT / folder).rglob("*.py"):
            found.add(".".join(("lowerdeck", *source.relative_to(ROOT).parts[:-1])))
    assert found == listed


def test_every_package_has_an_init_file() -> None:
    packages = {source.parent for folder in FOLDERS for source in (ROOT / folder).rglob("*.py")}
    assert [str(path) for path in sorted(packages) if not (path / "__init__.py").exists()] == []


def test_typings_link_the_package_together() -> None:
    modules = {path.name for path in (ROOT / "api").glob("*.py")}
    links = ROOT / "typings" / "lowerdeck"
    assert {path.name for path in links.glob("*.py")} == modules
    for folder in FOLDERS:
        assert (links / folder).resolve() == ROOT / folder
    assert (links / "digits").resolve() == ROOT / "examples" / "digits"
    for name in modules:
        assert (links / name).resolve() == ROOT / "api" / name


def _definitions(tree: ast.AST) -> Iterator[ast.expr]:
    """What gives ops their names."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                for member in node.body:
                    match member:
                        case ast.Assign(targets=[ast.Name(id="name")], value=value):
                            yield value
                        case _:
                            pass
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "name":
                        yield value
            case ast.FunctionDef(name="op_name", body=[*_, ast.Return(value=ast.expr() as value)]):
                yield value
            case _:
                pass


def _is_name_of_op(node: ast.expr) -> bool:
    """`op.name`, `use.operation.name`, `type(op).name`."""
    match node:
        case ast.Attribute(attr="name", value=ast.Call(func=ast.Name(id="type"), args=[argument])):
            holder: ast.expr = argument
        case ast.Attribute(attr="name", value=holder):
            pass
        case _:
            return False
    called = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", None)
    return called in OPS


def _comparisons(tree: ast.AST) -> Iterator[ast.expr]:
    """Names of ops that are compared, looked up in a table, or taken apart."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                asked = [node.left, *node.comparators]
            case ast.Subscript(slice=index):
                asked = [index]
            case ast.Match(subject=subject):
                asked = [subject]
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
                asked = [key]
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in ASKING:
                asked = [value]
            case _:
                continue
        yield from filter(_is_name_of_op, asked)


def _strings(tree: ast.AST) -> Iterator[str]:
    """Texts that are names of ops, or begin them, but for those that define one."""
    defining = {id(part) for value in _definitions(tree) for part in ast.walk(value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in defining and OP_NAME.fullmatch(node.value):
                yield node.value


def _told_by_name(path: Path) -> list[str]:
    text = (ROOT / path).read_text()
    if SUSPECT.search(text) is None:
        return []
    tree = ast.parse(text)
    strings = set(_strings(tree)) - NAMES_OF_OPS.get(path.as_posix(), set())
    return [
        *(f"{path}:{found.lineno}: {ast.unparse(found)}" for found in _comparisons(tree)),
        *(f"{path}: '{string}'" for string in sorted(strings)),
    ]


def test_no_op_is_told_by_its_name() -> None:
    """
    Ops are told by class, trait, interface or dialect. Only what a framework calls its operators
    (`op_type`) is a string: there are as many as its tables have.
    """
    assert [found for path in SOURCES for found in _told_by_name(path.relative_to(ROOT))] == []


@pytest.mark.parametrize(
    "line",
    [
        'op.name == "x"',
        '"x" != value.owner.name',
        "type(op).name in NAMES",
        "TABLE[op.name]",
        "TABLE.get(use.operation.name)",
        "op.name.startswith(prefix)",
        'op.name.split(".", 1)[0]',
    ],
)
def test_the_rule_sees_names_of_ops(line: str) -> None:
    assert len(list(_comparisons(ast.parse(line)))) == 1


def test_the_rule_sees_strings() -> None:
    text = """
class AddOp:
    name = "core.add"
def f(kind):
    return kind in ("core.mul", "tf1.") or kind == f"onnx.{kind}"
"""
    assert list(_strings(ast.parse(text))) == ["core.mul", "tf1.", "onnx."]


def test_emission_reads_no_text() -> None:
    """What is printed follows from the IR, not from the C printed before."""
    for path in (ROOT / "lowering" / "emit_c").glob("*.py"):
        imported = {
            name.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in node.names
        }
        assert not imported & {"re", "regex"}, path.name


def test_data_of_packages_is_packed() -> None:
    """Every file of a package that is no source, such as the page of `lowerdeck view`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {
        file
        for package, patterns in settings["package-data"].items()
        for folder in _folders_of(package, settings)
        for pattern in patterns
        for file in (ROOT / folder).glob(pattern)
    }
    folders = [ROOT / folder for folder in _folders_of("*", settings)]
    files = {
        file
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc") and "test" not in file.parts
    }
    assert sorted(str(file.relative_to(ROOT)) for file in files - packed) == []


def test_wheel_holds_data(tmp_path: Path) -> None:
    """
    What is installed can write the page of `lowerdeck view`, with the license of its library, run
    the demo, and show the manual pages.
    """
    setuptools = pytest.importorskip("setuptools", minversion="77")
    assert setuptools
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in (*FOLDERS, "api", "examples/digits", "docs/man"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    program = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    (tree / "dist").mkdir()
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tree, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    (wheel,) = (tree / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    static = "lowerdeck/tools/view/static/"
    pages = {"page.html", "view.css", "dagre.min.js", "model.js", "layout.js", "view.js"}
    assert {f"{static}{name}" for name in (*pages, "dagre.LICENSE")} <= names
    assert {f"lowerdeck/digits/{name}" for name in ("digits.onnx", "held_back.npz")} <= names
    assert "lowerdeck/__main__.py" in names
    for page in ("lowerdeck.1", "opt-tool.1"):
        assert any(name.endswith(f"/data/share/man/man1/{page}") for name in names)
    assert any(name.endswith("licenses/tools/view/static/dagre.LICENSE") for name in names)
    entries = next(name for name in names if name.endswith("entry_points.txt"))
    assert "[xdsl.universe]" in zipfile.ZipFile(wheel).read(entries).decode()


def _folders_of(package: str, settings: dict[str, Any]) -> list[str]:
    """The folder of a package; of `*`, those of all."""
    names = settings["packages"] if package == "*" else [package]
    found: list[str] = []
    for name in names:
        for base, folder in sorted(settings["package-dir"].items(), reverse=True):
            if name == base or name.startswith(f"{base}."):
                found.append(folder + name.removeprefix(base).replace(".", "/"))
                break
    return found
