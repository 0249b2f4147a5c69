"""Reader of ONNX files: parse, then import one to one."""
