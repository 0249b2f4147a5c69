"""TensorArrays, in straight lines and in cyclic control flow."""

# Bodies of loops are lambdas, and TensorFlow has no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

tf: Any = import_module("tensorflow")


def _values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _array(size: Any, **options: Any) -> Any:
    options = {"dtype": tf.float32, "clear_after_read": False, "infer_shape": False, **options}
    return tf.TensorArray(size=size, **options)


def _while(limit: Any, body: Any, *values: Any) -> Sequence[Any]:
    """`body` of the number of an iteration and the values, `limit` times."""

    def step(i: Any, *current: Any) -> Any:
        return (i + 1, *body(i, *current))

    return tf.compat.v1.while_loop(
        lambda i, *_: i < limit, step, (tf.constant(0), *values), return_same_structure=True
    )[1:]


def build(r: Any) -> None:
    tf.compat.v1.disable_control_flow_v2()
    _single(r)
    _growing(r)
    _uneven(r)
    _loops(r)
    _branches(r)
    _ordered(r)


def _single(r: Any) -> None:
    x, k = r.input(_values(3, 2)), r.input(np.int32(1))
    rows = _array(3).unstack(x)
    r.case("stack", rows.stack())
    r.case("read", rows.read(k))
    r.case("gather", rows.gather([2, 0, 2]))
    r.case("size", rows.size())
    r.case("written", _array(3).write(2, x[0]).write(0, x[1]).write(k, x[2]).stack())
    r.case("scattered", _array(3).scatter([1, 2, 0], x).stack())
    r.case("split", _array(3).split(x, [1, 1, 1]).stack())
    r.case("concat", _array(2).write(0, x).write(1, -x).concat())
    r.case("int64", _array(2, dtype=tf.int64).write(0, tf.cast(k, tf.int64)).write(1, 7).stack())
    # What was not written is zero, where the shape of elements is stated.
    r.case("never_written", _array(k + 1, element_shape=[2]).stack())
    r.case("partly_written", _array(3, element_shape=[2]).write(k, x[0]).stack())


def _growing(r: Any) -> None:
    x, k, n = r.input(_values(3, 2, seed=1)), r.input(np.int32(4)), r.input(np.int32(1))
    options = {"dynamic_size": True, "element_shape": [2]}
    r.case("grown", _array(0, **options).write(k, x[0]).write(n, x[1]).stack())
    r.case("grown_size", _array(0, **options).write(k, x[0]).size())
    r.case("grown_rows", _array(0, dynamic_size=True).unstack(x).stack())
    r.case("grown_split", _array(0, dynamic_size=True).split(x, [1, 1, 1]).stack())
    scattered = _array(0, dynamic_size=True).scatter([2, 0, 1], x)
    r.case("grown_scattered", scattered.stack())


def _uneven(r: Any) -> None:
    """Elements of different lengths."""
    x, sizes = r.input(_values(6, 2, seed=2), [6, 2]), r.input(np.array([2, 0, 3, 1], np.int32))
    pieces = _array(4).split(x, sizes)
    r.case("uneven", pieces.concat())
    r.case("uneven_item", pieces.read(2))
    mixed = _array(2).write(0, x[:2]).write(1, x[:5])
    r.case("uneven_fixed", mixed.concat())
    grown = _array(0, dynamic_size=True).write(0, x[:2]).write(1, x[:5]).write(2, x[:1])
    r.case("uneven_grown", grown.concat())
    r.case("uneven_grown_size", grown.size())


def _loops(r: Any) -> None:
    x, n = r.input(_values(4, 2, seed=3)), r.input(np.int32(4))
    rows = _array(n).unstack(x)
    (back,) = _while(n, lambda i, a: [a.write(n - 1 - i, rows.read(i) * 2)], _array(n))
    r.case("loop_reversed", back.stack())

    def fibonacci(i: Any, a: Any) -> Any:
        return [a.write(i + 2, a.read(i) + a.read(i + 1))]

    (chain,) = _while(n, fibonacci, _array(n + 2).write(0, x[0]).write(1, x[1]))
    r.case("loop_read_and_written", chain.stack())
    one, other = _while(
        n, lambda i, a, b: [a.write(i, x[i]), b.write(n - 1 - i, -x[i])], _array(n), _array(n)
    )
    r.case("loop_two", one.stack() + 10 * other.stack())
    (grown,) = _while(n, lambda i, a: [a.write(i, x[i])], _array(0, dynamic_size=True))
    r.case("loop_grown", grown.stack())
    (uneven,) = _while(n, lambda i, a: [a.write(i, x[: i + 1])], _array(n))
    r.case("loop_uneven", uneven.concat())
    (longer,) = _while(n, lambda i, a: [a.write(i, x[: i + 1])], _array(0, dynamic_size=True))
    r.case("loop_uneven_grown", longer.concat())

    def nested(i: Any, a: Any) -> Any:
        (inner,) = _while(n, lambda j, b: [b.write(j, x[j] * x[i])], _array(n))
        return [a.write(i, tf.reduce_sum(inner.stack(), 0))]

    (outer,) = _while(n, nested, _array(n))
    r.case("loop_nested", outer.stack())
    (none,) = _while(n - 4, lambda i, a: [a.write(i, x[i])], _array(2, element_shape=[2]))
    r.case("loop_no_trips", none.stack())


def _branches(r: Any) -> None:
    x, yes, no = r.input(_values(3, 2, seed=4)), r.input(np.True_), r.input(np.False_)
    for name, p in (("yes", yes), ("no", no)):

        def either(array: Any, one: Any, two: Any, p: Any = p) -> Any:
            flow = tf.compat.v1.cond(p, lambda: one(array).flow, lambda: two(array).flow)
            return _with_flow(array, flow)

        first = either(_array(3, element_shape=[2]), lambda a: a.write(1, x[0]), lambda a: a)
        r.case(f"cond_first_{name}", first.stack())
        both = either(
            _array(3, element_shape=[2]), lambda a: a.write(1, x[0]), lambda a: a.write(2, x[1])
        )
        r.case(f"cond_both_{name}", both.stack())
        open_ended = _array(0, dynamic_size=True, element_shape=[2])
        size = either(open_ended, lambda a: a.write(1, x[0]), lambda a: a)
        r.case(f"cond_size_{name}", size.size())


def _with_flow(array: Any, flow: Any) -> Any:
    build_ = import_module("tensorflow.python.ops.tensor_array_ops").build_ta_with_new_flow
    return build_(array, flow)


def _ordered(r: Any) -> None:
    """Uses of an array through the flow from before a write that control edges put before them."""
    x = r.input(_values(3, 2, seed=5))
    old = _array(3, element_shape=[2]).write(0, x[0])
    new = old.write(1, x[1])
    with tf.control_dependencies([new.flow]):
        r.case("ordered_read", old.read(1) + new.read(0))
        r.case("ordered_stack", old.gather([0, 1]))
        last = old.write(2, x[2])
    r.case("ordered_write", last.stack())
