"""
Train the recurrent network in TensorFlow 1's graph mode and write `digits_lstm.pb` and
`digits_lstm.npz`, TensorFlow's logits for the held-back images, into examples/digits.

Both files are in the repository; this program documents where they come from. It needs
TensorFlow, tf_keras and scikit-learn.
"""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # has the cells of TensorFlow 1
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from dataset import DIGITS, SEED, record, split

tf1 = tf.compat.v1

MODEL = DIGITS / "digits_lstm.pb"
ROWS = 8
PIXELS = 8
UNITS = 48
CLASSES = 10
EPOCHS = 120
BATCH = 64


def network(keep: float) -> tuple[tf.Tensor, tf.Tensor]:
    """
    Placeholder and logits: an LSTM reads an image row by row; what it says after each row is
    averaged, joined to its last state and classified. Dropout if `keep` is less than 1.
    """
    tf1.set_random_seed(SEED)
    images = tf1.placeholder(tf.float32, [None, ROWS, PIXELS], "image")
    cell = tf1.nn.rnn_cell.LSTMCell(UNITS)
    steps, last = tf1.nn.dynamic_rnn(cell, images, dtype=tf.float32)
    features = tf.concat([tf.reduce_mean(steps, axis=1), last.h], axis=1)
    if keep < 1:
        features = tf1.nn.dropout(features, keep_prob=keep)
    weights = tf1.get_variable("classifier/weights", [2 * UNITS, CLASSES])
    bias = tf1.get_variable("classifier/bias", [CLASSES], initializer=tf1.zeros_initializer())
    return images, tf1.nn.xw_plus_b(features, weights, bias, name="logits")


def train(images: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """The values of the variables by name, after training."""
    steps_an_epoch = -(-len(images) // BATCH)
    with tf.Graph().as_default(), tf1.Session() as session:
        given, logits = network(keep=0.7)
        truth = tf1.placeholder(tf.int64, [None])
        step = tf1.train.create_global_step()
        rate = tf1.train.cosine_decay(5e-3, step, EPOCHS * steps_an_epoch)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=truth, logits=logits)
        loss = tf.reduce_mean(losses)
        variables = tf1.trainable_variables()
        update = tf1.train.AdamOptimizer(rate).minimize(loss, global_step=step)
        session.run(tf1.global_variables_initializer())
        order = np.random.default_rng(SEED)
        for epoch in range(EPOCHS):
            total = 0.0
            for picked in np.array_split(order.permutation(len(images)), steps_an_epoch):
                feed = {given: images[picked], truth: labels[picked]}
                total += session.run([loss, update], feed)[0] * len(picked)
            print(f"epoch {epoch + 1:3}  loss {total / len(images):.4f}")
        return dict(zip((v.op.name for v in variables), session.run(variables), strict=True))


def freeze(trained: dict[str, np.ndarray], held_back: np.ndarray) -> np.ndarray:
    """Write the network without what trained it; the logits that the file's graph computes."""
    with tf.Graph().as_default(), tf1.Session() as session:
        network(keep=1)
        for variable in tf1.global_variables():
            variable.load(trained[variable.op.name], session)
        frozen = tf1.graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(), ["logits"]
        )
    MODEL.write_bytes(frozen.SerializeToString(deterministic=True))
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.import_graph_def(frozen, name="")
        return session.run("logits:0", {"image:0": held_back})


def main() -> None:
    tf1.disable_v2_behavior()
    tf1.disable_control_flow_v2()  # Enter, Merge, Switch, Exit instead of While
    tf1.disable_resource_variables()
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    data = split()
    trained = train(data.train_images[:, 0], data.train_labels)
    logits = freeze(trained, data.held_images[:, 0])
    record(MODEL, {"logits:0": logits}, data.held_labels)


if __name__ == "__main__":
    main()
