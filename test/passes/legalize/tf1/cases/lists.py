"""TensorLists: what single operators give, versions of one list, lists in cyclic control flow."""

# Bodies of loops are lambdas, and TensorFlow has no types.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

tf: Any = import_module("tensorflow")


def _values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _reserve(count: Any, shape: Any = -1, dtype: Any = tf.float32) -> Any:
    return tf.raw_ops.TensorListReserve(
        element_shape=shape, num_elements=count, element_dtype=dtype
    )


def _empty(shape: Any = -1, dtype: Any = tf.float32) -> Any:
    return tf.raw_ops.EmptyTensorList(element_shape=shape, max_num_elements=-1, element_dtype=dtype)


def _set(handle: Any, index: Any, item: Any, resize: bool = False) -> Any:
    return tf.raw_ops.TensorListSetItem(
        input_handle=handle, index=index, item=item, resize_if_index_out_of_bounds=resize
    )


def _push(handle: Any, tensor: Any) -> Any:
    return tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=tensor)


def _pop(handle: Any, shape: Any = -1, dtype: Any = tf.float32) -> Any:
    return tf.raw_ops.TensorListPopBack(
        input_handle=handle, element_shape=shape, element_dtype=dtype
    )


def _get(handle: Any, index: Any, shape: Any = -1, dtype: Any = tf.float32) -> Any:
    return tf.raw_ops.TensorListGetItem(
        input_handle=handle, index=index, element_shape=shape, element_dtype=dtype
    )


def _stack(handle: Any, shape: Any = -1, dtype: Any = tf.float32, count: int = -1) -> Any:
    return tf.raw_ops.TensorListStack(
        input_handle=handle, element_shape=shape, element_dtype=dtype, num_elements=count
    )


def _from(tensor: Any, shape: Any = -1) -> Any:
    return tf.raw_ops.TensorListFromTensor(tensor=tensor, element_shape=shape)


def _length(handle: Any) -> Any:
    return tf.raw_ops.TensorListLength(input_handle=handle)


def _gather(handle: Any, indices: Any, shape: Any = -1) -> Any:
    return tf.raw_ops.TensorListGather(
        input_handle=handle, indices=indices, element_shape=shape, element_dtype=tf.float32
    )


def _concat(handle: Any, shape: Any = -1) -> Any:
    return tf.raw_ops.TensorListConcatV2(
        input_handle=handle,
        element_shape=shape,
        leading_dims=np.zeros(0, np.int64),
        element_dtype=tf.float32,
    )


def _resize(handle: Any, size: Any) -> Any:
    return tf.raw_ops.TensorListResize(input_handle=handle, size=size)


def build(r: Any) -> None:
    tf.compat.v1.disable_control_flow_v2()
    _single(r)
    _versions(r)
    _growing(r)
    _uneven(r)
    _loops(r)
    _branches(r)
    _shapes(r)


def _single(r: Any) -> None:
    x, k = r.input(_values(3, 2)), r.input(np.int32(1))
    rows = _from(x, [2])
    r.case("stack", _stack(rows, [2]))
    r.case("stack_counted", _stack(rows, [2], count=3))
    r.case("get", _get(rows, k))
    r.case("length", _length(rows))
    r.case("gather", _gather(rows, [2, 0, 2], [2]))
    r.case("gather_none", _gather(rows, np.zeros(0, np.int32), [2]))
    r.case("concat_scalars", _concat(_from(x))[0])
    r.case("concat_lengths", _concat(_from(x))[1])
    matrices = r.input(_values(3, 2, 4, seed=1))
    old = tf.raw_ops.TensorListConcat(
        input_handle=_from(matrices), element_dtype=tf.float32, element_shape=[None, 4]
    )
    r.case("concat_old", old[0])
    r.case("concat_old_lengths", old[1])
    for name, count in (("exact", 4), ("more", 6), ("open", -1)):
        scattered = tf.raw_ops.TensorListScatterV2(
            tensor=x, indices=[3, 0, 1], element_shape=[2], num_elements=count
        )
        r.case(f"scatter_{name}", _stack(scattered, [2]))
    first = tf.raw_ops.TensorListScatter(tensor=x, indices=[1, 2, 0], element_shape=[2])
    r.case("scatter_old", _stack(first, [2]))
    into = tf.raw_ops.TensorListScatterIntoExistingList(
        input_handle=rows, tensor=x, indices=[2, 0, 3]
    )
    r.case("scatter_into", _stack(into, [2]))
    both = tf.raw_ops.TensorListConcatLists(input_a=rows, input_b=first, element_dtype=tf.float32)
    r.case("concat_lists", _stack(both, [2]))
    parts = tf.raw_ops.TensorListConcatLists(
        input_a=_reserve(2, [2]), input_b=rows, element_dtype=tf.float32
    )
    r.case("concat_unwritten", _stack(parts, [2]))
    even = tf.raw_ops.TensorListSplit(tensor=matrices, element_shape=[-1, 2, 4], lengths=[1, 1, 1])
    r.case("split_even", _stack(even))
    # What was not written is zero, where the shape of elements is stated.
    r.case("never_written", _stack(_reserve(3, [2])))
    r.case("never_written_item", _get(_reserve(3), 1, [2]))
    r.case("never_written_int", _stack(_reserve(k, [2], tf.int32), [2], tf.int32))
    r.case("partly_written", _stack(_set(_reserve(3), k, x[0]), [2]))
    r.case("nothing", _stack(_empty([2])))
    r.case("nothing_length", _length(_empty()))
    r.case("unwritten_length", _length(_reserve(k + 3)))


