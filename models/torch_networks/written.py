"""Networks that are written out: recurrent, graphs, spectra, states."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from models.torch_networks.base import (
    ALL,
    STATIC,
    Network,
    ids,
    normal,
    plain,
)


def written() -> Iterator[Network]:
    """Recurrent and graph networks, and forms that libraries write."""
    open_text = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    for name, kind, options in (
        ("lstm", nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        ("lstm_projected", nn.LSTM, {"proj_size": 3}),
        ("gru", nn.GRU, {"num_layers": 2, "batch_first": True}),
        ("rnn_tanh", nn.RNN, {"bidirectional": True}),
        ("rnn_relu", nn.RNN, {"nonlinearity": "relu", "bias": False}),
    ):
        build = (lambda kind, options: lambda: kind(4, 5, **options))(kind, options)
        yield Network(f"w_{name}", build, plain(normal(3, 6, 4)), forms=STATIC)
    yield Network(
        "w_packed",
        Packed,
        plain(normal(3, 6, 4), lambda: torch.tensor([6, 4, 1])),
        forms=("trace",),
    )
    yield Network(
        "w_gcn",
        Graph,
        plain(normal(7, 5), ids(7, 2, 15)),
        (None, {1: torch.export.Dim.DYNAMIC}),
        ALL,
    )
    yield Network(
        "w_transformer",
        lambda: nn.Transformer(16, 4, 2, 2, 24, batch_first=True),
        plain(normal(2, 7, 16), normal(2, 5, 16)),
        forms=ALL,
        open=(
            {0: torch.export.Dim("b", min=2), 1: torch.export.Dim.DYNAMIC},
            {0: torch.export.Dim("b", min=2), 1: torch.export.Dim.DYNAMIC},
        ),
    )
    yield Network(
        "w_encoder",
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2),
        plain(normal(2, 7, 16)),
        open_text,
        ALL,
    )
    yield Network("w_stft", Spectrum, plain(normal(2, 400)))
    yield Network("w_fft", Fourier, plain(normal(2, 3, 8, 8)))
    yield Network("w_deform", Deform, plain(normal(2, 4, 8, 8)))
    yield Network("w_scan", Selective, plain(normal(2, 9, 8)), open_text, ALL)
    yield Network(
        "w_memory",
        Remember,
        lambda: [((torch.randn(2, 3),), {}) for _ in range(3)],
        forms=("training", "core"),
    )
    yield Network("w_moe", Experts, plain(normal(2, 5, 8)))
    yield Network("w_ctc", Decode, plain(normal(2, 9, 6)))
    yield Network("w_wavenet", Wave, plain(normal(1, 1, 64)), ({2: torch.export.Dim.DYNAMIC},), ALL)


class Packed(nn.Module):
    """An LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, (h, c) = self.lstm(packed)
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0], h, c


class Graph(nn.Module):
    """Convolutions and attention over edges, as torch_geometric computes them."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(5, 8), nn.Linear(8, 3)
        self.score = nn.Linear(16, 1)

    def forward(self, x: Any, edges: Any) -> Any:
        n = x.shape[0]
        source, target = edges[0], edges[1]
        degree = torch.zeros(n).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        scale = degree.clamp(min=1).rsqrt()
        y = self.enter(x)
        messages = y[source] * (scale[source] * scale[target])[:, None]
        y = torch.zeros_like(y).index_add_(0, target, messages).relu() + y
        raw = F.leaky_relu(self.score(torch.cat([y[source], y[target]], -1)).squeeze(-1), 0.2)
        top = torch.full((n,), -torch.inf).scatter_reduce(0, target, raw, "amax")
        weight = (raw - top[target]).exp()
        total = torch.zeros(n).index_add(0, target, weight)
        weight = weight / total[target]
        y = torch.zeros_like(y).index_put((target,), weight[:, None] * y[source], accumulate=True)
        most = torch.zeros_like(y).scatter_reduce_(
            0, target[:, None].expand(-1, 8), y[source], "mean", include_self=False
        )
        return self.leave(y), most, torch.bincount(target, minlength=n)


class Spectrum(nn.Module):
    """Mel spectra of sound."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("mels", torch.rand(33, 10))

    def forward(self, x: Any) -> Any:
        s = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        power = s.abs().pow(2)
        mel = (power.transpose(1, 2) @ self.mels).clamp(min=1e-5).log10()
        back = torch.istft(s, 64, 16, window=self.window, length=400)
        return mel, torch.view_as_real(s), back


