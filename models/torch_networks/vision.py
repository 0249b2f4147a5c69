"""Networks of torchvision, with random weights."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from models.torch_networks.base import (
    ALL,
    STATIC,
    Network,
    keywords,
    normal,
    plain,
)


def of_vision(kind: str, name: str, **options: Any) -> Callable[[], nn.Module]:
    """A model of torchvision with random weights."""

    def build() -> nn.Module:
        import torchvision

        module = getattr(torchvision.models, kind) if kind else torchvision.models
        return getattr(module, name)(weights=None, **options)

    return build


IMAGES = ({0: torch.export.Dim.DYNAMIC},)


def vision() -> Iterator[Network]:
    """Classification, segmentation, video and optical flow."""
    sizes = {
        "resnet18": 64,
        "resnext50_32x4d": 64,
        "mobilenet_v2": 64,
        "mobilenet_v3_small": 64,
        "mobilenet_v3_large": 64,
        "efficientnet_b0": 64,
        "efficientnet_v2_s": 64,
        "swin_t": 64,
        "swin_v2_t": 64,
        "convnext_tiny": 64,
        "densenet121": 64,
        "inception_v3": 96,
        "googlenet": 64,
        "squeezenet1_1": 64,
        "shufflenet_v2_x0_5": 64,
        "mnasnet0_5": 64,
        "regnet_y_400mf": 64,
        "alexnet": 64,
        "vgg11_bn": 32,
        "maxvit_t": 224,
        "vit_b_32": 224,
    }
    for name, size in sizes.items():
        options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
        forms = STATIC if name == "vit_b_32" else ALL
        yield Network(
            name, of_vision("", name, **options), plain(normal(2, 3, size, size)), IMAGES, forms
        )
    for name in ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
        options = {"weights_backbone": None}
        hw = ({0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim("h", min=33, max=512)},)
        yield Network(
            name, of_vision("segmentation", name, **options), plain(normal(2, 3, 64, 64)), hw, ALL
        )
    for name, shape in {
        "r3d_18": (1, 3, 4, 32, 32),
        "mc3_18": (1, 3, 4, 32, 32),
        "r2plus1d_18": (1, 3, 4, 32, 32),
        "s3d": (1, 3, 16, 224, 224),
        "mvit_v2_s": (1, 3, 16, 224, 224),
        "swin3d_t": (1, 3, 4, 64, 64),
    }.items():
        yield Network(name, of_vision("video", name), plain(normal(*shape)))
    yield Network(
        "raft_small",
        of_vision("optical_flow", "raft_small"),
        keywords(
            image1=normal(1, 3, 128, 128), image2=normal(1, 3, 128, 128), num_flow_updates=lambda: 3
        ),
        forms=("training", "core"),
    )


def suppressed(boxes: Any, scores: Any, classes: Any, threshold: float) -> Any:
    """Boxes that are kept of each class: those of others are far away."""
    from torchvision.ops import nms

    far = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max() + 1
    return nms(boxes + (classes.to(boxes) * far)[:, None], scores, threshold)


class Detector(nn.Module):
    """A detector with tensors in place of lists and dictionaries."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        # torchvision's own decides by the number of boxes, which export does not know.
        boxes: Any = importlib.import_module("torchvision.ops.boxes")
        boxes.batched_nms = suppressed

    def forward(self, image: torch.Tensor) -> Any:
        return tuple(self.model([image])[0].values())


def detection() -> Iterator[Network]:
    """Detectors with suppression."""
    small = {"min_size": 64, "max_size": 96}
    options = {
        "fasterrcnn_mobilenet_v3_large_320_fpn": small,
        "ssd300_vgg16": {},
        "ssdlite320_mobilenet_v3_large": {},
        "RetinaNet": small,
        "FCOS": small,
        "MaskRCNN": small,
        "KeypointRCNN": small,
    }
    for name, given in options.items():

        def build(name: str = name, given: dict[str, Any] = given) -> nn.Module:
            if name[0].isupper():
                model = with_small_backbone(name, **given)
            else:
                model = of_vision("detection", name, weights_backbone=None, **given)()
            if hasattr(model, "roi_heads"):
                model.roi_heads.box_predictor.cls_score.weight.data *= 20
                model.roi_heads.detections_per_img = 20
            return Detector(model)

        settle = spread if name.startswith("ssdlite") else None
        yield Network(name.lower(), build, plain(lambda: torch.rand(3, 64, 80)), settle=settle)


def spread(detector: Any) -> None:
    """
    Let scores of a detector differ: by the statistics of images, and larger weights at the end.

    The order of boxes whose scores are equal, or all but equal, is not certain.
    """
    model = detector.model
    norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    momentum = [layer.momentum for layer in norms]
    model.eval()
    for layer in norms:
        layer.train().momentum = 1.0
    with torch.no_grad():
        model([torch.rand(3, 64, 80) for _ in range(2)])
        for layer, kept in zip(norms, momentum, strict=True):
            layer.eval().momentum = kept
        for weight in model.head.classification_head.parameters():
            if weight.dim() == 4 and weight.shape[2:] == (1, 1):
                weight.mul_(5)


def with_small_backbone(name: str, **options: Any) -> nn.Module:
    """A detector of torchvision over the pyramid of a ResNet-18."""
    from torchvision.models import detection as kinds
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
    return getattr(kinds, name)(backbone, num_classes=2, **options)
