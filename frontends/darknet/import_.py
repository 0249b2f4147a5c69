"""Import of a net: one darknet op for each section that is a layer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnitAttr,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir import Block as BlockOfOps

from lowerdeck.dialects.arguments import Given, plain_attribute
from lowerdeck.dialects.blob import BlobAttr
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.names import STATES, named
from lowerdeck.dialects.core.types import f32, tensor
from lowerdeck.dialects.darknet.ops import op_class
from lowerdeck.dialects.darknet.sections import HEADS, NO_SHARE, WITHOUT_OUTPUT, Key, sections
from lowerdeck.dialects.darknet.shapes import (
    OF_ANOTHER,
    Layer,
    Shape,
    ShapeError,
    integers,
    layer_of,
)
from lowerdeck.frontends.darknet.parse import Block, CfgParser
from lowerdeck.frontends.darknet.tree import find_tree, read_tree
from lowerdeck.frontends.darknet.weights import find_weights, open_weights, read_header
from lowerdeck.frontends.errors import FrontendError

INPUT = "input"
"""The name of the input, which a cfg does not give."""

_FLOATS = UnrankedTensorType(f32)


def import_net(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    raw_heads: bool = False,
) -> ModuleOp:
    """
    The module for a net: `func.func @main`.

    The argument is the image [N, channels, height, width], or the numbers [N, inputs]; then come
    the states. Results are the heads in their order, then the last layer if it is none, or the
    layers that `outputs` names; then the states. With `raw_heads` a result is what a head gets.
    `weights` is the weights file; without it, the one beside the cfg is used. FrontendError lists
    everything that prevents the import.
    """
    file = os.fspath(path)
    importer = _Importer(file, None if weights is None else os.fspath(weights))
    return importer.run(outputs, input_shapes or {}, raw_heads=raw_heads)


def weight_shapes(path: str | os.PathLike[str]) -> list[tuple[str, str, Shape]]:
    """The lists of numbers that the weights file of a cfg has, in order: layer, name and shape."""
    importer = _Importer(os.fspath(path), None)
    importer.read({})
    return [
        (node.block.name, name, shape)
        for node in importer.owners()
        for name, shape in (() if node.layer is None else node.layer.weights)
    ]


@dataclass
class _Node:
    """A layer of the net, with the layers that it reads: -1 is the input of the net."""

    block: Block
    section: str
    sources: list[int]
    has_input: bool
    """True if the first source is the layer before it."""
    keys: dict[str, Key] = field(default_factory=dict[str, Key])
    shared: int | None = None
    """The layer that has its weights."""
    layer: Layer | None = None
    """None if something was wrong with it."""
    is_blurred: bool = False
    """True if the next layer gets another size than DarkNet says of the result."""
    parents: list[int] | None = None
    """The tree of classes."""
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    weights: list[SSAValue] = field(default_factory=list[SSAValue])


class _Importer:
    """The import of one net."""

    def __init__(self, file: str, weights: str | None) -> None:
        self.file = file
        self.weights_file = weights
        self.parser = CfgParser(file)
        self.nodes: list[_Node] = []
        self.input: Shape = ()
        self.batch = 1
        self.net = (0, 0)

    def run(
        self,
        outputs: Sequence[str] | None,
        shapes: Mapping[str, Sequence[int]],
        *,
        raw_heads: bool,
    ) -> ModuleOp:
        self.read(shapes)
        results = self._results(outputs, raw_heads=raw_heads)
        blobs = self._blobs()
        return self._module(results, blobs)

    def read(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Find the layers and their sizes; FrontendError lists everything that is wrong."""
        blocks = self.parser.blocks()
        self._read_input(blocks[0], shapes)
        if len(blocks) == 1:
            raise FrontendError.of_file(self.file, "found no layer behind [net]")
        self.parser.raise_problems()
        for block in blocks[1:]:
            self.nodes.append(self._connected(block))
        self._infer_all()
        self.parser.raise_problems()

    # Sizes

    def _read_input(self, net: Block, shapes: Mapping[str, Sequence[int]]) -> None:
        sizes = self.parser.net_sizes(net)
        image = (sizes["channels"], sizes["height"], sizes["width"])
        self.input = image if all(image) else (sizes["inputs"],)
        for name, given in shapes.items():
            if name != INPUT:
                self._refuse(f"a shape is given for '{name}', but the input is '{INPUT}'")
            elif len(given) not in (2, 4) or any(size < 1 for size in given):
                self._refuse(f"the shape {list(given)} is given, expected 4 positive sizes, or 2")
            else:
                self.batch, *item = given
                self.input = tuple(item)
        if not all(self.input):
            self.parser.report(
                net,
                "nothing says the sizes of the input, expected channels, height and width, or "
                f"inputs; give them with --input-shape {INPUT}=...",
            )
        if len(self.input) == 3:
            self.net = (self.input[1], self.input[2])

    def _refuse(self, message: str) -> None:
        raise FrontendError.of_file(self.file, message)

    def _connected(self, block: Block) -> _Node:
        """The node of a section, with the layers that it reads."""
        section = sections()[block.section]
        keys = {name: block.keys.get(name, default) for name, (_, default) in section.keys.items()}
        has_input = section.name not in ("route", "implicit")
        sources = [block.index - 1] if has_input else []
        node = _Node(block, section.name, sources, has_input, keys)
        node.is_blurred = bool(keys.get("antialiasing"))
        for name in ("from", "layers"):
            if name in keys:
                sources += self._others(node, name)
        share = keys.get("share_index", NO_SHARE)
        if isinstance(share, int) and share != NO_SHARE:
            node.shared = share if share >= 0 else block.index + share
            if not 0 <= node.shared < block.index or (
                self.nodes[node.shared].section != "convolutional"
            ):
                self.parser.report(block, f"share_index={share} is no convolution before it")
                node.shared = None
        for source in sources:
            self._check_source(node, source)
        self._keep_activations(node)
        if keys.get("tree") is not None:
            self._read_tree(node, str(keys["tree"]))
        return node

    def _keep_activations(self, node: _Node) -> None:
        """What sums and joins read is activated in spite of `bin_output`, as in DarkNet."""
        read = node.sources if node.section == "route" else node.sources[:2]
        for source in read if node.section in _READERS else ():
            if source >= 0:
                self.nodes[source].block.keys.pop("bin_output", None)

    def _read_tree(self, node: _Node, name: str) -> None:
        path = find_tree(self.file, name)
        if path is None:
            message = f"found no file {name} beside the cfg or one folder above, expected the tree"
            self.parser.report(node.block, message)
            return
        node.parents = read_tree(path)

    def _others(self, node: _Node, name: str) -> list[int]:
        try:
            numbers = integers(node.keys, name)
        except ShapeError as error:
            self.parser.report(node.block, str(error))
            return []
        if node.section in OF_ANOTHER:
            numbers = numbers[:1]  # DarkNet reads no further
        index = node.block.index
        found = [number if number >= 0 else index + number for number in numbers]
        for number, place in zip(numbers, found, strict=True):
            if not 0 <= place < index:
                self.parser.report(node.block, f"{name}={number} is no layer before it")
        return [place for place in found if 0 <= place < index]

    def _check_source(self, node: _Node, source: int) -> None:
        """Report a read of what is no result of DarkNet's, or of another size there."""
        if not 0 <= source < len(self.nodes):
            return
        read, is_end = self.nodes[source], node.section in ("cost", "empty", "dropout")
        if read.section in HEADS and not is_end:
            self.parser.report(node.block, f"it reads '{read.block.name}', which gives boxes")
        if read.section in WITHOUT_OUTPUT:
            self.parser.report(
                node.block, f"it reads '{read.block.name}', which training alone computes"
            )
        is_next = node.has_input and source == node.block.index - 1
        if read.is_blurred and not is_next:
            self.parser.report(
                node.block,
                f"it reads '{read.block.name}' with antialiasing, of which DarkNet gives the "
                "layer behind it alone the right sizes",
            )

    def _infer_all(self) -> None:
        faulty = {problem.node for problem in self.parser.problems}
        for node in self.nodes:
            shapes = [self._shape(source) for source in node.sources]
            known = [shape for shape in shapes if shape is not None]
            if len(known) == len(shapes) and node.block.name not in faulty:
                self._infer(node, known)

    def _shape(self, source: int) -> Shape | None:
        if source < 0:
            return self.input
        layer = self.nodes[source].layer
        return None if layer is None else layer.result

    def _infer(self, node: _Node, shapes: Sequence[Shape]) -> None:
        try:
            node.layer = layer_of(node.section, node.keys, shapes)
        except ShapeError as error:
            self.parser.report(node.block, str(error))
            return
        if node.shared is not None:
            other = self.nodes[node.shared].layer
            if other is not None and list(other.weights) != list(node.layer.weights):
                found = dict(other.weights)
                self.parser.report(
                    node.block,
                    f"found weights {found} of the layer that it shares them with, expected "
                    f"{dict(node.layer.weights)}",
                )

    # Results

    def _results(self, outputs: Sequence[str] | None, *, raw_heads: bool) -> list[int]:
        """The layers whose results are those of the net; -1 is its input."""
        heads = [node.block.index for node in self.nodes if node.section in HEADS]
        last = len(self.nodes) - 1
        while last > 0 and self.nodes[last].section in WITHOUT_OUTPUT:
            last -= 1
        chosen = (
            heads if last in heads or (heads and self._hands_on_boxes(last)) else [*heads, last]
        )
        if outputs is not None:
            places = {node.block.name: node.block.index for node in self.nodes}
            for name in outputs:
                if name not in places:
                    known = ", ".join(f"'{known}'" for known in list(places)[-10:])
                    self._refuse(f"no layer is named '{name}'; the last layers are {known}")
            chosen = [places[name] for name in outputs]
        for place in chosen:
            if self.nodes[place].section in WITHOUT_OUTPUT:
                self.parser.report(
                    self.nodes[place].block, "it gives nothing, which training alone computes"
                )
        self.parser.raise_problems()
        if raw_heads:
            chosen = [
                place - 1 if self.nodes[place].section in HEADS else place for place in chosen
            ]
        return list(dict.fromkeys(chosen))

    def _hands_on_boxes(self, last: int) -> bool:
        """True if the last layer is a head, or hands on what a head gives."""
        while last > 0 and self.nodes[last].section in ("dropout", "empty"):
            last -= 1
        return self.nodes[last].section in HEADS

    # Weights

    def owners(self) -> list[_Node]:
        """The layers that have numbers in the weights file."""
        return [
            node for node in self.nodes if node.layer and node.layer.weights and node.shared is None
        ]

    def _blobs(self) -> Iterator[BlobAttr]:
        """The numbers of all layers that have some; none if no layer has."""
        owners = self.owners()
        if not owners:
            return iter(())
        path = self.weights_file or find_weights(self.file)
        if path is None:
            self._refuse(
                f"no weights for the layers {_listed([node.block.name for node in owners])}; give "
                "the .weights file (--weights FILE), or put it beside the cfg under the same name"
            )
        assert path is not None
        transposed = read_header(path).is_transposed
        if transposed:
            for node in self.nodes:
                self._transpose(node)
        lists = [
            (node.block.name, [shape for _, shape in node.layer.weights])
            for node in owners
            if node.layer is not None
        ]
        return open_weights(path, lists)

    def _transpose(self, node: _Node) -> None:
        shapes = [shape for source in node.sources if (shape := self._shape(source)) is not None]
        node.layer = layer_of(node.section, node.keys, shapes, transposed=True)
        if node.section in ("connected", "rnn", "gru", "lstm"):
            node.keys["transposed"] = 1

    # The module

    def _locate(self, name: str, line: int = 0) -> LocationAttr:
        place = FileLineColLoc(StringAttr(self.file), IntAttr(line), IntAttr(0))
        return NameLoc(StringAttr(name), place)

    def _module(self, results: Sequence[int], blobs: Iterator[BlobAttr]) -> ModuleOp:
        main = BlockOfOps(arg_types=[tensor(f32, [self.batch, *self.input])])
        main.args[0].location = self._locate(INPUT)
        names, befores, afters = [INPUT], list[str](), list[str]()
        states: list[SSAValue] = []
        for node in self.nodes:
            before: list[SSAValue] = []
            for name, shape in _named_states(node):
                type_ = tensor(f32, [self.batch, *shape])
                argument = main.insert_arg(type_, len(main.args))
                argument.location = self._locate(name)
                before.append(argument)
                befores.append(name)
                afters.append(f"{name}_next")
            self._add(node, main, before, blobs)
            states += node.values[1:]
        values = [main.args[0] if k < 0 else self.nodes[k].values[0] for k in results]
        last = func.ReturnOp(*values, *states)
        main.add_op(last)
        outputs = [INPUT if k < 0 else self.nodes[k].block.name for k in results]
        function = func.FuncOp(
            "main",
            (main.arg_types, last.arguments.types),
            Region(main),
            arg_attrs=named([*names, *befores]),
            res_attrs=named([*outputs, *afters]),
        )
        place = FileLineColLoc(StringAttr(self.file), IntAttr(0), IntAttr(0))
        function.location = last.location = place
        if befores:
            function.attributes[STATES] = ArrayAttr(
                ArrayAttr([StringAttr(before), StringAttr(after), UnitAttr()])
                for before, after in zip(befores, afters, strict=True)
            )
        return ModuleOp([function])

    def _add(
        self,
        node: _Node,
        main: BlockOfOps,
        before: Sequence[SSAValue],
        blobs: Iterator[BlobAttr],
    ) -> None:
        """Add the op of a layer, and its weights unless it shares them."""
        location = self._locate(node.block.name, node.block.line)
        assert node.layer is not None
        if node.shared is not None:
            node.weights = self.nodes[node.shared].weights
        else:
            for (_, shape), blob in zip(node.layer.weights, blobs, strict=False):
                constant = ConstantOp(blob, tensor(f32, shape))
                constant.location = location
                main.add_op(constant)
                node.weights.append(constant.result)
        sources = [main.args[0] if k < 0 else self.nodes[k].values[0] for k in node.sources]
        given: dict[str, Given] = {}
        if node.has_input:
            given["input"] = sources[0]
        if others := sources[node.has_input :]:
            given["others"] = others
        if node.weights:
            given["weights"] = node.weights
        if before:
            given["states"] = list(before)
        if node.parents is not None:
            parents = ConstantOp.of(np.array(node.parents, np.int64))
            parents.location = location
            main.add_op(parents)
            given["parents"] = parents.result
        for key, value in (node.block.keys | _options(node, self.net, self.batch)).items():
            if key not in _WIRES:
                given[key] = plain_attribute(value)
        cls = op_class(node.section)
        assert cls is not None
        types: list[Attribute] = [_FLOATS, *(state.type for state in before)]
        op = cls(given, types)
        op.location = location
        main.add_op(op)
        node.values = list(op.results)


_READERS = ("route", "sam", "scale_channels", "shortcut")
"""Sections for whose sources `bin_output` does not hold."""

_WIRES = ("from", "layers", "share_index")
"""Keys that operands stand for."""


def _options(node: _Node, net: tuple[int, int], batch: int) -> dict[str, Key]:
    """What a layer has to know of the net and of the file."""
    options: dict[str, Key] = {}
    if node.keys.get("transposed"):
        options["transposed"] = True
    if node.section == "implicit":
        options["batch"] = batch
    if node.section in ("yolo", "Gaussian_yolo"):
        options |= {"net_height": net[0], "net_width": net[1]}
    return options


def _named_states(node: _Node) -> Iterator[tuple[str, Shape]]:
    assert node.layer is not None
    states = node.layer.states
    endings = ["state"] if len(states) == 1 else ["output", "memory"]
    for ending, shape in zip(endings, states, strict=False):
        yield f"{node.block.name}_{ending}", shape


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(f"'{name}'" for name in names[:10]) + more
