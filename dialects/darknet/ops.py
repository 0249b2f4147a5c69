"""The ops of the `darknet` dialect: one class for each section that is a layer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from lowerdeck.dialects.arguments import Argument, ArgumentsOp, Schema
from lowerdeck.dialects.darknet.sections import Key, section_names, sections


class DarknetOp(ArgumentsOp):
    """
    A layer; the classes below it are made from the table of sections.

    `input` is the result of the layer before it, `others` are those of layers that a key names,
    `weights` what the layer has in the weights file, in that order, and `states` what it remembers,
    which follows its result as further results. All else are the keys of the section.
    `transposed` says that the weights of connected layers are stored by columns; `net_height` and
    `net_width` are the sizes of the image that a net sees, which the anchors of heads refer to, and
    `batch` is the number of items for which there are implicit weights. `parents` has the class
    above each class of a tree, and -1 for those that have none.

    Constraints:

    - (C1) `places` names each operand once, in order.
    - (C2) Arguments are those of the section.

    Example:

    ```mlir
    %r = "darknet.upsample"(%x) <{places = {input = array<i64: 0>}, stride = 2 : i64}>
        : (tensor<1x3x4x4xf32>) -> tensor<*xf32>
    ```
    """

    @property
    def keys(self) -> dict[str, Key]:
        """The keys of the section, with their defaults."""
        return {name: self.argument(name) for name in sections()[self.op_type].keys}


_OPERANDS = (
    Argument("input", "", None),
    Argument("others", "[]", None),
    Argument("weights", "[]", None),
    Argument("states", "[]", None),
    Argument("parents", "", None),
)

_OPTIONS = (
    Argument("transposed", "", False),
    Argument("batch", "", 1),
    Argument("net_height", "", 0),
    Argument("net_width", "", 0),
)


@cache
def op_class(name: str) -> type[DarknetOp] | None:
    """The class of a section by any of its names, or None if it is not known."""
    section = sections().get(name)
    if section is None:
        return None
    if section.name != name:
        return op_class(section.name)
    keys = [Argument(key, "", default) for key, (_, default) in section.keys.items()]
    arguments = {one.name: one for one in (*_OPERANDS, *_OPTIONS, *keys)}
    members: dict[str, object] = {
        "name": f"darknet.{name}",
        "schema": Schema(name, arguments),
        "traits": traits_def(Pure()),
        "__module__": __name__,
        "__doc__": f"DarkNet's section {name}.",
    }
    return type(f"{name}Op", (DarknetOp,), members)


def op_classes() -> Iterator[type[DarknetOp]]:
    """The classes of all sections."""
    for name in section_names():
        cls = op_class(name)
        assert cls is not None
        yield cls
