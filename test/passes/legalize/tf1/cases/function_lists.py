"""TensorLists that While, If and Case take into functions: TensorArrays of TensorFlow 2."""

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


def _while(limit: Any, body: Any, *values: Any) -> Sequence[Any]:
    """`body` of the number of an iteration and the values, `limit` times."""

    def step(i: Any, *current: Any) -> Any:
        return (i + 1, *body(i, *current))

    return tf.while_loop(lambda i, *_: i < limit, step, (tf.constant(0), *values))[1:]


def build(r: Any) -> None:
    tf.compat.v1.enable_control_flow_v2()
    x, n = r.input(_values(4, 2)), r.input(np.int32(4))
    rows = tf.TensorArray(tf.float32, n).unstack(x)

    def empty(size: Any = 0, **options: Any) -> Any:
        return tf.TensorArray(tf.float32, size, infer_shape=False, **options)

    (back,) = _while(n, lambda i, a: [a.write(n - 1 - i, rows.read(i) * 2)], empty(n))
    r.case("reversed", back.stack())

    def fibonacci(i: Any, a: Any) -> Any:
        return [a.write(i + 2, a.read(i) + a.read(i + 1))]

    start = empty(n + 2, clear_after_read=False).write(0, x[0]).write(1, x[1])
    (chain,) = _while(n, fibonacci, start)
    r.case("read_and_written", chain.stack())
    grown = _while(n, lambda i, a: [a.write(i, x[i])], empty(dynamic_size=True, element_shape=[2]))
    r.case("grown", grown[0].stack())
    uneven = _while(n, lambda i, a: [a.write(i, x[: i + 1])], empty(n, element_shape=[None, 2]))
    r.case("uneven", uneven[0].concat())

    def nested(i: Any, a: Any) -> Any:
        (inner,) = _while(n, lambda j, b: [b.write(j, x[j] * x[i])], empty(n))
        return [a.write(i, tf.reduce_sum(inner.stack(), 0))]

    r.case("nested", _while(n, nested, empty(n))[0].stack())
    for name, p in (("yes", r.input(np.True_)), ("no", r.input(np.False_))):
        known = empty(3, element_shape=[2])
        first = tf.cond(p, lambda known=known: known.write(1, x[0]), lambda known=known: known)
        r.case(f"first_{name}", first.stack())
        r.case(f"still_{name}", known.stack())

        def some(i: Any, a: Any, p: Any = p) -> Any:
            even = tf.math.logical_xor(tf.equal(i % 2, 0), p)
            return [tf.cond(even, lambda: a.write(i, x[i]), lambda: a)]

        r.case(f"some_{name}", _while(n, some, empty(4, element_shape=[2]))[0].stack())

    def pick(k: int) -> Any:
        return lambda: rows.write(k, x[0] * 10).stack()

    for k in range(3):
        r.case(f"case_{k}", tf.switch_case(r.input(np.int32(k)), [pick(j) for j in range(3)]))

    @tf.function
    def doubled(a: Any) -> Any:
        array = tf.TensorArray(tf.float32, n)
        for i in tf.range(n):
            array = array.write(i, a[i] * 2)
        return array.stack()

    r.case("called", doubled(x) + doubled(-x) * 3)
