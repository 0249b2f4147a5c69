"""
Small models that together reach all kernels and all forms of the entry function: what fuzz_c.py
runs.

Inputs are open wherever the operators allow it. Numbers that say how long a loop runs are bounded:
a model that runs as many steps as it is told is right.
"""

from importlib import import_module

from fuzz.c_models.registry import MODELS, Made, Maker

__all__ = ["MODELS", "Made", "Maker"]

for _topic in (
    *("convolutions", "products", "loops", "images"),
    *("indices", "late_shapes", "elements", "frameworks"),
):
    import_module(f"{__name__}.{_topic}")  # they register their models
