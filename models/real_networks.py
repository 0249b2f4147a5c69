"""Small networks in PyTorch, of kinds that torchvision lacks, for `real_exports.py`."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from models.real_inputs import Inputs, edges, normal, uniform, whole


@dataclass(frozen=True)
class Network:
    """How a network is built, its sets of inputs, and its dynamic dimensions."""

    build: Callable[[], nn.Module]
    inputs: Sequence[Inputs]
    dynamic: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    dynamo: bool = True


NETWORKS: dict[str, Network] = {}


# Attention


def heads(x: Any, count: int) -> Any:
    """(batch, length, width) as (batch, heads, length, width of a head)."""
    return x.unflatten(-1, (count, x.shape[-1] // count)).transpose(1, 2)


class Attention(nn.Module):
    """Of several heads; keys and values come from `source`, by default from the input itself."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Any, source: Any = None, bias: Any = None, causal: bool = False) -> Any:
        source = x if source is None else source
        q, k, v = heads(self.q(x), self.count), self.k(source), self.v(source)
        k, v = heads(k, self.count), heads(v, self.count)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))


class RmsNorm(nn.Module):
    """Divides by the root of the mean of squares."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Layer(nn.Module):
    """A layer of a transformer, with attention to a second sequence if it is given."""

    def __init__(self, width: int, count: int, crosses: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = Attention(width, count), Attention(width, count) if crosses else None
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any, source: Any = None, causal: bool = False) -> Any:
        x = x + self.own(self.norms[0](x), causal=causal)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), source)
        return x + self.mlp(self.norms[2](x))


class WhisperEncoder(nn.Module):
    """Two convolutions over time and a transformer."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.first = nn.Conv1d(80, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.randn(750, width) * 0.1)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, mel: Any) -> Any:
        x = F.gelu(self.second(F.gelu(self.first(mel)))).transpose(1, 2)
        x = x + self.positions[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class WhisperDecoder(nn.Module):
    """Causal attention, and attention to what an encoder gave."""

    def __init__(self, width: int = 128, words: int = 500) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(64, width) * 0.1)
        self.layers = nn.ModuleList(Layer(width, 4, crosses=True) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any, audio: Any) -> Any:
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, audio, causal=True)
        return self.norm(x) @ self.embedding.weight.T


class T5Encoder(nn.Module):
    """Relative positions in buckets as a bias of attention, RMS norms, gated units."""

    def __init__(self, width: int = 96, count: int = 4) -> None:
        super().__init__()
        self.embedding, self.bias = nn.Embedding(400, width), nn.Embedding(16, count)
        self.attention = nn.ModuleList(Attention(width, count) for _ in range(3))
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(7))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(3))
        self.downs = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.ups = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(3))

    def forward(self, tokens: Any) -> Any:
        place = torch.arange(tokens.shape[1])
        distance = place[None, :] - place[:, None]
        near = distance.abs().clamp(max=15).float()
        far = 4 + (torch.log(near.clamp(min=1) / 4) / math.log(4) * 4).long().clamp(max=3)
        bucket = torch.where(near < 4, near.long(), far) + 8 * (distance > 0).long()
        bias = self.bias(bucket).permute(2, 0, 1)[None]
        x = self.embedding(tokens)
        for index, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * index](x), bias=bias)
            y = self.norms[2 * index + 1](x)
            x = x + self.downs[index](F.gelu(self.gates[index](y)) * self.ups[index](y))
        return self.norms[-1](x)


