"""
The operators of random ONNX graphs: what makes a node of each, with inputs that fit.

The import registers all of them, always in the same order, on which the graph of a seed depends.
"""

from importlib import import_module

TOPICS = ("elementwise", "reductions", "movement", "products", "images", "layers", "regions")

for _topic in TOPICS:
    import_module(f"{__name__}.{_topic}")
