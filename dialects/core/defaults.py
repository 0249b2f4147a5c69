"""Inputs that a caller may leave out: the values that they have then."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator
from typing import Any, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.names import DEFAULT, value_names
from lowerdeck.dialects.core.types import dims_of, element_type, numpy_dtype


@irdl_attr_definition
class DefaultAttr(ParametrizedAttribute):
    """
    What an input is if the caller leaves it out: `#core.default<tensor<3xf32>, #core.blob<...>>`.

    Its sizes are numbers, also where those of the input are open: whoever leaves the input out has
    chosen them.
    """

    name = DEFAULT

    type: TensorType[Attribute]
    value: BlobAttr

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.type.get_shape()

    def array(self) -> NDArray[Any]:
        """The elements, read-only."""
        return self.value.data.array(numpy_dtype(self.type.element_type), self.shape)

    def fits(self, type_: Attribute) -> bool:
        """True if an input of this type can have the value: open sizes can be any."""
        if not isinstance(type_, TensorType | UnrankedTensorType):
            return False
        tensor = cast(Attribute, type_)
        if element_type(tensor) != self.type.element_type:
            return False
        if isinstance(tensor, UnrankedTensorType):
            return True
        dims = dims_of(tensor)
        return len(dims) == len(self.shape) and all(
            dim.value is None or dim.value == size
            for dim, size in zip(dims, self.shape, strict=True)
        )

    def verify(self) -> None:
        if not self.type.has_static_shape():
            raise VerifyException(f"a default needs a static shape, got {self.type}")
        try:
            size = math.prod(self.shape) * numpy_dtype(self.type.element_type).itemsize
        except KeyError:
            raise VerifyException(f"there is no default of {self.type}") from None
        if self.value.data.size not in (0, size):
            found = self.value.data.size
            raise VerifyException(f"the blob has {found} bytes, but {size} are expected")


def defaults_of(function: FuncOp) -> list[DefaultAttr | None]:
    """For each argument what it is if the caller leaves it out; None if it has to be given."""
    found: list[DefaultAttr | None] = [None] * len(function.function_type.inputs)
    for position, entry in enumerate(function.arg_attrs or ()):
        default = entry.data.get(DEFAULT)
        if isinstance(default, DefaultAttr):
            found[position] = default
    return found


def default_arrays(function: FuncOp) -> dict[str, NDArray[Any]]:
    """The values of the inputs that may be left out, by name."""
    defaults = defaults_of(function)
    names = value_names(function.arg_attrs, len(defaults))
    return {
        name: default.array()
        for name, default in zip(names, defaults, strict=True)
        if default is not None
    }


def default_of(value: SSAValue) -> DefaultAttr | None:
    """
    What an input is if the caller leaves it out, an argument of a function or the result of a
    framework's op; None if it has to be given.
    """
    if isinstance(value, BlockArgument):
        function = value.block.parent_op()
        return defaults_of(function)[value.index] if isinstance(function, FuncOp) else None
    found = value.owner.attributes.get(DEFAULT) if isinstance(value.owner, Operation) else None
    return found if isinstance(found, DefaultAttr) else None


def drop_unfit_defaults(function: FuncOp) -> None:
    """Let inputs be required that can no longer have their defaults: their sizes were fixed."""
    types = function.function_type.inputs.data
    _keep(function, lambda position, default: default.fits(types[position]))


def take_defaults(function: FuncOp, among: Container[str] | None = None) -> dict[str, DefaultAttr]:
    """Let inputs be required, all or those with these names; what their defaults were."""
    defaults = defaults_of(function)
    names = value_names(function.arg_attrs, len(defaults))
    taken = {
        name: default
        for name, default in zip(names, defaults, strict=True)
        if default is not None and (among is None or name in among)
    }
    _keep(function, lambda position, default: names[position] not in taken)
    return taken


def _keep(function: FuncOp, is_kept: Callable[[int, DefaultAttr], bool]) -> None:
    """Take away the defaults that are not to be kept."""
    attributes = function.arg_attrs
    if attributes is None or not any(defaults_of(function)):
        return
    kept: list[DictionaryAttr] = []
    for position, entry in enumerate(attributes):
        default = entry.data.get(DEFAULT)
        stays = not isinstance(default, DefaultAttr) or is_kept(position, default)
        names = (name for name in entry.data if stays or name != DEFAULT)
        kept.append(DictionaryAttr({name: entry.data[name] for name in names}))
    function.arg_attrs = ArrayAttr(kept)


def unfit_defaults(function: FuncOp) -> Iterator[str]:
    """What is wrong with the defaults of a function's arguments."""
    defaults = defaults_of(function)
    names = value_names(function.arg_attrs, len(defaults))
    for position, entry in enumerate(function.arg_attrs or ()):
        found = entry.data.get(DEFAULT)
        default, type_ = defaults[position], function.function_type.inputs.data[position]
        if found is not None and default is None:
            yield f"argument '{names[position]}': expected a #{DEFAULT}, got {found}"
        if default is not None and not default.fits(type_):
            yield f"argument '{names[position]}' of type {type_} has a default of {default.type}"
