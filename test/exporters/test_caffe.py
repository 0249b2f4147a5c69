"""Core as nets of Caffe: read back, they compute the same; the files are as Caffe writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from xdsl.context import Context
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

import lowerdeck
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.caffe.caffe_pb2 import LayerParameter, NetParameter
from lowerdeck.dialects.caffe.shapes import layer_shapes
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core import linear, tensor
from lowerdeck.dialects.core import reduce as reductions
from lowerdeck.dialects.core.types import i64
from lowerdeck.dialects.interpret import run_module
from lowerdeck.exporters.caffe import export_caffe, write_model
from lowerdeck.exporters.caffe.convert import ConvertToCaffePass
from lowerdeck.exporters.errors import ExportError
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.contracts import check_contract

from .caffe_programs import (
    Program,
    check,
    constant,
    floats,
    module_of,
    net_of,
    number,
    read_back,
)

# Windows


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (0, 3), (-1, 1), (2, -2)])
def test_windows_of_convolutions(tmp_path: Path, stride: int, pads: tuple[int, int]) -> None:
    """Any padding, in one dimension only, so that height and width cannot be confused."""
    w, b = floats(4, 2, 3, 3), floats(4)

    def program(x: SSAValue) -> Any:
        return linear.ConvOp(
            x,
            constant(w),
            constant(b),
            strides=[stride, 1],
            dilations=[1, 2],
            pads_begin=[pads[0], 1],
            pads_end=[pads[1], 1],
            groups=2,
        )

    check(tmp_path, {"x": floats(2, 4, 9, 10)}, program)


def test_windows_of_volumes_have_a_number_for_each_dimension(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        w, ones, twos = constant(floats(2, 3, 2, 2, 2)), [1] * 3, [2] * 3
        return linear.ConvOp(x, w, strides=twos, dilations=ones, pads_begin=ones, pads_end=ones)

    check(tmp_path, {"x": floats(1, 3, 4, 5, 6)}, program)
    found = net_of(tmp_path / "net.prototxt").layer[1].convolution_param
    windows = (found.kernel_size, found.stride, found.pad, found.dilation)
    assert [list(each) for each in windows] == [[2] * 3, [2] * 3, [1] * 3, []]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (1, 0), (2, 1), (1, 2)])
@pytest.mark.parametrize("extra", [0, 1])
def test_windows_of_transposed_convolutions(
    tmp_path: Path, stride: int, pads: tuple[int, int], extra: int
) -> None:
    w, b = floats(4, 3, 3, 3), floats(6)

    def program(x: SSAValue) -> Any:
        return linear.ConvTransposeOp(
            x,
            constant(w),
            constant(b),
            strides=[stride, 2],
            dilations=[1, 1],
            pads_begin=[pads[0], 1],
            pads_end=[pads[1], 1],
            output_padding=[extra, 0],
            groups=2,
        )

    check(tmp_path, {"x": floats(2, 4, 4, 5)}, program)


@pytest.mark.parametrize("kind", ["max", "average", "sum"])
@pytest.mark.parametrize("count_pads", [False, True])
@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (0, 1), (1, 1), (1, 0)])
def test_windows_of_pools(
    tmp_path: Path, kind: str, count_pads: bool, kernel: int, stride: int, pads: tuple[int, int]
) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            kind,
            x,
            kernel=[kernel, 2],
            strides=[stride, 1],
            dilations=[1, 1],
            pads_begin=[pads[0], 0],
            pads_end=[pads[1], 1],
            overhang=[0, 0],
            count_pads=count_pads and kind == "average",
        )

    check(tmp_path, {"x": floats(1, 2, 8, 7)}, program)


def test_pools_that_hang_over(tmp_path: Path) -> None:
    """Rounded up, what hangs over the padding is not counted: as Caffe has it."""

    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            "average",
            x,
            kernel=[3, 3],
            strides=[2, 2],
            dilations=[1, 1],
            pads_begin=[1, 0],
            pads_end=[2, 1],
            overhang=[1, 1],
            count_pads=True,
        )

    assert check(tmp_path, {"x": floats(1, 2, 8, 8)}, program) == ["Pooling"]


def test_window_larger_than_the_plane(tmp_path: Path) -> None:
    """Only padding at the end makes room for it."""

    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            "average",
            x,
            kernel=[7, 7],
            strides=[1, 1],
            dilations=[1, 1],
            pads_begin=[0, 0],
            pads_end=[1, 1],
            overhang=[0, 0],
        )

    check(tmp_path, {"x": floats(1, 2, 6, 6)}, program)


def test_lines_are_pooled_as_planes(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        return reductions.PoolOp(
            "max",
            x,
            kernel=[3],
            strides=[2],
            dilations=[1],
            pads_begin=[1],
            pads_end=[1],
            overhang=[0],
        )

    check(tmp_path, {"x": floats(2, 3, 9)}, program)


def test_padding_is_part_of_a_convolution(tmp_path: Path) -> None:
    """Also where the model pads before it brings the channels to the front."""
    w = floats(4, 3, 3, 3)

    def program(x: SSAValue) -> Any:
        wide = tensor.PadOp(x, [0, 1, 0, 0], [0, 1, 2, 0]).result
        return linear.ConvOp(
            tensor.TransposeOp(wide, [0, 3, 1, 2]).result,
            constant(w),
            strides=[1, 1],
            dilations=[1, 1],
            pads_begin=[0, 1],
            pads_end=[0, 1],
        )

    types = check(tmp_path, {"x": floats(1, 5, 6, 3)}, program, "ssd")
    assert types[:2] == ["Permute", "Convolution"]
    assert "DummyData" not in types


# Elements


@pytest.mark.parametrize("op", [e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.MinOp])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 4), (2, 3, 4)),
        ((2, 3, 4), (3, 1)),
        ((2, 3, 4), (3, 4)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), (2, 1, 1)),
        ((2, 3, 4), (2, 1, 4)),
        ((2, 3, 4), ()),
        ((2, 1, 4), (3, 1)),
        ((1, 3, 1), (1, 1, 4)),
    ],
)
@pytest.mark.parametrize("constants", ["", "left", "right"])
def test_what_broadcasts(
    tmp_path: Path, op: Any, shapes: tuple[tuple[int, ...], ...], constants: str
) -> None:
    left, right = (np.abs(floats(*shape)) + np.float32(0.5) for shape in shapes)

    def program(*values: SSAValue) -> Any:
        match constants:
            case "left":
                return op(constant(np.asarray(left)), values[0])
            case "right":
                return op(values[0], constant(np.asarray(right)))
            case _:
                return op(*values)

    inputs = {"a": np.asarray(left), "b": np.asarray(right)}
    if constants:
        del inputs["a" if constants == "left" else "b"]
    check(tmp_path, inputs, program)


FUNCTIONS: list[tuple[str, Program]] = [
    ("ReLU", lambda x: e.MaxOp(x, number(0))),
    ("ReLU", lambda x: e.MaxOp(x, e.MulOp(x, number(0.2)).result)),
    ("Clip", lambda x: e.MinOp(e.MaxOp(x, number(0)).result, number(6))),
    ("Clip", lambda x: e.MaxOp(e.MinOp(x, number(1)).result, number(-1))),
    ("Clip", lambda x: e.MaxOp(x, number(0.5))),
    ("Power", lambda x: e.NegOp(x)),
    ("Power", lambda x: e.SubOp(number(2), x)),
    ("Power", lambda x: e.PowOp(e.AbsOp(x).result, number(1.5))),
    ("Softmax", lambda x: reductions.SoftmaxOp(x, 1)),
    ("TanH", e.TanhOp),
    ("Exp", e.ExpOp),
    ("AbsVal", e.AbsOp),
    ("Sigmoid", e.SigmoidOp),
]


@pytest.mark.parametrize(("expected", "program"), FUNCTIONS)
def test_function(tmp_path: Path, expected: str, program: Program) -> None:
    assert check(tmp_path, {"x": floats(2, 3, 4) * 3}, program)[-1] == expected


def test_bounds_in_the_wrong_order_are_no_clip(tmp_path: Path) -> None:
    """min(max(x, 3), 1) is 1 everywhere; a Clip from 1 to 3 is not."""
    types = check(
        tmp_path,
        {"x": floats(2, 3, 4) * 3},
        lambda x: e.MinOp(e.MaxOp(x, number(3)).result, number(1)),
    )
    assert types == ["Clip", "Clip"]


def test_what_is_zero_by_itself_needs_no_choice(tmp_path: Path) -> None:
    """But a quotient by zero is no number, and a product with zero none either."""
    inputs = {"x": floats(2, 3), "c": np.array([[0, 1, 2], [3, 0, 0]], np.float32)}

    def program(cls: Any, x: SSAValue, c: SSAValue) -> Any:
        is_zero = e.CompareOp("eq", c, number(0)).result
        return e.SelectOp(is_zero, number(0), cls(e.MulOp(x, x).result, c).result)

    types = check(tmp_path, inputs, lambda x, c: program(e.MulOp, x, c))
    assert types == ["Eltwise", "Eltwise"]
    with pytest.raises(ExportError, match="no layer of Caffe computes"):
        check(tmp_path, inputs, lambda x, c: program(e.DivOp, x, c))


# Reductions


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("axes", [[0], [1], [3], [2, 3], [1, 2], [0, 2], [1, 2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("keep", [False, True])
def test_reduction(tmp_path: Path, kind: str, axes: list[int], keep: bool) -> None:
    check(tmp_path, {"x": floats(2, 3, 4, 5)}, lambda x: reductions.ReduceOp(kind, x, axes, keep))


@pytest.mark.parametrize("keep", [False, True])
def test_mean_of_planes_is_a_pool(tmp_path: Path, keep: bool) -> None:
    def program(x: SSAValue) -> Any:
        return e.DivOp(reductions.ReduceOp("sum", x, [2, 3], keep).result, number(20))

    assert check(tmp_path, {"x": floats(2, 3, 4, 5)}, program)[0] == "Pooling"
    assert net_of(tmp_path / "net.prototxt").layer[1].pooling_param.global_pooling


# Movement


@pytest.mark.parametrize("dialect", ["bvlc", "ssd"])
@pytest.mark.parametrize(
    "order", [[0, 2, 3, 1], [0, 3, 1, 2], [1, 0, 2, 3], [2, 3, 0, 1], [0, 1, 3, 2], [3, 0, 1, 2]]
)
def test_order_of_dimensions(tmp_path: Path, dialect: str, order: list[int]) -> None:
    types = check(
        tmp_path, {"x": floats(2, 3, 4, 5)}, lambda x: tensor.TransposeOp(x, order), dialect
    )
    assert ("Permute" in types) == (dialect == "ssd")


def test_order_that_no_slices_make(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--dialect=ssd"):
        check(tmp_path, {"x": floats(2, 3, 4)}, lambda x: tensor.TransposeOp(x, [2, 1, 0]))
    check(tmp_path, {"x": floats(2, 3, 4)}, lambda x: tensor.TransposeOp(x, [2, 1, 0]), "ssd")


@pytest.mark.parametrize(
    ("starts", "sizes", "steps"),
    [
        ([0, 1, 0, 2], [2, 2, 4, 3], [1, 1, 1, 1]),
        ([0, 0, 1, 0], [2, 3, 2, 3], [1, 1, 2, 2]),
        ([0, 2, 0, 0], [2, 3, 4, 5], [1, -1, 1, 1]),
    ],
)
def test_slices(tmp_path: Path, starts: list[int], sizes: list[int], steps: list[int]) -> None:
    check(tmp_path, {"x": floats(2, 3, 4, 5)}, lambda x: tensor.SliceOp(x, starts, sizes, steps))


@pytest.mark.parametrize("value", [None, 0.5])
@pytest.mark.parametrize(
    ("begin", "end"), [([0, 0, 1, 0], [0, 0, 2, 1]), ([0, 1, 0, 0], [1, 0, 0, 2])]
)
def test_padding(tmp_path: Path, begin: list[int], end: list[int], value: float | None) -> None:
    def program(x: SSAValue) -> Any:
        return tensor.PadOp(x, begin, end, None if value is None else number(value))

    check(tmp_path, {"x": floats(2, 3, 4, 5)}, program)


def test_rows_at_indices_that_are_floats(tmp_path: Path) -> None:
    table = floats(5, 3)

    def program(x: SSAValue) -> Any:
        return tensor.GatherOp(constant(table), e.CastOp(x, i64).result, 0)

    assert check(tmp_path, {"x": np.array([[4, 0], [2, 2]], np.float32)}, program) == ["Embed"]


@pytest.mark.parametrize(
    ("axis", "places"),
    [
        (2, [0, 0, 1, 1, 2, 2, 3, 3]),
        (3, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]),
        (1, [0, 0, 1, 1, 2, 2]),
        (0, [0, 0, 1, 1]),
        (1, [2, -3, 1, 1]),
        (1, [0, 1, 0, 1, 2, 2]),
    ],
)
def test_elements_at_constant_places(tmp_path: Path, axis: int, places: list[int]) -> None:
    types = check(
        tmp_path,
        {"x": floats(2, 3, 4, 5)},
        lambda x: tensor.GatherOp(x, constant(np.array(places)), axis),
    )
    assert ("Deconvolution" in types) == (axis in (2, 3))


def test_nearest_neighbors_are_one_layer(tmp_path: Path) -> None:
    def program(x: SSAValue) -> Any:
        rows = constant(np.arange(4).repeat(2))
        columns = constant(np.arange(5).repeat(3))
        return tensor.GatherOp(tensor.GatherOp(x, rows, 2).result, columns, 3)

    assert check(tmp_path, {"x": floats(2, 3, 4, 5)}, program) == ["Deconvolution"]


def test_places_outside_are_refused() -> None:
    """There core has an error at run time."""

    def program(x: SSAValue) -> Any:
        return tensor.GatherOp(x, constant(np.array([0, 3])), 1)

    with pytest.raises(ExportError, match="an index outside of 3 elements"):
        ConvertToCaffePass().apply(Context(), module_of({"x": floats(2, 3)}, program))


def test_constants_are_layers(tmp_path: Path) -> None:
    """One of a single number, one of many, and one that is a result."""
    many = floats(2, 1)

    def program(x: SSAValue) -> Any:
        one = constant(np.full((2, 2), 3, np.float32))
        return [tensor.ConcatOp([x, one, constant(many)], 1).result, constant(floats(3))]

    types = check(tmp_path, {"x": floats(2, 3)}, program)
    assert sorted(types) == ["Concat", "DummyData", "Parameter", "Parameter"]


def test_results_that_are_read_given_or_repeated(tmp_path: Path) -> None:
    def program(x: SSAValue, z: SSAValue) -> Any:
        y = e.TanhOp(x).result
        return [y, e.SigmoidOp(y).result, y, x, z]

    check(tmp_path, {"x": floats(2, 3), "z": floats(2, 3)}, program)


# Files


def normalized(x: SSAValue) -> Any:
    w, v = floats(4, 3, 3, 3), np.abs(floats(4))
    y = linear.ConvOp(
        x, constant(w), strides=[1, 1], dilations=[1, 1], pads_begin=[1, 1], pads_end=[1, 1]
    ).result
    scale, bias, mean, variance = (constant(p) for p in (floats(4), floats(4), floats(4), v))
    y = linear.BatchNormOp(y, scale, bias, mean, variance, 1e-3).result
    return e.AddOp(e.MaxOp(y, number(0)).result, y)


def test_layers_compute_in_place_what_nothing_else_reads(tmp_path: Path) -> None:
    """BatchNorm and Scale do; the ReLU does not, for the sum reads its input."""
    check(tmp_path, {"data": floats(1, 3, 4, 4)}, normalized)
    layers = net_of(tmp_path / "net.prototxt").layer
    found = [(layer.type, list(layer.bottom), list(layer.top)) for layer in layers]
    assert found == [
        ("Input", [], ["data"]),
        ("Convolution", ["data"], ["convolution"]),
        ("BatchNorm", ["convolution"], ["convolution"]),
        ("Scale", ["convolution"], ["convolution"]),
        ("ReLU", ["convolution"], ["relu"]),
        ("Eltwise", ["relu", "convolution"], ["y0"]),
    ]


def test_absolute_values_are_not_computed_in_place(tmp_path: Path) -> None:
    """Caffe does not allow it."""
    check(tmp_path, {"x": floats(2, 3)}, lambda x: e.ExpOp(e.AbsOp(e.TanhOp(x).result).result))
    layers = net_of(tmp_path / "net.prototxt").layer[1:]
    found = [(layer.type, list(layer.bottom), list(layer.top)) for layer in layers]
    assert found == [
        ("TanH", ["x"], ["tanh"]),
        ("AbsVal", ["tanh"], ["y0"]),
        ("Exp", ["y0"], ["y0"]),
    ]


def test_a_layer_with_the_name_of_its_output_does_not_compute_in_place(tmp_path: Path) -> None:
    source, out = tmp_path / "own.prototxt", tmp_path / "net.prototxt"
    source.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 } } }'
        'layer { name: "t" type: "TanH" bottom: "x" top: "y" }'
        'layer { name: "u" type: "Exp" bottom: "y" top: "y" }'
        'layer { name: "y" type: "Sigmoid" bottom: "y" top: "y" }'
    )
    lowerdeck.export(source, out)
    layers = net_of(out).layer[1:]
    found = [(layer.name, list(layer.bottom), list(layer.top)) for layer in layers]
    assert found == [("t", ["x"], ["t"]), ("u", ["t"], ["t"]), ("y", ["t"], ["y"])]


@pytest.mark.parametrize(
    ("layers", "is_in_place"),
    [
        ('"TanH" bottom: "x"', True),
        ('"TanH" bottom: "x" } layer { name: "u" type: "Sigmoid" bottom: "t" top: "u"', False),
        ('"Reshape" bottom: "x" reshape_param { shape { dim: 2 dim: 3 } }', False),
        ('"Slice" bottom: "x" top: "u" slice_param { axis: 0 }', True),
    ],
)
def test_memory_that_layers_share_is_not_overwritten(
    tmp_path: Path, layers: str, is_in_place: bool
) -> None:
    """The top of a Flatten is its bottom, so that what the latter shares its memory with counts."""
    path, out = tmp_path / "own.prototxt", tmp_path / "net.prototxt"
    path.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 1 } } }'
        f'layer {{ name: "t" top: "t" type: {layers} }}'
        'layer { name: "f" type: "Flatten" bottom: "t" top: "f" }'
        'layer { name: "y" type: "Exp" bottom: "f" top: "v" }'
    )
    lowerdeck.export(path, out)
    exp = next(layer for layer in net_of(out).layer if layer.type == "Exp")
    assert (exp.bottom == exp.top) == is_in_place


def test_constants_are_not_overwritten(tmp_path: Path) -> None:
    """Caffe fills them once."""
    check(tmp_path, {"x": floats(2, 3)}, lambda x: [e.ExpOp(constant(floats(2, 3))).result, x])
    tops = {layer.type: list(layer.top) for layer in net_of(tmp_path / "net.prototxt").layer}
    assert tops["Parameter"] != tops["Exp"] == ["y0"]


def test_text_is_stable_and_weights_are_those_of_protobuf(tmp_path: Path) -> None:
    module = module_of({"data": floats(1, 3, 4, 4)}, normalized)
    first, second = tmp_path / "net.prototxt", tmp_path / "again" / "net.prototxt"
    second.parent.mkdir()
    export_caffe(module, first)
    export_caffe(module, second)
    assert first.read_text() == second.read_text()
    text = first.read_text()
    assert text.startswith(
        '# generated by lowerdeck\nname: "net"\n'
        'layer {\n  name: "data"\n  type: "Input"\n  top: "data"\n  input_param {\n'
        "    shape { dim: 1 dim: 3 dim: 4 dim: 4 }\n  }\n}\n"
    )
    data = first.with_suffix(".caffemodel").read_bytes()
    assert data == second.with_suffix(".caffemodel").read_bytes()
    net = NetParameter.FromString(data)
    assert net.name == "net"
    conv = next(layer for layer in net.layer if layer.type == "Convolution")
    assert list(conv.blobs[0].shape.dim) == [4, 3, 3, 3]
    assert len(conv.blobs[0].data) == 4 * 3 * 3 * 3
    for layer in net.layer:
        del layer.blobs[:]
    assert net == net_of(first)


def test_large_weights_of_one_number(tmp_path: Path) -> None:
    ones = np.ones((300, 300), np.float32)
    check(tmp_path, {"x": floats(2, 300)}, lambda x: linear.MatmulOp(x, constant(ones)))


def test_nothing_is_written_if_something_has_no_form(tmp_path: Path) -> None:
    with pytest.raises(ExportError) as error:
        check(tmp_path, {"x": floats(2)}, lambda x: e.SinOp(e.RoundOp(x).result))
    assert len(str(error.value).splitlines()) == 2
    assert not list(tmp_path.iterdir())


def test_dialect_that_there_is_not() -> None:
    module = module_of({"x": floats(2)}, e.TanhOp)
    with pytest.raises(ExportError, match="expected bvlc, ssd"):
        ConvertToCaffePass("cafe").apply(Context(), module)


def test_contract_of_the_phase() -> None:
    module = module_of({"x": floats(2)}, e.TanhOp)
    with pytest.raises(Exception, match="convert-to-caffe should have converted it"):
        check_contract(module, "caffe")


# From Caffe: layers that are many ops of core


def net_file(folder: Path, shapes: Mapping[str, tuple[int, ...]], text: str) -> Path:
    """A net of one layer with random weights."""
    net = NetParameter()
    for name, shape in shapes.items():
        layer = net.layer.add(name=name, type="Input", top=[name])
        layer.input_param.shape.add(dim=shape)
    own = text_format.Parse(f'name: "own" {text}', LayerParameter())
    net.layer.append(own)
    path = folder / "own.prototxt"
    path.write_text(text_format.MessageToString(net))
    found = layer_shapes(own, [shapes[name] for name in own.bottom], len(own.top))
    for shape in found.blobs:
        blob = net.layer[-1].blobs.add()
        blob.shape.dim.extend(shape)
        blob.data.extend(floats(*shape).reshape(-1))
    path.with_suffix(".caffemodel").write_bytes(net.SerializeToString())
    return path


X34 = {"x": (2, 4, 3, 5)}
THREE = {name: (2, 3) for name in "xyz"}
RECURRENT = 'bottom: "x" bottom: "cont" top: "y" recurrent_param { num_output: 5 }'
STEPS = {"x": (4, 2, 3), "cont": (4, 2)}


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            STEPS,
            'type: "LSTM" bottom: "x" bottom: "cont" top: "y" recurrent_param { num_output: 5 }',
        ),
        (
            STEPS,
            'type: "RNN" bottom: "x" bottom: "cont" top: "y" recurrent_param { num_output: 5 }',
        ),
        (X34, 'type: "Normalize" bottom: "x" top: "y"'),
        (
            X34,
            'type: "Normalize" bottom: "x" top: "y" '
            "norm_param { across_spatial: false channel_shared: false eps: 0.5 }",
        ),
        (
            X34,
            'type: "Pooling" bottom: "x" top: "y" top: "places" '
            "pooling_param { kernel_size: 3 stride: 2 pad: 1 }",
        ),
        (X34, 'type: "MVN" bottom: "x" top: "y" mvn_param { eps: 0.5 }'),
        (X34, 'type: "MVN" bottom: "x" top: "y" mvn_param { normalize_variance: false }'),
        (X34, 'type: "LRN" bottom: "x" top: "y" lrn_param { local_size: 3 k: 2 alpha: 0.5 }'),
        (
            X34,
            'type: "LRN" bottom: "x" top: "y" '
            "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL alpha: 2 }",
        ),
        (
            X34,
            'type: "BatchNorm" bottom: "x" top: "y" batch_norm_param { use_global_stats: false }',
        ),
        (X34, 'type: "ReLU" bottom: "x" top: "y"'),
        (
            THREE,
            'type: "Eltwise" bottom: "x" bottom: "y" bottom: "z" top: "m" '
            "eltwise_param { operation: MAX }",
        ),
        (X34, 'type: "BNLL" bottom: "x" top: "y"'),
        (X34, 'type: "ELU" bottom: "x" top: "y" elu_param { alpha: 0.5 }'),
        (X34, 'type: "ArgMax" bottom: "x" top: "y" argmax_param { axis: 2 top_k: 2 }'),
    ],
)
def test_layer_comes_back(tmp_path: Path, shapes: Mapping[str, tuple[int, ...]], text: str) -> None:
    """A layer becomes itself, with its weights."""
    source, out = net_file(tmp_path, shapes, text), tmp_path / "net.prototxt"
    lowerdeck.export(source, out, dialect="ssd")
    expected = net_of(source).layer[len(shapes)]
    found = [layer.type for layer in net_of(out).layer if layer.type not in ("Input", "Silence")]
    assert set(found) == {expected.type}
    inputs = {name: floats(*shape) for name, shape in shapes.items()}
    if "cont" in inputs:
        inputs["cont"] = np.array([[0, 1], [1, 1], [1, 0], [1, 1]], np.float32)
    before, after = (run_module(read_back(path), inputs) for path in (source, out))
    assert sorted(before) == sorted(after)
    for name, value in before.items():
        np.testing.assert_allclose(np.asarray(after[name]), np.asarray(value), 1e-5, 1e-5)


def test_what_is_nearly_an_lstm_is_not(tmp_path: Path) -> None:
    """One gate has another function: the steps stay as they are."""
    text = f'type: "LSTM" {RECURRENT}'
    module, context = import_and_lower(
        str(net_file(tmp_path, STEPS, text)), "legal", CompileOptions()
    )
    gate = next(op for op in module.walk() if isinstance(op, e.SigmoidOp))
    Rewriter.replace_op(gate, e.TanhOp(gate.operands[0]))
    inputs = {"x": floats(4, 2, 3), "cont": np.ones((4, 2), np.float32)}
    expected = run_module(module, inputs)["y"]
    run_to_phase(context, module, "caffe", after="legal")
    write_model(module, tmp_path / "net.prototxt")
    assert "LSTM" not in {layer.type for layer in net_of(tmp_path / "net.prototxt").layer}
    found = run_module(read_back(tmp_path / "net.prototxt"), inputs)["y"]
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), 1e-5, 1e-5)


# From TensorFlow

FUSED = """
node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape {
    dim { size: 1 } dim { size: 5 } dim { size: 6 } dim { size: 3 } } } } }
