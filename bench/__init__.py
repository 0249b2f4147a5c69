"""Measurements of models: time, size and memory, beside others and beside other versions."""
