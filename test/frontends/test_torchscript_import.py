"""TorchScript: what PyTorch answered, what is followed and what is refused, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func

from fuzz.weight_files import tensor
from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret import find_function
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError

from .script_archives import method, write  # noqa: TID251

MODELS = sorted((Path(__file__).parent / "script_models").iterdir())

X = np.array([[1, -2], [3, 4]], np.float32)


def _case(folder: Path, types: dict[str, str]) -> None:
    """The interpreter's answers are PyTorch's."""
    case = json.loads((folder / "case.json").read_text())
    given = [f"{name}={type_}" for name, type_ in {**case["types"], **types}.items()]
    module = load_model(folder / "model.pt", input_type=given)
    call = Calls(module)
    main = find_function(module, "main")
    names = value_names(main.arg_attrs, len(main.body.block.args))
    for number in range(case["calls"]):
        with np.load(folder / f"{number}.npz") as file:
            inputs = [file[key] for key in file.files if key.startswith("input:")]
            expected = [file[key] for key in file.files if key.startswith("output:")]
        found = list(call(dict(zip(names, inputs, strict=False))).values())
        for one, other in zip(found, expected, strict=False):
            _require_close(np.asarray(one), other)


def _require_close(found: NDArray[Any], expected: NDArray[Any]) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        assert (found == expected).all()


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_pytorch_gave_the_same_answers(folder: Path) -> None:
    _case(folder, {})


def test_what_every_call_makes_anew_is_no_state() -> None:
    (folder,) = (folder for folder in MODELS if folder.name == "settled_script")
    main = find_function(load_model(folder / "model.pt", input_type=["x=3xf32"]), "main")
    assert value_names(main.arg_attrs, len(main.body.block.args)) == ["x"]


def test_a_size_may_be_open() -> None:
    _case(next(folder for folder in MODELS if folder.name == "branches_script"), {"x": "nx4xf32"})


def _run(path: Path, **options: Any) -> Any:
    found = Calls(load_model(path, input_shapes={"x": [2, 2]}, **options))({"x": X})
    return np.asarray(found["output"])


def test_constants_decide_branches_and_loops(tmp_path: Path) -> None:
    code = method("""
y = x
for i in range(3):
  if torch.eq(torch.remainder(i, 2), 0):
    y0 = torch.add(y, torch.size(x, 0))
  else:
    y0 = torch.mul(y, 2)
  y = y0
return y
""")
    path = write(tmp_path / "m.pt", code)
    module = load_model(path, input_shapes={"x": [2, 2]})
    assert not any(isinstance(op, IfOp | LoopOp) for op in module.walk())
    assert (_run(path) == (X + 2) * 2 + 2).all()


def test_a_long_loop_stays_one(tmp_path: Path) -> None:
    code = method("""
y = x
for i in range(1000):
  y0 = torch.add(y, i)
  y = y0
return y
""")
    path = write(tmp_path / "m.pt", code)
    ops = list(load_model(path, input_shapes={"x": [2, 2]}).walk())
    assert sum(isinstance(op, LoopOp) for op in ops) == 1
    assert len(ops) < 20
    assert (_run(path) == X + 499500).all()


def test_a_list_grows_as_often_as_a_size_says(tmp_path: Path) -> None:
    """Items of views of unknown number, in a list that has another name, too."""
    code = method("""
rows = torch.unbind(x)
found = annotate(List[Tensor], [])
found0 = found
last = torch.zeros([torch.size(x, 1)])
for i in range(torch.len(rows)):
  row = torch.add(rows[i], last)
  part = annotate(List[Tensor], [])
  _0 = torch.append(part, row)
  found0, last = torch.add_(found0, [torch.cat(part)]), row
