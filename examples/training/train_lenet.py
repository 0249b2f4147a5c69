"""
Train the network of `digits_lenet.prototxt` in PyTorch and write `digits_lenet.caffemodel`, as
Caffe does, and `digits_lenet.npz`, what PyTorch computes for the held-back images, into
examples/digits.

The files are in the repository; this program documents where they come from. It needs
PyTorch, scikit-learn and lowerdeck.
"""

from collections.abc import Iterator

import torch
from dataset import DIGITS, record, split
from google.protobuf import text_format
from torch import nn
from train_cnn import prepare, train

from lowerdeck.dialects.caffe import caffe_pb2

MODEL = DIGITS / "digits_lenet.caffemodel"
MOVING_AVERAGE_FRACTION = 0.9
"""What PyTorch's default momentum of 0.1 keeps of a moving average."""


class LeNet(nn.Module):
    """The layers of the prototxt in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.pool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2a = nn.Conv2d(6, 24, kernel_size=3, padding=1, bias=False)
        self.norm2a = nn.BatchNorm2d(24)
        self.smooth = nn.AvgPool2d(3, stride=1, padding=1)
        self.conv2b = nn.Conv2d(10, 24, kernel_size=1)
        self.pool2 = nn.AvgPool2d(3, stride=2, ceil_mode=True)
        self.ip1 = nn.Linear(192, 64)
        self.logits = nn.Linear(64, 10)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        pool1 = self.pool1(self.norm1(self.conv1(data)).relu())
        shapes, tones = pool1.split([6, 10], dim=1)
        conv2a = self.norm2a(self.conv2a(shapes)).relu()
        conv2b = self.conv2b(self.smooth(tones)).relu()
        pool2 = self.pool2(torch.cat([conv2a, conv2b], dim=1))
        return self.logits(self.ip1(pool2.flatten(1)).relu())

    def blobs(self) -> Iterator[tuple[str, list[torch.Tensor]]]:
        """The name of each layer with weights, and its blobs."""
        for name in ("conv1", "conv2a", "conv2b", "ip1", "logits"):
            yield name, list(self.get_submodule(name).parameters())
        for name, norm in (("conv1", self.norm1), ("conv2a", self.norm2a)):
            yield f"{name}/bn", accumulated(norm)
            yield f"{name}/scale", [norm.weight, norm.bias]


def accumulated(norm: nn.BatchNorm2d) -> list[torch.Tensor]:
    """
    Mean, variance and the factor that both have to be divided by.

    Caffe multiplies its sums by `moving_average_fraction` and adds the batch's, without dividing.
    """
    batches = int(norm.num_batches_tracked)
    fraction = MOVING_AVERAGE_FRACTION
    factor = (1 - fraction**batches) / (1 - fraction)
    return [norm.running_mean * factor, norm.running_var * factor, torch.tensor([factor])]


def export(model: LeNet) -> None:
    """Write the layers of the prototxt with their blobs."""
    net = caffe_pb2.NetParameter()
    text_format.Parse(MODEL.with_suffix(".prototxt").read_text(), net)
    layers = {layer.name: layer for layer in net.layer}
    for name, blobs in model.blobs():
        for values in blobs:
            blob = layers[name].blobs.add()
            blob.shape.dim.extend(values.shape)
            blob.data.extend(values.detach().numpy().ravel())
    MODEL.write_bytes(net.SerializeToString(deterministic=True))


def main() -> None:
    prepare()
    data = split()
    model = LeNet()
    train(model, torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels))
    model.eval()
    export(model)
    with torch.no_grad():
        logits = model(torch.from_numpy(data.held_images))
        outputs = {"logits": logits.numpy(), "prob": logits.softmax(dim=1).numpy()}
    record(MODEL, outputs, data.held_labels)


if __name__ == "__main__":
    main()
