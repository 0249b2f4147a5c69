"""
What xDSL's own tools find of this project: its dialects and passes, for `xdsl-opt` and others.

A name of ours that xDSL has, too, stays xDSL's: those tools refuse two of a name. `opt-tool` has
ours.
"""

from __future__ import annotations

from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from lowerdeck.dialects.registry import dialects
from lowerdeck.lowering.pipeline import ALL_PASSES

_UPSTREAM = get_all_passes().keys()

UNIVERSE = Universe(
    all_dialects=dialects(),
    all_passes={name: factory for name, factory in ALL_PASSES.items() if name not in _UPSTREAM},
)
"""The entry point of the group `xdsl.universe`."""
