"""What moves elements: parts, shapes, gathers and scatters, padding, images, and filled tensors."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from lowerdeck.dialects.core.tensor import SplitOp
from lowerdeck.dialects.core.types import dims_of, i32, i64, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.movement import concat, pad, tile
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

# Shapes


@legalizes("Reshape", "View")
def legalize_reshape(builder: MindirLegalizer) -> Results:
    """-1 is what is left."""
    return builder.tensorflow("Reshape", builder.input(), builder.sizes("shape"))


@legalizes("Flatten")
def legalize_flatten(builder: MindirLegalizer) -> Results:
    """A matrix whose rows are the first axis."""
    return [builder.flatten(builder.input(), 1)]


@legalizes("Squeeze")
def legalize_squeeze(builder: MindirLegalizer) -> Results:
    """Without the axes, or without all that are one."""
    x = builder.input()
    if builder.get("axis") in (None, []):
        return builder.torch("squeeze.default", self=x)
    return [builder.squeeze(x, builder.axes_in("axis", rank_of(x)))]


@legalizes("Transpose")
def legalize_transpose(builder: MindirLegalizer) -> Results:
    """The dimensions in another order."""
    x = builder.input()
    return [builder.transpose(x, builder.axes(builder.ints_of("dims"), rank_of(x)))]


@legalizes("BroadcastTo", "DynamicBroadcastTo", "Expand")
def legalize_broadcast(builder: MindirLegalizer) -> Results:
    """Repeated to a shape, of which -1 stays."""
    x, shape = builder.input(), builder.exprs_of("shape")
    if len(shape) < rank_of(x):
        builder.refuse(f"a shape of {len(shape)} dimensions", f"{rank_of(x)} or more")
    own = [Expr.const(1)] * (len(shape) - rank_of(x)) + list(dims_of(x))
    return [builder.broadcast(x, [n if d == -1 else d for n, d in zip(own, shape, strict=True)])]


@legalizes("ExpandAs")
def legalize_expand_as(builder: MindirLegalizer) -> Results:
    """Repeated to the shape of another tensor."""
    return [builder.broadcast(builder.input(), dims_of(builder.input("other")))]


@legalizes("Tile")
def legalize_tile(builder: MindirLegalizer) -> Results:
    """Repeated; missing numbers are those of the first axes, and one."""
    x, repeats = builder.input(), builder.exprs_of("dims")
    more = len(repeats) - rank_of(x)
    x = builder.unsqueeze(x, list(range(more))) if more > 0 else x
    return [tile(builder, x, [*[Expr.const(1)] * -more, *repeats])]


# Parts


@legalizes("Concat")
def legalize_concat(builder: MindirLegalizer) -> Results:
    """Joined along an axis."""
    values = builder.inputs("tensors")
    return [concat(builder, values, builder.axis(builder.integer("axis"), rank_of(values[0])))]


@legalizes("Stack", "Pack", "TupleToTensor")
def legalize_stack(builder: MindirLegalizer) -> Results:
    """Joined along a new axis."""
    name = next(iter(builder.op.schema.arguments))
    values = builder.values_in(name)
    axis = 0
    if builder.name != "TupleToTensor":
        axis = builder.axis(builder.integer("axis"), rank_of(values[0]) + 1)
    elif not values:
        return [builder.stated_cast(builder.tensor(np.array(builder.get(name))))]
    return [builder.stated_cast(stack([TensorValue.of(builder, v) for v in values], axis).value)]


@legalizes("Split")
def legalize_split(builder: MindirLegalizer) -> Results:
    """Equal parts."""
    x, count = builder.input(), len(builder.op.results)
    axis = builder.axis(builder.integer("axis"), rank_of(x))
    return list(builder.insert(SplitOp(x, axis, [dims_of(x)[axis] // count] * count)))


@legalizes("SplitV")
def legalize_split_sizes(builder: MindirLegalizer) -> Results:
    """Parts of given sizes, of which -1 is the rest."""
    x = builder.input()
    axis = builder.axis(builder.integer("split_dim"), rank_of(x))
    sizes = builder.exprs_of("size_splits")
    rest = dims_of(x)[axis] - sum((s for s in sizes if s != -1), Expr.const(0))
    return list(builder.insert(SplitOp(x, axis, [rest if s == -1 else s for s in sizes])))


@legalizes("Unstack", "Unpack")
def legalize_unstack(builder: MindirLegalizer) -> Results:
    """The parts at each position of an axis."""
    x = builder.input()
    axis = builder.axis(builder.integer("axis"), rank_of(x))
    value = TensorValue.of(builder, x)
    return [value.pick(axis, k).value for k in range(len(builder.op.results))]


@legalizes("TensorToTuple", "TensorToList")
def legalize_elements(builder: MindirLegalizer) -> Results:
    """The elements of a vector."""
    value = builder.value()
    return [builder.stated_cast(value.pick(0, k).value, k) for k in range(len(builder.op.results))]


@legalizes("StridedSlice")
def legalize_strided_slice(builder: MindirLegalizer) -> Results:
    """As that of TensorFlow; bits of masks for what is not there mean nothing."""
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    bounds = [builder.sizes(name) for name in ("begin", "end", "strides")]
    there = (1 << len(builder.exprs_of("begin"))) - 1
    attributes = {name: builder.integer(name) & there for name in masks}
    single = attributes["shrink_axis_mask"] & ~attributes["ellipsis_mask"]
    for name in ("begin_mask", "end_mask"):
        attributes[name] &= ~single
    return builder.tensorflow("StridedSlice", builder.input(), *bounds, **attributes)


@legalizes("Slice")
def legalize_slice(builder: MindirLegalizer) -> Results:
    """From the beginning on; a size of -1 is the rest."""
    bounds = [builder.sizes(name) for name in ("begin", "size")]
    return builder.tensorflow("Slice", builder.input(), *bounds)


@legalizes("SliceExt", "SliceExtView")
def legalize_slice_of_axis(builder: MindirLegalizer) -> Results:
    """A range of one axis."""
    names = ("dim", "start", "end", "step")
    given = {name: builder.get(name) for name in names}
    return builder.torch("slice.Tensor", self=builder.input(), **given)


@legalizes("ReverseV2")
def legalize_reverse(builder: MindirLegalizer) -> Results:
    """The other way around along the axes."""
    return builder.tensorflow("ReverseV2", builder.input(), builder.sizes("axis"))


@legalizes("ReverseSequence")
def legalize_reverse_sequence(builder: MindirLegalizer) -> Results:
    """The first elements of each sequence the other way around."""
    return builder.tensorflow(
        "ReverseSequence",
        builder.input("x"),
        builder.input("seq_lengths"),
        seq_dim=builder.integer("seq_dim"),
        batch_dim=builder.integer("batch_dim"),
    )


@legalizes("Meshgrid")
def legalize_meshgrid(builder: MindirLegalizer) -> Results:
    """Coordinates of a grid."""
    indexing = builder.choice("indexing", "ij", "xy")
    return builder.torch("meshgrid.indexing", tensors=builder.inputs("inputs"), indexing=indexing)


# Gathers and scatters


@legalizes("Gather", "GatherV2")
def legalize_gather(builder: MindirLegalizer) -> Results:
    """The parts of an axis at indices."""
    axis = builder.tensor(np.array(builder.integer("axis"), np.int64))
    batch = builder.integer("batch_dims", 0) if builder.has("batch_dims") else 0
    x, indices = builder.input("input_params"), builder.input("input_indices")
    return builder.tensorflow("GatherV2", x, indices, axis, batch_dims=batch)


@legalizes("EmbeddingLookup")
def legalize_lookup(builder: MindirLegalizer) -> Results:
    """Rows of a table."""
    x, indices, offset = list(builder.op.schema.arguments)[:3]
    if builder.number(offset):
        builder.refuse("an offset", "0")
    axis = builder.tensor(np.array(0, np.int64))
    return builder.tensorflow("GatherV2", builder.input(x), builder.input(indices), axis)


@legalizes("GatherNd")
def legalize_gather_nd(builder: MindirLegalizer) -> Results:
    """The parts at rows of indices."""
    return builder.tensorflow("GatherNd", builder.input("input_x"), builder.input("indices"))


@legalizes("ScatterNd")
def legalize_scatter_nd(builder: MindirLegalizer) -> Results:
    """Sums of updates in zeros."""
    indices, updates = builder.input("indices"), builder.input("updates")
    shape = builder.sizes("shape")
    return builder.tensorflow("ScatterNd", indices, updates, builder.cast(shape, indices))


_SCATTERS = {
    "TensorScatterUpdate": "TensorScatterUpdate",
    "TensorScatterAdd": "TensorScatterAdd",
    "TensorScatterSub": "TensorScatterSub",
    "TensorScatterMax": "TensorScatterMax",
    "TensorScatterMin": "TensorScatterMin",
    "ScatterNdUpdate": "TensorScatterUpdate",
    "ScatterNdAdd": "TensorScatterAdd",
    "ScatterNdSub": "TensorScatterSub",
    "ScatterNdMax": "TensorScatterMax",
    "ScatterNdMin": "TensorScatterMin",
}
_ROWS = {
    "ScatterUpdate": "TensorScatterUpdate",
    "ScatterAdd": "TensorScatterAdd",
    "ScatterSub": "TensorScatterSub",
    "ScatterMax": "TensorScatterMax",
    "ScatterMin": "TensorScatterMin",
}


@legalizes(*_SCATTERS)
def legalize_scatter(builder: MindirLegalizer) -> Results:
    """The parts at rows of indices replaced, or combined with updates."""
    operands = [builder.input(name) for name in list(builder.op.schema.arguments)[:3]]
    return builder.tensorflow(_SCATTERS[builder.name], *operands)


@legalizes(*_ROWS)
def legalize_scatter_rows(builder: MindirLegalizer) -> Results:
    """The parts of the first axis at indices."""
    x, indices, updates = [builder.input(name) for name in list(builder.op.schema.arguments)[:3]]
    indices = builder.unsqueeze(indices, [rank_of(indices)])
    return builder.tensorflow(_ROWS[builder.name], x, indices, updates)


@legalizes("TensorScatterElements")
def legalize_scatter_elements(builder: MindirLegalizer) -> Results:
    """Elements at places of an axis replaced, or added to."""
    x = builder.input("data")
    kind = builder.choice("reduce", "none", "add")
    given: dict[str, Any] = {
        "self": x,
        "dim": builder.axis(builder.integer("axis"), rank_of(x)),
        "index": builder.input("indices"),
        "src": builder.input("updates"),
    }
    return builder.torch("scatter.src" if kind == "none" else "scatter_add.default", **given)


@legalizes("OneHot")
def legalize_one_hot(builder: MindirLegalizer) -> Results:
    """A number where the index is, another elsewhere."""
    on, off = (builder.operand(name, builder.element()).value for name in ("on_value", "off_value"))
    depth = builder.cast(builder.dims([builder.expr("depth")], []), i32)
    indices = builder.input("indices")
    return builder.tensorflow("OneHot", indices, depth, on, off, axis=builder.integer("axis"))


@legalizes("NonZero", "NonZeroExt")
def legalize_nonzero(builder: MindirLegalizer) -> Results:
    """Rows of the indices of elements that are not zero."""
    (found,) = builder.torch("nonzero.default", [i64], self=builder.input())
    assert found is not None
    return [builder.stated_cast(found)]


@legalizes("MaskedSelect")
def legalize_masked_select(builder: MindirLegalizer) -> Results:
    """The elements where the mask holds, as a vector."""
    x, mask = builder.input("input"), builder.input("mask")
    return builder.torch("masked_select.default", self=x, mask=mask)


@legalizes("Unique")
def legalize_unique(builder: MindirLegalizer) -> Results:
    """Different elements in the order of their first places, and the number of each element's."""
    return builder.tensorflow("Unique", builder.input(), out_idx=builder.element(1))


