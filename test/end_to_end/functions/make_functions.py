"""
Record what TensorFlow computes of graphs with functions: run by a Python that has TensorFlow.

    python make_functions.py [NAME...]

Writes for each graph `NAME.pb` and `NAME.npz`, which holds the inputs `in/SAMPLE/TENSOR` and the
results `out/SAMPLE/TENSOR`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

tf: Any = import_module("tensorflow")
ops: Any = tf.raw_ops
v1: Any = tf.compat.v1

FOLDER = os.path.dirname(os.path.abspath(__file__))

Feeds = Mapping[str, Any]
GRAPHS: dict[str, Callable[[], Sequence[Feeds]]] = {}

FLOAT = tf.TensorSpec(None, tf.float32)
INT = tf.TensorSpec(None, tf.int32)


def graph(make: Callable[[], Sequence[Feeds]]) -> Callable[[], Sequence[Feeds]]:
    """`make` builds a graph with results `y0`, `y1`, ... and returns samples of its inputs."""
    GRAPHS[make.__name__] = make
    return make


def function(*specs: Any) -> Callable[[Callable[..., Any]], Any]:
    """A function of the library, of arguments of unknown shapes."""

    def made(python: Callable[..., Any]) -> Any:
        concrete = tf.function(python, autograph=False).get_concrete_function(*specs)
        concrete.add_to_graph(v1.get_default_graph())
        return concrete

    return made


def feed(name: str, dtype: Any, shape: Sequence[int | None] | None = ()) -> Any:
    """An input."""
    return v1.placeholder(dtype, shape, name=name)


def result(*values: Any) -> None:
    """The results."""
    for number, value in enumerate(values):
        tf.identity(value, name=f"y{number}")


def call(f: Any, *args: Any, stateful: bool = False) -> Any:
    """A call of a function with one result."""
    kind = ops.StatefulPartitionedCall if stateful else ops.PartitionedCall
    return kind(args=list(args), Tout=[tf.float32], f=f)[0]


def scalars(**columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Samples of scalars, by columns."""
    count = len(next(iter(columns.values())))
    return [{name: np.array(values[k]) for name, values in columns.items()} for k in range(count)]


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


# Calls


@graph
def calls() -> Sequence[Feeds]:
    """Functions that call functions, one of them several times; a result that nobody needs."""

    @function(FLOAT, FLOAT)
    def inner(x: Any, y: Any) -> Any:
        return tf.tanh(x) * y, x - y

    @function(FLOAT)
    def outer(x: Any) -> Any:
        first, second = ops.PartitionedCall(args=[x, x + 1.0], Tout=[tf.float32] * 2, f=inner)
        third, _ = ops.StatefulPartitionedCall(args=[first, x], Tout=[tf.float32] * 2, f=inner)
        return first + second * third

    x = feed("x", tf.float32, [None, 3])
    y = call(outer, x)
    _, other = ops.PartitionedCall(args=[y, x], Tout=[tf.float32] * 2, f=inner)
    result(call(outer, y, stateful=True), other)
    values = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    return [{"x": values}, {"x": values[:1]}]


@graph
def by_name() -> Sequence[Feeds]:
    """Functions whose names are operators, in one another and with a condition of version 1."""
    defun = import_module("tensorflow.python.framework.function").Defun

    @defun(tf.float32, func_name="Halve")
    def halve(x: Any) -> Any:
        return x * 0.5

    @defun(tf.float32, tf.float32, func_name="Choose")
    def choose(x: Any, y: Any) -> Any:
        bigger = v1.cond(x > y, lambda: halve(x) + 1.0, lambda: tf.exp(y))
        return bigger, halve(halve(y))

    x, y = feed("x", tf.float32), feed("y", tf.float32)
    a, b = choose(x, y)
    result(a * b, halve(a))
    return scalars(x=floats(3, -1, 0.5), y=floats(1, 2, 0.5))


