"""Conversions from framework dialects to core."""
