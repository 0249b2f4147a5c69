"""Passes on the framework dialects and on core, one pass to a file."""
