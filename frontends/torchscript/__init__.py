"""Archives of TorchScript: reader and import."""
