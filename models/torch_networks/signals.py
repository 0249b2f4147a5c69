"""Speech and image models of transformers, with small configurations and random weights."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from models.torch_networks.base import (
    ALL,
    Network,
    ids,
    keywords,
    normal,
    ones,
)
from models.torch_networks.configurations import OPEN_TEXT, SEQ2SEQ, TINY, of_transformers


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