class Fourier(nn.Module):
    """A filter in the frequency domain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 8, 5, 2))

    def forward(self, x: Any) -> Any:
        y = torch.fft.rfft2(x, norm="ortho") * torch.view_as_complex(self.weight)
        z = torch.fft.irfft2(y, s=x.shape[-2:], norm="ortho")
        return z, torch.fft.fft(x).real, torch.fft.fftshift(torch.fft.fft2(x).abs())


class Deform(nn.Module):
    """A deformable convolution."""

    def __init__(self) -> None:
        super().__init__()
        import torchvision

        self.offset, self.mask = nn.Conv2d(4, 18, 3, 1, 1), nn.Conv2d(4, 9, 3, 1, 1)
        self.conv = torchvision.ops.DeformConv2d(4, 6, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        return self.conv(x, self.offset(x), self.mask(x).sigmoid())


class Selective(nn.Module):
    """A selective scan by cumulative sums."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.a = nn.Linear(8, 24), nn.Parameter(torch.rand(8))

    def forward(self, x: Any) -> Any:
        u, delta, gate = self.enter(x).chunk(3, -1)
        step = F.softplus(delta)
        decay = torch.cumsum(-step * self.a, 1)
        return (torch.cumsum(u * step * torch.exp(-decay), 1) * torch.exp(decay)) * F.silu(gate)


class Remember(nn.Module):
    """A ring of inputs, written at a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 2, 3))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.ring[self.place % 4] = x
        self.ring.roll(1, 0)
        self.place += 1
        return self.ring.mean(0) * self.place


class Experts(nn.Module):
    """A mixture of experts, of which two are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = (nn.Parameter(torch.randn(4, 8, 8)) for _ in range(2))

    def forward(self, x: Any) -> Any:
        flat = x.flatten(0, 1)
        weight, chosen = self.gate(flat).softmax(-1).topk(2)
        weight = weight / weight.sum(-1, keepdim=True)
        hidden = F.silu(torch.einsum("td,tkdf->tkf", flat, self.up[chosen]))
        y = torch.einsum("tkf,tkfd,tk->td", hidden, self.down[chosen], weight)
        counts = F.one_hot(chosen, 4).sum((0, 1))
        return y.view_as(x), counts


class Decode(nn.Module):
    """A greedy decoding: the best letter of each frame, without repetitions."""

    def forward(self, x: Any) -> Any:
        best = x.log_softmax(-1).argmax(-1)
        kept = torch.ones_like(best, dtype=torch.bool)
        kept[:, 1:] = best[:, 1:] != best[:, :-1]
        kept &= best != 0
        place = kept.cumsum(1) - 1
        result = torch.zeros_like(best).scatter(
            1, torch.where(kept, place, best.shape[1] - 1), best
        )
        return torch.where(kept, best, 0), kept.sum(1), result.amax(1)


class Wave(nn.Module):
    """Dilated causal convolutions with weight norm."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.convs = nn.ModuleList(
            norm(nn.Conv1d(1 if k == 0 else 8, 16, 2, dilation=2**k)) for k in range(4)
        )

    def forward(self, x: Any) -> Any:
        for k, conv in enumerate(self.convs):
            y = F.glu(conv(F.pad(x, (2**k, 0))), 1)
            x = y if k == 0 else x + y
        return x