def _versions(r: Any) -> None:
    """Whoever has a handle keeps the list that it stood for."""
    x, k = r.input(_values(3, 2, seed=2)), r.input(np.int32(1))
    first = _from(x)
    second = _set(first, k, x[0] * 10)
    third = _set(first, k, x[0] * 100)
    for name, handle in (("first", first), ("second", second), ("third", third)):
        r.case(f"version_{name}", _stack(handle))
    shorter, last = _pop(second)
    r.case("version_popped", _stack(shorter))
    r.case("version_last", last)
    r.case("version_longer", _stack(_push(shorter, last * 2)))
    r.case("version_again", _stack(second))


def _growing(r: Any) -> None:
    x, k, n = r.input(_values(3, 2, seed=3)), r.input(np.int32(5)), r.input(np.int32(2))
    pushed = _push(_push(_empty(), x[0]), x[1])
    r.case("pushed", _stack(pushed))
    r.case("pushed_length", _length(pushed))
    shorter, last = _pop(pushed, [2])
    r.case("popped", last)
    r.case("popped_rest", _stack(shorter))
    emptied, first = _pop(shorter, [2])
    r.case("popped_twice", first)
    r.case("emptied", _length(emptied))
    r.case("longer", _stack(_resize(_from(x), k), [2]))
    r.case("shorter", _stack(_resize(_from(x), n), [2]))
    r.case("resized_unwritten", _stack(_set(_resize(_empty([2]), k), n, x[2])))
    r.case("resized_length", _length(_resize(_reserve(4), k)))
    r.case("beyond", _stack(_set(_from(x), k, x[0], resize=True), [2]))
    r.case("within", _stack(_set(_from(x), n, x[0], resize=True), [2]))
    r.case("beyond_nothing", _stack(_set(_empty([2]), n, x[0], resize=True)))


def _uneven(r: Any) -> None:
    """Elements of different lengths."""
    x, sizes = r.input(_values(6, 2, seed=4), [6, 2]), r.input(np.array([2, 0, 3, 1], np.int64))
    pieces = tf.raw_ops.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=sizes)
    r.case("uneven_joined", _concat(pieces, [-1, 2])[0])
    r.case("uneven_lengths", _concat(pieces, [-1, 2])[1])
    r.case("uneven_item", _get(pieces, 2, [-1, 2]))
    longer = _push(pieces, x)
    r.case("uneven_pushed", _concat(longer, [-1, 2])[0])
    r.case("uneven_pushed_lengths", _concat(longer, [-1, 2])[1])
    rest, last = _pop(pieces, [-1, 2])
    r.case("uneven_last", last)
    r.case("uneven_rest", _concat(rest, [-1, 2])[0])
    mixed = _push(_push(_empty(), x[:2]), x[:5])
    r.case("uneven_fixed", _concat(_set(mixed, 0, x[:1]))[0])
    r.case("uneven_gathered", _gather(_push(mixed, x[1:3]), [0, 2, 0], [-1, 2]))


def _while(limit: Any, body: Any, *values: Any) -> Sequence[Any]:
    """`body` of the number of an iteration and the values, `limit` times."""

    def step(i: Any, *current: Any) -> Any:
        return (i + 1, *body(i, *current))

    return tf.compat.v1.while_loop(
        lambda i, *_: i < limit,
        step,
        (tf.constant(0), *values),
        shape_invariants=tuple(tf.TensorShape(None) for _ in (0, *values)),
        return_same_structure=True,
    )[1:]


