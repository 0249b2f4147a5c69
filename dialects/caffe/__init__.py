"""The `caffe` dialect: one op for each layer type."""
