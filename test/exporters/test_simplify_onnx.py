"""Exported ONNX models: the nodes that are left, and onnxruntime's results before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnx.parser
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from lowerdeck.exporting import export
from models.export_networks import networks

ort = cast(Any, onnxruntime)
Array = NDArray[Any]
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def parsed(
    opset: int, inputs: str, nodes: str, weights: Mapping[str, Array], y: str
) -> onnx.ModelProto:
    """A model with the output `y`; `weights` are initializers."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => (float{y} y) {{'
    model = onnx.parser.parse_model(f"{text}\n{nodes}\n}}")
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for index, node in enumerate(model.graph.node):
        node.name = f"n{index}"
    return model


def session(model: onnx.ModelProto) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def exported(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    export(str(folder / "model.onnx"), folder / "out.onnx")
    cast(Any, onnx.checker).check_model(str(folder / "out.onnx"), full_check=True)
    return onnx.ModelProto.FromString((folder / "out.onnx").read_bytes())


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in nodes_of(model.graph)]


def check(
    model: onnx.ModelProto, feeds: Sequence[Mapping[str, Array]], folder: Path
) -> onnx.ModelProto:
    """The export of a model, which gives what the model gives."""
    found = exported(model, folder)
    before, after = session(model), session(found)
    assert [v.name for v in after.get_inputs()] == [v.name for v in before.get_inputs()]
    assert [v.name for v in after.get_outputs()] == [v.name for v in before.get_outputs()]
    for feed in feeds:
        pairs = zip(before.run(None, dict(feed)), after.run(None, dict(feed)), strict=True)
        for expected, value in pairs:
            assert value.dtype == expected.dtype
            assert value.shape == expected.shape
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
    return found


@dataclass(frozen=True)
class Case:
    """A model of one input, of `shape`, and the operators of its export."""

    nodes: str
    left: Sequence[str]
    shape: str = "[n, 8]"
    y: str = "[n, 8]"
    weights: Mapping[str, Array] = field(default_factory=dict[str, Array])
    opset: int = 13


NORM = {
    "gamma": 1 + floats(6) / 4,
    "beta": floats(6),
    "mean": floats(6),
    "variance": np.abs(floats(6)) + 0.5,
}
NORMALIZED = "y = BatchNormalization <epsilon = 0.001> (c, gamma, beta, mean, variance)"

NUMBERS: Mapping[str, Array] = {
    name: np.array(value, np.float32)
    for name, value in {
        "root": np.sqrt(2),
        "half": 0.5,
        "zero": 0,
        "one": 1,
        "two": 2,
        "three": 3,
        "six": 6,
        "weight": 0.044715,
        "slope": np.sqrt(2 / np.pi),
        "epsilon": 1e-5,
    }.items()
}

ERF = "d = Div (x, root) e = Erf (d)"

NORMAL = """m = ReduceMean <axes = [-1]> (x) c = Sub (x, m) p = Pow (c, two)
v = ReduceMean <axes = [-1]> (p) e = Add (v, epsilon) r = Sqrt (e) n = Div (c, r)"""

SQUARES = "q = Mul (x, x) v = ReduceMean <axes = [-1]> (q) a = Add (v, epsilon)"

