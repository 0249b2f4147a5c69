"""The conversion of the onnx dialect to core, one topic to a file."""
