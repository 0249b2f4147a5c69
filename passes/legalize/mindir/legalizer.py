"""What a handler works with: the arguments of one op, and a builder before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import element_type
from lowerdeck.passes.legalize.arguments import ArgumentsLegalizer
from lowerdeck.passes.legalize.pt2.applied import aten
from lowerdeck.passes.legalize.tf1.applied import Operand, applied

_LAYOUTS = {0: "NCHW", 1: "NHWC", 14: "NCDHW"}
"""By the number that stands for them."""

_PAD_MODES = ("pad", "same", "valid")
"""By the number that stands for them."""


class MindirLegalizer(ArgumentsLegalizer):
    """What a handler works with."""

    @property
    def name(self) -> str:
        """The primitive."""
        return self.op.op_type

    # Other frameworks

    def torch(
        self, target: str, elements: Sequence[Attribute] | None = None, /, **arguments: Any
    ) -> list[SSAValue | None]:
        """What PyTorch's operator of a name gives, in the types of the results."""
        return aten(self, target, self.elements() if elements is None else elements, **arguments)

    def tensorflow(self, op_type: str, *operands: Operand, **attributes: Any) -> list[SSAValue]:
        """What TensorFlow's operator gives, in the types of the results."""
        found = applied(self, op_type, *operands, **attributes)
        return [self.cast(value, self.element(index)) for index, value in enumerate(found)]

    # Arguments

    def sizes(self, name: str) -> SSAValue:
        """Sizes as a vector of i64."""
        return self.dims(self.exprs_of(name))

    def values_in(self, name: str) -> list[SSAValue]:
        """The tensors that an argument is, one or several."""
        found = self.get(name)
        items = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [cast("SSAValue", item) for item in items if isinstance(item, SSAValue)]

    def axes_in(self, name: str, rank: int) -> list[int]:
        """Axes from the front; all of them where none are given."""
        found = self.get(name)
        if found is None or found == []:
            return list(range(rank))
        return self.axes(self.ints_of(name), rank) if rank else []

    def pair(self, name: str, count: int = 2, is_last: bool = False) -> list[int]:
        """
        Numbers of the spatial dimensions: one for all, their own, or those of all dimensions, among
        which channels may be last.
        """
        found = self.ints_of(name)
        if len(found) == 1:
            return found * count
        if len(found) == count:
            return found
        if len(found) == count + 2:
            return found[1:-1] if is_last else found[2:]
        self.refuse(f"'{name}' of {len(found)} numbers", f"1, {count} or {count + 2}")

    def choice(self, name: str, *words: str) -> str:
        """One of several words, or the word that a number stands for."""
        found = self.get(name)
        if isinstance(found, int) and 0 <= found < len(words):
            return words[found]
        return super().choice(name, *words)

    @property
    def is_last(self) -> bool:
        """True if the channels come last."""
        layout = self.get("data_format")
        name = _LAYOUTS.get(layout, layout)
        if name not in ("NCHW", "NHWC", "NCDHW", "NDHWC", None):
            self.refuse(f"the layout {layout}", "NCHW or NHWC")
        return name in ("NHWC", "NDHWC")

    def pad_mode(self) -> str:
        """`pad`, `same` or `valid`."""
        mode = self.get("pad_mode")
        if isinstance(mode, int) and 0 <= mode < len(_PAD_MODES):
            return _PAD_MODES[mode]
        found = str(mode).lower()
        if found not in _PAD_MODES:
            self.refuse(f"the padding '{mode}'", "one of " + ", ".join(_PAD_MODES))
        return found

    def stated_cast(self, value: SSAValue, index: int = 0) -> SSAValue:
        """A value in the type that the file states for a result."""
        return self.cast(value, self.element(index))

    def common(self, *names: str) -> list[SSAValue]:
        """Tensors, and numbers in the type of the first tensor among them."""
        tensors = [value for name in names if (value := self.optional(name)) is not None]
        if not tensors:
            self.refuse("numbers alone", "a tensor")
        element = element_type(tensors[0])
        return [self.optional(name) or self.operand(name, element).value for name in names]
