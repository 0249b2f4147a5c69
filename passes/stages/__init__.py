"""Stages of the way to `optimized` under one name, for pipelines and `--disable`."""