return (torch.stack(found, -1), torch.cat(found0), torch.mul(found[0], torch.len(found)))
""")
    path = write(tmp_path / "m.pt", code)
    call = Calls(load_model(path, input_type=["x=nx2xf32"]))
    for x in (X, np.arange(6, dtype=np.float32).reshape(3, 2)):
        sums = np.cumsum(x, 0)
        expected = sums.T, sums.reshape(-1), sums[0] * len(x)
        for one, other in zip(call({"x": x}).values(), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("_0 = torch.append(a, y)\n  _1 = torch.add_(y, 1)", "into which it writes"),
        (
            "_0 = torch.add_(y, 1)\n  y = torch.add(y, 1)\n  _1 = torch.append(a, y)",
            "another tensor may have a copy",
        ),
        ("_0 = torch.append(a, y)\n  _1 = torch.append(a, y)", "changes its length"),
        (
            "if bool(torch.gt(x[i][0], 0)):\n    _0 = torch.append(a, y)\n  else:\n    pass",
            "a list of",
        ),
        ("_0 = torch.append(a, y)\n  n = torch.len(a)", "in the loop that makes it longer"),
        ("_0 = torch.append(a, torch.slice(x, 0, 0, i))", "that only its iterations know"),
    ],
)
def test_lists_that_no_rows_are_are_refused(tmp_path: Path, body: str, message: str) -> None:
    start = "a = annotate(List[Tensor], [])\ny = torch.clone(x)\nfor i in range(torch.size(x, 0)):"
    path = write(tmp_path / "m.pt", method(f"{start}\n  {body}\nreturn torch.cat(a)"))
    with pytest.raises(FrontendError, match=message):
        load_model(path, input_type=["x=nx2xf32"])


@pytest.mark.parametrize(
    "body",
    [
        "a = [x, x]\nif bool(torch.gt(x[0][0], 0)):\n  b = a\nelse:\n  b = [torch.neg(x), x]",
        "a = [x, x]\nb = a\nfor i in range(torch.size(x, 0)):\n  b = [torch.neg(b[0]), b[1]]",
    ],
)
def test_a_list_that_may_be_another_is_not_changed(tmp_path: Path, body: str) -> None:
    last = "_0 = torch._set_item(b, 0, torch.mul(x, 2))\nreturn torch.add(a[0], b[0])"
    path = write(tmp_path / "m.pt", method(f"{body}\n{last}"))
    with pytest.raises(FrontendError, match="data decide which it is"):
        load_model(path, input_type=["x=nx2xf32"])
    read = write(tmp_path / "n.pt", method(f"{body}\nreturn torch.add(a[0], torch.mul(b[0], 3))"))
    call = Calls(load_model(read, input_type=["x=nx2xf32"]))
    (found,) = call({"x": X}).values()
    np.testing.assert_array_equal(np.asarray(found), X + 3 * X)


def test_parts_of_stated_sizes(tmp_path: Path) -> None:
    body = """
a, b, = torch.split(x, [1, 2], 1)
if isinstance(a, (list, tuple)):
  ops.prim.RaiseException("a list")
else:
  pass
return torch.add(torch.mul(b, 10), a)
"""
    call = Calls(load_model(write(tmp_path / "m.pt", method(body)), input_type=["x=nx3xf32"]))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = call({"x": x}).values()
    np.testing.assert_array_equal(np.asarray(found), x[:, 1:] * 10 + x[:, :1])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("_0 = torch.append(a, y)", "a tensor or None, as a condition decides"),
        ("_0 = torch.add_(y, 1)", "a tensor or None, as a condition decides"),
    ],
)
def test_what_is_done_if_something_unknown_holds_is_refused(
    tmp_path: Path, body: str, message: str
) -> None:
    start = """
y = torch.clone(x)
a = [y]
if bool(torch.gt(x[0][0], 0)):
  o : Optional[Tensor] = x
else:
  o = None
if torch.__isnot__(o, None):
"""
    path = write(tmp_path / "m.pt", method(f"{start}  {body}\nelse:\n  pass\nreturn a[0]"))
    with pytest.raises(FrontendError, match=message):
        load_model(path, input_type=["x=2x2xf32"])


def test_ranks_that_a_condition_decides_are_refused(tmp_path: Path) -> None:
    body = """
if bool(torch.gt(x[0][0], 0)):
  y = x
else:
  y = torch.flatten(x)
