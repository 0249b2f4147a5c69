"""Networks for `torch_exports.py`: families of torchvision, transformers and timm, and others."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Call = tuple[tuple[Any, ...], dict[str, Any]]
STATIC = "training", "core", "trace"
ALL = *STATIC, "open"


@dataclass(frozen=True)
class Network:
    """A module and calls of it, positional arguments and others; `open` as torch.export has it."""

    name: str
    build: Callable[[], nn.Module]
    calls: Callable[[], Sequence[Call]]
    open: Any = None
    forms: tuple[str, ...] = STATIC


def plain(*makers: Callable[[], Any]) -> Callable[[], Sequence[Call]]:
    """One call of positional arguments."""
    return lambda: [(tuple(make() for make in makers), {})]


def keywords(**makers: Callable[[], Any]) -> Callable[[], Sequence[Call]]:
    """One call of arguments by name."""
    return lambda: [((), {name: make() for name, make in makers.items()})]


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    """Random numbers."""
    return lambda: torch.randn(*shape)


def ids(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    """Random indices."""
    return lambda: torch.randint(0, high, shape)


def ones(*shape: int) -> Callable[[], torch.Tensor]:
    """A mask that lets everything through."""
    return lambda: torch.ones(*shape, dtype=torch.int64)


def networks() -> Iterator[Network]:
    """All of them."""
    for family in (vision, detection, text, speech, images, timm_nets, written, diffusion):
        yield from family()


# torchvision


def scattered(model: nn.Module) -> nn.Module:
    """A model whose statistics of normalization are random, too."""
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            nn.init.uniform_(layer.running_var, 0.5, 2)
            nn.init.normal_(layer.running_mean, std=0.1)
    return model


def of_vision(kind: str, name: str, **options: Any) -> Callable[[], nn.Module]:
    """A model of torchvision with random weights."""

    def build() -> nn.Module:
        import torchvision

        module = getattr(torchvision.models, kind) if kind else torchvision.models
        return scattered(getattr(module, name)(weights=None, **options))

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
        "fasterrcnn_resnet50_fpn_v2": small,
        "retinanet_resnet50_fpn": small,
        "fcos_resnet50_fpn": small,
        "ssd300_vgg16": {},
        "ssdlite320_mobilenet_v3_large": {},
        "maskrcnn_resnet50_fpn": small,
        "keypointrcnn_resnet50_fpn": small,
    }
    for name, given in options.items():

        def build(name: str = name, given: dict[str, Any] = given) -> nn.Module:
            model = of_vision("detection", name, weights_backbone=None, **given)()
            if hasattr(model, "roi_heads"):
                model.roi_heads.box_predictor.cls_score.weight.data *= 20
                model.roi_heads.detections_per_img = 20
            return Detector(model)

        yield Network(name, build, plain(lambda: torch.rand(3, 64, 80)))


# transformers


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
        "Mixtral": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
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
        "Jamba": GROUPED
        | {
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "num_experts": 2,
            "use_mamba_kernels": False,
            "mamba_d_state": 4,
        },
        "Lfm2": GROUPED | {"layer_types": ["conv", "full_attention"]},
        "GptOss": GROUPED
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


def speech() -> Iterator[Network]:
    """Sound, and series of time."""
    conv = {
        "conv_dim": (16, 16, 16),
        "conv_stride": (4, 4, 2),
        "conv_kernel": (8, 4, 2),
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 2,
        "num_feat_extract_layers": 3,
    }
    sound = keywords(input_values=normal(2, 800))
    for name, config in {
        "Wav2Vec2": {**TINY, **conv},
        "Hubert": {**TINY, **conv},
        "WavLM": {**TINY, **conv},
        "UniSpeech": {**TINY, **conv},
        "UniSpeechSat": {**TINY, **conv},
        "SEW": {**TINY, **conv, "squeeze_factor": 2},
        "Data2VecAudio": {**TINY, **conv},
        "SEWD": {**TINY, **conv, "squeeze_factor": 2, "position_buckets": 8},
        "Wav2Vec2Conformer": {**TINY, **conv},
    }.items():
        yield Network(f"hf_{name.lower()}", of_transformers(name, "Model", config), sound)
    whisper = SEQ2SEQ | {
        "num_mel_bins": 8,
        "max_source_positions": 20,
        "max_target_positions": 20,
        "begin_suppress_tokens": None,
        "suppress_tokens": None,
    }
    yield Network(
        "hf_whisper",
        of_transformers("Whisper", "ForConditionalGeneration", whisper, use_cache=False),
        keywords(input_features=normal(2, 8, 40), decoder_input_ids=ids(99, 2, 7)),
        {
            "inputs": {
                "input_features": {0: torch.export.Dim.DYNAMIC},
                "decoder_input_ids": OPEN_TEXT,
            }
        },
        ALL,
    )
    yield Network(
        "hf_speech2text",
        of_transformers(
            "Speech2Text",
            "Model",
            SEQ2SEQ
            | {
                "input_feat_per_channel": 8,
                "num_conv_layers": 2,
                "conv_channels": 16,
                "max_source_positions": 64,
                "max_target_positions": 64,
            },
            use_cache=False,
        ),
        keywords(input_features=normal(2, 40, 8), decoder_input_ids=ids(99, 2, 7)),
    )
    yield Network(
        "hf_ast",
        of_transformers("AST", "Model", TINY | {"max_length": 64, "num_mel_bins": 32}),
        keywords(input_values=normal(2, 64, 32)),
    )
    yield Network(
        "hf_encodec",
        of_transformers(
            "Encodec",
            "Model",
            {
                "hidden_size": 16,
                "num_filters": 4,
                "upsampling_ratios": [4, 2],
                "codebook_size": 16,
                "num_residual_layers": 1,
            },
        ),
        keywords(input_values=normal(1, 1, 400)),
    )
    yield Network(
        "hf_dac",
        of_transformers(
            "Dac",
            "Model",
            {
                "encoder_hidden_size": 8,
                "decoder_hidden_size": 16,
                "downsampling_ratios": [2, 4],
                "upsampling_ratios": [4, 2],
                "codebook_size": 16,
                "n_codebooks": 3,
                "codebook_dim": 4,
            },
        ),
        keywords(input_values=normal(1, 1, 320)),
    )
    yield Network(
        "hf_vits",
        of_transformers(
            "Vits",
            "Model",
            TINY
            | {
                "ffn_dim": 37,
                "flow_size": 32,
                "spectrogram_bins": 9,
                "upsample_initial_channel": 16,
                "hidden_size": 32,
                "use_stochastic_duration_prediction": False,
                "duration_predictor_filter_channels": 16,
                "noise_scale": 0.0,
            },
        ),
        keywords(input_ids=ids(30, 1, 9)),
    )
    series = {"prediction_length": 4, "context_length": 16, "num_input_channels": 3, "d_model": 16}
    yield Network(
        "hf_patchtst",
        of_transformers(
            "PatchTST",
            "ForPrediction",
            series
            | {
                "patch_length": 4,
                "patch_stride": 4,
                "num_attention_heads": 2,
                "num_hidden_layers": 2,
                "ffn_dim": 16,
            },
        ),
        keywords(past_values=normal(2, 16, 3)),
    )
    yield Network(
        "hf_patchtsmixer",
        of_transformers(
            "PatchTSMixer",
            "ForPrediction",
            series | {"patch_length": 4, "patch_stride": 4, "num_layers": 2},
        ),
        keywords(past_values=normal(2, 16, 3)),
    )


def images() -> Iterator[Network]:
    """Images of transformers."""
    vit = {k: v for k, v in TINY.items() if k not in ("vocab_size", "max_position_embeddings")}
    vit |= {"image_size": 32, "patch_size": 8}
    pixels = keywords(pixel_values=normal(2, 3, 32, 32))
    large = keywords(pixel_values=normal(1, 3, 64, 64))
    swin = {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [1, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    }
    four = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
    backbone = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    detr = {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37,
        "num_queries": 6,
        **backbone,
    }

    def resnet() -> Any:
        import transformers

        return transformers.ResNetConfig(
            embedding_size=8,
            **four,
            layer_type="basic",
            out_features=["stage2", "stage3", "stage4"],
        )

    def with_resnet(name: str, head: str, config: Mapping[str, Any]) -> Callable[[], nn.Module]:
        return lambda: of_transformers(name, head, {**config, "backbone_config": resnet()})()

    for name, (config, given) in {
        "ViT": (vit, pixels),
        "DeiT": (vit, pixels),
        "Beit": (
            vit | {"vocab_size": 9, "use_relative_position_bias": True, "use_mask_token": False},
            pixels,
        ),
        "Dinov2": (vit | {"mlp_ratio": 2}, pixels),
        "Dinov2WithRegisters": (vit, pixels),
        "Swin": (swin, pixels),
        "Swinv2": (swin, pixels),
        "ConvNext": (four | {"image_size": 64}, large),
        "ConvNextV2": (four | {"image_size": 64}, large),
        "ResNet": (four | {"embedding_size": 8}, large),
        "RegNet": (four | {"embedding_size": 8, "groups_width": 8}, large),
        "PoolFormer": (four | {"num_encoder_blocks": 4}, large),
        "Segformer": (
            {
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 2, 4],
                "decoder_hidden_size": 16,
            },
            large,
        ),
        "Cvt": ({"embed_dim": [8, 16, 32], "num_heads": [1, 2, 4], "depth": [1, 1, 2]}, large),
        "Pvt": (
            {
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "image_size": 64,
                "num_attention_heads": [1, 2, 2, 4],
            },
            large,
        ),
        "MobileViT": (
            {
                "hidden_sizes": [16, 24, 32],
                "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
                "num_attention_heads": 4,
                "image_size": 64,
                "last_hidden_size": 32,
            },
            large,
        ),
        "MobileViTV2": (
            {
                "base_attn_unit_dims": [16, 24, 32],
                "n_attn_blocks": [1, 1, 1],
                "image_size": 64,
                "width_multiplier": 0.25,
            },
            large,
        ),
        "MobileNetV1": ({"image_size": 32}, pixels),
        "MobileNetV2": ({"image_size": 32}, pixels),
        "EfficientNet": (
            {
                "image_size": 32,
                "width_coefficient": 0.25,
                "depth_coefficient": 0.25,
                "hidden_dim": 320,
            },
            pixels,
        ),
        "Levit": (
            {
                "image_size": 64,
                "hidden_sizes": [16, 32, 48],
                "num_attention_heads": [1, 2, 3],
                "depths": [1, 1, 1],
                "key_dim": [8, 8, 8],
                "down_ops": [["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 4, 4, 2, 2]],
            },
            large,
        ),
        "FocalNet": (
            {
                "image_size": 32,
                "patch_size": 2,
                "embed_dim": 16,
                "hidden_sizes": [16, 32],
                "depths": [1, 1],
                "focal_levels": [2, 2],
                "focal_windows": [3, 3],
            },
            pixels,
        ),
        "SwiftFormer": ({"depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32]}, large),
        "EfficientFormer": ({}, large),
        "VitDet": (
            vit
            | {
                "window_size": 2,
                "window_block_indices": [0],
                "use_relative_position_embeddings": True,
                "pretrain_image_size": 32,
            },
            pixels,
        ),
        "Hiera": (
            {
                "image_size": [32, 32],
                "embed_dim": 8,
                "depths": [1, 1, 1],
                "num_heads": [1, 2, 4],
                "patch_size": [3, 3],
                "patch_stride": [2, 2],
                "patch_padding": [1, 1],
                "query_stride": [2, 2],
                "masked_unit_size": [4, 4],
                "num_query_pool": 2,
            },
            pixels,
        ),
        "Dinat": ({}, None),
        "VitMsn": ({}, None),
        "ViTMSN": (vit, pixels),
        "IJepa": (vit, pixels),
        "TextNet": ({"image_size": [64, 64]}, large),
        "HGNetV2": (
            {
                "embedding_size": 8,
                "hidden_sizes": [16, 16, 24, 32],
                "stem_channels": [3, 8, 8],
                "stage_in_channels": [8, 16, 16, 24],
                "stage_mid_channels": [8, 8, 8, 8],
                "stage_out_channels": [16, 16, 24, 32],
                "stage_num_blocks": [1, 1, 1, 1],
            },
            None,
        ),
        "Yolos": (vit | {"image_size": [32, 32], "num_detection_tokens": 5}, pixels),
        "PvtV2": (
            {
                "image_size": 64,
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 2, 4],
            },
            large,
        ),
        "DepthAnything": (None, None),
        "Timesformer": (
            {
                "image_size": 32,
                "patch_size": 8,
                "num_frames": 2,
                "hidden_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "intermediate_size": 37,
            },
            keywords(pixel_values=normal(1, 2, 3, 32, 32)),
        ),
        "VideoMAE": (vit | {"num_frames": 4}, keywords(pixel_values=normal(1, 4, 3, 32, 32))),
        "Vivit": (
            vit | {"num_frames": 4, "tubelet_size": [2, 8, 8]},
            keywords(pixel_values=normal(1, 4, 3, 32, 32)),
        ),
    }.items():
        if config is not None and given is not None:
            head = {"Segformer": "ForSemanticSegmentation", "Yolos": "ForObjectDetection"}
            build = of_transformers(name, head.get(name, "Model"), config)
            yield Network(f"hf_{name.lower()}", build, given)
    for name, head, extra in (
        ("Detr", "ForObjectDetection", {}),
        ("ConditionalDetr", "ForObjectDetection", {}),
        ("DeformableDetr", "ForObjectDetection", {"num_feature_levels": 2}),
        ("TableTransformer", "ForObjectDetection", {}),
        (
            "RTDetr",
            "ForObjectDetection",
            {
                "encoder_hidden_dim": 32,
                "encoder_in_channels": [16, 24, 32],
                "d_model": 32,
                "decoder_in_channels": [32, 32, 32],
                "num_queries": 6,
                "encoder_layers": 1,
                "decoder_layers": 2,
                "decoder_attention_heads": 4,
                "num_denoising": 0,
                "anchor_image_size": None,
                "encoder_attention_heads": 4,
                "encoder_ffn_dim": 37,
                "decoder_ffn_dim": 37,
            },
        ),
    ):
        base = detr if not name.startswith("RTDetr") else backbone
        yield Network(f"hf_{name.lower()}", with_resnet(name, head, {**base, **extra}), large)
    clip_text = TINY | {"projection_dim": 16, "eos_token_id": 2}
    clip = {
        "text_config": clip_text,
        "vision_config": vit | {"projection_dim": 16},
        "projection_dim": 16,
    }
    both = keywords(
        input_ids=ids(99, 2, 8), attention_mask=ones(2, 8), pixel_values=normal(2, 3, 32, 32)
    )
    for name in (
        "CLIP",
        "Siglip",
        "Siglip2",
        "AltCLIP",
        "ChineseCLIP",
        "GroupViT",
        "OwlViT",
        "XCLIP",
        "Align",
    ):
        if name in ("CLIP", "Siglip", "ChineseCLIP"):
            yield Network(f"hf_{name.lower()}", of_transformers(name, "Model", clip), both)
    yield Network(
        "hf_perceiver",
        of_transformers(
            "Perceiver",
            "ForMaskedLM",
            {
                "num_latents": 8,
                "d_latents": 16,
                "d_model": 32,
                "num_self_attends_per_block": 1,
                "num_self_attention_heads": 2,
                "num_cross_attention_heads": 2,
                "vocab_size": 99,
                "max_position_embeddings": 12,
            },
        ),
        keywords(inputs=ids(99, 2, 12), attention_mask=ones(2, 12)),
    )


# timm


class Whole(nn.Module):
    """A model as it is."""


def timm_nets() -> Iterator[Network]:
    """A small one of each family."""
    sizes = {
        "resnet10t": 64,
        "resnetv2_18": 64,
        "seresnet18": 0,
        "ecaresnet26t": 64,
        "skresnet18": 64,
        "resnest14d": 64,
        "res2net50_14w_8s": 64,
        "resnetblur18": 64,
        "resnetaa34d": 0,
        "dpn48b": 64,
        "dla46_c": 64,
        "selecsls42b": 64,
        "vovnet39a": 0,
        "ese_vovnet19b_dw": 64,
        "tf_efficientnet_lite0": 64,
        "tf_efficientnet_b0": 64,
        "tf_efficientnetv2_b0": 64,
        "mixnet_s": 64,
        "tf_mixnet_s": 65,
        "fbnetc_100": 64,
        "mobilenetv4_conv_small": 64,
        "mobilenetv4_hybrid_medium": 64,
        "mobileone_s0": 64,
        "repvgg_a0": 64,
        "ghostnet_100": 64,
        "ghostnetv2_100": 64,
        "hardcorenas_a": 64,
        "lcnet_050": 64,
        "tinynet_e": 64,
        "rexnet_100": 64,
        "spnasnet_100": 64,
        "semnasnet_075": 64,
        "hrnet_w18_small": 64,
        "nfnet_f0": 0,
        "eca_nfnet_l0": 64,
        "cspresnet50": 64,
        "cspdarknet53": 64,
        "darknet53": 0,
        "regnetz_b16": 64,
        "convmixer_768_32": 0,
        "convnext_atto": 64,
        "convnextv2_atto": 64,
        "edgenext_xx_small": 64,
        "mobilevit_xxs": 64,
        "mobilevitv2_050": 64,
        "fastvit_t8": 64,
        "efficientformer_l1": 224,
        "efficientformerv2_s0": 224,
        "repvit_m0_9": 64,
        "levit_128s": 224,
        "poolformerv2_s12": 64,
        "inception_next_tiny": 64,
        "focalnet_tiny_srf": 64,
        "mambaout_femto": 64,
        "starnet_s1": 64,
        "caformer_s18": 64,
        "davit_tiny": 64,
        "efficientvit_b0": 64,
        "efficientvit_m0": 224,
        "swiftformer_xs": 224,
        "tiny_vit_5m_224": 224,
        "vit_tiny_patch16_224": 224,
        "deit_tiny_distilled_patch16_224": 224,
        "cait_xxs24_224": 0,
        "xcit_nano_12_p16_224": 224,
        "coat_lite_tiny": 224,
        "pit_ti_224": 224,
        "crossvit_tiny_240": 240,
        "convit_tiny": 224,
        "twins_svt_small": 64,
        "pvt_v2_b0": 64,
        "nest_tiny": 0,
        "visformer_tiny": 224,
        "volo_d1_224": 224,
        "gcvit_xxtiny": 224,
        "maxxvit_rmlp_nano_rw_256": 0,
        "coatnet_nano_rw_224": 224,
        "mixer_s32_224": 224,
        "gmlp_ti16_224": 224,
        "resmlp_12_224": 224,
        "sequencer2d_s": 224,
        "botnet26t_256": 256,
        "halonet26t": 256,
        "lambda_resnet26t": 256,
        "bat_resnext26ts": 256,
        "lamhalobotnet50ts_256": 0,
        "eva02_tiny_patch14_224": 224,
        "beit_base_patch16_224": 0,
        "hiera_tiny_224": 224,
        "rdnet_tiny": 64,
        "hgnetv2_b0": 64,
        "tresnet_m": 64,
        "gernet_s": 64,
        "shvit_s1": 64,
        "vitamin_small_224": 0,
        "mvitv2_tiny": 224,
        "tnt_s_patch16_224": 224,
        "vit_relpos_small_patch16_224": 0,
        "inception_v4": 0,
        "xception41": 64,
        "nasnetalarge": 0,
        "pnasnet5large": 0,
        "vgg11": 0,
        "legacy_seresnet18": 64,
        "senet154": 0,
        "sehalonet33ts": 0,
        "hieradet_small": 0,
        "samvit_base_patch16": 0,
        "swinv2_cr_tiny_ns_224": 0,
        "nextvit_small": 64,
        "regnetv_040": 0,
        "test_resnet": 64,
        "test_vit": 160,
        "test_mambaout": 0,
    }
    for name, size in sizes.items():
        if size:

            def build(name: str = name) -> nn.Module:
                import timm

                return scattered(timm.create_model(name, pretrained=False))

            yield Network(f"timm_{name}", build, plain(normal(1, 3, size, size)))


# diffusers


class Sample(nn.Module):
    """A model of diffusers, whose result is a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **inputs: Any) -> Any:
        return self.model(*args, **inputs, return_dict=False)


