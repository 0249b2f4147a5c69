"""
Well-known nets of DarkNet, by their layers: of any width, so that small ones are quick to test.

    python -m models.darknet_networks FOLDER [NAME ...]
    python -m models.darknet_answers FOLDER
    python -m models.corpus darknet --corpus FOLDER

The first writes each net with random weights into a folder of its own below FOLDER/darknet, the
second, in a Python that has OpenCV, an input and what OpenCV's DNN gives for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from models.darknet_nets import net, write_net

_SIZE = 96
"""Of images."""
_GAIN = 0.6
"""Keeps the numbers of the deepest nets small."""
_ANCHORS = "10,13,16,30,33,23,30,61,62,45,59,119,116,90,156,198,373,326"
_ALL = "thresh=0"
"""OpenCV makes zeros of scores below 0.2 otherwise; DarkNet does not read it."""


class _Layers:
    """Layers one after the other; each method adds some and gives the number of the last one."""

    def __init__(self, width: int, classes: int) -> None:
        self.width = width
        self.classes = classes
        self.lines: list[str] = []

    def add(self, line: str) -> int:
        """A section in short."""
        self.lines.append(line)
        return len(self.lines) - 1

    def conv(
        self,
        filters: int,
        size: int = 1,
        stride: int = 1,
        to: str = "leaky",
        groups: int = 1,
        norm: int = 1,
    ) -> int:
        """A convolution; as many groups as filters are one a channel."""
        count = max(filters // self.width, 1)
        groups = count if groups == filters else groups
        return self.add(
            f"convolutional batch_normalize={norm} filters={count} size={size} stride={stride} "
            f"pad=1 groups={groups} activation={to}"
        )

    def convs(self, *filters: int, to: str = "leaky") -> int:
        """Convolutions of sizes 1 and 3 in turn."""
        for number, count in enumerate(filters):
            self.conv(count, 3 if number % 2 else 1, to=to)
        return len(self.lines) - 1

    def pool(self, size: int = 2, stride: int = 2) -> int:
        return self.add(f"maxpool size={size} stride={stride}")

    def route(self, *layers: int, more: str = "") -> int:
        return self.add(f"route layers={','.join(map(str, layers))} {more}")

    def shortcut(self, layer: int, to: str = "linear") -> int:
        return self.add(f"shortcut from={layer} activation={to}")

    def up(self, filters: int) -> int:
        """A convolution, and each number twice in each direction."""
        self.conv(filters)
        return self.add("upsample stride=2")

    def yolo(self, mask: str, *, to: str = "linear", more: str = "") -> int:
        """The convolution of a head, and the head."""
        filters = (mask.count(",") + 1) * (5 + self.classes)
        self.add(f"convolutional size=1 pad=1 filters={filters} activation={to}")
        return self.add(
            f"yolo mask={mask} anchors={_ANCHORS} classes={self.classes} num=9 {_ALL} {more}"
        )

    def pyramid(self) -> int:
        """Pools of three sizes beside what they are of."""
        before = len(self.lines) - 1
        sizes: list[int] = []
        for size in (5, 9, 13):
            if sizes:
                self.route(before)
            sizes.insert(0, self.pool(size, 1))
        return self.route(*sizes, before)


def _yolov2_tiny(n: _Layers) -> None:
    for filters in (16, 32, 64, 128, 256):
        n.conv(filters, 3)
        n.pool()
    n.conv(512, 3)
    n.pool(2, 1)
    n.conv(1024, 3)
    n.conv(512, 3)
    n.add(f"convolutional size=1 pad=1 filters={5 * (5 + n.classes)} activation=linear")
    # Of sizes so far apart that OpenCV suppresses none.
    n.add(
        f"region anchors=0.01,0.01,0.03,0.03,0.09,0.09,0.27,0.27,0.81,0.81 classes={n.classes} "
        f"coords=4 num=5 softmax=1 {_ALL}"
    )


def _yolov3_tiny(n: _Layers) -> None:
    for filters in (16, 32, 64, 128):
        n.conv(filters, 3)
        n.pool()
    early = n.conv(256, 3)
    n.pool()
    n.conv(512, 3)
    n.pool(2, 1)
    n.conv(1024, 3)
    middle = n.conv(256)
    n.conv(512, 3)
    n.yolo("3,4,5")
    n.route(middle)
    n.route(n.up(128), early)
    n.conv(256, 3)
    n.yolo("0,1,2")


def _yolov3(n: _Layers) -> None:
    n.conv(32, 3)
    stages: list[int] = []
    for filters, count in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        last = n.conv(filters, 3, 2)
        for _ in range(count):
            n.convs(filters // 2, filters)
            last = n.shortcut(last)
        stages.append(last)
    for number, filters in enumerate((512, 256, 128)):
        middle = n.convs(*[filters, 2 * filters] * 2, filters)
        n.conv(2 * filters, 3)
        n.yolo(f"{6 - 3 * number},{7 - 3 * number},{8 - 3 * number}")
        if number < 2:
            n.route(middle)
            n.route(n.up(filters // 2), stages[3 - number])


def _yolov4_tiny(n: _Layers) -> None:
    n.conv(32, 3, 2)
    n.conv(64, 3, 2)
    early = 0
    for filters in (64, 128, 256):
        whole = n.conv(filters, 3)
        n.route(whole, more="groups=2 group_id=1")
        first = n.conv(filters // 2, 3)
        n.route(n.conv(filters // 2, 3), first)
        early = n.conv(filters)
        n.route(whole, early)
        n.pool()
    n.conv(512, 3)
    middle = n.conv(256)
    n.conv(512, 3)
    n.yolo("3,4,5", more="scale_x_y=1.05")
    n.route(middle)
    n.route(n.up(128), early)
    n.conv(256, 3)
    n.yolo("1,2,3", more="scale_x_y=1.05")


def _panet(n: _Layers, early: int, middle: int) -> None:
    """What follows the stages in YOLOv4: a pyramid, up to two earlier ones, and down again."""
    n.convs(512, 1024, 512)
    n.pyramid()
    deep = n.convs(512, 1024, 512)
    ends = [deep]
    for stage, filters in ((middle, 256), (early, 128)):
        raised = n.up(filters)
        n.route(stage)
        n.route(n.conv(filters), raised)
        ends.append(n.convs(*[filters, 2 * filters] * 2, filters))
    last = ends.pop()
    for number, (filters, scale) in enumerate(((128, 1.2), (256, 1.1), (512, 1.05))):
        n.conv(2 * filters, 3)
        n.yolo(f"{3 * number},{3 * number + 1},{3 * number + 2}", more=f"scale_x_y={scale}")
        if number < 2:
            n.route(last)
            n.route(n.conv(2 * filters, 3, 2), ends.pop())
            last = n.convs(*[2 * filters, 4 * filters] * 2, 2 * filters)


def _yolov4(n: _Layers) -> None:
    n.conv(32, 3, to="mish")
    stages: list[int] = []
    for filters, count in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        part = filters if count == 1 else filters // 2
        start = n.conv(filters, 3, 2, "mish")
        beside = n.conv(part, to="mish")
        n.route(start)
        last = n.conv(part, to="mish")
        for _ in range(count):
            n.convs(filters // 2, part, to="mish")
            last = n.shortcut(last)
        n.route(n.conv(part, to="mish"), beside)
        stages.append(n.conv(filters, to="mish"))
    _panet(n, stages[2], stages[3])


def _csresnext50(n: _Layers) -> None:
    n.conv(64, 7, 2)
    start = n.pool()
    stages: list[int] = []
    for filters, count in ((128, 3), (256, 3), (512, 5), (1024, 2)):
        if filters > 128:
            n.conv(filters, 3, 2, groups=32)
            start = n.conv(filters, to="linear" if filters < 1024 else "leaky")
            beside = start
            n.route(start - 1)
            last = n.conv(filters, to="linear" if filters < 1024 else "leaky")
        else:
            beside = n.conv(128)
            n.route(start)
            last = n.conv(64)
        for _ in range(count):
            n.conv(filters)
            n.conv(filters, 3, groups=32)
            n.conv(filters, to="linear")
            last = n.shortcut(last, "leaky")
        n.route(n.conv(filters), beside)
        stages.append(n.conv(2 * filters))
    _panet(n, stages[1], stages[2])


def _enet_block(
    n: _Layers, inner: int, squeezed: int, outer: int, size: int, stride: int, last: int | None
) -> int:
    """Channels are expanded, filtered each by itself, weighed, and reduced; `last` is added."""
    n.conv(inner, to="swish")
    filtered = n.conv(inner, size, stride, "swish", groups=inner)
    n.add("avgpool")
    n.conv(squeezed, to="swish", norm=0)
    n.conv(inner, to="logistic", norm=0)
    n.add(f"scale_channels from={filtered}")
    reduced = n.conv(outer, to="linear")
    if last is None:
        return reduced
    n.add("dropout probability=.2")
    return n.shortcut(last)


def _enetb0(n: _Layers) -> None:
    n.conv(32, 3, 2, "swish")
    _enet_block(n, 32, 8, 16, 3, 1, None)
    early = 0
    stages = (
        (96, 16, 24, 3, 2),
        (144, 8, 24, 3, 1),
        (144, 8, 40, 5, 2),
        (192, 16, 40, 5, 1),
        (192, 16, 80, 3, 1),
        (384, 24, 80, 3, 1),
        (384, 24, 80, 3, 1),
        (384, 24, 112, 5, 2),
        (576, 32, 112, 5, 1),
        (576, 32, 112, 5, 1),
        (576, 32, 192, 5, 2),
        (960, 64, 192, 5, 1),
        (960, 64, 192, 5, 1),
        (960, 64, 192, 5, 1),
        (960, 64, 320, 3, 1),
    )
    last, before = 0, 16
    for inner, squeezed, outer, size, stride in stages:
        adds = last if outer == before else None
        if outer == 192 and before == 112:
            early = len(n.lines)
        last = _enet_block(n, inner, squeezed, outer, size, stride, adds)
        before = outer
    n.conv(1280, to="swish")
    first = n.conv(256)
    n.conv(256, 3)
    both = n.shortcut(first, "leaky")
    n.yolo("3,4,5")
    n.route(both - 1)
    raised = n.up(128)
    n.shortcut(early, "leaky")
    n.conv(128, 3)
    n.shortcut(raised, "leaky")
    n.shortcut(early, "leaky")
    n.yolo("1,2,3")


def _elan(n: _Layers, filters: int) -> int:
    """Two convolutions beside two more, all four of which are joined."""
    before = len(n.lines) - 1
    first = n.conv(filters)
    n.route(before)
    parts = [first, n.conv(filters), n.conv(filters, 3), n.conv(filters, 3)]
    n.route(*parts)
    return n.conv(2 * filters)


def _yolov7_tiny(n: _Layers) -> None:
    n.conv(32, 3, 2)
    n.conv(64, 3, 2)
    stages: list[int] = []
    for filters in (32, 64, 128, 256):
        if stages:
            n.pool()
        stages.append(_elan(n, filters))
    beside = n.conv(256)
    n.route(stages[3])
    n.conv(256)
    n.pyramid()
    n.route(beside, n.conv(256))
    ends = [n.conv(256)]
    for filters, stage in ((128, stages[2]), (64, stages[1])):
        raised = n.up(filters)
        n.route(stage)
        n.route(n.conv(filters), raised)
        ends.append(_elan(n, filters // 2))
    heads = [ends.pop()]
    for filters in (128, 256):
        n.route(n.conv(filters, 3, 2), ends.pop())
        heads.append(_elan(n, filters // 2))
    for number, end in enumerate(heads):
        n.route(end)
        n.conv(128 << number, 3)
        mask = f"{3 * number},{3 * number + 1},{3 * number + 2}"
        n.yolo(mask, to="logistic", more="scale_x_y=2.0 new_coords=1")


def _rnn(n: _Layers) -> None:
    size = 1024 // n.width
    for _ in range(3):
        n.add(f"rnn batch_normalize=1 output={size} hidden={size} activation=leaky")
    n.add("connected output=256 activation=leaky")
    n.add("softmax")
    n.add("cost type=sse")


NETWORKS: dict[str, Callable[[_Layers], None]] = {
    "csresnext50-panet": _csresnext50,
    "enetb0": _enetb0,
    "rnn": _rnn,
    "yolov2-tiny": _yolov2_tiny,
    "yolov3": _yolov3,
    "yolov3-tiny": _yolov3_tiny,
    "yolov4": _yolov4,
    "yolov4-tiny": _yolov4_tiny,
    "yolov7-tiny": _yolov7_tiny,
}


def network(name: str, *, width: int = 1, classes: int = 80, size: int = 416) -> str:
    """The cfg of a net whose layers have a `width`th of their channels, for square images."""
    layers = _Layers(width, classes)
    NETWORKS[name](layers)
    sizes = {"inputs": 256} if name == "rnn" else dict(channels=3, height=size, width=size)
    return net(*layers.lines, **sizes)


def main(argv: Sequence[str]) -> int:
    """Write nets with random weights."""
    folder, *names = argv
    for name in names or NETWORKS:
        own = Path(folder) / "darknet" / name
        own.mkdir(parents=True, exist_ok=True)
        print(write_net(own, name, network(name, size=_SIZE), seed=3, gain=_GAIN))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
