"""Language models of transformers, with small configurations and random weights."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from models.torch_networks.base import (
    ALL,
    STATIC,
    Network,
    ids,
    keywords,
    ones,
)
from models.torch_networks.configurations import (
    EXPERTS,
    GROUPED,
    OPEN_TEXT,
    SEQ2SEQ,
    TINY,
    of_transformers,
)


def text() -> Iterator[Network]:
    """Language models."""
    masked = keywords(input_ids=ids(99, 2, 12), attention_mask=ones(2, 12))
    causal = keywords(input_ids=ids(99, 2, 12))
    encoders = {
        "Bert": "ForMaskedLM",
        "DistilBert": "ForSequenceClassification",
        "Roberta": "Model",
        "Albert": "Model",
        "Electra": "Model",
        "DebertaV2": "Model",
        "Deberta": "Model",
        "MPNet": "Model",
        "MobileBert": "Model",
        "SqueezeBert": "Model",
        "ConvBert": "Model",
        "FNet": "Model",
        "Nystromformer": "Model",
        "LayoutLM": "Model",
        "XLM": "Model",
        "Funnel": "Model",
        "BigBird": "Model",
        "RoFormer": "Model",
        "Longformer": "Model",
        "Ernie": "Model",
        "Camembert": "Model",
        "Canine": "Model",
        "Lxmert": "",
        "IBert": "Model",
        "ModernBert": "Model",
        "Megatron": "",
        "XLNet": "Model",
        "Yoso": "",
        "Rembert": "",
        "EuroBert": "Model",
        "Esm": "Model",
        "Luke": "Model",
        "Splinter": "Model",
    }
    special = {
        "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "vocab_size": 99},
        "Electra": TINY | {"embedding_size": 16},
        "MobileBert": TINY
        | {"embedding_size": 16, "true_hidden_size": 32, "intra_bottleneck_size": 32},
        "SqueezeBert": TINY
        | {
            "embedding_size": 32,
            "q_groups": 2,
            "k_groups": 2,
            "v_groups": 2,
            "post_attention_groups": 2,
            "intermediate_groups": 1,
            "output_groups": 1,
        },
        "ConvBert": TINY | {"embedding_size": 16, "head_ratio": 2},
        "XLM": {"vocab_size": 99, "emb_dim": 32, "n_layers": 2, "n_heads": 4},
        "Funnel": {
            "vocab_size": 99,
            "block_sizes": [1, 1],
            "d_model": 32,
            "n_head": 4,
            "d_head": 8,
            "d_inner": 37,
            "num_decoder_layers": 1,
        },
        "XLNet": {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37},
        "DebertaV2": TINY
        | {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 8,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
        },
        "Deberta": TINY | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        "Longformer": TINY | {"attention_window": 4},
        "BigBird": TINY | {"attention_type": "original_full"},
        "Esm": TINY | {"pad_token_id": 1, "position_embedding_type": "rotary"},
        "ModernBert": TINY
        | {
            "pad_token_id": 0,
            "eos_token_id": 1,
            "bos_token_id": 2,
            "cls_token_id": 3,
            "sep_token_id": 4,
            "global_attn_every_n_layers": 2,
            "local_attention": 4,
        },
        "EuroBert": GROUPED,
        "Canine": TINY
        | {
            "num_hash_buckets": 64,
            "upsampling_kernel_size": 4,
            "downsampling_rate": 4,
            "local_transformer_stride": 4,
        },
    }
    for name, head in encoders.items():
        if head:
            config = special.get(name, TINY)
            forms = ALL if name in ("Bert", "DistilBert", "Roberta", "DebertaV2") else STATIC
            shapes = {"inputs": {"input_ids": OPEN_TEXT, "attention_mask": OPEN_TEXT}}
            given = causal if name == "FNet" else masked
            yield Network(
                f"hf_{name.lower()}", of_transformers(name, head, config), given, shapes, forms
            )
    decoders: dict[str, Mapping[str, Any]] = {
        "GPT2": {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        "Llama": GROUPED,
        "Mistral": GROUPED | {"sliding_window": 4},
        "Qwen2": GROUPED,
        "Qwen3": GROUPED | {"head_dim": 8},
        "Phi": GROUPED,
        "Phi3": GROUPED,
        "Gemma": GROUPED | {"head_dim": 8},
        "Gemma2": GROUPED | {"head_dim": 8, "sliding_window": 4},
        "Gemma3Text": GROUPED | {"head_dim": 8, "sliding_window": 4},
        "GPTNeo": {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
        },
        "GPTNeoX": TINY,
        "GPTJ": {
            "vocab_size": 99,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "rotary_dim": 4,
        },
        "OPT": {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "ffn_dim": 37,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 32,
        },
        "Bloom": {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        "Falcon": TINY | {"alibi": False},
        "Mpt": {"vocab_size": 99, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
        "StableLm": GROUPED,
        "Starcoder2": GROUPED,
        "Olmo": GROUPED,
        "Olmo2": GROUPED,
        "Cohere": GROUPED,
        "Granite": GROUPED,
        "Nemotron": GROUPED,
        "Persimmon": GROUPED,
        "Mixtral": EXPERTS | {"num_local_experts": 4, "num_experts_per_tok": 2},
        "Qwen2Moe": GROUPED
        | {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
        },
        "Mamba": {"vocab_size": 99, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2},
        "Mamba2": {
            "vocab_size": 99,
            "hidden_size": 32,
            "state_size": 4,
            "num_hidden_layers": 2,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 2,
            "chunk_size": 8,
        },
        "FalconMamba": {
            "vocab_size": 99,
            "hidden_size": 32,
            "state_size": 4,
            "num_hidden_layers": 2,
        },
        "Rwkv": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2},
        "RecurrentGemma": GROUPED
        | {"lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
        "XGLM": {
            "vocab_size": 99,
            "d_model": 32,
            "num_layers": 2,
            "attention_heads": 4,
            "ffn_dim": 37,
            "max_position_embeddings": 64,
        },
        "CodeGen": {
            "vocab_size": 99,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "rotary_dim": 4,
            "n_positions": 64,
            "n_ctx": 64,
        },
        "Glm": GROUPED | {"head_dim": 8},
        "Ministral": GROUPED,
        "SmolLM3": GROUPED,
        "DeepseekV3": GROUPED
        | {
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "moe_intermediate_size": 16,
            "kv_lora_rank": 8,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "qk_nope_head_dim": 8,
            "first_k_dense_replace": 1,
            "num_key_value_heads": 4,
        },
        "Jamba": EXPERTS
        | {
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "use_mamba_kernels": False,
            "mamba_d_state": 4,
        },
        "Lfm2": GROUPED | {"layer_types": ["conv", "full_attention"]},
        "GptOss": EXPERTS
        | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
    }
    for name, config in decoders.items():
        heads = {"GPT2": "LMHeadModel", "Gemma3Text": "Model"}
        options = {} if name in ("Mamba", "Mamba2", "FalconMamba", "Rwkv") else {"use_cache": False}
        forms = ALL if name in ("GPT2", "Llama", "Qwen2", "Gemma2", "Mamba", "Mistral") else STATIC
        build = of_transformers(name, heads.get(name, "ForCausalLM"), config, **options)
        yield Network(
            f"hf_{name.lower()}", build, causal, {"inputs": {"input_ids": OPEN_TEXT}}, forms
        )
    pair = keywords(input_ids=ids(99, 2, 9), decoder_input_ids=ids(99, 2, 7))
    t5 = {
        "vocab_size": 99,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 37,
        "num_layers": 2,
        "num_heads": 4,
        "decoder_start_token_id": 0,
    }
    both = {"inputs": {"input_ids": OPEN_TEXT, "decoder_input_ids": OPEN_TEXT}}
    for name, config in {
        "T5": t5,
        "MT5": t5,
        "UMT5": t5,
        "LongT5": t5 | {"local_radius": 3},
        "SwitchTransformers": t5 | {"num_experts": 4},
        "Bart": SEQ2SEQ,
        "MBart": SEQ2SEQ,
        "Pegasus": SEQ2SEQ,
        "Marian": SEQ2SEQ | {"pad_token_id": 1},
        "Blenderbot": SEQ2SEQ,
        "M2M100": SEQ2SEQ,
        "ProphetNet": {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
            "max_position_embeddings": 64,
        },
        "LED": SEQ2SEQ
        | {
            "attention_window": 4,
            "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64,
        },
        "BigBirdPegasus": SEQ2SEQ | {"attention_type": "original_full"},
        "PLBart": SEQ2SEQ,
    }.items():
        build = of_transformers(name, "Model", config, use_cache=False)
        yield Network(f"hf_{name.lower()}", build, pair, both, ALL if name == "T5" else STATIC)
    yield Network(
        "llama_cache",
        LlamaCache,
        lambda: [((torch.randint(0, 99, (1, 1)), torch.tensor([k])), {}) for k in range(3)],
        forms=("training", "core"),
    )


class LlamaCache(nn.Module):
    """Llama, a token a call, with the static cache of transformers in buffers."""

    def __init__(self) -> None:
        super().__init__()
        import transformers
        from transformers import StaticCache

        config = transformers.LlamaConfig(**GROUPED)
        self.model = transformers.LlamaForCausalLM(config).eval()
        self.cache = StaticCache(config=config, max_cache_len=8)
        self.cache.early_initialization(1, 2, 8, torch.float32, torch.device("cpu"))
        for k, layer in enumerate(self.cache.layers):
            self.register_buffer(f"keys_{k}", layer.keys)
            self.register_buffer(f"values_{k}", layer.values)
            if isinstance(getattr(layer, "cumulative_length", None), torch.Tensor):
                self.register_buffer(f"length_{k}", layer.cumulative_length)

    def forward(self, token: Any, place: Any) -> Any:
        for k, layer in enumerate(self.cache.layers):
            layer.keys, layer.values = getattr(self, f"keys_{k}"), getattr(self, f"values_{k}")
            if hasattr(self, f"length_{k}"):
                layer.cumulative_length = getattr(self, f"length_{k}")
        found = self.model(
            input_ids=token,
            position_ids=place[None],
            past_key_values=self.cache,
            cache_position=place,
            use_cache=True,
        )
        return found.logits
