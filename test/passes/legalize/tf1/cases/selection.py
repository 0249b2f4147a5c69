"""Reading and writing places that tensors name, order, segments, generators and diagonals."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder
    from numpy.typing import ArrayLike, NDArray

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops


def floats(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(len(shape) + 9).integers(-9, 9, shape).astype(
        np.float32
    ) * np.float32(0.5)


def ints(*values: ArrayLike) -> NDArray[np.int32]:
    return np.array(values, np.int32)


def build(record: Recorder) -> None:
    x = record.input(floats(2, 3, 4))
    v = record.input(floats(7))
    _generators(record, x, v)
    _one_hot(record)
    _gathers(record, x)
    _scatters(record, v)
    _unsorted_segments(record, x)
    _segments(record)
    _stitches(record, x)
    _searches(record)
    _orders(record)
    _unique(record)
    _bands(record, x)
    _diagonals(record)
    _band_diagonals(record)
    _rows(record)
    _lists(record)


def _generators(record: Recorder, x: Any, v: Any) -> None:
    size = tf.shape(v)[0]
    record.case("Fill", raw.Fill(dims=tf.stack([size, 2]), value=3.5))
    lengths = record.input(np.array([2, 0, 3]), [3])
    record.case("Fill_data", raw.Fill(dims=lengths, value=np.int32(7)))
    record.case("Fill_scalar", raw.Fill(dims=np.zeros(0, np.int32), value=True))
    record.case("ZerosLike", raw.ZerosLike(x=x))
    record.case("OnesLike", raw.OnesLike(x=tf.cast(x, tf.int64)))
    number = record.input(np.array(4, np.int32))
    for name, bounds in {
        "constant": (1, 8, 3),
        "down": (5, -3, -2),
        "shape": (0, size, 2),
        "data": (number, 11, number - 1),
        "empty": (3, 3, 1),
        "int64": (np.int64(2), np.int64(9), np.int64(2)),
        "tenths": tuple(map(np.float32, (0, 1, 0.1))),
        "float_down": tuple(map(np.float32, (2.5, -1, -0.3))),
        "double": (np.float64(0), tf.cast(size, tf.float64), np.float64(0.7)),
    }.items():
        record.case(f"Range_{name}", raw.Range(start=bounds[0], limit=bounds[1], delta=bounds[2]))
    step = record.input(np.array(0.1, np.float32))
    record.case("Range_float_data", raw.Range(start=np.float32(1), limit=step * 23, delta=step))
    one, start = record.input(np.array(1, np.int32)), record.input(np.array(-0.7, np.float32))
    stop = np.float32(2.2)
    for name, count in {"five": 5, "lone": 1, "lone_data": one, "shape": size}.items():
        record.case(f"LinSpace_{name}", raw.LinSpace(start=start, stop=stop, num=count))
    record.case("LinSpace_constant", raw.LinSpace(start=np.float32(1), stop=stop, num=7))


def _one_hot(record: Recorder) -> None:
    places = record.input(np.array([[1, -1, 0], [4, 3, 2]], np.int64))
    for axis in (-1, 0, 1):
        hot = raw.OneHot(indices=places, depth=4, on_value=2.5, off_value=-1.0, axis=axis)
        record.case(f"OneHot_{axis}", hot)
    depth = record.input(np.array(3, np.int32))
    data = raw.OneHot(indices=ints(0, 2, 3), depth=depth, on_value=True, off_value=False)
    record.case("OneHot_depth", data)
    scalar = raw.OneHot(indices=np.uint8(2), depth=tf.shape(places)[1], on_value=9, off_value=1)
    record.case("OneHot_scalar", scalar)


def _gathers(record: Recorder, x: Any) -> None:
    record.case("Gather", raw.Gather(params=x, indices=[[1, 0], [1, 1]]))
    places = record.input(np.array([[2, 0], [1, 1]], np.int64))
    for axis in (1, -1, 0):
        found = raw.GatherV2(params=x, indices=places % 2, axis=axis)
        record.case(f"GatherV2_{axis}", found)
    for axis, batch in ((1, 1), (2, 1), (-1, -1)):
        found = raw.GatherV2(params=x, indices=places, axis=axis, batch_dims=batch)
        record.case(f"GatherV2_batch_{axis}", found)
    same = record.input(floats(2, 2, 5))
    found = raw.GatherV2(params=same, indices=places, axis=2, batch_dims=2)
    record.case("GatherV2_batch_all", found)
    record.case("GatherV2_shape", raw.GatherV2(params=tf.shape(x), indices=[2, 0], axis=0))
    record.case("GatherNd", raw.GatherNd(params=x, indices=[[1, 2], [0, 0]]))
    record.case("GatherNd_data", raw.GatherNd(params=x, indices=places[:, :, tf.newaxis] % 2))
    record.case("GatherNd_elements", raw.GatherNd(params=x, indices=[[[1, 2, 3]], [[0, 0, 1]]]))
    record.case("Where", raw.Where(condition=x > 1))
    record.case("Where_floats", raw.Where(condition=x))
    record.case("Where_none", raw.Where(condition=x > 100))
    lengths = record.input(np.array([1, 3], np.int64))
    record.case("ReverseSequence", raw.ReverseSequence(input=x, seq_lengths=lengths, seq_dim=1))
    later = raw.ReverseSequence(input=x, seq_lengths=[4, 1, 2], seq_dim=2, batch_dim=1)
    record.case("ReverseSequence_later", later)
    swapped = raw.ReverseSequence(input=x, seq_lengths=[2, 1, 2], seq_dim=0, batch_dim=1)
    record.case("ReverseSequence_swapped", swapped)
    numbers = record.input(ints(1, 0, 1, 3, 1))
    data = record.input(floats(5, 2))
    parts = raw.DynamicPartition(data=data, partitions=numbers, num_partitions=4)
    for k, part in enumerate(parts):
        record.case(f"DynamicPartition_{k}", part)
    flat = raw.DynamicPartition(data=x, partitions=[[0, 1, 0], [1, 1, 0]], num_partitions=2)
    record.case("DynamicPartition_matrix", flat[1])


def _scatters(record: Recorder, v: Any) -> None:
    updates = record.input(floats(4))
    places = [[1], [3], [1], [0]]
    record.case("ScatterNd", raw.ScatterNd(indices=places, updates=updates, shape=[5]))
    shape = record.input(ints(3, 2), [2])
    rows = record.input(floats(3, 2))
    data = raw.ScatterNd(indices=[[2], [0], [2]], updates=rows, shape=shape)
    record.case("ScatterNd_rows", data)
    whole = tf.stack([tf.shape(v)[0], 2])
    record.case("ScatterNd_shape", raw.ScatterNd(indices=[[6, 1]], updates=[2.5], shape=whole))
    for name in ("Add", "Sub", "Max", "Min"):
        function = getattr(raw, f"TensorScatter{name}")
        record.case(f"TensorScatter{name}", function(tensor=v, indices=places, updates=updates))
    unlike = raw.TensorScatterUpdate(tensor=v, indices=[[6], [0]], updates=updates[:2])
    record.case("TensorScatterUpdate", unlike)
    adding = raw.ScatterNdNonAliasingAdd(input=v, indices=places, updates=updates)
    record.case("ScatterNdNonAliasingAdd", adding)
    dense = {"output_shape": [3, 4], "default_value": -1.0}
    pairs = [[0, 1], [2, 3]]
    found = raw.SparseToDense(sparse_indices=pairs, sparse_values=updates[:2], **dense)
    record.case("SparseToDense", found)
    line = raw.SparseToDense(
        sparse_indices=[1, 4], output_shape=[5], sparse_values=7, default_value=0
    )
    record.case("SparseToDense_scalar", line)


def _unsorted_segments(record: Recorder, x: Any) -> None:
    for name in ("Sum", "Prod", "Max", "Min"):
        function = getattr(raw, f"UnsortedSegment{name}")
        pairs = ints([2, 0, 2], [-1, 4, 2])
        record.case(f"UnsortedSegment{name}", function(data=x, segment_ids=pairs, num_segments=5))
        numbers = record.input(ints(3, -1, 1, 1, 3))
        whole = record.input(np.array([4, 9, -3, 7, 5], np.int32))
        count = tf.shape(numbers)[0]
        found = function(data=whole, segment_ids=numbers, num_segments=count)
        record.case(f"UnsortedSegment{name}_data", found)
    infinite = record.input(np.array([-np.inf, 1.0], np.float32))
    most = raw.UnsortedSegmentMax(data=infinite, segment_ids=[0, 1], num_segments=3)
    record.case("UnsortedSegmentMax_infinite", most)


def _segments(record: Recorder) -> None:
    data = record.input(floats(6, 2))
    numbers = record.input(ints(0, 0, 2, 2, 2, 5))
    for name in ("Sum", "Mean", "Prod", "Max", "Min"):
        function = getattr(raw, f"Segment{name}")
        record.case(f"Segment{name}", function(data=data, segment_ids=[0, 0, 1, 3, 3, 3]))
        record.case(f"Segment{name}_data", function(data=data, segment_ids=numbers))
    places = record.input(ints(5, 0, 0, 3))
    for name in ("Sum", "Mean", "SqrtN"):
        function = getattr(raw, f"SparseSegment{name}")
        bags = {"data": data, "indices": places, "segment_ids": ints(0, 0, 2, 2)}
        record.case(f"SparseSegment{name}", function(**bags))
        longer = getattr(raw, f"SparseSegment{name}WithNumSegments")
        record.case(f"SparseSegment{name}_longer", longer(**bags, num_segments=5))


def _stitches(record: Recorder, x: Any) -> None:
    places = [ints(5, 0), ints([2, 4], [1, 3])]
    data = [record.input(floats(2, 3)), record.input(floats(2, 2, 3))]
    record.case("DynamicStitch", raw.DynamicStitch(indices=places, data=data))
    twice = [ints(0, 1), ints([1, 2], [3, 0])]
    record.case("DynamicStitch_twice", raw.DynamicStitch(indices=twice, data=data))
    found = raw.ParallelDynamicStitch(indices=places, data=data)
    record.case("ParallelDynamicStitch", found)
    numbers = record.input(ints(1, 0, 1, 1, 0))
    rows = record.input(floats(5, 2))
    parts = raw.DynamicPartition(data=rows, partitions=numbers, num_partitions=2)
    order = raw.Range(start=0, limit=tf.shape(numbers)[0], delta=1)
    back = raw.DynamicPartition(data=order, partitions=numbers, num_partitions=2)
    joined = raw.DynamicStitch(indices=back, data=[parts[0], parts[1] * 2])
    record.case("DynamicStitch_partition", joined)


def _searches(record: Recorder) -> None:
    table = record.input(np.array([[1, 2, 2, 5], [0, 3, 3, 3]], np.float32))
    values = record.input(np.array([[2, 0, 6], [3, 3.5, -1]], np.float32))
    record.case("LowerBound", raw.LowerBound(sorted_inputs=table, values=values))
    upper = raw.UpperBound(sorted_inputs=table, values=values, out_type=tf.int64)
    record.case("UpperBound", upper)
    record.case("Bucketize", raw.Bucketize(input=values, boundaries=[0.0, 2.0, 3.25]))
    whole = record.input(np.array([-5, 2, 3, 4]))
    record.case("Bucketize_whole", raw.Bucketize(input=whole, boundaries=[2.0, 3.5]))


def _orders(record: Recorder) -> None:
    rows = record.input(np.array([[3, 1, 3, 2], [-1, 5, 0, 5], [7, 7, 7, 7]], np.float32))
    k = record.input(np.array(3, np.int32))
    for name, found in {
        "TopKV2": raw.TopKV2(input=rows, k=k),
        "TopKV2_shape": raw.TopKV2(input=tf.cast(rows, tf.int32), k=tf.shape(rows)[1] - 1),
        "TopKV2_int64": raw.TopKV2(input=rows[0], k=np.int64(2), index_type=tf.int64),
    }.items():
        record.case(f"{name}_values", found[0])
        record.case(f"{name}_indices", found[1])
    record.case("NthElement", raw.NthElement(input=rows, n=1))
    record.case("NthElement_data", raw.NthElement(input=rows, n=k, reverse=True))
    permutation = record.input(ints(2, 0, 3, 1))
    record.case("InvertPermutation", raw.InvertPermutation(x=permutation))


def _unique(record: Recorder) -> None:
    numbers = record.input(ints(4, 2, 4, 9, 2, 2))
    for name, results in {
        "Unique": raw.Unique(x=numbers),
        "UniqueWithCounts": raw.UniqueWithCounts(x=numbers, out_idx=tf.int64),
        "UniqueV2": raw.UniqueV2(x=numbers, axis=np.zeros(0, np.int32)),
        "UniqueV2_axis": raw.UniqueV2(
            x=record.input(np.array([[1, 2, 1], [0, 3, 0]], np.float32)), axis=ints(1)
        ),
    }.items():
        for k, result in enumerate(results):
            record.case(f"{name}_{k}", result)


def _bands(record: Recorder, x: Any) -> None:
    for below, above in ((1, 0), (0, -1), (-1, 1), (0, 0)):
        part = raw.MatrixBandPart(input=x, num_lower=below, num_upper=above)
        record.case(f"MatrixBandPart_{below}_{above}", part)
    lower = record.input(np.array(1))
    part = raw.MatrixBandPart(input=x, num_lower=lower, num_upper=np.int64(-1))
    record.case("MatrixBandPart_data", part)


def _diagonals(record: Recorder) -> None:
    rows = record.input(floats(2, 3))
    matrix = record.input(floats(2, 3, 4))
    record.case("MatrixDiag", raw.MatrixDiag(diagonal=rows))
    record.case("MatrixDiagPart", raw.MatrixDiagPart(input=matrix))
    record.case("MatrixSetDiag", raw.MatrixSetDiag(input=matrix, diagonal=rows))
    record.case("Diag", raw.Diag(diagonal=rows))
    record.case("DiagPart", raw.DiagPart(input=record.input(floats(2, 3, 2, 3))))


def _band_diagonals(record: Recorder) -> None:
    matrix = record.input(floats(2, 3, 4), [2, 3, 4])
    for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        for low, high in ((-1, 1), (0, 2), (-2, 0), (-2, -1)):
            name = f"{align}_{low}_{high}"
            fields = {"k": [low, high], "align": align}
            part = raw.MatrixDiagPartV3(input=matrix, padding_value=9.0, **fields)
            record.case(f"MatrixDiagPartV3_{name}", part)
            sizes = {"num_rows": 3, "num_cols": 4, "padding_value": -1.0}
            record.case(f"MatrixDiagV3_{name}", raw.MatrixDiagV3(diagonal=part, **fields, **sizes))
            other = raw.MatrixSetDiagV3(input=matrix * 0, diagonal=part, **fields)
            record.case(f"MatrixSetDiagV3_{name}", other)
    rows = record.input(floats(2, 3))
    for k in (0, 2, -1):
        sizes = {"num_rows": -1, "num_cols": -1, "padding_value": 0.5}
        record.case(f"MatrixDiagV2_{k}", raw.MatrixDiagV2(diagonal=rows, k=k, **sizes))
        part = raw.MatrixDiagPartV2(input=matrix, k=k, padding_value=0.0)
        record.case(f"MatrixDiagPartV2_{k}", part)
        record.case(f"MatrixSetDiagV2_{k}", raw.MatrixSetDiagV2(input=matrix, diagonal=part, k=k))
    wide = {"num_rows": 3, "num_cols": -1, "padding_value": 0.5}
    record.case("MatrixDiagV2_wide", raw.MatrixDiagV2(diagonal=rows, k=1, **wide))


def _rows(record: Recorder) -> None:
    for dtype in (np.float32, np.int32, np.int64):
        x, v = record.input(floats(5, 3).astype(dtype)), record.input(floats(2, 3).astype(dtype))
        rows = record.input(ints(4, 0))
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub"):
            value = getattr(raw, op)(x=x + tf.zeros([], dtype), i=rows, v=v)
            record.case(f"{op}_{np.dtype(dtype).name}", value)
    record.case("Empty", raw.Empty(shape=ints(2, 3), dtype=tf.int32, init=True))
    for dtype in (np.float32, np.float64, np.int32, np.uint8):
        a, b = (record.input((floats(4, 3) * k).astype(dtype)) for k in (2, 6))
        record.case(f"Cross_{np.dtype(dtype).name}", raw.Cross(a=a, b=b[::-1]))


def _lists(record: Recorder) -> None:
    x, y = record.input(ints(5, 3, 3, 9, 1, 5, 7)), record.input(ints(3, 7, 8))
    found = raw.ListDiff(x=x, y=y)
    record.case("ListDiff", found.out)
    record.case("ListDiff_places", found.idx)
    record.case("ListDiff_of_itself", raw.ListDiff(x=x, y=x).out)
    found = raw.ListDiff(x=tf.cast(x, tf.float32), y=np.zeros(0, np.float32), out_idx=tf.int64)
    record.case("ListDiff_all", found.out)
    record.case("ListDiff_all_places", found.idx)
    for dtype in (np.int32, np.int64):
        dims = record.input(np.array([3, 4, 5], dtype), [3])
        places = record.input(np.array([0, 22, 59, 7], dtype))
        name = np.dtype(dtype).name
        record.case(f"UnravelIndex_{name}", raw.UnravelIndex(indices=places, dims=dims))
        record.case(f"UnravelIndex_{name}_one", raw.UnravelIndex(indices=places[1], dims=dims))
