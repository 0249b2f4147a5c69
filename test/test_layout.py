"""The three places that name packages and modules agree: folders, pyproject.toml, typings/."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("dialects", "exporters", "frontends", "lowering", "passes", "tools")


def test_every_folder_of_sources_is_a_listed_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(settings["tool"]["setuptools"]["packages"])
    found = {"lowerdeck"}
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
    for name in modules:
        assert (links / name).resolve() == ROOT / "api" / name