def of_diffusers(name: str, **options: Any) -> Callable[[], nn.Module]:
    """A model of diffusers with random weights."""

    def build() -> nn.Module:
        import diffusers

        return Sample(getattr(diffusers, name)(**options))

    return build


def diffusion() -> Iterator[Network]:
    """Models that remove noise, and what goes with them."""
    time = ids(1000, 1)
    blocks = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}
    yield Network(
        "df_unet2d",
        of_diffusers(
            "UNet2DModel",
            sample_size=16,
            **blocks,
            attention_head_dim=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        plain(normal(1, 3, 16, 16), time),
    )
    yield Network(
        "df_unet2d_condition",
        of_diffusers(
            "UNet2DConditionModel",
            sample_size=16,
            **blocks,
            attention_head_dim=8,
            cross_attention_dim=16,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        ),
        plain(normal(1, 4, 16, 16), time, normal(1, 5, 16)),
    )
    yield Network(
        "df_autoencoder",
        of_diffusers(
            "AutoencoderKL",
            block_out_channels=(16, 32),
            norm_num_groups=8,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
        plain(normal(1, 3, 32, 32)),
    )
    yield Network(
        "df_vq",
        of_diffusers(
            "VQModel",
            block_out_channels=(16, 32),
            norm_num_groups=8,
            num_vq_embeddings=8,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
        plain(normal(1, 3, 32, 32)),
    )
    yield Network(
        "df_dit",
        of_diffusers(
            "DiTTransformer2DModel",
            num_attention_heads=2,
            attention_head_dim=8,
            num_layers=2,
            sample_size=8,
            patch_size=2,
            norm_num_groups=4,
            num_embeds_ada_norm=10,
        ),
        keywords(hidden_states=normal(1, 4, 8, 8), timestep=time, class_labels=ids(10, 1)),
    )
    yield Network(
        "df_unet1d",
        of_diffusers(
            "UNet1DModel",
            sample_size=64,
            in_channels=2,
            out_channels=2,
            extra_in_channels=16,
            block_out_channels=(16, 32, 32),
        ),
        plain(normal(1, 2, 64), time),
    )
    yield Network(
        "df_tiny",
        of_diffusers(
            "AutoencoderTiny",
            encoder_block_out_channels=(8, 8),
            decoder_block_out_channels=(8, 8),
            num_encoder_blocks=(1, 2),
            num_decoder_blocks=(2, 1),
        ),
        plain(normal(1, 3, 32, 32)),
    )
    yield Network(
        "df_sd3",
        of_diffusers(
            "SD3Transformer2DModel",
            sample_size=8,
            patch_size=2,
            in_channels=4,
            num_layers=2,
            attention_head_dim=8,
            num_attention_heads=2,
            joint_attention_dim=16,
            caption_projection_dim=16,
            pooled_projection_dim=16,
            out_channels=4,
            pos_embed_max_size=8,
        ),
        keywords(
            hidden_states=normal(1, 4, 8, 8),
            encoder_hidden_states=normal(1, 5, 16),
            pooled_projections=normal(1, 16),
            timestep=time,
        ),
    )
    yield Network(
        "df_flux",
        of_diffusers(
            "FluxTransformer2DModel",
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            pooled_projection_dim=16,
            axes_dims_rope=(4, 4, 8),
        ),
        keywords(
            hidden_states=normal(1, 16, 4),
            encoder_hidden_states=normal(1, 5, 16),
            pooled_projections=normal(1, 16),
            timestep=lambda: torch.rand(1),
            img_ids=lambda: torch.randint(0, 4, (16, 3)).float(),
            txt_ids=lambda: torch.zeros(5, 3),
        ),
    )


# Written out


def written() -> Iterator[Network]:
    """Recurrent and graph networks, and forms that libraries write."""
    open_text = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    for name, kind, options in (
        ("lstm", nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        ("lstm_projected", nn.LSTM, {"proj_size": 3}),
        ("gru", nn.GRU, {"num_layers": 2, "batch_first": True}),
        ("rnn_tanh", nn.RNN, {"bidirectional": True}),
        ("rnn_relu", nn.RNN, {"nonlinearity": "relu", "bias": False}),
    ):
        build = (lambda kind, options: lambda: kind(4, 5, **options))(kind, options)
        yield Network(f"w_{name}", build, plain(normal(3, 6, 4)), forms=STATIC)
    yield Network(
        "w_packed",
        Packed,
        plain(normal(3, 6, 4), lambda: torch.tensor([6, 4, 1])),
        forms=("trace",),
    )
    yield Network(
        "w_gcn",
        Graph,
        plain(normal(7, 5), ids(7, 2, 15)),
        (None, {1: torch.export.Dim.DYNAMIC}),
        ALL,
    )
    yield Network(
        "w_transformer",
        lambda: nn.Transformer(16, 4, 2, 2, 24, batch_first=True),
        plain(normal(2, 7, 16), normal(2, 5, 16)),
        forms=ALL,
        open=(
            {0: torch.export.Dim("b", min=2), 1: torch.export.Dim.DYNAMIC},
            {0: torch.export.Dim("b", min=2), 1: torch.export.Dim.DYNAMIC},
        ),
    )
    yield Network(
        "w_encoder",
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2),
        plain(normal(2, 7, 16)),
        open_text,
        ALL,
    )
    yield Network("w_stft", Spectrum, plain(normal(2, 400)))
    yield Network("w_fft", Fourier, plain(normal(2, 3, 8, 8)))
    yield Network("w_deform", Deform, plain(normal(2, 4, 8, 8)))
    yield Network("w_scan", Selective, plain(normal(2, 9, 8)), open_text, ALL)
    yield Network(
        "w_memory",
        Remember,
        lambda: [((torch.randn(2, 3),), {}) for _ in range(3)],
        forms=("training", "core"),
    )
    yield Network("w_moe", Experts, plain(normal(2, 5, 8)))
    yield Network("w_ctc", Decode, plain(normal(2, 9, 6)))
    yield Network("w_wavenet", Wave, plain(normal(1, 1, 64)), ({2: torch.export.Dim.DYNAMIC},), ALL)


class Packed(nn.Module):
    """An LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, (h, c) = self.lstm(packed)
        return nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0], h, c


class Graph(nn.Module):
    """Convolutions and attention over edges, as torch_geometric computes them."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(5, 8), nn.Linear(8, 3)
        self.score = nn.Linear(16, 1)

    def forward(self, x: Any, edges: Any) -> Any:
        n = x.shape[0]
        source, target = edges[0], edges[1]
        degree = torch.zeros(n).scatter_add_(0, target, torch.ones_like(target, dtype=x.dtype))
        scale = degree.clamp(min=1).rsqrt()
        y = self.enter(x)
        messages = y[source] * (scale[source] * scale[target])[:, None]
        y = torch.zeros_like(y).index_add_(0, target, messages).relu() + y
        raw = F.leaky_relu(self.score(torch.cat([y[source], y[target]], -1)).squeeze(-1), 0.2)
        top = torch.full((n,), -torch.inf).scatter_reduce(0, target, raw, "amax")
        weight = (raw - top[target]).exp()
        total = torch.zeros(n).index_add(0, target, weight)
        weight = weight / total[target]
        y = torch.zeros_like(y).index_put((target,), weight[:, None] * y[source], accumulate=True)
        most = torch.zeros_like(y).scatter_reduce_(
            0, target[:, None].expand(-1, 8), y[source], "mean", include_self=False
        )
        return self.leave(y), most, torch.bincount(target, minlength=n)


class Spectrum(nn.Module):
    """Mel spectra of sound."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("mels", torch.rand(33, 10))

    def forward(self, x: Any) -> Any:
        s = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        power = s.abs().pow(2)
        mel = (power.transpose(1, 2) @ self.mels).clamp(min=1e-5).log10()
        back = torch.istft(s, 64, 16, window=self.window, length=400)
        return mel, torch.view_as_real(s), back


class Fourier(nn.Module):
    """A filter in the frequency domain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 8, 5, 2))

    def forward(self, x: Any) -> Any:
        y = torch.fft.rfft2(x, norm="ortho") * torch.view_as_complex(self.weight)
        z = torch.fft.irfft2(y, s=x.shape[-2:], norm="ortho")
        return z, torch.fft.fft(x).real, torch.fft.fftshift(torch.fft.fft2(x).abs())


class Deform(nn.Module):
    """A deformable convolution."""

    def __init__(self) -> None:
        super().__init__()
        import torchvision

        self.offset, self.mask = nn.Conv2d(4, 18, 3, 1, 1), nn.Conv2d(4, 9, 3, 1, 1)
        self.conv = torchvision.ops.DeformConv2d(4, 6, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        return self.conv(x, self.offset(x), self.mask(x).sigmoid())


class Selective(nn.Module):
    """A selective scan by cumulative sums."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.a = nn.Linear(8, 24), nn.Parameter(torch.rand(8))

    def forward(self, x: Any) -> Any:
        u, delta, gate = self.enter(x).chunk(3, -1)
        step = F.softplus(delta)
        decay = torch.cumsum(-step * self.a, 1)
        return (torch.cumsum(u * step * torch.exp(-decay), 1) * torch.exp(decay)) * F.silu(gate)


class Remember(nn.Module):
    """A ring of inputs, written at a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 2, 3))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.ring[self.place % 4] = x
        self.ring.roll(1, 0)
        self.place += 1
        return self.ring.mean(0) * self.place