node { name: "conv/weights" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 3 } dim { size: 3 } dim { size: 3 } dim { size: 2 } }
    %(weights)s } } } }
node { name: "conv/Conv2D" op: "Conv2D" input: "image" input: "conv/weights"
  attr { key: "T" value { type: DT_FLOAT } } attr { key: "padding" value { s: "SAME" } }
  attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } } }
%(parameters)s
node { name: "bn/FusedBatchNorm" op: "FusedBatchNorm" input: "conv/Conv2D" input: "gamma"
  input: "beta" input: "mean" input: "variance" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "epsilon" value { f: 0.001 } } attr { key: "is_training" value { b: false } } }
node { name: "Relu" op: "Relu" input: "bn/FusedBatchNorm"
  attr { key: "T" value { type: DT_FLOAT } } }
"""


def test_fused_batch_norm_is_batch_norm_and_scale(tmp_path: Path) -> None:
    vectors = {"gamma": (2, 3), "beta": (4, 5), "mean": (6, 7), "variance": (8, 9)}
    parameters = "\n".join(
        f'node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
        'attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } '
        f"float_val: {a} float_val: {b} }} }} }} }}"
        for name, (a, b) in vectors.items()
    )
    weights = " ".join(f"float_val: {value:.6g}" for value in floats(54))
    graph = text_format.Parse(FUSED % {"weights": weights, "parameters": parameters}, GraphDef())
    path = tmp_path / "out.prototxt"
    lowerdeck.export(graph, path, dialect="ssd")
    layers = net_of(path).layer
    assert [(layer.name, layer.type) for layer in layers] == [
        ("image:0", "Input"),
        ("conv/Conv2D/permute", "Permute"),
        ("conv/Conv2D", "Convolution"),
        ("bn/FusedBatchNorm", "BatchNorm"),
        ("bn/FusedBatchNorm/scale", "Scale"),
        ("Relu", "ReLU"),
        ("Relu/permute", "Permute"),
    ]
    net = NetParameter.FromString(path.with_suffix(".caffemodel").read_bytes())
    blobs = {layer.name: [list(blob.data) for blob in layer.blobs] for layer in net.layer}
    assert blobs["bn/FusedBatchNorm"] == [[6, 7], [8, 9], [1]]
    assert blobs["bn/FusedBatchNorm/scale"] == [[2, 3], [4, 5]]
    image = floats(1, 5, 6, 3)
    model = lowerdeck.compile(graph, cache=False)
    expected = next(iter(model({"image:0": image}).values()))
    found = run_module(read_back(path), {"image:0": image})
    np.testing.assert_allclose(np.asarray(next(iter(found.values()))), expected, 1e-5, 1e-5)


def test_other_suffixes_are_no_formats(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected one with \.onnx or \.prototxt"):
        lowerdeck.export(tmp_path / "model.onnx", tmp_path / "out.caffemodel")
