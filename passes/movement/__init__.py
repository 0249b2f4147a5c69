"""Passes on what only moves elements: transposes, reshapes, slices, strides."""
