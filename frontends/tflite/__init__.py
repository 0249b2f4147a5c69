"""TensorFlow Lite: the flatbuffers and their import."""