@graph
def cyclic_in_functions() -> Sequence[Feeds]:
    """Loops of version 1 inside functions that are called twice, in a loop and outside of it."""
    defun = import_module("tensorflow.python.framework.function").Defun

    def below(limit: Any) -> Callable[[Any, Any], Any]:
        def going(i: Any, _: Any) -> Any:
            return i < limit

        return going

    @defun(tf.float32, tf.int32, func_name="Power")
    def power(x: Any, n: Any) -> Any:
        x = tf.reshape(x, [])

        def inner(j: Any, z: Any) -> Any:
            return j + 1, z + 0.25 * x

        def body(i: Any, y: Any) -> Any:
            _, y = v1.while_loop(below(i), inner, [tf.constant(0), y])
            return i + 1, y * x

        return v1.while_loop(below(n), body, [tf.constant(0), x])[1]

    def add(k: Any, s: Any) -> Any:
        return k + 1, s + tf.reshape(power(x, k), [])

    x, n = feed("x", tf.float32), feed("n", tf.int32)
    _, summed = v1.while_loop(below(n), add, [tf.constant(0), tf.constant(0.0)])
    result(power(x, n), summed)
    return scalars(x=floats(1.5, -0.5, 2), n=ints(3, 0, 5))


@graph
def strict_calls() -> Sequence[Feeds]:
    """A call runs if all that it is given is alive, also what the result does not need."""
    defun = import_module("tensorflow.python.framework.function").Defun

    @defun(tf.float32, tf.float32, func_name="First")
    def first(x: Any, unused: Any) -> Any:
        del unused
        return x * 2.0

    @defun(func_name="Seven")
    def seven() -> Any:
        return tf.constant(7.0)

    x, p = feed("x", tf.float32), feed("p", tf.bool)
    no, yes = v1.raw_ops.Switch(data=x, pred=p)
    with tf.control_dependencies([tf.identity(no)]):
        other = seven()
    result(ops.Merge(inputs=[other, first(x, yes)]).output)
    return scalars(x=floats(1.5, 1.5), p=[True, False])


# If and Case


@graph
def conditions() -> Sequence[Feeds]:
    """Conditions that are no scalars of booleans; branches of other shapes."""

    @function(FLOAT, FLOAT)
    def yes(x: Any, y: Any) -> Any:
        return x + y

    @function(FLOAT, FLOAT)
    def no(x: Any, y: Any) -> Any:
        return tf.concat([x * y, x], 0)

    def choice(condition: Any, kind: Any = ops.StatelessIf) -> Any:
        return kind(
            cond=condition, input=[x, y], Tout=[tf.float32], then_branch=yes, else_branch=no
        )

    x, y = feed("x", tf.float32, [None]), feed("y", tf.float32, [None])
    p, n, f = feed("p", tf.bool), feed("n", tf.int32), feed("f", tf.float32)
    v, w = feed("v", tf.bool, [None]), feed("w", tf.float32, [2, None])
    result(
        choice(p)[0],
        choice(n, ops.If)[0],
        choice(f)[0],
        choice(v, ops.If)[0],
        choice(w)[0],
        choice(tf.logical_not(p))[0],
    )
    base = {"x": floats(1, -2, 3), "y": floats(0.5, 4, 2)}
    return [
        {
            **base,
            "p": np.array(p),
            "n": np.array(n, np.int32),
            "f": np.array(f, np.float32),
            "v": np.array(v, np.bool_),
            "w": np.zeros((2, w), np.float32),
        }
        for p, n, f, v, w in (
            (True, 2, 0.5, [False], 0),
            (False, 0, -0.0, [], 1),
            (True, -1, np.nan, [True, False], 3),
        )
    ]


@graph
def nested_branches() -> Sequence[Feeds]:
    """An If in both branches of another one, some of constants only, some that hand values on."""

    @function(FLOAT)
    def same(x: Any) -> Any:
        return x

    @function(FLOAT)
    def seven(x: Any) -> Any:
        del x
        return tf.constant(7.0)

    @function(FLOAT)
    def negative(x: Any) -> Any:
        return -x

    def branch(low: Any, high: Any, limit: float) -> Any:
        @function(FLOAT)
        def made(x: Any) -> Any:
            return ops.StatelessIf(
                cond=x > limit, input=[x], Tout=[tf.float32], then_branch=high, else_branch=low
            )[0]

        return made

    x = feed("x", tf.float32)
    either = ops.If(
        cond=x > 0.0,
        input=[x],
        Tout=[tf.float32],
        then_branch=branch(same, seven, 2.0),
        else_branch=branch(negative, branch(seven, same, -1.0), -2.0),
    )[0]
    result(either)
    return scalars(x=floats(1, 3, -0.5, -1.5, -4))