def _loops(r: Any) -> None:
    x, n = r.input(_values(4, 2, seed=5)), r.input(np.int32(4))
    (written,) = _while(n, lambda i, h: [_set(h, n - 1 - i, x[i] * 2)], _reserve(n))
    r.case("loop_reversed", _stack(written, [2]))
    (pushed,) = _while(n, lambda i, h: [_push(h, x[i])], _empty())
    r.case("loop_pushed", _stack(pushed, [2]))
    r.case("loop_pushed_length", _length(pushed))

    def drain(i: Any, h: Any, total: Any) -> Any:
        rest, last = _pop(h, [2])
        return rest, total * 2 + last

    left, total = _while(3, drain, pushed, tf.zeros([2]))
    r.case("loop_popped", total)
    r.case("loop_left", _length(left))

    def fibonacci(i: Any, h: Any) -> Any:
        return [_set(h, i + 2, _get(h, i, [2]) + _get(h, i + 1, [2]))]

    start = _set(_set(_reserve(n + 2), 0, x[0]), 1, x[1])
    (chain,) = _while(n, fibonacci, start)
    r.case("loop_read_and_written", _stack(chain, [2]))
    # The list before the loop stays what it was, and both may be read in the loop.
    (sums,) = _while(
        n, lambda i, h: [_set(h, i, _get(_from(x), i, [2]) + _get(h, n - 1 - i, [2]))], _from(x)
    )
    r.case("loop_two_versions", _stack(sums, [2]))
    r.case("loop_old_version", _stack(start, [2]))
    (swapped, other) = _while(3, lambda i, a, b: [b, _set(a, i, x[3])], _from(x), _from(-x))
    r.case("loop_swapped", _stack(swapped))
    r.case("loop_swapped_other", _stack(other))
    (growing,) = _while(n, lambda i, h: [_push(h, x[: i + 1])], _empty())
    r.case("loop_uneven", _concat(growing, [-1, 2])[0])
    r.case("loop_uneven_lengths", _concat(growing, [-1, 2])[1])
    (none,) = _while(n - 4, lambda i, h: [_set(h, i, x[i])], _reserve(2, [2]))
    r.case("loop_no_trips", _stack(none, [2]))

    def nested(i: Any, h: Any) -> Any:
        (inner,) = _while(i + 1, lambda j, g: [_push(g, x[j])], _empty([2]))
        return [_set(h, i, tf.reduce_sum(_stack(inner, [2]), 0))]

    (outer,) = _while(n, nested, _reserve(n))
    r.case("loop_nested", _stack(outer, [2]))

    def reset(i: Any, h: Any, count: Any) -> Any:
        return _empty([2]), count + _length(_push(h, x[i]))

    (cleared, counted) = _while(n, reset, _from(x), tf.constant(0))
    r.case("loop_reset", _length(cleared))
    r.case("loop_reset_count", counted)


def _branches(r: Any) -> None:
    x, yes, no = r.input(_values(3, 2, seed=6)), r.input(np.True_), r.input(np.False_)
    for name, p in (("yes", yes), ("no", no)):
        rows = _from(x)
        one = tf.compat.v1.cond(p, lambda: _set(rows, 1, x[0]), lambda: _set(rows, 2, x[0]))
        r.case(f"cond_written_{name}", _stack(one))
        longer = tf.compat.v1.cond(p, lambda: _push(rows, x[1]), lambda: rows)
        r.case(f"cond_pushed_{name}", _stack(longer, [2]))
        empty = _empty([2])
        first = tf.compat.v1.cond(p, lambda: _push(empty, x[1]), lambda: empty)
        r.case(f"cond_first_{name}", _stack(first, [2]))
        r.case(f"cond_first_length_{name}", _length(first))
        fresh = tf.compat.v1.cond(p, lambda: _empty([2]), lambda: _reserve(3, [2]))
        r.case(f"cond_fresh_{name}", _stack(fresh, [2]))

        def step(i: Any, h: Any, p: Any = p) -> Any:
            even = tf.equal(i % 2, 0)
            even = tf.math.logical_xor(even, p)
            return [tf.compat.v1.cond(even, lambda: _set(h, i, x[i]), lambda: h)]

        (some,) = _while(3, step, _reserve(3, [2]))
        r.case(f"cond_in_loop_{name}", _stack(some, [2]))
        looped = tf.compat.v1.cond(
            p, lambda: _while(2, lambda i, h: [_push(h, x[i])], rows)[0], lambda: rows
        )
        r.case(f"loop_in_cond_{name}", _stack(looped, [2]))


def _shapes(r: Any) -> None:
    """What shape of elements a list was made with, whatever was written since."""
    x, yes, n = r.input(_values(3, 2, seed=7)), r.input(np.True_), r.input(np.int32(2))

    def shape(handle: Any, kind: Any = tf.int32) -> Any:
        return tf.raw_ops.TensorListElementShape(input_handle=handle, shape_type=kind)

    r.case("shape_open", shape(_push(_empty(), x[0])))
    r.case("shape_partial", shape(_set(_reserve(3, [-1, 2]), 1, x)))
    r.case("shape_long", shape(_set(_reserve(3, [2]), 1, x[0]), tf.int64))
    r.case("shape_computed", shape(_push(_empty(tf.shape(x)[1:]), x[0])))
    (looped,) = _while(n, lambda i, h: [_push(h, x[i])], _empty([-1]))
    r.case("shape_looped", shape(looped))
    either = tf.compat.v1.cond(yes, lambda: _push(_empty([2]), x[0]), lambda: _reserve(n, [2]))
    r.case("shape_either", shape(either))