class LlamaStep(nn.Module):
    """Rotary positions, grouped queries, and caches of keys and values that grow."""

    def __init__(self, width: int = 128, count: int = 4, groups: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.count, self.groups, self.size = count, groups, width // count
        self.embedding = nn.Embedding(600, width)
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(2 * layers + 1))
        narrow = groups * self.size
        self.q = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.k = nn.ModuleList(nn.Linear(width, narrow, bias=False) for _ in range(layers))
        self.v = nn.ModuleList(nn.Linear(width, narrow, bias=False) for _ in range(layers))
        self.o = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, 3 * width, bias=False) for _ in range(layers))
        self.ups = nn.ModuleList(nn.Linear(width, 3 * width, bias=False) for _ in range(layers))
        self.downs = nn.ModuleList(nn.Linear(3 * width, width, bias=False) for _ in range(layers))
        rates = 10000.0 ** (-torch.arange(0, self.size, 2) / self.size)
        self.register_buffer("rates", rates)

    def rotated(self, x: Any, start: Any) -> Any:
        angle = (torch.arange(x.shape[2]) + start)[:, None] * self.rates
        low, high = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

    def forward(self, tokens: Any, keys: Any, values: Any) -> Any:
        x, start, new_keys, new_values = self.embedding(tokens), keys.shape[3], [], []
        allowed = torch.arange(start + tokens.shape[1])[None, :] <= (
            torch.arange(tokens.shape[1])[:, None] + start
        )
        for index in range(len(self.q)):
            y = self.norms[2 * index](x)
            q = self.rotated(heads(self.q[index](y), self.count), start)
            k = self.rotated(heads(self.k[index](y), self.groups), start)
            k = torch.cat([keys[index], k], 2)
            v = torch.cat([values[index], heads(self.v[index](y), self.groups)], 2)
            new_keys.append(k)
            new_values.append(v)
            times = self.count // self.groups
            k, v = (each.repeat_interleave(times, 1) for each in (k, v))
            scores = (q @ k.transpose(2, 3) / math.sqrt(self.size)).masked_fill(~allowed, -1e4)
            x = x + self.o[index]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            y = self.norms[2 * index + 1](x)
            x = x + self.downs[index](F.silu(self.gates[index](y)) * self.ups[index](y))
        logits = self.norms[-1](x) @ self.embedding.weight.T
        return logits, torch.stack(new_keys), torch.stack(new_values)


class DetrSmall(nn.Module):
    """A convolutional network, a transformer from it to queries, classes and boxes."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in ((3, 16), (16, 32), (32, width), (width, width)):
            layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
        self.backbone = nn.Sequential(*layers)
        self.queries = nn.Parameter(torch.randn(20, width))
        self.encoder = nn.ModuleList(Layer(width, 4) for _ in range(2))
        self.decoder = nn.ModuleList(Layer(width, 4, crosses=True) for _ in range(2))
        self.classes, self.boxes = nn.Linear(width, 11), nn.Linear(width, 4)

    def forward(self, image: Any) -> Any:
        x = self.backbone(image).flatten(2).transpose(1, 2)
        for layer in self.encoder:
            x = layer(x)
        y = self.queries.expand(x.shape[0], -1, -1)
        for layer in self.decoder:
            y = layer(y, x)
        return self.classes(y), self.boxes(y).sigmoid()


# Convolutions


class DiffusionUNet(nn.Module):
    """A step of diffusion: group norms, embedded time, attention in the middle."""

    class Block(nn.Module):
        """Two convolutions, with time added between them."""

        def __init__(self, before: int, after: int, time: int) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.GroupNorm(8, before), nn.GroupNorm(8, after)])
            self.first = nn.Conv2d(before, after, 3, padding=1)
            self.second = nn.Conv2d(after, after, 3, padding=1)
            self.time, self.skip = nn.Linear(time, after), nn.Conv2d(before, after, 1)

        def forward(self, x: Any, time: Any) -> Any:
            y = self.first(F.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
            return self.second(F.silu(self.norms[1](y))) + self.skip(x)

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.enter, self.leave = (
            nn.Conv2d(4, width, 3, padding=1),
            nn.Conv2d(width, 4, 3, padding=1),
        )
        self.down = nn.ModuleList([self.Block(width, width, 64), self.Block(width, 2 * width, 64)])
        self.shrink = nn.Conv2d(2 * width, 2 * width, 3, 2, 1)
        self.middle, self.attention = self.Block(2 * width, 2 * width, 64), Attention(2 * width, 4)
        self.up = nn.ModuleList(
            [self.Block(4 * width, width, 64), self.Block(2 * width, width, 64)]
        )

    def forward(self, sample: Any, step: Any) -> Any:
        rates = torch.exp(-math.log(10000) * torch.arange(16) / 16)
        angle = step[:, None] * rates
        time = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        first = self.down[0](self.enter(sample), time)
        second = self.down[1](first, time)
        x = self.middle(self.shrink(second), time)
        flat = x.flatten(2).transpose(1, 2)
        x = (flat + self.attention(flat)).transpose(1, 2).reshape(x.shape)
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        x = self.up[0](torch.cat([x, second], 1), time)
        return self.leave(self.up[1](torch.cat([x, first], 1), time))


class SpatialTransformer(nn.Module):
    """Numbers of an affine map from an image, which is then sampled through it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 8, 5, 2), nn.ReLU()
        )
        self.theta = nn.Linear(8, 6)
        self.head = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, image: Any) -> Any:
        theta = self.theta(self.features(image).mean((2, 3))).view(-1, 2, 3)
        theta = theta + torch.eye(2, 3)
        grid = F.affine_grid(theta, [image.shape[0], 3, 48, 48], align_corners=False)
        return self.head(F.grid_sample(image, grid, align_corners=False))