class Experts(nn.Module):
    """A mixture of experts, of which two are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = (nn.Parameter(torch.randn(4, 8, 8)) for _ in range(2))

    def forward(self, x: Any) -> Any:
        flat = x.flatten(0, 1)
        weight, chosen = self.gate(flat).softmax(-1).topk(2)
        weight = weight / weight.sum(-1, keepdim=True)
        hidden = F.silu(torch.einsum("td,tkdf->tkf", flat, self.up[chosen]))
        y = torch.einsum("tkf,tkfd,tk->td", hidden, self.down[chosen], weight)
        counts = F.one_hot(chosen, 4).sum((0, 1))
        return y.view_as(x), counts


class Decode(nn.Module):
    """A greedy decoding: the best letter of each frame, without repetitions."""

    def forward(self, x: Any) -> Any:
        best = x.log_softmax(-1).argmax(-1)
        kept = torch.ones_like(best, dtype=torch.bool)
        kept[:, 1:] = best[:, 1:] != best[:, :-1]
        kept &= best != 0
        place = kept.cumsum(1) - 1
        result = torch.zeros_like(best).scatter(
            1, torch.where(kept, place, best.shape[1] - 1), best
        )
        return torch.where(kept, best, 0), kept.sum(1), result.amax(1)


class Wave(nn.Module):
    """Dilated causal convolutions with weight norm."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.convs = nn.ModuleList(
            norm(nn.Conv1d(1 if k == 0 else 8, 16, 2, dilation=2**k)) for k in range(4)
        )

    def forward(self, x: Any) -> Any:
        for k, conv in enumerate(self.convs):
            y = F.glu(conv(F.pad(x, (2**k, 0))), 1)
            x = y if k == 0 else x + y
        return x