@graph
def cases() -> Sequence[Feeds]:
    """Case takes the last branch for what is out of range; in a loop, and with one branch."""

    @function(FLOAT, INT)
    def zero(x: Any, k: Any) -> Any:
        del k
        return x + 1.0

    @function(FLOAT, INT)
    def one(x: Any, k: Any) -> Any:
        return x * tf.cast(k, tf.float32)

    @function(FLOAT, INT)
    def two(x: Any, k: Any) -> Any:
        return ops.Case(
            branch_index=k - 2, input=[x, k], Tout=[tf.float32], branches=[one, zero, zero]
        )[0]

    @function(INT, FLOAT, INT)
    def going(i: Any, x: Any, n: Any) -> Any:
        del x
        return i < n

    @function(INT, FLOAT, INT)
    def body(i: Any, x: Any, n: Any) -> Any:
        step = ops.StatelessCase(
            branch_index=i, input=[x, i], Tout=[tf.float32], branches=[zero, one, two]
        )[0]
        return i + 1, step, n

    x, k = feed("x", tf.float32), feed("k", tf.int32)
    single = ops.Case(branch_index=k, input=[x, k], Tout=[tf.float32], branches=[one])[0]
    many = ops.StatelessCase(
        branch_index=k, input=[x, k], Tout=[tf.float32], branches=[zero, one, two]
    )[0]
    loop = ops.StatelessWhile(input=[tf.constant(-1), x, k], cond=going, body=body)[1]
    result(single, many, loop)
    return scalars(x=floats(1.5, 2, 3, -1, 0.5, 2), k=ints(0, 1, 2, 3, -1, 5))


# While


@graph
def loops() -> Sequence[Feeds]:
    """A loop in a loop in a branch in a function; variables that are not needed or that swap."""

    @function(INT, INT, FLOAT)
    def inner_going(j: Any, i: Any, x: Any) -> Any:
        del x
        return j < i

    @function(INT, INT, FLOAT)
    def inner_body(j: Any, i: Any, x: Any) -> Any:
        return j + 1, i, x + tf.cast(i * j, tf.float32)

    @function(INT, INT, FLOAT, FLOAT, FLOAT)
    def going(i: Any, n: Any, x: Any, y: Any, unused: Any) -> Any:
        del y, unused
        return tf.logical_and(i < n, tf.reduce_sum(x) < 1e6)

    @function(INT, INT, FLOAT, FLOAT, FLOAT)
    def body(i: Any, n: Any, x: Any, y: Any, unused: Any) -> Any:
        summed = ops.StatelessWhile(
            input=[tf.constant(0), i, x], cond=inner_going, body=inner_body
        )[2]
        return i + 1, n, y + 1.0, summed, unused * 2.0

    @function(FLOAT, INT)
    def run(x: Any, n: Any) -> Any:
        return ops.While(input=[tf.constant(0), n, x, x * 2.0, x], cond=going, body=body)[2:4]

    @function(FLOAT, INT)
    def skip(x: Any, n: Any) -> Any:
        return x, x - tf.cast(n, tf.float32)

    x, n = feed("x", tf.float32, [2]), feed("n", tf.int32)
    first, second = ops.If(
        cond=n > 1, input=[x, n], Tout=[tf.float32] * 2, then_branch=run, else_branch=skip
    )
    result(first, second)
    return [{"x": floats(1, -2), "n": np.array(n, np.int32)} for n in (4, 7, 0)]


@graph
def growing() -> Sequence[Feeds]:
    """A variable that grows, one that shrinks, and a condition that is no boolean."""

    @function(FLOAT, FLOAT)
    def rest(x: Any, y: Any) -> Any:
        del x
        return y[1:]

    @function(FLOAT, FLOAT)
    def body(x: Any, y: Any) -> Any:
        return tf.concat([x, y[:1] * 2.0], 0), y[1:]

    @function(INT, FLOAT)
    def left(i: Any, x: Any) -> Any:
        del x
        return i

    @function(INT, FLOAT)
    def doubled(i: Any, x: Any) -> Any:
        return i - 1, tf.tile(x, [2])

    x, y, n = feed("x", tf.float32, [None]), feed("y", tf.float32, [None]), feed("n", tf.int32)
    longer, shorter = ops.StatelessWhile(input=[x, y], cond=rest, body=body)
    tiled = ops.While(input=[n, x], cond=left, body=doubled)[1]
    result(longer, shorter, tiled)
    return [
        {"x": floats(*range(a)), "y": floats(*range(b)), "n": np.array(c, np.int32)}
        for a, b, c in ((2, 4, 3), (1, 1, 0), (3, 0, 1))
    ]


