"""
Trees of classes, in files beside a cfg: each line has the name of a class and the number of its
parent, -1 for none (`read_tree` of `src/tree.c`).
"""

from __future__ import annotations

import os

from lowerdeck.frontends.errors import FrontendError

_MOST_BYTES = 1 << 26


def find_tree(cfg: str, name: str) -> str | None:
    """
    The file that a key names: DarkNet looks for it from where it runs, which is often above the
    folder of the cfg.
    """
    folder = os.path.dirname(cfg)
    places = (folder, os.path.join(folder, os.pardir))
    tried = [os.path.join(place, name) for place in places]
    tried.append(os.path.join(folder, os.path.basename(name)))
    return next((os.path.normpath(path) for path in tried if os.path.isfile(path)), None)


def read_tree(path: str) -> list[int]:
    """The parent of each class, which comes before it, or -1; FrontendError if it is no tree."""
    if os.path.getsize(path) > _MOST_BYTES:
        raise FrontendError.of_file(path, "found a large file, expected a tree of classes")
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = file.read().rstrip().split("\n")
    parents: list[int] = []
    for number, line in enumerate(lines):
        words = line.split()
        try:
            parent = int(words[1]) if len(words) > 1 else -1
        except ValueError:
            parent = number
        if not -1 <= parent < number:
            raise FrontendError.of_file(
                path,
                f"line {number + 1}: found '{line[:60]}', expected a name and the number of a "
                "class before it, or -1",
            )
        parents.append(parent)
    return parents
