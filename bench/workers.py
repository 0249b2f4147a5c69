"""What bench.batches lets processes do whose memory it asks for: it imports no more than they."""

from __future__ import annotations

import os
import time
from functools import cache

import numpy as np


def bare(folder: str, number: int) -> dict[str, float]:
    """The memory of a process that has numpy, while others do the same."""
    del folder, number
    _kept().append(np.ones((64, 64)) @ np.ones((64, 64)))
    time.sleep(2)
    return sizes()


def worker(folder: str, number: int) -> dict[str, float]:
    """The memory of a process that has computed rows of `folder`, while others do the same."""
    from lowerdeck.batching import batch
    from lowerdeck.compiler import load

    model = load(os.path.join(folder, "model"))
    batch(model, os.path.join(folder, "x.npy"), os.path.join(folder, f"{os.getpid()}.{number}"))
    _kept().append(model)
    time.sleep(4)
    return sizes()


@cache
def _kept() -> list[object]:
    return []


def sizes() -> dict[str, float]:
    """
    The proportional set size of this process in MB, and what of it are files of weights: a page
    that n processes map counts 1/n in each (proc(5), smaps).
    """
    found, name = {"all": 0.0, "weights": 0.0}, ""
    with open("/proc/self/smaps", encoding="utf-8") as file:
        for line in file:
            first, *others = line.split()
            if first == "Pss:":
                size = int(others[0]) / 1024
                found["all"] += size
                found["weights"] += size if name.endswith(".weights") else 0
            elif not first.endswith(":"):
                name = others[-1]
    return found
