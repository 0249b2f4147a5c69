"""Cells and blocks of LSTMs: gates, peepholes, clipping, fewer steps than there is input."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from make_expected import Recorder

tf: Any = import_module("tensorflow")
raw: Any = tf.raw_ops

RESULTS = ("i", "cs", "f", "o", "ci", "co", "h")


def build(record: Recorder) -> None:
    random = np.random.default_rng(8)

    def reals(*shape: int | None) -> Any:
        """Quarters; what is None is unknown, and two in the record."""
        sizes = [2 if size is None else size for size in shape]
        return record.input((random.integers(-4, 5, sizes) / 4).astype(np.float32), shape)

    x = record.input((random.integers(-4, 5, (4, 2, 3)) / 4).astype(np.float32), [None, None, 3])
    cell, output = reals(None, 5), reals(None, 5)
    parameters = {
        "cs_prev": cell,
        "h_prev": output,
        "w": reals(8, 20),
        "b": reals(20),
        "wci": reals(5),
        "wcf": reals(5),
        "wco": reals(5),
    }
    for peephole in (False, True):
        for clip in (0.0, 0.4):
            suffix = f"{peephole:d}_{clip:.0%}".rstrip("%")
            own = {**parameters, "use_peephole": peephole, "cell_clip": clip}
            found = raw.LSTMBlockCell(x=x[0], forget_bias=0.7, **own)
            _record(record, f"LSTMBlockCell_{suffix}", found)
            for length in (4, 3):
                steps = tf.constant(length, tf.int64)
                found = raw.BlockLSTM(seq_len_max=steps, x=x, forget_bias=0.7, **own)
                _record(record, f"BlockLSTM_{suffix}_{length}", found)
                found = raw.BlockLSTMV2(seq_len_max=steps, x=x, **own)
                _record(record, f"BlockLSTMV2_{suffix}_{length}", found)
    # As many steps as there is input.
    steps = tf.cast(raw.Shape(input=x)[0], tf.int64)
    found = raw.BlockLSTM(seq_len_max=steps, x=x, **parameters)
    record.case("BlockLSTM_all", found.h)
    given = record.input(np.array(2, np.int64))
    record.case("BlockLSTM_data", raw.BlockLSTM(seq_len_max=given, x=x, **parameters).h)
    found = raw.GRUBlockCell(
        x=x[1], h_prev=output, w_ru=reals(8, 10), w_c=reals(8, 5), b_ru=reals(10), b_c=reals(5)
    )
    for name in ("r", "u", "c", "h"):
        record.case(f"GRUBlockCell_{name}", getattr(found, name))


def _record(record: Recorder, name: str, found: Any) -> None:
    for result in RESULTS:
        # TensorFlow sets nothing else of the steps that are left out.
        if name.endswith("_3") and result not in ("cs", "h"):
            continue
        record.case(f"{name}_{result}", getattr(found, result))