CASES: Mapping[str, Case] = {
    "batch norm behind a grouped convolution": Case(
        f"c = Conv <group = 2> (x, w, b) {NORMALIZED}",
        ["Conv"],
        "[n, 4, 5, 5]",
        "[n, 6, 3, 3]",
        {"w": floats(6, 2, 3, 3), "b": floats(6), **NORM},
    ),
    "batch norm behind a transposed convolution": Case(
        f"c = ConvTranspose <group = 2> (x, w) {NORMALIZED}",
        ["ConvTranspose"],
        "[n, 4, 5, 5]",
        "[n, 6, 7, 7]",
        {"w": floats(4, 3, 3, 3), **NORM},
    ),
    "a number minus a convolution, by a number a channel": Case(
        "c = Conv (x, w) d = Sub (three, c) y = Mul (d, f)",
        ["Conv"],
        "[n, 4, 5]",
        "[n, 6, 3]",
        {"w": floats(6, 4, 3), "f": floats(6, 1), **NUMBERS},
    ),
    "a number a column is none a channel": Case(
        "c = Conv (x, w) y = Mul (c, f)",
        ["Conv", "Mul"],
        "[n, 4, 5]",
        "[n, 3, 3]",
        {"w": floats(3, 4, 3), "f": floats(3)},
    ),
    "padding": Case(
        "c = Pad (x, p) y = Conv <pads = [0, 1]> (c, w)",
        ["Conv"],
        "[n, 4, 5]",
        "[n, 3, 7]",
        {"w": floats(3, 4, 3), "p": np.array([0, 0, 2, 0, 0, 1])},
    ),
    "a factor that leaves the range of floats": Case(
        "c = Conv (x, w) y = Div (c, tiny)",
        ["Conv", "Div"],
        "[n, 4, 5]",
        "[n, 3, 5]",
        {"w": np.zeros((3, 4, 1), np.float32) + 100, "tiny": np.array(1e-38, np.float32)},
    ),
    "weights that vanish": Case(
        "c = Conv (x, w) y = Mul (c, tiny)",
        ["Conv", "Mul"],
        "[n, 4, 5]",
        "[n, 3, 5]",
        {"w": np.zeros((3, 4, 1), np.float32) + 1e-20, "tiny": np.array(1e-25, np.float32)},
    ),
    "padding of channels": Case(
        "c = Pad (x, p) y = Conv (c, w)",
        ["Pad", "Conv"],
        "[n, 4, 5]",
        "[n, 3, 3]",
        {"w": floats(3, 5, 3), "p": np.array([0, 1, 0, 0, 0, 0])},
    ),
    "a product of matrices and a row": Case(
        "t = Transpose <perm = [1, 0]> (w) c = MatMul (x, t) y = Add (b, c)",
        ["Gemm"],
        "[n, 4]",
        "[n, 3]",
        {"w": floats(3, 4), "b": floats(3)},
    ),
    "a product of matrices and a column": Case(
        "c = MatMul (x, w) y = Add (b, c)",
        ["MatMul", "Add"],
        "[4, 4]",
        "[4, 4]",
        {"w": floats(4, 4), "b": floats(4, 1)},
    ),
    "gelu": Case(
        f"{ERF} s = Add (e, one) m = Mul (x, s) y = Mul (m, half)", ["Gelu"], weights=NUMBERS
    ),
    "gelu, halved first": Case(
        f"h = Mul (x, half) {ERF} s = Add (one, e) y = Mul (s, h)", ["Gelu"], weights=NUMBERS
    ),
    "gelu by tanh": Case(
        """q = Pow (x, three) w = Mul (weight, q) i = Add (x, w) k = Mul (i, slope)
        t = Tanh (k) s = Add (t, one) h = Mul (x, s) y = Mul (h, half)""",
        ["Gelu"],
        weights=NUMBERS,
    ),
    "gelu by tanh, a cube by products": Case(
        """q = Mul (x, x) p = Mul (x, q) w = Mul (weight, p) i = Add (x, w) k = Mul (slope, i)
        t = Tanh (k) s = Add (one, t) h = Mul (x, s) y = Mul (half, h)""",
        ["Gelu"],
        weights=NUMBERS,
    ),
    "a square by products is no cube": Case(
        """q = Mul (x, x) w = Mul (weight, q) i = Add (x, w) k = Mul (slope, i)
        t = Tanh (k) s = Add (one, t) h = Mul (x, s) y = Mul (half, h)""",
        ["Mul", "Mul", "Add", "Mul", "Tanh", "Add", "Mul", "Mul"],
        weights=NUMBERS,
    ),
    "a cube of something else": Case(
        """q = Mul (x, x) r = Relu (x) p = Mul (r, q) w = Mul (weight, p) i = Add (x, w)
        k = Mul (slope, i) t = Tanh (k) s = Add (one, t) h = Mul (x, s) y = Mul (half, h)""",
        ["Mul", "Relu", "Mul", "Mul", "Add", "Mul", "Tanh", "Add", "Mul", "Mul"],
        weights=NUMBERS,
    ),
    "a part of gelu is read elsewhere": Case(
        f"{ERF} s = Add (e, one) m = Mul (x, s) z = Mul (m, half) y = Sub (z, s)",
        ["Div", "Erf", "Add", "Mul", "Mul", "Sub"],
        weights=NUMBERS,
    ),
    "regions beside gelu, which lie elsewhere in a newer opset": Case(
        f"{ERF} s = Add (e, one) m = Mul (x, s) z = Mul (m, half) "
        "y = RoiAlign <output_height = 2, output_width = 2> (z, regions, images)",
        ["Div", "Erf", "Add", "Mul", "Mul", "RoiAlign"],
        "[1, 2, 6, 6]",
        "[2, 2, 2, 2]",
        {
            **NUMBERS,
            "regions": np.array([[0, 0, 3, 3], [1, 2, 5, 4]], np.float32),
            "images": np.zeros(2, np.int64),
        },
    ),
    "hard swish": Case(
        "p = Add (x, three) c = Clip (p, zero, six) m = Mul (x, c) y = Div (m, six)",
        ["HardSwish"],
        weights=NUMBERS,
    ),
    "gelu, the half inside": Case(
        f"{ERF} h = Mul (e, half) s = Add (half, h) y = Mul (x, s)", ["Gelu"], weights=NUMBERS
    ),
    "gelu, multiplied out": Case(
        f"h = Mul (half, x) {ERF} m = Mul (h, e) y = Add (m, h)", ["Gelu"], weights=NUMBERS
    ),
    "gelu by the other tail": Case(
        """n = Neg (x) d = Div (n, root) e = Erf (d) s = Sub (one, e) h = Mul (x, half)
        y = Mul (h, s)""",
        ["Gelu"],
        weights=NUMBERS,
    ),
    "the wrong tail": Case(
        """n = Neg (x) d = Div (n, root) e = Erf (d) s = Sub (e, one) h = Mul (x, half)
        y = Mul (h, s)""",
        ["Neg", "Div", "Erf", "Sub", "Mul", "Mul"],
        weights=NUMBERS,
    ),
    "gelu by tanh, factored": Case(
        """q = Mul (x, x) w = Mul (weight, q) i = Add (w, one) k = Mul (slope, x) j = Mul (i, k)
        t = Tanh (j) u = Mul (t, half) s = Add (u, half) y = Mul (s, x)""",
        ["Gelu"],
        weights=NUMBERS,
    ),
    "mish": Case("p = Softplus (x) t = Tanh (p) y = Mul (x, t)", ["Mish"]),
    "mish by a logarithm": Case(
        "e = Exp (x) s = Add (one, e) l = Log (s) t = Tanh (l) y = Mul (t, x)",
        ["Mish"],
        weights=NUMBERS,
    ),
    "mish by squares": Case(
        """l = Min (x, twenty) e = Exp (l) s = Add (e, one) q = Mul (s, s) a = Sub (q, one)
        b = Add (q, one) r = Div (a, b) y = Mul (x, r)""",
        ["Mish"],
        weights={**NUMBERS, "twenty": np.array(20, np.float32)},
    ),
    "mish of its exponential": Case(
        """l = Min (x, twenty) e = Exp (l) s = Add (e, two) a = Mul (e, s) b = Add (a, two)
        m = Mul (x, a) y = Div (m, b)""",
        ["Mish"],
        weights={**NUMBERS, "twenty": np.array(20, np.float32)},
    ),
    "a square that overflows": Case(
        """e = Exp (x) s = Add (e, two) a = Mul (e, s) b = Add (a, two) m = Mul (x, a)
        y = Div (m, b)""",
        ["Exp", "Add", "Mul", "Add", "Mul", "Div"],
        weights=NUMBERS,
    ),
    "mish with a limit": Case(
        """l = Min (x, twenty) e = Exp (l) s = Add (e, two) a = Mul (e, s) b = Add (a, two)
        t = Div (a, b) y = Mul (x, t)""",
        ["Mish"],
        weights={**NUMBERS, "twenty": np.array(20, np.float32)},
    ),
    "a limit that shows": Case(
        """l = Min (x, six) e = Exp (l) s = Add (e, two) a = Mul (e, s) b = Add (a, two)
        t = Div (a, b) y = Mul (x, t)""",
        ["Min", "Exp", "Add", "Mul", "Add", "Div", "Mul"],
        weights=NUMBERS,
    ),
    "squares of a tanh": Case(
        """e = Exp (x) s = Add (e, one) q = Mul (s, s) a = Sub (q, one) b = Add (q, one)
        r = Div (b, a) y = Mul (x, r)""",
        ["Exp", "Add", "Mul", "Sub", "Add", "Div", "Mul"],
        weights=NUMBERS,
    ),
    "mish of two values": Case(
        "z = Abs (x) p = Softplus (z) t = Tanh (p) y = Mul (x, t)",
        ["Abs", "Softplus", "Tanh", "Mul"],
    ),
    "the norm of a root": Case(
        f"{SQUARES} s = Sqrt (a) n = Div (x, s) y = Mul (gamma, n)",
        ["RMSNormalization"],
        weights={**NUMBERS, "gamma": floats(8)},
    ),
    "the norm of a reciprocal": Case(
        f"{SQUARES} s = Sqrt (a) r = Reciprocal (s) n = Mul (r, x) y = Mul (n, gamma)",
        ["RMSNormalization"],
        weights={**NUMBERS, "gamma": floats(8)},
    ),
    "the norm of a power": Case(
        f"{SQUARES} r = Pow (a, minus) n = Mul (x, r) y = Mul (n, gamma)",
        ["RMSNormalization"],
        weights={**NUMBERS, "gamma": floats(8), "minus": np.array(-0.5, np.float32)},
    ),
    "a number behind the root": Case(
        """q = Mul (x, x) v = ReduceMean <axes = [-1]> (q) s = Sqrt (v) a = Add (s, epsilon)
        n = Div (x, a) y = Mul (n, gamma)""",
        ["Mul", "ReduceMean", "Sqrt", "Add", "Div", "Mul"],
        weights={**NUMBERS, "gamma": floats(8)},
    ),
    "the root is a factor": Case(
        f"{SQUARES} s = Sqrt (a) n = Mul (s, x) y = Mul (n, gamma)",
        ["Mul", "ReduceMean", "Add", "Sqrt", "Mul", "Mul"],
        weights={**NUMBERS, "gamma": floats(8)},
    ),
    "layer norm": Case(
        f"{NORMAL} g = Mul (n, gamma) y = Add (g, beta)",
        ["LayerNormalization"],
        weights={**NUMBERS, "gamma": floats(8), "beta": floats(8)},
    ),
    "layer norm without a sum": Case(
        f"{NORMAL} y = Mul (n, gamma)",
        ["LayerNormalization"],
        weights={**NUMBERS, "gamma": floats(8)},
    ),
    "a factor a row is none of a layer norm": Case(
        f"{NORMAL} g = Mul (n, gamma) y = Add (g, beta)",
        ["ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"],
        "[3, 8]",
        "[3, 8]",
        {**NUMBERS, "gamma": floats(3, 1), "beta": floats(8)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nodes(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model = parsed(case.opset, f"float{case.shape} x", case.nodes, case.weights, case.y)
    dims = [3 if dim == "n" else int(dim) for dim in case.shape.strip("[]").split(", ")]
    found = check(model, [{"x": 3 * floats(*dims)}], tmp_path)
    assert operators(found) == case.left


def test_a_table_is_written_once(tmp_path: Path) -> None:
    """Where a product reads it transposed and a Gather as it is; for the product alone, turned."""
    table, indices = floats(300, 40), np.array([[1, 299, 0]])
    tied = parsed(
        18,
        "int64[1,3] i",
        "x = Gather(e, i) t = Transpose<perm=[1,0]>(e) y = MatMul(x, t)",
        {"e": table},
        "[1,3,300]",
    )
    found = check(tied, [{"i": indices}], tmp_path)
    assert operators(found) == ["Gather", "Transpose", "MatMul"]
    assert [list(each.dims) for each in found.graph.initializer] == [[300, 40]]
    alone = parsed(
        18,
        "float[3,40] x",
        "t = Transpose<perm=[1,0]>(e) a = MatMul(x, t) y = Add(a, b)",
        {"e": table, "b": floats(300)},
        "[3,300]",
    )
    found = check(alone, [{"x": floats(3, 40)}], tmp_path)
    assert "Transpose" not in operators(found)


def test_parts_of_one_weight_are_folded(tmp_path: Path) -> None:
    """Although each part but the last leaves it to another."""
    nodes = " ".join(
        f"p{k} = Slice(e, s{k}, s{k + 1}, zero) q{k} = Neg(p{k}) m{k} = MatMul(x, q{k})"
        for k in range(3)
    )
    model = parsed(
        18,
        "float[2,40] x",
        f"{nodes} t = Transpose<perm=[1,0]>(m0) u = Concat<axis=1>(m1, m2) y = MatMul(t, u)",
        {
            "e": floats(40, 900),
            "zero": np.array([1]),
            **{f"s{k}": np.array([300 * k]) for k in range(4)},
        },
        "[300,600]",
    )
    found = check(model, [{"x": floats(2, 40)}], tmp_path)
    assert "Slice" not in operators(found)
    assert "Neg" not in operators(found)


def test_names_and_the_opset_stay(tmp_path: Path) -> None:
    text = "d = Identity (x) r = Relu (d) z = Reshape (r, s) y = Sigmoid (z)"
    model = parsed(14, "float[n, 8] x", text, {"s": np.array([-1, 4])}, "[m, 4]")
    found = check(model, [{"x": floats(3, 8)}], tmp_path)
    assert [(node.name, node.op_type) for node in found.graph.node] == [
        ("n1", "Relu"),
        ("n2", "Reshape"),
        ("n3", "Sigmoid"),
    ]
    assert [(one.domain, one.version) for one in found.opset_import] == [("", 14)]


def test_a_loop_keeps_its_constants_and_captures(tmp_path: Path) -> None:
    text = """
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[3] x, int64 trips) => (float[3] y) {
        c = Identity (x)
        true = Constant <value = bool {1}> ()
        y = Loop (trips, true, x) <
          body = b (int64 i, bool go, float[3] v) => (bool go2, float[3] w) {
          two = Constant <value = float {2.0}> ()
          four = Mul (two, two)
          s = Mul (v, four)
          same = Identity (s)
          w = Add (same, c)
          go2 = Identity (go)
        }>
      }"""
    model = onnx.parser.parse_model(text)
    feeds = [{"x": floats(3), "trips": np.array(trips)} for trips in (0, 3)]
    found = check(model, feeds, tmp_path)
    assert Counter(operators(found)) == {"Loop": 1, "Mul": 1, "Add": 1}


def _types_of_body(model: onnx.ModelProto) -> list[str]:
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    return [onnx.helper.printable_type(port.type) for port in body.input]


LOOP = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 3] x, int64 trips) => (float[n, 3] y) {{
      true = Constant <value = bool {{1}}> ()
      y = Loop (trips, true, x) <
        body = b (int64 i, bool go, float v) => (bool go2, float w) {{
          {body}
          go2 = Identity (go)
        }}>
    }}"""


@pytest.mark.parametrize(
    ("body", "shape"),
    [("w = Mul (v, v)", "FLOAT, 1x3"), ("w = Concat <axis = 0> (v, v)", "FLOAT")],
)
def test_types_of_carried_values(tmp_path: Path, body: str, shape: str) -> None:
    """Runtimes are told of the shape that a value has in all iterations, and of no other one."""
    model = onnx.parser.parse_model(LOOP.format(body=body))
    model.graph.node[1].attribute[0].g.input[2].type.tensor_type.ClearField("shape")
    feeds = [{"x": floats(1, 3), "trips": np.array(trips)} for trips in (0, 2)]
    found = check(model, feeds, tmp_path)
    assert _types_of_body(found) == ["INT64, scalar", "BOOL, scalar", shape]


@pytest.mark.parametrize(("name", "most"), [("gru", 9), ("encoder", 63), ("detection_head", 29)])
def test_networks(name: str, most: int, tmp_path: Path) -> None:
    """Recurrent layers and NonMaxSuppression stay, and no more is left than onnxsim leaves."""
    model, inputs = networks()[name]
    found = check(model, [inputs], tmp_path)
    assert len(operators(found)) <= most
    kept = {"GRU", "LayerNormalization", "Gelu", "NonMaxSuppression"}
    assert (
        kept & {*operators(found)}
        == {
            "gru": {"GRU"},
            "encoder": {"LayerNormalization", "Gelu"},
            "detection_head": {"NonMaxSuppression"},
        }[name]
    )
