"""DarkNet: cfgs and weights; results of all layers are those of DarkNet itself."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import lowerdeck
from lowerdeck.dialects.core.states import states_of
from lowerdeck.dialects.core.types import static_shape
from lowerdeck.dialects.darknet.sections import HEADS
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import facts_of, load_model
from lowerdeck.frontends.darknet.import_ import weight_shapes
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.passes.legalize.darknet.framework import DarknetWalk
from lowerdeck.passes.legalize.walk import LegalizationError
from models.darknet_nets import conv, head, net, write_net
from models.darknet_networks import NETWORKS, network

from .darknet_forms import CALLS, FORMS, TREE  # noqa: TID251

Array = NDArray[Any]

RESULTS = Path(__file__).parent / "darknet_models" / "results.npz"


def _main(module: ModuleOp) -> func.FuncOp:
    (main,) = module.body.block.ops
    assert isinstance(main, func.FuncOp)
    return main


def _legal(path: Path, **options: Any) -> Calls:
    module = load_model(path, **options)
    DarknetWalk(_main(module)).run()
    module.verify()
    return Calls(module)


def _inputs(path: Path, calls: int) -> Array:
    shape = static_shape(_main(load_model(path)).body.block.args[0])
    assert shape is not None
    return np.random.default_rng(1).normal(size=(calls, *shape)).astype(np.float32)


def _net_with_tree(folder: Path, text: str) -> Path:
    """A net with a file of classes beside it, and one folder above."""
    above = folder.parent / "data"
    for place in (folder, above):
        place.mkdir(parents=True)
        (place / "words.tree").write_text(TREE)
    return write_net(folder, "net", text)


@pytest.mark.parametrize("name", FORMS)
def test_every_layer_gives_what_darknet_gives(name: str, tmp_path: Path) -> None:
    path = _net_with_tree(tmp_path / "nets", FORMS[name])
    calls = CALLS.get(name, 1)
    with np.load(RESULTS) as results:
        expected = {key: results[key] for key in results.files if key.startswith(f"{name}/")}
    layers = [key.split("/")[2] for key in expected if "/0/" in key and "boxes" not in key]
    given = _inputs(path, calls)
    run, heads = _legal(path, outputs=layers), _legal(path)
    for number in range(calls):
        found = run({"input": given[number]})
        for layer in layers:
            want = expected[f"{name}/{number}/{layer}"]
            got = np.asarray(found[layer]).reshape(-1)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6, err_msg=layer)
        if (want := expected.get(f"{name}/{number}/boxes")) is not None:
            _check_boxes(heads({"input": given[number]}), want, is_region="region" in name)


def _check_boxes(found: dict[str, Any], want: Array, *, is_region: bool) -> None:
    tables = [np.asarray(value) for key, value in found.items() if key.rpartition("_")[0] in HEADS]
    rows = np.concatenate([table.reshape(-1, table.shape[-1]) for table in tables])
    # DarkNet does not hand out the objectness of regions.
    if is_region:
        rows, want = np.delete(rows, 4, 1), np.delete(want, 4, 1)
    np.testing.assert_allclose(rows, want, rtol=2e-5, atol=2e-6)


def test_the_dialect_is_interpreted_as_what_it_is_legalized_to(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", FORMS["lstm"])
    run = Calls(load_model(path))
    given = _inputs(path, 3)
    with np.load(RESULTS) as results:
        for number in range(3):
            found = np.asarray(run({"input": given[number]})["connected_2"]).reshape(-1)
            want = results[f"lstm/{number}/connected_2"]
            np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6)


def test_c_gives_boxes_of_each_item_of_a_batch(tmp_path: Path) -> None:
    text = net(
        conv(8, 3, 2, "mish"),
        "maxpool size=2 stride=1",
        "convolutional filters=24 size=1 activation=linear",
        "yolo mask=0,1,2 anchors=3,4,5,6,7,8 num=3 classes=3 scale_x_y=1.05",
        "route layers=-4",
        "upsample stride=2",
        "rnn output=4 hidden=3 activation=leaky",
    )
    path = write_net(tmp_path, "net", text)
    given = np.random.default_rng(2).normal(size=(2, 3, 8, 8)).astype(np.float32)
    shapes = {"input": (2, 3, 8, 8)}
    model = lowerdeck.compile(path, target="c99", cache=False, input_shapes=shapes)
    run = _legal(path, input_shapes=shapes)
    for _ in range(2):
        want = run({"input": given})
        for found, name in zip(model(given), ("yolo_3", "rnn_6"), strict=True):
            np.testing.assert_allclose(found, np.asarray(want[name]), rtol=1e-4, atol=1e-5)


NUMBERS = {
    "csresnext50-panet": 57_030_845,
    "enetb0": 4_808_270,
    "rnn": 8_950_016,
    "yolov2-tiny": 11_237_145,
    "yolov3": 62_001_757,
    "yolov3-tiny": 8_858_734,
    "yolov4": 64_429_405,
    "yolov4-tiny": 6_062_814,
    "yolov7-tiny": 6_241_885,
}
"""How many numbers the weights files of well-known nets have."""


@pytest.mark.parametrize("name", NETWORKS)
def test_well_known_nets_have_as_many_weights_as_their_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.cfg"
    path.write_text(network(name))
    assert sum(prod(shape) for _, _, shape in weight_shapes(path)) == NUMBERS[name]


@pytest.mark.parametrize(
    "name", ["enetb0", "rnn", "yolov2-tiny", "yolov3-tiny", "yolov4-tiny", "yolov7-tiny"]
)
def test_small_ones_give_what_darknet_gives(name: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", network(name, width=16, classes=2, size=32))
    found = _legal(path)({"input": _inputs(path, 1)[0]})
    with np.load(RESULTS) as results:
        want = results[f"nets/{name}"]
    if name == "rnn":
        given = np.asarray(found["softmax_4"])[0]
        np.testing.assert_allclose(given, want, rtol=1e-4, atol=1e-6)
    else:
        _check_boxes(found, want, is_region=name == "yolov2-tiny")


def test_each_item_of_a_batch_has_what_it_has_by_itself(tmp_path: Path) -> None:
    layers = [conv(4, 3), "implicit filters=3", "route layers=0", "avgpool", "route layers=-1,1"]
    layers += ["connected output=4 activation=tanh", "lstm output=3", "softmax groups=3"]
    path = write_net(tmp_path, "net", net(*layers))
    given = np.random.default_rng(3).normal(size=(3, 3, 8, 8)).astype(np.float32)
    together = _legal(path, input_shapes={"input": given.shape})({"input": given})
    for number in range(3):
        alone = _legal(path)({"input": given[number : number + 1]})
        for name, value in alone.items():
            whole = np.asarray(together[name])[number]
            np.testing.assert_allclose(whole, np.asarray(value)[0], rtol=1e-5, atol=1e-6)


# What is not in DarkNet's results


def test_relu6_is_that_of_darknet_on_gpus(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net("activation activation=relu6", inputs=4))
    found = _legal(path)({"input": np.array([[-1, 0.5, 6.5, np.nan]], np.float32)})
    assert np.asarray(found["activation_0"])[0, :3].tolist() == [0, 0.5, 6]


@pytest.mark.parametrize(
    ("activation", "want"),
    [
        ("hardtan", [-1, 1, np.nan, -1]),
        ("relu", [np.nan, np.inf, np.nan, 0]),
        ("leaky", [-np.inf, np.inf, np.nan, -10]),
        ("logistic", [0, 1, np.nan, 0]),
        ("stair", [-np.inf, np.inf, np.nan, -50]),
        ("plse", [-np.inf, np.inf, np.nan, -0.96]),
    ],
)
def test_infinities_and_nan_are_those_of_darknet(
    activation: str, want: list[float], tmp_path: Path
) -> None:
    path = write_net(tmp_path, "net", net(f"activation activation={activation}", inputs=4))
    found = _legal(path)({"input": np.array([[-np.inf, np.inf, np.nan, -100]], np.float32)})
    np.testing.assert_allclose(np.asarray(found["activation_0"])[0], want, rtol=1e-6, atol=1e-9)


def test_a_deconvolution_adds_its_weights_at_each_place(tmp_path: Path) -> None:
    text = net("deconvolutional filters=2 size=3 stride=2 padding=1 activation=linear")
    path = write_net(tmp_path, "net", text)
    given = _inputs(path, 1)[0]
    numbers = np.frombuffer(path.with_suffix(".weights").read_bytes()[20:], np.float32)
    bias, weight = numbers[:2], numbers[2:].reshape(3, 2, 3, 3)
    whole = np.zeros((2, 17, 17))
    for row in range(8):
        for column in range(8):
            window = np.tensordot(given[0, :, row, column], weight, 1)
            whole[:, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += window
    want = whole[:, 1:-1, 1:-1] + bias[:, None, None]
    found = np.asarray(_legal(path)({"input": given})["deconvolutional_0"])
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-5)


def test_a_shortcut_from_a_larger_image_takes_every_other_place(tmp_path: Path) -> None:
    text = net("maxpool size=1 stride=2", "conv filters=2 size=1", "shortcut from=-2")
    text += "\n[maxpool]\nsize=1\nstride=2\n\n[shortcut]\nfrom=-2"
    path = write_net(tmp_path, "net", text)
    names = ["shortcut_2", "maxpool_3", "shortcut_4"]
    small, pooled, total = (
        np.asarray(value)
        for value in _legal(path, outputs=names)({"input": _inputs(path, 1)[0]}).values()
    )
    np.testing.assert_array_equal(total, pooled + small[:, :, ::2, ::2])


def test_keys_that_no_section_has_are_told_of(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net("avgpool beta1=3", channels=3, height=2, width=2, foo=1))
    assert facts_of(path)["unknown keys"] == "beta1, foo"
    assert facts_of(path)["version of the weights"] == "0.2.5"


# Results and options


def test_results_are_the_heads_and_the_last_layer_that_is_none(tmp_path: Path) -> None:
    text = net(*head("0", 2), "route layers=0", "cost", channels=3, height=4, width=4)
    path = write_net(tmp_path, "net", text)
    given = {"input": _inputs(path, 1)[0]}
    whole, raw = _legal(path)(given), _legal(path, raw_heads="yes")(given)
    assert [*whole] == ["yolo_1", "route_2"]
    assert [*raw] == ["convolutional_0", "route_2"]
    assert np.asarray(raw["convolutional_0"]).shape == (1, 7, 4, 4)
    assert [*_legal(path, outputs=["convolutional_0"])(given)] == ["convolutional_0"]
    with pytest.raises(FrontendError, match="no layer is named 'x'; the last layers are"):
        load_model(path, outputs=["x"])


def test_what_a_net_remembers_is_a_state(tmp_path: Path) -> None:
    main = _main(load_model(write_net(tmp_path, "net", FORMS["lstm"])))
    names = [(state.before, state.after) for state in states_of(main)]
    assert names[:2] == [
        ("lstm_0_output", "lstm_0_output_next"),
        ("lstm_0_memory", "lstm_0_memory_next"),
    ]


def test_the_image_of_another_size_moves_the_anchors(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net(*head("0", 1)))
    given = np.zeros((1, 3, 4, 4), np.float32)
    small = np.asarray(
        _legal(path, input_shapes={"input": (1, 3, 4, 4)})({"input": given})["yolo_1"]
    )
    large = np.asarray(_legal(path)({"input": np.zeros((1, 3, 8, 8), np.float32)})["yolo_1"])
    np.testing.assert_allclose(small[0, 0, 2:4], 2 * large[0, 0, 2:4])


def test_keys_of_training_are_left_aside_and_the_first_of_two_counts(tmp_path: Path) -> None:
    text = "\ufeff# x=1\r\n[net]\r\nheight = 4\nwidth=4.0\nchannels=3\nbatch=64\nsteps=1,2\n;\n"
    text += "[convolutional]\nfilters=2 # two\nfilters=5\nstopbackward=1\nactivation=linear\n"
    (tmp_path / "net.cfg").write_text(text)
    assert weight_shapes(tmp_path / "net.cfg")[0] == ("convolutional_0", "biases", (2,))


# Weights


def test_the_count_of_images_has_64_bits_from_version_0_2_on(tmp_path: Path) -> None:
    text = net(conv(2, 3), "connected output=3 activation=linear")
    found: list[Array] = []
    for version in ((0, 1, 0), (0, 2, 0), (1, 0, 0)):
        path = write_net(tmp_path, "net", text, version=version)
        found.append(np.asarray(_legal(path)({"input": _inputs(path, 1)[0]})["connected_1"]))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("layer", ["connected output=3", "rnn output=3 hidden=2", "lstm output=3"])
def test_old_files_have_connected_layers_by_columns(layer: str, tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net(layer, inputs=4))
    want = [np.asarray(v) for v in _legal(path)({"input": _inputs(path, 1)[0]}).values()]
    file = path.with_suffix(".weights")
    numbers, lists, place = np.frombuffer(file.read_bytes()[20:], np.float32), list[Array](), 0
    for _, _, shape in weight_shapes(path):
        part = numbers[place : place + int(np.prod(shape))].reshape(shape)
        place += part.size
        lists.append(part.T)
    header = struct.pack("<3iq", 0, 1001, 0, 0)
    file.write_bytes(header + b"".join(np.ascontiguousarray(part).tobytes() for part in lists))
    found = [np.asarray(v) for v in _legal(path)({"input": _inputs(path, 1)[0]}).values()]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)


def _cut(data: bytes) -> bytes:
    return data[:-4]


def _longer(data: bytes) -> bytes:
    return data + b"\0\0\0\0"


def _first(data: bytes) -> bytes:
    return data[:30]


def _head(data: bytes) -> bytes:
    return data[:10]


def _pointer(data: bytes) -> bytes:
    return b"version https://git-lfs" + data


def _nothing(data: bytes) -> bytes:
    del data
    return b""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_cut, r"found 348 bytes, expected 352: the file ends in the weights of 'connected_1'"),
        (_first, r"found 30 bytes, expected 352: .*'conv_0'"),
        (_longer, r"found 356 bytes, expected 352 for the layers of the cfg: it is of another cfg"),
        (_head, r"found no header of a weights file"),
        (_pointer, r"found no header of a weights file"),
        (_nothing, r"found no header of a weights file"),
    ],
)
def test_files_that_are_not_the_weights_of_a_cfg_are_refused(
    change: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    text = net("conv filters=2 size=3 pad=1", "connected output=3", channels=3, height=2, width=2)
    path = write_net(tmp_path, "net", text)
    file = path.with_suffix(".weights")
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(FrontendError, match=message):
        load_model(path)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net(conv(2, 3)))
    path.with_suffix(".weights").rename(tmp_path / "other.weights")
    assert load_model(path)  # the only ones there
    (tmp_path / "more.weights").write_bytes(b"")
    with pytest.raises(FrontendError, match=r"no weights for the layers 'convolutional_0'; give"):
        load_model(path)
    assert load_model(path, weights=tmp_path / "other.weights")
    with pytest.raises(FrontendError, match=r"absent\.weights: cannot be read: No such file"):
        load_model(path, weights=tmp_path / "absent.weights")


# Refusals

REFUSED = [
    ("[convolutional]\nfilters=2", "found [convolutional], expected a cfg with [net] first"),
    ("[net]\nheight=4", "found no layer behind [net]"),
    ("[net]\nheight=4\n[avgpool]", "nothing says the sizes of the input"),
    (net("convolutionel filters=2"), "the section is not known; did you mean 'convolutional'?"),
    (net("maxpool strid=2"), "the key 'strid' is not known; did you mean 'stride'?"),
    (net("maxpool stride=two"), "found stride=two, expected an integer"),
    (net("maxpool stride=99999999999"), "expected an integer"),
    (net("maxpool stride"), "found 'stride', expected key=value with a key and a value"),
    ("x=1\n" + net("maxpool"), "line 1: found 'x=1', expected key=value after a section"),
    (net("maxpool stride=0"), "found stride=0, expected a positive number"),
    (net("maxpool size=20 padding=1"), "found windows of 20 over 8 with 1 of padding"),
    (net("conv activation=sigmoid"), "found activation=sigmoid, expected one of"),
    (net("connected activation=mish"), "found activation=mish, expected one of"),
    (net("conv xnor=1 size=3 pad=1 dilation=2"), "found xnor=1 with dilation"),
    (net("conv xnor=1 stride_x=2"), "found xnor=1 with dilation, unequal strides"),
    (net("crnn xnor=1"), "or in a layer that remembers"),
    (net("conv xnor=1 antialiasing=1"), "found xnor=1 with antialiasing"),
    (net("conv groups=2"), "found 2 groups of 3 channels and 1 filters"),
    (net("conv size=3 dilation=2"), "found dilation 2 with size 3 and padding 0"),
    (net("conv dontload=1"), "found dontload=1, expected weights of all layers in the file"),
    (net("conv share_index=-1"), "share_index=-1 is no convolution before it"),
    (net(conv(3), "conv filters=3 share_index=0"), "of the layer that it shares them with"),
    (net("route layers=-2"), "layers=-2 is no layer before it"),
    (net("route"), "found no 'layers', expected a list of integers"),
    (net("avgpool", "scale_channels from=5"), "from=5 is no layer before it"),
    (net("avgpool", "sam"), "found no 'from', expected a list of integers"),
    (net("route layers=0,"), "layers=0 is no layer before it"),
    (net("avgpool", "route layers=0 groups=2"), "found 3 channels, expected a multiple of 2"),
    (net("maxpool size=3 padding=0", "conv", "upsample", "shortcut from=0"), "equal planes"),
    (net("avgpool", "softmax", "conv"), "found 3 numbers that are no image"),
    (net("yolo classes=1"), "found 3 numbers, expected 6: boxes of a cell"),
    (net(*head("0", 1), "conv"), "it reads 'yolo_1', which gives boxes"),
    (net("cost", "conv"), "it reads 'cost_0', which training alone computes"),
    (net("conv antialiasing=1 stride=2", "conv", "route layers=0"), "with antialiasing"),
    (net("yolo mask=3 classes=1"), "found 3 in the mask of 1 anchors"),
    (net("region tree=a.tree"), "found no file a.tree beside the cfg"),
    (net("reorg stride=3"), "expected multiples of the stride 3"),
    (net("conv_lstm bottleneck=1 pad=1"), "DarkNet has it on GPUs alone"),
    (net("upsample stride=100000"), "numbers, expected 1 to 2147483647"),
    (net("history history_size=3", "reorg3d reverse=1 stride=3"), "DarkNet reads beyond the image"),
    (net("reorg stride=2"), "found 3 channels, expected a multiple of 4"),
    (net("local_avgpool size=2 padding=9 stride=1"), "windows of nothing but padding"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_darknet_has_no_result_for_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises((FrontendError, LegalizationError)) as caught:
        _legal(write_net(tmp_path, "net", text))
    assert message in str(caught.value)
    assert isinstance(caught.value, LegalizationError) or str(caught.value).startswith(
        str(tmp_path / "net.cfg")
    )


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("a -1\nb 0", "a tree of 2 classes"),
        ("a -1\nb 0\nc 2", "line 3: found 'c 2', expected a name and the number of a class"),
        ("a -1\nb x\nc 0", "line 2: found 'b x'"),
        ("", "a tree of 1 classes"),
    ],
)
def test_trees_that_are_none_are_refused(tree: str, message: str, tmp_path: Path) -> None:
    text = net("softmax tree=a.tree", channels=3, height=1, width=1)
    (tmp_path / "a.tree").write_text(tree)
    with pytest.raises((FrontendError, LegalizationError), match=re.escape(message)):
        _legal(write_net(tmp_path, "net", text))


def test_filters_alone_may_be_signs(tmp_path: Path) -> None:
    path = write_net(tmp_path, "net", net("conv filters=2 size=3 binary=1 activation=linear"))
    biases, weights = [
        np.frombuffer(path.with_suffix(".weights").read_bytes(), np.float32, count, 20 + 4 * start)
        for start, count in ((0, 2), (2, 54))
    ]
    filters = weights.reshape(2, 27)
    signs = np.where(filters > 0, 1, -1) * np.abs(filters).mean(1, keepdims=True)
    given = _inputs(path, 1)[0]
    (found,) = map(np.asarray, _legal(path)({"input": given}).values())
    want = signs @ given[0, :, 2:5, 1:4].reshape(-1) + biases
    np.testing.assert_allclose(found[0, :, 2, 1], want, rtol=1e-5)


def test_all_that_is_wrong_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "net.cfg"
    path.write_text(net("conv filters=0", "nothing", "conv size=x", "maxpool strid=1"))
    with pytest.raises(FrontendError) as caught:
        load_model(path)
    assert len(caught.value.problems) == 3
    path.write_text(net("conv filters=0", "conv filters=1 groups=3", "route layers=9"))
    with pytest.raises(FrontendError) as caught:
        load_model(path)
    assert [problem.node for problem in caught.value.problems] == ["route_2", "conv_0"]
