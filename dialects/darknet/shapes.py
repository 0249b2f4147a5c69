"""
What a layer makes of the sizes that it gets: its result, its weights and its states.

Sizes are those of one item of a batch: channels, height and width of an image, or a count of
numbers that are no image. The formulas are those of DarkNet's layers (`make_*_layer` and
`load_weights_upto` of AlexeyAB's fork).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any, TypeAlias

from lowerdeck.dialects.darknet.sections import Key
from lowerdeck.dialects.records import record

Shape: TypeAlias = "tuple[int, ...]"
Keys: TypeAlias = "Mapping[str, Key]"

_MOST = 2**31 - 1
"""Numbers in a result or a list of weights, which DarkNet counts with an int."""


class ShapeError(Exception):
    """A layer that DarkNet has no result for: what was found and expected."""


@record
class Layer:
    """The sizes of a layer; `weights` are those in the weights file, in its order, by name."""

    result: Shape
    weights: Sequence[tuple[str, Shape]] = ()
    states: Sequence[Shape] = ()


@record
class Convolution:
    """A convolution, or one of those that a layer is made of: square windows."""

    channels: int
    filters: int
    groups: int
    size: int
    strides: tuple[int, int]
    """Along height and width."""
    dilation: int
    padding: int
    """Before it is multiplied by the dilation."""
    is_normalized: bool
    is_flipped: bool = False
    has_signs: bool = False
    """True if a filter is its signs times the mean of its absolute values."""
    takes_signs: bool = False
    """True if the signs of the image are taken, too; padding is -1 then."""

    @property
    def kernel(self) -> Shape:
        """The shape of the weights."""
        return self.filters, self.channels // self.groups, self.size, self.size

    @property
    def weights(self) -> list[tuple[str, Shape]]:
        """The weights in the order of the file."""
        count, *others = self.kernel
        stored = (prod(others), count) if self.is_flipped else self.kernel
        return [*_moments(self.filters, self.is_normalized), ("weights", stored)]

    def result(self, image: Shape) -> Shape:
        """The sizes of the result; ShapeError where DarkNet misplaces windows."""
        sizes = [
            self._windows(size, stride)
            for size, stride in zip(image[1:], self.strides, strict=True)
        ]
        return (self.filters, *sizes)

    def _windows(self, size: int, stride: int) -> int:
        count = _windows(size, self.size, stride, 2 * self.padding)
        reach = self.dilation * (self.size - 1) + 1
        if count != _windows(size, reach, stride, 2 * self.padding * self.dilation):
            raise ShapeError(
                f"found dilation {self.dilation} with size {self.size} and padding {self.padding}, "
                "expected a padding of half the size: DarkNet takes windows of the undilated size "
                "for granted"
            )
        return count


def _windows(size: int, kernel: int, stride: int, padding: int) -> int:
    if size + padding < kernel:
        raise ShapeError(
            f"found windows of {kernel} over {size} with {padding} of padding, expected at least "
            "one window"
        )
    return (size + padding - kernel) // stride + 1


def _moments(count: int, is_normalized: bool) -> list[tuple[str, Shape]]:
    names = ("biases", "scales", "mean", "variance") if is_normalized else ("biases",)
    return [(name, (count,)) for name in names]


def positive(keys: Keys, *names: str) -> list[int]:
    """Keys that must be positive."""
    found = [integer(keys, name) for name in names]
    for name, number in zip(names, found, strict=True):
        if number < 1:
            raise ShapeError(f"found {name}={number}, expected a positive number")
    return found


def integer(keys: Keys, name: str) -> int:
    """A key that is an integer."""
    found = keys[name]
    if not isinstance(found, int):
        raise ShapeError(f"found {name}={found}, expected an integer")
    return found


def integers(keys: Keys, name: str) -> list[int]:
    """A key that is a list of integers."""
    found = keys[name]
    if not isinstance(found, list):
        raise ShapeError(f"found no '{name}', expected a list of integers")
    return [int(number) for number in found]


def image_of(shape: Shape) -> tuple[int, int, int]:
    """The sizes of an image; ShapeError for numbers that are none."""
    if len(shape) != 3:
        raise ShapeError(f"found {prod(shape)} numbers that are no image, expected an image")
    return shape[0], shape[1], shape[2]


def convolution_of(keys: Keys, channels: int, filters: int | None = None) -> Convolution:
    """The convolution that the keys of a section describe."""
    size, stride = positive(keys, "size", "stride")
    dilation = positive(keys, "dilation")[0] if size > 1 else 1
    takes_signs, has_signs = bool(keys.get("xnor")), bool(keys.get("binary"))
    # DarkNet has no groups of signs.
    groups = 1 if takes_signs else max(integer(keys, "groups"), 1)
    filters = positive(keys, "filters")[0] if filters is None else filters
    if channels % groups or filters % groups:
        raise ShapeError(
            f"found {groups} groups of {channels} channels and {filters} filters, expected "
            "divisors of both"
        )
    strides = (_or(keys, "stride_y", stride), _or(keys, "stride_x", stride))
    is_normalized = bool(keys["batch_normalize"] or keys.get("cbn"))
    flipped = bool(keys.get("flipped"))
    padding = _padding(keys, size)
    if takes_signs and (dilation > 1 or len(set(strides)) > 1 or "filters" not in keys):
        raise ShapeError(
            "found xnor=1 with dilation, unequal strides, or in a layer that remembers; expected a "
            "convolution without: what DarkNet computes of it depends on its build"
        )
    return Convolution(
        channels,
        filters,
        groups,
        size,
        strides,
        dilation,
        padding,
        is_normalized,
        is_flipped=flipped,
        has_signs=has_signs or takes_signs,
        takes_signs=takes_signs,
    )


def _or(keys: Keys, name: str, default: int) -> int:
    """An integer that stands for `default` if it is not positive."""
    found = keys.get(name)
    return found if isinstance(found, int) and found > 0 else default


def _padding(keys: Keys, size: int) -> int:
    padding = size // 2 if keys["pad"] else integer(keys, "padding")
    if padding < 0:
        raise ShapeError(f"found padding={padding}, expected none that is negative")
    return padding


@record
class Pool:
    """Windows of `maxpool` and `local_avgpool`; lists are along height and width."""

    size: int
    strides: tuple[int, int]
    begin: int
    """Padding before the image."""
    ends: tuple[int, int]
    """Padding behind it that exactly the windows there are need, negative if they leave it out."""
    counts: tuple[int, int]


def pool_of(keys: Keys, image: Shape) -> Pool:
    """The windows of a pool: the padding is in all, the odd one is at the end."""
    (stride,) = positive(keys, "stride")
    size = _given(keys, "size", stride)
    padding = _given(keys, "padding", size - 1)
    strides = (_given(keys, "stride_y", stride), _given(keys, "stride_x", stride))
    if size < 1 or padding < 0 or min(strides) < 1:
        raise ShapeError(
            f"found size={size}, strides {list(strides)} and padding={padding}, expected positive "
            "sizes and strides"
        )
    if keys.get("antialiasing"):
        strides = (1, 1)
    counts = [
        _windows(length, size, stride, padding)
        for length, stride in zip(image[1:], strides, strict=True)
    ]
    begin = padding // 2
    ends = [
        (count - 1) * stride + size - begin - length
        for count, stride, length in zip(counts, strides, image[1:], strict=True)
    ]
    return Pool(size, strides, begin, (ends[0], ends[1]), (counts[0], counts[1]))


def _given(keys: Keys, name: str, default: int) -> int:
    found = keys.get(name)
    return found if isinstance(found, int) else default


def blur_of(keys: Keys, image: Shape) -> Convolution | None:
    """The blurring that has the strides of a layer with `antialiasing`, or None."""
    if not keys.get("antialiasing"):
        return None
    (stride,) = positive(keys, "stride")
    size, padding = (2, 0) if keys["antialiasing"] == 2 else (3, 1)
    strides = (_or(keys, "stride_y", stride), _or(keys, "stride_x", stride))
    channels = image[0]
    return Convolution(channels, channels, channels, size, strides, 1, padding, False)


# Layers by section

_Maker: TypeAlias = "Callable[[Keys, Sequence[Shape], bool], Layer]"

_MAKERS: dict[str, _Maker] = {}

OF_ANOTHER = frozenset({"control_channels", "sam", "scale_channels", "shift_channels"})
"""Sections that read one other layer beside the one before them."""

_OF_TWO = OF_ANOTHER | {"shortcut"}


def _makes(*names: str) -> Callable[[_Maker], _Maker]:
    def register(maker: _Maker) -> _Maker:
        _MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return register


def layer_of(
    section: str, keys: Keys, shapes: Sequence[Shape], *, transposed: bool = False
) -> Layer:
    """
    The sizes of a layer whose input and others have `shapes`; ShapeError if there are none.

    `transposed` files store the weights of connected layers by columns.
    """
    least = 2 if section in _OF_TWO else 0 if section == "implicit" else 1
    if len(shapes) < least:
        raise ShapeError(f"found {len(shapes)} results to read, expected {least}")
    layer = _MAKERS[section](keys, shapes, transposed)
    for shape in (layer.result, *layer.states, *(shape for _, shape in layer.weights)):
        if not 0 < prod(shape) <= _MOST:
            raise ShapeError(f"found {prod(shape)} numbers, expected 1 to {_MOST}")
    return layer


@_makes("activation", "dropout", "empty", "contrastive", "cost")
def _same(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del keys, transposed
    return Layer(shapes[0])


@_makes("avgpool")
def _avgpool(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del keys, transposed
    return Layer((image_of(shapes[0])[0], 1, 1))


@_makes("batchnorm")
def _batchnorm(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del keys, transposed
    return Layer(shapes[0], _moments(image_of(shapes[0])[0], True))


def _connected(
    inputs: int, outputs: int, is_normalized: bool, transposed: bool
) -> list[tuple[str, Shape]]:
    biases, *moments = _moments(outputs, is_normalized)
    shape = (inputs, outputs) if transposed else (outputs, inputs)
    return [biases, ("weights", shape), *moments]


@_makes("connected")
def _connected_layer(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    (outputs,) = positive(keys, "output")
    is_normalized = bool(keys["batch_normalize"])
    weights = _connected(prod(shapes[0]), outputs, is_normalized, transposed)
    return Layer((outputs, 1, 1), weights)


@_makes("rnn")
def _rnn(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    outputs, hidden = positive(keys, "output", "hidden")
    parts = [("input", prod(shapes[0]), hidden), ("self", hidden, hidden)]
    weights = _several([*parts, ("output", hidden, outputs)], keys, transposed)
    return Layer((outputs, 1, 1), weights, [(hidden,)])


@_makes("gru")
def _gru(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    (outputs,) = positive(keys, "output")
    parts = [(f"input_{gate}", prod(shapes[0]), outputs) for gate in "zrh"]
    parts += [(f"state_{gate}", outputs, outputs) for gate in "zrh"]
    return Layer((outputs,), _several(parts, keys, transposed), [(outputs,)])


@_makes("lstm")
def _lstm(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    (outputs,) = positive(keys, "output")
    parts = [(f"w{gate}", outputs, outputs) for gate in "figo"]
    parts += [(f"u{gate}", prod(shapes[0]), outputs) for gate in "figo"]
    weights = _several(parts, keys, transposed)
    return Layer((outputs, 1, 1), weights, [(outputs,), (outputs,)])


def _several(
    parts: Sequence[tuple[str, int, int]], keys: Keys, transposed: bool
) -> list[tuple[str, Shape]]:
    """The weights of connected layers of which a layer is made."""
    is_normalized = bool(keys["batch_normalize"])
    return [
        (f"{part}.{name}", shape)
        for part, inputs, outputs in parts
        for name, shape in _connected(inputs, outputs, is_normalized, transposed)
    ]


@_makes("convolutional")
def _convolutional(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    image = image_of(shapes[0])
    if keys["xnor"] and keys["antialiasing"]:
        raise ShapeError("found xnor=1 with antialiasing, expected one of both: DarkNet mixes them")
    convolution = convolution_of(_at_blur(keys), image[0])
    result = convolution.result(image)
    if (blur := blur_of(keys, result)) is not None:
        result = blur.result(result)
    return Layer(result, convolution.weights)


def _at_blur(keys: Keys) -> Keys:
    """The keys of the convolution itself: with antialiasing the strides are those of the blur."""
    ones = {"stride": 1, "stride_x": 1, "stride_y": 1}
    return {**keys, **ones} if keys["antialiasing"] else keys


def own_convolution(keys: Keys, channels: int) -> Convolution:
    """The convolution of a `convolutional` section, without the blur behind it."""
    return convolution_of(_at_blur(keys), channels)


@_makes("deconvolutional")
def _deconvolutional(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, *sizes = image_of(shapes[0])
    filters, size, stride = positive(keys, "filters", "size", "stride")
    padding = _padding(keys, size)
    planes = [(length - 1) * stride + size - 2 * padding for length in sizes]
    if min(planes) < 1:
        raise ShapeError(f"found a padding of {padding} with size {size}, expected less")
    weights = _moments(filters, bool(keys["batch_normalize"]))
    return Layer((filters, *planes), [*weights, ("weights", (channels, filters, size, size))])


@record
class Cells:
    """The convolutions of a layer that goes over images in time, by name and in order."""

    parts: Mapping[str, Convolution] = field(default_factory=dict[str, Convolution])

    @property
    def weights(self) -> list[tuple[str, Shape]]:
        """The weights of all of them."""
        return [
            (f"{part}.{name}", shape)
            for part, convolution in self.parts.items()
            for name, shape in convolution.weights
        ]


def crnn_cells(keys: Keys, channels: int) -> Cells:
    """The convolutions of a `crnn` section."""
    outputs, hidden = positive(keys, "output", "hidden")
    return Cells(
        {
            "input": convolution_of(keys, channels, hidden),
            "self": convolution_of(keys, hidden, hidden),
            "output": convolution_of(keys, hidden, outputs),
        }
    )


@_makes("crnn")
def _crnn(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    image = image_of(shapes[0])
    cells = crnn_cells(keys, image[0])
    state = cells.parts["input"].result(image)
    if state[1:] != image[1:]:
        raise ShapeError(f"found states of {list(state)} for {list(image)}, expected equal planes")
    return Layer((cells.parts["output"].filters, *image[1:]), cells.weights, [state])


def conv_lstm_cells(keys: Keys, channels: int) -> Cells:
    """The convolutions of a `conv_lstm` section."""
    (outputs,) = positive(keys, "output")
    names = [f"v{gate}" for gate in "fio"] if keys["peephole"] else []
    names += [f"w{gate}" for gate in "figo"]
    parts = {name: convolution_of(keys, outputs, outputs) for name in names}
    return Cells(parts | {f"u{g}": convolution_of(keys, channels, outputs) for g in "figo"})


@_makes("conv_lstm")
def _conv_lstm(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    for name in ("bottleneck", "shortcut"):
        if keys[name]:
            raise ShapeError(f"found {name}={keys[name]}, expected 0: DarkNet has it on GPUs alone")
    if keys["lstm_activation"] != "tanh":
        raise ShapeError(
            f"found lstm_activation={keys['lstm_activation']}, expected tanh: DarkNet has others "
            "on GPUs alone"
        )
    image = image_of(shapes[0])
    cells = conv_lstm_cells(keys, image[0])
    result = cells.parts["uo"].result(image)
    if cells.parts["wo"].result(result) != result:
        raise ShapeError(f"found states of {list(result)} whose convolution is of another size")
    return Layer(result, cells.weights, [result, result])


@_makes("crop")
def _crop(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, height, width = image_of(shapes[0])
    sizes = positive(keys, "crop_height", "crop_width")
    if sizes[0] > height or sizes[1] > width:
        raise ShapeError(f"found {sizes} of an image of {[height, width]}, expected at most that")
    return Layer((channels, *sizes))


@_makes("detection")
def _detection(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    _four(keys)
    classes, num, side = positive(keys, "classes", "num", "side")
    _numbers(prod(shapes[0]), side * side * (5 * num + classes), "side * side * (5 num + classes)")
    return Layer((side * side * num, 5 + classes))


def _four(keys: Keys) -> None:
    if keys["coords"] != 4:
        raise ShapeError(f"found coords={keys['coords']}, expected 4")


def _numbers(found: int, expected: int, formula: str) -> None:
    if found != expected:
        raise ShapeError(f"found {found} numbers, expected {expected}: {formula}")


@_makes("region")
def _region(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    _four(keys)
    classes, num = positive(keys, "classes", "num")
    channels, height, width = image_of(shapes[0])
    _numbers(channels, num * (5 + classes), "num * (5 + classes)")
    return Layer((height * width * num, 5 + classes))


@_makes("yolo", "Gaussian_yolo")
def _yolo(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    (classes,) = positive(keys, "classes")
    count = len(anchors_of(keys))
    channels, height, width = image_of(shapes[0])
    coordinates = 4 if "new_coords" in keys else 8
    expected = count * (coordinates + 1 + classes)
    _numbers(channels, expected, f"boxes of a cell * ({coordinates} + 1 + classes)")
    if "yolo_point" in keys and keys["yolo_point"] not in _POINTS:
        raise ShapeError(f"found yolo_point={keys['yolo_point']}, expected {', '.join(_POINTS)}")
    return Layer((height * width * count, 5 + classes))


_POINTS = ("center", "left_top", "right_bottom")
_NO_ANCHOR = 0.5


def anchors_of(keys: Keys) -> list[tuple[float, float]]:
    """Width and height of the anchor of each box of a cell; what the cfg does not say is 0.5."""
    (total,) = positive(keys, "num")
    mask = keys.get("mask")
    used = [int(number) for number in mask] if isinstance(mask, list) else None
    given = keys["anchors"] if isinstance(keys["anchors"], list) else []
    if used is None and total > _MOST_BOXES:
        raise ShapeError(f"found num={total}, expected at most {_MOST_BOXES} boxes of a cell")
    for number in used or ():
        if not 0 <= number < total:
            raise ShapeError(f"found {number} in the mask of {total} anchors")

    def number_at(place: int) -> float:
        return float(given[place]) if place < len(given) else _NO_ANCHOR

    return [(number_at(2 * k), number_at(2 * k + 1)) for k in used or range(total)]


_MOST_BOXES = 1 << 16


@_makes("history")
def _history(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, *sizes = image_of(shapes[0])
    return Layer((channels * positive(keys, "history_size")[0], *sizes))


@_makes("implicit")
def _implicit(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del shapes, transposed
    filters, atoms = positive(keys, "filters", "atoms")
    return Layer((filters, atoms, 1), [("weights", (filters, atoms, 1))])


@_makes("local")
def _local(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, *sizes = image_of(shapes[0])
    filters, size, stride = positive(keys, "filters", "size", "stride")
    padding = integer(keys, "pad")
    planes = [_windows(length, 1 if padding else size, stride, 0) for length in sizes]
    if planes != [_windows(length, size, stride, 2 * padding) for length in sizes]:
        raise ShapeError(f"found pad={padding} with size={size}, expected pad=1 with size=3")
    kernel = (prod(planes), filters, channels, size, size)
    biases = (filters, *planes)
    return Layer((filters, *planes), [("biases", biases), ("weights", kernel)])


@_makes("maxpool", "local_avgpool")
def _pool(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    image = image_of(shapes[0])
    if keys.get("maxpool_depth"):
        (channels,) = positive(keys, "out_channels")
        if channels > image[0]:
            raise ShapeError(f"found out_channels={channels} of {image[0]}, expected at most that")
        return Layer((channels, *image[1:]))
    pool = pool_of(keys, image)
    result = (image[0], *pool.counts)
    blur = blur_of(keys, result)
    return Layer(result if blur is None else blur.result(result))


@_makes("normalization")
def _normalization(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels = image_of(shapes[0])[0]
    (size,) = positive(keys, "size")
    if size // 2 > channels:
        raise ShapeError(f"found size={size} over {channels} channels, expected at most twice that")
    return Layer(shapes[0])


@_makes("reorg", "reorg3d")
def _reorg(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, height, width = image_of(shapes[0])
    (stride,) = positive(keys, "stride")
    if keys["reverse"]:
        if channels % (stride * stride):
            raise ShapeError(f"found {channels} channels, expected a multiple of {stride * stride}")
        return Layer((channels // (stride * stride), height * stride, width * stride))
    if height % stride or width % stride:
        raise ShapeError(f"found {[height, width]}, expected multiples of the stride {stride}")
    return Layer((channels * stride * stride, height // stride, width // stride))


@_makes("route")
def _route(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    (groups,) = positive(keys, "groups")
    if not 0 <= integer(keys, "group_id") < groups:
        raise ShapeError(f"found group_id={keys['group_id']}, expected 0 to {groups - 1}")
    first = shapes[0]
    if any(len(shape) != 3 or shape[1:] != first[1:] for shape in shapes):
        counts = [prod(shape) for shape in shapes]
        _divisible(counts, groups, "numbers")
        return Layer((sum(counts) // groups,))
    channels = [shape[0] for shape in shapes]
    _divisible(channels, groups, "channels")
    return Layer((sum(channels) // groups, *first[1:]))


def _divisible(counts: Sequence[int], groups: int, what: str) -> None:
    for count in counts:
        if count % groups:
            raise ShapeError(f"found {count} {what}, expected a multiple of {groups} groups")


@_makes("sam")
def _sam(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del keys, transposed
    if image_of(shapes[0]) != image_of(shapes[1]):
        raise ShapeError(f"found {list(shapes[0])} and {list(shapes[1])}, expected equal images")
    return Layer(shapes[1])


@_makes("scale_channels", "shift_channels", "control_channels")
def _scale_channels(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    factor, image = image_of(shapes[0]), image_of(shapes[1])
    expected = (1, *image[1:]) if keys.get("scale_wh") else (image[0], 1, 1)
    if factor != expected:
        raise ShapeError(f"found {list(factor)} for {list(image)}, expected {list(expected)}")
    return Layer(image)


def step_of(image: Shape, other: Shape) -> int:
    """
    How far apart the places are of which a shortcut takes those of a larger image, as DarkNet does;
    AlexeyAB's fork has equal planes only.
    """
    steps = {larger // smaller for larger, smaller in zip(other[1:], image[1:], strict=True)}
    is_even = all(
        larger % smaller == 0 for larger, smaller in zip(other[1:], image[1:], strict=True)
    )
    if len(steps) != 1 or not is_even:
        raise ShapeError(
            f"found {list(image)} and {list(other)}, expected equal planes, or one that is a "
            "multiple of this one"
        )
    return steps.pop()


@_makes("shortcut")
def _shortcut(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    image = image_of(shapes[0])
    for other in shapes[1:]:
        step_of(image, image_of(other))
    choices: dict[str, Any] = {
        "weights_type": ("none", "per_feature", "per_layer", "per_channel"),
        "weights_normalization": ("none", "relu", "avg_relu", "softmax"),
    }
    for name, known in choices.items():
        if keys[name] not in known:
            raise ShapeError(f"found {name}={keys[name]}, expected one of {', '.join(known)}")
    if keys["weights_type"] == "none":
        return Layer(image)
    each = (image[0],) if keys["weights_type"] == "per_channel" else ()
    return Layer(image, [("weights", (len(shapes), *each))])


@_makes("softmax")
def _softmax(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    (groups,) = positive(keys, "groups")
    _divisible([prod(shapes[0])], groups, "numbers")
    if keys["spatial"]:
        image_of(shapes[0])
        if groups != 1:
            raise ShapeError(f"found groups={groups} with spatial, expected 1")
    if keys["temperature"] == 0:
        raise ShapeError("found temperature=0, expected another number")
    return Layer((prod(shapes[0]),))


@_makes("upsample")
def _upsample(keys: Keys, shapes: Sequence[Shape], transposed: bool) -> Layer:
    del transposed
    channels, *sizes = image_of(shapes[0])
    stride = integer(keys, "stride")
    if stride == 0 or (stride < 0 and any(size % -stride for size in sizes)):
        raise ShapeError(f"found stride={stride} for {sizes}, expected one that divides them")
    scaled = [size * stride if stride > 0 else size // -stride for size in sizes]
    return Layer((channels, *scaled))
