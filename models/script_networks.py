"""Modules of PyTorch that are traced or scripted, for `script_exports.py`."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Images


class Convolutional(nn.Sequential):
    """Convolutions, normalizations, activations in place and pools."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 8, 3, padding="same", groups=4),
            nn.Hardswish(),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Linear(8, 5),
        )


class Block(nn.Module):
    """A residual block with an optional projection."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or into != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        kept = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            kept = self.downsample(x)
        out += kept
        return self.relu(out)


class Residual(nn.Module):
    """A small ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.pool(self.stem(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class UNet(nn.Module):
    """Down, up, and what is kept between; sizes that do not divide are padded."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(1, 4, 3, padding=1)
        self.down2 = nn.Conv2d(4, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = F.relu(self.down1(x))
        y = F.relu(self.down2(F.max_pool2d(kept, 2)))
        y = self.up(F.silu(self.middle(y)))
        rows = kept.size(2) - y.size(2)
        columns = kept.size(3) - y.size(3)
        if rows > 0 or columns > 0:
            y = F.pad(y, [0, columns, 0, rows])
        y = self.last(torch.cat([kept, y], dim=1))
        return F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)


class Squeezed(nn.Module):
    """Squeeze and excitation, depthwise convolutions, channel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        x = x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)
        y = self.depth(x)
        scale = F.hardsigmoid(self.up(F.relu(self.down(y.mean([2, 3], keepdim=True)))))
        return (y * scale).clamp(-1, 1) + x


class Patches(nn.Module):
    """A vision transformer's beginning: patches, a class token, positions."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, 12, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 12))
        self.places = nn.Parameter(torch.randn(1, 5, 12))
        self.norm = nn.LayerNorm(12)
        self.mix = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        y = self.norm(x)
        return (x + self.mix(y, y, y, need_weights=False)[0])[:, 0]


# Sequences


class Recurrent(nn.Module):
    """An LSTM and a GRU in both directions, with their last states."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.lstm(self.embed(ids))
        z, last = self.gru(y.transpose(0, 1))
        return z, h + c, last


class Cells(nn.Module):
    """Recurrent cells, called in a loop that gathers a list."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.gru = nn.LSTMCell(4, 5), nn.GRUCell(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 5)
        c = torch.zeros_like(h)
        g = torch.ones_like(h)
        rows: list[Tensor] = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            g = self.gru(h, g)
            rows.append(g)
        return torch.stack(rows, dim=1)


class Encoder(nn.Module):
    """A transformer's encoder with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            12, 3, 16, dropout=0.0, batch_first=True, activation="gelu", norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padding)


class Decoder(nn.Module):
    """Causal attention written out, with rotary places."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("cos", torch.cos(torch.arange(8.0)[:, None] * torch.arange(1.0, 5)))
        self.register_buffer("sin", torch.sin(torch.arange(8.0)[:, None] * torch.arange(1.0, 5)))

    def rotate(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        n = x.size(-2)
        cos, sin = self.cos[:n], self.sin[:n]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        scores = self.rotate(q) @ self.rotate(k).transpose(-2, -1) / 8**0.5
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)
        return x + self.out(y)


class Attended(nn.Module):
    """PyTorch's own attention with an additive mask."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return F.scaled_dot_product_attention(y, k, v, is_causal=True)


class Bags(nn.Module):
    """Sums of embeddings, and what is on top of them."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, mode="sum")
        self.mean = nn.EmbeddingBag(10, 4, mode="mean")
        self.top = nn.Bilinear(4, 4, 3)

    def forward(self, ids: Tensor, offsets: Tensor) -> Tensor:
        return self.top(self.bag(ids, offsets), self.mean(ids, offsets))


class Sound(nn.Module):
    """Dilated causal convolutions with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**k) for k in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            a, b = conv(F.pad(x, (conv.dilation[0], 0))).chunk(2, dim=1)
            x = x + a.tanh() * b.sigmoid()
        return F.glu(x, dim=1)


# Control flow


