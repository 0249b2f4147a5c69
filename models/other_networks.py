"""Networks in PyTorch at the sizes at which they are deployed, for `other_exports.py`."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from models.real_networks import Attention, RmsNorm, heads

# Sound


class WaveNet(nn.Module):
    """Two stacks of dilated causal convolutions, gated, with skip connections."""

    def __init__(self, width: int = 64, skip: int = 128, classes: int = 256) -> None:
        super().__init__()
        self.dilations = [2**k for k in range(10)] * 2
        self.enter = nn.Conv1d(1, width, 1)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.dilations
        )
        self.stay = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skips = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in self.dilations)
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, classes, 1)
        )

    def forward(self, sound: Any) -> Any:
        x, total = self.enter(sound), 0.0
        for index, dilation in enumerate(self.dilations):
            filtered, gate = self.gated[index](F.pad(x, (dilation, 0))).chunk(2, 1)
            y = filtered.tanh() * gate.sigmoid()
            total = total + self.skips[index](y)
            x = x + self.stay[index](y)
        return self.head(total)


class RelativeAttention(nn.Module):
    """Attention with scores of distances, which are shifted row by row into place."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count, self.size = count, width // count
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.place = nn.Linear(width, width, bias=False)
        self.u, self.w = (nn.Parameter(torch.randn(count, self.size) * 0.1) for _ in range(2))

    def forward(self, x: Any, places: Any) -> Any:
        batch, length = x.shape[0], x.shape[1]
        q = self.q(x).unflatten(-1, (self.count, self.size))
        k, v = heads(self.k(x), self.count), heads(self.v(x), self.count)
        p = heads(self.place(places), self.count)
        content = (q + self.u).transpose(1, 2) @ k.transpose(2, 3)
        far = (q + self.w).transpose(1, 2) @ p.transpose(2, 3)
        far = F.pad(far, (1, 0)).reshape(batch, self.count, 2 * length, length)
        far = far[:, :, 1:].reshape(batch, self.count, length, 2 * length - 1)[..., :length]
        scores = (content + far) / math.sqrt(self.size)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class ConformerLayer(nn.Module):
    """Half a feed-forward step, attention, a convolution over time, the other half."""

    def __init__(self, width: int, count: int, taps: int = 31) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.steps = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            for _ in range(2)
        )
        self.attention = RelativeAttention(width, count)
        self.enter = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.leave = nn.Conv1d(width, width, 1)

    def forward(self, x: Any, places: Any) -> Any:
        x = x + 0.5 * self.steps[0](self.norms[0](x))
        x = x + self.attention(self.norms[1](x), places)
        y = F.glu(self.enter(self.norms[2](x).transpose(1, 2)), 1)
        y = self.leave(F.silu(self.batch_norm(self.depthwise(y))))
        x = x + y.transpose(1, 2)
        return self.norms[4](x + 0.5 * self.steps[1](self.norms[3](x)))


class Conformer(nn.Module):
    """Frames of sound, four at a time by strided convolutions, and letters for each."""

    def __init__(self, width: int = 256, layers: int = 8, mels: int = 80, words: int = 128) -> None:
        super().__init__()
        self.shrink = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU()
        )
        self.enter = nn.Linear(width * mels // 4, width)
        self.layers = nn.ModuleList(ConformerLayer(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, words)
        self.width = width

    def forward(self, mel: Any) -> Any:
        x = self.shrink(mel[:, None]).transpose(1, 2).flatten(2)
        x = self.enter(x)
        far = torch.arange(x.shape[1] - 1, -x.shape[1], -1)[:, None]
        rates = torch.exp(-math.log(10000) * torch.arange(0, self.width, 2) / self.width)
        places = torch.cat([(far * rates).sin(), (far * rates).cos()], -1)[None].to(x.dtype)
        for layer in self.layers:
            x = layer(x, places)
        return self.head(x).log_softmax(-1)


# Text


class BertLayer(nn.Module):
    """Norms after the sums."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.attention = Attention(width, count)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any, bias: Any) -> Any:
        x = self.norms[0](x + self.attention(x, bias=bias))
        return self.norms[1](x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """Words, positions and types of sentences embedded; a mask; a summary of the first word."""

    def __init__(self, width: int = 768, layers: int = 12, words: int = 30522) -> None:
        super().__init__()
        self.words, self.types = nn.Embedding(words, width), nn.Embedding(2, width)
        self.positions, self.norm = nn.Embedding(512, width), nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, 12) for _ in range(layers))
        self.pool = nn.Linear(width, width)

    def forward(self, words: Any, types: Any, mask: Any) -> Any:
        x = self.words(words) + self.types(types)
        x = self.norm(x + self.positions(torch.arange(words.shape[1])))
        bias = (1 - mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, bias)
        return x, self.pool(x[:, 0]).tanh()


class T5Attention(nn.Module):
    """Without biases and without a scale."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Any, source: Any, bias: Any = None) -> Any:
        q, k, v = (
            heads(w(y), self.count) for w, y in ((self.q, x), (self.k, source), (self.v, source))
        )
        scores = q @ k.transpose(2, 3)
        if bias is not None:
            scores = scores + bias
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class T5Layer(nn.Module):
    """Attention to itself, to an encoder if there is one, and two products."""

    def __init__(self, width: int, count: int, crosses: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(3))
        self.own, self.cross = (
            T5Attention(width, count),
            T5Attention(width, count) if crosses else None,
        )
        self.up, self.down = (
            nn.Linear(*sizes, bias=False) for sizes in ((width, 4 * width), (4 * width, width))
        )

    def forward(self, x: Any, bias: Any, source: Any = None) -> Any:
        y = self.norms[0](x)
        x = x + self.own(y, y, bias)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), source)
        return x + self.down(self.up(self.norms[2](x)).relu())


