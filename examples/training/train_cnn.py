"""
Train the convolutional network in PyTorch and write `digits.onnx` and `digits.npz`, PyTorch's
logits for the held-back images, into examples/digits.

Both files are in the repository; this program documents where they come from. It needs
PyTorch, onnx and scikit-learn.
"""

import torch
from dataset import DIGITS, SEED, record, split
from torch import nn

MODEL = DIGITS / "digits.onnx"
EPOCHS = 40
BATCH = 64


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class DigitsNet(nn.Module):
    """8x8 gray images to ten classes: three convolution blocks, one pool, one classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            block(1, 16), block(16, 32), nn.MaxPool2d(2), block(32, 48), nn.AdaptiveAvgPool2d(1)
        )
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10)
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(image))


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = EPOCHS * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for picked in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[picked]), labels[picked])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(picked)
        print(f"epoch {epoch + 1:2}  loss {total / len(images):.4f}")


def export(model: nn.Module, example: torch.Tensor) -> None:
    """Write the graph as trained: BatchNormalization is kept, only the batch is dynamic."""
    model.eval()
    torch.onnx.export(
        model,
        (example,),
        MODEL,
        dynamo=False,
        opset_version=17,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
    )


def prepare() -> None:
    """Make PyTorch give the same numbers in every run."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def main() -> None:
    prepare()
    data = split()
    model = DigitsNet()
    train(model, torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels))
    held_back = torch.from_numpy(data.held_images)
    export(model, held_back[:2])
    with torch.no_grad():
        logits = model(held_back).numpy()
    record(MODEL, {"logits": logits}, data.held_labels)


if __name__ == "__main__":
    main()