return torch.add(y, 1)
"""
    path = write(tmp_path / "m.pt", method(body))
    with pytest.raises(FrontendError, match=r"one of type .*2x2xf32.* or one of type .*4xf32"):
        load_model(path, input_type=["x=2x2xf32"])


def test_a_first_call_that_only_makes_what_later_ones_find_is_no_state(tmp_path: Path) -> None:
    body = """
h = self.h
if torch.__is__(h, None):
  n = torch.size(x, 1)
  self.h = n
else:
  n = unchecked_cast(int, h)
return torch.mul(x, n)
"""
    code = method(body, fields="w : Tensor\n  h : Optional[int]")
    path = write(tmp_path / "m.pt", code, {"w": np.ones(2, np.float32), "h": b"N"})
    module = load_model(path, input_type=["x=2x3xf32"])
    assert not any(isinstance(op, IfOp) for op in module.walk())
    assert value_names(find_function(module, "main").arg_attrs, 1) == ["x"]
    other = method(
        body.replace("self.h = n", "self.h = 7"), fields="w : Tensor\n  h : Optional[int]"
    )
    path = write(tmp_path / "n.pt", other, {"w": np.ones(2, np.float32), "h": b"N"})
    call = Calls(load_model(path, input_type=["x=2x3xf32"]))
    x = np.ones((2, 3), np.float32)
    found = [np.asarray(next(iter(call({"x": x}).values())))[0, 0] for _ in range(3)]
    assert found == [3, 7, 7]


_NONE = b"N"

_FIRST = """
h = self.h
if torch.__is__(h, None):
  h0 = FIRST
else:
  h0 = unchecked_cast(Tensor, h)
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # From the second call on PyTorch has one tensor under two names.
        (
            _FIRST.replace("FIRST", "self.w")
            + "_0 = torch.add_(self.w, x)\nself.h = h0\nreturn torch.add(h0, x)",
            "'h' and 'w' may become one tensor",
        ),
        (
            _FIRST.replace("FIRST", "x") + "self.h = torch.cat([h0, x])\nreturn h0",
            "'h' of type .* becomes one of",
        ),
        ("if bool(torch.gt(x[0], 0)):\n  self.h = x\nelse:\n  pass\nreturn x", "as a condition"),
    ],
)
def test_an_attribute_that_is_no_state_is_refused(tmp_path: Path, body: str, message: str) -> None:
    code = method(body, fields="w : Tensor\n  h : Optional[Tensor]")
    path = write(tmp_path / "m.pt", code, {"w": np.ones(2, np.float32), "h": _NONE})
    with pytest.raises(FrontendError, match=message):
        load_model(path, input_type=["x=2xf32"])


def test_an_attribute_has_another_form_from_the_first_call_on(tmp_path: Path) -> None:
    body = _FIRST.replace("FIRST", "torch.mul(self.w, 3)")
    code = method(
        f"{body}\n_0 = torch.add_(self.w, x)\nself.h = torch.add(h0, x)\nreturn torch.add(h0, x)",
        fields="w : Tensor\n  h : Optional[Tensor]",
    )
    path = write(tmp_path / "m.pt", code, {"w": np.ones(2, np.float32), "h": _NONE})
    module = load_model(path, input_type=["x=2xf32"])
    assert sum(isinstance(op, IfOp) for op in find_function(module, "main").walk()) == 1
    call = Calls(module)
    found = [next(iter(call({"x": np.array([k, 1], np.float32)}).values())) for k in (1, 2, 3)]
    assert [np.asarray(one).tolist() for one in found] == [[4, 4], [6, 5], [9, 6]]


def test_a_write_in_a_branch_is_seen_through_other_views(tmp_path: Path) -> None:
    code = method("""
y = torch.clone(x)
row = torch.select(y, 0, 1)
if bool(torch.gt(torch.sum(x), 0)):
  _0 = torch.mul_(row, 10)
else:
  pass
return torch.add(y, row)
""")
    path = write(tmp_path / "m.pt", code)
    assert _run(path).tolist() == [[31, 38], [60, 80]]


