"""The interface of a framework's reader: formats, an import, an inventory of operators."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.frameworks import FRAMEWORKS, Framework, OptionValue
from lowerdeck.dialects.records import record

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.frontends.wire import Outline


def _never(outline: Outline) -> bool:
    return False


@record
class FileFormat:
    """
    One kind of file. A file has this format if its content says so, or else its suffix.

    A folder has it if it contains one of `folder_files`.
    """

    name: str
    suffix: str = ""
    """In lower case, with the dot."""
    first_fields: frozenset[str] = frozenset()
    """The fields with which the text form of its message may begin."""
    begins: tuple[tuple[int, bytes], ...] = ()
    """What its files have near the beginning: offsets, and the bytes there."""
    first_keys: frozenset[str] = frozenset()
    """The keys with which its object of JSON may begin."""
    holds: Callable[[Outline], bool] = _never
    """True for the outline of its binary message."""
    archive: Callable[[Collection[str]], bool] | None = None
    """True for the names of the entries of its ZIP archive."""
    folder_files: tuple[str, ...] = ()


@record
class Request:
    """A model, and the user's requests for it."""

    path: str
    format: str
    outputs: Sequence[str] | None = None
    """Names of tensors to return in place of the model's own outputs."""
    input_shapes: Mapping[str, Sequence[int]] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values of inputs that are constants, by name."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values of the framework's options, as far as they were given."""


@record
class Use:
    """A node of a model, and its operator."""

    op_type: str
    node: str
    domain: str = ""
    opset: int | None = None
    function: str = ""
    """The owner of the function that replaces the operator, if there is one: `the model`."""


def _no_files(path: str, options: Mapping[str, OptionValue]) -> list[str]:
    return []


def _no_facts(path: str) -> dict[str, str]:
    return {}


def _no_names(path: str) -> Collection[str] | None:
    return None


def _no_advice(path: str) -> str | None:
    return None


@record
class Frontend:
    """The reader of a framework's models."""

    files: str
    """A description of its models for messages: `onnx (.onnx)`."""
    formats: tuple[FileFormat, ...]
    """In the order in which content is compared with them."""
    load: Callable[[Request], ModuleOp]
    """The module; FrontendError lists everything that prevents the import."""
    inventory: Callable[[Request], Iterable[Use]]
    """The operators of the nodes, including those that the import does not support."""
    other_files: Callable[[str, Mapping[str, OptionValue]], list[str]] = _no_files
    """The files that a model may need besides that with its graph, as far as names tell."""
    fixes_inputs: bool = False
    """True if `load` makes constants of inputs; else arguments of `main` become some of core."""
    advice: Callable[[str], str | None] = _no_advice
    """How a path that is not a model is related to one, and what to pass instead."""
    facts: Callable[[str], dict[str, str]] = _no_facts
    """What a model file says of itself: who wrote it, versions, metadata."""
    weight_names: Callable[[str], Collection[str] | None] = _no_names
    """The names of a model's weights, where it has other constants with names; else None."""
    messages: Mapping[str, str] = field(default_factory=dict[str, str])
    """The protobuf messages that are models, with the suffix of files that contain them."""


def frontend_of(framework: Framework) -> Frontend:
    """The frontend of a framework."""
    return framework.frontend()


def frontends() -> list[Frontend]:
    """The frontends of all frameworks."""
    return [frontend_of(framework) for framework in FRAMEWORKS.values()]


def formats() -> dict[str, Framework]:
    """The framework of each format."""
    return {
        format_.name: framework
        for framework in FRAMEWORKS.values()
        for format_ in frontend_of(framework).formats
    }


IR_TEXT = FileFormat("mlir", ".mlir")
"""The one format that belongs to no framework."""


def known_formats() -> str:
    """All formats, for messages."""
    return ", ".join([*(frontend.files for frontend in frontends()), "IR text (.mlir)"])


def graph_file(path: str) -> str:
    """The file with the graph of a model: the one in its folder, if the model is a folder."""
    if not os.path.isdir(path):
        return path
    names = (n for f in frontends() for format_ in f.formats for n in format_.folder_files)
    return next(filter(os.path.isfile, (os.path.join(path, name) for name in names)), path)
