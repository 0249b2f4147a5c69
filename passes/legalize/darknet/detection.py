"""
Heads: rows of x, y, width, height, objectness, and the score of each class.

Boxes are those of `get_network_boxes`: centers and sizes relative to the image. A score is the
product of objectness and class; no threshold is applied, and nothing is suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.darknet.shapes import anchors_of, image_of, positive
from lowerdeck.passes.legalize.darknet.activation import logistic
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.darknet.tree import along_tree, last_probable, of_tree
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


class _Cells:
    """What a head gets: [N, boxes of a cell, numbers of a box, height, width]."""

    def __init__(self, builder: DarknetLegalizer, count: int) -> None:
        channels, self.height, self.width = image_of(builder.shapes[0])
        self.builder = builder
        self.anchors = np.array(anchors_of(builder.keys), np.float32)
        shape = [builder.batch, count, channels // count, self.height, self.width]
        self.numbers = builder.reshape(builder.input(), shape)
        self.size = channels // count

    def part(self, first: int, count: int = 1) -> TensorValue:
        """Some of the numbers of all boxes."""
        part = self.builder.slice_axis(self.numbers, 2, first, count)
        return TensorValue(self.builder, part)

    def rest(self, first: int) -> TensorValue:
        """The numbers from the one on."""
        return self.part(first, self.size - first)

    def places(self, offsets: TensorValue) -> TensorValue:
        """Centers, x and y: offsets in a cell relative to the image."""
        columns, rows = np.meshgrid(np.arange(self.width), np.arange(self.height))
        grid = np.stack([columns, rows])[None, None].astype(np.float32)
        sizes = np.array([self.width, self.height], np.float32).reshape(1, 1, 2, 1, 1)
        return (offsets + self._known(grid)) / self._known(sizes)

    def sizes(self, factors: TensorValue, width: int, height: int) -> TensorValue:
        """Width and height: factors times those of anchors, relative to an image."""
        sizes = self.anchors / np.array([width, height], np.float32)
        return factors * self._known(sizes.reshape(1, -1, 2, 1, 1))

    def _known(self, array: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> TensorValue:
        return TensorValue(self.builder, array)

    def rows(self, parts: Sequence[TensorValue]) -> SSAValue:
        """The numbers of boxes in rows: those of a cell one after the other."""
        boxes = concat(parts, 2).transpose([0, 3, 4, 1, 2])
        return boxes.reshape([self.builder.batch, *self.builder.layer.result]).value


def _net(builder: DarknetLegalizer) -> tuple[int, int]:
    """Width and height of the image that the net sees."""
    width, height = builder.integer("net_width"), builder.integer("net_height")
    if width < 1 or height < 1:
        builder.refuse(f"an image of {[height, width]} for anchors", "positive sizes")
    return width, height


@legalizes("yolo")
def legalize_yolo(builder: DarknetLegalizer) -> Results:
    """
    Centers, objectness and classes are logistic functions, sizes exponential; with `new_coords`
    the convolution before has made all of them 0 .. 1, and sizes are squares of twice that.
    """
    cells = _Cells(builder, len(anchors_of(builder.keys)))
    is_new = builder.flag("new_coords")
    xy, wh, objectness, classes = cells.part(0, 2), cells.part(2, 2), cells.part(4), cells.rest(5)
    if not is_new:
        xy, objectness, classes = logistic(xy), logistic(objectness), logistic(classes)
    factors = wh * wh * 4 if is_new else wh.exp()
    boxes = [cells.places(_scaled(builder, xy)), cells.sizes(factors, *_net(builder))]
    return [cells.rows([*boxes, objectness, classes * objectness])]


def _scaled(builder: DarknetLegalizer, xy: TensorValue) -> TensorValue:
    """Offsets in a cell, `scale_x_y` times around its middle."""
    scale = builder.number("scale_x_y")
    return xy if scale == 1 else xy * scale - 0.5 * (scale - 1)


@legalizes("Gaussian_yolo")
def legalize_gaussian_yolo(builder: DarknetLegalizer) -> Results:
    """As `yolo`, with an uncertainty behind each coordinate; one minus their mean scales scores."""
    cells = _Cells(builder, len(anchors_of(builder.keys)))
    xy = logistic(concat([cells.part(0), cells.part(2)], 2))
    wh = concat([cells.part(4), cells.part(6)], 2).exp()
    doubts = [logistic(cells.part(number)) for number in (1, 3, 5, 7)]
    doubt = (doubts[0] + doubts[1] + doubts[2] + doubts[3]) / 4.0
    objectness, classes = logistic(cells.part(8)), logistic(cells.rest(9))
    places = cells.places(_scaled(builder, xy))
    sizes = cells.sizes(wh, *_net(builder))
    match builder.text("yolo_point"):
        case "left_top":
            places = places + sizes * 0.5
        case "right_bottom":
            places = places - sizes * 0.5
        case _:
            pass
    scores = classes * objectness * (1 - doubt)
    return [cells.rows([places, sizes, objectness, scores])]


@legalizes("region")
def legalize_region(builder: DarknetLegalizer) -> Results:
    """
    As `yolo` with anchors in cells; classes are a softmax, or as they are without `softmax`. With
    `tree` the last class that is more probable than not, with all above it, has its probability as
    its score, and others none.
    """
    cells = _Cells(builder, positive(builder.keys, "num")[0])
    objectness, classes = logistic(cells.part(4)), cells.rest(5)
    has_tree = builder.keys["tree"] is not None
    if builder.flag("softmax") and not has_tree:
        classes = TensorValue(builder, builder.add(SoftmaxOp(classes.value, 2)))
    scale = TensorValue.number(builder, 1, f32) if has_tree else objectness
    if builder.integer("classfix") == -1:
        scale = objectness.lt(0.5).where(objectness * 0, scale)
    if has_tree:
        parents = builder.parents(positive(builder.keys, "classes")[0])
        classes = last_probable(along_tree(of_tree(classes, 2, parents), 2, parents), 2)
    boxes = [
        cells.places(logistic(cells.part(0, 2))),
        cells.sizes(cells.part(2, 2).exp(), cells.width, cells.height),
    ]
    return [cells.rows([*boxes, objectness, classes * scale])]


@legalizes("detection")
def legalize_detection(builder: DarknetLegalizer) -> Results:
    """
    The classes of all cells, then the objectness of all boxes, then all boxes. Boxes of a cell have
    its classes; with `sqrt` sizes are stored as roots.
    """
    classes, num, side = positive(builder.keys, "classes", "num", "side")
    cells = side * side
    row = builder.row(builder.input())
    first, second, third = builder.split(row, 1, [cells * classes, cells * num, cells * num * 4])
    batch = builder.batch
    scores = TensorValue(builder, first).reshape([batch, cells, 1, classes])
    if builder.flag("softmax"):
        scores = TensorValue(builder, builder.add(SoftmaxOp(scores.value, 3)))
    objectness = TensorValue(builder, second).reshape([batch, cells, num, 1])
    boxes = TensorValue(builder, third).reshape([batch, cells, num, 4])
    columns, rows = np.meshgrid(np.arange(side), np.arange(side))
    grid = np.stack([columns, rows], -1).reshape(1, cells, 1, 2).astype(np.float32)
    xy = TensorValue(builder, builder.slice_axis(boxes.value, 3, 0, 2))
    wh = TensorValue(builder, builder.slice_axis(boxes.value, 3, 2, 2))
    places = (xy + TensorValue(builder, grid)) / float(side)
    sizes = wh * wh if builder.flag("sqrt") else wh
    found = concat([places, sizes, objectness, scores * objectness], 3)
    return [found.reshape([batch, *builder.layer.result]).value]
