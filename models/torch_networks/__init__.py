"""Networks for `torch_exports.py`: families of torchvision, transformers and timm, and others."""

from __future__ import annotations

from collections.abc import Iterator

from models.torch_networks.base import Network, varied
from models.torch_networks.images import diffusion, timm_nets
from models.torch_networks.signals import images, speech
from models.torch_networks.text import text
from models.torch_networks.vision import detection, vision
from models.torch_networks.written import written

__all__ = ["Network", "networks"]

FAMILIES = vision, detection, text, speech, images, timm_nets, written, diffusion


def networks() -> Iterator[Network]:
    """All of them."""
    for family in FAMILIES:
        yield from map(varied, family())