class T5(nn.Module):
    """Encoder and decoder with positions in buckets, and the words that may come next."""

    def __init__(
        self, width: int = 512, count: int = 8, layers: int = 6, words: int = 32128
    ) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(words, width)
        self.near, self.past = nn.Embedding(32, count), nn.Embedding(32, count)
        self.encoder = nn.ModuleList(T5Layer(width, count, False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5Layer(width, count, True) for _ in range(layers))
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(2))

    def bias(self, table: Any, length: int, both: bool) -> Any:
        place = torch.arange(length)
        distance = place[None, :] - place[:, None]
        half = 16 if both else 32
        bucket = half * (distance > 0).long() if both else torch.zeros_like(distance)
        near = (distance.abs() if both else (-distance).clamp(min=0)).float()
        exact = half // 2
        rate = (half - exact) / math.log(128 / exact)
        far = (exact + (near.clamp(min=1) / exact).log() * rate).long().clamp(max=half - 1)
        return table(bucket + torch.where(near < exact, near.long(), far)).permute(2, 0, 1)[None]

    def forward(self, words: Any, written: Any) -> Any:
        x, bias = self.embedding(words), self.bias(self.near, words.shape[1], True)
        for layer in self.encoder:
            x = layer(x, bias)
        source = self.norms[0](x)
        length = written.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.embedding(written)
        bias = self.bias(self.past, length, False).masked_fill(later, -1e9)
        for layer in self.decoder:
            x = layer(x, bias, source)
        return (self.norms[1](x) * self.width**-0.5) @ self.embedding.weight.T


# Images