class Branches(nn.Module):
    """Branches and loops that data decides."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        count = torch.zeros([], dtype=torch.int64)
        if x.sum() > 0:
            y = x * 2
        elif x.mean() < -1:
            y = x.abs() + 1
        else:
            y = -x
        steps = 0
        while y.norm() < 50.0 and steps < 20:
            y = y * 1.5
            steps += 1
            count = count + 1
        return y, count


class Halting(nn.Module):
    """A loop with a break, an early return and an assertion."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, limit: int = 6) -> Tensor:
        assert x.dim() == 2, "expected a matrix"
        if x.shape[1] != 4:
            raise ValueError("expected four columns")
        for k in range(limit):
            x = torch.tanh(self.fc(x))
            if bool(x.abs().max() < 0.3):
                break
            x = x + k * 0.1
        if bool(x[0, 0] > 0):
            return x
        return -x


class Flow(nn.Module):
    """A scripted part with control flow in a traced module."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.script(Branches())
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, count = self.inner(x)
        return self.fc(y) + count


class Fibonacci(nn.Module):
    """Arithmetic of integers, lists and texts at import, and on data."""

    def forward(self, x: Tensor) -> Tensor:
        numbers = [1, 1]
        while len(numbers) < 10:
            numbers.append(numbers[-1] + numbers[-2])
        total = 0
        for n in numbers:
            if n % 2 == 0:
                continue
            total += n
        scale = {"a": 0.5, "b": float(total // 3)}
        k = int(x.sum().item())
        return x * scale["b"] + numbers[len(numbers) // 2] + k % 7 + max(k, 3) + (-k) // 2


class Pair(NamedTuple):
    """Two results."""

    values: Tensor
    places: Tensor


class Structures(nn.Module):
    """Tuples, lists and dictionaries in and out."""

    def pick(self, x: Tensor, k: int) -> Pair:
        top = torch.topk(x, k, dim=-1)
        return Pair(top[0], top[1])

    def forward(self, xs: list[Tensor], pair: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        best = self.pick(total, 2)
        a, b = pair
        found: dict[str, Tensor] = {"values": best.values, "places": best.places}
        found["mixed"] = torch.where(a > b, a, b)
        lengths = [x.size(-1) for x in xs]
        found["lengths"] = torch.tensor(lengths)
        return found


class Named(nn.Module):
    """A tuple with names, lists and a number as results."""

    def forward(self, x: Tensor) -> tuple[Pair, list[Tensor], int]:
        values, places = x.sort(dim=-1, descending=True)
        return Pair(values, places), x.split(2, dim=1), x.argmax().item()


# Writes


class Writes(nn.Module):
    """Writes in place, through views of all kinds."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 0] = 1.0
        y[1:, 1:3] += x[1:, 1:3]
        row = y[0]
        row.mul_(2).add_(1)
        y.t()[2].zero_()
        y.view(-1)[3:5] = 7
        y[y > 3] = 3.0
        z = torch.zeros(4, 4)
        for k in range(4):
            z[k, 3 - k] = y[0, k]
        z.diagonal().fill_(-1)
        y.unsqueeze(0).squeeze(0).clamp_(min=-2)
        return torch.cat([y, z])


class Counter(nn.Module):
    """Buffers that live on, and a number that is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("cache", torch.zeros(2, 3))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.sum(0)
        self.cache = torch.cat([self.cache[1:], x[:1]])
        self.calls += 1
        if self.calls > 2:
            self.total.mul_(0.5)
        return self.total + self.cache.mean(0) + self.calls


class Memory(nn.Module):
    """A cache of keys that a loop writes, at a place that data decides."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(6, 4))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.keys.index_copy_(0, self.place, x)
        self.place.add_(1).remainder_(6)
        return (self.keys @ x.t()).softmax(0).t() @ self.keys


