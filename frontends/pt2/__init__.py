"""Archives of torch.export: reader and import."""