def test_numbers_of_a_trace_do_not_decide_types(tmp_path: Path) -> None:
    """Constants of `constants.pkl` without dimensions are plain numbers, doubles in form only."""
    code = method("return torch.mul(x, CONSTANTS.c0)")
    path = write(tmp_path / "m.pt", code, constants=(np.array(2.5),))
    assert _run(path).dtype == np.float32


def test_rounded_quotients_have_the_type_of_both_constants(tmp_path: Path) -> None:
    """PyTorch takes constants as numbers in sums, products and true quotients alone."""
    code = method(
        'return torch.div(torch.mul(x, CONSTANTS.c0), CONSTANTS.c0, rounding_mode="trunc")'
    )
    path = write(tmp_path / "m.pt", code, constants=(np.array(2),))
    module = load_model(path, input_shapes={"x": []}, input_type=["x=i32"])
    found = Calls(module)({"x": np.array(-7, np.int32)})["output"]
    assert (np.asarray(found).dtype, found) == (np.int64, -7)


def test_running_sums_of_exponentials_keep_infinities(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", method("return torch.logcumsumexp(x, 1)"))
    rows = np.array([[1, np.inf, np.inf, -np.inf], [-np.inf, -np.inf, 0, np.nan]], np.float32)
    found = Calls(load_model(path, input_shapes={"x": [2, 4]}))({"x": rows})["output"]
    expected = np.array([[1, np.inf, np.inf, np.inf], [-np.inf, -np.inf, 0, np.nan]])
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(
    ("call", "negative"),
    [
        ("cumsum(x, 0)", False),
        ("cumprod(x, 0)", True),
        ("hardshrink(x, 0.5)", False),
        ("xlogy(x, torch.add(x, 2))", False),
        ("special_entr(x)", False),
        ("selu(x)", True),
        ("celu(x, 1.0)", True),
        ("elu(x, 1.0)", True),
    ],
)
def test_which_zero_a_negative_one_becomes(tmp_path: Path, call: str, negative: bool) -> None:
    path = write(tmp_path / "m.pt", method(f"return torch.signbit(torch.{call})"))
    found = Calls(load_model(path, input_shapes={"x": [1]}))({"x": np.array([-0.0], np.float32)})
    assert np.asarray(found["output"]).tolist() == [negative]


def test_powers_and_rounded_numbers_are_floats(tmp_path: Path) -> None:
    code = method(
        "return torch.mul(x, torch.add(torch.pow(n, 2), torch.round(2.5)))", "x: Tensor, n: int"
    )
    path = write(tmp_path / "m.pt", code)
    for fixed in ({"n": 3}, {}):
        module = load_model(path, input_type=["x=2xi64"], fixed=fixed)
        inputs = {"x": np.array([1, 2])} | ({} if fixed else {"n": np.array(3)})
        found = np.asarray(Calls(module)(inputs)["output"])
        assert found.dtype == np.float32
        assert found.tolist() == [11, 22]


@pytest.mark.parametrize(
    ("body", "kind", "dtype", "expected"),
    [
        ("torch.copysign(x, torch.neg(x))", "i64", "float32", [-1, 2]),
        ("torch.copysign(x, x)", "i1", "float32", [1, 1]),
        ("torch.square(x)", "i1", "int64", [1, 1]),
        ("torch.ldexp(x, x)", "i16", "float32", [2, -0.5]),
        ("torch.angle(x)", "i32", "float32", [0, np.pi]),
        ("torch.special_i0(x)", "i64", "float32", [1.2660658, 2.2795853]),
        ("torch.select(torch.outer(torch.gt(x, 0), x), 0, 0)", "i16", "int16", [1, -2]),
        ("torch.logcumsumexp(torch.select(x, 0, 1), 0)", "f32", "float32", -2),
        ("torch.argmax(torch.select(x, 0, 1), -1)", "f32", "int64", 0),
        ("torch.flip(torch.select(x, 0, 1), [0])", "f32", "float32", -2),
        ("torch.movedim(torch.select(x, 0, 1), 0, -1)", "f32", "float32", -2),
        ("torch.cov(torch.select(x, 0, 1), correction=0)", "i16", "float32", 0),
        ("torch.bincount(torch.abs(x))", "i16", "int64", [0, 1, 1]),
        ("torch.bincount(torch.tensor([1, 0]), x)", "f32", "float32", [-2, 1]),
        ("torch.bincount(torch.tensor([1, 0]), x)", "i16", "float64", [-2, 1]),
        ("torch.margin_ranking_loss(x, x, x)", "i16", "float32", 0),
        ("torch.diff(x, n=4)", "i16", "int16", []),
        ("torch.repeat_interleave(x, torch.select(x, 0, 0), 0)", "i64", "int64", [1, -2]),
        ("torch.hardtanh(x, -1.5, 0.5)", "i16", "int16", [0, -1]),
        ("torch.prelu(torch.select(x, 0, 1), torch.ones([1]))", "f32", "float32", -2),
        ("torch.l1_loss(x, torch.mul(x, 3), 2)", "i8", "int64", 6),
        ("torch.special_entr(torch.abs(x))", "i8", "float32", [0, -1.3862944]),
        ("torch.leaky_relu(torch.mul(x, 3), 0.1)", "f16", "float16", [3, -0.60009765625]),
    ],
)
def test_types_of_results(tmp_path: Path, body: str, kind: str, dtype: str, expected: Any) -> None:
    path = write(tmp_path / "m.pt", method(f"return {body}"))
    x = np.array([1, -2], "?" if kind == "i1" else f"{kind[0]}{int(kind[1:]) // 8}")
    module = load_model(path, input_type=[f"x=2x{kind}"])
    found = np.asarray(Calls(module)({"x": x})["output"])
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_arguments_behind_the_star_need_their_names(tmp_path: Path) -> None:
    code = method("return torch.add(x, torch.prod(torch.arange(1, 7, 2)))")
    assert (_run(write(tmp_path / "m.pt", code)) == X + 15).all()


def test_one_storage_under_two_names_is_one_tensor(tmp_path: Path) -> None:
    code = method("_0 = torch.add_(self.a, 1)\nreturn torch.add(x, self.b)", fields="a : Tensor")
    one = np.ones(2, np.float32)
    path = write(tmp_path / "m.pt", code, {"a": one, "b": tensor(0, one)})
    assert (_run(path) == X + 2).all()


def test_everything_refused_is_listed_with_its_line(tmp_path: Path) -> None:
    code = method("""
a = torch.no_such_one(x, 1)
b = torch.add(a, 1)
c = ops.other.thing(x)
if bool(torch.sum(b)):
  d = torch.nor_this(x)
else:
  d = x
return torch.add(c, d)
""")
    with pytest.raises(FrontendError) as error:
        load_model(write(tmp_path / "m.pt", code), input_shapes={"x": [2, 2]})
    lines = str(error.value).splitlines()
    assert [line.split("m.pt: ")[1].split(": ")[0] for line in lines] == [
        "node 'code/__torch__.py:5' (aten.no_such_one)",
        "node 'code/__torch__.py:7' (other.thing)",
        "node 'code/__torch__.py:9' (aten.nor_this)",
    ]


def test_an_unknown_shape_names_the_options(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", method("return x", "x: Tensor, y: Tensor"))
    with pytest.raises(FrontendError, match=r"--input-shape x=.*\n.*--input-type y="):
        load_model(path)
    with pytest.raises(FrontendError, match="'z', but the inputs are 'x', 'y'"):
        load_model(path, input_shapes={"x": [1], "y": [1], "z": [1]})
    with pytest.raises(FrontendError, match="'x=1x2', expected NAME="):
        load_model(path, input_type=["x=1x2"])


def test_an_input_may_be_a_constant(tmp_path: Path) -> None:
    code = method("return torch.mul(x, n)", "x: Tensor, n: int")
    path = write(tmp_path / "m.pt", code)
    assert (_run(path, fixed={"n": 3}) == X * 3).all()
    main = find_function(load_model(path, input_shapes={"x": [2, 2]}), "main")
    assert isinstance(main, func.FuncOp)
    assert len(main.body.block.args) == 2


def test_a_write_that_may_change_a_copy_is_refused(tmp_path: Path) -> None:
    """It depends on the number of rows whether their elements lie apart."""
    code = method("""
y = torch.reshape(torch.select(x, 1, 0), [-1])
_0 = torch.add_(y, 1)
return torch.add(x, 1)
""")
    with pytest.raises(FrontendError, match="may have a copy"):
        load_model(write(tmp_path / "m.pt", code), input_type=["x=nx2xf32"])


def test_a_flattened_dimension_is_the_tensor_itself(tmp_path: Path) -> None:
    """However its elements lie; two of them may be a copy."""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    for dims, expected in (("0, 0", [[1, 3, 5], [2, 4, 6]]), ("-1, -1", [[1, 3, 5], [2, 4, 6]])):
        lines = f"t = torch.t(x)\n_0 = torch.add_(torch.flatten(t, {dims}), 1)\nreturn t"
        path = write(tmp_path / "m.pt", method(lines))
        found = Calls(load_model(path, input_type=["x=nx2xf32"]))({"x": rows})["output"]
        assert np.asarray(found).tolist() == expected
    with pytest.raises(FrontendError, match="may have a copy"):
        load_model(write(path, method(lines.replace("-1, -1", "0, 1"))), input_type=["x=nx2xf32"])


@pytest.mark.parametrize(
    ("view", "copies"),
    [
        ("torch.contiguous(torch.permute(x, [1, 0]))", True),
        ("torch.contiguous(torch.transpose(torch.t(x), 0, -1))", False),
        ("torch.reshape(torch.swapaxes(x, 0, 1), [4])", True),
        ("torch.reshape(torch.mT(torch.unsqueeze(x, 0)), [2, 1, 2])", False),
        ("torch.slice(torch.slice(x, 0, 0, 9223372036854775807), 1)", False),
        ("torch.ravel(torch.t(x))", True),
        ("torch.ravel(torch.permute(x, [1, 0]))", True),
        ("torch.ravel(torch.slice(x, 0, 0, 9223372036854775807))", False),
    ],
)
def test_what_is_a_copy_by_its_strides(tmp_path: Path, view: str, copies: bool) -> None:
    """Also one that is contiguous again, and one that is seen in another shape without a copy."""
    code = method(f"y = {view}\n_0 = torch.add_(y, 1)\nreturn torch.add(x, 0)")
    expected = X if copies else X + 1
    assert _run(write(tmp_path / "m.pt", code)).tolist() == expected.tolist()


def test_tensors_of_a_branch_that_share_elements(tmp_path: Path) -> None:
    """A write behind the branches to one of them is refused; the other one alone may be written."""
    code = "if bool(torch.gt(torch.sum(x), 0)):\n  a = torch.clone(x)\n  b = torch.t(a)\n"
    code += "else:\n  a = torch.mul(x, 2)\n  b = torch.t(a)\n_0 = torch.add_(a, 1)\nreturn "
    with pytest.raises(FrontendError, match="of which another tensor may have a copy"):
        load_model(write(tmp_path / "m.pt", method(code + "b")), input_shapes={"x": [2, 2]})
    alone = code.replace("  b = torch.t(a)\n", "") + "a"
    assert _run(write(tmp_path / "n.pt", method(alone))).tolist() == (X + 1).tolist()


def test_a_write_that_nobody_sees_behind_a_branch(tmp_path: Path) -> None:
    code = "if bool(torch.gt(torch.sum(x), 0)):\n  a = torch.clone(x)\n  _0 = torch.fill_(a, 3)\n"
    path = write(tmp_path / "m.pt", method(code + "else:\n  pass\nreturn torch.mul(x, 1)"))
    assert _run(path).tolist() == X.tolist()
    (branch,) = [
        op for op in load_model(path, input_shapes={"x": [2, 2]}).walk() if isinstance(op, IfOp)
    ]
    assert not branch.results


def test_a_tensor_that_is_turned_itself(tmp_path: Path) -> None:
    """By all its names, and what is written to it afterwards."""
    code = "y = torch.add(x, 0)\nz = y\n_0 = torch.t_(y)\nv = torch.select(z, 0, 0)\n"
    code += "_1 = torch.neg_(v)\nreturn torch.mul(z, 1)"
    expected = X.T.copy()
    expected[0] *= -1
    assert _run(write(tmp_path / "m.pt", method(code))).tolist() == expected.tolist()
    code = "y = torch.add(x, 0)\nif bool(torch.gt(torch.sum(x), 0)):\n  _0 = torch.t_(y)\n"
    same = code.replace("t_(y)", "dropout_(y, 0.5, False)") + "else:\n  pass\nreturn y"
    assert _run(write(tmp_path / "o.pt", method(same))).tolist() == X.tolist()
    path = write(tmp_path / "n.pt", method(code + "else:\n  pass\nreturn y"))
    with pytest.raises(FrontendError, match="another shape of a tensor itself"):
        load_model(path, input_shapes={"x": [2, 2]})


@pytest.mark.parametrize(
    "view",
    [
        "permute(x, [1, 0])",
        "select(x, 1, 0)",
        "select(x, 0, 1)",
        "reshape(x.T, [2, 1, 2]).T",
        "as_strided(x, [2], [1], 1)",
    ],
)
def test_other_strides_need_elements_in_order(tmp_path: Path, view: str) -> None:
    code = method(f"return torch.as_strided(torch.{view}, [2], [1])")
    with pytest.raises(FrontendError, match="may have strides"):
        load_model(write(tmp_path / "m.pt", code), input_shapes={"x": [2, 2]})


@pytest.mark.parametrize(
    "body",
    [
        "return y",
        "return torch.add(x)",
        "a, b = x\nreturn a",
        "while True:\n  y = torch.add(x, 1)\nreturn y",
        "return torch.pow(10, torch.pow(10, 10))",
        "return self.forward(x)",
        "y = [x]\nfor i in range(40):\n  y = [y, y]\nreturn y",
        "return torch.stack([])",
        "return __import__('os').system('false')",
        "return (lambda: x)()",
        "ops.prim.RaiseException('no')\nreturn x",
    ],
)
def test_broken_programs_end_in_a_message(tmp_path: Path, body: str) -> None:
    with pytest.raises(FrontendError):
        load_model(write(tmp_path / "m.pt", method(body)), input_shapes={"x": [2, 2]})


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("torch.reshape(torch.select(x, 1, 0), [-1])", [[True, False], [True, False]]),
        ("torch.ravel(torch.unsqueeze(torch.slice(x, 0, 1), 0))", [[False, False], [True, True]]),
        ("torch.select(torch.expand(x, [3, 2, 2]), 0, 1)", [[True, True], [True, True]]),
        ("torch.slice(torch.expand(torch.slice(x, 1, 1), [2, 3]), 1, 2)", [[False, True]] * 2),
        ("torch.broadcast_tensors([x, torch.ones([2])])[0]", [[True, True], [True, True]]),
        ("torch.broadcast_tensors([torch.ones([2]), x])[1]", [[True, True], [True, True]]),
        (
            "torch.reshape(torch.as_strided(x, [2, 2], [1, 2]), [4])",
            [[False, False], [False, False]],
        ),
        ("torch.ravel(torch.select(x, 1, 0))", [[False, False], [False, False]]),
    ],
)
def test_a_write_to_views_of_which_strides_are_known(
    tmp_path: Path, view: str, shown: list[list[bool]]
) -> None:
    code = method(f"y = {view}\n_0 = torch.add_(y, 1)\nreturn torch.mul(x, 1)")
    expected = X + np.array(shown)
    assert _run(write(tmp_path / "m.pt", code)).tolist() == expected.tolist()


def test_a_write_to_elements_that_are_shown_several_times_is_refused(tmp_path: Path) -> None:
    code = method(
        "y = torch.expand(torch.select(x, 0, 0), [3, 2])\n_0 = torch.add_(y, 1)\nreturn x"
    )
    with pytest.raises(FrontendError, match="shows several times"):
        load_model(write(tmp_path / "m.pt", code), input_shapes={"x": [2, 2]})
