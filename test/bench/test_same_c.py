"""What `bench/same_c.py` finds of the C of two checkouts."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, helper

from bench.same_c import differences, read, write


def model_at(path: Path, op: str) -> str:
    """A file of a model with one operator."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return str(path)


def test_same_and_different(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    model = model_at(path, "Abs")
    write(before, [model], ["c99", "aarch64"], [1])
    write(after, [model], ["c99", "aarch64"], [1])
    assert list(differences(read(before), read(after))) == []
    model_at(path, "Neg")
    write(after, [model], ["c99"], [1])
    # The description says what the text is.
    assert list(differences(read(before), read(after))) == [
        f"{model} c99/1 m.c: differs",
        f"{model} c99/1 m.json: differs",
    ]


def test_one_side_alone() -> None:
    old, new = {"m": {"c99/1": {"m.c": "0", "m.h": "1"}}}, {"m": {"c99/1": {"m.c": "0"}}}
    assert list(differences(old, new)) == ["m c99/1 m.h: only before"]
    assert list(differences(new, old)) == ["m c99/1 m.h: only after"]


def test_a_refusal_is_compared(tmp_path: Path) -> None:
    file = tmp_path / "digests.json"
    model = model_at(tmp_path / "m.onnx", "NoSuchOperator")
    write(file, [model], ["c99"], [1])
    assert "NoSuchOperator" in read(file)[model]["c99/1"]["refusal"]
