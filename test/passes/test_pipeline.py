"""The files of passes: each holds one pass, and takes nothing out of another one's."""

import ast
from collections.abc import Iterator
from pathlib import Path

from lowerdeck.passes.machinery.driver import PassGroup
from lowerdeck.passes.machinery.pipeline import PASSES

PACKAGE = "lowerdeck.passes"
ROOT = Path(__file__).parents[2] / "passes"
PASS_CLASSES = {make() for make in PASSES.values()}
SINGLE_FILES = {
    cls.__module__
    for cls in PASS_CLASSES
    if cls.__module__.endswith(f".{cls.name.replace('-', '_')}")
}
GROUPS = {cls.__module__ for cls in PASS_CLASSES if issubclass(cls, PassGroup)}


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case _:
                pass


def module_of(path: Path) -> str:
    """The name under which a file of this package is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.removeprefix(f"{PACKAGE}.").split(".")).with_suffix(".py")


def test_passes_take_nothing_out_of_other_passes() -> None:
    """What two of them need has a module of its own; groups only name their members."""
    assert GROUPS < SINGLE_FILES
    wrong = [
        f"{path.relative_to(ROOT)}: {imported}"
        for path in sorted(ROOT.rglob("*.py"))
        if (module := module_of(path)) not in GROUPS
        for imported in imports_of(path)
        if imported in SINGLE_FILES and imported != module
    ]
    assert wrong == []


def test_groups_take_the_passes_that_they_run() -> None:
    for cls in PASS_CLASSES:
        if issubclass(cls, PassGroup):
            imported = set(imports_of(file_of(cls.__module__)))
            assert imported & SINGLE_FILES == {member.__module__ for member in cls.members}


def test_passes_that_round() -> None:
    """What these give is the reference for what follows them, so there may be no others."""
    rounding = {cls.name for cls in PASS_CLASSES if getattr(cls, "rounds_numbers", False)}
    assert rounding == {
        "halve-products",
        "narrow-weights",
        "prune-channels",
        "quantize-layers",
        "switch-layers",
    }
