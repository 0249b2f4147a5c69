"""A layer in place changes all blobs in its memory, as in Caffe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.caffe.import_ import import_net

from .caffe_nets import (  # noqa: TID251  (these are tests, not the folder of sources)
    INPUT,
    main_of,
    names_of,
    write_net,
)

X = np.arange(-2, 4, dtype=np.float32).reshape(2, 3)


def layer(type_: str, bottoms: str, tops: str, parameters: str = "") -> str:
    blobs = [f'bottom: "{name}"' for name in bottoms.split()]
    blobs += [f'top: "{name}"' for name in tops.split()]
    return f'layer {{ name: "{tops} of {type_}" type: "{type_}" {" ".join(blobs)} {parameters} }}\n'


def plus(number: int, bottom: str, top: str) -> str:
    return layer("Power", bottom, top, f"power_param {{ shift: {number} }}")


VIEWS = [
    layer("Split", "x", "a"),
    layer("Flatten", "x", "a", "flatten_param { axis: 0 }"),
    layer("Reshape", "x", "a", "reshape_param { shape { dim: 3 dim: -1 } }"),
    layer("Concat", "x", "a"),
    layer("Slice", "x", "a"),
]


@pytest.mark.parametrize("view", VIEWS)
def test_what_a_view_is_of_changes_with_it(view: str, tmp_path: Path) -> None:
    net = INPUT + plus(1, "x", "before") + view + plus(10, "a", "a")
    found = _results(net + plus(100, "x", "behind") + plus(1000, "a", "it"), tmp_path)
    np.testing.assert_array_equal(found["before"], X + 1)
    np.testing.assert_array_equal(found["behind"], X + 110)
    assert found["it"].shape != X.shape or "Split" in view or "Concat" in view or "Slice" in view
    np.testing.assert_array_equal(found["it"].ravel(), X.ravel() + 1010)


def test_what_is_copied_does_not_change(tmp_path: Path) -> None:
    copies = layer("Tile", "x", "a", "tile_param { tiles: 1 }") + layer("Concat", "x x", "b")
    net = INPUT + copies + plus(10, "a", "a") + plus(20, "b", "b") + plus(1, "x", "y")
    found = _results(net, tmp_path)
    np.testing.assert_array_equal(found["y"], X + 1)
    np.testing.assert_array_equal(found["a"], X + 10)
    np.testing.assert_array_equal(found["b"], np.hstack([X, X]) + 20)


def test_tops_of_one_split_change_each_other(tmp_path: Path) -> None:
    net = INPUT + layer("Split", "x", "a b") + plus(1, "a", "a") + plus(10, "b", "b")
    found = _results(net + plus(100, "a", "c") + plus(200, "b", "d"), tmp_path)
    np.testing.assert_array_equal(found["c"], X + 111)
    np.testing.assert_array_equal(found["d"], X + 211)


def test_an_output_changes_after_its_layer(tmp_path: Path) -> None:
    net = INPUT + layer("Flatten", "x", "a", "flatten_param { axis: 0 }")
    net += layer("Reshape", "x", "b", "reshape_param { shape { dim: 6 dim: 1 } }")
    found = _results(net + plus(1, "b", "b"), tmp_path)
    np.testing.assert_array_equal(found["a"], X.ravel() + 1)
    np.testing.assert_array_equal(found["b"], X.reshape(6, 1) + 1)
    path = write_net(tmp_path, net + plus(1, "b", "b"))
    module = import_net(path, outputs=["a"])
    assert names_of(module) == (["x"], ["a"])
    np.testing.assert_array_equal(run_module(module, {"x": X})["a"], X.ravel() + 1)


def test_nothing_is_added_for_what_nothing_reads(tmp_path: Path) -> None:
    net = INPUT + VIEWS[1] + plus(1, "a", "a")
    module = import_net(write_net(tmp_path, net))
    assert [op.name for op in main_of(module).body.block.ops] == [
        "caffe.Flatten",
        "caffe.Power",
        "func.return",
    ]


def _results(net: str, folder: Path) -> dict[str, np.ndarray]:
    module = import_net(write_net(folder, net))
    return {name: np.asarray(each) for name, each in run_module(module, {"x": X}).items()}
