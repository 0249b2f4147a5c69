"""
Whole models at the sizes of deployment, for which no schedule was tuned.

    python -m models.other_exports FOLDER [NAME ...]
    python -m bench.peers FOLDER

The first runs in a Python that has the packages of `real_models.py install` and needs nothing of
this project. It writes NAME.onnx, with fixed sizes and random weights, and its inputs, NAME.npz,
arrays "input:<tensor>"; what is there already stays. Names that end in `_f16` are the same networks
with weights and activations in half precision. The exit status is 1 if one cannot be made.
"""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from models import other_networks as networks
from models.exporting import Case, detector, from_torch, make_all, output, vision
from models.real_inputs import Inputs, normal, ones, uniform, whole
from models.real_networks import LlamaStep

CASES: dict[str, Case] = {}

IMAGE = 1, 3, 224, 224


def add(name: str, build: Callable[[], Any], inputs: Inputs, **options: Any) -> None:
    """A case of one set of inputs."""
    CASES[name] = from_torch(build, inputs, **options)


def add_half(name: str, build: Callable[[], Any], inputs: Inputs, **options: Any) -> None:
    """The same in half precision; `inputs` are of the types that it takes then."""
    add(f"{name}_f16", lambda: build().half(), inputs, **options)


def step(dtype: Any = np.float32) -> Inputs:
    """A token, and keys and values of 255 before it."""
    caches = normal(1, 1, 4, 255, 64, dtype=dtype)
    return {"tokens": whole(600, 1, 1), "keys": caches, "values": caches}


def llama() -> Any:
    """A block of a language model, as wide as those of 1.1 billion weights."""
    return LlamaStep(width=2048, count=32, groups=4, layers=1)


def masks() -> Any:
    """A detector that is sure of something: random weights give all classes the same score."""
    model = detector(
        "maskrcnn_resnet50_fpn",
        min_size=224,
        max_size=320,
        rpn_post_nms_top_n_test=100,
        box_detections_per_img=20,
    )
    scores = model.model.roi_heads.box_predictor.cls_score
    scores.weight.data *= 20
    return model


def _register() -> None:
    for name in (
        "resnext50_32x4d",
        "regnet_y_400mf",
        "regnet_y_8gf",
        "mobilenet_v3_large",
        "shufflenet_v2_x0_5",
        "convnext_tiny",
        "swin_t",
    ):
        add(name, vision(name=name), {"image": normal(*IMAGE)})
    segmentation = vision("segmentation", "deeplabv3_resnet50", weights_backbone=None)
    add("deeplabv3", lambda: output("out", segmentation()), {"image": normal(*IMAGE)})
    add("r2plus1d_18", vision("video", "r2plus1d_18"), {"video": normal(1, 3, 8, 112, 112)})
    add("mask_rcnn", masks, {"image": uniform(3, 224, 288)})
    add("wavenet", networks.WaveNet, {"sound": normal(1, 1, 4000)})
    add("conformer", networks.Conformer, {"mel": normal(1, 400, 80)})
    text: Inputs = {
        "words": whole(30522, 1, 128),
        "types": whole(2, 1, 128),
        "mask": ones(1, 128, dtype=np.int64),
    }
    add("bert_base", networks.Bert, text)
    add("t5_small", networks.T5, {"words": whole(32128, 1, 64), "written": whole(32128, 1, 16)})
    add("llama_block", llama, step(), dynamo=True)
    add("yolov8n", networks.YoloV8, {"image": uniform(1, 3, 640, 640)})
    add("unet", networks.UNet, {"image": normal(1, 3, 256, 256)})
    add("autoencoder", networks.Autoencoder, {"image": normal(8, 3, 64, 64)})

    half = np.float16
    for name in ("mobilenet_v3_large", "convnext_tiny"):
        add_half(name, vision(name=name), {"image": normal(*IMAGE, dtype=half)})
    add_half("bert_base", networks.Bert, text)
    add_half("unet", networks.UNet, {"image": normal(1, 3, 256, 256, dtype=half)})
    add_half("llama_block", llama, step(half), dynamo=True)


_register()

if __name__ == "__main__":
    sys.exit(make_all(CASES, __doc__))
