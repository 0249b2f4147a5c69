"""The onnx dialect, generated from the operator schemas of onnx.defs."""