class Vocoder(nn.Module):
    """Magnitudes and angles of a short-time Fourier transform, and a network on them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(128))
        self.net = nn.Sequential(nn.Conv1d(65, 64, 3, padding=1), nn.ELU(), nn.Conv1d(64, 65, 1))

    def forward(self, audio: Any) -> Any:
        found = torch.stft(audio, 128, 32, window=self.window, return_complex=True)
        parts = torch.view_as_real(found)
        size = (parts.square().sum(-1) + 1e-6).sqrt()
        return self.net(size.log()), torch.atan2(parts[..., 1], parts[..., 0] + 1e-3)


# Sequences


class LstmCtc(nn.Module):
    """Text from lines of an image: convolutions, two recurrent layers in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.lstm = nn.LSTM(32 * 8, 48, 2, bidirectional=True)
        self.head = nn.Linear(96, 60)

    def forward(self, image: Any) -> Any:
        x = self.conv(image).permute(3, 0, 1, 2).flatten(2)
        return self.head(self.lstm(x)[0]).log_softmax(-1)


class GruTagger(nn.Module):
    """Embedded words, a gated recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(300, 48), nn.Linear(64, 12)
        self.gru = nn.GRU(48, 32, bidirectional=True, batch_first=True)

    def forward(self, words: Any) -> Any:
        return self.head(self.gru(self.embedding(words))[0])


class Mamba(nn.Module):
    """A selective state space with its recurrence step by step."""

    def __init__(self, width: int = 64, states: int = 8) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.conv = nn.Conv1d(width, width, 4, groups=width, padding=3)
        self.select, self.delta = nn.Linear(width, 2 * states + 8), nn.Linear(8, width)
        self.rates, self.skip = (
            nn.Parameter(torch.rand(width, states)),
            nn.Parameter(torch.ones(width)),
        )
        self.states = states

    def forward(self, x: Any) -> Any:
        length = x.shape[1]
        y, gate = self.enter(x).chunk(2, -1)
        y = F.silu(self.conv(y.transpose(1, 2))[..., :length]).transpose(1, 2)
        low, b, c = self.select(y).split([8, self.states, self.states], -1)
        delta = F.softplus(self.delta(low))
        decay = torch.exp(-delta[..., None] * self.rates.exp())
        push = delta[..., None] * b[:, :, None, :] * y[..., None]
        state, outputs = torch.zeros_like(push[:, 0]), []
        for step in range(length):
            state = decay[:, step] * state + push[:, step]
            outputs.append((state * c[:, step, None, :]).sum(-1))
        return self.leave((torch.stack(outputs, 1) + y * self.skip) * F.silu(gate))


# Others


class GraphNetwork(nn.Module):
    """Two rounds of messages along edges, summed and averaged at the nodes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(16, width), nn.Linear(width, 4)
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.update = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))

    def forward(self, nodes: Any, ends: Any) -> Any:
        x, (source, target) = F.relu(self.enter(nodes)), (ends[0], ends[1])
        for message, update in zip(self.message, self.update, strict=True):
            sent = F.relu(message(torch.cat([x[source], x[target]], -1)))
            index = target[:, None].expand(-1, sent.shape[1])
            total = torch.zeros_like(x).scatter_add(0, index, sent)
            count = torch.zeros_like(x).scatter_add(0, index, torch.ones_like(sent))
            x = F.relu(update(torch.cat([x, total / count.clamp(min=1)], -1)))
        return self.head(x).softmax(-1)


