"""Modules whose lists, dictionaries and attributes data and calls change."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Optional

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


class Cell(nn.Module):
    """A cell that has no hidden values at first, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.jit.Attribute(None, Optional[Tensor])  # noqa: UP045
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden
        if hidden is None:
            hidden = torch.zeros_like(x)
        hidden = hidden * 0.5 + x
        self.hidden = hidden
        self.count += 1
        return hidden * self.count


class Attributes(nn.Module):
    """Attributes of all kinds that remember."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Cell(), Cell()
        self.listed = [torch.zeros(3), torch.ones(3)]
        self.ring = torch.jit.Attribute([], list[Tensor])
        self.numbers = [1, 2]
        self.entries = {"a": torch.zeros(3)}
        self.pair = torch.zeros(3), torch.ones(3)
        self.maybe = torch.jit.Attribute(None, Optional[tuple[Tensor, Tensor]])  # noqa: UP045
        self.mode = "first"
        self.empty = torch.zeros(0)
        shared, replaced = torch.ones(3), torch.ones(3)
        self.register_buffer("shared", shared)
        self.register_buffer("same", shared)
        self.register_buffer("kept", replaced)
        self.register_buffer("replaced", replaced)
        self.factor = 0.5

    def lists(self, x: Tensor) -> Tensor:
        """Lists: items that are replaced, that are written to, and all of them."""
        y = self.listed[0] * 2 + self.listed[1] + x * self.numbers[0] + self.numbers[1]
        self.listed[0] = self.listed[1]
        self.listed[1] = y
        self.numbers[0] += 1
        if len(self.ring) == 0:
            self.ring = [x, x]
        y = y + self.ring[0] * 10 + self.ring[1]
        self.ring = [self.ring[1], x]
        return y

    def others(self, x: Tensor) -> Tensor:
        """A dictionary, tuples, a text, a tensor that is empty at first."""
        y = x + self.entries["a"]
        self.entries["a"] = y
        a, b = self.pair
        y = y + a * 2 + b
        self.pair = (b, y)
        maybe = self.maybe
        if maybe is None:
            a, b = x * 0, x * 0 + 1
        else:
            a, b = maybe
        self.maybe = (b, a + x)
        y = y + a + b * 2
        if self.mode == "first":
            y = y * 10
        self.mode = "later"
        if len(self.empty) > 0:
            y = y + self.empty * 0.5
        self.empty = y
        return y

    def buffers(self, x: Tensor) -> Tensor:
        """A buffer with two names, written to and replaced, and what data decide to change."""
        self.shared.add_(x)
        self.replaced = self.replaced + x
        if bool(x[0] > 2.5):
            self.factor *= 2
        return self.same * 2 + self.shared + self.kept * 10 + self.replaced + self.factor

    def forward(self, x: Tensor) -> list[Tensor]:
        cells = self.first(x) + self.second(x * 2)
        return [cells, self.lists(x), self.others(x), self.buffers(x)]


@torch.jit.script
class Box:
    """A value and a count."""

    def __init__(self, value: Tensor, count: int) -> None:
        self.value = value
        self.count = count

    def grow(self, factor: int) -> None:
        """Change both."""
        self.value = self.value * factor
        self.count += 1

    def total(self) -> Tensor:
        """What it holds."""
        return self.value + self.count


class Objects(nn.Module):
    """Objects of a class of its own, context managers, returns in loops, bits of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Box(torch.ones(3), 2)

    def boxes(self, x: Tensor) -> Tensor:
        """Objects that branches and loops change, and one that remembers."""
        one = Box(x, 2)
        same = one
        same.grow(3)
        if bool(x[0] > 2.5):
            one.grow(2)
        for _ in range(int(x[0])):
            one.grow(2)
        self.box.grow(2)
        total = self.box.total()
        for box in [one, Box(x * 2, 5)]:
            total = total + box.total()
        return total + same.count * 100

    def returned(self, x: Tensor) -> Tensor:
        """A loop of unknown length that returns, and leaves nothing if it does not."""
        y = x
        while bool(y.sum() < 100):
            y = y * 2
            if bool(y[0] > 8):
                return y + 1
        return y

    def forward(self, x: Tensor) -> list[Tensor]:
        with torch.no_grad():
            n = int(x[0])
            bits = x + (n & 3) + (n | 8) * 10 + (n ^ 1) * 100 + (1 << n) * 1000
        return [self.boxes(x), self.returned(x), bits]


class Settled(nn.Module):
    """Attributes that are the same after every call, or written before they are read."""

    def __init__(self) -> None:
        super().__init__()
        self.count = torch.jit.Attribute(None, Optional[int])  # noqa: UP045
        self.pyramid = torch.jit.Attribute([], list[Tensor])
        self.warned = False

    def forward(self, x: Tensor) -> Tensor:
        if self.count is None:
            self.count = x.size(0)
        count = self.count
        assert count is not None
        if not self.warned:
            self.warned = True
        self.pyramid = [x * 2]
        self.pyramid.append(x * 3)
        return self.pyramid[0] + self.pyramid[1] * 10 * count