# Padding


@legalizes("Pad")
def legalize_pad(builder: MindirLegalizer) -> Results:
    """Zeros around."""
    pairs = cast("list[list[int]]", builder.get("paddings"))
    begin, end = ([Expr.const(pair[k]) for pair in pairs] for k in (0, 1))
    return [pad(builder, builder.input(), begin, end)]


@legalizes("PadV3", "ConstantPadND")
def legalize_pad_by_pairs(builder: MindirLegalizer) -> Results:
    """Pairs of amounts, the last axis first, or all begins and then all ends."""
    x = builder.input()
    is_new = builder.name == "ConstantPadND"
    amounts = builder.exprs_of("padding" if is_new else "paddings")
    half = len(amounts) // 2
    if is_new or builder.flag("paddings_contiguous"):
        pairs = [(amounts[2 * k], amounts[2 * k + 1]) for k in range(half)]
    else:
        pairs = list(zip(amounts[:half], amounts[half:], strict=True))
    begin, end = [Expr.const(0)] * rank_of(x), [Expr.const(0)] * rank_of(x)
    if half > rank_of(x):
        builder.refuse(f"{half} pairs of amounts", f"at most {rank_of(x)}")
    for k, (before, after) in enumerate(pairs):
        begin[-1 - k], end[-1 - k] = before, after
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge", "circular": "wrap"}
    mode = "constant" if is_new else modes[builder.choice("mode", *modes)]
    value = None
    name = "value" if is_new else "constant_value"
    if mode == "constant" and builder.get(name) is not None:
        value = builder.reshape(builder.operand(name, builder.element()).value, [])
    return [pad(builder, x, begin, end, value, mode)]