@graph
def arrays_by_handle() -> Sequence[Feeds]:
    """A TensorArray whose handle is a variable of the loop."""
    r = tf.TensorSpec(None, tf.resource)

    @function(INT, INT, r, FLOAT, FLOAT)
    def going(i: Any, n: Any, handle: Any, flow: Any, x: Any) -> Any:
        del handle, flow, x
        return i < n

    @function(INT, INT, r, FLOAT, FLOAT)
    def body(i: Any, n: Any, handle: Any, flow: Any, x: Any) -> Any:
        value = x * tf.cast(i + 1, tf.float32)
        flow = ops.TensorArrayWriteV3(handle=handle, index=i, value=value, flow_in=flow)
        return i + 1, n, handle, flow, x + 1.0

    x, n = feed("x", tf.float32, [2]), feed("n", tf.int32)
    handle, flow = ops.TensorArrayV3(size=n, dtype=tf.float32, element_shape=[2])
    flow = ops.While(input=[tf.constant(0), n, handle, flow, x], cond=going, body=body)[3]
    result(
        ops.TensorArrayGatherV3(
            handle=handle, indices=tf.range(n), flow_in=flow, dtype=tf.float32, element_shape=[2]
        )
    )
    return [{"x": floats(1, -2), "n": np.array(n, np.int32)} for n in (4, 1)]


PLACEHOLDERS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "a" op: "Twice" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Twice" input: "n" attr { key: "T" value { type: DT_INT32 } } }
node { name: "c" op: "Apply" input: "a" input: "x"
  attr { key: "U" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 2 } } }
node { name: "y0" op: "Identity" input: "c:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y1" op: "Identity" input: "b" attr { key: "T" value { type: DT_INT32 } } }
node { name: "y2" op: "Identity" input: "c:2" attr { key: "T" value { type: DT_FLOAT } } }
library {
  function {
    signature {
      name: "Twice"
      input_arg { name: "x" type_attr: "T" }
      output_arg { name: "y" type_attr: "T" }
      attr { name: "T" type: "type" }
    }
    node_def {
      name: "sum" op: "AddV2" input: "x" input: "x" attr { key: "T" value { placeholder: "T" } }
    }
    ret { key: "y" value: "sum:z:0" }
  }
  function {
    signature {
      name: "Apply"
      input_arg { name: "xs" type_attr: "U" number_attr: "N" }
      output_arg { name: "sizes" type: DT_INT32 }
      output_arg { name: "ys" type_attr: "U" number_attr: "N" }
      attr { name: "U" type: "type" }
      attr { name: "N" type: "int" }
    }
    node_def {
      name: "size" op: "Size" input: "xs:1" input: "^xs" input: "^first"
      attr { key: "T" value { placeholder: "U" } }
    }
    node_def {
      name: "all" op: "IdentityN" input: "first:y" input: "xs:1"
      attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } }
    }
    node_def {
      name: "first" op: "Twice" input: "xs:0" attr { key: "T" value { placeholder: "U" } }
    }
    ret { key: "sizes" value: "size:output:0" }
    ret { key: "ys" value: "all:output" }
  }
}
"""
"""Also inputs that stand for several values, and uses before definitions."""


@graph
def frozen() -> Sequence[Feeds]:
    """A model of TensorFlow 2 with loops and branches of Python, frozen with its functions."""
    freeze = import_module("tensorflow.python.framework.convert_to_constants")
    with import_module("tensorflow.python.eager.context").eager_mode():
        weights = tf.Variable(np.linspace(-1, 1, 9).reshape(3, 3).astype(np.float32))

        @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
        def model(x: Any, n: Any) -> Any:
            count = tf.constant(0)
            while count < n:
                if tf.reduce_sum(x) > 1.0:
                    x = tf.tanh(x @ weights)
                else:
                    x = x + 0.5
                    if tf.reduce_max(x) > 2.0:
                        x = x / 2.0
                count += 1
            tf.debugging.assert_greater_equal(count, 0)
            return {"x": x, "count": count}

        constant = freeze.convert_variables_to_constants_v2(
            model.get_concrete_function(), lower_control_flow=False
        )
        proto = constant.graph.as_graph_def()
        names = {key: tensor.name for key, tensor in zip(("count", "x"), constant.outputs)}
        inputs = [tensor.name.partition(":")[0] for tensor in constant.inputs]
    tf.import_graph_def(proto, name="")
    default = v1.get_default_graph()
    result(*(default.get_tensor_by_name(name) for name in names.values()))
    values = np.linspace(-1, 1.5, 6, dtype=np.float32).reshape(2, 3)
    return [{inputs[0]: values, inputs[1]: np.array(n, np.int32)} for n in (5, 0, 1)]


MAIN = """
signature {
  name: "Main"
  input_arg { name: "x" type: DT_FLOAT }
  input_arg { name: "n" type: DT_INT32 }
  output_arg { name: "y0" type: DT_FLOAT }
  output_arg { name: "y1" type: DT_INT32 }
  output_arg { name: "y2" type: DT_FLOAT }
}
node_def { name: "a" op: "Twice" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node_def { name: "b" op: "Twice" input: "n" attr { key: "T" value { type: DT_INT32 } } }
node_def { name: "c" op: "Apply" input: "a:y:0" input: "x"
  attr { key: "U" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 2 } } }
