"""The ops of the onnx dialect are those of the committed manifest: an update of onnx shows."""

from pathlib import Path

from lowerdeck.dialects.onnx.ops import op_classes

MANIFEST = Path(__file__).parents[2] / "dialects" / "onnx" / "manifest.txt"


def test_ops_are_those_of_the_manifest() -> None:
    known = MANIFEST.read_text().split()
    found = [cls.name for cls in op_classes()]
    assert sorted(found) == sorted(known), (
        f"new: {sorted(set(found) - set(known))}, gone: {sorted(set(known) - set(found))}; "
        "if this is meant, write the names to the manifest and review their legalization"
    )
