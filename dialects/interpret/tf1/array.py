"""Operators that move elements: shapes, slices, joins, gathers and scatters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowerdeck.dialects.interpret.tf1.registry import (
    Array,
    dtype_of,
    ints,
    kernel,
    positive_axis,
    require,
    scalar,
    where,
)
from lowerdeck.dialects.tf1.constants import constant_array
from lowerdeck.dialects.tf1.ops import Tf1Op

# Values as they are


@kernel("Const", "HostConst")
def run_const(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The constant's value."""
    return constant_array(op)


@kernel(
    "Identity",
    "RefIdentity",
    "Snapshot",
    "StopGradient",
    "PreventGradient",
    "DeepCopy",
    "PlaceholderWithDefault",
)
def run_identity(_: Tf1Op, args: Sequence[Any]) -> Any:
    """The value itself."""
    return args[0]


@kernel("RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2")
def run_random_uniform(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Some numbers of [0, 1), the same each time: nothing that is compiled depends on them."""
    numbers = np.random.default_rng(0).integers(0, 128, ints(args[0]))
    return (numbers / 128).astype(dtype_of(op, "dtype"))


@kernel("IdentityN")
def run_identity_n(_: Tf1Op, args: Sequence[Any]) -> tuple[Any, ...]:
    """The values themselves."""
    return tuple(args)


@kernel("NoOp", "ControlTrigger", "Print", "PrintV2")
def run_nothing(op: Tf1Op, args: Sequence[Any]) -> Any:
    """No effect; Print passes its first input on."""
    return args[0] if op.op_type == "Print" else ()


@kernel("Assert")
def run_assert(_: Tf1Op, args: Sequence[Any]) -> tuple[()]:
    """An error unless the condition holds."""
    require(np.all(args[0]), f"the assertion fails: {[a.tolist() for a in args[1:]]}")
    return ()


@kernel("CheckNumerics", "CheckNumericsV2")
def run_check_numerics(op: Tf1Op, args: Sequence[Any]) -> Array:
    """An error if a number is not finite."""
    require(np.all(np.isfinite(args[0])), f"{op.attr('message')}: found Inf or NaN")
    return args[0]


@kernel("EnsureShape")
def run_ensure_shape(op: Tf1Op, args: Sequence[Any]) -> Array:
    """An error unless the shape is as declared."""
    expected = op.attr("shape")
    if expected is not None:
        fits = len(expected) == args[0].ndim and all(
            dim in (-1, size) for dim, size in zip(expected, args[0].shape, strict=True)
        )
        require(fits, f"found the shape {args[0].shape}, expected {expected}")
    return args[0]


# Shapes


@kernel("Shape", "ShapeN")
def run_shape(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """The shape of each input."""
    return tuple(np.array(x.shape, dtype_of(op, "out_type")) for x in args)


@kernel("Size")
def run_size(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The number of elements."""
    return np.array(args[0].size, dtype_of(op, "out_type"))


@kernel("Rank")
def run_rank(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The number of dimensions."""
    return np.array(args[0].ndim, np.int32)


@kernel("Reshape")
def run_reshape(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One size may be -1: what is left, of which sizes of zero are not part on either side."""
    x, shape = args[0], ints(args[1])
    require(min(shape, default=0) >= -1 and shape.count(-1) <= 1, f"the shape {shape} is not valid")
    if -1 in shape:
        known = math.prod(dim for dim in shape if dim > 0)
        sizes = [size for size in x.shape if size or 0 not in shape]
        shape[shape.index(-1)] = math.prod(sizes) // known
    return x.reshape(shape)


@kernel("Squeeze")
def run_squeeze(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Without the given dimensions of size 1, or all."""
    dims = op.attr("squeeze_dims")
    return np.squeeze(args[0], tuple(dims) if dims else None)


@kernel("ExpandDims")
def run_expand_dims(_: Tf1Op, args: Sequence[Any]) -> Array:
    """A dimension of size 1 more."""
    return np.expand_dims(args[0], scalar(args[1]))


@kernel("Transpose", "ConjugateTranspose")
def run_transpose(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Dimension k of the result is dimension perm[k]."""
    result = np.transpose(args[0], ints(args[1]))
    return np.conj(result) if op.op_type == "ConjugateTranspose" else result


@kernel("InvertPermutation")
def run_invert_permutation(_: Tf1Op, args: Sequence[Any]) -> Array:
    """y[x[i]] = i"""
    x = args[0]
    require(sorted(ints(x)) == list(range(len(x))), f"{ints(x)} is not a permutation")
    return np.argsort(x).astype(x.dtype)


@kernel("BroadcastTo")
def run_broadcast_to(_: Tf1Op, args: Sequence[Any]) -> Array:
    """As numpy broadcasts."""
    return np.broadcast_to(args[0], ints(args[1]))


@kernel("BroadcastArgs")
def run_broadcast_args(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The shape that two shapes broadcast to."""
    shape = np.broadcast_shapes(tuple(ints(args[0])), tuple(ints(args[1])))
    return np.array(shape, args[0].dtype)


# New tensors


@kernel("Fill")
def run_fill(_: Tf1Op, args: Sequence[Any]) -> Array:
    """One value everywhere."""
    return np.full(ints(args[0]), args[1], args[1].dtype)


@kernel("ZerosLike", "OnesLike")
def run_like(op: Tf1Op, args: Sequence[Any]) -> Any:
    """Zeros or ones of the same shape; a token without a value stays one."""
    return (np.zeros_like if op.op_type == "ZerosLike" else np.ones_like)(args[0])


@kernel("Range")
def run_range(_: Tf1Op, args: Sequence[Any]) -> Array:
    """start, start + delta, ..., without limit."""
    start, limit, delta = (x.reshape(-1)[0] for x in args)
    require(delta != 0, "the step is zero")
    if args[0].dtype.kind in "iu":
        return np.array(range(int(start), int(limit), int(delta)), args[0].dtype)
    count = max(0, math.ceil((float(limit) - float(start)) / float(delta)))
    return (start + np.arange(count).astype(args[0].dtype) * delta).astype(args[0].dtype)


@kernel("LinSpace")
def run_lin_space(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Evenly spaced numbers, both ends included."""
    start, stop = float(args[0]), float(args[1])
    return np.array(np.linspace(start, stop, scalar(args[2])), args[0].dtype)


@kernel("OneHot")
def run_one_hot(op: Tf1Op, args: Sequence[Any]) -> Array:
    """A new axis, on where it is at the index; indices outside of it are off everywhere."""
    indices, depth, on, off = args[0], scalar(args[1]), args[2], args[3]
    axis = positive_axis(op.attr("axis"), indices.ndim + 1)
    places = np.arange(depth).reshape(-1, *[1] * (indices.ndim - axis))
    return where(np.expand_dims(indices, axis) == places, on, off)


@kernel("Diag")
def run_diag(_: Tf1Op, args: Sequence[Any]) -> Array:
    """A tensor of twice the rank, zero off its diagonal."""
    x = args[0]
    return np.diag(x.reshape(-1)).reshape(*x.shape, *x.shape)


@kernel("DiagPart")
def run_diag_part(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The inverse of Diag."""
    shape = args[0].shape[: args[0].ndim // 2]
    return np.diagonal(args[0].reshape(math.prod(shape), -1)).reshape(shape)


@kernel("MatrixDiag")
def run_matrix_diag(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Square matrices with the given diagonals."""
    x = args[0]
    return where(np.eye(x.shape[-1], dtype=bool), x[..., None], x.dtype.type(0))


@kernel("MatrixDiagPart")
def run_matrix_diag_part(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The diagonals of matrices."""
    return np.diagonal(args[0], axis1=-2, axis2=-1)


@kernel("MatrixSetDiag")
def run_matrix_set_diag(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Matrices with other diagonals."""
    result = args[0].copy()
    index = np.arange(int(args[1].shape[-1]))
    result[..., index, index] = args[1]
    return result


@kernel("MatrixBandPart")
def run_matrix_band_part(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Zero but for so many diagonals below and above; -1 is all."""
    x, lower, upper = args[0], scalar(args[1]), scalar(args[2])
    rows, columns = x.shape[-2:]
    row, column = np.arange(int(rows))[:, None], np.arange(int(columns))
    inside = ((lower < 0) | (row - column <= lower)) & ((upper < 0) | (column - row <= upper))
    return where(inside, x, x.dtype.type(0))


# Slices


@kernel("Slice")
def run_slice(_: Tf1Op, args: Sequence[Any]) -> Array:
    """A block; a size of -1 is all that is left."""
    x, begin, size = args[0], ints(args[1]), ints(args[2])
    require(len(begin) == len(size) == x.ndim, "begin or size does not fit the rank")
    slices: list[slice] = []
    for dim, start, count in zip(x.shape, begin, size, strict=True):
        stop = dim if count == -1 else start + count
        require(0 <= start <= stop <= dim, f"{start} to {stop} is not within 0 to {dim}")
        slices.append(slice(start, stop))
    return x[tuple(slices)]


def strided_index(
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    op: Tf1Op,
) -> tuple[Any, ...]:
    """
    The numpy index for a StridedSlice: ranges with positive bounds, numbers for dimensions that
    shrink, None for new ones.
    """

    def marked(mask: str, position: int) -> bool:
        return bool(op.attr(f"{mask}_mask") >> position & 1)

    count = len(begin)
    ellipses = [k for k in range(count) if marked("ellipsis", k)]
    require(len(ellipses) <= 1, "there are several ellipses")
    after = ellipses[0] if ellipses else count
    new = sum(marked("new_axis", k) for k in range(count) if k != after)
    skipped = len(shape) - (count - new - len(ellipses))
    require(skipped >= 0, f"{count - new - len(ellipses)} slices for {len(shape)} dimensions")
    index: list[Any] = []
    axis = 0
    for k in range(count):
        if k == after:
            index += [slice(None)] * skipped
            axis += skipped
        elif marked("new_axis", k):
            index.append(None)
        elif marked("shrink_axis", k):
            place = begin[k] + shape[axis] * (begin[k] < 0)
            require(0 <= place < shape[axis], f"index {begin[k]} is out of range for {shape[axis]}")
            require(strides[k] > 0, "a dimension that shrinks has a negative stride")
            index.append(place)
            axis += 1
        else:
            require(strides[k] != 0, "a stride is zero")
            start = None if marked("begin", k) else begin[k]
            stop = None if marked("end", k) else end[k]
            index.append(slice(start, stop, strides[k]))
            axis += 1
    return tuple(index)


@kernel("StridedSlice")
def run_strided_slice(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Python's slicing, with masks for what is left out."""
    x = args[0]
    begin, end, strides = (ints(arg) for arg in args[1:])
    require(len(begin) == len(end) == len(strides), "begin, end and strides differ in size")
    return np.asarray(x[strided_index(x.shape, begin, end, strides, op)])


@kernel("Pad", "PadV2", "MirrorPad")
def run_pad(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Before and after each dimension: zeros, a value, or the mirrored elements."""
    widths = [tuple(row) for row in args[1].tolist()]
    if op.op_type == "MirrorPad":
        return np.pad(args[0], widths, mode=op.attr("mode").lower())
    value = args[2] if op.op_type == "PadV2" else args[0].dtype.type(0)
    if args[0].dtype == object:
        value = "" if op.op_type == "Pad" else args[2].reshape(-1)[0]
    return np.pad(args[0], widths, constant_values=value)


@kernel("Tile")
def run_tile(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Each dimension so many times."""
    require(args[1].size == args[0].ndim, "the multiples do not fit the rank")
    return np.tile(args[0], ints(args[1]))


@kernel("ReverseV2")
def run_reverse(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Backwards along the axes."""
    return np.flip(args[0], tuple(ints(args[1])))


@kernel("ReverseSequence")
def run_reverse_sequence(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The first elements of each row backwards, as many as its length."""
    x = np.moveaxis(args[0], (op.attr("batch_dim"), op.attr("seq_dim")), (0, 1))
    lengths = ints(args[1])
    require(len(lengths) == len(x), f"{len(lengths)} lengths for {len(x)} rows")
    result = x.copy()
    for row, length in enumerate(lengths):
        require(0 <= length <= x.shape[1], f"the length {length} is not within 0 to {x.shape[1]}")
        result[row, :length] = x[row, :length][::-1]
    return np.moveaxis(result, (0, 1), (op.attr("batch_dim"), op.attr("seq_dim")))


@kernel("Roll")
def run_roll(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Shifted around the ends."""
    return np.roll(args[0], tuple(ints(args[1])), tuple(ints(args[2])))


# Joins


@kernel("Pack")
def run_pack(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Along a new axis."""
    return np.stack(args, op.attr("axis"))


@kernel("Unpack")
def run_unpack(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """The slices along an axis."""
    x = np.moveaxis(args[0], op.attr("axis"), 0)
    require(len(x) == op.attr("num"), f"found {len(x)} slices, expected {op.attr('num')}")
    return tuple(x)


@kernel("Concat", "ConcatV2")
def run_concat(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Along an axis: the first input of Concat, the last one of ConcatV2."""
    is_old = op.op_type == "Concat"
    axis, parts = (args[0], args[1:]) if is_old else (args[-1], args[:-1])
    return np.concatenate(parts, scalar(axis))


@kernel("ConcatOffset")
def run_concat_offset(_: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """Where each part begins in the concatenation."""
    axis = positive_axis(scalar(args[0]), args[1].size)
    offsets, total = list[Array](), 0
    for shape in args[1:]:
        offset = np.zeros_like(shape)
        offset[axis] = total
        total += int(shape[axis])
        offsets.append(offset)
    return tuple(offsets)


@kernel("Split")
def run_split(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """Equal parts along an axis."""
    axis, count = positive_axis(scalar(args[0]), args[1].ndim), op.attr("num_split")
    require(args[1].shape[axis] % count == 0, f"{args[1].shape[axis]} is no multiple of {count}")
    return tuple(np.split(args[1], count, axis))


@kernel("SplitV")
def run_split_v(_: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """Parts of the given sizes; one may be -1: what is left."""
    x, sizes = args[0], ints(args[1])
    axis = positive_axis(scalar(args[2]), x.ndim)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(size for size in sizes if size != -1)
    require(min(sizes) >= 0 and sum(sizes) == x.shape[axis], f"{sizes} do not fit {x.shape[axis]}")
    return tuple(np.split(x, np.cumsum(sizes[:-1]), axis))


# Gathers and scatters


def _check_range(indices: Array, limit: Any) -> None:
    require(np.all((indices >= 0) & (indices < limit)), f"an index is not within 0 to {limit}")


@kernel("Gather", "GatherV2", "ResourceGather")
def run_gather(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Slices along an axis, by indices of any shape."""
    x, indices = args[0], args[1]
    batch = 0 if op.op_type == "Gather" else op.attr("batch_dims")
    axis = positive_axis(scalar(args[2]), x.ndim) if op.op_type == "GatherV2" else max(0, batch)
    _check_range(indices, x.shape[axis])
    batch = batch + indices.ndim if batch < 0 else batch
    if not batch:
        return np.take(x, indices, axis)
    require(x.shape[:batch] == indices.shape[:batch] and batch <= axis, "the batches differ")
    rows = [
        np.take(x[place], indices[place], axis - batch) for place in np.ndindex(x.shape[:batch])
    ]
    shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
    return np.array(rows, x.dtype).reshape(shape)


@kernel("GatherNd", "ResourceGatherNd")
def run_gather_nd(_: Tf1Op, args: Sequence[Any]) -> Array:
    """By index vectors."""
    x, indices = args
    _check_range(indices, np.array(x.shape[: indices.shape[-1]]))
    places = tuple(np.moveaxis(indices, -1, 0))
    return x[places] if places else np.broadcast_to(x, (*indices.shape[:-1], *x.shape))


_UPDATES: dict[str, Any] = {"Add": np.add, "Sub": np.subtract, "Min": np.minimum, "Max": np.maximum}


@kernel("ScatterNd")
def run_scatter_nd(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Added to zeros: updates of one place add up."""
    indices, updates, shape = args[0], args[1], ints(args[2])
    return _scattered(np.zeros(shape, updates.dtype), indices, updates, np.add)


@kernel("TensorScatterUpdate", *(f"TensorScatter{name}" for name in _UPDATES))
def run_tensor_scatter(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Into a copy of the tensor; of several updates of one place the last one counts."""
    update = _UPDATES.get(op.op_type.removeprefix("TensorScatter"))
    return _scattered(args[0].copy(), args[1], args[2], update)


def _scattered(result: Array, indices: Array, updates: Array, update: Any) -> Array:
    depth = indices.shape[-1]
    require(depth <= result.ndim, f"indices of {depth} numbers for {result.ndim} dimensions")
    expected = (*indices.shape[:-1], *result.shape[depth:])
    require(updates.shape == expected, f"found updates of shape {updates.shape}, not {expected}")
    _check_range(indices, np.array(result.shape[:depth]))
    for place in np.ndindex(indices.shape[:-1]):
        target = tuple(indices[place])
        value = updates[place]
        result[target] = value if update is None else update(result[target], value)
    return result


@kernel("Where")
def run_where(_: Tf1Op, args: Sequence[Any]) -> Array:
    """The coordinates of all elements that are not zero, in order."""
    return np.argwhere(args[0]).astype(np.int64).reshape(-1, args[0].ndim)


@kernel("ListDiff")
def run_list_diff(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, Array]:
    """The elements of the first list that are not in the second, and where they were."""
    (places,) = np.nonzero(~np.isin(args[0], args[1]))
    return args[0][places], places.astype(dtype_of(op, "out_idx"))


@kernel("DynamicPartition")
def run_dynamic_partition(op: Tf1Op, args: Sequence[Any]) -> tuple[Array, ...]:
    """The rows of each partition, in order."""
    data, partitions = args
    rows = data.reshape(-1, *data.shape[partitions.ndim :])
    count = op.attr("num_partitions")
    _check_range(partitions, count)
    return tuple(rows[partitions.reshape(-1) == k] for k in range(count))


@kernel("DynamicStitch", "ParallelDynamicStitch")
def run_dynamic_stitch(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Rows put at their indices; later ones win."""
    count = op.attr("N")
    indices, data = args[:count], args[count:]
    inner = data[0].shape[indices[0].ndim :]
    size = max((int(np.max(i, initial=-1)) for i in indices), default=-1) + 1
    result = np.zeros((size, *inner), data[0].dtype)
    for places, rows in zip(indices, data, strict=True):
        for place in np.ndindex(places.shape):
            result[places[place]] = rows[place]
    return result


@kernel("SparseToDense")
def run_sparse_to_dense(_: Tf1Op, args: Sequence[Any]) -> Array:
    """Values at places, a default elsewhere."""
    indices, shape, values, default = args
    result = np.full(ints(shape), default, default.dtype)
    rows = indices.reshape(-1, result.ndim) if indices.ndim != 1 else indices.reshape(-1, 1)
    for number, place in enumerate(rows):
        result[tuple(place)] = values if values.ndim == 0 else values[number]
    return result


# Blocks


def _space_to_batch(x: Array, block: Sequence[int], pads: Sequence[Sequence[int]]) -> Array:
    rank = len(block)
    x = np.pad(x, [(0, 0), *map(tuple, pads), *[(0, 0)] * (x.ndim - 1 - rank)])
    shape = [x.shape[0]]
    for size, step in zip(x.shape[1:], block, strict=False):
        require(size % step == 0, f"the padded size {size} is no multiple of {step}")
        shape += [size // step, step]
    split = x.reshape(*shape, *x.shape[1 + rank :])
    order = [
        *range(2, 2 * rank + 1, 2),
        0,
        *range(1, 2 * rank, 2),
        *range(1 + 2 * rank, split.ndim),
    ]
    sizes = [size // step for size, step in zip(x.shape[1:], block, strict=False)]
    return split.transpose(order).reshape(-1, *sizes, *x.shape[1 + rank :])


def _batch_to_space(x: Array, block: Sequence[int], crops: Sequence[Sequence[int]]) -> Array:
    rank, steps = len(block), math.prod(block)
    require(x.shape[0] % steps == 0, f"the batch {x.shape[0]} is no multiple of {steps}")
    split = x.reshape(*block, x.shape[0] // steps, *x.shape[1:])
    pairs = [axis for k in range(rank) for axis in (rank + 1 + k, k)]
    order = [rank, *pairs, *range(2 * rank + 1, split.ndim)]
    sizes = [size * step for size, step in zip(x.shape[1:], block, strict=False)]
    joined = split.transpose(order).reshape(-1, *sizes, *x.shape[1 + rank :])
    inner: list[slice] = []
    for size, (begin, end) in zip(sizes, crops, strict=True):
        require(0 <= begin and 0 <= end and begin + end <= size, "the crops do not fit")
        inner.append(slice(begin, size - end))
    return joined[(slice(None), *inner)]


@kernel("SpaceToBatchND", "BatchToSpaceND")
def run_batch_nd(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Blocks of space into the batch after padding, and back before cropping."""
    move = _space_to_batch if op.op_type == "SpaceToBatchND" else _batch_to_space
    return move(args[0], ints(args[1]), args[2].tolist())


@kernel("SpaceToBatch", "BatchToSpace")
def run_batch(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The same with one block size for height and width."""
    move = _space_to_batch if op.op_type == "SpaceToBatch" else _batch_to_space
    return move(args[0], [op.attr("block_size")] * 2, args[1].tolist())


def _channels_last(function: Callable[[Array, int], Array], op: Tf1Op, x: Array) -> Array:
    layout = op.attr("data_format")
    if layout == "NCHW":
        return np.moveaxis(function(np.moveaxis(x, 1, -1), op.attr("block_size")), -1, 1)
    require(layout == "NHWC", f"the layout {layout} is not supported")
    return function(x, op.attr("block_size"))


@kernel("SpaceToDepth")
def run_space_to_depth(op: Tf1Op, args: Sequence[Any]) -> Array:
    """Blocks of space into the channels: row, column, then the channel itself."""

    def move(x: Array, block: int) -> Array:
        n, h, w, c = x.shape
        require(h % block == w % block == 0, f"{h} x {w} is no multiple of {block}")
        split = x.reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 2, 4, 5)
        return split.reshape(n, h // block, w // block, block * block * c)

    return _channels_last(move, op, args[0])


@kernel("DepthToSpace")
def run_depth_to_space(op: Tf1Op, args: Sequence[Any]) -> Array:
    """The inverse of SpaceToDepth."""

    def move(x: Array, block: int) -> Array:
        n, h, w, c = x.shape
        require(c % (block * block) == 0, f"{c} channels are no multiple of {block * block}")
        split = x.reshape(n, h, w, block, block, c // block**2).transpose(0, 1, 3, 2, 4, 5)
        return split.reshape(n, h * block, w * block, c // block**2)

    return _channels_last(move, op, args[0])
