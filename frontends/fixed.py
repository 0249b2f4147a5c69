"""Inputs that a user fixes to a value: constants from the import on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.ir import Attribute

from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.core.types import StringType, dims_of, element_type, numpy_dtype
from lowerdeck.frontends.errors import FrontendError, Problem

_SHOWN = 10
"""Names that an error lists."""


def fix_arguments(module: ModuleOp, file: str, fixed: Mapping[str, Any]) -> None:
    """Make constants of arguments of `main`; FrontendError lists all that cannot be."""
    main = next((op for op in module.ops if isinstance(op, func.FuncOp)), None)
    names = [] if main is None else value_names(main.arg_attrs, len(main.body.block.args))
    problems = [unknown_input(name, names) for name in fixed if name not in names]
    if main is not None:
        problems += [text for text in _fix(main, names, fixed) if text]
    if problems:
        raise FrontendError(Problem(file, "", "", text) for text in problems)


def _fix(main: func.FuncOp, names: Sequence[str], fixed: Mapping[str, Any]) -> list[str]:
    """Replace the arguments with these names; the result is what prevents it."""
    block, problems = main.body.block, list[str]()
    kept: list[Attribute] = []
    attributes = list(main.arg_attrs.data) if main.arg_attrs is not None else []
    constants: list[ConstantOp] = []
    for position, (name, argument) in enumerate(zip(names, tuple(block.args), strict=True)):
        if name not in fixed:
            kept += attributes[position : position + 1]
            continue
        try:
            type_ = argument.type
            if not isinstance(type_, TensorType):
                raise ValueError(f"is of type {type_}, expected a tensor")
            element = element_type(argument)
            dims = [dim.value for dim in dims_of(argument)]
            constant = ConstantOp.of(fixed_array(fixed[name], element, dims))
        except ValueError as error:
            problems.append(f"input '{name}' {error}")
            continue
        constant.location = argument.location
        constants.append(constant)
        argument.replace_all_uses_with(constant.result)
        block.erase_arg(argument)
    first = block.first_op
    if constants and first is not None:
        block.insert_ops_before(constants, first)
    if attributes:
        main.properties["arg_attrs"] = ArrayAttr(cast("list[Any]", kept))
    main.update_function_type()
    return problems


def unknown_input(name: str, known: Sequence[str]) -> str:
    """What is said of a value for an input that a model does not have."""
    names = ", ".join(f"'{each}'" for each in known[:_SHOWN]) or "none"
    return f"a value is given for '{name}', but the inputs are {names}"


def fixed_array(
    value: ArrayLike, element: Attribute, dims: Sequence[int | None] | None
) -> NDArray[Any]:
    """
    The value of an input as an array of its element type; None stands for a dimension that is not
    known, or for all of them.

    A number fills an input of more dimensions. Numbers and lists take the element type of the
    input, which arrays have to have. ValueError if the value does not fit.
    """
    array = _typed(value, element)
    if dims is None:
        return array
    if array.ndim == 0 and None not in dims:
        return np.full([dim for dim in dims if dim is not None], array, array.dtype)
    fits = array.ndim == len(dims) and all(
        dim is None or dim == size for dim, size in zip(dims, array.shape, strict=True)
    )
    if not fits:
        shape = ", ".join("?" if dim is None else str(dim) for dim in dims)
        raise ValueError(f"is given a value of shape {list(array.shape)}, expected [{shape}]")
    return array


def _typed(value: ArrayLike, element: Attribute) -> NDArray[Any]:
    """The value in an element type; ValueError if that changes it, but for rounding of floats."""
    has_type = isinstance(value, np.ndarray | np.generic)
    try:
        array = np.asarray(value)
        is_text = isinstance(element, StringType)
        dtype = np.dtype(object) if is_text else numpy_dtype(element)
    except (ValueError, KeyError) as error:
        raise ValueError(f"cannot be given the value {value}: {error}") from None
    if array.dtype == dtype or (is_text and array.dtype.kind in "OSU"):
        return np.ascontiguousarray(array.astype(dtype)).reshape(array.shape)
    if array.dtype.kind not in "biuf" or is_text:
        raise ValueError(f"is given {value!r}, expected {element}")
    if has_type and array.ndim > 0:
        raise ValueError(f"is given an array of {array.dtype}, expected {element}")
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        is_exact = bool(np.all(result.astype(array.dtype) == array))
    is_rounded = array.dtype.kind in "iuf" and dtype.kind not in "biu"
    if not is_exact and not (
        is_rounded and bool(np.all(np.isfinite(result) == np.isfinite(array)))
    ):
        raise ValueError(f"is given {value!r}, which {element} does not have")
    return result
