"""Networks for `torch_exports.py`: families of torchvision, transformers and timm, and others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from models.torch_networks.base import Network, scattered
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
        for network in family():
            yield replace(network, build=lambda build=network.build: scattered(build()))
