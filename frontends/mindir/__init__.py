"""Reads MindIR, the models that MindSpore exports."""