ret { key: "y0" value: "c:ys:0" }
ret { key: "y1" value: "b:y:0" }
ret { key: "y2" value: "c:ys:1" }
"""
"""The graph of PLACEHOLDERS as a function, for Python cannot import that graph."""


def record_placeholders() -> None:
    """Functions of any type, and of any number of arguments, by values of attributes."""
    parse = import_module("google.protobuf.text_format").Parse
    context = import_module("tensorflow.python.eager.context")
    execute = import_module("tensorflow.python.eager.execute").execute
    messages = import_module("tensorflow.core.framework.function_pb2")
    proto = parse(PLACEHOLDERS, v1.GraphDef())
    samples = [
        {"x": floats(1, -2, 3), "n": ints(4, 5)},
        {"x": floats(2), "n": ints()},
    ]
    results: list[list[Any]] = []
    with context.eager_mode():
        for definition in (*proto.library.function, parse(MAIN, messages.FunctionDef())):
            context.context().add_function_def(definition)
        for feeds in samples:
            inputs = [tf.constant(feeds[name]) for name in ("x", "n")]
            found = execute(b"Main", 3, inputs, attrs=None, ctx=context.context())
            results.append([value.numpy() for value in found])
    write("placeholders", proto, samples, results)


# Recording


def record(name: str) -> None:
    """Build, run and write one graph."""
    with tf.Graph().as_default() as built:
        samples = GRAPHS[name]()
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        names = [op.name for op in built.get_operations()]
        fetches = [f"{name}:0" for name in names if name[0] == "y" and name[1:].isdigit()]
        with v1.Session(graph=built, config=config) as session:
            results = [
                session.run(fetches, {f"{key}:0": value for key, value in feeds.items()})
                for feeds in samples
            ]
        write(name, built.as_graph_def(), samples, results)


def write(
    name: str, proto: Any, samples: Sequence[Feeds], results: Sequence[Sequence[Any]]
) -> None:
    """A graph, what it is given, and the results `y0`, `y1`, ..."""
    arrays: dict[str, Any] = {}
    for number, (feeds, found) in enumerate(zip(samples, results, strict=True)):
        arrays |= {f"in/{number}/{key}:0": value for key, value in feeds.items()}
        arrays |= {f"out/{number}/y{k}:0": value for k, value in enumerate(found)}
    with open(os.path.join(FOLDER, f"{name}.pb"), "wb") as file:
        file.write(proto.SerializeToString(deterministic=True))
    np.savez_compressed(os.path.join(FOLDER, f"{name}.npz"), **arrays)


def main() -> int:
    """Record the graphs that are named, or all."""
    v1.disable_eager_execution()
    v1.disable_control_flow_v2()  # but for functions of TensorFlow 2
    for name in sys.argv[1:] or [*GRAPHS, "placeholders"]:
        if name == "placeholders":
            record_placeholders()
        else:
            record(name)
        sys.stdout.write(f"{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
