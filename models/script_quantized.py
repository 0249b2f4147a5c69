"""Modules that torch.ao.quantization has converted, for `script_exports.py`."""

# PyTorch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao import quantization


class Layers(nn.Module):
    """Layers with weights, activations, pools, and several tensors that are combined."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.outward = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(4, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU()
        self.groups = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4, bias=False)
        self.act, self.leaky, self.gate = nn.Hardswish(), nn.LeakyReLU(0.1), nn.Sigmoid()
        self.bounds, self.elu, self.tanh = nn.ReLU6(), nn.ELU(), nn.Tanh()
        self.linear, self.last = nn.Linear(8, 6), nn.Linear(6, 3)
        functional = torch.ao.nn.quantized.FloatFunctional
        self.sum, self.product, self.joined = functional(), functional(), functional()

    def forward(self, x: Tensor) -> list[Tensor]:
        y = self.relu(self.norm(self.conv(self.inward(x))))
        z = self.act(self.groups(y))
        y = self.leaky(self.sum.add(y, z))
        z = self.bounds(self.product.mul(y, self.gate(z)))
        w = F.avg_pool2d(self.joined.cat([self.elu(z), y], 1), 3, 2, 1)
        w = F.max_pool2d(F.interpolate(w, scale_factor=2.0), 2)
        u = self.tanh(w[:, :8]).permute(0, 2, 3, 1).contiguous()
        v = self.last(F.relu(self.linear(u.mean(2))))
        return [self.outward(part) for part in (v, w, u)]


def static() -> nn.Module:
    """All layers quantized by what three calls show of them."""
    torch.backends.quantized.engine = "fbgemm"
    model = quantization.fuse_modules(Layers().eval(), [["conv", "norm", "relu"]])
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    model = quantization.prepare(model)
    for _ in range(3):
        model(torch.randn(2, 4, 8, 8))
    return quantization.convert(model)


def dynamic() -> nn.Module:
    """Linear layers whose weights alone are bytes."""
    torch.backends.quantized.engine = "fbgemm"
    layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return quantization.quantize_dynamic(layers.eval(), {nn.Linear})


class Remembering(nn.Module):
    """Layers and cells that remember, with weights of bytes or of half precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        layers = nn.ModuleList(
            [nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(3, 4, batch_first=True), nn.LSTM(3, 4)]
        )
        cells = nn.ModuleList([nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)])
        kinds = {nn.LSTM, nn.GRU}
        self.layers = quantization.quantize_dynamic(layers.eval(), kinds, dtype)
        self.cells = quantization.quantize_dynamic(cells.eval(), {type(one) for one in cells})

    def forward(self, x: Tensor, lengths: Tensor) -> list[Tensor]:
        y, (h, c) = self.layers[0](x)
        z, last = self.layers[1](x)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        rows, (end, _) = self.layers[2](packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(rows)
        cells = [part for cell in self.cells for part in cell(x[0])]
        return [y, h, c, z, last, padded, end, *cells]


def remembering() -> nn.Module:
    """Of bytes."""
    torch.backends.quantized.engine = "fbgemm"
    return Remembering(torch.qint8)


def half() -> nn.Module:
    """Of half precision."""
    torch.backends.quantized.engine = "fbgemm"
    return Remembering(torch.float16)
