"""
Train the example network and write `digits.onnx` and `held_back.npz` beside this file.

Both files are in the repository; this program documents where they come from. It needs
PyTorch and scikit-learn, which neither lowerdeck nor the demo does.
"""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).parent
SEED = 20
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
        HERE / "digits.onnx",
        dynamo=False,
        opset_version=17,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
    )


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    pixels = (digits.images / 16.0).astype(np.float32)[:, None]
    train_x, held_x, train_y, held_y = train_test_split(
        pixels, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    model = DigitsNet()
    train(model, torch.from_numpy(train_x), torch.from_numpy(train_y))
    export(model, torch.from_numpy(held_x[:2]))
    with torch.no_grad():
        logits = model(torch.from_numpy(held_x)).numpy()
    accuracy = (logits.argmax(axis=1) == held_y).mean()
    print(f"held-back accuracy {accuracy:.2%} on {len(held_y)} images")
    np.savez_compressed(
        HERE / "held_back.npz", images=held_x, labels=held_y.astype(np.int64), logits=logits
    )


if __name__ == "__main__":
    main()