def conv(before: int, after: int, taps: int = 3, stride: int = 1) -> nn.Module:
    """A convolution, batch normalization, SiLU."""
    return nn.Sequential(
        nn.Conv2d(before, after, taps, stride, taps // 2, bias=False),
        nn.BatchNorm2d(after, eps=1e-3),
        nn.SiLU(),
    )


class C2f(nn.Module):
    """Bottlenecks one after the other, of which each result is kept."""

    def __init__(self, before: int, after: int, count: int, adds: bool) -> None:
        super().__init__()
        half = after // 2
        self.enter, self.leave = conv(before, after, 1), conv((2 + count) * half, after, 1)
        self.steps = nn.ModuleList(
            nn.Sequential(conv(half, half), conv(half, half)) for _ in range(count)
        )
        self.adds = adds

    def forward(self, x: Any) -> Any:
        parts = list(self.enter(x).chunk(2, 1))
        for step in self.steps:
            y = step(parts[-1])
            parts.append(parts[-1] + y if self.adds else y)
        return self.leave(torch.cat(parts, 1))


class YoloV8(nn.Module):
    """The detector in its size n: three scales, boxes as distributions over distances."""

    def __init__(self, sizes: Sequence[int] = (16, 32, 64, 128, 256), classes: int = 80) -> None:
        super().__init__()
        a, b, c, d, e = sizes
        self.stem = nn.Sequential(conv(3, a, 3, 2), conv(a, b, 3, 2), C2f(b, b, 1, True))
        self.third = nn.Sequential(conv(b, c, 3, 2), C2f(c, c, 2, True))
        self.fourth = nn.Sequential(conv(c, d, 3, 2), C2f(d, d, 2, True))
        self.fifth = nn.Sequential(conv(d, e, 3, 2), C2f(e, e, 1, True))
        self.spp = nn.ModuleList([conv(e, e // 2, 1), conv(2 * e, e, 1)])
        self.up4, self.up3 = C2f(e + d, d, 1, False), C2f(d + c, c, 1, False)
        self.down3, self.down4 = conv(c, c, 3, 2), conv(d, d, 3, 2)
        self.out4, self.out5 = C2f(c + d, d, 1, False), C2f(d + e, e, 1, False)
        wide = max(c, classes)
        self.boxes = nn.ModuleList(
            nn.Sequential(conv(w, 64), conv(64, 64), nn.Conv2d(64, 64, 1)) for w in (c, d, e)
        )
        self.classes = nn.ModuleList(
            nn.Sequential(conv(w, wide), conv(wide, wide), nn.Conv2d(wide, classes, 1))
            for w in (c, d, e)
        )
        self.distances = nn.Conv2d(16, 1, 1, bias=False)
        self.distances.weight.data = torch.arange(16.0).view(1, 16, 1, 1)

    def forward(self, image: Any) -> Any:
        x3 = self.third(self.stem(image))
        x4 = self.fourth(x3)
        x = self.spp[0](self.fifth(x4))
        pools = [x]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        x5 = self.spp[1](torch.cat(pools, 1))
        y4 = self.up4(torch.cat([F.interpolate(x5, scale_factor=2.0), x4], 1))
        y3 = self.up3(torch.cat([F.interpolate(y4, scale_factor=2.0), x3], 1))
        y4 = self.out4(torch.cat([self.down3(y3), y4], 1))
        y5 = self.out5(torch.cat([self.down4(y4), x5], 1))
        scales, centers, strides = [], [], []
        for index, y in enumerate((y3, y4, y5)):
            scales.append(torch.cat([self.boxes[index](y), self.classes[index](y)], 1).flatten(2))
            rows, columns = (torch.arange(size) + 0.5 for size in y.shape[2:])
            grid = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), 0)
            centers.append(grid.flatten(1))
            strides.append(torch.full((1, grid[0].numel()), float(8 << index)))
        center, stride = torch.cat(centers, 1).to(x.dtype), torch.cat(strides, 1).to(x.dtype)
        boxes, classes = torch.cat(scales, 2).split([64, scales[0].shape[1] - 64], 1)
        boxes = boxes.unflatten(1, (4, 16)).transpose(1, 2).softmax(1)
        low, high = self.distances(boxes)[:, 0].chunk(2, 1)
        first, last = center - low, center + high
        return torch.cat(
            [torch.cat([(first + last) / 2, last - first], 1) * stride, classes.sigmoid()], 1
        )


class UNet(nn.Module):
    """Images that become small and large again, by transposed convolutions."""

    def __init__(self, width: int = 32, depth: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            self.pair(before, after) for before, after in zip([3, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * after, after, 2, 2) for after in reversed(widths[:-1])
        )
        self.merge = nn.ModuleList(self.pair(2 * after, after) for after in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def pair(before: int, after: int) -> nn.Module:
        """Two convolutions of one size."""
        layers = []
        for channels in (before, after):
            layers += [nn.Conv2d(channels, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, image: Any) -> Any:
        x, skips = self.down[0](image), []
        for block in self.down[1:]:
            skips.append(x)
            x = block(F.max_pool2d(x, 2))
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class Autoencoder(nn.Module):
    """Images through few numbers and back."""

    def __init__(self, widths: Sequence[int] = (32, 64, 128, 256), code: int = 128) -> None:
        super().__init__()
        down: list[nn.Module] = []
        up: list[nn.Module] = []
        for before, after in zip([3, *widths], widths, strict=False):
            down += [nn.Conv2d(before, after, 4, 2, 1), nn.BatchNorm2d(after), nn.LeakyReLU(0.2)]
        for before, after in zip(widths[::-1], [*widths[-2::-1], 3], strict=True):
            up += [nn.ConvTranspose2d(before, after, 4, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
        self.down, self.up = nn.Sequential(*down), nn.Sequential(*up[:-2], nn.Sigmoid())
        self.code, self.back = nn.Linear(widths[-1] * 16, code), nn.Linear(code, widths[-1] * 16)

    def forward(self, image: Any) -> Any:
        code = self.code(self.down(image).flatten(1))
        x = self.back(code).relu().unflatten(1, (-1, 4, 4))
        return self.up(x), code
