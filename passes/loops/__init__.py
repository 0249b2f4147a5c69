"""Passes on `core.loop`."""