class Experts(nn.Module):
    """The two best of eight networks for each token, weighted."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 8)
        self.up = nn.Parameter(torch.randn(8, width, 2 * width) * 0.1)
        self.down = nn.Parameter(torch.randn(8, 2 * width, width) * 0.1)

    def forward(self, x: Any) -> Any:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        hidden = F.silu(x[:, None, None, :] @ self.up[chosen])
        return ((hidden @ self.down[chosen])[:, :, 0] * weights[..., None]).sum(1)


class EarlyExit(nn.Module):
    """The second half runs only if the first is not sure."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(32, 64), nn.Linear(64, 10)
        self.more = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: Any) -> Any:
        hidden = F.relu(self.first(x))
        early = self.head(hidden)
        sure = early.softmax(-1).max() > 0.3
        return torch.cond(sure, lambda h, e: e.clone(), lambda h, e: self.more(h), (hidden, early))


def _register() -> None:
    batch = {"image": {0: "batch"}}
    add = NETWORKS.__setitem__
    add("whisper_encoder", Network(
        WhisperEncoder, [{"mel": normal(1, 80, 300)}, {"mel": normal(2, 80, 120)}],
        {"mel": {0: "batch", 2: "frames"}}, dynamo=False,
    ))  # fmt: skip
    add("whisper_decoder", Network(
        WhisperDecoder,
        [{"tokens": whole(500, 1, 12), "audio": normal(1, 150, 128)},
         {"tokens": whole(500, 2, 5), "audio": normal(2, 60, 128)}],
        {"tokens": {0: "batch", 1: "length"}, "audio": {0: "batch", 1: "frames"}}, dynamo=False,
    ))  # fmt: skip
    add("t5_encoder", Network(
        T5Encoder, [{"tokens": whole(400, 1, 32)}, {"tokens": whole(400, 3, 11)}],
        {"tokens": {0: "batch", 1: "length"}}, dynamo=False,
    ))  # fmt: skip
    caches = {0: "batch", 1: "length"}, {1: "batch", 3: "past"}
    add("llama_kv", Network(
        LlamaStep,
        [{"tokens": whole(600, 1, 8), "keys": normal(2, 1, 2, 16, 32),
          "values": normal(2, 1, 2, 16, 32)},
         {"tokens": whole(600, 2, 3), "keys": normal(2, 2, 2, 5, 32),
          "values": normal(2, 2, 2, 5, 32)}],
        {"tokens": caches[0], "keys": caches[1], "values": caches[1]},
    ))  # fmt: skip
    add("detr_small", Network(
        DetrSmall, [{"image": normal(1, 3, 96, 128)}, {"image": normal(2, 3, 96, 128)}],
        batch, dynamo=False,
    ))  # fmt: skip
    add("diffusion_unet", Network(
        DiffusionUNet,
        [{"sample": normal(1, 4, 32, 32), "step": uniform(1)},
         {"sample": normal(2, 4, 16, 24), "step": uniform(2)}],
        {"sample": {0: "batch", 2: "height", 3: "width"}, "step": {0: "batch"}}, dynamo=False,
    ))  # fmt: skip
    add("stn_grid_sample", Network(
        SpatialTransformer, [{"image": normal(1, 3, 48, 48)}, {"image": normal(2, 3, 40, 56)}],
        {"image": {0: "batch", 2: "height", 3: "width"}},
    ))  # fmt: skip
    add("stft_vocoder", Network(Vocoder, [{"audio": normal(1, 2048)}, {"audio": normal(1, 2048)}]))
    add("lstm_ctc", Network(
        LstmCtc, [{"image": normal(1, 1, 32, 96)}, {"image": normal(1, 1, 32, 160)}],
        {"image": {3: "width"}}, dynamo=False,
    ))  # fmt: skip
    add("gru_tagger", Network(
        GruTagger, [{"words": whole(300, 1, 20)}, {"words": whole(300, 4, 7)}],
        {"words": {0: "batch", 1: "length"}}, dynamo=False,
    ))  # fmt: skip
    add("mamba_unrolled", Network(Mamba, [{"x": normal(1, 12, 64)}, {"x": normal(1, 12, 64)}]))
    add("gnn_scatter", Network(
        GraphNetwork,
        [{"nodes": normal(40, 16), "ends": edges(40, 150)},
         {"nodes": normal(9, 16), "ends": edges(9, 31)}],
        {"nodes": {0: "nodes"}, "ends": {1: "edges"}},
    ))  # fmt: skip
    add("moe_topk", Network(
        Experts, [{"x": normal(16, 48)}, {"x": normal(3, 48)}], {"x": {0: "tokens"}}, dynamo=False,
    ))  # fmt: skip
    add("early_exit", Network(EarlyExit, [{"x": normal(1, 32)}, {"x": normal(1, 32)}]))


_register()
