"""Modules whose lists, dictionaries and attributes data and calls change."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import torch
from torch import Tensor, nn


class Lists(nn.Module):
    """Lists and dictionaries that branches and loops make and change."""

    def made(self, x: Tensor) -> Tensor:
        """A list that each branch makes and lengthens, under two names."""
        if bool(x[0] > 2.5):
            a = [x]
            a.append(x * 2)
            b = a
        else:
            a = [x * 3]
            a.append(x * 5)
            b = a
        a[0] = a[0] + 1
        return b[0] + a[-1] * 10

    def entries(self, x: Tensor) -> Tensor:
        """Entries of a dictionary, and one that a branch makes."""
        d = {"a": x}
        e = {"b": x}
        if bool(x[0] > 2.5):
            d["a"] = x * 7
            e = {"b": x * 2}
            e["b"] = x * 3
        return d["a"] + e["b"] * 10

    def nested(self, x: Tensor) -> Tensor:
        """Lists in lists, which change places."""
        a = [[x], [x * 2]]
        if bool(x[0] > 2.5):
            a[0][0] = x * 5
            a = [a[1], a[0]]
            a[0].append(x)
        else:
            a[1].append(x * 9)
            a = [a[1], a[0]]
        return a[0][0] + a[0][1] * 10 + a[1][0] * 100

    def paired(self, x: Tensor) -> Tensor:
        """A list in a tuple, which only one branch replaces."""
        a, b = x, x * 2
        if bool(x[0] > 2.5):
            a, b = b, a
        t = (a, [b])
        if bool(x[0] > 1.5):
            t = (b, [a])
            t[1].append(x)
        else:
            t[1].append(x * 3)
        return t[0] + t[1][0] * 10 + t[1][1] * 100

    def repeated(self, x: Tensor) -> Tensor:
        """A dictionary of each iteration, a break and a continue."""
        y = x
        for _ in range(int(x[0])):
            d = {"a": y}
            d["a"] = d["a"] + 1
            d["b"] = x
            y = d["a"] * 2 + d["b"]
        for _ in range(10):
            if bool(y[0] > 40):
                break
            if bool(y[1] > 30):
                continue
            y = y * 2
        return y

    def forward(self, x: Tensor) -> list[Tensor]:
        return [
            self.made(x),
            self.entries(x),
            self.nested(x),
            self.paired(x),
            self.repeated(x),
        ]
