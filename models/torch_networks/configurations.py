"""What models of transformers are made from."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn


class Outputs(nn.Module):
    """A model of transformers, whose results are a dictionary without caches."""

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, options

    def forward(self, **inputs: Any) -> Any:
        found = self.model(**inputs, **self.options)
        keys = [key for key in found if "past_key" not in key and "cache" not in key]
        return {
            key: value
            for key, value in ((key, found[key]) for key in keys)
            if isinstance(value, torch.Tensor)
        }


TINY = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
}
GROUPED = TINY | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS = GROUPED | {"intermediate_size": 36}
"""PyTorch's product of groups wants rows of whole 16 bytes."""
SEQ2SEQ = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
OPEN_TEXT = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}


def of_transformers(
    name: str, head: str, config: Mapping[str, Any], **options: Any
) -> Callable[[], nn.Module]:
    """`<name>Config` and the model `<name><head>`; results of random weights are spread out."""

    def build() -> nn.Module:
        import transformers

        made = getattr(transformers, f"{name}Config")(**config)
        made._attn_implementation = options.pop("attention", "sdpa")
        try:
            model = getattr(transformers, f"{name}{head}")(made)
        except (ValueError, ImportError):
            made._attn_implementation = "eager"
            model = getattr(transformers, f"{name}{head}")(made)
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.data.mul_(3)
        return Outputs(model, **options)

    return build
