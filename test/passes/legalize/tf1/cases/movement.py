"""Shapes, slices, joins, padding, order, blocks: with sizes from constants, shapes and data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder
    from numpy.typing import NDArray

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def floats(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(np.float32) * np.float32(
        0.5
    )


def build(record: Recorder) -> None:
    x = record.input(floats(2, 3, 4))
    m = record.input(floats(4, 6))
    v = record.input(floats(7))
    _shapes(record, x)
    _reshapes(record, x)
    _joins(record, x, v)
    _cuts(record, x, m)
    _slices(record, x)
    _strided(record, x, v)
    _strided_at_run_time(record, x, v)
    _updates(record, x, v)
    _padding(record, x, v)
    _order(record, x, v)
    _repetition(record, x)
    _blocks(record)
    _formats(record)


def _shapes(record: Recorder, x: Any) -> None:
    for kind in (tf.int32, tf.int64):
        record.case(f"Shape_{kind.name}", raw.Shape(input=x, out_type=kind))
        record.case(f"Size_{kind.name}", raw.Size(input=x, out_type=kind))
    record.case("Rank", raw.Rank(input=x))
    shapes = raw.ShapeN(input=[x, raw.Reshape(tensor=x, shape=[-1])])
    record.case("ShapeN_0", shapes[0])
    record.case("ShapeN_1", shapes[1])
    record.case("BroadcastArgs", raw.BroadcastArgs(s0=tf.shape(x), s1=[3, 1]))
    record.case("BroadcastArgs_rank", raw.BroadcastArgs(s0=[5, 1, 3, 1], s1=[2, 1, 4]))
    offsets = raw.ConcatOffset(concat_dim=1, shape=[tf.shape(x), [2, 5, 4], [2, 1, 4]])
    for k, offset in enumerate(offsets):
        record.case(f"ConcatOffset_{k}", offset)
    record.case("EnsureShape", raw.EnsureShape(input=x, shape=[None, 3, None]))
    small = record.input(np.array([-128, -1, 0, 127], np.int8))
    record.case("Bitcast", raw.Bitcast(input=small, type=tf.uint8))


def _reshapes(record: Recorder, x: Any) -> None:
    shape = tf.shape(x)
    record.case("Reshape_rest", raw.Reshape(tensor=x, shape=[2, -1]))
    record.case("Reshape_scalar", raw.Reshape(tensor=tf.reduce_max(x), shape=np.zeros(0, np.int32)))
    merged = tf.stack([shape[0] * shape[1], shape[2]])
    record.case("Reshape_product", raw.Reshape(tensor=x, shape=merged))
    record.case("Reshape_prod", raw.Reshape(tensor=x, shape=[-1, tf.reduce_prod(shape[1:])]))
    half = tf.stack([shape[0], -1, shape[2] // 2])
    record.case("Reshape_half", raw.Reshape(tensor=x, shape=half))
    record.case("Reshape_concat", raw.Reshape(tensor=x, shape=tf.concat([[-1], shape[2:]], 0)))
    data = record.input(np.array([4, -1, 2], np.int64), [3])
    record.case("Reshape_data", raw.Reshape(tensor=x, shape=data))
    empty = record.input(np.zeros((0, 3), np.float32))
    record.case("Reshape_empty", raw.Reshape(tensor=empty, shape=[3, 0, 5]))
    for axis in (0, 1, 3, -1, -4):
        record.case(f"ExpandDims_{axis}", raw.ExpandDims(input=x, axis=axis))
    record.case("ExpandDims_int64", raw.ExpandDims(input=x, axis=np.array([-2])))
    one = record.input(floats(1, 3, 1, 2))
    record.case("Squeeze_axes", raw.Squeeze(input=one, axis=[-2, 0]))
    fixed = record.input(floats(1, 3, 1), [1, 3, 1])
    record.case("Squeeze", raw.Squeeze(input=fixed))


def _joins(record: Recorder, x: Any, v: Any) -> None:
    y = record.input(floats(2, 1, 4))
    record.case("Concat", raw.Concat(concat_dim=1, values=[x, y, x]))
    record.case("ConcatV2", raw.ConcatV2(values=[x, y], axis=-2))
    record.case("ConcatV2_int64", raw.ConcatV2(values=[v, v, v[:0]], axis=np.int64(0)))
    for axis in (0, 2, -1, -4):
        record.case(f"Pack_{axis}", raw.Pack(values=[x, x + 1], axis=axis))
    record.case("Pack_scalars", raw.Pack(values=[tf.shape(x)[1], 5, tf.size(v)]))


def _cuts(record: Recorder, x: Any, m: Any) -> None:
    for axis in (0, 1, -1):
        count = (2, 3, 4)[axis]
        parts = raw.Unpack(value=x, num=count, axis=axis)
        record.case(f"Unpack_{axis}", parts[count - 1] - parts[0])
    for k, part in enumerate(raw.Split(axis=-1, value=m, num_split=3)):
        record.case(f"Split_{k}", part)
    for k, part in enumerate(raw.SplitV(value=m, size_splits=[1, -1, 2], axis=1, num_split=3)):
        record.case(f"SplitV_{k}", part)
    sizes = record.input(np.array([3, 0, -1], np.int32), [3])
    for k, part in enumerate(raw.SplitV(value=m, size_splits=sizes, axis=0, num_split=3)):
        record.case(f"SplitV_data_{k}", part)
    half = tf.shape(m)[0] // 2
    parts = raw.SplitV(value=m, size_splits=[half, -1], axis=0, num_split=2)
    record.case("SplitV_half", parts[1])


def _slices(record: Recorder, x: Any) -> None:
    record.case("Slice", raw.Slice(input=x, begin=[1, 0, 2], size=[1, 2, -1]))
    size = tf.stack([-1, tf.shape(x)[1] - 1, 2])
    record.case("Slice_shape", raw.Slice(input=x, begin=[0, 1, 0], size=size))
    begin = record.input(np.array([0, 1, 1], np.int32), [3])
    length = record.input(np.array([2, -1, 3], np.int32), [3])
    record.case("Slice_data", raw.Slice(input=x, begin=begin, size=length))
    record.case("Slice_data_begin", raw.Slice(input=x, begin=begin, size=[-1, 1, -1]))
    record.case(
        "Slice_int64", raw.Slice(input=x, begin=np.array([0, 0, 3]), size=np.array([2, 3, 1]))
    )


def _strided(record: Recorder, x: Any, v: Any) -> None:
    for name, part in {
        "range": x[:, 1:3, 1:4:2],
        "negative": x[-1:, -3:-1, :-2],
        "clamped": x[:9, -9:2, 1:-9],
        "backward": x[::-1, 2::-2, -2:0:-1],
        "index": x[1, :, -1],
        "index_first": x[0],
        "index_all": x[1, 2, 3],
        "ellipsis": x[..., 1],
        "ellipsis_middle": x[1:, ..., ::2],
        "ellipsis_nothing": x[0, ..., 1, 2:],
        "new_axes": x[:, tf.newaxis, 1, ..., tf.newaxis],
        "new_axis_last": x[tf.newaxis, ..., tf.newaxis, 0],
        "step_over": v[::3],
        "step_back_over": v[::-3],
        "empty": v[5:2],
        "empty_back": v[2:5:-1],
        "shape": v[1 : tf.shape(x)[2]],
        "shape_minus": v[: tf.shape(v)[0] - 2],
        "shape_index": x[tf.shape(x)[0] - 1],
    }.items():
        record.case(f"StridedSlice_{name}", part)
    masks = {"begin_mask": 5, "end_mask": 2, "shrink_axis_mask": 5}
    record.case(
        "StridedSlice_masked_index", _strided_slice(x, [1, 0, 2], [2, 9, 3], [1, 2, 1], masks)
    )
    both = {"new_axis_mask": 1, "shrink_axis_mask": 1}
    record.case("StridedSlice_new_and_index", _strided_slice(x, [0, 1], [1, 2], [1, 1], both))
    late = {"ellipsis_mask": 2, "new_axis_mask": 6, "end_mask": 1}
    record.case(
        "StridedSlice_new_after", _strided_slice(x, [0, 0, 0, 1], [1, 0, 0, 3], [1] * 4, late)
    )


def _strided_slice(x: Any, begin: Any, end: Any, strides: Any, masks: Any) -> Any:
    return raw.StridedSlice(input=x, begin=begin, end=end, strides=strides, **masks)


def _strided_at_run_time(record: Recorder, x: Any, v: Any) -> None:
    i = record.input(np.array(1, np.int32), [])
    j = record.input(np.array(-2, np.int32), [])
    n = record.input(np.array(100, np.int64), [])
    for name, part in {
        "index": x[:, i],
        "index_negative": x[:, j, 1:],
        "indices": x[i, 1, i],
        "range": v[i:5],
        "range_negative": v[j:],
        "range_end": v[:j],
        "range_beyond": v[2 : tf.cast(n, tf.int32)],
        "range_back": v[:i:-1],
        "one": x[:, i : i + 1],
        "mixed": x[i, tf.newaxis, ..., i:j],
    }.items():
        record.case(f"StridedSlice_data_{name}", part)


def _updates(record: Recorder, x: Any, v: Any) -> None:
    def update(value: Any, begin: Any, end: Any, strides: Any, to: Any, **masks: int) -> Any:
        return raw.TensorStridedSliceUpdate(
            input=to, begin=begin, end=end, strides=strides, value=value, **masks
        )

    two = record.input(floats(2))
    record.case("TensorStridedSliceUpdate", update(two, [1], [5], [2], v))
    record.case("TensorStridedSliceUpdate_back", update(two, [-1], [3], [-2], v))
    row = record.input(floats(2, 4))
    record.case(
        "TensorStridedSliceUpdate_index",
        update(row, [0, 1], [0, 2], [1, 1], x, begin_mask=1, end_mask=1, shrink_axis_mask=2),
    )


def _padding(record: Recorder, x: Any, v: Any) -> None:
    record.case("Pad", raw.Pad(input=x, paddings=[[0, 1], [2, 0], [1, 1]]))
    record.case("PadV2", raw.PadV2(input=x, paddings=[[1, 0], [0, 0], [0, 3]], constant_values=7.5))
    record.case("Pad_shape", raw.Pad(input=v, paddings=[[9 - tf.shape(v)[0], tf.shape(x)[0]]]))
    amounts = record.input(np.array([[1, 2], [0, 1], [3, 0]], np.int64), [3, 2])
    record.case("Pad_data", raw.Pad(input=x, paddings=amounts))
    for mode in ("REFLECT", "SYMMETRIC"):
        pads = [[1, 1], [2, 1], [0, 3]]
        record.case(f"MirrorPad_{mode}", raw.MirrorPad(input=x, paddings=pads, mode=mode))
    whole = [[2, 0], [0, 3], [4, 4]]
    record.case("MirrorPad_whole", raw.MirrorPad(input=x, paddings=whole, mode="SYMMETRIC"))


def _order(record: Recorder, x: Any, v: Any) -> None:
    record.case("Transpose", raw.Transpose(x=x, perm=[2, 0, 1]))
    record.case("Transpose_computed", tf.transpose(x))
    record.case("ConjugateTranspose", raw.ConjugateTranspose(x=x, perm=[1, 0, 2]))
    record.case("Reverse", raw.Reverse(tensor=x, dims=[True, False, True]))
    record.case("ReverseV2", raw.ReverseV2(tensor=x, axis=[-1, 1]))
    record.case("ReverseV2_none", raw.ReverseV2(tensor=x, axis=np.zeros(0, np.int32)))
    record.case("Roll", raw.Roll(input=v, shift=2, axis=0))
    record.case("Roll_back", raw.Roll(input=x, shift=[-1, 9, 1], axis=[0, 2, 2]))
    shift = record.input(np.array([-9], np.int32), [1])
    record.case("Roll_data", raw.Roll(input=v, shift=shift, axis=[-1]))


def _repetition(record: Recorder, x: Any) -> None:
    record.case("Tile", raw.Tile(input=x, multiples=[2, 1, 3]))
    record.case("Tile_shape", raw.Tile(input=x[0, :, :1], multiples=[1, tf.shape(x)[2]]))
    times = record.input(np.array([1, 0, 2], np.int64), [3])
    record.case("Tile_data", raw.Tile(input=x, multiples=times))
    record.case("BroadcastTo", raw.BroadcastTo(input=x[:, :1], shape=[5, 2, 3, 4]))
    record.case("BroadcastTo_shape", raw.BroadcastTo(input=x[:, :, :1], shape=tf.shape(x)))


def _blocks(record: Recorder) -> None:
    image = record.input(floats(2, 4, 6, 4))
    record.case("SpaceToDepth", raw.SpaceToDepth(input=image, block_size=2))
    record.case("DepthToSpace", raw.DepthToSpace(input=image, block_size=2))
    pads, crops = [[1, 1], [0, 3]], [[1, 0], [0, 2]]
    batches = raw.SpaceToBatchND(input=image, block_shape=[2, 3], paddings=pads)
    record.case("SpaceToBatchND", batches)
    back = raw.BatchToSpaceND(input=batches, block_shape=np.array([2, 3]), crops=crops)
    record.case("BatchToSpaceND", back)
    line = record.input(floats(4, 6, 2, 1))
    one = raw.SpaceToBatchND(input=line, block_shape=[3], paddings=[[1, 2]])
    record.case("SpaceToBatchND_line", one)
    record.case(
        "BatchToSpaceND_line", raw.BatchToSpaceND(input=one, block_shape=[3], crops=[[0, 2]])
    )
    square = raw.SpaceToBatch(input=image, paddings=[[0, 0], [1, 1]], block_size=2)
    record.case("SpaceToBatch", square)
    record.case(
        "BatchToSpace", raw.BatchToSpace(input=square, crops=[[1, 0], [0, 1]], block_size=2)
    )


def _formats(record: Recorder) -> None:
    for dtype in (np.int32, np.int64):
        axes = record.input(np.array([[0, 1, -1], [2, 3, -3]], dtype))
        sizes = record.input(np.array([7, 8, 9, 5], dtype), [4])
        name = np.dtype(dtype).name
        for source, target in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC")):
            formats = {"src_format": source, "dst_format": target}
            own = f"{name}_{source}_{target}"
            record.case(f"DataFormatDimMap_{own}", raw.DataFormatDimMap(x=axes, **formats))
            value = raw.DataFormatVecPermute(x=sizes, **formats)
            record.case(f"DataFormatVecPermute_{own}", value)
            value = raw.DataFormatVecPermute(x=tf.stack([sizes, sizes * 2], 1), **formats)
            record.case(f"DataFormatVecPermute_{own}_rows", value)
        value = raw.DataFormatVecPermute(x=sizes[:2], src_format="NHWC", dst_format="NCHW")
        record.case(f"DataFormatVecPermute_{name}_spatial", value)
