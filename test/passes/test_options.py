"""The options of a compilation, and what the cache knows them by."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

import lowerdeck
from lowerdeck.dialects.frameworks import declared_options
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.ranges import Ranges

OTHER: dict[str, Any] = {
    "outputs": ["y"],
    "input_shapes": {"x": [1, 2]},
    "import_options": {"weights": "net.caffemodel"},
    "target": "c99",
    "dims": {"batch": 2},
    "fixed": {"x": 1.0},
    "states": {"past": "present"},
    "byte_order": "big",
    "max_stack": 1024,
    "name": "other",
    "threads": 2,
    "disable": ["fuse"],
    "disable_strategy": ["winograd"],
    "strategy": ["direct"],
    "skip_nodes": "conv",
    "rewrite_limit": 3,
    "strict_accuracy": True,
    "fast_math": True,
    "small_weights": True,
    "weight_format": "int8",
    "precision": "int8",
    "ranges": Ranges("digest", ()),
    "probe": "observe",
    "embed_weights": True,
    "static_workspace": True,
    "profile": True,
    "extra_passes": "fuse",
    "rank": 1,
    "schedules": {"conv_0": "4 -> 4: row_maps"},
}
"""For every option that changes the output another value than the default."""

SILENT = {"finished", "progress", "rewritten", "warn"}
"""Options that change nothing in the output."""


def test_every_option_is_known_here() -> None:
    assert {entry.name for entry in fields(CompileOptions)} == OTHER.keys() | SILENT


@pytest.mark.parametrize("name", OTHER)
def test_every_option_changes_the_key(name: str) -> None:
    assert CompileOptions(**{name: OTHER[name]}).key != CompileOptions().key


@pytest.mark.parametrize("name", declared_options())
def test_every_option_of_a_frontend_changes_the_key(name: str) -> None:
    option = declared_options()[name]
    texts = ("yes", "no") if option.is_flag else ("a", "b")
    one, other = (CompileOptions(import_options={name: option.parse(text)}) for text in texts)
    assert len({one.key, other.key, CompileOptions().key}) == 3


@pytest.mark.parametrize("name", sorted(SILENT))
def test_options_that_change_nothing_are_declared(name: str) -> None:
    (entry,) = (entry for entry in fields(CompileOptions) if entry.name == name)
    assert not entry.compare
    changed: dict[str, Any] = {name: print}
    assert CompileOptions(**changed).key == CompileOptions().key


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        # The C for a pool of threads runs on one of any size.
        ("threads", 2, 3),
        ("disable", ["fuse", "cse"], ("cse", "fuse")),
        ("disable", frozenset({"fuse", "cse"}), ["cse", "fuse"]),
        ("import_options", {"tags": ["serve", "gpu"]}, {"tags": ("gpu", "serve")}),
        ("outputs", ["y"], ("y",)),
        ("skip_nodes", "conv", ["conv"]),
        ("skip_nodes", ["conv", "norm"], ("norm", "conv", "norm")),
        ("input_shapes", {"x": (1, 2), "w": [3]}, {"w": (3,), "x": [1, 2]}),
        ("import_options", {"weights": "net.caffemodel"}, {"weights": "./net.caffemodel"}),
    ],
)
def test_equal_requests_have_one_key(name: str, one: Any, other: Any) -> None:
    assert CompileOptions(**{name: one}).key == CompileOptions(**{name: other}).key


def test_the_order_of_outputs_counts() -> None:
    assert CompileOptions(outputs=["a", "b"]).key != CompileOptions(outputs=["b", "a"]).key


def test_compile_takes_every_option_by_name() -> None:
    """But for what `tune` finds out and `quantize` asks, finds faults or is for other machines."""
    parameters = dict(inspect.signature(lowerdeck.compile).parameters)
    assert parameters.pop("model").kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters.pop("args").kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert parameters.pop("import_options").kind is inspect.Parameter.VAR_KEYWORD
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    inner = {"byte_order", "max_stack", "rank", "strategy", "rewrite_limit", "import_options"}
    inner.add("probe")
    assert parameters.keys() == {*OTHER} - inner | {"cache"}
    for name in parameters.keys() - {"cache"}:
        assert parameters[name].default == getattr(CompileOptions(), name)