@legalizes("MirrorPad")
def legalize_mirror_pad(builder: MindirLegalizer) -> Results:
    """Mirrored at the border, with its elements or without them."""
    x, paddings = builder.input("x"), builder.input("paddings")
    return builder.tensorflow("MirrorPad", x, paddings, mode=builder.text("mode"))


# Images

_RESIZES = {
    "ResizeBilinearV2": "ResizeBilinear",
    "ResizeNearestNeighborV2": "ResizeNearestNeighbor",
    "ResizeNearestNeighbor": "ResizeNearestNeighbor",
    "ResizeBicubic": "ResizeBicubic",
    "ResizeArea": "ResizeArea",
}


@legalizes(*_RESIZES)
def legalize_resize(builder: MindirLegalizer) -> Results:
    """As that of TensorFlow, [N, C, height, width]."""
    x = builder.input()
    size = builder.cast(builder.sizes("size"), i32)
    attributes = {"align_corners": builder.flag("align_corners")}
    if builder.has("half_pixel_centers"):
        attributes["half_pixel_centers"] = builder.flag("half_pixel_centers")
    last = builder.transpose(x, [0, 2, 3, 1])
    (found,) = builder.tensorflow(_RESIZES[builder.name], last, size, **attributes)
    return [builder.transpose(found, [0, 3, 1, 2])]