class Training(nn.Module):
    """Batch normalization by the batch, whose statistics move."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


# Detection


class Suppression(nn.Module):
    """Boxes decoded, sorted, and suppressed in loops over them."""

    def iou(self, a: Tensor, b: Tensor) -> Tensor:
        low, high = torch.max(a[:2], b[:2]), torch.min(a[2:], b[2:])
        size = (high - low).clamp(min=0)
        both = size[0] * size[1]
        one = (a[2] - a[0]) * (a[3] - a[1])
        other = (b[2] - b[0]) * (b[3] - b[1])
        return both / (one + other - both)

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        order = torch.argsort(scores, descending=True)
        boxes, scores = boxes[order], scores[order]
        keep = torch.ones_like(scores, dtype=torch.bool)
        for i in range(boxes.size(0)):
            if bool(keep[i]):
                for j in range(i + 1, boxes.size(0)):
                    if bool(self.iou(boxes[i], boxes[j]) > 0.5):
                        keep[j] = False
        return boxes * keep[:, None].to(boxes.dtype), scores.masked_fill(~keep, 0.0)


class Found(nn.Module):
    """As many rows as data has."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mask = x[:, 0] > 0
        rows = torch.nonzero(mask).squeeze(1)
        chosen = x[rows]
        if chosen.size(0) == 0:
            return torch.zeros(0, x.size(1)), rows
        return chosen - chosen.mean(0), rows


class Graph(nn.Module):
    """Messages along edges."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(4, 4), nn.Linear(8, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        sums = torch.zeros_like(x).index_add_(0, target, self.message(x).relu()[source])
        degree = torch.bincount(target, minlength=x.size(0)) if False else torch.ones(x.size(0))
        return self.update(torch.cat([x, sums / degree[:, None]], dim=1))


class Types(nn.Module):
    """Elements of several types."""

    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        a = n + 0.5
        b = (n // 2 + n % 3).to(torch.int32) * 2
        c = (x > 0) & (n > 1).any()
        d = x.double().half().float() + n.float().mean()
        return a, b, c, d + torch.full([2], 3).sum() + torch.arange(1, 7, 2).prod()


@torch.jit.script
def scaled(x: Tensor, factor: float = 2.0, inverse: bool = False) -> Tensor:
    """A function that is scripted by itself."""
    if inverse:
        factor = 1.0 / factor
    return x * factor


class Calls(nn.Module):
    """Functions with defaults, keywords, and submodules in containers."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.PReLU(4)})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))])
        self.scale: float = 1.5

    def forward(self, x: Tensor) -> Tensor:
        for name, part in self.parts.items():
            x = part(x)
            if name == "a":
                x = scaled(x, inverse=True)
        for weight in self.weights:
            x = x * weight + scaled(x)
        return F.layer_norm(x, [4]) * self.scale


class Mixed(nn.Module):
    """A traced part in a scripted module."""

    def __init__(self) -> None:
        super().__init__()
        self.traced = torch.jit.trace(Convolutional().eval(), torch.randn(1, 3, 16, 16))

    def forward(self, x: Tensor, twice: bool = True) -> Tensor:
        y = self.traced(x)
        if twice:
            y = y + self.traced(x.flip(3))
        return y.log_softmax(dim=-1)


class Beam(nn.Module):
    """A greedy search that writes tokens until one ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 5)
        self.cell = nn.GRUCell(5, 5)
        self.head = nn.Linear(5, 7)

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        tokens = torch.zeros(12, dtype=torch.int64)
        token = torch.zeros(1, dtype=torch.int64)
        length = torch.zeros([], dtype=torch.int64)
        going, k = True, 0
        while going:
            h = self.cell(self.embed(token), h)
            token = self.head(h).argmax(dim=-1)
            tokens[k] = token[0]
            k += 1
            length = length + 1
            going = bool(token[0] != 3) and k < 12
        return tokens, length


class Statistics(nn.Module):
    """Reductions, cumulative sums, norms and distances."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [
            x.var(dim=1, unbiased=False),
            x.std(),
            x.cumsum(1),
            x.norm(p=2, dim=1, keepdim=True),
            torch.cdist(x, x),
            x.max(dim=0)[0],
            x.min(dim=1)[1],
            torch.logsumexp(x, dim=1),
            F.cosine_similarity(x, x.roll(1, 0)),
            torch.einsum("ij,kj->ik", x, x),
            F.normalize(x, dim=1),
            x.prod(dim=1),
            torch.tril(x @ x.t()),
            x.unfold(1, 2, 1),
        ]


# Signals and formulas


