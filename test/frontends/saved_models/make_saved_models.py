"""
Record models as TensorFlow saves them, and what it computes: run by a Python that has TensorFlow.

    python make_saved_models.py [NAME ...]

Writes a folder for each model: a SavedModel or a checkpoint with its graph, and `samples.npz` with
arrays named `in:NAME` and `out:NAME`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

tf: Any = import_module("tensorflow")
v1: Any = tf.compat.v1
saved_model_pb2: Any = import_module("tensorflow.core.protobuf.saved_model_pb2")
text_format: Any = import_module("google.protobuf.text_format")

FOLDER = os.path.dirname(os.path.abspath(__file__))

Arrays = Mapping[str, NDArray[Any]]

MODELS: dict[str, Callable[[str], None]] = {}


def model(function: Callable[[str], None]) -> Callable[[str], None]:
    """Register the model of a function that is called with the folder to write to."""
    MODELS[function.__name__] = function
    return function


def session() -> Any:
    """A session that computes what the graph says, and has two devices to put variables on."""
    config = v1.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return v1.Session(config=config)


def values(*shape: int) -> NDArray[np.float32]:
    """Numbers between -1 and 1, the same in every run."""
    count = int(np.prod(shape))
    return np.sin(np.arange(1, count + 1) * 0.7).astype(np.float32).reshape(shape)


def variable(name: str, value: NDArray[Any], *, resource: bool, **options: Any) -> Any:
    def initial(shape: Any, dtype: Any, partition_info: Any = None) -> Any:
        start = [0] * value.ndim if partition_info is None else partition_info.var_offset
        part = tuple(slice(k, k + n) for k, n in zip(start, shape, strict=True))
        return tf.constant(value[part], dtype)

    return v1.get_variable(
        name,
        value.shape,
        tf.as_dtype(value.dtype),
        initializer=initial,
        use_resource=resource,
        **options,
    )


def write_samples(folder: str, inputs: Arrays, outputs: Arrays) -> None:
    named: dict[str, Any] = {f"in:{name}": array for name, array in inputs.items()}
    named |= {f"out:{name}": np.asarray(array) for name, array in outputs.items()}
    np.savez_compressed(os.path.join(folder, "samples.npz"), **named)


def signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    return v1.saved_model.signature_def_utils.build_signature_def(
        {name: v1.saved_model.utils.build_tensor_info(t) for name, t in inputs.items()},
        {name: v1.saved_model.utils.build_tensor_info(t) for name, t in outputs.items()},
        "tensorflow/serving/predict",
    )


def save(builder: Any, path: str, *, as_text: bool = False) -> None:
    """Without what TensorFlow only adds for itself, and is most of a small file."""
    builder.save()
    path = os.path.join(path, "saved_model.pb")
    with open(path, "rb") as file:
        saved = saved_model_pb2.SavedModel.FromString(file.read())
    for meta_graph in saved.meta_graphs:
        meta_graph.meta_info_def.ClearField("stripped_op_list")
        for name in ("cond_context", "while_context"):
            meta_graph.collection_def.pop(name, None)
        for node in meta_graph.graph_def.node:
            for name in ("_output_shapes", "_class", "_has_manual_control_dependencies"):
                node.attr.pop(name, None)
    with open(path, "wb") as file:
        file.write(saved.SerializeToString(deterministic=True))
    if as_text:
        with open(f"{path}txt", "w", encoding="utf-8") as file:
            file.write(text_format.MessageToString(saved))
        os.remove(path)


@model
def trained(folder: str) -> None:
    """
    Variables of the first kind, of which the averages over training are saved under other names.

    Two graphs with different tags and two signatures; training and summaries are left in the graph.
    """
    builder = v1.saved_model.Builder(os.path.join(folder, "model"))
    images = v1.placeholder(tf.float32, [None, 4], name="images")
    labels = v1.placeholder(tf.float32, [None, 2], name="labels")
    scale = v1.placeholder_with_default(np.float32(2), [], name="scale")
    weights = variable("dense/weights", values(4, 3), resource=False)
    bias = variable("dense/bias", values(3), resource=False)
    head = variable("head", values(3, 2), resource=False)
    hidden = tf.nn.relu(images @ weights + bias)
    scores = tf.identity((hidden @ head) * scale, name="scores")
    loss = tf.reduce_mean((scores - labels) ** 2)
    v1.summary.scalar("loss", loss)
    average = tf.train.ExponentialMovingAverage(0.5)
    step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([step]):
        train = average.apply([weights, bias, head])
    with session() as running:
        running.run(v1.global_variables_initializer())
        for _ in range(3):
            running.run(train, {images: values(5, 4), labels: values(5, 2)})
        averaged = {average.average_name(v): v for v in (weights, bias, head)}
        builder.add_meta_graph_and_variables(
            running,
            [v1.saved_model.tag_constants.TRAINING],
            saver=v1.train.Saver(averaged),
        )
        builder.add_meta_graph(
            [v1.saved_model.tag_constants.SERVING],
            {
                "serving_default": signature({"pixels": images}, {"scores": scores}),
                "features": signature({"pixels": images, "scale": scale}, {"hidden": hidden}),
                "from_hidden": signature({"hidden": hidden}, {"scores": scores}),
            },
            saver=v1.train.Saver(averaged),
        )
        save(builder, os.path.join(folder, "model"))
        v1.train.Saver(averaged).restore(
            running, os.path.join(folder, "model", "variables", "variables")
        )
        pixels = values(2, 4)
        found, middle = running.run([scores, hidden], {images: pixels})
    write_samples(folder, {"pixels": pixels}, {"scores": found, "hidden": middle})


@model
def resources(folder: str) -> None:
    """
    Variables of the second kind: read within a loop and within its branches, gathered from, and
    saved in slices. The SavedModel is text.
    """
    builder = v1.saved_model.Builder(os.path.join(folder, "model"))
    ids = v1.placeholder(tf.int32, [None], name="ids")
    table = variable("table", values(6, 4), resource=True)
    pieces = variable(
        "pieces",
        values(10, 3),
        resource=True,
        partitioner=v1.fixed_size_partitioner(3),
    )
    mix = variable("mix", values(4, 4), resource=True)
    half = variable("half", values(4).astype(np.float16), resource=True)
    counts = variable("counts", np.array([3], np.int32), resource=True, trainable=False)

    def body(i: Any, x: Any) -> tuple[Any, Any]:
        x = tf.cond(
            tf.equal(i % 2, 0),
            lambda: tf.tanh(x @ mix.read_value()),
            lambda: x + tf.cast(half.read_value(), tf.float32),
        )
        return i + 1, x

    def again(i: Any, _: Any) -> Any:
        return i < counts.read_value()[0]

    rows = tf.nn.embedding_lookup(table, ids)
    _, looped = tf.while_loop(again, body, [0, rows])
    parts = v1.nn.embedding_lookup(pieces, ids, partition_strategy="div")
    whole = tf.reduce_sum(tf.convert_to_tensor(pieces), 0)
    outputs = {"looped": looped, "parts": parts, "whole": whole}
    given = np.array([0, 5, 3], np.int32)
    with session() as running:
        running.run(v1.global_variables_initializer())
        builder.add_meta_graph_and_variables(
            running,
            [v1.saved_model.tag_constants.SERVING],
            {"serving_default": signature({"ids": ids}, outputs)},
        )
        save(builder, os.path.join(folder, "model"), as_text=True)
        found = running.run(outputs, {ids: given})
    write_samples(folder, {"ids": given}, found)


@model
def sharded(folder: str) -> None:
    """A checkpoint in two files, with its graph beside it."""
    x = v1.placeholder(tf.float32, [2, 3], name="x")
    with tf.device("/cpu:0"):
        first = variable("first", values(3, 3), resource=True)
    with tf.device("/cpu:1"):
        second = variable("second", values(3, 20), resource=False)
    # Neither is needed for `y`: one is in no checkpoint, and one changes in each run.
    local = v1.get_variable(
        "local", initializer=np.float32(1), collections=[v1.GraphKeys.LOCAL_VARIABLES]
    )
    steps = variable("steps", np.array(0, np.int32), resource=True, trainable=False)
    v1.assign_add(steps, 1, name="counted")
    tf.add(x, local, name="shifted")
    y = tf.nn.softmax(x @ first @ second, name="y")
    with session() as running:
        running.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        v1.train.Saver(sharded=True).save(running, os.path.join(folder, "model.ckpt"))
        os.remove(os.path.join(folder, "checkpoint"))
        given = values(2, 3)
        found = running.run(y, {x: given})
    write_samples(folder, {"x:0": given}, {"y:0": found})


@model
def lookup(folder: str) -> None:
    """A vocabulary: strings become numbers in a table that an operation fills at the start."""
    builder = v1.saved_model.Builder(os.path.join(folder, "model"))
    words = v1.placeholder(tf.string, [None], name="words")
    entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    numbers = tf.lookup.StaticHashTable(entries, -1).lookup(words)
    table = variable("table", values(2, 3), resource=True)
    rows = tf.gather(table, numbers)
    with session() as running:
        running.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder.add_meta_graph_and_variables(
            running,
            [v1.saved_model.tag_constants.SERVING],
            {"serving_default": signature({"words": words}, {"rows": rows})},
            main_op=v1.tables_initializer(),
        )
        save(builder, os.path.join(folder, "model"))


@model
def examples(folder: str) -> None:
    """Serialized examples are parsed in the graph: what comes after that is the model."""
    builder = v1.saved_model.Builder(os.path.join(folder, "model"))
    serialized = v1.placeholder(tf.string, [None], name="serialized")
    parsed = v1.parse_example(
        serialized,
        {
            "a": v1.FixedLenFeature([2], tf.float32),
            "b": v1.FixedLenFeature([2], tf.float32, default_value=[0.0, 1.0]),
        },
    )
    gain = variable("gain", values(2), resource=True)
    y = parsed["a"] * gain - parsed["b"]
    with session() as running:
        running.run(v1.global_variables_initializer())
        builder.add_meta_graph_and_variables(
            running,
            [v1.saved_model.tag_constants.SERVING],
            {"serving_default": signature({"examples": serialized}, {"y": y})},
        )
        save(builder, os.path.join(folder, "model"))
        a, b = values(1, 2), values(1, 2) + np.float32(1)
        found = running.run(y, {parsed["a"]: a, parsed["b"]: b})
    inputs = {parsed["a"].name: a, parsed["b"].name: b}
    write_samples(folder, inputs, {"y": found})


@model
def functions(folder: str) -> None:
    """A SavedModel of TensorFlow 2: the signature calls a function, and so does restoring."""

    class Dense(tf.Module):
        def __init__(self) -> None:
            self.kernel = tf.Variable(values(3, 2), name="kernel")
            self.bias = tf.Variable(values(2), name="bias")

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": tf.nn.relu(x @ self.kernel + self.bias)}

    dense = Dense()
    given = values(2, 3)
    with tf.init_scope():
        tf.saved_model.save(dense, os.path.join(folder, "model"), dense.__call__)
        found = dense(tf.constant(given))["y"].numpy()
    write_samples(folder, {"x": given}, {"y": found})


def main() -> None:
    for name in sys.argv[1:] or MODELS:
        folder = os.path.join(FOLDER, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        if name == "functions":
            MODELS[name](folder)
            continue
        with tf.Graph().as_default():
            v1.disable_control_flow_v2()
            MODELS[name](folder)


if __name__ == "__main__":
    main()
