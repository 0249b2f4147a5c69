"""Nets become functions: layers, blobs, inputs and outputs as Caffe connects them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import NameLoc

from lowerdeck.dialects.caffe.caffe_pb2 import (
    ConvolutionParameter,
    EltwiseParameter,
    NetParameter,
    PoolingParameter,
)
from lowerdeck.frontends import load_model
from lowerdeck.frontends.caffe.import_ import import_net

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    INPUT,
    layers_of,
    main_of,
    names_of,
    problems_of,
    types_of,
    write_net,
)


def test_layers_become_ops_with_their_names(tmp_path: Path) -> None:
    net = INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }'
    module = load_model(write_net(tmp_path, net))
    module.verify()
    (relu,) = layers_of(module)
    assert isinstance(relu.location, NameLoc)
    assert relu.location.desc.data == "r"
    assert names_of(module) == (["x"], ["y"])


def test_outputs_are_the_blobs_nobody_reads_in_alphabetical_order(tmp_path: Path) -> None:
    net = (
        INPUT
        + """
        layer { name: "1" type: "TanH" bottom: "x" top: "z" }
        layer { name: "2" type: "ReLU" bottom: "x" top: "m" }
        layer { name: "3" type: "BNLL" bottom: "m" top: "b" }
        layer { name: "4" type: "AbsVal" bottom: "m" top: "B" }"""
    )
    assert names_of(import_net(write_net(tmp_path, net)))[1] == ["B", "b", "z"]


@pytest.mark.parametrize("type_", ["Silence", "HDF5Output"])
def test_what_such_layers_read_is_no_output(type_: str, tmp_path: Path) -> None:
    net = (
        INPUT
        + f"""
        layer {{ name: "1" type: "TanH" bottom: "x" top: "y" }}
        layer {{ name: "2" type: "AbsVal" bottom: "x" top: "z" }}
        layer {{ name: "3" type: "{type_}" bottom: "y" bottom: "x" }}"""
    )
    assert names_of(import_net(write_net(tmp_path, net))) == (["x"], ["z"])


def test_an_input_that_nobody_reads_is_an_output(tmp_path: Path) -> None:
    """So Caffe has it, too."""
    assert names_of(import_net(write_net(tmp_path, INPUT))) == (["x"], ["x"])


def test_layers_in_place_make_new_values(tmp_path: Path) -> None:
    net = (
        INPUT
        + """
        layer { name: "1" type: "TanH" bottom: "x" top: "y" }
        layer { name: "2" type: "ReLU" bottom: "y" top: "y" }
        layer { name: "3" type: "Eltwise" bottom: "x" bottom: "y" top: "z" }
        layer { name: "4" type: "Sigmoid" bottom: "z" top: "z" }"""
    )
    module = import_net(write_net(tmp_path, net))
    tanh, relu, eltwise, sigmoid = layers_of(module)
    assert relu.bottoms[0] is tanh.results[0]
    assert eltwise.bottoms[1] is relu.results[0]
    returned = main_of(module).body.block.last_op
    assert isinstance(returned, func.ReturnOp)
    assert returned.arguments[0] is sigmoid.results[0]
    assert names_of(module)[1] == ["z"]


def test_an_input_may_be_changed_in_place(tmp_path: Path) -> None:
    module = import_net(
        write_net(tmp_path, INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "x" }')
    )
    assert names_of(module) == (["x"], ["x"])
    assert types_of(module) == ["ReLU"]


def test_chosen_outputs_are_last_values_and_prune_layers(tmp_path: Path) -> None:
    net = (
        INPUT
        + """
        layer { name: "1" type: "TanH" bottom: "x" top: "y" }
        layer { name: "2" type: "ReLU" bottom: "y" top: "y" }
        layer { name: "3" type: "Nonsense" bottom: "y" top: "z" }"""
    )
    module = import_net(write_net(tmp_path, net), outputs=["y"])
    assert types_of(module) == ["TanH", "ReLU"]
    returned = main_of(module).body.block.last_op
    assert returned is not None
    assert returned.operands[0] is layers_of(module)[1].results[0]
    assert problems_of(tmp_path / "net.prototxt", outputs=["y", "w"]) == [
        "no blob is named 'w'; the last blobs are 'x', 'y', 'z'"
    ]


def test_all_unknown_layer_types_are_reported_at_once(tmp_path: Path) -> None:
    net = (
        INPUT
        + """
        layer { name: "1" type: "Foo" bottom: "x" top: "y" }
        layer { name: "2" type: "relu" bottom: "y" top: "z" }
        layer { name: "3" type: "MultiBoxLoss" bottom: "z" bottom: "z" }
        layer { name: "4" type: "Python" bottom: "z" top: "t"
          python_param { module: "rpn.anchor_target_layer" layer: "AnchorTargetLayer" } }
        layer { name: "5" type: "Python" bottom: "z" top: "u"
          python_param { module: "rpn.proposal_layer" layer: "Other" } }"""
    )
    assert problems_of(write_net(tmp_path, net)) == [
        "node '1' (Foo): the layer type is not supported",
        "node '2' (relu): the layer type is not supported",
        "node '3' (MultiBoxLoss): the layer is for training only",
        "node '4' (Python): the Python layer 'rpn.anchor_target_layer.AnchorTargetLayer' is for "
        "training only",
        "node '5' (Python): the Python layer 'rpn.proposal_layer.Other' is not supported",
    ]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            'layer { name: "r" type: "ReLU" bottom: "w" top: "y" }',
            "node 'r' (ReLU): no layer before it makes its bottom 'w'",
        ),
        (
            'layer { name: "r" type: "ReLU" bottom: "y" top: "x" }'
            'layer { name: "s" type: "ReLU" bottom: "x" top: "y" }',
            "node 'r' (ReLU): no layer before it makes its bottom 'y'",
        ),
        (
            'layer { name: "r" type: "TanH" bottom: "x" top: "y" }'
            'layer { name: "s" type: "ReLU" bottom: "x" top: "y" }',
            "node 's' (ReLU): its top 'y' is the top of another layer already",
        ),
        (
            'layer { name: "r" type: "ReLU" bottom: "x" bottom: "x" top: "y" }',
            "node 'r' (ReLU): found 2 bottoms, expected 1",
        ),
        (
            'layer { name: "r" type: "Eltwise" bottom: "x" top: "y" }',
            "node 'r' (Eltwise): found 1 bottoms, expected at least 2",
        ),
        (
            'layer { name: "r" type: "ReLU" bottom: "x" }',
            "node 'r' (ReLU): found 0 tops, expected 1",
        ),
        (
            'layer { name: "r" type: "Concat" bottom: "x" top: "y" concat_param { axis: 2 } }',
            "node 'r' (Concat): found axis 2, but the bottom has 2 dimensions",
        ),
        (
            'layer { name: "r" type: "Dropout" bottom: "x" top: "y" phase: TRAIN }',
            "node 'r' (Dropout): the layer is fixed to the phase TRAIN, expected TEST",
        ),
        (
            'layer { name: "r" type: "ReLU" bottom: "x" top: "y" include {} exclude {} }',
            "node 'r' (ReLU): has rules to include and to exclude it, expected one kind",
        ),
        (
            'layer { name: "s" type: "Silence" bottom: "x" }',
            "the net has no output: every blob is read by a layer",
        ),
    ],
)
def test_layers_that_do_not_fit(layers: str, message: str, tmp_path: Path) -> None:
    assert problems_of(write_net(tmp_path, INPUT + layers))[0] == message


def test_what_follows_from_a_problem_is_not_reported(tmp_path: Path) -> None:
    net = (
        INPUT
        + """
        layer { name: "1" type: "Foo" bottom: "x" top: "y" }
        layer { name: "2" type: "Pooling" bottom: "y" top: "z" pooling_param { kernel_size: 2 } }"""
    )
    assert len(problems_of(write_net(tmp_path, net))) == 1


# Inputs


def test_shapes_of_inputs_can_be_replaced(tmp_path: Path) -> None:
    path = write_net(tmp_path, INPUT)
    module = import_net(path, input_shapes={"x": [5, 7]})
    assert str(main_of(module).body.block.args[0].type) == "tensor<5x7xf32>"
    assert problems_of(path, input_shapes={"y": [1]}) == [
        "a shape is given for 'y', but the inputs are 'x'"
    ]
    assert problems_of(path, input_shapes={"x": [-1]})[0] == "the shape given for 'x' is negative"


def test_an_input_without_shape_needs_one(tmp_path: Path) -> None:
    path = write_net(tmp_path, 'layer { name: "in" type: "Input" top: "x" }')
    assert problems_of(path) == [
        "node 'in' (Input): nothing says the shape of 'x'; give it with --input-shape x=..."
    ]
    assert names_of(import_net(path, input_shapes={"x": [1]}))[0] == ["x"]


def test_one_shape_serves_all_tops_of_an_input(tmp_path: Path) -> None:
    net = """layer { name: "in" type: "Input" top: "a" top: "b" input_param { shape { dim: 4 } } }
        layer { name: "s" type: "Eltwise" bottom: "a" bottom: "b" top: "y" }"""
    module = import_net(write_net(tmp_path, net))
    assert [str(arg.type) for arg in main_of(module).body.block.args] == ["tensor<4xf32>"] * 2


DATA = """
    layer { name: "d" type: "Data" top: "x" top: "label" data_param { source: "db" } }
    layer { name: "r" type: "ReLU" bottom: "x" top: "y" }"""


def test_layers_that_read_data_are_inputs_if_shapes_are_given(tmp_path: Path) -> None:
    path = write_net(tmp_path, DATA)
    assert problems_of(path) == [
        "node 'd' (Data): nothing says the shape of 'x'; give it with --input-shape x=..."
    ]
    module = import_net(path, input_shapes={"x": [1, 3]})
    assert names_of(module) == (["x"], ["y"])  # nobody reads the label


def test_a_label_that_is_read_or_asked_for_is_an_input(tmp_path: Path) -> None:
    path = write_net(tmp_path, DATA)
    both = {"x": [1, 3], "label": [1]}
    assert names_of(import_net(path, input_shapes=both)) == (["x", "label"], ["label", "y"])
    path = write_net(tmp_path, DATA + 'layer { name: "l" type: "Silence" bottom: "label" }')
    assert problems_of(path, input_shapes={"x": [1, 3]})[0].endswith("--input-shape label=...")


def test_memory_data_say_their_shape(tmp_path: Path) -> None:
    net = """layer { name: "d" type: "MemoryData" top: "x" top: "label"
        memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 } }
        layer { name: "r" type: "ReLU" bottom: "x" top: "y" }"""
    module = import_net(write_net(tmp_path, net))
    assert str(main_of(module).body.block.args[0].type) == "tensor<2x3x4x5xf32>"


def test_random_data_can_be_replaced_by_an_input(tmp_path: Path) -> None:
    net = """layer { name: "d" type: "DummyData" top: "x"
        dummy_data_param { shape { dim: 2 } data_filler { type: "gaussian" } } }
        layer { name: "r" type: "ReLU" bottom: "x" top: "y" }"""
    path = write_net(tmp_path, net)
    assert problems_of(path) == [
        "node 'd' (DummyData): its data are random; make them inputs with --input-shape x=..."
    ]
    assert names_of(import_net(path, input_shapes={"x": [3]}))[0] == ["x"]


# The text format


def test_the_oddities_of_the_text_format(tmp_path: Path) -> None:
    net = """# a comment
        layer { name: 'in' type: "Input" top: "x",
          input_param: { shape: { dim: [1, 2, 0x8, 010] } } }
        layer < name: "p" "1"; type: "Pooling" bottom: "x" top: "p"
          pooling_param < pool: 1 kernel_size: 2 > >;
        layer { bottom: ["p", 'p'] top: "e" name: "e\\x31" type: "Eltwise"
          eltwise_param { coeff: [.5, -1e0] operation: SUM stable_prod_grad: 0 } }"""
    module = import_net(write_net(tmp_path, net))
    assert str(main_of(module).body.block.args[0].type) == "tensor<1x2x8x8xf32>"
    pooling, eltwise = layers_of(module)
    assert isinstance(pooling.location, NameLoc)
    assert pooling.location.desc.data == "p1"
    assert pooling.parameters(PoolingParameter).pool == PoolingParameter.AVE
    assert list(eltwise.parameters(EltwiseParameter).coeff) == [0.5, -1.0]
    assert isinstance(eltwise.location, NameLoc)
    assert eltwise.location.desc.data == "e1"


def test_parameters_have_defaults_and_know_what_is_set(tmp_path: Path) -> None:
    net = (
        INPUT.replace("dim: 2 dim: 3", "dim: 1 dim: 2 dim: 5 dim: 5")
        + """
        layer { name: "i" type: "Im2col" bottom: "x" top: "y"
          convolution_param { kernel_size: 3 dilation: 1 dilation: 2 } }"""
    )
    parameters = layers_of(import_net(write_net(tmp_path, net)))[0].parameters(ConvolutionParameter)
    assert list(parameters.dilation) == [1, 2]
    assert parameters.bias_term
    assert not parameters.HasField("bias_term")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name: "n"\nlayer { colour: 3 }', "line 2: "),
        ('name: "n"\n\nlayer { name: "a" name: "b" }', "line 3: "),
        ("layer { pooling_param { pool: 7 } }", "line 1: "),
        ("layer { pooling_param { kernel_size: -1 } }", "line 1: "),
        ("layer { name: 3 }", "line 1: "),
        ('layer { name: "a"', "line 1: "),
    ],
)
def test_text_that_is_no_net(text: str, message: str, tmp_path: Path) -> None:
    (problem,) = problems_of(write_net(tmp_path, text))
    assert problem.startswith(message)
    assert "; correct the text" in problem


def test_all_unknown_fields_are_named(tmp_path: Path) -> None:
    """Blocks, lists, strings side by side and comments with brackets are read past."""
    text = """name: "n"
layer { name: "a" type: "Mine" mine_param { deep { x: "}" 'y' } # }
  list: [1, 2] } bottom: "x" }
layer { name: "b" type: "ReLU" colour: "red" 'ish' relu_param { slope: -1.5 negative_slope: 1 } }
layer { name: "c" other <a: 1> }
colours: [3]
"""
    found = problems_of(write_net(tmp_path, text))
    assert [re.sub(";.*", "", one) for one in found] == [
        "line 2: LayerParameter has no field 'mine_param'",
        "line 4: LayerParameter has no field 'colour'",
        "line 4: ReLUParameter has no field 'slope'",
        "line 5: LayerParameter has no field 'other'",
        "line 6: NetParameter has no field 'colours'",
    ]


def test_a_caffemodel_alone_is_no_net(tmp_path: Path) -> None:
    net = NetParameter(name="n")
    net.layer.add(name="a", type="ReLU")
    path = tmp_path / "net.caffemodel"
    path.write_bytes(net.SerializeToString())
    (problem,) = problems_of(path)
    assert "and the .prototxt as the model" in problem
    with pytest.raises(Exception, match=r"expected the \.prototxt of a net"):
        load_model(path)