class Spectra(nn.Module):
    """Fourier transforms and complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))
        self.register_buffer("turns", torch.polar(torch.ones(3), torch.arange(3.0)))

    def forward(self, x: Tensor) -> list[Tensor]:
        s = torch.stft(x, 8, 2, window=self.window, return_complex=True)
        back = torch.istft(s, 8, 2, window=self.window, length=x.size(-1))
        pairs = torch.view_as_complex(x[:, :6].reshape(2, 3, 2)) * self.turns
        half = torch.fft.rfft(x[:, :7], norm="ortho")
        plane = torch.fft.fft2(x)
        return [
            s.abs(),
            torch.angle(s),
            back,
            torch.view_as_real(pairs.conj() / (pairs + 1)),
            torch.view_as_real(half),
            torch.fft.irfft(half, 7, norm="ortho"),
            torch.fft.fftshift(plane.real) + plane.imag,
            torch.view_as_real(torch.fft.ifft(plane, dim=0)[:, 1:4].transpose(0, 1)),
            torch.view_as_real(torch.exp(pairs) @ pairs.t()),
            torch.fft.irfft2(torch.fft.rfft2(x, s=[3, 6]), s=[3, 6]),
            torch.fft.fftfreq(5),
            torch.fft.hfft(half),
        ]


class Formulas(nn.Module):
    """Operators that are formulas of others."""

    def forward(self, x: Tensor, n: Tensor) -> list[Tensor]:
        square = x @ x.t() + torch.eye(4)
        target = n % 5
        unique, inverse, counts = torch.unique(n, return_inverse=True, return_counts=True)
        return [
            F.one_hot(n, 7),
            torch.logaddexp(x[0], x[1]),
            torch.isclose(x, x + 1e-9),
            torch.xlogy(x.abs(), x.abs()),
            torch.heaviside(x, x),
            F.smooth_l1_loss(x[0], x[1]),
            F.binary_cross_entropy_with_logits(x, x.sigmoid()),
            F.cross_entropy(x, target),
            F.nll_loss(x, target, reduction="sum"),
            F.kl_div(x, x.softmax(1), reduction="batchmean"),
            torch.hamming_window(6),
            torch.kaiser_window(6, False, 5.0),
            torch.diff(x, dim=1),
            torch.trapezoid(x, dx=0.5),
            torch.linalg.inv(square),
            torch.linalg.det(square),
            torch.linalg.cholesky(square),
            torch.linalg.solve(square, x),
            torch.linalg.solve_triangular(square.tril(), x, upper=False),
            torch.diagflat(x[0]),
            torch.linalg.norm(x, float("inf")),
            torch.linalg.vecdot(x, x),
            torch.corrcoef(x),
            F.affine_grid(x[:2, :3].reshape(1, 2, 3), [1, 1, 2, 3], align_corners=False),
            torch.bincount(n),
            torch.histc(x, 4),
            unique,
            inverse,
            counts,
            torch.unique_consecutive(n),
            torch.column_stack([x, x[:, 0]]),
            torch.rot90(x, 1, [0, 1]),
            torch.fill(x, 2.0).fill_diagonal_(1.0),
            torch.renorm(x, 2.0, 0, 1.0),
            torch.float_power(x.abs(), 2.5),
        ]


class Packed(nn.Module):
    """An LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, 2, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        y, (h, c) = self.lstm(packed)
        padded, found = nn.utils.rnn.pad_packed_sequence(y, total_length=6)
        return padded, h + c, found