@legalizes("DepthToSpace", "SpaceToDepth")
def legalize_blocks(builder: MindirLegalizer) -> Results:
    """Channels to blocks of the image, or back, as TensorFlow, [N, C, height, width]."""
    last = builder.transpose(builder.input(), [0, 2, 3, 1])
    size = builder.integer("block_size")
    (found,) = builder.tensorflow(builder.name, last, block_size=size)
    return [builder.transpose(found, [0, 3, 1, 2])]


@legalizes("CropAndResize")
def legalize_crop(builder: MindirLegalizer) -> Results:
    """Boxes of images [N, height, width, C], resized."""
    operands = [builder.input(name) for name in ("x", "boxes", "box_index")]
    size = builder.cast(builder.sizes("crop_size"), i32)
    return builder.tensorflow(
        "CropAndResize",
        *operands,
        size,
        method=builder.text("method"),
        extrapolation_value=builder.real("extrapolation_value"),
    )


@legalizes("GridSampler2D")
def legalize_grid_sampler(builder: MindirLegalizer) -> Results:
    """Elements at places between the pixels."""
    modes, pads = ("bilinear", "nearest"), ("zeros", "border", "reflection")
    return builder.torch(
        "grid_sampler_2d.default",
        input=builder.input("input_x"),
        grid=builder.input("grid"),
        interpolation_mode=modes.index(builder.choice("interpolation_mode", *modes)),
        padding_mode=pads.index(builder.choice("padding_mode", *pads)),
        align_corners=builder.flag("align_corners"),
    )


# Filled tensors


@legalizes("Ones", "Zeros", "Fill", "FillV2", "FillScalar", "FillTensor")
def legalize_fill(builder: MindirLegalizer) -> Results:
    """A number everywhere."""
    name = "shape" if builder.has("shape") else "size"
    if builder.name in ("Ones", "Zeros"):
        value = builder.scalar(int(builder.name == "Ones"), builder.element())
    else:
        number = "value" if builder.has("value") else "fill_value"
        value = builder.reshape(builder.operand(number, builder.element()).value, [])
    return [builder.broadcast(value, builder.exprs_of(name))]


@legalizes("InplaceCopy")
def legalize_copy(builder: MindirLegalizer) -> Results:
    """The second in the shape and type of the first."""
    x = builder.input()
    return [builder.broadcast(builder.cast(builder.input("src"), x), dims_of(x))]


@legalizes("Fills", "FullLike", "InplaceFillScalar", "InplaceFillTensor")
def legalize_fill_like(builder: MindirLegalizer) -> Results:
    """A number everywhere, in the shape of another tensor."""
    number = "value" if builder.has("value") else "fill_value"
    value = builder.reshape(builder.operand(number, builder.element()).value, [])
    return [builder.broadcast(value, dims_of(builder.input()))]


@legalizes("Range", "LinSpace")
def legalize_range(builder: MindirLegalizer) -> Results:
    """Equally distant numbers."""
    names = list(builder.op.schema.arguments)[:3]
    element = builder.element()
    kinds = [element, element, i32 if builder.name == "LinSpace" else element]
    values = [
        builder.reshape(builder.operand(name, kind).value, [])
        for name, kind in zip(names, kinds, strict=True)
    ]
    return builder.tensorflow(builder.name, *values)


@legalizes("Arange")
def legalize_arange(builder: MindirLegalizer) -> Results:
    """From the start on, up to the end, which is not there."""
    given = {name: builder.get(name) for name in ("start", "end", "step")}
    return builder.torch("arange.start_step", dtype=builder.element(), **given)


@legalizes("Eye")
def legalize_eye(builder: MindirLegalizer) -> Results:
    """Ones on the diagonal."""
    n, m = builder.get("n"), builder.get("m")
    return builder.torch("eye.m", n=n, m=n if m is None else m, dtype=builder.element())


@legalizes("Dropout")
def legalize_dropout(builder: MindirLegalizer) -> Results:
    """Nothing is dropped, or it is random."""
    if builder.real("keep_prob") != 1.0:
        builder.refuse("random numbers", "keep_prob 1", "export it for inference")
    return [builder.input(), None]
