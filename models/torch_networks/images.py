"""Networks of timm and diffusers, with random weights."""

# PyTorch and its like are not installed where types are checked.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from models.torch_networks.base import (
    Network,
    ids,
    keywords,
    normal,
    plain,
)


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

                return timm.create_model(name, pretrained=False)

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
            extra_in_channels=32,
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