class Fast(nn.Module):
    """An encoder's layer as one operator, after weights with a norm of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.utils.parametrizations.weight_norm(nn.Linear(4, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.enter(x))


class Edges(nn.Module):
    """Scalars, lists of one, several quantiles, and other rare arguments."""

    def forward(self, x: Tensor, n: Tensor) -> list[Tensor]:
        scalar, holes = x[0, 0], x.masked_fill(x > 0.5, float("nan"))
        mask = x > 0
        mask &= x < 1
        return [
            torch.linspace(2, 5, 1),
            torch.linspace(0.0, 1.0, 4),
            torch.logspace(0.0, 2.0, 3, 2.0),
            torch.kthvalue(scalar, 1)[0],
            torch.cummax(scalar, 0)[1],
            torch.sort(scalar)[0],
            torch.topk(scalar, 1)[1],
            torch.fliplr(x),
            torch.flipud(x),
            torch.cartesian_prod([x[0]]),
            torch.add(mask, mask, alpha=2),
            torch.quantile(x, torch.tensor([0.1, 0.75]), dim=1),
            torch.quantile(x, 0.4, dim=0, keepdim=True, interpolation="higher"),
            torch.nanquantile(holes, 0.5, dim=1),
            torch.nanmedian(holes, dim=0)[0],
            F.pairwise_distance(x, x.flip(0), keepdim=True),
            x.sum_to_size([1, 5]),
            x.roll(n.size(0), 1),
            torch.expand_copy(x[:1], [2, 5]),
            mask,
        ]


class Phases(nn.Module):
    """Functions and products of complex numbers, and complex constants."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turn", torch.tensor([[1 + 2j, -3j], [0.5, -1 - 1j]]))

    def forward(self, x: Tensor) -> list[Tensor]:
        z = torch.complex(x[:2], x[2:])
        made = [
            z * (2 - 1j),
            z.sqrt(),
            z.log(),
            z.sin() + z.cos(),
            z.tanh(),
            z.sigmoid(),
            z.rsqrt(),
            z ** (1 + 0.5j),
            torch.einsum("ij,jk,ik->k", z, self.turn, z),
            F.linear(z, self.turn),
            x[:2].to(torch.complex64) @ self.turn,
            z.to(torch.complex128) / 3,
        ]
        return [torch.view_as_real(one) for one in made]


