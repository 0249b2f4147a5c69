"""
Simplification of graphs of the onnx dialect, for the exporter: patterns by topic.

What legalization finds out of a node, its shape and the elements of shapes, is what the patterns
know of it (`known.py`); the nodes themselves stay those that the model had.
"""
