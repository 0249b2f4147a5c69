"""Readers of model files, one package per framework."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from lowerdeck.dialects.frameworks import IMPORT_WEIGHTS, Framework, OptionValue
from lowerdeck.frontends.frontend import (
    IR_TEXT,
    Request,
    formats,
    frontend_of,
    frontends,
    graph_file,
)

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


def load_model(
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    context: Context | None = None,
    **options: OptionValue,
) -> ModuleOp:
    """
    The module of a model file or folder, whose format is detected from its content.

    `outputs` and `input_shapes` are those of the frontend's own import; `options` are those that
    the framework declares (`dialects/frameworks.py`). `fixed` has the values of inputs that become
    constants: numbers, which stand for each element of an input, or arrays. IR text is parsed with
    the dialects of `context`. FrontendError lists everything that prevents the import;
    InternalError reports a bug in the importer.
    """
    from lowerdeck.dialects.errors import working_on

    file = os.fspath(path)
    with working_on(lambda: file):
        weights = options.pop(IMPORT_WEIGHTS.name, None)
        framework, request = read_request(file, outputs, input_shapes, options, fixed or {})
        if framework is not None:
            frontend = frontend_of(framework)
            module = frontend.load(request)
        else:
            from lowerdeck.frontends.text import read_module

            frontend = None
            module = read_module(file, context, outputs=outputs, input_shapes=input_shapes)
        if weights is not None:
            from lowerdeck.frontends.import_weights import import_weights

            known = None if frontend is None else frontend.weight_names(file)
            import_weights(module, file, os.fspath(cast("str", weights)), known)
        if request.fixed and (frontend is None or not frontend.fixes_inputs):
            from lowerdeck.frontends.fixed import fix_arguments

            fix_arguments(module, file, request.fixed)
        _check_sizes(module, file)
        return module


_ADDRESS_BITS = 47
"""Those of a process; what is larger can be no input, and a dimension in the file is damaged."""


def _check_sizes(module: ModuleOp, file: str) -> None:
    """FrontendError for inputs that no memory holds: tables for their places would be as large."""
    from math import prod

    from xdsl.dialects.builtin import TensorType
    from xdsl.dialects.func import FuncOp
    from xdsl.utils.hints import isa

    from lowerdeck.dialects.core.names import value_names
    from lowerdeck.dialects.core.types import static_shape
    from lowerdeck.frontends.errors import FrontendError, Problem

    problems: list[Problem] = []
    for function in module.body.block.ops:
        if not isinstance(function, FuncOp) or function.sym_name.data != "main":
            continue
        types = function.function_type.inputs.data
        for name, type_ in zip(value_names(function.arg_attrs, len(types)), types, strict=True):
            shape = static_shape(type_) if isa(type_, TensorType) else None
            if (bits := prod(shape or ()).bit_length() - 1) >= _ADDRESS_BITS:
                message = f"found 2^{bits} elements in input '{name}', expected what memory holds"
                problems.append(Problem(file, "", "", message))
    if problems:
        raise FrontendError(problems)


def facts_of(path: str | os.PathLike[str]) -> dict[str, str]:
    """What a model file says of itself; nothing for IR text."""
    from lowerdeck.frontends.detect import detect_format

    file = os.fspath(path)
    framework = formats().get(detect_format(file))
    return {} if framework is None else frontend_of(framework).facts(graph_file(file))


def read_request(
    path: str,
    outputs: Sequence[str] | None,
    input_shapes: Mapping[str, Sequence[int]] | None,
    options: Mapping[str, OptionValue],
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Framework | None, Request]:
    """
    The framework of a model (None for IR text), and the request to its frontend.

    FrontendError if the format is unknown, or lists the options that do not apply to it.
    """
    from lowerdeck.frontends.detect import detect_format

    format_ = detect_format(path)
    framework = None if format_ == IR_TEXT.name else formats()[format_]
    given = {name: value for name, value in options.items() if value is not None}
    _check_options(path, format_, framework, given)
    return framework, Request(path, format_, outputs, input_shapes, fixed, given)


def _check_options(
    path: str, format_: str, framework: Framework | None, given: Mapping[str, OptionValue]
) -> None:
    from lowerdeck.dialects.frameworks import FRAMEWORKS, declared_options
    from lowerdeck.frontends.errors import FrontendError, Problem

    declared = () if framework is None else framework.options
    fitting = {o.name for o in declared if not o.formats or format_ in o.formats}
    fitting.add(IMPORT_WEIGHTS.name)
    problems: list[Problem] = []
    for name in given.keys() - fitting:
        option = declared_options().get(name)
        owners = [f.name for f in FRAMEWORKS.values() if any(o.name == name for o in f.options)]
        *most, last = owners or [""]
        named = " and ".join(filter(None, (", ".join(most), last)))
        text = f"the option '{name}' is for {named} only, not {format_}"
        if option is None:
            text = f"no frontend has an option '{name}'"
        elif option.refusal:
            text = option.refusal
        problems.append(Problem(path, "", "", text))
    if problems:
        raise FrontendError(sorted(problems, key=str))


def model_files(path: str | os.PathLike[str], **options: OptionValue) -> list[str]:
    """
    The files of a model: first the one with its graph, then others that it may need, as far as
    their names follow from those of the model and the options.

    FrontendError if it is a folder without a model.
    """
    from lowerdeck.frontends.detect import detect_format

    file = os.fspath(path)
    if os.path.isdir(file):
        detect_format(file)
    graph = graph_file(file)
    others = (name for frontend in frontends() for name in frontend.other_files(graph, options))
    weights = options.get(IMPORT_WEIGHTS.name)
    imported = [] if weights is None else [os.fspath(cast("str", weights))]
    return [graph, *dict.fromkeys([*others, *imported])]