class Rare(nn.Module):
    """Forms of operators that few networks have."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5, track_running_stats=False)
        self.bag = nn.EmbeddingBag(6, 3, mode="mean", padding_idx=-1)
        self.best = nn.EmbeddingBag(6, 3, mode="max", padding_idx=2)

    def forward(self, x: Tensor, image: Tensor, ids: Tensor) -> list[Tensor]:
        factors, zeros = torch.tensor([0.1, 0.2, 0.05, 0.5]), torch.zeros(4, dtype=torch.int32)
        half = F.interpolate(image, scale_factor=(0.7, 1.3), mode="bilinear", antialias=True)
        resize = F.interpolate
        square = x[:, :4] @ x[:, :4].t() + torch.eye(4) * 3
        low = torch.linalg.cholesky(square)
        return [
            self.norm(x),
            self.bag(ids),
            self.best(ids),
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 40),
            torch.fake_quantize_per_channel_affine(x, factors, zeros, 0, -8, 7),
            half,
            resize(image, (3, 4), mode="bicubic", antialias=True, align_corners=True),
            resize(image, (1, 9), mode="bilinear", antialias=True, align_corners=True),
            *x.tensor_split((1, -2), dim=1),
            *x.tensor_split(3, dim=1),
            torch.combinations(x[0], 2),
            torch.linalg.matrix_power(square, -2),
            torch.linalg.matrix_power(square, 0),
            torch.cholesky_solve(x, low),
            torch.cholesky_inverse(low.t(), upper=True),
            torch.linalg.svdvals(x),
            torch.linalg.norm(x, "nuc"),
            torch.linalg.norm(x, -2),
            torch.linalg.tensorinv(square.reshape(4, 2, 2), ind=1),
            torch.narrow_copy(x, 1, 1, 2),
        ]


class Scores(nn.Module):
    """Losses by probabilities and with smoothing, distances of pairs, what is most frequent."""

    def forward(self, x: Tensor, n: Tensor) -> list[Tensor]:
        shares, weight = x.softmax(1), torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])
        cubes = x[:, :, None, None, None].expand(4, 5, 2, 2, 4)
        cubes = cubes * torch.arange(16).reshape(2, 2, 4)
        best, places = F.max_pool3d(cubes, 2, return_indices=True)
        return [
            F.cross_entropy(x, n, label_smoothing=0.2),
            F.cross_entropy(x, n, weight, label_smoothing=0.1, ignore_index=2),
            F.cross_entropy(x, n, weight, label_smoothing=0.1, reduction="none"),
            F.cross_entropy(x, shares),
            F.cross_entropy(x, shares, weight, label_smoothing=0.3, reduction="sum"),
            F.pdist(x),
            F.pdist(x, 1.0),
            torch.special.i0e(x),
            torch._C._nn.max_unpool3d(best, places, (2, 2, 4), (2, 2, 2), (0, 0, 0)),
            n.mode()[0],
            (x * 2).round().mode(1, keepdim=True)[0],
            F.pad(x, (-4, 3), mode="reflect"),
            F.pad(x[None], (2, -2), mode="circular"),
            x if torch.equal(n, n) else x * 0,
            torch.where(x > 0, float("nan"), x.round()).unique(),
        ]


class Margins(nn.Module):
    """Losses of pairs, of classes and of what lies somewhere in time."""

    def forward(self, x: Tensor, y: Tensor, side: Tensor, n: Tensor) -> list[Tensor]:
        weight = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])
        several = torch.tensor(
            [[1, 2, -1, 0, 0], [3, 3, 1, -1, 2], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0]]
        )
        gaps = x.masked_fill(x > 1, float("nan"))
        times = torch.stack([x, y, x * 2, y * 2, x - y, x + y]).log_softmax(2)
        labels = torch.tensor([[1, 1, 2], [3, 1, -9], [2, 2, 2], [0, 0, 0]])
        counts, spans = torch.tensor([3, 2, 3, 0]), torch.tensor([6, 4, 4, 5])
        return [
            F.cosine_embedding_loss(x, y, side, margin=0.2),
            F.cosine_embedding_loss(x[0], y[0], side[0], reduction="none"),
            F.hinge_embedding_loss(gaps, side[:, None], 0.7, reduction="none"),
            F.margin_ranking_loss(x, y, side[:, None], 0.1, reduction="sum"),
            F.triplet_margin_loss(x, y, x * y, swap=True, p=1.5),
            F.poisson_nll_loss(x, y.abs() * 3),
            F.poisson_nll_loss(x.abs(), y.abs() * 3, False, True, reduction="none"),
            F.multi_margin_loss(gaps, n, reduction="none"),
            F.multi_margin_loss(x, n, 2, 0.5, weight),
            F.multi_margin_loss(x[0, 0], n[2], reduction="none"),
            F.multi_margin_loss(x[0], n[:1], reduction="none"),
            F.multilabel_margin_loss(x, several, reduction="none"),
            F.multilabel_margin_loss(x[0, 0], n[2], reduction="none"),
            F.ctc_loss(times, labels, spans, counts, blank=4, reduction="none"),
            F.ctc_loss(times, labels, spans, counts, blank=4, zero_infinity=True),
            F.ctc_loss(times, labels.clamp(0).flatten()[:8], (6, 4, 4, 5), (3, 2, 3, 0), 4, "sum"),
            F.ctc_loss(times[:, 0], labels[0], (6,), (3,), 4, "none"),
        ]


class Fractions(nn.Module):
    """Pools whose windows begin where numbers say."""

    def __init__(self) -> None:
        super().__init__()
        given = {"return_indices": True, "_random_samples": torch.rand(2, 3, 2)}
        self.plane = nn.FractionalMaxPool2d((3, 2), (4, 5), **given)
        given["_random_samples"] = torch.rand(2, 1, 3)
        self.space = nn.FractionalMaxPool3d((2, 1, 3), (1, 3, 2), **given)

    def forward(self, x: Tensor) -> list[Tensor]:
        x = x.masked_fill(x > 1.5, float("nan"))
        return [*self.plane(x), *self.space(x[:, None])]


class Nested(nn.Module):
    """An encoder of sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 6, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x: Tensor, padding: Tensor) -> list[Tensor]:
        nested = torch._nested_tensor_from_mask(x, ~padding, False)
        wide = torch.nested.to_padded_tensor(nested, 2.0, (3, 6, 8))
        whole = self.encoder(x, src_key_padding_mask=padding)
        return [whole, wide, torch.nested.to_padded_tensor(nested, 0.0)]
