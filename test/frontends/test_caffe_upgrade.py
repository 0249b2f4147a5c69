"""Old nets become what Caffe makes of them, and rules choose the layers of the test phase."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from lowerdeck.dialects.caffe.caffe_pb2 import (
    ConvolutionParameter,
    LRNParameter,
    NetParameter,
    ParamSpec,
    PoolingParameter,
    SliceParameter,
    V1LayerParameter,
)
from lowerdeck.frontends.caffe.import_ import import_net
from lowerdeck.frontends.caffe.upgrade import Upgrade

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    INPUT,
    layers_of,
    main_of,
    names_of,
    problems_of,
    types_of,
    write_net,
)


def upgraded(text: str) -> NetParameter:
    """The layers of today for the text of a net."""
    upgrade = Upgrade("net.prototxt")
    layers = upgrade.layers(text_format.Parse(text, NetParameter()))
    assert not upgrade.problems
    return NetParameter(layer=layers)


# Inputs


@pytest.mark.parametrize(
    "shapes",
    [
        "input_dim: [1, 2, 3, 4, 5, 6, 7, 8]",
        "input_shape { dim: [1, 2, 3, 4] } input_shape { dim: [5, 6, 7, 8] }",
    ],
)
def test_inputs_of_old_nets(shapes: str, tmp_path: Path) -> None:
    net = f"""input: "a" input: "b" {shapes}
        layer {{ name: "s" type: "Silence" bottom: "b" }}
        layer {{ name: "r" type: "ReLU" bottom: "a" top: "y" }}"""
    module = import_net(write_net(tmp_path, net))
    types = [str(argument.type) for argument in main_of(module).body.block.args]
    assert types == ["tensor<1x2x3x4xf32>", "tensor<5x6x7x8xf32>"]
    assert names_of(module) == (["a", "b"], ["y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('input: "a" input_dim: 1', "found 1 input_dim, expected 4"),
        ('input: "a" input: "b" input_shape { dim: 1 }', "found 1 input_shape, expected 2"),
        (
            'input: "a" input_shape { dim: 1 } input_dim: [1, 1, 1, 1]',
            "found both 'input_shape' and 'input_dim', expected one of them",
        ),
        (
            'input: "a" layer { name: "a" } layers { name: "b" }',
            "found both 'layers' and 'layer' fields, expected one of them",
        ),
    ],
)
def test_inputs_that_do_not_fit(text: str, message: str, tmp_path: Path) -> None:
    assert problems_of(write_net(tmp_path, text)) == [message]


def test_the_shape_of_an_old_input_can_be_given(tmp_path: Path) -> None:
    module = import_net(write_net(tmp_path, 'input: "a"'), input_shapes={"a": [2, 3]})
    assert str(main_of(module).body.block.args[0].type) == "tensor<2x3xf32>"


# V1


def test_every_v1_type_has_a_name_of_today() -> None:
    renamed = {"NONE": "", "SOFTMAX_LOSS": "SOFTMAXWITHLOSS"}
    for name in V1LayerParameter.LayerType.keys():
        (layer,) = upgraded(f'layers {{ name: "a" type: {name} }}').layer
        assert layer.type.upper() == renamed.get(name, name.replace("_", ""))


def test_v1_parameters_rules_and_shared_names() -> None:
    (layer,) = upgraded(
        """layers { name: "c" type: CONVOLUTION bottom: "x" top: "y"
        blobs_lr: 1 blobs_lr: 2 weight_decay: 3 param: "w" param: "b" blob_share_mode: PERMISSIVE
        include { phase: TEST } convolution_param { num_output: 2 kernel_size: 3 }
        loss_weight: 4 }"""
    ).layer
    assert layer.type == "Convolution"
    assert layer.convolution_param.num_output == 2
    assert [spec.name for spec in layer.param] == ["w", "b"]
    assert [spec.lr_mult for spec in layer.param] == [1, 2]
    assert layer.param[0].decay_mult == 3
    assert layer.param[0].share_mode == ParamSpec.PERMISSIVE
    assert not layer.param[1].HasField("share_mode")
    assert len(layer.include) == 1
    assert list(layer.loss_weight) == [4]


def test_slices_and_groups_of_v1(tmp_path: Path) -> None:
    net = """input: "x" input_dim: [1, 6, 2, 2]
        layers { name: "s" type: SLICE bottom: "x" top: "a" top: "b"
          slice_param { slice_dim: 1 slice_point: 2 } }"""
    (layer,) = layers_of(import_net(write_net(tmp_path, net)))
    assert layer.parameters(SliceParameter).slice_dim == 1


def test_preprocessing_moves_to_the_transformation() -> None:
    (layer,) = upgraded(
        """layers { name: "d" type: IMAGE_DATA top: "x" image_data_param {
        source: "s" scale: 2 mean_file: "m" crop_size: 3 mirror: true } }"""
    ).layer
    transform = layer.transform_param
    assert (transform.scale, transform.mean_file) == (2, "m")
    assert (transform.crop_size, transform.mirror) == (3, True)
    assert layer.image_data_param.source == "s"
    assert not layer.image_data_param.HasField("scale")


# V0


def test_v0_layers() -> None:
    net = upgraded(
        """layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 group: 2 stride: 2
            pad: 1 biasterm: false weight_filler { type: "xavier" } blobs_lr: 5 }
            bottom: "x" top: "c" }
        layers { layer { name: "p" type: "pool" kernelsize: 2 pool: AVE } bottom: "c" top: "p" }
        layers { layer { name: "n" type: "lrn" local_size: 3 alpha: 4 beta: 5 k: 6 }
            bottom: "p" top: "n" }
        layers { layer { name: "i" type: "innerproduct" num_output: 7 } bottom: "n" top: "i" }
        layers { layer { name: "s" type: "softmax" } bottom: "i" top: "s" }"""
    )
    assert [layer.type for layer in net.layer] == [
        "Convolution",
        "Pooling",
        "LRN",
        "InnerProduct",
        "Softmax",
    ]
    conv, pool, lrn, product, _ = net.layer
    assert conv.convolution_param == ConvolutionParameter(
        num_output=4,
        kernel_size=[3],
        group=2,
        stride=[2],
        pad=[1],
        bias_term=False,
        weight_filler={"type": "xavier"},
    )
    assert conv.param[0].lr_mult == 5
    assert (conv.name, list(conv.bottom), list(conv.top)) == ("c", ["x"], ["c"])
    assert pool.pooling_param == PoolingParameter(kernel_size=2, pool="AVE")
    assert lrn.lrn_param == LRNParameter(local_size=3, alpha=4, beta=5, k=6)
    assert product.inner_product_param.num_output == 7


def test_v0_padding_layers_become_padding() -> None:
    net = upgraded(
        """layers { layer { name: "pad" type: "padding" pad: 2 } bottom: "x" top: "xp" }
        layers { layer { name: "c" type: "conv" num_output: 1 kernelsize: 5 }
            bottom: "xp" top: "c" }"""
    )
    (conv,) = net.layer
    assert list(conv.bottom) == ["x"]
    assert list(conv.convolution_param.pad) == [2]


def test_v0_data_layers() -> None:
    (layer,) = upgraded(
        """layers { layer { name: "d" type: "data" source: "s" batchsize: 2 meanfile: "m"
        cropsize: 3 scale: 4 rand_skip: 5 } top: "x" }"""
    ).layer
    assert (layer.data_param.source, layer.data_param.batch_size) == ("s", 2)
    assert layer.data_param.rand_skip == 5
    assert (layer.transform_param.mean_file, layer.transform_param.scale) == ("m", 4)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ('name: "a" type: "odd"', "node 'a' (odd): this V0 layer type is not known"),
        ('name: "a" type: "relu" pad: 1', "node 'a' (relu): a V0 layer of this type has no 'pad'"),
    ],
)
def test_v0_layers_that_do_not_fit(layer: str, message: str, tmp_path: Path) -> None:
    net = (
        f'input: "x" input_dim: [1, 1, 1, 1] layers {{ layer {{ {layer} }} bottom: "x" top: "y" }}'
    )
    assert problems_of(write_net(tmp_path, net)) == [message]


# Rules


@pytest.mark.parametrize(
    ("rules", "is_kept"),
    [
        ("", True),
        ("include { phase: TEST }", True),
        ("include { phase: TRAIN }", False),
        ("exclude { phase: TEST }", False),
        ("exclude { phase: TRAIN }", True),
        ("include { phase: TRAIN } include { phase: 1 }", True),
        ("exclude { phase: TRAIN } exclude { phase: 1 }", False),
        ('include { stage: "a" }', True),
        ('include { stage: "b" stage: "a" }', True),
        ('include { stage: "a" stage: "c" }', False),
        ('include { not_stage: "a" }', False),
        ('include { not_stage: "c" }', True),
        ("include { min_level: - 1 }", True),
        ("include { min_level: 0 }", True),
        ("include { min_level: 1 }", False),
        ("include { max_level: 1 }", True),
        ("include { max_level: 0 }", True),
        ("include { max_level: -1 }", False),
        ('exclude { phase: TEST not_stage: "a" }', True),
        ("include {}", True),
        ("exclude {}", False),
    ],
)
def test_rules(rules: str, is_kept: bool, tmp_path: Path) -> None:
    """In Caffe, the phase and level of a net's own state do not count, but its stages do."""
    net = f"""state {{ phase: TRAIN level: 2 stage: "a" stage: "b" }} {INPUT}
        layer {{ name: "1" type: "ReLU" bottom: "x" top: "x" {rules} }}
        layer {{ name: "2" type: "TanH" bottom: "x" top: "y" }}"""
    expected = ["ReLU", "TanH"] if is_kept else ["TanH"]
    assert types_of(import_net(write_net(tmp_path, net))) == expected
